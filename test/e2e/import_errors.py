# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What axopt says about nodes that cannot be: operator, message.

Each is a model of few nodes. Exit code 3 (the model is malformed) but where the
message says that something is not supported (4).
"""
from _onnx_text import model, refuse

# Inputs, nodes, initializers, message.
MALFORMED = {
    "QuantizeLinear precision": ("float[4] x", "z = QuantizeLinear<"
                                 "precision=6>(x, s)\ny = Cast<to=1>(z)",
                                 "float s = {1}",
                                 "precision is i32, which is no type of "
                                 "fractions"),
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
    "axis twice": ("float[2,3] x", "y = Unsqueeze(x, a)",
                   "int64[2] a = {0, -4}", "an axis occurs twice"),
    "Slice twice": ("float[2,3] x", "y = Slice(x, s, e, a)",
                    "int64[2] s = {0, 0}, int64[2] e = {1, 1}, "
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
    "RandomNormal type": ("float[2] x", "y = RandomNormal<shape=[2], "
                          "dtype=7>()", "", "gives floats, not i64"),
    "Bernoulli": ("int64[2] x", "z = Bernoulli(x)\ny = Cast<to=1>(z)", "",
                  "input 0 ('input') is i64, which Bernoulli of operator set"),
    "Multinomial": ("float[2] x", "z = Multinomial(x)\ny = Cast<to=1>(z)", "",
                    "needs 2 dimensions, at least one class and one sample"),
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
    "TopK": ("float[4] x", "y, i = TopK(x, k)", "int64[2] k = {1, 1}",
             "input 'K' must be one number"),
    "NonMaxSuppression": ("float[4,4] x, float[1,1,4] s",
                          "z = NonMaxSuppression(x, s)\ny = Cast<to=1>(z)", "",
                          "boxes are [images, n, 4], scores [images, classes, "
                          "n]"),
    "NonMaxSuppression by more than all": (
        "float[1,4,4] x, float[1,1,4] s",
        "z = NonMaxSuppression(x, s, k, t)\ny = Cast<to=1>(z)",
        "int64[1] k = {1}, float[1] t = {1.5}",
        "iou_threshold is 1.50, not 0 to 1"),
    "STFT": ("float[1,8,1] x", "y = STFT(x, s, w)",
             "int64 s = {1}, float[9] w = {1,1,1,1,1,1,1,1,1}",
             "signal [1x8x1], frame_step 1, frame_length 9 and window do not "
             "fit"),
    "ArgMax": ("float[0] x", "y = ArgMax(x)", "",
               "dim 0 is empty: nothing is largest or smallest"),
    "TensorScatter": ("float[2,3,4] x, float[2,3] u, int64[2] i",
                      "y = TensorScatter(x, u, i)", "",
                      "cache, update and axis do not fit"),
    "Resize": ("float[1,1,4,4] x", "y = Resize(x, , s)",
               "float[4] s = {1, 1, -1, 1}",
               "scales or sizes do not fit the input"),
    "Resize count": ("float[1,1,4,4] x", "y = Resize(x, , s)",
                     "float[3] s = {1, 1, 2}",
                     "scales has not one number an axis"),
    "DFT": ("float[2,8,3] x", "y = DFT(x)", "",
            "needs a last dimension of 1 (real) or 2 (complex) elements, and "
            "another axis"),
    # Numbers
    "Add": ("float[2] x, float[3] z", "y = Add(x, z)", "",
            "shapes do not broadcast: 'tensor<2xf32>' and 'tensor<3xf32>'"),
    "BitShift": ("uint8[2] x", "y = BitShift<direction=\"UP\">(x, x)", "",
                 "attribute 'direction' is 'UP', not LEFT or RIGHT"),
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
    "DequantizeLinear block": (
        "int8[4,4] x", "y = DequantizeLinear<axis=1, block_size=2>(x, s)",
        "float s = {1}",
        "block_size does not fit the shapes: a scale or zero point is []"),
    "DequantizeLinear blocks": (
        "int8[4,4] x", "y = DequantizeLinear<axis=1, block_size=2>(x, s)",
        "float[1,2] s = {1, 2}",
        "block_size does not fit the shapes: a scale or zero point is [1x2]"),
    "DequantizeLinear row": (
        "int8[4,6] x", "y = DequantizeLinear<axis=1>(x, s)",
        "float[1,6] s = {1, 2, 3, 4, 5, 6}",
        "a scale or zero point of [1x6] is neither one number nor a vector of "
        "[6], for axis 1"),
    "QuantizeLinear": (
        "float[4,6] x", "y = QuantizeLinear<axis=1>(x, s, z)",
        "float[6] s = {1, 2, 3, 4, 5, 6}, uint8[3,2] z = {1, 2, 3, 4, 5, 6}",
        "a scale or zero point of [3x2] is neither one number nor a vector of"),
    # Names that ONNX does not have
    "Gelu": ("float[2] x", "y = Gelu<approximate=\"sine\">(x)", "",
             "attribute 'approximate' is 'sine', not none or tanh"),
    "ScatterND": ("float[2] x, int64[1,1] i, float[1] u",
                  "y = ScatterND<reduction=\"mean\">(x, i, u)", "",
                  "attribute 'reduction' is 'mean', not add, max, min, mul or "
                  "none"),
    "Resize mode": ("float[1,1,4,4] x", "y = Resize<mode=\"sharp\">(x, , s)",
                    "float[4] s = {1, 1, 2, 2}",
                    "attribute 'mode' is 'sharp', not cubic, linear or nearest"),
    "Resize coordinates": (
        "float[1,1,4,4] x", "y = Resize<coordinate_transformation_mode=\"foo\">"
        "(x, , s)", "float[4] s = {1, 1, 2, 2}",
        "attribute 'coordinate_transformation_mode' is 'foo', not "
        "align_corners, asymmetric,"),
    "Resize nearest_mode": (
        "float[1,1,4,4] x", "y = Resize<nearest_mode=\"foo\">(x, , s)",
        "float[4] s = {1, 1, 2, 2}",
        "attribute 'nearest_mode' is 'foo', not ceil, floor,"),
    "DepthToSpace mode": ("float[1,4,2,2] x", "y = DepthToSpace<blocksize=2, "
                          "mode=\"foo\">(x)", "",
                          "attribute 'mode' is 'foo', not CRD or DCR"),
    "LSTM direction": ("float[5,2,3] x, float[1,16,3] w, float[1,16,4] r",
                       "y = LSTM<hidden_size=4, direction=\"foo\">(x, w, r)",
                       "", "attribute 'direction' is 'foo', not bidirectional, "
                       "forward or reverse"),
    "LSTM activation": ("float[5,2,3] x, float[1,16,3] w, float[1,16,4] r",
                        "y = LSTM<hidden_size=4, activations=[\"Sine\", "
                        "\"Tanh\", \"Tanh\"]>(x, w, r)", "",
                        "attribute 'activations' is 'Sine', not affine, elu,"),
    "Pad mode": ("float[6] x", "y = Pad<mode=\"mirror\">(x, p)",
                 "int64[2] p = {1, 1}", "attribute 'mode' is 'mirror', not "
                 "constant, edge, reflect or wrap"),
    "flag": ("float[2,3] x", "y = ReduceSum<keepdims=2>(x)", "",
             "attribute 'keepdims' is 2, not 0 to 1"),
    "attribute": ("float[2,3] x", "y = Relu<keepdims=1>(x)", "",
                  "node '' (Relu): Unrecognized attribute: keepdims"),
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
    "Conv zero": ("float[1,3,8] x, float[4,3,3] w",
                  "y = Conv<strides=[0]>(x, w)", "",
                  "attribute 'strides' is 0, not 1 to 1048576"),
    "Conv strides": ("float[1,3,8] x, float[4,3,3] w",
                     "y = Conv<strides=[1,1]>(x, w)", "",
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
                      "attribute 'auto_pad' is 'SOME', not NOTSET, SAME_LOWER, "
                      "SAME_UPPER or VALID"),
    "Conv channels": ("float[1,3,8] x, float[4,2,3] w", "y = Conv(x, w)", "",
                      "channels do not fit: x has 3, w takes 2 in 1 groups"),
    "Conv bias": ("float[1,3,8] x, float[4,3,3] w, float[3] b",
                  "y = Conv(x, w, b)", "", "the bias must have 4 elements"),
    "ConvTranspose bias": ("float[1,3,8] x, float[3,4,3] w, float[1] b",
                           "y = ConvTranspose(x, w, b)", "",
                           "the bias must have 4 elements"),
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
                            "attribute 'output_shape' is -5, not 0 to 1048576"),
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
                   "initial states are [2x4], not [1x2x4]; ONNX has no "
                   "projections"),
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
                        "input 0 ('input_sequence') is f32, which "
                        "ConcatFromSequence of operator set"),
    "Loop body": ("float[2] x", "y = Loop(n, , x) <body = b (int64 i) => "
                  "(bool c) { c = Constant<value = bool {1}>() }>",
                  "int64 n = {2}", "the body does not fit the loop's inputs"),
    "Loop condition": (
        "float[2] x", "y = Loop(n, , x) <body = b (int64 i, bool k, float[2] a)"
        " => (bool[2] d, float[2] e) { d = Cast<to=9>(a)\n e = Relu(a) }>",
        "int64 n = {2}", "the body's condition is not one bool"),
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
    "LSTM of no steps": (
        "float[0,2,3] x, float[1,16,3] w, float[1,16,4] r",
        "y = LSTM<hidden_size=4>(x, w, r)", "",
        "a sequence of no steps is not supported"),
    "tensor wanted": ("float[2] x", "s = SequenceEmpty()\ny = Relu(s)", "",
                      "input 0 is no tensor"),
    "shape from data": ("float[6] x, int64[1] s", "y = Reshape(x, s)", "",
                        "input 'shape' (s) decides shapes, so it must be known "
                        "when compiling; give --const s=FILE.npy"),
    "computed branch": (
        "float[2] x", "s = ReduceSum<keepdims=0>(x)\nc = Greater(s, zero)\n"
        "y = If(c) <then_branch = t () => (float[2] u) { u = Relu(x) }, "
        "else_branch = e () => (float[4] v) { v = Concat<axis=0>(x, x) }>",
        "float zero = {0}",
        "input 'cond' (c) decides which branch there is (both cannot be done: "
        "their outputs 0 differ in shape or type), so it must be known "
        "when compiling; it is computed from what the plan would then have as "
        "constants: --const x=FILE.npy"),
    "branches of a computed condition": (
        "float[2] x, bool c",
        "y, z = If(c) <then_branch = t () => (float[2] u, float[2] w) "
        "{ u = Relu(x) w = Neg(x) }, else_branch = e () => (float[2] v) "
        "{ v = Neg(x) }>", "",
        "(both cannot be done: they have different numbers of outputs), so it "
        "must be known when compiling; give --const c=FILE.npy"),
    "wrong branch of a computed condition": (
        "float[2] x, bool c",
        "y = If(c) <then_branch = t () => (float[2] u) { u = Relu(x) }, "
        "else_branch = e () => (float[2] v) { v = Reshape(x, three) }>",
        "int64[1] three = {3}",
        "decides which branch there is (both cannot be done: node of output 'v' "
        "(Reshape of 2xf32, 1xi64): cannot reshape [2] to [3]), so it must be "
        "known when compiling; give --const c=FILE.npy"),
    "loop that data ends changes a shape": (
        "float[2] x", "y = Loop(n, , x) <body = b (int64 i, bool k, float[2] a)"
        " => (bool d, float[4] e) { s = ReduceSum<keepdims=0>(x)\n "
        "d = Cast<to=9>(s)\n e = Concat<axis=0>(a, a) }>", "int64 n = {3}",
        "how often the loop runs depends on data, and value 0 that it carries "
        "along changes its shape or type"),
    "loop of many steps that data end": (
        "float[2] x", "y = Loop(n, , x) <body = b (int64 i, bool k, float[2] a)"
        " => (bool d, float[2] e) { s = ReduceSum<keepdims=0>(a)\n "
        "d = Cast<to=9>(s)\n e = Relu(a) }>", "int64 n = {5000}",
        "only loops whose length is known when compiling have so many steps"),
    "loop as long as data says": (
        "float[2] x, int64 m",
        "y = Loop(m, , x) <body = b (int64 i, bool go, float[2] a) => "
        "(bool on, float[2] r) { on = Identity(go) r = Relu(a) }>", "",
        "input 'M' (m) decides how often a loop runs, so it must be known when "
        "compiling; give --const m=FILE.npy"),
    "loop that data begins": (
        "float[2] x, bool c",
        "y, z = Loop(m, c, x) <body = b (int64 i, bool go, float[2] a) => "
        "(bool on, float[2] r, float[2] q) { on = Identity(go) r = Relu(a) "
        "q = Exp(a) }>",
        "int64 m = {2}",
        "input 'cond' (c) decides whether a loop runs, so it must be known when "
        "compiling; give --const c=FILE.npy"),
    "Cast": ("float[2] x", "y = Cast<to=8>(x)", "",
             "element type STRING is not supported"),
    "Dropout": ("float[2] x", "y = Dropout(x, r, t)",
                "float r = {0.5}, bool t = {1}",
                "random numbers, also Dropout's, are for training; axopt "
                "--eval takes the model in evaluation mode"),
    "RandomNormal": ("float[2] x", "z = RandomNormal<shape=[2]>()\n"
                     "y = Add(x, z)", "",
                     "random numbers, also Dropout's, are for training; axopt "
                "--eval takes the model in evaluation mode"),
    "Constant": ("float[2] x", "y = Constant<value_string=\"a\">()", "",
                 "constants of strings are not supported"),
    "LpNormalization": ("float[2,3] x", "y = LpNormalization<p=3>(x)", "",
                        "p is 3, not 1 or 2"),
    "MaxPool": ("float[1,1,64,64] x",
                "y, i = MaxPool<kernel_shape=[64,64]>(x)", "",
                "indices of so large a window"),
    "LSTM alpha": ("float[5,2,3] x, float[1,16,3] w, float[1,16,4] r",
                   "y = LSTM<hidden_size=4, activation_alpha=[0.5]>(x, w, r)",
                   "", "parameters of activations other than "
                   "HardSigmoid"),
    "LSTM activation": ("float[5,2,3] x, float[1,16,3] w, float[1,16,4] r",
                        "y = LSTM<hidden_size=4, activations=[\"Affine\", "
                        "\"Tanh\", \"Tanh\"]>(x, w, r)", "",
                        "activation affine"),
    "ReduceLogSumExp": ("int32[2,3] x", "y = ReduceLogSumExp(x)", "",
                        "integers are not supported"),
    "SplitToSequence": ("float[8193] x", "s = SplitToSequence(x)\n"
                        "y = SequenceAt(s, p)", "int64 p = {0}",
                        "a sequence of 8193 tensors"),
    "DFT": ("float[2,4099,1] x", "y = DFT(x)", "",
            "a transform of 4099 points, of which 4099 is prime"),
    "DFT of too many": ("float[1,16777259,1] x", "y = DFT(x)", "",
                        "a transform of 16777259 points"),
    "QuantizeLinear": ("float[4] x", "z = QuantizeLinear<output_dtype=18>(x, s)"
                       "\ny = Cast<to=1>(z)", "float s = {1}",
                       "element type FLOAT8E4M3FNUZ is not supported"),
    "Loop of data": ("float[2] x", "y, z = Loop(n, , x) <body = b "
                     "(int64 i, bool k, float[2] a) => (bool d, float[2] e, "
                     "float[2] f) { s = ReduceSum<keepdims=0>(a)\n "
                     "d = Cast<to=9>(s)\n e = Relu(a)\n f = Neg(a) }>",
                     "int64 n = {2}",
                     "whether the loop goes on depends on data; only loops "
                     "whose length is known when compiling have scan outputs"),
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


# Of other operator sets than the newest.
OLD = {"old Scan": 8, "ReduceLogSumExp": 18}


def build(name, inputs, nodes, initializers):
    output = "seq(float[2]) y" if name == "sequence output" else "float y"
    return model(inputs, output, nodes, initializers,
                 opset=OLD.get(name))


def refuseNode(name, inputs, nodes, initializers, message, code):
    refuse(build(name, inputs, nodes, initializers), message, code)


def cases(every):
    for code, table in (3, MALFORMED), (4, UNSUPPORTED):
        for name, row in table.items():
            yield f"{code} {name}", refuseNode, name, *row, code
