# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of docs/benchmarks.md about predictions: what a step takes on two
ranks, as axopt predicts it for this machine, which ax-collectives measures first,
and as axrun measures it.

usage: predictions.py BUILD
"""
import json
import sys
import tempfile
from pathlib import Path

import networks
from bench import capture

MODEL = {"layers": 4, "width": 512, "heads": 8, "vocabulary": 8192,
         "tokens": 128, "batch": 8}
TRAINING = ["--train", "--loss=cross_entropy(logits,labels)"]
LAYOUTS = [
    "--dp=2", "--tp=2", "--tp=2 --sequence-parallel", "--tp=1x1x2", "--pp=2",
    "--pp=2 --micro-batches=4",
]
OF_TRAINING = [
    "--dp=2 --zero=1", "--dp=2 --zero=3", "--dp=2 --recompute=selective",
    "--dp=2 --recompute=full", "--pp=2 --micro-batches=8",
]


def milliseconds(bin, plan):
    """As predicted, and as measured."""
    path = plan.with_suffix(".json")
    capture(bin / "axrun", plan, "--random-inputs", 1, "--warmup", 1,
            "--iterations", 5, "--in-flight", 1, "--json", path)
    report = json.loads(path.read_text())
    return report["predicted_ms"], report["median_ms"]


def main():
    bin = Path(sys.argv[1]) / "bin"
    with tempfile.TemporaryDirectory() as folder:
        model, plan, machine = (Path(folder) / name for name in
                                ["model.onnx", "plan.mlir", "machine.yaml"])
        networks.gpt(**MODEL).save(model)
        print(capture(bin / "ax-collectives", "--ranks=2",
                      f"--calibrate={machine}"))
        print("| layout | predicted ms | measured ms | predicted / measured |")
        print("|---|---|---|---|")
        for flags in [[], TRAINING]:
            for layout in LAYOUTS + (OF_TRAINING if flags else []):
                capture(bin / "axopt", model, *flags, *layout.split(),
                        f"--machine={machine}", "--quiet", "-o", plan)
                says, takes = milliseconds(bin, plan)
                training = "`--train` " if flags else ""
                print(f"| {training}`{layout}` | {says:.0f} | {takes:.0f} "
                      f"| {says / takes:.2f} |", flush=True)


main()
