# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training as a user does it: what goes in, and what is measured."""
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from _onnx_text import model as written

from _training import DIGITS, FC_NET, GPT, axrun, close, compiled, \
    crossEntropy, logged, losses, part, small

from cases import TRAINING, Failed, run, scratch, tool


def measures(layout):
    """While it trains, afterwards, and as an inference plan with the trained
    weights: the same numbers over a set that batches do not divide."""
    with scratch() as folder:
        plan = compiled(folder, *layout.split())
        axrun(plan, "--data", DIGITS / "train.npz", "--steps=30",
              "--eval", DIGITS / "test.npz", "--eval-every=10",
              "--metric=accuracy,perplexity", "--log", f"{folder}/log",
              "--save", f"{folder}/run", says="evaluation after step 30: loss")
        lines = logged(f"{folder}/log")
        found = [line for line in lines if "eval_loss" in line]
        assert [line["step"] for line in found] == [10, 20, 30], lines
        assert all(line["eval_samples"] == 360 for line in found), found
        last = found[-1]
        done = axrun(plan, "--eval", DIGITS / "test.npz", "--weights",
                     f"{folder}/run", "--metric=accuracy")
        alone = re.fullmatch(r"axrun: evaluation: loss ([\d.]+), accuracy "
                             r"([\d.]+), 360 samples\n", done.stdout)
        close([float(number) for number in alone.groups()],
              [last["eval_loss"], last["eval_accuracy"]], 1e-5, "alone")
        data = np.load(DIGITS / "test.npz")
        np.save(f"{folder}/input.npy", data["input"])
        run(tool("axopt"), FC_NET, "--shape=input=360x64", "--quiet", "-o",
            f"{folder}/infer.mlir")
        axrun(f"{folder}/infer.mlir", "--input",
              f"input={folder}/input.npy", "--weights", f"{folder}/run", "--output", f"{folder}/out.npz")
        logits = np.load(f"{folder}/out.npz")["logits"]
        close(last["eval_loss"], crossEntropy(logits, data["labels"]), 1e-4,
              "loss")
        close(last["eval_perplexity"], np.exp(last["eval_loss"]), 1e-6,
              "perplexity")
        close(last["eval_accuracy"],
              (logits.argmax(-1) == data["labels"]).mean(), 1e-6, "accuracy")


def skips(layout):
    """A step without finite gradient changes nothing at all."""
    with scratch() as folder:
        plan = compiled(folder, *layout.split(),
                        "--lr-schedule=linear(warmup=2,steps=9)")
        good = part("train", range(0, 96))
        bad = part("train", range(0, 64), range(0, 32), range(64, 96))
        bad["input"][70] = np.nan
        np.savez(f"{folder}/good.npz", **good)
        np.savez(f"{folder}/bad.npz", **bad)
        axrun(plan, "--data", f"{folder}/good.npz", "--no-shuffle",
              "--steps=3", "--save-weights", f"{folder}/good.safetensors",
              "--log", f"{folder}/good.log")
        axrun(plan, "--data", f"{folder}/bad.npz", "--no-shuffle", "--steps=4",
              "--on-nonfinite=skip", "--save-weights",
              f"{folder}/bad.safetensors", "--log", f"{folder}/bad.log",
              says="1 of 4 steps were skipped: loss or gradient were no finite "
              "numbers")
        lines = logged(f"{folder}/bad.log")
        assert [line.get("skipped", False) for line in lines] == \
            [False, False, True, False], lines
        assert [lines[i]["loss"] for i in (0, 1, 3)] == \
            losses(f"{folder}/good.log")
        if Path(f"{folder}/good.safetensors").read_bytes() != \
                Path(f"{folder}/bad.safetensors").read_bytes():
            raise Failed("the states are other ones")
        axrun(plan, "--data", f"{folder}/bad.npz", "--no-shuffle", "--steps=4",
              "--save", f"{folder}/run", expect=9,
              says="the loss of step 3 is no finite number: input 'input' has "
              "NaN in sample 70; --on-nonfinite=skip leaves such steps out")
        assert os.path.exists(f"{folder}/run/step-2")


def labels():
    with scratch() as folder:
        plan = compiled(folder)
        for label in (10, -1, 2**40):
            data = part("train", range(64))
            data["labels"][40] = label
            np.savez(f"{folder}/data.npz", **data)
            says = (f"label {label} of 'labels', sample 40, is none of the 10 "
                    "classes 0 to 9, nor -100, which is ignored")
            axrun(plan, "--data", f"{folder}/data.npz", "--steps=2", expect=6,
                  says=f"--data={folder}/data.npz: {says}")
            axrun(plan, "--eval", f"{folder}/data.npz", expect=6, says=says)
        data["labels"][:] = -100
        np.savez(f"{folder}/data.npz", **data)
        axrun(plan, "--data", f"{folder}/data.npz", "--steps=2", expect=6,
              says="every label of step 1's batch is ignored: there is no loss "
              "(--on-nonfinite=skip leaves such steps out)")
        axrun(plan, "--data", f"{folder}/data.npz", "--steps=2",
              "--on-nonfinite=skip", says="2 of 2 steps were skipped")
        axrun(plan, "--eval", f"{folder}/data.npz", expect=6,
              says="every label is ignored: there is no loss")
        gpt = compiled(folder, model=GPT, shape="input=4x32")
        tokens = {name: np.zeros((4, 32), np.int64)
                  for name in ("input", "labels")}
        tokens["labels"][2, 5] = 10**6
        np.savez(f"{folder}/data.npz", **tokens)
        axrun(gpt, "--data", f"{folder}/data.npz", "--steps=1", expect=6,
              says="label 1000000 of 'labels', sample 2, position 5, is none")


def pads():
    """As if the data had ignored samples at its end."""
    with scratch() as folder:
        plan = compiled(folder)
        short = part("train", range(0, 80))
        full = part("train", range(0, 80), range(64, 80))
        full["labels"][80:] = -100
        np.savez(f"{folder}/short.npz", **short)
        np.savez(f"{folder}/full.npz", **full)
        for name, flags in (("short", ["--last=pad"]), ("full", [])):
            axrun(plan, "--data", f"{folder}/{name}.npz", "--no-shuffle",
                  "--steps=5", *flags, "--log", f"{folder}/{name}.log")
        assert losses(f"{folder}/short.log") == losses(f"{folder}/full.log")
        axrun(plan, "--data", f"{folder}/short.npz", "--no-shuffle",
              "--steps=5", "--log", f"{folder}/drop.log")
        assert len(set(losses(f"{folder}/drop.log"))) == 5


def tokens():
    with scratch() as folder:
        plan = compiled(folder, model=GPT, shape="input=4x32")
        both = np.random.default_rng(0).integers(0, 64, 32 * 8 + 1)
        arrays = {"input": both[:-1].reshape(8, 32).astype(np.int64),
                  "labels": both[1:].reshape(8, 32).astype(np.int64)}
        both.astype(np.uint16).tofile(f"{folder}/16.bin")
        both.astype(np.uint32).tofile(f"{folder}/32.bin")
        np.savez(f"{folder}/arrays.npz", **arrays)
        os.mkdir(f"{folder}/arrays")
        for name, array in arrays.items():
            np.save(f"{folder}/arrays/{name}.npy", array)
        wanted = None
        for data, flags in (("arrays.npz", []), ("arrays", []),
                            ("16.bin", ["--tokens=uint16"]),
                            ("32.bin", ["--tokens=uint32"])):
            axrun(plan, "--data", f"{folder}/{data}", *flags, "--steps=3",
                  "--log", f"{folder}/{data}.log", "--eval", f"{folder}/{data}")
            got = [line.get("loss", line.get("eval_loss"))
                   for line in logged(f"{folder}/{data}.log")]
            wanted = wanted or got
            assert len(got) == 4 and got == wanted, (data, got, wanted)
        np.zeros(5, np.uint8).tofile(f"{folder}/odd.bin")
        np.zeros(9, np.uint8).tofile(f"{folder}/few.bin")

        def refused(plan, file, says):
            axrun(plan, "--data", f"{folder}/{file}", "--tokens=uint16",
                  "--steps=1", expect=6, says=says)

        refused(plan, "odd.bin",
                "its 5 bytes are no whole number of u16 tokens")
        np.zeros(9, np.uint16).tofile(f"{folder}/few.bin")
        refused(plan, "few.bin", "there are no samples")
        np.full(200, 9999, np.uint16).tofile(f"{folder}/large.bin")
        refused(plan, "large.bin", "token 9999 of 'input', sample ")
        refused(compiled(folder), "16.bin",
                "input 'input' is 32x64xf32, not of tokens: give it to axopt "
                "with --const")
        axrun(plan, "--data", f"{folder}/none", "--steps=1", expect=7,
              says="none")
        for graph, says in (
                (("int64[4,8] x, int64[4,8] z", "float[4,8,6] y",
                  "h = Gather(w, x)\nk = Gather(w, z)\ny = Add(h, k)"),
                 "more than one input takes tokens: give the others to axopt "
                 "with --const"),
                (("int64[4,8] x", "float[4,6] y",
                  "i = Constant<value_ints = [1]>()\nh = Gather(w, x)\n"
                  "y = ReduceSum<keepdims = 0>(h, i)"),
                 "input 'labels' is 4xi64, not of tokens"),
                (("int64[4,8] x", "float[4,2,6] y",
                  "b = Constant<value_ints = [0, 0, 0]>()\n"
                  "e = Constant<value_ints = [4, 2, 6]>()\n"
                  "h = Gather(w, x)\ny = Slice(h, b, e)"),
                 "inputs take sequences of 8 and 2 tokens")):
            onnx.save(written(*graph, "float[7,6] w = {%s}" % ", ".join(
                map(str, range(42)))), f"{folder}/model.onnx")
            run(tool("axopt"), f"{folder}/model.onnx", "--train",
                "--loss=cross_entropy(y,labels)", "--quiet", "-o",
                f"{folder}/small.mlir")
            refused(f"{folder}/small.mlir", "16.bin", says)


def evaluatesStatistics():
    """A model exported in training mode is measured with the statistics that
    it has gathered."""
    model = TRAINING / "batchnorm" / "model.onnx"
    with np.load(TRAINING / "batchnorm" / "data.npz") as data, \
            scratch() as folder:
        samples = {name: array.reshape((-1, *array.shape[2:]))
                   for name, array in data.items()}
        np.savez(f"{folder}/data.npz", **samples)
        shape = "input=" + "x".join(map(str, data["input"].shape[1:]))
        plan = compiled(folder, "--dp=2", model=model, shape=shape)
        axrun(plan, "--data", f"{folder}/data.npz", "--steps=10",
              "--eval", f"{folder}/data.npz", "--log", f"{folder}/log",
              "--save", f"{folder}/run")
        run(tool("axopt"), model, "--export-onnx", f"{folder}/m.onnx",
            "--weights", f"{folder}/run")
        trained = onnx.load(f"{folder}/m.onnx")
        for node in trained.graph.node:
            if node.op_type == "BatchNormalization":
                del node.output[1:]
                for attribute in node.attribute:
                    if attribute.name == "training_mode":
                        attribute.i = 0
        session = onnxruntime.InferenceSession(trained.SerializeToString())
        batch = data["input"].shape[1]
        logits = np.concatenate([
            session.run(None, {"input": samples["input"][i:i + batch]})[0]
            for i in range(0, len(samples["input"]), batch)])
        counts = samples["labels"] != -100
        close(logged(f"{folder}/log")[-1]["eval_loss"],
              crossEntropy(logits[counts], samples["labels"][counts]), 1e-4,
              "loss")


def singleBias(nodes, weights):
    """A layer with one feature learns its bias, as any other does."""
    with scratch() as folder:
        onnx.save(written("float[4,3] x", "float[4,1] y", nodes, weights),
                  f"{folder}/model.onnx")
        run(tool("axopt"), f"{folder}/model.onnx", "--train",
            "--loss=mse(y,target)", "--optimizer=sgd(lr=0.1)", "--quiet",
            "-o", f"{folder}/plan.mlir")
        x = np.arange(12, dtype=np.float32).reshape(4, 3) / 10
        target = np.zeros((4, 1), np.float32)
        np.savez(f"{folder}/data.npz", x=x, target=target)
        axrun(f"{folder}/plan.mlir", "--data", f"{folder}/data.npz",
              "--steps=1", "--save", f"{folder}/run")
        run(tool("axopt"), f"{folder}/model.onnx", "--export-onnx",
            f"{folder}/trained.onnx", "--weights", f"{folder}/run")
        trained = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor
                   in onnx.load(f"{folder}/trained.onnx").graph.initializer}
        y = x @ np.array([[1], [2], [3]]) + 0.5
        close(trained["b"], [0.5 - 0.1 * 2 * y.mean()], 1e-5, "bias")


def traces():
    """Of the steps that were asked for, and no others."""
    with scratch() as folder:
        plan = compiled(folder, "--pp=2", "--micro-batches=2")
        train = [plan, "--data", DIGITS / "train.npz", "--steps=8", "--save",
                 f"{folder}/run", "--json", f"{folder}/r.json", "--trace",
                 f"{folder}/t.json"]
        for flags, steps in ((["--trace-steps=3..5"], 3), ([], 1),
                             (["--trace-steps=2"], 1)):
            shutil.rmtree(f"{folder}/run", ignore_errors=True)
            axrun(*train, *flags)
            report = json.loads(Path(f"{folder}/r.json").read_text())
            assert report["iterations"] == steps and 0 < report["bubble"] < 1
            counts = {command["executions"] for command in report["commands"]}
            assert counts <= {steps, 2 * steps} and steps in counts, counts
            assert json.loads(Path(f"{folder}/t.json").read_text())
        axrun(*train[:3], "--steps=9", "--resume", f"{folder}/run", "--json",
              f"{folder}/n.json", "--trace-steps=2..3",
              says="no step is traced: those up to 8 are done already")
        assert not os.path.exists(f"{folder}/n.json")
        for text in "0..2", "3..2", "x", "..":
            axrun(*train, f"--trace-steps={text}", expect=2,
                  says=f"--trace-steps={text}: expected A..B, of steps from 1")
        axrun(*train, "--trace-steps=1..9", expect=2,
              says="--trace-steps: there are steps 1 to 8")
        axrun(*train[:4], "--trace-steps=1", expect=2, says="--trace-steps has "
              "no use in this run: it is for steps that are traced (--trace, "
              "--profile or --json, with --data)")


def otherLosses():
    """Metrics of a loss that is not over classes, and of a loss of a batch."""
    with scratch() as folder:
        data = part("train", range(80))
        target = np.eye(10, dtype=np.float32)[data["labels"]]
        np.savez(f"{folder}/data.npz", input=data["input"], target=target)
        for loss, metric, code in (("mse", "loss", 0), ("mse", "accuracy", 2),
                                   ("bce_with_logits", "accuracy", 0)):
            run(tool("axopt"), FC_NET, "--shape=input=32x64", "--train",
                f"--loss={loss}(logits,target)", "--quiet", "-o",
                f"{folder}/plan.mlir")
            axrun(f"{folder}/plan.mlir", "--eval", f"{folder}/data.npz",
                  f"--metric={metric}", expect=code,
                  says="80 samples" if code == 0 else "--metric=accuracy needs "
                  "a loss over classes: cross_entropy, or bce_with_logits")
        axrun(f"{folder}/plan.mlir", "--data", f"{folder}/data.npz",
              "--steps=1", "--last=pad", expect=2,
              says="--last=pad needs a loss that can ignore samples: "
              "cross_entropy")


def otherRuns():
    """What earlier runs and other models have left is not taken for ours."""
    with scratch() as folder:
        command = [compiled(folder), "--data", DIGITS / "train.npz",
                   "--steps=1", "--save", f"{folder}/run"]
        axrun(*command)
        axrun(*command, expect=2, says="/run has checkpoints of a run up to "
              "step 1, and this run does not go on with it (--resume): remove "
              "them, or save to another folder")
        small(f"{folder}/model.onnx",
              [helper.make_node("MatMul", ["input", "v"], ["logits"])],
              {"v": np.eye(64, dtype=np.float32)}, [64, 64])
        run(tool("axopt"), f"{folder}/model.onnx", "-o", f"{folder}/other.mlir")
        axrun(f"{folder}/other.mlir", "--random-inputs=1", "--weights",
              f"{folder}/run", expect=6, says="are of another model: the plan "
              "has none of their names, as '")


def sameCommand():
    """One command line begins, and goes on."""
    with scratch() as folder:
        command = [compiled(folder), "--data", DIGITS / "train.npz", "--save",
                   f"{folder}/run", "--resume", f"{folder}/run/", "--log",
                   f"{folder}/log"]
        # What was logged by one that had saved nothing.
        Path(f"{folder}/log").write_text('{"step":1,"loss":1}\n')
        axrun(*command, "--steps=2", says=f"there is no checkpoint in "
              f"'{folder}/run/' yet: training begins")
        axrun(*command, "--steps=3", says="resumed after step 2 from")
        assert [line["step"] for line in logged(f"{folder}/log")] == [1, 2, 3]
        assert logged(f"{folder}/log")[0]["loss"] != 1
        (Path(folder) / "run" / "latest").unlink()
        for step in (Path(folder) / "run").glob("step-*"):
            (step / "manifest.json").write_text("{")
        axrun(*command, "--steps=4", expect=6, says="manifest.json is malformed")
        axrun(*command[:-2], "--resume", f"{folder}/none", "--steps=1", expect=2)
        axrun(*command[:3], "--resume", f"{folder}/none", "--steps=1", expect=6,
              says=f"there is no checkpoint in '{folder}/none'")


def spoilt():
    """The step before the checkpoint was too long."""
    with scratch() as folder:
        command = [compiled(folder, "--optimizer=sgd(lr=1e30)"), "--data",
                   DIGITS / "train.npz", "--save", f"{folder}/run"]
        axrun(*command, "--steps=1")
        axrun(*command, "--steps=2", "--resume", f"{folder}/run", expect=9,
              says=f"this run had updated nothing since '{folder}/run/step-1', "
              "which is at fault: go on from a checkpoint before it, with a "
              "lower learning rate, or clip gradients (axopt --clip-norm)")


def merged():
    """Two layers that an exporter gave one weight, because all of it is 1."""
    node = helper.make_node
    norms = [node("LayerNormalization", ["input", "shared"], ["x"]),
             node("MatMul", ["x", "w"], ["y"]),
             node("LayerNormalization", ["y", "shared"], ["logits"])]
    convs = [node("Conv", ["input", "w", "shared"], ["x"]),
             node("Relu", ["x"], ["y"]),
             node("Conv", ["y", "w", "shared"], ["logits"])]
    eye = np.eye(64, dtype=np.float32)
    with scratch() as folder:
        for nodes, w, shape in ((norms, eye, [64, 64]),
                                (convs, eye[..., None, None], [8, 64, 3, 3])):
            for shared, isMerged in ((np.ones(64, np.float32), True),
                                     (np.arange(64, dtype=np.float32), False)):
                small(f"{folder}/model.onnx", nodes,
                      {"w": w, "shared": shared}, shape)
                done = run(tool("axopt"), f"{folder}/model.onnx", "--train",
                           "--loss=mse(logits,target)",
                           "-o", f"{folder}/plan.mlir")
                says = ("weights of equal elements are used several times; if "
                        "an exporter merged those of several layers, they "
                        "train as one:\n  shared: 2 times")
                if (says in done.stderr) != isMerged:
                    raise Failed(done.stderr)
        # The gates of one layer are no several layers.
        small(f"{folder}/model.onnx",
              [node("LSTM", ["input", "w", "r", "b"], ["", "logits"],
                    hidden_size=3)],
              {"w": np.random.default_rng(0).normal(size=[1, 12, 4]).astype(
                  np.float32),
               "r": np.random.default_rng(1).normal(size=[1, 12, 3]).astype(
                   np.float32),
               "b": np.zeros([1, 24], np.float32)}, [5, 2, 4])
        done = run(tool("axopt"), f"{folder}/model.onnx", "--train",
                   "--loss=mse(logits,target)", "-o", f"{folder}/plan.mlir")
        if "used several times" in done.stderr:
            raise Failed(done.stderr)


def untied():
    """An embedding that is the projection, too, and of which an exporter wrote
    a transposed copy."""
    table = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["input", "table"], ["x"]),
             helper.make_node("MatMul", ["x", "onnx::MatMul_7"], ["logits"])]
    for copy, says in ((table.T.copy(), "onnx::MatMul_7 and table, transposed"),
                       (table, "onnx::MatMul_7 and table\n"),
                       (table + 1, None), (np.ones_like(table), None)):
        with scratch() as folder:
            small(f"{folder}/model.onnx", nodes,
                  {"table": table, "onnx::MatMul_7": copy}, [64, 64])
            done = run(tool("axopt"), f"{folder}/model.onnx", "--train",
                       "--loss=mse(logits,target)", "-o", f"{folder}/plan.mlir")
            warning = ("weights that are equal train as separate ones; if they "
                       "were tied in the model:\n  ")
            if (warning + (says or "") in done.stderr) != (says is not None):
                raise Failed(done.stderr)


def flags():
    with scratch() as folder:
        plan = compiled(folder)
        data = ["--data", DIGITS / "train.npz", "--steps=1"]
        for command, says in (
                ((plan, "--metric=loss"), "--metric has no use in this run: it "
                 "is for evaluation (--eval, without --predict)"),
                ((plan, "--eval", DIGITS / "test.npz", "--metric=loss,f1"),
                 "--metric=f1: expected loss, accuracy or perplexity"),
                ((plan, *data, "--save-every=2"), "--save-every has no use in "
                 "this run: it is for training that saves (--save)"),
                ((plan, *data, "--save-weights=w.npz"), "--save-weights=w.npz: "
                 "expected FILE.safetensors, which --weights reads"),
                ((plan, *data, "--save=x", "--save-keep=-1"),
                 "--save-every, --save-keep and --eval-every must not be negative"),
                ((plan, *data, "--on-nonfinite=maybe"), "maybe")):
            done = axrun(*command, expect=2, says=says)
            assert done.stderr.count("axrun: error: ") == 1, done.stderr
        text = plan.read_text()
        for name, says in (("ax.program @eval(", "the plan has no program to "
                            "measure with: compile it with axopt --train"),
                           ("ax.program @main(", "does not measure a loss: "
                            "compile the plan with axopt --train")):
            plan.write_text(text.replace(name, "ax.program @other("))
            other = [] if "main" in name else data
            axrun(plan, *other, "--eval", DIGITS / "test.npz",
                  *(["--program=other"] if "main" in name else []), expect=2,
                  says=says)
        done = axrun(plan, *data, "--quiet", "--program=other")
        assert not done.stderr, done.stderr


def cases(every):
    yield "traces", traces
    yield "tied weights that were written twice", untied
    for layout in ("", "--dp=2 --tp=2", "--dp=4 --zero=3", "--tp=2x2x2",
                   "--dp=2 --tp=2 --pp=2 --micro-batches=2"):
        yield f"measures {layout}", measures, layout
    for layout in "", "--dp=2 --zero=1":
        yield f"skips {layout}", skips, layout
    yield "labels", labels
    yield "pads", pads
    yield "tokens", tokens
    yield "statistics", evaluatesStatistics
    yield "other losses", otherLosses
    biases = "float[1] b = {0.5}"
    yield "bias of one feature", singleBias, "y = Gemm(x, w, b)", \
        "float[3,1] w = {1, 2, 3}, " + biases
    yield "bias of one feature, added", singleBias, \
        "h = MatMul(x, w)\ny = Add(b, h)", \
        "float[3,1] w = {1, 2, 3}, " + biases
    yield "other runs", otherRuns
    yield "one command line for all starts", sameCommand
    yield "a checkpoint that is at fault", spoilt
    yield "merged weights", merged
    yield "flags", flags
