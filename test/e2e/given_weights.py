# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights as save_pretrained writes them, for a plan and into a model."""
import json
import os
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from _weights import close, expect, save
from cases import run, scratch, tool

random = np.random.default_rng(0)
EMBED = random.normal(size=(16, 8)).astype(np.float32)
W = random.normal(size=(8, 8)).astype(np.float32)
TENSORS = {
    "model.embed.weight": EMBED,
    # Exporters write it twice.
    "lm_head.weight": EMBED,
    "model.w": W,
    # Equal, but not tied: as in every fresh model.
    "model.norm1.weight": np.ones(8, np.float32),
    "model.norm2.weight": np.ones(8, np.float32),
    "model.rotary_emb.inv_freq": np.linspace(0.1, 1, 8, dtype=np.float32),
}
# What is in the file.
GIVEN = {
    "model.embed.weight": random.normal(size=(16, 8)).astype(np.float32),
    "model.w": random.normal(size=(8, 8)).astype(np.float32),
    "model.norm1.weight": random.normal(size=8).astype(np.float32),
    "model.norm2.weight": random.normal(size=8).astype(np.float32),
}
TIED = "'lm_head.weight' gets the values of 'model.embed.weight', which it " \
    "equals in the model"
COMPUTED = "'model.rotary_emb.inv_freq' stay as the model computes them"


def model(path):
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Gather", ["model.embed.weight", "ids"], ["e"]),
        helper.make_node("Mul", ["e", "model.norm1.weight"], ["a"]),
        helper.make_node("Mul", ["a", "model.rotary_emb.inv_freq"], ["b"]),
        helper.make_node("MatMul", ["b", "model.w"], ["c"]),
        helper.make_node("Mul", ["c", "model.norm2.weight"], ["d"]),
        helper.make_node("Transpose", ["lm_head.weight"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["d", "t"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes, "model", [value("ids", TensorProto.INT64, [4])],
        [value("logits", TensorProto.FLOAT, [4, 16])],
        [numpy_helper.from_array(array, name)
         for name, array in TENSORS.items()])
    onnx.save(helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)


def logits(tensors):
    x = tensors["model.embed.weight"][[1, 5, 9, 13]]
    x = x * tensors["model.norm1.weight"] * TENSORS["model.rotary_emb.inv_freq"]
    x = x @ tensors["model.w"] * tensors["model.norm2.weight"]
    return x @ tensors["model.embed.weight"].T


def rounded(array, kind):
    if kind == "BF16":
        return ((array.view(np.uint32) >> 16) << 16).view(np.float32)
    return array.astype({"F32": np.float32, "F16": np.float16}[kind]).astype(
        np.float32)


def saveShards(folder, tensors, kind="F32"):
    folder.mkdir(exist_ok=True)
    names = sorted(tensors)
    place = {}
    for number, part in enumerate((names[::2], names[1::2])):
        file = f"model-{number + 1:05}-of-00002.safetensors"
        save(folder / file, {name: tensors[name] for name in part}, kind)
        place |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 1}, "weight_map": place}))


def prepared(folder):
    folder = Path(folder)
    model(folder / "model.onnx")
    # Its weights stay states, however small.
    run(tool("axopt"), folder / "model.onnx", "--train",
        "--loss=cross_entropy(logits,labels)", "--quiet", "-o",
        folder / "train.mlir")
    run(tool("axopt"), folder / "model.onnx", "--quiet", "-o",
        folder / "plan.mlir")
    np.save(folder / "ids.npy", np.array([1, 5, 9, 13], np.int64))
    np.savez(folder / "data.npz", ids=np.tile([1, 5, 9, 13], 2),
             labels=np.zeros(8, np.int64))
    return folder


def loss(tensors):
    x = logits(tensors)
    x = x - x.max(-1, keepdims=True)
    return -(x - np.log(np.exp(x).sum(-1, keepdims=True)))[:, 0].mean()


def taken(kind):
    """Of a file, a folder, and shards: as numpy computes with them."""
    with scratch() as folder:
        folder = prepared(folder)
        (folder / "whole").mkdir()
        save(folder / "whole" / "model.safetensors", GIVEN, kind)
        saveShards(folder / "shards", GIVEN, kind)
        (folder / "cache").mkdir()
        for file in os.listdir(folder / "shards"):
            os.symlink(f"../shards/{file}", folder / "cache" / file)
        wanted = {name: rounded(array, kind) for name, array in GIVEN.items()}
        for weights in ("whole/model.safetensors", "whole", "shards",
                        "shards/model.safetensors.index.json", "cache"):
            done = run(tool("axrun"), folder / "train.mlir", "--eval",
                       folder / "data.npz", "--weights", folder / weights)
            expect(done, TIED, COMPUTED)
            if kind != "F32":
                expect(done, f"4 tensors are {kind.lower()}, and taken as f32")
            close(float(done.stdout.split("loss ")[1].split(",")[0]),
                  loss(wanted))
            done = run(tool("axopt"), folder / "model.onnx", "--export-onnx",
                       folder / "out.onnx", "--weights", folder / weights)
            expect(done, TIED, COMPUTED)
            got = {tensor.name: numpy_helper.to_array(tensor) for tensor in
                   onnx.load(folder / "out.onnx").graph.initializer}
            for name, array in wanted.items():
                assert np.array_equal(got[name], array), name
            assert np.array_equal(got["lm_head.weight"],
                                  wanted["model.embed.weight"])
            assert np.array_equal(got["model.rotary_emb.inv_freq"],
                                  TENSORS["model.rotary_emb.inv_freq"])
            run(tool("axopt"), folder / "out.onnx", "--quiet", "-o",
                folder / "out.mlir")
            run(tool("axrun"), folder / "out.mlir", "--input",
                f"ids={folder}/ids.npy", "--output", folder / "out.npz")
            close(np.load(folder / "out.npz")["logits"], logits(wanted))


def checkpointsFirst():
    """A folder of checkpoints stays one, whatever else is in it."""
    with scratch() as folder:
        folder = prepared(folder)
        run(tool("axrun"), folder / "train.mlir", "--data", folder / "data.npz",
            "--steps=1", "--save", folder / "run")
        run(tool("axrun"), folder / "train.mlir", "--eval", folder / "data.npz",
            "--weights", folder / "run")
        (folder / "run" / "model.safetensors").write_text("none")
        run(tool("axrun"), folder / "train.mlir", "--eval", folder / "data.npz",
            "--weights", folder / "run")


def refusesPartial():
    with scratch() as folder:
        folder = prepared(folder)
        some = {name: GIVEN[name] for name in ("model.w",)}
        save(folder / "some.safetensors", some)
        export = ["axopt", folder / "model.onnx", "--export-onnx",
                  folder / "out.onnx", "--weights", folder / "some.safetensors"]
        done = run(tool(export[0]), *export[1:], expect=6)
        expect(done, "do not have 'model.embed.weight', 'lm_head.weight', "
               "'model.norm1.weight', 'model.norm2.weight', which would keep "
               "the model's values: if that is meant, give --partial")
        assert not (folder / "out.onnx").exists()
        run(tool(export[0]), *export[1:], "--partial")
        got = {tensor.name: numpy_helper.to_array(tensor) for tensor in
               onnx.load(folder / "out.onnx").graph.initializer}
        for name, array in (TENSORS | some).items():
            assert np.array_equal(got[name], array), name
        done = run(tool("axrun"), folder / "train.mlir", "--eval",
                   folder / "data.npz", "--weights",
                   folder / "some.safetensors", expect=6)
        for name in ("embed.weight", "norm1.weight", "norm2.weight"):
            expect(done, f"  model.{name} is missing")
        expect(run(tool("axopt"), folder / "model.onnx", "--partial",
                   expect=2), "--partial is for --export-onnx")
        # One of the two ones is no twin of the other.
        one = {name: GIVEN[name] for name in GIVEN if "norm2" not in name}
        save(folder / "some.safetensors", one)
        done = run(tool(export[0]), *export[1:], expect=6)
        expect(done, "do not have 'model.norm2.weight', which would keep")
        # What loses bits is no widening.
        save(folder / "some.safetensors", GIVEN, "F64")
        done = run(tool(export[0]), *export[1:], expect=6)
        expect(done, "is 16x8xf64, in the model 16x8xFLOAT")


def refusesLayers():
    """Layers that began as copies are not tied, and one of them is no twin of
    another that is missing."""
    value = helper.make_tensor_value_info
    names = ["layers.0.w", "layers.1.w"]
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", names[0]], ["h"]),
         helper.make_node("MatMul", ["h", names[1]], ["logits"])], "model",
        [value("x", TensorProto.FLOAT, [4, 8])],
        [value("logits", TensorProto.FLOAT, [4, 8])],
        [numpy_helper.from_array(W, name) for name in names])
    with scratch() as folder:
        folder = Path(folder)
        onnx.save(helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9),
            folder / "model.onnx")
        save(folder / "some.safetensors", {names[0]: GIVEN["model.w"]})
        np.savez(folder / "data.npz", x=np.ones((4, 8), np.float32),
                 labels=np.zeros(4, np.int64))
        run(tool("axopt"), folder / "model.onnx", "--train",
            "--loss=cross_entropy(logits,labels)", "--quiet", "-o",
            folder / "train.mlir")
        expect(run(tool("axrun"), folder / "train.mlir", "--eval",
                   folder / "data.npz", "--weights",
                   folder / "some.safetensors", expect=6),
               "  layers.1.w is missing")
        expect(run(tool("axopt"), folder / "model.onnx", "--export-onnx",
                   folder / "out.onnx", "--weights",
                   folder / "some.safetensors", expect=6),
               "do not have 'layers.1.w', which would keep the model's values")
        assert not (folder / "out.onnx").exists()


def refusesIndices():
    with scratch() as folder:
        folder = prepared(folder)
        saveShards(shards := folder / "shards", GIVEN)
        index = shards / "model.safetensors.index.json"
        whole = json.loads(index.read_text())

        def refused(text, says, code=6):
            index.write_text(text if isinstance(text, str) else
                             json.dumps(text))
            done = run(tool("axrun"), folder / "train.mlir", "--eval",
                       folder / "data.npz", "--weights", shards, expect=code)
            expect(done, says)

        refused("{", "is no JSON")
        refused("[" * 99, "is too long or nested too deeply")
        for text in [], {}, {"weight_map": {}}, {"weight_map": 1}:
            refused(text, "has no weight_map")
        for file in (1, "../model.onnx", "/etc/passwd", "a/b.safetensors",
                     "model.bin"):
            refused({"weight_map": {"model.w": file}},
                    "'model.w' is in no .safetensors file of the same folder")
        there = whole["weight_map"]["model.w"]
        refused({"weight_map": whole["weight_map"] | {"more": there}},
                f"'more' is not in {there}")
        fewer = {name: file for name, file in whole["weight_map"].items()
                 if name == "model.w" or file != there}
        assert fewer.keys() < whole["weight_map"].keys(), fewer
        unnamed = next(iter(whole["weight_map"].keys() - fewer.keys()))
        refused({"weight_map": fewer}, f"{there} has '")
        refused({"weight_map": fewer}, f"'{unnamed}'")
        refused({"weight_map": fewer}, "which weight_map does not name: it is "
                "not the index of these files")
        refused({"weight_map": {"model.w": "none.safetensors"}},
                "none.safetensors': No such file", 7)


def ties():
    """What a file lacks, as the user says; that must be so."""
    with scratch() as folder:
        folder = prepared(folder)
        given = {name: value for name, value in GIVEN.items()
                 if name != "model.norm2.weight"}
        save(folder / "w.safetensors", given)
        wanted = given | {"model.norm2.weight": given["model.norm1.weight"]}
        tied = "--tied=model.norm2.weight=model.norm1.weight"
        measure = [tool("axrun"), folder / "train.mlir", "--eval",
                   folder / "data.npz", "--weights", folder / "w.safetensors"]
        write = [tool("axopt"), folder / "model.onnx", "--export-onnx",
                 folder / "out.onnx", "--weights", folder / "w.safetensors"]
        done = run(*measure, tied)
        close(float(done.stdout.split("loss ")[1].split(",")[0]), loss(wanted))
        run(*write, tied)
        got = {tensor.name: numpy_helper.to_array(tensor) for tensor in
               onnx.load(folder / "out.onnx").graph.initializer}
        for name, array in wanted.items():
            assert np.array_equal(got[name], array), name
        for command in measure, write:
            for flags, code, message in [
                    ([], 6, "model.norm2.weight"),
                    (["--tied=model.norm2.weight"], 2,
                     "expected WEIGHT=WEIGHT"),
                    (["--tied=model.norm2.weight=model.norm3.weight"], 6,
                     "have no 'model.norm3.weight'"),
                    (["--tied=model.w=model.norm1.weight"], 6,
                     "is no weight of the model that"),
                    (["--tied=model.norm2.weight=model.w"], 6,
                     "model.norm2.weight")]:
                expect(run(*command, *flags, expect=code), message)
        for command in (measure[:-2] + [tied], [*write[:2], "-o",
                                                folder / "p.mlir", tied]):
            expect(run(*command, expect=2), "--tied is for --weights")


def folders():
    with scratch() as folder:
        folder = prepared(folder)
        (folder / "run").mkdir()
        measure = [tool("axrun"), folder / "train.mlir", "--eval",
                   folder / "data.npz", "--weights", folder / "run"]
        expect(run(*measure, expect=6),
               "has neither a checkpoint, nor model.safetensors, nor "
               "model.safetensors.index.json")
        save(folder / "run" / "mine.safetensors", GIVEN)
        expect(run(*measure, expect=6), "model.safetensors.index.json: give "
               f"the file, as --weights={folder}/run/mine.safetensors")


def cases(every):
    yield "folders of others", folders
    yield "--tied", ties
    for kind in "F32", "BF16", "F16":
        yield f"taken from {kind}", taken, kind
    yield "checkpoints come first", checkpointsFirst
    yield "refuses a part", refusesPartial
    yield "refuses one of equal layers", refusesLayers
    yield "refuses indices", refusesIndices
