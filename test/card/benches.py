# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `tools/dev bench gpu` and card/bench measure, the most important first: of
each the network, for axopt (test/bench/networks.py) and for peers (torch_networks.py,
by the same name and sizes), what is measured of it, and what must come out.
`write` makes the plans and the table that test/card/bench reads.
"""
import json
import re
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "bench"))
import networks

HERE = Path(__file__).parent
# What the script needs beside it.
FILES = ["bench", "environment.bash", "torch_networks.py", "torch_peer.py"]

# The oldest that multiplies factors of eight bits; newer cards run it, too.
TARGET = "sm_90+cudnn"

# measure    what is timed, or read
#   step       a step of training
#   predict    the model's outputs, from inputs on the host to outputs there
#   attention  commands of attention and of its gradient, of a step
#   first      seconds of a process that does one step, and has nothing kept
#   memory     what a step holds on the card, beside what axopt said
# sizes      of the network; small: those that are others for a simulated card
# loss       {}: the model's output; None where nothing trains
# axopt, axrun  their flags
# against    a benchmark whose time axrun's is held against, in place of peers'
# must       the ratio's limit; share: of 989 TFLOP/s, at least
Bench = namedtuple("Bench", "name measure network sizes small loss axopt axrun "
                            "against must share")

TOKENS = "cross_entropy({},labels)"
VALUES = "mse({},target)"
ADAMW = "--optimizer=adamw(lr=1e-3)"
SGD = "--optimizer=sgd(lr=1e-3)"
BF16 = "--precision=bf16"
# As PyTorch's attention is.
ANY_ORDER = "--nondeterministic"
GPT = dict(layers=12, width=768, heads=12, vocabulary=50257, tokens=1024, batch=16)
SHORT = GPT | dict(tokens=128, batch=1)
SMALL_GPT = dict(layers=1, width=64, heads=2, vocabulary=100, tokens=16, batch=2)
LLAMA = dict(layers=8, width=4096, heads=32, groups=8, hidden=14336, vocabulary=0,
             tokens=4096, batch=2)
SMALL_LLAMA = dict(layers=1, width=64, heads=4, groups=2, hidden=96, tokens=16)
MINILM = dict(layers=6, width=384, heads=12, vocabulary=30522, tokens=128, batch=1)
# One layer with a head of keys for each of queries.
ATTENTION = LLAMA | dict(layers=1, groups=32, hidden=4096)
RESNET = dict(images=128, size=224, width=64, blocks=(3, 4, 6, 3))
SMALL_RESNET = dict(images=2, size=32, width=8, blocks=(1, 1))

BENCHES = {bench.name: bench for bench in (
    Bench("gpt2-step", "step", "gpt", GPT, SMALL_GPT, TOKENS, [ADAMW, BF16],
          [ANY_ORDER], None, "≤ 1.05", None),
    Bench("llama-step", "step", "llama", LLAMA, SMALL_LLAMA, VALUES, [ADAMW, BF16],
          [ANY_ORDER], None, "≤ 1.05", 45),
    Bench("llama-fp8", "step", "llama", LLAMA, SMALL_LLAMA, VALUES,
          [ADAMW, "--precision=fp8"], [ANY_ORDER], "llama-step", "≤ 0.91", None),
    Bench("llama-predict", "predict", "llama", LLAMA, SMALL_LLAMA, None, [BF16], [],
          None, "≤ 1.00", None),
    Bench("gpt2-latency", "predict", "gpt", SHORT, SMALL_GPT, None, [BF16], [], None,
          "≤ 1.00", None),
    Bench("minilm-latency", "predict", "encoder", MINILM, SMALL_GPT, None, [BF16], [],
          None, "≤ 1.00", None),
    Bench("resnet50-step", "step", "resnet50", RESNET, SMALL_RESNET, TOKENS,
          [SGD, BF16, "--batchnorm=train"], [], None, "≤ 1.10", None),
    Bench("attention", "attention", "llama", ATTENTION,
          SMALL_LLAMA | dict(groups=4), VALUES, [SGD, BF16],
          ["--profile=0", ANY_ORDER], None,
          "≤ 1.05", None),
    Bench("gpt2-tp2", "step", "gpt", GPT, SMALL_GPT, TOKENS,
          [ADAMW, BF16, "--tp=2"], ["--devices=0,0", ANY_ORDER], "gpt2-step",
          "≤ 1.25", None),
    Bench("gpt2-first", "first", "gpt", GPT, SMALL_GPT, TOKENS, [ADAMW, BF16], [],
          None, "≤ 10 s", None),
    Bench("gpt2-memory", "memory", "gpt", GPT, SMALL_GPT, TOKENS, [ADAMW, BF16], [],
          None, "0.95 to 1.05", None),
)}


def sizesOf(bench, isSmall):
    return bench.sizes | bench.small if isSmall else bench.sizes


def model(bench, folder, isSmall):
    """Writes it, without values of weights, and returns axopt's flags."""
    sizes, more = sizesOf(bench, isSmall), {}
    if bench.network == "resnet50":
        more = dict(norms=True)
    with networks.blankWeights():
        graph = getattr(networks, bench.network)(**sizes, **more)
    graph.save(folder / "model.onnx")
    train = (["--train", "--loss=" + bench.loss.format(graph.outputs[0])]
             if bench.loss else [])
    return [*train, *bench.axopt]


def flop(bench, isSmall):
    """Of products and of attention, forwards; with a backward pass 3 times that,
    and 3.5 times for attention, whose scores it makes again. None where it is not
    counted."""
    sizes = sizesOf(bench, isSmall)
    if bench.measure in ("first", "memory") or bench.network == "resnet50":
        return None
    layers, width, rows = (sizes["layers"], sizes["width"],
                           sizes["batch"] * sizes["tokens"])
    # Of half of the pairs, where tokens see none behind them.
    attention = layers * 4 * rows * sizes["tokens"] * width
    if bench.network != "encoder":
        attention /= 2
    if bench.measure == "attention":
        return 3.5 * attention
    weights = 12 * width * width
    if bench.network == "llama":
        weights = (2 * width * width * (1 + sizes["groups"] / sizes["heads"])
                   + 3 * width * sizes["hidden"])
    head = width * sizes["vocabulary"] * (bench.network == "gpt")
    products = 2 * rows * (layers * weights + head)
    return (products + attention if bench.measure == "predict"
            else 3 * products + 3.5 * attention)


def optimizer(bench):
    return "adamw" if ADAMW in bench.axopt else "sgd"


def predictedBytes(said):
    """What axopt's summary has for a step of a plan's program."""
    units = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    size, unit = re.search(r"peak memory ([0-9.]+) (\w+)", said).groups()
    return round(float(size) * units[unit])


def copyScripts(folder):
    for file in FILES:
        shutil.copy(HERE / file, folder / file)


def write(folder, axopt, names, isSmall):
    """bench.tsv, in the order of `names`, and compiled plans in `benches`."""
    (folder / "benches").mkdir()
    # Those that have one network, and axopt's flags, have one plan.
    made = {}

    def plan(bench):
        key = json.dumps([bench.network, sizesOf(bench, isSmall), bench.loss,
                          bench.axopt])
        if key not in made:
            made[key] = compile(folder, axopt, bench, isSmall)
        return made[key]

    with open(folder / "bench.tsv", "w") as table:
        for bench in (BENCHES[name] for name in names):
            name, predicted = plan(bench)
            other = BENCHES.get(bench.against)
            against = " ".join([other.name, other.measure, plan(other)[0],
                                *other.axrun] if other else "-")
            must = bench.must + (f"; ≥ {bench.share} % of 989 TFLOP/s"
                                 if bench.share else "")
            # Never empty: the shell takes two tabs for one.
            print(bench.name, bench.measure, name, bench.network,
                  json.dumps(sizesOf(bench, isSmall)), optimizer(bench), against,
                  must, flop(bench, isSmall) or "-", predicted,
                  " ".join(bench.axrun) or "-", sep="\t", file=table)


def compile(folder, axopt, bench, isSmall):
    """The plan's name, and the bytes that axopt says a step takes."""
    scratch = folder / "benches" / f"{bench.name}.model"
    scratch.mkdir()
    plan = f"{bench.name}.axc"
    command = [axopt, scratch / "model.onnx", *model(bench, scratch, isSmall),
               "--compile", f"--target={TARGET}{'+sim' * isSmall}", "-o",
               folder / "benches" / plan]
    done = subprocess.run([str(word) for word in command], text=True,
                          capture_output=True)
    if done.returncode:
        raise RuntimeError(f"$ {' '.join(map(str, command))}\n{done.stderr}")
    shutil.rmtree(scratch)
    return plan, predictedBytes(done.stderr)
