# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Many steps by more processes than there are cores: all go on, and take no more memory."""
import signal
import time
from pathlib import Path

from _jobs import DIGITS, Running, compiled
from cases import Failed, scratch, tool

RANKS = 8
SLACK = 4096  # kB: 1 % of so little memory is less than a heap's next piece.


def waitForSteps(job, log, count):
    """Whoever does no step for a minute is stuck."""
    done, since = 0, time.monotonic()
    while done < count:
        lines = Path(log).read_bytes().count(b"\n") if Path(log).exists() else 0
        if lines > done:
            done, since = lines, time.monotonic()
        if job.process.poll() is not None or time.monotonic() > since + 60:
            raise Failed(f"after {done} of {count} steps:\n{job.end()}")
        time.sleep(0.05)


def inMemory(pid):
    """In kB; without pages of files, which the kernel takes and gives as it likes."""
    sizes = [int(line.split()[1])
             for line in Path(f"/proc/{pid}/status").read_text().splitlines()
             if line.startswith(("RssAnon:", "RssShmem:"))]
    if not sizes:
        raise Failed(f"process {pid} is gone")
    return sum(sizes)


def memoryOf(job):
    return {rank: inMemory(pid) for rank, pid in job.ranks.items()}


def lasts(steps):
    with scratch() as folder:
        plan, log = compiled(folder, "--tp=2x2x2"), f"{folder}/log"
        job = Running(RANKS, tool("axrun"), plan, "--data", DIGITS, "--steps=1000000",
                      "--quiet", "--log", log)
        job.findRanks(RANKS)
        waitForSteps(job, log, 100)
        before = memoryOf(job)
        waitForSteps(job, log, steps)
        after = memoryOf(job)
        job.process.send_signal(signal.SIGUSR1)
        output = job.end()
        hasGrown = any(after[rank] > 1.01 * before[rank] + SLACK for rank in before)
        if job.process.returncode != 130 or hasGrown:
            raise Failed(f"code {job.process.returncode}, {before} kB, then {after} kB\n"
                         f"{output}")


def cases(every):
    for steps in [300] + [10000] * every:
        yield f"{steps} steps by {RANKS} processes", lasts, steps
