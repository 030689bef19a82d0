# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose batch is behind the sequence, as of PyTorch's transformers unless they
are told otherwise: the sequence is split, and not the batch."""
import os
import re
from functools import partial

import numpy as np
import onnx
from onnx import numpy_helper

from _onnx_text import model
from _training import axrun, close, logged
from cases import Failed, run, scratch, tool

VOCABULARY, WIDTH, BATCH, LENGTH = 12, 8, 8, 6
NODES = """t = Transpose<perm=[1,0]>(ids)
x = Gather(table, t)
n = LayerNormalization<axis=-1>(x, scale)
u = MatMul(n, up)
r = Relu(u)
d = MatMul(r, down)
y = Add(x, d)
m = LayerNormalization<axis=-1>(y, scale)
h = MatMul(m, head)
logits = Transpose<perm=[1,0,2]>(h)"""
WEIGHTS = {"table": (VOCABULARY, WIDTH), "up": (WIDTH, 16), "down": (16, WIDTH),
           "head": (WIDTH, VOCABULARY), "scale": (WIDTH,)}
LAYOUTS = ("--tp=2 --sequence-parallel",
           "--tp=2 --sequence-parallel --micro-batches=2",
           "--dp=2 --tp=2 --sequence-parallel",
           "--dp=2 --tp=2 --sequence-parallel --micro-batches=2",
           "--pp=2 --tp=2 --sequence-parallel --micro-batches=4")


def steps(folder, layout):
    plan, log = f"{folder}/plan.mlir", f"{folder}/log"
    run(tool("axopt"), f"{folder}/model.onnx", "--train",
        "--loss=cross_entropy(logits,labels)", "--optimizer=sgd(lr=0.1)",
        "--clip-norm=1", "--quiet", *layout.split(), "-o", plan)
    axrun(plan, "--data", f"{folder}/data.npz", "--steps=3", "--no-shuffle",
          "--log", log)
    with open(plan) as file:
        text = file.read()
    found = [(line["loss"], line["gradient_norm"]) for line in logged(log)
             if "loss" in line]
    os.remove(log)
    return found, text


def follows(layout):
    """The steps of one rank, and no activation is gathered along the batch."""
    random = np.random.default_rng(0)
    with scratch() as folder:
        made = model(f"int64[{BATCH},{LENGTH}] ids",
                     f"float[{BATCH},{LENGTH},{VOCABULARY}] logits", NODES, opset=17)
        for name, shape in WEIGHTS.items():
            made.graph.initializer.append(numpy_helper.from_array(
                random.standard_normal(shape, np.float32), name))
        onnx.save(made, f"{folder}/model.onnx")
        shape = (3 * BATCH, LENGTH)
        np.savez(f"{folder}/data.npz", ids=random.integers(VOCABULARY, size=shape),
                 labels=random.integers(VOCABULARY, size=shape))
        wanted, _ = steps(folder, "")
        got, plan = steps(folder, layout)
        close(got, wanted, 1e-5, "losses and norms")
        if gathered := re.findall(r".*ax\.all_gather .* over \{(?:data|micro)\}"
                                  r".*f32.*", plan):
            raise Failed(gathered[0])
        if "reduce_scatter" not in plan:
            raise Failed("nothing is split along the sequence")


def cases(every):
    for layout in LAYOUTS:
        yield layout, partial(follows, layout)
