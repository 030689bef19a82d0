# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of f32, which no library of a card does: composed of products and
kernels, forwards and backwards, of random shapes. On the simulated GPU its numbers
are the CPU's, which computes neither scores nor gradients as matrices."""
import os
from pathlib import Path

import numpy as np
from onnx import numpy_helper

from _onnx_text import model
from _training import states
from cases import Failed, run, scratch, tool
from devices import simulated

MANY = 10
# Of the largest magnitude of a tensor.
LARGEST_DIFFERENCE = 1e-5


def attentions(random):
    """Several in one model, each of operands and masks that are trained; and their
    shapes."""
    lines, weights, outputs, shapes = [], {}, [], []
    for i in range(MANY):
        groups = int(random.choice([1, 1, 2, 3]))
        heads = groups * int(random.choice([1, 1, 2, 3]))
        size, valueSize = (int(8 * random.integers(1, 5)) for _ in range(2))
        queries = int(random.integers(1, 34))
        # With a causal mask each query has a key. Of a single key no gradient but
        # its value's is anything but rounding.
        isCausal = int(queries > 1 and random.integers(2))
        keys = queries if isCausal else int(random.integers(2, 41))
        batch = int(random.integers(1, 3))
        for name, shape in (("q", (batch, heads, queries, size)),
                            ("k", (batch, groups, keys, size)),
                            ("v", (batch, groups, keys, valueSize))):
            weights[f"{name}{i}"] = random.standard_normal(shape)
        operands = f"q{i}, k{i}, v{i}"
        isMasked = int(random.integers(2))
        if isMasked:
            shape = [(queries, keys), (batch, 1, queries, keys),
                     (batch, heads, queries, keys)][random.integers(3)]
            weights[f"m{i}"] = random.standard_normal(shape)
            operands += f", m{i}"
        lines += [f"a{i} = Attention<is_causal={isCausal}>({operands})",
                  f"f{i} = Reshape(a{i}, row)"]
        outputs.append(f"f{i}")
        shapes.append((batch, heads, groups, queries, keys, size, valueSize,
                       isCausal, isMasked))
    count = sum(shape[0] * shape[1] * shape[3] * shape[6] for shape in shapes)
    made = model("float[1,1] input", f"float[1,{count}] logits", "\n".join(
        [*lines, f"all = Concat<axis=1>({', '.join(outputs)})",
         "logits = Mul(all, input)"]), "int64[2] row = {1, -1}")
    for name, value in weights.items():
        made.graph.initializer.append(
            numpy_helper.from_array(value.astype(np.float32), name))
    return made, count, shapes


def agree(seed):
    random = np.random.default_rng(seed)
    made, count, shapes = attentions(random)
    build = Path(os.environ["AX_BIN"]).parent
    with scratch() as folder:
        with open(f"{folder}/model.onnx", "wb") as file:
            file.write(made.SerializeToString())
        np.savez(f"{folder}/data.npz", input=np.ones((1, 1), np.float32),
                 target=random.standard_normal((1, count)).astype(np.float32))
        # A step is so large that weights are their gradients by its end.
        run(tool("axopt"), f"{folder}/model.onnx", "--train", "--quiet",
            "--loss=mse(logits,target)", f"--optimizer=sgd(lr={1e4 * count})",
            "-o", f"{folder}/plan.mlir")
        found = {}
        for device, environment in (("cpu", {}), ("cuda", simulated(
                build, "random:1"))):
            run(tool("axrun"), f"{folder}/plan.mlir", "--data",
                f"{folder}/data.npz", "--steps=1", "--quiet", "--device", device,
                "--save-weights", f"{folder}/{device}.safetensors",
                *(["--no-host-fallback"] if device == "cuda" else []),
                env=os.environ | environment)
            found[device] = dict(states(f"{folder}/{device}.safetensors"))
    if len(found["cpu"]) < 3 * MANY:
        raise Failed(f"{sorted(found['cpu'])} were trained")
    for name, wanted in found["cpu"].items():
        difference = np.abs(found["cuda"][name] - wanted).max()
        if not difference <= LARGEST_DIFFERENCE * np.abs(wanted).max():
            raise Failed(f"{name}: {difference} of {np.abs(wanted).max()}\n"
                         f"{dict(enumerate(shapes))}")


def cases(every):
    for seed in range(20 if every else 4):
        yield f"{MANY} attentions, {seed}", agree, seed
