# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoders with caches, as exporters have them, whose lengths are symbols; and what
onnxruntime makes of them, which is handed the caches."""
import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from contrib_models import Net

FLOAT, INT64, INT32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32
CACHES = "--carry=present.*=past_key_values.*"
SUM = "--carry=present_sum=past_sum"


class Size:
    """Keys and values have `keyHeads` heads."""

    def __init__(self, layers=2, width=32, heads=4, keyHeads=None, vocabulary=40,
                 places=64):
        self.layers, self.width, self.heads = layers, width, heads
        self.keyHeads = keyHeads or heads
        self.vocabulary, self.places = vocabulary, places
        self.head = width // heads


def linear(net, x, old, new):
    return net.op("MatMul", x, net.weight(old, new))


def norm(net, x, width):
    return net.op("LayerNormalization", x, net.constant(np.ones(width), np.float32),
                  net.constant(np.zeros(width), np.float32))


def named(net, name, value):
    net.graph.node.append(helper.make_node("Identity", [value], [name]))
    return name


def numbers(net, *values):
    return net.constant(values, np.int64)


def fed_forward(net, x, width):
    y = net.op("Relu", linear(net, norm(net, x, width), width, 4 * width))
    return net.op("Add", x, linear(net, y, 4 * width, width))


def past(net, size, batch, i):
    return [net.input(f"past_key_values.{i}.{kind}", FLOAT,
                      [batch, size.keyHeads, "past", size.head])
            for kind in ("key", "value")]


def finished(net, x, size, outputs):
    logits = linear(net, norm(net, x, size.width), size.width, size.vocabulary)
    return net.model(named(net, "logits", logits), *outputs)


def visible(net, ids, mask):
    """What is added to scores: nothing for keys of the mask that are no later."""
    total = net.op("Squeeze", net.op("Shape", mask, start=1, end=2))
    length = net.op("Squeeze", net.op("Shape", ids, start=1, end=2))
    zero, one = net.constant(0, np.int64), net.constant(1, np.int64)
    keys = net.op("Range", zero, total, one)
    queries = net.op("Add", net.op("Range", zero, length, one),
                     net.op("Sub", total, length))
    causal = net.op("LessOrEqual", net.op("Unsqueeze", keys, numbers(net, 0)),
                    net.op("Unsqueeze", queries, numbers(net, 1)))
    seen = net.op("And", causal, net.op(
        "Unsqueeze", net.op("Cast", mask, to=TensorProto.BOOL), numbers(net, 1, 2)))
    return net.op("Where", seen, net.constant(0, np.float32),
                  net.constant(np.finfo(np.float32).min, np.float32))


def by_concat(batch, size=Size()):
    """As PyTorch's exporters have them: new keys come behind the past ones, and the
    mask is of both."""
    net, width = Net(), size.width
    ids = net.input("input_ids", INT64, [batch, "length"])
    mask = net.input("attention_mask", INT64, [batch, "past + length"])
    positions = net.input("position_ids", INT64, [batch, "length"])
    x = net.op("Add",
               net.op("Gather", net.weight(size.vocabulary, width, scale=1), ids),
               net.op("Gather", net.weight(size.places, width, scale=1), positions))
    bias, outputs = visible(net, ids, mask), []
    for i in range(size.layers):
        y = norm(net, x, width)
        q, k, v = (net.op("Transpose", net.op(
            "Reshape", linear(net, y, width, width),
            numbers(net, batch, -1, size.heads, size.head)), perm=[0, 2, 1, 3])
            for _ in range(3))
        k, v = (named(net, f"present.{i}.{kind}",
                      net.op("Concat", before, new, axis=2))
                for kind, before, new in zip(("key", "value"),
                                             past(net, size, batch, i), (k, v)))
        outputs += [k, v]
        scores = net.op("Mul", net.op("MatMul", q, net.op(
            "Transpose", k, perm=[0, 1, 3, 2])),
            net.constant(size.head ** -0.5, np.float32))
        y = net.op("MatMul", net.op("Softmax", net.op("Add", scores, bias),
                                    axis=-1), v)
        y = net.op("Reshape", net.op("Transpose", y, perm=[0, 2, 1, 3]),
                   numbers(net, batch, -1, width))
        x = net.op("Add", x, linear(net, y, width, width))
        x = fed_forward(net, x, width)
    return finished(net, x, size, outputs)


def in_place(batch, size=Size(width=64, keyHeads=2), sums=False):
    """As onnxruntime-genai has them: a cache has room for all tokens. `sums`: logits
    depend on sums over all tokens before, too, as in networks that are partly
    recurrent."""
    net, width = Net(), size.width
    ids = net.input("input_ids", INT64, [batch, "length"])
    mask = net.input("attention_mask", INT64, [batch, "total"])
    ends = net.op("Cast", net.op("Sub", net.op(
        "ReduceSum", mask, numbers(net, 1), keepdims=0),
        net.constant(1, np.int64)), to=INT32)
    count = net.op("Cast", net.op("Gather", net.op("Shape", mask),
                                  net.constant(1, np.int64)), to=INT32)
    angles = np.outer(np.arange(size.places), 0.5 ** np.arange(size.head // 2))
    tables = [net.constant(f(angles), np.float32) for f in (np.cos, np.sin)]
    x = net.op("Gather", net.weight(size.vocabulary, width, scale=1), ids)
    outputs = []
    if sums:
        before = net.input("past_sum", FLOAT, [batch, 1, width])
        total = net.op("Add", before,
                       net.op("CumSum", x, net.constant(1, np.int64)))
        outputs.append(named(net, "present_sum", net.op(
            "Gather", total, numbers(net, -1), axis=1)))
        x = net.op("Add", x, total)
    for i in range(size.layers):
        y = norm(net, x, width)
        q, k, v = (linear(net, y, width, heads * size.head)
                   for heads in (size.heads, size.keyHeads, size.keyHeads))
        y, *present = net.own(
            "GroupQueryAttention", q, k, v, *past(net, size, batch, i), ends, count,
            *tables, outputs=3, num_heads=size.heads, kv_num_heads=size.keyHeads,
            do_rotary=1)
        outputs += [named(net, f"present.{i}.{kind}", value)
                    for kind, value in zip(("key", "value"), present)]
        x = net.op("Add", x, linear(net, y, width, width))
        x = fed_forward(net, x, width)
    return finished(net, x, size, outputs)


# By kind: what makes the model, its size, and the dimensions of a step of one token
# with room for so many.
KINDS = {
    "by concat": (by_concat, Size(), ["past"]),
    "in place": (in_place, Size(width=64, keyHeads=2), ["past", "total"]),
    "in place, with a sum": (
        lambda batch: in_place(batch, sums=True), Size(width=64, keyHeads=2),
        ["past", "total"]),
}


def dims(kind, room):
    return ["--dim=length=1"] + [f"--dim={name}={room}" for name in KINDS[kind][2]]


def session_of(model, threads=0):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                        ["CPUExecutionProvider"])


def by_onnxruntime(kind, model, prompt, count):
    """Prompt and the likeliest tokens behind it: caches grow as they need."""
    session, tokens, size = session_of(model), prompt, KINDS[kind][1]
    names = [output.name for output in session.get_outputs()]
    batch = prompt.shape[0]
    caches = {port.name: np.zeros([batch, size.keyHeads, 0, size.head], np.float32)
              for port in session.get_inputs() if port.name.startswith("past_key")}
    if "sum" in kind:
        caches["past_sum"] = np.zeros([batch, 1, size.width], np.float32)
    new = prompt
    for _ in range(count):
        total = tokens.shape[1]
        feeds = {"input_ids": new, "attention_mask": np.ones([batch, total], np.int64)}
        if kind == "by concat":
            feeds["position_ids"] = np.broadcast_to(
                np.arange(total - new.shape[1], total), new.shape).astype(np.int64)
        out = dict(zip(names, session.run(None, feeds | caches)))
        caches = {name: out[name.replace("past_key_values", "present").replace(
            "past_sum", "present_sum")] for name in caches}
        new = out["logits"][:, -1:].argmax(axis=2).astype(np.int64)
        tokens = np.concatenate([tokens, new], axis=1)
    return tokens
