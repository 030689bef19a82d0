# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NaN and infinities reach the outputs that they reach in onnxruntime, through
fused activations and attention too."""
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from cases import Failed, run, scratch, tool


def compare(nodes, values, weights, layouts, poisoned):
    """Each of `poisoned`, a value or weight, has a NaN or an infinity."""
    for name in poisoned:
        for poison in np.nan, np.inf, -np.inf:
            given = {**values, **weights}
            given = {key: value.copy() for key, value in given.items()}
            given[name][(0,) * given[name].ndim] = poison
            graph = helper.make_graph(
                nodes, "g",
                [helper.make_tensor_value_info(
                    key, helper.np_dtype_to_tensor_dtype(value.dtype),
                    value.shape) for key, value in values.items()],
                [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                [numpy_helper.from_array(given[key], key) for key in weights])
            made = helper.make_model(
                graph, opset_imports=[helper.make_opsetid("", 20)],
                ir_version=10)
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            inputs = {key: given[key] for key in values}
            right = onnxruntime.InferenceSession(
                made.SerializeToString(), options).run(None, inputs)[0]
            with scratch() as folder:
                onnx.save(made, f"{folder}/model.onnx")
                np.savez(f"{folder}/in.npz", **inputs)
                for layout in layouts:
                    run(tool("axopt"), f"{folder}/model.onnx", *layout.split(),
                        "--quiet", "-o", f"{folder}/plan.mlir")
                    run(tool("axrun"), f"{folder}/plan.mlir", "--inputs",
                        f"{folder}/in.npz", "--output", f"{folder}/out.npz")
                    got = np.load(f"{folder}/out.npz")["y"]
                    if not np.allclose(got, right, 1e-3, 1e-4, equal_nan=True):
                        raise Failed(
                            f"{poison} in {name}, '{layout}': "
                            f"{np.isnan(got).sum()} NaN, "
                            f"{np.isnan(right).sum()} in onnxruntime")


def numbers(*shape):
    return np.random.default_rng(len(shape)).normal(
        size=shape).astype(np.float32)


def linear(activation):
    compare([helper.make_node("Gemm", ["x", "w", "b"], ["s"]),
             helper.make_node(activation, ["s"], ["y"])],
            {"x": numbers(4, 16)}, {"w": numbers(16, 24), "b": numbers(24)},
            ["", "--tp=2"], ["x", "w", "b"])


def convolution(activation):
    compare([helper.make_node("Conv", ["x", "w", "b"], ["s"]),
             helper.make_node(activation, ["s"], ["y"])],
            {"x": numbers(1, 8, 9, 9)},
            {"w": numbers(16, 8, 3, 3), "b": numbers(16)}, [""],
            ["x", "w", "b"])


def residual():
    """As in ResNets: the activation of a sum."""
    compare([helper.make_node("Conv", ["x", "w"], ["s"]),
             helper.make_node("Add", ["s", "r"], ["t"]),
             helper.make_node("Relu", ["t"], ["y"])],
            {"x": numbers(1, 8, 9, 9), "r": numbers(1, 16, 7, 7)},
            {"w": numbers(16, 8, 3, 3)}, [""], ["x", "r", "w"])


def attention(mask):
    hidden = np.triu(np.ones((7, 7), bool), 1)[None, None]
    values = {key: numbers(1, 2, 7, 16) for key in "qkv"}
    nodes = [helper.make_node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]),
             helper.make_node("MatMul", ["q", "t"], ["s"]),
             helper.make_node("Mul", ["s", "scale"], ["scaled"])]
    scores = "scaled"
    if mask == "added":
        values["m"] = np.where(hidden, -np.inf, 0).astype(np.float32)
        nodes.append(helper.make_node("Add", [scores, "m"], ["masked"]))
        scores = "masked"
    elif mask == "selected":
        values["m"] = ~hidden
        nodes.append(helper.make_node("Where", ["m", scores, "none"],
                                      ["masked"]))
        scores = "masked"
    nodes += [helper.make_node("Softmax", [scores], ["p"], axis=-1),
              helper.make_node("MatMul", ["p", "v"], ["y"])]
    compare(nodes, values, {"scale": np.float32(0.25).reshape(1),
                            "none": np.float32(-np.inf).reshape(1)},
            [""], "qkv")


def cases(every):
    for activation in "Relu", "Gelu", "Sigmoid", "Tanh":
        yield f"linear {activation}", linear, activation
    for activation in "Relu", "Sigmoid", "Tanh":
        yield f"convolution {activation}", convolution, activation
    yield "residual", residual
    for mask in "no", "added", "selected":
        yield f"attention, mask {mask}", attention, mask
