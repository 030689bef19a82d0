# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that die, are stopped, or are asked to end, in the middle of
training."""
import os
import random
import signal
import time

from _jobs import DIGITS, Running, compiled, oneMessage, ranksOf
from _mpirun import BUILD, launch
from cases import Failed, scratch, tool

RUN_FAILED = 8
NOT_FINITE = 9
LONG = "--steps=1000000"


def begin(folder, plan, ranks, *flags):
    """A run that has done some steps."""
    job = Running(ranks, tool("axrun"), plan, "--data", DIGITS, LONG, "--quiet",
                  "--log", f"{folder}/log", *flags)
    job.findRanks(ranks)
    job.waitForText(f"{folder}/log", '"step":2,')
    return job


def checkEnd(job, since, most, *texts):
    output = job.end(most + 30)
    took = time.monotonic() - since
    job.noneLeft()
    if job.process.returncode == 0 or took > most:
        raise Failed(f"code {job.process.returncode} after {took:.1f} s, at most "
                     f"{most}\n{output}")
    if any(text not in output for text in texts):
        raise Failed(f"expected {texts}:\n{output}")
    return took


def killed(rank, times=1):
    with scratch() as folder:
        plan = compiled(folder, "--tp=2 --dp=2")
        for number in range(times):
            os.makedirs(f"{folder}/{number}")
            job = begin(f"{folder}/{number}", plan, 4)
            time.sleep(random.uniform(0, 0.5))
            since = time.monotonic()
            os.kill(job.ranks[rank], signal.SIGKILL)
            # mpirun takes two of these seconds itself.
            checkEnd(job, since, 5, f"process {rank} on host", "axrun: error:")


def stopped(rank, timeout):
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        job = begin(folder, plan, 2, f"--timeout={timeout}")
        since = time.monotonic()
        os.kill(job.ranks[rank], signal.SIGSTOP)
        checkEnd(job, since, timeout + 6, "axrun: error:")


def doesNotEnd(text, layout="--tp=2", **environment):
    """One of two processes, or all but one, stay in MPI's last call."""
    with scratch() as folder:
        plan = compiled(folder, layout)
        ranks = ranksOf(layout)
        job = Running(ranks, tool("axrun"), plan, "--data", DIGITS, "--steps=2",
                      "--timeout=3", **environment,
                      AXRUN_MPI_MODULE=str(BUILD / "test/mpi/libstopped-mpi.so"))
        job.findRanks(ranks)
        output = job.end(30)
        job.noneLeft()
        if job.process.returncode != RUN_FAILED or output.count("error:") != 1 or \
                text not in output:
            raise Failed(f"{job.process.returncode}: {output}")


def notFinite():
    """All find the same, which is no failure that a repeat would mend."""
    with scratch() as folder:
        plan = compiled(folder, "--tp=2", "--optimizer=sgd(lr=1e30)")
        done = launch(2, tool("axrun"), plan, "--data", DIGITS, "--steps=20",
                      "--quiet", expect=NOT_FINITE)
        oneMessage(done, "is no finite number: lower the learning rate")


def goesOn():
    """A process that is stopped for a while is waited for."""
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        job = begin(folder, plan, 2)
        os.kill(job.ranks[1], signal.SIGSTOP)
        time.sleep(2)
        os.kill(job.ranks[1], signal.SIGCONT)
        with open(f"{folder}/log") as log:
            done = len(log.readlines())
        job.waitForText(f"{folder}/log", f'"step":{done + 20},')
        job.process.send_signal(signal.SIGUSR1)
        job.end()


def asked(number, toRank, code):
    """All save after the same step, whoever was asked."""
    with scratch() as folder:
        plan = compiled(folder, "--dp=2")
        job = begin(folder, plan, 2, "--save", f"{folder}/run")
        if toRank is None:
            job.process.send_signal(number)
        else:
            os.kill(job.ranks[toRank], number)
        output = job.end()
        job.noneLeft()
        if job.process.returncode != code or \
                output.count(": go on with --resume=") != 1:
            raise Failed(f"{job.process.returncode}: {output}")
        with open(f"{folder}/log") as log:
            steps = len(log.readlines())
        if not os.path.exists(f"{folder}/run/step-{steps}/manifest.json"):
            raise Failed(f"{steps}: {os.listdir(f'{folder}/run')}")


def withoutLauncher():
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        job = begin(folder, plan, 2)
        job.process.kill()
        job.process.wait()
        job.output = ""
        job.noneLeft()


def cases(every):
    for rank in 0, 2:
        yield f"rank {rank} of 4 is killed", killed, rank
    if every:
        yield "20 ranks are killed", killed, 3, 20
    for rank in 0, 1:
        for timeout in [3] + [10] * every:
            yield f"rank {rank} is stopped, {timeout} s", stopped, rank, timeout
    yield ("a rank is stopped in MPI's end", doesNotEnd,
           "nothing is heard any more from process 1 on host")

    text = "MPI has not ended within 7 s (MPI_Finalize): a process does not come to its end"

    def hangs():
        doesNotEnd(text, AX_TEST_FINALIZE="hang")
    yield "a rank hangs in MPI's end", hangs

    def hangAfter():
        doesNotEnd(text, "--tp=2 --dp=2", AX_TEST_FINALIZE="after")
    yield "all but the first rank hang in MPI's end, which it has left", hangAfter
    yield "a loss that is not finite", notFinite
    yield "a rank is stopped and goes on", goesOn
    yield "SIGUSR1 to the launcher", asked, signal.SIGUSR1, None, 130
    yield "SIGTERM to a rank", asked, signal.SIGTERM, 1, 143
    yield "SIGINT to a rank", asked, signal.SIGINT, 0, 130
    yield "the launcher is killed", withoutLauncher
