# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The node tests of the onnx package: none wrong, and each operator does as its
line in docs/conformance.md says, neither less nor more. Without --all of a third
of them: no more is unsupported than the page says."""
import os
import pathlib
import sys

from cases import MODELS, run

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(os.environ["AX_BIN"]).parent


def nodes(*options):
    run(sys.executable, "-W", "ignore", ROOT / "test/conformance/run.py", BUILD,
        *options, timeout=3600)


def cases(every):
    yield ("node tests", nodes, "--compare", ROOT / "docs/conformance.md",
           "--models", MODELS, "-j2", *([] if every else ["--every=3"]))
