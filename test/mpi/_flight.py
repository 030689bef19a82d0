# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranks that are processes fall out, and what the others wrote of it."""
import os
import random
import re
import signal
import time

from _jobs import DIGITS, Running, compiled
from cases import Failed, run, scratch, tool


def begin(folder, layout, ranks, *flags, **environment):
    job = Running(ranks, tool("axrun"), compiled(folder, layout), "--data", DIGITS,
                  "--steps=1000000", "--quiet", "--log", f"{folder}/log",
                  "--flight-recorder", f"{folder}/records", *flags, **environment)
    job.findRanks(ranks)
    job.waitForText(f"{folder}/log", '"step":2,')
    return job


def analyzed(folder, *texts):
    text = run(tool("ax-analyze-flight"), f"{folder}/records").stdout
    for part in texts:
        if part not in text:
            raise Failed(f"expected: {part}\ngot: {text}")
    return text


def fallsOut(number, *says, moments=1, **environment):
    """In training that goes on, at any moment."""
    for _ in range(moments):
        fallsOutOnce(number, says, environment)


def fallsOutOnce(number, says, environment):
    """Those who wait for the rank write, and blame it. The reason alone names it
    where nobody waits, as processes agree on the next step, and where it goes on
    before it ends and waits in what all have come to."""
    with scratch() as folder:
        timeout = 3
        job = begin(folder, "--tp=2 --dp=2", 4, f"--timeout={timeout}", **environment)
        time.sleep(random.uniform(0, 0.2))
        since = time.monotonic()
        os.kill(job.ranks[2], number)
        output = job.end(60)
        # mpirun takes two of these seconds itself.
        if (took := time.monotonic() - since) > timeout + 7:
            raise Failed(f"ended after {took} s: {output}")
        job.noneLeft()
        if output.count(f"; what ranks did last is in '{folder}/records'") != 1:
            raise Failed(output)
        text = analyzed(folder, "ranks agree on order and shape", *says)
        blamed = set(re.findall(r"rank (\d+) fell out", text))
        waits = re.search(r"rank \d+ waits for rank 2\b", text) and \
            "rank 2 waits for the end, as all have come" not in text
        # A process that was stopped says so itself, if it is let go on before it ends;
        # others may wait in what it has come to.
        allCame = "no rank fell out that records tell of: all have come" in text
        stopped = number == signal.SIGSTOP and not allCame
        if blamed - {"2"} or ((waits or stopped) and not blamed):
            raise Failed(text)


def fallingOut():
    return {
        "a rank is killed": (signal.SIGKILL, "records of 3 of 4 ranks",
                             "no record of rank 2", "process 2"),
        # mpirun lets it go on before it ends it.
        "a rank is stopped": (signal.SIGSTOP,
                              "nothing is heard any more from process 2"),
    }
