# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of docs/training.md about memory: what recomputing costs and
saves, and what is predicted of a large gated MLP beside what is measured.

usage: recompute.py BUILD
"""
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

TEST = Path(__file__).parents[1]
sys.path[:0] = [str(TEST), str(TEST / "e2e")]
from _gpt import gpt, swiglu
from cases import run, tool
from memory import TRAIN, measured, predicted

STEPS, ROUNDS = 6, 3


def stepTime(plan, folder):
    report = f"{folder}/times.json"
    run(tool("axrun"), plan, "--random-inputs=1", "--warmup=1",
        "--threads-per-rank=1", f"--iterations={STEPS}", "--json", report)
    with open(report) as file:
        return json.load(file)["median_ms"]


def recomputing(folder):
    model = f"{folder}/gpt.onnx"
    gpt(model, layers=8, width=256, heads=8, vocabulary=1024, batch=8,
        tokens=128)
    plans, activations = {}, {}
    for mode in "none", "selective", "full":
        flags = ["--train", "--loss=cross_entropy(logits,labels)",
                 f"--recompute={mode}"]
        activations[mode] = predicted(model, folder, *flags)["activations"]
        plans[mode] = f"{folder}/{mode}.mlir"
        os.rename(f"{folder}/plan.mlir", plans[mode])
    rounds = [{mode: stepTime(plan, folder) for mode, plan in plans.items()}
              for _ in range(ROUNDS)]
    print("| mode | time | activations |\n|---|---|---|")
    for mode in plans:
        time = statistics.median(r[mode] / r["none"] for r in rounds)
        part = activations[mode] / activations["none"]
        print(f"| `{mode}` | {time:.2f} | {part:.2f} |", flush=True)


def largeModel(folder):
    os.mkdir(f"{folder}/small")
    swiglu(f"{folder}/small/model.onnx", width=8, hidden=8, batch=8)
    predicted(f"{folder}/small/model.onnx", folder, *TRAIN)
    os.rename(f"{folder}/plan.mlir", f"{folder}/small/plan.mlir")
    empty = measured(f"{folder}/small/plan.mlir")
    swiglu(f"{folder}/model.onnx", width=8192, hidden=8192, batch=8)
    print("\n| ranks (`--tp`) | predicted | measured |\n|---|---|---|")
    for ranks in 1, 2, 4, 8:
        peak = predicted(f"{folder}/model.onnx", folder, *TRAIN,
                         f"--tp={ranks}")["peak"]
        # The ranks are threads of one process: only one has memory to itself.
        got = (f"{(measured(f'{folder}/plan.mlir') - empty) / 1e9:.2f} GB"
               if ranks == 1 else "")
        print(f"| {ranks} | {peak / 1e9:.2f} GB | {got} |", flush=True)


def main():
    os.environ["AX_BIN"] = str(Path(sys.argv[1]) / "bin")
    with tempfile.TemporaryDirectory() as folder:
        recomputing(folder)
        largeModel(folder)


main()
