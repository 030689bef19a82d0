# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Communicator `mpi`: the suite of communicators on processes, and what opens
MPI. Without MPI in the build nothing of this can run."""
import os
from pathlib import Path

from cases import Failed, Unsupported, isSanitized, run, tool

BUILD = Path(os.environ["AX_BIN"]).parent
RANKS = BUILD / "test/mpi/mpi-ranks"
MODULE = Path(tool("libax-mpi.so"))
# As root, with more ranks than cores, and without looking for other hosts.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe",
          "--mca", "plm", "isolated", "--mca", "btl", "self,vader"]


def launch(ranks, *command, module=MODULE, expect=0, timeout=600, **options):
    if not MODULE.exists():
        raise Unsupported("the build is without MPI")
    if isSanitized():
        raise Unsupported("MPI's own memory is not clean")
    return run(*MPIRUN, "-np", ranks, *command, expect=expect, timeout=timeout,
               env=os.environ | {"AXRUN_MPI_MODULE": str(module)}, **options)


def suite(ranks):
    done = launch(ranks, RANKS)
    if done.stdout.count("[  PASSED  ]") != ranks or "FAILED" in done.stdout:
        raise Failed(done.stdout[-4000:])


def complains(text, module, expect):
    done = launch(1, RANKS, module=module, expect=expect)
    if done.stderr.count("mpi-ranks: error:") != 1 or text not in done.stderr:
        raise Failed(f"expected '{text}' once:\n{done.stderr}")


def withoutLauncher():
    if not RANKS.exists():
        raise Unsupported("the build is without MPI")
    done = run(RANKS, expect=2)
    if "for processes that a launcher has started" not in done.stderr:
        raise Failed(done.stderr)


def cases(every):
    for ranks in (1, 2, 3, 4, 8):
        yield f"the suite on {ranks} processes", suite, ranks
    usage = 2
    yield ("a module that is not there", complains, "cannot be loaded",
           BUILD / "nothing.so", usage)
    yield ("a module of another version", complains, "has version 2",
           BUILD / "test/mpi/libold-mpi-module.so", usage)
    yield "no launcher", withoutLauncher
