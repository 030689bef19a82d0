# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""--tf32: products on a GPU, here the simulated one, round their factors."""
import os
from pathlib import Path

import numpy as np

from _onnx_text import model
from cases import Failed, run, scratch, tool

SIMGPU = Path(tool("axrun")).parents[1] / "test/simgpu"


def rounded():
    with scratch() as folder:
        with open(f"{folder}/model.onnx", "wb") as file:
            file.write(model("float[64,512] x, float[512,64] w",
                             "float[64,64] y",
                             "y = MatMul(x, w)").SerializeToString())
        run(tool("axopt"), f"{folder}/model.onnx", "--quiet", "-o",
            f"{folder}/plan.mlir")
        random = np.random.default_rng(7)
        x = random.random((64, 512), np.float32)
        w = random.random((512, 64), np.float32)
        np.savez(f"{folder}/in.npz", x=x, w=w)
        exact = x.astype(np.float64) @ w.astype(np.float64)
        for flags, low, high in ([], 0, 1e-6), (["--tf32"], 1e-6, 1e-3):
            run(tool("axrun"), f"{folder}/plan.mlir", "--device=cuda",
                "--no-host-fallback", "--inputs", f"{folder}/in.npz", *flags,
                "--output", f"{folder}/out.npz",
                env=dict(os.environ, AXRUN_CUDA_PATH=str(SIMGPU),
                         AXRUN_CUDA_ALGORITHMS="1"))
            error = np.abs(np.load(f"{folder}/out.npz")["y"] / exact - 1).max()
            if not low <= error <= high:
                raise Failed(f"{flags}: the largest relative error is {error}")


def cases(every):
    # Neither is built without CUDA's headers.
    if (SIMGPU / "libcublasLt.so.13").exists():
        yield "rounded", rounded
