# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every operator in every version since operator set 7, beside onnxruntime and,
where that lacks it, onnx's reference interpreter.

All cases of an operator set are one model, so that the tools run once; what
then fails is tried alone, so that a failure names its case. An operator's
version without a case is a failure.
"""
import os
import pathlib
import sys
import warnings

import numpy as np
import onnx
import onnx.reference
import onnxruntime

from _operator_case import model_of
from _operators import RANDOM, cases_of, wanted
from cases import Failed, run, scratch, tool

# Loads models of sets that are not yet final.
os.environ["ALLOW_RELEASED_ONNX_OPSET_ONLY"] = "0"
# Refused with a message of its own, see test/e2e/import_errors.py.
REFUSED = {("Scan", 8)}


def opsets():
    return sorted({opset for _, opset in wanted()})


def operators(opset):
    return sorted(op for op, version in wanted() if version == opset
                  and op not in RANDOM and (op, version) not in REFUSED)


def byOnnxruntime(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = \
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, ["CPUExecutionProvider"])
    return session.run(None, feeds)


def byOnnx(model, feeds):
    if any(node.op_type == "Optional" for node in model.graph.node):
        raise NotImplementedError("its optionals are lists")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return onnx.reference.ReferenceEvaluator(model).run(None, feeds)


def expected(case):
    """Outputs of a case, and who says so. A version that neither has differs
    from the one before only in types."""
    why = ""
    for opset in range(case.opset, case.opset - 18, -1):
        for evaluate in byOnnxruntime, byOnnx:
            made = model_of([case], opset)
            try:
                return evaluate(made, case.feeds("n0_")), evaluate.__name__
            except Exception as error:  # Their types are not public.
                why += f"\n{evaluate.__name__} at {opset}: {error!r:.200}"
    raise Failed(f"{case.name}: no reference{why}")


def ours(cases, opset):
    """Outputs of all cases, a list each."""
    made = model_of(cases, opset)
    with scratch() as folder:
        folder = pathlib.Path(folder)
        (folder / "model.onnx").write_bytes(made.SerializeToString())
        rooms = [f"--max=n{n}_o0={case.room}" for n, case in enumerate(cases)
                 if case.room]
        run(tool("axopt"), folder / "model.onnx", "--quiet", *rooms,
            "-o", folder / "plan.mlir")
        feeds = {}
        for n, case in enumerate(cases):
            feeds |= case.feeds(f"n{n}_")
        np.savez(folder / "in.npz", **feeds)
        run(tool("axrun"), folder / "plan.mlir", "--inputs", folder / "in.npz",
            "--output", folder / "out.npz")
        with np.load(folder / "out.npz") as out:
            return [[out[f"n{n}_o{i}"] for i in case.compared]
                    for n, case in enumerate(cases)]


def outputsOrFailures(cases, opset):
    """As `ours`, with a message where a case fails."""
    try:
        return ours(cases, opset)
    except Failed as failure:
        if len(cases) == 1:
            return [str(failure).strip().splitlines()[-1]]
        half = len(cases) // 2
        return (outputsOrFailures(cases[:half], opset)
                + outputsOrFailures(cases[half:], opset))


def differences(case, found):
    """A line about each output that is not as expected."""
    wanted, source = expected(case)
    for i, (got, want) in enumerate(zip(found, wanted)):
        want = np.asarray(want)
        at = f"{case.name}, output {i}, {source}: "
        if got.dtype != want.dtype or got.shape != want.shape:
            yield (f"{at}{got.dtype}{list(got.shape)}, not "
                   f"{want.dtype}{list(want.shape)}")
        elif want.dtype.kind == "f":
            scale = np.abs(want[np.isfinite(want)]).max(initial=1e-3)
            rtol = case.rtol if want.dtype != np.float16 else 2e-3
            if not np.allclose(got, want, rtol=rtol, atol=rtol * scale,
                               equal_nan=True):
                yield f"{at}{got.ravel()[:8]}, not {want.ravel()[:8]}"
        elif not np.array_equal(got, want):
            yield f"{at}{got.ravel()[:8]}, not {want.ravel()[:8]}"


def check(opset):
    cases, wrong = [], []
    for op in operators(opset):
        made = cases_of(op, opset)
        if not made:
            wrong.append(f"{op} of operator set {opset} has no case")
        cases += made
    for case, found in zip(cases, outputsOrFailures(cases, opset)):
        wrong += ([f"{case.name}: {found}"] if isinstance(found, str)
                  else differences(case, found))
    if wrong:
        raise Failed("\n".join(wrong))


def cases(every):
    for opset in opsets():
        yield f"opset {opset}", check, opset


if __name__ == "__main__":  # Lists what is covered.
    for version in map(int, sys.argv[1:]) if sys.argv[1:] else opsets():
        for name in operators(version):
            for example in cases_of(name, version):
                print(example.name)
