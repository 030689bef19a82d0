# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention that sees so many tokens back, or to both sides, with padding and without:
exports hide the rest by a mask of all queries and keys, which becomes a window. All
gives what onnxruntime gives, and trains on ranks as on one."""
import re

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from _onnx_text import model
from cases import Failed, run, scratch, tool

BATCH, LENGTH, WIDTH, HEADS, SIZE = 4, 96, 32, 4, 8
# What a query sees by its distance from a key, and what attention has for that.
BANDS = {
    "back": ("near = Less(distance, twenty)\nreached = GreaterOrEqual(distance, none)",
             r"{causal, .*window = 20"),
    "both sides": ("near = Less(distance, twenty)\nopposite = Neg(distance)\n"
                   "reached = Less(opposite, twenty)", "window = 39"),
    "unreached": ("near = Less(distance, many)\n"
                  "reached = GreaterOrEqual(distance, none)",
                  r"{causal, (?!.*window)"),
}
LAYOUTS = "", "--tp=2", "--dp=2", "--cp=2", "--tp=2 --cp=2"
TRAINED = "--tp=2", "--cp=2"
MASKS = {"padded": r"x1x1x96xi(1|64), .*empty_rows_mean",
         "alone": r"(^[^:]* scale|mask %\w+ : tensor<1x1x1x1xi64,)"}


def attention(band, isPadded):
    heads = f"float[{BATCH},{LENGTH},{WIDTH}]"
    made = model(
        f"{heads} x, bool[{BATCH},1,1,{LENGTH}] padding", f"{heads} y", f"""
places = Range(none, length, one)
row = Unsqueeze(places, last)
distance = Sub(row, places)
{BANDS[band][0]}
band = And(near, reached)
seen = {"And(padding, band)" if isPadded else "Identity(band)"}
mask = Where(seen, zero, lowest)
q0 = MatMul(x, wq)
k0 = MatMul(x, wk)
v0 = MatMul(x, wv)
q1 = Reshape(q0, apart)
k1 = Reshape(k0, apart)
v1 = Reshape(v0, apart)
q = Transpose<perm=[0, 2, 1, 3]>(q1)
k = Transpose<perm=[0, 2, 3, 1]>(k1)
v = Transpose<perm=[0, 2, 1, 3]>(v1)
scores = MatMul(q, k)
scaled = Mul(scores, scale)
added = Add(scaled, mask)
p = Softmax<axis=-1>(added)
mixed = MatMul(p, v)
turned = Transpose<perm=[0, 2, 1, 3]>(mixed)
joined = Reshape(turned, together)
y = MatMul(joined, wo)
""", f"int64 none = {{0}}, int64 one = {{1}}, int64 length = {{{LENGTH}}}, "
        "int64 twenty = {20}, int64 many = {96}, int64[1] last = {1}, "
        f"int64[4] apart = {{0, 0, {HEADS}, {SIZE}}}, "
        f"int64[3] together = {{0, 0, {WIDTH}}}, float zero = {{0}}, "
        "float scale = {0.35}", opset=20)
    random = np.random.default_rng(1)
    arrays = {name: random.standard_normal((WIDTH, WIDTH)) / 4
              for name in ("wq", "wk", "wv", "wo")}
    arrays["lowest"] = np.array(np.finfo(np.float32).min)
    for name, array in arrays.items():
        made.graph.initializer.append(
            numpy_helper.from_array(array.astype(np.float32), name))
    if not isPadded:
        del made.graph.input[1:]
    return made


def inputs(isPadded):
    """Padding in front, behind, longer than a window in between, and all."""
    random = np.random.default_rng(3)
    shape = BATCH, LENGTH, WIDTH
    made = {"x": random.standard_normal(shape).astype(np.float32)}
    if isPadded:
        padding = np.ones((BATCH, 1, 1, LENGTH), bool)
        padding[0, ..., :30] = padding[1, ..., 50:] = False
        padding[2, ..., 20:70] = padding[3] = False
        made["padding"] = padding
    return made


def agrees(band, mask, layout):
    made = attention(band, mask == "padded")
    feeds = inputs(mask == "padded")
    session = onnxruntime.InferenceSession(made.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    with scratch() as folder:
        onnx.save(made, f"{folder}/model.onnx")
        np.savez(f"{folder}/x.npz", **feeds)
        np.savez(f"{folder}/y.npz", y=session.run(None, feeds)[0])
        run(tool("axopt"), f"{folder}/model.onnx", *layout.split(), "--quiet", "-o",
            f"{folder}/plan.mlir")
        run(tool("axrun"), f"{folder}/plan.mlir", "--inputs", f"{folder}/x.npz",
            "--expect", f"{folder}/y.npz", "--rtol=1e-4", "--atol=1e-5")
        with open(f"{folder}/plan.mlir") as file:
            found = re.findall(r"ax\.attention .*", file.read())
    if len(found) != 1 or not all(
            re.search(how, found[0]) for how in (BANDS[band][1], MASKS[mask])):
        raise Failed(f"attention is not as expected: {found}")


def trains(band, mask, layout):
    """Three steps."""
    feeds = inputs(mask == "padded")
    random = np.random.default_rng(5)
    feeds["target"] = random.standard_normal(feeds["x"].shape).astype(np.float32)
    with scratch() as folder:
        onnx.save(attention(band, mask == "padded"), f"{folder}/model.onnx")
        np.savez(f"{folder}/x.npz", **feeds)
        for ranks, *flags in [["", "--output", f"{folder}/y.npz"],
                              [layout, "--expect", f"{folder}/y.npz", "--rtol=1e-4",
                               "--atol=1e-5"]]:
            run(tool("axopt"), f"{folder}/model.onnx", *ranks.split(), "--train",
                "--loss=mse(y,target)", "--optimizer=sgd(lr=0.5)", "--quiet", "-o",
                f"{folder}/plan.mlir")
            run(tool("axrun"), f"{folder}/plan.mlir", "--inputs", f"{folder}/x.npz",
                "--iterations=3", *flags)


def cases(every):
    for band in BANDS:
        for mask in MASKS:
            for layout in LAYOUTS:
                yield f"{band} {mask} {layout}", agrees, band, mask, layout
            for layout in TRAINED:
                yield (f"{band} {mask} trains {layout}", trains, band, mask,
                       layout)
