# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every number of every attribute of the node tests of the onnx package, set to
values that it should not have: axopt ends with a plan or with a message.

Without --all one test of each operator, and of it two of the values.
"""
import functools
import subprocess
import tempfile
import zlib

import onnx
from onnx import AttributeProto
from onnx.backend.test.loader import load_model_tests

from cases import Failed, tool

VALUES = [-2**31, -9, -1, 0, 1, "rank", 2**31, 2**63 - 1]
# Done; flags; model; not supported. All others are faults of axopt.
ENDS = {0, 2, 3, 4}
BATCHES = 4
SECONDS = 60


@functools.lru_cache(maxsize=None)  # Making them takes seconds.
def models():
    """(name, model) of single nodes that have numbers as attributes."""
    return [(case.name, case.model) for case in load_model_tests(kind="node")
            if len(case.model.graph.node) == 1 and any(
                a.type in (AttributeProto.INT, AttributeProto.INTS)
                for a in case.model.graph.node[0].attribute)]


def variants(model, every):
    rank = len(model.graph.input[0].type.tensor_type.shape.dim) \
        if model.graph.input else 0
    for index, attribute in enumerate(model.graph.node[0].attribute):
        if attribute.type not in (AttributeProto.INT, AttributeProto.INTS):
            continue
        start = zlib.crc32(attribute.name.encode())
        chosen = VALUES if every else [
            VALUES[(start + 3 * i) % len(VALUES)] for i in range(2)]
        for value in chosen:
            made = onnx.ModelProto()
            made.CopyFrom(model)
            changed = made.graph.node[0].attribute[index]
            value = rank if value == "rank" else value
            if changed.type == AttributeProto.INT:
                changed.i = value
            else:
                changed.ints[:] = [value] + list(changed.ints)[1:]
            yield f"{attribute.name}={value}", made


def sweep(batch, every):
    """The operators whose number among all is `batch` of BATCHES."""
    numbers, wrong, count = {}, [], 0
    for name, model in models():
        op = model.graph.node[0].op_type
        isFirst = op not in numbers
        number = numbers.setdefault(op, len(numbers))
        if number % BATCHES != batch or not (every or isFirst):
            continue
        for what, made in variants(model, every):
            count += 1
            with tempfile.TemporaryDirectory(prefix="axopt-test-") as folder:
                path = f"{folder}/model.onnx"
                with open(path, "wb") as file:
                    file.write(made.SerializeToString())
                try:
                    done = subprocess.run(
                        [tool("axopt"), path, "--quiet", "-o",
                         f"{folder}/plan.mlir"], capture_output=True,
                        text=True, errors="replace", timeout=SECONDS)
                except subprocess.TimeoutExpired:
                    wrong.append(f"{name} {what}: more than {SECONDS} s")
                    continue
            message = done.stderr.strip()
            if done.returncode not in ENDS or len(message) > 2000 or (
                    done.returncode and not message):
                wrong.append(f"{name} {what}: exit code {done.returncode}, "
                             f"{message[-300:]}")
    if not count:
        raise Failed("no attributes")
    if wrong:
        raise Failed("\n".join(wrong))


def cases(every):
    for batch in range(BATCHES):
        yield f"part {batch}", sweep, batch, every
