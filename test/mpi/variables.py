# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes without MPI, which know of each other by the variables of torchrun and
srun: the bits of threads, and who is missing, dies, or is a stranger."""
import os
import random
import signal
import socket
import threading
import time

from _jobs import DIGITS, compiled, ranksOf, same, sameLogs
from _variables import Job, clean, launch, srun, torchrun
from cards import CUDA
from cases import MODELS, Failed, run, scratch, tool

USAGE, RUN_FAILED = 2, 8


def training(folder, name, plan, *flags):
    return [tool("axrun"), plan, "--data", DIGITS, "--steps=4", "--no-shuffle",
            "--quiet", "--log", f"{folder}/{name}.log", "--save-weights",
            f"{folder}/{name}.safetensors", *flags]


def trains(layout, launcher, cards=None):
    """Groups on cards have two ranks, whose sums have the same bits in any order."""
    with scratch() as folder:
        plan = compiled(folder, layout)
        device = {} if cards is None else CUDA
        run(*training(folder, "threads", plan), env=clean() | device)
        launch(ranksOf(layout), *training(folder, "processes", plan),
               launcher=launcher,
               change=lambda rank: device | ({"AXRUN_COMM": cards} if cards else {}))
        sameLogs(f"{folder}/threads.log", f"{folder}/processes.log")
        same(f"{folder}/threads.safetensors", f"{folder}/processes.safetensors")


def infers(layout, change):
    model = MODELS / "mlp_eager_ts13_dyn"
    with scratch() as folder:
        plan = f"{folder}/plan.mlir"
        run(tool("axopt"), model / "model.onnx", "--test-data", model, "--quiet",
            *layout.split(), "-o", plan)
        command = [tool("axrun"), plan, "--test-data", model, "--rtol=1e-2",
                   "--atol=1e-3", "--iterations=3", "--output"]
        run(*command, f"{folder}/threads.npz", env=clean() | change)
        job = launch(ranksOf(layout), *command, f"{folder}/processes.npz",
                     change=lambda rank: change)
        same(f"{folder}/threads.npz", f"{folder}/processes.npz")
        if "".join(job.errors.values()).count("3 runs: median") != 1:
            raise Failed(str(job.errors))
        shown = launch(ranksOf(layout), tool("axrun"), plan, "--random-inputs=1",
                       change=lambda rank: change)
        wanted = run(tool("axrun"), plan, "--random-inputs=1", env=clean() | change)
        if "".join(shown.outputs.values()) != wanted.stdout:
            raise Failed(f"{shown.outputs}\n{wanted.stdout}")


def refused():
    """Before the first step; one message, of process 0."""
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        data = [tool("axrun"), plan, "--data", DIGITS, "--steps=2", "--quiet"]
        launch(3, *data, code=USAGE,
               texts=["the plan has 2 ranks, and the job has 3 processes"])
        launch(2, *data, "--comm=local", code=USAGE,
               texts=["leave it out, or give --comm=tcp"])
        launch(2, *data, "--comm=mpi", code=USAGE,
               texts=["communicator 'mpi' is for processes that a launcher"])
        launch(2, *data, "--stepz=1", code=USAGE,
               texts=["there is no flag '--stepz'"])
        launch(2, *data, code=USAGE, change=lambda rank: {"WORLD_SIZE": "many"},
               texts=["WORLD_SIZE=many in the environment: expected a number"])
        launch(2, *data, code=USAGE, change=lambda rank: {"MASTER_PORT": "70000"},
               texts=["MASTER_PORT=70000 in the environment: expected a number"])
        launch(2, *data, code=USAGE, launcher=srun,
               change=lambda rank: {"SLURM_STEP_NODELIST": ""},
               texts=["set MASTER_ADDR to its host, or give --control HOST:PORT"])
        launch(2, *data, code=USAGE, only=[1],
               change=lambda rank: {"MASTER_ADDR": "no.such.host.invalid"},
               texts=["the host 'no.such.host.invalid' of process 0: "])
        launch(2, *data, code=USAGE, only=[1], change=lambda rank: {"RANK": "2"},
               texts=["RANK=2 in the environment: expected a number from 0 to 1"])


def otherSize():
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        launch(2, tool("axrun"), plan, "--data", DIGITS, "--steps=2", "--quiet",
               code=USAGE,
               change=lambda rank: {"WORLD_SIZE": "3"} if rank == 1 else {},
               texts=["says that it is number 1 of 3, and process 0 is one of 2"])


def alone():
    """What is left over in an environment starts nothing."""
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        for number, left in enumerate((
                {"RANK": "1"}, {"RANK": "1", "WORLD_SIZE": "2"},
                {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"},
                {"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_JOB_ID": "7"})):
            run(*training(folder, number, plan), env=clean() | left, timeout=60)


def neverComes(rank):
    """The other one says for whom it waits, and does not wait for ever."""
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        job = Job(2, tool("axrun"), plan, "--data", DIGITS, "--steps=2", "--quiet",
                  "--timeout=11", only=[1 - rank]).wait(60)
        job.expect(RUN_FAILED, "process 1 of 2 did not join within 11 s" if rank
                   else f"process 0 does not answer at 127.0.0.1, port {job.port}, "
                   "within 11 s, to process 1 on host ")
        note = ("axrun: note: waiting for the other processes, of which RANK=0 and "
                f"WORLD_SIZE=2 in the environment tells, at 127.0.0.1, port {job.port}"
                "; without these variables all ranks run in one process")
        if rank and job.errors[0].count(note) != 1:
            raise Failed(job.errors[0])


def otherKey():
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        job = Job(2, tool("axrun"), plan, "--data", DIGITS, "--steps=2", "--quiet",
                  "--timeout=4", change=lambda rank: {"AXRUN_KEY": f"secret {rank}"})
        said = "".join(job.wait(60).errors.values())
        advice = ("AXRUN_KEY in the environment, or else the job's number there, has "
                  "to be the same for all processes")
        expected = ["process 1 of 2 did not join within 4 s; who showed another key was "
                    "turned away: " + advice,
                    "; who listened at 127.0.0.1 has another key: " + advice]
        if set(job.codes.values()) != {RUN_FAILED} or "secret" in said or \
                said.count(advice) != 2 or \
                not all(text in said for text in expected):
            raise Failed(f"{job.codes}: {said}")
        launch(2, tool("axrun"), plan, "--data", DIGITS, "--steps=2", "--quiet",
               change=lambda rank: {"AXRUN_KEY": "secret"})


def portInUse():
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            launch(2, tool("axrun"), plan, "--random-inputs=1", only=[0], code=USAGE,
                   change=lambda rank: {"MASTER_PORT": str(port - 1)},
                   texts=["the control channel cannot listen at 127.0.0.1:"
                          f"{port}: Address already in use"])


def begin(folder, plan, ranks, *flags, **options):
    job = Job(ranks, tool("axrun"), plan, "--data", DIGITS, "--steps=1000000",
              "--quiet", "--log", f"{folder}/log", *flags, **options)
    job.waitForText(f"{folder}/log", '"step":2,')
    return job


def killed(rank, change):
    """All others end within seconds, and the first of them says whom they miss."""
    with scratch() as folder:
        job = begin(folder, compiled(folder, "--tp=2 --dp=2"), 4,
                    change=lambda rank: change)
        since = time.monotonic()
        job.signal(rank)
        job.wait(60)
        took = time.monotonic() - since
        said = "".join(job.errors.values())
        codes = {job.codes[other] for other in range(4) if other != rank}
        if took > 10 or codes != {RUN_FAILED} or \
                f"process {rank} on host" not in said or \
                said.count("axrun: error:") != 1:
            raise Failed(f"{took:.1f} s, {job.codes}:\n{said}")


def stopped():
    with scratch() as folder:
        job = begin(folder, compiled(folder, "--tp=2"), 2, "--timeout=3")
        since = time.monotonic()
        job.signal(1, signal.SIGSTOP)
        output, error = job.processes[0].communicate(timeout=60)
        took = time.monotonic() - since
        job.kill()
        job.wait()
        if took > 12 or "nothing is heard any more from process 1" not in error:
            raise Failed(f"{took:.1f} s: {error}")


def asked(number, code):
    """A launcher hands a signal on to all: they save after the same step."""
    with scratch() as folder:
        job = begin(folder, compiled(folder, "--dp=2"), 2, "--save", f"{folder}/run")
        for rank in 0, 1:
            job.signal(rank, number)
        job.wait(60)
        said = "".join(job.errors.values())
        with open(f"{folder}/log") as log:
            steps = len(log.readlines())
        if set(job.codes.values()) != {code} or \
                said.count(": go on with --resume=") != 1 or \
                not os.path.exists(f"{folder}/run/step-{steps}/manifest.json"):
            raise Failed(f"{job.codes}: {said}")


def makeNoise(ports, seconds):
    noise = random.Random(5)
    last = time.monotonic() + seconds
    greeting = b"\xff\0\0\0\0\0\0\0\1\x7f\3\1PLAIN"
    while time.monotonic() < last:
        with socket.socket() as stranger:
            stranger.settimeout(1)
            try:
                stranger.connect(("127.0.0.1", noise.choice(ports)))
                stranger.sendall(noise.choice((b"", greeting, b"axtcp001"))
                                 + noise.randbytes(noise.randrange(200)))
            except OSError:
                time.sleep(0.01)


def strangers():
    """Who is at the port before and during a run has no part in it."""
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        run(*training(folder, "threads", plan), env=clean())
        job = Job(2, *training(folder, "processes", plan), only=[0])
        noise = threading.Thread(target=makeNoise, args=([job.port], 4))
        noise.start()
        time.sleep(2)
        late = Job(2, *training(folder, "processes", plan), only=[1],
                   change=lambda rank: {"MASTER_PORT": str(job.port - 1)})
        noise.join()
        for each in job, late:
            each.wait()
            each.expect(0)
        same(f"{folder}/threads.safetensors", f"{folder}/processes.safetensors")


def cases(every):
    for launcher in torchrun, srun:
        for layout in ("--tp=2", "--tp=2 --pp=2", "--dp=2 --zero=3", "--tp=2x2x2"):
            if every or launcher == torchrun or layout == "--tp=2":
                yield (f"trains {layout} by {launcher.__name__}", trains, layout,
                       launcher)
    yield "trains on cards by tcp", trains, "--tp=2", torchrun, ""
    for layout in "--dp=2 --zero=3", "--pp=2 --tp=2 --micro-batches=4":
        yield f"trains {layout} on cards by nccl", trains, layout, torchrun, "nccl"
    yield "infers", infers, "--tp=2 --pp=2", {}
    yield "infers by nccl", infers, "--tp=2 --pp=2", CUDA | {"AXRUN_COMM": "nccl"}
    yield "refused", refused
    yield "another number of processes", otherSize
    yield "variables that are left over", alone
    for rank in 0, 1:
        yield f"rank {rank} never comes", neverComes, rank
        yield f"rank {rank} is killed", killed, rank, {}
    yield "a rank on a card is killed", killed, 2, CUDA | {"AXRUN_COMM": "nccl"}
    yield "a rank is stopped", stopped
    yield "a port that is in use", portInUse
    yield "SIGTERM to all", asked, signal.SIGTERM, 143
    yield "SIGUSR1 to all", asked, signal.SIGUSR1, 130
    yield "another key", otherKey
    yield "strangers", strangers
