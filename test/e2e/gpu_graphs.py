# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps that are captured, on the simulated GPU: the same bits as command by
command, in any order that a graph allows, and nothing else asked of the driver."""
import re
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

import gpu_streams
import nccl
from _training import LOSS, small
from cases import EVERY, TRAINING, Failed, run, scratch, tool
from gpu_streams import CUDA, MADE, counted, model, training

RUN_FAILED = 8
MEETS = "meets other ranks on a card that they share, or by way of the host"
STEPS = 100 if EVERY else 20
ORDERS = ["eager", "lazy", "random:1", "random:2"]
CARDS = CUDA | {"SIMGPU_CARDS": "8", "SIMGPU_PATIENCE": "20000"}
# The shared references, shapes of few samples, and what else they are compiled with:
# statistics of batches are states that each step changes.
REFERENCES = {
    "fc_net": ["input=8x64"],
    "gpt2_tied": ["input=1x32"],
    "llama": ["input=1x32"],
    "convnet": ["input=8x1x8x8"],
    "batchnorm": ["input=8x1x8x8", "--batchnorm=train"],
}
# What one rank does in a step, with how many graphs there are.
ALONE = {"": 2, "--micro-batches=2": 2, "--micro-batches=3": 2}
TOGETHER = {"--dp=2": 2, "--pp=2 --micro-batches=3": 2, "--tp=2 --zero=1 --dp=2": 4,
            "--dp=2 --pp=2 --micro-batches=4 --schedule=gpipe": 4}


def trained(folder, plan, capture, *flags, steps=STEPS, expect=0,
            timeout=60, environment=CUDA, **settings):
    """What axrun says, and all that a run gives: weights, and losses of steps."""
    weights, log = Path(f"{folder}/w.safetensors"), Path(f"{folder}/log.csv")
    for path in weights, log:
        path.unlink(missing_ok=True)
    done = run(tool("axrun"), plan, "--data", f"{folder}/data.npz",
               f"--steps={steps}", "--save-weights", weights, "--log", log,
               "--quiet", f"--capture={capture}", f"--timeout={timeout}", *flags,
               expect=expect, env=environment | settings)
    if done.returncode:
        return done, None
    # Of a line all but how long the step took.
    header, *lines = [line.split(",") for line in log.read_text().splitlines()]
    told = [i for i, name in enumerate(header) if name in
            ("step", "loss", "gradient_norm", "grad_norm")]
    assert len(told) >= 2, header
    return done, (weights.read_bytes(),
                  [[line[i] for i in told] for line in lines])


def sameBits(folder, plan, orders, *flags, **options):
    done, wanted = trained(folder, plan, "off", *flags, **options)
    if "captured" in done.stderr:
        raise Failed(done.stderr)
    for order in orders:
        done, got = trained(folder, plan, "on", *flags, SIMGPU_ORDER=order,
                            SIMGPU_COUNTS=f"{folder}/counts", **options)
        if got != wanted:
            raise Failed(f"other numbers than command by command ({order})")
        if "captured" in done.stderr:
            raise Failed(done.stderr)
    return counted(f"{folder}/counts")


def reference(folder, name, shape, *flags):
    """A plan of a shared reference, with its samples in their order."""
    with np.load(TRAINING / name / "data.npz") as data:
        np.savez(f"{folder}/data.npz", **{
            key: array.reshape((-1, *array.shape[2:]))
            for key, array in data.items()})
    plan = f"{folder}/plan.mlir"
    run(tool("axopt"), TRAINING / name / "model.onnx", "--shape", shape,
        "--train", LOSS, "--quiet", *flags, "-o", plan)
    return plan


def references(name, optimizer):
    with scratch() as folder:
        plan = reference(folder, name, *REFERENCES[name],
                         f"--optimizer={optimizer}", "--clip-norm=1")
        counts = sameBits(folder, plan, ORDERS if name == "fc_net" else ORDERS[::2])
        # The first is put on streams as ever.
        if counts["cuGraphLaunch"] != STEPS - 1:
            raise Failed(f"{counts['cuGraphLaunch']} launches")


def more(folder, plan, *flags, steps=200, environment=CUDA):
    """How often a run calls the driver's functions in so many steps."""
    found = []
    for number in 10, 10 + steps:
        done, _ = trained(folder, plan, "auto", *flags, steps=number,
                          environment=environment, SIMGPU_ORDER="random:1",
                          SIMGPU_COUNTS=f"{folder}/counts")
        found.append(counted(f"{folder}/counts"))
    # Of the threads that load kernels each that finds one to load enters the card.
    return {name: count - found[0].get(name, 0)
            for name, count in found[1].items()
            if count != found[0].get(name, 0) and name.startswith("cu") and
            (name != "cuCtxSetCurrent" or count - found[0].get(name, 0) > 8)}


def steady(layout):
    """Of a step its inputs' copies, the launch, and the wait for its end are all
    that the host asks for: what comes down is in the graph."""
    with scratch() as folder:
        plan, steps, inputs = training(folder, layout), 200, 2
        wanted = {"cuGraphLaunch": steps, "cuStreamSynchronize": steps,
                  # Inputs of the next step, and where they are on their way.
                  "cuMemcpyHtoDAsync": steps * inputs, "cuEventRecord": steps,
                  "cuStreamWaitEvent": steps * (2 if layout else 1)}
        got = more(folder, plan, steps=steps)
        got.pop("cuStreamQuery", 0)
        if got != wanted:
            raise Failed(f"{got}, expected {wanted}")
        counts = counted(f"{folder}/counts")
        if counts["cuGraphInstantiateWithFlags"] != ALONE[layout]:
            raise Failed(f"{counts['cuGraphInstantiateWithFlags']} graphs")


def alone(layout):
    with scratch() as folder:
        sameBits(folder, training(folder, layout), ORDERS +
                 [f"random:{seed}" for seed in range(3, 13)], steps=12)


def together(layout):
    """Ranks with a card each: what they exchange is in the graph."""
    with scratch() as folder:
        ranks, steps = TOGETHER[layout], 100
        plan = training(folder, layout)
        sameBits(folder, plan, ORDERS, "--comm=nccl", environment=CARDS,
                 steps=12)
        got = more(folder, plan, "--comm=nccl", steps=steps, environment=CARDS)
        if got["cuGraphLaunch"] != ranks * steps:
            raise Failed(f"{got}")
        for name in *MADE, "cuLaunchKernel", "cuStreamWriteValue64":
            if got.get(name, 0):
                raise Failed(f"{got[name]} more of {name}")


def otherSchedules(schedule, stages, microBatches):
    with scratch() as folder:
        plan = nccl.plan(folder, f"--pp={stages}", "--tp=2",
                         f"--micro-batches={microBatches}",
                         f"--schedule={schedule}")
        sameBits(folder, plan, ["eager", "random:1"], "--comm=nccl", steps=9,
                 environment=CARDS)


def requests(layout, *flags):
    """Not of training alone: of batches one after another."""
    with scratch() as folder:
        plan = f"{folder}/plan.mlir"
        run(tool("axopt"), model(folder), "--shape=input=12x4",
            *layout.split(), "--quiet", "-o", plan)
        found = []
        for capture, order in [("off", "eager")] + [("on", o) for o in ORDERS]:
            run(tool("axrun"), plan, "--data", f"{folder}/data.npz",
                "--predict", f"{folder}/out.npz", f"--capture={capture}", *flags,
                env=CARDS | {"SIMGPU_ORDER": order})
            with np.load(f"{folder}/out.npz") as out:
                found.append(out["logits"].tobytes())
        if len(set(found)) != 1:
            raise Failed("results depend on the order, or on graphs")


def otherDevice():
    saysWhyNot("device 'cpu' has no graphs", "", "--device=cpu", AXRUN_TARGET="")


def otherCards():
    saysWhyNot(MEETS, "--dp=2", "--devices=0,1", SIMGPU_CARDS="2")


def sharedCard():
    """NCCL may put ranks on one card, where graphs may not wait for each other."""
    saysWhyNot(MEETS, "--dp=2", "--devices=0,0", "--comm=nccl",
               NCCL_MULTI_RANK_GPU_ENABLE="1", SIMGPU_NCCL_TOGETHER="1")


def saysWhyNot(why, layout, *flags, **settings):
    """Once, where it was asked for; and nothing else changes."""
    with scratch() as folder:
        plan = training(folder, layout)
        for capture in "on", "auto":
            done, _ = trained(folder, plan, capture, *flags, steps=5,
                              SIMGPU_COUNTS=f"{folder}/counts", **settings)
            text = f"steps of rank 0 are not captured: .*{why}"
            if done.stderr.count("captured") != (capture == "on") or \
                    (capture == "on" and not re.search(text, done.stderr)):
                raise Failed(f"expected: {text}\ngot: {done.stderr}")
            counts = Path(f"{folder}/counts")
            if counts.exists() and "cuGraphLaunch" in counts.read_text():
                raise Failed("a graph was launched")


def hostDoes():
    with scratch() as folder:
        plan = reference(folder, "convnet", "input=8x1x8x8")
        # Of a cuDNN that is too old.
        done, _ = trained(folder, plan, "on", steps=3,
                          SIMGPU_CUDNN_VERSION="90902")
        text = "steps of rank 0 are not captured: the CPU does conv"
        if done.stderr.count(text) != 1:
            raise Failed(done.stderr)


def goesOnWithout(failure, error):
    """Too little memory for a graph, or what else there is: steps go on command
    by command, also from one of which others are captured."""
    with scratch() as folder:
        plan = training(folder, "--micro-batches=3")
        _, wanted = trained(folder, plan, "off", steps=9)
        for order in "eager", "random:1":
            done, got = trained(folder, plan, "auto", steps=9,
                                SIMGPU_FAIL=failure, SIMGPU_ORDER=order)
            text = f"steps of rank 0 are not captured any more: {error}"
            if got != wanted or done.stderr.count(text) != 1:
                raise Failed(f"expected: {text}\ngot: {done.stderr}")


def oneGoesOnWithout():
    """Ranks meet whether their steps are captured or not."""
    with scratch() as folder:
        plan = training(folder, "--pp=2 --micro-batches=3")
        with_ = {"steps": 9, "environment": CARDS}
        _, wanted = trained(folder, plan, "off", "--comm=nccl", **with_)
        for number in 1, 2, 3, 4:
            done, got = trained(
                folder, plan, "auto", "--comm=nccl", SIMGPU_ORDER="random:1",
                SIMGPU_FAIL=f"cuGraphInstantiateWithFlags:{number}:2", **with_)
            if got != wanted or done.stderr.count("not captured any more") != 1:
                raise Failed(done.stderr)


def launchFails(failure, error):
    with scratch() as folder:
        plan = training(folder, "")
        done, _ = trained(folder, plan, "auto", steps=9, expect=RUN_FAILED,
                          SIMGPU_FAIL=failure)
        if error not in done.stderr or "rank 0, stage" not in done.stderr:
            raise Failed(f"expected: {error}\ngot: {done.stderr}")


# What a run with graphs calls; and which of a function's calls fails.
FUNCTIONS = ["cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphDestroy",
             "cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuGraphExecDestroy",
             "cuEventRecordWithFlags", "cuEventRecord", "cuStreamWaitEvent",
             "cuStreamWriteValue64", "cuLaunchKernel", "cublasLtMatmul",
             "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuStreamSynchronize",
             "work"]
CALLS = 1, 2, 3, 5, 8, 13, 21, 34, 89, 144
CODES = 2, 700, 719, 900, 999


def endsClearly(order):
    """Each run of which a call fails ends with one message, or gives the bits of
    one that is undisturbed."""
    with scratch() as folder:
        plan = training(folder, "--micro-batches=3")
        _, wanted = trained(folder, plan, "off", steps=6)
        jobs = [(name, call) for name in FUNCTIONS for call in CALLS]
        for number, (name, call) in enumerate(jobs):
            code = 13 if name == "cublasLtMatmul" else CODES[number % len(CODES)]
            failure = f"{name}:{call}:{code}"
            done, got = trained(folder, plan, "auto", steps=6, expect=range(256),
                                SIMGPU_ORDER=order, SIMGPU_FAIL=failure)
            errors = [line for line in done.stderr.splitlines()
                      if "error: " in line]
            isClear = got == wanted if done.returncode == 0 else \
                done.returncode == RUN_FAILED and len(errors) == 1 and \
                "rank 0" in errors[0]
            if not isClear:
                raise Failed(f"{failure}: {done.returncode}\n{done.stderr}")


def saysTheSame(says, failing):
    """A run that fails in a later step has a message that says where."""
    for capture in "off", "auto":
        done = failing(capture)
        if not re.search(f"error: .*{says}", done.stderr):
            raise Failed(f"{capture}: expected: {says}\ngot: {done.stderr}")


def indexIsOutOfRange():
    """Indices that are computed, so that kernels find out."""
    nodes = [helper.make_node("Cast", ["input"], ["i"], to=TensorProto.INT64),
             helper.make_node("Gather", ["w", "i"], ["logits"], name="look_up")]
    samples = np.arange(96, dtype=np.float32).reshape(24, 4) % 8
    samples[4 * 4 + 1, 2] = 99
    with scratch() as folder:
        plan = f"{folder}/plan.mlir"
        small(f"{folder}/model.onnx", nodes,
              {"w": np.arange(8, dtype=np.float32)}, ["batch", 4])
        np.savez(f"{folder}/data.npz", input=samples)
        run(tool("axopt"), f"{folder}/model.onnx", "--shape=input=4x4",
            "--quiet", "-o", plan)
        saysTheSame(
            "'look_up' .*index 99 is out of range of a dimension of 8",
            # Always, though the last requests are there when it is found.
            lambda capture: [run(
                tool("axrun"), plan, "--data", f"{folder}/data.npz", "--predict",
                f"{folder}/out.npz", f"--capture={capture}", env=CUDA,
                expect=RUN_FAILED) for _ in range(30)][-1])


def exchangeFails(fault, says):
    with scratch() as folder:
        plan = training(folder, "--dp=2")
        saysTheSame(says, lambda capture: trained(
            folder, plan, capture, "--comm=nccl", timeout=2, steps=9,
            expect=RUN_FAILED, environment=CARDS, SIMGPU_NCCL_FAULT=fault)[0])


def besideOthers(*flags):
    """Another executor has the same states, and files are written of them."""
    with scratch() as folder:
        plan = training(folder, "--micro-batches=2")
        for capture in "off", "on":
            run(tool("axrun"), plan, "--data", f"{folder}/data.npz", "--steps=9",
                "--eval", f"{folder}/data.npz", "--eval-every=2", "--save",
                f"{folder}/{capture}", "--save-every=3", "--quiet", "--log",
                f"{folder}/{capture}.csv", f"--capture={capture}",
                env=CUDA | {"SIMGPU_ORDER": "random:1"})
        weights = [{path.name: path.read_bytes() for path in
                    sorted(Path(f"{folder}/{capture}").glob("*9*/**/*"))
                    if path.suffix == ".safetensors"} for capture in ("off", "on")]
        if not weights[0] or weights[0] != weights[1]:
            raise Failed(f"{[list(each) for each in weights]}")


# Of a graph with several micro-batches, and around it.
WAITS = ["inputs have come", "inputs of the slot were used", "outputs are made",
         "outputs are with the host"]


def isNeeded(name):
    """Without the wait some order gives other numbers, or an error."""
    with scratch() as folder:
        plan = training(folder, "--micro-batches=4")

        def runOnce(order, **dropped):
            return trained(folder, plan, "auto", steps=6, expect=range(256),
                           SIMGPU_ORDER=order, **dropped)[1]
        if not gpu_streams.isMissed(runOnce, gpu_streams.WAITS[name]):
            raise Failed(f"nothing changes without '{name}'")


def cases(every):
    for name in REFERENCES:
        yield f"{name} adamw", references, name, "adamw(lr=1e-3)"
    yield "fc_net sgd", references, "fc_net", "sgd(lr=0.05,momentum=0.9)"
    for layout in ALONE:
        yield f"steady {layout}", steady, layout
    for layout in *ALONE, "--micro-batches=4":
        yield f"same bits {layout}", alone, layout
    for layout in TOGETHER:
        yield f"nccl {layout}", together, layout
    for schedule, stages, microBatches in (
            ("1f1b", 4, 8), ("interleaved", 2, 4), ("zero-bubble", 2, 4),
            ("zb-v", 2, 4)):
        yield (f"nccl {schedule} {stages} {microBatches}", otherSchedules,
               schedule, stages, microBatches)
    yield "requests", requests, "--micro-batches=2"
    yield "requests, pipeline", requests, "--pp=2 --micro-batches=3", "--comm=nccl"
    yield "not on this device", otherDevice
    yield "not waiting for each", saysWhyNot, "ranks wait for each command", "", \
        "--launch-blocking"
    yield "not timed", saysWhyNot, "each command is timed", "", "--profile"
    yield "not with shared cards", saysWhyNot, MEETS, "--dp=2"
    yield "not between cards by the host", otherCards
    yield "not by NCCL on a shared card", sharedCard
    yield "not what the CPU does", hostDoes
    for number in 1, 2:
        yield (f"too little memory for graph {number}", goesOnWithout,
               f"cuGraphInstantiateWithFlags:{number}:2",
               "cuGraphInstantiateWithFlags: CUDA_ERROR_OUT_OF_MEMORY: out of "
               "memory")
    yield ("no captures", goesOnWithout, "cuStreamBeginCapture:1:900",
           "cuStreamBeginCapture: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")
    yield ("captures that fail", goesOnWithout, "cuEventRecordWithFlags:1:900",
           "cuEventRecordWithFlags: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")
    yield "too little memory of one rank", oneGoesOnWithout
    for order in "eager", "lazy":
        yield f"calls that fail, {order}", endsClearly, order
    yield "index out of range", indexIsOutOfRange
    # Told by the rank where it failed, or by one that it stopped before.
    where = "(number 14 of group {data}|stopped in all_reduce .*gradient norm)"
    yield "exchange that fails", exchangeFails, "30:6", where
    yield "exchange that never ends", exchangeFails, "30:7", where
    yield "beside others", besideOthers
    yield "launches that fail", launchFails, "cuGraphLaunch:3:719", \
        "cuGraphLaunch: CUDA_ERROR_LAUNCH_FAILED"
    for name in WAITS:
        yield f"waits until {name}", isNeeded, name
