# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How tests start processes by MPI."""
import os
import shutil
import tempfile
from pathlib import Path

from cases import Unsupported, isSanitized, run, tool

BUILD = Path(os.environ["AX_BIN"]).parent
USAGE = 2
RANKS = BUILD / "test/mpi/mpi-ranks"
MODULE = Path(tool("libax-mpi.so"))


def mpirun():
    """The words that start processes: as root, with more ranks than cores, and without looking
    for other hosts. Open MPI's files are in a folder of this process's own: two that make and
    remove the same one at the same time are in each other's way. lit removes it."""
    folder = Path(os.environ.get("TMPDIR") or tempfile.gettempdir(), f"mpi-{os.getpid()}")
    folder.mkdir(exist_ok=True)
    return ["mpirun", "--allow-run-as-root", "--oversubscribe",
            "--mca", "plm", "isolated", "--mca", "btl", "self,vader",
            "--mca", "orte_tmpdir_base", str(folder)]


def needMpi():
    if not MODULE.exists():
        raise Unsupported("the build is without MPI")
    if not shutil.which("mpirun"):
        raise Unsupported("there is no mpirun")
    if isSanitized():
        raise Unsupported("MPI's own memory is not clean")


def launch(ranks, *command, module=MODULE, expect=0, timeout=600, **options):
    needMpi()
    return run(*mpirun(), "-np", ranks, *command, expect=expect, timeout=timeout,
               env=os.environ | {"AXRUN_MPI_MODULE": str(module)}, **options)
