# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of docs/benchmarks.md about pipelines: runs in flight, bubbles of
schedules as axopt predicts and axrun measures them, and all-reduce beside MPI's.

usage: pipelines.py BUILD
"""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import networks
from bench import capture

MODEL = {"layers": 4, "width": 512, "heads": 8, "vocabulary": 8192,
         "tokens": 128}
BATCH = 8


def measured(bin, plan, warmup, iterations):
    report = plan.with_suffix(".json")
    capture(bin / "axrun", plan, "--random-inputs", 1, "--warmup", warmup,
            "--iterations", iterations, "--threads-per-rank", 1,
            "--trace", plan.with_suffix(".trace"), "--json", report)
    return json.loads(report.read_text())


def inFlight(bin, folder):
    model, plan = folder / "model.onnx", folder / "plan.mlir"
    networks.gpt(**MODEL).save(model)
    print("| ranks | latency ms | runs/s |\n|---|---|---|")
    for name, flag in [("1", "--tp=1"), ("`--pp=2`", "--pp=2"),
                       ("`--tp=2`", "--tp=2")]:
        capture(bin / "axopt", model, flag, "-o", plan)
        # Two rounds: what both agree on is what a row says.
        rounds = [measured(bin, plan, 5, 60) for _ in range(2)]
        latency = sorted(each["median_ms"] for each in rounds)
        rate = sorted(each["runs_per_second"] for each in rounds)
        print(f"| {name} | {latency[0]:.0f}-{latency[1]:.0f} "
              f"| {rate[0]:.0f}-{rate[1]:.0f} |", flush=True)


def bubbles(bin, folder):
    model, plan = folder / "batch.onnx", folder / "training.mlir"
    networks.gpt(**MODEL, batch=BATCH).save(model)
    print("\n| `--schedule` | predicted | measured | step ms |\n|---|---|---|---|")
    for schedule in "gpipe", "1f1b", "zero-bubble", "zb-v":
        summary = subprocess.run(
            [bin / "axopt", model, "--train", "--pp=2",
             "--loss=cross_entropy(logits,labels)", f"--micro-batches={BATCH}",
             f"--schedule={schedule}", "-o", plan],
            check=True, stderr=subprocess.PIPE, text=True).stderr
        predicted = re.search(r"@main, .*stages wait (\d+) %", summary)[1]
        result = measured(bin, plan, 1, 4)
        print(f"| `{schedule}` | {predicted} % | {100 * result['bubble']:.0f} % "
              f"| {result['median_ms']:.0f} |", flush=True)


def allReduce(bin):
    """1 MiB of f32 over two ranks: threads, processes, and MPI's own call."""
    sizes = ["--min-bytes=1048576", "--max-bytes=1048576"]
    commands = {"local": [bin / "ax-collectives", *sizes]}
    if (bin / "libax-mpi-peer.so").exists():
        commands["mpi"] = ["mpirun", "--allow-run-as-root", "-np", "2",
                           bin / "ax-collectives", "--peer", *sizes]
    print("\n| all-reduce of 1 MiB, 2 ranks | GB/s |\n|---|---|")
    for name, command in commands.items():
        lines = [line.split() for line in capture(*command).splitlines()]
        row = next(line for line in lines if line[0] == "all_reduce")
        print(f"| {name} | {float(row[5]):.1f} |", flush=True)
        if len(row) > 7:
            print(f"| Open MPI | {float(row[9]):.1f} |", flush=True)


def main():
    bin = Path(sys.argv[1]) / "bin"
    with tempfile.TemporaryDirectory() as folder:
        inFlight(bin, Path(folder))
        bubbles(bin, Path(folder))
    allReduce(bin)


main()
