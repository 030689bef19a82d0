# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one step leaves for the next stays on its ranks: caches of decoders, and
states of recurrent networks, beside onnxruntime, which is handed them."""
import pathlib

import numpy as np

from _decoders import (CACHES, FLOAT, KINDS, SUM, by_onnxruntime, dims, linear,
                       named, numbers, session_of)
from cases import Failed, run, scratch, tool
from contrib_models import Net
from gpu_streams import CUDA

ROOM = 24
LAYOUTS = ("", "--tp=2", "--pp=2", "--tp=2 --pp=2", "--tp=2x2x1")


def generated(kind, batch, length, count, layout, prefill=None, environment=None,
              room=ROOM):
    make, size, _ = KINDS[kind]
    model = make(batch)
    prompt = np.random.default_rng(length).integers(0, size.vocabulary,
                                                    [batch, length])
    wanted = by_onnxruntime(kind, model, prompt, count)
    with scratch() as folder:
        folder = pathlib.Path(folder)
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        np.save(folder / "prompt.npy", prompt)
        flags = [f"--prefill=length={prefill}"] if prefill else []
        flags += [SUM] if "sum" in kind else []
        run(tool("axopt"), folder / "model.onnx", *dims(kind, room), CACHES, *flags,
            *layout.split(), "--quiet", "-o", folder / "plan.mlir")
        run(tool("axopt"), folder / "plan.mlir", "--verify")
        run(tool("axrun"), folder / "plan.mlir", f"--generate={count}", "--prompt",
            folder / "prompt.npy", "--output", folder / "tokens.npy",
            env=environment)
        got = np.load(folder / "tokens.npy")
    if not np.array_equal(got, wanted):
        raise Failed(f"{got.tolist()}, not {wanted.tolist()}")


def recurrent(layers=2, batch=2, hidden=8):
    """A step of two LSTMs, one behind the other, and of what came of the second
    last, which the first takes, too: [batch, 6] to [batch, 3]."""
    net = Net()
    x = net.op("Concat", net.input("x", FLOAT, [batch, 6]),
               net.input("last", FLOAT, [batch, 3]), axis=1)
    x = net.op("Unsqueeze", x, numbers(net, 0))
    outputs, width = [], 9
    for i in range(layers):
        weights = [net.weight(1, 4 * hidden, n, scale=0.3) for n in (width, hidden)]
        states = [net.input(f"{name}{i}", FLOAT, [1, batch, hidden])
                  for name in "hc"]
        y, h, c = net.op("LSTM", x, *weights, net.weight(1, 8 * hidden), "", *states,
                         outputs=3, hidden_size=hidden)
        outputs += [named(net, f"h{i}.next", h), named(net, f"c{i}.next", c)]
        x, width = net.op("Squeeze", y, numbers(net, 1)), hidden
    y = net.op("Tanh", net.op("Squeeze", linear(net, x, hidden, 3), numbers(net, 0)))
    half = net.op("Mul", y, net.constant(0.5, np.float32))
    return net.model(named(net, "y", y), named(net, "last.next", half), *outputs)


def shifted():
    """What a step makes beside what the one before has made of its own, mixed: each
    is stored, and read where another result of the kernel reads the old one."""
    net = Net()
    x, s = net.input("x", FLOAT, [2, 6]), net.input("s", FLOAT, [2, 6])
    new = net.op("LayerNormalization", x, net.weight(6), net.weight(6))
    mixed = net.op("Add", new, net.op("Mul", net.op("Sub", s, new), net.weight(6)))
    return net.model(named(net, "y", linear(net, mixed, 6, 3)),
                     named(net, "s.next", new))


def summed():
    """An output is made of the old and the new value of a state, which are not made
    of each other."""
    net = Net()
    x, s = net.input("x", FLOAT, [2, 6]), net.input("s", FLOAT, [2, 6])
    new = net.op("Tanh", x)
    return net.model(named(net, "y", net.op("Add", new, s)), named(net, "s.next", new))


def delayed():
    """A line of three, of which the last is an output."""
    net = Net()
    x = net.input("x", FLOAT, [2, 6])
    a, b, c = (net.input(name, FLOAT, [2, 3]) for name in "abc")
    first = net.op("Tanh", net.op("Add", linear(net, x, 6, 3), a))
    return net.model(named(net, "y", net.op("Add", c, linear(net, first, 3, 3))),
                     named(net, "a.next", first), named(net, "b.next", a),
                     named(net, "c.next", b))


def main_state():
    """A state that is called as a program is."""
    net = Net()
    x, before = net.input("x", FLOAT, [2, 6]), net.input("main", FLOAT, [2, 3])
    y = net.op("Tanh", linear(net, x, 6, 3))
    z = linear(net, net.op("Add", y, before), 3, 3)
    return net.model(named(net, "y", net.op("Add", z, before)),
                     named(net, "main.next", net.op("Sub", z, y)))


def at_random(seed):
    """One to three states, which are made of anything, and read anywhere; but two that
    only change places, which axrun refuses."""
    net, random = Net(), np.random.default_rng(seed)
    choose = lambda names: names[random.integers(len(names))]
    x = net.input("x", FLOAT, [2, 6])
    states = [net.input(f"s{i}", FLOAT, [2, 6]) for i in range(random.integers(1, 4))]
    made = [x]

    def joined(kind, one, other):
        return net.op("Tanh", net.op(kind, one, other))

    for _ in range(random.integers(3, 9)):
        kind, last = choose(["linear", "norm", "Add", "Sub", "Mul"]), made[-1]
        made.append(
            linear(net, last, 6, 6) if kind == "linear" else
            net.op("LayerNormalization", last, net.weight(6)) if kind == "norm" else
            joined(kind, last, choose(states + made)))
    outputs = []
    for i, state in enumerate(states):
        kind = choose(["made", "earlier", "joined", "linear", "shifted"])
        value = choose(made) if kind == "made" else \
            choose([x] + states[:i]) if kind == "earlier" else \
            joined("Add", choose(states), choose(made)) if kind == "joined" else \
            linear(net, choose(states + made), 6, 6) if kind == "linear" else \
            net.op("Concat", net.op("Slice", state, numbers(net, 1), numbers(net, 6),
                                    numbers(net, 1)),
                   net.op("Slice", choose(made), numbers(net, 0), numbers(net, 1),
                          numbers(net, 1)), axis=1)
        outputs.append(named(net, f"s{i}.next", value))
    y = net.op("Add", linear(net, made[-1], 6, 6), choose(states + made))
    return net.model(named(net, "y", y), *outputs)


def kept_at_random(seed):
    """States of rows of which steps change some: a ring, a list that grows, rows of
    some samples, single numbers; by one choice or several."""
    net, random = Net(), np.random.default_rng(seed)
    choose = lambda names: names[random.integers(len(names))]
    rows, width = 5, 16
    x, count = net.input("x", FLOAT, [2, 6]), net.input("n", FLOAT, [1])
    of = lambda values: net.constant(values, np.float32)
    turn = net.op("Sub", count, net.op("Mul", of(rows), net.op(
        "Floor", net.op("Div", count, of(rows)))))
    places = of(np.arange(rows).reshape(rows, 1))
    wide = lambda: net.op("Unsqueeze", linear(net, x, 6, width), numbers(net, 1))
    conditions = [net.op("Equal", places, turn), net.op("Less", places, turn),
                  net.op("Greater", places, count), net.op("Less", turn, of(3)),
                  net.op("Greater", net.op("ReduceSum", wide(), numbers(net, 2)),
                         of(0)),
                  net.op("Less", wide(), of(0))]
    states = [net.input(f"s{i}", FLOAT, [2, rows, width])
              for i in range(random.integers(1, 4))]

    def chosen(state, depth):
        other = chosen(state, depth - 1) if depth > 1 and random.integers(2) else \
            choose([state, wide(), of(0), net.weight(rows, width),
                    net.op("Mul", wide(), net.weight(rows, width))] + states)
        pair = [state, other]
        random.shuffle(pair)
        return net.op("Where", choose(conditions), *pair)

    made = [chosen(state, 3) for state in states]
    y = linear(net, x, 6, width)
    for value in made + [choose(states)] * int(random.integers(2)):
        y = net.op("Add", y, net.op("ReduceSum", value, numbers(net, 1), keepdims=0))
    return net.model(named(net, "y", y),
                     named(net, "n.next", net.op("Add", count, of(1))),
                     *(named(net, f"s{i}.next", value)
                       for i, value in enumerate(made)))


NETS = {"recurrent": recurrent, "a shift": shifted, "a sum": summed,
        "a line": delayed, "a state called main": main_state}


def streamed(model, layout, environment=None):
    """Steps of --data, in their order."""
    steps = 7
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
        got = np.load(folder / "y.npz")["y"].reshape(np.shape(wanted))
    if not np.allclose(got, wanted, atol=1e-5):
        raise Failed(f"{np.abs(got - wanted).max()} off")


def random_layouts(make, seed):
    for layout in "", "--tp=2", "--dp=2 --pp=2":
        streamed(make(seed), layout)


def cases(every):
    for kind in KINDS:
        for layout in LAYOUTS + ("--dp=2 --tp=2",):
            batch = 2 if "--dp" in layout else 1
            yield (f"{kind}, {layout or 'one rank'}", generated, kind, batch, 5, 8,
                   layout)
        # A prompt of whole steps, with some left, and one that is shorter.
        for length in (8, 11, 3):
            for layout in ("", "--tp=2 --pp=2"):
                yield (f"{kind}, {layout or 'one rank'}, a prompt of {length} by four",
                       generated, kind, 1, length, 6, layout, 4)
        yield f"{kind}, all the room", generated, kind, 1, 7, ROOM - 6, "--tp=2", 4
        yield (f"{kind}, --tp=2, on a card", generated, kind, 1, 6, 6, "--tp=2", 4,
               CUDA)
    # As long as heads are wide, less what is new.
    yield "by concat, as long as heads are wide", generated, "by concat", 1, 3, 4, "", \
        None, None, 7
    for name, make in NETS.items():
        for layout in LAYOUTS + ("--dp=2", "--pp=3"):
            if name == "recurrent" or layout != "--pp=3":
                yield f"{name}, {layout or 'one rank'}", streamed, make(), layout
        yield f"{name}, --pp=2, on a card", streamed, make(), "--pp=2", CUDA
    for seed in range(200 if every else 12):
        yield f"at random, {seed}", random_layouts, at_random, seed
        yield f"rows at random, {seed}", random_layouts, kept_at_random, seed
