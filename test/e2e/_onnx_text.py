# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models as text, in the syntax of onnx.parser."""
import os
import pathlib

import numpy as np
import onnx
import onnx.parser

from cases import Failed, run, scratch, tool


def model(inputs, outputs, nodes, initializers="", opset=None):
    """A model whose graph is given in parts: `float[2,3] x`, `y = Relu(x)`."""
    opset = opset or onnx.defs.onnx_opset_version()
    text = (f'<ir_version: 10, opset_import: ["" : {opset}]>\n'
            f"g ({inputs}) => ({outputs})\n"
            + (f"<{initializers}>\n" if initializers else "")
            + "{ " + nodes + " }")
    return onnx.parser.parse_model(text)


def refuse(made, message, code, *flags):
    """axopt on a model, or the bytes of one, in a folder of odd files."""
    with scratch() as folder:
        folder = pathlib.Path(folder)
        path = folder / "model.onnx"
        path.write_bytes(made.SerializeToString()
                         if isinstance(made, onnx.ModelProto) else made)
        (folder / "w.bin").write_bytes(b"01234567")
        (folder / "link").symlink_to("w.bin")
        (folder / "one").write_bytes(b"01234567")
        os.link(folder / "one", folder / "hard")
        (folder / "folder").mkdir()
        np.save(folder / "i.npy", np.zeros(4, np.int64))
        done = run(tool("axopt"), path, "--quiet", "-o", f"{folder}/plan.mlir",
                   *flags, expect=code, cwd=folder)
    if message not in done.stderr:
        raise Failed(f"expected: {message}\ngot: {done.stderr}")
