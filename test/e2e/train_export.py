# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trained weights in the user's model, for other runtimes."""
import os
import shutil
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from _training import DIGITS, FC_NET, GPT, axrun, close, compiled

from cases import Failed, run, scratch, tool


def exported(layout, external):
    """The user's model with other weights, for another runtime."""
    with scratch() as folder:
        source = Path(folder) / "source" / "model.onnx"
        source.parent.mkdir()
        onnx.save(onnx.load(FC_NET), source, save_as_external_data=external,
                  location="weights.bin", size_threshold=2000)
        plan = compiled(folder, *layout.split(), "--frozen=layers.0.*",
                        model=source)
        axrun(plan, "--data", DIGITS / "train.npz", "--steps=20", "--save",
              f"{folder}/run", "--save-weights", f"{folder}/w.safetensors")
        np.save(f"{folder}/input.npy", np.load(DIGITS / "test.npz")["input"])
        run(tool("axopt"), source, "--shape=input=360x64", "--quiet", "-o",
            f"{folder}/infer.mlir")
        axrun(f"{folder}/infer.mlir", "--input",
              f"input={folder}/input.npy", "--weights", f"{folder}/run", "--output", f"{folder}/out.npz")
        wanted = np.load(f"{folder}/out.npz")["logits"]
        for weights in ("run", "run/step-20", "w.safetensors"):
            (target := Path(folder) / "exported").mkdir()
            run(tool("axopt"), source, "--export-onnx", target / "m.onnx",
                "--weights", f"{folder}/{weights}")
            assert (target / "m.onnx.data").exists() == external
            session = onnxruntime.InferenceSession(target / "m.onnx")
            got = session.run(["logits"],
                              {"input": np.load(DIGITS / "test.npz")["input"]})
            close(got[0], wanted, 1e-4, weights)
            before, after = (onnx.load(path, load_external_data=False).graph
                             for path in (source, target / "m.onnx"))
            assert before.node == after.node and before.input == after.input
            shutil.rmtree(target)


def throughLink():
    """A link stays one; data is beside what it names, as the model says."""
    with scratch() as folder:
        folder = Path(folder)
        onnx.save(onnx.load(FC_NET), folder / "m.onnx", size_threshold=0,
                  save_as_external_data=True, location="w.bin")
        weights = {tensor.name: onnx.numpy_helper.to_array(tensor) + 1
                   for tensor in onnx.load(folder / "m.onnx").graph.initializer
                   if tensor.data_type == onnx.TensorProto.FLOAT}
        np.savez(folder / "w.npz", **weights)
        (folder / "links").mkdir()
        (folder / "real").mkdir()
        (folder / "links" / "link.onnx").symlink_to("../real/out.onnx")
        export = [tool("axopt"), folder / "m.onnx", "--export-onnx",
                  folder / "links" / "link.onnx", "--partial", "--weights"]
        for _ in "new", "replaced":
            run(*export, folder / "w.npz")
            assert os.listdir(folder / "links") == ["link.onnx"]
            assert sorted(os.listdir(folder / "real")) == ["out.onnx",
                                                           "out.onnx.data"]
            for tensor in onnx.load(folder / "real" / "out.onnx",
                                    load_external_data=False)                     .graph.initializer:
                for entry in tensor.external_data:
                    if entry.key == "location" and                             entry.value != "out.onnx.data":
                        raise Failed(entry.value)
            got = onnx.load(folder / "real" / "out.onnx").graph.initializer
            for tensor in got:
                if tensor.name in weights:
                    close(onnx.numpy_helper.to_array(tensor),
                          weights[tensor.name], 0, tensor.name)
        # What would be destroyed is known behind the link, too.
        (folder / "real" / "out.onnx.data").unlink()
        os.link(folder / "w.npz", folder / "real" / "out.onnx.data")
        done = run(*export, folder / "w.npz", expect=2)
        if "would destroy '" not in done.stderr:
            raise Failed(done.stderr)


def tensor(proto):
    proto.CopyFrom(onnx.TensorProto(dims=[4], raw_data=bytes(16),
                                    data_type=onnx.TensorProto.FLOAT))
    return proto


def attribute(model):
    return model.graph.node.add().attribute.add()


# Where a model may name external data, besides its initializers.
PLACES = [
    lambda model: tensor(attribute(model).t),
    lambda model: tensor(attribute(model).tensors.add()),
    lambda model: tensor(attribute(model).g.initializer.add()),
    lambda model: tensor(
        attribute(model).graphs.add().node.add().attribute.add().t),
    lambda model: tensor(attribute(model).sparse_tensor.indices),
    lambda model: tensor(attribute(model).sparse_tensors.add().values),
    lambda model: tensor(model.graph.sparse_initializer.add().values),
    lambda model: tensor(model.functions.add().node.add().attribute.add().t),
    lambda model: tensor(model.functions.add().attribute_proto.add().t),
    lambda model: tensor(
        model.training_info.add().initialization.initializer.add()),
    lambda model: tensor(model.training_info.add().algorithm.initializer.add()),
]


def refusesExports():
    def refused(*command, code, says):
        done = run(tool("axopt"), *command, expect=code, cwd=folder)
        if says not in done.stderr:
            raise Failed(f"expected: {says}\ngot: {done.stderr}")

    with scratch() as folder:
        shutil.copy(FC_NET, f"{folder}/m.onnx")
        np.savez(f"{folder}/none.npz", other=np.zeros(3))
        np.savez(f"{folder}/shape.npz", **{"clf.bias": np.zeros(3, np.float32)})
        export = ["m.onnx", "--export-onnx"]
        refused(*export, "out.onnx", code=2, says="--export-onnx needs "
                "--weights=FILE: what is to be written into the model")
        refused("m.onnx", "--weights=none.npz", code=2,
                says="--weights is for --export-onnx: axrun has its own")
        refused(*export, "m.onnx", "--weights=none.npz", code=2,
                says="to write 'm.onnx' would destroy './m.onnx': give "
                "--export-onnx another name")
        onnx.save(onnx.load(FC_NET), f"{folder}/e.onnx",
                  save_as_external_data=True, location="out.onnx.data",
                  size_threshold=2000)
        before = Path(f"{folder}/out.onnx.data").read_bytes()
        refused("e.onnx", "--export-onnx", "out.onnx", "--weights=none.npz",
                code=2, says="to write 'out.onnx.data' would destroy './out.onnx.data'")
        refused("e.onnx", "--shape=input=4x64", "-o", "out.onnx.data", code=2,
                says="to write 'out.onnx.data' would destroy './out.onnx.data'")
        for put in PLACES:
            model = onnx.load(FC_NET)
            onnx.external_data_helper.set_external_data(put(model),
                                                        "out.onnx.data")
            Path(f"{folder}/b.onnx").write_bytes(model.SerializeToString())
            refused("b.onnx", "-o", "out.onnx.data", code=2,
                    says="to write 'out.onnx.data' would destroy './out.onnx.data'")
        assert Path(f"{folder}/out.onnx.data").read_bytes() == before
        refused(*export, "out.onnx", "--weights=none.npz", code=6,
                says="none of the weights is one of the model's")
        refused(*export, "out.onnx", "--weights=shape.npz", code=6,
                says="weight 'clf.bias' is 3xf32, in the model 10xFLOAT")
        refused(*export, "out.onnx", "--weights=none.npz", "--tp=2", code=2,
                says="--tp has no use beside --export-onnx")
        (Path(folder) / "bad.onnx").write_bytes(FC_NET.read_bytes()[:-9])
        refused("bad.onnx", "--export-onnx", "out.onnx", "--weights=none.npz",
                code=3, says="is not an ONNX model: ")
        plan = compiled(folder, model=GPT, shape="input=4x32")
        both = np.zeros(200, np.uint16)
        both.tofile(f"{folder}/t.bin")
        axrun(plan, "--data", f"{folder}/t.bin", "--tokens=uint16",
              "--steps=1", "--save", f"{folder}/gpt")
        refused(*export, "out.onnx", "--weights=gpt", code=6,
                says="the model has no weight '")
        assert not os.path.exists(f"{folder}/out.onnx")


def cases(every):
    yield "exports", exported, "--tp=2", False
    yield "exports external data", exported, "", True
    yield "refuses", refusesExports
    yield "through a link", throughLink
