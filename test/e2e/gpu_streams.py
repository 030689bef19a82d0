# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What ranks put on the streams of a card (the simulated one): nothing but work
in the steady state, and every wait for an event for a reason."""
import os
from pathlib import Path

import numpy as np
from onnx import helper

import nccl
from _training import close, compiled, losses, small
from cases import Failed, run, scratch, tool

SIMULATED = Path(os.environ["AX_BIN"]).parent / "test" / "simgpu"
# To time products takes memory and streams, in the first run alone.
CUDA = os.environ | {"AXRUN_CUDA_PATH": str(SIMULATED), "AXRUN_DEVICE": "cuda",
                     "AXRUN_TARGET": "sm_90+sim", "AXRUN_CUDA_ALGORITHMS": "1"}

# What is made before the first step or in it, and gone after the last.
MADE = ("cuMemAlloc", "cuMemFree", "cuMemHostAlloc", "cuMemFreeHost",
        "cuEventCreate", "cuEventDestroy", "cuStreamCreateWithPriority",
        "cuStreamDestroy", "cuModuleLoadDataEx", "cublasLtMatmulDescCreate",
        "cublasLtMatmulPreferenceCreate", "cublasLtMatrixLayoutCreate")

TRAINING = {
    "": 1,
    "--dp=2": 2,
    "--pp=2 --micro-batches=3": 2,
    "--dp=2 --pp=2 --micro-batches=4 --zero=1 --schedule=gpipe": 4,
}

# In the order in which a rank makes them. NCCL's, one for each rank, one thread makes
# before: of eight, that of rank 6 has a number that no stream of a rank has.
STREAMS = ["compute", "upload", "download", "exchange", "send", "receive", "wire"]
# Each wait of runtime/, as the stream that waits and the one that it waits for.
# Of groups of two, an exchange has two waits for the other member in turns.
WAITS = {
    "inputs have come": ("compute", "upload"),
    "inputs of the slot were used": ("upload", "compute"),
    "outputs are made": ("download", "compute"),
    "outputs are with the host": ("compute", "download"),
    "what is exchanged is made": ("exchange", "compute"),
    "what was exchanged has come": ("compute", "exchange"),
    "others begin an exchange": ("exchange", "exchange", "0/2"),
    "others end an exchange": ("exchange", "exchange", "1/2"),
    "what is sent is made": ("send", "compute"),
    "the receiver has room": ("send", "receive"),
    "what was sent is gone": ("compute", "send"),
    "the value received last was used": ("receive", "compute"),
    "what is received was sent": ("receive", "send"),
    "what was received has come": ("compute", "receive"),
}
# Those of NcclOperations.cpp, where eight ranks train by NCCL.
NCCL_WAITS = {
    "what NCCL exchanges is made": ("wire", "exchange"),
    "what NCCL exchanged has come": ("exchange", "wire"),
    "what NCCL sends is made": ("wire", "send"),
    "what NCCL sent is gone": ("send", "wire"),
    "what NCCL received has come": ("receive", "wire"),
}
# The sixth is missed where a stage has one slot for what it receives. Of two ranks,
# the second one's wire has the number of uploads, which wait for no message.
NCCL_ROOM = ("wire", "receive"), ("upload", "receive")
# Those of a request that gives an output for each of four micro-batches: two for
# a slot that was used before, and two at its end.
OUTPUT_WAITS = {
    "the slot's last output is gone": ("compute", "download", "0/4"),
    "the request's last output has come": ("compute", "download", "3/4"),
}
# Single waits of a step, of each rank: how many there are, and how many of them
# are missed in one unfair run or another. docs/gpu.md says why not all.
SINGLE = {
    "--micro-batches=4": {
        "inputs have come": (4, 4), "inputs of the slot were used": (4, 3),
        "outputs are made": (1, 1), "outputs are with the host": (3, 1)},
    "--dp=2": {
        "what is exchanged is made": (3, 3),
        "what was exchanged has come": (3, 1),
        "others begin an exchange": (6, 2)},
    "--pp=2 --micro-batches=4": {
        "what is sent is made": (6, 6), "what was sent is gone": (5, 1),
        "what is received was sent": (6, 6)},
}
# Each wait is missed in at least one of four orders or so.
ORDERS = 40


def model(folder):
    """Two layers, and samples for them. Each batch has others that count: what
    ranks exchange is never what it was a step before."""
    random = np.random.default_rng(1)

    def normal(*shape):
        return random.normal(size=shape).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["input", "w0"], ["h"], name="first"),
             helper.make_node("Relu", ["h"], ["r"], name="relu"),
             helper.make_node("MatMul", ["r", "w1"], ["logits"], name="second")]
    path = f"{folder}/model.onnx"
    small(path, nodes, {"w0": normal(4, 4), "w1": normal(4, 4)}, ["batch", 4])
    np.savez(f"{folder}/data.npz", input=normal(96, 4),
             labels=np.where(random.random(96) < 0.3, -100,
                             random.integers(0, 4, 96)))
    return path


def training(folder, layout):
    return compiled(folder, *layout.split(), model=model(folder),
                    shape="input=24x4")


def train(folder, plan, steps, order, *flags, **settings):
    """What axrun ends with, and the weights' file where it ends well."""
    weights = Path(f"{folder}/weights.safetensors")
    weights.unlink(missing_ok=True)
    done = run(tool("axrun"), plan, "--data", f"{folder}/data.npz",
               f"--steps={steps}", "--save-weights", weights, "--timeout=60",
               "--capture=off", *flags,
               env=CUDA | {"SIMGPU_ORDER": order} | settings, expect=range(256))
    return done, weights.read_bytes() if done.returncode == 0 else None


def counted(path):
    counts = {}
    for line in Path(path).read_text().splitlines():
        name, count = line.split()
        counts[name] = int(count)
    return counts


def steady(layout, steps):
    """Beyond what few steps do, many only put work on streams, and wait for
    the end of each, once a rank."""
    with scratch() as folder:
        plan = training(folder, layout)
        found = []
        for number in 10, 10 + steps:
            done, weights = train(folder, plan, number, "random:1",
                                  SIMGPU_COUNTS=f"{folder}/counts")
            if weights is None:
                raise Failed(done.stderr)
            found.append(counted(f"{folder}/counts"))
        few, many = found
        more = {name: many[name] - few.get(name, 0) for name in many}
        for name in MADE:
            if few[name] == 0 or more[name]:
                raise Failed(f"{few[name]} of {name} in 10 steps, and "
                             f"{more[name]} more in {steps}")
        waits = TRAINING[layout] * steps
        if more["cuStreamSynchronize"] != waits:
            raise Failed(f"the host waited {more['cuStreamSynchronize']} times "
                         f"in {steps} steps, and not {waits} times")
        for name in "cuEventSynchronize", "cuEventQuery":
            assert more.get(name, 0) == 0, more
        # In the end it asks whether all is done, until it is.
        assert more.get("cuStreamQuery", 0) < 100 < steps, more
        assert more["cuLaunchKernel"] > waits, more


def ahead(layout):
    """The next step's inputs go up while one runs, whatever is done between the
    two; and so it is of batches that are evaluated."""
    ranks, steps, inputs = TRAINING[layout], 9, 2
    with scratch() as folder:
        plan = training(folder, layout)

        def uploads(steps, *flags):
            done = run(tool("axrun"), plan, "--data", f"{folder}/data.npz",
                       f"--steps={steps}", *flags, expect=range(256),
                       env=CUDA | {"SIMGPU_COUNTS": f"{folder}/counts"})
            if done.returncode:
                raise Failed(done.stderr)
            return counted(f"{folder}/counts")["uploadsAhead"]
        batches = 96 // 24
        for flags, evaluations in (
                ([], 0), (["--save", f"{folder}/run", "--save-every=2"], 0),
                (["--eval", f"{folder}/data.npz", "--eval-every=3"], 3)):
            more = uploads(steps, *flags)
            # An evaluation's first batch begins when it is there, and on a busy
            # machine another one may be read late.
            least, most = (ranks * inputs * (steps - 1 + evaluations * some)
                           for some in (batches - 3, batches - 1))
            if not least <= more <= most:
                raise Failed(f"{flags}: {more} went up ahead, and not {least} "
                             f"to {most}")


def text(wait):
    """As SIMGPU_DROP_WAIT has it."""
    waiting, recorded, *which = wait
    return f"{STREAMS.index(waiting) + 1}<{STREAMS.index(recorded) + 1}" + \
        "".join(f":{some}" for some in which)


def isMissed(runOnce, wait, orders=ORDERS):
    """Whether what runs give changes in some order without the wait."""
    wanted = runOnce("eager")
    assert wanted is not None
    return any(runOnce(f"random:{seed}", SIMGPU_DROP_WAIT=text(wait)) != wanted
               for seed in range(orders))


def isTrainingMissing(wait, **settings):
    with scratch() as folder:
        plan = training(folder, list(TRAINING)[-1])
        return isMissed(lambda *order, **dropped: train(
            folder, plan, 5, *order, **dropped)[1], wait, **settings)


def isNeeded(name):
    if not isTrainingMissing(WAITS[name]):
        raise Failed(f"nothing changes without '{name}'")


def singlesAreNeeded(layout, runs=4):
    """One wait of the whole run is left out, in each rank: one after another of
    those of a step in the middle."""
    ranks, steps = 1 if "=2" not in layout else 2, 8
    with scratch() as folder:
        plan, counts = training(folder, layout), f"{folder}/counts"

        def trained(number=steps, order="unfair", **settings):
            log = Path(f"{folder}/log")
            log.unlink(missing_ok=True)
            weights = train(folder, plan, number, order, "--log", log,
                            **settings)[1]
            return weights and (weights, losses(log))
        found = []
        for number in steps, steps + 1:
            trained(number, "eager", SIMGPU_COUNTS=counts)
            found.append(counted(counts))
        wanted = trained()
        assert wanted and wanted == trained(order="eager")
        for name, (count, least) in SINGLE[layout].items():
            wait = text(WAITS[name][:2])
            each = (found[1][wait] - found[0][wait] + ranks - 1) // ranks
            missed = [which for which in range(2 * each, 3 * each) if any(
                trained(SIMGPU_DROP_WAIT=f"{wait}:{which}/1000000") != wanted
                for _ in range(runs))]
            if each != count or len(missed) < least:
                raise Failed(f"{name}: of {each} waits {missed} are missed, "
                             f"and not {least} of {count}")


def noneIsMissed():
    """What changes above changes for want of a wait, and not by the order."""
    if isTrainingMissing(("upload", "download"), orders=10):
        raise Failed("there is no such wait, and it is missed")


def isNeededForOutputs(name):
    with scratch() as folder:
        plan = f"{folder}/plan.mlir"
        run(tool("axopt"), model(folder), "--shape=input=24x4",
            "--micro-batches=4", "--quiet", "-o", plan)

        def runOnce(order, **dropped):
            done = run(tool("axrun"), plan, "--random-inputs=1", "--output",
                       f"{folder}/out.npz", "--timeout=60", expect=range(256),
                       env=CUDA | {"SIMGPU_ORDER": order} | dropped)
            if done.returncode:
                return None
            with np.load(f"{folder}/out.npz") as out:
                return out["logits"].tobytes()
        if not isMissed(runOnce, OUTPUT_WAITS[name]):
            raise Failed(f"nothing changes without '{name}'")


def trainedByNccl(folder, order, **settings):
    plan = Path(f"{folder}/plan.mlir")
    if not plan.exists():
        nccl.plan(folder, "--pp=4", "--dp=2", "--micro-batches=4", "--zero=1")
    return train(folder, plan, 5, order, "--comm=nccl", SIMGPU_CARDS="8",
                 SIMGPU_PATIENCE="20000", **settings)[1]


def isNeededByNccl(name):
    with scratch() as folder:
        if not isMissed(lambda *order, **dropped: trainedByNccl(
                folder, *order, **dropped), NCCL_WAITS[name]):
            raise Failed(f"nothing changes without '{name}'")


def ncclHasRoom():
    with scratch() as folder:
        inputs = nccl.handedOn(folder)

        def runOnce(order, **dropped):
            done = run(tool("axrun"), f"{folder}/plan.mlir", "--inputs", inputs,
                       "--output", f"{folder}/out.npz", "--comm=nccl",
                       expect=range(256),
                       env=nccl.CUDA | {"SIMGPU_ORDER": order} | dropped)
            if done.returncode:
                return None
            with np.load(f"{folder}/out.npz") as out:
                return out["y"].tobytes()
        if not isMissed(runOnce, NCCL_ROOM[1]):
            raise Failed("nothing changes where NCCL does not wait for room")


def allOfNcclAreKnown():
    with scratch() as folder:
        trainedByNccl(folder, "eager", SIMGPU_COUNTS=f"{folder}/counts")
        wire = str(1 + STREAMS.index("wire"))
        found = {name for name in counted(f"{folder}/counts")
                 if "<" in name and wire in name.split("<")}
        known = {text(wait) for wait in [*NCCL_WAITS.values(), NCCL_ROOM[0]]}
        if found != known:
            raise Failed(f"waits {sorted(found)}, and known are {sorted(known)}")


def allAreKnown():
    with scratch() as folder:
        plan = training(folder, list(TRAINING)[-1])
        train(folder, plan, 5, "eager", SIMGPU_COUNTS=f"{folder}/counts")
        found = {name for name in counted(f"{folder}/counts") if "<" in name}
        known = {text(wait[:2]) for wait in WAITS.values()}
        if found != known:
            raise Failed(f"waits {sorted(found)}, and known are {sorted(known)}")


def requestsInFlight(layout):
    """The next ones' inputs are on their way while one is computed."""
    with scratch() as folder:
        plan = f"{folder}/plan.mlir"
        run(tool("axopt"), model(folder), "--shape=input=12x4",
            *layout.split(), "--quiet", "-o", plan)
        found = []
        for order in ["eager", "lazy"] + [f"random:{seed}" for seed in range(20)]:
            run(tool("axrun"), plan, "--data", f"{folder}/data.npz",
                "--predict", f"{folder}/out.npz",
                env=CUDA | {"SIMGPU_ORDER": order})
            with np.load(f"{folder}/out.npz") as out:
                found.append(out["logits"].tobytes())
        run(tool("axrun"), plan, "--data", f"{folder}/data.npz", "--predict",
            f"{folder}/out.npz")
        with np.load(f"{folder}/out.npz") as out:
            wanted = out["logits"]
        close(np.frombuffer(found[0], np.float32), wanted.ravel(), 1e-5, layout)
        if len(set(found)) != 1:
            raise Failed("results depend on the order")


def cases(every):
    for layout in TRAINING:
        if layout:
            yield f"steady {layout}", steady, layout, 1000
    for layout in "", "--dp=2":
        yield f"the next step goes up {layout}", ahead, layout
    for layout in "", "--dp=2", "--pp=2", "--pp=2 --micro-batches=3":
        yield f"requests in flight {layout}", requestsInFlight, layout
    yield "all waits are known", allAreKnown
    for layout in SINGLE:
        yield f"single waits {layout}", singlesAreNeeded, layout
    yield "no wait is missed that is none", noneIsMissed
    for name in WAITS:
        yield f"waits until {name}", isNeeded, name
    yield "all waits of NCCL are known", allOfNcclAreKnown
    yield "waits until NCCL has room", ncclHasRoom
    for name in NCCL_WAITS:
        yield f"waits until {name}", isNeededByNccl, name
    for name in OUTPUT_WAITS:
        yield f"waits until {name}", isNeededForOutputs, name
