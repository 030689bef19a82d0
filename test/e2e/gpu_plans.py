# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans on device cuda, on the simulated GPU: compiled for it, and for others."""
import os
import re
from pathlib import Path

from _gpt import swiglu
from cases import MODELS, Failed, run, scratch, tool

MODEL = MODELS / "swiglu_eager_dynamo18_dyn"
DATA = MODEL / "test_data_set_0"
SIMULATED = Path(os.environ["AX_BIN"]).parent / "test" / "simgpu"
CUDA = os.environ | {"AXRUN_CUDA_PATH": str(SIMULATED), "AXRUN_DEVICE": "cuda",
                     "AXRUN_CUDA_ALGORITHMS": "1"}
USAGE, UNSUPPORTED, BAD_PLAN, RUN_FAILED = 2, 4, 5, 8


def plan(folder, *flags, ending="mlir"):
    path = f"{folder}/plan.{ending}"
    run(tool("axopt"), MODEL / "model.onnx", "--test-data", DATA, *flags, "-o",
        path)
    return path


def said(message, *command, expect, environment=CUDA):
    done = run(*command, expect=expect, env=environment)
    if not re.search(message, done.stderr):
        raise Failed(f"expected: {message}\ngot: {done.stderr}")


def compiledPlansRun():
    with scratch() as folder:
        path = plan(folder, "--tp=2", "--compile", "--target=sm_80+sim",
                    ending="axc")
        for name in ("axrun", "axrun-core"):
            said("", tool(name), path, "--random-inputs=1", expect=0)


def plansForOthersAreRefused():
    with scratch() as folder:
        for target, other in (("x86-64-v3", "x86-64-v3"),
                              ("sm_100+sim", r"sm_100\+sim")):
            path = plan(folder, "--compile", f"--target={target}", ending="axc")
            said(f"is for '{other}', and the device runs code for 'sm_90': "
                 "compile it with --target=sm_90", tool("axrun"), path,
                 "--random-inputs=1", expect=UNSUPPORTED)
        text = plan(folder)
        said("plan.mlir: is for 'x86-64-v3', and the device runs code for",
             tool("axrun"), text, "--random-inputs=1", "--target=x86-64-v3",
             expect=UNSUPPORTED)
        said("plan.mlir: is for 'sm_90', and the device runs code for '",
             tool("axrun"), text, "--random-inputs=1", "--target=sm_90",
             "--device=cpu", expect=UNSUPPORTED)


def codeForARealCardIsNotSimulated():
    with scratch() as folder:
        said("there is no object for the simulated card|CUDA_ERROR_INVALID_PTX",
             tool("axrun"), plan(folder), "--random-inputs=1", expect=BAD_PLAN)


def aCardIsNeeded():
    with scratch() as folder:
        path = plan(folder)
        said("device cuda: there is no driver of CUDA", tool("axrun"), path,
             "--random-inputs=1", expect=USAGE,
             environment=CUDA | {"AXRUN_CUDA_PATH": folder})
        said("device cuda: CUDA's driver sees no card", tool("axrun"), path,
             "--random-inputs=1", expect=USAGE,
             environment=CUDA | {"SIMGPU_CARDS": "0"})
        # Nothing is run.
        said("", tool("axrun"), path, "--list-commands", "--target=sm_90",
             expect=0, environment=CUDA | {"SIMGPU_CARDS": "0"})


def aCardThatIsLostEndsTheRun():
    with scratch() as folder:
        path = plan(folder, "--dp=2")
        for failure, text in (
                ("cuLaunchKernel:2:719", "CUDA_ERROR_LAUNCH_FAILED"),
                ("cublasLtMatmul:2:13", "CUBLAS_STATUS_EXECUTION_FAILED")):
            said(rf"rank \d, stage .*{text}", tool("axrun"), path,
                 "--random-inputs=1", expect=RUN_FAILED, environment=CUDA | {
                     "AXRUN_TARGET": "sm_90+sim", "SIMGPU_FAIL": failure})


def memoryIsKnownBefore():
    """What ranks allocate on a card is what they said that they need; a card
    that has less refuses before anything is there."""
    with scratch() as folder:
        model, path = f"{folder}/model.onnx", f"{folder}/plan.mlir"
        swiglu(model, width=64, hidden=64, batch=8)
        train = [model, "--train", "--loss=mse(logits,target)",
                 "--optimizer=adamw(lr=1e-3)", "-o", path]
        for flags in [], ["--tp=2"], ["--dp=2", "--zero=1"], [
                "--pp=2", "--micro-batches=2"]:
            run(tool("axopt"), *train, *flags)

            def start(memory, **options):
                return run(tool("axrun"), path, "--random-inputs=1",
                           env=CUDA | {"AXRUN_TARGET": "sm_90+sim",
                                       "SIMGPU_MEMORY": str(memory)}, **options)

            said = start(1 << 16, expect=RUN_FAILED).stderr
            found = re.search(
                "'cuda' has 64.0 KiB of memory free, and (?:the rank|2 ranks) on "
                r"it needs? (\S+) (Ki|Mi)B: weights \S+ KiB, optimizer \S+ .*; "
                "more ranks on other devices, --zero, --recompute or more "
                "micro-batches take less", said)
            if not found:
                raise Failed(f"{flags}: {said}")
            needed = float(found[1]) * (1 << (10 if found[2] == "Ki" else 20))
            start(int(0.95 * needed), expect=RUN_FAILED)
            start(int(1.05 * needed))


def theCpuDoesProductsWithoutCublas():
    with scratch() as folder:
        said = run(tool("axrun"), plan(folder), "--random-inputs=1",
                   env=CUDA | {"AXRUN_TARGET": "sm_90+sim",
                               "SIMGPU_FAIL": "cublasLtCreate:1:1"}).stderr
    if not re.search(
            r"device 'cuda' lacks matmul: the CPU does it, between a download "
            r"and an upload \(device cuda does not compute matmul .*: the "
            r"cuBLASLt that is there does not start: cublasLtCreate: CUBLAS_",
            said):
        raise Failed(said)


def nothingIsDoneByTheHost(name, *flags):
    with scratch() as folder:
        path, model = f"{folder}/plan.mlir", MODELS / name
        run(tool("axopt"), model / "model.onnx", "--test-data", model, *flags,
            "-o", path)
        run(tool("axrun"), path, "--test-data", model, "--no-host-fallback",
            env=CUDA | {"AXRUN_TARGET": "sm_90+sim"})


def cases(every):
    for case in (compiledPlansRun, plansForOthersAreRefused,
                 codeForARealCardIsNotSimulated, aCardIsNeeded,
                 aCardThatIsLostEndsTheRun, memoryIsKnownBefore,
                 theCpuDoesProductsWithoutCublas):
        yield case.__name__, case
    for name in "bert_eager_ts14_dyn", "gpt2_eager_ts17_dyn":
        for flags in [], ["--tp=2"]:
            yield (f"{name} needs no host {' '.join(flags)}",
                   nothingIsDoneByTheHost, name, *flags)
