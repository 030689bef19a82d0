# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sizes that no sensible model has: many operands, nothing at all, small
stacks."""
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from _onnx_text import model
from cases import Failed, run, scratch, tool


def concat(count, *shell):
    """Of so many operands that a comparison with each takes too long, and too
    deep a stack."""
    graph = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["z"]),
         helper.make_node("Concat", ["x", "z"] * (count // 2), ["y"], axis=0)],
        "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    with scratch() as folder:
        onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", 20)]), f"{folder}/model.onnx")
        x = np.array([[1, 2]], np.float32)
        np.savez(f"{folder}/in.npz", x=x)
        run(*shell, tool("axopt"), f"{folder}/model.onnx", "--quiet",
            "-o", f"{folder}/plan.mlir")
        run(*shell, tool("axrun"), f"{folder}/plan.mlir", "--inputs",
            f"{folder}/in.npz", "--output", f"{folder}/out.npz",
            "--cache-dir", f"{folder}/cache")
        y = np.load(f"{folder}/out.npz")["y"]
        if not np.array_equal(y, np.tile(np.concatenate([x, -x]),
                                         (count // 2, 1))):
            raise Failed("elements are not where they belong")


def emptyWindows():
    with scratch() as folder:
        onnx.save(model("float[1,3,28,0] x", "float y",
                        "y = LpPool<kernel_shape = [3, 3], p = 3, "
                        "pads = [2, 2, 2, 2]>(x)"), f"{folder}/model.onnx")
        np.savez(f"{folder}/in.npz", x=np.zeros((1, 3, 28, 0), np.float32))
        run(tool("axopt"), f"{folder}/model.onnx", "--quiet",
            "-o", f"{folder}/plan.mlir")
        run(tool("axrun"), f"{folder}/plan.mlir", "--inputs",
            f"{folder}/in.npz", "--output", f"{folder}/out.npz", timeout=60)
        y = np.load(f"{folder}/out.npz")["y"]
        if y.shape != (1, 3, 30, 2) or y.any():
            raise Failed(f"{y.shape}: {y}")


def readers(count):
    """Of one tensor, each of which once took as long as there are others."""
    nodes = [helper.make_node("Mul", ["x", f"c{i}"], [f"0.{i}"])
             for i in range(count)]
    level, names = 0, [f"0.{i}" for i in range(count)]
    while len(names) > 1:
        level += 1
        parts = [names[i:i + 100] for i in range(0, len(names), 100)]
        names = [f"{level}.{i}" for i in range(len(parts))]
        nodes += [helper.make_node("Sum", part, [name])
                  for part, name in zip(parts, names)]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [value("x", TensorProto.FLOAT, [4])],
        [value(names[0], TensorProto.FLOAT, [4])],
        [helper.make_tensor(f"c{i}", TensorProto.FLOAT, [], [1 + i])
         for i in range(count)])
    with scratch() as folder:
        onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", 20)]), f"{folder}/model.onnx")
        run(tool("axopt"), f"{folder}/model.onnx", "--quiet",
            "-o", f"{folder}/plan.mlir")


def inputs(count):
    """So many that no kernel has all of them."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Concat", [f"x{i}" for i in range(count)], ["y"],
                          axis=0)], "g",
        [value(f"x{i}", TensorProto.FLOAT, [1, 2]) for i in range(count)],
        [value("y", TensorProto.FLOAT, [count, 2])])
    with scratch() as folder:
        onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", 20)]), f"{folder}/model.onnx")
        y = np.arange(2 * count, dtype=np.float32).reshape(count, 2)
        np.savez(f"{folder}/in.npz",
                 **{f"x{i}": y[i:i + 1] for i in range(count)})
        run(tool("axopt"), f"{folder}/model.onnx", "--quiet",
            "-o", f"{folder}/plan.mlir")
        run(tool("axrun"), f"{folder}/plan.mlir", "--inputs",
            f"{folder}/in.npz", "--output", f"{folder}/out.npz",
            "--cache-dir", f"{folder}/cache")
        if not np.array_equal(np.load(f"{folder}/out.npz")["y"], y):
            raise Failed("elements are not where they belong")


def doubled(times):
    """A loop that writes much in few nodes: not all of it becomes constants."""
    with scratch() as folder:
        onnx.save(model("float[1] x", "float y", f"""
            e = Loop(n, , s) <body = b (int64 i, bool k, float[m] a) =>
                (bool l, float[j] c) {{ l = Identity(k) c = Concat<axis = 0>(a, a) }}>
            t = ReduceSum<keepdims = 0>(e) y = Add(x, t)""",
            f"int64 n = {{{times}}}, float[2] s = {{1, 2}}"),
            f"{folder}/model.onnx")
        # Kilobytes of address space.
        run("bash", "-c", 'ulimit -v 4000000; exec "$@"', "-", tool("axopt"),
            f"{folder}/model.onnx", "--quiet", "-o", f"{folder}/plan.mlir")
        written = sum(file.stat().st_size
                      for file in Path(folder).glob("plan.mlir*"))
        if written > 256 << 20:
            raise Failed(f"the plan has {written} bytes")


def cases(every):
    yield "many operands", concat, 3000
    if every:
        yield "very many operands", concat, 20000
        yield "very many inputs", inputs, 20000
        yield "very many readers", readers, 20000
        yield "doubled", doubled, 27
    yield "many inputs", inputs, 3000
    yield "many readers", readers, 5000
    yield ("small stacks", concat, 2000, "bash", "-c",
           'ulimit -s 256; exec "$@"', "-")
    yield "windows over nothing", emptyWindows
