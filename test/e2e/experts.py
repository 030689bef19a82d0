# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Experts as PyTorch's exporters write them: the matrices that tokens choose are
looked up, and multiplied one by one. Ranks have parts of each."""
import re
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from _onnx_text import model
from _results import byOnnxruntime, compare, ours
from _training import axrun, close, losses
from cases import Failed, run, scratch, tool

WIDTH, INNER = 16, 24
# Tokens and experts; of many a GPU has tiles.
FEW, MANY = (8, 4), (512, 16)


def written(folder, sizes):
    tokens, experts = sizes
    shapes = {"router": (WIDTH, experts), "up": (experts, 2 * INNER, WIDTH),
              "upBias": (experts, 2 * INNER), "down": (experts, WIDTH, INNER)}
    made = model(f"float[{tokens},{WIDTH}] x", f"float[{tokens},{WIDTH}] y", f"""
scores = MatMul(x, router)
shares = Softmax<axis=1>(scores)
parts, which = TopK<axis=1>(shares, two)
x3 = Unsqueeze(x, one)
twice = Expand(x3, choices)
rows = Reshape(twice, columns)
flat = Reshape(which, line)
ups = Gather(up, flat)
gates = MatMul(ups, rows)
pairs = Squeeze(gates, last)
biases = Gather(upBias, flat)
sums = Add(pairs, biases)
gate, linear = Split<axis=1, num_outputs=2>(sums)
s = Sigmoid(gate)
act = Mul(gate, s)
h = Mul(act, linear)
h3 = Unsqueeze(h, last)
downs = Gather(down, flat)
z3 = MatMul(downs, h3)
z = Squeeze(z3, last)
weights = Reshape(parts, one1)
weighted = Mul(z, weights)
all = Reshape(weighted, tokens)
mixed = ReduceSum<keepdims=0>(all, one)
y = Add(x, mixed)
""".strip(),
                 f"int64[1] two = {{2}}, int64[1] one = {{1}}, "
                 f"int64[1] last = {{2}}, int64[1] line = {{-1}}, "
                 f"int64[3] choices = {{{tokens}, 2, {WIDTH}}}, "
                 f"int64[3] columns = {{-1, {WIDTH}, 1}}, "
                 f"int64[2] one1 = {{-1, 1}}, "
                 f"int64[3] tokens = {{{tokens}, 2, {WIDTH}}}", opset=18)
    random = np.random.default_rng(0)
    for name, shape in shapes.items():
        weight = random.standard_normal(shape, np.float32) * np.float32(0.3)
        made.graph.initializer.append(numpy_helper.from_array(weight, name))
    onnx.save(made, f"{folder}/model.onnx")
    return made, random


def predicted(flags, layouts, sizes=FEW):
    tokens = sizes[0]
    with scratch() as folder:
        made, random = written(folder, sizes)
        feeds = {"x": random.standard_normal((tokens, WIDTH), np.float32)}
        run(tool("axopt"), f"{folder}/model.onnx", *flags, "--strict", "--quiet",
            "-o", f"{folder}/plan.mlir")
        compare(byOnnxruntime(made, feeds), ours(folder, feeds), flags)
        text = Path(f"{folder}/plan.mlir").read_text()
    for name, layout in layouts.items():
        found = re.search(rf"@{name} : tensor<\S+ #ax.layout<(\[.*?\])>", text)
        if found.group(1) != layout:
            raise Failed(f"{name} is {found.group(1)}, not {layout}")
    # What experts make is mixed before ranks add it up.
    sums = re.findall(r"ax\.(all_reduce|reduce_scatter) .* (tensor<\S+),", text)
    if layouts and [size for _, size in sums] != [f"tensor<{tokens}x{WIDTH}xf32"]:
        raise Failed(f"exchanged: {sums}")


def trained(flags, sizes=FEW):
    with scratch() as folder:
        random = written(folder, sizes)[1]
        np.savez(f"{folder}/data.npz", **{
            name: random.standard_normal((4 * sizes[0], WIDTH), np.float32)
            for name in ("x", "t")})
        lines = []
        for layout in [], flags:
            run(tool("axopt"), f"{folder}/model.onnx", "--train",
                "--loss=mse(y,t)", "--optimizer=adamw(lr=0.01)", *layout,
                "--quiet", "-o", f"{folder}/plan.mlir")
            log = Path(f"{folder}/log")
            log.unlink(missing_ok=True)
            axrun(f"{folder}/plan.mlir", "--data", f"{folder}/data.npz",
                  "--steps=6", "--no-shuffle", "--log", log)
            lines.append(losses(log))
    if not lines[0][-1] < lines[0][0]:
        raise Failed(f"nothing is learnt: {lines[0]}")
    close(lines[1], lines[0], 1e-5, flags)


def cases(every):
    halves = {"up": "[{}, 2 * 24{col}, {}]", "upBias": "[{}, 2 * 24{col}]",
              "down": "[{}, {}, {col}]"}
    for flags, layouts in (([], {}), (["--tp=2"], halves), (["--tp=4"], halves),
                           (["--tp=2x2x1"], {}), (["--dp=2", "--tp=2"], {})):
        yield f"predicted {' '.join(flags)}", predicted, flags, layouts
    for flags in "--tp=2", "--tp=2x2x1", "--dp=2 --tp=2 --zero=1", \
            "--micro-batches=2 --tp=2":
        yield f"trained {flags}", trained, flags.split()
    yield "predicted, many tokens", predicted, [], {}, MANY
    # Of half of them each rank multiplies by all experts, on a GPU.
    yield "trained, many tokens", trained, ["--dp=2"], MANY
