# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of integers are exact, so quantised layers give the same bits on every
layout, and those of onnxruntime: also where results are halfway between two
steps, which the last bit of a rounded addend would decide."""
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from cases import Failed, run, scratch, tool

LAYOUTS = ("", "--tp=2", "--tp=4", "--tp=2x2x2", "--dp=2 --tp=2",
           "--pp=2 --micro-batches=2")
WIDTH, LAYERS = 16, 4


class Chain:
    """Layers whose results are multiples of a quarter of a step, but for what
    scales are rounded by."""

    def __init__(self, seed, signed):
        self.random = np.random.default_rng(seed)
        self.signed = signed
        self.activation = np.int8 if signed else np.uint8
        self.nodes, self.initializers, self.outputs = [], [], []
        self.at, self.zero, self.step = "x", self.integer(3), 0.1
        self.scale = self.constant(np.float32(self.step))

    def constant(self, value):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.array(value), name))
        return name

    def integer(self, value):
        return self.constant(self.activation(value))

    def node(self, operator, *inputs, **attributes):
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name],
                                           name=name, **attributes))
        return name

    def weight(self, *shape):
        return self.constant(self.random.integers(-3, 4, shape)
                             .astype(np.int8))

    def rescaled(self, step, perChannel):
        """Scales of weights by which results are such multiples."""
        factor = self.random.choice([0.5, 1.5, 0.25], WIDTH) if perChannel \
            else np.array(0.5)
        if self.step != 0.1:
            factor /= 16
        return self.constant((step * factor / self.step).astype(np.float32))

    def layer(self, operator, perChannel, bias):
        weight = self.weight(WIDTH, WIDTH, 3, 3) if operator == "QLinearConv" \
            else self.weight(WIDTH, WIDTH)
        step = self.step * 0.3
        scales = self.rescaled(step, perChannel)
        zeros = self.constant(np.zeros(WIDTH if perChannel else (), np.int8))
        scale = self.constant(np.float32(step))
        zero = self.integer(-5 if self.signed else 128)
        inputs = [self.at, self.scale, self.zero, weight, scales, zeros, scale,
                  zero]
        if bias:
            inputs.append(self.constant(self.random.integers(
                -50, 50, WIDTH).astype(np.int32)))
        self.at = self.node(operator, *inputs, **(
            {"pads": [1] * 4} if operator == "QLinearConv" else {}))
        self.scale, self.zero, self.step = scale, zero, step
        self.outputs.append((self.at, self.activation))

    def integers(self, operator):
        """As dynamic quantisation writes it."""
        conv = operator == "ConvInteger"
        weight = self.weight(WIDTH, WIDTH, 3, 3) if conv else \
            self.weight(WIDTH, WIDTH)
        values = self.at if self.nodes else \
            self.node("Cast", self.at, to=TensorProto.FLOAT)
        node = helper.make_node("DynamicQuantizeLinear", [values],
                                [f"{values}.{i}" for i in range(3)])
        self.nodes.append(node)
        x, scale, zero = node.output
        total = self.node(operator, x, weight, zero, **(
            {"pads": [1] * 4} if conv else {}))
        self.outputs.append((total, np.int32))
        self.at = self.node(
            "Mul", self.node("Cast", total, to=TensorProto.FLOAT),
            self.node("Mul", scale, self.constant(np.float32(0.013))))
        self.outputs.append((self.at, np.float32))

    def save(self, path, shape):
        value = helper.make_tensor_value_info
        kind = helper.np_dtype_to_tensor_dtype
        onnx.save(helper.make_model(helper.make_graph(
            self.nodes, "g",
            [value("x", kind(np.dtype(self.activation)), shape)],
            [value(name, kind(np.dtype(of)), None)
             for name, of in self.outputs], self.initializers),
            ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)


def reference(path, x):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = \
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options)
    return dict(zip([output.name for output in session.get_outputs()],
                    session.run(None, {"x": x})))


def chain(operator, signed, perChannel, bias, layouts):
    made = Chain(3, signed)
    for _ in range(LAYERS):
        if operator.startswith("QLinear"):
            made.layer(operator, perChannel, bias)
        else:
            made.integers(operator)
    shape = [2, WIDTH, 8, 8] if "Conv" in operator else [8, 24, WIDTH]
    with scratch() as folder:
        path = f"{folder}/model.onnx"
        made.save(path, shape)
        x = made.random.integers(0, 8, shape).astype(made.activation)
        np.save(f"{folder}/x.npy", x)
        wanted = reference(path, x)
        for layout in layouts:
            run(tool("axopt"), path, *layout.split(), "--quiet", "-o",
                f"{folder}/plan.mlir")
            run(tool("axrun"), f"{folder}/plan.mlir", "--input",
                f"x={folder}/x.npy", "--output", f"{folder}/y.npz")
            with np.load(f"{folder}/y.npz") as got:
                for name, right in wanted.items():
                    differ = np.count_nonzero(got[name] != right)
                    if got[name].dtype != right.dtype or differ:
                        raise Failed(f"{layout}: {differ} of {right.size} "
                                     f"numbers of {name} are others")


def cases(every):
    layouts = LAYOUTS if every else ("", "--tp=2", "--tp=2x2x2")
    for operator in "QLinearConv", "QLinearMatMul":
        for perChannel in False, True:
            for signed in False, True:
                yield (f"{operator} {'per channel' if perChannel else 'whole'} "
                       f"{'signed' if signed else 'unsigned'}", chain, operator,
                       signed, perChannel, False, layouts)
    yield "QLinearConv with bias", chain, "QLinearConv", False, True, True, \
        layouts
    # The range of a whole batch decides how it is quantised.
    for operator in "ConvInteger", "MatMulInteger":
        yield operator, chain, operator, False, False, False, \
            [layout for layout in layouts if "micro" not in layout]
