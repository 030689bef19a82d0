# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole runs of which one call of the driver, or of cuBLASLt, fails: each ends, with
one message that says where, or gives what it gives undisturbed."""
import io
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from _gpt import swiglu
from cases import ROOT, Failed, run, scratch, tool
from gpu_plans import CUDA, RUN_FAILED

FUNCTION = re.compile(r"^AX_\w+_FUNCTION\((\w+)", re.M)
# Which of a function's calls fails.
CALLS = 1, 2, 3, 5, 8, 13, 21, 34, 89
# CUDA_ERROR_INVALID_VALUE, _OUT_OF_MEMORY, _DEINITIALIZED, _ILLEGAL_ADDRESS,
# _LAUNCH_FAILED, _SYSTEM_NOT_READY, _UNKNOWN; CUBLAS_STATUS_ALLOC_FAILED,
# _EXECUTION_FAILED, _INTERNAL_ERROR.
CODES = {"cu": (1, 2, 4, 700, 719, 802, 999), "cublasLt": (3, 13, 14)}
# Without the first call of these nothing can be right.
NEEDED = ("cuInit cuDevicePrimaryCtxRetain cuMemAlloc cuModuleLoadDataEx "
          "cuStreamCreateWithPriority cuLaunchKernel cuMemcpyHtoDAsync "
          "cuMemcpyDtoHAsync cuStreamWaitEvent cuEventRecord cublasLtMatmul work"
          ).split()
# They come before there are ranks.
BEFORE = re.compile("device '?cuda")
RANK = re.compile(r"rank \d")
# What a rank did then: of a step, which command, or before which one.
DOING = re.compile(r"rank \d, stage '[^']*', (preparing|exchanging outputs|"
                   r"(before )?'[^']*' \()")


def functions():
    names = [name for file in ("DriverFunctions.def", "CublasLtFunctions.def")
             for name in FUNCTION.findall((ROOT / "runtime/Cuda" / file).read_text())]
    # Messages are made of these.
    return [name for name in names if not re.search("Get(Error|Status)", name)] + [
        "work"]


def isSame(given, expected, isRounded):
    """Whether outputs have the same bits, or are within rounding."""
    if not isRounded:
        return given == expected
    with np.load(io.BytesIO(given)) as a, np.load(io.BytesIO(expected)) as b:
        return set(a) == set(b) and all(
            np.allclose(a[name], b[name], rtol=1e-4, atol=1e-6) for name in a)


def isFaulty(done, name, number, expected, given):
    """What is wrong with how a disturbed run ended; empty: nothing."""
    # Of a rank that prepares memory goes with the error, though a copy may be on its
    # way: to free it waits for that on a card, which the simulated one refuses.
    if "simgpu: " in done.stderr and "preparing" not in done.stderr:
        return "the driver had to refuse a call"
    if done.returncode == 0:
        if name in NEEDED and number == 1:
            return "an error was passed over"
        # Without cuBLASLt the CPU does products, in an order of its own.
        isRounded = "lacks matmul" in done.stderr
        return "" if isSame(given, expected, isRounded) \
            else "other numbers than undisturbed"
    if done.returncode < 0 or done.returncode > RUN_FAILED:
        return f"it ended with {done.returncode}"
    errors = [line for line in done.stderr.splitlines() if "error: " in line]
    if len(errors) != 1:
        return f"{len(errors)} messages"
    if not (RANK.search(errors[0]) or BEFORE.search(errors[0])):
        return "no rank is named"
    if RANK.search(errors[0]) and not DOING.search(errors[0]):
        return "what the rank did is not named"
    return ""


def endsClearly(order, flags):
    with scratch() as folder:
        model, plan = f"{folder}/model.onnx", f"{folder}/plan.axc"
        swiglu(model, width=16, hidden=16, batch=4)
        run(tool("axopt"), model, "--train", "--loss=mse(logits,target)",
            "--optimizer=adamw(lr=1e-3)", *flags, "--compile",
            "--target=sm_90+sim", "-o", plan)

        def start(failure, number):
            """A run of a few steps, and its outputs."""
            output = Path(folder) / f"{number}.npz"
            command = [tool("axrun-core"), plan, "--random-inputs=3", "--output",
                       output, "--timeout=20"]
            environment = CUDA | {
                "SIMGPU_ORDER": order, "AXRUN_CUDA_ALGORITHMS": "1"} | (
                {"SIMGPU_FAIL": failure} if failure else {})
            done = run(*command, env=environment, timeout=120,
                       expect=range(-64, 256))
            given = output.read_bytes() if output.exists() else None
            output.unlink(missing_ok=True)
            return done, given

        done, expected = start("", 0)
        if done.returncode or not expected:
            raise Failed(done.stderr)

        def disturbed(job):
            number, (name, call, code) = job
            done, given = start(f"{name}:{call}:{code}", 1 + number)
            why = isFaulty(done, name, call, expected, given)
            return why and f"{name}:{call}:{code}: {why}\n{done.stderr}"

        jobs = []
        for name in functions():
            codes = CODES["cublasLt" if name.startswith("cublasLt") else "cu"]
            jobs += [(name, call, codes[(len(jobs) + i) % len(codes)])
                     for i, call in enumerate(CALLS)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            faults = [fault for fault in pool.map(disturbed, enumerate(jobs))
                      if fault]
        if faults:
            raise Failed(f"{len(faults)} of {len(jobs)}:\n" + "\n".join(faults[:9]))


def cases(every):
    for order in "eager", "lazy":
        for flags in ["--dp=2", "--zero=1"], ["--pp=2", "--micro-batches=2"]:
            yield f"training {' '.join(flags)}, {order}", endsClearly, order, flags
