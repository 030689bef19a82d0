# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""axrun --tensorboard: what TensorBoard reads of it is what the log says."""
import math
import os
from pathlib import Path

from _training import DIGITS, axrun, compiled, logged, part
from cases import Failed, scratch

import numpy as np
from tensorboard.backend.event_processing import event_accumulator

STEP = ["loss", "gradient_norm", "learning_rate", "samples_per_second"]


def read(folder):
    """{tag: [(step, value)]}, as TensorBoard shows them."""
    reader = event_accumulator.EventAccumulator(
        str(folder), size_guidance={event_accumulator.SCALARS: 0})
    reader.Reload()
    return {tag: [(event.step, event.value) for event in reader.Scalars(tag)]
            for tag in reader.Tags()["scalars"]}


def check(events, lines, tags):
    """The same numbers, in f32, in the same order."""
    if set(events) != set(tags):
        raise Failed(f"{sorted(events)}, expected {sorted(tags)}")
    for tag in tags:
        wanted = [(line["step"], np.float32(line[tag]))
                  for line in lines if tag in line]
        if events[tag] != wanted:
            raise Failed(f"{tag}: {events[tag]}, expected {wanted}")


def data(folder, samples=100):
    path = f"{folder}/data.npz"
    np.savez(path, **part("train", slice(0, samples)))
    return path


def likeTheLog():
    with scratch() as folder:
        axrun(compiled(folder), "--data", data(folder), "--steps=7",
              "--log-every=2", "--log", f"{folder}/log", "--tensorboard",
              f"{folder}/new/events", "--eval", DIGITS / "test.npz",
              "--metric=accuracy", "--eval-every=4")
        events = read(f"{folder}/new/events")
        check(events, logged(f"{folder}/log"),
              STEP + ["eval_loss", "eval_accuracy"])
        if [step for step, _ in events["loss"]] != [2, 4, 6, 7] or \
                [step for step, _ in events["eval_loss"]] != [4, 7]:
            raise Failed(str(events))


def resumed():
    """What an interrupted run told of steps that are done again is taken back,
    here by TensorBoard and there by axrun."""
    with scratch() as folder:
        command = [compiled(folder), "--data", data(folder), "--log",
                   f"{folder}/log", "--tensorboard", f"{folder}/events"]
        axrun(*command, "--steps=5", "--save", f"{folder}/run",
              "--save-every=2", "--save-keep=0")
        axrun(*command, "--steps=6", "--resume", f"{folder}/run/step-2")
        if len(os.listdir(f"{folder}/events")) != 2:
            raise Failed(str(os.listdir(f"{folder}/events")))
        check(read(f"{folder}/events"), logged(f"{folder}/log"), STEP)


def notFinite():
    with scratch() as folder:
        arrays = part("train", slice(0, 32))
        arrays["input"][0] = np.nan
        np.savez(f"{folder}/data.npz", **arrays)
        axrun(compiled(folder), "--data", f"{folder}/data.npz", "--steps=1",
              "--on-nonfinite=skip", "--tensorboard", f"{folder}/events")
        (step, loss), = read(f"{folder}/events")["loss"]
        if step != 1 or not math.isnan(loss):
            raise Failed(f"{step}: {loss}")


def refused():
    with scratch() as folder:
        plan = compiled(folder)
        axrun(plan, "--random-inputs=1", "--tensorboard", f"{folder}/events",
              expect=2, says="--tensorboard has no use in this run: it is for "
              "training (--data, without --predict)")
        Path(f"{folder}/file").touch()
        axrun(plan, "--data", data(folder), "--steps=1", "--tensorboard",
              f"{folder}/file/events", expect=7,
              says=f"cannot make folder '{folder}/file/events': ")
        axrun(plan, "--data", data(folder), "--steps=1", "--tensorboard",
              "/proc", expect=7, says="cannot write '/proc/events.out.")


def cases(every):
    yield "like the log", likeTheLog
    yield "resumed", resumed
    yield "not finite", notFinite
    yield "refused", refused
