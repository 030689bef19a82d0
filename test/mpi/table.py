# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ax-collectives: the table of both communicators, and what it refuses."""
import os

from _mpirun import USAGE, launch
from cards import onCards
from cases import Failed, run, tool

CASES = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all",
         "permute", "send_recv"]
SIZES = ["--min-bytes=64", "--max-bytes=65536", "--rounds=1"]


def check(output, columns):
    rows = [line.split() for line in output.splitlines()]
    rows = [row for row in rows if row and row[0] in CASES]
    sizes = 6
    if [row[0] for row in rows] != [name for name in CASES for _ in range(sizes)]:
        raise Failed(output)
    for row in rows:
        if len(row) != columns or row[6] != "0" or not float(row[3]) > 0:
            raise Failed(f"{row}\n{output}")


def threads(ranks):
    command = tool("ax-collectives"), f"--ranks={ranks}", *SIZES
    check(run(*command).stdout, 7)
    check(run(*command, "--peer").stdout, 11)


def processes(ranks):
    check(launch(ranks, tool("ax-collectives"), "--peer", *SIZES).stdout, 11)


def ofCards(comm):
    """Over NCCL, or by way of the host."""
    check(onCards(launch, {}, 2, tool("ax-collectives"), "--device=cuda", *comm,
                  *SIZES).stdout, 7)


def refusesProcesses(text, *flags):
    done = launch(2, tool("ax-collectives"), *flags, expect=USAGE)
    if text not in done.stderr:
        raise Failed(done.stderr)


def refuses(text, *flags):
    done = run(tool("ax-collectives"), *flags, expect=USAGE)
    if text not in done.stderr:
        raise Failed(done.stderr)


def refusesTorchrun():
    """Each would be two threads, and say how fast these are."""
    done = run(tool("ax-collectives"), expect=USAGE, env=os.environ | {
        "RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost"})
    if "torchrun, or srun without MPI, has started this process and others, and " \
            "processes are measured that mpirun starts: use that, or unset RANK " \
            "or SLURM_PROCID to measure threads" not in done.stderr:
        raise Failed(done.stderr)


def cases(every):
    for ranks in (1, 2, 4):
        yield f"{ranks} threads", threads, ranks
        yield f"{ranks} processes", processes, ranks
    yield "cards of processes, nccl", ofCards, ["--comm=nccl"]
    yield "cards of processes, mpi", ofCards, []
    yield ("ranks of processes", refusesProcesses,
           "--ranks has no use in this run: it is for ranks that are threads, and a "
           "launcher has started processes", "--ranks=2")
    yield ("threads of processes", refusesProcesses,
           "--comm=local is for ranks that are threads, and a launcher has started "
           "processes: leave it out", "--comm=local")
    yield ("too many ranks", refuses, "--ranks=65: expected 1 to 64",
           "--ranks=65")
    yield ("what is no flag", refuses, "'more' is no flag", "more")
    yield ("no sizes", refuses,
           "sizes are 4 bytes or more, and there is a round", "--min-bytes=0")
    yield ("no sizes between", refuses,
           "the smallest size, --min-bytes=64, is above the largest, --max-bytes=32",
           "--max-bytes=32")
    yield "processes of torchrun", refusesTorchrun
