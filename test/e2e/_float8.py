# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linears that were quantised to floats of eight bits."""
import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

E4M3 = TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn
E5M2 = TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2
# Of a batch.
ROWS = 32


class Float8Net:
    """Linears whose factors are dequantised, with a GELU between them."""

    def __init__(self, activations=E4M3, columns=True, half=False,
                 transposed=False):
        self.random = np.random.default_rng(0)
        self.graph = onnx.GraphProto(name="net")
        self.activations, self.columns = activations, columns
        self.transposed = transposed
        self.float = (TensorProto.FLOAT16, np.float16) if half else \
            (TensorProto.FLOAT, np.float32)

    def add(self, op, inputs, output, **attributes):
        self.graph.node.append(
            helper.make_node(op, inputs, [output], output, **attributes))
        return output

    def constant(self, name, array):
        self.graph.initializer.append(
            numpy_helper.from_array(array.astype(self.float[1]), name))
        return name

    def narrow(self, name, kind, array):
        self.graph.initializer.append(helper.make_tensor(
            name, kind[0], array.shape, array.astype(kind[1]).tobytes(),
            raw=True))
        return name

    def quantised(self, x, scale):
        zero = self.narrow(x + ".zero", self.activations, np.zeros(()))
        scale = self.constant(x + ".scale", np.array(scale))
        q = self.add("QuantizeLinear", [x, scale, zero], x + ".q")
        return self.add("DequantizeLinear", [q, scale, zero], x + ".dq")

    def weight(self, name, k, n):
        w = self.random.standard_normal((k, n)) / np.sqrt(k)
        scale = np.abs(w).max(0, keepdims=not self.columns) / 448 \
            if self.columns else np.abs(w).max() / 448
        numbers = w / scale
        self.constant(name + ".scale", np.asarray(scale))
        q = self.narrow(name, E4M3, numbers.T if self.transposed else numbers)
        dq = self.add("DequantizeLinear", [q, name + ".scale"], name + ".dq",
                      axis=0 if self.transposed else 1)
        return self.add("Transpose", [dq], name + ".t", perm=[1, 0]) \
            if self.transposed else dq

    def model(self, *sizes):
        x = "x"
        for i, (k, n) in enumerate(zip(sizes, sizes[1:])):
            y = self.add("MatMul", [self.quantised(x, 0.01),
                                    self.weight(f"w{i}", k, n)], f"y{i}")
            b = self.constant(f"b{i}", self.random.standard_normal(n))
            x = self.add("Add", [y, b], f"z{i}")
            if i + 2 < len(sizes):
                x = self.add("Tanh", [x], f"t{i}")
        return self.made("x", x, ["batch", sizes[0]], ["batch", sizes[-1]])

    def made(self, x, y, shape, ofResult=None):
        """What was added, from input `x` to output `y`."""
        value = helper.make_tensor_value_info
        self.graph.input.append(value(x, self.float[0], shape))
        self.graph.output.append(value(y, self.float[0], ofResult or shape))
        return helper.make_model(self.graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", 21)])

    def inputs(self, size, rows=ROWS):
        return self.random.standard_normal((rows, size)).astype(self.float[1])
