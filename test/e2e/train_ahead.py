# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The next steps are read, and are on their way to devices, while one runs: what
is kept, and said, of a step knows nothing of those behind it."""
import os
from pathlib import Path

import numpy as np

from _training import DIGITS, axrun, compiled, logged, part
from cases import Failed, scratch

SIMULATED = Path(os.environ["AX_BIN"]).parent / "test" / "simgpu"
DEVICES = {
    "cpu": {},
    "cuda": {"AXRUN_CUDA_PATH": str(SIMULATED), "AXRUN_DEVICE": "cuda",
             "AXRUN_TARGET": "sm_90+sim", "AXRUN_CUDA_ALGORITHMS": "1"},
}


class Run:
    """Runs of one plan, of batches of 32 samples."""

    def __init__(self, folder, layout, device, data, *flags):
        self.folder, self.env = Path(folder), os.environ | DEVICES[device]
        self.plan = compiled(folder, *layout.split(), *flags)
        np.savez(f"{folder}/data.npz", **data)

    def train(self, name, steps, *flags, **options):
        """Its checkpoints are in the folder `name`."""
        return axrun(self.plan, "--data", self.folder / "data.npz", "--steps",
                     steps, "--save", self.folder / name, "--save-keep=99",
                     "--log", self.folder / f"{name}.log", *flags,
                     env=self.env, **options)

    def step(self, name, number):
        """Files of a checkpoint, by name."""
        folder = self.folder / name / f"step-{number}"
        return {file.name: file.read_bytes() for file in folder.iterdir()}

    def told(self, name):
        """What the log has of each step but times."""
        return [{key: value for key, value in line.items()
                 if key not in ("seconds", "samples_per_second", "peak_bytes")}
                for line in logged(self.folder / f"{name}.log")]


def same(got, wanted, what):
    if got != wanted:
        raise Failed(f"{what} is another")


def saves(layout, device):
    """A checkpoint is that of a run which ends there, whatever comes behind it,
    and is gone on with to the same one."""
    with scratch() as folder:
        runs = Run(folder, layout, device, part("train", range(0, 100)))
        np.savez(f"{folder}/eval.npz", **part("test", range(0, 50)))
        runs.train("whole", 8, "--save-every=1", "--eval",
                   f"{folder}/eval.npz", "--eval-every=2")
        for steps in 1, 3, 4, 7:
            runs.train(f"to{steps}", steps)
            same(runs.step(f"to{steps}", steps), runs.step("whole", steps),
                 f"the checkpoint of step {steps}")
        runs.train("to4", 8, "--resume", f"{folder}/to4")
        same(runs.step("to4", 8), runs.step("whole", 8), "what is resumed")
        same(runs.told("to4"), [line for line in runs.told("whole")
                                if "loss" in line], "the log")


def endsAt(layout, device, flags, spoil, code, says):
    """What is wrong with step 4 is said when its turn comes; what is saved then
    is what the steps before have made."""
    with scratch() as folder:
        data = part("train", range(0, 320))
        runs = Run(folder, layout, device, data, *flags)
        runs.train("good", 3, "--no-shuffle")
        spoil(data)
        np.savez(f"{folder}/data.npz", **data)
        runs.train("bad", 9, "--no-shuffle", expect=code, says=says)
        same(runs.step("bad", 3), runs.step("good", 3), "what is saved")
        same(runs.told("bad")[:3], runs.told("good"), "the log")
        return runs.told("bad")[3:]


def badSample(layout, device):
    def spoil(data):
        data["labels"][100] = 10
        data["labels"][140] = 11
    rest = endsAt(layout, device, [], spoil, 6,
                  "label 10 of 'labels', sample 100, is none")
    assert rest == [], rest


def noLabels(layout, device):
    def spoil(data):
        data["labels"][96:128] = -100
        data["labels"][140] = 11
    rest = endsAt(layout, device, [], spoil, 6,
                  "every label of step 4's batch is ignored")
    assert rest == [], rest


def notFinite(layout, device):
    def spoil(data):
        data["input"][101] = np.nan
        data["input"][128:160] = np.inf
    line, = endsAt(layout, device, [], spoil, 9,
                   "the loss of step 4 is no finite number: input 'input' has "
                   "NaN in sample 101")
    assert line["step"] == 4, line


def skips(device):
    """A scale that is too large is smaller in the next step already."""
    with scratch() as folder:
        data = part("train", range(0, 320))
        data["input"][96:128] *= 1000
        runs = Run(folder, "", device, data, "--precision=fp16")
        runs.train("whole", 10, "--no-shuffle", "--save-every=1",
                   "--on-nonfinite=skip")
        skipped = [line["step"] for line in runs.told("whole")
                   if "skipped" in line]
        assert 0 < len(skipped) < 10, skipped
        for steps in 4, 5:
            runs.train("part", steps, "--no-shuffle", "--on-nonfinite=skip",
                       *(["--resume", f"{folder}/part"] if steps > 4 else []))
            same(runs.step("part", steps), runs.step("whole", steps),
                 f"the checkpoint of step {steps}")
        same(runs.told("part"), runs.told("whole")[:5], "the log")


def evaluation(device):
    """An error names the first sample that is wrong, and nothing was measured;
    else it does not matter how much is evaluated at once."""
    with scratch() as folder:
        data = part("test", range(0, 160))
        runs = Run(folder, "", device, part("train", range(0, 100)))
        np.savez(f"{folder}/eval.npz", **data)
        runs.train("run", 2, "--eval", f"{folder}/eval.npz", "--eval-every=1")
        measured = [line for line in runs.told("run") if "eval_loss" in line]
        assert [line["eval_samples"] for line in measured] == [160, 160]
        for label, sample in ((12, 150), (11, 70)):
            data["labels"][sample] = label
            np.savez(f"{folder}/eval.npz", **data)
            axrun(runs.plan, "--eval", f"{folder}/eval.npz", env=runs.env,
                  expect=6, says=f"label {label} of 'labels', sample {sample}")


def cases(every):
    for device in DEVICES:
        for layout in "", "--dp=2", "--pp=2 --micro-batches=2":
            yield f"saves {device} {layout}", saves, layout, device
        for layout in "", "--dp=2":
            yield f"bad sample {device} {layout}", badSample, layout, device
            yield f"no labels {device} {layout}", noLabels, layout, device
            yield f"not finite {device} {layout}", notFinite, layout, device
        yield f"skips {device}", skips, device
        yield f"evaluation {device}", evaluation, device
