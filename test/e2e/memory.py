# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What training needs of memory: predicted, and measured."""
import json
import os
import re
import sys
from functools import partial

import numpy as np

from _gpt import Graph, gpt, quantized, swiglu
from cases import Failed, Unsupported, isSanitized, run, scratch, tool
from zoo_sequences import recurrent

TRAIN = ["--train", "--loss=mse(logits,target)"]


def predicted(model, folder, *flags):
    """Bytes of a rank, by what they are for."""
    run(tool("axopt"), model, *flags, "--report", f"{folder}/report.json",
        "-o", f"{folder}/plan.mlir")
    with open(f"{folder}/report.json") as file:
        stage, = json.load(file)["programs"][0]["stages"]
    return stage["memory_bytes"]


# A child begins with the size of its parent, so that this is a small one.
MEASURE = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(1024 * usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def measured(plan):
    """The most that a process has in memory while it trains. The first run may compile
    kernels, which takes more."""
    return min(int(run(sys.executable, "-I", "-S", "-c", MEASURE, tool("axrun"), plan,
                       "--random-inputs", "1", "--iterations", "2").stdout)
               for _ in range(2))


def ranks():
    """Weights, gradients and two moments, all split."""
    with scratch() as folder:
        model = f"{folder}/model.onnx"
        swiglu(model, width=512, hidden=512, batch=8)
        weights = 4 * 3 * 512 * 512
        for count in 1, 2, 4, 8:
            memory = predicted(model, folder, *TRAIN, f"--tp={count}")
            if not 4 * weights <= count * memory["peak"] <= 4.3 * weights:
                raise Failed(f"{count} ranks: {memory}")
        # What each stage of ZeRO splits.
        swiglu(model, width=512, hidden=512, batch=2048)
        for zero, parts in (1, (1, 4, 4)), (2, (1, 4, 4)), (3, (4, 4, 4)):
            memory = predicted(model, folder, *TRAIN, "--dp=4",
                               f"--zero={zero}")
            wanted = (weights // parts[0], weights // parts[1],
                      2 * weights // parts[2] + 8)
            if (memory["weights"], memory["gradients"],
                    memory["optimizer"]) != wanted:
                raise Failed(f"--zero={zero}: {memory}")


def mayMeasure():
    if isSanitized():
        raise Unsupported("sanitizers have memory of their own")


def stepsShareWeights():
    """All steps of a recurrent network read the same packed weights, those of
    either direction: slices of one tensor."""
    mayMeasure()
    peaks, width = [], 256
    with scratch() as folder:
        for steps in 4, 44:
            g = Graph("gru")
            x = g.input("x", np.float32, steps, 1, width)
            g.output(recurrent(g, "GRU", 3, x, width, width, 2, 1))
            g.save(f"{folder}/model.onnx")
            run(tool("axopt"), f"{folder}/model.onnx", "-o",
                f"{folder}/plan.mlir")
            peaks.append(measured(f"{folder}/plan.mlir"))
    more, once = peaks[1] - peaks[0], 2 * 3 * width * width * 4
    if more > 40 * once / 4:  # Also what is said of each step.
        raise Failed(f"40 more steps take {more} bytes; the weights are {once}")


def agrees():
    mayMeasure()
    with scratch() as folder:
        os.mkdir(f"{folder}/small")
        small, large = f"{folder}/small/model.onnx", f"{folder}/model.onnx"
        swiglu(small, width=8, hidden=8, batch=8)
        predicted(small, folder, *TRAIN)
        os.rename(f"{folder}/plan.mlir", f"{folder}/small/plan.mlir")
        empty = measured(f"{folder}/small/plan.mlir")
        swiglu(large, width=2048, hidden=2048, batch=8)
        for flags in [], ["--tp=2"], ["--dp=2", "--zero=3"]:
            memory = predicted(large, folder, *TRAIN, *flags)
            wanted = memory["peak"] * (2 if flags else 1)
            got = measured(f"{folder}/plan.mlir") - empty
            if abs(got - wanted) > 0.1 * wanted:
                raise Failed(f"{flags}: {got} bytes, predicted {wanted}")


def recompute():
    """Full: at most a third, gradients, which are there in any case, apart;
    selective between. The same loss, and no reduction more."""
    with scratch() as folder:
        gpt(f"{folder}/model.onnx", layers=6, width=64, heads=4,
            vocabulary=128, batch=8, tokens=64)
        loss = ["--train", "--loss=cross_entropy(logits,labels)"]
        model, plan = f"{folder}/model.onnx", f"{folder}/plan.mlir"
        bytes, reductions = {}, {}
        for mode in "none", "selective", "full":
            flags = [*loss, "--recompute=" + mode]
            memory = predicted(model, folder, *flags)
            bytes[mode] = memory["activations"]
            run(tool("axrun"), plan, "--random-inputs", 1,
                "--output" if mode == "none" else "--expect",
                f"{folder}/expected.npz")
            run(tool("axopt"), model, *flags, "--tp=2", "-o", plan)
            with open(plan) as file:
                reductions[mode] = file.read().count("ax.all_reduce")
        if not bytes["full"] < bytes["selective"] < bytes["none"]:
            raise Failed(f"activations of {bytes}")
        if bytes["full"] * 3 > bytes["none"]:
            raise Failed(f"activations of {bytes}")
        memory = predicted(model, folder, *loss, "--recompute=budget:10MB")
        if not 9e6 < memory["peak"] <= 10e6:
            raise Failed(f"for 10 MB: {memory}")
        if len(set(reductions.values())) != 1:
            raise Failed(f"reductions: {reductions}")


def prepared():
    """Numbers of 8-bit weights, which are made once: there is no time at which
    all are there twice."""
    mayMeasure()
    with scratch() as folder:
        peaks, got = {}, {}
        for name, size, count in ("small", 16, 1), ("large", 2048, 6):
            model = f"{folder}/{name}.onnx"
            quantized(model, size, count)
            run(tool("axopt"), model, "--report", f"{folder}/report.json",
                "-o", f"{folder}/{name}.mlir")
            with open(f"{folder}/report.json") as file:
                peaks[name] = {
                    program["name"]: program["stages"][0]["memory_bytes"]
                    for program in json.load(file)["programs"]}
            got[name] = measured(f"{folder}/{name}.mlir")
        main, prepare = (peaks["large"][name] for name in ("main", "prepare"))
        wide = 6 * 4 * 2048 * 2048
        if main["weights"] != wide or not \
                wide < prepare["peak"] < 1.5 * wide:
            raise Failed(f"predicted: {peaks}")
        more = got["large"] - got["small"]
        if not 0.9 * wide < more < 1.3 * max(main["peak"], prepare["peak"]):
            raise Failed(f"{more} bytes, predicted {peaks}")


def nothingIsCopied(layout):
    """A gradient that was added up is kept once, for its norm and for its update; a
    weight that is gathered is written where it is."""
    with scratch() as folder:
        gpt(f"{folder}/model.onnx", layers=2, width=32, heads=2, vocabulary=48,
            batch=8, tokens=8)
        plan = f"{folder}/plan.mlir"
        run(tool("axopt"), f"{folder}/model.onnx", "--train", "--clip-norm=1",
            "--loss=cross_entropy(logits,labels)", *layout.split(), "-o", plan)
        for target in [], ["--target=sm_90"]:
            listed = run(tool("axrun"), plan, "--list-commands", *target).stdout
            # Elements, none of which are of a weight's size.
            copied = [int(count) for count in
                      re.findall(r": copy (\d+) ", listed)]
            if any(count >= 32 * 32 for count in copied):
                raise Failed(f"{layout} {target}: copies of {copied}")


def keptOnce(zero):
    """In a pipeline whose ranks have parts of the batch, a gradient's sum over them
    is where the gradient was, and is predicted so: 4 bytes a weight."""
    with scratch() as folder:
        swiglu(f"{folder}/model.onnx", width=64, hidden=256, batch=8)
        plan, report = f"{folder}/plan.mlir", f"{folder}/report.json"
        run(tool("axopt"), f"{folder}/model.onnx", *TRAIN, "--clip-norm=1", "--pp=2",
            "--dp=2", "--micro-batches=2", f"--zero={zero}", "--report", report,
            "-o", plan)
        with open(report) as file:
            stages = json.load(file)["programs"][0]["stages"]
        gradients = sum(stage["memory_bytes"]["gradients"] for stage in stages)
        weights = 3 * 64 * 256
        # Of ZeRO 1 the sum, of which a rank has half, has a place of its own.
        wanted = 4 * (weights if zero == 0 else weights * 3 // 2)
        if not wanted <= gradients <= wanted + 64:
            raise Failed(f"{gradients} bytes of gradients, expected {wanted}")
        listed = run(tool("axrun"), plan, "--list-commands").stdout
        exchanged = re.findall(r"all_reduce .*64x256.* over \{data\} \(([^)]*)\)",
                               listed)
        for buffers in exchanged:
            names = buffers.split(", ")
            if names[::2] != names[1::2]:
                raise Failed(f"not in place: {buffers}")
        if bool(exchanged) != (zero == 0):
            raise Failed(f"exchanges of gradients: {exchanged}")


def cases(every):
    for zero in 0, 1:
        yield f"kept once --zero={zero}", partial(keptOnce, zero)
    for layout in ("--pp=2 --micro-batches=4", "--dp=2 --zero=1",
                   "--dp=2 --zero=2 --micro-batches=2",
                   "--pp=2 --micro-batches=4 --schedule=zero-bubble",
                   "--pp=2 --dp=2 --zero=2 --micro-batches=2"):
        yield f"nothing is copied {layout}", partial(nothingIsCopied, layout)
    yield "steps share packed weights", stepsShareWeights
    yield "recompute", recompute
    yield "ranks", ranks
    yield "agrees with a run", agrees
    yield "prepared", prepared
