# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nodes of onnxruntime's own operators, beside onnxruntime."""
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from cases import Failed, run, scratch, tool

DOMAIN = "com.microsoft"


class Case:
    """A node: `inputs` are arrays (None: absent), those at `known` constants;
    `outputs` are numbers of those that it gives."""

    def __init__(self, op, *inputs, known=(), outputs=(0,), domain=DOMAIN,
                 rtol=2e-5, ties=0, **attributes):
        self.op, self.inputs, self.known = op, inputs, set(known)
        self.outputs, self.domain, self.rtol = outputs, domain, rtol
        # The part of integers that may be 1 off: rounded otherwise.
        self.ties = ties
        self.attributes = attributes
        shapes = ",".join("-" if x is None else "x".join(map(str, x.shape))
                          + ("" if x.dtype == np.float32 else f":{x.dtype}")
                          for x in inputs)
        written = "".join(f";{k}={v}" for k, v in attributes.items())
        self.name = f"{op}({shapes}{written})"

    def addTo(self, graph, prefix):
        names = ["" if x is None else f"{prefix}i{i}"
                 for i, x in enumerate(self.inputs)]
        for i, value in enumerate(self.inputs):
            if value is None:
                continue
            if i in self.known:
                graph.initializer.append(
                    numpy_helper.from_array(value, names[i]))
            else:
                graph.input.append(helper.make_tensor_value_info(
                    names[i], helper.np_dtype_to_tensor_dtype(value.dtype),
                    value.shape))
        results = [f"{prefix}o{i}" if i in self.outputs else ""
                   for i in range(max(self.outputs) + 1)]
        graph.node.append(helper.make_node(
            self.op, names, results, prefix + self.op, domain=self.domain,
            **self.attributes))
        graph.output.extend(onnx.ValueInfoProto(name=name)
                            for name in results if name)

    def specified(self, i, array):
        """Output `i`, the same in whatever is left open."""
        return array

    def feeds(self, prefix):
        return {f"{prefix}i{i}": value for i, value in enumerate(self.inputs)
                if value is not None and i not in self.known}


def model_of(cases, opset=17):
    graph = onnx.GraphProto(name="g")
    for n, case in enumerate(cases):
        case.addTo(graph, f"n{n}_")
    return helper.make_model(graph, ir_version=10, opset_imports=[
        helper.make_opsetid("", opset), helper.make_opsetid(DOMAIN, 1)])


def byOnnxruntime(model, feeds):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = \
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, ["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds)))


def ours(model, feeds, *flags):
    """The outputs of a model, by their names."""
    with scratch() as folder:
        folder = pathlib.Path(folder)
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        run(tool("axopt"), folder / "model.onnx", "--quiet", *flags,
            "-o", folder / "plan.mlir")
        np.savez(folder / "in.npz", **feeds)
        run(tool("axrun"), folder / "plan.mlir", "--inputs", folder / "in.npz",
            "--output", folder / "out.npz")
        with np.load(folder / "out.npz") as out:
            return dict(out)


def difference(got, want, rtol, ties):
    """What is otherwise than expected, or nothing."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return (f"{got.dtype}{list(got.shape)}, not "
                f"{want.dtype}{list(want.shape)}")
    if want.dtype.kind != "f":
        off = np.abs(got.astype(np.int64) - want)
        if off.max(initial=0) <= (1 if ties else 0) and \
                np.count_nonzero(off) <= ties * off.size:
            return ""
        return (f"{got.ravel()[:8]}, not {want.ravel()[:8]}, {off.max()} off, "
                f"{np.count_nonzero(off)} of {off.size}")
    scale = np.abs(want[np.isfinite(want)]).max(initial=1e-3)
    rtol = max(rtol, 2e-3 if want.dtype == np.float16 else 0)
    if np.allclose(got, want, rtol=rtol, atol=rtol * scale, equal_nan=True):
        return ""
    return (f"{got.ravel()[:8]}, not {want.ravel()[:8]}, "
            f"{np.abs(got - want).max() / scale:.2g} off")


def differences(case, prefix, made, wanted):
    for i in case.outputs:
        name = f"{prefix}o{i}"
        want = case.specified(i, np.asarray(wanted[name]))
        if found := difference(case.specified(i, made[name]), want, case.rtol,
                               case.ties):
            yield f"{case.name}, output {i}: {found}"


def compare(cases, *flags, opset=17):
    """All cases are one model; what then fails is tried alone, so that a
    failure names its case."""
    def attempt(some):
        model = model_of(some, opset)
        feeds = {}
        for n, case in enumerate(some):
            feeds |= case.feeds(f"n{n}_")
        try:
            made = ours(model, feeds, *flags)
            wanted = byOnnxruntime(model, feeds)
        except Exception as failure:  # onnxruntime's types are not public.
            if len(some) == 1:
                return [f"{some[0].name}: {failure}"]
            half = len(some) // 2
            return attempt(some[:half]) + attempt(some[half:])
        return [line for n, case in enumerate(some)
                for line in differences(case, f"n{n}_", made, wanted)]
    if wrong := attempt(cases):
        raise Failed("\n".join(wrong))


def compared(groups):
    """Tests: each group of cases on one rank, and all of them on two."""
    for group in groups:
        yield group.__name__, lambda group=group: compare(list(group()))
    for flags in ["--tp=2"], ["--dp=2"]:
        yield f"all, {flags[0]}", lambda flags=flags: compare(
            [case for group in groups for case in group()], *flags)


def refuse(case, message, code, opset=17):
    """axopt on one node, which it does not take."""
    with scratch() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        path.write_bytes(model_of([case], opset).SerializeToString())
        done = run(tool("axopt"), path, "--quiet", "-o", f"{folder}/plan.mlir",
                   expect=code)
    if message not in done.stderr or f"n0_{case.op}" not in done.stderr:
        raise Failed(f"expected: {message}\ngot: {done.stderr}")
