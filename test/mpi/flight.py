# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Flight records of ranks that are processes."""
import json
import os
import re
import signal
import time

from _jobs import DIGITS, Running, compiled
from cases import Failed, run, scratch, tool


def begin(folder, layout, ranks, *flags):
    job = Running(ranks, tool("axrun"), compiled(folder, layout), "--data", DIGITS,
                  "--steps=1000000", "--quiet", "--log", f"{folder}/log",
                  "--flight-recorder", f"{folder}/records", *flags)
    job.findRanks(ranks)
    job.waitForText(f"{folder}/log", '"step":2,')
    return job


def analyzed(folder, *texts):
    text = run(tool("ax-analyze-flight"), f"{folder}/records").stdout
    for part in texts:
        if part not in text:
            raise Failed(f"expected: {part}\ngot: {text}")
    return text


def fallsOut(number, *says):
    """Those who wait for the rank write, and blame it. The reason alone names it
    where nobody waits, as processes agree on the next step, and where it goes on
    before it ends and waits in what all have come to."""
    with scratch() as folder:
        job = begin(folder, "--tp=2 --dp=2", 4, "--timeout=3")
        os.kill(job.ranks[2], number)
        output = job.end(60)
        job.noneLeft()
        if output.count(f"; what ranks did last is in '{folder}/records'") != 1:
            raise Failed(output)
        text = analyzed(folder, "ranks agree on order and shape", *says)
        blamed = set(re.findall(r"rank (\d+) fell out", text))
        waits = re.search(r"rank \d+ waits for rank 2\b", text) and \
            "rank 2 waits for the end, as all have come" not in text
        # A process that was stopped says so itself.
        if blamed - {"2"} or ((waits or number == signal.SIGSTOP) and not blamed):
            raise Failed(text)


def onRequest():
    with scratch() as folder:
        job = begin(folder, "--tp=2", 2)
        job.process.send_signal(signal.SIGUSR2)
        last = time.monotonic() + 60
        names = []
        while time.monotonic() < last and \
                [f"rank-{i}.jsonl" for i in range(2)] != names:
            time.sleep(0.02)
            names = sorted(name for name in os.listdir(f"{folder}/records")
                           if name.endswith(".jsonl"))
        with open(f"{folder}/log") as log:
            done = len(log.readlines())
        job.waitForText(f"{folder}/log", f'"step":{done + 5},')
        analyzed(folder, "records of 2 of 2 ranks",
                 "ranks 0 and 1, asked by: SIGUSR2",
                 "ranks agree on order and shape")
        runs = set()
        for rank in range(2):
            with open(f"{folder}/records/rank-{rank}.jsonl") as file:
                runs.add(json.loads(file.readline())["run"])
        assert len(runs) == 1, runs
        job.process.send_signal(signal.SIGUSR1)
        output = job.end()
        if job.process.returncode != 130:
            raise Failed(output)


def cases(every):
    yield ("a rank is killed", fallsOut, signal.SIGKILL, "records of 3 of 4 ranks",
           "no record of rank 2", "process 2")
    # mpirun lets it go on before it ends it.
    yield ("a rank is stopped", fallsOut, signal.SIGSTOP,
           "nothing is heard any more from process 2")
    yield "SIGUSR2 to the launcher", onRequest
