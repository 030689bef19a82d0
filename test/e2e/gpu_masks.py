# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention with masks is cuDNN's, forwards and backwards, and gives what the CPU
gives, also to queries that attend to nothing."""
import os
import re
from functools import partial

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from _onnx_text import model
from cases import MODELS, Failed, run, scratch, tool
from gpu_composed import card, isTheSame

HEADS, SIZE, ROWS, WIDTH = 4, 8, 6, 16
TRAIN = ["--train", "--loss=mse(logits,target)", "--optimizer=sgd(lr=0.5)"]
CUDNN = "sm_90+cudnn+sim"
# The gradient has the mask of what attention was given, and its sums.
GIVEN = (r" attention [^\n]* masked \((?:[^,\n]*, ){3}([^,\n]*), [^,\n]*, "
         r"([^,\n]*)\)(?s:.*) attention_gradient [^\n]* masked "
         r"\((?:[^,\n]*, ){5}\1, \2, ")
# What Where adds to what is hidden.
NUMBERS = {"infinite": -np.inf, "lowest": np.finfo(np.float32).min,
           "large": -1e4}


def attentionOf(mask, shape, causal=False, narrow=False, keys=ROWS, kvHeads=2,
                size=SIZE):
    """`mask`: bool, of which the CPU hides what is false, one of NUMBERS, or
    random, added as it is. `narrow`: operands are of bf16. `size`: of a head."""
    sizes = ",".join(map(str, shape))
    kind = "float" if mask == "random" else "bool"
    made = {"bool": "hides = Identity(mask)", "random": "hides = Identity(mask)"
            }.get(mask, "hides = Where(mask, none, number)")
    cast = TensorProto.BFLOAT16 if narrow else TensorProto.FLOAT
    given = made if mask == "bool" else f"{made}\nread = Cast<to={cast}>(hides)"
    read = "hides" if mask == "bool" else "read"
    graph = model(
        f"float[2,{ROWS},{WIDTH}] input, float[2,{keys},{WIDTH}] other, "
        f"{kind}[{sizes}] mask", f"float[2,{ROWS},{HEADS * size}] logits", f"""
{given}
qWide = MatMul(input, wq)
kWide = MatMul(other, wk)
vWide = MatMul(other, wv)
q = Cast<to={cast}>(qWide)
k = Cast<to={cast}>(kWide)
v = Cast<to={cast}>(vWide)
mixed = Attention<q_num_heads={HEADS}, kv_num_heads={kvHeads}, is_causal={
    int(causal)}>(q, k, v, {read})
logits = Cast<to={TensorProto.FLOAT}>(mixed)
""", "float[1] none = {0}")
    numbers = {"wq": (WIDTH, HEADS * size), "wk": (WIDTH, kvHeads * size),
               "wv": (WIDTH, kvHeads * size)}
    random = np.random.default_rng(1)
    for name, size in numbers.items():
        graph.graph.initializer.append(numpy_helper.from_array(
            (random.standard_normal(size) / 4).astype(np.float32), name))
    if mask in NUMBERS:
        graph.graph.initializer.append(numpy_helper.from_array(
            np.array([NUMBERS[mask]], np.float32), "number"))
    return graph


def hiding(shape, isEmpty=True):
    """True where there is a key. `isEmpty`: to the second query of the first
    sample, or to all of its queries, there is none."""
    mask = np.random.default_rng(2).random(shape) < 0.6
    mask[..., 0] = True
    if isEmpty:
        mask[0, ..., min(1, shape[2] - 1), :] = False
    return mask


def trains(graph, *flags, steps=3, mask=None):
    """`mask`: random where there is none."""
    isTheSame(graph, *TRAIN, *flags, steps=steps, rtol=0.02, atol=0.02,
              target=CUDNN, command=GIVEN,
              inputs={} if mask is None else {"mask": mask})


def plan(shape, causal, empty, window):
    """Attention, what it gives and its gradients, of which a mask hides. `empty`: what
    queries give that see nothing. `window`: 0 is none."""
    q, k = (f"tensor<2x{heads}x{ROWS}x{SIZE}xf32>" for heads in (HEADS, 2))
    mask = f"tensor<{'x'.join(map(str, shape))}xi1>"
    flags = (["causal"] * causal + [f"empty_rows_{empty}"] * (empty != "NaN")
             + [f"window = {window} : i64"] * (window > 0))
    how = (f"mask %m : {mask} scale 0.35 "
           f"{{{', '.join([*flags, 'product_type = bf16'])}}}")
    given = {"q": q, "k": k, "v": k, "g": q, "mask": mask}
    made = {"y": q, "dq": q, "dk": k, "dv": k}
    outer = ", ".join(f'%{name}0: {kind} {{ax.name = "{name}"}}'
                      for name, kind in given.items())
    inner = ", ".join(f"%{name[0]} = %{name}0 : {kind}"
                      for name, kind in given.items())
    named = ", ".join(f'{kind} {{ax.name = "{name}"}}'
                      for name, kind in made.items())
    kinds = ", ".join(made.values())
    return f"""ax.plan @attention version 1 {{
  ax.mesh [pipe = 1] in time [micro = 1]
  ax.program @main({outer}) -> ({named}) {{
    %s:4 = ax.stage @stage0 on 0 ({inner}) -> ({kinds}) {{
      %y = ax.attention %q, %k, %v {how} : {q}, {k}, {k} -> {q}
      %d:3 = ax.attention_gradient %q, %k, %v, %y, %g {how} : {q}, {k}, {k},
        {q}, {q} -> {q}, {k}, {k}
      ax.yield %y, %d#0, %d#1, %d#2 : {kinds}
    }}
    ax.schedule "forward" {{ stage 0: "F0" }}
    ax.return %s#0, %s#1, %s#2, %s#3 : {kinds}
  }}
}}
"""


def seesNoKey(shape, causal, empty, window=0):
    """Of queries without a key the gradients are 0, no numbers, or those of a mean."""
    isTheSame(plan(shape, causal, empty, window), rtol=0.02, atol=0.02, target=CUDNN,
              command=GIVEN, inputs={"mask": hiding(shape)})


def isNoNumber():
    """A softmax of nothing but -inf, which no operator makes 0."""
    made = model("float16[2,4,6,8] q, float16[2,4,6,8] k, float16[2,4,6,8] v",
                 "float16[2,4,6,8] y", """
turned = Transpose<perm=[0, 1, 3, 2]>(k)
scores = MatMul(q, turned)
added = Add(scores, mask)
p = Softmax(added)
y = MatMul(p, v)
""")
    mask = np.zeros((1, 1, ROWS, ROWS), np.float16)
    mask[..., 2, :] = mask[..., 3, :5] = -np.inf
    made.graph.initializer.append(numpy_helper.from_array(mask, "mask"))
    isTheSame(made, rtol=0.01, atol=0.01, target=CUDNN,
              command=" attention [^\n]* masked")


def isFarBelow(keys, *flags):
    """Scores of some -300, whose exponentials are 0 in f32, as that of what is
    subtracted from them is infinite: gradients are numbers."""
    graph = attentionOf("random", (2, 1, 1, keys), keys=keys)
    for tensor in graph.graph.initializer:
        array = numpy_helper.to_array(tensor).copy()
        if tensor.name in ("wq", "wk"):
            # Of the first input, which is 1.
            array[0, ::SIZE] = 30 if tensor.name == "wq" else -30
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    random = np.random.default_rng(3)
    inputs = {name: random.standard_normal((2, rows, WIDTH)).astype(np.float32)
              / 4 for name, rows in (("input", ROWS), ("other", keys))}
    for array in inputs.values():
        array[..., 0] = 1
    isTheSame(graph, "--train", "--loss=mse(logits,target)",
              "--optimizer=sgd(lr=0.02)", "--precision=bf16", *flags, steps=2,
              rtol=0.02, atol=0.02, target=CUDNN, inputs=inputs,
              command=" attention_gradient [^\n]* masked ")


def isDoneByTheCpu(size):
    """Where cuDNN refuses, with the mask that is made for cuDNN."""
    with scratch() as folder:
        file, plan = f"{folder}/model.onnx", f"{folder}/plan.mlir"
        onnx.save(attentionOf("random", (2, 1, 1, ROWS), size=size), file)
        run(tool("axopt"), file, "--quiet", *TRAIN, "--precision=bf16", "-o",
            plan)
        given = []
        for engines in {}, {"SIMGPU_CUDNN_ENGINES": "0"}:
            # A plan that is kept would be taken.
            kept = {"AXOPT_CACHE": f"{folder}/{len(given)}"}
            done = run(tool("axrun"), plan, "--random-inputs=1", "--warmup=1",
                       "--iterations=1", "--device=cuda", "--output",
                       f"{folder}/out.npz", env=os.environ | card() | kept |
                       {"AXRUN_TARGET": CUDNN} | engines)
            lacks = re.search(r"lacks attention_gradient.*masked", done.stderr)
            if bool(lacks) != bool(engines):
                raise Failed(done.stderr)
            given.append(dict(np.load(f"{folder}/out.npz")))
        for name, array in given[0].items():
            np.testing.assert_allclose(given[1][name], array, rtol=0.02,
                                       atol=0.02)


def isInAnyOrder():
    """With --nondeterministic cuDNN makes another plan, of the gradient alone."""
    with scratch() as folder:
        file, plan = f"{folder}/model.onnx", f"{folder}/plan.mlir"
        onnx.save(attentionOf("random", (2, 1, 1, ROWS)), file)
        run(tool("axopt"), file, "--quiet", *TRAIN, "--precision=bf16", "-o",
            plan)
        given, counts = [], []
        for flags in [], ["--nondeterministic"]:
            run(tool("axrun"), plan, "--random-inputs=1", "--warmup=1",
                "--iterations=1", "--device=cuda", "--no-host-fallback",
                *flags, "--output", f"{folder}/out.npz",
                env=os.environ | card() | {"AXRUN_TARGET": CUDNN,
                                           "AXOPT_CACHE": folder})
            given.append(dict(np.load(f"{folder}/out.npz")))
            counts.append(len(os.listdir(f"{folder}/cudnn")))
        if counts != [2, 3]:
            raise Failed(f"plans of cuDNN: {counts}")
        for name, array in given[0].items():
            np.testing.assert_allclose(given[1][name], array, rtol=1e-3)


def isShared(folder):
    """All layers of a model, and their gradients, read one mask; each gradient its
    layer's sums."""
    with scratch() as there:
        plan = f"{there}/plan.mlir"
        run(tool("axopt"), folder / "model.onnx", "--quiet", "--test-data",
            folder / "test_data_set_0", "--train", "--loss=mse(logits,target)",
            "--precision=bf16", "-o", plan)
        listed = run(tool("axrun"), plan, "--list-commands",
                     env=os.environ | card() | {"AXRUN_TARGET": CUDNN}).stdout
    forwards = re.findall(r": attention .* masked \((.*)\)", listed)
    backwards = re.findall(r": attention_gradient .* masked \((.*)\)", listed)
    masks = {call.split(", ")[3] for call in forwards} | {
        call.split(", ")[5] for call in backwards}
    sums = {call.split(", ")[5] for call in forwards}
    if (len(forwards) < 2 or len(backwards) < 2 or len(masks) != 1
            or {call.split(", ")[6] for call in backwards} != sums):
        raise Failed(f"{masks} and {sums} of\n{listed}")


def cases(every):
    for size in SIZE, 256:
        yield f"heads of {size} done by the CPU", isDoneByTheCpu, size
    yield "no number", isNoNumber
    yield "in any order", isInAnyOrder
    for keys in 64, 65:
        yield f"scores far below 0, {keys} keys", isFarBelow, keys
    for name in ("bert_eager_ts14_dyn", "bert_sdpa_ts20_dyn",
                 "bert_sdpa_dynamo23_static", "gpt2_eager_dynamo18_static",
                 "gpt2_sdpa_dynamo18_static", "llama_eager_dynamo18_static",
                 "llama_sdpa_ts17_dyn", "llama_sdpa_dynamo23_static"):
        yield f"one mask of {name}", isShared, MODELS / name
    bf16 = "--precision=bf16"
    for shape in (2, 1, 1, ROWS), (1, 1, ROWS, ROWS), (2, HEADS, ROWS, ROWS):
        for causal in False, True:
            name = f"{'x'.join(map(str, shape))}{' causal' * causal}"
            for empty in "NaN", "zero", "mean":
                yield (f"no keys {name} give {empty}", seesNoKey, shape,
                       causal, empty)
                if causal:
                    yield (f"no keys {name} in a window give {empty}", seesNoKey,
                           shape, causal, empty, 2)
            for mask in ("bool", "random", *(NUMBERS if every or not causal else ())):
                # Where all keys have the lowest number, scores are rounded away
                # by the CPU, and not by what is added for cuDNN.
                given = hiding(shape, isEmpty=mask != "lowest")
                yield (f"{mask} {name}", partial(
                    trains, mask=None if mask == "random" else given),
                    attentionOf(mask, shape, causal), bf16)
    square = 2, 1, ROWS, ROWS
    hides = partial(trains, mask=hiding(square))
    yield "fp16 bool", hides, attentionOf("bool", square), "--precision=fp16"
    yield "two ranks", hides, attentionOf("bool", square), bf16, "--dp=2"
    yield "heads of 256", hides, attentionOf("bool", square, size=256), bf16
    yield ("bf16 operands bool", partial(trains, mask=hiding((2, 1, 1, ROWS))),
           attentionOf("bool", (2, 1, 1, ROWS), narrow=True))
    for keys in 3, 9:
        yield (f"causal of {keys} keys", partial(
            trains, mask=hiding((2, 1, 1, keys))),
            attentionOf("bool", (2, 1, 1, keys), True, keys=keys), bf16)
