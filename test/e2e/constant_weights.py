# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights that an exporter wrote as nodes are weights like others."""
import re
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from _onnx_text import model
from _training import DIGITS, FC_NET, axrun, close, compiled, losses

from cases import Failed, run, scratch, tool


def asNodes(source, target, external):
    """Every initializer as a node that gives it."""
    made = onnx.load(source)
    nodes = [helper.make_node("Constant", [], [tensor.name], value=tensor)
             for tensor in made.graph.initializer]
    for node in nodes:
        node.attribute[0].t.name = "value"
    nodes += made.graph.node
    del made.graph.initializer[:], made.graph.node[:]
    made.graph.node.extend(nodes)
    onnx.save(made, target, save_as_external_data=external,
              location="weights.bin", size_threshold=100,
              convert_attribute=True)


def statesOf(plan):
    return sorted(re.findall(r"ax\.state .*? from", Path(plan).read_text()))


def trained(external):
    """The same states, losses and exported model as with initializers."""
    with scratch() as folder:
        source = f"{folder}/model.onnx"
        asNodes(FC_NET, source, external)
        plans = [compiled(folder, model=path, name=name)
                 for name, path in (("one", FC_NET), ("other", source))]
        assert statesOf(plans[0]) and statesOf(plans[0]) == statesOf(plans[1])
        for plan in plans:
            axrun(plan, "--data", DIGITS / "train.npz", "--steps=5", "--log",
                  f"{plan}.log", "--save-weights", f"{folder}/w.safetensors")
        first, second = (losses(f"{plan}.log") for plan in plans)
        assert first == second and len(first) == 5, (first, second)
        exported = f"{folder}/exported.onnx"
        run(tool("axopt"), source, "--export-onnx", exported, "--weights",
            f"{folder}/w.safetensors")
        before, after = (onnx.load(path, load_external_data=False).graph
                         for path in (source, exported))
        assert not after.initializer and len(before.node) == len(after.node)
        x = np.load(DIGITS / "test.npz")["input"]
        run(tool("axopt"), source, "--shape=input=360x64", "--quiet", "-o",
            f"{folder}/infer.mlir")
        np.save(f"{folder}/x.npy", x)
        axrun(f"{folder}/infer.mlir", "--input", f"input={folder}/x.npy",
              "--weights", f"{folder}/w.safetensors", "--output",
              f"{folder}/y.npy")
        session = onnxruntime.InferenceSession(exported)
        got, = session.run(None, {"input": x})
        close(got, np.load(f"{folder}/y.npy"), 1e-5, "exported")


def literals():
    """Beside initializers, a few numbers of a node are what the code says."""
    with scratch() as folder:
        made = model("float[4,8] x", "float y",
                     "c = Constant<value = float[8] {1, 2, 3, 4, 5, 6, 7, 8}>"
                     "() a = Mul(x, c) y = MatMul(a, w)",
                     f"float[8,64] w = {{{', '.join(['0.5'] * 512)}}}")
        onnx.save(made, f"{folder}/model.onnx")
        run(tool("axopt"), f"{folder}/model.onnx", "--quiet", "--train",
            "--loss=mse(y,target)", "-o", f"{folder}/plan.mlir")
        states = statesOf(f"{folder}/plan.mlir")
        if len(states) != 1 or "@w" not in states[0]:
            raise Failed(f"states are {states}")


def masks():
    """Masks that old exporters wrote as bytes are known, whatever their size;
    the bytes themselves stay where they are."""
    with scratch() as folder:
        size = 96
        mask = np.tril(np.ones([1, 1, size, size], np.uint8))
        nodes = [helper.make_node("Slice", ["mask", "zeros", "sizes", "axes"],
                                  ["part"]),
                 helper.make_node("Cast", ["part"], ["is"], to=9),
                 helper.make_node("Transpose", ["k"], ["kt"],
                                  perm=[0, 1, 3, 2]),
                 helper.make_node("MatMul", ["q", "kt"], ["scores"]),
                 helper.make_node("Where", ["is", "scores", "least"], ["m"]),
                 helper.make_node("Softmax", ["m"], ["p"], axis=-1),
                 helper.make_node("MatMul", ["p", "v"], ["y"])]
        value = helper.make_tensor_value_info
        shape = [1, 2, 64, 16]
        arrays = {"mask": mask, "zeros": np.array([0, 0]),
                  "sizes": np.array([64, 64]), "axes": np.array([2, 3]),
                  "least": np.array(-1e9, np.float32)}
        onnx.save(helper.make_model(helper.make_graph(
            nodes, "g", [value(name, 1, shape) for name in "qkv"],
            [value("y", 1, shape)],
            [onnx.numpy_helper.from_array(array, name)
             for name, array in arrays.items()]), ir_version=9,
            opset_imports=[helper.make_opsetid("", 18)]),
            f"{folder}/model.onnx")
        run(tool("axopt"), f"{folder}/model.onnx", "--quiet", "-o",
            f"{folder}/plan.mlir")
        text = Path(f"{folder}/plan.mlir").read_text()
        if "causal" not in text or "ax.state" in text:
            raise Failed(text)


def cases(every):
    yield "trained", trained, False
    yield "trained, in another file", trained, True
    yield "literals", literals
    yield "masks", masks
