# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The example of docs/examples/digits.md on several layouts."""
import json

from cases import ROOT, TRAINING, Failed, run, scratch, tool

DIGITS = ROOT / "examples" / "digits"


def learns(layout):
    with scratch() as folder:
        run(tool("axopt"), TRAINING / "fc_net" / "model.onnx", "--shape",
            "input=32x64", "--train", "--loss=cross_entropy(logits,labels)",
            "--optimizer=adamw(lr=2e-3,weight_decay=0.01)",
            "--lr-schedule=cosine(warmup=40,steps=440)", "--clip-norm=1",
            *layout.split(), "--quiet", "-o", f"{folder}/plan.mlir")
        run(tool("axrun"), f"{folder}/plan.mlir", "--data",
            DIGITS / "train.npz", "--steps=440", "--eval", DIGITS / "test.npz",
            "--metric=accuracy", "--quiet", "--log", f"{folder}/log")
        with open(f"{folder}/log") as log:
            last = json.loads(log.readlines()[-1])
        if last["eval_accuracy"] < 0.96 or last["eval_samples"] != 360:
            raise Failed(str(last))


def cases(every):
    for layout in ("", "--dp=2 --tp=2", "--tp=2x2x2",
                   "--dp=2 --tp=2 --pp=2 --micro-batches=4"):
        yield f"learns {layout}", learns, layout
