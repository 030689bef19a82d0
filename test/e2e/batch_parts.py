# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""BatchNormalization by the statistics of each part of the batch."""
import os
from functools import partial

import numpy as np

import onnx
from onnx import numpy_helper

from _onnx_text import model
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


NORM = "BatchNormalization<training_mode=1, momentum={}>({}, scale, bias, mean, " \
       "variance)"


def normalized(path, x, y, nodes):
    made = model(f"float[{x}] x", f"float[{y}] y", nodes, opset=17)
    random = np.random.default_rng(0)
    for name, shape in (("w", (6, 6)), ("scale", (6,)), ("bias", (6,)),
                        ("mean", (6,)), ("variance", (6,))):
        made.graph.initializer.append(numpy_helper.from_array(
            abs(random.standard_normal(shape, np.float32)), name))
    onnx.save(made, path)


def steps(folder, *flags, count):
    """Losses and states, where nothing is learnt."""
    plan, log = f"{folder}/plan.mlir", f"{folder}/log"
    run(tool("axopt"), f"{folder}/model.onnx", "--train", "--loss=mse(y,t)",
        "--optimizer=sgd(lr=0)", "--quiet", *flags, "-o", plan)
    axrun(plan, "--data", f"{folder}/data.npz", "--steps", count, "--no-shuffle",
          "--log", log, "--save-weights", f"{folder}/w.safetensors")
    found = [line["loss"] for line in logged(log) if "loss" in line]
    os.remove(log)
    return np.mean(found), dict(states(f"{folder}/w.safetensors"))


def calledTwice(layout):
    """A layer that is called twice sees the first part in both calls, then the
    second in both: as batches come."""
    with scratch() as folder:
        random = np.random.default_rng(1)
        np.savez(f"{folder}/data.npz", x=random.standard_normal((16, 6), np.float32),
                 t=random.standard_normal((16, 6), np.float32))
        found = []
        for batch, flags in (4, ["--batchnorm=train"]), (
                16, ["--batchnorm=train:4", *layout.split()]):
            normalized(f"{folder}/model.onnx", f"{batch},6", f"{batch},6",
                       f"a, m, v = {NORM.format(0.7, 'x')}\nb = MatMul(a, w)\n"
                       f"y, n, u = {NORM.format(0.7, 'b')}")
            found.append(steps(folder, *flags, count=16 // batch))
        close(found[1][0], found[0][0], 1e-6, "loss")
        for name, weight in found[0][1].items():
            close(found[1][1][name], weight, 1e-5, name)


def ofNoBatch(layout):
    """What an input that has no batch gives is normalised whole."""
    with scratch() as folder:
        random = np.random.default_rng(1)
        np.savez(f"{folder}/data.npz", x=random.standard_normal((8, 6), np.float32),
                 nodes=random.standard_normal((12, 6), np.float32),
                 t=random.standard_normal((8, 6), np.float32))
        normalized(f"{folder}/model.onnx", "8,6", "8,6",
                   f"a, m, v = {NORM.format(0.7, 'nodes')}\n"
                   "s = ReduceSum<keepdims=0>(a, zero)\nb = Mul(x, s)\n"
                   "y = MatMul(b, w)")
        made = onnx.load(f"{folder}/model.onnx")
        made.graph.input.append(onnx.helper.make_tensor_value_info(
            "nodes", onnx.TensorProto.FLOAT, [12, 6]))
        made.graph.initializer.append(
            numpy_helper.from_array(np.array([0]), "zero"))
        onnx.save(made, f"{folder}/model.onnx")
        wanted = steps(folder, "--unbatched=nodes", "--batchnorm=train", count=1)
        got = steps(folder, "--unbatched=nodes", "--batchnorm=train:4",
                    *layout.split(), count=1)
        close(got[0], wanted[0], 1e-6, "loss")
        for name, weight in wanted[1].items():
            close(got[1][name], weight, 1e-6, name)


def bothKinds():
    with scratch() as folder:
        path = f"{folder}/model.onnx"
        normalized(path, "8,6", "8,6", f"a, m, v = {NORM.format(0.7, 'nodes')}\n"
                   f"b, n, u = {NORM.format(0.7, 'x')}\n"
                   "s = ReduceSum<keepdims=0>(a)\ny = Mul(b, s)")
        made = onnx.load(path)
        made.graph.input.append(onnx.helper.make_tensor_value_info(
            "nodes", onnx.TensorProto.FLOAT, [12, 6]))
        onnx.save(made, path)
        done = run(tool("axopt"), path, "--train", "--loss=mse(y,t)",
                   "--unbatched=nodes", "--batchnorm=train:2", "-o",
                   f"{folder}/plan.mlir", expect=2)
        if "state 'mean' gathers statistics of parts of the batch and of an input " \
                "that has none (--unbatched): use --batchnorm=train or frozen" \
                not in done.stderr:
            raise Failed(done.stderr)


def refused(layout, parts, says, shape=SHAPE, nodes=None):
    with scratch() as folder:
        path, loss = MODEL, "cross_entropy(logits,labels)"
        if nodes:
            path, loss = f"{folder}/model.onnx", "mse(y,t)"
            normalized(path, *shape, nodes)
        done = run(tool("axopt"), path, *([] if nodes else ["--shape", shape]),
                   "--train", f"--loss={loss}", *layout.split(),
                   f"--batchnorm=train{parts}", "-o", f"{folder}/plan.mlir",
                   expect=2)
        if says not in done.stderr:
            raise Failed(done.stderr)


def cases(every):
    yield "one after another", oneAfterAnother
    for layout in LAYOUTS:
        yield layout, partial(onLayout, layout)
    for layout in "", "--micro-batches=4", "--dp=2 --micro-batches=2":
        yield f"called twice {layout}", partial(calledTwice, layout)
        yield f"of no batch {layout}", partial(ofNoBatch, layout)
    yield "parts of two ranks", partial(
        refused, "--dp=2 --micro-batches=4", ":4",
        "normalises by the statistics of 4 parts of the batch (state "
        "'b1.running_mean'), which none of 4 micro-batches has: use "
        "--batchnorm=train:8 (those of each micro-batch of each rank, as of most "
        "frameworks), --batchnorm=frozen, or --micro-batches=1")
    yield "an uneven batch", partial(
        refused, "", ":3", "node '/b1/BatchNormalization' (BatchNormalization of "
        "32x16x8x8xf32, 16xf32, 16xf32, 16xf32, 16xf32): --batchnorm=train:3 does "
        "not divide the 32 in front of [32x16x8x8]")
    turned = f"t = Transpose<perm=[1,2,0]>(x)\ny, m, v = {NORM.format(0.9, 't')}"
    yield "no batch in front", partial(
        refused, "", ":2", "--batchnorm=train:2 cuts the first dimension of "
        "[4x6x8], which does not count the samples of the batch: use "
        "--batchnorm=train or frozen", ("8,4,6", "4,6,8"), turned)
    rows = f"r = Reshape(x, to)\ny, m, v = {NORM.format(0.9, 'r')}"
    constant = "to = Constant<value_ints=[-1,6]>()\n"
    yield "parts of samples", partial(
        refused, "", ":16", "--batchnorm=train:16 does not divide the batch of 8",
        ("8,4,6", "32,6"), constant + rows)
    yield "one value", partial(
        refused, "", ":8", "--batchnorm=train:8 leaves one value for each channel in "
        "a part, which have no variance: take fewer parts", ("8,6", "8,6"),
        f"y, m, v = {NORM.format(0.9, 'x')}")
    yield "both kinds", bothKinds
    yield "nothing", partial(
        refused, "--shape=x=0x6", ":100000000000", "--batchnorm=train:100000000000 "
        "does not divide the 0 in front of [0x6]", ("n,6", "n,6"),
        f"y, m, v = {NORM.format(0.9, 'x')}")
