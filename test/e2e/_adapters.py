# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model with adapters (LoRA) beside weights of four bits."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, INNER, RANK, BLOCK, BATCH, STEPS = 640, 1056, 8, 32, 8, 3


def save(path, bits, **attributes):
    """y = (x W1 + x A1 B1) W2 + .., where each W is of four bits or of floats."""
    random = np.random.default_rng(0)
    graph = onnx.GraphProto(name="g")

    def constant(name, values):
        graph.initializer.append(numpy_helper.from_array(values, name))
        return name

    def op(kind, *inputs, **attributes):
        name = f"n{len(graph.node)}"
        graph.node.append(
            helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def frozen(x, name, k, n):
        whole = random.integers(0, 16, (n, k), np.uint8)
        scales = random.uniform(0.5, 1, (n, k // BLOCK)).astype(np.float32)
        scales /= 4 * np.sqrt(k)
        if bits:
            packed = (whole[:, ::2] | whole[:, 1::2] << 4).reshape(
                n, k // BLOCK, BLOCK // 2)
            return op("MatMulNBits", x, constant(f"{name}.w", packed),
                      constant(f"{name}.s", scales), domain="com.microsoft",
                      K=k, N=n, bits=4, block_size=BLOCK, **attributes)
        floats = (whole.astype(np.float32) - 8) * np.repeat(scales, BLOCK, 1)
        return op("MatMul", x, constant(f"{name}.w", floats.T.copy()))

    x = "x"
    for name, k, n in ("up", WIDTH, INNER), ("down", INNER, WIDTH):
        a, b = (constant(f"{name}.{part}", (random.standard_normal(shape) / 16)
                         .astype(np.float32))
                for part, shape in (("a", (k, RANK)), ("b", (RANK, n))))
        x = op("Relu", op("Add", frozen(x, name, k, n),
                          op("MatMul", op("MatMul", x, a), b)))
    graph.input.append(helper.make_tensor_value_info(
        "x", TensorProto.FLOAT, [BATCH, WIDTH]))
    # Of onnxruntime's operators ONNX infers no shape.
    graph.node[-1].output[0] = "y"
    graph.output.append(helper.make_tensor_value_info(
        "y", TensorProto.FLOAT, [BATCH, WIDTH]))
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]),
        path)


def samples():
    random = np.random.default_rng(1)
    return {name: random.standard_normal((STEPS * BATCH, WIDTH), np.float32)
            for name in ("x", "target")}
