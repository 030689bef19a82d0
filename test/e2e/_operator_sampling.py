# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that read between elements, and windows the other way round."""
import itertools

import numpy as np

from _operator_case import Maker, ints, random


class Sampling(Maker):
    def GridSample(self):
        modes = (("bilinear", "nearest", "bicubic") if self.opset < 20 else
                 ("linear", "nearest", "cubic"))
        x = random((2, 3, 5, 6))
        # Well beyond the borders too.
        grid = random((2, 4, 3, 2), low=-1.9, high=1.9)
        for mode, padding, corners in itertools.product(
                modes, ("zeros", "border", "reflection"), (0, 1)):
            yield self.case(x, grid, attributes={
                "mode": mode, "padding_mode": padding,
                "align_corners": corners})
        if self.opset < 20:
            return
        # onnxruntime has no cubic one of these.
        x = random((2, 3, 4, 5, 6))
        grid = random((2, 2, 3, 4, 3), low=-1.9, high=1.9)
        for mode, padding, corners in itertools.product(
                modes[:2], ("zeros", "border", "reflection"), (0, 1)):
            yield self.case(x, grid, attributes={
                "mode": mode, "padding_mode": padding,
                "align_corners": corners})

    def DeformConv(self):
        x = random((2, 4, 6, 5))
        for attributes, size in [
                ({}, (4, 3)),
                ({"pads": [1, 1, 1, 1], "strides": [2, 1]}, (3, 5)),
                ({"dilations": [2, 1], "pads": [2, 0, 1, 1]}, (5, 4)),
                ({"group": 2, "offset_group": 2}, (4, 3))]:
            parts = attributes.get("offset_group", 1)
            w = random((6, 4 // attributes.get("group", 1), 3, 3))
            offset = random((2, parts * 18, *size))
            yield self.case(x, w, offset, attributes=attributes)
            yield self.case(x, w, offset, random((6,), seed=1),
                            random((2, parts * 9, *size), low=0, high=1),
                            attributes=attributes)

    def RoiAlign(self):
        x = random((2, 3, 8, 10))
        rois = np.array([[0, 0, 9, 7], [2.5, 1, 6, 5.5], [-3, -2, 4, 4],
                         [7, 6, 14, 9.5], [3, 3, 3.2, 3.1]], np.float32)
        images = ints(0, 1, 1, 0, 1)
        coordinates = [{}]
        if self.has("coordinate_transformation_mode"):
            coordinates = [{"coordinate_transformation_mode": mode}
                           for mode in ("half_pixel", "output_half_pixel")]
        for mode, ratio, more in itertools.product(
                ("avg", "max"), (0, 2), coordinates):
            # What is adaptive is known from regions that are.
            yield self.case(x, rois, images, known=() if ratio else {1},
                            attributes={
                                "mode": mode, "sampling_ratio": ratio,
                                "output_height": 3, "output_width": 2,
                                "spatial_scale": 0.9, **more})

    def MaxUnpool(self):
        x = random((2, 3, 2, 3))
        windows = np.arange(36).reshape(2, 3, 2, 3)
        row, column = windows // 3, windows % 3
        places = row * 12 + column * 2 + np.random.default_rng(0).integers(
            0, 2, windows.shape)
        attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
        yield self.case(x, places, attributes=attributes)
        yield self.case(x, places, ints(2, 3, 4, 6), known={2},
                        attributes=attributes)
        yield self.case(random((2, 1, 4)), ints(0, 3, 4, 6, 8, 10, 12, 13)
                        .reshape(2, 1, 4), attributes={
                            "kernel_shape": [3], "strides": [2],
                            "pads": [1, 1]})

    def Col2Im(self):
        for attributes, image, block, windows in [
                ({}, (5, 6), (2, 3), 16),
                ({"strides": [2, 2]}, (6, 6), (2, 2), 9),
                ({"strides": [2, 1], "pads": [1, 0, 0, 2]}, (5, 4), (2, 3), 12),
                ({"dilations": [1, 2]}, (4, 5), (1, 3), 4),
                ({}, (3, 4, 5), (1, 2, 5), 9), ({"strides": [3]}, (9,), (2,), 3)]:
            x = random((2, 3 * int(np.prod(block)), windows))
            yield self.case(x, ints(*image), ints(*block), known={1, 2},
                            attributes=attributes)
