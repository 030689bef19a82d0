"""Narrow contractions, statistics of batches: what --precision and --batchnorm
change, and what not."""
import json
import re

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

from _gpt import gpt
from cases import Failed, run, scratch, tool


def train(folder, steps, *flags):
    """Loss and gradient norm of each step, and the plan."""
    run(tool("axopt"), f"{folder}/model.onnx", "--train", *flags,
        "-o", f"{folder}/plan.mlir")
    run(tool("axrun"), f"{folder}/plan.mlir", "--data", f"{folder}/data.npz",
        "--steps", steps, "--no-shuffle", "--log", f"{folder}/log")
    with open(f"{folder}/log") as log, open(f"{folder}/plan.mlir") as plan:
        return (np.array([[step["loss"], step["gradient_norm"]]
                          for step in map(json.loads, log)]), plan.read())


def bf16():
    with scratch() as folder:
        gpt(f"{folder}/model.onnx", layers=2, width=64, heads=4, vocabulary=64,
            batch=8, tokens=16)
        tokens = np.random.default_rng(0).integers(0, 64, (80, 16))
        np.savez(f"{folder}/data.npz", input=tokens, labels=tokens)
        flags = ["--loss=cross_entropy(logits,labels)",
                 "--optimizer=adamw(lr=1e-3)"]
        wide, _ = train(folder, 10, *flags)
        for layout in "", "--dp=2", "--tp=2", "--dp=2 --zero=3":
            narrow, plan = train(folder, 10, *flags, "--precision=bf16",
                                 *layout.split())
            if np.array_equal(narrow, wide):
                raise Failed("bf16 changes nothing")
            # Eight bits: 0.4 % a rounding, many of which cancel.
            if not np.allclose(narrow, wide, rtol=0.02):
                raise Failed(f"{layout}: {narrow}, in f32 {wide}")
            if re.search(r"ax.(all_reduce|reduce_scatter).*over {data}.*xbf16",
                         plan):
                raise Failed(f"{layout}: gradients are summed in bf16")
            states = set(re.findall(r"ax.state @\S+ : tensor<[0-9x]*(\w+)",
                                    plan))
            if states != {"f32", "i64"}:
                raise Failed(f"{layout}: states of {states}")


def small(path, nodes, weights, shape):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "model", [value("input", TensorProto.FLOAT, shape)],
        [value("logits", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.asarray(array), name)
         for name, array in weights.items()])
    save(helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)


def batchnorm():
    """The batch's statistics only where they are asked for."""
    channels = 4
    with scratch() as folder:
        random = np.random.default_rng(0)
        weights = {name: np.full(channels, value, np.float32) for name, value in
                   (("scale", 1), ("bias", 0), ("mean", 0), ("variance", 1))}
        x = random.normal(3, 2, (32, channels)).astype(np.float32)
        np.savez(f"{folder}/data.npz", input=x, target=np.zeros_like(x))
        centred = (x - x.mean(0)) / x.std(0)
        for exported in 0, 1:
            names = ["logits"] + ["newMean", "newVariance"] * exported
            small(f"{folder}/model.onnx",
                  [helper.make_node("BatchNormalization",
                                    ["input", *weights], names[:1 + 2 * exported],
                                    training_mode=exported)],
                  weights, list(x.shape))
            for mode, wanted in (("train", (centred ** 2).mean()),
                                 ("frozen", (x ** 2).mean())):
                run(tool("axopt"), f"{folder}/model.onnx", "--train",
                    "--loss=mse(logits,target)", f"--batchnorm={mode}", "--trainable=scale",
                    "-o", f"{folder}/plan.mlir")
                with open(f"{folder}/plan.mlir") as file:
                    changes = "ax.store @mean" in file.read()
                if changes != (mode == "train"):
                    raise Failed(f"{mode}: running statistics")
                run(tool("axrun"), f"{folder}/plan.mlir", "--data",
                    f"{folder}/data.npz", "--steps", 1, "--no-shuffle",
                    "--log", f"{folder}/log")
                with open(f"{folder}/log") as log:
                    loss = json.loads(log.readline())["loss"]
                if abs(loss - wanted) > 1e-3 * wanted:
                    raise Failed(f"{exported} {mode}: {loss}, not {wanted}")


def cases(every):
    yield "bf16", bf16
    yield "batchnorm", batchnorm
