# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exports of causal models with an input that says which tokens are padding: in
front, behind, in between, or all. Their masks of all queries and keys become one of
keys, where that says the same, and all gives what onnxruntime gives, also of
queries that see no key."""
import re

import numpy as np
import onnxruntime

from cases import MODELS, Failed, run, scratch, tool

# How attention hides keys, and what it does where all are hidden. GPT-2's own
# triangle and a padding that are added to each other are no such mask.
CAUSAL = {
    "gpt2_eager_dynamo18_static": r"1x1x\d+xf32.* {causal, node",
    "gpt2_eager_ts17_dyn": r"1x\d\d+x\d+xf32.* {node",
    "gpt2_sdpa_dynamo18_static": r"1x1x\d+xi1.* {causal, empty_rows_mean",
    "llama_eager_dynamo18_static": r"1x1x\d+xi1.* {causal, empty_rows_mean",
    "llama_sdpa_dynamo23_static": r"1x1x\d+xi1.* {causal, empty_rows_zero",
    "llama_sdpa_ts17_dyn": r"1x1x\d+xi1.* {causal, empty_rows_mean",
}
TRAINED = "--tp=2", "--dp=2 --zero=2", "--cp=2"
LAYOUTS = "", "--tp=2", "--dp=2 --pp=2 --micro-batches=2", "--cp=2"


def paddings(batch, length):
    """A sequence each."""
    random = np.random.default_rng(3)
    mask = np.ones((batch, length), np.int64)
    mask[0, :5] = 0
    mask[1, length - 7:] = 0
    mask[2] = random.random(length) < 0.5
    mask[3] = 0
    return mask


def agrees(name, layout):
    model = MODELS / name / "model.onnx"
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    shape = [4, 32]
    feeds = {"input_ids": np.random.default_rng(1).integers(0, 128, shape),
             "attention_mask": paddings(*shape)}
    with scratch() as folder:
        plan = f"{folder}/plan.mlir"
        np.savez(f"{folder}/x.npz", **feeds)
        np.savez(f"{folder}/y.npz", **dict(zip(names, session.run(None, feeds))))
        dims = ["--dim=batch=4", "--dim=sequence=32"] if name.endswith("dyn") else []
        run(tool("axopt"), model, *dims, *layout.split(), "--quiet", "-o", plan)
        run(tool("axrun"), plan, "--inputs", f"{folder}/x.npz", "--expect",
            f"{folder}/y.npz", "--rtol=1e-4", "--atol=1e-4")
        with open(plan) as file:
            attention = re.findall(r"ax\.attention .*", file.read())
    odd = [line for line in attention
           if not re.search(rf"mask %\w+ : tensor<\dx{CAUSAL[name]}",
                            re.sub(r", #ax.layout<[^>]*>", "", line))]
    if not attention or odd:
        raise Failed(f"attention is not as expected: {odd or 'there is none'}")


def trains(name, layout):
    """Three steps on ranks as on one, by gradients of queries that see no key, too."""
    shape = [4, 32]
    random = np.random.default_rng(1)
    feeds = {"input_ids": random.integers(0, 128, shape),
             "attention_mask": paddings(*shape),
             "target": random.standard_normal([*shape, 128]).astype(np.float32)}
    dims = ["--dim=batch=4", "--dim=sequence=32"] if name.endswith("dyn") else []
    with scratch() as folder:
        np.savez(f"{folder}/x.npz", **feeds)
        for ranks, *flags in [["", "--output", f"{folder}/y.npz"],
                              [layout, "--expect", f"{folder}/y.npz", "--rtol=1e-4",
                               "--atol=1e-4"]]:
            run(tool("axopt"), MODELS / name / "model.onnx", *dims, *ranks.split(),
                "--train", "--loss=mse(output,target)", "--optimizer=sgd(lr=0.5)",
                "--quiet", "-o", f"{folder}/plan.mlir")
            run(tool("axrun"), f"{folder}/plan.mlir", "--inputs", f"{folder}/x.npz",
                "--iterations=3", *flags)


def cases(every):
    for name in CAUSAL:
        for layout in LAYOUTS:
            yield f"{name} {layout}", agrees, name, layout
        if "eager_ts17" not in name:
            for layout in TRAINED:
                yield f"{name} trains {layout}", trains, name, layout
