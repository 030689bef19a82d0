# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that compute on cards, of the simulated GPU, and exchange through the
host or by the simulated NCCL."""
import functools
import os

from _flight import fallingOut, fallsOut
from _jobs import DIGITS, compiled, oneMessage, ranksOf, same, sameLogs
from _mpirun import BUILD, launch
from cases import MODELS, Failed, run, scratch, tool

USAGE = 2
CUDA = {"AXRUN_CUDA_PATH": str(BUILD / "test" / "simgpu"), "AXRUN_DEVICE": "cuda",
        "AXRUN_TARGET": "sm_90+sim", "AXRUN_CUDA_ALGORITHMS": "1",
        "SIMGPU_CARDS": "8", "SIMGPU_PATIENCE": "20000"}


def onCards(function, settings, *arguments, **options):
    """What it returns, with an environment for these cards."""
    before = dict(os.environ)
    os.environ.update(CUDA | settings)
    try:
        return function(*arguments, **options)
    finally:
        os.environ.clear()
        os.environ.update(before)


def trains(layout, comm):
    """Bits of threads; groups have two ranks, whose sums have the same in any
    order."""
    with scratch() as folder:
        plan = compiled(folder, layout)
        for name, start in (("threads", run), ("processes", lambda *words: launch(
                ranksOf(layout), *words))):
            onCards(start, {"AXRUN_COMM": comm if start is not run else "local"},
                    tool("axrun"), plan, "--data", DIGITS, "--steps=4",
                    "--no-shuffle", "--quiet", "--log", f"{folder}/{name}.log",
                    "--save", f"{folder}/{name}", "--save-weights",
                    f"{folder}/{name}.safetensors")
        sameLogs(f"{folder}/threads.log", f"{folder}/processes.log")
        same(f"{folder}/threads.safetensors", f"{folder}/processes.safetensors")


def infers(comm):
    model = MODELS / "mlp_eager_ts13_dyn"
    with scratch() as folder:
        run(tool("axopt"), model / "model.onnx", "--test-data", model, "--tp=2",
            "--pp=2", "--quiet", "-o", f"{folder}/plan.mlir")
        onCards(launch, {"AXRUN_COMM": comm}, 4, tool("axrun"),
                f"{folder}/plan.mlir", "--test-data", model, "--rtol=1e-4",
                "--atol=1e-5", "--iterations=3")


def refused():
    """One message, of process 0."""
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        command = [2, tool("axrun"), plan, "--data", DIGITS, "--steps=2", "--quiet"]
        for text, settings, flags in (
                ("--devices: there is no card 9 of device 'cuda'", {},
                 ["--devices=0,9"]),
                ("sees no card", {"SIMGPU_CARDS": "0"}, []),
                ("--comm=nccl is for --device=cuda, not for 'cpu'",
                 {"AXRUN_TARGET": ""}, ["--device=cpu", "--comm=nccl"]),
                ("--comm=nccl: ranks 0 and 1 are both on card 3 of host ", {},
                 ["--devices=3,3", "--comm=nccl"])):
            done = onCards(launch, settings, *command, *flags, expect=USAGE)
            oneMessage(done, text)


def versions():
    """NCCL is to be the same everywhere, and drivers need not be."""
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        # Of the second process alone.
        other = ('[ "$OMPI_COMM_WORLD_RANK" = 0 ] || export {}; exec "$@"')
        for setting, expect in (("SIMGPU_NCCL_VERSION=22807", USAGE),
                                ("SIMGPU_DRIVER=12080", 0)):
            done = onCards(
                launch, {"AXRUN_COMM": "nccl", "SIMGPU_NCCL_VERSION": "22809",
                         "SIMGPU_DRIVER": "13000"}, 2,
                "sh", "-c", other.format(setting), "sh", tool("axrun"), plan,
                "--data", DIGITS, "--steps=2", "--quiet", expect=expect)
            if expect:
                host = os.uname().nodename
                oneMessage(done, f"--comm=nccl: NCCL is 2.28.7 on '{host}', "
                           f"2.28.9 on '{host}', and wants to be the same "
                           "everywhere")


def cases(every):
    for comm in "mpi", "nccl":
        for layout in ("--tp=2", "--dp=2 --zero=3",
                       "--pp=2 --tp=2 --micro-batches=4"):
            if every or layout != "--tp=2":
                yield f"trains {layout} by {comm}", trains, layout, comm
        yield f"infers by {comm}", infers, comm
    yield "refused", refused
    yield "versions", versions
    for name, case in fallingOut().items():
        yield (f"{name} by nccl",
               functools.partial(fallsOut, *case,
                                 moments=20 if every else 1, AXRUN_COMM="nccl",
                                 **CUDA))
