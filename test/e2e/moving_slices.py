# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slices that begin where data say, and are as long whatever they are: beside
onnxruntime on every layout; where less is left, which would be another shape, the
run ends."""
import numpy as np
import onnx
import onnxruntime

from _onnx_text import model
from cases import Failed, run, scratch, tool

LAYOUTS = "", "--tp=2", "--dp=2", "--pp=2"
HEAD = "h = MatMul(x, w)\n"
# What is behind HEAD, of h [6,8,8], `at` [1] and `both` [2].
FORMS = {
    "one": "end = Add(at, three)\ns = Slice(h, at, end, axis)\ny = Relu(s)",
    "two": "end = Add(sizes, both)\ns = Slice(h, both, end, axes)\ny = Relu(s)",
    # As JAX has it: starts are clipped, and some are known.
    "clipped": "c = Clip(at, nothing, five)\nlast = Add(c, three)\n"
               "starts = Concat<axis=0>(zero, c)\n"
               "ends = Concat<axis=0>(six, last)\n"
               "s = Slice(h, starts, ends, first_axes)\ny = Relu(s)",
    "of i32": "i = Cast<to=6>(at)\nend = Add(i, three32)\n"
              "s = Slice(h, i, end, axis32)\ny = Relu(s)",
}
INITIALIZERS = (
    "int64[1] three = {3}, int32[1] three32 = {3}, int64[1] axis = {1}, "
    "int32[1] axis32 = {1}, int64[2] sizes = {2, 5}, int64[2] axes = {-1, 1}, "
    "int64 nothing = {0}, int64 five = {5}, int64[1] zero = {0}, "
    "int64[1] six = {6}, int64[2] first_axes = {0, 1}")


def made(name):
    starts = "int64[2] both" if name == "two" else "int64[1] at"
    graph = model(f"float[6,8,8] x, {starts}", "float y", HEAD + FORMS[name], INITIALIZERS, opset=18)
    graph.graph.output[0].ClearField("type")
    graph.graph.initializer.append(onnx.numpy_helper.from_array(
        np.random.default_rng(0).standard_normal((8, 8), np.float32), "w"))
    return graph


def feeds(name, first, second):
    x = np.random.default_rng(1).standard_normal((6, 8, 8), np.float32)
    starts = {"both": [first, second]} if name == "two" else {"at": [first]}
    return {"x": x, **{key: np.array(value) for key, value in starts.items()}}


def agrees(name, layout):
    with scratch() as folder:
        graph = made(name)
        onnx.save(graph, f"{folder}/model.onnx")
        run(tool("axopt"), f"{folder}/model.onnx", "--quiet", *layout.split(),
            "--unbatched=" + ("both" if name == "two" else "at"), "-o", f"{folder}/plan.mlir")
        session = onnxruntime.InferenceSession(graph.SerializeToString())
        for first, second in (0, 0), (5, 3), (3, 1):
            given = feeds(name, first, second)
            np.savez(f"{folder}/x.npz", **given)
            np.savez(f"{folder}/y.npz", y=session.run(None, given)[0])
            run(tool("axrun"), f"{folder}/plan.mlir", "--inputs",
                f"{folder}/x.npz", "--expect", f"{folder}/y.npz")


def outside(first):
    """Of three places from there not all are there."""
    with scratch() as folder:
        onnx.save(made("one"), f"{folder}/model.onnx")
        run(tool("axopt"), f"{folder}/model.onnx", "--quiet", "-o",
            f"{folder}/plan.mlir")
        np.savez(f"{folder}/x.npz", **feeds("one", first, 0))
        done = run(tool("axrun"), f"{folder}/plan.mlir", "--inputs",
                   f"{folder}/x.npz", "--output", f"{folder}/o.npz", expect=8)
        if "is out of range" not in done.stderr:
            raise Failed(done.stderr)


def refused(nodes, start):
    """Its length is another with some starts."""
    with scratch() as folder:
        graph = model("float[6] x, int64[1] at", "float y", nodes,
                      "int64[1] two = {2}", opset=18)
        onnx.save(graph, f"{folder}/model.onnx")
        done = run(tool("axopt"), f"{folder}/model.onnx", "-o",
                   f"{folder}/plan.mlir", expect=4)
        if f"input 'starts' ({start}) decides shapes" not in done.stderr:
            raise Failed(done.stderr)


def cases(every):
    for name in FORMS:
        for layout in LAYOUTS:
            yield f"{name} {layout}", agrees, name, layout
    for first in 6, -1:
        yield f"outside {first}", outside, first
    yield "of any length", refused, \
        "end = Mul(at, two)\ny = Slice(x, at, end)", "at"
    yield "of a start that is cut", refused, \
        "b = Cast<to=9>(at)\ns = Cast<to=7>(b)\nend = Add(at, two)\n" \
        "y = Slice(x, s, end)", "s"
