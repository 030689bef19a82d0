# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that axlaunch starts again, and ranks that come late."""
import os
import random
import signal
import subprocess
import time
from pathlib import Path

from _jobs import DIGITS, childrenOf, compiled, logged, same, sameLogs
from _mpirun import MODULE, MPIRUN, launch, needMpi
from cases import Failed, run, scratch, tool


def train(folder, plan, name, steps):
    return [tool("axrun"), plan, "--data", DIGITS, f"--steps={steps}", "--save",
            f"{folder}/{name}", "--save-every=1", "--save-keep=0", "--log",
            f"{folder}/{name}.log", "--save-weights", f"{folder}/{name}.safetensors"]


def ranksBelow(pid):
    """The ranks of the mpirun that this process has started."""
    return {process for launcher in childrenOf(pid)
            for process in childrenOf(launcher, "OMPI_COMM_WORLD_RANK").values()}


def launched(job, disturbances, *flags):
    """Runs axlaunch; each disturbance is what is there when a rank is killed, and what is done
    besides."""
    needMpi()
    process = subprocess.Popen(
        [str(word) for word in (tool("axlaunch"), "--grace=1", *flags, "--", *job)],
        stderr=subprocess.PIPE, text=True,
        env=os.environ | {"AXRUN_MPI_MODULE": str(MODULE)})
    try:
        gone = set()
        for path, besides in disturbances:
            last = time.monotonic() + 60
            # Not those that still end because of the last one.
            while not os.path.exists(path) or not (
                    ranks := ranksBelow(process.pid) - gone):
                if process.poll() is not None or time.monotonic() > last:
                    raise Failed(f"no {path}: {process.communicate()[1]}")
                time.sleep(0.002)
            besides()
            os.kill(random.choice(sorted(ranks)), signal.SIGKILL)
            gone |= ranks
        text = process.communicate(timeout=200)[1]
    finally:
        process.kill()
    if process.returncode:
        raise Failed(f"{process.returncode}: {text}")
    return text


def nothing():
    pass


def killed(times, steps):
    """One of four ranks; ends with the bits of an undisturbed run."""
    with scratch() as folder:
        plan = compiled(folder, "--tp=2 --dp=2")
        run(*train(folder, plan, "whole", steps))
        # So far from each other that each run saves something.
        at = [7 * i + random.randint(1, 4) for i in range(times)]
        text = launched([*MPIRUN, "-np", "4", *train(folder, plan, "run", steps)],
                        [(f"{folder}/run/step-{step}", nothing) for step in at],
                        f"--max-restarts={times}")
        if text.count("axlaunch: restart ") != times:
            raise Failed(text)
        sameLogs(f"{folder}/run.log", f"{folder}/whole.log")
        same(f"{folder}/run.safetensors", f"{folder}/whole.safetensors")


def fewerRanks(steps):
    """A rank is killed, and there is room for two only from then on."""
    with scratch() as folder:
        plan, other = compiled(folder, "--tp=4"), compiled(folder, "--dp=2", name="other")
        run(*train(folder, plan, "whole", steps))
        hosts = Path(folder) / "hosts"
        hosts.write_text("localhost slots=4\n")
        launcher = [word for word in MPIRUN if word != "--oversubscribe"]
        text = launched([*launcher, "--hostfile", hosts, "-np", "4",
                         *train(folder, plan, "run", steps)],
                        [(f"{folder}/run/step-{steps // 3}",
                          lambda: hosts.write_text("localhost slots=2\n"))],
                        "--fallback", other)
        if f"the next one is of '{other}'" not in text:
            raise Failed(text)
        whole, both = ([line["loss"] for line in logged(f"{folder}/{name}.log")]
                       for name in ("whole", "run"))
        if len(both) != steps or max(
                abs(a - b) / a for a, b in zip(whole, both)) > 1e-4:
            raise Failed(f"{whole}\n{both}")


def comesLate(seconds):
    """The others wait for it."""
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        words = [tool("axrun"), plan, "--data", DIGITS, "--steps=5", "--quiet", "--log"]
        run(*words, f"{folder}/threads.log")
        since = time.monotonic()
        launch(1, *words, f"{folder}/late.log", ":", "-np", 1, "sh", "-c",
               f'sleep {seconds}; exec "$@"', "sh", *words, f"{folder}/late.log")
        if time.monotonic() - since < seconds:
            raise Failed("nobody was late")
        sameLogs(f"{folder}/late.log", f"{folder}/threads.log")


def cases(every):
    for times, steps in [(1, 12)] + [(5, 40)] * every:
        yield f"axlaunch, a rank is killed {times} times", killed, times, steps
    for steps in [9] + [40] * every:
        yield f"axlaunch, {steps} steps with fewer ranks", fewerRanks, steps
    for seconds in [3] + [30] * every:
        yield f"a rank is {seconds} s late", comesLate, seconds
