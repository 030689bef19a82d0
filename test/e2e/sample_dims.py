# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which dimension of an output counts samples: predictions of any number of
samples, put together along it, beside onnxruntime on all of them at once."""
import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from _onnx_text import model as textModel
from _training import axrun, close
from cases import MODELS, Failed, minilm, run, scratch, tool

LSTM = """
xs = Transpose<perm=[1, 0, 2]>(x)
Y, hn = LSTM<hidden_size=6>(xs, w, r)
squeezed = Squeeze(Y, one)
y = Transpose<perm=[1, 0, 2]>(squeezed)
"""


def lstm(batch="b"):
    made = textModel(f"float[{batch},4,3] x", f"float[{batch},4,6] y, "
                     f"float[4,1,{batch},6] Y, float[1,{batch},6] hn",
                     LSTM.strip(), "int64[1] one = {1}", opset=20)
    random = np.random.default_rng(0)
    for name, size in dict(w=3, r=6).items():
        array = random.standard_normal((1, 24, size), np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return made


def predict(folder, made, data, *flags, expect=0, says=None):
    """The outputs, if there are any, and what was said."""
    folder = Path(folder)
    model, plan, out = (folder / name for name in
                        ("model.onnx", "plan.mlir", "out.npz"))
    onnx.save(made, model)
    np.savez(folder / "data.npz", **data)
    run(tool("axopt"), model, "--quiet", "-o", plan, *flags)
    done = axrun(plan, "--data", folder / "data.npz", "--predict", out,
                 expect=expect, **({"says": says} if says else {}))
    if expect:
        assert not out.exists()
        return {}, done
    return dict(np.load(out)), done


def inFull(made, data):
    session = onnxruntime.InferenceSession(made.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, data)))


def same(got, wanted):
    if set(got) != set(wanted):
        raise Failed(f"predicted are {list(got)}, not {list(wanted)}")
    for name, array in got.items():
        if array.shape != wanted[name].shape:
            raise Failed(f"{name} is {array.shape}, not {wanted[name].shape}")
        close(array, wanted[name], 1e-5, name)


def lastStates(batch, layout):
    """Whichever dimension an LSTM's outputs have their batch in, also one that
    is as large as another, and on layouts that put them together again."""
    made = lstm()
    data = {"x": np.random.default_rng(1).standard_normal((7, 4, 3), np.float32)}
    with scratch() as folder:
        got, _ = predict(folder, made, data, "--dim", f"b={batch}",
                         *layout.split())
    same(got, inFull(made, data))


def fixedBatch():
    """Without names of dimensions and with a batch of 1, dimensions of 1 cannot
    be told apart."""
    made = lstm(1)
    data = {"x": np.random.default_rng(1).standard_normal((3, 4, 3), np.float32)}
    with scratch() as folder:
        got, _ = predict(
            folder, made, data, says="left out: no one dimension is known to "
            "count samples of 'Y' (4x1x1x6), 'hn' (1x1x6); a plan for a larger "
            "batch may tell")
    same(got, {"y": inFull(lstm(), data)["y"]})


def timeFirst():
    """The first dimension of the input counts no samples: nothing is given."""
    made = textModel("float[4,b,3] x", "float[4,1,b,6] Y, float[1,b,6] hn",
                     "Y, hn = LSTM<hidden_size=6>(x, w, r)", opset=20)
    for tensor in lstm().graph.initializer:
        if tensor.name != "one":
            made.graph.initializer.append(tensor)
    with scratch() as folder:
        for batch in (4, 2, 1):
            predict(folder, made,
                    {"x": np.ones((7, batch, 3), np.float32)}, "--dim",
                    f"b={batch}", expect=2, says="program 'main' gives nothing "
                    "for each sample: no one dimension is known to count "
                    f"samples of 'Y' (4x1x{batch}x6), 'hn' (1x{batch}x6)")


# Of x, float[b,4]: outputs, nodes, and which outputs are by sample.
OTHERS = {
    "with itself": ("float[b,b] y", "t = Transpose<perm=[1, 0]>(x)\n"
                    "y = MatMul(x, t)", []),
    "differences": ("float[b,b,4] y", "one = Constant<value_ints=[1]>()\n"
                    "v = Unsqueeze(x, one)\ny = Sub(x, v)", []),
    "mean": ("float[1,4] y, float[b,4] z", "y = ReduceMean<keepdims=1>(x, zero)\n"
             "z = Sub(x, y)", ["z"]),
    "twice": ("float[c,4] y, float[b,4] z", "y = Concat<axis=0>(x, x)\n"
              "z = Tanh(x)", ["z"]),
    "backwards": ("float[b,4] y, float[b,4] z", "start = "
                  "Constant<value_ints=[-1]>()\nend = "
                  "Constant<value_ints=[-1000]>()\ny = Slice(x, start, end, zero, "
                  "start)\nz = Tanh(x)", ["z"]),
    "sorted": ("float[b,4] z, float[d,4] y, int64[d,4] i", "z = Tanh(x)\none = "
               "Constant<value_ints=[1]>()\ny, i = TopK<axis=0>(x, one)", ["z"]),
    "rows of samples": ("float[c,2] y", "n = Constant<value_ints=[-1, 2]>()\n"
                        "y = Reshape(x, n)", ["y"]),
    "columns of samples": ("float[4,b] y, float[c] z", "y = Transpose<perm=[1, "
                           "0]>(x)\nn = Constant<value_ints=[-1]>()\n"
                           "z = Reshape(y, n)", ["y"]),
    "of no sample": ("float[4] y, float[b,4] z", "y = Tanh(k)\nz = Add(x, y)",
                     ["z"]),
    "written into": ("float[b,4] y", "y = ScatterND(x, at, u)", ["y"]),
}


def others(name, batch, layout):
    """What is of a batch as a whole, of several samples at once, or in another
    order is left out."""
    outputs, nodes, wanted = OTHERS[name]
    made = textModel("float[b,4] x", outputs, nodes, "int64[1] zero = {0}, "
                     "float[4] k = {1, 2, 3, 4}, int64[1,2] at = {0, 1}, "
                     "float[1] u = {7}", opset=20)
    data = {"x": np.random.default_rng(1).standard_normal((5, 4), np.float32)}
    with scratch() as folder:
        got, done = predict(folder, made, data, "--dim", f"b={batch}",
                            *layout.split(), expect=0 if wanted else 2)
    if set(got) != set(wanted):
        raise Failed(f"predicted are {list(got)}, not {wanted}")
    lines = re.findall("no one dimension is known to count samples", done.stderr)
    if len(lines) != (len(made.graph.output) > len(wanted)):
        raise Failed(f"said is {done.stderr}")
    # Other outputs are of the batches that the plan makes.
    if name in ("rows of samples", "columns of samples"):
        same(got, {key: array for key, array in inFull(made, data).items()
                   if key in wanted})


def ofTraining():
    """The program @predict of a plan that trains."""
    made = lstm()
    data = {"x": np.random.default_rng(1).standard_normal((7, 4, 3), np.float32)}
    with scratch() as folder:
        got, _ = predict(folder, made, data, "--dim", "b=4", "--train",
                         "--loss=mse(y, target)", "--dp=2", "--tp=2")
    same(got, inFull(made, data))


def models(folder):
    """Outputs of real models, exported with a batch or for any: by sample, in
    their first dimension."""
    with scratch() as made:
        plan = Path(made) / "plan.mlir"
        graph = (minilm() if folder.name == "minilm" else folder) / "model.onnx"
        run(tool("axopt"), graph, "--quiet", "--test-data", folder, "-o", plan)
        results = re.search(r"ax.program @main\(.*?\) -> (.*) \{\n",
                            plan.read_text())[1]
    if results.count("ax.name") != results.count("ax.samples = 0"):
        raise Failed(f"not all by sample: {results}")


def cases(every):
    for batch in (1, 2, 3, 4, 6):
        yield f"last states/{batch}", lastStates, batch, ""
    for layout in ("--tp=2", "--dp=2", "--pp=2", "--pp=2 --micro-batches=2",
                   "--dp=2 --tp=2 --pp=2"):
        yield f"last states/{layout}", lastStates, 4, layout
    yield "fixed batch of 1", fixedBatch
    yield "time first", timeFirst
    for name in OTHERS:
        # One sample backwards is itself.
        for batch in (4,) if name == "backwards" else (1, 4):
            yield f"{name}/{batch}", others, name, batch, ""
        yield f"{name}/--dp=2", others, name, 2, "--dp=2"
    yield "of a plan that trains", ofTraining
    for folder in sorted(path.parent for path in MODELS.glob("*/model.onnx")):
        yield f"{folder.name}", models, folder
