# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which weights training changes, and how, by what a model does with them."""
from functools import partial

import numpy as np
import onnx
from onnx import numpy_helper

from _onnx_text import model
from _training import axrun
from cases import Failed, run, scratch, tool
from train import states

RANDOM = np.random.default_rng(0)


def trained(folder, made, *flags, loss="mse(y,t)", **data):
    """What weights are after a step; only those that it changes."""
    onnx.save(made, f"{folder}/model.onnx")
    np.savez(f"{folder}/data.npz", **data)
    run(tool("axopt"), f"{folder}/model.onnx", "--train", f"--loss={loss}",
        "--optimizer=sgd(lr=0.1)", "--quiet", *flags, "-o", f"{folder}/plan.mlir")
    axrun(f"{folder}/plan.mlir", "--data", f"{folder}/data.npz", "--steps=1",
          "--no-shuffle", "--save-weights", f"{folder}/out.safetensors")
    before = {weight.name: numpy_helper.to_array(weight)
              for weight in made.graph.initializer}
    return {name: value for name, value in states(f"{folder}/out.safetensors")
            if not np.array_equal(value, before[name])}


def slope(view):
    """PyTorch's one slope of an image, to which exporters give dimensions."""
    made = model("float[2,3,4,4] x", "float[2,5,4,4] y",
                 f"c = Conv(x, w)\n{view}\ny = PRelu(c, r)",
                 "float[1] s = {0.25}, int64[2] axes = {1, 2}, "
                 "int64[3] sizes = {1, 1, 1}")
    made.graph.initializer.append(numpy_helper.from_array(
        RANDOM.standard_normal((5, 3, 1, 1), np.float32), "w"))
    with scratch() as folder:
        changed = trained(folder, made, "--clip-norm=1",
                          x=RANDOM.standard_normal((2, 3, 4, 4), np.float32),
                          t=RANDOM.standard_normal((2, 5, 4, 4), np.float32))
        if set(changed) != {"s", "w"}:
            raise Failed(f"changed: {set(changed)}")


def spectral(original, u, v):
    """The vectors of a spectral norm are found, not trained; a weight that is
    called like one, with nothing beside it, is."""
    made = model("float[4,3] x", "float[4,5] y",
                 "p = MatMul(W, V)\nn = Mul(U, p)\nq = ReduceSum<keepdims=0>(n)\n"
                 "k = Div(W, q)\nr = Transpose<perm=[1, 0]>(k)\n"
                 "h = MatMul(x, r)\ny = MatMul(h, other_u)")
    for name, shape in (original, (5, 3)), (u, (5,)), (v, (3,)), \
            ("other_u", (5, 5)):
        made.graph.initializer.append(numpy_helper.from_array(
            1 + RANDOM.random(shape, np.float32), name))
    for node in made.graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = {"W": original, "U": u, "V": v}.get(name, name)
    with scratch() as folder:
        changed = trained(folder, made,
                          x=RANDOM.standard_normal((4, 3), np.float32),
                          t=RANDOM.standard_normal((4, 5), np.float32))
        if set(changed) != {original, "other_u"}:
            raise Failed(f"changed: {set(changed)}")


def twice(*flags):
    """A norm that is called twice, as of both images of a pair: the second call
    goes on from what the first left of the statistics."""
    call = "BatchNormalization<training_mode=1, momentum=0.75>"
    made = model("float[8,3] x", "float[8,3] y",
                 f"a, m1, v1 = {call}(x, scale, bias, mean, var)\n"
                 "h = Add(x, a)\n"
                 f"y, m2, v2 = {call}(h, scale, bias, mean, var)",
                 "float[3] scale = {1, 2, 3}, float[3] bias = {0, 1, 2}, "
                 "float[3] mean = {0.5, 1, 2}, float[3] var = {1, 2, 0.5}")
    x = RANDOM.standard_normal((8, 3), np.float32)
    mean, var = np.array([0.5, 1, 2]), np.array([1, 2, 0.5])
    a = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) * [1, 2, 3] + [0, 1, 2]
    for batch in x, x + a:
        mean = 0.75 * mean + 0.25 * batch.mean(0)
        var = 0.75 * var + 0.25 * batch.var(0, ddof=1)
    with scratch() as folder:
        changed = trained(folder, made, *flags, x=x,
                          t=RANDOM.standard_normal((8, 3), np.float32))
        for name, wanted in ("mean", mean), ("var", var):
            if not np.allclose(changed[name], wanted, rtol=1e-5):
                raise Failed(f"{name}: {changed[name]}, not {wanted}")


def ofClasses():
    """How much each class counts in a loss is nothing to learn."""
    made = model("float[4,3] x, int64[4] l", "float loss",
                 "y = MatMul(x, w)\nloss = SoftmaxCrossEntropyLoss(y, l, c)",
                 "float[3,2] w = {1, 2, 3, 4, 5, 6}, float[2] c = {1, 3}")
    with scratch() as folder:
        changed = trained(folder, made, loss="graph(loss,mean)",
                          x=RANDOM.standard_normal((4, 3), np.float32),
                          l=np.array([0, 1, 1, 0]))
        if set(changed) != {"w"}:
            raise Failed(f"changed: {set(changed)}")


def cases(every):
    yield "weights of classes", ofClasses
    for view in "r = Unsqueeze(s, axes)", "r = Reshape(s, sizes)":
        yield f"a slope that is seen as another shape: {view}", partial(slope, view)
    for names in (("a.weight_orig", "a.weight_u", "a.weight_v"),
                  ("a.parametrizations.weight.original",
                   "a.parametrizations.weight.0._u",
                   "a.parametrizations.weight.0._v")):
        yield f"vectors of a spectral norm: {names[1]}", partial(spectral, *names)
    for flags in [], ["--dp=2"], ["--tp=3"]:
        yield f"a norm that is called twice {' '.join(flags)}", partial(twice, *flags)
