# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Residual networks in 16 bits: what goes from block to block is rounded once, for
all who read it; beside f32, on several layouts, and on a simulated card."""
import re
import sys
from pathlib import Path

import numpy as np
import onnx

sys.path.append(str(Path(__file__).parents[1] / "bench"))
import networks

from _training import logged
from cases import Failed, run, scratch, tool
from sixteen_bits import CARD

# The cut goes through a block: both stages read what comes in.
LAYOUTS = ["--pp=2 --cut=CUT", "--tp=2", "--dp=2 --zero=1", "--pp=2",
           "--recompute=full", "--recompute=selective", "--tp=2x2x1"]
# Of the loss and the gradient's norm; statistics of few images pass it on.
MOST = {"bf16": 4e-2, "fp16": 1e-2}
STEPS = 4


def train(folder, logits, flags, *more, env=None, norms="train"):
    run(tool("axopt"), f"{folder}/model.onnx", "--train", "--quiet",
        f"--loss=cross_entropy({logits},labels)",
        *([f"--batchnorm={norms}"] if norms else []),
        "--optimizer=sgd(lr=1e-2)", *flags, "-o", f"{folder}/plan.mlir")
    Path(f"{folder}/log").unlink(missing_ok=True)
    run(tool("axrun"), f"{folder}/plan.mlir", "--data", f"{folder}/data.npz",
        "--steps", STEPS, "--no-shuffle", "--log", f"{folder}/log", *more, env=env)
    return np.array([[step["loss"], step["gradient_norm"]]
                     for step in logged(f"{folder}/log")])


def made(folder, norms):
    """Writes a model and data; returns the name of what it gives."""
    graph = networks.resnet50(8, 32, 8, (1, 2), norms=norms)
    graph.save(Path(folder) / "model.onnx")
    random = np.random.default_rng(0)
    np.savez(f"{folder}/data.npz",
             x=random.normal(size=(8 * STEPS, 3, 32, 32)).astype(np.float32),
             labels=random.integers(0, 1000, 8 * STEPS))
    return graph.outputs[0]


def recomputed():
    """Convolutions with biases: what is made again is what was there."""
    with scratch() as folder:
        logits = made(folder, norms=False)
        logs = [train(folder, logits, ["--precision=bf16", *flags], norms="")
                for flags in ([], ["--recompute=full"], ["--recompute=selective"])]
        for log in logs[1:]:
            if not np.allclose(log, logs[0], rtol=1e-6):
                raise Failed(f"{log}, without computing again {logs[0]}")


def near(precision, layouts):
    with scratch() as folder:
        logits = made(folder, norms=True)
        convolutions = [node.name for node in
                        onnx.load(f"{folder}/model.onnx").graph.node
                        if node.op_type == "Conv"]
        wide = train(folder, logits, [])
        narrow = [f"--precision={precision}"]
        for layout in ["", *layouts]:
            # The second of three of the last block.
            flags = layout.replace("CUT", convolutions[-2]).split()
            got = train(folder, logits, [*narrow, *flags])
            if np.array_equal(got, wide):
                raise Failed(f"{layout}: {precision} changes nothing")
            if not np.allclose(got, wide, rtol=MOST[precision]):
                raise Failed(f"{layout}: {got}, in f32 {wide}")
            if not layout:
                isRounded(Path(f"{folder}/plan.mlir").read_text(), precision)
        train(folder, logits, narrow, norms="train:2")
        isRounded(Path(f"{folder}/plan.mlir").read_text(), precision)
        got = train(folder, logits, narrow, "--device=cuda", "--devices=0",
                    "--no-host-fallback", env=CARD)
        if not np.allclose(got, wide, rtol=MOST[precision]):
            raise Failed(f"on a card: {got}, in f32 {wide}")


def isRounded(plan, precision):
    """Activations behind sums are in 16 bits in the plan, and so is what the pool
    gives; of the three blocks the last one's, which no convolution reads, is f32."""
    step = plan[plan.index("ax.program @main"):]
    step = step[:step.index("ax.program", 1)]
    kind = {"bf16": "bf16", "fp16": "f16"}[precision]
    wide = re.findall(r"ax.unary relu .* -> tensor<[0-9x]*(\w+)", step)
    if wide.count(kind) != 2 or wide.count("f32") != 8:
        raise Failed(f"activations are of {wide}")
    pool = re.search(r"(%\d+) = ax.pool max ", step).group(1)
    if not re.search(rf"ax.cast {pool} .* -> tensor<[0-9x]*{kind}", step):
        raise Failed("what the pool gives is not rounded")


def cases(every):
    yield "residual bf16", near, "bf16", LAYOUTS if every else LAYOUTS[:4]
    yield "residual fp16", near, "fp16", LAYOUTS if every else LAYOUTS[3:]
    yield "residual recomputed", recomputed
