# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the node tests of the onnx package through our tools.

    run.py BUILD [--tool axrun|ax-interpret] [--filter REGEX]
           [--write docs/conformance.md]

Each test is a model of (mostly) one operator with inputs and expected outputs.
`passed`: the outputs agree within the test's tolerance. `unsupported`: our
tools said so (exit code 4). Everything else is `failed`: a wrong number, a
crash, a hang, or a good model called bad. An input that decides shapes is
given as a constant when the error message asks for it.

Ends with exit code 1 if a test failed; with --compare, if an operator's counts
are not those of that page; with --models, if fewer than 95 % of the tests of an
operator that those models use passed, of tests with their element types.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

UNSUPPORTED = 4
# Least relative tolerance: 4 units in the last place. The expected values of
# these types were rounded after each step, ours were not.
NARROW = {onnx.TensorProto.FLOAT16: 2.0 ** -9, onnx.TensorProto.BFLOAT16: 2.0 ** -6}
# Of an operator's tests, where models that we say to compile use it.
LEAST_SHARE = 0.95
ASKED = re.compile(r"--const (\S+)=FILE\.npy")
# Nodes of which data decide how many results they have.
WANTS_ROOM = re.compile(r"axopt --max '(.+?)=N'")
ROOM = 64


def write_tensors(folder, prefix, infos, values):
    """False for values that are no tensors."""
    for i, (info, value) in enumerate(zip(infos, values)):
        if isinstance(value, onnx.TensorProto):
            proto = value
        elif isinstance(value, (numpy.ndarray, numpy.generic)):
            proto = numpy_helper.from_array(numpy.asarray(value), info.name)
        else:
            return False
        proto.name = info.name
        (folder / f"{prefix}_{i}.pb").write_bytes(proto.SerializeToString())
        if prefix == "input":
            array = numpy_helper.to_array(proto)
            if array.dtype != object:
                numpy.save(folder / f"{i}.npy", array)
    return True


def noise(value):
    """What rounding does to zeros that are sums of a tensor's large values."""
    if not isinstance(value, numpy.ndarray) or value.dtype != numpy.float32:
        return 0
    finite = numpy.abs(value[numpy.isfinite(value)])
    return float(finite.max(initial=0)) * 2.0 ** -23


def call(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True,
                              timeout=120, errors="replace")
        return done.returncode, done.stderr.strip()
    except subprocess.TimeoutExpired:
        return -1, "took longer than 120 s"


def run_case(case, build, tool):
    """(status, message) of one test."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        model = folder / "model.onnx"
        onnx.save(case.model, model)
        names = [info.name for info in case.model.graph.input]
        constants, crowded = set(), set()
        for number, (inputs, outputs) in enumerate(case.data_sets):
            data = folder / f"test_data_set_{number}"
            data.mkdir()
            if not (write_tensors(data, "input", case.model.graph.input, inputs)
                    and write_tensors(data, "output", case.model.graph.output,
                                      outputs)):
                return "unsupported", "sequences and optionals as inputs or outputs"
            rtol = max([case.rtol] + [
                NARROW.get(info.type.tensor_type.elem_type, 0)
                for info in case.model.graph.output])
            atol = max([case.atol] + [noise(value) for value in outputs])
            tolerances = [f"--rtol={rtol}", f"--atol={atol}"]
            while True:
                if tool == "ax-interpret":
                    code, message = call(
                        [build / "bin/ax-interpret", model, f"--test-data={data}",
                         *tolerances]
                        + [f"--const-input={name}" for name in constants])
                else:
                    plan = folder / "plan.mlir"
                    code, message = call(
                        [build / "bin/axopt", model, "-o", plan]
                        + [f"--const={name}={data}/{names.index(name)}.npy"
                           for name in constants]
                        + [f"--max={name}={ROOM}" for name in crowded])
                    if code == 0:
                        code, message = call(
                            [build / "bin/axrun", plan, f"--test-data={data}",
                             *tolerances])
                asked = set(ASKED.findall(message)) - constants
                wanted = set(WANTS_ROOM.findall(message)) - crowded
                if code != UNSUPPORTED or not (asked or wanted) or \
                        not asked <= set(names) or tool != "axrun" and wanted:
                    break
                constants |= asked
                crowded |= wanted
            if code != 0:
                status = "unsupported" if code == UNSUPPORTED else "failed"
                return status, f"exit code {code}: {message}"
    return "passed", ""


def operator_of(case, by_name):
    """The operator a test is about: that of the node its name begins with. A
    test of an operator's function body is about that operator."""
    case = by_name.get(case.name.split("_expanded")[0], case)
    text = case.name.removeprefix("test_").replace("_", "")
    nodes = [node.op_type for node in case.model.graph.node]
    named = [name for name in nodes if text.startswith(name.lower())]
    return max(named, key=len, default=nodes[0] if nodes else "(none)")


def counts_of(results):
    counts = collections.defaultdict(collections.Counter)
    for operator, _, status, _ in results:
        counts[operator][status] += 1
    return counts


def differences(results, page, isPart):
    """Lines about operators that do not do as `page` (written by us) says; of a
    part of the tests, about those of which more pass, or are unsupported."""
    row = re.compile(r"\| (\S+) \| (\d+) \| (\d+) \| (\d+) \|")
    said = {m[1]: tuple(map(int, m.group(2, 3, 4)))
            for m in map(row.match, page.read_text().splitlines()) if m}
    found = {operator: (c["passed"], c["failed"], c["unsupported"])
             for operator, c in counts_of(results).items()}
    for operator in sorted(found if isPart else said | found):
        got, wanted = found.get(operator, ()), said.get(operator, ())
        isWithin = wanted and all(a <= b for a, b in zip(got, wanted))
        if not (isWithin if isPart else got == wanted):
            yield (f"{operator}: passed, failed, unsupported are {got}, "
                   f"{page.name} says {wanted}")


def graphs_in(nodes):
    for node in nodes:
        for attribute in node.attribute:
            for graph in [attribute.g, *attribute.graphs]:
                yield graph
                yield from graphs_in(graph.node)


def types_of(graph):
    infos = [*graph.input, *graph.output, *graph.value_info]
    return ({info.type.tensor_type.elem_type for info in infos}
            | {tensor.data_type for tensor in graph.initializer})


def used_by(folder):
    """Operators and element types of the models in `folder`."""
    operators, types = set(), {onnx.TensorProto.BOOL}
    for path in sorted(folder.glob("*/model.onnx")):
        model = onnx.load(path, load_external_data=False)
        nodes = [*model.graph.node,
                 *(node for f in model.functions for node in f.node)]
        for graph in [model.graph, *graphs_in(nodes)]:
            nodes += [] if graph is model.graph else graph.node
            types |= types_of(graph)
        operators |= {node.op_type for node in nodes}
    return operators, types - {onnx.TensorProto.UNDEFINED}


def weak_operators(cases, results, folder):
    """Lines about operators of the models with too few passes."""
    operators, types = used_by(folder)
    counts = collections.defaultdict(collections.Counter)
    for case, (operator, _, status, _) in zip(cases, results):
        ports = {info.type.tensor_type.elem_type
                 for info in [*case.model.graph.input, *case.model.graph.output]}
        if operator in operators and ports <= types:
            counts[operator][status] += 1
    if not counts:
        yield f"{folder}: no operator of these models is tested"
    for operator, count in sorted(counts.items()):
        if count["passed"] < LEAST_SHARE * sum(count.values()):
            yield (f"{operator}: {count['passed']} of {sum(count.values())} "
                   f"passed, fewer than {LEAST_SHARE:.0%}")


def table(results, tool):
    counts = counts_of(results)
    reasons = {}
    for operator, name, status, message in results:
        if status == "unsupported":
            reasons.setdefault(operator, message)
    total = sum(counts.values(), collections.Counter())
    lines = [
        "# Conformance", "",
        f"The {sum(total.values())} node tests of the onnx package "
        f"{onnx.__version__}, run by `test/conformance/run.py` through "
        + ("axopt and axrun." if tool == "axrun" else "import and evaluation."),
        "Inputs that decide shapes are bound with `--const`, data that decide how "
        "many results there are get room with `--max`. Tolerances are the "
        "tests' own, but at least 4 units in the last place of f16 and bf16, and "
        "one unit in the last place of a tensor's largest f32.", "",
        f"**{total['passed']} passed, {total['failed']} failed, "
        f"{total['unsupported']} unsupported.**", "",
        "*Failed* would be a wrong result instead of an error.", "",
        "| operator | passed | failed | unsupported | why unsupported |",
        "|---|---|---|---|---|"]
    for operator in sorted(counts):
        c = counts[operator]
        reason = " ".join(reasons.get(operator, "").splitlines()[:2])
        reason = re.sub(r"/tmp/\S*/", "", reason)
        reason = re.sub(r"exit code \d+: |ax\w+(-\w+)?: error: |'?model.onnx'?: |"
                        r"node \S+ (of output \S+ )?", "", reason)
        # The message lists them, and the row is of one.
        reason = re.sub(r"these operators are not supported:\s*"
                        r"(of domain \S+(?=,))?.*",
                        lambda found: found[1] or "the operator itself", reason)
        reason = reason.replace("|", "\\|")
        lines.append(f"| {operator} | {c['passed']} | {c['failed']} | "
                     f"{c['unsupported']} | {reason[:160]} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--tool", choices=["axrun", "ax-interpret"], default="axrun")
    parser.add_argument("--filter", default=".", help="regular expression")
    parser.add_argument("--every", type=int, default=1,
                        help="only each so-manieth test")
    parser.add_argument("--write", type=pathlib.Path, help="table, in Markdown")
    parser.add_argument("--log", type=pathlib.Path,
                        help="a line for each test that did not pass")
    parser.add_argument("--compare", type=pathlib.Path,
                        help="page that --write wrote")
    parser.add_argument("--models", type=pathlib.Path,
                        help="folder of models whose operators must pass")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    options = parser.parse_args()

    by_name = {case.name: case for case in load_model_tests(kind="node")}
    cases = [case for case in by_name.values()
             if re.search(options.filter, case.name)][::options.every]
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        outcomes = list(pool.map(
            lambda case: run_case(case, options.build, options.tool), cases))
    results = [(operator_of(case, by_name), case.name, *outcome)
               for case, outcome in zip(cases, outcomes)]

    counts = collections.Counter(status for _, _, status, _ in results)
    if options.log:
        options.log.write_text("".join(
            f"{status}\t{operator}\t{name}\t{' '.join(message.split())}\n"
            for operator, name, status, message in results
            if status != "passed"))
    if options.write:
        options.write.write_text(table(results, options.tool))
    for operator, name, status, message in results:
        if status == "failed":
            print(f"FAILED {name}: {message}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, "
          f"{counts['unsupported']} unsupported")
    wrong = []
    if options.compare:
        wrong += differences(results, options.compare, options.every > 1)
    if options.models:
        wrong += weak_operators(cases, results, options.models)
    for line in wrong:
        print(line)
    return 1 if counts["failed"] or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
