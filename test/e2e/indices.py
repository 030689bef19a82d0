# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Indices out of range are one error, whatever the layout; negative ones count
from the end."""
import os
import pathlib
import re

import numpy as np
import onnx
from onnx import numpy_helper

from _onnx_text import model
from _training import GPT, axrun, compiled
from cases import MODELS, Failed, run, scratch, tool

MODEL = MODELS / "gpt2_eager_ts17_dyn"
DATA = MODEL / "test_data_set_0"


def inputs():
    for file in sorted(DATA.glob("input_*.pb")):
        tensor = onnx.load_tensor(file)
        yield tensor.name, numpy_helper.to_array(tensor)


def lookUp(layout):
    values = dict(inputs())
    ids = values["input_ids"]
    with scratch() as folder:
        plan = f"{folder}/plan.mlir"
        run(tool("axopt"), MODEL / "model.onnx", "--test-data", DATA,
            *layout.split(), "--quiet", "-o", plan)

        def look(value, **expected):
            np.savez(f"{folder}/in.npz", **(values | {"input_ids": value}))
            return run(tool("axrun"), plan, "--inputs", f"{folder}/in.npz",
                       "--output", f"{folder}/out.npz", **expected)

        wrong = ids.copy()
        wrong.flat[-1] = 1000000
        message = look(wrong, expect=8).stderr
        found = re.search(r"'.*/wte/Gather' \(check_indices .*\): index "
                          r"1000000 is out of range of a dimension of (\d+)",
                          message)
        if not found:
            raise Failed(f"another message: {message}")

        look(ids)
        expected = dict(np.load(f"{folder}/out.npz"))
        look(ids - int(found[1]))
        for output, value in np.load(f"{folder}/out.npz").items():
            if not np.array_equal(value, expected[output]):
                raise Failed(f"{output} differs for indices from the end")


def first(layout):
    """Of several bad indices the first of the whole batch is reported, whoever
    has it, by whatever rank is the fastest."""
    values = dict(inputs())
    ids = np.tile(values["input_ids"], (4, 1))[:4]
    values = {name: np.tile(value, (4,) + (1,) * (value.ndim - 1))[:4]
              for name, value in values.items()}
    with scratch() as folder:
        np.savez(f"{folder}/right.npz", **values)
        run(tool("axopt"), MODEL / "model.onnx",
            *(f"--shape={name}={'x'.join(map(str, value.shape))}"
              for name, value in values.items()),
            *layout.split(), "--quiet", "-o", f"{folder}/plan.mlir")
        for places in ((0, -1), (1, 2), (-2, -1), (0, 1, 2, 3)):
            wrong = ids.copy()
            for number, place in enumerate(places):
                wrong[place, -1 - number] = 1000000 + number
            np.savez(f"{folder}/in.npz", **(values | {"input_ids": wrong}))
            for _ in range(3):
                message = run(tool("axrun"), f"{folder}/plan.mlir", "--inputs",
                              f"{folder}/in.npz", expect=8).stderr
                if "/wte/Gather" not in message or "index 1000000 " not in message:
                    raise Failed(f"{places}: another message: {message}")


def training(layout):
    """An index that is out of range is found in the data, before its step."""
    with scratch() as folder:
        folder = pathlib.Path(folder)
        plan = compiled(folder, *layout.split(), model=GPT, shape="input=4x32")
        random = np.random.default_rng(0)
        ids, labels = (random.integers(5, size=(16, 32)) for _ in range(2))
        # The third step's.
        ids[10, 3] = 10**6
        np.savez(folder / "data.npz", input=ids, labels=labels)
        data = ["--data", folder / "data.npz"]
        says = (f"data.npz: index 1000000 of 'input', sample 10, position 3, "
                "is out of range: the model looks it up among ")
        axrun(plan, *data, "--no-shuffle", "--steps=4", "--save",
              folder / "run", "--save-weights", folder / "w.safetensors",
              expect=6, says=says)
        assert sorted(os.listdir(folder / "run")) == \
            [".lock", "latest", "step-2"]
        assert (folder / "w.safetensors").exists()
        axrun(plan, *data, "--predict", folder / "out.npz", expect=6,
              says=says)
        axrun(plan, "--eval", folder / "data.npz", expect=6, says=says)
        # Those from the end are none.
        ids[10, 3] = -1
        np.savez(folder / "data.npz", input=ids, labels=labels)
        axrun(plan, *data, "--no-shuffle", "--steps=4")


def madeUp():
    """Indices of --random-inputs are in range."""
    with scratch() as folder:
        folder = pathlib.Path(folder)
        (folder / "model.onnx").write_bytes(model(
            "int64[64] ids", "float[64,2] y", "y = Gather(w, ids)",
            "float[3,2] w = {1, 2, 3, 4, 5, 6}").SerializeToString())
        run(tool("axopt"), folder / "model.onnx", "--tp=2", "--quiet", "-o",
            folder / "plan.mlir")
        axrun(folder / "plan.mlir", "--random-inputs=1")


def computed(layout):
    """One that the model computes is found in a step, of which nothing is
    saved."""
    with scratch() as folder:
        folder = pathlib.Path(folder)
        (folder / "model.onnx").write_bytes(model(
            "int64[4] ids", "float[4,2] logits",
            "moved = Add(ids, one)\nlogits = Gather(w, moved)",
            "int64[1] one = {1}, float[3,2] w = {1, 2, 3, 4, 5, 6}"
        ).SerializeToString())
        plan = compiled(folder, *layout.split(), model=folder / "model.onnx",
                        shape="ids=4")
        ids = np.zeros(16, np.int64)
        ids[10] = 2
        np.savez(folder / "data.npz", ids=ids, labels=np.zeros(16, np.int64))
        command = [plan, "--data", folder / "data.npz", "--no-shuffle",
                   "--steps=4", "--save", folder / "run", "--save-weights",
                   folder / "w.safetensors"]
        axrun(*command, expect=8, says="index 3 is out of range")
        assert os.listdir(folder / "run") == [".lock"]
        assert not (folder / "w.safetensors").exists()
        axrun(*command, "--save-every=1", expect=8)
        assert sorted(os.listdir(folder / "run")) == \
            [".lock", "latest", "step-1", "step-2"]
        assert not (folder / "w.safetensors").exists()


def cases(every):
    for layout in ("", "--dp=2", "--tp=2", "--pp=2 --micro-batches=2"):
        yield f"training {layout}", training, layout
    yield "made up", madeUp
    for layout in ("", "--dp=2"):
        yield f"computed in training {layout}", computed, layout
    for layout in ("", "--dp=2", "--dp=4", "--tp=2", "--dp=2 --tp=2",
                   "--pp=2 --micro-batches=2", "--dp=2 --micro-batches=2"):
        yield f"first of several {layout}", first, layout
    for layout in ("--tp=1", "--tp=2", "--tp=4", "--pp=2",
                   "--tp=2 --sequence-parallel"):
        yield f"gpt2 {layout}", lookUp, layout
