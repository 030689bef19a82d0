# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""10 steps on one layout and 10 on another, by threads and then by processes, and the other way
round."""
import json
from pathlib import Path

import numpy as np

from _jobs import DIGITS, compiled, logged, ranksOf, same, sameLogs
from _mpirun import launch
from cases import Failed, run, scratch, tool

LAYOUTS = {"one": "", "tp2": "--tp=2", "tp4": "--tp=4", "pp2": "--pp=2",
           "tp2 pp2": "--tp=2 --pp=2", "dp2 zero3": "--dp=2 --zero=3",
           "tp2x2x2": "--tp=2x2x2"}
OFTEN = {"tp2 pp2": ["tp2 pp2", "dp2 zero3"]}


def tensorsOf(path):
    """Of a safetensors file, as bytes: F32 has 4 of an element, I64 has 8."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    for name, entry in json.loads(content[8:start]).items():
        begin, end = entry["data_offsets"]
        yield name, np.frombuffer(content[start + begin:start + end],
                                  {"F32": np.uint32, "I64": np.uint64}[entry["dtype"]])


def statesOf(checkpoint):
    """Each state as a whole, put together from the parts of ranks."""
    files = {path.name: dict(tensorsOf(path))
             for path in checkpoint.glob("*.safetensors")}
    content = json.loads((checkpoint / "manifest.json").read_text())["content"]
    states = {}
    for name, state in content["states"].items():
        parts = [(part, files[part["file"]][name]) for part in state["parts"]]
        whole = np.zeros(np.prod(state["shape"], dtype=int), parts[0][1].dtype)
        for part, values in parts:
            strides = [stride * whole.itemsize for stride in part["strides"]]
            np.lib.stride_tricks.as_strided(
                whole[part["offset"]:], part["sizes"], strides)[...] = \
                values.reshape(part["sizes"])
        states[name] = whole.tobytes()
    return states


def pairs(first, others):
    with scratch() as folder:
        folder = Path(folder)
        plans = {name: compiled(folder, LAYOUTS[name], name=name.replace(" ", "-"))
                 for name in {first, *others}}

        def start(how, layout, steps, name, *flags):
            words = [tool("axrun"), plans[layout], "--data", DIGITS, "--quiet",
                     f"--steps={steps}", "--save", folder / name, "--log",
                     folder / f"{name}.log", *flags]
            return run(*words) if how == "threads" else \
                launch(ranksOf(LAYOUTS[layout]), *words)

        start("threads", first, 20, "whole")
        whole = logged(folder / "whole.log")
        for before, after in ("threads", "processes"), ("processes", "threads"):
            start(before, first, 10, before)
            saved = folder / before / "step-10"
            for other in others:
                name = f"{before}-{other}"
                if other != first:
                    start(after, other, 10, f"{name}-at-once", "--resume", saved)
                    if statesOf(saved) != statesOf(folder / f"{name}-at-once/step-10"):
                        raise Failed(f"{name}: other states")
                (folder / f"{name}.log").write_bytes(
                    (folder / f"{before}.log").read_bytes())
                start(after, other, 20, name, "--resume", saved)
                if other == first:
                    sameLogs(folder / "whole.log", folder / f"{name}.log")
                    for path in (folder / "whole/step-20").iterdir():
                        same(path, folder / name / "step-20" / path.name)
                    continue
                losses = [[line["loss"] for line in lines]
                          for lines in (whole, logged(folder / f"{name}.log"))]
                if len(losses[1]) != 20 or not np.allclose(*losses, rtol=1e-4, atol=0):
                    raise Failed(f"{name}: {losses}")


def cases(every):
    for first, others in OFTEN.items():
        yield f"{first}, and {' or '.join(others)}", pairs, first, others
    if every:
        for first in LAYOUTS:
            yield f"{first}, and each other", pairs, first, list(LAYOUTS)
