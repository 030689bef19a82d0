# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linears that give q, k and v of several sizes, as language models have them:
ranks have their heads of each, and nothing of them is exchanged."""
import re
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from _contrib import DOMAIN
from _results import byOnnxruntime, compare, ours
from _training import axrun, close, losses, states
from cases import Failed, run, scratch, tool

BATCH, TOKENS, WIDTH, HEADS, HEAD, INNER, NARROW = 4, 6, 32, 4, 16, 64, 16
BLOCK = 16


class Writer:
    """Layers, one behind the other; `kv` heads of keys and values."""

    def __init__(self, kv, bits=False):
        self.kv, self.bits = kv, bits
        self.random = np.random.default_rng(0)
        self.nodes, self.weights = [], {}

    def add(self, op, inputs, *outputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, list(outputs),
                                           f"{op}/{outputs[0]}", **attributes))
        return outputs[0]

    def uniform(self, name, *shape, most=0.2):
        self.weights[name] = most * self.random.uniform(-1, 1, shape).astype(
            np.float32)
        return name

    def linear(self, x, name, k, n):
        if not self.bits:
            return self.add("MatMul", [x, self.uniform(f"{name}.weight", k, n)],
                            f"{name}.y")
        integers = lambda *shape: self.random.integers(0, 256, shape, np.uint8)
        blocks = k // BLOCK
        self.weights |= {
            f"{name}.weight": integers(n, blocks, BLOCK // 2),
            f"{name}.scales": self.random.uniform(0.005, 0.02, n * blocks).astype(
                np.float32),
            f"{name}.zeros": integers(n * ((blocks + 1) // 2))}
        return self.add("MatMulNBits", [x, f"{name}.weight", f"{name}.scales",
                                        f"{name}.zeros"], f"{name}.y",
                        domain=DOMAIN, K=k, N=n, bits=4, block_size=BLOCK)

    def layer(self, x, name, attend):
        n = (HEADS + 2 * self.kv) * HEAD
        qkv = self.linear(x, f"{name}.qkv", WIDTH, n)
        qkv = self.add("Add", [qkv, self.uniform(f"{name}.qkv.bias", n)],
                       f"{name}.sum")
        mixed = self.linear(attend(qkv, name), f"{name}.o", HEADS * HEAD, WIDTH)
        x = self.add("Add", [x, mixed], f"{name}.x")
        # Two ways of two widths.
        both = self.linear(x, f"{name}.up", WIDTH, INNER + NARROW)
        self.weights["widths"] = np.array([INNER, NARROW])
        self.add("Split", [both, "widths"], f"{name}.h", f"{name}.g", axis=2)
        h = self.linear(self.add("Relu", [f"{name}.h"], f"{name}.relu"),
                        f"{name}.down", INNER, WIDTH)
        g = self.linear(self.add("Sigmoid", [f"{name}.g"], f"{name}.s"),
                        f"{name}.narrow", NARROW, WIDTH)
        sums = self.add("Add", [h, g], f"{name}.both")
        return self.add("Add", [x, sums], f"{name}.out")

    def grouped(self, qkv, name):
        """As one operator, q, k and v together."""
        self.weights["lengths"] = np.full(BATCH, TOKENS - 1, np.int32)
        self.weights["total"] = np.array([TOKENS], np.int32)
        for table in "cos", "sin":
            if table not in self.weights:
                self.uniform(table, 16, HEAD // 2)
        return self.add(
            "GroupQueryAttention",
            [qkv, "", "", "", "", "lengths", "total", "cos", "sin"],
            f"{name}.a", f"{name}.keys", f"{name}.values", domain=DOMAIN,
            num_heads=HEADS, kv_num_heads=self.kv, do_rotary=1)

    def primitive(self, qkv, name):
        """As PyTorch's exporter writes it, which repeats k and v."""
        def heads(x, n, order):
            split = self.add("Reshape", [x, f"shape{n}"], f"{x}4")
            if n != HEADS:
                split = self.add("Unsqueeze", [split, "three"], f"{x}5")
                split = self.add("Expand", [split, "repeated"], f"{x}r")
                split = self.add("Reshape", [split, f"shape{HEADS}"], f"{x}h")
            return self.add("Transpose", [split], f"{x}t", perm=order)
        self.weights |= {
            "three": np.array([3]), "merged": np.array([0, 0, -1]),
            "repeated": np.array([1, 1, 1, HEADS // self.kv, 1]),
            "scale": np.array(HEAD ** -0.5, np.float32),
            "sizes": np.array([HEADS, self.kv, self.kv]) * HEAD,
            **{f"shape{n}": np.array([0, 0, n, HEAD]) for n in (HEADS, self.kv)}}
        q, k, v = (f"{name}.{which}" for which in "qkv")
        self.add("Split", [qkv, "sizes"], q, k, v, axis=2)
        q = heads(q, HEADS, [0, 2, 1, 3])
        k = heads(k, self.kv, [0, 2, 3, 1])
        v = heads(v, self.kv, [0, 2, 1, 3])
        scores = self.add("MatMul", [q, k], f"{name}.scores")
        scores = self.add("Mul", [scores, "scale"], f"{name}.scaled")
        shares = self.add("Softmax", [scores], f"{name}.shares", axis=3)
        mixed = self.add("MatMul", [shares, v], f"{name}.mixed")
        mixed = self.add("Transpose", [mixed], f"{name}.turned",
                         perm=[0, 2, 1, 3])
        return self.add("Reshape", [mixed, "merged"], f"{name}.a")

    def write(self, folder, attend, layers=2):
        x = "x"
        for i in range(layers):
            x = self.layer(x, f"layer{i}", attend)
        self.add("Identity", [x], "y")
        ends = [helper.make_tensor_value_info(
            name, TensorProto.FLOAT, [BATCH, TOKENS, WIDTH]) for name in "xy"]
        graph = helper.make_graph(
            self.nodes, "g", ends[:1], ends[1:],
            [numpy_helper.from_array(value, name)
             for name, value in self.weights.items()])
        made = helper.make_model(graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, 1)])
        onnx.save(made, f"{folder}/model.onnx")
        return made


def exchanged(plan):
    return re.findall(
        r" = ax\.(all_(?!slice)\w+|reduce_scatter|collective_permute) ", plan)


def predicted(flags, kv, bits, wanted):
    with scratch() as folder:
        writer = Writer(kv, bits)
        made = writer.write(folder, writer.grouped)
        feeds = {"x": writer.random.standard_normal((BATCH, TOKENS, WIDTH),
                                                    np.float32)}
        run(tool("axopt"), f"{folder}/model.onnx", *flags, "--strict", "--quiet",
            "-o", f"{folder}/plan.mlir")
        compare(byOnnxruntime(made, feeds), ours(folder, feeds), flags)
        text = Path(f"{folder}/plan.mlir").read_text()
        run(tool("axopt"), f"{folder}/plan.mlir", "--verify")
    found = exchanged(text)
    if wanted is not None and found != wanted:
        raise Failed(f"{flags}: exchanged {found}, not {wanted}")


def written(folder, kv):
    writer = Writer(kv)
    made = writer.write(folder, writer.primitive)
    np.savez(f"{folder}/data.npz", **{
        name: writer.random.standard_normal((4 * BATCH, TOKENS, WIDTH), np.float32)
        for name in ("x", "t")})
    return {each.name: numpy_helper.to_array(each)
            for each in made.graph.initializer}


def planFor(folder, name, *flags):
    run(tool("axopt"), f"{folder}/model.onnx", "--train", "--loss=mse(y,t)",
        *flags, "--quiet", "-o", f"{folder}/{name}.mlir")
    return f"{folder}/{name}.mlir"


def train(folder, plan, *flags):
    log = Path(f"{plan}.log")
    log.unlink(missing_ok=True)
    weights = f"{plan}.safetensors"
    axrun(plan, "--data", f"{folder}/data.npz", "--no-shuffle", "--log", log,
          "--save-weights", weights, *flags)
    return losses(log), dict(states(weights))


def closeWeights(got, wanted, what, tolerance=2e-4):
    if {name: x.shape for name, x in got.items()} != \
            {name: x.shape for name, x in wanted.items()}:
        raise Failed(f"{what}: {sorted(got)}, not {sorted(wanted)}")
    for name, value in wanted.items():
        close(got[name], value, tolerance, f"{what}: {name}")


def trained(flags, kv, optimizer="sgd(lr=0.05,momentum=0.9)"):
    """Losses and weights are those of one rank, by name and in the model's
    order; another layout goes on from a checkpoint, and so does one rank."""
    with scratch() as folder:
        model = written(folder, kv)
        # A bias of k changes nothing: what Adam makes of its gradient is noise.
        training = [f"--optimizer={optimizer}", "--clip-norm=0.5",
                    *(["--frozen=*.qkv.bias"] if "adam" in optimizer else
                      ["--frozen=layer0.qkv.bias",
                       "--frozen-rows=layer1.qkv.bias=3,70"])]
        one = planFor(folder, "one", *training)
        other = planFor(folder, "other", *training, *flags)
        if " dealt <" not in Path(other).read_text():
            raise Failed(f"{flags}: nothing is dealt")
        wanted, weights = train(folder, one, "--steps=6")
        if not wanted[-1] < wanted[0]:
            raise Failed(f"nothing is learnt: {wanted}")
        got, found = train(folder, other, "--steps=6")
        close(got, wanted, 1e-5, flags)
        closeWeights(found, weights, flags)
        changed = found["layer1.qkv.bias"] != model["layer1.qkv.bias"]
        if (found["layer0.qkv.bias"] != model["layer0.qkv.bias"]).any() or \
                changed[[3, 70]].any() or ("adam" not in optimizer
                                           and changed.sum() < len(changed) / 2):
            raise Failed("what is frozen was changed, or nothing")
        saved = f"{folder}/saved"
        for first, then in (other, one), (one, other), (other, other):
            train(folder, first, "--steps=3", "--save", saved)
            got, found = train(folder, then, "--steps=6", "--resume", saved)
            shutil.rmtree(saved)
            close(got[-3:], wanted[-3:], 1e-5, (flags, "resumed"))
            closeWeights(found, weights, (flags, "resumed"))
        # Another layout predicts with what was trained.
        train(folder, other, "--steps=6", "--save", saved)
        predicts(folder, weights, saved, flags)


def predicts(folder, weights, saved, flags):
    np.savez(f"{folder}/weights.npz", **weights)
    results = []
    for layout in [], flags:
        run(tool("axopt"), f"{folder}/model.onnx", "--quiet", "-o",
            f"{folder}/p.mlir", *(f for f in layout if "zero" not in f))
        for given in f"{folder}/weights.npz", saved:
            run(tool("axrun"), f"{folder}/p.mlir", "--random-inputs=1",
                "--weights", given, "--output", f"{folder}/p.npz")
            with np.load(f"{folder}/p.npz") as out:
                results.append(out["y"])
    for result in results[1:]:
        close(result, results[0], 1e-4, (flags, "predicted"))


def random():
    """Made-up weights are the same on every layout, as text and compiled."""
    with scratch() as folder:
        writer = Writer(2)
        writer.write(folder, writer.primitive)
        results = []
        for name, flags in (("one.mlir", []), ("two.mlir", ["--tp=2"]),
                            ("four.axc", ["--tp=4", "--compile"]),
                            ("own.axc", ["--tp=2", "--compile",
                                         "--embed-weights"])):
            run(tool("axopt"), f"{folder}/model.onnx", *flags, "--quiet", "-o",
                f"{folder}/{name}")
            for weights in ["--random-weights=3"], []:
                run(tool("axrun"), f"{folder}/{name}", "--random-inputs=1",
                    *weights, "--output", f"{folder}/y.npz")
                with np.load(f"{folder}/y.npz") as out:
                    results.append(out["y"])
    for i, result in enumerate(results):
        close(result, results[i % 2], 1e-5, ("random", i))


def cases(every):
    # One sum behind attention, and one behind the layers beside it.
    sums = ["all_reduce"] * 4
    for bits in 0, 1:
        what = "bits" if bits else "floats"
        for flags, kv, wanted in (
                ([], 2, []), (["--tp=2"], 2, sums), (["--tp=4"], 2, None),
                (["--tp=2x2x1"], 2, None), (["--dp=2", "--tp=2"], 2, sums),
                (["--pp=2", "--tp=2"], 2, sums), (["--tp=2"], 1, None),
                (["--tp=4"], 1, None), (["--tp=4"], 4, None)):
            yield f"predicted {what} kv={kv} {' '.join(flags)}", predicted, \
                flags, kv, bits, wanted
    yield "trained by adamw", trained, ["--tp=2"], 2, "adamw(lr=0.01)"
    for flags, kv in (("--tp=2", 2), ("--tp=4", 2), ("--tp=2x2x1", 2),
                      ("--tp=1x2x2", 2), ("--dp=2 --tp=2 --zero=1", 2),
                      ("--dp=2 --tp=2 --zero=3", 2), ("--pp=2 --tp=2", 2),
                      ("--tp=2 --micro-batches=2", 2), ("--tp=2", 1)):
        yield f"trained kv={kv} {flags}", trained, flags.split(), kv
    yield "random weights", random
