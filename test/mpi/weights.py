# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""--weights of processes: each reads what its rank has, and all say the same."""
import os
import sys
from pathlib import Path

import numpy as np
from onnx import helper

from _jobs import DIGITS, compiled, oneMessage, ranksOf, same, sameLogs
from _mpirun import launch
from cases import ROOT, Failed, run, scratch, tool

sys.path.append(str(ROOT / "test/e2e"))
import _weights  # noqa: E402
from _training import small  # noqa: E402
from train import states  # noqa: E402

BAD_INPUT, INPUT_OUTPUT = 6, 7
LAYOUTS = ["--tp=2", "--pp=2", "--tp=2 --pp=2", "--dp=2 --zero=3", "--tp=2x2x2"]
OFTEN = ["--tp=2 --pp=2", "--dp=2 --zero=3"]


def trained(folder, *flags):
    """A checkpoint of four ranks."""
    plan = compiled(folder, "--tp=4", *flags, name="first")
    run(tool("axrun"), plan, "--data", DIGITS, "--quiet", "--steps=2", "--save", f"{folder}/run",
        "--save-weights", f"{folder}/weights.safetensors")


def sameBits(layout):
    """From a checkpoint of another layout, from a file, and from one that is narrower."""
    with scratch() as folder:
        trained(folder)
        narrow = f"{folder}/narrow.safetensors"
        _weights.save(narrow, dict(states(f"{folder}/weights.safetensors")), "BF16")
        plan = compiled(folder, layout)
        for weights in f"{folder}/run", f"{folder}/weights.safetensors", narrow:
            for name, ranks in ("threads", None), ("processes", ranksOf(layout)):
                done = train(plan, ranks, folder, name, "--weights", weights)
                if done.stderr.count("bf16, and taken as f32") != (weights == narrow):
                    raise Failed(done.stderr)
            sameLogs(f"{folder}/threads.log", f"{folder}/processes.log")
            same(f"{folder}/threads.safetensors", f"{folder}/processes.safetensors")
            (Path(folder) / "threads.log").unlink()
            (Path(folder) / "processes.log").unlink()


def train(plan, ranks, folder, name, *flags):
    command = [tool("axrun"), plan, "--data", DIGITS, "--steps=2", "--no-shuffle", "--quiet",
               "--log", f"{folder}/{name}.log", "--save-weights", f"{folder}/{name}.safetensors",
               *flags]
    return launch(ranks, *command) if ranks else run(*command)


def tied():
    """A weight that the checkpoint lacks gets the transpose of one that is in several files."""
    with scratch() as folder:
        random = np.random.default_rng(3)

        def normal(*shape):
            return random.normal(size=shape).astype(np.float32)
        weights = {"w0": normal(8, 8), "w1": normal(8, 8)}
        small(f"{folder}/one.onnx", [helper.make_node("MatMul", ["input", "w0"], ["logits"])],
              {"w0": weights["w0"]}, ["batch", 8])
        small(f"{folder}/two.onnx", [helper.make_node("MatMul", ["input", "w0"], ["h"]),
                                     helper.make_node("MatMul", ["h", "w1"], ["logits"])],
              weights, ["batch", 8])
        np.savez(f"{folder}/data.npz", input=normal(96, 8), labels=random.integers(0, 8, 96))
        one, two = (compiled(folder, "--tp=2", model=f"{folder}/{name}.onnx",
                             shape="input=24x8", name=name) for name in ("one", "two"))
        data = ["--data", f"{folder}/data.npz"]
        run(tool("axrun"), one, *data, "--steps=2", "--quiet", "--save", f"{folder}/run")
        use = [tool("axrun"), two, *data, "--weights", f"{folder}/run", "--tied=w1=w0.T",
               "--predict"]
        run(*use, f"{folder}/threads.npz")
        launch(2, *use, f"{folder}/processes.npz")
        same(f"{folder}/threads.npz", f"{folder}/processes.npz")


def refused():
    """What is damaged, of another model, or not there for one, is said once."""
    with scratch() as folder:
        trained(folder)
        plan = compiled(folder, "--tp=4")
        step = Path(folder) / "run/step-2"
        command = [tool("axrun"), plan, "--data", DIGITS, "--quiet", "--steps=1", "--weights"]
        name = "rank-2.safetensors"
        whole = (step / name).read_bytes()
        for damaged in whole[:-100], whole[:-9] + bytes([whole[-9] ^ 4]) + whole[-8:]:
            (step / name).write_bytes(damaged)
            oneMessage(launch(4, *command, step, expect=BAD_INPUT), f"checkpoint '{step}'", name)
        (step / name).write_bytes(whole)
        _weights.save(f"{folder}/other.safetensors", {"w": np.ones(3, np.float32)})
        oneMessage(launch(4, *command, f"{folder}/other.safetensors", expect=BAD_INPUT),
                   f"weights '{folder}/other.safetensors':")
        # Each process looks in a folder of its own.
        apart = []
        for rank in range(4):
            place = Path(folder) / f"place{rank}"
            place.mkdir()
            if rank != 2:
                os.symlink(f"{folder}/run", place / "run")
            apart += [":", "-np", 1] if apart else []
            apart += ["-wdir", place, *command, "run"]
        oneMessage(launch(1, *apart, expect=INPUT_OUTPUT), "rank 2 on host '", "--weights=run")


def cases(every):
    for layout in LAYOUTS if every else OFTEN:
        yield f"bits {layout}", sameBits, layout
    yield "a transposed twin", tied
    yield "one message", refused
