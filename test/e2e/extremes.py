"""Sizes that no sensible model has: many operands, nothing at all, small
stacks."""
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


def cases(every):
    yield "many operands", concat, 3000
    if every:
        yield "very many operands", concat, 20000
    yield ("small stacks", concat, 2000, "bash", "-c",
           'ulimit -s 256; exec "$@"', "-")
    yield "windows over nothing", emptyWindows
