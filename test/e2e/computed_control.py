# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Branches and loops whose conditions are computed: plans do both branches, and
all steps that there may be, and choose. Beside onnxruntime, whichever is taken,
on one rank and on several."""
import numpy as np
import onnx
import onnxruntime

from _onnx_text import model
from cases import Failed, run, scratch, tool

WEIGHTS = {"w": np.random.default_rng(1).standard_normal((8, 8)) / 2,
           "u": np.random.default_rng(2).standard_normal((8, 8)) / 2}
CONSTANTS = ("float zero = {0}, float[1] bound = {20}, int64 six = {6}, "
             "float[1] one = {1}, int64 last = {4}, int64 next = {1}, "
             "int64 start = {0}, bool yes = {1}, int64 many = {1000}")
TEXT = ", ".join(
    [CONSTANTS] + ["float[8,8] {} = {{{}}}".format(
        name, ", ".join(f"{number:.6f}" for number in array.flatten()))
        for name, array in WEIGHTS.items()])
BRANCHES = """<then_branch = t () => (float[4,8] a) {
    h = MatMul(x, w)
    a = Relu(h)
}, else_branch = e () => (float[4,8] b) { b = MatMul(x, u) }>"""
STEP = """{
    h = MatMul(v, w)
    grown = Add(h, v)
    square = Mul(grown, grown)
    sum = ReduceSum<keepdims=0>(square)
    """

MODELS = {
    "branch": f"""s = ReduceSum<keepdims=0>(x)
c = Greater(s, zero)
y = If(c) {BRANCHES}""",
    # As one bool of one dimension, and branches in branches; what is outside of
    # them is the other's result.
    "nested": f"""s = ReduceSum<keepdims=0>(x)
k = Add(s, one)
c = Greater(k, zero)
g = ReduceMax<keepdims=0>(x)
d = Less(g, one)
y, z = If(c) <then_branch = t () => (float[4,8] p, float n) {{
    p = If(d) {BRANCHES}
    n = Identity(s)
}}, else_branch = e () => (float[4,8] q, float m) {{
    q = Identity(x)
    m = Neg(s)
}}>""",
    "shapes of one number": """s = ReduceSum<keepdims=0>(x)
c = Greater(s, zero)
z = If(c) <then_branch = t () => (float[1] p) { p = Add(s, one) },
           else_branch = e () => (float[1] q) { q = Neg(s) }>
y = Mul(x, z)""",
    "loop": f"""y = Loop(six, , x) <body = b (int64 i, bool goes, float[4,8] v) =>
(bool on, float[4,8] grown) {STEP} on = Less(sum, bound) }}>""",
    # It may not begin.
    "begins by data": f"""t = ReduceSum<keepdims=0>(x)
c = Greater(t, zero)
y = Loop(six, c, x) <body = b (int64 i, bool goes, float[4,8] v) =>
(bool on, float[4,8] grown) {STEP} on = Less(sum, bound) }}>""",
    # It ends by data, or with a step that is known, whichever comes first; its
    # number decides shapes.
    "counted": f"""y, z = Loop(many, yes, x, start) <body = b (int64 i, bool goes,
float[4,8] v, int64 count) => (bool on, float[4,8] grown, int64 after) {STEP}
    shape = Shape<end=1>(v)
    after = Add(count, next)
    below = Less(after, last)
    small = Less(sum, bound)
    on = And(small, below)
}}>""",
    "branch in loop": f"""y = Loop(six, , x) <body = b (int64 i, bool goes,
float[4,8] v) => (bool on, float[4,8] r) {STEP}
    on = Less(sum, bound)
    r = If(on) <then_branch = t () => (float[4,8] p) {{ p = Identity(grown) }},
                else_branch = e () => (float[4,8] q) {{ q = Neg(grown) }}>
}}>""",
}
OUTPUTS = {"nested": "float[4,8] y, float z", "counted": "float[4,8] y, int64 z"}
# Sums below and above zero; loops of one step, of some, and of all.
INPUTS = [scale * np.random.default_rng(3).standard_normal((4, 8)).astype(
    np.float32) + shift for scale, shift in
    ((1, 0.5), (1, -0.5), (3, 2), (0.01, 0), (0.3, 0), (0.1, -2))]


def agrees(name, *layout):
    with scratch() as folder:
        path = f"{folder}/model.onnx"
        onnx.save(model("float[4,8] x", OUTPUTS.get(name, "float[4,8] y"),
                        MODELS[name], TEXT, opset=18), path)
        session = onnxruntime.InferenceSession(
            path, providers=["CPUExecutionProvider"])
        run(tool("axopt"), path, "--quiet", *layout, "-o", f"{folder}/plan.mlir")
        for x in INPUTS:
            wanted = session.run(None, {"x": x})
            np.savez(f"{folder}/x.npz", x=x)
            np.savez(f"{folder}/y.npz", **dict(zip("yz", wanted)))
            run(tool("axrun"), f"{folder}/plan.mlir", "--inputs",
                f"{folder}/x.npz", "--expect", f"{folder}/y.npz",
                "--rtol=1e-4", "--atol=1e-4")


def trains(name, message):
    """What is not taken would have gradients that are no numbers."""
    with scratch() as folder:
        made = model("float[4,8] x", "float[4,8] y", MODELS[name], TEXT, opset=18)
        onnx.save(made, f"{folder}/model.onnx")
        done = run(tool("axopt"), f"{folder}/model.onnx", "--train",
                   "--loss=mse(y,target)", "-o", f"{folder}/plan.mlir", expect=4)
        if message not in done.stderr:
            raise Failed(done.stderr)


def cases(every):
    for name in MODELS:
        for layout in ((), ("--tp=2",), ("--dp=2",), ("--pp=2",)):
            yield "".join([name, *layout]), agrees, name, *layout
    yield ("training of a branch", trains, "branch",
           "decides which branch there is (both are done in predictions only), "
           "so it must be known")
    yield ("training of a loop", trains, "loop",
           "only loops whose length is known when compiling train")
