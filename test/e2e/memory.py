"""What training needs of memory."""
import re

from _gpt import gpt
from cases import Failed, run, scratch, tool


def arena(plan):
    text = run(tool("axrun"), plan, "--list-commands").stdout
    return sum(map(int, re.findall(r"arena (\d+) bytes", text)))


def checkpoint():
    """Full: at most a third, gradients, which are there in any case, apart;
    selective between. The same loss, and no reduction more."""
    with scratch() as folder:
        gpt(f"{folder}/model.onnx", layers=6, width=64, heads=4,
            vocabulary=128, batch=8, tokens=64)
        weights = 4 * (6 * 12 * 64 * 64 + (128 + 64) * 64)
        bytes, reductions = {}, {}
        for mode in "none", "selective", "full":
            plan = f"{folder}/plan.mlir"
            run(tool("axopt"), f"{folder}/model.onnx", "--train",
                "--loss=cross_entropy(logits,labels)", "--checkpoint=" + mode,
                "-o", plan)
            bytes[mode] = arena(plan) - weights
            run(tool("axrun"), plan, "--random-inputs", 1,
                "--output" if mode == "none" else "--expect",
                f"{folder}/expected.npz")
            run(tool("axopt"), f"{folder}/model.onnx", "--train", "--tp=2",
                "--loss=cross_entropy(logits,labels)", "--checkpoint=" + mode,
                "-o", plan)
            with open(plan) as file:
                reductions[mode] = file.read().count("ax.all_reduce")
        if not bytes["full"] < bytes["selective"] < bytes["none"]:
            raise Failed(f"activations of {bytes}")
        if bytes["full"] * 3 > bytes["none"]:
            raise Failed(f"activations of {bytes}")
        if len(set(reductions.values())) != 1:
            raise Failed(f"reductions: {reductions}")


def cases(every):
    yield "checkpoint", checkpoint
