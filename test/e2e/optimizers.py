# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Optimizers that PyTorch's reference runs (train.py) do not have, beside the
formulas of their papers in f64, on every kind of layout."""
import numpy as np
from onnx import helper

from cases import run, scratch, tool
from _training import axrun, close, losses, small

STEPS, BATCH, WIDTH = 12, 8, 16


def lion(lr, weightDecay, beta1=0.9, beta2=0.99):
    """Chen et al., arXiv 2302.06675, program 1."""
    moments = {}

    def update(name, w, g):
        m = moments.get(name, np.zeros_like(w))
        direction = np.sign(beta1 * m + (1 - beta1) * g)
        moments[name] = beta2 * m + (1 - beta2) * g
        return w - lr * (direction + weightDecay * w)
    return update


# Name: flag, its formula and what that is given.
RULES = {
    "lion": ("lion", lion, 1e-4, 0),
    "lion with options": ("lion(lr=3e-2,betas=0.8:0.95,weight_decay=0.2)",
                          lion, 3e-2, 0.2, 0.8, 0.95),
}
LAYOUTS = ["", "--tp=2", "--dp=2 --zero=3", "--dp=2 --zero=1 --micro-batches=2"]


def expected(update, weights, data):
    """Losses of a Linear beside targets, mean of squares."""
    w, b = (weight.astype(np.float64) for weight in weights)
    losses = []
    for step in range(STEPS):
        part = slice(step * BATCH, (step + 1) * BATCH)
        x, y = data["input"][part].astype(np.float64), data["target"][part]
        difference = x @ w + b - y
        losses.append((difference ** 2).mean())
        slope = 2 * difference / difference.size
        w, b = update("w", w, x.T @ slope), update("b", b, slope.sum(0))
    return losses


def follows(layout, flag, rule, *options, axopt=None):
    random = np.random.default_rng(1)
    weights = [random.normal(size=size).astype(np.float32)
               for size in ((WIDTH, WIDTH), (WIDTH,))]
    data = {name: random.normal(size=(STEPS * BATCH, WIDTH)).astype(np.float32)
            for name in ("input", "target")}
    with scratch() as folder:
        small(f"{folder}/model.onnx",
              [helper.make_node("Gemm", ["input", "w", "b"], ["logits"])],
              {"w": weights[0], "b": weights[1]}, [BATCH, WIDTH])
        np.savez(f"{folder}/data.npz", **data)
        run(axopt or tool("axopt"), f"{folder}/model.onnx", "--train",
            "--loss=mse(logits,target)", f"--optimizer={flag}", *layout.split(),
            "--quiet", "-o", f"{folder}/plan.mlir")
        axrun(f"{folder}/plan.mlir", "--data", f"{folder}/data.npz", "--steps",
              STEPS, "--no-shuffle", "--quiet", "--log", f"{folder}/log.jsonl")
        close(losses(f"{folder}/log.jsonl"),
              expected(rule(*options), weights, data), 1e-5, "losses")


def cases(every):
    for name, rule in RULES.items():
        for layout in LAYOUTS:
            yield f"{name} {layout}".strip(), follows, layout, *rule
