# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What depends on weights alone is computed once, when they are loaded."""
import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from cases import Failed, run, scratch, tool

node = helper.make_node


def save(path, nodes, weights, x, y, opset=17):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [value("x", TensorProto.FLOAT, x)],
        [value("y", TensorProto.FLOAT, y)],
        [numpy_helper.from_array(np.asarray(array), name)
         for name, array in weights.items()])
    onnx.save(helper.make_model(
        graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)]),
        path)


def nfnet(path):
    """Convolutions whose weights are standardised, channel by channel: of their
    first two means, which `--tp` splits too, the second is over channels."""
    rng = np.random.default_rng(3)
    size, nodes, x = 64, [], "x"
    weights = {"eps": np.float32(1e-4)}
    for i in "012":
        weights[f"w{i}"] = rng.standard_normal([size, size, 3, 3]).astype("f")
        weights[f"g{i}"] = rng.random([size, 1, 1, 1]).astype("f") / 8
        nodes += [node("ReduceMean", [f"w{i}"], [f"m{i}"], axes=[1, 2, 3]),
                  node("Sub", [f"w{i}", f"m{i}"], [f"d{i}"]),
                  node("Mul", [f"d{i}", f"d{i}"], [f"q{i}"]),
                  node("ReduceMean", [f"q{i}"], [f"v{i}"], axes=[1, 2, 3]),
                  node("Add", [f"v{i}", "eps"], [f"e{i}"]),
                  node("Sqrt", [f"e{i}"], [f"s{i}"]),
                  node("Div", [f"d{i}", f"s{i}"], [f"n{i}"]),
                  node("Mul", [f"n{i}", f"g{i}"], [f"k{i}"]),
                  node("Conv", [x, f"k{i}"], [f"c{i}"], pads=[1] * 4),
                  node("Relu", [f"c{i}"], [f"r{i}"])]
        x = f"r{i}"
    nodes.append(node("Mul", [x, x], ["y"]))
    save(path, nodes, weights, [1, size, 8, 8], [1, size, 8, 8])


def lstm(path):
    """As PyTorch writes it: gates in another order, put together again."""
    rng = np.random.default_rng(4)
    wide, steps, batch, size = 48, 5, 2, 160
    weights, nodes = {"zero": np.array([0])}, []
    for name, shape in (("w", [4 * size, wide]), ("r", [4 * size, size]),
                        ("b", [8 * size])):
        weights[name] = rng.standard_normal(shape).astype("f") / 8
        gates = [0, 3, 1, 2] if name != "b" else [0, 3, 1, 2, 4, 7, 5, 6]
        for gate in gates:
            for end, at in ("from", gate), ("to", gate + 1):
                weights[f"{end}{gate}"] = np.array([at * size])
            nodes.append(node("Slice", [name, f"from{gate}", f"to{gate}",
                                        "zero"], [f"{name}{gate}"]))
        nodes += [node("Concat", [f"{name}{gate}" for gate in gates],
                       [f"{name}.all"], axis=0),
                  node("Unsqueeze", [f"{name}.all", "zero"], [f"{name}.in"])]
    nodes += [node("LSTM", ["x", "w.in", "r.in", "b.in"], ["y"],
                   hidden_size=size)]
    save(path, nodes, weights, [steps, batch, wide], [steps, 1, batch, size])


def embedding(path):
    """Rows of a table of bytes, which a product takes whole as well."""
    rng = np.random.default_rng(5)
    weights = {"e": rng.integers(-100, 100, [4096, 320], np.int8),
               "w": rng.integers(-100, 100, [320, 1024], np.int8),
               "scale": np.float32(0.01), "zero": np.int8(3)}
    save(path, [node("DequantizeLinear", ["e", "scale", "zero"], ["table"]),
                node("DequantizeLinear", ["w", "scale", "zero"], ["v"]),
                node("Cast", ["x"], ["i"], to=TensorProto.INT64),
                node("Gather", ["table", "i"], ["rows"]),
                node("MatMul", ["rows", "v"], ["y"])],
         weights, [3], [3, 1024])


MODELS = {"nfnet": nfnet, "lstm": lstm, "embedding": embedding}


def parts(plan):
    """The texts of @main and @prepare."""
    main, _, prepare = Path(plan).read_text().partition("ax.program @prepare")
    return main[main.index("ax.program @main"):], prepare


def inputOf(model):
    shape = [dim.dim_value for dim in
             model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(6).standard_normal(shape).astype("f")
    return np.array([0, 4095, 7], "f") if shape == [3] else x


def agrees(folder, plan, model, x, *flags):
    np.save(f"{folder}/x.npy", x)
    run(tool("axrun"), plan, "--input", f"x={folder}/x.npy", "--output",
        f"{folder}/y.npy", *flags)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    wanted, = session.run(None, {"x": x})
    got = np.load(f"{folder}/y.npy")
    if not np.abs(got - wanted).max() <= 1e-4 * np.abs(wanted).max():
        raise Failed(f"{plan}: {got}, not {wanted}")


# What is not to be in @main.
ABSENT = {"nfnet": "ax.reduce |ax.unary sqrt|ax.all_reduce.*x1x1x1xf32",
          "lstm": "ax.load @[wrb] |ax.concat.*1024x",
          "embedding": "ax.load @w |ax.binary mul .*tensor<320x1024"}


def once(name, *flags):
    with scratch() as folder:
        MODELS[name](f"{folder}/model.onnx")
        model = onnx.load(f"{folder}/model.onnx")
        plan = f"{folder}/plan.mlir"
        done = run(tool("axopt"), f"{folder}/model.onnx", "-o", plan, *flags)
        main, prepare = parts(plan)
        if not re.search(r"once when the plan is loaded", done.stderr) or \
                not re.search(r"\d+ prepared states, [\d.]+ \w+ a rank",
                              done.stderr):
            raise Failed(done.stderr)
        if found := re.search(ABSENT[name], main):
            raise Failed(f"{name}: @main has {found[0]}")
        assert "ax.store" in prepare and "ax.store" not in main
        if name == "embedding":
            assert "ax.load @e :" in main and "@e :" not in prepare, main
        agrees(folder, plan, model, inputOf(model))
        # The same with weights that are given when it runs.
        rng = np.random.default_rng(7)
        given = {}
        for tensor in model.graph.initializer:
            old = numpy_helper.to_array(tensor)
            if f"ax.state @{tensor.name} " in Path(plan).read_text():
                given[tensor.name] = rng.permutation(old.ravel()).reshape(
                    old.shape)
                tensor.CopyFrom(numpy_helper.from_array(
                    given[tensor.name], tensor.name))
            elif name == "embedding":  # Constants of the plan: as they are.
                given[tensor.name] = old
        assert given
        np.savez(f"{folder}/w.npz", **given)
        agrees(folder, plan, model, inputOf(model), "--weights",
               f"{folder}/w.npz")


def norms(path):
    """Of f16, which share a scale: it is widened, and split with what is
    normalised."""
    rng = np.random.default_rng(8)
    weights = {"w": rng.standard_normal([32, 3, 4, 4]),
               "g": 1 + rng.random(32), "b": rng.random(32)}
    save(path, [node("Cast", ["x"], ["n"], to=TensorProto.FLOAT16),
                node("Conv", ["n", "w"], ["c"], strides=[4, 4]),
                node("Transpose", ["c"], ["t"], perm=[0, 2, 3, 1]),
                node("LayerNormalization", ["t", "g", "b"], ["m"]),
                node("Relu", ["m"], ["r"]),
                node("LayerNormalization", ["r", "g", "b"], ["h"]),
                node("Cast", ["h"], ["y"], to=TensorProto.FLOAT)],
         {name: value.astype(np.float16) for name, value in weights.items()},
         [4, 3, 8, 8], [4, 2, 2, 32])


def shared():
    """Once for both norms; a plan that has it twice runs, too."""
    with scratch() as folder:
        path, plan = f"{folder}/model.onnx", Path(folder, "plan.mlir")
        norms(path)
        run(tool("axopt"), path, "-o", plan, "--tp=2")
        text = plan.read_text()
        assert len(re.findall("ax.state .*{prepared}", text)) == 2, text
        x = inputOf(onnx.load(path))
        np.save(f"{folder}/x.npy", x)
        run(tool("axrun"), plan, "--input", f"x={folder}/x.npy", "--output",
            f"{folder}/y.npy")
        for kind in "state", "store":
            text = re.sub(f"( *ax.{kind} )@g.prepared(.*\n)",
                          r"\g<0>\1@again\2", text)
        assert text.count("@again") == 2, text
        plan.write_text(text)
        run(tool("axrun"), plan, "--input", f"x={folder}/x.npy", "--expect",
            f"{folder}/y.npy", "--rtol=0", "--atol=0")
        session = onnxruntime.InferenceSession(path)
        wanted, = session.run(None, {"x": x})
        np.testing.assert_allclose(np.load(f"{folder}/y.npy"), wanted, atol=2e-2)


def cases(every):
    yield "shared by two layers", shared
    for name in MODELS:
        for flags in ["--tp=1"], ["--tp=2"], ["--pp=2"], \
                ["--dp=1", "--tp=2", "--pp=2"]:
            yield " ".join([name, *flags]), once, name, *flags
