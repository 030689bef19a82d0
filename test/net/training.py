# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training by processes on several hosts."""
import subprocess
import sys
import time

from _hosts import Hosts, ranksOf, waitUntil
from cases import ROOT, Failed, run, tool

sys.path.append(str(ROOT / "test/mpi"))
from _jobs import DIGITS, compiled, same, sameLogs  # noqa: E402

COMMON = "a file system that all hosts share"


def sameBits():
    """Losses, weights and a checkpoint that is gone on with."""
    with Hosts(2) as hosts:
        plan = compiled(hosts.folder, "--tp=2 --dp=2")
        train = [tool("axrun"), plan, "--data", DIGITS, "--no-shuffle", "--quiet"]

        def steps(start, count, name, *flags):
            start(*train, f"--steps={count}", "--save", hosts.folder / name,
                  "--log", hosts.folder / f"{name}.log", *flags)

        def processes(*words):
            hosts.run("host1", *hosts.mpirun("-np", "4", "--map-by", "node", slots=2),
                      *words)

        steps(run, 8, "threads", "--save-weights",
              hosts.folder / "threads.safetensors")
        steps(processes, 5, "processes")
        steps(processes, 8, "processes", "--resume", hosts.folder / "processes",
              "--save-weights", hosts.folder / "processes.safetensors")
        same(hosts.folder / "threads.safetensors",
             hosts.folder / "processes.safetensors")
        sameLogs(hosts.folder / "threads.log", hosts.folder / "processes.log")


def noCommonFolder():
    """Each host has a /tmp of its own: refused, and the host named."""
    with Hosts(2) as hosts:
        plan = compiled(hosts.folder, "--tp=2")
        done = hosts.run(
            "host1", *hosts.mpirun("-np", "2", "--map-by", "node"), tool("axrun"),
            plan, "--data", DIGITS, "--steps=2", "--quiet", "--save",
            "/tmp/axrun-own", expect=2)
        messages = [line for line in done.stderr.splitlines()
                    if "axrun: error:" in line]
        if len(messages) != 1 or "on host 'host2'" not in messages[0] or \
                COMMON not in messages[0]:
            raise Failed(done.stderr)


def cutOff(timeout):
    """In the middle of training a host's cable is cut: its name is told, and all
    processes of all hosts end. (mpirun waits for that host for a long time.)"""
    with Hosts(2) as hosts:
        plan = compiled(hosts.folder, "--tp=2")
        log, said = hosts.folder / "log", hosts.folder / "said"
        with open(said, "w") as output:
            hosts.open(
                "host1", *hosts.mpirun("-np", "2", "--map-by", "node"),
                tool("axrun"), plan, "--data", DIGITS, "--steps=1000000",
                "--quiet", "--log", log, f"--timeout={timeout}", stdout=output,
                stderr=subprocess.STDOUT)
        waitUntil(lambda: log.exists() and '"step":2,' in log.read_text(),
                  "a step")
        if len(ranks := ranksOf(plan)) != 2:
            raise Failed(f"ranks: {ranks}")
        since = time.monotonic()
        hosts.cut("host2")
        waitUntil(lambda: not ranksOf(plan), "all ranks are gone",
                  timeout + 5)
        if "process 1 on host host2" not in said.read_text():
            raise Failed(f"{time.monotonic() - since} s: {said.read_text()}")


def cases(every):
    yield "two hosts", sameBits
    yield "no common folder", noCommonFolder
    for timeout in [3] + [10] * every:
        yield f"a cable is cut, {timeout} s", cutOff, timeout
