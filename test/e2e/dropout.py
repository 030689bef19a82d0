# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dropout is the same on every layout, and whenever it is computed."""
from pathlib import Path

import numpy as np
from onnx import helper

from _gpt import gpt
from _training import logged, small
from cases import Failed, run, scratch, tool

LAYOUTS = ["--dp=2", "--tp=2", "--tp=2x2x2", "--dp=2 --tp=2 --zero=3",
           "--tp=2 --sequence-parallel", "--recompute=selective",
           "--tp=2 --recompute=full", "--micro-batches=2",
           "--pp=2 --micro-batches=4",
           "--dp=2 --tp=2 --pp=2 --micro-batches=2 --schedule=zero-bubble"]


def losses(folder, seed=1):
    Path(f"{folder}/log").unlink(missing_ok=True)
    run(tool("axrun"), f"{folder}/plan.mlir", "--data", f"{folder}/data.npz",
        "--steps", 3, "--no-shuffle", "--seed", seed, "--log", f"{folder}/log")
    return np.array([[step["loss"], step["gradient_norm"]]
                     for step in logged(f"{folder}/log")])


def transformer(layouts):
    with scratch() as folder:
        model = f"{folder}/model.onnx"
        gpt(model, layers=2, width=32, heads=4, vocabulary=64, batch=8,
            tokens=16)
        random = np.random.default_rng(0)
        # The same samples in every step.
        tokens = np.tile(random.integers(0, 64, (8, 16)), (3, 1))
        np.savez(f"{folder}/data.npz", input=tokens, labels=tokens)

        def compiled(*flags):
            run(tool("axopt"), model, "--train", "--optimizer=sgd(lr=0)",
                "--loss=cross_entropy(logits,labels)", *flags,
                "-o", f"{folder}/plan.mlir")
            return losses(folder)

        plain = compiled()
        if not np.allclose(plain, plain[0], rtol=1e-5):
            raise Failed(f"steps without dropout differ: {plain}")
        alone = compiled("--dropout=0.2")
        steps = alone[:, 0]
        if len({plain[0, 0], *steps}) != 4:
            raise Failed(f"steps drop alike: {plain[0, 0]}, {steps}")
        if np.array_equal(alone, losses(folder, seed=2)):
            raise Failed("the seed does not matter")
        for layout in layouts:
            split = compiled("--dropout=0.2", *layout.split())
            if not np.allclose(split, alone, rtol=1e-4):
                raise Failed(f"{layout}: {split}, on one rank {alone}")


SPLITS = "", "--dp=2", "--tp=2", "--dp=2 --zero=3", "--micro-batches=2"


def randomLosses(nodes, weights, target, layouts=SPLITS):
    """Of two steps with the same samples of ones, on one rank: the same on all
    layouts. And that of evaluation."""
    with scratch() as folder:
        small(f"{folder}/model.onnx", nodes, weights, [64, 64])
        data = f"{folder}/data.npz"
        np.savez(data, input=np.ones((128, 64), np.float32),
                 target=np.full((128, 64), target, np.float32))
        results = []
        for number, flags in enumerate(layouts):
            plan, log = f"{folder}/plan.mlir", f"{folder}/{number}.log"
            run(tool("axopt"), f"{folder}/model.onnx", "--train",
                "--loss=mse(logits,target)", "--optimizer=sgd(lr=0)",
                *flags.split(), "-o", plan)
            run(tool("axrun"), plan, "--data", data, "--steps", 2,
                "--eval", data, "--log", log)
            lines = logged(log)
            results.append([line["loss"] for line in lines if "loss" in line]
                           + [line["eval_loss"] for line in lines
                              if "eval_loss" in line])
            if not np.allclose(results[-1], results[0], rtol=1e-5):
                raise Failed(f"losses of {results}")
    *steps, evaluation = results[0]
    return steps, evaluation


def imported():
    """A model exported in training mode, its dropout before the weight."""
    steps, evaluation = randomLosses(
        [helper.make_node("Dropout", ["input", "ratio", "training"], ["x"]),
         helper.make_node("MatMul", ["x", "w"], ["logits"])],
        {"ratio": np.float32(0.25), "training": np.array(True),
         "w": np.eye(64, dtype=np.float32)}, target=0)
    # The mean of (1 / 0.75)^2 for three of four.
    if not np.allclose(steps, 1 / 0.75, atol=0.05) or steps[0] == steps[1]:
        raise Failed(f"losses of {steps}")
    if evaluation != 1:
        raise Failed(f"evaluated: {evaluation}")


def mask():
    """Tells where what was kept is, in every step; where it is not, -1."""
    steps, evaluation = randomLosses(
        [helper.make_node("Dropout", ["input", "ratio", "training"],
                          ["kept", "mask"]),
         helper.make_node("Where", ["mask", "one", "minus"], ["sign"]),
         helper.make_node("Add", ["kept", "sign"], ["x"]),
         helper.make_node("MatMul", ["x", "w"], ["logits"])],
        {"ratio": np.float32(0.5), "training": np.array(True),
         "one": np.float32(1), "minus": np.float32(-1),
         "w": np.eye(64, dtype=np.float32)}, target=1)
    # Of 2 + 1 and 0 - 1, each is 2 from the target; 1 + 1 is 1 from it.
    if not np.allclose(steps, 4, rtol=1e-5) or evaluation != 1:
        raise Failed(f"losses of {steps}, evaluated {evaluation}")


def stochasticDepth():
    """Whole samples lose a branch, in training only."""
    steps, evaluation = randomLosses(
        [helper.make_node("MatMul", ["input", "w"], ["branch"]),
         helper.make_node("RandomUniformLike", ["zeros"], ["u"], dtype=1),
         helper.make_node("Less", ["u", "part"], ["isKept"]),
         helper.make_node("Cast", ["isKept"], ["mask"], to=1),
         helper.make_node("Div", ["mask", "part"], ["scaled"]),
         helper.make_node("Mul", ["branch", "scaled"], ["kept"]),
         helper.make_node("Add", ["input", "kept"], ["logits"])],
        {"zeros": np.zeros((64, 1), np.float32), "part": np.float32(0.5),
         "w": np.eye(64, dtype=np.float32)}, target=0)
    # 1 + 2 for those of 64 samples that keep the branch.
    kept = [(loss - 1) / 8 * 64 for loss in steps]
    if not all(abs(n - round(n)) < 1e-3 and 10 < n < 54 for n in kept):
        raise Failed(f"{kept} of 64 samples are kept")
    if abs(evaluation - 4) > 1e-5:
        raise Failed(f"evaluated: {evaluation}")


NOISE = {
    "RandomNormalLike": (["input"], {"mean": 1.0, "scale": 2.0}, 5),
    "RandomNormal": ([], {"shape": [64, 64], "scale": 2.0}, 4),
    "RandomUniformLike": (["input"], {"low": -1.0, "high": 3.0}, 7 / 3),
    "RandomUniform": ([], {"shape": [64, 64]}, 1 / 3),
    "Bernoulli": (["part"], {"dtype": 1}, 0.3),
    "Multinomial": (["logarithms"], {"sample_size": 64}, 0.75),
}


def noise(operator):
    """The mean of the squares of what an operator gives."""
    inputs, attributes, expected = NOISE[operator]
    logarithms = np.tile(np.log(np.float32([1, 3])), (64, 1))
    steps, _ = randomLosses(
        [helper.make_node(operator, inputs, ["random"], **attributes),
         helper.make_node("Cast", ["random"], ["noise"], to=1),
         helper.make_node("MatMul", ["input", "w"], ["zeros"]),
         helper.make_node("Add", ["zeros", "noise"], ["logits"])],
        {"part": np.full((64, 64), 0.3, np.float32), "logarithms": logarithms,
         "w": np.zeros((64, 64), np.float32)}, target=0)
    if not np.allclose(steps, expected, rtol=0.1) or steps[0] == steps[1]:
        raise Failed(f"means of {steps}, expected {expected}")


def unused():
    """Of random numbers that decide nothing an inference plan needs none."""
    with scratch() as folder:
        small(f"{folder}/model.onnx",
              [helper.make_node("RandomNormalLike", ["input"], ["random"]),
               helper.make_node("Shape", ["random"], ["shape"]),
               helper.make_node("Reshape", ["input", "shape"], ["logits"])],
              {}, [64, 64])
        run(tool("axopt"), f"{folder}/model.onnx", "-o", f"{folder}/plan.mlir")


def cases(every):
    yield "transformer", transformer, LAYOUTS
    yield "imported", imported
    yield "mask", mask
    yield "stochastic depth", stochasticDepth
    yield "unused", unused
    for operator in NOISE:
        yield operator, noise, operator
