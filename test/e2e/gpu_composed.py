# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What no library of a card does becomes kernels, and other work for a library: on
the simulated GPU the CPU is not asked, and the numbers are the CPU's."""
import os
import re
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from _onnx_text import model
from cases import MODELS, TRAINING, Failed, graphOf, run, scratch, tool
from devices import simulated

# With a weight in front, which has a gradient.
POOLS = model("float[4,3,11,10] input", "float[4,3] logits", """
scaled = Mul(input, scale)
a = MaxPool<kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]>(scaled)
b = AveragePool<kernel_shape=[3, 3], pads=[1, 1, 1, 1]>(a)
c = AveragePool<kernel_shape=[2, 2], strides=[2, 2]>(b)
d = GlobalAveragePool(c)
logits = Flatten(d)
""", "float[3,1,1] scale = {1, -2, 0.5}")
# Between convolutions, whose images cuDNN wants with channels innermost.
BETWEEN = model("float[4,8,11,10] input", "float[4,8] logits", """
a = Conv<kernel_shape=[3, 3], pads=[1, 1, 1, 1]>(input, v)
b = Relu(a)
c = MaxPool<kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]>(b)
d = Conv<kernel_shape=[1, 1]>(c, w)
e = AveragePool<kernel_shape=[2, 2], pads=[1, 0, 0, 1]>(d)
f = Conv<kernel_shape=[1, 1]>(e, w)
g = MaxPool<kernel_shape=[4, 3], dilations=[1, 2]>(f)
h = GlobalAveragePool(g)
logits = Flatten(h)
""")
for name, size in ("v", 3), ("w", 1):
    BETWEEN.graph.initializer.append(numpy_helper.from_array(
        np.random.default_rng(2).standard_normal((8, 8, size, size))
        .astype(np.float32) / (3 * size), name))
# Of rows and of columns, both with equal elements.
TOP_K = model(
    "float[4,3,50] input",
    "float[4,3,7] v, int64[4,3,7] i, float[4,2,50] w, int64[4,2,50] j", """
rounded = Round(input)
v, i = TopK(rounded, seven)
w, j = TopK<axis=1, largest=0>(rounded, two)
""", "int64[1] seven = {7}, int64[1] two = {2}")


# Each y is made of other operands, some of which are shared, and each c of the one
# before. Of z columns are added up.
NUMBERS = range(20)
UPDATES = model(
    ", ".join([f"float[48] x{i}" for i in NUMBERS] +
              [f"float[96,32] m{i}" for i in range(6)] + ["float[1] s"]),
    ", ".join([f"float[48] y{i}" for i in NUMBERS] +
              [f"float[32] z{i}" for i in range(6)] + ["float[48] c4"]),
    "\n".join([f"t{i} = Mul(x{i}, s)\ny{i} = Sub(x{(7 * i + 3) % 20}, t{i})"
               for i in NUMBERS] +
              [f"z{i} = ReduceSum<keepdims=0>(m{i}, rows)" for i in range(6)] +
              ["c0 = Identity(y0)"] +
              [f"u{i} = Mul(x{i}, s)\nv{i} = MatMul(c{i}, w)\nc{i + 1} = "
               f"Sub(v{i}, u{i})" for i in range(4)]),
    "int64[1] rows = {0}")
UPDATES.graph.initializer.append(numpy_helper.from_array(
    (np.random.default_rng(1).standard_normal((48, 48)) / 7).astype(np.float32),
    "w"))


def attentionOf(kvHeads):
    """Of bf16, four heads of queries; what it multiplies is trained in f32."""
    heads, size, width = 4, 8, 16
    made = model(f"float[2,6,{width}] input",
                 f"float[2,6,{heads * size}] logits", f"""
q = MatMul(input, wq)
k = MatMul(input, wk)
v = MatMul(input, wv)
qNarrow = Cast<to={TensorProto.BFLOAT16}>(q)
kNarrow = Cast<to={TensorProto.BFLOAT16}>(k)
vNarrow = Cast<to={TensorProto.BFLOAT16}>(v)
mixed = Attention<q_num_heads={heads}, kv_num_heads={kvHeads}, is_causal=1>(
    qNarrow, kNarrow, vNarrow)
logits = Cast<to={TensorProto.FLOAT}>(mixed)
""")
    random = np.random.default_rng(1)
    for name, count in ("wq", heads), ("wk", kvHeads), ("wv", kvHeads):
        weight = random.standard_normal((width, count * size)) / 4
        made.graph.initializer.append(numpy_helper.from_array(
            weight.astype(np.float32), name))
    return made


# In one, two and three dimensions, in groups, each channel by itself, of windows
# that do not begin where the padding does, transposed, and their gradients.
CONVOLUTIONS = model("float[4,6,9,10] input", "float[4,12] logits", """
a = Conv<pads=[1, 1, 1, 1]>(input, wide)
b = Relu(a)
c = Conv<strides=[2, 2], pads=[0, 1, 1, 0], group=2>(b, halves, bias)
d = Conv<pads=[2, 2, 2, 2], dilations=[2, 2], group=16>(c, alone)
e = ConvTranspose<strides=[2, 2], pads=[1, 1, 1, 1]>(d, back)
f = Reshape(e, signal)
g = Conv<strides=[2]>(f, taps)
h = Reshape(g, volume)
i = Conv<pads=[0, 1, 0, 0, 0, 1]>(h, cube)
j = GlobalAveragePool(i)
logits = Flatten(j)
""", "int64[3] signal = {4, 8, 63}, int64[5] volume = {4, 8, 5, 3, 2}")
for number, (name, shape) in enumerate({
        "wide": (8, 6, 3, 3), "halves": (16, 4, 3, 3), "bias": (16,),
        "alone": (16, 1, 3, 3), "back": (16, 8, 3, 3), "taps": (8, 8, 4),
        "cube": (12, 8, 2, 2, 2)}.items()):
    CONVOLUTIONS.graph.initializer.append(numpy_helper.from_array(
        (np.random.default_rng(number).standard_normal(shape) /
         np.prod(shape[1:]) ** 0.5).astype(np.float32), name))
CONVOLVE = ["--train", "--loss=mse(logits,target)", "--optimizer=sgd(lr=0.1)"]
KINDS = {"conv", "conv_transpose", "conv_weight_gradient"}


def card():
    return simulated(Path(os.environ["AX_BIN"]).parent, "random:1")


def results(folder, plan, device, target, *flags):
    environment = {"AXRUN_DEVICE": device, "AXOPT_CACHE": str(folder)}
    if device == "cuda":
        environment |= card() | ({"AXRUN_TARGET": target} if target else {})
        flags += "--no-host-fallback",
    run(tool("axrun"), plan, "--random-inputs=1", *flags, "--output",
        f"{folder}/out.npz", env=os.environ | environment)
    return dict(np.load(f"{folder}/out.npz"))


def isTheSame(made, *flags, steps=None, rtol=1e-5, atol=1e-6, target=None,
              command="", inputs={}):
    """`made`: a model, or a plan as text. `command`: what one of the card's is,
    by a regular expression. `inputs`: others are random."""
    with scratch() as folder:
        file, plan = f"{folder}/model.onnx", f"{folder}/plan.mlir"
        if isinstance(made, str):
            Path(plan).write_text(made, encoding="utf-8")
        else:
            onnx.save(made, file)
            run(tool("axopt"), file, "--quiet", *flags, "-o", plan)
        np.savez(f"{folder}/inputs.npz", **inputs)
        listed = run(tool("axrun"), plan, "--list-commands",
                     env=os.environ | card() |
                     ({"AXRUN_TARGET": target} if target else {})).stdout
        if not re.search(command, listed):
            raise Failed(f"no {command}:\n{listed}")
        before = None
        for warmup in range(steps or 1):
            taken = [f"--warmup={warmup}", "--iterations=1"] if steps else []
            taken += ["--inputs", f"{folder}/inputs.npz"] if inputs else []
            wanted = results(folder, plan, "cpu", None, *taken)
            got = results(folder, plan, "cuda", target, *taken)
            for name, array in wanted.items():
                np.testing.assert_allclose(got[name], array, rtol=rtol,
                                           atol=atol)
            if before and all(np.array_equal(before[name], wanted[name])
                              for name in wanted):
                raise Failed("nothing is learnt")
            before = wanted


def training(*layout):
    """The gradients of each pool, to the weight in front of them."""
    isTheSame(POOLS, "--train", "--trainable=scale", "--loss=mse(logits,target)",
              "--optimizer=sgd(lr=0.5)", *layout, steps=3)


def poolsBetween(*layout):
    """One rank rounds as the CPU; a gradient that went elsewhere would show."""
    rtol = 0.02 if layout else 1e-5
    isTheSame(BETWEEN, "--train", "--loss=mse(logits,target)",
              "--optimizer=sgd(lr=0.02)", "--precision=bf16", *layout, steps=3,
              rtol=rtol, atol=rtol / 10, target="sm_90+cudnn+sim",
              command="conv_weight_gradient")


def attends(kvHeads, *layout):
    """A card has products of bf16, with what is between them in f32; the CPU
    all of it in f32."""
    isTheSame(attentionOf(kvHeads), "--train", "--loss=mse(logits,target)",
              "--optimizer=sgd(lr=0.5)", *layout, steps=3, rtol=0.02,
              atol=0.02)


def isLeftToCudnn(kvHeads, *layout):
    """Where ranks share a head, its gradient is a sum of theirs, in f32."""
    command = " attention " if layout else " attention(?s:.*) attention_gradient "
    isTheSame(attentionOf(kvHeads), "--train", "--loss=mse(logits,target)",
              "--optimizer=sgd(lr=0.5)", *layout, steps=3, rtol=0.02, atol=0.02,
              target="sm_90+cudnn+sim", command=command)


def geluLayers():
    """Two layers like a transformer's, with weights that come to 1 a sum."""
    width, hidden = 16, 64
    made = model(f"float[8,3,{width}] input", f"float[8,3,{width}] logits", """
a = MatMul(input, up)
b = Add(a, bias)
c = Gelu<approximate="tanh">(b)
d = MatMul(c, down)
logits = Add(d, last)
""", opset=20)
    random = np.random.default_rng(1)
    for name, shape in (("up", (width, hidden)), ("down", (hidden, width)),
                        ("bias", (hidden,)), ("last", (width,))):
        weight = random.standard_normal(shape) / shape[0] ** 0.5
        made.graph.initializer.append(numpy_helper.from_array(
            weight.astype(np.float32), name))
    return made


def trainsGelu(precision, *layout, command):
    tolerance = {"bf16": 0.03, "fp16": 4e-3}[precision]
    isTheSame(geluLayers(), "--train", "--loss=mse(logits,target)",
              "--optimizer=sgd(lr=0.5)", f"--precision={precision}", *layout,
              steps=3, rtol=tolerance, atol=tolerance / 10, target="sm_90+sim",
              command=command)


def addsUp(precision, layout):
    """Products add to the gradients of the micro-batches before, where these
    lie; of the first one they write them."""
    tolerance = {"fp32": 2e-5, "bf16": 0.03}[precision]
    isTheSame(geluLayers(), "--train", "--loss=mse(logits,target)",
              "--optimizer=sgd(lr=0.5)", f"--precision={precision}",
              "--micro-batches=4", *layout.split(), steps=3, rtol=tolerance,
              atol=tolerance / 10, target="sm_90+sim",
              command=r"(matmul [^\n]*)\((b\d+, b\d+), (b\d+)\)([^\n]*), in the "
                      r"first [^\n]*\n *\d+: \1residual \(\2, \3, \3\)\4, in the "
                      r"other micro-batches\n")


def hidesLogits(precision):
    """What is added to logits is more than 16 bits hold, or count to."""
    made = geluLayers()
    last = {tensor.name: tensor for tensor in made.graph.initializer}["last"]
    values = numpy_helper.to_array(last).copy()
    values[[3, 7]] = -1e9
    values += 1000.3
    last.CopyFrom(numpy_helper.from_array(values, "last"))
    tolerance = {"bf16": 0.03, "fp16": 4e-3}[precision]
    isTheSame(made, "--train", "--loss=cross_entropy(logits,target)",
              "--optimizer=sgd(lr=0.02)", f"--precision={precision}", steps=2,
              rtol=tolerance, atol=tolerance / 10, target="sm_90+sim")


def joinsGradients():
    """Those of q, k and v are parts of one tensor, which the CPU writes, too,
    where cuDNN refuses to."""
    with scratch() as folder:
        plan = f"{folder}/plan.mlir"
        run(tool("axopt"), TRAINING / "gpt2_tied" / "model.onnx", "--quiet",
            "--shape", "input=1x32", "--train", "--loss=mse(logits,target)",
            "--precision=bf16", "-o", plan)
        target = {"AXRUN_TARGET": "sm_90+cudnn+sim", "AXOPT_CACHE": folder}
        listed = run(tool("axrun"), plan, "--list-commands",
                     env=os.environ | card() | target).stdout
        if not re.search(r" attention_gradient .*\+\d+", listed):
            raise Failed(f"no joined gradients:\n{listed}")
        given = []
        for engines in {}, {"SIMGPU_CUDNN_ENGINES": "0"}:
            done = run(tool("axrun"), plan, "--random-inputs=1", "--warmup=2",
                       "--iterations=1", "--device=cuda", "--output",
                       f"{folder}/out.npz",
                       env=os.environ | card() | target | engines)
            if ("lacks attention_gradient" in done.stderr) != bool(engines):
                raise Failed(done.stderr)
            given.append(dict(np.load(f"{folder}/out.npz")))
            # A plan that is kept would be taken.
            target["AXOPT_CACHE"] = f"{folder}/other"
        for name, array in given[0].items():
            np.testing.assert_allclose(given[1][name], array, rtol=0.01,
                                       atol=0.01)


def ofViews():
    """cuDNN wants rows that begin at multiples of 16 bytes, none repeated."""
    made = model("float16[8,4,16,24] x, float16[1,4,16,8] one",
                 "float16[8,4,16,8] y, float16[8,4,16,8] z", """
k = Slice(x, four, twelve, three)
y = Attention(k, k, k)
q = Expand(one, shape)
v = Slice(x, eight, sixteen, three)
z = Attention(q, k, v)
""", "int64[1] four = {4}, int64[1] twelve = {12}, int64[1] three = {3}, "
     "int64[1] eight = {8}, int64[1] sixteen = {16}, int64[4] shape = {8,4,16,8}")
    isTheSame(made, rtol=0.01, atol=0.01, target="sm_90+cudnn+sim",
              command=r" attention(?s:.*) attention ")


def padded():
    """A product whose columns, and one whose sums, are no multiple of 8."""
    odd = 1027
    made = model("float16[4096,1024] x", "float16[4096,1024] y", """
h = MatMul(x, w)
y = MatMul(h, v)
""")
    random = np.random.default_rng(1)
    for name, shape in ("w", (1024, odd)), ("v", (odd, 1024)):
        made.graph.initializer.append(numpy_helper.from_array(
            (random.standard_normal(shape) / 32).astype(np.float16), name))
    isTheSame(made, rtol=0.01, atol=0.01, command="matmul 4096x1032 x 1032x1024")


def convolves(made, *flags, precision="fp32", target="sm_90+cudnn+sim",
              steps=2):
    """By cuDNN, forwards and backwards, in the type of the precision. What is
    narrow is rounded behind sums of another order."""
    kind = {"fp32": "f32", "bf16": "bf16", "fp16": "f16"}[precision]
    command = rf" conv [^\n]* {kind} (?s:.*) conv_weight_gradient [^\n]* {kind} "
    tolerance = {"fp32": 2e-5, "bf16": 0.03, "fp16": 4e-3}[precision]
    isTheSame(made, *CONVOLVE, f"--precision={precision}", *flags, steps=steps,
              rtol=tolerance, atol=tolerance / 10, target=target,
              command=command)


def modelConvolves(folder, precision):
    data = folder / "test_data_set_0"
    convolves(onnx.load(folder / "model.onnx"), "--test-data", data,
              precision=precision, steps=1)


def leaves(source, convolutions):
    """Of a model in training nothing to the CPU, or what no cuDNN does."""
    graph = graphOf(source)
    with scratch() as folder:
        plan = f"{folder}/plan.mlir"
        run(tool("axopt"), graph, "--quiet", "--test-data",
            source / "test_data_set_0", "--train", "--loss=mse(logits,target)",
            "-o", plan)
        old = {"SIMGPU_CUDNN_VERSION": "90902"} if convolutions else {}
        said = run(tool("axrun"), plan, "--random-inputs=1",
                   env=os.environ | card() | old).stderr
    left = set(re.findall(r"device 'cuda' lacks (\w+)", said))
    nodes = onnx.load(graph, load_external_data=False).graph.node
    isLeft = convolutions and any(node.op_type == "Conv" for node in nodes)
    if not left <= KINDS or bool(left) != isLeft:
        raise Failed(f"the CPU does {left}")
    if isLeft and "of version 9.9, and 9.16 is needed" not in said:
        raise Failed(f"the CPU convolves, and it is not said why: {said}")


def cases(every):
    for folder in sorted(MODELS.iterdir()):
        yield f"{folder.name} leaves nothing", leaves, folder, False
        if "net" in folder.name:
            yield f"{folder.name} without cuDNN", leaves, folder, True
    for precision in "fp32", "bf16", "fp16":
        for layout in [], ["--dp=2"], ["--tp=2"]:
            name = " ".join(layout) or "one rank"
            yield (f"convolutions of {precision} {name}", partial(
                convolves, precision=precision), CONVOLUTIONS, *layout)
        if every or precision == "bf16":
            yield (f"resnet of {precision}", modelConvolves,
                   MODELS / "resnet_eager_ts17_dyn", precision)
    yield "convolutions of code without cuDNN", partial(
        convolves, target="sm_90+sim"), CONVOLUTIONS
    for layout in [], ["--dp=2"]:
        name = " ".join(layout) or "one rank"
        yield f"pools {name}", isTheSame, POOLS, *layout
        yield f"pools in training {name}", training, *layout
        yield f"pools between convolutions {name}", poolsBetween, *layout
        yield f"top-k {name}", isTheSame, TOP_K, *layout
    # One head of keys and values: its query heads are split.
    for kvHeads, layout in (2, []), (1, ["--tp=2"]):
        name = " ".join(layout) or "one rank"
        yield f"attention of bf16 in training {name}", attends, kvHeads, *layout
        yield f"attention by cuDNN {name}", isLeftToCudnn, kvHeads, *layout
    for precision in "bf16", "fp16":
        # A product has a bias and GELU, and another one the gradient of that;
        # where the gradient is a list's of its own, both are kernels.
        layouts = [], ["--tp=2"], ["--dp=2", "--micro-batches=2"], ["--recompute=full"]
        for layout in layouts if every or precision == "bf16" else layouts[:1]:
            yield (" ".join([f"GELU of {precision} in training", *layout]), partial(
                trainsGelu,
                command=r" bias gelu_tanh kept (?s:.*) gelu_tanh gradient "),
                precision, *layout)
        yield f"GELU of {precision} in a pipeline", partial(
            trainsGelu, command="gelu_tanh"), precision, "--pp=2", "--micro-batches=2"
        yield f"hidden logits of {precision}", hidesLogits, precision
    for precision in "fp32", "bf16":
        layouts = ("", "--pp=2 --schedule=zb-v", "--dp=2", "--tp=2", "--zero=1 --dp=2",
                   "--recompute=full", "--pp=2 --schedule=zero-bubble",
                   "--pp=2 --schedule=gpipe")
        for layout in layouts if every or precision == "fp32" else layouts[:2]:
            yield (f"gradients of {precision} added up {layout}".rstrip(), addsUp,
                   precision, layout)
    yield "attention's gradients joined", joinsGradients
    yield "attention of views", ofViews
    yield "padded products", padded
    # Eight updates, and four sums, at most; the CPU has a kernel for each.
    yield "joined kernels", partial(isTheSame, command=(
        r"(?s) kernel (?:mul\+sub\+){4}.* kernel (?:reduce\+){3}reduce \(")), \
        UPDATES
