# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights of ONNX's types of four bits, beside onnxruntime."""
import pathlib
import re

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from _contrib import byOnnxruntime, difference, ours
from _onnx_text import refuse
from cases import Failed, run, scratch, tool

KINDS = {TensorProto.INT4: (-8, 8), TensorProto.UINT4: (0, 16),
         TensorProto.FLOAT4E2M1: (0, 16)}
SIZES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
# The first operator set that has floats of four bits.
FLOATS = 23
MALFORMED, UNSUPPORTED = 3, 4


def numbers(kind, shape, name, raw=True, seed=0):
    low, high = KINDS[kind]
    values = np.random.default_rng(seed).integers(low, high, shape)
    if not raw and kind == TensorProto.FLOAT4E2M1:
        values = np.concatenate([SIZES, -SIZES])[values]
    if not raw:
        return helper.make_tensor(name, kind, shape, values.ravel())
    bits = np.append(values.ravel() & 15, 0).astype(np.uint8)
    bits = bits[:bits.size // 2 * 2]
    return helper.make_tensor(name, kind, shape,
                              (bits[::2] | bits[1::2] << 4).tobytes(),
                              raw=True)


def product(kind, rows, columns, block=0, axis=1, zeros=True, raw=True,
            constant=False, samples=4, transposed=True):
    """x W^T, or x W, where W [rows, columns] is dequantised."""
    random = np.random.default_rng(1)
    isFloat = kind == TensorProto.FLOAT4E2M1
    # Those of floats are nothing.
    zeros = zeros and not isFloat
    shape = [rows, columns]
    if block:
        shape[axis] = -(-shape[axis] // block)
    else:
        shape = [shape[axis]]
    graph = onnx.GraphProto(name="g")
    tensors = [numbers(kind, [rows, columns], "w", raw),
               numpy_helper.from_array(
                   random.uniform(0.1, 1, shape).astype(np.float32), "s")]
    if zeros:
        tensors.append(numbers(kind, shape, "z", raw, 2))
    for tensor in tensors:
        if constant:
            graph.node.append(helper.make_node("Constant", [], [tensor.name],
                                               value=tensor))
        else:
            graph.initializer.append(tensor)
    graph.node.extend([
        helper.make_node("DequantizeLinear", ["w", "s"] + ["z"] * zeros, ["f"],
                         axis=axis, block_size=block),
        *([helper.make_node("Transpose", ["f"], ["t"], perm=[1, 0])]
          if transposed else []),
        helper.make_node("MatMul", ["x", "t" if transposed else "f"], ["y"])])
    graph.input.append(helper.make_tensor_value_info(
        "x", TensorProto.FLOAT, [samples, columns if transposed else rows]))
    graph.output.append(onnx.ValueInfoProto(name="y"))
    return helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", FLOATS if isFloat else 21)])


def wantedOf(model, feeds):
    """onnxruntime has no floats of four bits."""
    if model.opset_import[0].version == FLOATS:
        return ReferenceEvaluator(model).run(None, feeds)[0]
    return byOnnxruntime(model, feeds)["y"]


def compare(model):
    shape = [dim.dim_value
             for dim in model.graph.input[0].type.tensor_type.shape.dim]
    feeds = {"x": np.random.default_rng(0).standard_normal(
        shape).astype(np.float32)}
    wanted = wantedOf(model, feeds)
    for flags in [], ["--tp=2"]:
        if found := difference(ours(model, feeds, *flags)["y"], wanted, 5e-5,
                               0):
            raise Failed(f"{flags}: {found}")


def external(kind, columns):
    """Weights in another file, small and large."""
    model = product(kind, 6, columns, block=16)
    feeds = {"x": np.ones([4, columns], np.float32)}
    wanted = wantedOf(model, feeds)
    with scratch() as folder:
        folder = pathlib.Path(folder)
        onnx.save(model, folder / "model.onnx", save_as_external_data=True,
                  location="w.bin", size_threshold=0)
        np.savez(folder / "in.npz", **feeds)
        run(tool("axopt"), folder / "model.onnx", "--quiet", "-o",
            folder / "plan.mlir")
        run(tool("axrun"), folder / "plan.mlir", "--inputs", folder / "in.npz",
            "--output", folder / "out.npz")
        with np.load(folder / "out.npz") as out:
            if found := difference(out["y"], wanted, 5e-5, 0):
                raise Failed(found)


def loaded():
    """Weights stay in their file, as they are. Small ones are unpacked once, of
    large ones a part at a time."""
    def planned(size, **more):
        with scratch() as folder:
            path = pathlib.Path(folder) / "model.onnx"
            plan = pathlib.Path(folder) / "plan.mlir"
            onnx.save(product(TensorProto.INT4, size, size, block=16, **more),
                      path)
            done = run(tool("axopt"), path, "-o", plan)
            return plan.read_text(), done.stdout + done.stderr
    text, _ = planned(64)
    main, _, prepare = text.partition("ax.program @prepare")
    assert "ax.load @w " in prepare and "ax.load @w " not in main, text
    for more in {}, {"axis": 0, "transposed": False}:
        text, summary = planned(2048, **more)
        assert "ax.load @w " in text and "prepared" not in text, text
        # 2 MiB of numbers, 1 MiB of scales, and zero points of 0.1 MiB, of which
        # what is made once takes 0.25; floats would take 16 MiB.
        (memory,) = re.findall(
            r"weights ([\d.]+) MiB, activations ([\d.]+) MiB", summary)
        assert float(memory[0]) < 3.5 and float(memory[1]) < 3.3, summary


def cast():
    """Numbers that are moved and cast."""
    graph = onnx.GraphProto(name="g")
    graph.initializer.append(numbers(TensorProto.INT4, [3, 5], "w"))
    graph.initializer.append(numpy_helper.from_array(np.array([5, 3]), "s"))
    graph.node.extend([helper.make_node("Transpose", ["w"], ["t"]),
                       helper.make_node("Reshape", ["t", "s"], ["r"]),
                       helper.make_node("Cast", ["r"], ["c"], to=1),
                       helper.make_node("Add", ["x", "c"], ["y"])])
    graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT,
                                                     [5, 3]))
    graph.output.append(onnx.ValueInfoProto(name="y"))
    model = helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", 21)])
    made = ours(model, {"x": np.zeros([5, 3], np.float32)})["y"]
    values = numpy_helper.to_array(graph.initializer[0])
    assert np.array_equal(made, values.T.astype(np.float32)), made


def refused(node, message, code, outputs="y"):
    graph = onnx.GraphProto(name="g")
    graph.initializer.append(numbers(TensorProto.INT4, [], "z"))
    graph.initializer.append(
        numpy_helper.from_array(np.array(0.5, np.float32), "s"))
    graph.node.append(node)
    graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT,
                                                     [4]))
    graph.output.append(onnx.ValueInfoProto(name=outputs))
    refuse(helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", 21)]), message, code)


def cut():
    model = product(TensorProto.INT4, 3, 5, raw=False)
    del model.graph.initializer[0].int32_data[0]
    refuse(model, "tensor 'w' of 3x5xINT4 has 7 bytes", MALFORMED)


def cases(every):
    for kind in KINDS:
        name = TensorProto.DataType.Name(kind)
        for raw in True, False:
            yield (f"{name}, small, {raw}", compare,
                   product(kind, 3, 5, raw=raw))
            yield (f"{name}, small blocks, {raw}", compare,
                   product(kind, 6, 32, block=16, raw=raw))
        yield f"{name}, rows", compare, product(kind, 64, 48, axis=0)
        yield f"{name}, blocks", compare, product(kind, 64, 64, block=16)
        yield (f"{name}, a block that is longer", compare,
               product(kind, 6, 24, block=64))
        yield (f"{name}, blocks of rows", compare,
               product(kind, 64, 48, block=16, axis=0, zeros=False))
        yield f"{name}, odd", compare, product(kind, 65, 49)
        yield f"{name}, nodes", compare, product(kind, 64, 48, constant=True)
        for samples in 1, 3:
            yield (f"{name}, large, {samples}", compare,
                   product(kind, 1040, 640, block=32, samples=samples))
            yield (f"{name}, x W, {samples}", compare,
                   product(kind, 640, 1040, block=32, axis=0, samples=samples,
                           transposed=False))
        for columns in 32, 1024:
            yield f"{name}, file, {columns}", external, kind, columns
    yield "cast", cast
    yield "loaded", loaded
    yield ("zero point", refused,
           helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], "n"),
           "node 'n' (QuantizeLinear) takes 'z' of four bits, which is not "
           "supported: these may be dequantised, cast and moved", UNSUPPORTED)
    yield ("output", refused, helper.make_node("Identity", ["z"], ["y"], "n"),
           "output 'y' is of four bits, which is not supported", UNSUPPORTED)
    yield "bytes", cut
