# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far training on every layout is from PyTorch's: the table of
docs/training.md. Each number is the largest relative difference of a loss or a
gradient norm in 20 steps, with three optimizers.

usage: layouts.py BUILD
"""
import concurrent.futures
import os
import sys
from pathlib import Path

TEST = Path(__file__).parents[1]
sys.path[:0] = [str(TEST), str(TEST / "e2e")]
from cases import Failed
from train import OPTIMIZERS, follows, trained


def largest(model, layout):
    try:
        return f"{max(follows(model, layout, o) for o in OPTIMIZERS):.0e}"
    except Failed as failure:
        print(f"{model.name} {layout}: {failure}", file=sys.stderr)
        return "FAILED"


def main():
    os.environ["AX_BIN"] = str(Path(sys.argv[1]) / "bin")
    rows = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for model, layout in trained(every=True):
            rows.setdefault(layout, {})[model.name] = pool.submit(
                largest, model, layout)
        models = list(rows[""])
        print("| |", " | ".join(models), "|")
        print("|---" * (len(models) + 1) + "|")
        for layout, cells in rows.items():
            print(f"| `{layout or 'one rank'}` |",
                  " | ".join(cells[m].result() if m in cells else ""
                             for m in models), "|", flush=True)


main()
