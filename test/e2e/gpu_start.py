# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is said and done on a card (the simulated one) before the first step: what
has no library, memory that is not there, code that is made for the card."""
import re
from functools import partial
from pathlib import Path

import numpy as np

from _training import compiled, part
from cases import MODELS, Failed, run, scratch, tool
from gpu_graphs import reference
from gpu_streams import CUDA
from nccl import gathering

GPT = MODELS / "gpt2_sdpa_dynamo18_static"
RUN_FAILED = 8
OLD = {"SIMGPU_CUDNN_VERSION": "91500"}
WHY = "the cuDNN that is there is of version 9.15, and 9.16 is needed"


def attention(path, *flags):
    run(tool("axopt"), GPT / "model.onnx", "--quiet", *flags, "-o", path)
    return path


def once(done, text):
    if done.stderr.count(text) != 1:
        raise Failed(f"expected once: {text}\ngot: {done.stderr}")


def never(done):
    if "cuDNN" in done.stderr:
        raise Failed(done.stderr)


def withoutCudnn():
    """A plan as text is compiled without it: which attention, and why."""
    with scratch() as folder:
        path = attention(f"{folder}/plan.mlir", "--precision=bf16", "--tp=2")

        def listed(*flags, **settings):
            return run(tool("axrun"), path, "--list-commands", *flags,
                       env=CUDA | {"AXRUN_TARGET": ""} | settings)

        done = listed(**OLD)
        once(done, "attention of 16 bits is made of products and a softmax, in ")
        once(done, ": " + WHY)
        never(listed())
        # Who says so has it so.
        never(listed("--target=sm_90", **OLD))
        path = attention(path)
        never(listed(**OLD))


def codeWithoutCudnn():
    """Of a compiled plan the code that does without is run."""
    with scratch() as folder:
        path = attention(f"{folder}/plan.axc", "--precision=bf16", "--compile",
                         "--target=sm_90+sim,sm_90+cudnn+sim")
        start = [tool("axrun-core"), path, "--random-inputs=1"]
        env = CUDA | {"AXRUN_TARGET": ""}
        once(run(*start, env=env | OLD),
             f"of '{path}' the code for 'sm_90+sim' is run, not that for "
             f"'sm_90+cudnn+sim': {WHY}")
        never(run(*start, env=env))
        attention(path, "--precision=bf16", "--compile", "--target=sm_90+sim")
        never(run(*start, env=env | OLD))


def exactMemory(make, settings, *flags, kinds=("scratch",)):
    """A card with what is said to be needed has enough, of libraries, too: nothing
    is allocated that was not counted."""
    with scratch() as folder:
        command = [tool("axrun"), *make(folder), *flags]

        def start(memory, **options):
            return run(*command, env=CUDA | settings | {
                "SIMGPU_MEMORY": str(memory)}, **options)

        low, high, said = 1 << 12, 1 << 26, ""
        while high - low > 64:
            middle = (low + high) // 2
            done = start(middle, expect=(0, RUN_FAILED))
            if done.returncode == 0:
                high = middle
            elif "of memory free, and" in done.stderr:
                low, said = middle, done.stderr
            else:
                raise Failed(f"{middle} bytes: {done.stderr}")
        for kind in kinds:
            if not re.search(rf"of memory free, .*[:,] {kind} \d", said):
                raise Failed(f"no {kind}: {said}")


def trains(folder, *flags):
    np.savez(f"{folder}/data.npz", **part("train", slice(0, 64)))
    return [compiled(folder, *flags), "--data", f"{folder}/data.npz", "--steps=1"]


def predicts(model, *options):
    def make(folder):
        run(tool("axopt"), MODELS / model / "model.onnx", "--test-data",
            MODELS / model, "--quiet", *options, "-o", f"{folder}/plan.mlir")
        return [f"{folder}/plan.mlir", "--random-inputs=1"]
    return make


# Parts of an inner dimension, which NCCL's calls do not have, are copied.
GATHERED = gathering("64x64", "[{}, {data}]", "[{}, {}]")


def gathers(folder):
    Path(f"{folder}/plan.mlir").write_text(GATHERED)
    return [f"{folder}/plan.mlir", "--random-inputs=1"]


def attends(folder):
    return [reference(folder, "gpt2_tied", "input=1x32", "--precision=bf16"),
            "--data", f"{folder}/data.npz", "--steps=1"]


def loadedTogether():
    """Code of many kernels is made by several threads, of each once; ranks of a
    card share it."""
    with scratch() as folder:
        plan, *rest = trains(folder, "--dp=2")
        counts = {}
        for comm, cards in ("local", "1"), ("nccl", "2"):
            file = Path(f"{folder}/{comm}")
            run(tool("axrun"), plan, *rest, f"--comm={comm}", env=CUDA | {
                "SIMGPU_CARDS": cards, "SIMGPU_COUNTS": str(file),
                "SIMGPU_JIT": "10", "SIMGPU_PATIENCE": "20000"})
            counts[comm] = {name: int(count) for name, count in (
                line.split() for line in file.read_text().splitlines())}
        one, two = (counts[comm]["cuModuleLoadDataEx"]
                    for comm in ("local", "nccl"))
        # By `local` kernels reduce, too.
        if not 20 < two / 2 < one < 1.2 * two / 2:
            raise Failed(f"{one} modules on a card, and {two} on two")
        for count in counts.values():
            if count["loadsTogether"] < 2:
                raise Failed(f"{count['loadsTogether']} at the same time")


def cases(every):
    yield "attention without cuDNN", withoutCudnn
    yield "compiled attention without cuDNN", codeWithoutCudnn
    cudnn = {"AXRUN_TARGET": "sm_90+cudnn+sim"}
    yield "memory of products", exactMemory, trains, {}
    yield ("memory of convolutions", exactMemory,
           predicts("convnet_eager_ts17_dyn", "--dim", "batch=4"), cudnn)
    yield "memory of attention", exactMemory, attends, cudnn
    yield "memory of exchanges", partial(
        exactMemory, kinds=["copies of exchanges"]), gathers, {
            "SIMGPU_CARDS": "2", "SIMGPU_PATIENCE": "20000"}, "--comm=nccl"
    yield "kernels loaded together", loadedTogether
