# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks on a card each, which exchange by NCCL (the simulated one): of each card
one exchange at a time, as NCCL promises no more."""
import os
import re
import time
from itertools import product
from pathlib import Path

import numpy as np
from onnx import helper

from _training import axrun, compiled, small
from cases import MODELS, Failed, run, scratch, tool

SIMULATED = Path(os.environ["AX_BIN"]).parent / "test" / "simgpu"
CUDA = os.environ | {"AXRUN_CUDA_PATH": str(SIMULATED), "AXRUN_DEVICE": "cuda",
                     "AXRUN_TARGET": "sm_90+sim", "AXRUN_CUDA_ALGORITHMS": "1",
                     "SIMGPU_PATIENCE": "20000", "SIMGPU_CARDS": "8"}
MODEL = MODELS / "mlp_eager_ts13_dyn"
USAGE, RUN_FAILED = 2, 8
LAYERS, WIDTH, BATCH, STEPS = 8, 4, 8, 3
SCHEDULES = ["gpipe", "1f1b", "interleaved", "zero-bubble", "zb-v"]
# Groups have two ranks here, whose sums have the same bits in any order.
FEW = {("1f1b", 2, 1, 1), ("gpipe", 2, 1, 4), ("1f1b", 2, 2, 4), ("1f1b", 4, 1, 8),
       ("interleaved", 2, 1, 4), ("zero-bubble", 4, 1, 4), ("zb-v", 2, 1, 4)}


def model(folder):
    random = np.random.default_rng(1)
    nodes, weights, last = [], {}, "input"
    for i in range(LAYERS):
        out = "logits" if i + 1 == LAYERS else f"h{i}"
        weights[f"w{i}"] = random.normal(size=(WIDTH, WIDTH)).astype(np.float32)
        nodes += [helper.make_node("MatMul", [last, f"w{i}"], [f"m{i}"]),
                  helper.make_node("Tanh", [f"m{i}"], [out])]
        last = out
    path = f"{folder}/model.onnx"
    small(path, nodes, weights, [BATCH, WIDTH])
    np.savez(f"{folder}/data.npz",
             input=random.normal(size=(STEPS * BATCH, WIDTH)).astype(np.float32),
             labels=random.integers(WIDTH, size=STEPS * BATCH))
    return path


def plan(folder, *flags):
    return compiled(folder, "--optimizer=sgd(lr=0.1)", *flags,
                    model=model(folder), shape=f"input={BATCH}x{WIDTH}")


def trained(folder, path, comm, order):
    weights = f"{folder}/{comm}.safetensors"
    axrun(path, "--data", f"{folder}/data.npz", "--steps", STEPS, "--no-shuffle",
          f"--comm={comm}", "--save-weights", weights,
          env=CUDA | {"SIMGPU_ORDER": order})
    return Path(weights).read_bytes()


def sameBits(schedule, stages, tensor, microBatches):
    with scratch() as folder:
        path = plan(folder, f"--pp={stages}", f"--tp={tensor}",
                    f"--micro-batches={microBatches}", f"--schedule={schedule}")
        wanted = trained(folder, path, "local", "eager")
        for order in "eager", "lazy", "random:1":
            if trained(folder, path, "nccl", order) != wanted:
                raise Failed(f"other weights than of --comm=local ({order})")


# A stage that hands its input on, which comes anew for each micro-batch.
HANDED_ON = """
!x = tensor<16xf32, #ax.layout<[{micro}]>>
ax.plan @p version 1 {
  ax.mesh [pipe = 2] in time [micro = 8]
  ax.program @main(%x: !x {ax.name = "x"}) -> (!x {ax.name = "y"}) {
    %a = ax.stage @forward0 on 0 (%v = %x : !x) -> (!x) {
      ax.yield %v : !x
    }
    %ta = ax.transfer %a from 0 to 1 slots 1 {node = "forth"} : !x
    %y = ax.stage @forward1 on 1 (%w = %ta : !x) -> (!x) {
      %0 = ax.unary neg %w : !x -> !x
      ax.yield %0 : !x
    }
    ax.schedule "mine" {
      stage 0: "F0 F1 F2 F3 F4 F5 F6 F7",
      stage 1: "F0 F1 F2 F3 F4 F5 F6 F7"
    }
    ax.return %y : !x
  }
}
"""


def handedOn(folder):
    """The plan, its input, whose path is returned, and what it is to give."""
    Path(f"{folder}/plan.mlir").write_text(HANDED_ON)
    x = np.arange(16, dtype=np.float32)
    np.savez(f"{folder}/in.npz", x=x)
    np.savez(f"{folder}/want.npz", y=-x)
    return f"{folder}/in.npz"


def inputsStay(order):
    """What is sent may be an input: the next one has its place only then."""
    with scratch() as folder:
        axrun(f"{folder}/plan.mlir", "--inputs", handedOn(folder), "--expect",
              f"{folder}/want.npz", "--comm=nccl",
              env=CUDA | {"SIMGPU_ORDER": order})


def failing(settings, says):
    """What goes wrong ends the run soon, with a message, and no crash."""
    with scratch() as folder:
        path = plan(folder, "--pp=2", "--tp=2", "--micro-batches=4")
        begin = time.monotonic()
        done = run(tool("axrun"), path, "--data", f"{folder}/data.npz",
                   "--steps", STEPS, "--comm=nccl", "--timeout=10",
                   expect=RUN_FAILED, env=CUDA | settings)
        if not re.search(says, done.stderr):
            raise Failed(f"expected: {says}\ngot: {done.stderr}")
        if time.monotonic() - begin > 60:
            raise Failed(f"{time.monotonic() - begin} s")


def refused(says, *flags, environment=CUDA):
    with scratch() as folder:
        path = f"{folder}/plan.mlir"
        run(tool("axopt"), MODEL / "model.onnx", "--test-data",
            MODEL / "test_data_set_0", "--tp=2", "--quiet", "-o", path)
        done = run(tool("axrun"), path, "--random-inputs=1", "--comm=nccl",
                   *flags, expect=USAGE, env=environment)
        if says not in done.stderr:
            raise Failed(f"expected: {says}\ngot: {done.stderr}")


def splits(flags, numSplits):
    """Groups are split from the communicator of all ranks: those that have no rank in
    common at once. Of a mesh those are of one axis, of the other, and of all ranks in
    another order."""
    with scratch() as folder:
        counts = Path(f"{folder}/counts")
        axrun(plan(folder, *flags), "--data", f"{folder}/data.npz", "--steps=1",
              "--comm=nccl", env=CUDA | {"SIMGPU_COUNTS": str(counts)})
        called = dict(line.split() for line in counts.read_text().splitlines())
        found = [int(called.get(name, 0))
                 for name in ("ncclCommInitRankConfig", "ncclCommSplit")]
        if found != [4, 4 * numSplits]:
            raise Failed(found)


def gathering(shape, part, whole):
    """A plan of two ranks that gather what a kernel makes, for another one."""
    return f"""
!part = tensor<{shape}xf32, #ax.layout<{part}>>
!all = tensor<{shape}xf32, #ax.layout<{whole}>>
""" + """
ax.plan @p version 1 {
  ax.mesh [data = 2]
  ax.program @main(%x: !part {ax.name = "x"}) -> (!all {ax.name = "y"}) {
    %y = ax.stage @forward0 on 0 (%v = %x : !part) -> (!all) {
      %a = ax.unary neg %v : !part -> !part
      %b = ax.all_gather %a over {data} : !part -> !all
      %c = ax.unary neg %b : !all -> !all
      ax.yield %c : !all
    }
    ax.schedule "mine" {
      stage 0: "F0"
    }
    ax.return %y : !all
  }
}
"""


# What is gathered, and what it is gathered of, are 24 MiB of an arena.
LARGE = gathering("4194304", "[{data}]", "[{}]")


def known():
    """Communicators know the arena of each rank, and forget it."""
    with scratch() as folder:
        Path(f"{folder}/plan.mlir").write_text(LARGE)
        x = np.arange(4194304, dtype=np.float32)
        np.savez(f"{folder}/in.npz", x=x)
        np.savez(f"{folder}/want.npz", y=x)
        counts = Path(f"{folder}/counts")
        axrun(f"{folder}/plan.mlir", "--inputs", f"{folder}/in.npz", "--expect",
              f"{folder}/want.npz", "--comm=nccl",
              env=CUDA | {"SIMGPU_COUNTS": str(counts), "SIMGPU_PATIENCE": "300000"})
        called = dict(line.split() for line in counts.read_text().splitlines())
        found = {name: int(called.get(name, 0))
                 for name in ("ncclMemAlloc", "ncclCommRegister",
                              "ncclCommDeregister", "ncclMemFree")}
        if set(found.values()) != {2}:
            raise Failed(found)


def cases(every):
    yield "known memory", known
    yield "splits of stages", splits, ["--pp=2", "--dp=2", "--micro-batches=2"], 1
    yield "splits of a mesh", splits, ["--dp=2", "--tp=2", "--zero=1"], 3
    yield "no splits", splits, ["--dp=4"], 0
    for case in product(SCHEDULES, (2, 4), (1, 2), (1, 4, 8)):
        schedule, stages, tensor, microBatches = case
        if microBatches == 1 and schedule != "1f1b":
            continue
        if every or case in FEW:
            yield (f"{schedule} --pp={stages} --tp={tensor} "
                   f"--micro-batches={microBatches}", sameBits, *case)
    for order in "eager", "lazy", "random:1", "random:2":
        yield f"inputs that are sent: {order}", inputsStay, order
    for number in range(1, 60, 3 if every else 20):
        yield (f"what NCCL gives up: {number}", failing,
               {"SIMGPU_NCCL_FAULT": f"{number}:6"},
               r"what NCCL does: remote process exited or there was a network "
               r"error \(6\)")
    for call, number in product(
            ["ncclSend", "ncclRecv", "ncclAllReduce", "ncclGroupEnd"],
            range(2, 12, 2) if every else (3,)):
        yield (f"{call} fails: {number}", failing,
               {"SIMGPU_FAIL": f"{call}:{number}:3"},
               rf"{call}: internal error \(3\)")
    yield ("on device cpu", lambda: refused(
        "--comm=nccl is for --device=cuda, not for 'cpu'", "--device=cpu",
        environment=CUDA | {"AXRUN_TARGET": ""}))
    yield ("two ranks on a card", refused,
           "--comm=nccl: ranks 0 and 1 are both on card 0", "--devices=0,0")
    yield ("an old one", lambda: refused(
        "--comm=nccl: the NCCL that is there is 2.18.3, and this needs 2.28.0",
        environment=CUDA | {"SIMGPU_NCCL_VERSION": "21803"}))
