"""What axopt says about nodes that cannot be: operator, message.

Each is a model of few nodes. Exit code 3 (the model is malformed) but where the
message says that something is not supported (4).
"""
import os
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper

from _onnx_text import model

from cases import Failed, run, scratch, tool

# Inputs, nodes, initializers, message.
MALFORMED = {
    # Shapes
    "Reshape 0": ("float[6] x", "y = Reshape(x, s)", "int64[2] s = {6, 0}",
                  "shape[1] is 0 (keep), but the input has rank 1"),
    "Reshape -2": ("float[6] x", "y = Reshape(x, s)", "int64[1] s = {-2}",
                   "impossible shape [-2]"),
    "Reshape rest": ("float[6] x", "y = Reshape(x, s)", "int64[2] s = {4, -1}",
                     "6 elements do not divide into [4x-1]"),
    "Reshape": ("float[6] x", "y = Reshape(x, s)", "int64[1] s = {5}",
                "cannot reshape [6] to [5]"),
    "Expand": ("float[1] x", "y = Expand(x, s)",
               "int64[2] s = {4611686018427387904, 4}", "impossible shape ["),
    "Squeeze": ("float[2,1] x", "y = Squeeze(x, a)", "int64[1] a = {0}",
                "dimension 0 of 2 elements cannot be dropped"),
    "Transpose": ("float[2,3] x", "y = Transpose<perm=[0,0]>(x)", "",
                  "perm is no permutation of the dimensions"),
    "axis": ("float[2,3] x", "y = Softmax<axis=5>(x)", "",
             "axis 5 is out of range of rank 2"),
    "axis twice": ("float[2,3] x", "y = ReduceSum(x, a)",
                   "int64[2] a = {0, -2}", "an axis occurs twice"),
    "Split count": ("float[6] x", "y = Split<num_outputs=3>(x)", "",
                    "num_outputs does not fit the outputs"),
    "Split large": ("float[6] x", "y = Split(x, s)", "int64[1] s = {7}",
                    "the pieces do not fit dimension 0 of 6"),
    "Split small": ("float[6] x", "y = Split(x, s)", "int64[1] s = {5}",
                    "the pieces leave a rest of dimension 0"),
    "DepthToSpace": ("float[1,3,2,2] x", "y = DepthToSpace<blocksize=2>(x)", "",
                     "channels do not divide into blocks"),
    "SpaceToDepth": ("float[1,1,3,2] x", "y = SpaceToDepth<blocksize=2>(x)", "",
                     "height and width do not divide into blocks"),
    "Slice lengths": ("float[6] x", "y = Slice(x, s, e)",
                      "int64[1] s = {0}, int64[2] e = {1, 2}",
                      "starts, ends, axes and steps differ in length"),
    "Slice step": ("float[6] x", "y = Slice(x, s, e, a, z)",
                   "int64[1] s = {0}, int64[1] e = {1}, int64[1] a = {0}, "
                   "int64[1] z = {0}", "a step is 0"),
    "Pad count": ("float[6] x", "y = Pad(x, p)", "int64[1] p = {1}",
                  "pads has not two numbers an axis"),
    "Pad range": ("float[6] x", "y = Pad(x, p)",
                  "int64[2] p = {0, 4611686018427387904}",
                  "pads are out of range"),
    "Pad cut": ("float[6] x", "y = Pad(x, p)", "int64[2] p = {-4, -4}",
                "negative pads cut more than dimension 0 has"),
    "Pad reflect": ("float[1] x", "y = Pad<mode=\"reflect\">(x, p)",
                    "int64[2] p = {1, 1}", "nothing to reflect in dimension 0"),
    "Tile count": ("float[6] x", "y = Tile(x, r)", "int64[2] r = {1, 2}",
                   "repeats has not one number a dimension"),
    "Tile range": ("float[6] x", "y = Tile(x, r)", "int64[1] r = {-1}",
                   "repeats are out of range"),
    "Trilu": ("float[6] x", "y = Trilu(x)", "", "needs at least two dimensions"),
    "Concat": ("float[2,3] x, float[2,4] z", "y = Concat<axis=0>(x, z)", "",
               "operands do not fit: 'tensor<2x3xf32>' and 'tensor<2x4xf32>'"),
    "Compress": ("float[2] x", "y = Compress<axis=0>(x, c)",
                 "bool[3] c = {0, 0, 1}",
                 "the condition is longer than the dimension"),
    "Gather": ("float[0,3] x", "y = Gather(x, i)", "int64[2] i = {0, 1}",
               "nothing to choose from in an empty dimension"),
    "GatherElements": ("float[2,3] x, int64[2] i",
                       "y = GatherElements<axis=0>(x, i)", "",
                       "do not fit operand 'tensor<2x3xf32>' along axis 0"),
    "ArgMax": ("float[0] x", "y = ArgMax(x)", "",
               "dim 0 is empty: nothing is largest or smallest"),
    "TensorScatter": ("float[2,3,4] x, float[2,3] u, int64[2] i",
                      "y = TensorScatter(x, u, i)", "",
                      "cache, update, axis and mode do not fit"),
    "Resize": ("float[1,1,4,4] x", "y = Resize(x, , s)",
               "float[4] s = {1, 1, -1, 1}",
               "scales or sizes do not fit the input"),
    "DFT": ("float[2,8,3] x", "y = DFT(x)", "",
            "needs a last dimension of 1 (real) or 2 (complex) elements, and "
            "another axis"),
    # Numbers
    "Add": ("float[2] x, float[3] z", "y = Add(x, z)", "",
            "shapes do not broadcast: 'tensor<2xf32>' and 'tensor<3xf32>'"),
    "BitShift": ("uint8[2] x", "y = BitShift<direction=\"UP\">(x, x)", "",
                 "direction is 'UP', not LEFT or RIGHT"),
    "Range": ("float[2] x", "y = Range(s, l, d)",
              "int64[2] s = {0, 0}, int64 l = {1}, int64 d = {1}",
              "start, limit and delta are single numbers"),
    "Range end": ("float[2] x", "y = Range(s, l, d)",
                  "float s = {0}, float l = {1}, float d = {0}",
                  "the range has no end, or too many elements"),
    "EyeLike": ("float[2] x", "y = EyeLike(x)", "", "needs two dimensions"),
    "OneHot": ("int64[2] x", "y = OneHot(x, d, v)",
               "int64 d = {-1}, float[2] v = {0, 1}",
               "needs a depth of at least 0 and two values"),
    "OneHot depth": ("int64[2] x", "y = OneHot(x, d, v)",
                     "int64[2] d = {1, 1}, float[2] v = {0, 1}",
                     "input 'depth' must be one number"),
    "Constant": ("float[2] x", "y = Constant()", "",
                 "needs exactly one attribute"),
    "DequantizeLinear": ("int8[4,4] x",
                         "y = DequantizeLinear<axis=0, block_size=3>(x, s)",
                         "float[3,4] s = {1,1,1,1,1,1,1,1,1,1,1,1}",
                         "block_size does not fit the shapes"),
    # Contractions
    "MatMul scalar": ("float x, float[2] z", "y = MatMul(x, z)", "",
                      "matrix products need dimensions"),
    "MatMul batch": ("float[2,3,4] x, float[5,4,3] z", "y = MatMul(x, z)", "",
                     "batch dimensions do not broadcast"),
    "MatMul": ("float[2,3] x, float[4,5] z", "y = MatMul(x, z)", "",
               "sizes of dimension pair 1 x 0 differ: 3 and 4"),
    "Gemm": ("float[2,3,4] x", "y = Gemm(x, x)", "", "A and B must be matrices"),
    "Einsum inputs": ("float[2,3] x", "y = Einsum<equation=\"ij,jk\">(x)", "",
                      "equation 'ij,jk' does not fit the inputs"),
    "Einsum rank": ("float[2,3] x", "y = Einsum<equation=\"ijk->i\">(x)", "",
                    "term 'ijk' does not fit an input of rank 2"),
    "Einsum letters": ("float[2,3] x", "y = Einsum<equation=\"i1->i\">(x)", "",
                       "'i1' holds more than letters and one ellipsis"),
    "Einsum output": ("float[2,3] x", "y = Einsum<equation=\"ij->k\">(x)", "",
                      "the output of 'ij->k' does not fit its terms"),
    "Einsum labels": ("float[2,3] x", "y = Einsum<equation=\"ii->i\">(x)", "",
                      "dimensions with the same label differ"),
    # Layers
    "Conv rank": ("float[1,3,8] x, float[4,3,3,3] w", "y = Conv(x, w)", "",
                  "X and W must have the same rank, at least 3"),
    "Conv strides": ("float[1,3,8] x, float[4,3,3] w",
                     "y = Conv<strides=[0]>(x, w)", "",
                     "kernel_shape, strides, dilations and pads do not fit 1 "
                     "spatial dimensions"),
    "Conv kernel": ("float[1,3,8] x, float[4,3,3] w",
                    "y = Conv<kernel_shape=[2]>(x, w)", "",
                    "kernel_shape is not the shape of W"),
    "Conv window": ("float[1,3,8] x, float[4,3,3] w",
                    "y = Conv<dilations=[1048576]>(x, w)", "",
                    "the window is too large"),
    "Conv auto_pad": ("float[1,3,8] x, float[4,3,3] w",
                      "y = Conv<auto_pad=\"SOME\">(x, w)", "",
                      "auto_pad 'SOME' is unknown"),
    "Conv channels": ("float[1,3,8] x, float[4,2,3] w", "y = Conv(x, w)", "",
                      "channels do not fit: x has 3, w takes 2 in 1 groups"),
    "ConvTranspose rank": ("float[1,3,8] x, float[3,4] w",
                           "y = ConvTranspose(x, w)", "",
                           "X and W must have the same rank, at least 3"),
    "ConvTranspose kernel": ("float[1,3,8] x, float[3,4,3] w",
                             "y = ConvTranspose<kernel_shape=[2]>(x, w)", "",
                             "kernel_shape is not the shape of W"),
    "ConvTranspose padding": ("float[1,3,8] x, float[3,4,3] w",
                              "y = ConvTranspose<output_padding=[0,0]>(x, w)",
                              "",
                              "output_padding and output_shape do not fit"),
    "ConvTranspose shape": ("float[1,3,8] x, float[3,4,3] w",
                            "y = ConvTranspose<output_shape=[-5]>(x, w)", "",
                            "output_shape is out of range"),
    "MaxPool": ("float[1,3] x", "y = MaxPool<kernel_shape=[2]>(x)", "",
                "needs batch, channels and at least one more dimension"),
    "BatchNormalization": ("float[3] x, float[3] s",
                           "y = BatchNormalization(x, s, s, s, s)", "",
                           "needs batch and channels"),
    "InstanceNormalization": ("float[1,3] x, float[3] s",
                              "y = InstanceNormalization(x, s, s)", "",
                              "needs at least one spatial dimension"),
    "GroupNormalization": ("float[1,3,4] x, float[3] s",
                           "y = GroupNormalization<num_groups=2>(x, s, s)", "",
                           "channels do not divide into groups"),
    "LRN": ("float[3] x", "y = LRN<size=3>(x)", "",
            "needs channels and a size of at least 1"),
    "LSTM rank": ("float[2,3] x, float[1,16,3] w, float[1,16,4] r",
                  "y = LSTM<hidden_size=4>(x, w, r)", "",
                  "X, W and R have three dimensions"),
    "LSTM weights": ("float[5,2,3] x, float[1,16,3] w, float[1,12,4] r",
                     "y = LSTM<hidden_size=4>(x, w, r)", "", "W and R do not fit"),
    "LSTM bias": ("float[5,2,3] x, float[1,16,3] w, float[1,16,4] r, "
                  "float[1,16] b", "y = LSTM<hidden_size=4>(x, w, r, b)", "",
                  "B does not fit"),
    "LSTM activations": ("float[5,2,3] x, float[1,16,3] w, float[1,16,4] r",
                         "y = LSTM<hidden_size=4, activations=[\"Tanh\"]>"
                         "(x, w, r)", "", "too few activations"),
    "LSTM state": ("float[5,2,3] x, float[1,16,3] w, float[1,16,4] r, "
                   "float[2,4] h", "y = LSTM<hidden_size=4>(x, w, r, , , h)", "",
                   "initial states have three dimensions"),
    "Attention rank": ("float[2,3] x", "y = Attention(x, x, x)", "",
                       "Q, K and V must all have rank 3, or all rank 4"),
    "Attention hidden": ("float[1,8,10] x", "y = Attention<q_num_heads=3, "
                         "kv_num_heads=3>(x, x, x)", "",
                         "hidden size 10 is no multiple of 3 heads"),
    "Attention heads": ("float[1,3,8,4] x, float[1,2,8,4] z",
                        "y = Attention(x, z, z)", "",
                        "query heads are no multiple of key/value heads"),
    "Attention mask": ("float[1,2,8,4] x, float[1,1,1,8,8] m",
                       "y = Attention(x, x, x, m)", "", "the mask has rank 5"),
    # Sequences
    "SequenceAt": ("float[2] x", "s = SequenceConstruct(x)\n"
                   "y = SequenceAt(s, p)", "int64 p = {3}",
                   "position 3 is out of range of a sequence of 1"),
    "SequenceInsert": ("float[2] x", "s = SequenceConstruct(x)\n"
                       "t = SequenceInsert(s, x, p)\n"
                       "y = SequenceAt(t, q)",
                       "int64 p = {3}, int64 q = {0}",
                       "position 3 is out of range"),
    "SequenceErase": ("float[2] x", "s = SequenceEmpty()\n"
                      "t = SequenceErase(s)\ny = ConcatFromSequence<axis=0>(t)",
                      "", "the sequence is empty"),
    "ConcatFromSequence": ("float[2] x", "s = SequenceEmpty()\n"
                           "y = ConcatFromSequence<axis=0>(s)", "",
                           "the sequence is empty"),
    "ConcatFromSequence rank": ("float[2,2] x, float[2] z",
                                "s = SequenceConstruct(x, z)\n"
                                "y = ConcatFromSequence<axis=2, new_axis=1>(s)",
                                "", "the sequence's tensors differ in rank"),
    "SplitToSequence": ("float[4] x", "s = SplitToSequence(x, n)\n"
                        "y = ConcatFromSequence<axis=0>(s)", "int64 n = {0}",
                        "split must be at least 1"),
    "SplitToSequence pieces": ("float[4] x", "s = SplitToSequence(x, n)\n"
                               "y = ConcatFromSequence<axis=0>(s)",
                               "int64[1] n = {5}",
                               "the pieces do not fit the dimension"),
    "OptionalGetElement": ("float[4] x",
                           "o = Optional()\ny = OptionalGetElement(o)", "",
                           "the optional is empty"),
    # Graphs
    "sequence wanted": ("float[2] x", "y = ConcatFromSequence<axis=0>(x)", "",
                        "input 0 is no sequence"),
    "Loop body": ("float[2] x", "y = Loop(n, , x) <body = b (int64 i) => "
                  "(bool c) { c = Constant<value = bool {1}>() }>",
                  "int64 n = {2}", "the body does not fit the loop's inputs"),
    "Scan inputs": ("float[2] x", "y = Scan<num_scan_inputs=3, body = b "
                    "(float a) => (float c) { c = Relu(a) }>(x)", "",
                    "num_scan_inputs does not fit the inputs"),
    "Scan lengths": ("float[2] x, float[3] z", "y = Scan<num_scan_inputs=2, "
                     "body = b (float a, float d) => (float c) "
                     "{ c = Add(a, d) }>(x, z)", "",
                     "scan inputs differ in length"),
    "If graph": ("float[2] x", "y = If(c) <then_branch = t (float[2] a) => "
                 "(float[2] u) { u = Relu(a) }, else_branch = e () => "
                 "(float[2] v) { v = Relu(x) }>", "bool c = {1}",
                 "its graph takes 1 inputs and is given 0"),
}

UNSUPPORTED = {
    "tensor wanted": ("float[2] x", "s = SequenceConstruct(x)\ny = Relu(s)", "",
                      "input 0 is no tensor"),
    "shape from data": ("float[6] x, int64[1] s", "y = Reshape(x, s)", "",
                        "input 'shape' (s) decides shapes, so it must be known "
                        "when compiling; give --const s=FILE.npy"),
    "Cast": ("float[2] x", "y = Cast<to=8>(x)", "",
             "element type STRING is not supported"),
    "Gelu": ("float[2] x", "y = Gelu<approximate=\"sine\">(x)", "",
             "approximate is 'sine'"),
    "Dropout": ("float[2] x", "y = Dropout(x, r, t)",
                "float r = {0.5}, bool t = {1}",
                "Dropout in training mode is not supported"),
    "Constant": ("float[2] x", "y = Constant<value_string=\"a\">()", "",
                 "constants of strings are not supported"),
    "ScatterND": ("float[2] x, int64[1,1] i, float[1] u",
                  "y = ScatterND<reduction=\"mean\">(x, i, u)", "",
                  "reduction 'mean'"),
    "LpNormalization": ("float[2,3] x", "y = LpNormalization<p=3>(x)", "",
                        "p is 3, not 1 or 2"),
    "MaxPool": ("float[1,1,64,64] x",
                "y, i = MaxPool<kernel_shape=[64,64]>(x)", "",
                "indices of so large a window"),
    "LSTM alpha": ("float[5,2,3] x, float[1,16,3] w, float[1,16,4] r",
                   "y = LSTM<hidden_size=4, activation_alpha=[0.5]>(x, w, r)",
                   "", "activations with parameters"),
    "LSTM activation": ("float[5,2,3] x, float[1,16,3] w, float[1,16,4] r",
                        "y = LSTM<hidden_size=4, activations=[\"Sine\", "
                        "\"Tanh\", \"Tanh\"]>(x, w, r)", "", "activation sine"),
    "ReduceLogSumExp": ("int32[2,3] x", "y = ReduceLogSumExp(x)", "",
                        "integers are not supported"),
    "Resize": ("float[1,1,4,4] x", "y = Resize<mode=\"sharp\">(x, , s)",
               "float[4] s = {1, 1, 2, 2}", "mode 'sharp'"),
    "SplitToSequence": ("float[1048577] x", "s = SplitToSequence(x)\n"
                        "y = SequenceAt(s, p)", "int64 p = {0}",
                        "a sequence of 1048577 tensors"),
    "DFT": ("float[2,4096,1] x", "y = DFT(x)", "", "a transform of 4096 points"),
    "Pad": ("float[6] x", "y = Pad<mode=\"mirror\">(x, p)",
            "int64[2] p = {1, 1}", "pad mode 'mirror'"),
    "QuantizeLinear": ("float[4] x", "z = QuantizeLinear<output_dtype=17>(x, s)"
                       "\ny = Cast<to=1>(z)", "float s = {1}",
                       "element type FLOAT8E4M3FN is not supported"),
    "Loop of data": ("float[2] x", "y = Loop(n, , x) <body = b "
                     "(int64 i, bool k, float[2] a) => (bool d, float[2] e) "
                     "{ s = ReduceSum<keepdims=0>(a)\n d = Cast<to=9>(s)\n "
                     "e = Relu(a) }>", "int64 n = {2}",
                     "whether the loop goes on depends on data; only loops "
                     "whose length is known when compiling are supported"),
    "Loop never": ("float[2] x", "z, y = Loop(n, , x) <body = b (int64 i, "
                   "bool k, float[2] a) => (bool d, float[2] e, float[2] f) "
                   "{ d = Identity(k)\n e = Relu(a)\n f = Relu(a) }>",
                   "int64 n = {0}",
                   "a loop that never runs has no shape for its scan outputs"),
    "Scan of nothing": ("float[0,2] x", "y = Scan<num_scan_inputs=1, body = b "
                        "(float[2] a) => (float[2] c) { c = Relu(a) }>(x)", "",
                        "a scan over nothing has no shape for its outputs"),
    "old Scan": ("float[2,2] x", "y = Scan<num_scan_inputs=1, body = b "
                 "(float a) => (float c) { c = Relu(a) }>(, x)", "",
                 "Scan of operator set 8 is not supported; its meaning changed "
                 "in set 9"),
    "sequence output": ("float[2] x", "y = SequenceConstruct(x)", "",
                        "output 'y' is no tensor"),
    "endless": ("float[2] x", "y = Loop(n, , x) <body = b (int64 i, bool k, "
                "float[2] a) => (bool d, float[2] e) { d = Identity(k)\n "
                "e = Identity(a) }>", "int64 n = {9000000}",
                "the model has too many nodes, its loops unrolled"),
}


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


def build(name, inputs, nodes, initializers):
    output = "seq(float[2]) y" if name == "sequence output" else "float y"
    return model(inputs, output, nodes, initializers,
                 opset=8 if name == "old Scan" else None)


def refuse(made, message, code, *flags):
    with scratch() as folder:
        folder = pathlib.Path(folder)
        path = folder / "model.onnx"
        path.write_bytes(made.SerializeToString()
                         if isinstance(made, onnx.ModelProto) else made)
        (folder / "w.bin").write_bytes(b"01234567")
        (folder / "link").symlink_to("w.bin")
        (folder / "one").write_bytes(b"01234567")
        os.link(folder / "one", folder / "hard")
        (folder / "folder").mkdir()
        np.save(folder / "i.npy", np.zeros(4, np.int64))
        done = run(tool("axopt"), path, "--quiet", "-o", f"{folder}/plan.mlir",
                   *flags, expect=code, cwd=folder)
    if message not in done.stderr:
        raise Failed(f"expected: {message}\ngot: {done.stderr}")


def refuseNode(name, inputs, nodes, initializers, message, code):
    refuse(build(name, inputs, nodes, initializers), message, code)


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
                            "[2x5]"), 2, ["--shape=x=2x5"]
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
        "input 'x' has impossible shape [4611686018427387904x4]", 3, []
    made = model("float[2] x", "float y", "y = If(c) <then_branch = t () => "
                 "(float[2] u) { u = Relu(v) }, else_branch = e () => "
                 "(float[2] w) { w = Relu(x) }>", "bool c = {1}")
    yield "no branch", _without(made, "else_branch"), "else_branch", 3, []
    made = model("float[4] x", "float y", "y = Relu(x)", opset=21)
    made.opset_import[0].version = 999
    yield "opset", made, "the model uses operator set 999; 1 to", 4, []
    yield "operators", model("float[4] x", "float y", "y = Unheard(x)"), \
        "these operators are not supported:\n  Unheard: node of output 'y'", \
        4, []
    yield "deep", nested(20, 20), "subgraphs or functions are nested too deep", \
        4, []
    yield "protobuf", nested(32), "protobuf cannot parse it", 3, []

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
    yield "constant type", constant(tensor(type=TensorProto.FLOAT4E2M1, **raw)), \
        "tensor 'w' has element type FLOAT4E2M1, which is not supported", 4, []
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
            ("type", external(type=TensorProto.FLOAT4E2M1),
             "tensor 'w' has element type FLOAT4E2M1, which is not supported",
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
            ("type", tensor(type=TensorProto.FLOAT4E2M1, **raw),
             "tensor 'w' has element type FLOAT4E2M1, which is not supported"),
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


def _without(made, name):
    attributes = made.graph.node[0].attribute
    kept = [a for a in attributes if a.name != name]
    made.graph.node[0].ClearField("attribute")
    attributes.extend(kept)
    return made


def cases(every):
    for code, table in (3, MALFORMED), (4, UNSUPPORTED):
        for name, row in table.items():
            yield f"{code} {name}", refuseNode, name, *row, code
    for name, made, message, code, flags in wholeModels():
        yield f"model: {name}", refuse, made, message, code, *flags
    for name, made, message in dataSets():
        yield f"data: {name}", refuseData, made, message
