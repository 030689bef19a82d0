"""The node tests of the onnx package: none wrong, and no fewer than were."""
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
    yield "node tests", nodes, f"--floor={FLOOR}", "-j2"


# Rises with what we support, never falls.
FLOOR = 1550
