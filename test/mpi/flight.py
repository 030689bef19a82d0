# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Flight records of ranks that are processes."""
import json
import os
import signal
import time

from _flight import analyzed, begin, fallingOut, fallsOut
from cases import Failed, scratch


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
    for name, case in fallingOut().items():
        yield name, fallsOut, *case
    yield "SIGUSR2 to the launcher", onRequest
