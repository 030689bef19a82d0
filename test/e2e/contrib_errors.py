# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nodes of onnxruntime's operators that are refused: one error, which names the
node and says what is the matter."""
import numpy as np

from _contrib import Case, refuse
from _operator_case import random

MALFORMED, UNSUPPORTED = 3, 4


def i32(*values):
    return np.array(values, np.int32)


def layers():
    a, b = random((3, 5)), random((5, 4))
    x, w = random((1, 2, 5, 5)), random((3, 2, 3, 3))
    yield (Case("FusedGemm", a, b, activation="Elu"),
           "activation Elu takes 1 parameters and has 0", MALFORMED)
    yield (Case("FusedGemm", a, b, activation="Gelu"),
           "attribute 'activation' is 'Gelu', not Elu, ", MALFORMED)
    yield (Case("FusedConv", x, w, activation="Relu",
                activation_params=[1.0, 2.0]),
           "activation Relu takes 0 parameters and has 2", MALFORMED)
    yield (Case("FusedConv", x, w, None, random((1, 3, 2, 3))),
           "input 3 ('Z') is not of the shape of the result", MALFORMED)
    yield (Case("FusedMatMul", a, b, transC=1),
           "Unrecognized attribute: transC", MALFORMED)
    yield (Case("FastGelu", a, b, b), "has input size 3 not in range",
           MALFORMED)
    yield (Case("BiasGelu", a, np.ones([5])),
           "inputs 0 and 1 must be of one type", MALFORMED)
    yield (Case("Gelu", np.ones([5], np.int32)),
           "input 0 ('X') is i32, which Gelu", MALFORMED)


def norms():
    x, gamma = random((2, 3, 8)), random((8,))
    skip = "SkipLayerNormalization"
    yield (Case(skip, x, x, random((7,))),
           "'gamma' of [7] is no vector of the last dimension of [2x3x8]",
           MALFORMED)
    yield (Case(skip, x, random((2, 8)), gamma),
           "'skip' of [2x8] does not go with 'input' of [2x3x8]", MALFORMED)
    yield (Case(skip, x, x, gamma, outputs=(0, 1)),
           "output 1 is not supported", UNSUPPORTED)
    yield (Case("GatedRMSNorm", x, random((3,)), x),
           "'X' of [2x3x8], 'scale' of [3] and 'gate' of [2x3x8] do not fit",
           MALFORMED)
    yield (Case("GatedAdd", x, x, x),
           "'X' of [2x3x8], 'Y' of [2x3x8] and 'gate' of [2x3x8] do not fit",
           MALFORMED)
    yield (Case("GatedAdd", x, x, x, random((8, 1))),
           "input 'gate_weight' is not supported", UNSUPPORTED)
    words, ids = random((9, 8)), random((2, 5), np.int32, 0, 9)
    embed = "EmbedLayerNormalization"
    yield (Case(embed, ids, ids, words, words, None, gamma, gamma),
           "segment_ids and segment_embedding go together", MALFORMED)
    yield (Case(embed, ids, None, words, random((4, 8)), None, gamma, gamma),
           "position_embedding has 4 rows for 5 positions", MALFORMED)
    yield (Case(embed, ids, ids[:, :3].copy(), words, words, words, gamma,
                gamma),
           "inputs 4 and 1 are no table and [batch, length] of its rows",
           MALFORMED)
    yield (Case(embed, ids[0].copy(), None, words, words, None, gamma, gamma),
           "input_ids and position_embedding must have two dimensions",
           MALFORMED)


def diffusion():
    x, scale = random((2, 4, 4, 8)), random((8,))
    norm = {"groups": 2, "activation": 0}
    yield (Case("NhwcConv", x[0, 0].copy(), x, group=1),
           "X and W must have the same rank, at least 3", MALFORMED)
    yield (Case("GroupNorm", x[0, 0].copy(), scale, scale, **norm),
           "'X' must have batch, channels and at least one more dimension",
           MALFORMED)
    yield (Case("GroupNorm", x, scale, scale, groups=3, activation=0),
           "channels do not divide into groups", MALFORMED)
    yield (Case("SkipGroupNorm", x, scale, scale, random((2, 4)), **norm),
           "'skip' of [2x4] does not go with 'X' of [2x4x4x8]", MALFORMED)
    yield (Case("SkipGroupNorm", x, scale, scale, x, random((4,)), **norm),
           "'bias' of [4] for 8 channels", MALFORMED)
    yield (Case("BiasSplitGelu", x, random((7,))),
           "'bias' of [7] and 'X' of [2x4x4x8] have no last dimension of two "
           "halves", MALFORMED)


def positions():
    bias, table = "RelativePositionBias", random((8, 2))
    five, long = np.array(5), np.array(1 << 16)
    known = {"known": [1, 2], "max_distance": 20}
    yield (Case(bias, random((8,)), five, five, **known),
           "'bias_table' of [8] is no table of buckets", MALFORMED)
    yield (Case(bias, table, five, five, known=[1, 2], max_distance=4),
           "'max_distance' is 4 for 8 buckets", MALFORMED)
    yield (Case(bias, table, five, long, **known),
           "a bias for 5 queries and 65536 keys", UNSUPPORTED)


def experts():
    x, router = random((3, 8)), random((3, 2))
    w1, b1 = random((2, 8, 8)), random((2, 8))
    w2, b2 = random((2, 8, 4)), random((2, 8))
    most = {"activation_type": "swiglu", "swiglu_fusion": 1}

    def moe(*inputs, **more):
        return Case("MoE", *inputs, **{**most, **more})
    for name in "use_sparse_mixer", "swiglu_limit_after_activation":
        yield (moe(x, router, w1, b1, w2, b2, **{name: 1}),
               f"attribute '{name}' is 1", UNSUPPORTED)
    yield (moe(random((8,)), router, w1, b1, w2, b2),
           "'input' must have two or three dimensions, 'router_probs' two and "
           "'fc1_experts_weights' three", MALFORMED)
    yield (moe(x, random((3, 5)), w1, b1, w2, b2),
           "'router_probs' of [3x5] for 3 tokens and 2 experts", MALFORMED)
    yield (moe(x, router, w1, b1, w2, b2, k=3),
           "attribute 'k' is 3 of 2 experts", MALFORMED)
    yield (moe(x, router, random((2, 7, 8)), None, w2, b2),
           "'fc1_experts_weights' has 7 rows, of which half are gates",
           MALFORMED)
    yield (moe(x, router, w1, b1, w2, b2, swiglu_fusion=0),
           "'swiglu' without 'fc3_experts_weights'", UNSUPPORTED)
    yield (moe(x, router, w1, b1, w2, b2, random((2, 4, 8))),
           "input 'fc3_experts_weights' is for 'swiglu' that is not fused",
           UNSUPPORTED)
    yield (moe(x, router, w1, random((2, 5)), w2, b2),
           "'fc1_experts_bias' of [2x5] is not [2x8]", MALFORMED)
    yield (moe(x, router, w1, b1, random((2, 8, 5)), b2),
           "'fc2_experts_weights' of [2x8x5] is not [2x8x4]", MALFORMED)

    q1, q2 = random((2, 8, 4), np.uint8, 0, 9), random((2, 8, 2), np.uint8, 0, 9)

    def qmoe(*inputs, **more):
        return Case("QMoE", *inputs, **{**most, **more})
    yield (qmoe(x, router, q1, b1, b1, q2, b2, b2, quant_type="fp8"),
           "attribute 'quant_type' is 'fp8'", UNSUPPORTED)
    yield (qmoe(x, router, q1, b1, b1, q2, b2, b2, weights_prepacked=1),
           "attribute 'weights_prepacked' is 1", UNSUPPORTED)
    yield (qmoe(x, router, q1, b1, b1, q2, b2, b2, expert_weight_bits=3),
           "weights of 3 bits, not 2, 4 or 8", UNSUPPORTED)
    yield (qmoe(x, router, q1, b1, b1, q2, b2, b2, block_size=3),
           "attribute 'block_size' is 3 for rows of 8", MALFORMED)
    yield (qmoe(x, router, q1, random((2, 4)), b1, q2, b2, b2),
           "'fc1_scales' of [2x4] is not [2x8]", MALFORMED)
    yield (qmoe(x, router, q1, b1, b1, q2, b2, b2, None, None, None,
                random((2, 5), np.uint8, 0, 9)),
           "'fc1_zero_points' of [2x5] is not [2x4]", MALFORMED)
    yield (qmoe(x, router, q1, b1, b1, q2, b2, b2, *[None] * 6,
                random((3, 3))),
           "'router_weights' of [3x3] is not [3x2]", MALFORMED)


def attention():
    x, w, bias = random((2, 5, 12)), random((12, 24)), random((24,))
    yield (Case("Attention", x[0].copy(), w, num_heads=2),
           "'input' must have three dimensions and 'weights' two", MALFORMED)
    yield (Case("Attention", x, w, bias, num_heads=2,
                qkv_hidden_sizes=[8, 8, 4]),
           "'weights' of 24 columns are not those of query, key and value",
           MALFORMED)
    yield (Case("Attention", x, w, bias, num_heads=3),
           "hidden size 8 is no multiple of 3 heads", MALFORMED)
    for name in "do_rotary", "past_present_share_buffer":
        yield (Case("Attention", x, w, bias, num_heads=2, **{name: 1}),
               f"attribute '{name}' is not supported", UNSUPPORTED)
    yield (Case("Attention", x, w, bias, i32(1, 2, 3, 4, 5, 6, 7, 8),
                num_heads=2),
           "'mask_index' of [8] for 2 sequences of 5 queries and 5 keys",
           UNSUPPORTED)
    yield (Case("Attention", x, w, bias, None, random((2, 3, 4)), num_heads=2),
           "'past' of [2x3x4] is not [2, batch, heads, length, width]",
           MALFORMED)
    yield (Case("Attention", x, w, bias, num_heads=2,
                qkv_hidden_sizes=[10, 10, 4], outputs=(0, 1)),
           "'present' of keys and values of two widths", UNSUPPORTED)


def separate():
    op = "MultiHeadAttention"
    q, k = random((2, 5, 16)), random((2, 7, 16))
    past = random((2, 2, 3, 8))
    yield (Case(op, random((2, 5, 2, 3, 8)), num_heads=2),
           "query, key and value in one tensor", UNSUPPORTED)
    yield (Case(op, q, k, random((2, 2, 7, 8)), num_heads=2),
           "'key' and 'value' must both have three dimensions, or both four",
           MALFORMED)
    yield (Case(op, q, k, k, random((40,)), num_heads=2),
           "'bias' of [40] is not that of query, key and value", MALFORMED)
    yield (Case(op, q, k, k, num_heads=2, unidirectional=1),
           "'unidirectional' with 5 queries and 7 keys", UNSUPPORTED)
    yield (Case(op, q, k, k, None, None, random((2, 2, 5, 5)), num_heads=2),
           "'attention_bias' of [2x2x5x5] is not [2 or 1, 2 or 1, 5, 7]",
           MALFORMED)
    yield (Case(op, q, k, k, None, None, None, past, num_heads=2),
           "'past_key' and 'past_value' go together", MALFORMED)
    yield (Case(op, q, k, k, None, None, None, past, past, i32(3),
                num_heads=2),
           "input 8 is not supported: past and present are tensors of their "
           "own", UNSUPPORTED)
    yield (Case(op, q, k, k, num_heads=2, outputs=(0, 3)),
           "output 3 is not supported", UNSUPPORTED)


def rotary():
    op, x, ids = "RotaryEmbedding", random((2, 5, 16)), np.zeros([2, 5], int)
    cache = random((9, 4))
    yield (Case(op, x, ids, cache, cache, is_packed_batching=1),
           "attribute 'is_packed_batching' is not supported", UNSUPPORTED)
    yield (Case(op, x, ids, cache, cache, scale=2.0),
           "attribute 'scale' is not 1", UNSUPPORTED)
    yield (Case(op, x[0].copy(), ids, cache, cache),
           "'input' must have three or four dimensions, and caches two",
           MALFORMED)
    yield (Case(op, x, ids, cache, cache, num_heads=2, rotary_embedding_dim=6),
           "rotary_embedding_dim is 6 and caches have 4 columns", MALFORMED)
    yield (Case(op, x, ids[:, :4].copy(), cache, cache),
           "'position_ids' of [2x4] for [2, 5] positions", MALFORMED)
    yield (Case(op, x, ids, cache, cache, num_heads=4),
           "'cos_cache' and 'sin_cache' of [9x4] and [9x4] are no angles for "
           "heads of width 4", MALFORMED)


def multimodal():
    op, x, cache = "MRotaryEmbedding", random((2, 5, 16)), random((9, 4))
    ids = np.zeros([3, 2, 5], int)
    def case(ids=ids, sections=(2, 1, 1), **attributes):
        return Case(op, x, ids, cache, cache, mrope_section=sections,
                    **attributes)
    yield (case(is_packed_batching=1),
           "attribute 'is_packed_batching' is not supported", UNSUPPORTED)
    yield case(scale=0.5), "attribute 'scale' is not 1", UNSUPPORTED
    yield case(mrope_layout=2), "attribute 'mrope_layout' is 2", MALFORMED
    yield (case(ids[0].copy()), "'position_ids' of [2x5] is not [3x2x5]",
           MALFORMED)
    message = "'mrope_section' is not three numbers that add up to "
    yield case(sections=(2, 2)), message + "4", MALFORMED
    yield (Case(op, x, ids, *[cache[:, :3].copy()] * 2, num_heads=2,
                mrope_section=[2, 1, 1]), message + "3", MALFORMED)
    yield (Case(op, x[..., :6].copy(), ids, cache, cache, num_heads=1,
                mrope_section=[2, 1, 1]), "'cos_cache' and 'sin_cache' of [9x4] "
           "and [9x4] are no angles for heads of width 6", MALFORMED)
    yield (Case(op, x, ids, cache, cache), "Required attribute "
           "'mrope_section' is missing", MALFORMED)


def linear():
    op, x, gate = "LinearAttention", random((2, 5, 8)), random((2, 5, 2))
    def case(*others, k=x, v=x, q=x, queries=2, heads=2, rule="gated_delta",
             **attributes):
        return Case(op, q, k, v, *others, outputs=(0, 1), q_num_heads=queries,
                    kv_num_heads=heads, update_rule=rule, **attributes)
    yield (case(None, gate, gate, state_window=2),
           "attribute 'state_window' is 2", UNSUPPORTED)
    yield (case(None, gate, gate, k=x[:, :3].copy()), "'query' of [2x5x8], "
           "'key' of [2x3x8] and 'value' of [2x5x8] are not [batch, length, "
           "heads * width] of one length", MALFORMED)
    yield (case(q=x[0].copy()), "'query' of [5x8], 'key' of [2x5x8]", MALFORMED)
    empty = x[:, :0].copy()
    yield (case(k=empty, v=empty, q=empty, rule="linear"),
           "a sequence of no steps is not supported", UNSUPPORTED)
    yield (case(queries=3), "hidden size 8 is no multiple of 3 heads",
           MALFORMED)
    for queries, heads, k in (2, 2, random((2, 5, 6))), (8, 2, x), (2, 1, x):
        yield (case(queries=queries, heads=heads, k=k), f"{queries} heads of "
               f"'query' of [2x5x8] and 'key' of [2x5x{k.shape[2]}] do not go "
               f"with {heads} heads of 'value'", MALFORMED)
    none = np.zeros([2, 5, 0], np.float32)
    yield (case(q=none, k=none, v=x), "2 heads of 'query' of [2x5x0] and 'key' "
           "of [2x5x0] do not go with 2 heads of 'value'", MALFORMED)
    yield (case(random((2, 2, 4, 3)), gate, gate),
           "'past_state' of [2x2x4x3] is not [2x2x4x4]", MALFORMED)
    yield (case(None, None, gate), "'decay' is missing, which the rule "
           "gated_delta takes", MALFORMED)
    yield (case(rule="delta"), "'beta' is missing, which the rule delta takes",
           MALFORMED)
    yield (case(None, random((2, 5, 4)), gate), "'decay' of [2x5x4] is neither "
           "[2x5x2] nor [2x5x8]", MALFORMED)
    yield (case(None, gate, gate[0].copy()), "'beta' of [5x2] is neither "
           "[2x5x2] nor [2x5x1]", MALFORMED)
    op, two, three = "LinearAttentionGate", random((2,)), random((3,))
    yield (Case(op, gate, two, three), "'dt_bias' of [2] and 'decay_scale' of "
           "[3] are not one number for each head of 'a' of [2x5x2]", MALFORMED)
    yield (Case(op, gate, two, two, outputs=(0, 1)),
           "'b' is missing, of which 'beta' is made", MALFORMED)
    yield (Case(op, gate, two, two, x, outputs=(0, 1)),
           "'b' of [2x5x8] is not of the shape of 'a', [2x5x2]", MALFORMED)


def causal():
    x, w = random((2, 4, 6)), random((4, 1, 3))
    def case(*others, x=x, w=w, **attributes):
        return Case("CausalConvWithState", x, w, *others, outputs=(0, 1),
                    **attributes)
    for name, value in (("input_channel_offset", 1), ("input_channels", 2),
                        ("state_channels_last", 0), ("state_length", 4),
                        ("state_update_capacity", 2), ("state_window", 1),
                        ("ndim", 2)):
        yield (case(**{name: value}), f"attribute '{name}' is {value}",
               UNSUPPORTED)
    for shape, written in ((2, 4), "2x4"), ((2, 4, 5, 6), "2x4x5x6"):
        yield (case(x=random(shape)), f"'input' of [{written}] is no batch of "
               "sequences of channels", MALFORMED)
    yield (case(channels_last=1), "'weight' of [4x1x3] is not [6, 1, taps]",
           MALFORMED)
    for shape, written in (((4, 3), "4x3"), ((4, 2, 3), "4x2x3"),
                           ((4, 1, 0), "4x1x0")):
        yield (case(w=np.ones(shape, np.float32)),
               f"'weight' of [{written}] is not [4, 1, taps]", MALFORMED)
    yield (case(random((3,))), "'bias' of [3] is not one number for each of 4 "
           "channels", MALFORMED)
    yield (case(None, random((2, 4, 2)), dilation=2),
           "'past_state' of [2x4x2] is not [2x4x4]", MALFORMED)
    yield (case(dilation=1 << 20),
           "a filter of 3 taps, 1048576 apart", UNSUPPORTED)
    yield (case(x=np.zeros([2, 4, 0], np.float32)),
           "a sequence of no steps is not supported", UNSUPPORTED)


def grouped():
    def case(*others, q=(2, 5, 64), kv=(2, 5, 32), total=5, known=(6,),
             ends=i32(4, 4), heads=4, past=(None, None), **attributes):
        return Case("GroupQueryAttention", random(q), random(kv), random(kv),
                    *past, ends, i32(total), *others, known=known,
                    num_heads=heads, kv_num_heads=2, **attributes)
    for name, value in (("qk_output", 2), ("causal", 0),
                        ("k_quant_type", "PER_TENSOR")):
        yield (case(**{name: value}), f"attribute '{name}' is {value}",
               UNSUPPORTED)
    yield (case(local_window_size=0), "attribute 'local_window_size' is 0",
           MALFORMED)
    yield (case(*[None] * 4, random((5,))), "'head_sink' of [5] for 4 heads",
           MALFORMED)
    yield (case(*[None] * 5, random((1,))), "input 'k_scale' is not supported",
           UNSUPPORTED)
    yield (case(*[None] * 9, i32(4, 4)),
           "input 'query_seqlens' is not supported", UNSUPPORTED)
    yield (case(*[None] * 7, random((16,))),
           "'q_norm_weight' and 'k_norm_weight' go together", MALFORMED)
    yield (case(*[None] * 7, random((16,)), random((8,))),
           "'k_norm_weight' of [8] for heads of width 16", MALFORMED)
    windows = {"sliding_window_cache": 1, "local_window_size": 7,
               "past": [random((2, 2, 6, 16))] * 2}
    yield (case(**windows), "'past_key' with room for 6 keys cannot hold a "
           "window of 7", MALFORMED)
    yield (case(*[None] * 3, random((2, 4, 5, 5)),
                **{**windows, "local_window_size": 6}),
           "input 'attention_bias' with a 'sliding_window_cache'", UNSUPPORTED)
    yield case(heads=3), "3 heads are no multiple of 2 heads of keys", MALFORMED
    yield (case(kv=(2, 1, 5, 32)), "'query', or 'query', 'key' and 'value' must "
           "have three dimensions", MALFORMED)
    yield (Case("GroupQueryAttention", random((2, 5, 60)), *[None] * 4,
                i32(4, 4), i32(5), known=[6], num_heads=4, kv_num_heads=2),
           "'query' of width 60 is no multiple of 8 heads", MALFORMED)
    yield (case(kv=(2, 4, 32)),
           "'query', 'key' and 'value' are not of one length", MALFORMED)
    past = random((2, 2, 6, 16))
    yield (case(past=(past, None)), "'past_key' and 'past_value' go together",
           MALFORMED)
    yield (case(past=(past, random((2, 2, 6, 8)))), "'past_key' or "
           "'past_value' of [2x2x6x8] is not [batch, heads of keys, length, "
           "width], here [2x2x6x16]", MALFORMED)
    yield (case(known=()), "input 'total_sequence_length' (n0_i6) decides "
           "shapes, so it must be known when compiling; give --const",
           UNSUPPORTED)
    yield (case(total=4), "total_sequence_length is 4 for 5 new keys",
           MALFORMED)
    yield case(ends=i32(4)), "'seqlens_k' of [1] for 2 sequences", MALFORMED
    yield (case(past=(past, past), total=11), "several sequences have more "
           "than one new key each behind those of the past", UNSUPPORTED)
    cache = random((9, 8))
    yield (case(cache, cache, np.zeros([2, 3], int), do_rotary=1),
           "'position_ids' of [2x3] for [2, 5] positions", MALFORMED)
    # Behind a past, too.
    yield (Case("GroupQueryAttention", random((1, 3, 128)), None, None,
                *[random((1, 2, 12, 16))] * 2, i32(8), i32(9), random((32, 3)),
                random((32, 8)), known=[6], num_heads=4, kv_num_heads=2,
                do_rotary=1), "'cos_cache' and 'sin_cache' of [32x3] and "
           "[32x8] are no angles for heads of width 16", MALFORMED)
    yield (case(*[None] * 3, random((2, 4, 5, 6))), "'attention_bias' of "
           "[2x4x5x6] is not [2 or 1, 4 or 1, 5, 5]", MALFORMED)


def bits():
    def product(columns=32, block=16, *others, **attributes):
        return Case("MatMulNBits", random((2, 32)),
                    random((4, 2, 8), np.uint8, 0, 256), random((4, 2)),
                    *others, K=columns, N=4, block_size=block, **attributes)
    yield product(bits=3), "attribute 'bits' is 3, not 2, 4 or 8", UNSUPPORTED
    yield (product(32, 16, None, i32(*[0] * 32)),
           "input 'g_idx' is not supported", UNSUPPORTED)
    yield (product(weight_prepacked=1),
           "attribute 'weight_prepacked' is not 0", UNSUPPORTED)
    yield product(block=0), "attribute 'block_size' is 0", MALFORMED
    yield (product(columns=48), "'A' of [2x32] has no rows of 'K' = 48",
           MALFORMED)
    yield product(block=32), "'scales' of [4x2] is not [4x1]", MALFORMED
    yield (product(32, 16, random((4, 3))),
           "'zero_points' of [4x3] is not [4x2]", MALFORMED)
    table, ids = random((9, 16), np.uint8, 0, 256), i32(1, 2)
    gather = "GatherBlockQuantized"
    yield (Case(gather, table, ids, random((9, 2)), block_size=16,
                quantize_axis=0),
           "rows are gathered along the first dimension, of numbers that are "
           "quantized along the last", UNSUPPORTED)
    yield (Case(gather, table, ids, random((9, 3)), block_size=16),
           "'scales' or 'zero_points' do not go with 'data' of [9x16] and "
           "'block_size' = 16", MALFORMED)


def tables():
    """One number of eight bits is none of four."""
    ids, scales = random((3,), np.int64, 0, 9), random((9, 2))
    for dtype, message in ((np.int8, "'data' is of numbers with a sign"),
                           (np.uint8, "'scales' or 'zero_points' do not go "
                            "with 'data' of [9x64] and 'block_size' = 32")):
        yield (Case("GatherBlockQuantized", random((9, 64), dtype, 0, 9), ids,
                    scales, known=[0, 2], block_size=32), message, MALFORMED)


def quantized():
    x, one, zero = random((3, 8), np.uint8, 0, 256), *map(
        np.array, (np.float32(0.1), np.uint8(3)))
    two = random((2,))
    yield (Case("QLinearSigmoid", x, two, zero, one, zero),
           "input 1 of [2] is not one number", UNSUPPORTED)
    yield (Case("QLinearGlobalAveragePool", x, one, zero, one, zero),
           "the input has rank 2, not 3 or more", MALFORMED)
    yield (Case("QLinearConcat", one, zero, x, one, zero, x, axis=0),
           "inputs are not a scale, a zero point, and three for each tensor",
           MALFORMED)
    yield (Case("QLinearConcat", one, zero, x, None, zero, axis=0),
           "input 3 is missing", MALFORMED)
    w = random((8, 4), np.uint8, 0, 256)
    yield (Case("MatMulIntegerToFloat", x, w, random((3,)), one),
           "the scale of A of [3] is not one number", UNSUPPORTED)
    yield (Case("QGemm", x, one, zero, w, one, zero, None, one),
           "'y_scale' and 'y_zero_point' go together", MALFORMED)
    yield (Case("QGemm", x, one, zero, w[0].copy(), one, zero),
           "A and B must be matrices", MALFORMED)
    w, r = (random((1, size, 16), np.uint8, 0, 256) for size in (8, 4))
    scale, point = random((1, 16)), np.zeros((1, 16), np.uint8)
    yield (Case("DynamicQuantizeLSTM", random((5, 1, 8)), w, r, *[None] * 5,
                scale[:, :3].copy(), point, scale, point, hidden_size=4),
           "a scale or zero point of [1x3] is neither one number a direction "
           "nor one a column", MALFORMED)
    yield (Case("DynamicQuantizeLSTM", random((5, 1, 8)), w, r, *[None] * 5,
                np.array(0.1, np.float32), point, scale, point, hidden_size=4),
           "a scale or zero point of [] is neither one number a direction",
           MALFORMED)
    yield (Case("DynamicQuantizeLSTM", random((5, 1, 8)), w, w, *[None] * 5,
                scale, point, scale, point, hidden_size=4),
           "W and R do not fit", MALFORMED)
    yield (Case("QLinearReduceMean", x, one, zero, one, zero, axes=[1],
                keepdims=1),
           "of domain com.microsoft, which is not ONNX's own:\n  "
           "QLinearReduceMean: node 'n0_QLinearReduceMean'", UNSUPPORTED)


def cases(every):
    for group in (layers, norms, diffusion, positions, experts, attention,
                  separate, rotary, multimodal, linear, causal, grouped, bits,
                  tables, quantized):
        for case, message, code in group():
            yield (f"{group.__name__}: {message}", refuse, case, message, code)
