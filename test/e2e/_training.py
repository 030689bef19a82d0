# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests of training have in common."""
import json
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

from cases import ROOT, TRAINING, Failed, run, tool

FC_NET = TRAINING / "fc_net" / "model.onnx"
GPT = TRAINING / "gpt2_tied" / "model.onnx"
DIGITS = ROOT / "examples" / "digits"
LOSS = "--loss=cross_entropy(logits,labels)"
# ONNX's and NumPy's.
HALVES = {"bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
          "f16": (TensorProto.FLOAT16, np.float16)}


def compiled(folder, *flags, model=FC_NET, shape="input=32x64", name="plan",
             axopt=None):
    plan = Path(folder) / f"{name}.mlir"
    run(axopt or tool("axopt"), model, "--shape", shape, "--train", LOSS, "--quiet",
        *flags, "-o", plan)
    return plan


def axrun(*command, expect=0, says=None, **options):
    done = run(tool("axrun"), *command, expect=expect, **options)
    if says and says not in done.stdout + done.stderr:
        raise Failed(f"expected: {says}\ngot: {done.stdout}{done.stderr}")
    return done


def logged(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def losses(path):
    return [line["loss"] for line in logged(path) if "loss" in line]


def close(got, wanted, tolerance, what):
    got, wanted = np.asarray(got), np.asarray(wanted)
    if got.shape != wanted.shape or \
            not np.abs(got - wanted).max() <= tolerance * np.abs(wanted).max():
        raise Failed(f"{what}: {got}, expected {wanted}")


def states(path):
    """Names and weights of a .safetensors."""
    with open(path, "rb") as file:
        data = file.read()
    size, = struct.unpack("<Q", data[:8])
    for name, entry in json.loads(data[8:8 + size]).items():
        # There is more in it than tensors.
        if entry.get("dtype") == "F32":
            begin, end = (8 + size + at for at in entry["data_offsets"])
            yield name, np.frombuffer(data[begin:end], np.float32).reshape(
                entry["shape"])


def crossEntropy(logits, labels):
    shifted = logits - logits.max(-1, keepdims=True)
    logProbabilities = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return -logProbabilities[np.arange(len(labels)), labels].mean()


def part(name, *ranges):
    data = np.load(DIGITS / f"{name}.npz")
    return {key: np.concatenate([array[r] for r in ranges])
            for key, array in data.items()}


def small(path, nodes, weights, shape, opset=20):
    """A model of one input and one output, of one shape."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "model", [value("input", TensorProto.FLOAT, shape)],
        [value("logits", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.asarray(array), name)
         for name, array in weights.items()])
    save(helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9),
        path)


def narrowed(model, kind):
    """The model with all its floats in `kind`, as it is exported where its
    modules are."""
    onnxType, numpyType = HALVES[kind]

    def narrow(tensor):
        if tensor.data_type == TensorProto.FLOAT:
            array = numpy_helper.to_array(tensor).astype(numpyType)
            tensor.CopyFrom(helper.make_tensor(
                tensor.name, onnxType, array.shape, array.tobytes(), raw=True))

    graph = model.graph
    for tensor in graph.initializer:
        narrow(tensor)
    for value in [*graph.input, *graph.output, *graph.value_info]:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = onnxType
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = onnxType
            if attribute.HasField("t"):
                narrow(attribute.t)
    return model
