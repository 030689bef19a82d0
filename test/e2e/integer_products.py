# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products and convolutions of integers of eight bits, as quantised models have
them, beside onnxruntime: whichever has a sign, with all kinds of zero points and
scales, at both ends of their range."""
import copy
import os

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from cases import Failed, run, scratch, tool

ROWS, TERMS, COLUMNS = 6, 64, 32
IMAGE, FILTERS = (2, 8, 7, 6), 16
SIGNED, UNSIGNED = np.int8, np.uint8


def endsOf(weights):
    """Of all numbers; but onnxruntime's sums of two products of u8 and i8 saturate on
    processors without VNNI, where these have seven bits."""
    ends = np.iinfo(weights)
    if weights is UNSIGNED or multipliesIntegers():
        return ends.min, ends.max
    return ends.min // 2, ends.max // 2


class Product:
    """One that ends in f32, of x and the weight w."""

    def __init__(self, seed, weights, few=False, terms=TERMS, columns=COLUMNS):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.values = [], {}
        least, most = endsOf(weights)
        w = self.rng.integers(least, most + 1, (terms, columns))
        w[:, 0], w[:, 1] = least, most
        self.values["w"] = w.astype(weights)
        self.x = self.rng.standard_normal((ROWS, terms)).astype(np.float32)
        self.x[0], self.x[1] = -9, 9
        if few:
            self.x = self.x[:1]

    def node(self, op, inputs, outputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, outputs, **attributes))

    def value(self, name, array):
        self.values[name] = np.array(array)
        return name

    def save(self, path):
        graph = helper.make_graph(
            self.nodes, "product",
            [helper.make_tensor_value_info("x", 1, self.x.shape)],
            [helper.make_tensor_value_info("y", 1, None)],
            [numpy_helper.from_array(array, name)
             for name, array in self.values.items()])
        onnx.save(helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
            path)


def zero_point(weights, kind):
    """Nothing, the middle of unsigned numbers, or another number."""
    return weights({"none": 0, "middle": 128 if weights is UNSIGNED else 0,
                    "odd": 19}[kind])


def dynamic(p, weights, kind):
    p.node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])
    p.value("wz", zero_point(weights, kind))
    p.node("MatMulInteger", ["q", "w", "z", "wz"], ["i"])
    p.node("Cast", ["i"], ["f"], to=1)
    p.node("Mul", ["f", "s"], ["y"])


def columnsOf(weights, kind):
    """A zero point of each column of the weight: the same one, or from one end of
    the numbers to the other."""
    if kind == "columns":
        ends = np.iinfo(weights)
        return np.linspace(ends.min, ends.max, COLUMNS).astype(weights)
    return np.full(COLUMNS, zero_point(weights, kind))


def dequantized(p, weights, kind, activations, transposed):
    """QuantizeLinear, DequantizeLinear, and a product of floats."""
    p.value("s", np.float32(0.07))
    p.value("z", activations(0 if kind == "none" else 5))
    p.node("QuantizeLinear", ["x", "s", "z"], ["q"])
    p.node("DequantizeLinear", ["q", "s", "z"], ["xd"])
    axis = 0 if transposed else 1
    if transposed:
        p.values["w"] = np.ascontiguousarray(p.values["w"].T)
    p.value("ws", p.rng.uniform(0.001, 0.01, COLUMNS).astype(np.float32))
    p.value("wz", columnsOf(weights, kind))
    p.node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=axis)
    if transposed:
        p.value("b", p.rng.standard_normal(COLUMNS).astype(np.float32))
        p.node("Gemm", ["xd", "wd", "b"], ["y"], transB=1)
    else:
        p.node("MatMul", ["xd", "wd"], ["y"])


class Convolution(Product):
    """One of a padded image, with filters of the ends of their range alone."""

    def __init__(self, seed, weights, groups):
        super().__init__(seed, weights)
        least, most = endsOf(weights)
        self.groups = groups
        shape = FILTERS, IMAGE[1] // groups, 3, 3
        w = self.rng.integers(least, most + 1, shape)
        w[0], w[1] = least, most
        self.values["w"] = w.astype(weights)
        self.x = self.rng.standard_normal(IMAGE).astype(np.float32)
        self.x[0, :, 0], self.x[0, :, 1] = -9, 9

    def conv(self, op, inputs, output):
        self.node(op, inputs, [output], group=self.groups, pads=[1, 0, 2, 1],
                  strides=[2, 1])


def convDynamic(p, weights, kind):
    p.node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])
    p.value("wz", zero_point(weights, kind))
    p.conv("ConvInteger", ["q", "w", "z", "wz"], "i")
    p.node("Cast", ["i"], ["f"], to=1)
    p.node("Mul", ["f", "s"], ["y"])


def convDequantized(p, weights, kind, activations):
    p.value("s", np.float32(0.07))
    p.value("z", activations(0 if kind == "none" else 5))
    p.node("QuantizeLinear", ["x", "s", "z"], ["q"])
    p.node("DequantizeLinear", ["q", "s", "z"], ["xd"])
    p.value("ws", p.rng.uniform(0.001, 0.01, FILTERS).astype(np.float32))
    p.value("wz", np.full(FILTERS, zero_point(weights, kind)))
    p.node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0)
    p.value("b", p.rng.standard_normal(FILTERS).astype(np.float32))
    p.conv("Conv", ["xd", "wd", "b"], "c")
    p.node("Relu", ["c"], ["y"])


def multipliesIntegers():
    with open("/proc/cpuinfo") as lines:
        return any("avx512_vnni" in line for line in lines)


def agrees(product, weights, fill, *form):
    # Other devices have the same one.
    product = copy.deepcopy(product)
    fill(product, weights, *form)
    w = product.values["w"]
    with scratch() as folder:
        model = f"{folder}/model.onnx"
        product.save(model)
        options = onnxruntime.SessionOptions()
        # It rounds otherwise what it has fused.
        options.graph_optimization_level = (
            onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
        session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"])
        np.savez(f"{folder}/x.npz", x=product.x)
        np.savez(f"{folder}/y.npz", y=session.run(None, {"x": product.x})[0])
        for layout in "--tp=1", "--tp=2", "--tp=2x2x1":
            run(tool("axopt"), model, layout, "-o", f"{folder}/plan.mlir")
            run(tool("axrun"), f"{folder}/plan.mlir", "--inputs",
                f"{folder}/x.npz", "--expect", f"{folder}/y.npz",
                "--rtol=1e-5", "--atol=1e-4")
            commands = run(tool("axrun"), f"{folder}/plan.mlir",
                           "--list-commands").stdout
            if os.environ.get("AXRUN_DEVICE") == "cuda":
                # A row times weights that stand for floats is a kernel.
                wanted = w.ndim == 2 and (fill is dynamic or len(product.x) > 1)
                if layout == "--tp=1" and ("i8" in commands) != wanted:
                    raise Failed(commands)
                continue
            # Weights of groups have a sign, or a zero point in the middle.
            isGrouped = getattr(product, "groups", 1) > 1
            kind = "middle" if weights is UNSIGNED else "none"
            if (multipliesIntegers() and layout == "--tp=1"
                    and (not isGrouped or form[0] == kind)
                    and "i8" not in commands):
                raise Failed(f"no product of integers:\n{commands}")


def all_cases():
    seed = 0
    # Of sizes that a GPU's library has with padding alone.
    for terms in 60, 300:
        seed += 1
        yield (f"dynamic-{terms}terms", agrees,
               Product(seed, UNSIGNED, terms=terms, columns=20), UNSIGNED, dynamic,
               "odd")
    for weights in SIGNED, UNSIGNED:
        for transposed in False, True:
            seed += 1
            yield (f"dequantized-{weights.__name__}-columns-{transposed}", agrees,
                   Product(seed, weights), weights, dequantized, "columns", UNSIGNED,
                   transposed)
    for weights in SIGNED, UNSIGNED:
        for kind in "none", "middle", "odd":
            for few in False, True:
                forms = [(dynamic, kind)]
                forms += [(dequantized, kind, activations, transposed)
                          for activations in (SIGNED, UNSIGNED)
                          for transposed in (False, True)]
                for form in forms:
                    seed += 1
                    name = "-".join([form[0].__name__, weights.__name__, kind]
                                    + [getattr(f, "__name__", str(f))
                                       for f in form[2:]]
                                    + ["row"] * few)
                    yield (name, agrees, Product(seed, weights, few), weights,
                           *form)
            for groups in 1, 2, IMAGE[1]:
                for form in ((convDynamic, kind),
                             (convDequantized, kind, SIGNED),
                             (convDequantized, kind, UNSIGNED)):
                    seed += 1
                    name = "-".join([form[0].__name__, weights.__name__, kind]
                                    + [f.__name__ for f in form[2:]]
                                    + [f"{groups}groups"])
                    yield (name, agrees, Convolution(seed, weights, groups),
                           weights, *form)


def cases(every):
    """Without `every` a third, which has each kind of each choice."""
    return [case for number, case in enumerate(all_cases())
            if every or number % 3 == 0]
