# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that axlaunch starts again, and ranks that come late."""
import contextlib
import os
import random
import signal
import subprocess
import time
from pathlib import Path

from _jobs import DIGITS, childrenOf, compiled, logged, same, sameLogs
from _mpirun import MODULE, launch, mpirun, needMpi
from cases import Failed, run, scratch, tool

RANKS = 4
STEPS = 100  # So many that a rank can be killed long before the last one.


def train(folder, plan, name, steps):
    return [tool("axrun"), plan, "--data", DIGITS, f"--steps={steps}", "--save",
            f"{folder}/{name}", "--save-every=1", "--save-keep=0", "--log",
            f"{folder}/{name}.log", "--save-weights", f"{folder}/{name}.safetensors"]


def ranksBelow(pid):
    """The ranks of the mpirun that this process has started."""
    return {process for launcher in childrenOf(pid)
            for process in childrenOf(launcher, "OMPI_COMM_WORLD_RANK").values()}


def launched(choose, folder, job, disturbances, *flags):
    """Runs axlaunch; each disturbance is what is there when a rank is killed, and what is done
    besides."""
    needMpi()
    said = Path(folder) / "said"
    with open(said, "w") as output:
        process = subprocess.Popen(
            [str(word) for word in (tool("axlaunch"), "--grace=1", *flags, "--", *job)],
            stderr=output, env=os.environ | {"AXRUN_MPI_MODULE": str(MODULE)})

    def waitFor(holds, what):
        last = time.monotonic() + 60
        while not (found := holds()):
            if process.poll() is not None or time.monotonic() > last:
                raise Failed(f"{what}: {said.read_text()}")
            time.sleep(0.002)
        return found

    try:
        gone = set()
        for path, besides in disturbances:
            # Not those that still end because of the last one.
            ranks = waitFor(lambda: len(found := ranksBelow(process.pid) - gone) == RANKS and
                            found, f"there are not {RANKS} ranks")
            waitFor(lambda: os.path.exists(path), f"no {path}")
            besides()
            try:
                os.kill(choose.choice(sorted(ranks)), signal.SIGKILL)
            except ProcessLookupError:
                raise Failed(f"a rank is gone by itself: {said.read_text()}") from None
            gone |= ranks
        process.wait(timeout=200)
    finally:
        endAll(process)
    text = said.read_text()
    if process.returncode:
        raise Failed(f"{process.returncode}: {text}")
    return text


def endAll(process):
    """Also mpirun and ranks, which outlive an axlaunch that is killed."""
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGSTOP)  # It starts nothing again.
    for pid in (*ranksBelow(process.pid), *childrenOf(process.pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.kill()
    process.wait()


def nothing():
    pass


def killed(times):
    """One of four ranks; ends with the bits of an undisturbed run."""
    with scratch() as folder:
        plan = compiled(folder, "--tp=2 --dp=2")
        run(*train(folder, plan, "whole", STEPS))
        choose = random.Random(times)
        # So far from each other that each run saves something.
        at = [STEPS // (times + 1) * i + choose.randint(1, 4) for i in range(times)]
        text = launched(choose, folder,
                        [*mpirun(), "-np", RANKS, *train(folder, plan, "run", STEPS)],
                        [(f"{folder}/run/step-{step}", nothing) for step in at],
                        f"--max-restarts={times}")
        if text.count("axlaunch: restart ") != times:
            raise Failed(text)
        sameLogs(f"{folder}/run.log", f"{folder}/whole.log")
        same(f"{folder}/run.safetensors", f"{folder}/whole.safetensors")


def fewerRanks():
    """A rank is killed, and there is room for two only from then on."""
    with scratch() as folder:
        plan, other = compiled(folder, "--tp=4"), compiled(folder, "--dp=2", name="other")
        run(*train(folder, plan, "whole", STEPS))
        hosts = Path(folder) / "hosts"
        hosts.write_text("localhost slots=4\n")
        launcher = [word for word in mpirun() if word != "--oversubscribe"]
        text = launched(random.Random(STEPS), folder,
                        [*launcher, "--hostfile", hosts, "-np", RANKS,
                         *train(folder, plan, "run", STEPS)],
                        [(f"{folder}/run/step-{STEPS // 3}",
                          lambda: hosts.write_text("localhost slots=2\n"))],
                        "--fallback", other)
        if f"the next one is of '{other}'" not in text:
            raise Failed(text)
        whole, both = ([line["loss"] for line in logged(f"{folder}/{name}.log")]
                       for name in ("whole", "run"))
        if len(both) != STEPS or max(
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
    for times in [1] + [5] * every:
        yield f"axlaunch, a rank is killed {times} times", killed, times
    yield "axlaunch, fewer ranks", fewerRanks
    for seconds in [3] + [30] * every:
        yield f"a rank is {seconds} s late", comesLate, seconds
