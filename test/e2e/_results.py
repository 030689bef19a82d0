# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of graphs with `axopt --max` beside onnxruntime."""
import numpy as np
import onnxruntime

from cases import Failed, run, tool


def byOnnxruntime(graph, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), options, ["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds)))


def compiled(folder, graph, *flags):
    with open(f"{folder}/model.onnx", "wb") as file:
        file.write(graph.SerializeToString())
    run(tool("axopt"), f"{folder}/model.onnx", *flags, "--quiet", "-o",
        f"{folder}/plan.mlir")


def ours(folder, feeds, *flags):
    np.savez(f"{folder}/in.npz", **feeds)
    run(tool("axrun"), f"{folder}/plan.mlir", "--inputs", f"{folder}/in.npz",
        "--output", f"{folder}/out.npz", *flags)
    with np.load(f"{folder}/out.npz") as out:
        return dict(out)


def compare(wanted, got, what):
    if sorted(wanted) != sorted(got):
        raise Failed(f"{what}: outputs {sorted(got)}, not {sorted(wanted)}")
    for name, value in wanted.items():
        found = got[name]
        if found.shape != value.shape or found.dtype != value.dtype:
            raise Failed(f"{what}: {name} is {found.dtype}{found.shape}, not "
                         f"{value.dtype}{value.shape}")
        if not np.allclose(found, value, rtol=1e-5, atol=1e-5, equal_nan=True):
            raise Failed(f"{what}: {name} is {found}, not {value}")
