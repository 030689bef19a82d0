# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""axlaunch and mpirun, where hosts are missing or get lost."""
import os
import signal
import subprocess
import sys
import time

from cases import ROOT, Failed, tool

from _hosts import Hosts, waitUntil

sys.path.append(str(ROOT / "test/e2e"))
from _training import DIGITS, compiled, losses  # noqa: E402


def mpirunsCodes():
    """What axlaunch takes for a run that could not be started."""
    with Hosts(3) as hosts:
        done = hosts.run("host1", *hosts.mpirun("-np", "4", "hostname"),
                         expect=1)
        assert "not enough slots" in done.stderr, done.stderr
        hosts.cut("host3")
        hosts.run("host1", *hosts.mpirun("-np", "3", "hostname"), expect=255)
        # For less ranks it has to be told not to ask all.
        hosts.run("host1", *hosts.mpirun("-np", "2", "hostname"), expect=255)
        done = hosts.run("host1",
                         *hosts.mpirun("--novm", "-np", "2", "hostname"))
        assert sorted(done.stdout.split()) == ["host1", "host2"], done.stdout


def fewerHosts():
    """The plan for two ranks has no second host: the one for one rank runs."""
    with Hosts(2) as hosts:
        two = compiled(hosts.folder, "--dp=2", name="two")
        one = compiled(hosts.folder, name="one")
        hosts.cut("host2")
        done = hosts.run(
            "host1", tool("axlaunch"), "--fallback", one, "--",
            *hosts.mpirun("--novm", "-np", "2"), tool("axrun"), two, "--data",
            DIGITS / "train.npz", "--steps=5", "--save", "run", "--log", "log")
        for says in ("connect to host host2: No route to host",
                     "axlaunch: the run ended with exit code 255\n",
                     "axlaunch: two runs in a row saved no step: the next one "
                     f"is of '{one}'\n", "axlaunch: restart 2 of 3"):
            if says not in done.stderr:
                raise Failed(f"expected: {says}\ngot: {done.stderr}")
        assert len(losses(hosts.folder / "log")) == 5
        assert (hosts.folder / "run/step-5").exists()


# Ranks that take a while to save when they are asked to end.
STAND_IN = """#!/bin/sh
trap 'sleep 1; hostname >> saved; exit 130' USR1
echo here >> ranks
while [ ! -e fails.$(hostname) ]; do sleep 0.1; done
exit 8
"""


def started(hosts):
    """axlaunch with ranks of the stand-in on all hosts."""
    stand = hosts.folder / "axrun"
    stand.write_text(STAND_IN)
    stand.chmod(0o755)
    process = hosts.open(
        "host1", tool("axlaunch"), "--max-restarts=0", "--grace=1", "--",
        *hosts.mpirun("-np", "3"), stand, "plan", "--save=run",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    ranks = hosts.folder / "ranks"
    waitUntil(lambda: ranks.exists() and ranks.read_text().count("here") == 3,
              "the ranks run")
    return process


def stopped(number, code):
    """Every rank is asked on its host, and none is killed meanwhile."""
    with Hosts(3) as hosts:
        process = started(hosts)
        os.kill(hosts.pidOf(process), number)
        said = process.communicate(timeout=60)[0]
        saved = sorted((hosts.folder / "saved").read_text().split())
        if process.returncode != code or saved != hosts.names:
            raise Failed(f"{process.returncode}, {saved}:\n{said}")


def lostHost():
    """mpirun as axlaunch sets it up notices within half a minute."""
    with Hosts(3) as hosts:
        process = started(hosts)
        begin = time.monotonic()
        hosts.cut("host3")
        said = process.communicate(timeout=100)[0]
        seconds = time.monotonic() - begin
        if process.returncode != 8 or seconds > 30 or \
                "ORTE has lost communication with a remote daemon" not in said:
            raise Failed(f"{process.returncode} after {seconds} s:\n{said}")


def hangs():
    """mpirun, which waits for the lost host when a rank of another has failed."""
    with Hosts(3) as hosts:
        process = started(hosts)
        # axlaunch looks about once a second who is there.
        time.sleep(4)
        hosts.cut("host3")
        for name in "host1", "host2":
            (hosts.folder / f"fails.{name}").touch()
        begin = time.monotonic()
        said = process.communicate(timeout=100)[0]
        seconds = time.monotonic() - begin
        if process.returncode != 8 or seconds > 30 or \
                "axlaunch: the command has no rank on this host any more and " \
                "does not end: it is ended" not in said:
            raise Failed(f"{process.returncode} after {seconds} s:\n{said}")


def cases(every):
    yield "mpirun's codes", mpirunsCodes
    yield "fewer hosts", fewerHosts
    yield "stopped by SIGINT", stopped, signal.SIGINT, 130
    yield "stopped by SIGTERM", stopped, signal.SIGTERM, 143
    if every:
        yield "a lost host", lostHost
        yield "mpirun hangs", hangs
