# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every model on every layout: compiled, verified, run by all ranks, and its
outputs beside those of the framework that it came from."""
import re

from cases import LAYOUTS, MODELS, Failed, minilm, run, scratch, tool

# Of the largest magnitude of an output; all models compute in fp32.
LARGEST_DIFFERENCE = 2e-5
REPORT = re.compile(r"^axrun: (.*): max \|difference\| (\S+) .*?"
                    r"\((\S+) of the largest magnitude", re.M)


def agrees(model, layout, flags=(), most=LARGEST_DIFFERENCE, runFlags=(), env=None):
    graph = (minilm() if model.name == "minilm" else model) / "model.onnx"
    data = model / "test_data_set_0"
    with scratch() as folder:
        plan = f"{folder}/plan.mlir"
        run(tool("axopt"), graph, "--test-data", data, *layout.split(),
            *flags, "-o", plan)
        run(tool("axopt"), plan, "--verify")
        done = run(tool("axrun"), plan, "--test-data", data, "--timeout", 30,
                   *runFlags, env=env)
    report = REPORT.findall(done.stderr)
    if len(report) != len(list(data.glob("output_*.pb"))):
        raise Failed(f"not every output was compared:\n{done.stderr}")
    for name, largest, relative in report:
        if not float(relative) <= most:
            raise Failed(f"{name}: {relative} of its largest magnitude")


def cases(every):
    for model in sorted(MODELS.iterdir()):
        for layout in LAYOUTS:
            yield f"{model.name} {layout}", agrees, model, layout
