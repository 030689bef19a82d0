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
# As root, with more ranks than cores, and without looking for other hosts.
# Its files have a folder of their own: two that make and remove the same one at the same
# time are in each other's way.
SESSIONS = tempfile.TemporaryDirectory(prefix="mpi-")
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe",
          "--mca", "plm", "isolated", "--mca", "btl", "self,vader",
          "--mca", "orte_tmpdir_base", SESSIONS.name]


def needMpi():
    if not MODULE.exists():
        raise Unsupported("the build is without MPI")
    if not shutil.which("mpirun"):
        raise Unsupported("there is no mpirun")
    if isSanitized():
        raise Unsupported("MPI's own memory is not clean")


def launch(ranks, *command, module=MODULE, expect=0, timeout=600, **options):
    needMpi()
    return run(*MPIRUN, "-np", ranks, *command, expect=expect, timeout=timeout,
               env=os.environ | {"AXRUN_MPI_MODULE": str(module)}, **options)
