# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The models that are measured, written with onnx.helper as PyTorch exports
them, with random weights from a fixed seed. Those of the zoo are in zoo_*.py."""
import sys
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
from onnx import TensorProto, helper


class Graph:
    """Appends nodes; values are names."""
    # Weights are a hole in a file: for what makes them up where it runs.
    isBlank = False

    def __init__(self, name):
        self.name, self.nodes, self.weights, self.count = name, [], [], 0
        self.inputs, self.outputs, self.holes = {}, [], 0
        self.random = np.random.default_rng(0)

    def input(self, name, dtype, *shape, below=2):
        """Whole numbers are at least 0 and less than `below`."""
        self.inputs[name] = np.dtype(dtype), shape, below
        return name

    def output(self, value):
        self.outputs.append(value)

    def op(self, kind, *inputs, outputs=1, **attributes):
        self.count += 1
        names = [f"{kind}_{self.count}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(
            kind, inputs, names, name=f"{kind}_{self.count}", **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, values, dtype=np.float32):
        self.count += 1
        self.weights.append(onnx.numpy_helper.from_array(
            np.asarray(values, dtype), f"constant_{self.count}"))
        return self.weights[-1].name

    def ints(self, *values):
        return self.constant(values, np.int64)

    def hole(self, *shape, dtype=np.float32):
        """A weight that takes no room, here or on a disk."""
        self.count += 1
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        tensor = TensorProto(name=f"constant_{self.count}", dims=shape,
                             data_type=kind, data_location=TensorProto.EXTERNAL)
        size = np.dtype(dtype).itemsize * int(np.prod(shape))
        for key, value in (("location", "hole.data"), ("offset", self.holes),
                           ("length", size)):
            tensor.external_data.add(key=key, value=str(value))
        self.holes += size
        self.weights.append(tensor)
        return tensor.name

    def weight(self, *shape, scale=0.02):
        if self.isBlank:
            return self.hole(*shape)
        return self.constant(
            self.random.standard_normal(shape, np.float32) * scale)

    def linear(self, x, inputs, outputs, bias=True):
        y = self.op("MatMul", x, self.weight(inputs, outputs))
        return self.op("Add", y, self.weight(outputs)) if bias else y

    def save(self, path, opset=17):
        graph = helper.make_graph(
            self.nodes, self.name,
            [helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(dtype), shape)
             for name, (dtype, shape, _) in self.inputs.items()],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
             for output in self.outputs],
            self.weights)
        domains = {node.domain for node in self.nodes} - {""}
        model = helper.make_model(graph, ir_version=8, opset_imports=[
            helper.make_opsetid("", opset),
            *(helper.make_opsetid(domain, 1) for domain in sorted(domains))])
        # An output must have a shape.
        model = onnx.shape_inference.infer_shapes(model)
        onnx.save(model, path, save_as_external_data=True,
                  location=Path(path).name + ".data")
        if self.holes:
            with open(Path(path).parent / "hole.data", "wb") as file:
                file.truncate(self.holes)

    def feeds(self):
        """Values of the inputs."""
        random = np.random.default_rng(1)
        return {name: random.integers(below, size=shape).astype(dtype)
                if np.issubdtype(dtype, np.integer)
                else random.standard_normal(shape).astype(dtype)
                for name, (dtype, shape, below) in self.inputs.items()}


@contextmanager
def blankWeights():
    """Graphs that are made meanwhile have weights without values."""
    with mock.patch.object(Graph, "isBlank", True):
        yield


def layerNorm(g, x, width):
    return g.op("LayerNormalization", x, g.constant(np.ones(width)),
                g.constant(np.zeros(width)), axis=-1, epsilon=1e-5)


def heads4(g, x, batch, tokens, heads, size):
    """[batch, heads, tokens, size]"""
    x = g.op("Reshape", x, g.ints(batch, tokens, heads, size))
    return g.op("Transpose", x, perm=[0, 2, 1, 3])


def attention(g, x, batch, tokens, width, heads, other=None, otherTokens=None,
              otherWidth=None, values=None, added=None, past=None, bias=True,
              scaled=True):
    """Of `x` to itself or to `other`, whose values may come from elsewhere.

    `added` is added to the scores; `past` are keys and values [batch, heads,
    tokens, width] from before, and with new ones behind they are outputs.
    """
    other, size = other or x, width // heads
    otherTokens, otherWidth = otherTokens or tokens, otherWidth or width
    q = heads4(g, g.linear(x, width, width, bias), batch, tokens, heads, size)
    k, v = (heads4(g, g.linear(source, otherWidth, width, bias), batch,
                   otherTokens, heads, size)
            for source in (other, values or other))
    if past:
        k, v = (g.op("Concat", *pair, axis=2) for pair in zip(past, (k, v)))
        g.output(k)
        g.output(v)
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    if scaled:
        scores = g.op("Div", scores, g.constant(np.sqrt(size)))
    if added:
        scores = g.op("Add", scores, added)
    mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    mixed = g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1, 3]),
                 g.ints(batch, tokens, width))
    return g.linear(mixed, width, width, bias)


def geluTanh(g, x):
    cube = g.op("Mul", g.op("Pow", x, g.constant(3.0)), g.constant(0.044715))
    inner = g.op("Mul", g.op("Add", x, cube),
                 g.constant(np.sqrt(2 / np.pi)))
    one = g.op("Add", g.op("Tanh", inner), g.constant(1.0))
    return g.op("Mul", g.op("Mul", x, g.constant(0.5)), one)


def gptBlock(g, x, batch, tokens, width, heads):
    size = width // heads
    qkv = g.linear(layerNorm(g, x, width), width, 3 * width)
    parts = g.op("Split", qkv, outputs=3, axis=-1)
    split = g.constant([batch, tokens, heads, size], np.int64)
    q, k, v = (g.op("Reshape", part, split) for part in parts)
    q = g.op("Transpose", q, perm=[0, 2, 1, 3])
    k = g.op("Transpose", k, perm=[0, 2, 3, 1])
    v = g.op("Transpose", v, perm=[0, 2, 1, 3])
    scores = g.op("Div", g.op("MatMul", q, k), g.constant(np.sqrt(size)))
    causal = g.constant(np.tri(tokens)[None, None], bool)
    scores = g.op("Where", causal, scores,
                  g.constant(np.finfo(np.float32).min))
    mixed = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)
    mixed = g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1, 3]),
                 g.constant([batch, tokens, width], np.int64))
    x = g.op("Add", x, g.linear(mixed, width, width))
    hidden = geluTanh(g, g.linear(layerNorm(g, x, width), width, 4 * width))
    return g.op("Add", x, g.linear(hidden, 4 * width, width))


def gpt(layers, width, heads, vocabulary, tokens=128, batch=1, tied=False):
    g = Graph("gpt")
    ids = g.input("input_ids", np.int64, batch, tokens, below=vocabulary)
    table = g.weight(vocabulary, width)
    x = g.op("Add", g.op("Gather", table, ids), g.weight(1, tokens, width))
    for _ in range(layers):
        x = gptBlock(g, x, batch, tokens, width, heads)
    x = layerNorm(g, x, width)
    head = (g.op("Transpose", table, perm=[1, 0]) if tied
            else g.weight(width, vocabulary))
    g.output(g.op("MatMul", x, head))
    return g


def rmsNorm(g, x, width):
    mean = g.op("ReduceMean", g.op("Pow", x, g.constant(2.0)), axes=[-1])
    root = g.op("Sqrt", g.op("Add", mean, g.constant(1e-6)))
    x = g.op("Mul", x, g.op("Div", g.constant(1.0), root))
    return g.op("Mul", g.constant(1 + 0.01 * g.random.standard_normal(width)), x)


def rotated(g, x, cos, sin, size):
    """Rotary embedding of [batch, heads, tokens, size]."""
    low, high = (
        g.op("Slice", x, g.ints(begin), g.ints(begin + size // 2), g.ints(3))
        for begin in (0, size // 2))
    turned = g.op("Concat", g.op("Neg", high), low, axis=-1)
    return g.op("Add", g.op("Mul", x, cos), g.op("Mul", turned, sin))


def llamaBlock(g, x, batch, tokens, width, heads, groups, hidden, tables, mask):
    """`groups` heads of keys and values, each for several of the queries."""
    size, normed = width // heads, rmsNorm(g, x, width)
    q, k, v = (
        heads4(g, g.linear(normed, width, n * size, bias=False),
               batch, tokens, n, size) for n in (heads, groups, groups))
    q, k = (rotated(g, y, *tables, size) for y in (q, k))

    def repeated(y):
        y = g.op("Unsqueeze", y, g.ints(2))
        y = g.op("Expand", y,
                 g.ints(batch, groups, heads // groups, tokens, size))
        return g.op("Reshape", y, g.ints(batch, heads, tokens, size))

    scores = g.op("MatMul", q,
                  g.op("Transpose", repeated(k), perm=[0, 1, 3, 2]))
    scores = g.op("Mul", scores, g.constant(1 / np.sqrt(size)))
    mixed = g.op("MatMul", g.op("Softmax", g.op("Add", scores, mask), axis=-1),
                 repeated(v))
    mixed = g.op("Reshape", g.op("Transpose", mixed, perm=[0, 2, 1, 3]),
                 g.ints(batch, tokens, width))
    x = g.op("Add", x, g.linear(mixed, width, width, bias=False))
    normed = rmsNorm(g, x, width)
    gate, up = (g.linear(normed, width, hidden, bias=False) for _ in range(2))
    y = g.op("Mul", g.op("Mul", gate, g.op("Sigmoid", gate)), up)
    return g.op("Add", x, g.linear(y, hidden, width, bias=False))


def llama(layers, width=64, heads=4, groups=2, hidden=192, vocabulary=128,
          tokens=32, batch=8):
    """Without a vocabulary it has no embedding and no head."""
    g = Graph("llama")
    if vocabulary:
        ids = g.input("input_ids", np.int64, batch, tokens, below=vocabulary)
        x = g.op("Gather", g.weight(vocabulary, width), ids)
    else:
        x = g.input("x", np.float32, batch, tokens, width)
    size = width // heads
    angles = np.outer(np.arange(tokens),
                      10000.0 ** -(np.arange(0, size, 2) / size))
    angles = np.concatenate([angles, angles], axis=-1)[None, None]
    tables = g.constant(np.cos(angles)), g.constant(np.sin(angles))
    mask = g.constant(np.triu(np.full((tokens, tokens), -1e9), 1)[None, None])
    for _ in range(layers):
        x = llamaBlock(g, x, batch, tokens, width, heads, groups, hidden,
                       tables, mask)
    x = rmsNorm(g, x, width)
    g.output(g.linear(x, width, vocabulary, bias=False) if vocabulary else x)
    return g


def gelu(g, x):
    erf = g.op("Erf", g.op("Div", x, g.constant(np.sqrt(2))))
    product = g.op("Mul", x, g.op("Add", erf, g.constant(1.0)))
    return g.op("Mul", product, g.constant(0.5))


def encoder(layers, width, heads, vocabulary, tokens, batch=1, isMasked=False):
    """Like BERT; `isMasked`: an input tells which tokens count."""
    g, added = Graph("encoder"), None
    ids = g.input("input_ids", np.int64, batch, tokens, below=vocabulary)
    if isMasked:
        mask = g.op("Cast", g.input("mask", np.int64, batch, tokens, below=2), to=1)
        mask = g.op("Unsqueeze", g.op("Sub", g.constant(1.0), mask), g.ints(1, 2))
        added = g.op("Mul", mask, g.constant(-1e4))
    x = g.op("Add", g.op("Gather", g.weight(vocabulary, width), ids),
             g.weight(1, tokens, width))
    x = layerNorm(g, x, width)
    for _ in range(layers):
        y = attention(g, x, batch, tokens, width, heads, added=added)
        x = layerNorm(g, g.op("Add", x, y), width)
        y = gelu(g, g.linear(x, width, 4 * width))
        x = layerNorm(g, g.op("Add", x, g.linear(y, 4 * width, width)), width)
    g.output(x)
    return g


def mlp():
    g = Graph("mlp")
    x = g.input("x", np.float32, 128, 1024)
    hidden = g.op("Relu", g.linear(x, 1024, 4096))
    g.output(g.linear(hidden, 4096, 1024))
    return g


def resnet50(images=1, size=224, width=64, blocks=(3, 4, 6, 3), norms=False):
    """BatchNormalization already folded into the convolutions, unless `norms`."""
    g = Graph("resnet50")

    def conv(x, inputs, outputs, kernel, stride=1):
        pad = kernel // 2
        scale = np.sqrt(2 / (inputs * kernel * kernel))
        w = g.weight(outputs, inputs, kernel, kernel, scale=scale)
        y = g.op("Conv", x, w, *([] if norms else [g.weight(outputs)]),
                 kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)
        return g.op("BatchNormalization", y,
                    *(g.constant(np.full(outputs, value))
                      for value in (1, 0, 0, 1))) if norms else y

    x = g.input("x", np.float32, images, 3, size, size)
    x = g.op("Relu", conv(x, 3, width, 7, 2))
    x = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = width
    for stage, count in enumerate(blocks):
        for block in range(count):
            step = 1 if block or not stage else 2
            y = g.op("Relu", conv(x, channels, width, 1))
            y = g.op("Relu", conv(y, width, width, 3, step))
            y = conv(y, width, 4 * width, 1)
            if not block:
                x = conv(x, channels, 4 * width, 1, step)
            x = g.op("Relu", g.op("Add", x, y))
            channels = 4 * width
        width *= 2
    x = g.op("Flatten", g.op("GlobalAveragePool", x))
    g.output(g.linear(x, channels, 1000))
    return g


MODELS = {
    "gpt2-like": lambda: gpt(4, 512, 8, 8192),
    "mlp": mlp,
    "resnet50": resnet50,
    "resnet50-8": lambda: resnet50(8),
    "llama-32": lambda: llama(32),
    "llama-64": lambda: llama(64),
    "gpt2-small": lambda: gpt(12, 768, 12, 50257, tied=True),
}


def build(name, folder):
    """The model's path; made when it is not there."""
    path = Path(folder) / name / "model.onnx"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        MODELS[name]().save(path)
    return path


if __name__ == "__main__":
    for model in sys.argv[2:]:
        print(build(model, sys.argv[1]))
