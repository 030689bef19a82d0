# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps of axrun and its peers, in turns within one run.

usage: training.py BUILD [--rounds N]
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import numpy as np

import networks
from bench import HERE, capture

MODEL = {"layers": 4, "width": 512, "heads": 8, "vocabulary": 8192}
TOKENS = 128
STEPS = 12
# Ranks, or threads of a peer; batch; what axopt is told.
PROCESSORS = sorted(os.sched_getaffinity(0))
CASES = [(1, 1, []), (1, 4, []), (2, 1, ["--tp=2"]), (2, 4, ["--tp=2"]),
         (2, 4, ["--dp=2"])]


def bound(count):
    """As many processors for axrun's ranks as for a peer's threads."""
    return ["taskset", "-c", ",".join(map(str, PROCESSORS[:count]))]


def peerStep(peer, threads, batch):
    script = (["jax_step.py", batch] if peer == "jax"
              else ["torch_step.py", peer.split()[-1], threads, batch])
    return float(capture(*bound(threads), sys.executable,
                         HERE / script[0], *script[1:],
                         OMP_NUM_THREADS=str(threads)).split()[-1])


def ownStep(options, plan, launcher, data):
    log = plan.with_suffix(".jsonl")
    log.unlink(missing_ok=True)
    capture(*launcher, options.bin / "axrun", plan, "--data", data,
            "--steps", STEPS, "--threads-per-rank", 1, "--log", log)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return 1e3 * statistics.median(line["seconds"] for line in lines[2:])


def compilePlan(options, folder, batch, flags):
    model = folder / f"model{batch}.onnx"
    if not model.exists():
        networks.gpt(**MODEL, tokens=TOKENS, batch=batch).save(model)
        ids = np.random.default_rng(1).integers(
            MODEL["vocabulary"], size=(STEPS * batch, TOKENS))
        np.savez(folder / f"data{batch}.npz", input_ids=ids, labels=ids)
    plan = folder / "plan.mlir"
    capture(options.bin / "axopt", model, "--train",
            "--loss=cross_entropy(logits,labels)", "--optimizer=adamw(lr=1e-3)",
            "--clip-norm=1", *flags, "-o", plan)
    return plan


def measure(options, folder, ranks, batch, flags):
    plan = compilePlan(options, folder, batch, flags)
    times = {peer: [] for peer in options.peers + ["axrun"]}
    for _ in range(options.rounds):
        for peer in options.peers:
            times[peer].append(peerStep(peer, ranks, batch))
        times["axrun"].append(ownStep(options, plan, bound(ranks),
                                      folder / f"data{batch}.npz"))
    # Ratio within each round: what disturbs a round disturbs all in it.
    ratio = statistics.median(
        own / min(peers) for own, *peers in
        zip(times["axrun"], *(times[peer] for peer in options.peers)))
    medians = [statistics.median(times[k]) for k in options.peers + ["axrun"]]
    print(f"| {batch} × {TOKENS} | {ranks} | {' '.join(flags) or '—'} | "
          + " | ".join(f"{each:.0f}" for each in medians)
          + f" | {ratio:.2f} |", flush=True)


def describe(options):
    """What is measured, of what, where."""
    names = {peer.split()[0] for peer in options.peers}
    versions = ", ".join(f"{name} {metadata.version(name)}"
                         for name in sorted(names))
    processor = next((line.split(":")[1].strip()
                      for line in open("/proc/cpuinfo")
                      if line.startswith("model name")), "unknown processor")
    print(f"One step: forward pass, loss, backward pass, clipping, AdamW; f32. "
          f"torch: AdamW(fused=True); compile: all of the step.\n"
          f"{versions}; {processor}, {len(PROCESSORS)} processors; all are "
          f"bound to as many as they have ranks or threads; medians of "
          f"{STEPS - 2} steps, {options.rounds} rounds.\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--peers", nargs="*",
                        default=["torch eager", "torch compile", "jax"])
    options = parser.parse_args()
    options.bin = options.build / "bin"
    describe(options)
    print("| tokens | ranks or threads | axopt | "
          + " | ".join(f"{peer} ms" for peer in options.peers)
          + " | axrun ms | axrun / fastest peer |\n"
          + "|---" * (5 + len(options.peers)) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            measure(options, Path(folder), *case)


if __name__ == "__main__":
    main()
