# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What docs/add-*.md show as a new file does what they say, once it is where they
say: built as its neighbours are, and linked into axopt."""
import json
import re
import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from onnx import helper

from cases import ROOT, Failed, run, scratch, tool
from _training import axrun, close, compiled, losses, small
from optimizers import follows

NEW = re.compile(r"^```cpp new (\S+)\n(.*?)^```", re.M | re.S)
DIFF = re.compile(r"^```diff (\S+)\n(.*?)^```", re.M | re.S)
TABLEGEN = {"AxEnums.h.inc", "AxEnums.cpp.inc"}  # What exercises change of it.


def made():
    """The build folder."""
    return Path(tool("axopt")).parents[1]


def allCommands():
    return {str(Path(entry["file"]).resolve()): entry["command"] for entry in
            json.loads((made() / "compile_commands.json").read_text())}


def commandFor(source, commands, folder, *includes):
    """Its command in the build folder, which writes FOLDER/NAME.o instead."""
    words = shlex.split(commands[str(source)])
    at = words.index("-o")
    words[at + 1] = str(folder / source.with_suffix(".o").name)
    return words[:1] + [f"-I{path}" for path in includes] + words[1:]


def link(name, objects, folder):
    """FOLDER/NAME, the tool with these objects instead of those that it has."""
    output = f" -o bin/{name} "
    command = run("ninja", "-C", made(), "-t", "commands", f"bin/{name}")
    command = command.stdout.strip().splitlines()[-1]
    if output not in command:
        raise Failed(f"no command that links {name}: {command}")
    # Before the libraries, which have older ones of the same names.
    new = " ".join(shlex.quote(str(file)) for file in objects)
    run("bash", "-c", command.replace(
        output, f" {new} -o {shlex.quote(str(folder / name))} "), cwd=made())
    return folder / name


def build(page, lists, folder):
    """axopt with the new file of a page. `lists` includes the list of files that
    the build writes for its folder."""
    (path, text), = NEW.findall((ROOT / "docs" / page).read_text())
    path = (ROOT / path).resolve()
    lists = (ROOT / lists).resolve()
    commands = allCommands()
    source = folder / path.name
    source.write_text(text)
    name, = re.findall(r'#include "(\w+\.inc)"\n#undef',
                       lists.read_text())[:1]
    neighbours = sorted(path.parent.glob("*.cpp"))
    (folder / name).write_text("".join(
        f"AX_FILE({stem})\n"
        for stem in [file.stem for file in neighbours] + [path.stem]))
    # Includes as from its own folder.
    like = commandFor(neighbours[0], commands, folder, path.parent)
    like = [{str(neighbours[0]): str(source)}.get(word, word) for word in like]
    like[like.index("-o") + 1] = str(source.with_suffix(".o"))
    run(*like, cwd=made())
    run(*commandFor(lists, commands, folder, folder), cwd=made())
    return link("axopt", [folder / source.with_suffix(".o").name,
                          folder / lists.with_suffix(".o").name], folder)


def patched(path, diff):
    """The text of a file after the change that a page shows."""
    lines = [line or " " for line in diff.splitlines()]
    if any(line[0] not in " +-" for line in lines):
        raise Failed(f"no change of {path}:\n{diff}")
    old, new = ("".join(line[1:] + "\n" for line in lines if line[0] in kind)
                for kind in (" -", " +"))
    text = (ROOT / path).read_text()
    if text.count(old) != 1:
        raise Failed(f"{path} has {text.count(old)} times\n{old}")
    return text.replace(old, new)


def tablegen(folder):
    """The files of TABLEGEN, from the copies of .td files in `folder`."""
    for name in TABLEGEN:
        command = run("ninja", "-C", made(), "-t", "commands",
                      f"include/ax/Dialect/{name}").stdout.splitlines()[-1]
        words = shlex.split(re.search(r"&& (\S*mlir-tblgen .*?) -o", command)[1])
        (folder / "ax/Dialect" / name).write_text(
            run(words[0], f"-I{folder}", *words[1:]).stdout)


def buildChanged(page, folder, *tools):
    """The tools after the changes that a page shows. Only what the table of
    functions is for is compiled again: for other code nothing changes."""
    commands = allCommands()
    objects = []
    changes = DIFF.findall((ROOT / "docs" / page).read_text())
    for path, diff in changes:
        place = folder / path.removeprefix("include/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(patched(path, diff))
    tablegen(folder)
    users = [Path(source) for source in commands
             if '"ax/Dialect/UnaryFunctions.h"' in Path(source).read_text()]
    assert len(users) >= 4, users
    jobs = []
    for source in users + [ROOT / path for path, _ in changes
                           if path.endswith(".cpp")]:
        source = source.resolve()
        name = str(source.relative_to(ROOT.resolve()))
        command = commandFor(source, commands, folder, folder, source.parent)
        copy = folder / name
        if copy.exists():
            command = [str(copy) if word == str(source) else word
                       for word in command]
        objects.append(folder / (name.replace("/", "-") + ".o"))
        command[command.index("-o") + 1] = str(objects[-1])
        jobs.append(command)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda command: run(*command, cwd=made()), jobs))
    # A tool takes those that it has.
    run("ar", "rc", folder / "changed.a", *objects)
    return [link(name, [folder / "changed.a"], folder) for name in tools]


def schedule():
    with scratch() as folder:
        folder = Path(folder)
        axopt = build("add-a-schedule.md", "lib/Cost/Schedule.cpp", folder)
        if "one-at-a-time" not in run(axopt, "--help-all").stdout:
            raise Failed("it is not in the help")
        found = {}
        for name in "one-at-a-time", "gpipe":
            plan = compiled(folder, "--pp=2", "--micro-batches=4",
                            f"--schedule={name}", name=name, axopt=axopt)
            run(tool("axopt"), plan, "--verify")
            axrun(plan, "--random-inputs", 1, "--iterations=2", "--output",
                  folder / f"{name}.npz")
            with np.load(folder / f"{name}.npz") as outputs:
                found[name] = {key: outputs[key] for key in outputs.files}
        text = (folder / "one-at-a-time.mlir").read_text()
        for shown in ('ax.schedule "one-at-a-time"',
                      'stage 0: "F0 B0 F1 B1 F2 B2 F3 B3 U'):
            if shown not in text:
                raise Failed(f"the plan has no {shown}")
        for key, value in found["gpipe"].items():
            close(found["one-at-a-time"][key], value, 1e-6, key)


def adagrad(lr, eps=1e-10):
    sums = {}

    def update(name, w, g):
        sums[name] = sums.get(name, 0) + g * g
        return w - lr * g / (np.sqrt(sums[name]) + eps)
    return update


def optimizer():
    with scratch() as folder:
        axopt = build("add-an-optimizer.md",
                      "passes/Train/Optimizer/UpdateRule.cpp", Path(folder))
        follows("--dp=2 --zero=3", "adagrad(lr=0.1)", adagrad, 0.1, axopt=axopt)


def function():
    """Training through Softsign gives what it gave when it was composed."""
    random = np.random.default_rng(1)
    with scratch() as folder:
        folder = Path(folder)
        new = buildChanged("add-a-function.md", folder, "axopt", "axrun")
        small(folder / "model.onnx",
              [helper.make_node("Gemm", ["input", "w", "b"], ["h"]),
               helper.make_node("Softsign", ["h"], ["logits"])],
              {"w": random.normal(size=(16, 16)).astype(np.float32),
               "b": random.normal(size=16).astype(np.float32)}, [8, 16])
        np.savez(folder / "data.npz", **{
            name: random.normal(size=(64, 16)).astype(np.float32)
            for name in ("input", "target")})
        found = []
        for compiler, runner in (new, (tool("axopt"), tool("axrun"))):
            plan, log = (folder / f"{len(found)}.{kind}" for kind in ("mlir", "log"))
            run(compiler, folder / "model.onnx", "--train", "--tp=2", "--quiet",
                "--loss=mse(logits,target)", "-o", plan)
            run(runner, plan, f"--data={folder / 'data.npz'}", "--steps=8",
                f"--cache-dir={folder / 'kernels'}", "--no-shuffle", "--quiet",
                f"--log={log}")
            found.append((losses(log), plan.read_text()))
        (one, plan), (composed, before) = found
        if "ax.unary softsign" not in plan or "ax.unary softsign" in before:
            raise Failed(f"no function of its own:\n{plan}")
        assert len(one) == 8, one
        close(np.array(one), np.array(composed), 1e-5, "losses")


def cases(every):
    yield "add-a-function.md", function
    yield "add-a-schedule.md", schedule
    yield "add-an-optimizer.md", optimizer
