# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mixtures of experts, in floats and in a few bits, beside onnxruntime, and on
ranks; what onnxruntime has on GPUs only, by its definition."""
import itertools

import numpy as np

from _contrib import Case, compare, difference, model_of, ours
from _operator_case import random
from cases import Failed

EXPERTS, WIDTH, INNER = 4, 32, 16
LAYOUTS = "--tp=2", "--tp=4", "--dp=2", "--tp=2x2x1", \
    "--tp=2 --sequence-parallel"
MANY = 40,


def layers(rows, seed=0):
    """Weights and biases of both layers; the first has `rows`."""
    shapes = ((EXPERTS, rows, WIDTH), (EXPERTS, rows),
              (EXPERTS, WIDTH, INNER), (EXPERTS, WIDTH))
    return [random(shape, seed=seed + i) * np.float32(0.3)
            for i, shape in enumerate(shapes)]


def tokens(shape=(6,)):
    count = int(np.prod(shape))
    return random((*shape, WIDTH)), random((count, EXPERTS), seed=9)


def mixture(activation, shape=(6,), k=2, biased=True, **more):
    fused = activation == "swiglu"
    made = layers(2 * INNER if fused else INNER)
    if not biased:
        made[1] = made[3] = None
    return Case("MoE", *tokens(shape), *made, known=range(2, 6), k=k,
                activation_type=activation, swiglu_fusion=int(fused), **more)


def floats():
    for activation in "relu", "gelu", "silu", "identity", "swiglu":
        for normalize in 0, 1:
            yield mixture(activation, normalize_routing_weights=normalize)
    yield mixture("swiglu", (2, 3), k=4, biased=False)
    yield mixture("swiglu", k=1, activation_alpha=1.7, activation_beta=1.0,
                  swiglu_limit=0.5)
    # One token of few experts: theirs alone are read.
    yield mixture("silu", (1,), k=1)
    yield mixture("swiglu", (1, 1), k=2, normalize_routing_weights=1)


def packed(numbers, bits):
    each = 8 // bits
    padded = -numbers.shape[-1] % each
    numbers = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, padded)])
    numbers = numbers.reshape(*numbers.shape[:-1], -1, each)
    shifts = bits * np.arange(each)
    return (numbers << shifts).sum(-1).astype(np.uint8)


def quantised(rows, columns, bits, block, hasZeros, seed):
    """Bytes, scales and zero points."""
    blocks = columns // block if block else 1
    shape = EXPERTS, rows, blocks
    numbers = random((EXPERTS, rows, columns), np.int64, 0, 2 ** bits, seed=seed)
    scales = np.abs(random(shape, seed=seed)) * np.float32(0.02)
    zeros = random(shape, np.int64, 0, 2 ** bits, seed=seed + 1)
    if not block:
        scales, zeros = scales[..., 0], zeros[..., 0]
    return packed(numbers, bits), scales, packed(zeros, bits) if hasZeros else None


def inBits(bits, block, hasZeros, shape=(6,), k=2, weights=False, **more):
    x, router = tokens(shape)
    q1, s1, z1 = quantised(2 * INNER, WIDTH, bits, block, hasZeros, 0)
    q2, s2, z2 = quantised(WIDTH, INNER, bits, block, hasZeros, 5)
    b1, b2 = random((EXPERTS, 2 * INNER)), random((EXPERTS, WIDTH), seed=1)
    inputs = [x, router, q1, s1, b1, q2, s2, b2, None, None, None, z1, z2, None]
    if weights:
        inputs.append(np.abs(random(router.shape, seed=3)))
    while inputs[-1] is None:
        inputs.pop()
    if block:
        more["block_size"] = block
    return Case("QMoE", *inputs, known=range(2, 14), k=k, swiglu_fusion=1,
                activation_type="swiglu", expert_weight_bits=bits,
                activation_alpha=1.7, rtol=2e-5, **more)


def bits():
    for count, block, hasZeros in itertools.product((2, 4, 8), (0, 16), (0, 1)):
        yield inBits(count, block, hasZeros)
    for count, block in (4, 16), (8, 0), (4, 0):
        yield inBits(count, block, 1, (1,), k=2)
    # Rows that are many for each expert, whose matrices are made once then.
    for count, block in (4, 16), (8, 0), (2, 16):
        yield inBits(count, block, 1, MANY)
    for normalize in 0, 1:
        yield inBits(4, 16, 0, normalize_routing_weights=normalize)
        yield inBits(4, 16, 0, weights=True,
                     normalize_routing_weights=normalize)


def byDefinition():
    """A gate and a linear part behind each other, or of matrices of their
    own, which onnxruntime has on GPUs; and f16, of which its CPU's is wrong."""
    w1, b1, w2, b2 = layers(2 * INNER)
    x, router = tokens()
    attributes = {"activation_type": "swiglu", "k": 2, "activation_beta": 1.0}
    gates, linear = w1[:, :INNER].copy(), w1[:, INNER:].copy()
    c1, c3 = b1[:, :INNER].copy(), b1[:, INNER:].copy()
    made = [Case("MoE", x, router, w1, b1, w2, b2, swiglu_fusion=2,
                 known=range(2, 6), **attributes),
            Case("MoE", x, router, gates, c1, w2, b2, linear, c3,
                 known=range(2, 8), **attributes)]
    halves = [x.astype(np.float16) for x in made[0].inputs]
    made.append(Case("MoE", *halves, swiglu_fusion=2, known=range(2, 6),
                     **attributes))
    feeds = {name: value for n, case in enumerate(made)
             for name, value in case.feeds(f"n{n}_").items()}
    got = ours(model_of(made), feeds)
    shares = np.exp(router) / np.exp(router).sum(1, keepdims=True)
    largest = np.sort(shares, 1)[:, -2, None]
    want = 0
    for e in range(EXPERTS):
        gate, other = np.split(x @ w1[e].T + b1[e], 2, 1)
        y = gate / (1 + np.exp(-gate)) * (other + 1) @ w2[e].T + b2[e]
        want = want + np.where(shares >= largest, shares, 0)[:, e, None] * y
    for name, dtype in ("n0_o0", np.float32), ("n1_o0", np.float32), \
            ("n2_o0", np.float16):
        if found := difference(got[name], want.astype(dtype), 2e-5, 0):
            raise Failed(f"{name}: {found}")


def cases(every):
    for group in floats, bits:
        yield group.__name__, lambda group=group: compare(list(group()))
    for layout in LAYOUTS:
        yield f"floats {layout}", lambda layout=layout: compare(
            [mixture("swiglu", (2, 4)), mixture("silu", (2, 4))],
            *layout.split())
        yield f"bits {layout}", lambda layout=layout: compare(
            [inBits(4, 16, 1, (2, 4)), inBits(8, 0, 0, (2, 4)),
             inBits(4, 16, 1, MANY)],
            *layout.split())
    yield "by definition", byDefinition
