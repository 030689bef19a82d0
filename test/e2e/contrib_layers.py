# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers that onnxruntime's optimizer fuses."""
import itertools

import numpy as np

from _contrib import Case, compare, compared, difference, model_of, ours
from _operator_case import random
from cases import Failed


def activations():
    for shape in (3, 4, 8), (2, 8):
        x, bias = random(shape), random(shape[-1:])
        yield Case("Gelu", x)
        yield Case("BiasGelu", x, bias)
        yield Case("FastGelu", x)
        yield Case("FastGelu", x, bias, known=[1])
        yield Case("QuickGelu", x)
        for alpha in 0.5, 1.0:
            yield Case("QuickGelu", x, alpha=alpha)


def constants():
    for start, limit, delta in ((2, 7, None), (2.0, 7.5, 0.5), (9, -2, -3)):
        numbers = [x if x is None else np.array(x, np.array(start).dtype)
                   for x in (start, limit, delta)]
        if delta is None:
            numbers.pop()
        yield Case("Range", *numbers, known=range(3))


def products():
    a, b, c = random((2, 3, 4, 5)), random((2, 3, 5, 6)), random((5, 6))
    yield Case("FusedMatMul", a, b, alpha=0.25)
    yield Case("FusedMatMul", a, c, known=[1])
    yield Case("FusedMatMul", random((4,)), random((4, 3)), transA=1)
    yield Case("TransposeMatMul", a, random((6, 5)), transB=1, known=[1])
    # First dimensions of rows, behind those of the batch.
    for tA, tB, bA, bB in itertools.product((0, 1), repeat=4):
        left, right = [5, 4] if tA else [4, 5], [6, 5] if tB else [5, 6]
        batch = [2, 3]
        left = left[:1] + batch + left[1:] if bA else batch + left
        right = right[:1] + batch + right[1:] if bB else batch + right
        yield Case("FusedMatMul", random(tuple(left)), random(tuple(right)),
                   transA=tA, transB=tB, transBatchA=bA, transBatchB=bB,
                   alpha=2.0)


def gemms():
    a, b, c = random((3, 5)), random((5, 4)), random((4,))
    yield Case("FusedGemm", a, b, c, alpha=0.5, beta=2.0, activation="Relu")
    yield Case("FusedGemm", a.T.copy(), b.T.copy(), transA=1, transB=1,
               known=[1], activation="Tanh")
    for name in "Sigmoid", "Softplus", "Softsign":
        yield Case("FusedGemm", a, b, c, activation=name)
    for name in "Elu", "LeakyRelu", "ThresholdedRelu":
        yield Case("FusedGemm", a, b, c, activation=name, activation_alpha=0.3)
    for name in "HardSigmoid", "ScaledTanh":
        yield Case("FusedGemm", a, b, c, activation=name, activation_alpha=0.3,
                   activation_beta=0.6)


def convolutions():
    x, w, bias = random((2, 4, 7, 6)), random((6, 2, 3, 3)), random((6,))
    for name, parameters in (("Relu", []), ("Tanh", []), ("Sigmoid", []),
                             ("LeakyRelu", [0.1]), ("Clip", [-1.0, 2.0]),
                             ("HardSigmoid", [0.2, 0.5])):
        more = {"activation_params": parameters} if parameters else {}
        yield Case("FusedConv", x, w, bias, known=[1, 2], group=2,
                   pads=[1, 1, 1, 1], activation=name, **more)
    z = random((2, 6, 5, 4))
    yield Case("FusedConv", x, w, None, z, group=2, activation="Relu")
    yield Case("FusedConv", x, w, bias, z, group=2)


def norms():
    for shape in (2, 3, 8), (5, 8):
        x, skip, gamma, beta, bias = (
            random(s, seed=i) for i, s in enumerate([shape] * 2 + [(8,)] * 3))
        for withBeta, withBias in itertools.product((0, 1), repeat=2):
            yield Case("SkipLayerNormalization", x, skip, gamma,
                       beta if withBeta else None, bias if withBias else None,
                       outputs=(0, 3), epsilon=1e-3, known=[2, 3, 4])
        yield Case("SkipLayerNormalization", x, skip, gamma, beta,
                   epsilon=1e-5)
        yield Case("SkipSimplifiedLayerNormalization", x, skip, gamma,
                   epsilon=1e-5)
        yield Case("SkipSimplifiedLayerNormalization", x, skip, gamma, bias,
                   outputs=(0, 3), epsilon=1e-2)
    x, gamma = random((2, 3, 8)), random((8,), seed=1)
    for skip in (3, 8), (1, 3, 8):
        yield Case("SkipLayerNormalization", x, random(skip), gamma,
                   epsilon=1e-5)
    # A step of a decoder.
    yield Case("SkipLayerNormalization", random((2, 1, 8)), random((1, 1, 8)),
               gamma, epsilon=1e-5)


def gated():
    for dtype in np.float32, np.float16:
        x, y, gate = (random((2, 3, 16), seed=i).astype(dtype) for i in range(3))
        for width in 16, 8:
            scale = random((width,)).astype(dtype)
            for activation in "silu", "sigmoid":
                yield Case("GatedRMSNorm", x, scale, gate, epsilon=1e-3,
                           activation=activation)
            yield Case("GatedRMSNorm", x, scale, gate, activation="swish")
        yield Case("GatedAdd", x, y, gate[..., :1].copy())


def own_domain():
    """What onnxruntime writes into ONNX's own domain."""
    x, gamma, beta = random((2, 3, 8)), random((8,)), random((8,), seed=1)
    own = {"domain": ""}
    yield Case("LayerNormalization", x, gamma, beta, outputs=(0, 1, 2), **own)
    yield Case("LayerNormalization", x, random((3, 8)), axis=1, epsilon=1e-3,
               outputs=(0, 2), **own)
    yield Case("SimplifiedLayerNormalization", x, gamma, **own)
    yield Case("SimplifiedLayerNormalization", x, random((3, 8)), axis=-2,
               epsilon=1e-3, stash_type=1, outputs=(0, 1), **own)
    half = x.astype(np.float16)
    yield Case("SimplifiedLayerNormalization", half, gamma.astype(np.float16),
               **own)


def embeddings():
    words, places, segments = (random((n, 8)) for n in (11, 6, 2))
    gamma, beta = random((8,)), random((8,), seed=1)
    ids, which = (random((2, 5), np.int32, 0, n) for n in (11, 2))
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    tables = [2, 3, 4, 5, 6]
    yield Case("EmbedLayerNormalization", ids, which, words, places, segments,
               gamma, beta, mask, known=tables, outputs=(0, 1, 2),
               epsilon=1e-5)
    yield Case("EmbedLayerNormalization", ids, None, words, places, None, gamma,
               beta, known=tables, outputs=(0, 1), epsilon=1e-5)
    for batch in 1, 2:
        at = random((batch, 5), np.int32, 0, 6)
        yield Case("EmbedLayerNormalization", ids, which, words, places,
                   segments, gamma, beta, None, at, outputs=(0, 2),
                   mask_index_type=0, epsilon=1e-5)


def relativeBias(table, queries, keys, most, isBidirectional):
    """T5's, as PyTorch's transformers compute it; of a table that is written
    column by column."""
    table = table.reshape(table.shape[::-1]).T
    away = np.arange(keys)[None] - np.arange(queries)[:, None]
    buckets, first = len(table), 0
    if isBidirectional:
        buckets //= 2
        first = (away > 0) * buckets
        away = np.abs(away)
    else:
        away = np.maximum(-away, 0)
    near = buckets // 2
    part = np.log(np.maximum(away, 1).astype(np.float32) / near)
    far = near + (part / np.float32(np.log(most / near)) * (buckets - near)
                  ).astype(np.int64)
    chosen = first + np.where(away < near, away, np.minimum(far, buckets - 1))
    return table[chosen].transpose(2, 0, 1)[None]


def ofGpus():
    """Those that onnxruntime has on GPUs only, by their definitions."""
    x, skip, w = random((2, 3, 8)), random((2, 3, 8), seed=1), random((8, 4))
    bias, columns = random((8,)), random((4,), seed=2)
    made = [Case("BiasAdd", x, bias, skip), Case("GemmFastGelu", x, w, columns),
            Case("GemmFastGelu", x, w, None, known=[1])]
    table = random((32, 3))
    lengths = [(70, 70, 128, 1), (60, 60, 20, 0), (1, 9, 20, 0)]
    for queries, keys, most, isBidirectional in lengths:
        made.append(Case("RelativePositionBias", table, np.array(queries),
                         np.array(keys), known=[0, 1, 2], max_distance=most,
                         is_bidirectional=isBidirectional))
    got = ours(model_of(made), {name: value for n, case in enumerate(made)
                                for name, value in case.feeds(f"n{n}_").items()})

    def gelu(y):
        return y / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y ** 3)))
    wanted = [x + bias + skip, gelu(x @ w + columns), gelu(x @ w)]
    wanted += [relativeBias(table, *each) for each in lengths]
    for n, (case, want) in enumerate(zip(made, wanted)):
        if found := difference(got[f"n{n}_o0"], want.astype(np.float32), 2e-5, 0):
            raise Failed(f"{case.name}: {found}")


GROUPS = (activations, constants, products, gemms, convolutions, norms, gated,
          embeddings)


def cases(every):
    yield "of GPUs", ofGpus
    yield from compared(GROUPS)
    for opset in 11, 16, 17:
        yield f"own domain, {opset}", lambda opset=opset: compare(
            list(own_domain()), opset=opset)
