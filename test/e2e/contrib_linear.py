# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear attention with its gates, and convolutions of what came before."""
import itertools
import pathlib
import re

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from _contrib import DOMAIN, Case, byOnnxruntime, compare, compared, difference, \
    ours
from _operator_case import random
from cases import Failed, run, scratch, tool
from contrib_models import losses

B, K, V = 2, 4, 3


def attention(length, rule="gated_delta", queries=2, keys=2, heads=2, each=1,
              past=False, type=np.float32, one=False, known=(), **attributes):
    """With decays of each head, or of each element of its key (`each`)."""
    shape = lambda n: (B, length, n)
    q, k, v = (random(shape(n), seed=i)
               for i, n in enumerate((queries * K, keys * K, heads * V)))
    k /= np.linalg.norm(k.reshape(B, length, keys, K), axis=-1).mean()
    decay = -np.abs(random(shape(heads * each), seed=3)) if "gated" in rule \
        else None
    rates = random(shape(1 if one else heads), low=0.0, high=1.0, seed=4) \
        if "delta" in rule else None
    state = random((B, heads, K, V), seed=5) if past else None
    inputs = [x if x is None else x.astype(type)
              for x in (q, k, v, state, decay, rates)]
    while inputs[-1] is None:
        inputs.pop()
    if rule != "gated_delta":
        attributes["update_rule"] = rule
    return Case("LinearAttention", *inputs, known=known, outputs=(0, 1),
                q_num_heads=queries, kv_num_heads=heads, **attributes)


RULES = "linear", "gated", "delta", "gated_delta"


def steps():
    for rule, past in itertools.product(RULES, (0, 1)):
        yield attention(1, rule, past=past)
    for rule in "gated", "gated_delta":
        yield attention(1, rule, each=K, past=True)
    yield attention(1, queries=4, past=True)
    yield attention(1, keys=1, heads=4, past=True)


def prompts():
    for rule, length in itertools.product(RULES, (2, 7, 32, 75)):
        yield attention(length, rule, past=length != 7)
    for rule, length in itertools.product(("gated", "gated_delta"), (2, 9)):
        yield attention(length, rule, each=K, past=length == 9)
    for past in 0, 1:
        yield attention(40, past=past, one=True, scale=0.3, chunk_size=16)
        yield attention(5, "delta", past=past, one=True)


def heads():
    """Of queries, keys and values, as many or fewer."""
    for length, (queries, keys, all) in itertools.product((1, 5), (
            (4, 2, 2), (2, 2, 4), (2, 4, 4), (2, 1, 4), (4, 1, 2), (1, 1, 3))):
        yield attention(length, "gated_delta", queries, keys, all)
    yield attention(6, "gated", 4, 1, 2, K, past=True)
    yield attention(6, "linear", 4, 1, 2, past=True)


def extremes():
    """What sums of a chunk must stand: all that was forgotten, and keys that
    are all alike, to which the inverse of a matrix of ones belongs."""
    for rule in "gated", "gated_delta":
        case = attention(40, rule, past=True)
        case.inputs[4][:, ::7] = -200
        case.inputs[4][:, 3] = -np.inf
        yield case
    case = attention(64, "delta", past=True)
    case.inputs[1][:] = 0.5
    case.inputs[5][:] = 1
    yield case


def narrow():
    half = np.float16
    for length, rule in itertools.product((1, 12), RULES):
        yield attention(length, rule, past=True, type=half)
        yield attention(length, rule, type=half)
    case = attention(12, past=True, type=half)
    case.inputs = list(case.inputs)
    case.inputs[3] = case.inputs[3].astype(np.float32)
    yield case


def gates():
    for type in np.float32, np.float16:
        a, rate = (random((B, 5, 3), seed=i).astype(type) for i in (0, 1))
        bias, scale = random((3,)), -np.abs(random((3,), seed=1))
        yield Case("LinearAttentionGate", a, bias, scale, rate, known=[1, 2],
                   outputs=(0, 1))
        yield Case("LinearAttentionGate", a, bias, scale)


def convolutions():
    op, C, L = "CausalConvWithState", 4, 6
    for length, taps, dilation in itertools.product((1, L), (1, 2, 4), (1, 3)):
        reach = (taps - 1) * dilation
        x, w, bias = random((B, C, length)), random((C, 1, taps)), random((C,))
        last = random((B, length, 2, C // 2))
        for past in 0, 1:
            state = random((B, C, reach), seed=2) if past else None
            yield Case(op, x, w, bias, state, known=[1, 2], outputs=(0, 1),
                       activation="silu", dilation=dilation)
            state = random((B, reach, 2, C // 2), seed=3) if past else None
            yield Case(op, last, w, None, state, outputs=(0, 1),
                       dilation=dilation, channels_last=1)
    yield Case(op, x, w, outputs=(0, 1), ndim=1, activation="none")
    yield Case(op, last.reshape(B, L, C), w, bias, outputs=(0, 1),
               channels_last=1, activation="swish", state_window=0)
    half = [each.astype(np.float16) for each in (x, w, bias)]
    yield Case(op, *half, outputs=(0, 1), activation="silu")


GROUPS = steps, prompts, heads, extremes, narrow, gates, convolutions


def layer(domain, length=40):
    """One as Qwen3.5's, whose operators ONNX has, too."""
    N, width, hidden = 2, 8, 12
    graph = onnx.GraphProto(name="g")
    graph.input.append(helper.make_tensor_value_info(
        "x", TensorProto.FLOAT, [B, length, hidden]))
    columns = 3 * N * width

    def add(op, inputs, *outputs, **attributes):
        graph.node.append(helper.make_node(op, inputs, outputs, outputs[0],
                                           **attributes))
    def constant(name, *value):
        graph.initializer.append(numpy_helper.from_array(
            np.array(value), name))
        return name
    def weight(name, *shape):
        value = random(shape, low=-0.5, high=0.5, seed=len(name))
        graph.initializer.append(numpy_helper.from_array(value, name))
        return name
    def product(x, name, *shape):
        add("MatMul", [x, weight(name + ".weight", *shape)], name)
        return name
    add("Transpose", [product("x", "qkv", hidden, columns)], "columns",
        perm=[0, 2, 1])
    add("CausalConvWithState", ["columns", weight("conv.weight", columns, 1, 4),
                                weight("conv.bias", columns)],
        "mixed", "kept", activation="silu", domain=domain)
    add("Transpose", ["mixed"], "rows", perm=[0, 2, 1])
    add("Split", ["rows", constant("sizes", *[N * width] * 3)], "q", "k", "v",
        axis=2)
    add("Reshape", ["k", constant("split", B, length, N, width)], "heads")
    add("LpNormalization", ["heads"], "unit", axis=-1, p=2)
    add("Reshape", ["unit", constant("merged", B, length, N * width)], "keys")
    for name in "alpha", "rate":
        product("x", name, hidden, N)
    add("Exp", [weight("A_log", N)], "speed")
    add("Neg", ["speed"], "scale")
    add("LinearAttentionGate", ["alpha", weight("dt_bias", N), "scale", "rate"],
        "decay", "beta", domain=DOMAIN)
    add("LinearAttention", ["q", "keys", "v", "", "decay", "beta"], "read",
        "state", domain=domain, q_num_heads=N, kv_num_heads=N)
    add("Sigmoid", [product("x", "z", hidden, N * width)], "open")
    add("Mul", ["read", "open"], "gated")
    product("gated", "output", N * width, hidden)
    graph.output.append(onnx.ValueInfoProto(name="output"))
    return helper.make_model(graph, ir_version=12, opset_imports=[
        helper.make_opsetid("", 27 if domain == "" else 22),
        helper.make_opsetid(DOMAIN, 1)])


def splits():
    model, feeds = layer(DOMAIN), {"x": random((B, 40, 12))}
    wanted = byOnnxruntime(model, feeds)["output"]
    for flags in [], ["--tp=2"], ["--dp=2"], ["--dp=2", "--tp=2"]:
        got = ours(model, feeds, *flags)["output"]
        if found := difference(got, wanted, 2e-5, 0):
            raise Failed(f"{flags}: {found}")
    with scratch() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        path.write_bytes(model.SerializeToString())
        run(tool("axopt"), path, "--quiet", "--tp=2", "-o", f"{folder}/plan")
        text = pathlib.Path(f"{folder}/plan").read_text()
    # Heads need nothing of each other.
    found = re.findall(r"\bax\w*\.(all_\w+|reduce_scatter)", text)
    if found != ["reduce_scatter"]:
        raise Failed(f"exchanges: {found}")


def trains():
    """As ONNX's own does, which is a function: a loop over positions."""
    with scratch() as folder:
        folder = pathlib.Path(folder)
        x = random((3 * B, 40, 12))
        np.savez(folder / "data.npz", x=x, target=np.tanh(x[..., ::-1]))
        data = folder / "data"
        for name, domain in ("own", ""), ("contrib", DOMAIN):
            onnx.save(layer(domain), folder / f"{name}.onnx")
        data.mkdir()
        (data / "input_0.pb").write_bytes(
            numpy_helper.from_array(x[:B], "x").SerializeToString())
        wanted = losses(folder, folder / "own.onnx", data)
        assert len(wanted) == 3 and wanted[2] < wanted[0], wanted
        for flags in [], ["--tp=2"], ["--dp=2"]:
            found = losses(folder, folder / "contrib.onnx", data, *flags)
            assert np.allclose(found, wanted, rtol=1e-4), (flags, found, wanted)


def cases(every):
    yield "a layer, split", splits
    yield "a layer trains", trains
    yield from compared(GROUPS)
    for flags in ["--tp=4"], ["--dp=2", "--tp=2"]:
        yield f"heads, {' '.join(flags)}", compare, [
            attention(7, "gated_delta", 4, 4, 4, past=True),
            attention(1, "gated", 4, 2, 4, K)], *flags
