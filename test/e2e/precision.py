# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Narrow contractions, statistics of batches: what --precision and --batchnorm
change, and what not."""
import re
from pathlib import Path

import numpy as np
from onnx import helper

from _gpt import gpt
from _training import logged, small
from cases import Failed, run, scratch, tool
from train import LAYOUTS, PIPELINES


def train(folder, steps, *flags):
    """Loss and gradient norm of each step, and the plan."""
    run(tool("axopt"), f"{folder}/model.onnx", "--train", *flags,
        "-o", f"{folder}/plan.mlir")
    Path(f"{folder}/log").unlink(missing_ok=True)
    run(tool("axrun"), f"{folder}/plan.mlir", "--data", f"{folder}/data.npz",
        "--steps", steps, "--no-shuffle", "--log", f"{folder}/log")
    with open(f"{folder}/plan.mlir") as plan:
        return (np.array([[step["loss"], step["gradient_norm"]]
                          for step in logged(f"{folder}/log")]), plan.read())


def narrow(precision, tolerance, layouts):
    """Near f32, with sums, weights and states of f32."""
    with scratch() as folder:
        gpt(f"{folder}/model.onnx", layers=2, width=64, heads=4, vocabulary=64,
            batch=8, tokens=16)
        tokens = np.random.default_rng(0).integers(0, 64, (80, 16))
        np.savez(f"{folder}/data.npz", input=tokens, labels=tokens)
        flags = ["--loss=cross_entropy(logits,labels)",
                 "--optimizer=adamw(lr=1e-3)"]
        wide, _ = train(folder, 10, *flags)
        for layout in layouts:
            log, plan = train(folder, 10, *flags, f"--precision={precision}",
                              *layout.split())
            if np.array_equal(log, wide):
                raise Failed(f"{precision} changes nothing")
            if not np.allclose(log, wide, rtol=tolerance):
                raise Failed(f"{layout}: {log}, in f32 {wide}")
            if re.search(r"ax.(all_reduce|reduce_scatter).*over {data}.*xb?f16",
                         plan):
                raise Failed(f"{layout}: gradients are summed in {precision}")
            states = set(re.findall(r"ax.state @\S+ : tensor<[0-9x]*(\w+)",
                                    plan))
            if states != {"f32", "i64"}:
                raise Failed(f"{layout}: states of {states}")


def lossScale():
    with scratch() as folder:
        small(f"{folder}/model.onnx",
              [helper.make_node("MatMul", ["input", "w"], ["logits"])],
              {"w": np.eye(8, dtype=np.float32)}, [8, 8])
        np.savez(f"{folder}/data.npz",
                 input=np.tile(np.eye(8, dtype=np.float32), (20, 1)),
                 target=np.full((160, 8), 3000, np.float32))
        logs = []
        for layout in "", "--dp=2", "--tp=2":
            train(folder, 20, "--loss=mse(logits,target)", "--precision=fp16",
                  "--optimizer=adamw(lr=1)", *layout.split())
            logs.append(logged(f"{folder}/log"))
        for log in logs:
            scales = [step["loss_scale"] for step in log]
            skipped = [step.get("skipped", False) for step in log]
            losses = [step["loss"] for step in log]
            count = skipped.index(False)
            if count < 3 or any(skipped[count:]):
                raise Failed(f"skipped: {skipped}")
            if scales != [2.0 ** (16 - min(i, count)) for i in range(20)]:
                raise Failed(f"scales: {scales}")
            if len(set(losses[:count + 1])) > 1 or losses[-1] >= losses[0]:
                raise Failed(f"losses: {losses}")
            # The first step that counts is Adam's first: a stride of lr.
            if abs(losses[count + 1] / losses[0] - (1 - 1 / 3000) ** 2) > 1e-5:
                raise Failed(f"losses: {losses}")
            if scales != [step["loss_scale"] for step in logs[0]]:
                raise Failed("layouts skip other steps")
        np.savez(f"{folder}/data.npz", input=np.eye(8, dtype=np.float32),
                 target=np.zeros((8, 8), np.float32))
        train(folder, 2001, "--loss=mse(logits,target)", "--precision=fp16")
        scales = [step["loss_scale"] for step in logged(f"{folder}/log")]
        if scales != [2.0 ** 16] * 2000 + [2.0 ** 17]:
            raise Failed(f"scales: {scales[-2:]}")


def batchnorm():
    """The batch's statistics only where they are asked for."""
    channels = 4
    with scratch() as folder:
        random = np.random.default_rng(0)
        weights = {name: np.full(channels, value, np.float32) for name, value in
                   (("scale", 1), ("bias", 0), ("mean", 0), ("variance", 1))}
        x = random.normal(3, 2, (32, channels)).astype(np.float32)
        np.savez(f"{folder}/data.npz", input=x, target=np.zeros_like(x))
        centred = (x - x.mean(0)) / x.std(0)
        # Until set 13 the number of outputs is the mode.
        for opset, exported in ((20, 0), (20, 1), (9, 0), (9, 1)):
            names = ["logits"] + ["newMean", "newVariance", "batchMean",
                                  "batchVariance"][:2 if opset == 20 else 4] \
                * exported
            small(f"{folder}/model.onnx",
                  [helper.make_node(
                      "BatchNormalization", ["input", *weights], names,
                      **{"training_mode": exported} if opset == 20 else {})],
                  weights, list(x.shape), opset)
            for mode, wanted in (("train", (centred ** 2).mean()),
                                 ("frozen", (x ** 2).mean())):
                run(tool("axopt"), f"{folder}/model.onnx", "--train",
                    "--loss=mse(logits,target)", f"--batchnorm={mode}", "--trainable=scale",
                    "-o", f"{folder}/plan.mlir")
                with open(f"{folder}/plan.mlir") as file:
                    changes = "ax.store @mean" in file.read()
                if changes != (mode == "train"):
                    raise Failed(f"{mode}: running statistics")
                log = f"{folder}/{opset}-{exported}-{mode}.log"
                run(tool("axrun"), f"{folder}/plan.mlir", "--data",
                    f"{folder}/data.npz", "--steps", 1, "--no-shuffle",
                    "--log", log)
                loss = logged(log)[0]["loss"]
                if abs(loss - wanted) > 1e-3 * wanted:
                    raise Failed(f"{exported} {mode}: {loss}, not {wanted}")


def cases(every):
    layouts = LAYOUTS + PIPELINES if every else [
        "", "--dp=2", "--tp=2", "--dp=2 --zero=3"]
    # Eight bits: 0.4 % a rounding, many of which cancel.
    yield "bf16", lambda: narrow("bf16", 0.02, layouts)
    yield "fp16", lambda: narrow("fp16", 3e-3,
                                 [*layouts, "--pp=2 --micro-batches=2"])
    yield "loss scale", lossScale
    yield "batchnorm", batchnorm
