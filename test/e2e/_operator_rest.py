# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrent and quantised layers, attention, losses, graphs, sequences."""
import itertools

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from _operator_case import Case, Maker, ints, product, random


class Rest(Maker):
    # Recurrent

    def recurrent(self, gates, states, more):
        steps, batch, width, hidden = 4, 2, 3, 5
        for direction, attributes in itertools.product(
                ("forward", "reverse", "bidirectional"), more):
            d = 2 if direction == "bidirectional" else 1
            attributes = {
                name: value * d if name.startswith("activation") else value
                for name, value in attributes.items()}
            inputs = [random((steps, batch, width)),
                      random((d, gates * hidden, width), seed=1),
                      random((d, gates * hidden, hidden), seed=2),
                      random((d, 2 * gates * hidden), seed=3),
                      np.array([4, 2], np.int32),
                      *[random((d, batch, hidden), seed=4 + i)
                        for i in range(states)]]
            yield self.case(*inputs, outputs=1 + states, attributes={
                "hidden_size": hidden, "direction": direction, **attributes})
            yield self.case(*inputs[:3], outputs=1, attributes={
                "hidden_size": hidden, "direction": direction, **attributes})

    def RNN(self):
        yield from self.recurrent(1, 1, [{}, {"clip": 0.5}])

    def GRU(self):
        keras = {"activations": ["HardSigmoid", "Tanh"]}
        yield from self.recurrent(3, 1, [
            {}, {"linear_before_reset": 1}, keras,
            {**keras, "activation_alpha": [0.3], "activation_beta": [0.4]}])

    # onnxruntime does not clip what the last activation takes, ONNX says so.
    def LSTM(self):
        names = {"activations": ["HardSigmoid", "Tanh", "HardSigmoid"]}
        yield from self.recurrent(4, 2, [
            {}, names, {**names, "activation_alpha": [0.3, 0.1],
                        "activation_beta": [0.4, 0.6]}])

    # Quantised

    def QuantizeLinear(self):
        x = random((3, 4), low=-4, high=4)
        one = np.array(0.05, np.float32)
        for zero in None, np.array(7, np.uint8), np.array(-3, np.int8):
            yield self.case(x, one, zero)
        if self.has("axis"):
            yield self.case(x, random((4,), low=0.02, high=0.1),
                            random((4,), np.uint8, 0, 9),
                            attributes={"axis": 1})

    def DequantizeLinear(self):
        x = random((3, 4), np.uint8, 0, 99)
        one = np.array(0.05, np.float32)
        yield self.case(x, one)
        yield self.case(x, one, np.array(7, np.uint8))
        if self.has("axis"):
            yield self.case(x, random((3,), low=0.02, high=0.1),
                            random((3,), np.uint8, 0, 9),
                            attributes={"axis": 0})
        # Numbers that f16 does not have, in units of a scale of that type.
        if self.has("block_size"):
            small = np.array(0.001, np.float16)
            for x in (np.array([70000, 100001, -66003], np.int32),
                      np.array([2049, 30001, -2051], np.int16)):
                yield self.case(x, small, np.zeros((), x.dtype))
            if self.has("output_dtype"):
                yield self.case(np.array([127, 51, -127], np.int8), small,
                                attributes={"output_dtype": 1})

    def DynamicQuantizeLinear(self):
        yield self.case(random((3, 4), low=-4, high=4), outputs=3)

    def MatMulInteger(self):
        yield self.case(random((2, 3), np.uint8, 0, 99),
                        random((3, 4), np.uint8, 0, 99, 1),
                        np.array(7, np.uint8), np.array(9, np.uint8))

    def ConvInteger(self):
        yield self.case(random((1, 2, 5, 5), np.uint8, 0, 99),
                        random((3, 2, 3, 3), np.uint8, 0, 99),
                        np.array(7, np.uint8), attributes={
                            "pads": [1, 1, 1, 1]})

    def scales(self):
        return [np.array(s, np.float32) for s in (0.05, 0.04, 0.3)]

    def QLinearMatMul(self):
        a, b, y = self.scales()
        zero = np.array(7, np.uint8)
        yield self.case(random((2, 3), np.uint8, 0, 99), a, zero,
                        random((3, 4), np.uint8, 0, 99, 1), b, zero, y, zero)

    def QLinearConv(self):
        a, b, y = self.scales()
        zero = np.array(7, np.uint8)
        yield self.case(random((1, 2, 5, 5), np.uint8, 0, 99), a, zero,
                        random((3, 2, 3, 3), np.uint8, 0, 20, 1), b, zero, y,
                        zero)

    # Attention and its kin

    def Attention(self):
        q, k, v = (random((2, 3, n, 4), seed=i)
                   for i, n in enumerate((5, 6, 6)))
        for attributes in self.some([
                {}, {"is_causal": 1}, {"scale": 0.3}, {"softcap": 2.0},
                {"left_window_size": 2, "right_window_size": 1}]):
            yield self.case(q, k, v, attributes=attributes)
        yield self.case(q, k, v, random((5, 6), bool, seed=9))
        flat = random((2, 5, 12))
        yield self.case(flat, flat, flat, attributes={
            "q_num_heads": 3, "kv_num_heads": 3})

    def RotaryEmbedding(self):
        yield self.case(random((2, 3, 4, 8)), random((4, 4)),
                        random((4, 4), seed=1),
                        random((2, 4), np.int64, 0, 4))

    def CausalConvWithState(self):
        yield self.case(random((2, 3, 6)), random((3, 1, 4)),
                        random((3,), seed=1), outputs=2,
                        attributes={"activation": "silu"})

    def LinearAttention(self):
        shape = (2, 5, 12)
        yield self.case(random(shape), random(shape, seed=1),
                        random(shape, seed=2), outputs=2, attributes={
                            "q_num_heads": 3, "kv_num_heads": 3,
                            "update_rule": "linear"})

    def SwiGLU(self):
        yield self.case(random((2, 8)), random((2, 8), seed=1),
                        attributes={"alpha": 1.5})

    # Losses

    def NegativeLogLikelihoodLoss(self):
        x, y = random((3, 5)), ints(1, 4, 0)
        for reduction in "none", "sum", "mean":
            yield self.case(x, y, attributes={"reduction": reduction})
        yield self.case(x, y, random((5,), low=0.5), attributes={
            "ignore_index": 4})

    SoftmaxCrossEntropyLoss = NegativeLogLikelihoodLoss

    # Signals

    def DFT(self):
        for attributes in self.some([{}, {"inverse": 1}, {"onesided": 1}]):
            parts = 1 if attributes.get("onesided") else 2
            yield self.case(random((2, 8, 5, parts)), attributes=attributes)
        if self.has("axis"):
            yield self.case(random((2, 8, 5, 1)), attributes={"axis": 2})
        else:
            yield self.case(random((2, 8, 5, 1)), None, np.array(1), known={2})
        # Of several factors, and prime; other lengths than there is.
        for length in 60, 37, 64, 98:
            yield self.case(random((2, length, 2)))
        # onnxruntime sums in single precision.
        yield self.case(random((2, 50, 1)), np.array(90), known={1}, rtol=1e-4)
        yield self.case(random((2, 33, 2)), np.array(64), known={1},
                        attributes={"inverse": 1, "onesided": 1}
                        if not self.has("axis") else {"inverse": 1})

    def STFT(self):
        step = np.array(3)
        window = random((8,), low=0.2, high=1)
        for sided in 0, 1:
            yield self.case(random((2, 40, 1)), step, window, np.array(8),
                            known={1, 3}, attributes={"onesided": sided})
        yield self.case(random((2, 70, 1)), step, None, np.array(40),
                        known={1, 3})
        yield self.case(random((1, 40, 2)), step, window, known={1},
                        attributes={"onesided": 0})

    def window(self):
        for periodic in 0, 1:
            yield self.case(np.array(9), known={0},
                            attributes={"periodic": periodic})

    BlackmanWindow = HammingWindow = HannWindow = window

    # Graphs in nodes

    def If(self):
        def branch(value):
            value = numpy_helper.from_array(np.array(value, np.float32))
            return helper.make_graph(
                [helper.make_node("Constant", [], ["r"], value=value)], "b", [],
                [helper.make_tensor_value_info("r", TensorProto.FLOAT, [1])])
        for condition in True, False:
            yield from self.sequence(
                [("If", ["i0"], ["o0"], {"then_branch": branch([1]),
                                         "else_branch": branch([2])})],
                [np.array(condition)], {0}, name=f" {condition}")

    # Sequences

    def sequence(self, nodes, inputs, known=(), outputs=1, name=""):
        case = Case(self.op, self.opset, inputs, {}, known, outputs,
                    nodes=nodes)
        case.name = f"{self.op}-{self.opset}{name}"
        yield case

    def SequenceConstruct(self):
        yield from self.sequence(
            [("SequenceConstruct", ["i0", "i1"], ["s"], {}),
             ("ConcatFromSequence", ["s"], ["o0"], {"axis": 0})],
            [random((2, 3)), random((1, 3), seed=1)])

    def ConcatFromSequence(self):
        yield from self.sequence(
            [("SequenceConstruct", ["i0", "i1"], ["s"], {}),
             ("ConcatFromSequence", ["s"], ["o0"], {"axis": -1,
                                                    "new_axis": 1})],
            [random((2, 3)), random((2, 3), seed=1)])

    def SequenceAt(self):
        yield from self.sequence(
            [("SequenceConstruct", ["i0", "i1"], ["s"], {}),
             ("SequenceAt", ["s", "i2"], ["o0"], {})],
            [random((2, 3)), random((2, 3), seed=1), np.array(-1)], {2})

    def SequenceInsert(self):
        yield from self.sequence(
            [("SequenceConstruct", ["i0"], ["s"], {}),
             ("SequenceInsert", ["s", "i1", "i2"], ["t"], {}),
             ("ConcatFromSequence", ["t"], ["o0"], {"axis": 0})],
            [random((2, 3)), random((2, 3), seed=1), np.array(0)], {2})

    def SequenceErase(self):
        yield from self.sequence(
            [("SequenceConstruct", ["i0", "i1"], ["s"], {}),
             ("SequenceErase", ["s"], ["t"], {}),
             ("ConcatFromSequence", ["t"], ["o0"], {"axis": 0})],
            [random((2, 3)), random((2, 3), seed=1)])

    def SequenceEmpty(self):
        yield from self.sequence(
            [("SequenceEmpty", [], ["s"], {}),
             ("SequenceInsert", ["s", "i0"], ["t"], {}),
             ("ConcatFromSequence", ["t"], ["o0"], {"axis": 0})],
            [random((2, 3))])

    def SequenceLength(self):
        yield from self.sequence(
            [("SequenceConstruct", ["i0", "i0"], ["s"], {}),
             ("SequenceLength", ["s"], ["o0"], {})], [random((2, 3))])

    def SplitToSequence(self):
        yield from self.sequence(
            [("SplitToSequence", ["i0", "i1"], ["s"], {"axis": 1}),
             ("SequenceAt", ["s", "i2"], ["o0"], {})],
            [random((2, 5)), np.array(2), np.array(2)], {1, 2})

    def SequenceMap(self):
        body = helper.make_graph(
            [helper.make_node("Relu", ["a"], ["b"])], "body",
            [helper.make_tensor_value_info("a", TensorProto.FLOAT, None)],
            [helper.make_tensor_value_info("b", TensorProto.FLOAT, None)])
        yield from self.sequence(
            [("SequenceConstruct", ["i0", "i1"], ["s"], {}),
             ("SequenceMap", ["s"], ["t"], {"body": body}),
             ("ConcatFromSequence", ["t"], ["o0"], {"axis": 0})],
            [random((2, 3)), random((2, 3), seed=1)])

    def Optional(self):
        yield from self.sequence(
            [("Optional", ["i0"], ["s"], {}),
             ("OptionalGetElement", ["s"], ["o0"], {}),
             ("OptionalHasElement", ["s"], ["o1"], {})], [random((2, 3))],
            outputs=2)

    OptionalGetElement = OptionalHasElement = Optional

    def Loop(self):
        body = helper.make_graph(
            [helper.make_node("Add", ["a", "a"], ["b"]),
             helper.make_node("Identity", ["k"], ["l"]),
             helper.make_node("Identity", ["b"], ["c"])], "body",
            [helper.make_tensor_value_info("i", TensorProto.INT64, []),
             helper.make_tensor_value_info("k", TensorProto.BOOL, []),
             helper.make_tensor_value_info("a", TensorProto.FLOAT, [3])],
            [helper.make_tensor_value_info("l", TensorProto.BOOL, []),
             helper.make_tensor_value_info("b", TensorProto.FLOAT, [3]),
             helper.make_tensor_value_info("c", TensorProto.FLOAT, [3])])
        yield from self.sequence(
            [("Loop", ["i0", "i1", "i2"], ["o0", "o1"], {"body": body})],
            [np.array(3), np.array(True), random((3,))], {0, 1}, 2)

    def Scan(self):
        body = helper.make_graph(
            [helper.make_node("Add", ["a", "x"], ["b"]),
             helper.make_node("Identity", ["b"], ["c"])], "body",
            [helper.make_tensor_value_info("a", TensorProto.FLOAT, [3]),
             helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
            [helper.make_tensor_value_info("b", TensorProto.FLOAT, [3]),
             helper.make_tensor_value_info("c", TensorProto.FLOAT, [3])])
        yield from self.sequence(
            [("Scan", ["i0", "i1"], ["o0", "o1"], {
                "body": body, "num_scan_inputs": 1,
                "scan_input_directions": [1]})],
            [random((3,)), random((4, 3), seed=1)], (), 2)
