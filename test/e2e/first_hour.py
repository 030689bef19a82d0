# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a new user meets: plans that moved, notes, permissions of results."""
import os
import shutil
import stat
from pathlib import Path

import numpy as np

from _training import DIGITS, FC_NET, axrun, close, compiled
from cases import MODELS, Failed, run, scratch, tool

MLP = MODELS / "mlp_eager_ts13_dyn"


def moved():
    """A plan finds its model beside itself, if it is that model; where it is
    nowhere, the message says what to do."""
    with scratch() as folder:
        folder = Path(folder)
        (old := folder / "old").mkdir()
        shutil.copy(MLP / "model.onnx", old)
        run(tool("axopt"), old / "model.onnx", "--dim", "batch=4", "--quiet",
            "-o", old / "plan.mlir")
        (new := folder / "new").mkdir()
        shutil.move(old / "plan.mlir", new)
        command = [new / "plan.mlir", "--random-inputs=1", "--output"]
        axrun(*command, folder / "a.npz")
        shutil.move(old / "model.onnx", folder / "model.onnx")
        gone = f"there is no '{old}/model.onnx', from which the plan was " \
            "made: --model-dir=DIR says where the model's files are now"
        axrun(*command, folder / "b.npz", expect=7, says=gone)
        axrun(*command[:1], "--list-commands")
        axrun(*command, folder / "b.npz", "--model-dir", folder)
        # Of this name, but another one.
        text = (folder / "model.onnx").read_bytes()
        (new / "model.onnx").write_bytes(text[:-1] + b"x")
        axrun(*command, folder / "c.npz", expect=7, says=gone)
        (new / "model.onnx").write_bytes(text)
        axrun(*command, folder / "c.npz")
        # Also where the old place has something else by now.
        (old / "model.onnx").write_bytes(b"other" + text)
        axrun(*command, folder / "d.npz")
        axrun("plan.mlir", "--random-inputs=1", "--output", folder / "e.npz",
              cwd=new)
        wanted = np.load(folder / "a.npz")
        for name in "bcde":
            for key, array in np.load(folder / f"{name}.npz").items():
                close(array, wanted[key], 0, key)


def untrained():
    """Weights of the model's file are told where one may have meant others."""
    note = "note: the weights are those of the model's file, from before " \
        "training: --weights takes others"
    with scratch() as folder:
        plan = compiled(folder)
        axrun(plan, "--data", DIGITS / "train.npz", "--steps=1", "--quiet",
              "--save", f"{folder}/run")
        data = DIGITS / "test.npz"
        for command in (("--eval", data),
                        ("--data", data, "--predict", f"{folder}/p.npz")):
            for weights in (), ("--weights", f"{folder}/run"):
                done = axrun(plan, *command, *weights)
                if (note in done.stderr) != (not weights):
                    raise Failed(done.stderr)
        # A model that is to be used as it is.
        run(tool("axopt"), FC_NET, "--shape=input=32x64", "--quiet", "-o",
            f"{folder}/plain.mlir")
        done = axrun(f"{folder}/plain.mlir", *command)
        assert not done.stderr, done.stderr


def pastTheSchedule():
    """Steps behind a schedule's end are told of once."""
    end = "warning: the learning rate's schedule ends after step 3 (axopt " \
        "--lr-schedule): it stays what it is then until step "
    with scratch() as folder:
        data = ["--data", DIGITS / "train.npz"]
        plan = compiled(folder, "--lr-schedule=linear(steps=3)", "--tp=2")
        for steps, flags, count in ((3, [], 0), (5, [], 1),
                                    (6, ["--resume", f"{folder}/5"], 1)):
            done = axrun(plan, *data, *flags, f"--steps={steps}", "--save",
                         f"{folder}/{steps}")
            if done.stderr.count(end + str(steps)) != count or \
                    done.stderr.count("schedule ends") != count:
                raise Failed(done.stderr)
        for schedule in "constant", "constant(warmup=2)":
            plan = compiled(folder, f"--lr-schedule={schedule}")
            done = axrun(plan, *data, "--steps=5")
            assert "schedule" not in done.stderr, done.stderr


def permissions(mask, wanted):
    """Of folders that are made for results: what the mask leaves."""
    def masked(*command):
        axrun(*command, preexec_fn=lambda: os.umask(mask))

    with scratch() as folder:
        folder = Path(folder)
        plan = compiled(folder)
        data = ["--data", DIGITS / "test.npz"]
        masked(plan, *data, "--steps=1", "--save", folder / "a" / "run",
               "--tensorboard", folder / "t" / "events")
        masked(plan, *data, "--predict", folder / "b" / "out")
        run(tool("axopt"), FC_NET, "--shape=input=32x64", "--quiet", "-o",
            folder / "plain.mlir")
        masked(folder / "plain.mlir", "--random-inputs=1", "--output",
               f"{folder}/c/out.d/")
        for path in ("a", "a/run", "a/run/step-1", "b", "b/out", "c", "c/out.d",
                     "t", "t/events"):
            mode = stat.S_IMODE((folder / path).stat().st_mode)
            if mode != wanted:
                raise Failed(f"{path}: {mode:o}, not {wanted:o}")


def cases(every):
    yield "a plan that has moved", moved
    yield "weights from before training", untrained
    yield "past the schedule", pastTheSchedule
    for mask in 0o022, 0o002, 0o077:
        yield f"permissions with mask {mask:03o}", permissions, mask, 0o777 & ~mask
