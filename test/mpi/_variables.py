# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How tests start processes that know of each other by their environment, as
torchrun and srun start them."""
import os
import random
import signal
import socket
import subprocess
import time
from pathlib import Path

from cases import Failed, needSimulatedGpu

# Of launchers around the tests.
LAUNCHERS = ("OMPI_", "PMIX_", "PMI_", "SLURM_", "TORCHELASTIC_")
OWN = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR",
       "MASTER_PORT", "AXRUN_KEY"}


def clean():
    return {name: value for name, value in os.environ.items()
            if name not in OWN and not name.startswith(LAUNCHERS)}


def freePort():
    """One that nobody has, another one each time; what systems give away is above."""
    for port in random.SystemRandom().sample(range(15001, 32000), 100):
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
    raise Failed("no port is free")


def torchrun(rank, ranks, port):
    return {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank),
            "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port - 1), "TORCHELASTIC_RUN_ID": "none"}


def srun(rank, ranks, port):
    return {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": str(ranks),
            "SLURM_LOCALID": str(rank), "SLURM_STEP_NODELIST": "localhost",
            "SLURM_JOB_ID": str(port), "SLURM_STEP_ID": "0"}


class Job:
    """Processes that go on while the test looks at them. `change` gives what a rank
    has besides in its environment, `only` the ranks that there are."""

    def __init__(self, ranks, *command, launcher=torchrun, change=lambda rank: {},
                 only=None, wrap=()):
        self.port = freePort()
        self.processes = {}
        for rank in range(ranks) if only is None else only:
            words = [str(word) for word in (*wrap, *command)]
            environment = clean() | launcher(rank, ranks, self.port) | change(rank)
            needSimulatedGpu(words, environment)
            self.processes[rank] = subprocess.Popen(
                words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=environment)

    def wait(self, timeout=120):
        """Gives what each has said, and its exit code."""
        last = time.monotonic() + timeout
        self.outputs, self.errors, self.codes = {}, {}, {}
        for rank, process in self.processes.items():
            try:
                self.outputs[rank], self.errors[rank] = process.communicate(
                    timeout=max(0.1, last - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.kill()
                raise Failed(f"rank {rank} is still there after {timeout} s:\n"
                             f"{process.communicate()}") from None
            self.codes[rank] = process.returncode
        return self

    def kill(self):
        for process in self.processes.values():
            process.kill()

    def signal(self, rank, number=signal.SIGKILL):
        self.processes[rank].send_signal(number)

    def waitForText(self, path, text, timeout=60):
        last = time.monotonic() + timeout
        while time.monotonic() < last:
            if Path(path).exists() and text in Path(path).read_text():
                return
            if any(process.poll() is not None for process in self.processes.values()):
                break
            time.sleep(0.02)
        self.kill()
        raise Failed(f"no '{text}' in {path}: {self.wait().errors}")

    def expect(self, code, *texts):
        """All end with the code; one message has the texts."""
        said = "".join(self.errors.values())
        messages = [line for line in said.splitlines() if "axrun: error:" in line]
        if set(self.codes.values()) != {code}:
            raise Failed(f"{self.codes} instead of {code}:\n{said}")
        if len(messages) != (code != 0) or \
                any(text not in message for text in texts for message in messages):
            raise Failed(f"expected once: {texts}\n{said}")


def launch(ranks, *command, code=0, texts=(), timeout=300, **options):
    job = Job(ranks, *command, **options).wait(timeout)
    job.expect(code, *texts)
    return job
