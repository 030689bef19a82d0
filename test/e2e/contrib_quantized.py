# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of 8-bit integers that onnxruntime's quantisers write."""
import itertools

import numpy as np

from _contrib import Case, compared
from _operator_case import random

KINDS = np.uint8, np.int8
# onnxruntime computes some of them in other steps, which round otherwise where
# a number is in the middle.
TIES = 0.02


def f32(value):
    return np.array(value, np.float32)


def numbers(shape, kind, seed=0):
    info = np.iinfo(kind)
    return random(shape, kind, info.min, info.max + 1, seed)


def weights(shape, kind, seed=0):
    """Products of u8 and i8 saturate in onnxruntime on some processors; those
    of 7 bits do not."""
    return numbers(shape, kind, seed) // 2


def zero(kind, value=3):
    return np.array(value if kind == np.int8 else value + 120, kind)


def pairs():
    for kind, op in itertools.product(KINDS, ("QLinearAdd", "QLinearMul")):
        z = f32(0.517 if op == "QLinearMul" else 0.0617)
        a = numbers((2, 3, 16), kind)
        for shape in (2, 3, 16), (3, 16), (1,), ():
            yield Case(op, a, f32(0.0523), zero(kind), numbers(shape, kind, 1),
                       f32(0.0311), zero(kind, -5), z, zero(kind, 1),
                       ties=TIES, known=[1, 2, 4, 5, 6, 7])


def elements():
    for kind in KINDS:
        x = numbers((3, 40), kind)
        scales = [f32(0.05), zero(kind), f32(0.01), zero(kind, 7)]
        known = [1, 2, 3, 4]
        yield Case("QLinearSigmoid", x, *scales, known=known, ties=TIES)
        yield Case("QLinearLeakyRelu", x, *scales, known=known, ties=TIES)
        yield Case("QLinearLeakyRelu", x, f32(0.02), None, f32(0.0317),
                   zero(kind), alpha=0.3, ties=TIES)
        which = random((3, 40), bool)
        yield Case("QLinearWhere", which, x, f32(0.05), zero(kind),
                   numbers((40,), kind), f32(0.02), zero(kind, 9), f32(0.04),
                   zero(kind, 2), ties=TIES, known=[2, 3, 5, 6, 7, 8])


def softmaxes():
    for kind, opset, axis in itertools.product(KINDS, (12, 13), (1, -1)):
        yield Case("QLinearSoftmax", numbers((3, 4, 10), kind), f32(0.02),
                   zero(kind), f32(1 / 256),
                   np.array(0 if kind == np.uint8 else -128, kind),
                   axis=axis, opset=opset, known=[1, 2, 3, 4], ties=TIES)


def pools():
    for kind, last in itertools.product(KINDS, (0, 1)):
        x = numbers((2, 7, 6, 4) if last else (2, 4, 7, 6), kind)
        scales = [f32(0.0523), zero(kind), f32(0.0317), zero(kind, 7)]
        known = [1, 2, 3, 4]
        yield Case("QLinearGlobalAveragePool", x, *scales, known=known,
                   channels_last=last, ties=TIES * 2)
        for counted in 0, 1:
            yield Case("QLinearAveragePool", x, *scales, known=known,
                       channels_last=last, kernel_shape=[3, 2],
                       strides=[2, 1], pads=[1, 0, 1, 1],
                       count_include_pad=counted, ties=TIES)
        yield Case("QLinearAveragePool", x, *scales, known=known,
                   channels_last=last, kernel_shape=[3, 3], ceil_mode=1,
                   strides=[2, 2], ties=TIES)


def concatenations():
    for kind in KINDS:
        parts = []
        for i, width in enumerate((2, 5)):
            parts += [numbers((3, width), kind), f32(0.02 + 0.03 * i),
                      zero(kind, i)]
        known = [0, 1, 3, 4, 6, 7]
        yield Case("QLinearConcat", f32(0.04), zero(kind), *parts, axis=1,
                   known=known, ties=TIES)
        yield Case("QLinearConcat", f32(0.04), zero(kind), *parts[:3], axis=-1,
                   known=known, ties=TIES)


def products():
    x = random((2, 5, 12))
    for kind in KINDS:
        w, bias = weights((12, 6), kind), random((6,))
        known = [1, 2, 3, 4]
        one, many = f32(0.02), random((6,), low=0.01, high=0.03)
        zeros = numbers((6,), kind, 3)
        dynamic = "DynamicQuantizeMatMul"
        yield Case(dynamic, x, w, one, known=known)
        yield Case(dynamic, x, w, one, zero(kind), bias, known=known)
        yield Case(dynamic, x, w, many, zeros, bias, known=known)
        yield Case(dynamic, np.zeros_like(x), w, many, known=known)
        for of in KINDS:
            a = numbers((2, 5, 12), of)
            if of == np.int8 and kind == np.uint8:
                continue  # onnxruntime has no kernel.
            yield Case("MatMulIntegerToFloat", a, w, f32(0.1), one,
                       zero(of), zero(kind), bias, known=[1, 3, 5, 6])
            yield Case("MatMulIntegerToFloat", a, w, f32(0.1), many, None,
                       zeros, known=[1, 3, 5])


def attention():
    bias, mask = random((48,)), np.array([5, 3], np.int32)
    of = np.uint8
    for kind in KINDS:
        x, w = numbers((2, 5, 12), of), weights((12, 48), kind)
        scales = f32(0.02), random((48,), low=0.01, high=0.03)
        known = [1, 2, 3, 4, 6, 7]
        yield Case("QAttention", x, w, bias, f32(0.02), f32(0.03), mask,
                   zero(of), zero(kind), num_heads=2, known=known)
        yield Case("QAttention", x, w, bias, *scales, None, zero(of),
                   zero(kind), random((2, 2, 2, 3, 8)), num_heads=2,
                   unidirectional=1, outputs=(0, 1), known=known)


def recurrences():
    for kind in KINDS:
        for direction, d in (("forward", 1), ("reverse", 1),
                             ("bidirectional", 2)):
            w, r = weights((d, 12, 32), kind), weights((d, 8, 32), kind, 1)
            x, known = random((5, 1, 12)), [1, 2, 8, 9, 10, 11]
            one = random((d,), low=0.004, high=0.006)
            many = random((d, 32), low=0.004, high=0.006)
            zeros = numbers((d,), kind, 2) // 8
            # onnxruntime takes no others.
            each = np.full((d, 32), 0 if kind == np.int8 else 11, kind)
            plain = [None] * 5
            yield Case("DynamicQuantizeLSTM", x, w, r, *plain, one, zeros, one,
                       zeros, hidden_size=8, direction=direction, known=known,
                       outputs=(0, 1, 2))
            # Behind the end of a sequence is what does not count.
            tail = x.copy()
            tail[4] = 1000
            state = random((d, 1, 8), low=-1)
            yield Case("DynamicQuantizeLSTM", tail, w, r, random((d, 64)),
                       np.array([4], np.int32), state, state,
                       random((d, 24)), many, each, many, each,
                       hidden_size=8, direction=direction, known=[3] + known,
                       outputs=(0, 1, 2))


def gemms():
    for kind, of in ((np.uint8, np.uint8), (np.uint8, np.int8),
                     (np.int8, np.int8)):
        for tA, tB in itertools.product((0, 1), repeat=2):
            a = numbers((12, 5) if tA else (5, 12), kind)
            b = weights((6, 12) if tB else (12, 6), of)
            c = random((6,), np.int32, -999, 999)
            more = {"transA": tA, "transB": tB, "known": [1, 2, 3, 4, 5, 6, 7,
                                                          8]}
            left = a, f32(0.05), zero(kind)
            one = b, f32(0.02), zero(of)
            many = b, random((6,), low=0.01, high=0.03), numbers((6,), of)
            yield Case("QGemm", *left, *one, c, **more)
            yield Case("QGemm", *left, *many, None, alpha=0.5, **more)
            yield Case("QGemm", *left, *one, c, f32(0.7), zero(kind),
                       ties=TIES, **more)
            yield Case("QGemm", *left, *many, c, f32(0.7), zero(kind),
                       ties=TIES, **more)


def conversions():
    x = random((4, 3, 5), low=-9, high=9)
    for kind in KINDS:
        q = numbers((4, 3, 5), kind)
        yield Case("QuantizeLinear", x, f32(0.1), zero(kind))
        yield Case("QuantizeLinear", x, random((3,), low=0.1, high=0.2),
                   numbers((3,), kind), axis=1)
        yield Case("DequantizeLinear", q, f32(0.1), zero(kind))
        yield Case("DequantizeLinear", q, random((4,), low=0.1, high=0.2),
                   numbers((4,), kind), axis=0)
    yield Case("QuantizeLinear", x, f32(0.1))
    yield Case("DequantizeLinear", random((6,), np.int32, -999, 999), f32(0.1))


GROUPS = (pairs, elements, softmaxes, pools, concatenations, products,
          recurrences, attention, gemms, conversions)


def cases(every):
    return compared(GROUPS)
