# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lookups as PyTorch's exporter writes them (GatherND), of rows of a table and of
one place in each sample: batches come in parts, of which each looks up its own, and
train with losses as those of the whole."""
import numpy as np
import onnx
from onnx import numpy_helper

from _onnx_text import model
from _training import axrun, close, losses
from cases import Failed, run, scratch, tool

RANDOM = np.random.default_rng(0)
LAYOUTS = ("--micro-batches=2", "--dp=2", "--dp=4", "--tp=2",
           "--pp=2 --micro-batches=4", "--dp=2 --zero=3 --micro-batches=2")
SHAPES = {"table": (16, 8), "positions": (16, 8), "w": (8, 8), "v": (8, 5)}
# The words and their places, and of each sample the state at its last word.
NODES = """word = Unsqueeze(x, last)
a = GatherND(table, word)
one = CumSum(x01, axis)
place = Unsqueeze(one, last)
b = GatherND(positions, place)
c = Add(a, b)
m = MatMul(c, w)
h = Tanh(m)
end = ArgMax<axis=1>(x)
which = Concat<axis=1>(samples, end)
chosen = GatherND(h, which)
y = MatMul(chosen, v)"""
# The last states as TorchScript's exporter looks them up.
FLAT = NODES.replace("""which = Concat<axis=1>(samples, end)
chosen = GatherND(h, which)""", """rows = Reshape(h, flat)
ends = Reshape(end, last)
places = Add(ends, firsts)
chosen = Gather(rows, places)""")


def written(path, nodes):
    made = model("int64[8,6] x, int64[8,6] x01", "float[8,5] y", nodes,
                 "int64[1] last = {-1}, int64 axis = {1}, int64[2] flat = {48, 8}, "
                 "int64[8] firsts = {0, 6, 12, 18, 24, 30, 36, 42}, "
                 "int64[8,1] samples = {0, 1, 2, 3, 4, 5, 6, 7}", opset=18)
    for name, shape in SHAPES.items():
        made.graph.initializer.append(numpy_helper.from_array(
            RANDOM.standard_normal(shape, np.float32) / 2, name))
    onnx.save(made, path)


def trains(nodes):
    with scratch() as folder:
        written(f"{folder}/model.onnx", nodes)
        np.savez(f"{folder}/data.npz",
                 x=RANDOM.integers(0, 16, (24, 6)),
                 x01=RANDOM.integers(0, 2, (24, 6)),
                 label=RANDOM.integers(0, 5, 24))
        found = {}
        for number, layout in enumerate(("", *LAYOUTS)):
            log = f"{folder}/log{number}"
            run(tool("axopt"), f"{folder}/model.onnx", *layout.split(),
                "--train", "--trainable=[tpwv]*", "--loss=cross_entropy(y,label)",
                "--optimizer=adamw(lr=0.1)", "--quiet", "-o",
                f"{folder}/plan.mlir")
            with open(f"{folder}/plan.mlir") as plan:
                gathered = [line for line in plan if "ax.all_gather" in line
                            and ("8x6" in line or "48x8" in line)]
            if gathered:
                raise Failed(f"{layout} puts samples together: {gathered[0]}")
            axrun(f"{folder}/plan.mlir", "--data", f"{folder}/data.npz",
                  "--steps=6", "--no-shuffle", "--log", log)
            found[layout] = losses(log)
        for layout in LAYOUTS:
            close(found[layout], found[""], 1e-4, layout)
        if not found[""][-1] < found[""][0]:
            raise Failed(f"nothing is learnt: {found['']}")


def cases(every):
    for name, nodes in (("samples", NODES), ("flat", FLAT)):
        yield name, lambda nodes=nodes: trains(nodes)
