# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Any number of samples through a plan of any batch, evaluation mode of models
exported for training, and inputs that take no batches."""
import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from _onnx_text import model as textModel
from _training import DIGITS, FC_NET, GPT, LOSS, axrun, close, losses
from cases import MODELS, TRAINING, Failed, run, scratch, tool
from train_exports import EXPORTS, says


def reference(path, feeds, batch):
    """onnxruntime, batch by batch, the last one filled up with zeros."""
    session = onnxruntime.InferenceSession(str(path))
    count = len(next(iter(feeds.values())))
    parts = []
    for first in range(0, count, batch):
        part = {}
        for name, array in feeds.items():
            part[name] = np.zeros((batch, *array.shape[1:]), array.dtype)
            rows = array[first:first + batch]
            part[name][:len(rows)] = rows
        parts.append([out[:count - first]
                      for out in session.run(None, part)])
    return [np.concatenate(outputs) for outputs in zip(*parts)]


def predicted(folder, plan, data, *flags, batch=None):
    np.savez(Path(folder) / "data.npz", **data)
    out = Path(folder) / "out.npz"
    axrun(plan, "--data", Path(folder) / "data.npz", "--predict", out, *flags)
    return dict(np.load(out))


def inference(count, layout):
    """Fewer samples than a batch, several batches, a part of one."""
    path = MODELS / "mlp_eager_ts13_dyn" / "model.onnx"
    x = np.random.default_rng(0).standard_normal((count, 64), np.float32)
    with scratch() as folder:
        plan = Path(folder) / "plan.mlir"
        run(tool("axopt"), path, "--dim", "batch=4", "--quiet", "-o", plan,
            *layout.split())
        got = predicted(folder, plan, {"x": x})
    for array, wanted in zip(got.values(), reference(path, {"x": x}, count)):
        close(array, wanted, 1e-5, "outputs")


def trained(layout):
    """A plan that trains predicts with the weights it made, without labels, and
    so does an inference plan of the trained model."""
    with scratch() as folder:
        folder = Path(folder)
        plan = folder / "plan.mlir"
        run(tool("axopt"), FC_NET, "--shape", "input=32x64", "--train", LOSS,
            "--quiet", "-o", plan, *layout.split())
        axrun(plan, "--data", DIGITS / "train.npz", "--steps", 3, "--quiet",
              "--save", folder / "run")
        x = np.load(DIGITS / "test.npz")["input"][:75]
        got = predicted(folder, plan, {"input": x}, "--weights", folder / "run")
        run(tool("axopt"), FC_NET, "--export-onnx", folder / "trained.onnx",
            "--weights", folder / "run")
        # The model's own batch.
        batch = onnx.load(FC_NET).graph.input[0].type.tensor_type.shape.dim[0]
        wanted = reference(folder / "trained.onnx", {"input": x},
                           batch.dim_value or 75)
    close(got["logits"], wanted[0], 1e-5, "logits")


def asFolder():
    """To a folder, a file for each output, from a folder."""
    with scratch() as folder:
        folder = Path(folder)
        plan = folder / "plan.mlir"
        run(tool("axopt"), FC_NET, "--shape", "input=32x64", "--quiet", "-o", plan)
        (folder / "in").mkdir()
        x = np.load(DIGITS / "test.npz")["input"][:33]
        np.save(folder / "in" / "input.npy", x)
        axrun(plan, "--data", folder / "in", "--predict", folder / "out")
        got = np.load(folder / "out" / "logits.npy")
        if len(got) != 33:
            raise Failed(f"33 samples gave {got.shape}")


TRAINING_MODE = """
h = MatMul(x, w)
d, m = Dropout(h, ratio, yes)
b, mean2, var2 = BatchNormalization<training_mode=1>(d, s, o, mean, var)
noise = RandomUniformLike<dtype=1>(some)
kept = Add(noise, keep)
mask = Floor(kept)
branch = Div(b, keep)
dropped = Mul(branch, mask)
y = Add(h, dropped)
"""


def evaluationMode():
    """Dropout, stochastic depth and running statistics, of a model in training
    mode: as its formula says."""
    random = np.random.default_rng(0)
    w, s, o, mean = (random.standard_normal(n, np.float32)
                     for n in ((4, 4), 4, 4, 4))
    var = random.random(4, np.float32) + 0.5
    made = textModel("float[8,4] x", "float[8,4] y", TRAINING_MODE.strip(),
                     "float ratio = {0.5}, bool yes = {1}, float keep = {0.8}")
    for name, array in dict(w=w, s=s, o=o, mean=mean, var=var,
                            some=np.ones((8, 1), np.float32)).items():
        made.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    x = random.standard_normal((11, 4), np.float32)
    h = x @ w
    wanted = h + (h - mean) / np.sqrt(var + 1e-5) * s + o
    with scratch() as folder:
        path, plan = Path(folder) / "model.onnx", Path(folder) / "plan.mlir"
        onnx.save(made, path)
        done = run(tool("axopt"), path, "-o", plan, expect=4)
        says(done.stderr, "random numbers, also Dropout's, are for training; "
             "axopt --eval takes the model in evaluation mode")
        run(tool("axopt"), path, "--eval", "--quiet", "-o", plan)
        close(predicted(folder, plan, {"x": x})["y"], wanted, 1e-5, "outputs")


def randomModel():
    """Other random numbers have no evaluation mode."""
    made = textModel("float[2] x", "float[2] y",
                     "z = RandomNormal<shape=[2]>()\ny = Add(x, z)")
    with scratch() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(made, path)
        done = run(tool("axopt"), path, "--eval", "-o", Path(folder) / "plan",
                   expect=4)
        says(done.stderr, "the model takes random numbers in evaluation mode, "
             "too, which only axopt --train has")


def notBoth():
    with scratch() as folder:
        done = run(tool("axopt"), FC_NET, "--eval", "--train", LOSS, "-o",
                   Path(folder) / "plan.mlir", expect=2)
        says(done.stderr, "--eval has no use beside --train: the plan has a "
             "program in evaluation mode")


def leftOut():
    """An output that has no rows of samples is named; without any other it is
    an error."""
    with scratch() as folder:
        folder = Path(folder)
        np.savez(folder / "x.npz", x=np.ones((5, 3), np.float32))
        for outputs, nodes, code in (
                ("float[4,3] y, float[] s", "y = Relu(x)\n"
                 "s = ReduceSum<keepdims=0>(x)", 0),
                ("float[] s", "s = ReduceSum<keepdims=0>(x)", 2)):
            onnx.save(textModel("float[4,3] x", outputs, nodes),
                      folder / "model.onnx")
            run(tool("axopt"), folder / "model.onnx", "--quiet", "-o",
                folder / "plan.mlir")
            axrun(folder / "plan.mlir", "--data", folder / "x.npz", "--predict",
                  folder / "out.npz", expect=code,
                  says=("gives nothing for each sample" if code else
                        "left out") + ": no one dimension is known to count "
                  "samples of 's' ()")


def refused(flags, message):
    with scratch() as folder:
        plan = Path(folder) / "plan.mlir"
        run(tool("axopt"), FC_NET, "--shape", "input=32x64", "--train", LOSS,
            "--quiet", "-o", plan)
        axrun(plan, *flags, expect=2, says=message)


#===------------------------------------------------------------------------===#
# Inputs that take no batches
#===------------------------------------------------------------------------===#

GRAPH_NET = """
h = MatMul(x, w)
first = Constant<value_int=0>()
second = Constant<value_int=1>()
from = Gather<axis=0>(edges, first)
to = Gather<axis=0>(edges, second)
message = Gather<axis=0>(h, from)
shape = Shape(to)
one = Constant<value_ints=[1]>()
column = Unsqueeze(to, one)
logits = ScatterND<reduction="add">(h, column, message)
"""


def graphNet(folder):
    made = textModel("float[10,6] x, int64[2,30] edges", "float[10,4] logits",
                     GRAPH_NET.replace("shape = Shape(to)\n", "").strip())
    w = np.random.default_rng(0).standard_normal((6, 4), np.float32)
    made.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    path = Path(folder) / "model.onnx"
    onnx.save(made, path)
    return path, w


def graphData(graphs):
    random = np.random.default_rng(1)
    return {"x": random.standard_normal((graphs * 10, 6), np.float32),
            "edges": random.integers(10, size=(graphs, 2, 30)),
            "labels": random.integers(4, size=graphs * 10)}


def graphLoss(w, x, edges, labels):
    h = x @ w
    logits = h.copy()
    np.add.at(logits, edges[1], h[edges[0]])
    e = np.exp(logits - logits.max(1, keepdims=True))
    p = e / e.sum(1, keepdims=True)
    g = (p - np.eye(4)[labels]) / len(labels)
    back = g.copy()
    np.add.at(back, edges[0], g[edges[1]])
    return -np.log(p[range(len(labels)), labels]).mean(), x.T @ back


def graphs(each, layout):
    """Edges beside nodes: of every graph its own, or the same for all."""
    data = graphData(3)
    if not each:
        data["edges"] = data["edges"][0]
    with scratch() as folder:
        path, w = graphNet(folder)
        plan, log = Path(folder) / "plan.mlir", Path(folder) / "log.jsonl"
        run(tool("axopt"), path, "--train", LOSS, "--unbatched=edges",
            "--optimizer=sgd(lr=0.1)", "--quiet", "-o", plan, *layout.split())
        np.savez(Path(folder) / "data.npz", **data)
        axrun(plan, "--data", Path(folder) / "data.npz", "--steps", 6,
              "--no-shuffle", "--quiet", "--log", log, "--eval",
              Path(folder) / "data.npz")
        wanted = []
        for step in range(6):
            rows = slice(step % 3 * 10, step % 3 * 10 + 10)
            edges = data["edges"][step % 3] if each else data["edges"]
            loss, gradient = graphLoss(w, data["x"][rows], edges,
                                       data["labels"][rows])
            wanted.append(loss)
            w = w - np.float32(0.1) * gradient
        close(losses(log), wanted, 1e-5, "losses")
        if each:
            axrun(plan, "--data", Path(folder) / "data.npz", "--steps", 1,
                  expect=6, says="there is an array for each batch, so samples "
                  "stay in their order: give --no-shuffle")


def badGraphs():
    with scratch() as folder:
        path, _ = graphNet(folder)
        plan, file = Path(folder) / "plan.mlir", Path(folder) / "data.npz"

        def compiled(*flags, expect=0):
            return run(tool("axopt"), path, "--train", LOSS, "--quiet", "-o",
                       plan, *flags, expect=expect).stderr

        says(compiled("--unbatched=nodes", expect=2), "--unbatched=nodes: there "
             "is no such input, but x, edges, labels")
        says(compiled("--unbatched=x", "--unbatched=edges", "--unbatched=labels",
                      "--micro-batches=2", expect=2), "has no input that takes "
             "batches, and so no micro-batches")
        compiled()
        data = graphData(3)

        def refuse(message, **changed):
            np.savez(file, **(data | changed))
            axrun(plan, "--data", file, "--steps", 1, "--no-shuffle", expect=6,
                  says=message)

        refuse("input 'edges' takes batches of 2, other inputs of 10 (axopt "
               "--unbatched=edges says that it takes no batches)")
        compiled("--unbatched=edges")
        refuse("'edges' is given for 2 batches; there are 3",
               edges=data["edges"][:2])
        refuse("'edges' is 3x2x29xi64; it takes no batches, but 2x30xi64 for all "
               "of them, or for each", edges=data["edges"][:, :, :29])
        compiled("--unbatched=edges", "--unbatched=labels")
        refuse("label 9 of 'labels', batch 0, position 0, is none of the 4 "
               "classes", labels=np.full((3, 10), 9))
        np.savez(file, **data)
        axrun(plan, "--data", file, "--steps", 1, "--tokens=uint16", expect=6,
              says="takes no batches, and so no tokens: give it to axopt with "
              "--const")


def oneByOne():
    """Without any batch, a step takes one array of each input."""
    data = graphData(3)
    data["x"] = data["x"].reshape(3, 10, 6)
    data["labels"] = data["labels"].reshape(3, 10)
    with scratch() as folder:
        path, w = graphNet(folder)
        plan, log = Path(folder) / "plan.mlir", Path(folder) / "log.jsonl"
        run(tool("axopt"), path, "--train", LOSS, "--unbatched=edges",
            "--unbatched=x", "--unbatched=labels", "--optimizer=sgd(lr=0)",
            "--quiet", "-o", plan)
        np.savez(Path(folder) / "data.npz", **data)
        axrun(plan, "--data", Path(folder) / "data.npz", "--steps", 3,
              "--no-shuffle", "--quiet", "--log", log, "--eval",
              Path(folder) / "data.npz")
        wanted = [graphLoss(w, *parts)[0] for parts in
                  zip(data["x"], data["edges"], data["labels"])]
        close(losses(log), wanted, 1e-5, "losses")
        measured = re.findall(r'"eval_loss": *([\d.e+-]+)', log.read_text())
        close([float(measured[0])], [np.mean(wanted)], 1e-5, "evaluation")


def otherOutput(layout, *compiling):
    """A stage that makes an output which the loss does not depend on, of a weight
    that another one trains, predicts with its new values."""
    made = textModel(
        "float[4,8] x", "float[4,8] y, float[4,8] z",
        "z = Mul(x, d)\na = MatMul(x, w)\nb = Mul(a, d)\ny = MatMul(b, v)")
    for node in made.graph.node:
        node.name = f"/{node.output[0]}"
    random = np.random.default_rng(0)
    first = random.standard_normal(8, np.float32)
    made.graph.initializer.append(onnx.numpy_helper.from_array(first, "d"))
    for name in "wv":
        made.graph.initializer.append(onnx.numpy_helper.from_array(
            random.standard_normal((8, 8), np.float32), name))
    data = {"x": random.standard_normal((8, 8), np.float32),
            "t": random.standard_normal((8, 8), np.float32)}
    found = {}
    with scratch() as folder:
        folder = Path(folder)
        onnx.save(made, folder / "model.onnx")
        np.savez(folder / "train.npz", **data)
        for flags in "", layout:
            plan, kept = folder / "plan.mlir", folder / f"run{len(found)}"
            run(tool("axopt"), folder / "model.onnx", "--train",
                "--loss=mse(y,t)", "--optimizer=adam(lr=0.1)", "--quiet", "-o",
                plan, *flags.split(), *(compiling if flags else ()))
            axrun(plan, "--data", folder / "train.npz", "--steps", 4, "--quiet",
                  "--save", kept)
            found[flags] = predicted(folder, plan, {"x": data["x"]},
                                     "--weights", kept)
    for name in "yz":
        close(found[layout][name], found[""][name], 1e-5, name)
    if np.abs(found[""]["z"] - data["x"] * first).max() < 0.1:
        raise Failed("the weight was not trained")


def cases(every):
    for count in (1, 4, 11):
        yield f"inference of {count}", inference, count, ""
    for layout in ("--dp=2", "--pp=2 --micro-batches=2", "--tp=2"):
        yield f"inference/{layout}", inference, 11, layout
    for layout in ("", "--dp=2 --tp=2", "--pp=2 --micro-batches=2"):
        yield f"trained/{layout}", trained, layout
    for layout in "--pp=2", "--pp=2 --micro-batches=2":
        yield f"other output/{layout}", otherOutput, layout, "--cut=/a"
    yield "to a folder", asFolder
    yield "evaluation mode", evaluationMode
    yield "evaluation mode of a plan that trains", notBoth
    yield "random model", randomModel
    yield "outputs without samples", leftOut
    yield ("without data", refused, ["--predict=out.npz"],
           "--predict has no use in this run: it is for samples (--data)")
    yield ("with steps", refused,
           ["--data=x.npz", "--predict=out.npz", "--steps=3"],
           "--steps has no use in this run: it is for training (--data, without "
           "--predict)")
    yield ("of the training program", refused,
           ["--data=x.npz", "--predict=out.npz", "--program=main"],
           "program 'main' trains, and the plan has none that predicts: compile "
           "it again with axopt --train, or with --eval")
    for each in (True, False):
        yield f"graphs/{each}", graphs, each, ""
    for layout in ("--dp=2", "--tp=2", "--dp=2 --zero=3"):
        yield f"graphs/{layout}", graphs, True, layout
    yield "graphs that do not fit", badGraphs
    yield "one by one", oneByOne
