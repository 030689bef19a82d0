# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where data decide how many results there are (`axopt --max`), what would take the
padding behind them for results is refused."""
from _onnx_text import refuse
from max_results import INITIALIZERS, MASK, ROOM, made

WOULD_COUNT = (" room for would be taken for results here: its results may only "
               "be worked on one by one, or summed, compared or sorted")
LOST = " has is known only when it runs, and would not count here"
ANOTHER_SIZE = ("where there are results that data count, the shape says "
                "another size")
# Nodes behind MASK, message.
REFUSED = {
    "MatMul": ("t = Transpose(k)\ny = MatMul(t, k)", WOULD_COUNT),
    "Reshape of columns": ("t = Transpose(k)\n"
                           "s = Constant<value_ints=[-1]>()\ny = Reshape(t, s)",
                           WOULD_COUNT),
    "Reshape to the room": ("s = Constant<value_ints=[20,-1]>()\n"
                            "y = Reshape(k, s)", ANOTHER_SIZE),
    "Reshape to other results": ("n = Shape(row)\ne = Expand(x1, both20)\n"
                                 "s = Concat<axis=0>(n, minus)\n"
                                 "y = Reshape(e, s)", ANOTHER_SIZE),
    "Expand to the room": ("u = Unsqueeze(row, ones)\n"
                           "s = Constant<value_ints=[20,5]>()\n"
                           "y = Expand(u, s)", ANOTHER_SIZE),
    "Reshape to another number": (
        "q = NonZero(x)\nn = Shape<start=1>(q)\ns = Concat<axis=0>(n, minus)\n"
        "y = Reshape(k, s)", ANOTHER_SIZE),
    "Expand to another number": (
        "q = NonZero(x)\nn = Shape<start=1>(q)\ns = Concat<axis=0>(n, ones)\n"
        "u = Unsqueeze(row, ones)\ny = Expand(u, s)", ANOTHER_SIZE),
    "Expand along two dimensions": (
        "u = Unsqueeze(row, ones)\nn = Shape(row)\n"
        "s = Concat<axis=0>(ones, n)\ny = Expand(u, s)", ANOTHER_SIZE),
    "a size that nothing decides": (
        "n = Shape(row)\nb = Sub(n, room)\nt = Gather(both, b)\n"
        "y = ConstantOfShape(t)",
        "'input' depends on how many results there are in a way that is not "
        "understood"),
    "Slice from a number": (
        "n = Shape(row)\ny = Slice(k, n, n)",
        "input 'starts' (n) decides shapes, so it must be known when compiling, but "
        "how many results node 'p' has decides it"),
    "Slice to another number": (
        "n = Shape(row)\ne = Cast<to=9>(n)\ns = Cast<to=7>(e)\n"
        "y = Slice(k, zeros, s)", "input 'ends' (s) decides shapes"),
    "Slice to a number": (
        "n = Shape(row)\nb = Sub(n, two)\ny = Slice(k, zeros, b)",
        "input 'ends' (b) decides shapes, so it must be known when compiling, but "
        "how many results node 'p' has decides it"),
    "Split by numbers": (
        "n = Shape(row)\nb = Sub(n, two)\ns = Concat<axis=0>(two, b)\n"
        "y, w = Split<axis=0>(k, s)",
        "input 'split' (s) decides shapes, so it must be known when compiling, but "
        "how many results node 'p' has decides it"),
    "If there are any": (
        "n = Size(k)\ne = Equal(n, first)\n"
        "y = If(e)<then_branch = t () => (float[4] a) {a = Exp(z)}, "
        "else_branch = f () => (float[1] a) {a = ReduceSum(z)}>",
        "input 'cond' (e) decides which branch there is (both cannot be done: "
        "their outputs 0 differ in shape or type), so it must be known when "
        "compiling, but how many results node 'p' has decides it"),
    "other rows": ("y = Add(k, w20)", WOULD_COUNT),
    "other results": ("q = NonZero(x)\ni, j = Split<num_outputs=2>(q)\n"
                      "y = Concat<axis=0>(i, r)", WOULD_COUNT),
    "two dimensions": ("t = Unsqueeze(row, zeros)\nu = Unsqueeze(col, ones)\n"
                       "y = Mul(t, u)", WOULD_COUNT),
    "shape only": ("y = EyeLike(k)", LOST),
    # Of as much room, but how many there are is another number.
    "Pad by other results": (
        "q = NonZero(x)\ni, j = Split<num_outputs=2>(q)\ng = Squeeze(i, zeros)\n"
        "n = Shape(g)\nb = Sub(room, n)\n"
        "a = Concat<axis=0>(zeros, zeros, b, zeros)\ny = Pad(k, a, zero)",
        "input 'pads' (a) decides shapes, so it must be known when compiling, but "
        "how many results node"),
    "Pad but of seven": (
        "n = Shape(row)\nseven = Constant<value_ints=[7]>()\ne = Equal(n, seven)\n"
        "b = Sub(room, n)\nc2 = Where(e, six, b)\n"
        "a = Concat<axis=0>(zeros, zeros, c2, zeros)\ny = Pad(k, a, zero)",
        "input 'pads' (a) decides shapes"),
    "Pad up to a size at least": (
        "n = Shape(row)\nb = Sub(six, n)\ne = Max(b, zeros)\n"
        "a = Concat<axis=0>(zeros, zeros, e, zeros)\ny = Pad(k, a, zero)",
        "input 'pads' (a) decides shapes"),
    "scatters by other results": (
        "q = NonZero(x)\ni, j = Split<num_outputs=2>(q)\nt = Transpose(i)\n"
        "y = ScatterND(x, t, k)", WOULD_COUNT),
    "more than a dimension": (
        "o = Unsqueeze(row, ones)\nt = Constant<value_ints=[0]>()\n"
        "j = Mul(o, t)\nf = Cast<to=1>(o)\ny = ScatterElements<axis=1>(x, j, f)",
        "there is room for 20 results along a dimension of 6: a smaller --max "
        "gives them no more"),
    "Slice up to fewer": ("n = Shape(col)\nb = Sub(n, three)\n"
                          "y = Slice(x, zeros, b)",
                          "input 'ends' (b) decides shapes"),
    "fewer than places": (
        "i = Constant<value_ints=[-1]>()\nf = Reshape(x, i)\n"
        "v = Slice(f, ones, six)\nn = Shape(col)\nu = Slice(v, zeros, n)\n"
        "t = Transpose(p)\ny = ScatterND(x, t, u)",
        "there is room for 20 results to go to, and for 5 that go there: a "
        "smaller --max gives both the same"),
    "Reshape to another number of pieces": (
        "n = Shape(row)\nb = Add(n, room)\n"
        "s = Concat<axis=0>(b, two)\ny = Reshape(k, s)",
        "the shape says another size"),
    "steps": ("y = Slice(k, zeros, three, zeros, two)", WOULD_COUNT),
    "last of equal ones": ("y = ArgMax<select_last_index=1>(k)", WOULD_COUNT),
    "Concat of dimensions": ("t = Transpose(k)\ny = Concat<axis=0>(t, k)",
                             "results along several dimensions"),
    "two sizes": ("n = Shape(row)\nd = Concat<axis=0>(n, n)\n"
                  "y = ConstantOfShape(d)",
                  "more than one of 'input' is known only when it runs"),
    "scalar": ("s = ReduceSum<keepdims=0>(x)\nq = NonZero(s)\n"
               "y = Identity(q)", "a scalar that is not known"),
    "slices": ("q = Unique<axis=0>(x)\ny = Identity(q)",
               "slices along an axis"),
    "unique results": ("y = Unique(k)", "of nothing, or of what is itself counted"),
    "images": ("t = Unsqueeze(k, ones)\ns = ReduceMax(t, both)\n"
               "y = NonMaxSuppression(t, s, many, half)",
               "images or classes of which there may be fewer"),
}


def refused(nodes, message):
    graph = made(MASK + nodes, INITIALIZERS + ", float[20,4] w20 = {"
                 + ", ".join(["0"] * 80) + "}, float x1 = {1}, "
                 "int64[2] both20 = {20, 4}")
    refuse(graph, message, 4, ROOM, "--max=q=20") if "q =" in nodes else \
        refuse(graph, message, 4, ROOM)


def cases(every):
    for name, row in REFUSED.items():
        yield name, refused, *row
