# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training runs of another framework, step by step, on every layout: the same
losses, gradient norms and weights. And every model trains alike on some."""
import json
import os
import re

import numpy as np

from _training import states
from cases import EVERY, MODELS, TRAINING, Failed, minilm, run, scratch, tool

LAYOUTS = ["", "--dp=2", "--dp=4", "--tp=2", "--tp=4", "--tp=2x2x1",
           "--tp=1x2x2", "--tp=2x2x2", "--dp=2 --tp=2", "--dp=2 --zero=1",
           "--dp=2 --zero=2", "--dp=4 --zero=3", "--dp=2 --tp=2 --zero=3",
           "--tp=2 --sequence-parallel", "--recompute=selective",
           "--dp=2 --tp=2 --recompute=full",
           "--dp=2 --zero=3 --recompute=full",
           "--tp=2x2x1 --recompute=budget:1GB"]
# Micro-batches and pipelines: not of models that normalise by the batch.
PIPELINES = ["--micro-batches=2", "--micro-batches=4 --dp=2",
             "--dp=2 --zero=3 --micro-batches=2 --recompute=full",
             "--pp=2", "--pp=2 --micro-batches=2",
             "--pp=4 --micro-batches=4", "--pp=2 --micro-batches=4 --tp=2",
             "--pp=4 --micro-batches=4 --schedule=gpipe",
             "--dp=2 --tp=2 --pp=2 --micro-batches=2",
             "--dp=2 --pp=2 --micro-batches=2 --zero=1",
             "--dp=2 --pp=2 --micro-batches=2 --zero=3 "
             "--recompute=selective",
             "--pp=2 --micro-batches=4 --schedule=interleaved "
             "--virtual-stages=2",
             "--pp=4 --micro-batches=4 --schedule=zero-bubble",
             "--pp=2 --micro-batches=4 --schedule=zb-v"]
# Of those models. Evaluation, without batch statistics, is cut as they are.
WHOLE_PIPELINES = ["--pp=2", "--pp=4"]
# With --all besides: everything in all combinations that there are.
MORE = ["--dp=4 --zero=1", "--dp=4 --zero=2", "--dp=2 --zero=3",
        "--tp=2 --recompute=selective", "--recompute=full",
        "--recompute=budget:1GB"]
MORE_PIPELINES = ["--micro-batches=4", "--pp=4", "--pp=2 --micro-batches=4"] + [
    f"--pp={stages} --micro-batches={micro} --schedule={schedule}"
    for stages, micro in ((2, 2), (2, 4), (4, 2), (4, 4))
    for schedule in ("gpipe", "1f1b", "zero-bubble")] + [
    "--pp=2 --micro-batches=2 --schedule=interleaved --virtual-stages=2",
    "--dp=2 --tp=2 --pp=2 --micro-batches=4",
    "--dp=2 --tp=2 --pp=2 --micro-batches=4 --schedule=zero-bubble",
    "--pp=4 --micro-batches=4 --schedule=zb-v",
    "--pp=4 --micro-batches=8 --schedule=zb-v --recompute=selective",
    "--dp=2 --tp=2 --pp=2 --micro-batches=4 --schedule=zb-v --zero=3",
    "--pp=2 --micro-batches=2 --recompute=full",
    "--pp=2 --micro-batches=2 --schedule=zero-bubble --recompute=full",
    "--pp=2 --micro-batches=2 --tp=2 --sequence-parallel"]
OPTIMIZERS = ["adamw", "sgd", "adamw_groups"]
# Each on these with every optimizer, on the others with the first.
OFTEN = ["", "--dp=2 --tp=2"]
ALIKE = ["--tp=2", "--dp=2 --zero=3", "--tp=2x2x2"]
# Gradients of a weight that several layers share are partial sums over other
# axes, and what both passes use is exchanged for one and for the other.
MEETING = {
    "llama_sdpa_ts17_dyn": ["--micro-batches=2 --tp=4"],
    "gpt2_eager_dynamo18_static": ["--micro-batches=2 --tp=3"],
    "bert_eager_ts14_dyn": ["--pp=2 --tp=2x2x1"],
    "vit_eager_ts17_dyn": ["--pp=2 --micro-batches=2 --schedule=gpipe --tp=2 "
                           "--sequence-parallel"],
}


def options(text):
    """`adamw(...), weight_decay=0 for tensors of rank 0 or 1` as flags."""
    optimizer, _, rest = text.partition("), ")
    flags = ["--optimizer=" + optimizer.rstrip(")") + ")"]
    if rest:
        if not rest.endswith("for tensors of rank 0 or 1"):
            raise Failed(f"options that this test does not know: {text}")
        flags += ["--param-group", "rank<2:" + rest.split(" ")[0]]
    return flags


def checkSteps(steps, wanted, spread):
    """The largest relative difference."""
    if len(steps) != len(wanted):
        raise Failed(f"{len(steps)} steps were logged")
    tolerance = max(1e-4, 5 * spread)
    largest = 0
    for got, reference in zip(steps, wanted):
        for key, value in zip(("loss", "gradient_norm"), reference):
            difference = abs(got[key] - value) / abs(value)
            if not difference <= tolerance:
                raise Failed(f"step {got['step']}: {key} is {got[key]}, "
                             f"the reference's {value}")
            largest = max(largest, difference)
    return largest


def checkWeights(trained, final, spreads, optimizer):
    """A step of Adam moves a weight by about the learning rate, however small
    its gradient is; where that is not above eps, 1e-8, rounding errors of 1e-10
    are a part of the step."""
    rate = float(re.search(r"lr=([^,)]*)", optimizer)[1])
    ofStep = 0.02 * rate if optimizer.startswith("adam") else 0
    for name in final:
        if name not in trained:
            raise Failed(f"{name} was not trained")
        difference = np.abs(trained[name] - final[name]).max()
        largest = np.abs(final[name]).max()
        if not difference <= max(1e-4 * largest, 5 * spreads[name], ofStep):
            raise Failed(f"{name} differs by {difference} of {largest}")


# A plan is laid out by what a card takes for it, and the processor runs it.
FOR_A_CARD = ["--compile", "--target=sm_90,native"]


# Steps of a device that takes long for each, without --all.
FEW = 4


def isSlow():
    """Whether ranks are on such a device."""
    return os.environ.get("AXRUN_DEVICE") == "cuda" and not EVERY


def onProcessor(plan, data, steps, folder):
    """The weights that the processor trains in so many steps, by name."""
    weights = f"{folder}/processor.safetensors"
    run(tool("axrun"), plan, "--data", data, "--steps", steps, "--no-shuffle",
        "--quiet", "--save-weights", weights,
        env={name: value for name, value in os.environ.items()
             if not name.startswith("AXRUN_")})
    return dict(states(weights))


def follows(model, layout, optimizer, flags=()):
    wanted = json.loads((model / "reference.json").read_text())
    wanted = wanted["optimizers"][optimizer]
    steps = wanted["steps"][:FEW] if isSlow() else wanted["steps"]
    with np.load(model / "data.npz") as data, scratch() as folder:
        # Stored as steps x batch x ...: samples in their order.
        samples = {name: array.reshape((-1, *array.shape[2:]))
                   for name, array in data.items()}
        shape = "x".join(map(str, data["input"].shape[1:]))
        np.savez(f"{folder}/data.npz", **samples)
        plan = f"{folder}/plan.{'axc' if flags else 'mlir'}"
        run(tool("axopt"), model / "model.onnx", "--train",
            "--loss=cross_entropy(logits,labels)", "--clip-norm=1",
            "--shape", "input=" + shape, *options(wanted["options"]),
            *layout.split(), *flags, "-o", plan)
        run(tool("axrun"), plan, "--data",
            f"{folder}/data.npz", "--steps", len(steps),
            "--no-shuffle", "--log", f"{folder}/log", "--save-weights",
            f"{folder}/model.safetensors")
        with open(f"{folder}/log") as log:
            largest = checkSteps([json.loads(line) for line in log], steps,
                                 wanted["spread"])
        final = dict(np.load(model / f"final_{optimizer}.npz"))
        if isSlow():
            there = onProcessor(plan, f"{folder}/data.npz", len(steps), folder)
            final = {name: there[name] for name in final}
        checkWeights(dict(states(f"{folder}/model.safetensors")), final,
                     wanted["final_spread"], wanted["options"])
        return largest


def alike(model, layout):
    """A model exported for inference: its first two steps on one rank, and on
    others."""
    graph = (minilm() if model.name == "minilm" else model) / "model.onnx"
    with scratch() as folder:
        for flags, outputs in (("", "--output"), (layout, "--expect")):
            run(tool("axopt"), graph, "--test-data", model, "--train",
                "--loss=mse(logits,target)", "--clip-norm=1", *flags.split(),
                "-o", f"{folder}/plan.mlir")
            # The loss before any step, and after one.
            for warmup in 0, 1:
                run(tool("axrun"), f"{folder}/plan.mlir", "--random-inputs", 1,
                    "--warmup", warmup, "--iterations=1", outputs,
                    f"{folder}/{warmup}.npz")


def trained(every):
    for model in sorted(path.parent for path in TRAINING.glob("*/model.onnx")):
        pipelines = PIPELINES + (MORE_PIPELINES if every else [])
        layouts = LAYOUTS + (MORE if every else []) + (
            WHOLE_PIPELINES if model.name == "batchnorm" else pipelines)
        for layout in dict.fromkeys(layouts):
            yield model, layout


def cases(every):
    for model in sorted(MODELS.iterdir()):
        for layout in ALIKE + MEETING.get(model.name, []):
            yield f"{model.name} {layout}", alike, model, layout
    for name in "gpt2_tied", "llama":
        for layout in "--tp=2 --sequence-parallel", "--tp=4 --sequence-parallel":
            yield (f"{name} {layout}, for a card", follows, TRAINING / name, layout,
                   "adamw", FOR_A_CARD)
    for model, layout in trained(every):
        for number, optimizer in enumerate(OPTIMIZERS):
            if every or number == 0 or layout in OFTEN:
                yield (f"{model.name} {optimizer} {layout}", follows,
                       model, layout, optimizer)
