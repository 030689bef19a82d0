# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators on numbers, on shapes and by index."""
import itertools

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from _operator_case import Maker, axes_form, ints, product, random


# What inputs of a unary operator are: range, and type where it is not f32.
UNARY = {
    "Abs": (-2, 2), "Acos": (-1, 1), "Acosh": (1, 4), "Asin": (-1, 1),
    "Asinh": (-3, 3), "Atan": (-3, 3), "Atanh": (-0.9, 0.9), "Ceil": (-3, 3),
    "Cos": (-3, 3), "Cosh": (-3, 3), "Erf": (-3, 3), "Exp": (-3, 3),
    "Floor": (-3, 3), "Identity": (-3, 3), "Log": (0.1, 4), "Neg": (-3, 3),
    "Reciprocal": (0.5, 3), "Relu": (-3, 3), "Round": (-3, 3),
    "Sigmoid": (-3, 3), "Sign": (-3, 3), "Sin": (-3, 3), "Sinh": (-3, 3),
    "Softplus": (-3, 3), "Softsign": (-3, 3), "Sqrt": (0, 3), "Tan": (-1, 1),
    "Tanh": (-3, 3), "HardSwish": (-4, 4), "Mish": (-3, 3), "IsNaN": (-3, 3),
    "Not": (0, 1, bool), "BitwiseNot": (-9, 9, np.int32),
    "NonZero": (0, 2, np.int32),
}
# Attributes of those that have some: each alone, after none.
UNARY_ATTRIBUTES = {
    "Celu": [{"alpha": 0.7}], "Elu": [{"alpha": 0.7}],
    "HardSigmoid": [{"alpha": 0.3, "beta": 0.4}], "IsInf": [
        {"detect_negative": 0}, {"detect_positive": 0}],
    "LeakyRelu": [{"alpha": 0.2}], "Selu": [{"alpha": 1.5, "gamma": 1.2}],
    "ThresholdedRelu": [{"alpha": 0.5}],
    "Shrink": [{"lambd": 0.7, "bias": 0.3}],
    "Gelu": [{"approximate": "tanh"}], "Swish": [{"alpha": 0.5}],
}
BINARY = ("Add", "Div", "Equal", "Greater", "GreaterOrEqual", "Less",
          "LessOrEqual", "Mul", "Sub")
LOGICAL = ("And", "Or", "Xor")
BITWISE = ("BitwiseAnd", "BitwiseOr", "BitwiseXor")
REDUCTIONS = ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
              "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
              "ReduceSumSquare")


class Elements(Maker):
    def cases(self):
        op = self.op
        if op in UNARY:
            yield from self.unary(*UNARY[op])
        elif op in UNARY_ATTRIBUTES:
            for attributes in [{}] + UNARY_ATTRIBUTES[op]:
                x = random((3, 5), low=-4, high=4)
                if op == "IsInf":
                    x[0, 0], x[1, 1] = np.inf, -np.inf
                yield self.case(x, attributes=attributes)
        elif op in BINARY:
            yield from self.binary()
        elif op in LOGICAL:
            yield self.case(random((2, 3), bool), random((3,), bool))
        elif op in BITWISE:
            yield self.case(random((2, 3), np.int32, -9, 9),
                            random((3,), np.int32, -9, 9))
        elif op in REDUCTIONS:
            yield from self.reduction()
        elif hasattr(self, op):
            yield from getattr(self, op)()

    def unary(self, low, high, dtype=np.float32):
        yield self.case(random((3, 5), dtype, low, high),
                        known={0} if self.op == "NonZero" else ())
        if dtype == np.float32 and self.op not in ("Round", "IsNaN"):
            yield self.case(random((), dtype, low, high))

    def binary(self):
        pairs = [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1, 3), (4, 1)),
                 ((), (3,))]
        for a, b in pairs:
            x, y = random(a, low=1, seed=1), random(b, low=0.5, seed=2)
            if self.op == "Equal":
                x, y = random(a, np.int32, 0, 2), random(b, np.int32, 0, 2)
            yield self.case(x, y)
        types = self.schema.type_constraints[0].allowed_type_strs
        if "tensor(int32)" in types and self.op != "Equal":
            yield self.case(random((2, 3), np.int32, 1, 9),
                            random((3,), np.int32, 1, 5))

    def reduction(self):
        x = random((2, 3, 4), low=0.5)
        for axes in [None, [1], [0, -1], [-2], [2, 0], [1, 1]]:
            for keepdims in None, 0:
                extra, attributes = axes_form(self.schema, axes)
                if keepdims is not None:
                    attributes["keepdims"] = keepdims
                # The reference adds repeated axes twice, onnxruntime once.
                if axes == [1, 1] and keepdims is not None:
                    continue
                yield self.case(x, *extra, known={1}, attributes=attributes)
        if self.has("noop_with_empty_axes"):
            for noop in 0, 1:
                yield self.case(x, known={1},
                                attributes={"noop_with_empty_axes": noop})

    # Numbers

    def Pow(self):
        yield self.case(random((2, 3), low=0.5), random((3,), low=-2))
        if self.opset >= 12:
            yield self.case(random((2, 3), low=0.5),
                            random((3,), np.int64, 0, 4))

    def PRelu(self):
        yield self.case(random((2, 3, 4)), random((3, 1), seed=1))
        yield self.case(random((2, 3)), random((1,), seed=1))

    def Mod(self):
        x, y = random((2, 3), np.int32, -9, 9), ints(3, -4, 5).astype(np.int32)
        yield self.case(x, y)
        yield self.case(x, y, attributes={"fmod": 1})
        yield self.case(random((2, 3), low=-9, high=9),
                        np.array([3, -4, 5], np.float32),
                        attributes={"fmod": 1})

    def BitShift(self):
        for direction in "LEFT", "RIGHT":
            yield self.case(random((2, 3), np.uint8, 0, 99),
                            random((3,), np.uint8, 0, 4),
                            attributes={"direction": direction})

    def variadic(self):
        # They broadcast since set 8.
        other = (2, 3) if self.opset < 8 else (3,)
        for count in 1, 2, 3:
            yield self.case(random((2, 3)), *[
                random(other, seed=i) for i in range(1, count)])

    Max = Min = Mean = Sum = variadic

    def Clip(self):
        x = random((3, 4))
        if self.opset < 11:
            for attributes in product(min=[None, -0.5], max=[None, 0.7]):
                yield self.case(x, attributes=attributes)
            return
        low, high = np.float32(-0.5), np.float32(0.7)
        for a, b in itertools.product([None, np.array(low)],
                                      [None, np.array(high)]):
            yield self.case(x, a, b)

    def Where(self):
        yield self.case(random((2, 3), bool), random((3,)),
                        random((2, 1), seed=1))

    def Cast(self):
        for source, target in ((np.float32, TensorProto.INT32),
                               (np.int64, TensorProto.FLOAT),
                               (np.float32, TensorProto.BOOL),
                               (bool, TensorProto.FLOAT),
                               (np.float32, TensorProto.FLOAT16)):
            for more in [{}] + self.some([{"saturate": 0}]):
                yield self.case(random((2, 3), source, -3, 3),
                                attributes={"to": target, **more})

    def CastLike(self):
        yield self.case(random((2, 3)), random((1,), np.int32))

    def Expand(self):
        yield self.case(random((3, 1)), ints(2, 1, 4), known={1})
        yield self.case(random((3, 4)), ints(3, 1), known={1})

    def Range(self):
        yield self.case(np.array(2, np.int64), np.array(9, np.int64),
                        np.array(3, np.int64), known={0, 1, 2})
        yield self.case(np.float32(2.5).reshape(()), np.float32(-1).reshape(()),
                        np.float32(-0.5).reshape(()), known={0, 1, 2})

    def EyeLike(self):
        for attributes in [{}, {"k": 1}, {"k": -1, "dtype": TensorProto.INT64}]:
            yield self.case(random((3, 4)), attributes=attributes)

    def Constant(self):
        tensor = numpy_helper.from_array(random((2, 3)))
        yield self.case(attributes={"value": tensor})
        for attributes in self.some([
                {"value_float": 1.5}, {"value_int": 3},
                {"value_floats": [1.5, 2]}, {"value_ints": [1, 2]}]):
            yield self.case(attributes=attributes)

    def ConstantOfShape(self):
        yield self.case(ints(2, 3), known={0})
        value = helper.make_tensor("v", TensorProto.INT64, [1], [7])
        yield self.case(ints(2), known={0}, attributes={"value": value})

    def OneHot(self):
        for axis in None, 0, 1, -1:
            yield self.case(
                ints(0, 2, 1), ints(3), np.array([0.5, 2], np.float32),
                known={1}, attributes={} if axis is None else {"axis": axis})

    # Shapes

    def Reshape(self):
        x = random((2, 3, 4))
        for shape in [6, 4], [0, -1], [-1], [2, 0, 2, 2]:
            yield self.case(x, ints(*shape), known={1})
        if self.has("allowzero"):
            for old, new in ((0, 3), (3, 0)), ((2, 3, 0, 4), (6, 0, 4)):
                yield self.case(random(old), ints(*new), known={1},
                                attributes={"allowzero": 1})

    def Flatten(self):
        for axis in [None, 0, 1, 2, 3] + [-1] * (self.opset >= 11):
            yield self.case(random((2, 3, 4)),
                            attributes={} if axis is None else {"axis": axis})

    def Squeeze(self):
        x = random((1, 3, 1, 4))
        for axes in [None, [0], [0, 2]] + [[-2]] * (self.opset >= 11):
            extra, attributes = axes_form(self.schema, axes)
            yield self.case(x, *extra, known={1}, attributes=attributes)

    def Unsqueeze(self):
        x = random((3, 4))
        for axes in [[0], [0, 3], [2, 1]] + [[-1]] * (self.opset >= 11):
            extra, attributes = axes_form(self.schema, axes)
            yield self.case(x, *extra, known={1}, attributes=attributes)

    def Transpose(self):
        for perm in None, [0, 2, 1], [2, 0, 1]:
            yield self.case(random((2, 3, 4)),
                            attributes={} if perm is None else {"perm": perm})

    def Concat(self):
        for axis in [0, 1] + [-1] * (self.opset >= 11):
            yield self.case(random((2, 3)), random((2, 3), seed=1),
                            attributes={"axis": axis})

    def Split(self):
        x = random((6, 4))
        for axis, parts in ((0, [2, 4]), (1, [1, 3]), (0, None)):
            extra, attributes = axes_form(self.schema, parts, "split")
            if parts is None and self.has("num_outputs"):
                attributes["num_outputs"] = 2
            yield self.case(x, *extra, known={1}, outputs=2,
                            attributes={"axis": axis, **attributes})
        if self.has("num_outputs"):
            yield self.case(random((7, 2)), outputs=3,
                            attributes={"num_outputs": 3})

    def Slice(self):
        x = random((4, 5, 6))
        for starts, ends, axes in (([1], [3], None), ([0, 1], [2, 4], [0, 1]),
                                   ([-3], [-1], [2]), ([1], [1000], [1])):
            if self.opset < 10:
                attributes = {"starts": starts, "ends": ends}
                if axes is not None:
                    attributes["axes"] = axes
                yield self.case(x, attributes=attributes)
                continue
            more = [] if axes is None else [ints(*axes)]
            yield self.case(x, ints(*starts), ints(*ends), *more,
                            known={1, 2, 3})
        if self.opset >= 10:
            yield self.case(x, ints(4, 0), ints(-1000, 5), ints(1, 2),
                            ints(-2, 3), known={1, 2, 3, 4})

    def Pad(self):
        x = random((3, 4))
        pads = [1, 2, 0, 1]
        for mode in ["constant", "reflect", "edge"] + ["wrap"] * (
                self.opset >= 19):
            if self.opset < 11:
                yield self.case(x, attributes={"mode": mode, "pads": pads,
                                               "value": 0.5})
                continue
            yield self.case(x, ints(*pads), known={1},
                            attributes={"mode": mode})
        if self.opset >= 11:
            yield self.case(x, ints(*pads), np.array(0.5, np.float32),
                            known={1, 2})
            yield self.case(x, ints(1, -1, -1, 0), known={1})
        if self.takes("axes"):
            yield self.case(x, ints(1, 2), np.array(0.5, np.float32), ints(-1),
                            known={1, 2, 3})

    def Tile(self):
        for repeats in (2, 1), (0, 2):
            yield self.case(random((2, 3)), ints(*repeats), known={1})

    def Trilu(self):
        for upper in 0, 1:
            yield self.case(random((3, 4)), attributes={"upper": upper})
            yield self.case(random((3, 4)), np.array(-1), known={1},
                            attributes={"upper": upper})

    def Shape(self):
        for attributes in [{}] + self.some([{"start": 1}, {"end": -1}]):
            yield self.case(random((2, 3, 4)), attributes=attributes)

    def Size(self):
        yield self.case(random((2, 3, 4)))

    def DepthToSpace(self):
        for attributes in [{}] + self.some([{"mode": "CRD"}, {"mode": "DCR"}]):
            yield self.case(random((1, 8, 2, 3)),
                            attributes={"blocksize": 2, **attributes})

    def SpaceToDepth(self):
        for attributes in [{}] + self.some([{"mode": "CRD"}]):
            yield self.case(random((1, 2, 4, 6)),
                            attributes={"blocksize": 2, **attributes})

    def ReverseSequence(self):
        x = random((4, 3, 2))
        yield self.case(x, ints(4, 1, 2))
        yield self.case(x, ints(3, 1, 2, 3),
                        attributes={"time_axis": 1, "batch_axis": 0})

    def CenterCropPad(self):
        yield self.case(random((5, 4)), ints(3, 6), known={1})
        yield self.case(random((5, 4)), ints(6), known={1},
                        attributes={"axes": [1]})

    # By index

    def Gather(self):
        for axis in [0, 1] + [-1] * (self.opset >= 11):
            yield self.case(random((3, 4)), ints(2, 0),
                            attributes={"axis": axis})
        yield self.case(random((3, 4)), np.array([[0, 1]], np.int32))

    def GatherElements(self):
        yield self.case(random((3, 4)), random((2, 4), np.int64, 0, 3))
        yield self.case(random((3, 4)), random((3, 2), np.int64, 0, 4),
                        attributes={"axis": 1})

    def GatherND(self):
        yield self.case(random((3, 4)), ints([0, 1], [2, 3]))
        if self.has("batch_dims"):
            yield self.case(random((2, 3, 4)), ints([1], [2]),
                            attributes={"batch_dims": 1})

    def ScatterElements(self):
        x, i = random((3, 4)), ints([2, 0, 1, 0])
        for attributes in [{}] + self.some([
                {"axis": 1}, {"reduction": "add"}, {"reduction": "mul"}] + [
                {"reduction": "max"}, {"reduction": "min"}] * (
                    self.opset >= 18)):
            at = ints([1], [0], [3]) if attributes.get("axis") else i
            yield self.case(x, at, random(at.shape, seed=3),
                            attributes=attributes)

    Scatter = ScatterElements

    def ScatterND(self):
        for attributes in [{}] + self.some([
                {"reduction": "add"}, {"reduction": "mul"}] + [
                {"reduction": "max"}, {"reduction": "min"}] * (
                    self.opset >= 18)):
            yield self.case(random((3, 4)), ints([1], [0]), random((2, 4),
                            seed=1), attributes=attributes)

    def Compress(self):
        yield self.case(random((3, 4)), np.array([True, False, True]),
                        known={1}, attributes={"axis": 0})
        yield self.case(random((3, 4)), np.array([True, False, True]),
                        known={1})

    def TensorScatter(self):
        for mode in "linear", "circular":
            yield self.case(random((2, 5, 3)), random((2, 2, 3), seed=1),
                            ints(1, 2 if mode == "linear" else 4),
                            attributes={"mode": mode})

    def ArgMax(self):
        for attributes in self.some([
                {}, {"axis": 1}, {"axis": 1, "keepdims": 0},
                {"axis": 1, "select_last_index": 1}]):
            x = random((3, 4), np.int32, 0, 3).astype(np.float32)
            yield self.case(x, attributes=attributes)

    ArgMin = ArgMax

    def TopK(self):
        x = random((3, 7))
        if self.opset < 10:
            yield self.case(x, outputs=2, attributes={"k": 3})
            yield self.case(x, outputs=2, attributes={"k": 2, "axis": 0})
            return
        for attributes in self.some([{}, {"axis": 0}, {"largest": 0}]):
            yield self.case(x, ints(2), known={1}, outputs=2,
                            attributes=attributes)

    def CumSum(self):
        for attributes in product(exclusive=[None, 1], reverse=[None, 1]):
            yield self.case(random((3, 4)), np.array(1), known={1},
                            attributes=attributes)

    CumProd = CumSum
