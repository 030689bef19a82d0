# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""axrun under mpirun: outputs, and what is said once."""
import os
import re
import shutil
from pathlib import Path

from _jobs import DIGITS, compiled, oneMessage, ranksOf, same
from _mpirun import BUILD, launch, needMpi
from cases import MODELS, Failed, run, scratch, tool

USAGE, UNSUPPORTED, INPUT_OUTPUT, DIFFERS = 2, 4, 7, 1


def infers(name, layout):
    model = MODELS / name
    with scratch() as folder:
        plan = f"{folder}/plan.mlir"
        run(tool("axopt"), model / "model.onnx", "--test-data", model, "--quiet",
            *layout.split(), "-o", plan)
        command = [tool("axrun"), plan, "--test-data", model, "--rtol=1e-2",
                   "--atol=1e-3", "--iterations=3", "--output"]
        run(*command, f"{folder}/threads.npz")
        done = launch(ranksOf(layout), *command, f"{folder}/processes.npz")
        same(f"{folder}/threads.npz", f"{folder}/processes.npz")
        if done.stderr.count("3 runs: median") != 1:
            raise Failed(done.stderr)
        shown = launch(ranksOf(layout), tool("axrun"), plan, "--random-inputs=1")
        wanted = run(tool("axrun"), plan, "--random-inputs=1")
        if shown.stdout != wanted.stdout:
            raise Failed(f"{shown.stdout}\n{wanted.stdout}")


def core():
    """axrun-core, with a compiled plan."""
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        run(tool("axopt"), "--compile", plan, "-o", f"{folder}/plan.axc")
        weights = [f"{folder}/{name}.safetensors" for name in ("one", "two")]
        flags = [f"{folder}/plan.axc", "--data", DIGITS, "--steps=2", "--quiet"]
        run(tool("axrun-core"), *flags, "--save-weights", weights[0])
        launch(2, tool("axrun-core"), *flags, "--save-weights", weights[1])
        same(*weights)


def refused():
    """One message, of process 0."""
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        data = ["--data", DIGITS, "--steps=2", "--quiet"]
        axrun = tool("axrun")
        for code, text, command in (
                (USAGE, "the plan has 2 ranks, and the job has 3 processes",
                 [3, axrun, plan, *data]),
                (USAGE, "there is no flag '--stepz'", [2, axrun, plan, "--stepz=1"]),
                (USAGE, "--comm=local is for ranks that are threads of one process, "
                 "and there are 2", [2, axrun, plan, *data, "--comm=local"]),
                (INPUT_OUTPUT, "none.mlir", [2, axrun, f"{folder}/none.mlir"]),
                (INPUT_OUTPUT, "none.npz",
                 [2, axrun, plan, "--data", f"{folder}/none.npz", "--steps=1"])):
            oneMessage(launch(*command, expect=code), text)
        oneMessage(launch(2, axrun, plan, *data, expect=UNSUPPORTED,
                          module=BUILD / "test/mpi/libfew-tags-mpi.so"),
                   "the plan exchanges more than this MPI can tell apart: a message "
                   "needs the tag ", ", and there are those up to 100")
        done = launch(2, axrun, "--help")
        if done.stdout.count("runs the ranks of a plan") != 1:
            raise Failed(done.stdout)


def differing():
    """Before the first step, named: whose, and what."""
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        other = compiled(folder, "--dp=2", name="other")
        data = ["--data", DIGITS, "--steps=2", "--quiet", "--log",
                f"{folder}/log"]
        axrun = tool("axrun")
        own = Path(folder) / "own"
        own.mkdir()
        shutil.copy(DIGITS, own / "train.npz")
        content = bytearray((own / "train.npz").read_bytes())
        content[-1] ^= 1
        (own / "train.npz").write_bytes(content)
        model = Path(folder) / "model"
        model.mkdir()

        def together(first, second, *texts):
            done = launch(1, axrun, *first, ":", "-np", 1, axrun, *second,
                          expect=USAGE)
            oneMessage(done, "rank 1 on host '", *texts)
            if Path(f"{folder}/log").exists():
                raise Failed("a step was done")

        together([plan, *data], [other, *data], "another plan than rank 0")
        together([plan, *data], [plan, *data, "--seed=3"],
                 "another command line than rank 0", "--seed=3")
        together([plan, *data], [plan, *data, "--stepz"],
                 "there is no flag '--stepz'")
        # Only one host lacks what processes find each other by.
        done = launch(1, axrun, plan, *data, ":", "-np", 1, "-x",
                      f"AXRUN_MPI_MODULE={folder}/none.so", axrun, plan, *data,
                      expect=USAGE)
        oneMessage(done, "rank 1 on host '", "none.so")


def slurm():
    """srun with a PMI that this MPI does not know: each finds itself alone."""
    needMpi()
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        for rank, messages in ("0", 1), ("1", 0):
            done = run(tool("axrun"), plan, "--random-inputs=1", expect=USAGE,
                       env=os.environ | {"PMI_SIZE": "2", "PMI_RANK": rank})
            if done.stderr.count("2 processes were started, and MPI tells this one of "
                                 "no other: with Slurm give srun --mpi=pmix (srun "
                                 "--mpi=list says what it has), or --mpi=none"
                                 ) != messages or done.stdout:
                raise Failed(done.stderr)
        run(tool("axrun"), plan, "--random-inputs=1",
            env=os.environ | {"SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"})


def differs():
    """Outputs that are not as expected: the code is that of all."""
    with scratch() as folder:
        model = MODELS / "mlp_eager_ts13_dyn"
        plan = f"{folder}/plan.mlir"
        run(tool("axopt"), model / "model.onnx", "--test-data", model, "--quiet",
            "--tp=2", "-o", plan)
        run(tool("axrun"), plan, "--random-inputs=1", "--output", f"{folder}/one.npz")
        launch(2, tool("axrun"), plan, "--random-inputs=2", "--expect",
               f"{folder}/one.npz", expect=DIFFERS)


def compilesOnce():
    """Of the processes of a host that begin together one compiles a kernel: what
    is in the cache is never written again."""
    with scratch() as folder:
        plan = compiled(folder, "--tp=2x2x1")
        done = launch(4, tool("axrun"), plan, "--data", DIGITS, "--steps=1",
                      "--quiet", "--cache-dir", f"{folder}/kernels",
                      "--mlir-timing")
        kernels = len(list(Path(folder).glob("kernels/*.o")))
        counts = [int(count) for count in
                  re.findall(r"kernels compiled: (\d+)", done.stderr)]
        if not kernels or len(counts) != 4 or sum(counts) != kernels:
            raise Failed(f"{kernels} kernels, compiled {counts}\n{done.stderr}")


def cases(every):
    for name in "gpt2_eager_ts17_dyn", "llama_sdpa_ts17_dyn":
        for layout in "--tp=2", "--pp=2", "--dp=2 --tp=2":
            if every or name.startswith("gpt2") or layout == "--tp=2":
                yield f"{name} {layout}", infers, name, layout
    yield "axrun-core", core
    yield "refused", refused
    yield "processes that differ", differing
    yield "a PMI that MPI does not know", slurm
    yield "outputs that differ", differs
    yield "kernels", compilesOnce
