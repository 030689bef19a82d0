# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of other files once more, their ranks on a device whose memory the host
cannot touch (test/guarded)."""
import os
import re
from pathlib import Path

from cases import load

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
# With --all: what runs plans.
MANY = [
    "compiled_plans", "axrun_errors", "axrun_messages", "constant_weights", "digits",
    "extremes", "first_hour", "indices", "integer_sums", "matched_weights",
    "max_results", "minilm_training", "models", "nan", "narrow_sums",
    "open_results", "outputs", "plan_constants", "precision", "sample_dims",
    "split", "streams", "quantised_weights", "strict_weights", "train",
    "train_errors", "train_events", "train_export", "train_exports",
    "train_frozen", "train_log", "train_roles", "train_run",
]


def onGuardedDevice(function, *arguments):
    before = dict(os.environ)
    build = Path(os.environ["AX_BIN"]).parent
    os.environ["AX_RUNNERS"] = str(build / "test" / "guarded")
    os.environ["AXRUN_DEVICE"] = "guarded"
    try:
        function(*arguments)
    finally:
        os.environ.clear()
        os.environ.update(before)


def cases(every):
    chosen = FEW | dict.fromkeys(MANY, "") if every else FEW
    for name, pattern in chosen.items():
        file = Path(__file__).with_name(name + ".py")
        for case, call in load(str(file)).items():
            if re.search(pattern, case):
                yield f"{name} {case}", onGuardedDevice, *call
