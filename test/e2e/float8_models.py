# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that were quantised to floats of eight bits: on processors beside
onnxruntime, and multiplied in eight bits on simulated cards."""
import os
from pathlib import Path

import numpy as np
import onnx

from _contrib import byOnnxruntime
from _float8 import E4M3, E5M2, ROWS, Float8Net
from _training import axrun, losses, states
from cases import Failed, run, scratch, tool

CARDS = os.environ | {
    "AXRUN_CUDA_PATH": str(Path(tool("axrun")).parents[1] / "test/simgpu"),
    "AXRUN_CUDA_ALGORITHMS": "1"}


def agree(rows, sizes, *layouts, **options):
    """Beside onnxruntime. A number on the edge of two becomes either, here and
    there, behind the first of several Linears, and where it is f16, which
    onnxruntime divides in f32."""
    net = Float8Net(**options)
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
    net = Float8Net(**options)
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
    net = Float8Net(activations=kind)
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
    net = Float8Net()
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
    net = Float8Net()
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
