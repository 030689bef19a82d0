# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models trained with quantisation in them (QuantizeLinear, DequantizeLinear):
gradients go straight through, as with PyTorch's fake_quantize."""
import json

import numpy as np
from onnx import helper

from _training import axrun, close, compiled, crossEntropy, logged, small

from cases import run, scratch, tool

STEPS, BATCH, WIDTH, RATE = 4, 8, 6, 0.1


class Quantised:
    """One tensor as a few integers stand for it. Scales are powers of two, so
    that f32 and f64 round alike."""

    def __init__(self, values, scale, zero, low, high):
        whole = np.rint(values / scale) + zero
        self.isInside = (whole >= low) & (whole <= high)
        self.values = (np.clip(whole, low, high) - zero) * scale

    def back(self, gradient):
        return gradient * self.isInside


# Of each column of the weight its own.
SCALES = {"input": 1 / 8, "w": 2.0 ** -np.array([6, 5, 6, 7, 4, 6]), "h": 1 / 8}
RANGES = {"input": (3, 0, 255), "w": (0, -128, 127), "h": (-5, -128, 100)}
# As PyTorch exports a range of fewer than all bits.
CUT = {"h": 100}


def quantised(name, values):
    return Quantised(values, SCALES[name], *RANGES[name])


def model(path, weights):
    nodes, tensors = [], dict(weights)
    for name, (zero, low, _) in RANGES.items():
        scale = np.float32(SCALES[name])
        integer = np.int8 if low else np.uint8
        tensors[f"{name}.scale"] = scale
        tensors[f"{name}.zero"] = np.full(np.shape(scale), zero, integer)
        if name in CUT:
            tensors[f"{name}.high"] = integer(CUT[name])
    for name, then in (
            ("input", []), ("w", [
                helper.make_node("MatMul", ["input.d", "w.d"], ["xw"]),
                helper.make_node("Add", ["xw", "b"], ["y"]),
                helper.make_node("Relu", ["y"], ["h"])]),
            ("h", [helper.make_node("Add", ["h.d", "y"], ["sum"]),
                   helper.make_node("MatMul", ["sum", "v"], ["logits"])])):
        parameters = [f"{name}.scale", f"{name}.zero"]
        number = name + ".q"
        nodes.append(helper.make_node("QuantizeLinear", [name, *parameters],
                                      [number]))
        if name in CUT:
            nodes.append(helper.make_node("Clip", [number, "", name + ".high"],
                                          [name + ".cut"]))
            number = name + ".cut"
        nodes += [helper.make_node("DequantizeLinear", [number, *parameters],
                                   [name + ".d"]), *then]
    small(path, nodes, weights=tensors, shape=[BATCH, WIDTH])


def reference(weights, inputs, labels):
    """Losses and norms of gradients, in f64."""
    w, b, v = (weights[name].astype(float) for name in "wbv")
    result = []
    for step in range(STEPS):
        part = slice(step * BATCH, (step + 1) * BATCH)
        x = quantised("input", inputs[part]).values
        qw = quantised("w", w)
        y = x @ qw.values + b
        qh = quantised("h", np.maximum(y, 0))
        total = qh.values + y
        logits = total @ v
        p = np.exp(logits - logits.max(-1, keepdims=True))
        p /= p.sum(-1, keepdims=True)
        p[np.arange(BATCH), labels[part]] -= 1
        p /= BATCH
        dTotal = p @ v.T
        dy = dTotal + qh.back(dTotal) * (y > 0)
        gradients = qw.back(x.T @ dy), dy.sum(0), total.T @ p
        norm = np.sqrt(sum((g ** 2).sum() for g in gradients))
        result.append((crossEntropy(logits, labels[part]), norm))
        w, b, v = (x - RATE * g for x, g in zip((w, b, v), gradients))
    return np.array(result)


def goesThrough(layout):
    rng = np.random.default_rng(0)
    # Some of w, and of what is rounded behind it, are outside of the range.
    weights = {"w": rng.normal(size=[WIDTH, WIDTH]), "b": rng.normal(size=[WIDTH]),
               "v": rng.normal(size=[WIDTH, WIDTH])}
    weights = {name: x.astype(np.float32) for name, x in weights.items()}
    weights["w"][0, 0] = 2.5
    inputs = 8 * rng.normal(size=[STEPS * BATCH, WIDTH]).astype(np.float32)
    labels = rng.integers(0, WIDTH, len(inputs))
    with scratch() as folder:
        model(f"{folder}/model.onnx", weights)
        plan = compiled(folder, f"--optimizer=sgd(lr={RATE})", "--clip-norm=1e9",
                        *layout.split(), model=f"{folder}/model.onnx",
                        shape=f"input={BATCH}x{WIDTH}")
        run(tool("axopt"), plan, "--verify")
        np.savez(f"{folder}/data.npz", input=inputs, labels=labels)
        axrun(plan, "--data", f"{folder}/data.npz", "--no-shuffle", "--steps",
              STEPS, "--quiet", "--log", f"{folder}/log")
        lines = [line for line in logged(f"{folder}/log") if "loss" in line]
    got = [(line["loss"], line["gradient_norm"]) for line in lines]
    close(got, reference(weights, inputs, labels), 1e-5, "losses and norms")


def manyChannels(layout):
    """Zero points of more channels than a plan's text has numbers are states."""
    rng = np.random.default_rng(1)
    channels = 2048
    weights = {"w": rng.normal(size=[WIDTH, channels]) / 8,
               "v": rng.normal(size=[channels, WIDTH]) / 8}
    weights = {name: x.astype(np.float32) for name, x in weights.items()}
    inputs = rng.normal(size=[BATCH, WIDTH]).astype(np.float32)
    labels = rng.integers(0, WIDTH, BATCH)
    quantisation = ["w.scale", "w.zero"]
    nodes = [
        helper.make_node("QuantizeLinear", ["w", *quantisation], ["w.q"]),
        helper.make_node("DequantizeLinear", ["w.q", *quantisation], ["w.d"]),
        helper.make_node("MatMul", ["input", "w.d"], ["h"]),
        helper.make_node("MatMul", ["h", "v"], ["logits"])]
    qw = Quantised(weights["w"].astype(float), 1 / 64, 3, -128, 127)
    x, v = inputs.astype(float), weights["v"].astype(float)
    h = x @ qw.values
    p = np.exp(h @ v - (h @ v).max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    p[np.arange(BATCH), labels] -= 1
    p /= BATCH
    gradients = qw.back(x.T @ (p @ v.T)), h.T @ p
    norm = np.sqrt(sum((g ** 2).sum() for g in gradients))
    with scratch() as folder:
        path = f"{folder}/model.onnx"
        small(path, nodes, shape=[BATCH, WIDTH], weights={
            **weights, "w.scale": np.full(channels, 1 / 64, np.float32),
            "w.zero": np.full(channels, 3, np.int8)})
        plan = compiled(folder, f"--optimizer=sgd(lr={RATE})", "--clip-norm=1e9",
                        *layout.split(), model=path,
                        shape=f"input={BATCH}x{WIDTH}")
        np.savez(f"{folder}/data.npz", input=inputs, labels=labels)
        axrun(plan, "--data", f"{folder}/data.npz", "--no-shuffle", "--steps=1",
              "--quiet", "--log", f"{folder}/log")
        line, = (line for line in logged(f"{folder}/log") if "loss" in line)
    close([line["loss"], line["gradient_norm"]],
          [crossEntropy(h @ v, labels), norm], 1e-5, "loss and norm")


def toldBefore():
    """--inspect says what is trained."""
    with scratch() as folder:
        weights = {name: np.ones([WIDTH, WIDTH][:rank], np.float32)
                   for name, rank in (("w", 2), ("b", 1), ("v", 2))}
        model(f"{folder}/model.onnx", weights)
        found = json.loads(run(tool("axopt"), f"{folder}/model.onnx",
                               "--inspect=json").stdout)
    trained = {weight["name"] for weight in found["weights"]
               if weight["trained"]}
    assert trained == set(weights), found["weights"]


def cases(every):
    yield "told before", toldBefore
    for layout in "--tp=1", "--tp=2", "--dp=2 --zero=3", "--pp=2", "--tp=2x2x2":
        yield layout, goesThrough, layout
    for layout in "--tp=1", "--tp=2":
        yield f"many channels {layout}", manyChannels, layout
