# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What training takes results for is not told by their names: a model may call
its outputs as training calls its own, and older plans, which have names alone,
train on."""
import re
from pathlib import Path

import numpy as np
import onnx

from _onnx_text import model
from _training import axrun, logged
from cases import run, scratch, tool

NAMES = "loss_sum", "gradient_norm", "loss", "correct"


def written(path, names):
    """y = x w, and four scalars of other values."""
    numbered = list(enumerate(names))
    onnx.save(model(
        "float[4,3] x",
        "float[4,2] y" + "".join(f", float {name}" for name in names),
        "y = MatMul (x, w) s = ReduceSum <keepdims = 0> (y) "
        + " ".join(f"{name} = Mul (s, f{number})" for number, name in numbered),
        "float[3,2] w = {1, 2, 3, 4, 5, 6}"
        + "".join(f", float f{number} = {{{number + 2}}}"
                  for number, _ in numbered)), path)


def trained(folder, names, *flags, edit=None):
    graph = Path(folder) / "model.onnx"
    plan, log = Path(folder) / "plan.mlir", Path(folder) / "log"
    written(graph, names)
    run(tool("axopt"), graph, "--train", "--loss=mse(y,t)", "--clip-norm=1",
        "--optimizer=sgd(lr=0.1)", "--quiet", *flags, "-o", plan)
    if edit:
        plan.write_text(edit(plan.read_text()))
    random = np.random.default_rng(0)
    np.savez(f"{folder}/data.npz",
             x=random.standard_normal((8, 3), np.float32),
             t=random.standard_normal((8, 2), np.float32))
    log.unlink(missing_ok=True)
    axrun(plan, "--data", f"{folder}/data.npz", "--steps=8", "--no-shuffle",
          "--eval", f"{folder}/data.npz", "--log", log)
    axrun(plan, "--data", f"{folder}/data.npz", "--predict",
          f"{folder}/out.npz")
    lines = [{key: value for key, value in line.items()
              if "loss" in key or key == "gradient_norm"}
             for line in logged(log)]
    with np.load(f"{folder}/out.npz") as made:
        return lines, {name: made[name] for name in made.files}


def ownNames(*flags):
    with scratch() as folder:
        lines, made = trained(folder, ["a", "b", "c", "d"], *flags)
        again, named = trained(folder, NAMES, *flags)
    # Of the same samples; in f16 the first steps look for a scale.
    assert len(lines) == 9 and lines[0]["loss"] > lines[6]["loss"], lines
    assert again == lines, (again, lines)
    assert np.array_equal(named["y"], made["y"])


def withoutRoles(text):
    """As versions before wrote it."""
    assert text.count("#ax.role<") == 5 and " version 3" in text, text
    return re.sub(r", ax\.role = #ax\.role<\w+>", "",
                  text.replace(" version 3", " version 1", 1))


def olderPlan():
    with scratch() as folder:
        wanted = trained(folder, ["a", "b", "c", "d"])[0]
        got = trained(folder, ["a", "b", "c", "d"], edit=withoutRoles)[0]
    assert got == wanted, (got, wanted)


def cases(every):
    for flags in "", "--dp=2", "--precision=fp16":
        yield f"outputs named as training's {flags}", ownNames, *flags.split()
    yield "a plan of before", olderPlan
