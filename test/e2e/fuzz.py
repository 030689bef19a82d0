# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every fuzz target for some seconds, over what lies in test/fuzz/TARGET and
what its line here adds. Targets: *Fuzzer in the build's test/fuzz, and those
that have a corpus."""
import copy
import itertools
import os
from pathlib import Path

import numpy as np

from _operator_case import model_of
from _operators import RANDOM, cases_of, wanted
from cases import Failed, run, scratch

ROOT = Path(__file__).parents[2]
TARGETS = Path(os.environ["AX_BIN"]).parent / "test/fuzz"
CORPUS = {
    "ImportFuzzer": lambda: (ROOT / "test/models").glob("*/model.onnx"),
}
SMALL = 200_000


def tryAll(target, timeout, *arguments):
    """What it stumbles over is kept beside it."""
    if not target.exists():
        raise Failed(f"{target} is not built: ninja tests")
    with scratch() as folder:
        try:
            run(target, f"-artifact_prefix={folder}/", *arguments,
                timeout=timeout, cwd=folder)
        except Failed as failure:
            culprits = list(Path(folder).iterdir())
            kept = [target.with_name(f"{target.name}-{c.name}")
                    for c in culprits]
            for culprit, copied in zip(culprits, kept):
                copied.write_bytes(culprit.read_bytes())
            raise Failed(f"{failure}\ninput: {', '.join(map(str, kept))}")


def fuzz(target, seconds):
    corpus = list((ROOT / "test/fuzz" / target.name).glob("*"))
    corpus += [file for file in CORPUS.get(target.name, lambda: [])()
               if file.stat().st_size < SMALL]
    tryAll(target, seconds + 120, f"-max_total_time={seconds}", "-timeout=20",
           *corpus)


def withInput(case, i, value):
    other = copy.copy(case)
    other.inputs = [*case.inputs[:i], value, *case.inputs[i + 1:]]
    return other


def shapes(every):
    """Inputs without dimensions (and without elements) where an operator looks
    for some."""
    count = 0
    with scratch() as folder:
        for op, opset in sorted(wanted()):
            if op in RANDOM:
                continue
            some = cases_of(op, opset)
            for case in some if every else itertools.islice(some, 1):
                for i, value in enumerate(case.inputs):
                    if value is None:
                        continue
                    for shape in ((), (0,) * value.ndim)[:1 + every]:
                        other = withInput(case, i, np.zeros(shape, value.dtype))
                        count += 1
                        Path(folder, f"{count}.onnx").write_bytes(
                            model_of([other], opset).SerializeToString())
        tryAll(TARGETS / "ImportFuzzer", 3600 if every else 300, "-runs=0",
               "-timeout=60", folder)


def cases(every):
    yield "shapes of every operator", shapes, every
    names = {path.name for folder in (TARGETS, ROOT / "test/fuzz")
             for path in folder.glob("*Fuzzer")}
    for name in sorted(names | CORPUS.keys()):
        yield name, fuzz, TARGETS / name, 300 if every else 8
