# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of which data decide how many results they have."""
import numpy as np

from _operator_case import Maker, ints, random


class Selection(Maker):
    def NonMaxSuppression(self):
        corners = random((2, 9, 4), low=0, high=1)
        centres = np.concatenate([corners[..., :2], corners[..., 2:] / 2], -1)
        scores = random((2, 3, 9), low=0, high=1)
        scores[0, 0, 3] = scores[0, 0, 5]
        number = lambda value: np.array([value], np.float32)
        for center, boxes in enumerate((corners, centres)):
            for most, overlap, least in (4, 0.3, 0.2), (9, 0.6, 0.5), (2, 0, 0):
                yield self.case(
                    boxes, scores, ints(most), number(overlap), number(least),
                    known={2, 3, 4}, attributes={"center_point_box": center})
        yield self.case(corners, scores, ints(5), known={2})
        # Without a threshold every score is good enough.
        worst = scores.copy()
        worst[:, :, ::2] = -np.inf
        yield self.case(corners, worst, ints(9), number(0.9), known={2, 3})

        # Of negative width or height: nothing is in these.
        inside = centres * np.float32([1, 1, 4, 4])
        inside[:, 1::3, 2] *= -1
        inside[:, ::4, 3] *= -1
        yield self.case(inside, scores, ints(9), number(0.05), number(0.1),
                        known={2, 3, 4}, attributes={"center_point_box": 1})

    def Unique(self):
        for sorted in 0, 1:
            for type in np.float32, np.int64:
                yield self.case(random((3, 5), type, -3, 3).round(), outputs=4,
                                attributes={"sorted": sorted}, room=15)
