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


def smallGpt(folder, *flags, layers=2, vocabulary=64, batch=8, tokens=16,
             steps=10):
    """Steps of a small transformer, with tokens that are random."""
    gpt(folder / "model.onnx", layers=layers, width=64, heads=4,
        vocabulary=vocabulary, batch=batch, tokens=tokens)
    tokens = np.random.default_rng(0).integers(0, vocabulary,
                                               (steps * batch, tokens))
    return Made(["--train", "--loss=cross_entropy(logits,labels)",
                 "--optimizer=adamw(lr=1e-3)", *flags],
                {"input": tokens, "labels": tokens})


def dropout(folder):
    return smallGpt(folder, "--dropout=0.2")


def narrow(folder):
    return smallGpt(folder)


def large(folder):
    """Its gradients of biases, and their norm, are sums in two kernels."""
    return smallGpt(folder, "--clip-norm=1", layers=1, vocabulary=1024, batch=64,
                    tokens=128, steps=3)
