# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws the curve of an example's page again, and renews what the page says that
axrun prints: runs the page's commands up to the one that draws.

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
# One a page.
PRINTED = re.compile(r"^    axrun: evaluation: .*$", re.M)


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
        text, printed = options.page.read_text(), []
        for block in BLOCK.findall(text):
            done = subprocess.run(["bash", "-eu", "-c", block], cwd=folder,
                                  env=environment, text=True,
                                  stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
            print(done.stdout, end="")
            done.check_returncode()
            printed += PRINTED.findall(re.sub("^", "    ", done.stdout,
                                              flags=re.M))
            if curve.exists():
                shutil.copy(curve, options.page.with_suffix(".svg"))
                options.page.write_text(PRINTED.sub(printed[-1], text))
                return
        raise SystemExit(f"{options.page}: no command draws a curve")


main()
