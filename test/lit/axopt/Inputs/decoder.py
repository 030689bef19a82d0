# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""x w and the sums of two caches, which grow by x; and, as a second file, the places of
what is not zero."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def value(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


onnx.save(helper.make_model(helper.make_graph(
    [helper.make_node("Concat", ["past.key", "x"], ["present.key"], axis=1),
     helper.make_node("Concat", ["past.value", "x"], ["present.value"], axis=1),
     helper.make_node("Add", ["past.key", "past.value"], ["sum"]),
     helper.make_node("ReduceSum", ["present.key", "axes"], ["k"]),
     helper.make_node("ReduceSum", ["present.value", "axes"], ["v"]),
     helper.make_node("MatMul", ["x", "w"], ["h"]),
     helper.make_node("Add", ["h", "k"], ["hk"]),
     helper.make_node("Mul", ["hk", "v"], ["y"])], "decoder",
    [value("x", 1, "length", 8), value("past.key", 1, "past", 8),
     value("past.value", 1, "past", 8)],
    [value("y", 1, "length", 8), value("present.key", 1, "past + length", 8),
     value("present.value", 1, "past + length", 8),
     value("sum", 1, "past", 8)],
    [numpy_helper.from_array(np.ones((8, 8), np.float32), "w"),
     numpy_helper.from_array(np.array([1]), "axes")]),
    opset_imports=[helper.make_opsetid("", 20)], ir_version=10), sys.argv[1])
onnx.save(helper.make_model(helper.make_graph(
    [helper.make_node("NonZero", ["x"], ["places"], "find")], "places",
    [value("x", 4),
     helper.make_tensor_value_info("before", TensorProto.INT64, [1, 4])],
    [helper.make_tensor_value_info("places", TensorProto.INT64, [1, "count"])]),
    opset_imports=[helper.make_opsetid("", 20)], ir_version=10), sys.argv[2])
