# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""axrun --random-weights: the same on every layout, and no file is needed."""
import shutil
from pathlib import Path

import numpy as np

from _training import TRAINING
from axrun_errors import refused
from cases import MODELS, Failed, run, scratch, tool

TRAIN = ["--shape", "input=4x32", "--train", "--loss=cross_entropy(logits,labels)",
         "--quiet"]


def outputs(plan, *flags):
    file = Path(f"{plan}.npz")
    run(tool("axrun"), plan, "--random-inputs=1", *flags, "--output", file)
    with np.load(file) as arrays:
        return dict(arrays)


def areMade():
    """Of a model that is gone, for one rank and two, as text and compiled."""
    with scratch() as folder:
        model = Path(folder) / "gone" / "model.onnx"
        shutil.copytree(TRAINING / "gpt2_tied", model.parent)
        plans = {"one.mlir": [], "tp.mlir": ["--tp=2"],
                 "zero.axc": ["--dp=2", "--zero=3", "--compile"]}
        for name, flags in plans.items():
            run(tool("axopt"), model, *TRAIN, *flags, "-o", f"{folder}/{name}")
        shutil.rmtree(model.parent)
        one, *others = [outputs(f"{folder}/{name}", "--random-weights=3")
                        for name in plans]
        for other in others:
            for name, value in one.items():
                np.testing.assert_allclose(other[name], value, rtol=1e-5)
        if not np.isfinite(one["loss"]).all() or one["gradient_norm"] == 0:
            raise Failed(f"{one}")
        if outputs(f"{folder}/one.mlir", "--random-weights=4")["loss"] == one["loss"]:
            raise Failed("another seed gives the same")
        refused(7, f"{folder}/one.mlir", "--random-inputs=1", says="there is no '")
        for other in (["--random-inputs=1", "--weights=x.npz"],
                      ["--data=x.npz", "--steps=1", "--resume=run"]):
            refused(2, f"{folder}/one.mlir", *other, "--random-weights=3",
                    says="has no use beside --random-weights")


def numbersStay():
    """Through the layers of a convolutional network: they are no infinities, and
    not all nothing."""
    with scratch() as folder:
        model = MODELS / "resnet_eager_ts17_dyn"
        run(tool("axopt"), model / "model.onnx", "--test-data",
            model / "test_data_set_0", "--quiet", "-o", f"{folder}/plan.mlir")
        for name, value in outputs(f"{folder}/plan.mlir",
                                   "--random-weights=1").items():
            most = np.abs(value).max()
            if not 1e-3 < most < 1e6:
                raise Failed(f"{name} is at most {most}")


def cases(every):
    yield "are made", areMade
    yield "numbers stay", numbersStay
