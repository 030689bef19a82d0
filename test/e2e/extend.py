# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What docs/add-*.md show as a new file or a change does what they say, once it is
where they say: built as its neighbours are, and linked with what is built."""
import json
import os
import re
import shlex
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from onnx import helper

from cases import ROOT, Failed, run, scratch, tool
from _training import axrun, close, compiled, losses, small
from optimizers import follows

NEW = re.compile(r"^```cpp new (\S+)\n(.*?)^```", re.M | re.S)
DIFF = re.compile(r"^```diff (\S+)\n(.*?)^```", re.M | re.S)
LISTED = re.compile(r"^ax_list_files\(\w+ (\S+) (\S+)\)", re.M)


def made():
    """The build folder."""
    return Path(tool("axopt")).parents[1]


def listed():
    """Folder -> the list of its files that the build writes."""
    return {(cmake.parent / folder).relative_to(ROOT): name
            for top in ("lib", "passes", "test")
            for cmake in (ROOT / top).glob("**/CMakeLists.txt")
            for folder, name in LISTED.findall(cmake.read_text())}


class Change:
    """What a page changes, compiled in a folder and linked with what is built."""

    def __init__(self, page, folder, without=""):
        """`without`: what is left out of the lines that the page adds."""
        self.folder = Path(folder)
        self.commands = {
            Path(entry["file"]).resolve().relative_to(ROOT.resolve()):
            shlex.split(entry["command"]) for entry in
            json.loads((made() / "compile_commands.json").read_text())
            if Path(entry["file"]).resolve().is_relative_to(ROOT.resolve())}
        self.changed, self.objects = {}, {}
        text = "".join(
            line.replace(without, "") if line.startswith("+") else line for line in
            (ROOT / "docs" / page).read_text().splitlines(keepends=True))
        for path, code in NEW.findall(text):
            self.changed[Path(path)] = code
        for path, diff in DIFF.findall(text):
            self.changed[Path(path)] = patched(path, diff, self.changed.get(
                Path(path), (ROOT / path).read_text()))
        for path, code in self.changed.items():
            self.write(path, code)
        self.sources = {path for path in self.changed if path.suffix == ".cpp"}
        for place, name in listed().items():
            if any(path.parent == place for path in self.changed):
                self.list(place, name)

    def write(self, path, code):
        place = self.folder / "tree" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(code)

    def list(self, place, name):
        """The files of a folder, with the page's; what reads the list needs to be
        compiled again."""
        files = {path.stem for path in self.changed if path.parent == place}
        files |= {file.stem for file in (ROOT / place).glob("*.cpp")}
        (self.folder / name).write_text(
            "".join(f"AX_FILE({stem})\n" for stem in sorted(files)))
        users = {path for path in self.commands if path.suffix == ".cpp" and
                 f'#include "{name}"' in (ROOT / path).read_text()}
        if not users:
            raise Failed(f"nothing reads {name}")
        self.sources |= users

    def compile(self, path):
        """The command that compiles a source of the tree or of the page."""
        path = Path(path)
        like = path if path in self.commands else min(
            other for other in self.commands if other.parent == path.parent)
        command = list(self.commands[like])
        at = command.index("-o") + 1
        new = str(self.folder / str(path).replace("/", "-")) + ".o"
        self.objects[command[at] if like == path else new] = new
        command[at] = new
        if path in self.changed:
            old = str((ROOT / like).resolve())
            command = [str(self.folder / "tree" / path)
                       if Path(word).is_absolute() and
                       os.path.realpath(word) == old else word
                       for word in command]
        # Before all others; what is beside the source is found from its copy.
        first = [self.folder, self.folder / "tree/include",
                 (ROOT / path).resolve().parent]
        return command[:1] + [f"-I{name}" for name in first] + command[1:]

    def precompiledAnew(self, commands):
        """Commands that compile, which it changes. Where the page changes headers,
        what they include before all others is precompiled anew, or left out where
        few include it; and they do not optimise, as what is made does little."""
        if all(path.suffix == ".cpp" for path in self.changed):
            return commands
        users = {}
        for command in commands:
            command.append("-O0")
            if "-include" in command:
                at = command.index("-include")
                users.setdefault(Path(command[at + 1]), []).append((command, at))
        folder = self.folder / "precompiled"
        for header, those in users.items():
            shutil.copytree(header.parent, folder, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("*.?ch*"))
            if isWorth := len(those) > 2:
                self.precompile(folder / header.name, *those[0])
            for command, at in those:
                command[at:at + 2] = isWorth * ["-include",
                                                str(folder / header.name)]
        return commands

    def precompile(self, header, command, at):
        """With the flags of a command that has its `-include` there, and ends, but
        for flags, in `-o OBJECT -c SOURCE`."""
        isClang = "clang" in Path(command[0]).name
        output = command.index("-o")
        words = command[:at] + command[at + 2:output] + command[output + 4:]
        run(*words, *["-fpch-instantiate-templates"] * isClang, "-x", "c++-header",
            header, "-o", f"{header}.{'pch' if isClang else 'gch'}", cwd=made())

    def tablegen(self, stem):
        """What comes of the page's .td files."""
        include = self.folder / "tree/include"
        for end in ".h.inc", ".cpp.inc":
            file = made() / "include/ax/Dialect" / (stem + end)
            command = run("ninja", "-C", made(), "-t", "commands",
                          file.relative_to(made())).stdout.splitlines()[-1]
            words = shlex.split(
                re.search(r"&& (\S*mlir-tblgen .*?) --write", command)[1])
            text = run(words[0], f"-I{include}", *words[1:]).stdout
            if text == file.read_text():
                raise Failed(f"the page does not change {file.name}")
            self.write(Path("include/ax/Dialect") / file.name, text)

    def compileUsers(self, stem):
        """The page's sources, and those that what it changes is meant for. Other
        code would learn of an enumerator or an operation more (to name it in a
        message), and is left as it is: that is what makes this cheap."""
        self.tablegen(stem)
        headers = {path.name for path in self.changed if path.suffix == ".h"}
        headers.add(stem + ".cpp.inc")
        used = re.compile("".join(
            ('#include "ax/Dialect/(', "|".join(map(re.escape, headers)), ')"')))
        self.sources |= {path for path in self.commands if path.suffix == ".cpp"
                         and used.search((ROOT / path).read_text())}

    def link(self, *names):
        """These programs of the build folder with what is compiled."""
        jobs = self.precompiledAnew(
            [self.compile(path) for path in sorted(self.sources)])
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda job: run(*job, cwd=made()), jobs))
        # Before the libraries, which have older ones of the same names. Of an
        # archive a program takes what it has use for.
        archive = self.folder / "changed.a"
        archive.unlink(missing_ok=True)
        run("ar", "rc", archive, *self.objects.values())
        for name in names:
            command = run("ninja", "-C", made(), "-t", "commands", name)
            words = shlex.split(command.stdout.strip().splitlines()[-1])
            if "-o" not in words or words[words.index("-o") + 1] != name:
                raise Failed(f"no command that links {name}: {words}")
            words = [self.objects.get(word, word) for word in words
                     if word not in (":", "&&")]
            at = words.index("-o")
            words[at + 1] = str(self.folder / Path(name).name)
            run(*words[:at], archive, *words[at:], cwd=made())
        return [self.folder / Path(name).name for name in names]


def patched(path, diff, text):
    """A file's text after a change that a page shows."""
    lines = [line or " " for line in diff.splitlines()]
    if any(line[0] not in " +-" for line in lines):
        raise Failed(f"no change of {path}:\n{diff}")
    old, new = ("".join(line[1:] + "\n" for line in lines if line[0] in kind)
                for kind in (" -", " +"))
    if text.count(old) != 1:
        raise Failed(f"{path} has {text.count(old)} times\n{old}")
    return text.replace(old, new)


def schedule():
    with scratch() as folder:
        folder = Path(folder)
        axopt, = Change("add-a-schedule.md", folder).link("bin/axopt")
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
        axopt, = Change("add-an-optimizer.md", folder).link("bin/axopt")
        follows("--dp=2 --zero=3", "adagrad(lr=0.1)", adagrad, 0.1, axopt=axopt)


def function():
    """Training through Softsign gives what it gave when it was composed."""
    random = np.random.default_rng(1)
    with scratch() as folder:
        folder = Path(folder)
        change = Change("add-a-function.md", folder)
        change.compileUsers("AxEnums")
        new = change.link("bin/axopt", "bin/axrun")
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


def operation():
    """Its tests pass, and kernels of ranks do what NumPy does."""
    with scratch() as folder:
        folder = Path(folder)
        change = Change("add-an-operator.md", folder)
        change.compileUsers("AxOps")
        *tests, axrun = change.link("test/unit/AxLayoutsTests",
                                    "test/unit/AxTrainTests", "bin/axrun")
        for test in tests:
            done = run(test, "--gtest_filter=*roll*")
            if not re.search(r"PASSED  \] [1-9]", done.stdout):
                raise Failed(f"no test of it:\n{done.stdout}")
        small(folder / "model.onnx",
              [helper.make_node("Relu", ["input"], ["logits"])], {}, [8, 16])
        run(tool("axopt"), folder / "model.onnx", "--dp=2", "--quiet", "-o",
            folder / "plan.mlir")
        plan = (folder / "plan.mlir").read_text()
        rolled = re.sub(r"ax.unary relu (%\w+)", r"ax.roll \1 by 3 dim 1", plan)
        assert plan != rolled, plan
        (folder / "plan.mlir").write_text(rolled)
        x = np.random.default_rng(1).normal(size=(8, 16)).astype(np.float32)
        np.savez(folder / "in.npz", input=x)
        run(axrun, folder / "plan.mlir", "--inputs", folder / "in.npz", "--output",
            folder / "out.npz", f"--cache-dir={folder / 'kernels'}")
        with np.load(folder / "out.npz") as outputs:
            np.testing.assert_array_equal(outputs["logits"], np.roll(x, 3, 1))


def unlocalised():
    """An operation that says nothing of what a rank does of it does not build."""
    with scratch() as folder:
        change = Change("add-an-operator.md", folder, ", Ax_DoneByParts")
        change.tablegen("AxOps")
        command, = change.precompiledAnew(
            [change.compile("lib/Codegen/Localize.cpp")])
        done = run(*command, "-fsyntax-only", cwd=made(), expect=1)
        for said in "RollOp", "is not done by parts has a rule":
            if said not in done.stderr:
                raise Failed(f"no word of {said}:\n{done.stderr}")


def cases(every):
    yield "add-an-operator.md", operation
    yield "an operation without a rule of localisation", unlocalised
    yield "add-a-function.md", function
    yield "add-a-schedule.md", schedule
    yield "add-an-optimizer.md", optimizer
