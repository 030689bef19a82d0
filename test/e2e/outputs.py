# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No output takes the place of what a run reads, or of another output."""
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx

from _training import DIGITS, FC_NET, axrun, compiled

from cases import Failed, run, scratch, tool


class Guarded:
    """A folder of files, each as it was after every refused command."""

    def __init__(self, folder):
        self.folder = Path(folder)
        shutil.copy(FC_NET, self.folder / "fc.onnx")
        # All weights are in a file of another name, as MiniLM's are.
        onnx.save(onnx.load(FC_NET), self.folder / "model.onnx",
                  save_as_external_data=True, size_threshold=0,
                  location="model.safetensors")
        self.run("axopt", "model.onnx", "--shape=input=32x64", "--quiet", "-o",
                 "plan.mlir")
        compiled(folder, model=self.folder / "model.onnx", name="train")
        np.save(self.folder / "x.npy", np.zeros((32, 64), np.float32))
        shutil.copy(DIGITS / "train.npz", self.folder / "data.npz")
        os.mkdir(self.folder / "eval")
        for name, array in np.load(DIGITS / "test.npz").items():
            np.save(self.folder / "eval" / f"{name}.npy", array)
        self.run("axrun", "train.mlir", "--data", "data.npz", "--steps=1",
                 "--save-weights", "w.safetensors", "--save", "run")

    def run(self, name, *command, **options):
        return run(tool(name), *command, cwd=self.folder, **options)

    def state(self):
        return {path: path.read_bytes()
                for path in self.folder.rglob("*") if path.is_file()}

    def refused(self, name, *command, says):
        before = self.state()
        done = self.run(name, *command, expect=2)
        if says not in done.stderr:
            raise Failed(f"expected: {says}\ngot: {done.stderr}")
        if self.state() != before:
            raise Failed(f"{command} has changed files")

    def aliases(self, target, name):
        """The file itself, and links to it, under names that end like `name`."""
        for kind in "hard", "soft", "further":
            (self.folder / f"{kind}-{name}").unlink(missing_ok=True)
        os.link(self.folder / target, self.folder / f"hard-{name}")
        os.symlink(target, self.folder / f"soft-{name}")
        os.symlink(f"soft-{name}", self.folder / f"further-{name}")
        own = [target] if target.endswith(Path(name).suffix) else []
        return own + [f"{kind}-{name}" for kind in ("hard", "soft", "further")]


def running():
    with scratch() as folder:
        files = Guarded(folder)
        command = ["plan.mlir", "--input=input=x.npy", "--weights",
                   "w.safetensors"]
        for target in ("plan.mlir", "model.onnx", "model.safetensors", "x.npy",
                       "w.safetensors"):
            for flag, ending in (("--json", ""), ("--trace", ""),
                                 ("--output", ".npz")):
                for alias in files.aliases(target, f"alias{ending}"):
                    if ending and not alias.endswith(ending):
                        continue
                    files.refused("axrun", *command, flag, alias,
                                  says=f"to write '{alias}' would destroy '")
        name = files.aliases("model.onnx", "logits.npy")[0]
        os.mkdir(f"{folder}/out")
        os.link(f"{folder}/{name}", f"{folder}/out/logits.npy")
        files.refused("axrun", *command, "--output", "out",
                      says="give --output another name")
        os.symlink("nothing", f"{folder}/dangling")
        for one, other in (("new", "./new"), ("new", f"{folder}/new"),
                           ("dangling", "nothing")):
            files.refused("axrun", *command, "--json", one, "--trace", other,
                          says="--json and --trace would both write '")
        axrun(*command, "--json", "/dev/null", "--trace", "/dev/null",
              cwd=folder)


def weightsBesideCheckpoints():
    """The folder is made by the same run."""
    with scratch() as folder:
        files = Guarded(folder)
        axrun("train.mlir", "--data", "data.npz", "--steps=1", "--save", "made",
              "--save-weights", "made/w.safetensors", cwd=folder)
        if not os.path.exists(f"{folder}/made/w.safetensors"):
            raise Failed(f"no weights beside {os.listdir(folder)}")
        # Nothing is made where they cannot be.
        files.run("axrun", "train.mlir", "--data", "data.npz", "--steps=1",
                  "--save", "other", "--save-weights", "none/w.safetensors",
                  expect=7)
        if os.path.exists(f"{folder}/other"):
            raise Failed("a folder of a run that was refused")


def training():
    with scratch() as folder:
        files = Guarded(folder)
        command = ["train.mlir", "--data", "data.npz", "--eval", "eval",
                   "--steps=2"]
        for target in ("train.mlir", "model.onnx", "model.safetensors",
                       "data.npz", "eval/input.npy"):
            for flag, ending in (("--log", ""),
                                 ("--save-weights", ".safetensors")):
                for alias in files.aliases(target, f"alias{ending}"):
                    if not alias.endswith(ending):
                        continue
                    files.refused("axrun", *command, flag, alias,
                                  says=f"to write '{alias}' would destroy '")
        files.refused("axrun", *command[:3], "--predict", "data.npz",
                      says="destroy 'data.npz': give --predict another name")
        files.refused("axrun", *command[:3], "--predict", "p.npz", "--json",
                      "p.json", says="--json has no use in this run: it is for "
                      "runs of one set of inputs (without --data, --eval and "
                      "--generate), or generating tokens (--generate), or training "
                      "(--data, without --predict)")
        files.refused("axrun", *command, "--weights", "run", "--log",
                      "run/step-1/manifest.json", says="would destroy '")
        files.refused("axrun", *command, "--log", "a.safetensors",
                      "--save-weights", "a.safetensors", says="--log and "
                      "--save-weights would both write 'a.safetensors'")
        files.refused("axrun", *command, "--log", "run/latest", "--save", "run",
                      says="would both write 'run/latest'")
        files.refused("axrun", *command, "--log", "l.log", "--save", "l.log",
                      says="--log and --save would both write 'l.log'")
        shutil.copy(f"{folder}/train.mlir", f"{folder}/run/step-1/plan.mlir")
        files.refused("axrun", "run/step-1/plan.mlir", *command[1:],
                      "--model-dir", ".", "--save", "run",
                      says="would destroy 'run/step-1/plan.mlir'")
        files.refused("axrun", *command, "--log", "run/step-1/log", "--save",
                      "run", says="would destroy 'run/step-1/log'")
        # Where its checkpoints will be, under whatever name.
        os.symlink("new/../run/step-2", f"{folder}/way")
        os.mkdir(f"{folder}/new")
        for save, log in (("run", "run/step-2"), ("run", "run/step-9/log"),
                          ("run", "run/.unfinished-0/log"), ("run", "run/.lock"),
                          ("run", "way"), ("./run/", f"{folder}/run//step-2"),
                          ("later", "later/step-2"), ("later/x", "later/x/step-")):
            files.refused("axrun", *command, "--save", save, "--log", log,
                          says=f"'{log}' is where --save puts and removes what "
                          "is its own: give --log another name")
        files.refused("axrun", *command, "--save", "run", "--tensorboard",
                      "run/step-2", says="is its own: give --tensorboard another "
                      "name")
        axrun(*command, "--save", "beside", "--log", "beside/log", cwd=folder)
        # Its own checkpoints a run may replace.
        axrun(*command, "--resume", "run", "--save", "run", cwd=folder)


def compiling():
    def says(flag, alias):
        if flag == "-o" and str(alias).endswith(".onnx"):
            return f"-o {alias}: a plan's text has no such name"
        return f"to write '{alias}' would destroy '"

    with scratch() as folder:
        files = Guarded(folder)
        np.save(f"{folder}/c.npy", np.zeros((32, 64), np.float32))
        shape = "--shape=input=32x64"
        for target in "model.onnx", "model.safetensors":
            for flag in "-o", "--report", "--save-strategy":
                for alias in files.aliases(target, "alias"):
                    files.refused("axopt", "model.onnx", shape, flag, alias,
                                  says=says(flag, alias))
            for flag in "-o", "--report":
                for alias in files.aliases(target, "alias"):
                    files.refused("axopt", "plan.mlir", flag, alias,
                                  says=says(flag, alias))
        # No model has hard links to its data.
        for alias in Path(folder).glob("*-alias"):
            alias.unlink()
        files.refused("axopt", "plan.mlir", "--report", "plan.mlir",
                      says="to write 'plan.mlir' would destroy 'plan.mlir'")
        files.refused("axopt", "model.onnx", shape, "-o", "a",
                      "--mlir-pass-pipeline-crash-reproducer=model.onnx",
                      says="to write 'model.onnx' would destroy './model.onnx'")
        files.refused("axopt", "model.onnx", "--const=input=c.npy", "-o",
                      "c.npy", says="to write 'c.npy' would destroy 'c.npy'")
        files.refused("axopt", "model.onnx", "--export-onnx", "w.safetensors",
                      "--weights", "w.safetensors",
                      says="would destroy 'w.safetensors'")
        files.refused("axopt", "model.onnx", shape, "-o", "a", "--report", "a",
                      says="--report and -o would both write 'a'")
        files.run("axopt", "model.onnx", shape, "--tp=2", "--quiet",
                  "--save-strategy", "s.yaml", "-o", "plan.mlir")
        files.refused("axopt", "model.onnx", shape, "--strategy", "s.yaml",
                      "-o", "s.yaml", says="would destroy 's.yaml'")
        # What is read as a whole may be written again.
        files.run("axopt", "model.onnx", shape, "--strategy", "s.yaml",
                  "--save-strategy", "s.yaml", "--quiet", "-o", "plan.mlir")
        files.run("axopt", "plan.mlir", "--quiet", "-o", "plan.mlir")
        with open(f"{folder}/model.onnx", "ab") as appended:
            done = subprocess.run(
                [tool("axopt"), "model.onnx", shape], cwd=folder, text=True,
                stdout=appended, stderr=subprocess.PIPE)
        text = "to write '/dev/stdout' would destroy './model.onnx'"
        if done.returncode != 2 or text not in done.stderr:
            raise Failed(f"exit code {done.returncode}: {done.stderr}")


def cases(every):
    for function in running, weightsBesideCheckpoints, training, compiling:
        yield function.__name__, function
