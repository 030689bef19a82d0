# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Activations between quantisations, which axrun looks up in tables, beside
onnxruntime: every number of eight bits, with and without a sign, on one rank and
in parts."""
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from cases import Failed, run, scratch, tool

SIGNED, UNSIGNED = np.int8, np.uint8
ROWS, COLUMNS = 128, 256


def model(path, inputs, outputs, activation, isMultiplied):
    """x of eight bits, the activation of it, perhaps times x, quantised again."""
    isBounded = activation in ("Sigmoid", "Tanh") and not isMultiplied
    values = {"s": np.float32(0.06), "z": inputs(3), "zu": outputs(5),
              "u": np.float32(0.01 if isBounded else 0.05)}
    if isMultiplied:
        values |= {"t": np.float32(0.007), "zt": inputs(1)}
    nodes = [("DequantizeLinear", ["x", "s", "z"], "f"),
             (activation, ["f"], "a")]
    if isMultiplied:
        nodes += [("QuantizeLinear", ["a", "t", "zt"], "q"),
                  ("DequantizeLinear", ["q", "t", "zt"], "b"),
                  ("Mul", ["f", "b"], "m")]
    nodes.append(("QuantizeLinear", ["m" if isMultiplied else "a", "u", "zu"],
                  "y"))
    kind = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        [helper.make_node(op, operands, [result])
         for op, operands, result in nodes], "activation",
        [helper.make_tensor_value_info("x", kind(np.dtype(inputs)),
                                       [ROWS, COLUMNS])],
        [helper.make_tensor_value_info("y", kind(np.dtype(outputs)), None)],
        [numpy_helper.from_array(np.array(array), name)
         for name, array in values.items()])
    onnx.save(helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)


def agrees(inputs, outputs, activation, isMultiplied):
    with scratch() as folder:
        path = f"{folder}/model.onnx"
        model(path, inputs, outputs, activation, isMultiplied)
        x = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS).astype(inputs)
        options = onnxruntime.SessionOptions()
        # It has tables of its own, which round otherwise.
        options.graph_optimization_level = (
            onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
        session = onnxruntime.InferenceSession(
            path, options, providers=["CPUExecutionProvider"])
        y, = session.run(None, {"x": x})
        if len(np.unique(y)) < 16:
            raise Failed("too few numbers come out to tell much")
        np.savez(f"{folder}/x.npz", x=x)
        np.savez(f"{folder}/y.npz", y=y)
        for layout in "--tp=1", "--dp=2":
            run(tool("axopt"), path, layout, "-o", f"{folder}/plan.mlir")
            run(tool("axrun"), f"{folder}/plan.mlir", "--inputs",
                f"{folder}/x.npz", "--expect", f"{folder}/y.npz", "--rtol=0",
                "--atol=0")
            commands = run(tool("axrun"), f"{folder}/plan.mlir",
                           "--list-commands").stdout
            if "look_up" not in commands:
                raise Failed(f"nothing is looked up:\n{commands}")


def cases(every):
    for activation in "Sigmoid", "Tanh", "Softplus", "Mish", "HardSwish":
        for inputs in SIGNED, UNSIGNED:
            for outputs in SIGNED, UNSIGNED:
                for isMultiplied in False, True:
                    name = "-".join([activation, inputs.__name__,
                                     outputs.__name__]
                                    + ["times"] * isMultiplied)
                    yield (name, agrees, inputs, outputs, activation,
                           isMultiplied)
