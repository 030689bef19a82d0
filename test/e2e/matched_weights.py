# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files whose tensors are not just those of the model, for a plan and into the
model: others, prefixes of names, transposes."""
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from _weights import close, expect, save
from cases import Failed, run, scratch, tool

random = np.random.default_rng(0)


class Layers:
    """A model of matrices and norms, as an exporter writes it: by the names
    and values of its weights, x -> (x @ w) * norm for each pair; and what of a
    file becomes of it in a plan and in the exported model."""

    def __init__(self, folder, tensors, pairs, weights=None):
        self.folder, self.pairs = Path(folder), pairs
        self.path = weights or self.folder / "some.safetensors"
        value = helper.make_tensor_value_info
        nodes, last = [], "x"
        for number, (w, norm) in enumerate(pairs):
            nodes.append(helper.make_node("MatMul", [last, w], [f"m{number}"]))
            last = "logits" if number + 1 == len(pairs) else f"n{number}"
            nodes.append(helper.make_node("Mul", [f"m{number}", norm], [last]))
        width = tensors[pairs[-1][0]].shape[1]
        graph = helper.make_graph(
            nodes, "model", [value("x", TensorProto.FLOAT, [4, 8])],
            [value("logits", TensorProto.FLOAT, [4, width])],
            [numpy_helper.from_array(array, name)
             for name, array in tensors.items()])
        onnx.save(helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9),
            self.folder / "model.onnx")
        run(tool("axopt"), self.folder / "model.onnx", "--train",
            "--loss=cross_entropy(logits,labels)", "--quiet", "-o",
            self.folder / "train.mlir")
        np.savez(self.folder / "data.npz",
                 x=np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8),
                 labels=np.zeros(4, np.int64))

    def commands(self, *flags):
        return (
            [tool("axrun"), self.folder / "train.mlir", "--eval",
             self.folder / "data.npz", "--weights", self.path, *flags],
            [tool("axopt"), self.folder / "model.onnx", "--export-onnx",
             self.folder / "out.onnx", "--weights", self.path, *flags])

    def takes(self, given, wanted, *says, flags=(), hides=()):
        """`wanted`: the values by the model's names."""
        save(self.path, given)
        x = np.load(self.folder / "data.npz")["x"]
        for w, norm in self.pairs:
            x = x @ wanted[w] * wanted[norm]
        x = x - x.max(-1, keepdims=True)
        loss = -(x - np.log(np.exp(x).sum(-1, keepdims=True)))[:, 0].mean()
        for command in self.commands(*flags):
            done = run(*command)
            expect(done, *says)
            for text in hides:
                if text in done.stderr:
                    raise Failed(f"'{text}' in:\n{done.stderr}")
            if command[0] == tool("axrun"):
                close(float(done.stdout.split("loss ")[1].split(",")[0]), loss)
        got = {tensor.name: numpy_helper.to_array(tensor) for tensor in
               onnx.load(self.folder / "out.onnx").graph.initializer}
        for name, array in wanted.items():
            assert np.array_equal(got[name], array), name

    def refuses(self, given, *says, flags=(), code=6):
        save(self.path, given)
        for command in self.commands(*flags):
            expect(run(*command, expect=code), *says)


def normal(*shape):
    return random.normal(size=shape).astype(np.float32)


def leftOver():
    """The norms of two layers were equal, and are one weight of the model."""
    ones = np.ones(8, np.float32)
    names = ["m.h.0.w", "m.h.1.w", "m.h.0.ln_1.weight"]
    with scratch() as folder:
        layers = Layers(folder, dict(zip(names, (normal(8, 8), normal(8, 8),
                                                 ones))),
                        [(names[0], names[2]), (names[1], names[2])])
        given = dict(zip(names, (normal(8, 8), normal(8, 8), normal(8))))
        same = given["m.h.0.ln_1.weight"]
        layers.takes(given, given)
        mask = np.tril(np.ones((1, 1, 4, 4), np.float32))
        layers.takes(given | {
            "m.h.1.ln_1.weight": same, "m.ln_f.weight": same,
            "m.h.1.attn.bias": mask, "m.h.1.rotary.inv_freq": normal(3),
            f"{names[0]}.exp_avg": normal(8, 8)}, given)
        layers.refuses(
            given | {"m.h.1.ln_1.weight": normal(8)},
            "'m.h.1.ln_1.weight' differs from 'm.h.0.ln_1.weight', and the "
            "model has no such weight: exporters write equal weights once, so "
            "export it again from these weights; where that is not part of the "
            "model, give --leave-out 'm.h.1.ln_1.weight'")
        layers.refuses(
            given | {"m.h.1.ln_1.weight": normal(8),
                     "m.h.1.ln_2.weight": normal(8)},
            "'m.h.1.ln_1.weight', 'm.h.1.ln_2.weight' differ from")
        # What a file leaves to the model is in that place as well.
        other = {"m.h.1.ln_1.weight": normal(8), names[0]: given[names[0]]}
        save(layers.path, other)
        export = layers.commands("--partial")[1]
        expect(run(*export, expect=6), "'m.h.1.ln_1.weight' differs from")
        save(layers.path, other | {"m.h.1.ln_1.weight": ones})
        run(*export)
        # Of another shape, zeros, of a layer that the model does not have,
        # which may be a part of what was saved, and what is no mask.
        rest = {"m.h.1.ln_1.weight": normal(4), "m.ln_f.weight": normal(8)}
        layers.refuses(given | rest, "the model has no place for "
                       "'m.h.1.ln_1.weight', 'm.ln_f.weight': export it again "
                       "from these weights; where that")
        layers.takes(given | rest, given,
                     flags=["--leave-out=m.h.1.ln_1.weight",
                            "--leave-out=m.ln_*"])
        layers.refuses(given | {"m.h.0.bias": np.zeros(8, np.float32)},
                       "no place for 'm.h.0.bias'")
        layers.refuses(given | {"m.h.2.ln_1.weight": normal(8)},
                       "'m.h.2.ln_1.weight' differs from",
                       "give --leave-out 'm.h.2.*'")
        masks = {f"m.h.{layer}.attn.bias": mask[0] + layer
                 for layer in range(1, 6)}
        layers.refuses(given | masks, "no place for 'm.h.1.attn.bias', "
                       "'m.h.2.attn.bias', 'm.h.3.attn.bias' and 2 more: ")
        layers.refuses(given | {f"m.h.{layer}.b": normal(3)
                                for layer in range(2)},
                       "give --leave-out 'm.h.*.b'")


def prefixes():
    """Names that one same prefix makes the model's."""
    names = ["m.h.0.w", "m.h.1.w", "m.ln.weight"]
    with scratch() as folder:
        layers = Layers(folder, dict(zip(names, (normal(8, 8), normal(8, 8),
                                                 normal(8)))),
                        [(names[0], names[2]), (names[1], names[2])])
        given = dict(zip(names, (normal(8, 8), normal(8, 8), normal(8))))
        shorter = {name[2:]: value for name, value in given.items()}
        note = "names are taken "
        layers.takes(given, given, hides=[note])
        layers.takes(shorter, given, note + "with 'm.' before them")
        layers.takes({f"module.{name}": value for name, value in given.items()},
                     given, note + "without 'module.' before them")
        # What is said of tensors is said by the file's names, and ties are by
        # either.
        layers.refuses(shorter | {"h.0.w": normal(8, 7)}, "m.h.0.w")
        layers.refuses(shorter | {"b": normal(3)}, "no place for 'b'")
        layers.takes(shorter | {"b": normal(3)}, given,
                     flags=["--leave-out=b"])
        less = {name: value for name, value in shorter.items()
                if name != "h.1.w"}
        layers.refuses(less, "m.h.1.w")
        for other in "h.0.w", "m.h.0.w":
            layers.takes(less, given | {"m.h.1.w": given["m.h.0.w"]},
                         "names are taken", "for the transpose",
                         flags=[f"--tied=m.h.1.w={other}"])
        # Not on all of them.
        layers.refuses({"m.h.0.w": shorter.pop("h.0.w")} | shorter,
                       "to take 'h.1.w' in its place: --tied "
                       "m.h.1.w=h.1.w)")
    names = ["a.w", "a.ln", "b.w", "b.ln"]
    with scratch() as folder:
        layers = Layers(folder, {name: normal(*[8] * (2 - (name[2:] == "ln")))
                                 for name in names},
                        [("a.w", "a.ln"), ("b.w", "b.ln")])
        layers.refuses({"w": normal(8, 8), "ln": normal(8)},
                       "names are the model's with 'a.' as well as with 'b.'",
                       " before them: name them as the model does")


def transposes():
    """A matrix that the model has a second time, transposed."""
    names = ["wte.weight", "ln", "onnx::MatMul_7", "one"]
    for width in 8, 40:
        table = normal(width, 8)
        own = dict(zip(names, (table, np.ones(8, np.float32), table.T.copy(),
                               np.ones(width, np.float32))))
        square = dict(own, **{"w.weight": normal(8, 8)})
        with scratch() as folder:
            layers = Layers(folder, square, [("w.weight", "ln"),
                                             (names[2], "one")])
            given = {"w.weight": normal(8, 8), "ln": normal(8),
                     "one": normal(width)}
            matrix = normal(width, 8)
            wanted = given | {names[2]: matrix.T}
            # The table itself is a weight of the exported model only.
            note = f"'{names[2]}' gets the values of 'wte.weight', transposed"
            save(layers.path, given | {"wte.weight": matrix})
            export = layers.commands()[1]
            expect(run(*export), note)
            expect(run(*layers.commands()[0], expect=6),
                   f"{names[2]} is missing")
            layers.takes(given | {"wte.weight": matrix}, wanted,
                         flags=[f"--tied={names[2]}=wte.weight.T"])
            layers.refuses(given, "only matrices are transposed",
                           flags=[f"--tied={names[2]}=ln.T"])
            if width != 8:
                layers.takes(given | {"wte.weight": matrix}, wanted,
                             flags=[f"--tied={names[2]}=wte.weight"])


def cases(every):
    yield "tensors left over", leftOver
    yield "prefixes of names", prefixes
    yield "transposed twins", transposes
