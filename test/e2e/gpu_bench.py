# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tools/dev bench gpu` on the simulated GPU, with a Python that stands in for one
with PyTorch."""
import os
import re
import subprocess
import sys
from pathlib import Path

from cases import ROOT, Failed, run, scratch

sys.path.append(str(ROOT / "test/card"))
from benches import BENCHES, flop

BUILD = Path(os.environ["AX_BIN"]).parent
PEER = """#!/bin/sh
case "$2 $3" in
"max-autotune "*) echo out of memory >&2; exit 1 ;;
"eager step") echo 1000 ;;
"eager "*) echo 2000.5 ;;
*) echo 4e3 ;;
esac
"""


def measured(*flags, peer=None, expect=0):
    """Cells by the benchmark, and what is said below."""
    said = run(sys.executable, ROOT / "test/bench/gpu.py", BUILD, "--simulated",
               "--rounds", 1, "--iterations", 1, *flags, expect=expect,
               env=os.environ | {"BENCH_PYTHON": str(peer or "no-such-python")}
               ).stdout
    table, _, below = said.partition("\n\n")
    head, line, *rows = ([cell.strip() for cell in row.split("|")[1:-1]]
                         for row in table.strip().splitlines())
    if any(len(row) != len(head) for row in (line, *rows)):
        raise Failed(f"not one table:\n{said}")
    return {row[0]: dict(zip(head, row)) for row in rows}, below


def withoutPeers():
    """They are named once; what is held against another network is not."""
    rows, below = measured("gpt2-memory", "gpt2-tp2", "attention", "gpt2-first")
    if below != "PyTorch is not measured: there is no no-such-python\n":
        raise Failed(below)
    wanted = {"gpt2-memory": r"[\d.]+ of what was predicted",
              "gpt2-tp2": r"[\d.]+ of gpt2-step", "attention": "-",
              "gpt2-first": "-"}
    if list(rows) != list(wanted):
        raise Failed(f"not in the order that was asked for: {list(rows)}")
    for name, ratio in wanted.items():
        if not re.fullmatch(ratio, rows[name]["axrun / fastest peer"]) or \
                not float(rows[name]["axrun ms"].split()[0]) > 0:
            raise Failed(f"{name}: {rows[name]}")


def withPeers():
    """The fastest counts; one that fails is a line below, and not asked again."""
    with scratch() as folder:
        peer = Path(folder) / "python"
        peer.write_text(PEER)
        peer.chmod(0o755)
        rows, below = measured("gpt2-step", "minilm-latency", "--rounds", 2, peer=peer)
    for name, eager in ("gpt2-step", 1000), ("minilm-latency", 2000.5):
        row = rows[name]
        ratio = float(row["axrun ms"]) / eager
        if float(row["PyTorch eager ms"]) != eager or \
                float(row["PyTorch compile ms"]) != 4000 or \
                row["PyTorch max-autotune ms"] != "-" or \
                abs(float(row["axrun / fastest peer"]) - ratio) > 0.006:
            raise Failed(f"{row}")
    if below.count("PyTorch max-autotune: out of memory") != 2:
        raise Failed(below)


def outOfTime():
    rows, _ = measured("gpt2-step", "--minutes", 0, expect=1)
    if rows["gpt2-step"]["axrun ms"] != "not run":
        raise Failed(f"{rows}")


def refusals():
    """Without a card, and of names that there are not."""
    for flags, says in ([], "no NVIDIA GPU that can be seen"), \
            (["gpt5"], "no benchmark is called gpt5; there are gpt2-step, "):
        done = subprocess.run(
            [sys.executable, ROOT / "test/bench/gpu.py", BUILD, *flags],
            text=True, capture_output=True)
        if os.path.exists("/dev/nvidia0") and not flags:
            continue
        if done.returncode == 0 or says not in done.stderr or done.stdout:
            raise Failed(f"{flags}: {done.stdout}{done.stderr}")


def operations():
    """Of the sizes that docs/benchmarks.md tells, in 10^12."""
    for name, wanted in ("gpt2-step", 13.2), ("llama-step", 93.5):
        if round(flop(BENCHES[name], False) / 1e12, 1) != wanted:
            raise Failed(f"{name}: {flop(BENCHES[name], False)}")


def cases(every):
    yield "without peers", withoutPeers
    yield "with peers", withPeers
    yield "out of time", outOfTime
    yield "refusals", refusals
    yield "operations", operations
