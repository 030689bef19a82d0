# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""--precision=fp8: losses beside bf16, and beside one rank on every layout; the
scales, step by step, beside Transformer Engine's definition; states that are
saved, resharded and left as they were; products of eight bits on simulated
cards."""
import json
import os
import re
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from _training import HALVES, axrun, logged, losses, narrowed, small
from cases import TRAINING, Failed, run, scratch, tool

PIPELINE = ["--pp=2 --micro-batches=2"]
LAYOUTS = ["--dp=2", "--tp=2", "--micro-batches=2", "--pp=2 --micro-batches=2",
           "--dp=2 --zero=3"]
MORE = ["--pp=2", "--tp=2x2x1", "--dp=2 --tp=2",
        "--tp=2 --pp=2 --micro-batches=4", "--dp=2 --zero=1",
        "--recompute=full", "--tp=2 --sequence-parallel",
        "--pp=2 --micro-batches=4 --schedule=zero-bubble"]
MODELS = ["gpt2_tied", "llama"]


class Model:
    """One of test/data/training with data of many steps: its own, again and
    again, in batches of its own or of so many samples."""

    def __init__(self, folder, name, steps, kind=None, batch=None):
        self.folder, self.graph = folder, TRAINING / name / "model.onnx"
        if kind:
            onnx.save(narrowed(onnx.load(self.graph), kind),
                      f"{folder}/model.onnx")
            self.graph = f"{folder}/model.onnx"
        with np.load(TRAINING / name / "data.npz") as data:
            arrays = {key: array.reshape((-1, *array.shape[2:]))
                      for key, array in data.items()}
            own, *rest = data["input"].shape[1:]
        batch = batch or own
        self.shape = "x".join(map(str, [batch, *rest]))
        times = -(-steps * batch // len(arrays["input"]))
        np.savez(f"{folder}/data.npz", **{
            key: np.tile(array, (times, 1)) for key, array in arrays.items()})

    def plan(self, *flags):
        path = f"{self.folder}/plan.mlir"
        run(tool("axopt"), self.graph, "--train", "--shape",
            f"input={self.shape}", "--loss=cross_entropy(logits,labels)",
            "--optimizer=adamw(lr=1e-3)", "--clip-norm=1", "--quiet", *flags,
            "-o", path)
        return path

    def train(self, steps, *flags, more=(), **options):
        """The losses."""
        log = f"{self.folder}/log"
        Path(log).unlink(missing_ok=True)
        run(tool("axrun"), self.plan(*flags), "--data",
            f"{self.folder}/data.npz", "--steps", steps, "--no-shuffle",
            "--log", log, *more, **options)
        return np.array(losses(log))

    def numProducts(self, target, *flags):
        """Of factors of eight bits, among a rank's commands; and how many
        Linears have such."""
        plan = self.plan(*flags)
        listed = axrun(plan, f"--target={target}", "--list-commands").stdout
        lines = [line for line in listed.splitlines()
                 if ": matmul " in line and "f8E" in line]
        scaled = re.findall(r'ax.state @"?fp8\.([^" ]+)',
                            Path(plan).read_text())
        return len(lines), sum(
            not name.endswith((".input", ".gradient")) for name in scaled)


def alike(name, steps, layouts, kind=None):
    """The last losses within 2 % of bf16's, and of one rank's on all layouts;
    the first within what rounding to three bits makes of another order of
    sums."""
    with scratch() as folder:
        model = Model(folder, name, steps, kind)
        narrow = model.train(steps, *([] if kind else ["--precision=bf16"]))
        alone = model.train(steps, "--precision=fp8")
        if np.array_equal(alone, narrow):
            raise Failed("fp8 changes nothing")
        last = slice(-10, None)
        difference = abs(alone[last].mean() / narrow[last].mean() - 1)
        if not difference <= 0.02:
            raise Failed(f"fp8 ends {difference:.2%} off bf16")
        print(f"{name}, {steps} steps: {difference:.2%} off bf16")
        for layout in layouts:
            found = model.train(steps, "--precision=fp8", *layout.split())
            # Whatever differs at all grows from step to step, bf16's too.
            begin = slice(0, 20)
            apart = abs(found[last].mean() / alone[last].mean() - 1)
            if not np.allclose(found[begin], alone[begin], rtol=5e-3) or \
                    not apart <= 0.02:
                raise Failed(f"{layout}: {found}, on one rank {alone}")


def resumes(layout, other):
    """Bit by bit on the same layout, and on another one."""
    with scratch() as folder:
        model = Model(folder, "gpt2_tied", 6)
        flags = ["--precision=fp8(history=4)", *layout.split()]
        whole = model.train(6, *flags)
        save = ["--save", f"{folder}/run"]
        model.train(3, *flags, more=save)
        manifest = json.loads(
            Path(f"{folder}/run/step-3/manifest.json").read_text())
        states = [name for name in manifest["content"]["states"]
                  if name.startswith("fp8.")]
        # Of each of 17 Linears, one weight, one input, one gradient.
        if len(states) != 3 * 17:
            raise Failed(f"states: {states}")
        resumed = model.train(6, *flags, more=["--resume", f"{folder}/run"])
        if not np.array_equal(resumed, whole[3:]):
            raise Failed(f"{resumed} resumed, and {whole[3:]}")
        moved = model.train(6, "--precision=fp8(history=4)", *other.split(),
                            more=["--resume", f"{folder}/run"])
        if not np.allclose(moved, whole[3:], rtol=5e-3):
            raise Failed(f"{moved} on {other}, and {whole[3:]}")


CARDS = os.environ | {
    "AXRUN_CUDA_PATH": str(Path(tool("axrun")).parents[1] / "test/simgpu"),
    "AXRUN_CUDA_ALGORITHMS": "1"}


def card(capability):
    """The environment of a simulated one."""
    return CARDS | {"SIMGPU_CAPABILITY": capability,
                    "AXRUN_TARGET": f"sm_{capability}+sim"}


def onCards(name, layout, capabilities):
    """As on processors within rounding; and on cards that multiply eight bits
    the bits of one that does not, as the simulated ones add up in f64."""
    with scratch() as folder:
        model = Model(folder, name, 4, batch=2)
        flags = ["--precision=fp8", *layout.split()]
        wanted = model.train(4, *flags)
        found = {}
        for capability in capabilities:
            found[capability] = model.train(
                4, *flags, more=["--device=cuda", "--no-host-fallback"],
                env=card(capability))
        if not np.allclose(found["80"], wanted, rtol=5e-3):
            raise Failed(f"{found['80']} on a card, {wanted} on processors")
        for capability, losses in found.items():
            if not np.array_equal(losses, found["80"]):
                raise Failed(f"{losses} on sm_{capability}, and {found['80']}")
        narrow, linears = model.numProducts("sm_90", *flags)
        if not layout and narrow != 3 * linears:
            raise Failed(f"{narrow} products of {linears} Linears")
        if not narrow:
            raise Failed("no product has eight bits")
        wide, _ = model.numProducts("sm_80", *flags)
        if wide:
            raise Failed(f"{wide} products of eight bits on sm_80")


WIDENED = "factors of eight bits are multiplied as bf16, which gives the same: "


def ofOneNode():
    """A node that is two products of one matrix has a scale for each gradient."""
    random = np.random.default_rng(0)
    with scratch() as folder:
        graph = helper.make_graph(
            [helper.make_node("Conv", ["x", "w"], ["c"], name="conv"),
             helper.make_node("Resize", ["c", "", "s"], ["y"], name="resize",
                              mode="linear",
                              coordinate_transformation_mode="align_corners")],
            "g", [helper.make_tensor_value_info("x", 1, [2, 16, 16, 16])],
            [helper.make_tensor_value_info("y", 1, [2, 16, 32, 32])],
            [onnx.numpy_helper.from_array(
                random.standard_normal((16, 16, 1, 1), np.float32), "w"),
             onnx.numpy_helper.from_array(
                 np.array([1, 1, 2, 2], np.float32), "s")])
        onnx.save(helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
            f"{folder}/model.onnx")
        np.savez(f"{folder}/data.npz",
                 x=random.standard_normal((8, 16, 16, 16), np.float32),
                 t=random.standard_normal((8, 16, 32, 32), np.float32))
        found = []
        for flags in ["--precision=fp32"], ["--precision=fp8"], [
                "--precision=fp8", "--dp=2"]:
            log = f"{folder}/log{len(found)}"
            run(tool("axopt"), f"{folder}/model.onnx", "--train",
                "--loss=mse(y,t)", "--optimizer=sgd(lr=0.1)", "--quiet", *flags,
                "-o", f"{folder}/plan.mlir")
            axrun(f"{folder}/plan.mlir", "--data", f"{folder}/data.npz",
                  "--steps=8", "--log", log)
            found.append(np.array(losses(log)))
        text = Path(f"{folder}/plan.mlir").read_text()
    for scales in 'fp8.resize.gradient"', 'fp8.resize.gradient.1"':
        if scales not in text:
            raise Failed(f"no scales {scales}")
    if np.abs(found[1] / found[0] - 1).max() > 0.05 or \
            np.abs(found[2] / found[1] - 1).max() > 1e-3:
        raise Failed(f"losses: {found}")


def widenedIsSaid():
    """Once, by name, and why: a card that lacks such products, or a part of a
    Linear that is too narrow; by axrun, and by axopt for each target."""
    with scratch() as folder:
        weight = np.zeros((16, 16), np.float32)
        small(f"{folder}/model.onnx",
              [helper.make_node("MatMul", ["input", "w"], ["logits"],
                                name="fc")], {"w": weight}, [16, 16])
        plan = [f"{folder}/model.onnx", "--train", "--quiet",
                "--loss=mse(logits,target)", "--precision=fp8"]
        card = f"{WIDENED}sm_80 has no products in eight bits: fc"
        shape = f"{WIDENED}cuBLASLt has no products in eight bits of such " \
                "shapes: fc"
        for flags, targets, said in (
                ([], "sm_80", [card]), ([], "sm_90", []),
                (["--tp=2"], "sm_90", [shape]),
                (["--tp=2"], "sm_80,sm_100,x86-64", [card, shape])):
            compiled = run(tool("axopt"), *plan, *flags, "--compile",
                           f"--target={targets}", "-o", f"{folder}/plan.axc")
            told = [compiled.stderr]
            if "," not in targets:
                run(tool("axopt"), *plan, *flags, "-o", f"{folder}/plan.mlir")
                told.append(axrun(f"{folder}/plan.mlir", "--list-commands",
                                  f"--target={targets}").stderr)
            for text in told:
                if text.count(WIDENED) != len(said) or \
                        not all(line in text for line in said):
                    raise Failed(f"{flags} for {targets}: {text}")


class Scaling:
    """A tensor's as Transformer Engine has it."""

    def __init__(self, largest, margin, history, recent):
        self.largest, self.margin, self.recent = largest, margin, recent
        self.scale, self.history = np.float32(1), [np.float32(0)] * history

    def update(self, amax):
        self.history = [np.float32(amax)] + self.history[:-1]
        amax = self.history[0] if self.recent else np.max(self.history)
        with np.errstate(divide="ignore", over="ignore"):
            scale = np.float32(self.largest) / amax / np.float32(
                2 ** self.margin)
        if amax > 0 and np.isfinite(amax):
            self.scale = min(scale, np.finfo(np.float32).max)

    def state(self):
        return np.array([self.scale, *self.history], np.float32)


def stateOf(folder, step, name):
    """A state of a checkpoint of one rank."""
    file = next(Path(f"{folder}/run/step-{step}").glob("*.safetensors"))
    data = file.read_bytes()
    size = int.from_bytes(data[:8], "little")
    begin, end = json.loads(data[8:8 + size])[name]["data_offsets"]
    return np.frombuffer(data[8 + size + begin:8 + size + end], np.float32)


# Factors of each step's input: amax 0, so small that a scale would be
# infinite, and common ones.
FACTORS = [1, 0, 1e-38, 1e-38, 3, 0.5, 0.25, 100]


def follows(recipe, margin, history, recent, rows=16, width=16, onCard=False):
    """The input's scale and history after each step."""
    with scratch() as folder:
        random = np.random.default_rng(0)
        weight = random.normal(size=(width, width)).astype(np.float32)
        small(f"{folder}/model.onnx",
              [helper.make_node("MatMul", ["input", "w"], ["logits"],
                                name="fc")], {"w": weight}, [rows, width])
        x = random.normal(size=(len(FACTORS), rows, width)).astype(np.float32)
        x *= np.array(FACTORS, np.float32)[:, None, None]
        np.savez(f"{folder}/data.npz", input=x.reshape(-1, width),
                 target=np.zeros((len(FACTORS) * rows, width), np.float32))
        run(tool("axopt"), f"{folder}/model.onnx", "--train", "--quiet",
            "--loss=mse(logits,target)", "--optimizer=sgd(lr=0)",
            f"--precision=fp8{recipe}", "-o", f"{folder}/plan.mlir")
        if onCard:
            listed = axrun(f"{folder}/plan.mlir", "--target=sm_90",
                           "--list-commands").stdout
            kernels = set(re.findall(r": kernel (\S+)", listed))
            if not {"abs+reduce+mul+cast", "transpose"} <= kernels or \
                    "abs+reduce" in kernels:
                raise Failed(f"kernels: {sorted(kernels)}")
        run(tool("axrun"), f"{folder}/plan.mlir", "--data",
            f"{folder}/data.npz", "--steps", len(FACTORS), "--no-shuffle",
            "--save", f"{folder}/run", "--save-every=1", "--save-keep=0",
            *onCard * ["--device=cuda", "--no-host-fallback"],
            env=card("90") if onCard else None)
        wanted = Scaling(448, margin, history, recent)
        for step, batch in enumerate(x, 1):
            wanted.update(np.abs(batch).max())
            found = stateOf(folder, step, "fp8.fc.input")
            if not np.array_equal(found, wanted.state()):
                raise Failed(f"step {step}: {found}, not {wanted.state()}")


# In which step's input one number is so. Behind the product NaN becomes 0, and the
# weight has no gradient: no step is left out.
SPOILED = {2: np.inf, 6: np.nan}


def staysAsItWas(rows, width, onCard):
    """An infinite amax, and one that is no number, leave a scale alone while they are
    in the history; infinity is the largest number of eight bits, and NaN is NaN."""
    with scratch() as folder:
        random = np.random.default_rng(0)
        weight = random.normal(size=(width, width)).astype(np.float32)
        one = np.ones((1, width), np.float32)
        small(f"{folder}/model.onnx", [
            helper.make_node("MatMul", ["input", "w"], ["h"], name="fc"),
            helper.make_node("IsNaN", ["h"], ["isNaN"]),
            helper.make_node("Where", ["isNaN", "zero", "h"], ["numbers"]),
            helper.make_node("Mul", ["numbers", "one"], ["logits"])],
            {"w": weight, "zero": 0 * one, "one": one}, [rows, width])
        x = random.normal(size=(9, rows, width)).astype(np.float32)
        for step, value in SPOILED.items():
            x[step, 3, 5] = value
            x[step + 1] /= 10
        np.savez(f"{folder}/data.npz", input=x.reshape(-1, width),
                 target=np.zeros((len(x) * rows, width), np.float32))
        run(tool("axopt"), f"{folder}/model.onnx", "--train", "--quiet",
            "--frozen=w", "--loss=mse(logits,target)", "--optimizer=sgd(lr=0)",
            "--precision=fp8(history=2)", "-o", f"{folder}/plan.mlir")
        run(tool("axrun"), f"{folder}/plan.mlir", "--data",
            f"{folder}/data.npz", "--steps", len(x), "--no-shuffle", "--log",
            f"{folder}/log", "--save", f"{folder}/run", "--save-every=1",
            "--save-keep=0", *onCard * ["--device=cuda", "--no-host-fallback"],
            env=card("90") if onCard else None)
        scaling = Scaling(448, 0, 2, False)
        found = losses(f"{folder}/log")
        for step, batch in enumerate(x):
            most = 448 / scaling.scale
            y = np.clip(batch, -most, most) @ weight
            wanted = np.square(np.where(np.isnan(y), 0, y)).mean()
            if not abs(found[step] / wanted - 1) < 0.03:
                raise Failed(f"step {step}: loss {found[step]}, not {wanted}")
            scaling.update(np.abs(batch).max())
            state = stateOf(folder, step + 1, "fp8.fc.input")
            if not np.array_equal(state, scaling.state(), equal_nan=True):
                raise Failed(f"step {step}: {state}, not {scaling.state()}")


def nonfinite(layout):
    """A step that is left out changes no history; infinity in an input is one,
    for what it is multiplied with is no number then."""
    with scratch() as folder:
        model = Model(folder, "gpt2_tied", 4)
        flags = ["--precision=fp8(history=4)", *layout.split()]
        run(tool("axopt"), TRAINING / "fc_net" / "model.onnx", "--train",
            "--quiet", "--shape=input=32x64",
            "--loss=cross_entropy(logits,labels)", *flags, "-o",
            f"{folder}/plan.mlir")
        random = np.random.default_rng(0)
        inputs = random.normal(size=(96, 64)).astype(np.float32)
        labels = random.integers(0, 10, 96)
        lines = []
        for value in 0, np.nan:
            inputs[40, 3] = value
            np.savez(f"{folder}/data.npz", input=inputs, labels=labels)
            Path(f"{folder}/log").unlink(missing_ok=True)
            run(tool("axrun"), f"{folder}/plan.mlir", "--data",
                f"{folder}/data.npz", "--steps=3", "--no-shuffle", "--log",
                f"{folder}/log", "--on-nonfinite=skip")
            lines.append(logged(f"{folder}/log"))
        finite, skipped = lines
        if not skipped[1].get("skipped") or skipped[2].get("skipped"):
            raise Failed(f"steps: {skipped}")
        if not np.isfinite(skipped[2]["loss"]):
            raise Failed(f"a skipped step left its mark: {skipped}")


def cases(every):
    steps, layouts = (200, LAYOUTS + MORE) if every else (20, LAYOUTS)
    for name in MODELS:
        yield f"{name} {steps} steps", alike, name, steps, layouts
        for kind in HALVES:
            yield (f"{name} of {kind} {steps} steps", alike, name, steps,
                   layouts if every else PIPELINE + layouts[:2], kind)
    for name, layout in [("gpt2_tied", ""), ("llama", ""),
                         ("gpt2_tied", "--dp=2 --zero=3"), ("llama", "--tp=2")
                         ] + every * [
            ("gpt2_tied", "--tp=2"), ("llama", "--dp=2 --zero=3"),
            ("llama", "--pp=2 --micro-batches=2"),
            ("gpt2_tied", "--tp=2 --sequence-parallel")]:
        yield (f"{name} on cards {layout}", onCards, name, layout,
               ["80", "90"] + every * ["100"])
    yield "what is widened is said", widenedIsSaid
    yield "two products of one node", ofOneNode
    yield "resume", resumes, "--dp=2", "--tp=2"
    yield "resume pipeline", resumes, "--pp=2 --micro-batches=2", "--dp=2"
    for recipe, margin, history, recent in (
            ("", 0, 1024, False),
            ("(margin=2,history=3)", 2, 3, False),
            ("(history=2,amax=most_recent)", 0, 2, True)):
        yield f"scales {recipe}", follows, recipe, margin, history, recent
    # Of so many rows the largest is found by who rounds them.
    yield "scales on a card", follows, "(history=2)", 0, 2, False, 256, 160, True
    # Of sixteen rows one is much of the loss.
    for rows, width in (16, 16), (256, 160):
        for onCard in False, True:
            yield (f"not finite, {rows}x{width}{onCard * ', on a card'}",
                   staysAsItWas, rows, width, onCard)
    for layout in "", "--tp=2":
        yield f"skipped {layout}", nonfinite, layout
