# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs that are valid though odd: they compile, and give the right numbers."""
import numpy as np
import onnx
from onnx import TensorProto, helper

from _onnx_text import model
from cases import Failed, run, scratch, tool


def compare(made, inputs, wanted, *flags):
    """What axopt and axrun make of a model."""
    with scratch() as folder:
        with open(f"{folder}/model.onnx", "wb") as file:
            file.write(made.SerializeToString())
        run(tool("axopt"), f"{folder}/model.onnx", "--quiet",
            "-o", f"{folder}/plan.mlir", *flags)
        np.savez(f"{folder}/in.npz", **inputs)
        run(tool("axrun"), f"{folder}/plan.mlir", "--inputs",
            f"{folder}/in.npz", "--output", f"{folder}/out.npz")
        with np.load(f"{folder}/out.npz") as out:
            if not np.allclose(out["y"], wanted, rtol=1e-5):
                raise Failed(f"{out['y']}, not {wanted}")


X = np.arange(6, dtype=np.float32).reshape(2, 3) - 2


def repeatedOutput():
    """A tensor that is two results of a module."""
    made = model("float[2,3] x", "float[2,3] y, float[2,3] z, float[2,3] y",
                 "y = Neg(x)\nz = Abs(y)")
    compare(made, {"x": X}, -X)


def functionAtOtherSet():
    """A function that is written at operator set 11 in a model of 21: its
    Softmax takes all dimensions from the axis on as one."""
    softmax = helper.make_node("Softmax", ["x"], ["y"], axis=0)
    function = helper.make_function("l", "f", ["x"], ["y"], [softmax],
                                    [helper.make_opsetid("", 11)])
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3])
            for n in "xy")
    node = helper.make_node("f", ["x"], ["y"], domain="l")
    made = helper.make_model(
        helper.make_graph([node], "g", [x], [y]), ir_version=10,
        opset_imports=[helper.make_opsetid("", 21),
                       helper.make_opsetid("l", 1)], functions=[function])
    compare(made, {"x": X}, np.exp(X) / np.exp(X).sum())


def functionsOfDefaults(inner, given):
    """What a call does not say of an attribute is its function's to say, also
    where that function is called by one of another operator set, or by one that
    was not told either."""
    def function(name, node, opset, parameters=(), defaults=()):
        return helper.make_function(
            "l", name, ["x"], ["y"], [node], [
                helper.make_opsetid("", opset), helper.make_opsetid("l", 1)],
            attributes=list(parameters), attribute_protos=[
                helper.make_attribute(key, value) for key, value in defaults])

    def calling(name, domain, **references):
        node = helper.make_node(name, ["x"], ["y"], domain=domain)
        for key, value in references.items():
            node.attribute.append(onnx.AttributeProto(
                name=key, ref_attr_name=value, type=onnx.AttributeProto.FLOAT))
        return node

    leaky = function("leaky", calling("LeakyRelu", "", alpha="slope"), 21,
                     defaults=[("slope", 0.5)])
    outer = function("outer", calling("leaky", "l", slope="s"), inner,
                     parameters=["s"])
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3])
            for n in "xy")
    node = helper.make_node("outer", ["x"], ["y"], domain="l", **given)
    made = helper.make_model(
        helper.make_graph([node], "g", [x], [y]), ir_version=10,
        opset_imports=[helper.make_opsetid("", 21),
                       helper.make_opsetid("l", 1)], functions=[leaky, outer])
    compare(made, {"x": X}, np.where(X < 0, given.get("s", 0.5) * X, X))


def unsorted(nested):
    """Nodes before those whose outputs they read, also by way of a branch."""
    if nested:
        nodes = ("y = If(c) <then_branch = t () => (float[2,3] u) { "
                 "u = Neg(v)\n v = Relu(a) }, else_branch = e () => "
                 "(float[2,3] w) { w = Relu(x) }>\na = Exp(x)")
        made = model("float[2,3] x", "float y", nodes, "bool c = {1}")
    else:
        made = model("float[2,3] x", "float y",
                     "y = Neg(b)\nb = Relu(a)\na = Exp(x)")
    compare(made, {"x": X}, -np.exp(X))


def namesOfBodies(names):
    """What a graph in a node calls as one outside is called, its own or
    another's."""
    result, carried = names
    body = (f"b (int64 i, bool c, float[2,3] {carried}) => (bool d, float[2,3] "
            f"{result}) {{ d = Identity(c)\n {result} = Add({carried}, x) }}")
    made = model("float[2,3] x", "float y",
                 f"o = Loop(m, , x) <body = {body}>\nh = Neg(o)\n"
                 "y = If(k) <then_branch = t () => (float[2,3] y) "
                 "{ y = Neg(h) }, else_branch = e () => (float[2,3] y) "
                 "{ y = Relu(h) }>", "int64 m = {2}, bool k = {1}")
    compare(made, {"x": X}, 3 * X)


def oldSlopes(kind):
    """Slopes of operator set 6 that later sets take in the same way."""
    nodes, initializers = {
        "of a matrix": ("y = PRelu(x, s)", "float[3] s = {1, 2, 3}"),
        "of one element": ("y = PRelu(x, s)", "float[1] s = {2}"),
        "of a Constant": ("s = Constant<value = float[1] {2}>()\n"
                          "h = Relu(x)\nd = Sub(x, h)\nn = PRelu(d, s)\n"
                          "y = Add(n, h)", "")}[kind]
    made = model("float[2,3] x", "float y", nodes, initializers, opset=6)
    slopes = np.array([1, 2, 3] if kind == "of a matrix" else 2, np.float32)
    compare(made, {"x": X}, np.where(X < 0, slopes * X, X))


def oldIR(version):
    """IR version 3 wants initializers to be inputs; nobody obeys."""
    made = model("float[2,3] x", "float y", "y = Add(x, w)",
                 "float[3] w = {1, 2, 3}", opset=9)
    made.ir_version = version
    compare(made, {"x": X}, X + np.array([1, 2, 3], np.float32))


def operatorSet6():
    """Older sets than 7 are converted: here Add broadcasts by an attribute."""
    made = model("float[2,3] x, float[2] z", "float y",
                 "y = Add<axis=0, broadcast=1>(x, z)", opset=6)
    made.ir_version = 3
    z = np.array([10, 20], np.float32)
    compare(made, {"x": X, "z": z}, X + z[:, None])


def repeatedAxes():
    made = model("float[2,3] x", "float y", "y = ReduceSum(x, a)",
                 "int64[2] a = {1, -1}")
    compare(made, {"x": X}, X.sum(1, keepdims=True))


def untypedOutput():
    made = model("float[2,3] x", "float y", "y = Relu(x)")
    made.graph.output[0].ClearField("type")
    made.graph.ClearField("name")
    compare(made, {"x": X}, np.maximum(X, 0))


def emptyDimension():
    """A cache of no past."""
    made = model("float[2,past] p, float[2,3] x", "float y",
                 "a = Concat<axis=1>(p, x)\ny = Neg(a)")
    compare(made, {"p": X[:, :0], "x": X}, -X, "--dim=past=0")


def otherName():
    """`ai.onnx` is the default domain's other name."""
    made = model("float[2,3] x", "float y", "y = Relu(x)")
    made.opset_import[0].domain = "ai.onnx"
    made.graph.node[0].domain = "ai.onnx"
    compare(made, {"x": X}, np.maximum(X, 0))


def cases(every):
    yield "output that is listed twice", repeatedOutput
    yield "function of another operator set", functionAtOtherSet
    for inner in 21, 13:
        for given in {}, {"s": 0.25}:
            yield f"defaults of functions: {inner} {given}", \
                functionsOfDefaults, inner, given
    yield "unsorted", unsorted, False
    yield "unsorted branch", unsorted, True
    for names in ("o", "p"), ("p", "h"), ("o", "h"), ("y", "o"):
        yield f"names of bodies: {' '.join(names)}", namesOfBodies, names
    for kind in "of a matrix", "of one element", "of a Constant":
        yield f"slopes of set 6 {kind}", oldSlopes, kind
    yield "IR version 3", oldIR, 3
    yield "IR version 1", oldIR, 1
    yield "operator set 6", operatorSet6
    yield "repeated axes", repeatedAxes
    yield "untyped output", untypedOutput
    yield "ai.onnx", otherName
    yield "a dimension of 0", emptyDimension
