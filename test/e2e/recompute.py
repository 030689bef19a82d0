# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the backward pass computes again is rounded in another way than it was
in the forward pass: models whose gradients go by which numbers are equal train
as if everything had been kept."""
import numpy as np
from onnx import helper

from _training import axrun, close, compiled, logged, small
from cases import scratch

LAYOUTS = ["--recompute=selective", "--recompute=full", "--recompute=h*",
           "--tp=2 --recompute=full",
           "--dp=2 --zero=3 --micro-batches=2 --recompute=full",
           "--pp=2 --micro-batches=2 --recompute=full"]

node = helper.make_node
# From h to r. What is small, as the largest of each sample, is kept: the model
# is cut there.
NODES = {
    "ReduceMax": [node("ReduceMax", ["h", "dim"], ["r"])],
    "ReduceMin": [node("ReduceMin", ["h", "dim"], ["r"])],
    # Where what is compared is split, the largest is exchanged.
    "ReduceMax of channels": [node("ReduceMax", ["h", "last"], ["best"]),
                              node("Mul", ["best", "scale"], ["r"])],
    "ScatterElements": [
        node("ScatterElements", ["h", "places", "b"], ["r"], axis=1,
             reduction="max")],
    "ScatterND": [
        node("Transpose", ["h"], ["rows"], perm=[1, 0, 2]),
        node("Transpose", ["b"], ["updates"], perm=[1, 0, 2]),
        node("ScatterND", ["rows", "place", "updates"], ["t"],
             reduction="min"),
        node("Transpose", ["t"], ["r"], perm=[1, 0, 2])],
}


def model(path, nodes):
    random = np.random.default_rng(0)

    def weight(*shape):
        return random.standard_normal(shape, np.float32) / shape[0] ** 0.5

    small(path, [
        node("MatMul", ["input", "w0"], ["h0"]),
        node("Gelu", ["h0"], ["h1"]),
        node("LayerNormalization", ["h1", "ones", "zeros"], ["n"]),
        node("MatMul", ["n", "w1"], ["a"]),
        node("Sin", ["a"], ["b"]),
        node("Mul", ["b", "scale"], ["c"]),
        node("Add", ["h1", "c"], ["h"], name="h"),
        *nodes,
        node("MatMul", ["r", "w2"], ["d"]),
        node("Tanh", ["d"], ["e"]),
        node("MatMul", ["e", "w3"], ["f"]),
        node("Add", ["f", "input"], ["logits"])],
        {"w0": weight(16, 16), "w1": weight(16, 16), "w2": weight(16, 16),
         "w3": weight(16, 16), "ones": np.ones(16, np.float32),
         "zeros": np.zeros(16, np.float32),
         "scale": random.uniform(0.5, 1.5, 16).astype(np.float32),
         "dim": np.int64([1]), "last": np.int64([2]),
         "places": random.integers(0, 6, (8, 6, 16)),
         "place": np.int64([[0], [1], [1], [2], [3], [0]])}, [8, 6, 16])


def trains(nodes):
    with scratch() as folder:
        path, data = f"{folder}/model.onnx", f"{folder}/data.npz"
        model(path, nodes)
        random = np.random.default_rng(1)
        np.savez(data, input=random.standard_normal((24, 6, 16), np.float32),
                 labels=random.integers(0, 16, (24, 6)))

        def steps(layout):
            plan = compiled(folder, "--optimizer=sgd(lr=0.1)", *layout.split(),
                            model=path, shape="input=8x6x16")
            axrun(plan, "--data", data, "--steps", 3, "--no-shuffle", "--log",
                  f"{folder}/{layout}.log")
            return [[line["loss"], line["gradient_norm"]]
                    for line in logged(f"{folder}/{layout}.log")]

        kept = steps("")
        for layout in LAYOUTS:
            close(steps(layout), kept, 1e-5, layout)


def cases(every):
    for name, nodes in NODES.items():
        yield name, trains, nodes
