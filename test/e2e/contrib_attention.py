# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention as onnxruntime has it, and rotations of its heads."""
import itertools

import numpy as np

from _contrib import (Case, byOnnxruntime, compared, difference, model_of,
                      ours)
from _operator_case import random
from cases import Failed

B, S, N, H = 2, 5, 2, 8


def lengths(*values):
    return np.array(values, np.int32)


def masks(batch, queries, keys):
    """Of one and of two numbers a sequence, of each key, of each pair."""
    ends, starts = (lengths(keys, keys - 2), lengths(0, 1))
    yield ends
    yield np.concatenate([ends, starts])
    yield random((batch, keys), np.int32, 0, 2)
    # Nothing counts: then everything does.
    yield np.zeros([batch, keys], np.int32)
    yield np.zeros([batch, 1], np.int32)
    yield random((batch, queries, keys), np.int32, 0, 2)


def packed():
    x, w, bias = random((B, S, 12)), random((12, 3 * N * H)), random((3 * N * H,))
    known = [1, 2]
    yield Case("Attention", x, w, bias, num_heads=N, known=known)
    yield Case("Attention", x, w, bias, num_heads=N, unidirectional=1,
               scale=0.2)
    yield Case("Attention", x, random((12, 40)), random((40,)), num_heads=N,
               qkv_hidden_sizes=[16, 16, 8], known=known)
    for mask in masks(B, S, S):
        yield Case("Attention", x, w, bias, mask, num_heads=N, known=known)
        yield Case("Attention", x, w, bias, mask, num_heads=N, known=known,
                   unidirectional=1, mask_filter_value=-5.0)
    scores = random((B, N, S, S))
    yield Case("Attention", x, w, bias, None, None, scores, num_heads=N)
    yield Case("Attention", x, w, bias, lengths(3, 5), None, scores,
               num_heads=N)
    for length, causal in itertools.product((1, S), (0, 1)):
        past, x = random((2, B, N, 3, H)), random((B, length, 12))
        for mask in (None, random((B, 3 + length), np.int32, 0, 2)):
            yield Case("Attention", x, w, bias, mask, past, num_heads=N,
                       unidirectional=causal, outputs=(0, 1))
    yield Case("Attention", x, w, bias, num_heads=N, outputs=(0, 1))


def separate():
    L = 7
    q, k, v = random((B, S, N * H)), random((B, L, N * H)), random((B, L, 12))
    own = random((B, S, N * H), seed=1)
    bias = random((2 * N * H + 12,))
    yield Case("MultiHeadAttention", q, k, v, num_heads=N)
    yield Case("MultiHeadAttention", q, k, v, bias, num_heads=N, scale=0.1,
               known=[3])
    yield Case("MultiHeadAttention", q, own, own, num_heads=N,
               unidirectional=1)
    yield Case("MultiHeadAttention", q[:, :1].copy(), k, v, num_heads=N,
               unidirectional=1)
    for mask in (lengths(7, 4), random((B, L), np.int32, 0, 2),
                 random((B, S, L), np.int32, 0, 2)):
        yield Case("MultiHeadAttention", q, k, v, bias, mask, num_heads=N)
    for scores in itertools.product((1, B), (1, N), (S,), (L,)):
        yield Case("MultiHeadAttention", q, k, v, None, None, random(scores),
                   num_heads=N)
    yield Case("MultiHeadAttention", q, k, v, None,
               random((B, L), np.int32, 0, 2), random((B, N, S, L)),
               num_heads=N, mask_filter_value=-3.0)
    past = [random((B, N, 3, H), seed=i) for i in range(2)]
    yield Case("MultiHeadAttention", q, own, own, None, None, None, *past,
               num_heads=N, outputs=(0, 1, 2))
    yield Case("MultiHeadAttention", q, own, own, None, None, None, *past,
               num_heads=N, unidirectional=1, outputs=(0, 1, 2))
    # Keys and values of an encoder, with heads.
    with_heads = [random((B, N, L, H), seed=i) for i in range(2)]
    yield Case("MultiHeadAttention", q, *with_heads, num_heads=N)


def rotary():
    cos, sin = random((16, H // 2)), random((16, H // 2), seed=1)
    ids = random((B, S), np.int64, 0, 16)
    flat, split = random((B, S, N * H)), random((B, N, S, H))
    for x, inter in itertools.product((flat, split), (0, 1)):
        yield Case("RotaryEmbedding", x, ids, cos, sin, known=[2, 3],
                   interleaved=inter)
        yield Case("RotaryEmbedding", x, np.array([3]), cos, sin,
                   interleaved=inter)
    # Part of a head.
    some = [random((16, 2), seed=i) for i in range(2)]
    for inter in 0, 1:
        yield Case("RotaryEmbedding", flat, ids, *some, num_heads=N,
                   rotary_embedding_dim=4, interleaved=inter)


def multimodal():
    """Pairs by positions in time, of rows and of columns."""
    op, width, pairs = "MRotaryEmbedding", 16, 8
    cos, sin = random((16, pairs)), random((16, pairs), seed=1)
    ids = random((3, B, S), np.int64, 0, 16)
    flat, split = random((B, S, N * width)), random((B, N, S, width))
    for x, layout, inter, sections in itertools.product(
            (flat, split), (0, 1), (0, 1),
            ([4, 2, 2], [3, 3, 2], [0, 4, 4], [8, 0, 0], [2, 0, 6])):
        yield Case(op, x, ids, cos, sin, known=[2, 3], num_heads=N,
                   mrope_section=sections, mrope_layout=layout,
                   interleaved=inter)
    # Part of a head; a step.
    some = [random((16, 3), seed=i) for i in range(2)]
    for layout in 0, 1:
        for length in 1, S:
            yield Case(op, flat[:, :length].copy(), ids[..., :length].copy(),
                       *some, num_heads=N, rotary_embedding_dim=6,
                       mrope_section=[1, 1, 1], mrope_layout=layout)
    half = [each.astype(np.float16) for each in (split, cos, sin)]
    yield Case(op, half[0], ids, *half[1:], mrope_section=[4, 2, 2])


def grouped(S, P, total, ends, packed=False, rotary=0, of=Case, **attributes):
    """A GroupQueryAttention of 4 heads on 2, and P keys of the past."""
    heads, kv, width = 4, 2, 16
    batch = len(ends)
    shape = lambda n: (batch, S, n * width)
    q, k, v = random(shape(heads)), random(shape(kv)), random(shape(kv), seed=1)
    if packed:
        q, k, v = random(shape(heads + 2 * kv)), None, None
    past = ([random((batch, kv, P, width), seed=i) for i in range(2)]
            if P is not None else [None, None])
    caches = ([random((32, 8 // rotary), seed=i) for i in range(2)]
              if rotary else [])
    more = {"do_rotary": 1} if rotary else {}
    return of("GroupQueryAttention", q, k, v, *past,
              lengths(*ends), np.array([total], np.int32), *caches,
              known=[6, 7, 8], outputs=(0, 1, 2), num_heads=heads,
              kv_num_heads=kv, **more, **attributes)


def prompts():
    for packed, rotary in itertools.product((0, 1), (0, 1)):
        yield grouped(6, None, 6, (5, 5), packed, rotary)
        yield grouped(6, 0, 6, (5, 5), packed, rotary, rotary_interleaved=1)
    yield grouped(6, None, 6, (5, 5), scale=0.4, softcap=1.5)
    for window in 1, 3, 6, 9:
        yield grouped(6, None, 6, (5, 5), local_window_size=window)
    # Room for what comes.
    yield grouped(6, 10, 6, (5, 5), rotary=1)
    yield grouped(1, None, 1, (0,), rotary=1)


def generation():
    for packed, rotary in itertools.product((0, 1), (0, 1)):
        yield grouped(1, 6, 7, (6, 6), packed, rotary)
    # Sequences of other lengths.
    yield grouped(1, 6, 7, (6, 3), rotary=1)
    yield grouped(1, 12, 7, (6, 2), rotary=1, rotary_interleaved=1)
    for window in 1, 3, 6, 9:
        yield grouped(1, 6, 7, (6, 4), local_window_size=window)
    yield grouped(1, 6, 7, (6, 4), scale=0.4, softcap=1.5)
    # Several new ones behind the past.
    for packed in 0, 1:
        yield grouped(3, 6, 9, (8,), packed, rotary=1)
        yield grouped(3, 12, 9, (8,), packed, rotary=1, local_window_size=4)


class Windowed(Case):
    """Rows of its caches that hold nothing may be anything."""

    def specified(self, i, array):
        if i == 0:
            return array
        rows, window = array.shape[2], self.attributes["local_window_size"]
        gone = rows - window + 1
        for sequence, end in zip(array, self.inputs[5]):
            count = int(end) + 1
            held = count - max(0, -(-(count - rows) // gone)) * gone
            sequence[:, held:] = 0
        return array


def windows():
    """Caches with room for a window, and for a little more, as many steps as
    fill them, and more."""
    for C, W, S in itertools.product((4, 6), (1, 4), (1, 3, 9)):
        for T in range(S, 16, 2):
            yield grouped(S, C, T, (T - 1,), rotary=1, of=Windowed,
                          local_window_size=W, sliding_window_cache=1)
    # Sequences of other lengths; two of a prompt; with sinks.
    for S, total, ends in (1, 12, (11, 3)), (5, 5, (4, 4)), (1, 9, (8, 8)):
        for sink in (), (*[None] * 4, random((4,))):
            case = grouped(S, 6, total, ends, of=Windowed, local_window_size=4,
                           sliding_window_cache=1, softcap=1.5)
            case.inputs += sink
            yield case


def positions():
    # Of a prompt the first counts.
    for S, P, total, ends in ((6, None, 6, (5, 5)), (1, 6, 7, (6, 4)),
                              (3, 6, 9, (8,))):
        case = grouped(S, P, total, ends, rotary=1)
        case.inputs += (random((len(ends), S), np.int64, 0, 20),)
        yield case


def biased():
    for S, P, total, ends, room in ((6, None, 6, (5, 5), 6),
                                    (1, 6, 7, (6, 4), 7),
                                    (1, 12, 7, (6, 4), 7)):
        for shape in itertools.product((1, 2), (1, 4)):
            case = grouped(S, P, total, ends, softcap=2.0)
            case.inputs += (None,) * 3 + (random((*shape, S, room)),)
            yield case


def sinks():
    """A score of nothing, for all heads or of each."""
    for S, P, total, ends in (6, None, 6, (5, 5)), (1, 6, 7, (6, 4)):
        yield grouped(S, P, total, ends, smooth_softmax=1)
        for window in -1, 3:
            case = grouped(S, P, total, ends, softcap=2.0,
                           local_window_size=window)
            case.inputs += (None,) * 4 + (random((4,)),)
            yield case
        case = grouped(S, P, total, ends)
        case.inputs += (None,) * 3 + (random((2, 1, S, total)), random((4,)))
        yield case


GROUPS = (packed, separate, rotary, multimodal, prompts, generation, positions,
          biased, sinks, windows)


def normalized():
    """Norms of each head of queries and keys, which onnxruntime has on GPUs:
    beside attention to what they give."""
    plain = grouped(3, 6, 9, (8,), rotary=1)
    normal, scales = grouped(3, 6, 9, (8,), rotary=1, qk_norm_epsilon=1e-2,
                             k_norm_epsilon=1e-1), random((2, 16), seed=4)
    normal.inputs += (*[None] * 5, *scales)
    inputs = list(plain.inputs)
    for i, epsilon in (0, 1e-2), (1, 1e-1):
        heads = inputs[i].reshape(*inputs[i].shape[:2], -1, 16)
        mean = np.square(heads).mean(-1, keepdims=True)
        heads = heads / np.sqrt(mean + np.float32(epsilon)) * scales[i]
        inputs[i] = heads.reshape(inputs[i].shape).astype(np.float32)
    plain.inputs = tuple(inputs)
    wanted = byOnnxruntime(model_of([plain]), plain.feeds("n0_"))
    got = ours(model_of([normal]), normal.feeds("n0_"))
    for name, want in wanted.items():
        if found := difference(got[name], want, 2e-5, 0):
            raise Failed(f"{name}: {found}")


def cases(every):
    yield "normalized", normalized
    yield from compared(GROUPS)
