# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights that a run does not train: the model's own, and others it was given."""
import json
import re

import numpy as np
import onnx
from onnx import helper, numpy_helper

from _training import DIGITS, FC_NET, axrun, close, compiled, losses
from _weights import expect
from train import states

from cases import run, scratch, tool

FROZEN = "layers.0*"
DATA = ["--data", DIGITS / "train.npz", "--quiet"]
EVAL = ["--eval", DIGITS / "test.npz"]


def frozenNames():
    return [tensor.name for tensor in onnx.load(FC_NET).graph.initializer
            if tensor.name.startswith("layers.0")]


def givenWeights(path):
    """The model's, but for those that are frozen."""
    rng = np.random.default_rng(1)
    weights = {tensor.name: numpy_helper.to_array(tensor)
               for tensor in onnx.load(FC_NET).graph.initializer}
    for name in frozenNames():
        weights[name] = rng.normal(size=weights[name].shape).astype(np.float32)
    weights = {name: array for name, array in weights.items()
               if array.dtype == np.float32 and array.ndim}
    np.savez(path, **weights)
    return weights


def measured(*command):
    done = axrun(*command, *EVAL)
    return re.findall("loss [0-9.]+, 360 samples", done.stdout + done.stderr)


def given(layout, other):
    """They are in the checkpoint: what goes on or measures has them."""
    with scratch() as folder:
        weights = givenWeights(f"{folder}/given.npz")
        plan = compiled(folder, f"--frozen={FROZEN}", *layout.split())
        elsewhere = compiled(folder, f"--frozen={FROZEN}", *other.split(),
                             name="other")
        whole = measured(plan, *DATA, "--steps=6", "--weights",
                         f"{folder}/given.npz", "--save", f"{folder}/whole",
                         "--log", f"{folder}/whole.log")
        axrun(plan, *DATA, "--steps=3", "--weights", f"{folder}/given.npz",
              "--save", f"{folder}/run", "--log", f"{folder}/run.log")
        axrun(elsewhere, *DATA, "--steps=6", "--resume", f"{folder}/run",
              "--save", f"{folder}/run", "--log", f"{folder}/run.log")
        close(losses(f"{folder}/run.log"), losses(f"{folder}/whole.log"), 1e-4,
              "losses")
        again = measured(plan, "--weights", f"{folder}/whole")
        assert len(whole) == 1 and again == whole, (again, whole)
        run(tool("axopt"), FC_NET, "--export-onnx", f"{folder}/trained.onnx",
            "--weights", f"{folder}/run")
        exported = {tensor.name: numpy_helper.to_array(tensor) for tensor in
                    onnx.load(f"{folder}/trained.onnx").graph.initializer}
        for name in frozenNames():
            np.testing.assert_array_equal(exported[name], weights[name])


def otherModel():
    """What was not trained has to be what it was."""
    with scratch() as folder:
        plan = compiled(folder, f"--frozen={FROZEN}")
        axrun(plan, *DATA, "--steps=2", "--save", f"{folder}/run")
        model = onnx.load(FC_NET)
        name = "layers.0.0.bias"
        for tensor in model.graph.initializer:
            if tensor.name == name:
                tensor.CopyFrom(numpy_helper.from_array(
                    numpy_helper.to_array(tensor) + 1, name))
        onnx.save(model, f"{folder}/model.onnx")
        run(tool("axopt"), f"{folder}/model.onnx", "--shape=input=32x64",
            "--train", "--loss=cross_entropy(logits,labels)",
            f"--frozen={FROZEN}", "--quiet", "-o", f"{folder}/other.mlir")
        says = f"{name} has other values in this plan's model than in that " \
            "of the run, which did not train it"
        axrun(f"{folder}/other.mlir", *DATA, "--steps=3", "--resume",
              f"{folder}/run", expect=6, says=says)
        axrun(f"{folder}/other.mlir", *EVAL, "--weights", f"{folder}/run",
              expect=6, says=says)
        done = run(tool("axopt"), f"{folder}/model.onnx", "--export-onnx",
                   f"{folder}/trained.onnx", "--weights", f"{folder}/run",
                   expect=6)
        expect(done, f"weight '{name}' has other values in this model than in "
               "that of the run, which did not train it")


def lacking():
    """A plan without a weight that the run was given."""
    with scratch() as folder:
        givenWeights(f"{folder}/given.npz")
        axrun(compiled(folder, f"--frozen={FROZEN}"), *DATA, "--steps=1",
              "--weights", f"{folder}/given.npz", "--save", f"{folder}/run")
        model = onnx.load(FC_NET)
        name = "layers.0.0.bias"
        for tensor in model.graph.initializer:
            if tensor.name == name:
                tensor.name = "other"
        for node in model.graph.node:
            node.input[:] = ["other" if value == name else value
                             for value in node.input]
        onnx.save(model, f"{folder}/model.onnx")
        run(tool("axopt"), f"{folder}/model.onnx", "--shape=input=32x64",
            "--eval", "--quiet", "-o", f"{folder}/other.mlir")
        axrun(f"{folder}/other.mlir", "--random-inputs=1", "--weights",
              f"{folder}/run", expect=6, says=f"{name} was given to the run "
              "(--weights), but the plan has it as constants")


def weightsAlone():
    """Moments, steps and the schedule's place are for --resume."""
    with scratch() as folder:
        plan = compiled(folder, "--lr-schedule=linear(steps=4)")
        axrun(plan, *DATA, "--steps=4", "--save", f"{folder}/run",
              "--save-weights", f"{folder}/w.safetensors")
        names = {name for name, _ in states(f"{folder}/w.safetensors")}
        assert names == {tensor.name for tensor in
                         onnx.load(FC_NET).graph.initializer}, names
        rates = []
        for source in "run", "w.safetensors":
            axrun(plan, *DATA, "--steps=1", "--weights", f"{folder}/{source}",
                  "--log", f"{folder}/{source}.log")
            with open(f"{folder}/{source}.log") as file:
                rates.append(json.loads(file.readline())["learning_rate"])
        axrun(plan, *DATA, "--steps=1", "--log", f"{folder}/first.log")
        with open(f"{folder}/first.log") as file:
            first = json.loads(file.readline())["learning_rate"]
        assert rates == [first, first] and first > 0, (rates, first)


def twoHeads(path, scale=2.0, causal=True, **more):
    """The second one has no part in the loss."""
    value, make = helper.make_tensor_value_info, helper.make_node
    rng = np.random.default_rng(3)
    shapes = {"w1": (64, 16), "w2": (16, 10), "aux": (16, 3), "auxb": (3,)}
    weights = {name: rng.normal(size=shape).astype(np.float32)
               for name, shape in shapes.items()}
    mask = np.tri(16) if causal else np.abs(np.subtract.outer(
        np.arange(16), np.arange(16))) < 3
    weights |= {"scale": np.float32(scale), "mask": mask.astype(np.float32)}
    weights |= more
    nodes = [make("MatMul", ["input", "w1"], ["h"]),
             make("Relu", ["h"], ["r"]),
             make("Mul", ["r", "scale"], ["s"]),
             make("MatMul", ["s", "mask"], ["m"]),
             *(make("Mul", ["m" if i == 0 else f"m{i}", name], [f"m{i + 1}"])
               for i, name in enumerate(more)),
             make("MatMul", [f"m{len(more)}" if more else "m", "w2"],
                  ["logits"]),
             make("MatMul", ["r", "aux"], ["a"]),
             make("Add", ["a", "auxb"], ["second"])]
    graph = helper.make_graph(
        nodes, "two", [value("input", 1, [32, 64])],
        [value("logits", 1, [32, 10]), value("second", 1, [32, 3])],
        [numpy_helper.from_array(array, name)
         for name, array in weights.items()])
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[
        helper.make_opsetid("", 20)]), path)
    return weights


def outsideTheLoss(layout):
    """Weights that no step uses are those that were given, too."""
    with scratch() as folder:
        model = f"{folder}/model.onnx"
        own = twoHeads(model)
        del own["scale"]
        other = {name: array + (name != "mask") for name, array in own.items()}
        np.savez(f"{folder}/given.npz", **other)
        partial = {name: other[name] for name in ("w1", "w2", "mask")}
        np.savez(f"{folder}/partial.npz", **partial)
        plan = compiled(folder, *layout.split(), "--frozen=mask", model=model)
        for given, aux in ("given", other), ("partial", own):
            saved = f"{folder}/{given}"
            axrun(plan, *DATA, "--steps=2", "--weights", f"{saved}.npz",
                  "--save", f"{saved}-run")
            axrun(plan, *DATA, "--steps=4", "--resume", f"{saved}-run",
                  "--save", f"{saved}-run", "--save-weights",
                  f"{saved}.safetensors")
            results = []
            for weights in f"{saved}-run", f"{saved}.safetensors":
                axrun(plan, *DATA[:2], "--predict", f"{folder}/out.npz",
                      "--weights", weights)
                results.append(np.load(f"{folder}/out.npz")["second"])
                run(tool("axopt"), model, "--export-onnx",
                    f"{folder}/out.onnx", "--weights", weights)
                for tensor in onnx.load(f"{folder}/out.onnx").graph.initializer:
                    got = numpy_helper.to_array(tensor)
                    if tensor.name in ("scale", "mask"):
                        continue
                    same = np.array_equal(got, aux[tensor.name])
                    assert same == tensor.name.startswith("aux"), tensor.name
            np.testing.assert_array_equal(*results)


def otherConstants():
    """Nothing of the model may be another: no number, no mask, no weight that
    is new."""
    with scratch() as folder:
        frozen = {"frozen": np.arange(16, dtype=np.float32)}
        flags = ["--frozen=frozen", "--frozen=mask"]
        others = {"scale": {"scale": 3.0}, "mask": {"causal": False},
                  "frozen": {}}
        twoHeads(f"{folder}/model.onnx")
        plan = compiled(folder, "--frozen=mask", model=f"{folder}/model.onnx")
        axrun(plan, *DATA, "--steps=1", "--save", f"{folder}/run")
        for name, change in others.items():
            new = frozen if name == "frozen" else {}
            twoHeads(f"{folder}/{name}.onnx", **change, **new)
            other = compiled(folder, *flags[0 if new else 1:], name=name,
                             model=f"{folder}/{name}.onnx")
            differs = f"{name} has other values in this plan's model than in " \
                "that of the run, which did not train it"
            axrun(other, *DATA, "--steps=2", "--resume", f"{folder}/run",
                  expect=6, says="frozen is not in the checkpoint" if new else
                  differs)
            axrun(other, *EVAL, "--weights", f"{folder}/run", expect=6,
                  says="frozen is missing" if new else differs)
            command = [tool("axopt"), f"{folder}/{name}.onnx", "--export-onnx",
                       f"{folder}/out.onnx", "--weights", f"{folder}/run"]
            expect(run(*command, expect=6), "do not have 'frozen', which would "
                   "keep the model's values" if new else
                   f"weight '{name}' has other values in this model than in "
                   "that of the run, which did not train it")
            if not new:
                continue
            run(*command, "--partial")
            axrun(other, *DATA, "--steps=1", "--save", f"{folder}/more")
            axrun(plan, *DATA, "--steps=2", "--resume", f"{folder}/more",
                  expect=6, says="frozen is in the model of the run, but not "
                  "in the plan's")
        axrun(plan, *DATA, "--steps=2", "--resume", f"{folder}/run")


def givenToEvaluation():
    """A run that goes on measures what it was given, as it did before."""
    with scratch() as folder:
        givenWeights(f"{folder}/given.npz")
        plan = compiled(folder, f"--frozen={FROZEN}")
        first = measured(plan, *DATA, "--steps=2", "--weights",
                         f"{folder}/given.npz", "--save", f"{folder}/run")
        axrun(plan, *DATA, "--steps=1", "--weights", f"{folder}/given.npz",
              "--save", f"{folder}/start")
        again = measured(plan, *DATA, "--steps=2", "--resume",
                         f"{folder}/start")
        assert len(first) == 1 and again == first, (again, first)


def cases(every):
    for layout, other in (("", "--tp=2"), ("--dp=2 --zero=3", ""),
                          ("--tp=2", "--dp=2 --zero=2")):
        yield f"given on {layout}, then {other}", given, layout, other
    yield "another model", otherModel
    yield "a plan that lacks one", lacking
    for layout in "", "--dp=2 --zero=2", "--pp=2 --micro-batches=2":
        yield f"outside the loss {layout}", outsideTheLoss, layout
    yield "other constants", otherConstants
    yield "given to the evaluation", givenToEvaluation
    yield "weights alone", weightsAlone
