# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results of which data decide how many there are: with room for them
(`axopt --max`) they are onnxruntime's, on every layout."""
import re

import numpy as np
from onnx import ValueInfoProto, numpy_helper

from _onnx_text import model, refuse
from _results import byOnnxruntime, compare, compiled, ours
from cases import Failed, run, scratch, tool

LAYOUTS = "", "--dp=2", "--tp=2", "--pp=2"
X = "float[6,4] x, float[4] z"
MASK = ("m = Greater(x, zero)\np = NonZero(m)\nr, c = Split<num_outputs=2>(p)\n"
        "zeros = Constant<value_ints=[0]>()\nrow = Squeeze(r, zeros)\n"
        "col = Squeeze(c, zeros)\nk = Gather(x, row)\n")
ONE = "float zero = {0}"
ROOM = "--max=p=20"

# Nodes behind MASK, which makes p [2, n], row [n], col [n] and k [n, 4]; the
# outputs are y and, if there is one, w.
ACCEPTED = {
    "NonZero": "y = Identity(p)",
    "Gather": "y = Identity(k)",
    "arithmetic": "a = Add(k, z)\nb = Exp(a)\ny = Mul(b, k)",
    "MatMul": "t = Transpose(x)\ny = MatMul(k, t)",
    "reductions of rows": "y = ReduceMean<keepdims=0>(k, ones)",
    "Softmax": "y = Softmax<axis=1>(k)",
    "ReduceSum": "y = ReduceSum<keepdims=0>(k, zeros)",
    "ReduceMean": "y = ReduceMean(k)",
    "ReduceMax": "y = ReduceMax(k, zeros)\nw = ReduceMin(k, zeros)",
    "ReduceProd": "y = ReduceProd(k, zeros)\nw = ReduceL2(k)",
    "ReduceLogSumExp": "y = ReduceLogSumExp(k, zeros)",
    "integers": "y = ReduceMax(col)\nw = ReduceMin(col)",
    "ArgMax": "y = ArgMax(k)\nw = ArgMin(k)",
    "CumSum": "y = CumSum(k, first)\nw = CumSum<reverse=1>(k, first)",
    "TopK": "y, i = TopK<axis=0>(k, two)\nw = Identity(i)",
    "TopK smallest": "y, w = TopK<axis=0, largest=0>(k, two)",
    "TopK of as many": "n = Shape(row)\nq = Min(n, three)\n"
                       "y, w = TopK<axis=0>(k, q)",
    "Slice": "y = Slice(k, ones, three)\n"
             "w = Slice(k, zeros, minus, zeros)",
    "first row": "y = Gather(k, first)",
    "last row": "l = Constant<value_int=-1>()\ny = Gather(k, l)",
    "Concat": "y = Concat<axis=0>(k, x, k)",
    "Concat of columns": "e = Exp(k)\ny = Concat<axis=1>(k, e)",
    "Shape": "y = Shape(k)\nw = Size(k)",
    "Reshape": "n = Shape(k)\ny = Reshape(k, n)\n"
               "s = Constant<value_ints=[-1,2,2]>()\nw = Reshape(k, s)",
    "Reshape to a line": "s = Constant<value_ints=[-1]>()\ny = Reshape(k, s)\n"
        "u = Unsqueeze(row, ones)\nf = Reshape(u, s)\nw = Add(f, col)",
    "Expand by TorchScript": "n = Shape(row)\ns = Concat<axis=0>(n, six)\n"
        "o = Constant<value_ints=[1,1]>()\nv = Constant<value_ints=[-1,-1]>()\n"
        "e = Equal(s, v)\nt = Where(e, o, s)\nu = Unsqueeze(row, ones)\n"
        "y = Expand(u, t)",
    # As detectors fill up to so many boxes.
    "Pad to one size": "n = Shape(row)\nb = Sub(room, n)\n"
        "a = Concat<axis=0>(zeros, ones, b, zeros)\ny = Pad(k, a, zero)\n"
        "s = Constant<value_ints=[-1]>()\nf = Reshape(k, s)\n"
        "l = Size(k)\nq = Constant<value_ints=[80]>()\nd = Sub(q, l)\n"
        "g = Concat<axis=0>(zeros, d)\nh80 = Pad(f, g)\n"
        "i = Constant<value_ints=[20,4]>()\nw = Reshape(h80, i)",
    "Expand": "n = Shape(row)\no = Concat<axis=0>(n, ones)\n"
              "e = Expand(zero, o)\nu = Unsqueeze(col, ones)\n"
              "f = Cast<to=1>(u)\ny = Add(e, f)",
    "ConstantOfShape": "n = Shape(k)\ny = ConstantOfShape(n)\n"
                       "w = ReduceSum(y)",
    "Range": "n = Shape(row)\no = Squeeze(n)\n"
             "y = Range(first, o, one)\nw = Mul(y, row)",
    "Range of fewer": "n = Shape(row)\nb = Sub(n, many)\no = Squeeze(b)\n"
                      "y = Range(first, o, one)",
    "Range of halves": "n = Shape(row)\no = Cast<to=1>(n)\nb = Mul(o, half)\n"
                       "q = Squeeze(b)\ny = Range(zero, q, unit)",
    "room that is left": "n = Shape(row)\nb = Sub(room, n)\n"
                         "y = ConstantOfShape(b)",
    "indices made of results": "g = Mul(x, keep)\ng1 = Greater(g, zero)\n"
        "h = NonZero(g1)\nh1, h2 = Split<num_outputs=2>(h)\n"
        "i = Sub(six, h1)\nj = Squeeze(i, zeros)\ny = Gather(x, j)\n"
        "u = Transpose(i)\nw = GatherND(x, u)",
    "results of results": "s = ReduceSum<keepdims=0>(k, ones)\n"
                          "g = Greater(s, zero)\nh = NonZero(g)\n"
                          "j = Squeeze(h, zeros)\ny = Gather(k, j)",
    "Compress": "v = Cast<to=9>(row)\nh = Compress<axis=0>(k, v)\n"
                "y = Identity(h)",
    "Unique": "t = Round(x)\nh, i, y, w = Unique(t)",
    "Unique unsorted": "t = Round(x)\nh, i = Unique<sorted=0>(t)\n"
                       "y = Identity(h)\nw = Identity(i)",
    "Softmax of results": "y = Softmax<axis=0>(k)\nw = LogSoftmax<axis=0>(k)",
    "Hardmax": "y = Hardmax<axis=0>(k)\nw = Hardmax<axis=1>(k)",
    "LpNormalization": "y = LpNormalization<axis=0>(k)\n"
                       "w = LpNormalization<axis=0, p=1>(k)",
    "standard deviations": "y = MeanVarianceNormalization<axes=[0]>(k)",
    "GatherND": "t = Transpose(p)\ny = GatherND(x, t)",
    "GatherND of results": "i = Unsqueeze(zeros, ones)\ny = GatherND(k, i)\n"
                           "w = CastLike(col, k)",
    # As PyTorch's masked_scatter takes as many of what it writes.
    "as many of another": "i = Constant<value_ints=[-1]>()\nf = Reshape(x, i)\n"
        "v = Exp(f)\nn = Shape(col)\nq = Slice(v, zeros, n)\n"
        "t = Transpose(p)\ny = ScatterND(x, t, q)\n"
        "x6 = Slice(x, zeros, n, zeros)\nw = Exp(x6)",
    "Pad": "b = Constant<value_ints=[1,0,2,1]>()\ny = Pad(k, b, half1)\n"
        "b2 = Constant<value_ints=[1,0]>()\nw = Pad(row, b2, one)",
    "GatherElements": "i = Constant<value_ints=[-1,0,1,-2]>()\n"
        "i2 = Unsqueeze(i, zeros)\ny = GatherElements<axis=0>(k, i2)\n"
        "n = Shape(k)\nj = ConstantOfShape(n)\nl = Cast<to=7>(j)\n"
        "w = GatherElements<axis=0>(k, l)",
    "scatters that add": "u = Unsqueeze(row, ones)\nn = Shape(k)\n"
        "a = Expand(u, n)\n"
        'y = ScatterElements<axis=0, reduction="add">(x, a, k)\n'
        'w = ScatterND<reduction="max">(x, u, k)',
    "scatters that replace": "e = Exp(k)\nu = Unsqueeze(row, ones)\n"
        "n = Shape(k)\nd = Sub(u, six)\na = Expand(d, n)\n"
        "y = ScatterElements<axis=0>(x, a, e)\nt = Transpose(p)\n"
        "f = GatherND(y, t)\ng = Neg(f)\nb = ScatterND(x, u, e)\n"
        "w = ScatterND(b, t, g)",
    "scatters among results": "i = Constant<value_ints=[-1,0,1,-1]>()\n"
        "i2 = Unsqueeze(i, zeros)\nz2 = Unsqueeze(z, zeros)\n"
        "a = ScatterElements<axis=0>(k, i2, z2)\n"
        "m1 = Unsqueeze(minus, zeros)\n"
        'y = ScatterND<reduction="add">(a, m1, z2)\n'
        "s = ReduceSum<keepdims=0>(k, ones)\n"
        "g = Greater(s, zero)\nh = NonZero(g)\nj = Transpose(h)\n"
        "v = GatherND(k, j)\ne = Exp(v)\nw = ScatterND(k, j, e)",
    # Columns of what is counted; what is none is no index of theirs.
    "scatters of columns": "i = Constant<value_ints=[1]>()\n"
        "i1 = Unsqueeze(i, zeros)\nn = Shape(k)\nt = Constant<value_ints=[1]>()\n"
        "r1 = Slice(n, zeros, ones)\ns = Concat<axis=0>(r1, t)\n"
        "j = Expand(i1, s)\no = Unsqueeze(row, ones)\nh2 = Mod(o, three)\n"
        "f = Cast<to=1>(o)\nj3 = Add(h2, t)\n"
        "y = ScatterElements<axis=1>(k, j3, f)\n"
        'w = ScatterElements<axis=1, reduction="add">(k, j, f)',
    "results in pieces": "s = Constant<value_ints=[-1,2]>()\n"
        "y = Reshape(k, s)\nu = Unsqueeze(k, both)\nw = Flatten<axis=4>(u)",
    # As TorchScript writes the one part of a split.
    "Slice to 0 and as many": "n = Shape(row)\ne = Add(zeros, n)\n"
        "y = Slice(k, zeros, e, zeros)",
    # As detectors put together boxes, and their labels, of several levels.
    "levels": "g = Greater(x, half)\nh = NonZero(g)\n"
        "h1, h2 = Split<num_outputs=2>(h)\nj = Squeeze(h1, zeros)\n"
        "l = Gather(x, j)\nb = Concat<axis=0>(k, l)\n"
        "t = Concat<axis=0>(row, j)\nf = Cast<to=1>(t)\nu = Unsqueeze(f, ones)\n"
        "y = Add(b, u)\nn = Shape(row)\nm2 = Shape(j)\ns = Add(n, m2)\n"
        "v = ConstantOfShape(s)\ni = Cast<to=7>(v)\nw = Add(i, t)",
    # As graph networks add an edge from each node to itself.
    "edges and loops": "l = Constant<value_ints=[0,1,2,3,4,5]>()\n"
        "f = Concat<axis=0>(row, l)\nt = Concat<axis=0>(col, l)\n"
        "s = Shape(row)\nq = Squeeze(s)\no = Constant<value_int=6>()\n"
        "e = Add(o, q)\nn = Unsqueeze(e, zeros)\ng = Expand(f, n)\n"
        "v = Gather(x, g)\nu = Unsqueeze(t, ones)\ns2 = Shape(v)\n"
        "a = Expand(u, s2)\n"
        'y = ScatterElements<axis=0, reduction="add">(x, a, v)\n'
        "w = Slice(f, zeros, n, zeros)",
    "boxes of results": "b = Abs(k)\nu = Unsqueeze(b, zeros)\n"
        "s = ReduceMax<keepdims=0>(k, ones)\nsc = Unsqueeze(s, both)\n"
        "y = NonMaxSuppression(u, sc, many, half)",
}
INITIALIZERS = (
    "float zero = {0}, int64[1] ones = {1}, int64 first = {0}, int64 one = {1},"
    " int64[1] two = {2}, int64[1] three = {3}, int64[1] minus = {-1},"
    " int64[2] both = {0, 1}, int64[1] many = {5}, float[1] half = {0.5},"
    " float half1 = {0.5},"
    " int64[1] room = {20}, int64[1] six = {6}, float unit = {1},"
    " float[6,1] keep = {0, 1, 1, 1, 1, 1}")

def made(nodes, initializers=INITIALIZERS, inputs=X):
    outputs = "float y" + (
        ", float w" if re.search(r"^(\w+, )*w =", nodes, re.M) else "")
    result = model(inputs, outputs, nodes, initializers, opset=18)
    # Types are not said: exporters say those that they know.
    for output in result.graph.output:
        output.ClearField("type")
    return result


def inputs(positive, seed):
    """Of 24 numbers so many are positive."""
    random = np.random.default_rng(seed)
    x = -random.uniform(0.1, 2, 24)
    x[random.permutation(24)[:positive]] *= -1
    return {"x": x.reshape(6, 4).astype(np.float32),
            "z": random.uniform(-1, 1, 4).astype(np.float32)}


def accepted(nodes, layouts):
    graph = made(MASK + nodes)
    rooms = [ROOM] + [f"--max={name}=24" for name in "h"
                      if re.search(r"^h\b.* = ", nodes, re.M)]
    with scratch() as folder:
        for layout in layouts:
            compiled(folder, graph, *rooms, *layout.split())
            for positive in 7, 20, 3:
                feeds = inputs(positive, positive)
                compare(byOnnxruntime(graph, feeds), ours(folder, feeds),
                        f"{layout} {positive} of 24")


def tooMany(layout):
    graph = made(MASK + "y = Identity(k)")
    with scratch() as folder:
        compiled(folder, graph, "--max=p=8", *layout.split())
        ours(folder, inputs(8, 1))
        np.savez(f"{folder}/in.npz", **inputs(9, 1))
        done = run(tool("axrun"), f"{folder}/plan.mlir", "--inputs",
                   f"{folder}/in.npz", "--output", f"{folder}/out2.npz",
                   expect=8)
        found = re.search(r"'p' \(at_most 8\): there are 9, and axopt --max "
                          r"gave room for 8", done.stderr)
        if not found:
            raise Failed(done.stderr)


def noSuchResult(layout):
    """A place behind the results is none, though there is room."""
    graph = made(MASK + "i = Constant<value_ints=[7]>()\n"
                 "i2 = Unsqueeze(i, zeros)\nz2 = Unsqueeze(z, zeros)\n"
                 "y = ScatterND(k, i2, z2)")
    with scratch() as folder:
        compiled(folder, graph, ROOM, *layout.split())
        ours(folder, inputs(8, 1))
        np.savez(f"{folder}/in.npz", **inputs(7, 1))
        done = run(tool("axrun"), f"{folder}/plan.mlir", "--inputs",
                   f"{folder}/in.npz", expect=8)
        if "'y' (check_indices" not in done.stderr:
            raise Failed(done.stderr)


def noneOfThem():
    """A branch for no results has none, and the other one's are counted."""
    graph = made(MASK + "n = Size(k)\ne = Equal(n, first)\n"
                 "y, w = If(e)<then_branch = t () => (float[0,4] a, int64[0] i) {"
                 "a = Constant<value = float[0,4] {}>()\n"
                 "i = Constant<value = int64[0] {}>()}, else_branch = f () => "
                 "(float[m,4] b, int64[m] j) {b = Exp(k)\nj = Identity(row)}>")
    with scratch() as folder:
        for layout in LAYOUTS:
            compiled(folder, graph, ROOM, *layout.split())
            for positive in 0, 1, 20:
                feeds = inputs(positive, positive)
                compare(byOnnxruntime(graph, feeds), ours(folder, feeds),
                        f"{layout} {positive} of 24")


# Nodes behind MASK of which 3 results make sizes that are none, or had no room;
# message.
NO_SIZE = {
    "negative": ("n = Shape(row)\nb = Sub(n, many)\ny = ConstantOfShape(b)",
                 "(at_most 15): there cannot be -2"),
    "unforeseen": ("n = Shape(row)\ne = Equal(n, three)\ns = Cast<to=7>(e)\n"
                   "t = Add(s, ones)\ny = ConstantOfShape(t)",
                   "(at_most 1): there are 2, and axopt --max gave room for 1 (a "
                   "size made of numbers of results has the room that all or none "
                   "of them make)"),
}


def noSize(nodes, message):
    with scratch() as folder:
        compiled(folder, made(MASK + nodes), ROOM)
        np.savez(f"{folder}/in.npz", **inputs(3, 1))
        done = run(tool("axrun"), f"{folder}/plan.mlir", "--inputs",
                   f"{folder}/in.npz", "--output", f"{folder}/o.npz", expect=8)
        if message not in done.stderr:
            raise Failed(done.stderr)


def bounds():
    """A number of x between bounds that are not one is any of these."""
    for low, high in ("2, 3", "5, 3"), ("5, 3", "5, 3"):
        graph = model(
            "float[4] x", "float y", "i = Cast<to=7>(x)\n"
            "m = ReduceMax<keepdims=0>(i)\nl = Max(m, low)\n"
            "e = Min(l, high)\nc = ConstantOfShape(e)\n"
            "r = ReduceMax(x)\ny = Add(c, r)",
            f"int64[2] low = {{{low}}}, int64[2] high = {{{high}}}", opset=18)
        refuse(graph, "decides shapes, so it must be known when compiling", 4)


def samples():
    """Adaptive RoiAlign: as many samples in a bin as fit the largest region."""
    graph = model(
        "float[1,2,8,8] x, float[3,4] r, int64[3] b", "float y",
        "y = RoiAlign<output_height=2, output_width=2>(x, r, b)", "", opset=16)
    rois = np.array([[0, 0, 7, 7], [1, 2, 3, 5.5], [2, 2, 2.5, 2.5]],
                    np.float32)
    feeds = {"x": np.random.default_rng(0).uniform(-1, 1, (1, 2, 8, 8))
             .astype(np.float32), "r": rois, "b": np.array([0, 0, 0])}
    with scratch() as folder:
        for flags in [], ["--max=y=4"], ["--max=y=9"]:
            compiled(folder, graph, *flags)
            compare(byOnnxruntime(graph, feeds), ours(folder, feeds), flags)
        compiled(folder, graph, "--max=y=3")
        np.savez(f"{folder}/in.npz", **feeds)
        done = run(tool("axrun"), f"{folder}/plan.mlir", "--inputs",
                   f"{folder}/in.npz", "--output", f"{folder}/2.npz", expect=8)
        if "there are 4, and axopt --max gave room for 3" not in done.stderr:
            raise Failed(done.stderr)


def padded():
    """The plan's own outputs, and what a plan may not say of them."""
    graph = made(MASK + "y = Identity(k)")
    with scratch() as folder:
        compiled(folder, graph, ROOM)
        got = ours(folder, inputs(7, 2), "--padded")
        if sorted(got) != ["y", "y.count"] or got["y"].shape != (20, 4) or \
                got["y.count"] != 7:
            raise Failed(f"{got}")
        with open(f"{folder}/plan.mlir") as file:
            plan = file.read()
        for old, new, message in [
                ("ax.counted_dim = 0", "ax.counted_dim = 2",
                 "has no dimension of results"),
                ('"y.count"', '"y.number"',
                 "has no number of results 'y.count'")]:
            if old not in plan:
                raise Failed(f"no {old} in the plan")
            with open(f"{folder}/odd.mlir", "w") as file:
                file.write(plan.replace(old, new))
            done = run(tool("axopt"), f"{folder}/odd.mlir", "--verify",
                       expect=5)
            if message not in done.stderr:
                raise Failed(done.stderr)
        graph = model("float[6,4] x", "float y, float w",
                      "r = Relu(x)\np = NonZero(r)\nt = Transpose(p)\n"
                      "y = GatherND(x, t)\nw = Exp(x)", opset=18)
        compiled(folder, graph, ROOM)
        np.savez(f"{folder}/data.npz", x=np.ones((6, 4), np.float32)
                 * np.array([1, 0, 1, 0], np.float32))
        done = run(tool("axrun"), f"{folder}/plan.mlir", "--data",
                   f"{folder}/data.npz", "--predict", f"{folder}/p.npz")
        if "left out: data decide how many results there are of 'y' (20)" not \
                in done.stderr or "y.count" in done.stderr:
            raise Failed(done.stderr)
        done = run(tool("axrun"), f"{folder}/plan.mlir", "--data",
                   f"{folder}/data.npz", "--predict", f"{folder}/q.npz",
                   "--padded", expect=2)
        if "--padded has no use in this run" not in done.stderr:
            raise Failed(done.stderr)


def edited():
    """A plan whose number of results is not what its outputs have room for."""
    graph = made(MASK + "y = Identity(k)")
    with scratch() as folder:
        compiled(folder, graph, ROOM)
        np.savez(f"{folder}/in.npz", **inputs(23, 1))
        with open(f"{folder}/plan.mlir") as file:
            plan = file.read()
        for old, new, message in [
                ("limit 20", "limit 1000000", "for 20 results along dimension "
                 "0, but the plan counts 23"),
                ("ax.counted_dim = 0", "ax.counted_dim = 1", "for 4 results "
                 "along dimension 1, but the plan counts ")]:
            if plan.count(old) != 1:
                raise Failed(f"{plan.count(old)} times {old} in the plan")
            if "counted" in old:
                np.savez(f"{folder}/in.npz", **inputs(7, 1))
            with open(f"{folder}/odd.mlir", "w") as file:
                file.write(plan.replace(old, new))
            done = run(tool("axrun"), f"{folder}/odd.mlir", "--inputs",
                       f"{folder}/in.npz", "--output", f"{folder}/out.npz",
                       expect=8)
            if "output 'y' has room " + message not in done.stderr:
                raise Failed(done.stderr)


def kept():
    """Kept values have counts as outputs have, and are cut as these are."""
    graph = made(MASK + "n = Shape(k)\ne = ConstantOfShape(n)\n"
                 "s = ReduceSum<keepdims=0>(k, zeros)\ny = Exp(s)")
    with scratch() as folder:
        compiled(folder, graph, ROOM, "--dump-tensors", "[ek]")
        feeds = inputs(7, 4)
        graph.graph.output.extend([ValueInfoProto(name=name) for name in "ek"])
        compare(byOnnxruntime(graph, feeds), ours(folder, feeds), "kept")
        got = ours(folder, feeds, "--padded")
        if sorted(got) != ["e", "e.count", "k", "k.count", "y"] or \
                got["k"].shape != (20, 4) or got["k.count"] != 7:
            raise Failed(f"{got}")


def sampled():
    """A batch of 1: names of dimensions say which counts samples, but none does
    that data count."""
    graph = model("float[b,4] x", "int64[b,2] y, float[b,4] w",
                  "p = NonZero(x)\ny = Transpose(p)\nw = Exp(x)", opset=18)
    with scratch() as folder:
        compiled(folder, graph, "--max=p=4", "--dim", "b=1")
        with open(f"{folder}/plan.mlir") as file:
            plan = file.read()
        if plan.count("ax.samples = 0") != 1 or \
                plan.count("ax.counted_dim = 0") != 1:
            raise Failed(plan[:2000])


def taken():
    """An output has the name that a count would have."""
    graph = made(MASK + "y = Identity(k)\nw = Exp(x)")
    graph.graph.node[-1].output[0] = "y.count"
    graph.graph.output[-1].name = "y.count"
    refuse(graph, "output 'y.count' has the name of how many results output 'y' "
           "has", 4, ROOM)


# Of a weight that is too large to be folded.
KNOWN = {
    "mask": "m = Greater(w, three)\np = NonZero(m)\nt = Transpose(p)\n"
            "y = GatherND(x, t)",
    "size": "s = ReduceMax<keepdims=0>(w)\ni = Cast<to=7>(s)\n"
            "u = Unsqueeze(i, zero)\nc = ConstantOfShape(u)\n"
            "r = Range(first, i, one)\nf = Cast<to=1>(r)\na = Add(c, f)\n"
            "e = Reshape(a, column)\nn = Concat<axis=0>(u, u)\n"
            "g = Expand(e, n)\ny = Mul(g, g)",
    "Unique": "l = Clip(w, zero1, three)\nr = Round(l)\n"
              "q, i, j, n = Unique<sorted=0>(r)\nc = Shape(q)\n"
              "e = Expand(zero1, c)\na = Add(q, e)\nf = Cast<to=1>(i)\n"
              "g = Add(a, f)\nh = Cast<to=1>(n)\nk = Add(g, h)\n"
              "o = Cast<to=1>(j)\nu = ReduceSum(o)\ny = Mul(k, u)",
    "Unique of a constant": "c = Constant<value_floats=[1.0,1.0,2.0]>()\n"
              "u = Unique(c)\nr = ReduceMax(x)\ny = Mul(u, r)",
    # A number of x, but between bounds that are one.
    "equal bounds": "i = Cast<to=7>(x)\nm = ReduceMax<keepdims=0>(i)\n"
                    "seven = Constant<value_int=7>()\nl = Max(m, seven)\n"
                    "e = Min(l, seven)\ns = Unsqueeze(e, zero)\n"
                    "c = ConstantOfShape(s)\nr = ReduceMax(x)\ny = Add(c, r)",
    "Compress": "b = Cast<to=9>(w)\nr = ReduceMax<keepdims=0>(w, one1)\n"
                "d = Greater(r, three)\ny = Compress<axis=0>(x, d)",
}


def known(nodes):
    """What no input decides needs no room."""
    graph = model("float[200,200] x", "float y", nodes,
                  "int64[1] zero = {0}, int64 first = {0}, int64 one = {1}, "
                  "int64[1] one1 = {1}, int64[2] column = {-1, 1}, "
                  "float three = {3}, float zero1 = {0}", opset=18)
    graph.graph.output[0].ClearField("type")
    random = np.random.default_rng(0)
    w = random.uniform(0, 3.03, (200, 200)).astype(np.float32)
    graph.graph.initializer.append(numpy_helper.from_array(w, "w"))
    feeds = {"x": random.uniform(-1, 1, (200, 200)).astype(np.float32)}
    with scratch() as folder:
        compiled(folder, graph)
        compare(byOnnxruntime(graph, feeds), ours(folder, feeds), nodes)


FLAGS = {
    "none": ([], 4, "data decide how many results there are; axopt --max "
             "'p=N' gives them room for N"),
    "a misspelled node": (["--max=foo=3"], 4, "gives them room for N; --max "
                          "foo is of no such node up to here"),
    "a value's name": (["--max=t=3"], 4, "gives them room for N; --max t is of "
                       "no such node up to here"),
    "another node": ([ROOM, "--max=k=3"], 2,
                     "--max k: data decide of no such node how many results "
                     "it has"),
    "no number": (["--max=p"], 2, "expected NODE=N, N from 1 to 16777216"),
    "training": ([ROOM, "--train", "--loss=mse(y,t)"], 2,
                 "--max is not for --train: --eval takes the model for "
                 "inference"),
}


def flags(given, code, message):
    refuse(made(MASK + "y = Identity(k)"), message, code, *given)


def cases(every):
    for name, nodes in ACCEPTED.items():
        yield f"accepted: {name}", accepted, nodes, \
            LAYOUTS if every else ("", "--tp=2")
    for layout in LAYOUTS:
        yield f"too many {layout}", tooMany, layout
        yield f"no such result {layout}", noSuchResult, layout
    for name, row in NO_SIZE.items():
        yield f"no size: {name}", noSize, *row
    yield "a branch for none", noneOfThem
    yield "bounds that are not one", bounds
    yield "adaptive samples", samples
    yield "padded", padded
    yield "edited", edited
    yield "kept values", kept
    yield "samples of a counted output", sampled
    yield "a count's name is taken", taken
    for name, nodes in KNOWN.items():
        yield f"known: {name}", known, nodes
    for name, row in FLAGS.items():
        yield f"flags: {name}", flags, *row
