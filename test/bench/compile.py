# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compiling takes: axopt of a Llama of 32 and 64 layers (hidden size 64,
random weights) and ResNet-50 (8 images), in training on the layouts of docs/training.md,
and in inference.

usage: compile.py BUILD [--rounds N] [MODEL...]

Seconds are of the processor in all threads, of all of axopt and of its
largest phases; the least of some rounds, since others only add to it.
"""
import argparse
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import networks

TEST = Path(__file__).parents[1]
sys.path[:0] = [str(TEST), str(TEST / "e2e")]
from train import LAYOUTS, PIPELINES

LARGE = ["--tp=2x2x2", "--dp=8 --zero=3", "--tp=2 --sequence-parallel"]
TRAIN = {"llama-32": "cross_entropy({},labels)",
         "llama-64": "cross_entropy({},labels)",
         "resnet50-8": "mse({},target)"}
PHASES = ["normalize", "raise", "train", "shard", "pipeline"]


def prepare(name, folder):
    """The model's path, and its output's name."""
    import onnx
    model = networks.build(name, folder)
    return model, onnx.load(model, load_external_data=False).graph.output[0].name


def compiled(binary, model, flags, plan):
    """Wall and processor seconds, seconds by phase, peak MiB."""
    command = [binary, model, *flags, "--quiet", "--mlir-timing", "-o", plan]
    with tempfile.TemporaryFile("w+") as said:
        start = time.perf_counter()
        child = subprocess.Popen(command, stderr=said)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        said.seek(0)
        text = said.read()
    if status:
        sys.exit(f"$ {' '.join(map(str, command))}\n{text}")
    phases = {name: float(seconds) for seconds, name in re.findall(
        r"^ *([0-9.]+) \( *[0-9.]+%\) +(\w+)$", text, re.MULTILINE)
        if name in PHASES}
    return (wall, usage.ru_utime + usage.ru_stime, phases,
            usage.ru_maxrss / 1024)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--all", action="store_true",
                        help="all layouts of the end-to-end tests")
    parser.add_argument("models", nargs="*")
    options = parser.parse_intermixed_args()
    folder = Path(os.environ.get("AXOPT_CACHE", Path.home() / ".cache/axopt"))
    print("| model | layout | seconds | processor s | "
          + " | ".join(PHASES) + " | peak MiB |")
    print("|---" * (5 + len(PHASES)) + "|")
    # Linux takes the memory of who starts a program for that program's own, so
    # this process stays small.
    with tempfile.TemporaryDirectory() as scratch, \
            multiprocessing.get_context("spawn").Pool(1) as builder:
        for name in options.models or TRAIN:
            model, output = builder.apply(
                prepare, (name, folder / "bench-models"))
            train = ["--train", "--loss=" + TRAIN[name].format(output)]
            layouts = [("inference --tp=2", ["--tp=2"])]
            for layout in dict.fromkeys(
                    (LAYOUTS + PIPELINES if options.all else []) + LARGE):
                # Images have no sequence.
                if name == "resnet50-8" and layout != "--tp=2x2x2":
                    continue
                layouts.append((layout, train + layout.split()))
            for label, flags in layouts:
                runs = [compiled(options.build / "bin/axopt", model, flags,
                                 f"{scratch}/plan.mlir")
                        for _ in range(options.rounds)]
                wall, processor, phases, peak = min(runs, key=lambda r: r[1])
                print(f"| {name} | `{label}` | {wall:.2f} | {processor:.2f} | "
                      + " | ".join(f"{phases.get(p, 0):.2f}" for p in PHASES)
                      + f" | {peak:.0f} |", flush=True)


if __name__ == "__main__":
    main()
