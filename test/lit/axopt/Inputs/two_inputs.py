# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A Linear of 64 x 256 samples, and an input of one row that is added to all."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

onnx.save(helper.make_model(helper.make_graph(
    [helper.make_node("MatMul", ["x", "w"], ["h"]),
     helper.make_node("Add", ["h", "row"], ["y"])], "two",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [64, 128, 256]),
     helper.make_tensor_value_info("row", TensorProto.FLOAT, [1, 128, 256])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [64, 128, 256])],
    [numpy_helper.from_array(np.ones((256, 256), np.float32), "w")]),
    opset_imports=[helper.make_opsetid("", 20)]), sys.argv[1])
