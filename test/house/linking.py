# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tools load when they start: libraries are of the rooms that need
them (docs/architecture.md)."""
import re
from pathlib import Path

from cases import Failed, isSanitized, run, tool

# Tool -> parts of names that none of its libraries has.
WITHOUT = {
    "axopt": ["dnnl", "gomp"],
    "axopt-opt": ["dnnl", "gomp", "protobuf"],
    "axlaunch": ["LLVM", "MLIR", "protobuf", "dnnl", "onnx"],
    "ax-analyze-flight": ["LLVM", "MLIR", "protobuf", "dnnl", "onnx"],
    "axrun-core": ["LLVM", "MLIR", "protobuf", "python", "onnx"],
}
# A library that it does load, so that ldd is known to have looked.
WITH = {"axopt": "libLLVM", "axopt-opt": "libLLVM", "axrun-core": "libdnnl",
        "axlaunch": "libz", "ax-analyze-flight": "libstdc++"}

# Of axrun-core with what it loads, but for what every machine has, and oneDNN
# with what that loads.
MOST_BYTES = 15e6
NOT_COUNTED = ["libc", "libm", "libstdc++", "libgcc_s", "ld-linux-x86-64",
               "libdnnl", "libgomp", "libOpenCL"]


def check(name):
    loaded = run("ldd", tool(name)).stdout
    if WITH[name] not in loaded:
        raise Failed(f"{name} does not load {WITH[name]}: ldd says:\n{loaded}")
    found = [line.strip() for line in loaded.splitlines()
             if any(part in line for part in WITHOUT[name])]
    if found:
        raise Failed(f"{name} loads {', '.join(found)}")


def isSmall(name):
    files = [Path(tool(name))]
    for line in run("ldd", tool(name)).stdout.splitlines():
        path = re.search(r"(/\S+)", line)
        if path and Path(path[1]).name.split(".")[0] not in NOT_COUNTED:
            files.append(Path(path[1]))
    sizes = {file.name: file.resolve().stat().st_size for file in files}
    if sum(sizes.values()) > MOST_BYTES:
        raise Failed(f"{name}: {sizes}")


def cases(every):
    # Sanitizers are parts of the programs that they look at.
    if not isSanitized():
        yield "axrun-core is small", isSmall, "axrun-core"
    for name in WITHOUT:
        yield f"{name} loads no more than it needs", check, name
