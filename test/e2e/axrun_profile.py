# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""axrun --profile: what takes the time, of which nodes."""
import json
from pathlib import Path

from _onnx_text import model
from _training import DIGITS, axrun, compiled, part
from cases import MODELS, Failed, run, scratch, tool
from gpu_streams import CUDA

import numpy as np
import onnx

GPT = MODELS / "gpt2_eager_ts17_dyn"


def plan(folder, made, *flags):
    if isinstance(made, onnx.ModelProto):
        onnx.save(made, f"{folder}/model.onnx")
        made = f"{folder}/model.onnx"
    run(tool("axopt"), made, *flags, "--quiet", "-o", f"{folder}/plan.mlir")
    return f"{folder}/plan.mlir"


def profile(folder, *command, **options):
    """The report, and the table's lines."""
    done = axrun(*command, "--json", f"{folder}/report.json", **options)
    report = json.loads(Path(f"{folder}/report.json").read_text())
    lines = done.stdout.splitlines()
    first, = (i for i, line in enumerate(lines) if "ms: of a run, mean" in line)
    last, = (i for i, line in enumerate(lines) if line.endswith("  in all"))
    return report, lines[first:last + 1]


def check(condition, what):
    if not condition:
        raise Failed(str(what))


def sums(report):
    """Times add up, those of commands and those of ranks."""
    spent = report["rank_seconds"]
    parts = [spent[key] for key in ("computing", "exchanging", "waiting",
                                    "between_commands")]
    check(abs(sum(parts) - spent["total"]) < 1e-6 and min(parts) >= 0, spent)
    seconds = {True: 0, False: 0}
    for command in report["commands"]:
        check(0 <= command["waiting_seconds"] <= command["seconds"] + 1e-9,
              command)
        seconds[command["exchange"]] += command["held_seconds"]
    check(abs(seconds[False] - spent["computing"]) < 1e-6, spent)
    check(abs(seconds[True] - spent["exchanging"] - spent["waiting"]) < 1e-6,
          spent)


def ofKinds(report, table):
    """The sums of each kind, and what they are held against. Returns the kinds."""
    rates, commands = report["device_rates"], report["commands"]
    numbers = "".join(f" {rate / 1e9:.2f} GFLOP/s in products of {name},"
                      for name, rate in rates["flops_per_second"].items())
    check(table[1] == "%peak: of what the device reaches with nothing else to do:"
          f"{numbers} {rates['bytes_per_second'] / 1e9:.2f} GB/s in copies", table)
    head, = (i for i, line in enumerate(table) if line.endswith("  kind"))
    last, = (i for i, line in enumerate(table) if line.endswith("  computing"))
    seconds = []
    for line in table[head + 1:last]:
        _, percent, _, flops, bytes, peak, kind = line.split()
        of = [command for command in commands if command["kind"] == kind]
        seconds.append(sum(command["seconds"] for command in of))
        times = [(command["executions"], command) for command in of]
        for shown, name in (flops, "flops"), (bytes, "bytes"):
            amount = sum(count * command[name] for count, command in times)
            check(shown == (f"{amount / seconds[-1] / 1e9:.2f}" if amount else "-"),
                  (line, amount))
        least = sum(count * max(
            command["bytes"] / rates["bytes_per_second"],
            command["flops"] / rates["flops_per_second"]["f32"])
            for count, command in times if not command["exchange"])
        check(peak == (f"{100 * least / seconds[-1]:.1f}" if least else "-"),
              (line, least))
        check(percent == f"{100 * seconds[-1] / report['rank_seconds']['total']:.1f}",
              line)
    check(seconds == sorted(seconds, reverse=True), table)
    found = [line.split()[-1] for line in table[head + 1:last]]
    check(len(set(found)) == len(found) and
          set(found) == {command["kind"] for command in commands}, found)
    return set(found)


def convolutional():
    """A convolution with Relu, a pool and a Linear, with names."""
    made = model(
        "float[2,3,16,16] x, float[16,3,3,3] k, float[16,8] w", "float[2,8] y",
        "c = Conv<pads=[1,1,1,1]>(x, k) r = Relu(c) p = GlobalAveragePool(r) "
        "f = Flatten(p) y = Gemm(f, w)")
    rng = np.random.default_rng(1)
    for value in made.graph.input[1:]:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        made.graph.initializer.append(onnx.numpy_helper.from_array(
            rng.standard_normal(shape).astype(np.float32), value.name))
    del made.graph.input[1:]
    for node, name in zip(made.graph.node, "conv relu pool flat fc".split()):
        node.name = f"net/{name}"
    return made


def floatingPointOperations():
    """Of known shapes exactly, of one rank and of halves."""
    conv, linear = 2 * 2 * 16 * 16 * 16 * 27, 2 * 2 * 16 * 8
    for flags, ranks in ((), 1), (("--dp=2",), 2):
        with scratch() as folder:
            report, table = profile(
                folder, plan(folder, convolutional(), *flags),
                "--random-inputs=1", "--profile", "--iterations=3")
            flops = {command["nodes"][0]: command["flops"]
                     for command in report["commands"] if command["flops"]}
            check(flops == {"net/conv": conv // ranks,
                            "net/fc": linear // ranks}, flops)
            nodes = [command["nodes"] for command in report["commands"]]
            check(["net/conv", "net/relu"] in nodes, nodes)
            check(["net/pool"] in nodes, nodes)
            bytes = {command["nodes"][0]: command["bytes"]
                     for command in report["commands"] if command["nodes"]}
            rows = 2 // ranks
            check(bytes["net/fc"] == 4 * (rows * 16 + 16 * 8 + rows * 8), bytes)
            check(all(command["executions"] == 3 * ranks
                      for command in report["commands"]), report["commands"])
            sums(report)
            check(table[0].startswith(f"3 runs on {ranks} rank"), table)
            check(any("net/conv, relu" in line for line in table), table)
            check(table[-1].split()[1:] == ["100.0", "in", "all"], table)


def namesOfAKernel():
    """All of them in JSON; on the console the first one's end, and how many."""
    values = [f"v{i}" for i in range(12)]
    made = model("float[64] v0", "float[64] v11", " ".join(
        f"{after} = {'Sin' if i % 2 else 'Cos'}({before})"
        for i, (before, after) in enumerate(zip(values, values[1:]))))
    for i, node in enumerate(made.graph.node):
        node.name = f"a/module/with/a/very/long/name/of/its/own/step{i}"
    names = [node.name for node in made.graph.node]
    with scratch() as folder:
        report, table = profile(folder, plan(folder, made),
                                "--random-inputs=1", "--profile")
        nodes = [command["nodes"] for command in report["commands"]]
        check(nodes == [names], nodes)
        row = table[3]
        check(row.split("  ")[-1] ==
              "...a/very/long/name/of/its/own/step0, step1, step2, step3 +7", row)


def ofRanks():
    """A pipeline of tensor-parallel stages: every command names its nodes, but
    for what is between stages."""
    with scratch() as folder:
        made = plan(folder, GPT / "model.onnx", "--dim", "batch=4", "--dim",
                    "sequence=32", "--tp=2", "--pp=2", "--micro-batches=2")
        report, table = profile(folder, made, "--test-data", GPT, "--profile=3",
                                "--trace", f"{folder}/trace.json")
        check(report["iterations"] == 10, report["iterations"])
        sums(report)
        for command in report["commands"]:
            check(command["nodes"] or command["what"].startswith("wait")
                  or " stage " in command["what"], command)
            check(command["executions"] == 2 * 2 * 10, command)
        heads = [line.split()[3] for line in table if "nodes" in line]
        check(heads == ["GFLOP/s", "waiting"], table)
        check(sum("others" in line for line in table) == 2, table)
        kinds = ofKinds(report, table)
        check({"matmul", "all_reduce", "send", "recv"} <= kinds, kinds)
        check("wait" not in kinds, kinds)
        check(len(table) == 2 + 2 * (1 + 3 + 1) + 1 + len(kinds) + 5, table)
        trace = json.loads(Path(f"{folder}/trace.json").read_text())
        names = {node for event in trace["traceEvents"]
                 for node in event["args"].get("nodes", [])}
        for node in ("h.3/mlp/act/Mul_3", "h.3/mlp/act/Tanh", "h.0/ln_1/LayerNormalization",
                     "h.1/attn/Softmax", "h.2/Add_1"):
            check(f"/m/transformer/{node}" in names, names)


def ofTraining():
    """Of the steps that are asked for, the backward pass and the update too."""
    with scratch() as folder:
        np.savez(f"{folder}/data.npz", **part("train", slice(0, 100)))
        made = compiled(folder, "--dp=2")
        report, table = profile(
            folder, made, "--data", f"{folder}/data.npz", "--steps=6",
            "--profile=0", "--trace-steps=3..5", "--quiet")
        check(report["iterations"] == 3, report["iterations"])
        sums(report)
        # A rank's 16 of 32 samples: forward, and the gradients of the weight
        # and, but for the first Linear, of what goes in.
        for node, columns, times in ("/embed/Gemm", 64, 2), ("/clf/Gemm", 10, 3):
            flops = [command["flops"] for command in report["commands"]
                     if node in command["nodes"] and command["flops"]]
            check(flops == [2 * 16 * 64 * columns] * times, (node, flops))
        check(table[0].startswith("3 runs on 2 ranks; "), table[0])
        updates = {node for command in report["commands"]
                   for node in command["nodes"] if node.startswith("update of ")}
        check("update of clf.weight" in updates and len(updates) == 28, updates)
        check(not any("others" in line for line in table), table)


def onGpu():
    """Of the card, and by its events; of factors of 16 bits their own rate."""
    with scratch() as folder:
        np.savez(f"{folder}/data.npz", **part("train", slice(0, 100)))
        made = compiled(folder, "--precision=bf16")
        done = axrun(made, "--data", f"{folder}/data.npz", "--steps=2",
                     "--profile=100", "--quiet", "--json", f"{folder}/report.json",
                     env=CUDA)
        report = json.loads(Path(f"{folder}/report.json").read_text())
        rates = report["device_rates"]["flops_per_second"]
        check("bf16" in rates and min(rates.values()) > 0, rates)
        check(" GFLOP/s in products of bf16," in done.stdout, done.stdout)
        products = [line for line in done.stdout.splitlines()
                    if "  matmul " in line]
        check(products and all(line.split()[5] != "-" for line in products),
              products)
        done = axrun(made, "--data", f"{folder}/data.npz", "--steps=2",
                     "--profile", "--quiet", expect=8,
                     env=CUDA | {"SIMGPU_FAIL": "cuMemcpyDtoDAsync:1:700"})
        check(done.stderr.startswith("axrun: error: cuMemcpyDtoDAsync"),
              done.stderr)


def refused():
    with scratch() as folder:
        made = compiled(folder)
        axrun(made, "--eval", DIGITS / "test.npz", "--profile", expect=2,
              says="--profile has no use in this run: it is for runs of one set "
              "of inputs (without --data, --eval and --generate), or generating tokens "
              "(--generate), or training (--data, without --predict)")
        axrun(made, "--random-inputs=1", "--profile=-1", expect=2,
              says="--profile=-1: expected a whole number that is not negative")
        axrun(made, "--data", DIGITS / "train.npz", "--steps=1",
              "--trace-steps=1", expect=2,
              says="--trace-steps has no use in this run: it is for steps that "
              "are traced (--trace, --profile or --json, with --data)")


def cases(every):
    yield "floating-point operations", floatingPointOperations
    yield "names of a kernel", namesOfAKernel
    yield "of ranks", ofRanks
    yield "of training", ofTraining
    yield "on a GPU", onGpu
    yield "refused", refused
