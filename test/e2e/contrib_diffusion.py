# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that onnxruntime's optimizer makes of diffusion models, and has on GPUs
only: beside ONNX's operators with channels first."""
import math

import numpy as np

from _contrib import Case, byOnnxruntime, difference, model_of, ours
from _operator_case import random
from cases import Failed

LAYOUTS = "", "--tp=2", "--dp=2"
X = random((2, 5, 4, 8))


def first(x):
    return np.moveaxis(x, -1, 1)


def convolutions():
    for groups, more in ((1, {"pads": [1, 1, 1, 1]}),
                         (2, {"strides": [2, 1], "auto_pad": "SAME_UPPER"})):
        w, bias = random((6, 3, 3, 8 // groups)), random((6,))
        want = byOnnxruntime(model_of([Case(
            "Conv", first(X), first(w), bias, group=groups, domain="", **more)]),
            {"n0_i0": first(X), "n0_i1": first(w), "n0_i2": bias})["n0_o0"]
        yield (Case("NhwcConv", X, w, bias, group=groups, known=[1, 2], **more),
               np.moveaxis(want, 1, -1))


def normalized(x, scale, bias, groups, silu, epsilon):
    """Channels last."""
    split = x.astype(np.float64).reshape(len(x), -1, groups,
                                         x.shape[-1] // groups)
    mean = split.mean((1, 3), keepdims=True)
    variance = split.var((1, 3), keepdims=True)
    y = ((split - mean) / np.sqrt(variance + epsilon)).reshape(x.shape)
    y = y * scale + bias
    return y / (1 + np.exp(-y)) if silu else y


def norms():
    scale, bias = random((8,)), random((8,), seed=1)
    for groups, silu in (2, 0), (8, 1):
        attributes = {"groups": groups, "activation": silu, "epsilon": 1e-2}
        want = normalized(X, scale, bias, groups, silu, 1e-2)
        yield Case("GroupNorm", X, scale, bias, **attributes), want
        yield Case("GroupNorm", first(X), scale, bias, channels_last=0,
                   **attributes), first(want)
        for shape in X.shape, (2, 1, 1, 8), (2, 8):
            skip, more = random(shape, seed=2), random((8,), seed=3)
            wide = skip if skip.ndim == 4 else skip[:, None, None]
            total = X + wide + more
            want = normalized(total, scale, bias, groups, silu, 1e-2)
            yield Case("SkipGroupNorm", X, scale, bias, skip, more,
                       outputs=(0, 1), **attributes), want, total
        want = normalized(X + wide, scale, bias, groups, silu, 1e-2)
        yield Case("SkipGroupNorm", first(X), scale, bias, skip, channels_last=0,
                   **attributes), first(want)


def gates():
    x, bias = random((2, 5, 16)), random((16,))
    left, right = np.split((x + bias).astype(np.float64), 2, -1)
    gelu = right / 2 * (1 + np.vectorize(math.erf)(right / np.sqrt(2)))
    yield Case("BiasSplitGelu", x, bias), left * gelu


def compared(group, *flags):
    rows = list(group())
    made = [case for case, *_ in rows]
    got = ours(model_of(made), {name: value for n, case in enumerate(made)
                                for name, value in case.feeds(f"n{n}_").items()},
               *flags)
    for n, (case, *wanted) in enumerate(rows):
        for i, want in enumerate(wanted):
            if found := difference(got[f"n{n}_o{i}"], want.astype(np.float32),
                                   2e-5, 0):
                raise Failed(f"{case.name}, output {i}: {found}")


def cases(every):
    for group in convolutions, norms, gates:
        for layout in LAYOUTS:
            yield (f"{group.__name__} {layout}", compared, group,
                   *layout.split())
