# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gradient of a norm where all that it is of is 0: none goes back through
it, as in PyTorch, where a square root that the model writes itself has its own,
which is infinite."""
from pathlib import Path

import numpy as np
import onnx

from _onnx_text import model
from _training import axrun
from cases import Failed, run, scratch, tool
from train import states

# One row of zeros and one that is not.
ROWS = np.array([[0, 0, 0, 0], [3, 0, 4, 0]], np.float64)


def trained(folder, nodes, *flags, **outcome):
    """Takes off w the gradient of the sum of y: a step of sgd of rate 1."""
    onnx.save(model(
        "float[2,4] x", "float loss",
        f"s = Add(x, w)\n{nodes}\nloss = ReduceSum<keepdims=0>(y)",
        "float[2,4] w = {0, 0, 0, 0, 3, 0, 4, 0}, int64[1] one = {1}, "
        "int64[3] image = {2, 1, 4}"), folder / "model.onnx")
    run(tool("axopt"), folder / "model.onnx", *flags, "--train",
        "--trainable=w", "--loss=graph(loss,sum)", "--optimizer=sgd(lr=1)",
        "--quiet", "-o", folder / "plan.mlir")
    np.savez(folder / "data.npz", x=np.zeros((2, 4), np.float32))
    axrun(folder / "plan.mlir", "--data", folder / "data.npz", "--steps=1",
          "--save-weights", folder / "out.safetensors", **outcome)


def gradient(nodes, wanted, *flags):
    with scratch() as folder:
        trained(Path(folder), nodes, *flags)
        got = ROWS - dict(states(f"{folder}/out.safetensors"))["w"]
    if not np.allclose(got, wanted, atol=1e-6):
        raise Failed(f"{got}, expected {wanted}")


def rootOfItsOwn():
    with scratch() as folder:
        trained(Path(folder),
                "p = Mul(s, s)\nq = ReduceSum(p, one)\ny = Sqrt(q)", expect=9,
                says="the gradient of step 1 is no finite number")


def cases(every):
    length = [[0] * 4, [0.6, 0, 0.8, 0]]
    for name, nodes, wanted in (
            ("ReduceL2", "y = ReduceL2(s, one)", length),
            ("LpPool", "i = Reshape(s, image)\n"
             "y = LpPool<kernel_shape=[4]>(i)", length),
            # A vector of zeros is divided by 1.
            ("LpNormalization", "y = LpNormalization(s)",
             [[1] * 4, [0.032, 0.2, -0.024, 0.2]]),
            ("MeanVarianceNormalization",
             "y = MeanVarianceNormalization<axes=[1]>(s)", [[0] * 4] * 2)):
        yield name, gradient, nodes, wanted
    yield "ReduceL2 of split rows", gradient, "y = ReduceL2(s, one)", length, \
        "--tp=2", "--shard=w=[{}, {col}]"
    yield "Sqrt", rootOfItsOwn
