# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Communicator `mpi`: the suite of communicators on processes, and what opens
MPI. Without MPI in the build nothing of this can run."""
from _mpirun import BUILD, RANKS, USAGE, launch
from cases import Failed, Unsupported, run


def suite(ranks, *settings, flags=()):
    done = launch(ranks, "env", *settings, RANKS, *flags)
    if done.stdout.count("[  PASSED  ]") != ranks or "FAILED" in done.stdout:
        raise Failed(done.stdout[-4000:])


def onCards(ranks):
    """On memory of a simulated card each, by way of the host's: all but the one
    that takes the time, which is the card's."""
    suite(ranks, "AXRUN_DEVICE=cuda", f"AXRUN_CUDA_PATH={BUILD}/test/simgpu",
          "SIMGPU_ORDER=random:1",
          flags=["--gtest_filter=-*GoesOnWhileTheProgramComputes*"])


def givenUp():
    """Messages come piece by piece, as between hosts."""
    launch(2, "env", "OMPI_MCA_btl_vader_single_copy_mechanism=none", RANKS,
           "--gtest_filter=*WhatIsGivenUpIsNotWritten*")


def complains(text, module):
    """One message, and no other process's."""
    done = launch(2, RANKS, module=module, expect=USAGE)
    if done.stderr.count("mpi-ranks: error:") != 1 or text not in done.stderr:
        raise Failed(f"expected '{text}' once:\n{done.stderr}")


def withoutLauncher():
    if not RANKS.exists():
        raise Unsupported("the build is without MPI")
    done = run(RANKS, expect=USAGE)
    if ("communicator 'mpi' is for processes that a launcher has started: mpirun "
            "-np RANKS axrun" not in done.stderr):
        raise Failed(done.stderr)


def cases(every):
    for ranks in (1, 2, 3, 4, 8):
        yield f"the suite on {ranks} processes", suite, ranks
    yield "the suite on 2 processes with cards", onCards, 2
    yield "receives that are given up", givenUp
    yield ("a module that is not there", complains,
           "install Open MPI, build with it, or name the module in "
           "AXRUN_MPI_MODULE", BUILD / "nothing.so")
    yield ("a library that is no module", complains,
           "is no MPI module of this program: it has no 'axMpiModuleTable'",
           "libm.so.6")
    yield ("a module of another version", complains,
           "and this program needs 4: use the one that was built with it",
           BUILD / "test/mpi/libold-mpi.so")
    yield ("MPI for one thread", complains,
           "this MPI does not let several threads call it (MPI_THREAD_MULTIPLE): "
           "use one that was built with that", BUILD / "test/mpi/libsingle-mpi.so")
    yield "no launcher", withoutLauncher
