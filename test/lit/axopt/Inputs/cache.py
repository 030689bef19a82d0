# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention over a cache with room for `total` tokens; as a second file, with the new
keys read by somebody else, too."""
import sys

import onnx
from onnx import TensorProto, helper


def value(name, type, *shape):
    return helper.make_tensor_value_info(name, type, shape)


FLOAT, INT32 = TensorProto.FLOAT, TensorProto.INT32
for path, isShared in (sys.argv[1], False), (sys.argv[2], True):
    cache = (1, 2, "past", 16)
    nodes = [
        helper.make_node("Gather", ["shape", "place"], ["count"]),
        helper.make_node("Cast", ["count"], ["total"], to=INT32),
        helper.make_node("GroupQueryAttention",
                         ["x", "x", "x", "past.key", "past.value", "end", "total"],
                         ["y", "present.key", "present.value"], num_heads=2,
                         kv_num_heads=2, domain="com.microsoft"),
        helper.make_node("ReduceSum", ["present.key"], ["sum"], keepdims=0)]
    outputs = [value("y", FLOAT, 1, "length", 32)]
    outputs += [value(f"present.{kind}", FLOAT, *cache) for kind in ("key", "value")]
    outputs += [value("sum", FLOAT)] if isShared else []
    onnx.save(helper.make_model(helper.make_graph(
        [helper.make_node("Shape", ["mask"], ["shape"])] + nodes[:3 + isShared], "cache",
        [value("x", FLOAT, 1, "length", 32), value("mask", INT32, 1, "total"),
         value("end", INT32, 1), value("past.key", FLOAT, *cache),
         value("past.value", FLOAT, *cache)], outputs,
        [helper.make_tensor("place", TensorProto.INT64, [], [1])]),
        opset_imports=[helper.make_opsetid("", 17),
                       helper.make_opsetid("com.microsoft", 1)], ir_version=8), path)
