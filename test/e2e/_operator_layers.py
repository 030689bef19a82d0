# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Contractions, pools, normalisations, interpolation."""
import itertools

import numpy as np

from _operator_case import Maker, ints, product, random


class Layers(Maker):
    # Contractions

    def MatMul(self):
        for a, b in (((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((3,), (3, 4)),
                     ((2, 1, 2, 3), (5, 3, 4)), ((4, 0), (0, 5)),
                     ((2, 4, 0), (2, 0, 5)), ((4, 3), (3, 0)),
                     ((0, 3), (3, 4))):
            yield self.case(random(a), random(b, seed=1))

    def Gemm(self):
        for attributes in product(transA=[None, 1], transB=[None, 1],
                                  alpha=[None, 0.5], beta=[None, 2.0]):
            x = random((3, 2) if attributes.get("transA") else (2, 3))
            w = random((4, 3) if attributes.get("transB") else (3, 4), seed=1)
            yield self.case(x, w, random((4,), seed=2), attributes=attributes)
        yield self.case(random((0, 2)), random((4, 0)), random((4,), seed=2),
                        attributes={"transA": 1, "transB": 1})
        if self.opset >= 11:
            yield self.case(random((2, 3)), random((3, 4), seed=1))

    def Einsum(self):
        for equation, shapes in (("ij,jk->ik", ((2, 3), (3, 4))),
                                 ("bij,bjk", ((2, 3, 4), (2, 4, 5))),
                                 ("...i->...", ((2, 3),)), ("ii", ((3, 3),))):
            yield self.case(*[random(s, seed=i) for i, s in enumerate(shapes)],
                            attributes={"equation": equation})

    def Conv(self):
        x, w = random((1, 4, 7, 6)), random((6, 2, 3, 3), seed=1)
        for attributes in ({}, {"strides": [2, 1]}, {"dilations": [2, 1]},
                           {"pads": [1, 0, 2, 1]}, {"auto_pad": "SAME_UPPER"},
                           {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
                           {"auto_pad": "VALID"}):
            yield self.case(x, w, attributes={"group": 2, **attributes})
        yield self.case(random((2, 3, 8)), random((4, 3, 3), seed=1),
                        random((4,), seed=2))

    def ConvTranspose(self):
        x, w = random((1, 4, 5, 4)), random((4, 3, 3, 3), seed=1)
        for attributes in ({}, {"strides": [2, 1]}, {"dilations": [2, 1]},
                           {"pads": [1, 0, 0, 1]}, {"group": 2},
                           {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
                           {"output_padding": [1, 0], "strides": [2, 2]},
                           {"output_shape": [11, 8], "strides": [2, 2]}):
            yield self.case(x, w, attributes=attributes)

    def pools(self, more):
        x = random((1, 2, 7, 6))
        choices = [{}, {"strides": [2, 1]}, {"pads": [1, 0, 1, 1]},
                   {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
                   {"auto_pad": "SAME_LOWER"}, {"dilations": [2, 1]},
                   {"ceil_mode": 1, "strides": [2, 2]}, *more]
        for attributes in self.some(choices):
            yield self.case(x, attributes={"kernel_shape": [3, 2],
                                           **attributes})
        yield self.case(random((2, 3, 9)), attributes={"kernel_shape": [3]})

    def AveragePool(self):
        yield from self.pools([
            {"count_include_pad": 1, "pads": [1, 1, 1, 1]},
            {"count_include_pad": 1, "pads": [1, 1, 1, 1], "ceil_mode": 1,
             "strides": [2, 2]}])

    def LpPool(self):
        yield from self.pools([{"p": 1}, {"p": 3}])

    def MaxPool(self):
        yield from self.pools([])
        if len(self.schema.outputs) > 1:
            for attributes in {}, {"storage_order": 1}:
                yield self.case(random((1, 2, 5, 6)), outputs=2, attributes={
                    "kernel_shape": [2, 2], "strides": [2, 2], **attributes})

    def GlobalAveragePool(self):
        yield self.case(random((2, 3, 4, 5)))

    GlobalMaxPool = GlobalAveragePool

    def GlobalLpPool(self):
        for p in 1, 2, 3:
            yield self.case(random((2, 3, 4, 5)), attributes={"p": p})

    # Normalisations

    def along(self):
        for shape in (2, 3, 4), (3, 4):
            for axis in [None, 0, 1, len(shape) - 1] + [-1, -2] * (
                    self.opset >= 11):
                yield self.case(
                    random(shape),
                    attributes={} if axis is None else {"axis": axis})

    Softmax = LogSoftmax = Hardmax = along

    def BatchNormalization(self):
        x = random((2, 3, 4, 5))
        vectors = [random((3,), low=0.5, seed=i) for i in range(4)]
        for attributes in {}, {"epsilon": 0.01}:
            yield self.case(x, *vectors, attributes=attributes)
        if self.has("training_mode"):
            yield self.case(x, *vectors, outputs=3, attributes={
                "training_mode": 1, "momentum": 0.8})

    def InstanceNormalization(self):
        yield self.case(random((2, 3, 4, 5)), random((3,)),
                        random((3,), seed=1), attributes={"epsilon": 0.01})

    def GroupNormalization(self):
        count = 2 if self.opset < 21 else 4
        yield self.case(random((2, 4, 3, 5)), random((count,)),
                        random((count,), seed=1),
                        attributes={"num_groups": 2, "epsilon": 0.01})

    def LayerNormalization(self):
        x = random((2, 3, 4))
        yield self.case(x, random((4,)), random((4,), seed=1))
        yield self.case(x, random((3, 4)), None, attributes={
            "axis": 1, "epsilon": 0.01})

    def RMSNormalization(self):
        yield self.case(random((2, 3, 4)), random((4,)))
        yield self.case(random((2, 3, 4)), random((3, 4)),
                        attributes={"axis": 1, "epsilon": 0.01})

    def LRN(self):
        yield self.case(random((1, 5, 3, 3)), attributes={"size": 3})
        yield self.case(random((1, 5, 3, 3)), attributes={
            "size": 5, "alpha": 0.1, "beta": 0.5, "bias": 2.0})

    def LpNormalization(self):
        for attributes in {}, {"p": 1}, {"axis": 0}:
            yield self.case(random((3, 4)), attributes=attributes)

    def MeanVarianceNormalization(self):
        yield self.case(random((2, 3, 4, 5)))
        yield self.case(random((2, 3, 4, 5)), attributes={"axes": [1, 2]})
        # Far from zero: the mean's square is nearly the mean of the squares.
        yield self.case(random((3, 2, 4, 5)) + np.float32(100))

    def Dropout(self):
        x = random((3, 4))
        if self.opset < 12:
            yield self.case(x, attributes={"ratio": 0.3})
            yield self.case(x, outputs=2, compared=[0] if self.opset < 10
                            else [0, 1])
            return
        yield self.case(x)
        yield self.case(x, np.array(0.3, np.float32), outputs=2, known={1})

    # Interpolation

    def Upsample(self):
        for mode, scales in itertools.product(
                ("nearest", "linear"), ([1.0, 1.0, 2.0, 3.0], [1.0, 1.0, 1.7, 2.4])):
            x = random((1, 2, 3, 4))
            if self.opset < 9:
                yield self.case(x, attributes={"mode": mode, "scales": scales})
            else:
                yield self.case(x, np.array(scales, np.float32), known={1},
                                attributes={"mode": mode})

    def Resize(self):
        x = random((1, 2, 5, 7))
        up, down = [1, 1, 2, 1.7], [1, 1, 0.6, 0.4]
        # Sizes that are no whole numbers are rounded by onnxruntime first, by
        # ONNX not.
        exact = [1, 1, 2, 3], [1, 1, 0.6, 3 / 7]
        if self.opset < 11:
            for mode, scales in itertools.product(("nearest", "linear"),
                                                  (up, down)):
                yield self.case(x, np.array(scales, np.float32), known={1},
                                attributes={"mode": mode})
            return
        modes = ["half_pixel", "pytorch_half_pixel", "align_corners",
                 "asymmetric"]
        modes += ["tf_half_pixel_for_nn"] * (self.opset < 13)
        modes += ["half_pixel_symmetric"] * (self.opset >= 19)
        roi = np.array([], np.float32)
        for mode, coordinates, i in itertools.product(
                ("nearest", "linear", "cubic"), modes, (0, 1)):
            scales = exact[i] if coordinates == "align_corners" else \
                (up, down)[i]
            attributes = {"mode": mode,
                          "coordinate_transformation_mode": coordinates}
            rounding = [None]
            if mode == "nearest":
                # Of equally near ones, rounding decides: not here.
                rounding = ["round_prefer_floor", "round_prefer_ceil"]
                if coordinates != "half_pixel_symmetric":
                    rounding += ["floor", "ceil"]
            for nearest in rounding:
                more = {} if nearest is None else {"nearest_mode": nearest}
                yield self.case(x, roi, np.array(scales, np.float32),
                                known={1, 2}, attributes={**attributes, **more})
        for mode in "nearest", "linear":
            yield self.case(x, roi, np.array([], np.float32), ints(1, 2, 3, 9),
                            known={1, 2, 3}, attributes={"mode": mode})
        yield self.case(x, roi, np.array(down, np.float32), known={1, 2},
                        attributes={"mode": "cubic", "exclude_outside": 1,
                                    "cubic_coeff_a": -0.5})
        # 9 by that is 13 in f32, and with more digits a little less.
        yield self.case(random((1, 2, 4, 9)), roi,
                        np.array([1, 1, 0.5, 13 / 9], np.float32), known={1, 2},
                        attributes={"mode": "linear"})
        crop = np.array([0, 0, 0.2, 0.1, 1, 1, 0.8, 1.2], np.float32)
        yield self.case(x, crop, np.array([], np.float32), ints(1, 2, 3, 4),
                        known={1, 2, 3}, attributes={
                            "mode": "linear", "extrapolation_value": 9.0,
                            "coordinate_transformation_mode":
                                "tf_crop_and_resize"})
        if self.has("antialias"):
            yield self.case(x, None, np.array(down, np.float32), known={2},
                            attributes={"mode": "linear", "antialias": 1})
            yield self.case(x, None, np.array([2, 1.7], np.float32), known={2},
                            attributes={"mode": "linear", "axes": [2, 3]})
            yield self.case(x, None, None, ints(8, 8), known={3}, attributes={
                "axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"})

    def AffineGrid(self):
        for align in 0, 1:
            yield self.case(random((2, 2, 3)), ints(2, 3, 4, 5), known={1},
                            attributes={"align_corners": align})
