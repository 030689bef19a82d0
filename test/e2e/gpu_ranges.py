# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranges for NVIDIA's profilers, as a library hears them that NVTX opens."""
from pathlib import Path

from _training import axrun
from cases import Failed, Unsupported, scratch
from nccl import CUDA, SIMULATED, plan

LISTENER = SIMULATED.parent / "nvtx" / "libnvtx-listener.so"


def heard(folder, flags, steps, *more, **settings):
    """What each thread's ranges are called, with how many they are in."""
    if not LISTENER.exists():
        raise Unsupported("the build is without NVTX's header")
    file = Path(f"{folder}/ranges")
    axrun(plan(folder, *flags), "--data", f"{folder}/data.npz", f"--steps={steps}",
          "--quiet", *more,
          env=CUDA | {"NVTX_INJECTION64_PATH": str(LISTENER),
                      "NVTX_LISTENER_FILE": str(file)} | settings)
    threads = {}
    for line in file.read_text().splitlines():
        thread, depth, name = line.split(" ", 2)
        threads.setdefault(thread, []).append((int(depth), name))
    return list(threads.values())


def ofCommands(*more, **settings):
    """Steps, in them the actions of the schedule, and in these commands."""
    with scratch() as folder:
        threads = heard(folder, ["--pp=2", "--micro-batches=2"], 3, *more, **settings)
    if len(threads) != 2:
        raise Failed(threads)
    stages = set()
    for ranges in threads:
        steps = [name for depth, name in ranges if depth == 0]
        if steps != ["step 1", "step 2", "step 3"]:
            raise Failed(steps)
        actions = [name for depth, name in ranges if depth == 1]
        stage = actions[0].split(" ")[0][-1]
        stages.add(stage)
        for wanted in (f"forward{stage} micro-batch 0", f"update{stage}",
                       f"backward{stage} micro-batch 1"):
            if actions.count(wanted) != 3:
                raise Failed(f"{wanted}: {actions}")
        commands = {name for depth, name in ranges if depth == 2}
        if {"0": "m0", "1": "m7"}[stage] not in commands or \
                any(depth > 2 for depth, _ in ranges):
            raise Failed(commands)
    if stages != {"0", "1"}:
        raise Failed(stages)


def ofGraphs():
    """A step that is launched as a graph is one range."""
    with scratch() as folder:
        ranges, = heard(folder, [], 6, "--capture=on")
    graph, = (i for i, (_, name) in enumerate(ranges) if name == "step 6")
    if ranges[graph:] != [(0, "step 6")]:
        raise Failed(ranges[graph:])


def cases(every):
    yield "of commands", ofCommands, "--capture=off"
    yield "of the CPU's commands", lambda: ofCommands(
        AXRUN_DEVICE="cpu", AXRUN_TARGET="")
    yield "of graphs", ofGraphs
