# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that are made for cards: functions that write a model into a folder,
and return a Made."""
import json
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np
import onnx

TEST = Path(__file__).parents[1]
sys.path[:0] = [str(TEST), str(TEST / "e2e")]
import _adapters
from _float8 import E5M2, Float8Net
from _gpt import gpt
from _training import narrowed


# What axopt is given beside the model, and the inputs: samples of training, or
# those of one run.
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


def reference(name, folder, kind=None):
    """Steps of test/data/training, also of a model that is `kind`."""
    place = TEST / "data/training" / name
    options = json.loads((place / "reference.json").read_text())
    model = onnx.load(place / "model.onnx")
    onnx.save(narrowed(model, kind) if kind else model, folder / "model.onnx")
    with np.load(place / "data.npz") as data:
        shape = "x".join(map(str, data["input"].shape[1:]))
        # Stored as steps x batch x ...: samples in their order.
        samples = {key: array.reshape((-1, *array.shape[2:]))
                   for key, array in data.items()}
    return Made(["--train", "--loss=cross_entropy(logits,labels)", "--clip-norm=1",
                 "--optimizer=" + options["optimizers"]["adamw"]["options"],
                 f"--shape=input={shape}"], samples)


def bf16Llama(folder):
    return reference("llama", folder, "bf16")


def f16Gpt(folder):
    return reference("gpt2_tied", folder, "f16")


def bf16Convnet(folder):
    return reference("convnet", folder, "bf16")


def adapters(folder):
    """They train beside weights of four bits."""
    _adapters.save(folder / "model.onnx", bits=True)
    return Made(["--train", "--loss=mse(y,target)", "--optimizer=sgd(lr=20)",
                 "--frozen=*.w"], _adapters.samples())


def float8(folder, rows=32, **options):
    """Linears that a quantiser made."""
    net = Float8Net(**options)
    sizes = [256, 512, 128]
    onnx.save(net.model(*sizes), folder / "model.onnx")
    return Made([f"--dim=batch={rows}"], {"x": net.inputs(sizes[0], rows)})


def float8Half(folder):
    return float8(folder, half=True, transposed=True)


def float8E5M2(folder):
    return float8(folder, activations=E5M2)
