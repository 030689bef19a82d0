# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks of the zoo whose numbers have four, eight or 16 bits."""
import numpy as np

from networks import Graph

BLOCK = 32


def fourBits(g, x, inputs, outputs, **attributes):
    """As onnxruntime's quantiser writes it: two numbers in a byte, a scale and
    a zero point for each 32 of a row."""
    blocks = inputs // BLOCK
    weight = g.random.integers(256, size=(outputs, blocks, BLOCK // 2))
    zeros = g.random.integers(256, size=(outputs, (blocks + 1) // 2))
    scales = g.random.uniform(0.5, 1, (outputs, blocks)) / (8 * np.sqrt(inputs))
    return g.op("MatMulNBits", x, g.constant(weight, np.uint8),
                g.constant(scales), g.constant(zeros, np.uint8),
                domain="com.microsoft", K=inputs, N=outputs, bits=4,
                block_size=BLOCK, **attributes)


def rounded(g, x, inputs, outputs):
    """The same of x that may be rounded to eight bits."""
    return fourBits(g, x, inputs, outputs, accuracy_level=4)


def eightBits(g, x, inputs, outputs):
    """A DequantizeLinear with a scale for each column; of seven bits, as
    onnxruntime's sums of two products with u8 saturate on some processors."""
    weight = g.random.integers(-63, 64, size=(inputs, outputs))
    scales = g.random.uniform(0.5, 1, outputs) / (32 * np.sqrt(inputs))
    return g.op("MatMul", x, g.op(
        "DequantizeLinear", g.constant(weight, np.int8), g.constant(scales),
        axis=1))


def integers(g, x, inputs, outputs):
    """As onnxruntime's dynamic quantiser writes it."""
    weight = g.random.integers(-63, 64, size=(inputs, outputs))
    numbers, scale, zero = g.op("DynamicQuantizeLinear", x, outputs=3)
    sums = g.op("MatMulInteger", numbers, g.constant(weight, np.int8), zero)
    scale = g.op("Mul", scale, g.constant(np.full(1, 1 / (32 * np.sqrt(inputs)))))
    return g.op("Mul", g.op("Cast", sums, to=1), scale)


def dequantized(g, x, inputs, outputs):
    """As its static one does: what goes in has eight bits, too."""
    scale, zero = g.constant(np.array(0.03)), g.constant(np.array(128), np.uint8)
    numbers = g.op("QuantizeLinear", x, scale, zero)
    return eightBits(g, g.op("DequantizeLinear", numbers, scale, zero), inputs,
                     outputs)


def halves(g, x, inputs, outputs):
    weight = g.random.standard_normal((inputs, outputs)) / np.sqrt(inputs)
    return g.op("Cast", g.op("MatMul", g.op("Cast", x, to=10),
                             g.constant(weight, np.float16)), to=1)


def gated(rows, linear):
    """The products of Llama's layers but attention's."""
    def make(small):
        width, inner, layers = (64, 160, 1) if small else (1024, 2816, 6)
        count = min(rows, 3) if small else rows
        g = Graph("gated")
        x = g.input("x", np.float32, count, width)
        for _ in range(layers):
            gate = linear(g, x, width, inner)
            gate = g.op("Mul", gate, g.op("Sigmoid", gate))
            up = linear(g, x, width, inner)
            y = linear(g, g.op("Mul", gate, up), inner, width)
            x = g.op("Add", x, y)
        # Of onnxruntime's operators no shape is inferred.
        g.output(g.op("Reshape", x, g.ints(count, width)))
        return g
    return make


NETWORKS = {"four_bits_decode": gated(1, fourBits),
            "four_bits": gated(64, fourBits),
            "rounded_decode": gated(1, rounded),
            "rounded": gated(64, rounded),
            "eight_bits_decode": gated(1, eightBits),
            "integers": gated(64, integers),
            "dequantized": gated(64, dequantized),
            "half": gated(64, halves),
            "half_decode": gated(1, halves)}
