# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What axopt says about models and their data that cannot be."""
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from _onnx_text import model, refuse

from cases import MODELS, run, scratch, tool

ODD = MODELS.parent / "data/odd-models"


def _values(*names):
    return [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in names]


def ifs(node, count, prefix):
    """`node`, which gives PREFIX0, in If in If in If ...; gives PREFIXcount."""
    for i in range(count):
        then = helper.make_graph([node], "then", [], _values(f"{prefix}{i}"))
        other = helper.make_graph([helper.make_node("Relu", ["x"], ["u"])],
                                  "else", [], _values("u"))
        node = helper.make_node("If", ["c"], [f"{prefix}{i + 1}"],
                                then_branch=then, else_branch=other)
    return node


def nested(count, functionCount=0):
    """Ifs around a function of Ifs."""
    inner = helper.make_node("f", ["x", "c"], ["t0"], domain="l")
    graph = helper.make_graph(
        [ifs(inner, count, "t")], "g", _values("x"), _values(f"t{count}"),
        [helper.make_tensor("c", TensorProto.BOOL, [], [1])])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("l", 1)]
    function = helper.make_function(
        "l", "f", ["x", "c"], [f"s{functionCount}"],
        [ifs(helper.make_node("Relu", ["x"], ["s0"]), functionCount, "s")],
        opsets)
    return helper.make_model(graph, opset_imports=opsets,
                             functions=[function])


def tensor(name="w", type=TensorProto.FLOAT, dims=(4,), **fields):
    """An initializer or attribute, with any field as given."""
    made = TensorProto(name=name, data_type=type, dims=dims)
    for field, value in fields.items():
        if isinstance(value, (list, tuple)):
            getattr(made, field).extend(value)
        else:
            setattr(made, field, value)
    return made


def external(location="w.bin", name="w", dims=(4,), type=TensorProto.FLOAT,
             **entries):
    made = tensor(name, type, dims, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        made.external_data.add(key=key, value=value)
    return made


def withWeights(*weights, nodes="y = Relu(x)", inputs="float[4] x", **parts):
    made = model(inputs, "float y", nodes, **parts)
    made.graph.initializer.extend(weights)
    return made


def constant(value, name="value"):
    made = model("float[4] x", "float y", "y = Constant<value_int=1>()")
    made.graph.node[0].ClearField("attribute")
    made.graph.node[0].attribute.append(helper.make_attribute(name, value))
    return made


def callWith(**attributes):
    """A function whose Softmax has the axis of the call."""
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("l", 1)]
    softmax = helper.make_node("Softmax", ["x"], ["y"])
    softmax.attribute.add(name="axis", ref_attr_name="axis",
                          type=onnx.AttributeProto.INT)
    function = helper.make_function("l", "f", ["x"], ["y"], [softmax], opsets,
                                    ["axis"])
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 3])
            for n in "xy")
    node = helper.make_node("f", ["x"], ["y"], domain="l", **attributes)
    return helper.make_model(helper.make_graph([node], "g", [x], [y]),
                             ir_version=10, opset_imports=opsets,
                             functions=[function])


def sparse(values, indices, dims):
    return constant(onnx.SparseTensorProto(values=values, indices=indices,
                                           dims=dims), "sparse_value")


def i64s(name, *values):
    return tensor(name, TensorProto.INT64, (len(values),), int64_data=values)


def floats(name, *values):
    return tensor(name, dims=(len(values),), float_data=values)


def twoGraphs():
    made = model("float[4] x", "float y", "y = Relu(x)").SerializeToString()
    return made + made


def wholeModels():
    """Name, model or bytes, message, exit code, flags."""
    relu = model("float[N,4] x, float[N] z", "float y", "y = Relu(x)")
    yield "--shape symbols", relu, ("dimension 'N' is 2, but the shape given "
                                    "for input 'z' says 3"), 2, [
        "--shape=x=2x4", "--shape=z=3"]
    yield "--shape", relu, ("input 'x' has shape [Nx4], the shape given is "
                            "[2x5]: the file fixes dimension 1; export it "
                            "again with a dynamic one"), 2, ["--shape=x=2x5"]
    yield "--shape of unnamed", model("float[?,3,?] x", "float y",
                                      "y = Relu(x)"), \
        "input 'x': give --shape x=Ax3xB", 2, []
    yield "--dim name", relu, ("--dim M: the model has no such symbolic "
                               "dimension; it has N"), 2, ["--dim=M=3"]
    yield "--shape name", relu, ("--shape v: the model has no such input; it "
                                 "has x, z"), 2, ["--shape=v=3"]
    yield "--const", model("float[4] x", "float y", "y = Relu(x)"), \
        "--const x: the input is f32, the file has i64", 2, [
            "--const=x=i.npy"]
    yield "sequence", model("seq(float[4]) x", "float y", "y = Relu(x)"), \
        "input 'x' is no tensor", 4, []
    yield "string", model("string[4] x", "float y", "y = Identity(x)"), \
        "input 'x' has element type STRING, which is not supported", 4, []
    yield "large", model("float[4611686018427387904,4] x", "float y",
                         "y = Relu(x)"), \
        "input 'x' of shape [4611686018427387904x4] is larger than 4 TiB", 4, []
    ones = ",".join(["1"] * 300)
    for name, made in (
            ("input", model(f"float[{ones}] x", "float y", "y = Relu(x)")),
            ("result", model("float[1] x", "float y", "y = Reshape(x, s)",
                             f"int64[300] s = {{{ones}}}")),
            ("initializer", withWeights(tensor(dims=[1] * 300,
                                               float_data=[1])))):
        yield f"rank of {name}", made, "has more than 64 dimensions", 4, []
    yield "large result", model(
        "float[1048576,1] x, float[1,2097152] z", "float y", "y = Add(x, z)"), \
        "larger than 4 TiB", 4, []
    yield "types", model("float[2,3] x, int32[2,3] z", "float y",
                         "y = Add(x, z)"), \
        "inputs 0 and 1 must be of one type, and are f32 and i32", 3, []
    yield "bool", model("bool[2,3] x", "float y", "y = Sub(x, x)"), \
        "input 0 ('A') is bool, which Sub of operator set", 3, []
    yield "declared", model("float[2,3] x", "int32 y", "y = Relu(x)"), \
        "output 'y' is declared of another type or rank than 2x3xf32", 3, []
    yield "graph attention", (ODD / "gat_invalid_sub.onnx").read_bytes(), \
        "is declared of another type or rank than", 3, []
    yield "GatherND", (ODD / "gathernd_batch_dims.onnx").read_bytes(), \
        "attribute 'batch_dims' is -2147483648, not 0 to 1023", 3, []
    yield "LayerNormalization", (ODD / "layernorm_axis.onnx").read_bytes(), \
        "axis 9223372036854775807 is out of range of rank 2", 3, []
    yield "schema", model("float[1,3,8] x, float[4,3,3] w",
                          "float y", "y = Conv<group=2>(x, w)"), \
        "channels do not fit", 3, []
    yield "many rows", model("float[300000,2] x", "float y",
                             "s = SplitToSequence(x)\n"
                             "y = ConcatFromSequence<axis=0>(s)"), \
        "a sequence of 300000 tensors", 4, []
    yield "many pieces", model("float[300000,2] x", "float y",
                               "s = SplitToSequence(x, k)\n"
                               "y = ConcatFromSequence<axis=0>(s)",
                               "int64 k = {2}"), \
        "a sequence of 150000 tensors", 4, []
    yield "many steps", model(
        "float[2] x", "float[2] y", "y = Loop(n, , x) <body = b (int64 i, "
        "bool k, float[2] a) => (bool d, float[2] e) { d = Identity(k)\n "
        "e = Sin(a) }>", "int64 n = {300000}"), \
        "the model has more than 200000 operations, its loops and sequences " \
        "written out", 4, []
    made = model("float[2] x", "float y", "y = If(c) <then_branch = t () => "
                 "(float[2] u) { u = Relu(v) }, else_branch = e () => "
                 "(float[2] w) { w = Relu(x) }>", "bool c = {1}")
    yield "no branch", _without(made, "else_branch"), "else_branch", 3, []
    made = model("float[4] x", "float y", "y = Relu(x)", opset=21)
    made.opset_import[0].version = 999
    yield "opset", made, "the model uses operator set 999; 1 to", 4, []
    made = model("float[4] x", "float y", "y = Relu(x)")
    made.ir_version = 99
    yield "IR version", made, "the model has IR version 99; 1 to " \
        f"{onnx.IR_VERSION} are known", 4, []
    made = model("float[4] x", "float y", "y = Relu(x)")
    made.ClearField("ir_version")
    yield "no IR version", made, "the model has no IR version", 3, []
    for domain, version in ("", 13), ("ai.onnx", 11):
        made = model("float[4] x", "float y", "y = Relu(x)", opset=12)
        made.opset_import.append(onnx.helper.make_opsetid(domain, version))
        yield f"two operator sets {version}", made, "the model imports " \
            f"operator sets 12 and {version} of the default domain", 3, []
    yield "slopes of channels", model(
        "float[2,4,3,4] x", "float y", "y = PRelu(x, s)",
        "float[4] s = {1, 2, 3, 4}", opset=6), \
        "node '' (PRelu) has a slope for each channel: this is known from " \
        "operator set 7 on", 4, []
    yield "circle", model("float[4] x", "float y", "a = Add(x, b)\n"
                          "b = Relu(a)\ny = Relu(b)"), \
        "node '' (Add) reads, by way of others, what it makes itself", 3, []
    yield "attribute type", callWith(axis="1"), \
        "attribute 'axis' is of type STRING, not INT", 3, []
    yield "attribute range", callWith(axis=3), \
        "axis 3 is out of range of rank 2", 3, []
    yield "Split-13", model("float[7] x", "float y", "y, z = Split(x)",
                            opset=13), \
        "dimension 0 of 7 does not divide into 2 equal pieces", 3, []
    yield "Resize-10", model("float[1,1,4,4] x", "float y", "y = Resize(x, s)",
                             "float[2] s = {1, 2}", opset=10), \
        "scales has not one number a dimension", 3, []
    yield "BatchNormalization-7", model(
        "float[1,2,4] x, float[2,4] s", "float y",
        "y = BatchNormalization<spatial=0>(x, s, s, s, s)", opset=7), \
        "statistics of each place (spatial = 0)", 4, []
    yield "Upsample-10", model("float[1,1,4,4] x", "float y",
                               "y = Upsample(x, s)",
                               "float[4] s = {1, 1, 2, 2}", opset=10), \
        "node '' (Upsample): Op registered for Upsample is deprecated in " \
        "domain_version of 10", 3, []
    yield "operators", model("float[4] x", "float y", "y = Unheard(x)"), \
        "these operators are not supported:\n  Unheard: node of output 'y'", \
        4, []
    made = model("float[4] x", "float y", "a = Det(x)\n" + "b = Nope(x)\n" * 9 +
                 "y = Unheard(x)")
    for node in made.graph.node[1:]:
        node.domain = "com.example"
    for i, node in enumerate(made.graph.node):
        node.output[0] = "y" if i == 10 else f"o{i}"
    yield "domains", made, \
        "these operators are not supported:\n  Det: node of output 'o0'\n " \
        "of domain com.example, which is not ONNX's own:\n  Nope: node of " \
        "output 'o1', of output 'o2', of output 'o3', of output 'o4', of " \
        "output 'o5', of output 'o6', of output 'o7', of output 'o8' and 1 " \
        "more\n  Unheard: node of output 'y'", 4, []
    yield "deep", nested(20, 20), "subgraphs or functions are nested too deep", \
        4, []
    yield "protobuf", nested(32), "protobuf cannot parse it", 3, []

    # What is asked of models
    yield "f64 training", model(
        "double[4,2] x", "double[4,2] y", "y = MatMul(x, w)",
        "double[2,2] w = {1, -2, 3, 0.5}"), \
        "weight 'w' is to be trained, but is 'tensor<2x2xf64>': only weights " \
        "of f32, f16 and bf16 can be", 4, ["--train", "--loss=mse(y,t)"]
    zeros = ", ".join(["0"] * 2 * 96 * 24)
    yield "directions", model(
        "float[3,4,24] x", "float[4,5] y",
        "a = LSTM<hidden_size=24, direction=\"bidirectional\">(x, r, r)\n"
        "t = Transpose<perm=[0,2,1,3]>(a)\nf = Reshape(t, s)\n"
        "l = Gather(f, i)\ny = MatMul(l, w)",
        f"float[2,96,24] r = {{{zeros}}}, int64[3] s = {{3, 4, 48}}, "
        f"int64 i = {{2}}, float[48,5] w = {{{', '.join(['0'] * 240)}}}"), \
        "its 96 output features are not split 4 ways, because what is beside " \
        "them is not: split 2 ways, the rest is replicated", 2, \
        ["--tp=4", "--strict"]

    # The file
    text = relu.SerializeToString()
    where = "is not an ONNX model: "
    yield "empty", b"", where + "the file is empty", 3, []
    yield "cut", text[:-3], where + "its bytes are damaged or cut off", 3, []
    yield "graphs", twoGraphs(), where + "it has more than one graph", 3, []
    yield "graph", b"\x08\x0a", where + "it has no graph", 3, []
    yield "graph bytes", b"\x3a\x02\x0a\x05", \
        where + "its graph is damaged or cut off", 3, []
    yield "initializer bytes", b"\x3a\x04\x2a\x02\x0a\x05", \
        where + "an initializer is damaged", 3, []

    # Tensors
    raw = {"raw_data": b"0123"}
    yield "negative", withWeights(tensor(dims=(-4,), **raw)), \
        "tensor 'w' has impossible shape -4", 3, []
    yield "short", withWeights(tensor(**raw)), \
        "tensor 'w' of 4xf32 needs 16 bytes and has 4", 3, []
    yield "nameless", withWeights(tensor("", raw_data=b"0" * 16)), \
        "an initializer of 4xf32 has no name", 3, []
    yield "twice", withWeights(*[tensor(raw_data=b"0" * 16)] * 2), \
        "there are two initializers named 'w'", 3, []
    yield "constant type", constant(tensor(type=TensorProto.FLOAT8E8M0, **raw)), \
        "tensor 'w' has element type FLOAT8E8M0, which is not supported", 4, []
    yield "sparse shape", sparse(floats("v", 1), i64s("i", 0), [1 << 40]), \
        "a sparse constant of shape [1099511627776]", 4, []
    made = model("float[4] x", "float y", "y = Relu(x)")
    made.graph.sparse_initializer.append(
        onnx.SparseTensorProto(values=floats("v", 1), indices=i64s("i", 0),
                               dims=[4]))
    yield "sparse weight", made, "sparse initializers are not supported", 4, []

    # External data; the folder has a file w.bin of 8 bytes.
    inside = "it must be a file inside the model's folder"
    for name, weight, message, code in (
            ("offset", external(offset="x"),
             "external tensor 'w' has offset 'x', not a number", 3),
            ("length", external(length="x"),
             "external tensor 'w' has length 'x', not a number", 3),
            ("other length", external(length="8"),
             "external tensor 'w' of 4xf32 needs 16 bytes, its length says 8",
             3),
            ("short", external(),
             "external tensor 'w' needs 16 bytes at offset 0 of 'w.bin', which "
             "has 8 bytes", 3),
            ("far", external(dims=(1,), offset="9223372036854775807"),
             "external tensor 'w' needs 4 bytes at offset 9223372036854775807",
             3),
            ("type", external(type=TensorProto.FLOAT8E8M0),
             "tensor 'w' has element type FLOAT8E8M0, which is not supported",
             4),
            ("name", external(""), "is not a file name: " + inside, 3),
            ("absolute", external("/etc/passwd"),
             "external data '/etc/passwd' is an absolute path: " + inside, 3),
            ("above", external("../w.bin"),
             "leaves the folder by '..': " + inside, 3),
            ("link", external("link"),
             "is a symbolic link, or reached by one: " + inside, 3),
            ("hard link", external("hard"),
             "is a hard link to a file with other names: " + inside, 3),
            ("folder", external("folder"),
             "is not a regular file: " + inside, 3),
            ("missing", external("nowhere"),
             "cannot open external data '", 7)):
        yield "external " + name, withWeights(weight), message, code, []


def dataSets():
    """Name, bytes of input_0.pb, message."""
    raw = {"raw_data": b"0123"}
    for name, made, message in (
            ("bytes", b"\x0a\x05", "is not a serialised tensor"),
            ("type", tensor(type=TensorProto.FLOAT8E8M0, **raw),
             "tensor 'w' has element type FLOAT8E8M0, which is not supported"),
            ("external", external(),
             "tensor 'w' lies outside the place where it is used (external "
             "data of an attribute or subgraph)"),
            ("shape", tensor(dims=(-1,), **raw),
             "tensor 'w' has impossible shape -1"),
            ("raw", tensor(**raw), "tensor 'w': 4 bytes given for a tensor of "
             "shape [4] and type f32"),
            ("elements", tensor(float_data=[1]),
             "tensor 'w' of 4xf32 has 1 elements"),
            ("field", tensor(int32_data=[1, 2, 3, 4]),
             "tensor 'w' of 4xf32 has 0 elements")):
        yield name, made, message


def refuseData(made, message):
    with scratch() as folder:
        with open(f"{folder}/input_0.pb", "wb") as file:
            file.write(made if isinstance(made, bytes)
                       else made.SerializeToString())
        refuse(model("float[4] x", "float y", "y = Relu(x)"), message, 6,
               "--test-data", folder)


def sizes():
    """Sizes that nodes do not take are the flags' fault, where others fit."""
    table = model("float[b,n] x", "float[b,n] y", "y = Add(x, w)",
                  "float[4] w = {1, 2, 3, 4}")
    for flags, at_fault in (["--dim=b=2", "--dim=n=8"], "--dim n=8"), \
            (["--shape=x=2x8"], "8 in --shape x=2x8"):
        yield "".join(flags), table, at_fault + " does not fit this model, " \
            "as 1 would: it may take smaller ones only", 2, flags
    shared = model("float[b,n] u, float[b,n] x", "float[b,n] y",
                   "s = Add(u, x)\ny = Add(s, w)", "float[4] w = {1, 2, 3, 4}")
    yield "shared", shared, "8 in --shape u=2x8 does not fit this model", 2, \
        ["--shape=u=2x8", "--shape=x=2x8"]
    made = model("float[b] x", "float[b] y", "s = Add(v, w)\ny = Add(x, s)",
                 "float[4] w = {1, 2, 3, 4}, float[3] v = {1, 2, 3}")
    yield "no size is at fault", made, "'tensor<4xf32>'\n", 3, ["--dim=b=8"]


def _without(made, name):
    attributes = made.graph.node[0].attribute
    kept = [a for a in attributes if a.name != name]
    made.graph.node[0].ClearField("attribute")
    attributes.extend(kept)
    return made


def endlesslyNested(count=60000):
    """Graphs in graphs, as protobuf has them: more than any stack holds."""
    def length(size):
        low, size = size & 127, size >> 7
        return bytes([low | 128]) + length(size) if size else bytes([low])

    parts, size = [], 0
    # attribute.g, node.attribute and graph.node, then model.graph.
    for field in [6, 5, 1] * count + [7]:
        parts.append(bytes([field << 3 | 2]) + length(size))
        size += len(parts[-1])
    return b"\x08\x09" + b"".join(reversed(parts))


def refuseExport():
    with scratch() as folder:
        folder = Path(folder)
        (folder / "model.onnx").write_bytes(endlesslyNested())
        np.savez(folder / "w.npz", w=np.zeros(2, np.float32))
        done = run(tool("axopt"), folder / "model.onnx", "--export-onnx",
                   folder / "out.onnx", "--weights", folder / "w.npz", expect=3)
        assert "protobuf cannot parse it" in done.stderr, done.stderr


def cases(every):
    yield "export of endlessly nested graphs", refuseExport
    for name, made, message, code, flags in wholeModels():
        yield f"model: {name}", refuse, made, message, code, *flags
    for name, made, message, code, flags in sizes():
        yield f"sizes: {name}", refuse, made, message, code, *flags
    for name, made, message in dataSets():
        yield f"data: {name}", refuseData, made, message
