# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of bf16 and f16 for processors that have neither: they call nothing
that is not there, and choose and move the same numbers."""
import numpy as np
import onnx
from onnx import TensorProto

from _onnx_text import model
from cases import Failed, run, scratch, tool

# What chooses between two numbers, or moves them, in vectors and one by one.
NODES = """
n = Cast<to={kind}>(x)
m = Cast<to={kind}>(z)
where = Where(c, n, m)
least = Min(n, m)
most = Max(n, m)
half = Relu(n)
slope = LeakyRelu(n)
sign = Sign(n)
padded = Pad(n, pads)
turned = Transpose<perm=[1, 0]>(n)
joined = Concat<axis=1>(n, m)
picked = Gather<axis=1>(n, places)
low = Trilu<upper=0>(n)
largest = ReduceMax(n, axes)
sorted, order = TopK(n, three)
hot = OneHot(places, depth, both)
whole = Cast<to={kind}>(places)
pair = Cast<to={kind}>(levels)
both = Identity(pair)
"""
NAMES = ["where", "least", "most", "half", "slope", "sign", "padded", "turned",
         "joined", "picked", "low", "largest", "sorted", "hot", "whole"]


def chooses(kind):
    nodes = NODES.replace("{kind}", str(kind)).strip().splitlines()
    # Those of constants come first.
    nodes = nodes[-2:] + nodes[:-2] + [
        f"{name}32 = Cast<to={TensorProto.FLOAT}>({name})" for name in NAMES]
    return model("float[7,19] x, float[7,19] z, bool[7,19] c",
                 ", ".join(f"float {name}32" for name in NAMES),
                 "\n".join(nodes),
                 "int64[4] pads = {1, 2, 1, 0}, int64[3] places = {4, 0, 3}, "
                 "int64[1] axes = {1}, int64[1] three = {3}, "
                 "int64 depth = {5}, float[2] levels = {-3, 0.5}", opset=20)


def equal(kind):
    with scratch() as folder:
        onnx.save(chooses(kind), f"{folder}/model.onnx")
        run(tool("axopt"), f"{folder}/model.onnx", "--quiet", "-o",
            f"{folder}/plan.mlir")
        random = np.random.default_rng(1)
        x, z = random.standard_normal((2, 7, 19)).astype(np.float32)
        x[0, :4] = [np.nan, np.inf, -np.inf, -0.0]
        np.savez(f"{folder}/in.npz", x=x, z=z, c=random.integers(0, 2, (7, 19)) > 0)
        first = None
        for target in "native", "x86-64", "x86-64-v3":
            flags = [] if target == "native" else [f"--target={target}"]
            run(tool("axrun"), f"{folder}/plan.mlir", *flags, "--inputs",
                f"{folder}/in.npz", "--output", f"{folder}/out.npz")
            out = dict(np.load(f"{folder}/out.npz"))
            first = first or out
            for name, array in out.items():
                if not np.array_equal(array, first[name], equal_nan=True):
                    raise Failed(f"{name} for {target}: {array}, not {first[name]}")


def cases(every):
    yield "bf16", equal, TensorProto.BFLOAT16
    yield "f16", equal, TensorProto.FLOAT16
