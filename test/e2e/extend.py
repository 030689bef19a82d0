# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What docs/add-*.md show as a new file does what they say, once it is where they
say: built as its neighbours are, and linked into axopt."""
import json
import re
import shlex
from pathlib import Path

import numpy as np

from cases import ROOT, Failed, run, scratch, tool
from _training import axrun, close, compiled
from optimizers import follows

NEW = re.compile(r"^```cpp new (\S+)\n(.*?)^```", re.M | re.S)


def commandFor(source, commands, folder, *includes):
    """Its command in the build folder, which writes FOLDER/NAME.o instead."""
    words = shlex.split(commands[str(source)])
    at = words.index("-o")
    words[at + 1] = str(folder / source.with_suffix(".o").name)
    return words[:1] + [f"-I{path}" for path in includes] + words[1:]


def build(page, lists, folder):
    """axopt with the new file of a page. `lists` includes the list of files that
    the build writes for its folder."""
    (path, text), = NEW.findall((ROOT / "docs" / page).read_text())
    path = (ROOT / path).resolve()
    lists = (ROOT / lists).resolve()
    made = Path(tool("axopt")).parents[1]
    commands = {str(Path(entry["file"]).resolve()): entry["command"] for entry in
                json.loads((made / "compile_commands.json").read_text())}
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
    run(*like, cwd=made)
    run(*commandFor(lists, commands, folder, folder), cwd=made)
    link = run("ninja", "-C", made, "-t", "commands", "bin/axopt")
    link = link.stdout.strip().splitlines()[-1]
    if " -o bin/axopt " not in link:
        raise Failed(f"no command that links axopt: {link}")
    # Before the libraries, which have an older one of the same name.
    link = link.replace(" -o bin/axopt ", " " + " ".join(
        shlex.quote(str(folder / file)) for file in (
            source.with_suffix(".o").name, lists.with_suffix(".o").name)
    ) + f" -o {shlex.quote(str(folder / 'axopt'))} ")
    run("bash", "-c", link, cwd=made)
    return folder / "axopt"


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


def cases(every):
    yield "add-a-schedule.md", schedule
    yield "add-an-optimizer.md", optimizer
