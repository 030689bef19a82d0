"""Draws the curve of an example's page again: runs the page's commands up to the
one that draws it.

usage: curve.py BUILD PAGE.md --minilm FOLDER
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```sh(?: run)?\n(.*?)^```", re.M | re.S)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("page", type=Path)
    parser.add_argument("--minilm", type=Path)
    options = parser.parse_args()
    environment = os.environ | {
        "examples": str(ROOT / "examples"), "minilm": str(options.minilm),
        "training": str(ROOT / "test/data/training"),
        "PATH": os.pathsep.join([str(options.build.resolve() / "bin"),
                                 str(Path(sys.executable).parent),
                                 os.environ["PATH"]])}
    with tempfile.TemporaryDirectory() as folder:
        curve = Path(folder) / "curve.svg"
        for block in BLOCK.findall(options.page.read_text()):
            subprocess.run(["bash", "-eu", "-c", block], cwd=folder, check=True,
                           env=environment)
            if curve.exists():
                shutil.copy(curve, options.page.with_suffix(".svg"))
                return
        raise SystemExit(f"{options.page}: no command draws a curve")


main()
