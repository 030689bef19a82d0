# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model that is given weights, and what both tools make of them."""
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from _weights import close, expect, save
from cases import run, tool

random = np.random.default_rng(0)
node = helper.make_node


def normal(*shape):
    return random.normal(size=shape).astype(np.float32)


class Model:
    """x -> y, a plan of it, and what both tools make of a file."""

    def __init__(self, folder, nodes, tensors, width=8, x=None, flags=()):
        self.folder = Path(folder)
        self.x = normal(4, 8) if x is None else x
        self.path = None
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            nodes, "model", [value("x", TensorProto.FLOAT, self.x.shape)],
            [value("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(array, name)
             for name, array in tensors.items()])
        onnx.save(helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9),
            self.folder / "model.onnx")
        np.save(self.folder / "x.npy", self.x)
        self.compile("model", *flags)

    def compile(self, name, *flags):
        run(tool("axopt"), self.folder / f"{name}.onnx", "--quiet", *flags,
            "-o", self.folder / f"{name}.mlir")

    def axrun(self, *flags, plan="model", expect=0):
        return run(tool("axrun"), self.folder / f"{plan}.mlir", "--input",
                   f"x={self.folder}/x.npy", "--output", self.folder / "y.npy",
                   *flags, expect=expect)

    def export(self, *flags, expect=0):
        return run(tool("axopt"), self.folder / "model.onnx", "--export-onnx",
                   self.folder / "out.onnx", "--weights", self.path, *flags,
                   expect=expect)

    def write(self, given):
        if any(array.dtype != np.float32 for array in given.values()):
            self.path = self.folder / "w.npz"
            np.savez(self.path, **given)
        else:
            self.path = self.folder / "w.safetensors"
            save(self.path, given)

    def takes(self, given, wanted, *flags):
        """Both tools, and the exported model computes the same."""
        self.write(given)
        self.axrun("--weights", self.path, *flags)
        close(np.load(self.folder / "y.npy"), wanted)
        self.export(*flags)
        self.compile("out")
        self.axrun(plan="out")
        close(np.load(self.folder / "y.npy"), wanted)

    def refuses(self, given, *says, flags=(), code=6):
        self.write(given)
        expect(self.axrun("--weights", self.path, *flags, expect=code), *says)
        expect(self.export(*flags, expect=code), *says)
