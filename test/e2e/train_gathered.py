# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each sample gathers of its own is trained on parts of the batch as on all
of it, with nothing exchanged for it."""
from pathlib import Path

import numpy as np
import onnx

from _onnx_text import model
from _training import axrun
from cases import Failed, run, scratch, tool
from train import states

RANDOM = np.random.default_rng(0)
DATA = {"x": RANDOM.standard_normal((4, 3, 2, 5), np.float32),
        "i": RANDOM.integers(-2, 2, (4, 7, 2)),
        "t": RANDOM.standard_normal((4, 7, 2), np.float32)}


def trained(folder, flags):
    done = run(tool("axopt"), folder / "model.onnx", "--train",
               "--loss=mse(y,t)", "--trainable=w", "--optimizer=sgd(lr=1)",
               *flags.split(), "-o", folder / "plan.mlir")
    axrun(folder / "plan.mlir", "--data", folder / "data.npz", "--steps=1",
          "--save-weights", folder / "out.safetensors")
    return done.stdout, dict(states(folder / "out.safetensors"))["w"]


def parts():
    with scratch() as folder:
        folder = Path(folder)
        onnx.save(model(
            "float[4,3,2,5] x, int64[4,7,2] i", "float[4,7,2] y",
            "h = MatMul(x, w)\ny = GatherND<batch_dims=1>(h, i)",
            "float[5,2] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}"),
            folder / "model.onnx")
        np.savez(folder / "data.npz", **DATA)
        # The gradient of the squared error, by hand.
        w = np.arange(1, 11).reshape(5, 2)
        sample = np.arange(4)[:, None]
        at = DATA["i"]
        rows = DATA["x"][sample, at[..., 0], at[..., 1]]
        error = 2 * (rows @ w - DATA["t"]) / DATA["t"].size
        wanted = w - np.einsum("nmk,nmo->ko", rows, error)
        for flags in "", "--micro-batches=2", "--dp=2", "--tp=2":
            summary, weights = trained(folder, flags)
            if not np.allclose(weights, wanted, rtol=1e-4, atol=1e-4):
                raise Failed(f"{flags}: {weights}, expected {wanted}")
            if "all_gather" in summary:
                raise Failed(f"{flags}: {summary}")


def cases(every):
    yield "GatherND with batch dimensions", parts
