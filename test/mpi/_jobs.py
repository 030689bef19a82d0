# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans that are run by threads, and by as many processes."""
import json
import math
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import numpy as np

from _mpirun import MODULE, mpirun, needMpi
from cases import ROOT, TRAINING, Failed, needSimulatedGpu, run, tool

DIGITS = ROOT / "examples/digits/train.npz"
LOSS = "--loss=cross_entropy(logits,labels)"
# What is another number each time.
MEASURED = {"seconds", "samples_per_second", "peak_bytes"}


def ranksOf(layout):
    """The product of what the flags say."""
    sizes = re.findall(r"--(?:tp|dp|pp)=([\dx]+)", layout)
    return math.prod(int(size) for text in sizes for size in text.split("x"))


def compiled(folder, layout, *flags, model=TRAINING / "fc_net/model.onnx",
             shape="input=32x64", name="plan"):
    plan = Path(folder) / f"{name}.mlir"
    run(tool("axopt"), model, "--shape", shape, "--train", LOSS, "--quiet",
        *layout.split(), *flags, "-o", plan)
    return plan


def logged(path):
    """What a log says of steps, but for what they took."""
    with open(path) as file:
        return [{key: value for key, value in json.loads(line).items()
                 if key not in MEASURED} for line in file]


def same(one, other):
    if Path(one).read_bytes() != Path(other).read_bytes():
        raise Failed(f"{one} and {other} differ")


def sameLogs(one, other):
    if logged(one) != logged(other):
        raise Failed(f"{logged(one)}\n{logged(other)}")


def tokens(path, model):
    """The samples of a reference, in their order; gives the input's shape."""
    with np.load(model / "data.npz") as data:
        np.savez(path, **{name: array.reshape((-1, *array.shape[2:]))
                          for name, array in data.items()})
        return "x".join(map(str, data["input"].shape[1:]))


def oneMessage(done, *texts):
    """One message of axrun's, whatever mpirun says."""
    messages = [line for line in done.stderr.splitlines() if "axrun: error:" in line]
    if len(messages) != 1 or any(text not in messages[0] for text in texts):
        raise Failed(f"expected once: {texts}\n{done.stderr}")


def childrenOf(pid, variable=None):
    """The numbers of processes that it has started; by the number that the variable of
    their environment has, where one is named."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent != pid:
                continue
            words = (entry / "environ").read_bytes().split(b"\0")
        except (OSError, IndexError):
            continue
        if variable is None:
            found[int(entry.name)] = int(entry.name)
            continue
        for word in words:
            if word.startswith(f"{variable}=".encode()):
                found[int(word.split(b"=")[1])] = int(entry.name)
    return found


class Running:
    """A job that goes on while the test looks at it."""

    def __init__(self, ranks, *command, **environment):
        needMpi()
        words = [str(word) for word in (*mpirun(), "-np", ranks, *command)]
        environment = os.environ | {"AXRUN_MPI_MODULE": str(MODULE)} | environment
        needSimulatedGpu(words, environment)
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=environment)
        self.ranks = {}

    def findRanks(self, count, timeout=60):
        """Waits until all are there; gives their numbers of processes by rank."""
        last = time.monotonic() + timeout
        while time.monotonic() < last and self.process.poll() is None:
            self.ranks = childrenOf(self.process.pid, "OMPI_COMM_WORLD_RANK")
            if len(self.ranks) == count:
                return self.ranks
            time.sleep(0.05)
        raise Failed(f"{len(self.ranks)} of {count} ranks:\n{self.end()}")

    def waitForText(self, path, text, timeout=60):
        last = time.monotonic() + timeout
        while time.monotonic() < last and self.process.poll() is None:
            if Path(path).exists() and text in Path(path).read_text():
                return
            time.sleep(0.02)
        raise Failed(f"no '{text}' in {path}:\n{self.end()}")

    def end(self, timeout=60):
        """Waits for the end, and gives what was said."""
        try:
            self.output, _ = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.output, _ = self.process.communicate()
            raise Failed(f"still there after {timeout} s:\n{self.output}") from None
        return self.output

    def noneLeft(self, timeout=5):
        last = time.monotonic() + timeout
        while any(Path(f"/proc/{pid}").exists() for pid in self.ranks.values()):
            if time.monotonic() > last:
                for pid in self.ranks.values():
                    if Path(f"/proc/{pid}").exists():
                        os.kill(pid, signal.SIGKILL)
                raise Failed(f"processes are left:\n{self.output}")
            time.sleep(0.05)
