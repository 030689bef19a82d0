# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What exporters tell of a model, and do not: which weights are parameters,
what a BatchNormalization goes by, rows without gradient. The models and
PyTorch's numbers are made by test/data/exports/make.py."""
import json
import re
from pathlib import Path

import numpy as np
import onnx

from _onnx_text import model as textModel
from _training import HALVES, LOSS, close, losses, logged, narrowed
from cases import MODELS, ROOT, Failed, run, scratch, tool
from train import states

EXPORTS = ROOT / "test" / "data" / "exports"
# What no TorchScript export tells: a single number is not in a list.
UNTOLD = {"positions": {"scale"}}
# Nor does it tell a buffer of zeros from a bias; axopt warns.
TAKEN_AS_BIAS = {"logits_bias": {"final_logits_bias"}}


def compiled(folder, name, *flags, loss="--loss=mse(logits,target)", expect=0):
    plan = Path(folder) / "plan.mlir"
    done = run(tool("axopt"), EXPORTS / f"{name}.onnx", "--train", loss, *flags,
               "-o", plan, expect=expect)
    return plan, done.stderr


def trained(plan):
    return set(re.findall(r'ax\.state @"?([^" ]+)"? : .*trainable',
                          plan.read_text()))


def says(text, *wanted):
    for each in wanted:
        if each not in text:
            raise Failed(f"expected: {each}\ngot: {text}")


def parameters(model, exporter, kind=None):
    names = set(json.loads((EXPORTS / "names.json").read_text())[model])
    name = f"{model}.{exporter}"
    with scratch() as folder:
        if kind:
            onnx.save(narrowed(onnx.load(EXPORTS / f"{name}.onnx"), kind),
                      f"{folder}/{name}.onnx")
            name = f"{folder}/{name}"
        plan, text = compiled(folder, name)
        if exporter == "torchscript":
            names -= UNTOLD.get(model, set())
            names |= TAKEN_AS_BIAS.get(model, set())
        else:
            says(text, "parameters, as the file says (")
        if trained(plan) != names:
            raise Failed(f"trained: {sorted(trained(plan))}\n"
                         f"parameters: {sorted(names)}\n{text}")


def reasons(model, *wanted):
    """What is not trained is said, with the reason."""
    with scratch() as folder:
        says(compiled(folder, f"{model}.torchscript")[1], *wanted)


def inTensor():
    """The exporter's word may also stand in the initializer itself."""
    kind = "pkg.torch.export.graph_signature.InputSpec.kind"
    model = onnx.load(EXPORTS / "logits_bias.dynamo.onnx")
    told = {value.name: "BUFFER" if value.name == "fc.weight" else "PARAMETER"
            for value in model.graph.value_info}
    del model.graph.value_info[:]
    for tensor in model.graph.initializer:
        if tensor.name in told:
            tensor.metadata_props.add(key=kind, value=told[tensor.name])
    with scratch() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, path)
        plan, _ = compiled(folder, str(path.with_suffix("")))
        wanted = {"shared.weight", "fc.bias", "final_logits_bias"}
        if trained(plan) != wanted:
            raise Failed(f"{trained(plan)}, not {wanted}")


def biasedAttention(path, bias):
    """Learned biases of attention by distance, as LeViT's, told as a parameter;
    and a head that no loss reads."""
    made = textModel("float[8,6,16] x", "float[8,4] logits, float[8,6,4] unread",
                     """
h = MatMul(x, w)
q1 = Reshape(h, parts)
q = Transpose<perm=[0,2,1,3]>(q1)
k1 = MatMul(x, wk)
k2 = Reshape(k1, parts)
k = Transpose<perm=[0,2,3,1]>(k2)
s = MatMul(q, k)
b = Gather<axis=1>(bias, index)
a = Add(s, b)
p = Softmax<axis=-1>(a)
o = MatMul(p, q)
t = Transpose<perm=[0,2,1,3]>(o)
y = Reshape(t, whole)
m = ReduceMean<keepdims=0>(y, one)
logits = MatMul(m, head)
unread = MatMul(y, other)
""".strip(), "int64[4] parts = {8, 6, 2, 8}, int64[3] whole = {8, 6, 16}, "
                     "int64[1] one = {1}")
    random = np.random.default_rng(0)
    place = np.arange(6)
    arrays = {name: (random.standard_normal(shape) / 2).astype(np.float32)
              for name, shape in (("w", (16, 16)), ("wk", (16, 16)),
                                  ("head", (16, 4)), ("other", (16, 4)))}
    arrays |= {"bias": bias, "index": place[:, None] - place + 5}
    for name, array in arrays.items():
        made.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    info = onnx.helper.make_tensor_value_info("bias", 1, bias.shape)
    entry = info.metadata_props.add()
    entry.key = "pkg.torch.export.graph_signature.InputSpec.kind"
    entry.value = "PARAMETER"
    made.graph.value_info.append(info)
    onnx.save(made, path)


def beginsAtZero():
    """What a parameter is at first decides nothing: a bias of attention that is
    zero, or looks like a mask, trains as one that nearly is."""
    random = np.random.default_rng(1)
    flags = ["--train", LOSS, "--optimizer=sgd(lr=0.5)"]
    zero = np.zeros((2, 11), np.float32)
    masked = np.where(np.arange(11) < 5, np.float32(-3e8), zero)
    with scratch() as folder:
        folder = Path(folder)
        np.savez(folder / "data.npz",
                 x=2 * random.standard_normal((8, 6, 16)).astype(np.float32),
                 labels=random.integers(0, 4, 8))
        for bias in (zero, masked):
            logs = []
            for nearly in (0, 1e-12):
                there = nearly * np.arange(22, dtype=np.float32).reshape(2, 11)
                biasedAttention(folder / "m.onnx", bias + there)
                said = run(tool("axopt"), folder / "m.onnx", *flags, "-o",
                           folder / "p.mlir").stderr
                says(said, "without gradient, as the loss does not depend on "
                     "them: other")
                run(tool("axrun"), folder / "p.mlir", "--data",
                    folder / "data.npz", "--steps", 20, "--no-shuffle",
                    "--quiet", "--log", folder / "log.jsonl", "--save-weights",
                    folder / f"{nearly}.safetensors")
                logs.append(logged(folder / "log.jsonl"))
                (folder / "log.jsonl").unlink()
            for what in "loss", "gradient_norm":
                got, wanted = ([line[what] for line in log if what in line]
                               for log in logs)
                close(got, wanted, 1e-4, what)
            moved = dict(states(folder / "0.safetensors"))["bias"]
            if np.abs(moved - bias)[:, 5:].max() < 1e-3:
                raise Failed(f"the bias has not been trained: {moved}")
        for flag in ("--trainable=w --trainable=oth*",
                     "--param-group=other:lr=2"):
            named = flag.split()[-1]
            says(run(tool("axopt"), folder / "m.onnx", *flags, *flag.split(),
                     "-o", folder / "p.mlir", expect=2).stderr,
                 f"{named.split(':')[0]}: the loss does not depend on such a "
                 "weight")
        says(run(tool("axopt"), folder / "m.onnx", *flags, "--frozen=w",
                 "--param-group=w:lr=2", "-o", folder / "p.mlir",
                 expect=2).stderr, "--param-group=w: no such weight is trained")


def repeated():
    """An exporter has folded the class token's repetition for each sample."""
    model = MODELS / "vit_sdpa_dynamo18_static" / "model.onnx"
    with scratch() as folder:
        done = run(tool("axopt"), model, "--train", LOSS, "-o",
                   Path(folder) / "plan.mlir")
        says(done.stderr, "'expand': equal parts, as if an exporter had repeated "
             "one weight (for each sample, say), train as separate ones; see "
             "'Models to train' in docs/training.md")
        done = run(tool("axopt"), model, "--train", LOSS, "--micro-batches=2",
                   "--pp=2", "-o", Path(folder) / "plan.mlir", expect=2)
        says(done.stderr, "'expand' has a part for each sample of the batch, and "
             "is updated as a whole: use --micro-batches=1, or --frozen=expand")


SIGNATURE = """
# inputs
p_a: PARAMETER target='a.weight'
p_b: PARAMETER target='start'
b_c: BUFFER target='table' persistent=True
x: USER_INPUT
"""
# Values of which one folded by the exporter was made, by its name.
FOLDED = {"val_1": "['a.weight', 'val_0']", "val_2": "['start']",
          "val_3": "['table', 'val_9']", "zeros": "['val_7', 'val_8']"}


def folded():
    """What dynamo's exporter has folded is a parameter if a part of it was."""
    made = textModel(
        "float[8,4] x", "float[8,6] y",
        "h = MatMul(x, val_1)\nb = Add(h, val_2)\nc = Add(b, val_3)\n"
        "d = Add(c, zeros)\ne = Add(d, plain)\ny = MatMul(e, w)")
    random = np.random.default_rng(0)
    for name, shape in {"val_1": (4, 6), "val_2": (1, 6), "val_3": (1, 6),
                        "zeros": (8, 6), "plain": (1, 6), "w": (6, 6)}.items():
        made.graph.initializer.append(onnx.numpy_helper.from_array(
            random.standard_normal(shape, np.float32), name))
        value = made.graph.value_info.add()
        value.name = name
        if name in FOLDED:
            value.metadata_props.add(key="pkg.onnxscript.optimizer.folded_from",
                                     value=FOLDED[name])
    made.producer_name = "pytorch"
    for told, wanted in ((False, {"val_3", "zeros"}), (True, set())):
        if told:
            made.graph.metadata_props.add(
                key="pkg.torch.export.ExportedProgram.graph_signature",
                value=SIGNATURE)
        with scratch() as folder:
            onnx.save(made, f"{folder}/m.onnx")
            plan = Path(folder) / "plan.mlir"
            said = run(tool("axopt"), f"{folder}/m.onnx", "--train",
                       "--loss=mse(y,t)", "-o", plan).stderr
            if trained(plan) != {"val_1", "val_2", "plain", "w"} | wanted:
                raise Failed(f"trained: {trained(plan)}\n{said}")
            if told:
                says(said, "2 made of no parameter, as the file says (")


def constantNodes():
    """TorchScript's exporter has parameters as initializers, and what the model
    makes as Constant nodes. Of other programs' nobody knows."""
    table = np.random.default_rng(0).standard_normal((1, 20, 16), np.float32)
    made = textModel("float[4,20,16] x", "float[4,20,16] y",
                     "a = MatMul(x, w)\ny = Add(a, table)")
    made.graph.node.insert(0, onnx.helper.make_node(
        "Constant", [], ["table"], value=onnx.numpy_helper.from_array(table)))
    made.graph.initializer.append(
        onnx.numpy_helper.from_array(table[0, :16].copy(), "w"))
    for producer, wanted in ("pytorch", {"w"}), ("another", {"table", "w"}):
        made.producer_name = producer
        with scratch() as folder:
            onnx.save(made, f"{folder}/m.onnx")
            plan = Path(folder) / "plan.mlir"
            run(tool("axopt"), f"{folder}/m.onnx", "--train", "--loss=mse(y,t)",
                "-o", plan)
            if trained(plan) != wanted:
                raise Failed(f"trained of {producer}: {trained(plan)}")


def named():
    """Flags win over what the file says."""
    with scratch() as folder:
        plan, text = compiled(folder, "logits_bias.dynamo",
                              "--trainable=*bias", "--frozen=fc*")
        says(text, "1 by --trainable (final_logits_bias)", "by --frozen (fc.")
        if trained(plan) != {"final_logits_bias"}:
            raise Failed(f"trained: {trained(plan)}")


def batchnorm():
    """The recipe of docs/training.md trains as PyTorch does."""
    wanted = json.loads((EXPORTS / "batchnorm.json").read_text())
    for flag, mode, text in (
            ([], "eval", "warning: 1 BatchNormalization by the running "
             "statistics, which stay as they are (as the model was exported; "
             "torch's dynamo exporter also writes training mode so); "
             "--batchnorm=train takes the batch's, --batchnorm=frozen confirms "
             "it"),
            (["--batchnorm=frozen"], "eval", "note: 1 BatchNormalization by the "
             "running statistics (--batchnorm=frozen); --batchnorm=train takes "
             "the batch's"),
            (["--batchnorm=train"], "train", "note: 1 BatchNormalization by the "
             "statistics of the batch (--batchnorm=train); --batchnorm=frozen "
             "takes the running ones")):
        with scratch() as folder:
            plan, said = compiled(folder, "batchnorm.dynamo", *flag, loss=LOSS)
            says(said, text)
            log = Path(folder) / "log.jsonl"
            run(tool("axrun"), plan, "--data", EXPORTS / "batchnorm.npz",
                "--steps", 1, "--quiet", "--log", log)
            close(losses(log), [wanted[mode]], 1e-5, f"loss with {flag}")


def oneFeature():
    """Layers of one feature have parameters as others do, though single numbers;
    and a norm's statistics are counted on, so that evaluation is right."""
    made = textModel(
        "float[16,1,2,2] x", "float[16,1] y",
        "n = BatchNormalization(x, scale, bias, mean, var)\n"
        "f = Flatten(n)\nh = Gemm(f, w1, b1)\ny = Gemm(h, w2, b2)",
        "float[1] scale = {1}, float[1] bias = {0.5}, float[1] mean = {0}, "
        "float[1] var = {1}, float[4,1] w1 = {1, -1, 0.5, 2}, "
        "float[1] b1 = {0.1}, float[1,1] w2 = {2}, float[1] b2 = {0.1}")
    with scratch() as folder:
        plan, data = Path(folder) / "plan.mlir", Path(folder) / "data.npz"
        onnx.save(made, Path(folder) / "model.onnx")
        random = np.random.default_rng(1)
        x = random.normal(5, 3, (64, 1, 2, 2)).astype(np.float32)
        np.savez(data, x=x, t=x.mean((2, 3)))
        run(tool("axopt"), Path(folder) / "model.onnx", "--train",
            "--loss=mse(y,t)", "--batchnorm=train", "--optimizer=adam(lr=0.05)",
            "--quiet", "-o", plan)
        log = Path(folder) / "log.jsonl"
        weights = Path(folder) / "trained.safetensors"
        run(tool("axrun"), plan, "--data", data, "--steps", 200, "--quiet",
            "--log", log, "--eval", data, "--save-weights", weights)
        trained = dict(states(weights))
        for value in made.graph.initializer:
            before = onnx.numpy_helper.to_array(value)
            if np.array_equal(trained[value.name], before):
                raise Failed(f"'{value.name}' did not train")
        close([trained["mean"].item()], [x.mean()], 0.05, "running mean")
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        evaluated = [line["eval_loss"] for line in lines if "eval_loss" in line]
        if not evaluated or evaluated[-1] > 0.1:
            raise Failed(f"evaluation differs from training: {lines[-2:]}")


def frozenRows(optimizer, layout):
    """PyTorch's padding_idx, whose row is zero and stays so."""
    wanted = json.loads((EXPORTS / "padding.json").read_text())[optimizer]
    with scratch() as folder:
        plan, _ = compiled(folder, "padding.dynamo", "--quiet",
                           "--optimizer=" + optimizer, "--clip-norm=0.5",
                           "--frozen-rows=0.w*=0", *layout.split(), loss=LOSS)
        log, weights = Path(folder) / "log.jsonl", Path(folder) / "w.safetensors"
        run(tool("axrun"), plan, "--data", EXPORTS / "padding.npz", "--steps",
            len(wanted["loss"]), "--no-shuffle", "--quiet", "--log", log,
            "--save-weights", weights)
        close(losses(log), wanted["loss"], 1e-5, "losses")
        close([line["gradient_norm"] for line in logged(log)],
              wanted["gradient_norm"], 1e-5, "gradient norms")
        table = dict(states(weights))
        close(table["0.weight"], wanted["table"], 1e-5, "the table")
        for name, values in table.items():
            if name.startswith("0.weight.") and np.any(values[0]):
                raise Failed(f"{name} of the frozen row: {values[0]}")


def keptRows(layout):
    """Rows that are not zero keep every bit, also against decay."""
    flags = ["--optimizer=adamw(lr=0.1,weight_decay=0.5)",
             "--frozen-rows=0.weight=3,7", "--frozen-rows=2.weight=1"]
    with scratch() as folder:
        plan, _ = compiled(folder, "padding.dynamo", "--quiet", *flags,
                           *layout.split(), loss=LOSS)
        weights = Path(folder) / "w.safetensors"
        run(tool("axrun"), plan, "--data", EXPORTS / "padding.npz", "--steps", 3,
            "--quiet", "--save-weights", weights)
        after = dict(states(weights))
    before = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in
              onnx.load(EXPORTS / "padding.dynamo.onnx").graph.initializer}
    for name, frozen in (("0.weight", [3, 7]), ("2.weight", [1])):
        same = (before[name] == after[name]).all(1)
        if sorted(np.flatnonzero(same)) != frozen:
            raise Failed(f"{name}: rows {np.flatnonzero(same)} are as they were")


def inStrategy():
    """Frozen rows are part of a strategy's file."""
    with scratch() as folder:
        flags = ["--frozen-rows=0.weight=0,2", "--quiet"]
        file = Path(folder) / "strategy.yaml"
        plan, _ = compiled(folder, "padding.dynamo", *flags,
                           "--save-strategy", file, loss=LOSS)
        text = plan.read_text()
        run(tool("axopt"), EXPORTS / "padding.dynamo.onnx", "--strategy", file,
            "--quiet", "-o", plan)
        if plan.read_text() != text:
            raise Failed("the strategy's file gives another plan")
        says(file.read_text(), "0.weight=0,2")


def refused(flag, message):
    with scratch() as folder:
        says(compiled(folder, "padding.dynamo", flag, loss=LOSS, expect=2)[1],
             message)


def cases(every):
    for model in json.loads((EXPORTS / "names.json").read_text()):
        for exporter in ("dynamo", "torchscript"):
            yield f"parameters/{model}.{exporter}", parameters, model, exporter
        # Tables, masks and positions are known again when they were rounded.
        for kind in HALVES:
            yield (f"parameters/{model}, {kind}", parameters, model,
                   "torchscript", kind)
    yield ("reasons/positions", reasons, "positions",
           "2 tables of sines (pos_embed, cos)",
           "single numbers are constants, which nothing trains: scale")
    yield ("reasons/attention_biases", reasons, "attention_biases",
           "1 masks (attn_mask)")
    yield ("reasons/feature_tokens", reasons, "feature_tokens",
           "2 by what is done with them (centre, spread)")
    yield ("reasons/logits_bias", reasons, "logits_bias",
           "warning: 'final_logits_bias', a row of zeros, is trained as the "
           "bias of a layer, but may be either")
    yield ("reasons/grid", reasons, "grid", "1 grids of coordinates (table)",
           "1 progressions (slopes)")
    yield ("reasons/norm_on_input", reasons, "norm_on_input",
           "2 statistics (bn.running_mean, bn.running_var)",
           "1 BatchNormalization by the statistics of the batch (as the model "
           "was exported); --batchnorm=frozen takes the running ones")
    yield "said by the tensor", inTensor
    yield "folded by the exporter", folded
    yield "Constant nodes", constantNodes
    yield "flags win", named
    yield "begins at zero", beginsAtZero
    yield "repeated by the exporter", repeated
    yield "batchnorm", batchnorm
    yield "one feature", oneFeature
    optimizers = list(json.loads((EXPORTS / "padding.json").read_text()))
    for optimizer in optimizers:
        yield f"frozen rows/{optimizer}", frozenRows, optimizer, ""
    for layout in ("--tp=2", "--tp=2x2x1", "--dp=2 --zero=1", "--dp=2 --zero=3",
                   "--dp=2 --tp=2", "--pp=2 --micro-batches=2",
                   "--shard=0.weight=[{col},{}] --tp=2"):
        yield f"frozen rows/{layout}", frozenRows, optimizers[0], layout
    for layout in ("", "--tp=2 --dp=2 --zero=3"):
        yield f"kept rows/{layout}", keptRows, layout
    yield "frozen rows/strategy", inStrategy
    for flag, message in (
            ("--frozen-rows=0.weight", "axopt: error: --frozen-rows=0.weight: "
             "give PATTERN=ROW,ROW,..."),
            ("--frozen-rows=0.weight=a", "axopt: error: "
             "--frozen-rows=0.weight=a: give PATTERN=ROW,ROW,..."),
            ("--frozen-rows=[=1", "axopt: error: --frozen-rows=[=1: "),
            ("--frozen-rows=none*=1", "--frozen-rows=none*=1: no weight that is "
             "trained is called so"),
            ("--frozen-rows=0.weight=20", "--frozen-rows=0.weight=20: "
             "'0.weight' has 20 rows, and no row 20")):
        yield f"refused/{flag}", refused, flag, message
