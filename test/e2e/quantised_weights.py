# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers, scales and zero points of quantised layers are weights like others: a
file that lacks some is refused, and none is without effect in silence."""
import numpy as np
from onnx import TensorProto

from _weights import close, expect
from _weights_model import Model, node, normal, random
from cases import run, scratch, tool


def quantised():
    """Integers of a quantised model are weights, however few."""
    for rows in 4, 512:
        nodes = [node("DequantizeLinear", ["w_q", "scale", "zero"], ["w"]),
                 node("MatMul", ["x", "w"], ["y"])]
        old = {"w_q": random.integers(-9, 9, (rows, 8)).astype(np.int8),
               "scale": np.array(0.25, np.float32),
               "zero": np.array(1, np.int8)}
        # Sums of these are exact.
        x = random.integers(-9, 9, (4, rows)).astype(np.float32)
        with scratch() as folder:
            model = Model(folder, nodes, old, x=x)
            new = old | {"w_q": random.integers(-9, 9, (rows, 8)
                                                ).astype(np.int8)}
            wanted = x @ ((new["w_q"] - 1.) * 0.25)
            model.write(new)
            if rows == 4:
                expect(model.axrun("--weights", model.path, expect=6),
                       "'w_q' is a constant of the plan")
            else:
                model.axrun("--weights", model.path)
                close(np.load(model.folder / "y.npy"), wanted)
            model.export()
            model.compile("out")
            model.axrun(plan="out")
            close(np.load(model.folder / "y.npy"), wanted)
            # Weights of the model before it was quantised are none of it.
            model.write({"scale": np.array(0.5, np.float32),
                         "w": normal(rows, 8)})
            expect(model.export(expect=6), "do not have 'w_q', 'zero', which")
            expect(model.export("--partial", expect=6),
                   "the model has no place for 'w'")
            model.write({"bias": normal(3), "scale": np.array(0.5, np.float32)})
            expect(model.export("--leave-out=bias", "--partial"))


def biases():
    """New biases beside old quantised weights."""
    nodes = [node("DequantizeLinear", ["w_q", "scale", "zero"], ["w"]),
             node("MatMul", ["x", "w"], ["m"]), node("Add", ["m", "b"], ["y"])]
    with scratch() as folder:
        model = Model(folder, nodes, {
            "w_q": random.integers(-9, 9, (8, 8)).astype(np.int8),
            "scale": np.array(0.25, np.float32), "zero": np.array(1, np.int8),
            "b": normal(8)})
        model.write({"b": normal(8)})
        expect(model.export(expect=6), "do not have 'w_q', 'scale', 'zero', "
               "which would keep")
        model.export("--partial")


def quantisedClones():
    """Two layers of the same integers, of which an exporter made one."""
    nodes = [node("DequantizeLinear", ["l.0.w_q", "scale"], ["w"]),
             node("MatMul", ["x", "w"], ["h"]),
             node("MatMul", ["h", "w"], ["y"])]
    integers = [random.integers(-9, 9, (64, 64)).astype(np.int8)
                for _ in range(3)]
    x = normal(4, 64)
    with scratch() as folder:
        model = Model(folder, nodes, {"l.0.w_q": integers[0],
                                      "scale": np.array(0.25, np.float32)}, x=x)
        scale = np.array(0.25, np.float32)
        model.refuses({"l.0.w_q": integers[1], "l.1.w_q": integers[2],
                       "scale": scale}, "'l.1.w_q' differs from 'l.0.w_q'")
        w = integers[1] * scale
        model.takes({"l.0.w_q": integers[1], "l.1.w_q": integers[1],
                     "scale": scale, "mask": np.tri(4, 7, dtype=np.uint8)},
                    x @ w @ w)


def quantisedLayer():
    """All that a quantised layer has, also its bias of 32 bits and what is one
    number, is in a file that has its weights."""
    nodes = [node("Identity", ["w_z"], ["zero"]),
             node("DequantizeLinear", ["w", "w_s", "zero"], ["wf"]),
             node("DequantizeLinear", ["b", "b_s"], ["bf"]),
             node("Gemm", ["x", "wf", "bf"], ["g"]),
             node("Cast", ["index"], ["i"], to=TensorProto.INT64),
             node("Gather", ["g", "i"], ["y"], axis=1)]
    x = normal(4, 64)

    def layer():
        return {"w": random.integers(-99, 99, (64, 32)).astype(np.int8),
                "w_s": np.asarray(random.uniform(.1, .2), np.float32),
                "w_z": np.asarray(random.integers(2, 9), np.int8),
                "b": random.integers(-999, 999, 32).astype(np.int32),
                "b_s": np.asarray(random.uniform(.1, .2), np.float32),
                # Of 32 bits as well, but of the architecture.
                "index": np.arange(31, -1, -1, dtype=np.int32)}

    def wanted(w):
        y = x @ ((w["w"] - float(w["w_z"])) * w["w_s"]) + w["b"] * w["b_s"]
        return y[:, ::-1]

    old, new = layer(), layer()
    with scratch() as folder:
        model = Model(folder, nodes, old, x=x)
        text = (model.folder / "model.mlir").read_text()
        assert 'ax.folded_parameters = ["b", "b_s", "w_s", "w_z"]' in text, text
        # The plan has all but its weights as constants.
        model.takes(old, wanted(old))
        same = old | {"w": new["w"]}
        model.takes(same, wanted(same))
        for names in ["b"], ["w_s"], ["w_z"], ["b_s"], ["b", "w_s", "w_z"]:
            model.write({name: same[name] for name in same
                         if name not in names})
            done = model.axrun("--weights", model.path, expect=6)
            expect(done, *(f"  {name} is missing\n" for name in names))
            done = model.export(expect=6)
            expect(done, ", which would keep the model's values",
                   *(f"'{name}'" for name in names))
        model.write({"w": new["w"]})
        expect(model.axrun("--weights", model.path, expect=6),
               "  b is missing\n  b_s is missing\n  w_s is missing\n"
               "  w_z is missing\n")
        # By another name it is what the user says.
        other = {("bias" if name == "b" else name): value
                 for name, value in same.items()}
        model.write(other)
        expect(model.axrun("--weights", model.path, expect=6),
               "  b is missing\n")
        expect(model.export(expect=6), "(to take 'bias' in its place: --tied "
               "b=bias)")
        model.takes(other, wanted(same), "--tied=b=bias")
        model.write(other | {"bias": new["b"]})
        expect(model.axrun("--weights", model.path, "--tied=b=bias", expect=6),
               "'b' is a constant of the plan, with another value")
        expect(model.export("--partial", expect=6), "no place for 'bias'")
        # Into the model goes all.
        model.write({name: new[name] for name in new if name != "index"})
        expect(model.axrun("--weights", model.path, expect=6),
               "' is a constant of the plan, with another value")
        expect(model.export())
        model.compile("out")
        model.axrun(plan="out")
        close(np.load(model.folder / "y.npy"), wanted(new))
        # Compiled plans know it, too.
        run(tool("axopt"), model.folder / "model.onnx", "--quiet", "--compile",
            "-o", model.folder / "compiled.axc")
        model.write({"w": new["w"]})
        expect(run(tool("axrun"), model.folder / "compiled.axc",
                   "--random-inputs=1", "--weights", model.path, expect=6),
               "  b is missing")
        names = 'ax.folded_parameters = ["b", '
        for wrong in ('ax.folded_parameters = ["nobody", ',
                      "ax.folded_parameters = [3, "):
            (model.folder / "edited.mlir").write_text(
                text.replace(names, wrong))
            expect(run(tool("axopt"), model.folder / "edited.mlir", "--verify",
                       expect=5), "has attribute 'ax.folded_parameters'")


def quantisedOperators():
    """Operators whose operands are integers, and layers that quantise their
    input as it comes."""
    integers = random.integers
    layers = {
        "QLinearConv": (
            [node("QuantizeLinear", ["x", "x_s", "x_z"], ["xq"]),
             node("QLinearConv", ["xq", "x_s", "x_z", "w", "w_s", "w_z", "y_s",
                                  "y_z", "b"], ["yq"]),
             node("DequantizeLinear", ["yq", "y_s", "y_z"], ["y"])],
            {"w": integers(-9, 9, (4, 3, 1)).astype(np.int8),
             "w_s": normal(4) ** 2, "w_z": np.zeros(4, np.int8),
             "b": integers(-99, 99, 4).astype(np.int32),
             "x_s": np.array(.5, np.float32), "x_z": np.array(7, np.uint8),
             "y_s": np.array(.5, np.float32), "y_z": np.array(7, np.uint8)},
            normal(2, 3, 5)),
        "QLinearMatMul": (
            [node("QuantizeLinear", ["x", "x_s", "x_z"], ["xq"]),
             node("QLinearMatMul", ["xq", "x_s", "x_z", "w", "w_s", "w_z",
                                    "y_s", "y_z"], ["yq"]),
             node("DequantizeLinear", ["yq", "y_s", "y_z"], ["y"])],
            {"w": integers(-9, 9, (8, 4)).astype(np.int8),
             "w_s": np.array(.5, np.float32), "w_z": np.array(0, np.int8),
             "x_s": np.array(.5, np.float32), "x_z": np.array(7, np.uint8),
             "y_s": np.array(.5, np.float32), "y_z": np.array(7, np.uint8)},
            normal(4, 8)),
        "MatMulInteger": (
            [node("DynamicQuantizeLinear", ["x"], ["xq", "s", "z"]),
             node("MatMulInteger", ["xq", "w", "z", "w_z"], ["i"]),
             node("Cast", ["i"], ["c"], to=TensorProto.FLOAT),
             node("Mul", ["s", "w_s"], ["sw"]), node("Mul", ["c", "sw"], ["y"])],
            {"w": integers(-9, 9, (8, 4)).astype(np.int8),
             "w_s": np.array(.5, np.float32), "w_z": np.array(0, np.int8)},
            normal(4, 8)),
    }
    for nodes, tensors, x in layers.values():
        with scratch() as folder:
            model = Model(folder, nodes, tensors, x=x)
            for name in tensors:
                model.write({other: tensors[other] for other in tensors
                             if other != name})
                expect(model.export(expect=6), f"do not have '{name}', which")
                expect(model.axrun("--weights", model.path, expect=6),
                       f"  {name} is missing")


def savedWeights():
    """Weights that axrun wrote are taken again, though the file lacks what the
    plan has as constants; not into a model that has others."""
    nodes = [node("QuantizeLinear", ["w", "s", "z"], ["q"]),
             node("DequantizeLinear", ["q", "s", "z"], ["f"]),
             node("MatMul", ["x", "f"], ["y"])]
    tensors = {"w": normal(8, 8), "s": np.array(1 / 32, np.float32),
               "z": np.array(3, np.int8)}
    with scratch() as folder:
        model = Model(folder, nodes, tensors)
        run(tool("axopt"), model.folder / "model.onnx", "--quiet", "--train",
            "--loss=mse(y,target)", "-o", model.folder / "train.mlir")
        np.savez(model.folder / "data.npz", x=model.x, target=normal(4, 8))
        model.path = model.folder / "saved.safetensors"
        train = [tool("axrun"), model.folder / "train.mlir", "--quiet", "--data",
                 model.folder / "data.npz", "--steps=1"]
        run(*train, "--save-weights", model.path)
        model.axrun("--weights", model.path)
        trained = np.load(model.folder / "y.npy")
        run(*train, "--weights", model.path)
        expect(model.export())
        model.compile("out")
        model.axrun(plan="out")
        close(np.load(model.folder / "y.npy"), trained)
        saved = model.path
        model = Model(folder, nodes, tensors | {"s": np.array(.5, np.float32)})
        model.path = saved
        says = "other values in this"
        expect(model.axrun("--weights", saved, expect=6), "s has " + says)
        expect(model.export(expect=6), "'s' has " + says)


def settings():
    """What nodes take where older operators have attributes is no weight."""
    nodes = [node("Pad", ["x", "pads", "value"], ["p"]),
             node("Conv", ["p", "w", "b"], ["c"]),
             node("Concat", ["same", "twice"], ["scales"], axis=0),
             node("Resize", ["c", "", "scales"], ["r"], mode="nearest"),
             node("Resize", ["r", "", "halves"], ["y"], mode="nearest")]
    tensors = {"w": normal(4, 3, 1, 1), "b": normal(4),
               "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
               "value": np.array(0.5, np.float32),
               "same": np.ones(2, np.float32),
               "twice": np.full(2, 2, np.float32),
               "halves": np.array([1, 1, .5, .5], np.float32)}
    with scratch() as folder:
        model = Model(folder, nodes, tensors, x=normal(1, 3, 4, 4))
        new = {"w": normal(4, 3, 1, 1), "b": normal(4)}
        padded = np.pad(model.x, [(0, 0), (0, 0), (1, 1), (1, 1)],
                        constant_values=0.5)
        wanted = (np.einsum("oc,nchw->nohw", new["w"][:, :, 0, 0], padded)
                  + new["b"][:, None, None])
        model.takes(new, wanted)
        assert "single numbers" not in model.export().stderr


def cases(every):
    yield "saved weights", savedWeights
    yield "settings of nodes", settings
    yield "quantised", quantised
    yield "biases of quantised layers", biases
    yield "clones of quantised layers", quantisedClones
    yield "quantised layer", quantisedLayer
    yield "quantised operators", quantisedOperators
