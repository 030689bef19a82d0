"""Dropout is the same on every layout, and whenever it is computed."""
import numpy as np
from onnx import helper

from _gpt import gpt
from _training import logged, small
from cases import Failed, run, scratch, tool

LAYOUTS = ["--dp=2", "--tp=2", "--tp=2x2x2", "--dp=2 --tp=2 --zero=3",
           "--tp=2 --sequence-parallel", "--checkpoint=selective",
           "--tp=2 --checkpoint=full", "--micro-batches=2",
           "--pp=2 --micro-batches=4",
           "--dp=2 --tp=2 --pp=2 --micro-batches=2 --schedule=zero-bubble"]


def losses(folder, seed=1):
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


def firstLoss(folder, *flags):
    run(tool("axopt"), f"{folder}/model.onnx", "--train",
        "--loss=mse(logits,target)", *flags, "-o", f"{folder}/plan.mlir")
    run(tool("axrun"), f"{folder}/plan.mlir", "--data", f"{folder}/data.npz",
        "--steps", 1, "--log", f"{folder}/log")
    return logged(f"{folder}/log")[0]["loss"]


def imported():
    """A model exported in training mode, its dropout before the weight."""
    with scratch() as folder:
        small(f"{folder}/model.onnx",
              [helper.make_node("Dropout", ["input", "ratio", "training"],
                                ["x"]),
               helper.make_node("MatMul", ["x", "w"], ["logits"])],
              {"ratio": np.float32(0.25), "training": np.array(True),
               "w": np.eye(64, dtype=np.float32)}, [64, 64])
        np.savez(f"{folder}/data.npz", input=np.ones((64, 64), np.float32),
                 target=np.zeros((64, 64), np.float32))
        plans = []
        for flags in "", "--dp=2", "--tp=2":
            plans.append(firstLoss(folder, *flags.split()))
        # The mean of (1 / 0.75)^2 for three of four.
        if abs(plans[0] - 1 / 0.75) > 0.05:
            raise Failed(f"a loss of {plans[0]}")
        if not np.allclose(plans, plans[0], rtol=1e-6):
            raise Failed(f"losses of {plans}")


def mask():
    """Tells where what was kept is, on every layout; where it is not, -1."""
    with scratch() as folder:
        small(f"{folder}/model.onnx",
              [helper.make_node("Dropout", ["input", "ratio", "training"],
                                ["kept", "mask"]),
               helper.make_node("Where", ["mask", "one", "minus"], ["sign"]),
               helper.make_node("Add", ["kept", "sign"], ["x"]),
               helper.make_node("MatMul", ["x", "w"], ["logits"])],
              {"ratio": np.float32(0.5), "training": np.array(True),
               "one": np.float32(1), "minus": np.float32(-1),
               "w": np.eye(64, dtype=np.float32)}, [64, 64])
        np.savez(f"{folder}/data.npz", input=np.ones((64, 64), np.float32),
                 target=np.ones((64, 64), np.float32))
        for flags in "", "--dp=2", "--tp=2":
            # Of 2 + 1 and 0 - 1, each is 2 from the target.
            loss = firstLoss(folder, *flags.split())
            if abs(loss - 4) > 1e-5:
                raise Failed(f"{flags}: a loss of {loss}")


def cases(every):
    yield "transformer", transformer, LAYOUTS
    yield "imported", imported
    yield "mask", mask
