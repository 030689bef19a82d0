# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that are made for cards: functions that write a model into a folder,
and return a Made."""
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "e2e"))
from _gpt import gpt


# What axopt is given beside the model, and the samples of its training.
Made = namedtuple("Made", "flags data")


def smallGpt(folder, *flags):
    """Steps of a small transformer, with tokens that are random."""
    gpt(folder / "model.onnx", layers=2, width=64, heads=4, vocabulary=64,
        batch=8, tokens=16)
    tokens = np.random.default_rng(0).integers(0, 64, (80, 16))
    return Made(["--train", "--loss=cross_entropy(logits,labels)",
                 "--optimizer=adamw(lr=1e-3)", *flags],
                {"input": tokens, "labels": tokens})


def dropout(folder):
    return smallGpt(folder, "--dropout=0.2")


def narrow(folder):
    return smallGpt(folder)
