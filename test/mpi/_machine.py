# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is expected of files that ax-collectives --calibrate writes."""
import os
from pathlib import Path

from cases import MODELS, Failed, run, tool

KEYS = ["name", "target", "flops", "narrow-flops", "memory-bandwidth",
        "command-latency", "memory", "latency", "bandwidth", "ranks-per-host",
        "host-latency", "host-bandwidth", "overlap"]
MODEL = MODELS / "fc_net_eager_ts17_dyn/model.onnx"


def readMachine(path):
    """The keys of the file, which is YAML with nothing nested."""
    lines = Path(path).read_text().splitlines()
    if lines[0] != "---" or lines[-1] != "...":
        raise Failed(str(lines))
    found = {}
    for line in lines[1:-1]:
        key, value = line.split(":", 1)
        value = value.strip().strip("'")
        found[key] = value if key in ("name", "target", "overlap") else float(value)
    if list(found) != KEYS:
        raise Failed(f"{list(found)}")
    return found


def checkNumbers(machine, onHost):
    """All are those of a machine, if not of which; `onHost` ranks share its memory."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if machine["memory"] != whole // onHost:
        raise Failed(f"{machine['memory']} of {whole}")
    for key, least, most in [
            ("flops", 1e7, 1e15), ("narrow-flops", 1e6, 1e16),
            ("memory-bandwidth", 1e7, 1e14), ("command-latency", 1e-9, 1e-2),
            ("latency", 0, 1), ("bandwidth", 1e4, 1e13)]:
        if not least <= machine[key] <= most:
            raise Failed(f"{key}: {machine[key]}")


def checkPlan(path, machine):
    """axopt reads it, and says for whom times are predicted."""
    said = run(tool("axopt"), MODEL, "--shape", "x=32x64", "--tp=2",
               f"--machine={path}", "-o", f"{path}.mlir").stderr
    if f"times are predictions for machine '{machine['name']}': " not in said or \
            "yours was not measured" in said:
        raise Failed(said)


def checkAlike(machine, key):
    """All ranks are on one host."""
    if machine["host-" + key] != machine[key]:
        raise Failed(f"{key}: {machine}")
