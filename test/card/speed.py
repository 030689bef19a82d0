# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose commands are timed on a card, one by one: functions that write a
model into a folder, and return axopt's flags. Weights are made up on the card.
`isSmall`: for a simulated card, which is not for measuring."""
import numpy as np

import benches
from networks import Graph, layerNorm, rmsNorm
from products import PRODUCTS

def halved(g, x):
    return g.op("Cast", x, to=10)


def widened(g, x):
    return g.op("Cast", x, to=1)


def kernels(folder, isSmall):
    """One kernel a result: what it reads nothing else reads."""
    g, elements = Graph("kernels"), 1 << (12 if isSmall else 24)

    def rows(size):
        name = f"input_{len(g.inputs)}"
        return g.input(name, np.float32, max(elements // size, 2), size)

    def chain(x):
        return g.op("Mul", g.op("Tanh", g.op("Add", x, g.constant(0.5))),
                    g.op("Sigmoid", x))

    wide = 64 if isSmall else 4096
    g.output(chain(rows(wide)))
    g.output(g.op("Transpose", rows(wide), perm=[1, 0]))
    g.output(g.op("ReduceSum", rows(wide), g.ints(0), keepdims=0))
    g.output(g.op("ReduceSum", rows(wide), g.ints(0, 1), keepdims=0))
    for size in (16, 128) if isSmall else (128, 1024, 8192, 65536):
        g.output(g.op("Softmax", rows(size), axis=-1))
    g.output(g.op("LogSoftmax", rows(50 if isSmall else 50257), axis=-1))
    for size in (64,) if isSmall else (768, 4096):
        g.output(layerNorm(g, rows(size), size))
        g.output(rmsNorm(g, rows(size), size))
    g.save(folder / "model.onnx", opset=17)
    return []


def halfKernels(folder, isSmall):
    """The same of f16: what comes in and goes out is f32, in kernels of its own."""
    g, elements = Graph("half"), 1 << (12 if isSmall else 24)
    wide = 64 if isSmall else 4096
    x = halved(g, g.input("x", np.float32, elements // wide, wide))
    # Read twice, so that casts stay apart from it.
    g.output(widened(g, g.op("ReduceMax", x, axes=[1])))
    y = g.op("Softmax", x, axis=-1)
    g.output(widened(g, g.op("Transpose", y, perm=[1, 0])))
    g.output(widened(g, g.op("ReduceSum", y, g.ints(0), keepdims=0)))
    g.save(folder / "model.onnx", opset=17)
    return []


def products(folder, isSmall):
    """Of f16, as bf16 is: each by itself, its result summed."""
    g = Graph("products")
    for number, sizes in enumerate(PRODUCTS):
        m, k, n = (max(size // 128, 16) if isSmall else size for size in sizes)
        a, b = (halved(g, g.input(f"{name}_{number}", np.float32, *shape))
                for name, shape in (("a", (m, k)), ("b", (k, n))))
        g.output(widened(g, g.op("ReduceMax", g.op("MatMul", a, b), axes=[0, 1],
                                 keepdims=0)))
    g.save(folder / "model.onnx", opset=17)
    return []


def fewBits(folder, isSmall):
    """Weights of four and of eight bits, with one row and with 16: bytes count."""
    g = Graph("bits")
    k, n, block = (64, 96, 32) if isSmall else (4096, 14336, 32)
    for rows in 1, 16:
        x = g.input(f"x_{rows}", np.float32, rows, k)
        g.output(g.op("MatMulNBits", x, g.hole(n, k // block, block // 2,
                                               dtype=np.uint8),
                      g.hole(n, k // block), domain="com.microsoft", K=k, N=n,
                      bits=4, block_size=block))
        g.output(g.op("MatMul", x, g.op(
            "DequantizeLinear", g.hole(k, n, dtype=np.int8), g.hole(n), axis=1)))
    g.save(folder / "model.onnx", opset=17)
    return []


def step(folder, isSmall):
    """A step of training like GPT-2 small's."""
    return benches.model(benches.BENCHES["gpt2-step"], folder, isSmall)


def float8Step(folder, isSmall):
    """The same in fp8: its Linears' products are beside those of bf16."""
    return [flag for flag in step(folder, isSmall) if flag != benches.BF16] + [
        "--precision=fp8"]


def llamaStep(folder, isSmall):
    """A step of training like a Llama's of eight layers, in bf16."""
    return benches.model(benches.BENCHES["llama-step"], folder, isSmall)


def imageStep(folder, isSmall):
    """A step of training like ResNet-50's, with the statistics of batches."""
    return benches.model(benches.BENCHES["resnet50-step"], folder, isSmall)
