# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""BatchNormalization by the statistics of each part of the batch."""
import os
from functools import partial

import numpy as np

from _training import axrun, close, compiled, logged, states
from cases import TRAINING, Failed, run, scratch, tool

MODEL = TRAINING / "batchnorm" / "model.onnx"
# A batch is that of two steps of the reference.
BATCH, PARTS = 32, 4
SHAPE = f"input={BATCH}x1x8x8"
# Parts of parts, and of micro-batches of ranks, are cut as the batch is.
LAYOUTS = ("--micro-batches=4", "--micro-batches=2", "--dp=4",
           "--dp=2 --micro-batches=2", "--dp=2", "--tp=2 --micro-batches=2",
           "--tp=1x1x2 --micro-batches=2", "--dp=2 --micro-batches=2 --zero=3",
           "--pp=2 --micro-batches=4", "--dp=2 --pp=2 --micro-batches=2",
           "--dp=2 --pp=2 --micro-batches=2 --zero=1",
           "--pp=2 --micro-batches=4 --schedule=zero-bubble",
           "--pp=2 --micro-batches=4 --schedule=zb-v --recompute=full",
           "--micro-batches=4 --precision=bf16",
           "--pp=2 --micro-batches=4 --precision=fp16")


def written(folder):
    with np.load(TRAINING / "batchnorm" / "data.npz") as data:
        np.savez(f"{folder}/data.npz", **{
            name: array.reshape((-1, *array.shape[2:]))
            for name, array in data.items()})


def trained(folder, *flags, steps, shape=SHAPE):
    """Losses, gradient norms, and all states behind the last step."""
    plan = compiled(folder, "--clip-norm=1", *flags, model=MODEL, shape=shape)
    axrun(plan, "--data", f"{folder}/data.npz", "--steps", steps, "--no-shuffle",
          "--log", f"{folder}/log",
          "--save-weights", f"{folder}/model.safetensors")
    log = [(line["loss"], line["gradient_norm"])
           for line in logged(f"{folder}/log") if "loss" in line]
    os.remove(f"{folder}/log")
    return log, dict(states(f"{folder}/model.safetensors"))


def compare(got, wanted, tolerance):
    close(got[0], wanted[0], tolerance, "losses and norms")
    if got[1].keys() != wanted[1].keys():
        raise Failed(f"{sorted(got[1])}, expected {sorted(wanted[1])}")
    for name, weight in wanted[1].items():
        close(got[1][name], weight, tolerance, name)


def oneAfterAnother():
    """A batch in four parts is four batches, but for the update."""
    still = "--optimizer=sgd(lr=0)"
    with scratch() as folder:
        written(folder)
        small = trained(folder, still, "--batchnorm=train", steps=PARTS,
                        shape=f"input={BATCH // PARTS}x1x8x8")
        large = trained(folder, still, f"--batchnorm=train:{PARTS}", steps=1)
        close(large[0][0][0], np.mean([loss for loss, norm in small[0]]), 1e-6,
              "loss")
        for name, weight in small[1].items():
            close(large[1][name], weight, 1e-6, name)
        whole = trained(folder, still, "--batchnorm=train", steps=1)
        if np.allclose(whole[1]["b1.running_mean"], small[1]["b1.running_mean"],
                       rtol=1e-3):
            raise Failed("running statistics of the whole batch are no others")


def onLayout(layout):
    """The steps of one rank that has all of the batch."""
    with scratch() as folder:
        written(folder)
        flags = [f"--batchnorm=train:{PARTS}", "--optimizer=sgd(lr=0.05)"]
        precision = [flag for flag in layout.split() if "precision" in flag]
        compare(trained(folder, *flags, *layout.split(), steps=8),
                trained(folder, *flags, *precision, steps=8),
                2e-2 if precision else 2e-5)


def refused(layout, parts, says, shape=SHAPE):
    with scratch() as folder:
        done = run(tool("axopt"), MODEL, "--shape", shape, "--train",
                   "--loss=cross_entropy(logits,labels)", *layout.split(),
                   f"--batchnorm=train{parts}", "-o", f"{folder}/plan.mlir",
                   expect=2)
        if says not in done.stderr:
            raise Failed(done.stderr)


def cases(every):
    yield "one after another", oneAfterAnother
    for layout in LAYOUTS:
        yield layout, partial(onLayout, layout)
    yield "parts of two ranks", partial(
        refused, "--dp=2 --micro-batches=4", ":4",
        "normalises by the statistics of 4 parts of the batch (state "
        "'b1.running_mean'), which none of 4 micro-batches has: use "
        "--batchnorm=train:8 (those of each micro-batch of each rank, as of most "
        "frameworks), --batchnorm=frozen, or --micro-batches=1")
    yield "an uneven batch", partial(
        refused, "", ":3", "node '/b1/BatchNormalization' (BatchNormalization of "
        "32x16x8x8xf32, 16xf32, 16xf32, 16xf32, 16xf32): --batchnorm=train:3: no "
        "such number of equal parts makes a batch of 32")
