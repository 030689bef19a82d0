# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences that ranks share (--cp): the same numbers as on one rank, in training
and without; each rank does its part of all products, and only attention's keys and
values, and gradients, are exchanged."""
import json
import re
from pathlib import Path

from _decoders import CACHES, KINDS
from carried import generated
from cases import MODELS, TRAINING, Failed, graphOf, run, scratch, tool
from models import agrees
from train import follows

# Their sequences have 16 or 17 tokens, or image patches.
INFERENCE = {
    "bert_eager_ts14_dyn": ["--cp=2", "--cp=4", "--cp=2 --tp=2"],
    "gpt2_eager_ts17_dyn": ["--cp=2", "--cp=2 --tp=2 --sequence-parallel"],
    "gpt2_sdpa_dynamo18_static": ["--cp=2", "--cp=2 --pp=2"],
    "llama_sdpa_dynamo23_static": ["--cp=4", "--dp=2 --cp=2 --tp=2"],
    "llama_sdpa_ts17_dyn": ["--cp=2", "--cp=2 --pp=2 --micro-batches=2"],
}
TRAINED = ["--cp=2", "--cp=4", "--dp=2 --cp=2", "--cp=2 --tp=2",
           "--cp=2 --tp=2 --sequence-parallel", "--cp=2 --tp=2x2x1",
           "--cp=2 --tp=1x1x2", "--cp=2 --zero=1", "--dp=2 --cp=2 --zero=3",
           "--cp=2 --recompute=full", "--cp=2 --zero=3 --recompute=full",
           "--cp=2 --micro-batches=2", "--cp=2 --pp=2 --micro-batches=2",
           "--dp=2 --cp=2 --pp=2 --micro-batches=4 --schedule=zero-bubble",
           "--cp=2 --tp=2 --order=context,pipe,data,depth,row,col"]


def report(model, *flags):
    with scratch() as folder:
        run(tool("axopt"), *model, *flags, "--quiet", "-o", f"{folder}/plan.mlir",
            "--report", f"{folder}/report.json")
        with open(f"{folder}/report.json") as file:
            return json.load(file)


def isSplit(model, ranks):
    """Products and attention are done once, by all ranks together."""
    asked = report(model, f"--cp={ranks}")
    for stage in asked["programs"][0]["stages"]:
        for kind, flops in stage["flops"].items():
            if flops["whole"] != ranks * flops["rank"]:
                raise Failed(f"{kind}: a rank of {ranks} does {flops['rank']} of "
                             f"{flops['whole']}")


def exchanges(program):
    """What goes over context, kind -> (number, bytes)."""
    return {each["kind"]: (each["count"], each["bytes"])
            for stage in program["stages"] for each in stage["collectives"]
            if each["axes"] == "{context}"}


def onlyKeys(model, layout):
    """And values, in each of GPT-2's layers, are gathered; in training their
    gradients are scattered."""
    found = exchanges(report(model, *layout.split())["programs"][0])
    wanted = {"all_gather", "all_reduce", "reduce_scatter"}
    if "--train" not in model:
        wanted = {"all_gather"}
    layers = 4
    if not set(found) <= wanted or not found["all_gather"][0] <= 2 * layers + 1:
        raise Failed(f"over context: {found}")


def newRows():
    """Of a cache each rank has all, and what a prompt adds is gathered, not what is
    there."""
    with scratch() as folder:
        model = Path(folder) / "model.onnx"
        model.write_bytes(KINDS["by concat"][0](1).SerializeToString())
        found = [exchanges(program)
                 for past in (24, 56)
                 for program in report([model, "--dim=length=1", f"--dim=past={past}",
                                        CACHES, "--prefill=length=4"],
                                       "--cp=2")["programs"]
                 if program["name"] == "prefill"]
    if len(found) != 2 or found[0] != found[1] or set(found[0]) != {"all_gather"}:
        raise Failed(f"over context: {found}")


def told():
    """Of a prompt that ranks cannot share, and not of the one token of a step."""
    with scratch() as folder:
        model = Path(folder) / "model.onnx"
        model.write_bytes(KINDS["by concat"][0](1).SerializeToString())
        for length, expect in ((8, 0), (9, 2)):
            done = run(tool("axopt"), model, "--dim=length=1", "--dim=past=24", CACHES,
                       f"--prefill=length={length}", "--cp=2", "--strict", "--quiet",
                       "-o", f"{folder}/plan.mlir", expect=expect)
            if (f"the sequence of {length}" in done.stderr) != (expect != 0):
                raise Failed(done.stderr)
        # Ranks that do the same for each token are not taken for the prompt's sake.
        done = run(tool("axopt"), model, "--dim=length=1", "--dim=past=24", CACHES,
                   "--prefill=length=8", "--auto", "--devices=2", "-o",
                   f"{folder}/plan.mlir")
    if re.search("taken: .*--cp", done.stderr):
        raise Failed(done.stderr)


def cases(every):
    for name, layouts in INFERENCE.items():
        for layout in layouts:
            yield f"{name} {layout}", agrees, MODELS / name, layout
    for name in "gpt2_tied", "llama":
        for layout in TRAINED:
            yield f"{name} {layout}", follows, TRAINING / name, layout, "adamw"
    gpt = [graphOf(MODELS / "gpt2_eager_ts17_dyn"), "--dim=batch=2", "--dim=sequence=32"]
    trained = [TRAINING / "gpt2_tied" / "model.onnx", "--shape=input=8x32", "--train",
               "--loss=cross_entropy(logits,labels)"]
    for name, model in ("GPT-2", gpt), ("GPT-2's training", trained):
        yield f"{name} is split", isSplit, model, 4
        for layout in ("--cp=2", "--cp=4 --tp=2", "--cp=2 --tp=2 --sequence-parallel",
                       "--cp=2 --tp=2x2x2"):
            yield f"what {name} sends, {layout}", onlyKeys, model, layout
    for layout in "--cp=2", "--cp=2 --tp=2", "--cp=2 --pp=2":
        yield (f"a decoder, {layout}", generated, "by concat", 1, 11, 6, layout, 4)
        yield (f"a decoder in place, {layout}", generated, "in place", 1, 11, 6, layout,
               4)
    yield "new rows of a cache", newRows
    yield "what is told", told
