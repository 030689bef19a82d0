# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is made of weights in the first step is there in the others: several batches
in one process, beside onnxruntime, on processors and on simulated cards."""
from pathlib import Path

import numpy as np
import onnx

from _onnx_text import model as textModel
from _training import axrun, close
from cases import Failed, run, scratch, tool
from onnx import numpy_helper
from predict import reference
from sixteen_bits import CARD

# Projections of one input of two widths, and a convolution with 3x3 weights.
NODES = """
  qa = MatMul(x, wq) q = Add(qa, bq)
  ka = MatMul(x, wk) k = Add(ka, bk)
  va = MatMul(x, wv) v = Add(va, bv)
  t = Transpose<perm=[0, 2, 1]>(k)
  s = MatMul(q, t)
  p = Softmax<axis=-1>(s)
  a = MatMul(p, v)
  h = MatMul(a, wo)
  y = Relu(h)
  z = Conv<pads=[1, 1, 1, 1]>(image, wc, bc)
"""
WEIGHTS = {"wq": [64, 32], "bq": [32], "wk": [64, 32], "bk": [32],
           "wv": [64, 48], "bv": [48], "wo": [48, 64], "wc": [16, 8, 3, 3],
           "bc": [16]}
MOST = {"fp32": 1e-5, "bf16": 2e-2, "fp16": 5e-3}
ON_CARD = ["--device=cuda", "--no-host-fallback"]


def several(precision, layout, isCard):
    random = np.random.default_rng(0)
    made = textModel("float[4,8,64] x, float[4,8,16,16] image",
                     "float[4,8,64] y, float[4,16,16,16] z", NODES, opset=17)
    for name, shape in WEIGHTS.items():
        values = random.standard_normal(shape) / np.sqrt(shape[0])
        made.graph.initializer.append(
            numpy_helper.from_array(values.astype(np.float32), name))
    samples = 12
    data = {"x": random.standard_normal((samples, 8, 64), np.float32),
            "image": random.standard_normal((samples, 8, 16, 16), np.float32)}
    with scratch() as folder:
        folder = Path(folder)
        path, plan = folder / "model.onnx", folder / "plan.mlir"
        onnx.save(made, path)
        run(tool("axopt"), path, f"--precision={precision}", "--quiet", "-o",
            plan, *layout.split())
        if isCard and not layout:
            listed = run(tool("axrun"), plan, "--list-commands",
                         "--target=sm_90+cudnn").stdout
            if ", in the first step" not in listed:
                raise Failed("nothing is done once:\n" + listed)
        np.savez(folder / "data.npz", **data)
        axrun(plan, "--data", folder / "data.npz", "--predict",
              folder / "out.npz", *(ON_CARD if isCard else []),
              env=CARD if isCard else None)
        got = dict(np.load(folder / "out.npz"))
        wanted = reference(path, data, 4)
    for array, right in zip(got.values(), wanted):
        close(array, right, MOST[precision], "outputs")


def cases(every):
    layouts = ["", "--tp=2", "--pp=2", "--dp=2"]
    for precision in MOST:
        for layout in layouts:
            for isCard in False, True:
                where = "simulated" if isCard else "processor"
                yield (f"{precision} {layout} {where}", several, precision,
                       layout, isCard)
