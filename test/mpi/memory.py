# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each of four processes takes that goes on with a large model."""
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from _jobs import Running
from cases import ROOT, Failed, Unsupported, isSanitized, run, scratch, tool

sys.path.append(str(ROOT / "test/e2e"))
from _gpt import swiglu  # noqa: E402

RANKS, MB = 4, 1 << 20
FIELDS = "VmHWM:", "RssFile:"


def look(pid, most):
    """The most of each that was seen."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(FIELDS):
                name, size = line.split()[:2]
                most[name] = max(most.get(name, 0), 1024 * int(size))
    except OSError:
        pass


def resumed(folder, width):
    """The most that any process has when it has resumed, and the bytes of the states of the rank
    that has most of them."""
    os.mkdir(folder)
    model, plan = f"{folder}/model.onnx", f"{folder}/plan.mlir"
    swiglu(model, width=width, hidden=width, batch=RANKS)
    run(tool("axopt"), model, "--train", "--loss=mse(logits,target)", "--tp=4", "--quiet",
        "--optimizer=adam(lr=0.001)", "-o", plan)
    np.savez(f"{folder}/data.npz", **{
        name: np.ones((RANKS, width), np.float32) for name in ("input", "target")})
    command = [tool("axrun"), plan, "--data", f"{folder}/data.npz", "--quiet", "--save",
               f"{folder}/run", "--steps=1"]
    run(*command)
    shares = [path.stat().st_size for path in Path(folder).glob("run/step-1/rank-*")]
    assert len(shares) == RANKS, shares
    job = Running(RANKS, *command, "--resume", f"{folder}/run")
    ranks, most = job.findRanks(RANKS), [{} for _ in range(RANKS)]
    last = time.monotonic() + 120
    while any(Path(f"/proc/{pid}").exists() for pid in ranks.values()):
        if time.monotonic() > last:
            raise Failed(f"still there after 120 s:\n{job.end(timeout=0)}")
        for rank, pid in ranks.items():
            look(pid, most[rank])
        time.sleep(0.002)
    output = job.end()
    if job.process.returncode:
        raise Failed(output)
    return [max(each[field] for each in most) for field in FIELDS], max(shares)


def share(width):
    if isSanitized():
        raise Unsupported("sanitizers have memory of their own")
    with scratch() as folder:
        (peak, pages), _ = resumed(f"{folder}/small", 16)
        (peakNow, pagesNow), states = resumed(f"{folder}/large", width)
        text = (f"{states // MB} MB of states: {(peakNow - peak) // MB} MB more than the "
                f"{peak // MB} of a small model, of files {(pagesNow - pages) // MB} MB more "
                f"than {pages // MB}")
        if peakNow - peak > 1.2 * states + 64 * MB or \
                pagesNow - pages > 1.1 * states + 16 * MB:
            raise Failed(text)


def cases(every):
    for width in [1024] + [3072] * every:
        yield f"a width of {width}", share, width
