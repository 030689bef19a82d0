# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training by processes has the bits of training by threads."""
import json
import sys
from pathlib import Path

from _jobs import (DIGITS, LOSS, compiled, ranksOf, same, sameLogs, tokens)
from _mpirun import launch
from cases import MODELS, ROOT, TRAINING, Failed, run, scratch, tool

sys.path.append(str(ROOT / "test/e2e"))
from train import OPTIMIZERS, options  # noqa: E402

LAYOUTS = ["--tp=2", "--dp=2", "--pp=2", "--tp=2 --pp=2", "--dp=2 --zero=3",
           "--tp=2x2x2"]
# Those that run without --all.
OFTEN = [("fc_net", "--dp=2 --zero=3"), ("gpt2_tied", "--tp=2 --pp=2"),
         ("fc_net", "--tp=2x2x2")]
ONCE = "--steps=6", "--no-shuffle", "--quiet"


def reference(model, layout, optimizer):
    wanted = json.loads((model / "reference.json").read_text())
    wanted = wanted["optimizers"][optimizer]
    with scratch() as folder:
        shape = tokens(f"{folder}/data.npz", model)
        run(tool("axopt"), model / "model.onnx", "--train", LOSS, "--clip-norm=1",
            "--shape", "input=" + shape, *options(wanted["options"]),
            *layout.split(), "-o", f"{folder}/plan.mlir")
        command = [tool("axrun"), f"{folder}/plan.mlir", "--data",
                   f"{folder}/data.npz", "--steps", len(wanted["steps"]),
                   "--no-shuffle", "--quiet"]
        for name, start in (("threads", run),
                            ("processes", lambda *words: launch(
                                ranksOf(layout), *words))):
            start(*command, "--log", f"{folder}/{name}.log", "--save-weights",
                  f"{folder}/{name}.safetensors")
        sameLogs(f"{folder}/threads.log", f"{folder}/processes.log")
        same(f"{folder}/threads.safetensors", f"{folder}/processes.safetensors")


def goesOn():
    """A checkpoint of processes is gone on with by threads, and back."""
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        other = compiled(folder, "--dp=2 --zero=3", name="other")
        train = [tool("axrun"), "--data", DIGITS, "--no-shuffle", "--quiet"]

        def steps(start, plan, count, save, *flags):
            start(*train, plan, f"--steps={count}", "--save", f"{folder}/{save}",
                  "--log", f"{folder}/{save}.log", *flags)

        def processes(*words):
            launch(2, *words)

        for name, first, second in (("back", processes, run),
                                    ("there", run, processes)):
            steps(first, plan, 3, name)
            steps(second, plan, 6, name, "--resume", f"{folder}/{name}",
                  "--save-weights", f"{folder}/{name}.safetensors")
        same(f"{folder}/back.safetensors", f"{folder}/there.safetensors")
        sameLogs(f"{folder}/back.log", f"{folder}/there.log")
        # On another layout: equal, but for rounding, and it goes on.
        steps(processes, other, 8, "there", "--resume", f"{folder}/there",
              "--save-weights", f"{folder}/other.safetensors")


def measures():
    """--eval, in training and alone, and --predict."""
    with scratch() as folder:
        plan = compiled(folder, "--dp=2")
        test = ROOT / "examples/digits/test.npz"
        train = [tool("axrun"), plan, "--data", DIGITS, *ONCE, "--eval", test,
                 "--eval-every=3", "--metric=accuracy,perplexity",
                 "--save-every=4"]
        for name, start in (("threads", run), ("processes", both)):
            start(*train, "--log", f"{folder}/{name}.log", "--save",
                  f"{folder}/{name}")
            done = start(tool("axrun"), plan, "--eval", test, "--weights",
                         f"{folder}/{name}")
            (Path(folder) / f"{name}.eval").write_text(done.stdout)
            start(tool("axrun"), plan, "--data", test, "--weights",
                  f"{folder}/{name}", "--predict", f"{folder}/{name}.npz")
        for ending in "eval", "npz":
            same(f"{folder}/threads.{ending}", f"{folder}/processes.{ending}")
        sameLogs(f"{folder}/threads.log", f"{folder}/processes.log")
        if "evaluation:" not in done.stdout:
            raise Failed(done.stdout)


def both(*words):
    return launch(2, *words)


def traced():
    """Of all ranks, with one voice."""
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        done = launch(2, tool("axrun"), plan, "--data", DIGITS, "--steps=3",
                      "--trace", f"{folder}/trace", "--json", f"{folder}/json",
                      "--profile", "--trace-steps=2..3")
        events = json.loads(Path(f"{folder}/trace").read_text())["traceEvents"]
        tracks = [{event["tid"] for event in events if event["ph"] == kind}
                  for kind in "MX"]
        report = json.loads(Path(f"{folder}/json").read_text())
        if tracks != [{0, 1}, {0, 1}] or len(report["memory"]) != 2:
            raise Failed(f"{tracks}, {report['memory']}")
        if any(command["ranks"] != 2 for command in report["commands"]):
            raise Failed(f"commands of one rank: {report['commands']}")
        if done.stderr.count("step 2 of 3") != 1:
            raise Failed(done.stderr)


def cases(every):
    models = sorted(path.parent for path in TRAINING.glob("*/model.onnx"))
    for model in models:
        for layout in LAYOUTS:
            for number, optimizer in enumerate(OPTIMIZERS):
                # What normalises by the batch is in one micro-batch.
                if every or (number == 0 and (model.name, layout) in OFTEN):
                    yield (f"{model.name} {optimizer} {layout}", reference,
                           model, layout, optimizer)
    yield "checkpoints of threads and processes", goesOn
    yield "evaluation and prediction", measures
    yield "traces", traced
