# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who is not of the job, what hosts do not have in common, and what stands in the
way: a message once, the table's exit code, and no process that stays."""
import random
import socket
import subprocess
import sys
from pathlib import Path

from _hosts import HERE, Hosts, waitUntil
from cases import ROOT, Failed, run, tool

sys.path.append(str(ROOT / "test/mpi"))
from _jobs import DIGITS, compiled, oneMessage, sameLogs  # noqa: E402

USAGE, INPUT_OUTPUT = 2, 7
PORT = 23456
STRANGERS = 10000


def command(hosts, plan, *flags):
    return [*hosts.mpirun("-np", str(len(hosts.names)), "--map-by", "node"),
            tool("axrun"), plan, "--data", DIGITS, "--quiet", *flags]


def noneLeft(hosts):
    waitUntil(lambda: not hosts.pidsOf("axrun"), "no process is left", 5)


def refused(hosts, plan, code, flags, *says):
    done = hosts.run("host1", *command(hosts, plan, "--steps=2", *flags), expect=code)
    oneMessage(done, *says)
    noneLeft(hosts)
