# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""axopt --inspect tells of a model what compiling it finds."""
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from _onnx_text import model
from _training import LOSS
from cases import MODELS, ROOT, TRAINING, Failed, run, scratch, tool

GPT = MODELS / "gpt2_eager_ts17_dyn" / "model.onnx"
DYNAMO = MODELS / "llama_eager_dynamo18_static" / "model.onnx"
FC_NET = TRAINING / "fc_net" / "model.onnx"

# What docs/user-guide.md says is in it: types of values, and of what lists hold.
TEXT, COUNT, TEXTS = str, int, [str]
NULL = type(None)
PORT = {"name": TEXT, "type": TEXT, "shape": (list, NULL)}
SUMS = {"layers": COUNT, "weight_bytes": COUNT, "flops": (int, float)}
SCHEMA = {
    "model": TEXT, "ir_version": COUNT, "producer": TEXT,
    "producer_version": TEXT, "exporter": (str, NULL), "operator_sets": dict,
    "files": [{"name": TEXT, "bytes": (int, NULL)}],
    "inputs": [PORT], "outputs": [PORT], "sizes": dict, "assumed": TEXTS,
    "operators": [{"domain": TEXT, "name": TEXT, "nodes": COUNT,
                   "unsupported": TEXTS}],
    "weights": [{"name": TEXT, "type": TEXT, "shape": [int], "file": TEXT,
                 "offset": COUNT, "bytes": COUNT, "trained": (bool, NULL),
                 "why": TEXT}],
    "parameters": COUNT, "weight_bytes": COUNT,
    "layers": [{"kind": TEXT, "node": TEXT, "sizes": dict,
                "flops": (int, float)}],
    "blocks": [{"name": TEXT, **SUMS, "cut": (str, NULL)}],
    "stages": [{"operations": COUNT, **SUMS, "first": TEXT, "last": TEXT}],
    "matches": [{"flag": TEXT, "pattern": TEXT, "names": TEXTS}],
    "problems": TEXTS, "notes": TEXTS,
}


def check(value, schema, where="it"):
    if isinstance(schema, dict):
        if value.keys() != schema.keys():
            raise Failed(f"{where} has {value.keys() ^ schema.keys()}")
        for key, part in schema.items():
            check(value[key], part, f"{where}.{key}")
    elif isinstance(schema, list):
        for part in value:
            check(part, schema[0], f"{where}[]")
    elif not isinstance(value, schema):
        raise Failed(f"{where} is {value!r}")


def inspected(model, *flags):
    found = json.loads(run(tool("axopt"), model, "--inspect=json",
                           *flags).stdout)
    check(found, SCHEMA)
    return found


def documented():
    text = (ROOT / "docs/user-guide.md").read_text()

    def keys(schema):
        if isinstance(schema, list):
            yield from keys(schema[0])
        elif isinstance(schema, dict):
            for key, part in schema.items():
                yield key
                yield from keys(part)

    missing = [key for key in keys(SCHEMA) if f"`{key}`" not in text]
    if missing:
        raise Failed(f"docs/user-guide.md lacks {missing}")


def expect(got, wanted, what):
    if got != wanted:
        raise Failed(f"{what}: {got}, expected {wanted}")


def facts():
    """Of one whose file says them."""
    found = inspected(GPT)
    expect(found["operator_sets"], {"ai.onnx": 17}, "sets")
    expect((found["producer"], found["exporter"]), ("pytorch", "TorchScript"),
           "exporter")
    expect([(port["name"], port["type"], port["shape"])
            for port in found["inputs"]],
           [("input_ids", "i64", ["batch", "sequence"]),
            ("attention_mask", "i64", ["batch", "sequence"])], "inputs")
    expect(found["sizes"], {"batch": 2, "sequence": 16}, "sizes")
    expect(sorted(found["assumed"]), ["batch", "sequence"], "assumed")
    expect(inspected(GPT, "--dim", "batch=4", "--dim", "sequence=8")["assumed"],
           [], "assumed of what is given")
    expect(inspected(DYNAMO)["exporter"], "dynamo", "exporter")
    graph = onnx.load(GPT, load_external_data=False).graph
    counts = {use["name"]: use["nodes"] for use in found["operators"]}
    expect(counts["MatMul"],
           sum(node.op_type == "MatMul" for node in graph.node), "MatMul")
    expect([use for use in found["operators"] if use["unsupported"]], [],
           "unsupported")
    expect(len(found["blocks"]), 4, "blocks")


def compiled(model):
    """What the plan's text calls layers is what was found before."""
    found = inspected(model)
    sizes = [f"--dim={name}={size}" for name, size in found["sizes"].items()]
    done = run(tool("axopt"), model, *sizes, "--explain=json", "--quiet")
    plan = json.loads(done.stdout)
    layers = [(layer["kind"], layer["node"]) for stage in
              plan["programs"][0]["stages"] for layer in stage["layers"]]
    expect([(layer["kind"], layer["node"]) for layer in found["layers"]],
           layers, "layers")
    short = run(tool("axopt"), model, "--inspect").stdout.splitlines()
    if len(short) > 50:
        raise Failed(f"{len(short)} lines: {short}")
    every = run(tool("axopt"), model, "--inspect=all").stdout
    for weight in found["weights"]:
        if f"  {weight['name']} " not in every:
            raise Failed(f"{weight['name']} is not in\n{every}")


def trained():
    """As the note of a plan that trains says."""
    flags = ["--frozen=*bias", "--dim", "batch=4"]
    found = inspected(FC_NET, *flags)
    done = run(tool("axopt"), FC_NET, *flags, "--train",
               "--loss=cross_entropy(logits,labels)", "-o", os.devnull)
    for weight in found["weights"]:
        wanted = not weight["name"].endswith("bias")
        expect(weight["trained"], wanted, weight["name"])
        expect(weight["why"], "by what is done with them" if wanted
               else "by --frozen", weight["name"])
    text = re.search(r"trained: (\d+) by what", done.stderr)
    expect(sum(weight["trained"] for weight in found["weights"]),
           int(text[1]), "trained")


def notes():
    """Whole, for what to do is at their end; but not names of any length."""
    name = "w" * 5000
    made = onnx.load(TRAINING / "batchnorm" / "model.onnx")
    for node in made.graph.node:
        if node.op_type == "BatchNormalization":
            del node.output[1:]
            for attribute in node.attribute:
                if attribute.name == "training_mode":
                    attribute.i = 0
        for i, read in enumerate(node.input):
            if read == "fc.weight":
                node.input[i] = name
    for tensor in made.graph.initializer:
        if tensor.name == "fc.weight":
            tensor.name = name
    with scratch() as folder:
        onnx.save(made, f"{folder}/model.onnx")
        said = run(tool("axopt"), f"{folder}/model.onnx", "--inspect",
                   "--train", "--frozen=w*").stdout
    found = "".join(re.findall("^note: .*\n|^not trained: .*\n", said, re.M))
    if "; --batchnorm=train takes the batch's, --batchnorm=frozen confirms it" \
            not in found or name in found:
        raise Failed(said)


def patterns():
    found = inspected(GPT, "--tp=2", "--pp=2", "--frozen=*wpe*",
                      "--frozen-rows=*wte*=0,3",
                      "--param-group=*bias|rank<1:lr=1", "--shard=*mlp*=colwise",
                      "--shard=input_ids=replicate",
                      f"--cut={inspected(GPT)['blocks'][1]['cut']}")
    names = {(match["flag"], match["pattern"]): match["names"]
             for match in found["matches"]}
    weights = [weight["name"] for weight in found["weights"]]
    expect(names["--frozen", "*wpe*"], [w for w in weights if "wpe" in w],
           "--frozen")
    expect(names["--frozen-rows", "*wte*=0,3"],
           [w for w in weights if "wte" in w], "--frozen-rows")
    expect(names["--shard", "input_ids=replicate"], ["input_ids"], "--shard")
    expect(len(names["--shard", "*mlp*=colwise"]), 8, "--shard")
    expect(len(found["stages"]), 2, "stages")
    expect(found["stages"][0]["last"], found["blocks"][1]["cut"], "--cut")
    # Also an output that only prediction has when the model is trained.
    pinned = "--shard=logits=replicate"
    training = FC_NET, "--shape=input=32x64", "--train", LOSS, pinned
    expect(inspected(*training)["matches"][0]["names"], ["logits"], pinned)
    with scratch() as folder:
        run(tool("axopt"), *training, "--tp=2", "--quiet", "-o",
            f"{folder}/plan.mlir")
    for flag, message in [
            ("--frozen=nothing", "no weight is called 'nothing'"),
            ("--trainable=nothing", "no weight is called 'nothing'"),
            ("--frozen-rows=nothing=0", "no weight that is trained is called so"),
            ("--frozen-rows=*wpe*=9999", "and no row 9999"),
            ("--param-group=nothing:lr=1", "no weight is called 'nothing'"),
            ("--shard=nothing=colwise", "no layer is named so"),
            ("--dim=nothing=1", "the model has no such symbolic dimension")]:
        done = run(tool("axopt"), GPT, "--inspect", flag, expect=2)
        if message not in done.stderr:
            raise Failed(done.stderr)
    done = run(tool("axopt"), GPT, "--inspect", "--pp=2", "--cut=nothing",
               expect=2)
    if "no node named 'nothing' to cut after" not in done.stderr:
        raise Failed(done.stderr)


def withoutData():
    """Neither file of weights nor sizes are needed to know the layers."""
    with scratch() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(onnx.load(GPT), path, save_as_external_data=True,
                  location="weights.bin", size_threshold=100)
        whole = inspected(path)
        expect([(file["name"], file["bytes"] is None)
                for file in whole["files"]],
               [("model.onnx", False), ("weights.bin", False)], "files")
        (Path(folder) / "weights.bin").unlink()
        found = inspected(path)
        expect(found["files"][1], {"name": "weights.bin", "bytes": None},
               "files")
        expect(found["layers"], whole["layers"], "layers")
        expect(found["weights"], whole["weights"], "weights")
        expect(found["problems"], [], "problems")
        text = run(tool("axopt"), path, "--inspect").stdout
        if "weights.bin: missing" not in text:
            raise Failed(text)
        run(tool("axopt"), path, "--dim=batch=2", "--dim=sequence=16", expect=7)
    # Its weights are fetched for other tests.
    found = inspected(MODELS / "minilm" / "model.onnx")
    kinds = [layer["kind"] for layer in found["layers"]]
    expect((kinds.count("attention"), len(found["blocks"]), found["problems"]),
           (6, 6, []), "of MiniLM")


def unsupported():
    """All nodes of all domains; what else there is all the same."""
    with scratch() as folder:
        value = helper.make_tensor_value_info
        names = [f"n{i}" for i in range(20)]
        nodes = [helper.make_node("Odd" if i % 2 else "Even", ["x"], [f"y{i}"],
                                  name=name, domain="com.example")
                 for i, name in enumerate(names)]
        nodes.append(helper.make_node("StringConcat", ["s", "s"], ["t"]))
        nodes.append(helper.make_node("MatMul", ["x", "w"], ["z"]))
        graph = helper.make_graph(
            nodes, "g", [value("x", TensorProto.FLOAT, ["n", None]),
                         value("s", TensorProto.STRING, [1])],
            [value("z", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(np.ones((3, 4), np.float32), "w")])
        path = f"{folder}/model.onnx"
        onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[
            helper.make_opsetid("", 20), helper.make_opsetid("com.example", 1)]),
            path)
        found = inspected(path)
        missing = {(use["domain"], use["name"]): use["unsupported"]
                   for use in found["operators"] if use["unsupported"]}
        expect(missing, {("com.example", "Odd"): [f"'{n}'" for n in names[1::2]],
                         ("com.example", "Even"): [f"'{n}'" for n in names[::2]],
                         ("ai.onnx", "StringConcat"): ["of output 't'"]},
               "unsupported")
        expect(found["inputs"][0]["shape"], ["n", None], "shape")
        expect([(w["name"], w["trained"]) for w in found["weights"]],
               [("w", None)], "weights")
        if "these operators are not supported" not in found["problems"][0]:
            raise Failed(str(found["problems"]))
        text = run(tool("axopt"), path, "--inspect").stdout
        for part in ("com.example.Odd: 'n1', 'n3', 'n5', 'n7' and 6 more",
                     "cannot be compiled so: ",
                     "taken for that, and what follows: --dim n=2"):
            if part not in text:
                raise Failed(text)


def refused():
    for flags, message in [
            (("-o", "plan.mlir"), "-o has no use beside --inspect, which compiles nothing"),
            (("--explain",), "--explain has no use beside --inspect"),
            (("--dump-after=shard",), "--dump-after has no use beside")]:
        done = run(tool("axopt"), GPT, "--inspect", *flags, expect=2)
        if message not in done.stderr:
            raise Failed(done.stderr)
    with scratch() as folder:
        plan = f"{folder}/plan.mlir"
        run(tool("axopt"), FC_NET, "--dim=batch=4", "--quiet", "-o", plan)
        done = run(tool("axopt"), plan, "--inspect", expect=2)
        if "--inspect is for models: --explain and --report tell of the plan '" \
                not in done.stderr:
            raise Failed(done.stderr)
        Path(folder, "none.onnx").write_bytes(b"none")
        run(tool("axopt"), f"{folder}/none.onnx", "--inspect", expect=3)
        shutil.copy(GPT, f"{folder}/model.onnx")
        run(tool("axopt"), f"{folder}/model.onnx", "--inspect")
        expect(sorted(os.listdir(folder)),
               ["model.onnx", "none.onnx", "plan.mlir"], "files")


def explained():
    """Steps of a recurrent layer are one line of --explain."""
    zeros = ", ".join(["0"] * 32 * 8)
    made = model("float[6,2,8] x", "float[6,1,2,8] y",
                 "y = LSTM<hidden_size=8>(x, w, w)",
                 f"float[1,32,8] w = {{{zeros}}}")
    with scratch() as folder:
        Path(folder, "model.onnx").write_bytes(made.SerializeToString())
        said = run(tool("axopt"), f"{folder}/model.onnx", "--tp=2", "--quiet",
                   "--explain", "-o", f"{folder}/plan.mlir").stdout
    lines = said.splitlines()
    if len(lines) != len(set(lines)) or \
            not re.search(r"^  [56] x linear '", said, re.M):
        raise Failed(said)


def cases(every):
    yield "equal lines", explained
    yield "the page has all keys", documented
    yield "facts", facts
    yield "what is trained", trained
    yield "notes", notes
    yield "what patterns name", patterns
    yield "without data", withoutData
    yield "not supported", unsupported
    yield "refused", refused
    models = sorted(MODELS.glob("*/model.onnx"))
    models = [model for model in models if model.parent.name != "minilm"]
    for model in models if every else models[::3]:
        yield f"as compiled, {model.parent.name}", compiled, model
