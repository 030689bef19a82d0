"""GPT-like and gated models of any size, written with onnx.helper."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Graph:
    def __init__(self):
        self.nodes, self.weights, self.count = [], [], 0
        self.random = np.random.default_rng(0)

    def op(self, kind, *inputs, outputs=1, **attributes):
        self.count += 1
        names = [f"{kind}_{self.count}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(
            kind, inputs, names, name=f"{kind}_{self.count}", **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, values, dtype=np.float32):
        self.count += 1
        self.weights.append(numpy_helper.from_array(
            np.asarray(values, dtype), f"constant_{self.count}"))
        return self.weights[-1].name

    def weight(self, *shape, scale=0.02):
        return self.constant(
            self.random.standard_normal(shape, np.float32) * scale)

    def linear(self, x, inputs, outputs):
        return self.op("Add", self.op("MatMul", x, self.weight(inputs, outputs)),
                       self.weight(outputs))

    def norm(self, x, width):
        return self.op("LayerNormalization", x, self.constant(np.ones(width)),
                       self.constant(np.zeros(width)), axis=-1)

    def save(self, path, name, kind, shape, result, resultShape):
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes, "model", [value(name, kind, shape)],
            [value(result, TensorProto.FLOAT, resultShape)], self.weights)
        onnx.save(helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9),
            path, save_as_external_data=True, location="weights")


def gpt(path, layers, width, heads, vocabulary, batch, tokens):
    g = Graph()
    x = g.op("Add", g.op("Gather", g.weight(vocabulary, width), "input"),
             g.weight(1, tokens, width))
    causal = g.constant(np.tri(tokens)[None, None], bool)
    split = g.constant([batch, tokens, heads, width // heads], np.int64)
    merge = g.constant([batch, tokens, width], np.int64)
    for _ in range(layers):
        qkv = g.op("Split", g.linear(g.norm(x, width), width, 3 * width),
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
        hidden = g.op("Gelu", g.linear(g.norm(x, width), width, 4 * width))
        x = g.op("Add", x, g.linear(hidden, 4 * width, width))
    logits = g.op("MatMul", g.norm(x, width), g.weight(width, vocabulary))
    g.save(path, "input", TensorProto.INT64, [batch, tokens], logits,
           [batch, tokens, vocabulary])


def swiglu(path, width, hidden, batch):
    g = Graph()
    gate = g.op("MatMul", "input", g.weight(width, hidden))
    gate = g.op("Mul", gate, g.op("Sigmoid", gate))
    up = g.op("MatMul", "input", g.weight(width, hidden))
    down = g.op("MatMul", g.op("Mul", gate, up), g.weight(hidden, width))
    g.save(path, "input", TensorProto.FLOAT, [batch, width], down,
           [batch, width])
