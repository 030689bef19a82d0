# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tokens behind a prompt: how they are chosen, when they end, and what cannot be."""
import json
import pathlib

import numpy as np

from _decoders import (CACHES, FLOAT, INT64, KINDS, by_onnxruntime, dims, named,
                       numbers)
from cases import Failed, run, scratch, tool
from contrib_models import Net

KEYS = "--carry=present.*.key=past_key_values.*.key"


def concatenating():
    return KINDS["by concat"][0](1)


def in_place():
    return KINDS["in place"][0](1)


def tiny(scaled=False, isNaN=False, counted=None):
    """Scores of each token by what it is and a mean of those before, without mask."""
    net = Net()
    ids = net.input("input_ids", INT64, ["batch", "length"])
    h = net.input("h", FLOAT, [4])
    e = net.op("Gather", net.weight(10, 4), ids)
    if scaled:
        scale = net.input("scale", FLOAT, [1, "length"])
        e = net.op("Mul", e, net.op("Unsqueeze", scale, numbers(net, 2)))
    last = net.op("Add", net.op("Mul", h, net.constant(0.5, np.float32)),
                  net.op("ReduceMean", e, axes=[0, 1], keepdims=0))
    logits = net.op("MatMul", net.op("Add", e, h), net.weight(4, 10))
    if isNaN:
        logits = net.op("Mul", logits, net.constant(np.nan, np.float32))
    if counted is None:
        return net.model(named(net, "logits", logits), named(net, "h.next", last))
    # NaN in steps behind so many.
    n = net.input("n", FLOAT, [1])
    left = net.op("Sqrt", net.op("Sub", net.constant([counted], np.float32), n))
    logits = net.op("Add", logits, net.op("Mul", left, net.constant(0, np.float32)))
    return net.model(named(net, "logits", logits), named(net, "h.next", last), named(
        net, "n.next", net.op("Add", n, net.constant(1, np.float32))))


def compiled(folder, model, *flags):
    plan = folder / "plan.mlir"
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    run(tool("axopt"), folder / "model.onnx", *flags, "--quiet", "-o", plan)
    return plan


def prompted(folder, tokens, dtype=np.int64):
    np.save(folder / "prompt.npy", np.array(tokens, dtype))
    return ["--prompt", folder / "prompt.npy"]


# Plans for messages: what makes the model, and flags.
PLANS = {
    "caches": (concatenating, [*dims("by concat", 24), CACHES]),
    "keys": (concatenating, [*dims("by concat", 24), KEYS]),
    "nothing carried": (concatenating, dims("by concat", 24)),
    "four": (concatenating, ["--dim=length=4", "--dim=past=24", CACHES]),
    "as many as heads": (concatenating, [*dims("by concat", 3), CACHES]),
    "few positions": (concatenating, [*dims("by concat", 99), CACHES]),
    "scaled": (lambda: tiny(scaled=True),
               ["--dim=batch=1", "--dim=length=1", "--carry=h.next=h",
                "--prefill=length=4"]),
    "two at first": (tiny, ["--dim=batch=1", "--dim=length=1", "--carry=h.next=h",
                            "--prefill=batch=2"]),
    "NaN": (lambda: tiny(isNaN=True),
            ["--dim=batch=1", "--dim=length=1", "--carry=h.next=h"]),
}
# Plan, flags, prompt, message, exit code.
REFUSED = [
    ("caches", ["--names=tokens=ids"], [1],
     "--generate: the program has no 'ids' for its tokens, but: input_ids, "
     "attention_mask, position_ids (--names=tokens=NAME says which it is)", 2),
    ("keys", ["--names=tokens=past_key_values.0.value"], [1],
     "--generate: tokens 'past_key_values.0.value' (1x4x24x8xf32) are no i64 or i32 of "
     "[batch, length]", 2),
    ("keys", ["--names=logits=present.0.value"], [1],
     "--generate: logits 'present.0.value' (1x4x25x8xf32) are no numbers of [batch, "
     "length, vocabulary] for tokens 'input_ids' (1x1xi64)", 2),
    ("keys", ["--names=mask=past_key_values.0.value"], [1],
     "--generate: mask 'past_key_values.0.value' (1x4x24x8xf32) is not of [batch, "
     "places]", 2),
    ("caches", ["--names=positions=attention_mask"], [1],
     "--generate: positions 'attention_mask' (1x25xi64) are no i64 or i32 of the shape "
     "of tokens 'input_ids' (1x1xi64)", 2),
    ("caches", ["--names=tokens=position_ids"], [1],
     "--generate: input 'position_ids' has two roles", 2),
    ("as many as heads", [], [1],
     "--generate: mask 'attention_mask' (1x4xi64) has a number for each of 4 places, "
     "and what is carried has so many in one dimension, and in another one, so that "
     "either may be those of a cache: compile the plan for another length of the past "
     "than 3", 2),
    ("nothing carried", [], [1],
     "--generate: the plan carries nothing from step to step: compile it with axopt "
     "--carry, as --carry='present.*=past_key_values.*'", 2),
    ("scaled", ["--names=mask=scale"], [1],
     "--generate: mask 'scale' (1x1xf32) has a number for each of 1 places, and nothing "
     "that is carried has so many, or 0", 2),
    ("four", [], [1],
     "--generate: program 'main' takes 4 tokens of a sequence at a time: compile the "
     "plan for one, and, for prompts, with --prefill for several", 2),
    ("two at first", [], [1],
     "--generate: program 'main' is for 1 sequences, and 'prefill' for 2", 2),
    ("scaled", ["--input=scale=scale.npy"], [1],
     "--generate: input 'scale' (1x4xf32) of program 'prefill' is given as 1x1xf32", 6),
    ("keys", [], [1], "no value for these inputs", 6),
    ("caches", [], [[1, 2], [3, 4]],
     "the prompt is 2x2xi64; it has to be integers of [1, length], one token at least",
     6),
    ("caches", [], [], "the prompt is 0xf64; it has to be integers", 6),
    ("caches", [], [1, 40],
     "token 1 of the prompt's sequence 0 is 40; the model knows those below 40", 6),
    ("caches", [], [-1], "token 0 of the prompt's sequence 0 is -1", 6),
    ("caches", [], [1] * 22,
     "--generate=5 behind a prompt of 22: the plan has room for 25 tokens: compile it "
     "with a longer past", 2),
    ("caches", ["--generate=9223372036854775807"], [1], "the plan has room for 25", 2),
    ("few positions", [], [1] * 61, "the plan has room for 64 tokens", 2),
    ("NaN", [], [1, 2], "all scores behind token 1 of sequence 0 are NaN", 9),
]
# Flags, message.
MISUSED = [
    (["--generate=3"], "--generate needs --prompt=FILE.npy, the tokens to begin with"),
    (["--generate=0", "--prompt=p.npy"], "--generate is at least 1"),
    (["--generate=3", "--prompt=p.npy", "--data=d.npz", "--steps=1"],
     "--generate and --data are two things to do"),
    (["--generate=3", "--prompt=p.npy", "--temperature=-1"],
     "--temperature is not negative, and --top-p above 0 and at most 1"),
    (["--generate=3", "--prompt=p.npy", "--temperature=1", "--top-p=0"],
     "--temperature is not negative, and --top-p above 0 and at most 1"),
    (["--generate=3", "--prompt=p.npy", "--top-k=3"],
     "--top-k has no use without --temperature: the likeliest token is chosen"),
    (["--generate=3", "--prompt=p.npy", "--names=words=x"],
     "--names=words=x: expected tokens, mask, positions or logits, and =NAME"),
    (["--prompt=p.npy"],
     "--prompt has no use in this run: it is for generating tokens (--generate)"),
    (["--generate=3", "--prompt=p.npy", "--iterations=3"],
     "--iterations has no use in this run"),
]


def refused(name, flags, tokens, message, code):
    make, how = PLANS[name]
    with scratch() as folder:
        folder = pathlib.Path(folder)
        plan = compiled(folder, make(), *how)
        np.save(folder / "scale.npy", np.ones([1, 1], np.float32))
        given = prompted(folder, tokens, None if not tokens else np.int64)
        count = [] if any("--generate" in flag for flag in flags) else ["--generate=5"]
        done = run(tool("axrun"), plan, *count, *given, *flags, cwd=folder,
                   expect=code)
    if message not in done.stderr:
        raise Failed(f"expected: {message}\ngot: {done.stderr}")


def misused(flags, message):
    done = run(tool("axrun"), "plan.mlir", *flags, expect=2)
    if message not in done.stderr:
        raise Failed(f"expected: {message}\ngot: {done.stderr}")


def chosen():
    """At random, but for what one is the only choice of."""
    model, prompt = concatenating(), [[3, 1, 4, 1, 5]]
    wanted = by_onnxruntime("by concat", model, np.array(prompt), 12)[0, 5:]
    with scratch() as folder:
        folder = pathlib.Path(folder)
        results = {}
        for layout in "", "--tp=2":
            plan = compiled(folder, model, *dims("by concat", 24), CACHES,
                            *layout.split())
            given = ["--generate=12", *prompted(folder, prompt[0])]

            def tokens(*flags):
                done = run(tool("axrun"), plan, *given, *flags)
                return [int(word) for word in done.stdout.split()]

            assert tokens() == list(wanted), (tokens(), wanted)
            assert tokens("--temperature=1", "--top-k=1") == list(wanted)
            assert tokens("--temperature=1", "--top-p=1e-9") == list(wanted)
            ways = [tuple(tokens("--temperature=5", f"--seed={seed}"))
                    for seed in (1, 1, 2)]
            assert ways[0] == ways[1] != ways[2], ways
            results[layout] = ways
            # What is chosen ends the sequence, the prompt does not.
            stop = int(wanted[2])
            end = list(wanted).index(stop)
            assert tokens(f"--stop={stop}", "--stop=1") == list(wanted[:end + 1])
        if results[""] != results["--tp=2"]:
            raise Failed(f"other tokens on two ranks: {results}")


def reported():
    """A report is of the steps of one token."""
    with scratch() as folder:
        folder = pathlib.Path(folder)
        plan = compiled(folder, concatenating(), *dims("by concat", 24), CACHES,
                        "--prefill=length=4")
        done = run(tool("axrun"), plan, "--generate=3", *prompted(folder, [1] * 9),
                   "--json", folder / "report.json", "--profile")
        report = json.loads((folder / "report.json").read_text())
    # One of the prompt's nine, and of three tokens the two that are fed.
    assert report["iterations"] == 3, report["iterations"]
    assert report["predicted_ms"] > 0 and report["predicted_for"], report
    assert "3 runs on 1 rank" in done.stdout, done.stdout
    assert "3 tokens, of 1 sequence: a prompt of 9 took" in done.stderr, done.stderr


def asTheyCome():
    """What there is before an error is printed."""
    with scratch() as folder:
        folder = pathlib.Path(folder)
        plan = compiled(folder, tiny(counted=3), "--dim=batch=1", "--dim=length=1",
                        "--carry=*.next=*")
        done = run(tool("axrun"), plan, "--generate=9", *prompted(folder, [1, 2]),
                   expect=9)
    assert "all scores behind token 4 of sequence 0 are NaN" in done.stderr, done.stderr
    assert len(done.stdout.split()) == 3 and done.stdout.endswith("\n"), done.stdout


def two_sequences():
    """One ends before the other, and is filled up."""
    model = KINDS["in place"][0](2)
    prompt = np.array([[3, 1, 4], [1, 5, 9]])
    wanted = by_onnxruntime("in place", model, prompt, 8)
    # A token that one of them has, and the other later or never.
    ends = [(int(token), place) for place, token in enumerate(wanted[0, 3:])
            if token not in wanted[1, 3:4 + place]]
    stop, place = ends[0]
    wanted[0, 4 + place:] = stop
    if stop in wanted[1, 3:]:
        end = 4 + list(wanted[1, 3:]).index(stop)
        wanted = wanted[:, :end]
    with scratch() as folder:
        folder = pathlib.Path(folder)
        plan = compiled(folder, model, *dims("in place", 24), CACHES, "--dp=2")
        run(tool("axrun"), plan, "--generate=8", *prompted(folder, prompt),
            f"--stop={stop}", "--output", folder / "tokens.npy")
        got = np.load(folder / "tokens.npy")
    if not np.array_equal(got, wanted):
        raise Failed(f"{got.tolist()}, not {wanted.tolist()}")


def cases(every):
    for number, (name, flags, tokens, message, code) in enumerate(REFUSED):
        yield (f"refused: {number}, {name} {' '.join(flags)}", refused, name, flags,
               tokens, message, code)
    for flags, message in MISUSED:
        yield f"misused: {' '.join(flags)}", misused, flags, message
    yield "tokens are chosen", chosen
    yield "two sequences", two_sequences
    yield "a report", reported
    yield "as they come", asTheyCome
