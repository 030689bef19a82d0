# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is said and done on a card (the simulated one) before the first step: what
has no library."""
from cases import MODELS, Failed, run, scratch, tool
from gpu_streams import CUDA

GPT = MODELS / "gpt2_sdpa_dynamo18_static"
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


def cases(every):
    yield "attention without cuDNN", withoutCudnn
    yield "compiled attention without cuDNN", codeWithoutCudnn
