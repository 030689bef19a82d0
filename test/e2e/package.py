# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The archive for a machine with a GPU (tools/dev package) runs from any folder,
with nothing of this one: here with the simulated GPU in it."""
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np

from cases import Failed, Unsupported, isSanitized, scratch

BUILD = Path(os.environ["AX_BIN"]).parent
CARD = Path(__file__).parents[1] / "card"
CASES = "DeviceSuite.ZeroedMemory|mlp_eager|outputs Gelu|training fc_net --dp=2$"


def package(folder):
    if isSanitized():
        raise Unsupported("sanitizers want their own libraries")
    archive = f"{folder}/card.tar.gz"
    subprocess.run([sys.executable, CARD / "package.py", BUILD, "--simulated",
                    "--output", archive, "--cases", CASES], check=True,
                   stdout=subprocess.DEVNULL)
    with tarfile.open(archive) as file:
        file.extractall(folder, filter="fully_trusted")
    return Path(folder) / "card"


def report(card, *flags):
    """What is said at the end, and the lines of the report."""
    where = card.parent / "report"
    done = subprocess.run(["bash", card / "run", "--report", where, *flags],
                          env={"PATH": os.environ["PATH"]}, cwd="/",
                          text=True, capture_output=True)
    lines = (where / "report.md").read_text().splitlines()
    for file in where.iterdir():
        if file.is_file():
            file.unlink()
    return done, [line for line in lines if line.startswith("| ")]


def runsElsewhere():
    with scratch() as folder:
        card = package(folder)
        done, lines = report(card)
        if not re.match(r"6 passed, 0 failed, 0 not run", done.stdout) or \
                done.returncode:
            raise Failed(f"{done.stdout}\n{done.stderr}\n" + "\n".join(lines))
        # With the glibc that comes along, and a result that is not expected.
        for table in card.glob("cases/*/out.npz"):
            with np.load(table) as arrays:
                np.savez(table, **{name: array + 1
                                   for name, array in arrays.items()})
        done, lines = report(card, "--libc", "own")
        if not done.stdout.startswith("2 passed, 4 failed, 0 not run") or \
                not done.returncode:
            raise Failed(f"{done.stdout}\n{done.stderr}\n" + "\n".join(lines))
        # No time is left.
        done, lines = report(card, "--minutes", "0")
        if not done.stdout.startswith("0 passed, 0 failed, 6 not run"):
            raise Failed(f"{done.stdout}\n" + "\n".join(lines))


def cases(every):
    yield "runs elsewhere", runsElsewhere
