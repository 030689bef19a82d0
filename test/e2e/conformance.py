"""The node tests of the onnx package: a sample, with --all every one."""
import os
import pathlib
import sys

from cases import run

ROOT = pathlib.Path(__file__).parents[2]
BUILD = pathlib.Path(os.environ["AX_BIN"]).parent


def nodes(*options):
    run(sys.executable, "-W", "ignore", ROOT / "test/conformance/run.py", BUILD,
        *options, timeout=3600)


def cases(every):
    if every:
        yield "node tests", nodes, f"--floor={FLOOR}"
    else:
        yield "sample of the node tests", nodes, "--every=40", "-j2"


# Rises with what we support, never falls.
FLOOR = 1500
