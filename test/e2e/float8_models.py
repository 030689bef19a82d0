# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that were quantised to floats of eight bits: on processors beside
onnxruntime, and multiplied in eight bits on simulated cards."""
import os
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from _contrib import byOnnxruntime
from _training import axrun, losses, states
from cases import Failed, run, scratch, tool

E4M3 = TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn
E5M2 = TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2
CARDS = os.environ | {
    "AXRUN_CUDA_PATH": str(Path(tool("axrun")).parents[1] / "test/simgpu"),
    "AXRUN_CUDA_ALGORITHMS": "1"}
# Of a batch.
ROWS = 32


class Net:
    """Linears whose factors are dequantised, with a GELU between them."""

    def __init__(self, activations=E4M3, columns=True, half=False,
                 transposed=False):
        self.random = np.random.default_rng(0)
        self.graph = onnx.GraphProto(name="net")
        self.activations, self.columns = activations, columns
        self.transposed = transposed
        self.float = (TensorProto.FLOAT16, np.float16) if half else \
            (TensorProto.FLOAT, np.float32)

    def add(self, op, inputs, output, **attributes):
        self.graph.node.append(
            helper.make_node(op, inputs, [output], output, **attributes))
        return output

    def constant(self, name, array):
        self.graph.initializer.append(
            numpy_helper.from_array(array.astype(self.float[1]), name))
        return name

    def narrow(self, name, kind, array):
        self.graph.initializer.append(helper.make_tensor(
            name, kind[0], array.shape, array.astype(kind[1]).tobytes(),
            raw=True))
        return name

    def quantised(self, x, scale):
        zero = self.narrow(x + ".zero", self.activations, np.zeros(()))
        scale = self.constant(x + ".scale", np.array(scale))
        q = self.add("QuantizeLinear", [x, scale, zero], x + ".q")
        return self.add("DequantizeLinear", [q, scale, zero], x + ".dq")

    def weight(self, name, k, n):
        w = self.random.standard_normal((k, n)) / np.sqrt(k)
        scale = np.abs(w).max(0, keepdims=not self.columns) / 448 \
            if self.columns else np.abs(w).max() / 448
        numbers = w / scale
        self.constant(name + ".scale", np.asarray(scale))
        q = self.narrow(name, E4M3, numbers.T if self.transposed else numbers)
        dq = self.add("DequantizeLinear", [q, name + ".scale"], name + ".dq",
                      axis=0 if self.transposed else 1)
        return self.add("Transpose", [dq], name + ".t", perm=[1, 0]) \
            if self.transposed else dq

    def model(self, *sizes):
        x = "x"
        for i, (k, n) in enumerate(zip(sizes, sizes[1:])):
            y = self.add("MatMul", [self.quantised(x, 0.01),
                                    self.weight(f"w{i}", k, n)], f"y{i}")
            b = self.constant(f"b{i}", self.random.standard_normal(n))
            x = self.add("Add", [y, b], f"z{i}")
            if i + 2 < len(sizes):
                x = self.add("Tanh", [x], f"t{i}")
        return self.made("x", x, ["batch", sizes[0]], ["batch", sizes[-1]])

    def made(self, x, y, shape, ofResult=None):
        """What was added, from input `x` to output `y`."""
        value = helper.make_tensor_value_info
        self.graph.input.append(value(x, self.float[0], shape))
        self.graph.output.append(value(y, self.float[0], ofResult or shape))
        return helper.make_model(self.graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", 21)])

    def inputs(self, size, rows=ROWS):
        return self.random.standard_normal((rows, size)).astype(self.float[1])


def agree(rows, sizes, *layouts, **options):
    """Beside onnxruntime. A number on the edge of two becomes either, here and
    there, behind the first of several Linears, and where it is f16, which
    onnxruntime divides in f32."""
    net = Net(**options)
    model = net.model(*sizes)
    x = net.inputs(sizes[0], rows)
    wanted, = byOnnxruntime(model, {"x": x}).values()
    with scratch() as folder:
        onnx.save(model, f"{folder}/model.onnx")
        np.save(f"{folder}/x.npy", x)
        for layout in ["", *layouts]:
            run(tool("axopt"), f"{folder}/model.onnx", f"--dim=batch={rows}",
                *layout.split(), "--quiet", "-o", f"{folder}/plan.mlir")
            axrun(f"{folder}/plan.mlir", "--input", f"x={folder}/x.npy",
                  "--output", f"{folder}/y.npy")
            isExact = len(sizes) == 2 and not options.get("half")
            tolerance = 1e-5 if isExact else 2e-2
            found = np.load(f"{folder}/y.npy").astype(np.float32)
            apart = np.abs(found - wanted).max() / np.abs(wanted).max()
            if not apart <= tolerance:
                raise Failed(f"{layout}: {apart}")


def onCards(**options):
    """Multiplied in eight bits where a card does that, and else as bf16, which
    gives the same; as on processors."""
    net = Net(**options)
    sizes = [256, 512, 128]
    with scratch() as folder:
        onnx.save(net.model(*sizes), f"{folder}/model.onnx")
        np.save(f"{folder}/x.npy", net.inputs(sizes[0]))
        for layout in "", "--tp=2":
            run(tool("axopt"), f"{folder}/model.onnx", f"--dim=batch={ROWS}",
                *layout.split(), "--quiet", "-o", f"{folder}/plan.mlir")

            def results(name, *flags, **more):
                axrun(f"{folder}/plan.mlir", "--input", f"x={folder}/x.npy",
                      "--output", f"{folder}/{name}.npy", *flags, **more)
                return np.load(f"{folder}/{name}.npy").astype(np.float32)

            wanted = results("cpu")
            for capability, products in ("80", 0), ("90", 2):
                target = f"sm_{capability}+sim"
                found = results(
                    capability, "--device=cuda", "--no-host-fallback",
                    env=CARDS | {"SIMGPU_CAPABILITY": capability,
                                 "AXRUN_TARGET": target})
                if not np.abs(found - wanted).max() <= \
                        1e-2 * np.abs(wanted).max():
                    raise Failed(f"{target}: {found}, expected {wanted}")
                listed = axrun(f"{folder}/plan.mlir", f"--target={target}",
                               "--list-commands").stdout.splitlines()
                narrow = [line for line in listed
                          if ": matmul " in line and "f8E4M3FN" in line]
                if len(narrow) != products:
                    raise Failed("\n".join(listed))


def gradients(kind):
    """They go straight through what is rounded, however small they are, and
    keep their digits."""
    random = np.random.default_rng(0)
    x, t = random.standard_normal((2, 16, 16)).astype(np.float32)
    w, v = random.standard_normal((2, 16, 16)).astype(np.float32)
    v *= np.float32(1e-5)
    scale = np.float32(0.05)
    net = Net(activations=kind)
    net.add("MatMul", ["x", net.constant("w", w)], "h")
    net.add("MatMul", [net.quantised("h", scale), net.constant("v", v)], "y")
    with scratch() as folder:
        onnx.save(net.made("x", "y", [16, 16]), f"{folder}/model.onnx")
        np.savez(f"{folder}/data.npz", x=x, t=t)
        run(tool("axopt"), f"{folder}/model.onnx", "--train",
            "--loss=mse(y,t)", "--optimizer=sgd(lr=1e4)", "--frozen=v",
            "-o", f"{folder}/plan.mlir")
        axrun(f"{folder}/plan.mlir", "--data", f"{folder}/data.npz",
              "--steps=1", "--save-weights", f"{folder}/w.safetensors")
        found = dict(states(f"{folder}/w.safetensors"))["w"] - w
    rounded = (x @ w / scale).astype(kind[1]).astype(np.float32) * scale
    error = 2 * (rounded @ v - t) / t.size
    wanted = -1e4 * x.T @ (error @ v.T)
    if not np.abs(found - wanted).max() <= 1e-3 * np.abs(wanted).max():
        raise Failed(f"{found}, expected {wanted}")


def product():
    """QLinearMatMul of floats."""
    random = np.random.default_rng(0)
    a, b = ((random.standard_normal((16, 16)) * 4).astype(E4M3[1])
            for _ in range(2))
    net = Net()
    one = net.constant("s", np.array(0.5))
    zero = net.narrow("z", E4M3, np.zeros(()))
    net.add("QLinearMatMul", [net.narrow("a", E4M3, a), one, zero,
                              net.narrow("b", E4M3, b), one, zero, one, zero],
            "q")
    net.add("DequantizeLinear", ["q", one], "d")
    net.add("Add", ["d", "x"], "y")
    with scratch() as folder:
        onnx.save(net.made("x", "y", [16, 16]), f"{folder}/model.onnx")
        np.save(f"{folder}/x.npy", np.zeros((16, 16), np.float32))
        run(tool("axopt"), f"{folder}/model.onnx", "--quiet", "-o",
            f"{folder}/plan.mlir")
        axrun(f"{folder}/plan.mlir", "--input", f"x={folder}/x.npy",
              "--output", f"{folder}/y.npy")
        found = np.load(f"{folder}/y.npy")
    wanted = np.clip(a.astype(np.float32) @ b.astype(np.float32) * 0.5,
                     -448, 448).astype(E4M3[1]).astype(np.float32) * 0.5
    if not np.array_equal(found, wanted):
        raise Failed(f"{found}, expected {wanted}")


def adapters():
    """What has eight bits stays, and what is beside it trains."""
    net = Net()
    model = net.model(64, 64, 16)
    with scratch() as folder:
        onnx.save(model, f"{folder}/model.onnx")
        np.savez(f"{folder}/data.npz", x=net.inputs(64),
                 labels=np.arange(ROWS) % 16)
        done = run(tool("axopt"), f"{folder}/model.onnx",
                   f"--dim=batch={ROWS}", "--train",
                   "--loss=cross_entropy(z1,labels)",
                   "--optimizer=sgd(lr=0.1)", "-o", f"{folder}/plan.mlir")
        text = Path(f"{folder}/plan.mlir").read_text()
        trained = [line.split()[1] for line in text.splitlines()
                   if "ax.state" in line and "trainable" in line]
        if sorted(trained) != ["@b0", "@b1"]:
            raise Failed(f"{trained}\n{done.stderr}")
        axrun(f"{folder}/plan.mlir", "--data", f"{folder}/data.npz",
              "--steps=30", "--log", f"{folder}/log")
        first, *_, last = losses(f"{folder}/log")
        if not last < first - 0.1:
            raise Failed(f"{first} became {last}")


def cases(every):
    for rows in 1, ROWS:
        yield f"one Linear, {rows} rows", agree, rows, [64, 48], "--tp=2"
    yield "large", agree, ROWS, [640, 1024, 640], "--tp=2", "--tp=2x2x2"
    yield "large, one row", lambda: agree(1, [640, 1024], "--tp=2")
    yield "large, x W^T", lambda: agree(ROWS, [640, 1024, 640], "--tp=2",
                                        transposed=True)
    yield "one scale", lambda: agree(ROWS, [64, 96, 48], "--dp=2",
                                     columns=False)
    yield "E5M2", lambda: agree(ROWS, [64, 48], "--tp=2", activations=E5M2)
    yield "f16", lambda: agree(ROWS, [64, 48], "--tp=2", half=True)
    yield "cards", onCards
    yield "cards, x W^T", lambda: onCards(transposed=True)
    yield "cards, E5M2", lambda: onCards(activations=E5M2)
    yield "cards, f16", lambda: onCards(half=True)
    yield "adapters", adapters
    yield "gradients through E4M3", gradients, E4M3
    yield "gradients through E5M2", gradients, E5M2
    yield "QLinearMatMul", product
