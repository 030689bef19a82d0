# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers that are of a whole batch, of batches that come in parts: a model's
outputs, and its own loss."""
import os
from functools import partial

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from _onnx_text import model
from _training import axrun, logged
from cases import Failed, run, scratch, tool

RANDOM = np.random.default_rng(0)
LAYOUTS = ("--micro-batches=2", "--dp=2 --micro-batches=4",
           "--pp=2 --micro-batches=4", "--tp=2 --micro-batches=2")


def written(path, outputs, nodes):
    made = model("float[8,6] x, int64[8] l", outputs,
                 f"h = MatMul(x, w)\nr = Relu(h)\ny = MatMul(r, v)\n{nodes}",
                 "float[5] c = {1, 2, 3, 4, 5}, float[2] k = {2, 1}", opset=17)
    for name, shape in ("w", (6, 8)), ("v", (8, 5)):
        made.graph.initializer.append(numpy_helper.from_array(
            RANDOM.standard_normal(shape, np.float32), name))
    onnx.save(made, path)


def results(layout):
    """Sums, their functions, and the largest, beside a result for each sample."""
    with scratch() as folder:
        path, plan = f"{folder}/model.onnx", f"{folder}/plan.mlir"
        written(path, "float[8,5] y, float s, float n, float m",
                "s = ReduceSum<keepdims=0>(y)\nq = Mul(y, y)\n"
                "e = ReduceMean<keepdims=0>(q)\nn = Sqrt(e)\n"
                "m = ReduceMax<keepdims=0>(y)")
        feeds = {"x": RANDOM.standard_normal((8, 6), np.float32),
                 "l": np.zeros(8, np.int64)}
        np.savez(f"{folder}/x.npz", **feeds)
        session = onnxruntime.InferenceSession(path)
        names = [output.name for output in session.get_outputs()]
        np.savez(f"{folder}/y.npz",
                 **dict(zip(names, session.run(None, feeds))))
        run(tool("axopt"), path, *layout.split(), "--quiet", "-o", plan)
        # Each step has sums of its own.
        run(tool("axrun"), plan, "--inputs", f"{folder}/x.npz", "--iterations", 3,
            "--expect", f"{folder}/y.npz")


LOSSES = {
    "sum": "loss = SoftmaxCrossEntropyLoss<reduction=\"sum\">(y, l)",
    # Divided by how many labels of all parts count.
    "mean": "loss = SoftmaxCrossEntropyLoss<reduction=\"mean\", "
            "ignore_index=3>(y, l)",
    "mean by class": "loss = SoftmaxCrossEntropyLoss<reduction=\"mean\">(y, l, c)",
    # What only scales that mean behind the division is done to the sum.
    "mean, scaled": "m = SoftmaxCrossEntropyLoss<reduction=\"mean\", "
                    "ignore_index=3>(y, l)\na = Constant<value_float=-0.5>()\n"
                    "b = Constant<value_float=8.0>()\nn = Neg(m)\n"
                    "o = Mul(a, n)\nloss = Div(o, b)",
    # Of two constants either does.
    "mean of twos": "q = Mul(y, y)\ns = ReduceSum<keepdims=0>(q)\n"
                    "a = Constant<value_float=4.0>()\n"
                    "b = Constant<value_float=10.0>()\n"
                    "p = Div(s, a)\nloss = Div(p, b)",
    "mean in doubles": "m = SoftmaxCrossEntropyLoss<reduction=\"mean\", "
                       "ignore_index=3>(y, l)\nd = Cast<to=11>(m)\n"
                       "a = Constant<value=double {0.5}>()\ne = Mul(d, a)\n"
                       "loss = Cast<to=1>(e)",
    "mean of all": "q = Mul(y, y)\nloss = ReduceMean<keepdims=0>(q)"}


def ownLoss(kind, layout):
    """The steps of the whole batch."""
    with scratch() as folder:
        path, plan, log = (f"{folder}/{name}"
                           for name in ("model.onnx", "plan.mlir", "log"))
        written(path, "float loss", LOSSES[kind])
        np.savez(f"{folder}/data.npz", x=RANDOM.standard_normal((24, 6), np.float32),
                 l=np.arange(24) % 9 % 5)
        steps = {}
        for flags in "", layout:
            run(tool("axopt"), path, "--train", f"--loss=graph(loss,{kind[:4].strip()})",
                "--optimizer=sgd(lr=0.01)", "--clip-norm=1", "--quiet",
                *flags.split(), "-o", plan)
            axrun(plan, "--data", f"{folder}/data.npz", "--steps=3", "--no-shuffle",
                  "--eval", f"{folder}/data.npz", "--log", log)
            lines = logged(log)
            os.remove(log)
            steps[flags] = [[line["loss"], line["gradient_norm"]]
                            for line in lines if "loss" in line]
            steps[flags].append([line["eval_loss"] for line in lines
                                 if "eval_loss" in line])
        for got, wanted in zip(steps[layout], steps[""], strict=True):
            if not got or not np.allclose(got, wanted, rtol=1e-5):
                raise Failed(f"{kind} {layout}: {steps}")


def scaled():
    """In f16 the loss's scale is for its mean: own losses skip no more steps."""
    with scratch() as folder:
        path, plan, log = (f"{folder}/{name}"
                           for name in ("model.onnx", "plan.mlir", "log"))
        random = np.random.default_rng(1)
        samples, steps = 4096, 12
        np.savez(f"{folder}/data.npz", l=random.integers(0, 5, steps * samples),
                 x=random.standard_normal((steps * samples, 6), np.float32))
        written(path, "float loss, float[8,5] y", LOSSES["mean"])
        made = onnx.load(path)
        for value in *made.graph.input, made.graph.output[1]:
            value.type.tensor_type.shape.dim[0].dim_value = samples
        onnx.save(made, path)
        told = []
        for loss in "graph(loss,mean)", "cross_entropy(y,l,ignore_index=3)":
            run(tool("axopt"), path, "--train", f"--loss={loss}", "--precision=fp16",
                "--optimizer=sgd(lr=0.01)", "--quiet", "-o", plan)
            axrun(plan, "--data", f"{folder}/data.npz", f"--steps={steps}",
                  "--no-shuffle", "--log", log)
            told.append([(step["loss_scale"], step.get("skipped"))
                         for step in logged(log)])
            os.remove(log)
        if told[0] != told[1]:
            raise Failed(f"scales: {told}")


def readForEach():
    """What is divided by a weight that learns is read for each micro-batch, too."""
    with scratch() as folder:
        path, plan = f"{folder}/model.onnx", f"{folder}/plan.mlir"
        written(path, "float loss", "q = Mul(y, y)\ns = ReduceSum<keepdims=0>(q)\n"
                "d = ReduceSum<keepdims=0>(k)\nloss = Div(s, d)")
        flags = [tool("axopt"), path, "--train", "--loss=graph(loss,sum)",
                 "--trainable=*", "-o", plan]
        run(*flags, "--pp=2")
        done = run(*flags, "--pp=2", "--micro-batches=2", expect=2)
        if "'loss' is a sum over micro-batches, and read for each of them: use " \
                "--micro-batches=1" not in done.stderr:
            raise Failed(done.stderr)


def cases(every):
    yield "scale of an own loss", scaled
    yield "read for each micro-batch", readForEach
    for layout in LAYOUTS:
        yield f"results {layout}", partial(results, layout)
        for kind in LOSSES:
            yield f"loss: {kind} {layout}", partial(ownLoss, kind, layout)
