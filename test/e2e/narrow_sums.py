# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of f16 and bf16 are made in f32, on one rank and over ranks: beside the
same in f64."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cases import Failed, run, scratch, tool

TYPES = {"f16": (TensorProto.FLOAT16, 2.0 ** -10),
         "bf16": (TensorProto.BFLOAT16, 2.0 ** -7)}


def rounded(values, element):
    """What f64 numbers become in a narrow type, as f64."""
    array = np.asarray(values, np.float64)
    if element == "f16":
        return array.astype(np.float16).astype(np.float64)
    bits = array.astype(np.float32).view(np.uint32)
    bits = bits + 0x7fff + (bits >> 16 & 1) & 0xffff0000
    return bits.astype(np.uint32).view(np.float32).astype(np.float64)


def compare(element, nodes, inputs, weights, wanted, layouts, shard=()):
    """Inputs and outputs of the model are f32: casts are its first and last."""
    kind, unit = TYPES[element]
    shapes = {name: list(value.shape) for name, value in inputs.items()}
    first = [helper.make_node("Cast", [name], [f"{name}16"], to=kind)
             for name in inputs]
    last = [helper.make_node("Cast", [name], [f"{name}32"],
                             to=TensorProto.FLOAT) for name in wanted]
    stored = []
    for name, value in weights.items():
        if value.dtype == np.int64:
            stored.append(numpy_helper.from_array(value, name))
            continue
        # Raw bytes: numpy has no bf16.
        value = rounded(value, element)
        bits = (value.astype(np.float16).view(np.uint16) if element == "f16"
                else (value.astype(np.float32).view(np.uint32) >> 16
                      ).astype(np.uint16))
        stored.append(helper.make_tensor(name, kind, value.shape,
                                         bits.tobytes(), raw=True))
    graph = helper.make_graph(
        first + nodes + last, "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
         for name, shape in shapes.items()],
        [helper.make_tensor_value_info(f"{name}32", TensorProto.FLOAT, None)
         for name in wanted], stored)
    with scratch() as folder:
        onnx.save(helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 20)],
            ir_version=10), f"{folder}/model.onnx")
        np.savez(f"{folder}/in.npz",
                 **{name: value.astype(np.float32)
                    for name, value in inputs.items()})
        for layout in layouts:
            run(tool("axopt"), f"{folder}/model.onnx", *layout.split(),
                *(shard if layout else ()), "--quiet",
                "-o", f"{folder}/plan.mlir")
            run(tool("axrun"), f"{folder}/plan.mlir", "--inputs",
                f"{folder}/in.npz", "--output", f"{folder}/out.npz")
            results = np.load(f"{folder}/out.npz")
            for name, right in wanted.items():
                got = results[f"{name}32"].astype(np.float64)
                if got.shape != np.shape(right) or not np.allclose(
                        got, right, rtol=2 * unit, atol=1e-4):
                    raise Failed(f"{name}, '{layout}': {got.ravel()[:8]}, not "
                                 f"{np.ravel(right)[:8]}")


def reductions(element, layouts, shard=()):
    """Of numbers whose sums, or whose count's inverse, f16 does not hold."""
    random = np.random.default_rng(0)
    x = rounded(40 + random.integers(-3, 4, (2, 4, 32, 32)), element)
    nodes, wanted = [], {}

    def add(operator, right, axes=None, **attributes):
        name = f"y{len(nodes)}_{operator}"
        inputs = ["x16"] + ([axes] if axes else [])
        nodes.append(helper.make_node(operator, inputs, [name], name,
                                      **attributes))
        wanted[name] = right

    dims = (1, 2, 3)
    add("ReduceMean", x.mean(dims), "axes", keepdims=0)
    add("ReduceMean", x.mean(keepdims=True))
    add("ReduceL2", np.sqrt((x ** 2).sum(dims)), "axes", keepdims=0)
    add("ReduceLogSum", np.log(x.sum(dims)), "axes", keepdims=0)
    add("ReduceLogSumExp", np.log(np.exp(x).sum(dims)), "axes", keepdims=0)
    add("GlobalAveragePool", x.mean((2, 3), keepdims=True))
    add("GlobalLpPool", np.sqrt((x ** 2).sum((2, 3), keepdims=True)))
    add("AveragePool", x.mean((2, 3), keepdims=True), kernel_shape=[32, 32])
    add("LpPool", np.sqrt((x ** 2).sum((2, 3), keepdims=True)),
        kernel_shape=[32, 32])
    add("LpNormalization", x / np.sqrt((x ** 2).sum(1, keepdims=True)), axis=1)
    add("LpNormalization", x / np.abs(x).sum(3, keepdims=True), axis=3, p=1)
    centred = x - x.mean((2, 3), keepdims=True)
    # What is left after x - mean must count.
    deviation = np.sqrt((centred ** 2).mean((2, 3), keepdims=True) + 1e-5)
    nodes.append(helper.make_node(
        "InstanceNormalization", ["x16", "one", "zero"], ["normal"], "normal"))
    wanted["normal"] = centred / deviation
    weights = {"axes": np.array(dims, np.int64), "one": np.ones(4),
               "zero": np.zeros(4)}
    compare(element, nodes, {"x": x}, weights, wanted, layouts, shard)


def largeMean():
    """1 / n is subnormal in f16, n itself is above its range."""
    x = np.full((1, 2, 300, 300), 40.0)
    compare("f16", [helper.make_node("ReduceMean", ["x16"], ["mean"]),
                    helper.make_node("Sum", ["x16"] * 2, ["twice"]),
                    helper.make_node("Mean", ["big16"] * 2, ["same"])],
            {"x": x, "big": np.full(3, 60000.0)}, {},
            {"mean": np.full((1, 1, 1, 1), 40.0), "twice": 2 * x,
             "same": rounded(np.full(3, 60000.0), "f16")}, ["", "--dp=1"])


def many(element, layouts):
    """Of more elements than a GPU does in one kernel."""
    random = np.random.default_rng(0)
    x = rounded(4 + random.integers(-3, 4, (8192, 24)), element)
    row = x.reshape(1, -1)

    def logSoftmax(of, axis):
        return of - np.log(np.exp(of).sum(axis, keepdims=True))

    nodes = [helper.make_node("ReduceMean", ["x16"], ["mean"], keepdims=0),
             helper.make_node("ReduceL2", ["x16"], ["root"], keepdims=0),
             helper.make_node("ReduceMean", ["x16", "axes"], ["columns"]),
             helper.make_node("Add", ["columns", "bias"], ["sums"]),
             helper.make_node("LogSoftmax", ["x16"], ["across"], axis=0),
             helper.make_node("Reshape", ["x16", "shape"], ["row"]),
             helper.make_node("LogSoftmax", ["row"], ["along"], axis=1),
             helper.make_node("LayerNormalization", ["row", "one"], ["layer"])]
    compare(element, nodes, {"x": x},
            {"axes": np.array([0]), "shape": np.array(row.shape),
             "bias": np.arange(24.0), "one": np.ones(row.size)},
            {"mean": x.mean(), "root": np.sqrt((x ** 2).sum()),
             "sums": x.mean(0, keepdims=True) + np.arange(24.0),
             "across": logSoftmax(x, 0), "along": logSoftmax(row, 1),
             "layer": (row - row.mean()) / np.sqrt(row.var() + 1e-5)}, layouts)


def products(element, layouts):
    """Addends of ranks beyond the range, whose sum is not."""
    random = np.random.default_rng(0)
    k, n = 64, 8
    x = rounded(random.integers(-2, 3, (4, k)) + 50.0, element)
    w1 = np.eye(k)
    # Each half of w2 gives some 1e5, with the other sign.
    w2 = np.where(np.arange(k) < k // 2, 64.0, -64.0)[:, None] * np.ones((k, n))
    bias = rounded(np.arange(n), element)
    images = rounded(random.integers(-2, 3, (2, k, 3, 3)) + 50.0, element)
    kernel = w2.T[:, :, None, None]
    convolved = np.einsum("bkhw,nk->bnhw", images, w2.T)
    nodes = [helper.make_node("MatMul", ["x16", "w1"], ["h"], "up"),
             helper.make_node("Gemm", ["h", "w2", "bias"], ["y"], "down"),
             helper.make_node("Conv", ["i16", "eye"], ["hi"], "up2"),
             helper.make_node("Conv", ["hi", "kernel"], ["z"], "down2")]
    compare(element, nodes, {"x": x, "i": images},
            {"w1": w1, "w2": w2, "bias": bias, "kernel": kernel,
             "eye": w1[:, :, None, None]},
            {"y": x @ w2 + bias, "z": convolved}, layouts)


def splitRows(element, layouts):
    """Softmax and norms of rows that ranks share."""
    random = np.random.default_rng(0)
    k = 128
    x = rounded(random.integers(-3, 4, (4, k)) * 4.0 + 300, element)
    mean = x.mean(1, keepdims=True)
    deviation = np.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + 1e-5)
    root = np.sqrt((x ** 2).mean(1, keepdims=True) + 1e-5)
    e = np.exp(x - x.max(1, keepdims=True))
    nodes = [helper.make_node("MatMul", ["x16", "w"], ["h"], "up"),
             helper.make_node("LayerNormalization", ["h", "one"], ["layer"]),
             helper.make_node("Mul", ["h", "h"], ["square"]),
             helper.make_node("ReduceMean", ["h", "axes"], ["mean"]),
             helper.make_node("ReduceL2", ["h", "axes"], ["root"]),
             helper.make_node("Softmax", ["h"], ["soft"])]
    compare(element, nodes, {"x": x},
            {"w": np.eye(k), "one": np.ones(k), "axes": np.array([1])},
            {"layer": (x - mean) / deviation, "mean": mean,
             "root": root * np.sqrt(k), "soft": e / e.sum(1, keepdims=True)},
            layouts)


def cases(every):
    for element in TYPES:
        yield f"reductions {element}", reductions, element, ["", "--dp=2"]
        yield f"many {element}", many, element, ["", "--dp=2"]
        # The reduced dimensions themselves are split.
        for dim in 1, 2, 3:
            split = ["{}"] * 4
            split[dim] = "{col}"
            yield (f"reductions of split dimension {dim} {element}", reductions,
                   element, ["--tp=2"],
                   ["--shard", f"x=[{', '.join(split)}]"])
        yield (f"products {element}", products, element,
               ["", "--tp=2", "--tp=4", "--dp=2", "--tp=1x2x2",
                "--tp=2 --sequence-parallel"])
        yield (f"split rows {element}", splitRows, element,
               ["", "--tp=2", "--dp=2 --tp=2"])
    yield "mean of many", largeMean
