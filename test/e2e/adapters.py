# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Adapters (LoRA) are trained beside weights of four bits, which stay so, with the
losses of floats of the same values, in less memory than these take; and beside weights
in bf16."""
import re
from pathlib import Path

import numpy as np

from _adapters import STEPS, samples, save
from _training import close, losses
from cases import Failed, run, scratch, tool

LAYOUTS = [], ["--tp=2"], ["--dp=2"], ["--tp=2", "--micro-batches=2"]


def trained(folder, bits, *flags, evaluate=False, **attributes):
    """The losses of some steps, and the summary of the plan."""
    model, plan, log = (folder / name for name in ("m.onnx", "p.mlir", "log"))
    save(model, bits, **attributes)
    done = run(tool("axopt"), model, "--train", "--loss=mse(y,target)",
               "--optimizer=sgd(lr=20)", "--frozen=*.w", *flags, "-o", plan)
    log.unlink(missing_ok=True)
    data = folder / "data.npz"
    run(tool("axrun"), plan, "--data", data, f"--steps={STEPS}", "--no-shuffle",
        "--log", log, *["--eval", data] * evaluate)
    return losses(log), done.stdout + done.stderr


def agrees():
    with scratch() as folder:
        folder = Path(folder)
        np.savez(folder / "data.npz", **samples())
        wanted, _ = trained(folder, False)
        for flags in LAYOUTS:
            got, summary = trained(folder, True, *flags)
            close(got, wanted, 1e-5, flags)
            if flags:
                continue
            # Both weights are 5 MiB of floats, of which 2 are made at a time.
            (memory,) = re.findall(r"activations ([\d.]+) (K|M)iB, inputs",
                                   summary.partition("program @eval")[0])
            if float(memory[0]) * (1 if memory[1] == "M" else 1 / 1024) > 2.4:
                raise Failed(summary)
        if not wanted[-1] < 0.99 * wanted[0]:
            raise Failed(f"nothing is learnt: {wanted}")


def besideRounded():
    """The gradient of what is rounded to eight bits is that of what comes out."""
    with scratch() as folder:
        folder = Path(folder)
        np.savez(folder / "data.npz", **samples())
        near, _ = trained(folder, True)
        wanted, _ = trained(folder, True, accuracy_level=4)
        close(wanted, near, 1e-2, "rounded")
        if wanted == near:
            raise Failed("nothing is rounded")
        for flags in LAYOUTS[1:]:
            got, _ = trained(folder, True, *flags, accuracy_level=4)
            close(got, wanted, 1e-3, flags)


def inBf16():
    """Frozen weights are rounded at load, and held so: as near to f32 as bf16 is, with
    evaluations by the same weights, on every layout."""
    with scratch() as folder:
        folder = Path(folder)
        np.savez(folder / "data.npz", **samples())
        near, summary = trained(folder, False)
        (whole,) = re.findall(r"weights ([\d.]+) MiB of", summary.partition("@eval")[0])
        wanted, summary = trained(folder, False, "--precision=bf16")
        close(wanted, near, 2e-2, "bf16")
        (half,) = re.findall(r"weights ([\d.]+) MiB of", summary.partition("@eval")[0])
        if not float(half) <= 0.55 * float(whole) or "prepared states" not in summary:
            raise Failed(f"weights of {half} MiB, of {whole}:\n{summary}")
        for flags in [*LAYOUTS, ["--pp=2", "--micro-batches=2"]]:
            got, _ = trained(folder, False, "--precision=bf16", *flags,
                             evaluate=True)
            close(got, wanted, 1e-3, flags)


def cases(every):
    yield "beside four bits", agrees
    yield "beside four bits, rounded", besideRounded
    yield "in bf16", inBf16
