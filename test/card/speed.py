# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models whose commands are timed on a card, one by one: functions that write a
model into a folder, and return axopt's flags. Weights are made up on the card.
`isSmall`: for a simulated card, which is not for measuring."""
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "bench"))
from networks import Graph, gpt, layerNorm, resnet50, rmsNorm
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


def step(folder, isSmall, precision="bf16"):
    """A step of training like GPT-2 small's."""
    sizes = (dict(layers=1, width=64, heads=2, vocabulary=100, tokens=16, batch=2)
             if isSmall else dict(layers=12, width=768, heads=12,
                                  vocabulary=50257, tokens=1024, batch=16))
    g = gpt(**sizes)
    g.save(folder / "model.onnx")
    return ["--train", f"--loss=cross_entropy({g.outputs[0]},labels)",
            "--optimizer=adamw(lr=1e-3)", f"--precision={precision}"]


def float8Step(folder, isSmall):
    """The same in fp8: its Linears' products are beside those of bf16."""
    return step(folder, isSmall, "fp8")


def imageStep(folder, isSmall):
    """A step of training like ResNet-50's, with the statistics of batches."""
    sizes = (dict(images=2, size=32, width=8, blocks=(1, 1)) if isSmall else
             dict(images=64))
    g = resnet50(**sizes, norms=True)
    g.save(folder / "model.onnx")
    return ["--train", f"--loss=cross_entropy({g.outputs[0]},labels)",
            "--batchnorm=train", "--optimizer=sgd(lr=1e-3)", "--precision=bf16"]
