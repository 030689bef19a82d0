# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one step leaves for the next stays on its ranks: caches of decoders, and
states of recurrent networks, beside onnxruntime, which is handed them."""
import pathlib

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from cases import Failed, run, scratch, tool
from contrib_models import Net
from gpu_streams import CUDA

FLOAT, INT64, INT32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32
VOCABULARY, WIDTH, HEADS, ROOM = 40, 32, 4, 24
CACHES = "--carry=present.*=past_key_values.*"
LAYOUTS = ("", "--tp=2", "--pp=2", "--tp=2 --pp=2", "--tp=2x2x1")


def linear(net, x, old, new):
    return net.op("MatMul", x, net.weight(old, new))


def norm(net, x):
    return net.op("LayerNormalization", x, net.constant(np.ones(WIDTH), np.float32),
                  net.constant(np.zeros(WIDTH), np.float32))


def split_heads(net, x, batch):
    x = net.op("Reshape", x, net.constant([batch, -1, HEADS, WIDTH // HEADS],
                                          np.int64))
    return net.op("Transpose", x, perm=[0, 2, 1, 3])


def renamed(net, name, value):
    net.graph.node.append(helper.make_node("Identity", [value], [name]))
    return name


def by_concat(batch, length=None, layers=2):
    """As PyTorch's exporters have them: new keys come behind the past ones, and
    the mask is of both. The length of what is new is a symbol."""
    net = Net()
    ids = net.input("input_ids", INT64, [batch, "length"])
    mask = net.input("attention_mask", INT64, [batch, "past + length"])
    places = net.input("position_ids", INT64, [batch, "length"])
    x = net.op("Add", net.op("Gather", net.weight(VOCABULARY, WIDTH, scale=1), ids),
               net.op("Gather", net.weight(64, WIDTH, scale=1), places))
    # Which keys each query sees: those of the mask that are no later.
    total = net.op("Shape", mask, start=1, end=2)
    count = net.op("Shape", ids, start=1, end=2)
    zero, one = net.constant(0, np.int64), net.constant(1, np.int64)
    keys = net.op("Range", zero, net.op("Squeeze", total), one)
    queries = net.op("Add", net.op("Range", zero, net.op("Squeeze", count), one),
                     net.op("Squeeze", net.op("Sub", total, count)))
    causal = net.op("LessOrEqual", net.op("Unsqueeze", keys, net.constant([0], np.int64)),
                    net.op("Unsqueeze", queries, net.constant([1], np.int64)))
    seen = net.op("And", net.op("Unsqueeze", net.op("Cast", mask, to=9),
                                net.constant([1, 2], np.int64)), causal)
    bias = net.op("Where", seen, net.constant(0, np.float32),
                  net.constant(np.finfo(np.float32).min, np.float32))
    outputs = []
    for i in range(layers):
        y = norm(net, x)
        q, k, v = (split_heads(net, linear(net, y, WIDTH, WIDTH), batch)
                   for _ in range(3))
        k, v = (renamed(net, f"present.{i}.{kind}", net.op("Concat", net.input(
            f"past_key_values.{i}.{kind}", FLOAT,
            [batch, HEADS, "past", WIDTH // HEADS]), new, axis=2))
            for kind, new in (("key", k), ("value", v)))
        outputs += [k, v]
        scores = net.op("MatMul", q, net.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = net.op("Mul", scores, net.constant((WIDTH // HEADS) ** -0.5, np.float32))
        y = net.op("MatMul", net.op("Softmax", net.op("Add", scores, bias), axis=-1), v)
        y = net.op("Reshape", net.op("Transpose", y, perm=[0, 2, 1, 3]),
                   net.constant([batch, -1, WIDTH], np.int64))
        x = net.op("Add", x, linear(net, y, WIDTH, WIDTH))
        y = net.op("Relu", linear(net, norm(net, x), WIDTH, 2 * WIDTH))
        x = net.op("Add", x, linear(net, y, 2 * WIDTH, WIDTH))
    logits = renamed(net, "logits", linear(net, norm(net, x), WIDTH, VOCABULARY))
    return net.model(logits, *outputs)


def in_place(batch, layers=2):
    """As onnxruntime-genai has them: a cache has room for all tokens."""
    net = Net()
    ids = net.input("input_ids", INT64, [batch, "length"])
    mask = net.input("attention_mask", INT64, [batch, "total"])
    ends = net.op("Cast", net.op("Sub", net.op("ReduceSum", mask, net.constant([1], np.int64),
                                               keepdims=0),
                                 net.constant(1, np.int64)), to=INT32)
    count = net.op("Cast", net.op("Gather", net.op("Shape", mask), net.constant(1, np.int64)),
                   to=INT32)
    angles = np.outer(np.arange(64), 0.5 ** np.arange(WIDTH // HEADS // 2))
    tables = [net.constant(f(angles), np.float32) for f in (np.cos, np.sin)]
    x = net.op("Gather", net.weight(VOCABULARY, WIDTH, scale=1), ids)
    outputs = []
    for i in range(layers):
        y = norm(net, x)
        q, k, v = (linear(net, y, WIDTH, n) for n in (WIDTH, WIDTH // 2, WIDTH // 2))
        past = [net.input(f"past_key_values.{i}.{kind}", FLOAT,
                          [batch, HEADS // 2, "past", WIDTH // HEADS])
                for kind in ("key", "value")]
        y, *present = net.own("GroupQueryAttention", q, k, v, *past, ends, count, *tables,
                              outputs=3, num_heads=HEADS, kv_num_heads=HEADS // 2,
                              do_rotary=1)
        outputs += [renamed(net, f"present.{i}.{kind}", value)
                    for kind, value in zip(("key", "value"), present)]
        x = net.op("Add", x, linear(net, y, WIDTH, WIDTH))
        y = net.op("Relu", linear(net, norm(net, x), WIDTH, 2 * WIDTH))
        x = net.op("Add", x, linear(net, y, 2 * WIDTH, WIDTH))
    logits = renamed(net, "logits", linear(net, norm(net, x), WIDTH, VOCABULARY))
    return net.model(logits, *outputs)


# Dimensions of a step of one token, and of several.
KINDS = {
    "by concat": (by_concat, [f"--dim=past={ROOM}", "--dim=length=1"]),
    "in place": (in_place, [f"--dim=past={ROOM}", f"--dim=total={ROOM}", "--dim=length=1"]),
}


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options,
                                        ["CPUExecutionProvider"])


def by_onnxruntime(kind, model, prompt, count):
    """The likeliest tokens: the cache grows as it needs."""
    session, tokens = session_of(model), prompt
    names = [output.name for output in session.get_outputs()]
    batch, length = prompt.shape
    caches = {name: np.zeros([batch, HEADS if kind == "by concat" else HEADS // 2, 0,
                              WIDTH // HEADS], np.float32)
              for name in (i.name for i in session.get_inputs()) if name.startswith("past")}
    new = prompt
    for _ in range(count):
        total = tokens.shape[1]
        feeds = {"input_ids": new, "attention_mask": np.ones([batch, total], np.int64)}
        if kind == "by concat":
            feeds["position_ids"] = np.broadcast_to(
                np.arange(total - new.shape[1], total), new.shape).astype(np.int64)
        out = dict(zip(names, session.run(None, feeds | caches)))
        caches = {name: out[name.replace("past_key_values", "present")] for name in caches}
        new = out["logits"][:, -1:].argmax(axis=2).astype(np.int64)
        tokens = np.concatenate([tokens, new], axis=1)
    return tokens


def generated(kind, batch, length, count, layout, prefill=None, environment=None):
    make, dims = KINDS[kind]
    model = make(batch)
    prompt = np.random.default_rng(length).integers(0, VOCABULARY, [batch, length])
    wanted = by_onnxruntime(kind, model, prompt, count)
    with scratch() as folder:
        folder = pathlib.Path(folder)
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        np.save(folder / "prompt.npy", prompt)
        flags = [f"--prefill=length={prefill}"] if prefill else []
        run(tool("axopt"), folder / "model.onnx", *dims, CACHES, *flags, *layout.split(),
            "--quiet", "-o", folder / "plan.mlir")
        run(tool("axopt"), folder / "plan.mlir", "--verify")
        run(tool("axrun"), folder / "plan.mlir", f"--generate={count}", "--prompt",
            folder / "prompt.npy", "--output", folder / "tokens.npy",
            env=environment)
        got = np.load(folder / "tokens.npy")
    if not np.array_equal(got, wanted):
        raise Failed(f"{got.tolist()}, not {wanted.tolist()}")


def recurrent(layers=2):
    """A step of two LSTMs, one behind the other, and of what the second gave last, which
    the first takes: [batch, 6] to [batch, 3]."""
    net, batch, hidden = Net(), 2, 8
    x = net.op("Concat", net.input("x", FLOAT, [batch, 6]),
               net.input("last", FLOAT, [batch, 3]), axis=1)
    x = net.op("Unsqueeze", x, net.constant([0], np.int64))
    outputs, width = [], 9
    for i in range(layers):
        states = [net.input(f"{name}{i}", FLOAT, [1, batch, hidden]) for name in "hc"]
        y, h, c = net.op("LSTM", x, *(net.constant(net.random.standard_normal(shape) / 3,
                                                   np.float32)
                                      for shape in ([1, 4 * hidden, width],
                                                    [1, 4 * hidden, hidden],
                                                    [1, 8 * hidden])),
                         "", *states, outputs=3, hidden_size=hidden)
        outputs += [renamed(net, f"{name}{i}.next", value)
                    for name, value in (("h", h), ("c", c))]
        x = net.op("Squeeze", y, net.constant([1], np.int64))
        width = hidden
    y = net.op("Tanh", net.op("Squeeze", linear(net, x, hidden, 3),
                              net.constant([0], np.int64)))
    return net.model(renamed(net, "y", y), renamed(net, "last.next",
                                                   net.op("Mul", y, net.constant(
                                                       0.5, np.float32))), *outputs)


def streamed(layout, environment=None):
    """Steps of --data, in their order."""
    model, steps = recurrent(), 7
    x = np.random.default_rng(0).standard_normal([steps, 2, 6]).astype(np.float32)
    session, wanted = session_of(model), []
    names = [output.name for output in session.get_outputs()]
    states = {i.name: np.zeros(i.shape, np.float32)
              for i in session.get_inputs() if i.name != "x"}
    for part in x:
        out = dict(zip(names, session.run(None, {"x": part} | states)))
        states = {name: out[f"{name}.next"] for name in states}
        wanted.append(out["y"])
    with scratch() as folder:
        folder = pathlib.Path(folder)
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        np.savez(folder / "x.npz", x=x.reshape(-1, 6))
        run(tool("axopt"), folder / "model.onnx", "--carry=*.next=*", *layout.split(),
            "--quiet", "-o", folder / "plan.mlir")
        run(tool("axrun"), folder / "plan.mlir", "--data", folder / "x.npz", "--predict",
            folder / "y.npz", env=environment)
        got = np.load(folder / "y.npz")["y"].reshape(steps, 2, 3)
    if not np.allclose(got, wanted, atol=1e-5):
        raise Failed(f"{np.abs(got - wanted).max()} off")


def cases(every):
    for kind in KINDS:
        for layout in LAYOUTS + ("--dp=2 --tp=2",):
            batch = 2 if "--dp" in layout else 1
            yield (f"{kind}, {layout or 'one rank'}", generated, kind, batch, 5, 8, layout)
        # A prompt of whole steps, with some left, and one that is shorter.
        for length in (8, 11, 3):
            for layout in ("", "--tp=2 --pp=2"):
                yield (f"{kind}, {layout or 'one rank'}, a prompt of {length} by four",
                       generated, kind, 1, length, 6, layout, 4)
        yield f"{kind}, all the room", generated, kind, 1, 7, ROOM - 6, "--tp=2", 4
        yield (f"{kind}, --tp=2, on a card", generated, kind, 1, 6, 6, "--tp=2", 4, CUDA)
    for layout in LAYOUTS + ("--dp=2", "--pp=3"):
        yield f"recurrent, {layout or 'one rank'}", streamed, layout
    yield "recurrent, --pp=2, on a card", streamed, "--pp=2", CUDA
