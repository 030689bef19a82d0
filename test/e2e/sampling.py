# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that read between elements: the same on every layout, with
gradients, and indices that there are not are errors."""
import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

from _onnx_text import model, refuse
from _operator_case import model_of, random
from _operators import cases_of
from cases import Failed, run, scratch, tool
from train import states

OPERATORS = "Col2Im", "DeformConv", "GridSample", "MaxUnpool", "RoiAlign"
LAYOUTS = "--dp=2", "--tp=2", "--dp=2 --tp=2"


def layouts(op, layout):
    """All cases of the newest operator set in one plan: as on one rank."""
    made = cases_of(op, 22 if op != "Col2Im" else 18)
    with scratch() as folder:
        model, feeds = f"{folder}/model.onnx", {}
        with open(model, "wb") as file:
            file.write(model_of(made, 22).SerializeToString())
        for n, case in enumerate(made):
            feeds |= case.feeds(f"n{n}_")
        np.savez(f"{folder}/in.npz", **feeds)

        def outputs(*flags):
            run(tool("axopt"), model, *flags, "--quiet", "-o",
                f"{folder}/plan.mlir")
            run(tool("axrun"), f"{folder}/plan.mlir", "--inputs",
                f"{folder}/in.npz", "--output", f"{folder}/out.npz")
            with np.load(f"{folder}/out.npz") as out:
                return dict(out)

        whole, split = outputs(), outputs(*layout.split())
        for name, value in whole.items():
            if not np.allclose(value, split[name], rtol=1e-5, atol=1e-5):
                raise Failed(f"{name} differs: {split[name]}, not {value}")


def places(shape, size):
    """Grid numbers of places that are a third away from the nearest element,
    so that small steps cross no border."""
    choices = np.random.default_rng(3).integers(-1, size, shape) + 0.36
    return ((2 * choices + 1) / size - 1).astype(np.float32)


# Operator, attributes, weights by input, other inputs.
GRADIENTS = {
    "GridSample linear": ("GridSample", {}, {
        0: random((2, 3, 5, 5)), 1: places((2, 4, 3, 2), 5)}, {}),
    "GridSample cubic": ("GridSample", {
        "mode": "cubic", "padding_mode": "reflection"}, {
        0: random((2, 3, 5, 5)), 1: places((2, 4, 3, 2), 5)}, {}),
    "GridSample border": ("GridSample", {
        "padding_mode": "border", "align_corners": 1}, {
        0: random((2, 3, 5, 5))}, {1: places((2, 4, 3, 2), 5)}),
    "DeformConv": ("DeformConv", {}, {
        0: random((2, 2, 5, 5)), 1: random((3, 2, 3, 3)),
        2: (places((2, 18, 3, 3), 3) * 1.5 - 0.5).astype(np.float32)}, {}),
    "RoiAlign": ("RoiAlign", {
        "sampling_ratio": 2, "output_height": 2, "output_width": 2}, {
        0: random((2, 3, 6, 6))}, {
        1: np.array([[0, 0, 5, 4], [1, 2, 3, 5]], np.float32),
        2: np.array([1, 0])}),
    "MaxUnpool": ("MaxUnpool", {"kernel_shape": [2], "strides": [2]}, {
        0: random((2, 2, 3))}, {
        1: np.array([[[0, 3, 4], [7, 8, 11]], [[12, 14, 17], [19, 20, 22]]])}),
    "Col2Im": ("Col2Im", {}, {0: random((2, 12, 6))}, {
        1: np.array([3, 4]), 2: np.array([2, 2])}),
}


def gradient(op, attributes, weights, others):
    """A step of gradient descent of one beside differences of the loss."""
    values = weights | others
    names = [f"w{i}" for i in sorted(values)]
    nodes = [helper.make_node(op, names, ["made"], **attributes),
             # Batches have inputs.
             helper.make_node("Mul", ["made", "x"], ["y"])]

    opset = 16 if op == "RoiAlign" else 22  # Newer ones onnxruntime lacks.

    def built(values):
        graph = helper.make_graph(
            nodes, "g",
            [helper.make_tensor_value_info("x", 1, [2] + [1] * (rank - 1))],
            [helper.make_tensor_value_info("y", 1, None)],
            [numpy_helper.from_array(value, f"w{i}")
             for i, value in values.items()])
        return helper.make_model(graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", opset)]).SerializeToString()

    rank = 4 if op != "MaxUnpool" else 3
    x = np.array([1.5, -0.5], np.float32).reshape([2] + [1] * (rank - 1))

    def loss(values):
        session = onnxruntime.InferenceSession(
            built(values), providers=["CPUExecutionProvider"])
        return np.mean(session.run(None, {"x": x})[0].astype(np.float64) ** 2)

    shape = onnxruntime.InferenceSession(built(values)).run(
        None, {"x": x})[0].shape
    with scratch() as folder:
        with open(f"{folder}/model.onnx", "wb") as file:
            file.write(built(values))
        np.savez(f"{folder}/data.npz", x=x, target=np.zeros(shape, np.float32))
        run(tool("axopt"), f"{folder}/model.onnx", "--train",
            "--loss=mse(y,target)", "--optimizer=sgd(lr=1)", "--quiet",
            *[f"--trainable=w{i}" for i in weights], "-o",
            f"{folder}/plan.mlir")
        run(tool("axrun"), f"{folder}/plan.mlir", "--data",
            f"{folder}/data.npz", "--steps=1", "--save-weights",
            f"{folder}/after.safetensors")
        after = dict(states(f"{folder}/after.safetensors"))
        found = {i: weights[i] - after[f"w{i}"] for i in weights}
    for i, value in weights.items():
        for seed in range(3):
            way = random(value.shape, seed=20 + seed)
            step = np.float32(2e-3)
            slope = (loss(values | {i: value + step * way})
                     - loss(values | {i: value - step * way})) / (2 * step)
            ours = np.sum(found[i].astype(np.float64) * way)
            if abs(slope - ours) > 2e-2 * abs(slope) + 1e-3:
                raise Failed(f"input {i}: slope {ours}, not {slope}")


def unknownPlace(layout):
    """An index of another image is none of this one's."""
    node = helper.make_node("MaxUnpool", ["x", "i"], ["y"], name="unpool",
                            kernel_shape=[2], strides=[2])
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", 1, [2, 2, 2]),
                      helper.make_tensor_value_info("i", 7, [2, 2, 2])],
        [helper.make_tensor_value_info("y", 1, None)])
    with scratch() as folder:
        with open(f"{folder}/model.onnx", "wb") as file:
            file.write(helper.make_model(graph, opset_imports=[
                helper.make_opsetid("", 22)], ir_version=10)
                .SerializeToString())
        run(tool("axopt"), f"{folder}/model.onnx", *layout.split(), "--quiet",
            "-o", f"{folder}/plan.mlir")
        np.savez(f"{folder}/in.npz", x=np.ones((2, 2, 2), np.float32),
                 i=np.array([[[0, 2], [4, 1]], [[8, 10], [12, 14]]]))
        done = run(tool("axrun"), f"{folder}/plan.mlir", "--inputs",
                   f"{folder}/in.npz", "--output", f"{folder}/out.npz",
                   expect=8)
        if "'unpool'" not in done.stderr or \
                "is out of range of a dimension of 4" not in done.stderr:
            raise Failed(done.stderr)


ROI = "float[1,1,4,4] x, float[2,4] r, int64[2] b"
# Inputs, nodes, initializers, message, exit code.
REFUSED = {
    "GridSample rank": ("float[1,2,4,4] x, float[1,3,3,3] g",
                        "y = GridSample(x, g)", "",
                        "grid [1x3x3x3] does not fit X [1x2x4x4]", 3),
    "GridSample of integers": ("int32[1,2,4,4] x, float[1,3,3,2] g",
                               "y = GridSample(x, g)", "",
                               "interpolation of integers", 4),
    "GridSample taps": ("float[1,1,1,1,1,1,1,1,1] x, "
                        "float[1,1,1,1,1,1,1,1,7] g",
                        "y = GridSample<mode=\"cubic\">(x, g)", "",
                        "interpolation in so many dimensions", 4),
    "RoiAlign": ("float[1,1,4,4] x, float[2,4] r, int64[3] b",
                 "y = RoiAlign(x, r, b)", "",
                 "and batch_indices do not fit", 3),
    "RoiAlign samples": (ROI, "y = RoiAlign(x, k, b)",
                         "float[2,4] k = {0,0,1,9000, 0,0,9000,1}",
                         "so many samples in a bin", 4),
    "DeformConv ranks": ("float[1,1,4,4] x, float[1,1,2] w, float[1,8,3,3] o",
                         "y = DeformConv(x, w, o)", "",
                         "X, W and offset must have the same rank, at least 3", 3),
    "DeformConv": ("float[1,1,4,4] x, float[1,1,2,2] w, float[1,8,2,2] o",
                   "y = DeformConv(x, w, o)", "",
                   "mask and groups do not fit", 3),
    "DeformConv of nothing": (
        "float[0,1,4,4] x, float[1,1,2,2] w, float[0,8,3,3] o",
        "y = DeformConv(x, w, o)", "", "a convolution of nothing", 4),
    "MaxUnpool": ("float[1,1,4] x, int64[1,1,3] i",
                  "y = MaxUnpool<kernel_shape=[2]>(x, i)", "",
                  "I has not the shape of X", 3),
    "MaxUnpool window": (
        "float[1,1,4] x, int64[1,1,4] i",
        "y = MaxUnpool<kernel_shape=[2], pads=[4,4]>(x, i)", "",
        "kernel_shape, strides and pads do not fit X", 3),
    "MaxUnpool size": (
        "float[1,1,4] x, int64[1,1,4] i",
        "y = MaxUnpool<kernel_shape=[2], strides=[2]>(x, i, s)",
        "int64[3] s = {1, 1, 7}",
        "is smaller than what the window makes, [1x1x8]", 3),
    "Col2Im": ("float[1,4,5] x", "y = Col2Im(x, i, b)",
               "int64[2] i = {3, 3}, int64[2] b = {2, 2}",
               "image_shape, block_shape and attributes do not fit", 3),
}


def refused(inputs, nodes, initializers, message, code):
    refuse(model(inputs, "float y", nodes, initializers, opset=22), message,
           code)


def cases(every):
    for name, row in REFUSED.items():
        yield f"refused: {name}", refused, *row
    for op in OPERATORS:
        for layout in LAYOUTS if every else LAYOUTS[-1:]:
            yield f"{op} {layout}", layouts, op, layout
    for name, case in GRADIENTS.items():
        yield f"gradient of {name}", gradient, *case
    for layout in "", "--dp=2":
        yield f"unknown place {layout}", unknownPlace, layout
