# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPT-like and gated models of any size, of the benchmarks' parts."""
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "bench"))
from networks import Graph, layerNorm


def gpt(path, layers, width, heads, vocabulary, batch, tokens):
    g = Graph("gpt")
    ids = g.input("input", np.int64, batch, tokens, below=vocabulary)
    x = g.op("Add", g.op("Gather", g.weight(vocabulary, width), ids),
             g.weight(1, tokens, width))
    causal = g.constant(np.tri(tokens)[None, None], bool)
    split = g.constant([batch, tokens, heads, width // heads], np.int64)
    merge = g.constant([batch, tokens, width], np.int64)
    for _ in range(layers):
        qkv = g.op("Split", g.linear(layerNorm(g, x, width), width, 3 * width),
                   outputs=3, axis=-1, num_outputs=3)
        q, k, v = (g.op("Transpose", g.op("Reshape", part, split), perm=perm)
                   for part, perm in zip(qkv, ([0, 2, 1, 3], [0, 2, 3, 1],
                                               [0, 2, 1, 3])))
        scores = g.op("Div", g.op("MatMul", q, k),
                      g.constant(np.sqrt(width // heads)))
        scores = g.op("Where", causal, scores, g.constant(-np.inf))
        mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
        mixed = g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1, 3]),
                     merge)
        x = g.op("Add", x, g.linear(mixed, width, width))
        hidden = g.op("Gelu", g.linear(layerNorm(g, x, width), width, 4 * width))
        x = g.op("Add", x, g.linear(hidden, 4 * width, width))
    g.output(g.op("MatMul", layerNorm(g, x, width), g.weight(width, vocabulary)))
    g.save(path, opset=20)


def swiglu(path, width, hidden, batch):
    g = Graph("swiglu")
    x = g.input("input", np.float32, batch, width)
    gate = g.op("MatMul", x, g.weight(width, hidden))
    gate = g.op("Mul", gate, g.op("Sigmoid", gate))
    up = g.op("MatMul", x, g.weight(width, hidden))
    g.output(g.op("MatMul", g.op("Mul", gate, up), g.weight(hidden, width)))
    g.save(path)


def quantized(path, width, layers):
    """Products with weights of 8 bits."""
    g = Graph("quantized")
    x = g.input("input", np.float32, 2, width)
    numbers = np.random.default_rng(0).integers(-128, 128, [width, width])
    for _ in range(layers):
        weight = g.op("DequantizeLinear", g.constant(numbers, np.int8),
                      g.constant(0.01), g.constant(0, np.int8))
        x = g.op("MatMul", x, weight)
    g.output(x)
    g.save(path)
