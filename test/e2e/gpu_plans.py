# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans on device cuda, on the simulated GPU: compiled for it, and for others."""
import os
import re
from pathlib import Path

import numpy as np

from _gpt import Graph, gpt, swiglu
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


def outputsOf(path, environment, *flags):
    run(tool("axrun-core"), path, "--random-inputs=1", "--output",
        f"{path}.npz", *flags, env=environment)
    return np.load(f"{path}.npz")


def theBestOfSeveralTargetsRuns():
    """Of a file for several targets the same as of one that is for the best of
    them alone, on each device; code for a real card tells when it is taken."""
    cpu = os.environ | {"AXRUN_DEVICE": "cpu"}
    with scratch() as folder:
        def forTargets(targets):
            return plan(folder, "--tp=2", "--compile", f"--target={targets}",
                        "--quiet", ending=f"{targets}.axc")

        every = forTargets("x86-64,sm_80+sim,sm_90+sim,x86-64-v2,sm_100")
        for alone, environment in (
                ("sm_80+sim", CUDA | {"SIMGPU_CAPABILITY": "89"}),
                ("sm_90+sim", CUDA), ("x86-64-v2", cpu)):
            wanted = outputsOf(forTargets(alone), environment)
            got = outputsOf(every, environment)
            for name in wanted.files:
                np.testing.assert_array_equal(got[name], wanted[name])
        said("there is no object behind the text, which is for real cards",
             tool("axrun"), every, "--random-inputs=1", expect=BAD_PLAN,
             environment=CUDA | {"SIMGPU_CAPABILITY": "100"})
        # Of two cards the older one decides.
        two = CUDA | {"SIMGPU_CARDS": "2", "SIMGPU_CAPABILITY": "100,80"}
        for cards, code in ("0,1", 0), ("1,1", 0), ("0,0", BAD_PLAN):
            said("", tool("axrun"), every, "--random-inputs=1",
                 f"--devices={cards}", expect=code, environment=two)
        # What it explains is the plan.
        told = run(tool("axopt"), every, "--explain").stdout
        if told != run(tool("axopt"), forTargets("x86-64"), "--explain").stdout:
            raise Failed(told)
        few = forTargets("sm_100+sim,x86-64-v2,sm_90")
        said(r"sm_90\.axc: is for 'sm_100\+sim', 'x86-64-v2', 'sm_90', and the "
             r"device runs code for 'sm_80(\+cudnn)?': compile it with "
             "--target=sm_80",
             tool("axrun"), few, "--random-inputs=1", expect=UNSUPPORTED,
             environment=CUDA | {"SIMGPU_CAPABILITY": "80"})
        said(r"is for 'sm_80', 'sm_90', and the device runs code for '.*': "
             "compile it with --target=x86-64", tool("axrun"),
             forTargets("sm_80,sm_90"), "--random-inputs=1",
             expect=UNSUPPORTED, environment=cpu)


def plansForOthersAreRefused():
    with scratch() as folder:
        for target, other in (("x86-64-v3", "x86-64-v3"),
                              ("sm_100+sim", r"sm_100\+sim")):
            path = plan(folder, "--compile", f"--target={target}", ending="axc")
            said(f"is for '{other}', and the device runs code for "
                 r"'sm_90(\+cudnn)?': compile it with --target=sm_90",
                 tool("axrun"), path,
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
        swiglu(model, width=128, hidden=128, batch=8)
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
                "card 0 of device 'cuda' has 64.0 KiB of memory free, and (?:the "
                r"rank|2 ranks) on it needs? (\S+) (Ki|Mi)B: weights \S+ KiB, "
                r"optimizer \S+ .*; more ranks on other --devices, --zero, "
                "--recompute or more micro-batches take less", said)
            if not found:
                raise Failed(f"{flags}: {said}")
            needed = float(found[1]) * (1 << (10 if found[2] == "Ki" else 20))
            start(int(0.95 * needed), expect=RUN_FAILED)
            start(int(1.05 * needed))


def timingTakesWhatIsToSpare():
    """A card with room for what ranks allocate, and not for operands beside
    that, times no product, though much is free when it is prepared: weights are
    not there yet."""
    with scratch() as folder:
        g = Graph("products")
        h = g.op("MatMul", g.input("input", np.float32, 8, 64), g.weight(64, 64))
        for _ in range(2):
            h = g.op("MatMul", h, g.weight(64, 1 << 14))
            h = g.op("MatMul", h, g.weight(1 << 14, 64))
        g.output(h)
        model, path = f"{folder}/model.onnx", f"{folder}/plan.mlir"
        g.save(model)
        for flags in [], ["--dp=2"]:
            run(tool("axopt"), model, *flags, "-o", path)

            def start(memory, algorithms, **options):
                return run(tool("axrun"), path, "--random-inputs=1",
                           env=CUDA | {"AXRUN_TARGET": "sm_90+sim",
                                       "AXRUN_CUDA_ALGORITHMS": str(algorithms),
                                       "AXOPT_CACHE": f"{folder}/{memory}",
                                       "SIMGPU_COUNTS": f"{folder}/counts",
                                       "SIMGPU_MEMORY": str(memory)}, **options)

            def products(*options):
                start(*options)
                counts = Path(f"{folder}/counts").read_text().splitlines()
                return sum(int(line.split()[1]) for line in counts
                           if line.startswith("cublasLtMatmul "))

            def refused(memory):
                return "of memory free, and" in start(
                    memory, 1, expect=range(256)).stderr
            low, needed = 1 << 16, 1 << 25
            while needed - low > 1 << 10:
                middle = (low + needed) // 2
                low, needed = (middle, needed) if refused(middle) else \
                    (low, middle)
            # The smallest product has 20 KiB.
            tight = needed + (30 << 10)
            untimed, few, many = (products(tight, 1), products(tight, 8),
                                  products(2 * needed, 8))
            if not few == untimed < many:
                raise Failed(f"{flags}: {few} products where there is too "
                             f"little memory to time any of {untimed}, and "
                             f"{many} else")


def ranksAreOnTheirCards():
    """Outputs are the same on one card and on several, in whatever order; a card
    with too little memory says how many ranks are on it."""
    with scratch() as folder:
        path = plan(folder, "--dp=2", "--tp=2")
        results = []
        for number, cards in enumerate(["0,0,0,0", "0,0,1,1", "1,0,0,1",
                                        "2,0,1,3", None]):
            run(tool("axrun"), path, "--test-data", DATA, "--output",
                f"{folder}/{number}.npz",
                *([f"--devices={cards}"] if cards else []),
                env=CUDA | {"AXRUN_TARGET": "sm_90+sim", "SIMGPU_CARDS": "4"})
            results.append(np.load(f"{folder}/{number}.npz"))
        for other in results[1:]:
            for name in other.files:
                np.testing.assert_array_equal(other[name], results[0][name])
        # Room for one rank, which needs 240 KiB, and not for two.
        little = CUDA | {"AXRUN_TARGET": "sm_90+sim", "SIMGPU_CARDS": "2",
                         "SIMGPU_MEMORY": str(300 << 10)}
        for cards, says in [
                ("0,1,1,1", "card 1 of device 'cuda' has .* and 3 ranks on it"),
                ("0,0,0,1", "card 0 of device 'cuda' has .* and 3 ranks on it"),
                ("0,1,0,1", "card 0 of device 'cuda' has .* and 2 ranks on it")]:
            said(says, tool("axrun"), path, "--random-inputs=1",
                 f"--devices={cards}", expect=RUN_FAILED,
                 environment=little)


def cardsAreThere():
    with scratch() as folder:
        path = plan(folder, "--tp=2")
        two = CUDA | {"SIMGPU_CARDS": "2", "SIMGPU_CAPABILITY": "90,75"}
        for cards, says in [
                ("0,2", "--devices: there is no card 2 of device 'cuda', which "
                 "has 2, from 0"),
                ("0", "plan.mlir: --devices has 1 card, and the plan 2 ranks: "
                 "give one for each rank"),
                ("0,1", "card 1: Simulated GPU is an sm_75, and sm_80 is "
                 "needed; --devices says which cards ranks use")]:
            said(says, tool("axrun"), path, "--random-inputs=1",
                 f"--devices={cards}", expect=USAGE, environment=two)
        said("--devices: there is no card 1 of device 'cuda', which has only "
             "card 0", tool("axrun"), path, "--random-inputs=1",
             "--devices=0,1", expect=USAGE, environment=two | {"SIMGPU_CARDS": "1"})
        # Code for the newer one does not run on both.
        said("plan.mlir: is for 'sm_90', and the device runs code for 'sm_80",
             tool("axrun"), path, "--random-inputs=1", "--target=sm_90",
             expect=UNSUPPORTED, environment=two | {"SIMGPU_CAPABILITY": "90,80"})
        said("", tool("axrun"), path, "--random-inputs=1",
             "--target=sm_80+sim", expect=0,
             environment=two | {"SIMGPU_CAPABILITY": "90,80"})


def memoryIsPredicted():
    """What axopt says of a plan for a GPU is what a rank asks for there."""
    def bytesOf(number, unit):
        return float(number) * {"": 1, "Ki": 1 << 10, "Mi": 1 << 20}[unit or ""]

    with scratch() as folder:
        model, path = f"{folder}/model.onnx", f"{folder}/plan.axc"
        swiglu(model, width=64, hidden=64, batch=8)
        attends = f"{folder}/attends.onnx"
        gpt(attends, layers=1, width=64, heads=8, vocabulary=64, batch=2, tokens=128)
        # With cuDNN no scores of attention are in memory.
        for source, target, *flags in (
                [model, "sm_90+sim"], [model, "sm_90+sim", "--dp=2", "--zero=1"],
                [model, "sm_90+sim", "--micro-batches=2"],
                [attends, "sm_90+cudnn+sim", "--precision=bf16"]):
            told = run(tool("axopt"), source, "--train", "--loss=mse(logits,target)",
                       *flags, "--compile", f"--target={target}", "-o",
                       path).stderr
            peak = re.search(r"program @main.*?peak memory (\S+) (\w*)B", told,
                             re.DOTALL)
            needed = re.search(
                r"(?:the rank on it needs|(\d+) ranks on it need) (\S+) (\w*)B:",
                run(tool("axrun"), path, "--random-inputs=1", expect=RUN_FAILED,
                    env=CUDA | {"SIMGPU_MEMORY": str(1 << 14)}).stderr)
            predicted = int(needed[1] or 1) * bytesOf(peak[1], peak[2])
            if not 0.95 < bytesOf(needed[2], needed[3]) / predicted < 1.05:
                raise Failed(f"{flags}: {needed[0]}, predicted {peak[0]}")
            if "machine 'NVIDIA H100'" not in told:
                raise Failed(told)


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
    for case in (compiledPlansRun, theBestOfSeveralTargetsRuns, plansForOthersAreRefused,
                 codeForARealCardIsNotSimulated, aCardIsNeeded,
                 aCardThatIsLostEndsTheRun, memoryIsKnownBefore, memoryIsPredicted,
                 timingTakesWhatIsToSpare,
                 ranksAreOnTheirCards, cardsAreThere,
                 theCpuDoesProductsWithoutCublas):
        yield case.__name__, case
    for name in "bert_eager_ts14_dyn", "gpt2_eager_ts17_dyn":
        for flags in [], ["--tp=2"]:
            yield (f"{name} needs no host {' '.join(flags)}",
                   nothingIsDoneByTheHost, name, *flags)
