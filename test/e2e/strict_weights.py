# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No tensor of --weights is without effect in silence, wherever the model's
weight went: into a constant, another weight, or nowhere."""
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from _weights import close, expect, save
from _weights_model import Model, node, normal
from cases import Failed, run, scratch, tool


def computed():
    """What is made of weights alone, also of small ones, is made of those that
    are given: batch normalisation, tables of types, sums of weights."""
    def batchNorm(x, w):
        return ((x - w["mean"]) / np.sqrt(w["var"] + 1e-5) * w["scale"]
                + w["bias"])

    def weights():
        return {"scale": normal(8), "bias": normal(8), "mean": normal(8),
                "var": normal(8) ** 2 + 1, "types": normal(2, 8),
                "a": normal(8), "b": normal(8), "w": normal(8, 8)}

    nodes = [node("BatchNormalization", ["x", "scale", "bias", "mean", "var"],
                  ["n"], epsilon=1e-5),
             node("Gather", ["types", "zeros"], ["t"]),
             node("Add", ["n", "t"], ["s"]), node("Mul", ["a", "b"], ["ab"]),
             node("Exp", ["ab"], ["e"]), node("Mul", ["s", "e"], ["m"]),
             node("MatMul", ["m", "w"], ["y"])]

    def wanted(x, w):
        return ((batchNorm(x, w) + w["types"][0]) * np.exp(w["a"] * w["b"])
                ) @ w["w"]

    old = weights()
    for flags in [], ["--tp=2"], ["--pp=2"]:
        with scratch() as folder:
            model = Model(folder, nodes,
                          old | {"zeros": np.zeros(4, np.int64)}, flags=flags)
            model.axrun()
            close(np.load(model.folder / "y.npy"), wanted(model.x, old))
            new = weights()
            model.takes(new, wanted(model.x, new))


def numbers():
    """Single numbers: parameters of layers are weights, others constants, which
    cannot become others without a word."""
    nodes = [node("Conv", ["x", "c.weight", "c.bias"], ["c"]),
             node("PRelu", ["c", "p.weight"], ["p"]),
             node("Exp", ["logit_scale"], ["e"]),
             node("Mul", ["p", "e"], ["y"])]
    x = normal(2, 3, 5)

    def wanted(w):
        c = np.einsum("ock,ncl->nol", w["c.weight"], x) + w["c.bias"]
        return np.where(c > 0, c, c * w["p.weight"]) * np.exp(w["logit_scale"])

    old = {"c.weight": normal(1, 3, 1), "c.bias": normal(1),
           "p.weight": normal(1), "logit_scale": np.float32(0.5)}
    old["logit_scale"] = np.asarray(old["logit_scale"])
    new = {"c.weight": normal(1, 3, 1), "c.bias": normal(1),
           "p.weight": normal(1), "logit_scale": old["logit_scale"]}
    with scratch() as folder:
        model = Model(folder, nodes, old, x=x)
        model.takes(new, wanted(new))
        new["logit_scale"] = np.array(0.75, np.float32)
        model.write(new)
        expect(model.axrun("--weights", model.path, expect=6),
               "'logit_scale' is a constant of the plan, with another value: "
               "write the weights into the model (axopt --export-onnx) and "
               "compile that")
        model.export()
        model.compile("out")
        model.axrun(plan="out")
        close(np.load(model.folder / "y.npy"), wanted(new))
        # What a layer takes has to be there, of others a warning tells.
        model.write({name: new[name] for name in ("c.weight", "p.weight")})
        expect(model.export(expect=6), "do not have 'c.bias', which would keep")
        expect(model.export("--partial"))
        model.write({name: new[name] for name in new if name != "p.weight"})
        expect(model.export(expect=6), "do not have 'p.weight', which would")
        model.write({name: new[name] for name in new if name != "logit_scale"})
        expect(model.export(), "single numbers that they do not have stay what "
               "they are in the model: 'logit_scale'")
        # As with any other type.
        new["logit_scale"] = np.array(0.5, np.float64)
        model.write(new)
        expect(model.axrun("--weights", model.path, expect=6),
               "'logit_scale' is a constant")
        # Nothing but fingerprints is believed of a plan.
        plan = model.folder / "model.mlir"
        text = plan.read_text()
        for wrong in '"f32:0"', '"f33:0123456789abcdef"', "1 : i64":
            edited = text.replace("ax.folded = {logit_scale = ",
                                  f"ax.folded = {{x = {wrong}, logit_scale = ")
            assert edited != text
            plan.write_text(edited)
            expect(run(tool("axopt"), plan, "--verify", expect=5),
                   "has attribute 'ax.folded'")


def functions():
    """What a model's own function does with a number, its caller does."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    body = helper.make_function(
        "own", "Linear", ["v", "weight", "bias"], ["out"],
        [node("MatMul", ["v", "weight"], ["m"]),
         node("Add", ["m", "bias"], ["out"])],
        [helper.make_opsetid("", 20)])
    tensors = {"fc.weight": normal(8, 1), "fc.bias": normal(1)}
    with scratch() as folder:
        folder = Path(folder)
        onnx.save(helper.make_model(
            helper.make_graph(
                [node("Linear", ["x", *tensors], ["y"], domain="own")], "g",
                [x], [y], [numpy_helper.from_array(array, name)
                           for name, array in tensors.items()]),
            opset_imports=[helper.make_opsetid("", 20),
                           helper.make_opsetid("own", 1)],
            functions=[body], ir_version=9), folder / "model.onnx")
        save(folder / "w.safetensors", {"fc.weight": normal(8, 1)})
        expect(run(tool("axopt"), folder / "model.onnx", "--export-onnx",
                   folder / "out.onnx", "--weights", folder / "w.safetensors",
                   expect=6), "do not have 'fc.bias', which would keep")


def branches():
    """Weights of graphs in nodes are the model's."""
    def branch(name):
        return helper.make_graph(
            [node("MatMul", ["h", f"{name}.w"], [name])], name, [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8])],
            [numpy_helper.from_array(old[f"{name}.w"], f"{name}.w")])

    names = ["w", "yes.w", "no.w"]
    old, new = ({name: normal(8, 8) for name in names} for _ in range(2))
    nodes = [node("MatMul", ["x", "w"], ["h"]),
             node("If", ["c"], ["y"], then_branch=branch("yes"),
                  else_branch=branch("no"))]
    with scratch() as folder:
        model = Model(folder, nodes, {"w": old["w"], "c": np.array(True)})
        model.write({"w": new["w"]})
        expect(model.export(expect=6), "do not have 'no.w', 'yes.w', which")
        # The plan has the branch that is taken.
        expect(model.axrun("--weights", model.path, expect=6),
               "  yes.w is missing\n")
        model.write(old)
        expect(model.axrun("--weights", model.path, "--leave-out=no.w"))
        model.write(new)
        expect(model.axrun("--weights", model.path, expect=6),
               "'yes.w' is a constant of the plan, with another value")
        expect(model.export())
        model.compile("out")
        model.axrun(plan="out")
        close(np.load(model.folder / "y.npy"),
              model.x @ new["w"] @ new["yes.w"])
        # All else is as it was.
        before, after = (onnx.load(model.folder / name).graph
                         for name in ("model.onnx", "out.onnx"))
        for tensor in [*before.initializer,
                       *(graph.g.initializer[0]
                         for graph in before.node[1].attribute)]:
            if tensor.name in new:
                tensor.CopyFrom(numpy_helper.from_array(new[tensor.name],
                                                        tensor.name))
        assert before == after


def masks():
    """A mask that decided how attention is computed is not another later."""
    mask = np.where(np.tril(np.ones((6, 6))), 0, -np.inf).astype(np.float32)
    nodes = [node("Reshape", ["x", "heads"], ["q"]),
             node("Transpose", ["q"], ["k"], perm=[0, 1, 3, 2]),
             node("MatMul", ["q", "k"], ["s"]),
             node("Add", ["s", "mask"], ["m"]),
             node("Softmax", ["m"], ["p"], axis=-1),
             node("MatMul", ["p", "q"], ["y"])]
    with scratch() as folder:
        model = Model(folder, nodes, {
            "mask": mask, "heads": np.array([1, 2, 6, 8])}, x=normal(2, 6, 8))
        if "causal" not in (model.folder / "model.mlir").read_text():
            raise Failed("no causal attention")
        model.write({"mask": mask})
        expect(model.axrun("--weights", model.path))
        model.write({"mask": np.zeros_like(mask)})
        expect(model.axrun("--weights", model.path, expect=6),
               "'mask' is a constant of the plan")


def clones():
    """Layers that were copies of each other are one for the exporter."""
    for values in normal(8, 8), np.zeros((8, 8), np.float32):
        nodes = [node("MatMul", ["x", "layers.0.fc.w"], ["h"]),
                 node("Add", ["h", "x"], ["r"]),
                 node("MatMul", ["r", "layers.0.fc.w"], ["g"]),
                 node("Add", ["g", "r"], ["y"])]
        with scratch() as folder:
            model = Model(folder, nodes, {"layers.0.fc.w": values})
            first = {"layers.0.fc.w": normal(8, 8)}
            for other in normal(8, 8), np.zeros((8, 8), np.float32):
                model.refuses(first | {"layers.1.fc.w": other},
                              "'layers.1.fc.w' differs from 'layers.0.fc.w', "
                              "and the model has no such weight: exporters "
                              "write equal weights once, so export it again "
                              "from these weights; where that is not part of "
                              "the model, give --leave-out 'layers.1.*'")
            r = model.x @ first["layers.0.fc.w"] + model.x
            wanted = r @ first["layers.0.fc.w"] + r
            model.takes(first | {"layers.1.fc.w": first["layers.0.fc.w"]},
                        wanted)
            given = first | {"layers.1.fc.w": normal(8, 8),
                             "layers.2.fc.w": normal(8, 8)}
            model.takes(given, wanted, "--leave-out=layers.[12].*")
            model.refuses(given, "--leave-out=more.*: weights '",
                          "have no such name",
                          flags=["--leave-out=layers.[12].*",
                                 "--leave-out=more.*"])
            model.refuses(given, "--leave-out=[: invalid glob pattern",
                          flags=["--leave-out=["], code=2)
            # That is before anything else is done with the file.
            expect(model.axrun("--weights", model.path, "--leave-out=layers*",
                               expect=6), "layers.0.fc.w is missing")
            for command in ("axopt", "-o", folder + "/other.mlir"), ("axrun",):
                path = "model.onnx" if len(command) > 1 else "model.mlir"
                expect(run(tool(command[0]), f"{folder}/{path}", *command[1:],
                           "--leave-out=x", expect=2),
                       "--leave-out is for --weights")


def zeros():
    """Zeros are many weights' value, and one of these for the exporter."""
    nothing = np.zeros(8, np.float32)
    nodes = [node("Add", ["x", "down"], ["a"]), node("Relu", ["a"], ["r"]),
             node("Add", ["r", "down"], ["b"]), node("Mul", ["b", "w"], ["y"])]
    with scratch() as folder:
        model = Model(folder, nodes, {"down": nothing, "w": normal(8)})
        given = {"down": normal(8), "w": normal(8), "up": nothing}
        model.refuses(given, "the model has no place for 'up'")
        # Where all that it may be merged into stays, it does, too.
        model.takes(given | {"down": nothing},
                    np.maximum(model.x, 0) * given["w"])


def fused():
    """BatchNorm that the exporter made part of a convolution."""
    with scratch() as folder:
        model = Model(folder, [node("Conv", ["x", "c.weight", "c.bias"],
                                    ["y"])],
                      {"c.weight": normal(4, 3, 1), "c.bias": normal(4)},
                      x=normal(2, 3, 5))
        given = {"c.weight": normal(4, 3, 1), "c.bias": normal(4)}
        norm = {f"n.{name}": normal(4) for name in
                ("weight", "bias", "running_mean", "running_var")}
        model.refuses(
            given | norm | {"n.num_batches_tracked": np.array(7)},
            "the model has no place for 'n.bias', 'n.running_mean', "
            "'n.running_var' and 1 more: the exporter fused BatchNorm into "
            "other weights, so export it again from these weights, or with "
            "optimize=False, or do_constant_folding=False and "
            "training=TrainingMode.PRESERVE")


def hints():
    """What is missing, and what of the file may be meant."""
    nodes = [node("MatMul", ["x", "onnx::MatMul_442"], ["m"]),
             node("Add", ["m", "b"], ["y"])]
    tensors = {"onnx::MatMul_442": normal(8, 6), "b": normal(6)}
    advice = "'onnx::MatMul_442' is a name that the exporter made up: " \
        "torch.onnx.export(..., dynamo=True, optimize=False) keeps those of " \
        "the parameters"
    with scratch() as folder:
        model = Model(folder, nodes, tensors)
        weight, bias = normal(6, 8), normal(6)
        wanted = model.x @ weight.T + bias
        given = {"fc.weight": weight, "b": bias}
        model.refuses(given, "to take 'fc.weight' in its place: "
                      "--tied onnx::MatMul_442=fc.weight.T)", advice)
        model.takes(given, wanted, "--tied=onnx::MatMul_442=fc.weight.T")
        model.refuses({"fc.weight": weight.T.copy(), "b": bias},
                      "--tied onnx::MatMul_442=fc.weight)", advice)
        # Not where it is one of two, or of another type.
        model.write({"fc.weight": weight.astype(np.float64), "b": bias})
        done = model.axrun("--weights", model.path, expect=6)
        expect(done, "onnx::MatMul_442 is missing\n")
        model.write(given | {"gc.weight": weight + 1})
        done = model.axrun("--weights", model.path, expect=6)
        expect(done, "onnx::MatMul_442 is missing", advice)
        if "--tied" in done.stderr:
            raise Failed(done.stderr)
        for name in "w.pt", "w.pth", "w.ckpt", "pytorch_model.bin":
            model.path = model.folder / name
            model.path.write_bytes(b"PK")
            for done in (model.axrun("--weights", model.path, expect=2),
                         model.export(expect=2)):
                expect(done, "a pickle, which may run code, is not read: "
                       "safetensors.torch.save_file(model.state_dict(), "
                       "'weights.safetensors') writes the same tensors")


def cases(every):
    yield "computed of weights", computed
    yield "single numbers", numbers
    yield "functions", functions
    yield "branches", branches
    yield "masks", masks
    yield "clones", clones
    yield "zeros", zeros
    yield "fused batch normalisation", fused
    yield "hints", hints
