# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The GPT-2-like model over two processes of one thread, axrun's and PyTorch's
(DTensor, DistributedDataParallel, over gloo), in turns within one run.

usage: processes.py BUILD [--rounds N]
"""
import argparse
import json
import statistics
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import networks
import training
from bench import HERE, capture
from torch_ranks import PROCESSORS, RANKS

MPIRUN = ["mpirun", "--allow-run-as-root", "-np", RANKS, "--bind-to", "core"]
# What is measured, how it is split, and the samples of 128 tokens in a batch.
CASES = [("forward", "tp", 1), ("step", "tp", 1), ("step", "tp", 4),
         ("step", "dp", 2), ("step", "dp", 4)]


def peer(what, layout, batch):
    return float(capture(sys.executable, HERE / "torch_ranks.py", what, layout,
                         batch, OMP_NUM_THREADS="1").split()[-1])


def forward(options, plan):
    report = plan.with_suffix(".json")
    capture(*MPIRUN, options.bin / "axrun", plan, "--random-inputs", 1,
            "--warmup", 3, "--iterations", 30, "--threads-per-rank", 1,
            "--json", report)
    return json.loads(report.read_text())["median_ms"]


def prepare(options, folder, what, layout, batch):
    """What gives the median milliseconds of a run."""
    flag = f"--{layout}={RANKS}"
    if what == "step":
        plan = training.compilePlan(options, folder, batch, [flag])
        data = folder / f"data{batch}.npz"
        return lambda: training.ownStep(options, plan, MPIRUN, data)
    plan = folder / "forward.mlir"
    capture(options.bin / "axopt",
            networks.build("gpt2-like", folder), flag, "-o", plan)
    return lambda: forward(options, plan)


def measure(options, folder, what, layout, batch):
    own = prepare(options, folder, what, layout, batch)
    rounds = [(peer(what, layout, batch), own())
              for _ in range(options.rounds)]
    # Ratio within each round: what disturbs a round disturbs both in it.
    ratio = statistics.median(own / peer for peer, own in rounds)
    theirs, ours = (statistics.median(times) for times in zip(*rounds))
    print(f"| {what} | {batch} × {training.TOKENS} | --{layout}={RANKS} "
          f"| {theirs:.1f} | {ours:.1f} | {ratio:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    options.bin = options.build / "bin"
    print(f"PyTorch {metadata.version('torch')}, eager, over gloo; two "
          f"processes of one thread, bound to {len(PROCESSORS)} processors\n")
    print("| of | tokens | axopt | PyTorch ms | axrun ms | axrun / PyTorch |\n"
          "|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            measure(options, Path(folder), *case)


if __name__ == "__main__":
    main()
