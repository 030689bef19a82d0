# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""--flush-denormals: subnormal numbers are 0 on all threads of all ranks."""
import numpy as np

from _onnx_text import model
from cases import Failed, run, scratch, tool


def flushed(layout, flags):
    """Half of the smallest normal number, in kernels and in products."""
    tiny = np.finfo(np.float32).tiny
    with scratch() as folder:
        with open(f"{folder}/model.onnx", "wb") as file:
            file.write(model(
                "float[64,512] x, float[512,64] w",
                "float[64,512] y, float[64,64] z, float[64,512] s",
                "y = Mul(x, half)\nz = MatMul(x, w)\ns = Add(half, x)",
                "float half = {0.5}").SerializeToString())
        run(tool("axopt"), f"{folder}/model.onnx", *layout.split(), "--quiet",
            "-o", f"{folder}/plan.mlir")
        x = np.full((64, 512), tiny, np.float32)
        w = np.zeros((512, 64), np.float32)
        w[0] = 0.25
        np.savez(f"{folder}/in.npz", x=x, w=w)
        for flag in [], ["--flush-denormals"]:
            run(tool("axrun"), f"{folder}/plan.mlir", "--inputs",
                f"{folder}/in.npz", *flags, *flag, "--output",
                f"{folder}/out.npz")
            out = np.load(f"{folder}/out.npz")
            for name, wanted in ("y", tiny / 2), ("z", tiny / 4), ("s", 0.5):
                wanted = 0 if flag and name != "s" else wanted
                if not (out[name] == np.float32(wanted)).all():
                    raise Failed(f"{flag}: {name} is {out[name]}, not {wanted}")


def cases(every):
    for layout in "", "--dp=2":
        for flags in [], ["--threads-per-rank=2"]:
            yield " ".join(["flushed", layout, *flags]), flushed, layout, flags
