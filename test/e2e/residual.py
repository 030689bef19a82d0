# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Residual networks in 16 bits: what goes from block to block is rounded once, for
all who read it; beside f32, on several layouts, and on a simulated card."""
import os
import re
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "bench"))
import networks

from _training import logged
from cases import Failed, run, scratch, tool

LAYOUTS = ["--tp=2", "--dp=2 --zero=1", "--pp=2",
           "--recompute=full", "--tp=2x2x1"]
# Of the loss and the gradient's norm; statistics of few images pass it on.
MOST = {"bf16": 4e-2, "fp16": 1e-2}
CARD = os.environ | {
    "AXRUN_CUDA_PATH": str(Path(tool("axrun")).parents[1] / "test/simgpu"),
    "AXRUN_CUDA_ALGORITHMS": "1", "SIMGPU_CAPABILITY": "90",
    "AXRUN_TARGET": "sm_90+cudnn+sim"}
STEPS = 4


def train(folder, logits, flags, *more, env=None):
    run(tool("axopt"), f"{folder}/model.onnx", "--train", "--quiet",
        f"--loss=cross_entropy({logits},labels)", "--batchnorm=train",
        "--optimizer=sgd(lr=1e-2)", *flags, "-o", f"{folder}/plan.mlir")
    Path(f"{folder}/log").unlink(missing_ok=True)
    run(tool("axrun"), f"{folder}/plan.mlir", "--data", f"{folder}/data.npz",
        "--steps", STEPS, "--no-shuffle", "--log", f"{folder}/log", *more, env=env)
    return np.array([[step["loss"], step["gradient_norm"]]
                     for step in logged(f"{folder}/log")])


def near(precision, layouts):
    with scratch() as folder:
        graph = networks.resnet50(8, 32, 8, (1, 2), norms=True)
        graph.save(Path(folder) / "model.onnx")
        random = np.random.default_rng(0)
        np.savez(f"{folder}/data.npz",
                 x=random.normal(size=(8 * STEPS, 3, 32, 32)).astype(np.float32),
                 labels=random.integers(0, 1000, 8 * STEPS))
        logits = graph.outputs[0]
        wide = train(folder, logits, [])
        narrow = [f"--precision={precision}"]
        for layout in ["", *layouts]:
            got = train(folder, logits, [*narrow, *layout.split()])
            if np.array_equal(got, wide):
                raise Failed(f"{layout}: {precision} changes nothing")
            if not np.allclose(got, wide, rtol=MOST[precision]):
                raise Failed(f"{layout}: {got}, in f32 {wide}")
            if not layout:
                isRounded(Path(f"{folder}/plan.mlir").read_text(), precision)
        got = train(folder, logits, narrow, "--device=cuda", "--devices=0",
                    "--no-host-fallback", env=CARD)
        if not np.allclose(got, wide, rtol=MOST[precision]):
            raise Failed(f"on a card: {got}, in f32 {wide}")


def isRounded(plan, precision):
    """Activations behind sums, and the pool, are in 16 bits in the plan; of the
    three blocks the last one's, which no convolution reads, is f32."""
    step = plan[plan.index("ax.program @main"):]
    step = step[:step.index("ax.program", 1)]
    kind = {"bf16": "bf16", "fp16": "f16"}[precision]
    wide = re.findall(r"ax.unary relu .* -> tensor<[0-9x]*(\w+)", step)
    if wide.count(kind) != 3 or wide.count("f32") != 7:
        raise Failed(f"activations are of {wide}")
    if not re.search(rf"ax.pool max .* -> tensor<[0-9x]*{kind}", step):
        raise Failed("the pool is not rounded")


def cases(every):
    yield "residual bf16", near, "bf16", LAYOUTS if every else LAYOUTS[:3]
    yield "residual fp16", near, "fp16", LAYOUTS[2:]
