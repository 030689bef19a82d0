# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights of zeros: new parameters, buffers, or what a recurrent layer begins
with."""
import re
from pathlib import Path

import numpy as np
import onnx

from _onnx_text import model as textModel
from cases import Failed, scratch
from train_exports import compiled, says, trained


def initialStates():
    """Zeros that recurrent layers begin with are no parameters, as exporters
    write them for a batch of known size; other numbers may be."""
    made = textModel("float[3,4,8] x", "float[1,4,8] y", """
ones = Constant<value_ints=[0]>()
start = Unsqueeze(zeros, ones)
a, b, c = LSTM<hidden_size=8>(x, w, r, , , learnt, start)
t = Reshape(a, shape)
d, y = GRU<hidden_size=8>(t, v, u, , , begin)
""".strip(), "int64[3] shape = {3, 4, 8}")
    random = np.random.default_rng(0)
    arrays = {name: random.standard_normal((1, gates * 8, 8), np.float32)
              for name, gates in (("w", 4), ("r", 4), ("v", 3), ("u", 3))}
    arrays["learnt"] = random.standard_normal((1, 4, 8), np.float32)
    arrays["zeros"] = np.zeros((4, 8), np.float32)
    arrays["begin"] = np.zeros((1, 4, 8), np.float32)
    for name, array in arrays.items():
        made.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    with scratch() as folder:
        path = Path(folder) / "model"
        onnx.save(made, path.with_suffix(".onnx"))
        plan, text = compiled(folder, str(path), loss="--loss=mse(y,target)")
        if trained(plan) != {"w", "r", "v", "u", "learnt"}:
            raise Failed(f"{trained(plan)}")
        says(text, "zeros that recurrent layers begin with (zeros, begin)")
        plan, _ = compiled(folder, str(path), "--quiet", "--trainable=*",
                           loss="--loss=mse(y,target)")
        if trained(plan) != set(arrays):
            raise Failed(f"{trained(plan)}")


def rowsOfZeros():
    """Biases of layers train; what may be a buffer is said in a warning, which
    the flags answer."""
    rows = {"bias": (1, 8), "scaled": (1, 8), "sum": (1, 8), "token": (1, 1, 8)}
    made = textModel("float[4,8] x, float[4,3,8] words",
                     "float[4,8] logits, float[4,4,8] all", """
a = Gemm(x, w, bias)
b = Gemm<alpha=0.5, beta=0.5>(a, w, scaled)
c = MatMul(b, w)
logits = Add(c, sum)
d = MatMul(words, w)
shape = Constant<value_ints=[4, 1, 8]>()
tokens = Expand(token, shape)
all = Concat<axis=1>(tokens, d)
""".strip())
    random = np.random.default_rng(0)
    arrays = {"w": random.standard_normal((8, 8), np.float32)}
    arrays |= {name: np.zeros(shape, np.float32) for name, shape in rows.items()}
    for name, array in arrays.items():
        made.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    with scratch() as folder:
        path = Path(folder) / "model"
        onnx.save(made, path.with_suffix(".onnx"))
        for flags, names, warned in (
                ([], {"w", "bias", "scaled", "sum"}, {"sum", "token"}),
                (["--frozen=sum"], {"w", "bias", "scaled"}, {"token"}),
                (["--trainable=*"], arrays.keys(), set())):
            plan, text = compiled(folder, str(path), "--quiet", *flags)
            if trained(plan) != set(names):
                raise Failed(f"{flags}: trained {trained(plan)}\n{text}")
            if set(re.findall("'(.*)', a row of zeros", text)) != warned:
                raise Failed(f"{flags}: not of {warned}:\n{text}")
            if "token" in warned:
                says(text, "'token', a row of zeros, is not trained, as a buffer "
                     "that meets data, but may be either: --trainable and "
                     "--frozen say which; see 'Models to train' in "
                     "docs/training.md")


def cases(every):
    yield "initial states", initialStates
    yield "rows", rowsOfZeros
