# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small ones of the networks that `tools/dev bench zoo` measures, beside
onnxruntime, on one rank and on two."""
import sys
from pathlib import Path

import numpy as np
import onnxruntime

from cases import run, scratch, tool

sys.path.append(str(Path(__file__).parents[1] / "bench"))
from zoo_networks import NETWORKS



def agrees(name):
    with scratch() as folder:
        model, plan = f"{folder}/model.onnx", f"{folder}/plan.mlir"
        network = NETWORKS[name](True)
        network.save(model)
        feeds = network.feeds()
        options = onnxruntime.SessionOptions()
        # Else inputs of quantised weights are rounded.
        options.add_session_config_entry(
            "session.qdq_matmulnbits_accuracy_level", "1")
        session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        np.savez(f"{folder}/x.npz", **feeds)
        np.savez(f"{folder}/y.npz", **dict(zip(names, session.run(None, feeds))))
        for layout in "--tp=1", "--tp=2":
            run(tool("axopt"), model, layout, "-o", plan)
            # onnxruntime rounds no products of f16.
            rounded = ["--atol=1e-3"] if name.startswith("half") else []
            run(tool("axrun"), plan, "--inputs", f"{folder}/x.npz", "--expect",
                f"{folder}/y.npz", *rounded)


def cases(every):
    for name in NETWORKS:
        yield name, agrees, name
