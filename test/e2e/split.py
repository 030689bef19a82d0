# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The work is really split: what one rank holds and computes, beside the whole
divided by the ranks that share it; and what they must say to each other."""
import csv
import json
import re
import sys
from collections import Counter
from pathlib import Path

from cases import LAYOUTS, MODELS, Failed, minilm, run, scratch, tool

sys.path.append(str(Path(__file__).parents[1] / "bench"))
from zoo_networks import NETWORKS

LARGEST_RATIO = 1.1
LARGEST_IMBALANCE = 1.3

# What exceeds LARGEST_RATIO, one by one, by how much, and why. A ratio that is
# not there, or another one, fails: lower it here when it gets better.
EXCEPTIONS = Path(__file__).with_name("split-exceptions.csv")
PRECISION = 0.01


def exceptions(model):
    """(layout, stage, what) -> ratio"""
    with open(EXCEPTIONS) as file:
        return {(row["layout"], int(row["stage"]), row["what"]):
                float(row["ratio"])
                for row in csv.DictReader(file) if row["model"] == model}


def graphOf(model):
    return (minilm() if model.name == "minilm" else model) / "model.onnx"


def compiled(model, layout, *more):
    """Report and explanation of one plan."""
    with scratch() as folder:
        done = run(tool("axopt"), graphOf(model), "--test-data",
                   model / "test_data_set_0", *layout.split(), *more, "--quiet",
                   "-o", f"{folder}/plan.mlir", "--report", f"{folder}/r.json",
                   "--explain=json")
        with open(f"{folder}/r.json") as file:
            return json.load(file), json.loads(done.stdout)


def ratios(report):
    """(stage, what, ratio) of everything that is to be split."""
    mesh = report["mesh"]
    tensor = mesh["depth"] * mesh["row"] * mesh["col"]
    for stage in report["programs"][0]["stages"]:
        sums = {"weights": (stage["weight_bytes"], tensor)}
        for kind, flops in stage["flops"].items():
            sums[kind] = (flops, tensor * mesh["data"])
        for what, (amount, ranks) in sums.items():
            if amount["whole"]:
                yield (stage["stage"], what,
                       amount["rank"] * ranks / amount["whole"])


def blocks(explanation):
    """Attention layers, or bottlenecks of convolutions."""
    kinds = Counter(layer["kind"]
                    for stage in explanation["programs"][0]["stages"]
                    for layer in stage["layers"])
    return kinds["attention"] or kinds["convolution"] // 3


def isSplit(model):
    wrong, known = [], exceptions(model.name)
    for layout in LAYOUTS:
        report, explanation = compiled(model, layout)
        for stage, what, ratio in ratios(report):
            expected = known.pop((layout, stage, what), None)
            if (ratio > LARGEST_RATIO if expected is None
                    else abs(ratio - expected) > PRECISION):
                wrong.append(f"{layout}: stage {stage}, {what}: {ratio:.3f} of "
                             f"the whole / ranks, expected is "
                             f"{expected or f'at most {LARGEST_RATIO}'}")
        stages = report["programs"][0]["stages"]
        if len(stages) > 1 and blocks(explanation) >= 2 * len(stages):
            # One layer cannot be cut (a stem's convolution on the image).
            layers = [len(stage["layers"]) for stage in
                      explanation["programs"][0]["stages"]]
            times = [s["seconds"] + s["send_seconds"]
                     for s, count in zip(stages, layers) if count > 1]
            if max(times) > LARGEST_IMBALANCE * min(times):
                wrong.append(f"{layout}: stages take {times} s")
    wrong += [f"{place} is in {EXCEPTIONS.name}, and not in the plan"
              for place in known]
    if wrong:
        raise Failed("\n".join(wrong))


def formulas(model, kinds):
    """--tp=2x2x2 moves what DESIGN says, per rank, in elements: for Y = X W with
    M rows, k over c ranks and n over r: all-reduce of M n / (Z r), all-gather
    of k n / (r c) where W is stored over depth."""
    depth = 2
    for stage in compiled(model, "--tp=2x2x2")[1]["programs"][0]["stages"]:
        moved = Counter()
        for collective in stage["collectives"]:
            cause = re.match(r"k of (.*) is split", collective["because"])
            if cause:
                moved[cause.group(1), collective["kind"]] += collective["bytes"]
        for layer in stage["layers"]:
            if layer["kind"] != "linear" or not re.search(kinds, layer["node"]):
                continue
            k, n, rows = (layer["split"][name] for name in ("k", "n", "rows"))
            if k["parts"] * n["parts"] != 4 or rows["parts"] != depth:
                raise Failed(f"{layer['node']} is split {layer['split']}")
            expected = {
                "all_reduce": rows["size"] * n["size"] // (depth * n["parts"]),
                "all_gather": k["size"] * n["size"] // (k["parts"] * n["parts"]),
            }
            for kind, elements in expected.items():
                if moved[layer["node"], kind] != 4 * elements:
                    raise Failed(f"{layer['node']}: {kind} of "
                                 f"{moved[layer['node'], kind]} bytes, the "
                                 f"formula says {4 * elements}")


def silent(model):
    """With data parallelism alone nothing is said."""
    for stage in compiled(model, "--dp=2")[1]["programs"][0]["stages"]:
        if stage["collectives"]:
            raise Failed(f"{stage['collectives']}")


# Of the zoo: network, layout, what, and the most of the whole / ranks.
GENERATED = [
    ("nfnet", "--tp=2", "convolution", 1.01),  # Convolutions in groups.
    ("swin", "--tp=2", "linear", 1.1),         # Patches are merged.
    ("swin", "--tp=2", "attention", 1.2),      # Of 3 heads a rank has 2.
    ("vit", "--tp=2", "attention", 1.01),
    ("vit", "--tp=4", "linear", 1.34),         # 6 heads: two ways.
]


def generatedIsSplit(name, layout, what, most):
    with scratch() as folder:
        NETWORKS[name](False).save(f"{folder}/model.onnx")
        run(tool("axopt"), f"{folder}/model.onnx", layout, "--quiet", "-o",
            f"{folder}/plan.mlir", "--report", f"{folder}/r.json")
        with open(f"{folder}/r.json") as file:
            report = json.load(file)
    found = {kind: ratio for _, kind, ratio in ratios(report)}
    if not found[what] <= most:
        raise Failed(f"{what}: {found[what]:.3f} of the whole / ranks, at most "
                     f"{most} is expected")


def cases(every):
    for name, layout, what, most in GENERATED:
        yield (f"{name} {layout} splits {what}", generatedIsSplit, name, layout,
               what, most)
    for model in sorted(MODELS.iterdir()):
        yield f"{model.name} is split", isSplit, model
        yield f"{model.name} is silent with --dp", silent, model
    yield ("gpt2 --tp=2x2x2 as the formulas", formulas,
           MODELS / "gpt2_eager_ts17_dyn", r"/h\.\d+/")
