# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ax-collectives --calibrate: a file that says what ranks have of this machine, by
which axopt prices a plan."""
import os
import re

from _machine import checkAlike, checkNumbers, checkPlan, readMachine
from _mpirun import USAGE, launch
from cases import Failed, run, scratch, tool

INPUT_OUTPUT = 7


def calibrated(start, ranks, *flags):
    with scratch() as folder:
        path = f"{folder}/machine.yaml"
        said = start(tool("ax-collectives"), f"--calibrate={path}", *flags).stdout
        machine = readMachine(path)
        checkNumbers(machine, ranks)
        name = re.escape(machine["name"])
        if not re.fullmatch(
                rf"{name}; each has, while all work,\n"
                r"  products of f32      \S+ .?FLOP/s\n"
                r"  products of bf16     \S+ .?FLOP/s\n"
                r"  copies               \S+ .?B/s read and written\n"
                r"  beginning a command  \S+ us\n"
                r"  memory               \S+ .iB\n"
                r"  exchanges            \S+ us and \S+ .?B/s; "
                + ("not measured: there is one rank\n" if ranks == 1 else
                   r"times differ from these by a factor of [\d.]+(: was something else running\?)?\n")
                + rf"{re.escape(path)} has it, for axopt --machine\n", said):
            raise Failed(said)
        words = "1 rank" if ranks == 1 else f"{ranks} ranks"
        if not re.search(rf"\w.*, {words}( of \d+ threads)?$", machine["name"]):
            raise Failed(machine["name"])
        if (machine["target"], machine["overlap"]) != ("", "false"):
            raise Failed(f"{machine}")
        if machine["ranks-per-host"] != 0:
            raise Failed(f"{machine}")
        checkAlike(machine, "latency")
        checkAlike(machine, "bandwidth")
        if ranks == 1 and (machine["latency"], machine["bandwidth"]) != (5e-6, 5e9):
            raise Failed(f"{machine}")
        if os.listdir(folder) != ["machine.yaml"]:
            raise Failed(f"{os.listdir(folder)}")
        checkPlan(path, machine)


def threads(ranks):
    calibrated(run, ranks, f"--ranks={ranks}")


def processes(ranks):
    calibrated(lambda *words: launch(ranks, *words), ranks)


def keepsOld():
    """A file that cannot be replaced is what it was, and nothing is measured."""
    with scratch() as folder:
        missing = f"{folder}/none/machine.yaml"
        said = f"ax-collectives: error: cannot write '{missing}': " \
            "No such file or directory"
        done = run(tool("ax-collectives"), f"--calibrate={missing}",
                   expect=INPUT_OUTPUT)
        if done.stderr.splitlines() != [said] or done.stdout:
            raise Failed(done.stderr + done.stdout)
        done = launch(2, tool("ax-collectives"), f"--calibrate={missing}",
                      expect=INPUT_OUTPUT)
        errors = [line for line in done.stderr.splitlines() if "error:" in line]
        if errors != [said] or os.listdir(folder):
            raise Failed(done.stderr)


def refuses(text, *flags):
    done = run(tool("ax-collectives"), *flags, expect=USAGE)
    if done.stderr.splitlines() != [f"ax-collectives: error: {text}"]:
        raise Failed(done.stderr)


def cases(every):
    for ranks in (1, 2):
        yield f"{ranks} threads", threads, ranks
        yield f"{ranks} processes", processes, ranks
    yield "a file that cannot be written", keepsOld
    for flag in ("--peer", "--rounds=2", "--min-bytes=64", "--max-bytes=64"):
        yield (f"beside {flag}", refuses,
               f"{flag.split('=')[0]} has no use in this run: it is for a table of "
               "collectives, without --calibrate", "--calibrate=m.yaml", flag)
    yield ("no file", refuses, "--calibrate: expected the name of a file",
           "--calibrate=")
