# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of other files once more, their ranks on a device whose memory the host
cannot touch (test/guarded)."""
import os
import re
from pathlib import Path

from cases import Failed, load

# File -> which of its cases: together they move data in each way that there is.
FEW = {
    "axrun_profile": "",
    "compiled_plans": "pp=2|without compiler|training|embedded",
    "dropout": "",
    "dump_tensors": "",
    "given_weights": "",
    "max_detection": "",
    "models": "--dp=2 --tp=2 --pp=2$",
    "optimizers": "",
    "predict": "",
    "prepare": "",
    "quantized": "",
    "recompute": "",
    "train": "--dp=2.*--zero=3",
    "train_checkpoints": "",
    "zoo": "",
}
# The same on a device without libraries, for which the CPU does their work.
BARE = {
    "max_detection": "",
    "models": "--dp=2 --tp=2 --pp=2$",
    "quantized": "",
    "train": "--dp=2.*--zero=3",
}
# With --all: all files but those that run no plans, or builds of their own.
NOT = {
    "docs": "its commands are those of a user, who has no such device",
    "edited_plans": "is on it in any case",
    "extend": "builds axopt again",
    "fuzz": "runs no tool",
    "guarded": "is this one",
    "import_errors": "runs no plan",
    "import_graphs": "runs no plan",
    "inspection": "runs no plan",
    "install": "runs what it has installed",
    "memory": "measures memory of the host, where device cpu has its own",
    "model_errors": "runs no plan",
}


def onDevice(device, function, *arguments):
    before = dict(os.environ)
    build = Path(os.environ["AX_BIN"]).parent
    os.environ["AX_RUNNERS"] = str(build / "test" / "guarded")
    os.environ["AXRUN_DEVICE"] = device
    try:
        function(*arguments)
    finally:
        os.environ.clear()
        os.environ.update(before)


def cases(every):
    folder = Path(__file__).parent
    files = {file.stem for file in folder.glob("[!_]*.py")}
    if missing := set(NOT) - files:
        raise Failed(f"there is no {missing}")
    chosen = dict.fromkeys(sorted(files - set(NOT)), "") if every else FEW
    for device, files in {"guarded": chosen, "bare": BARE}.items():
        for name, pattern in files.items():
            for case, call in load(str(folder / f"{name}.py")).items():
                if re.search(pattern, case):
                    yield (f"{name} {case}" + " (bare)" * (device == "bare"),
                           onDevice, device, *call)
