# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models of bf16 and f16 train, with weights that are kept in f32."""
import json
import os
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, numpy_helper

from _training import (HALVES, LOSS, axrun, close, logged, losses, narrowed,
                       states)
from cases import TRAINING, Failed, run, scratch, tool

LAYOUTS = {
    "fc_net": ["--dp=2 --zero=3", "--tp=2"],
    "convnet": ["--tp=2", "--micro-batches=2"],
    "batchnorm": ["--dp=2"],
    "gpt2_tied": ["--tp=2x2x2", "--pp=2 --micro-batches=2",
                  "--pp=2 --micro-batches=4 --tp=2 --schedule=zero-bubble"],
    "llama": ["--tp=2 --sequence-parallel", "--dp=2 --zero=3 --recompute=full",
              "--dp=2 --zero=2 --micro-batches=2"],
}
# Adam makes a whole step of a gradient of rounding errors, too.
LEAST = {"bf16": 0.8, "f16": 0.95}


def prepared(name, kind, folder):
    model = TRAINING / name
    onnx.save(narrowed(onnx.load(model / "model.onnx"), kind),
              f"{folder}/model.onnx")
    with np.load(model / "data.npz") as data:
        shape = "x".join(map(str, data["input"].shape[1:]))
        # Also of inputs of bf16, which NumPy has not.
        np.savez(f"{folder}/data.npz", **{
            key: array.reshape((-1, *array.shape[2:]))
            for key, array in data.items()})
    return ["--shape", f"input={shape}"]


def trained(name, kind, folder, shape, layout, *flags, **options):
    """The log of the reference's steps."""
    Path(f"{folder}/log").unlink(missing_ok=True)
    wanted = json.loads((TRAINING / name / "reference.json").read_text())
    optimizer = wanted["optimizers"]["adamw"]["options"]
    run(tool("axopt"), f"{folder}/model.onnx", "--train", LOSS, "--clip-norm=1",
        f"--optimizer={optimizer}", *shape, *layout.split(), "--quiet", "-o",
        f"{folder}/plan.mlir")
    axrun(f"{folder}/plan.mlir", "--data", f"{folder}/data.npz", "--steps=20",
          "--no-shuffle", "--log", f"{folder}/log", *flags, **options)
    return logged(f"{folder}/log")


def direction(got, wanted, before):
    """The cosine of how far a weight went and how far it was to go."""
    a, b = (array.astype(np.float64) - before for array in (got, wanted))
    return (a * b).sum() / max(np.linalg.norm(a) * np.linalg.norm(b), 1e-30)


def checkWeights(name, kind, folder, what):
    """Each weight has gone where that of f32 went, and no other way."""
    before = {tensor.name: numpy_helper.to_array(tensor).astype(np.float64)
              for tensor in
              onnx.load(f"{folder}/model.onnx").graph.initializer}
    got = dict(states(f"{folder}/w.safetensors"))
    with np.load(TRAINING / name / "final_adamw.npz") as final:
        for weight in final.files:
            if "running" in weight or "num_batches" in weight:
                continue
            along = direction(got[weight], final[weight], before[weight])
            if not along > LEAST[kind]:
                raise Failed(f"{what}: {weight} went {along}")


def follows(name, kind):
    """As the same model in f32 trains, on each layout."""
    wanted = json.loads((TRAINING / name / "reference.json").read_text())
    wanted = [loss for loss, _ in wanted["optimizers"]["adamw"]["steps"]]
    # Of numbers with 8 or 11 bits.
    tolerance = 2e-2 if kind == "bf16" else 4e-3
    with scratch() as folder:
        shape = prepared(name, kind, folder)
        for layout in ["", *LAYOUTS[name]]:
            steps = trained(name, kind, folder, shape, layout,
                            "--save-weights", f"{folder}/w.safetensors")
            checkWeights(name, kind, folder, layout)
            close([step["loss"] for step in steps], wanted, tolerance,
                  f"losses with '{layout}'")
            # Only f16 needs a scale.
            if any("loss_scale" in step for step in steps) != (kind == "f16"):
                raise Failed(f"loss scale: {steps[0]}")


def keepsDigits(kind):
    """Steps that are far less than what the file's type can tell add up."""
    with scratch() as folder:
        shape = prepared("fc_net", kind, folder)
        run(tool("axopt"), f"{folder}/model.onnx", "--train", LOSS,
            "--optimizer=sgd(lr=1e-5)", *shape, "-o", f"{folder}/plan.mlir")
        axrun(f"{folder}/plan.mlir", "--data", f"{folder}/data.npz",
              "--steps=20", "--save-weights", f"{folder}/w.safetensors")
        before = {tensor.name: numpy_helper.to_array(tensor).astype(np.float32)
                  for tensor in
                  onnx.load(f"{folder}/model.onnx").graph.initializer}
        moved = 0
        for name, weight in states(f"{folder}/w.safetensors"):
            rounded = weight.astype(HALVES[kind][1]).astype(np.float32)
            if not np.abs(weight - before[name]).max() < 1e-2:
                raise Failed(f"{name} begins with other numbers")
            moved += (weight != before[name]).sum() > 0 and \
                (rounded == before[name]).mean() > 0.9
        if not moved:
            raise Failed("no weight moved by less than it is rounded to")


def exported(kind):
    """Trained weights in the user's model, and in a plan of it; and a run that
    goes on as if it had not ended."""
    with scratch() as folder:
        shape = prepared("fc_net", kind, folder)
        whole = trained("fc_net", kind, folder, shape, "--dp=2")
        run(tool("axrun"), f"{folder}/plan.mlir", "--data",
            f"{folder}/data.npz", "--steps=10", "--no-shuffle", "--save",
            f"{folder}/run", "--log", f"{folder}/first")
        run(tool("axrun"), f"{folder}/plan.mlir", "--data",
            f"{folder}/data.npz", "--steps=20", "--no-shuffle", "--resume",
            f"{folder}/run", "--save", f"{folder}/run", "--log",
            f"{folder}/second")
        got = losses(f"{folder}/first") + losses(f"{folder}/second")
        if got != [step["loss"] for step in whole]:
            raise Failed(f"{got}, expected {whole}")
        says = f"tensors are f32, and rounded to {kind}"
        done = run(tool("axopt"), f"{folder}/model.onnx", "--export-onnx",
                   f"{folder}/out.onnx", "--weights", f"{folder}/run")
        if says not in done.stderr:
            raise Failed(done.stderr)
        for tensor in onnx.load(f"{folder}/out.onnx").graph.initializer:
            if tensor.data_type == TensorProto.FLOAT:
                raise Failed(f"{tensor.name} is f32 now")
        x = np.load(f"{folder}/data.npz")["input"][:64]
        np.save(f"{folder}/x.npy", x)
        for model, flags in (("model", ["--weights", f"{folder}/run"]),
                             ("out", [])):
            run(tool("axopt"), f"{folder}/{model}.onnx", *shape, "--quiet",
                "-o", f"{folder}/{model}.mlir")
            done = axrun(f"{folder}/{model}.mlir", "--input",
                         f"input={folder}/x.npy", *flags, "--output",
                         f"{folder}/{model}.npz")
            if flags and says not in done.stderr:
                raise Failed(done.stderr)
        one, other = (np.load(f"{folder}/{model}.npz")["logits"]
                      for model in ("model", "out"))
        if one.tobytes() != other.tobytes():
            raise Failed("the exported model computes something else")
        if kind == "f16":
            session = onnxruntime.InferenceSession(f"{folder}/out.onnx")
            peer, = session.run(["logits"], {"input": x.astype(np.float16)})
            close(one.astype(np.float32), peer.astype(np.float32), 4e-3, "peer")


def compiled(kind):
    """A plan that has its weights itself has them as the model's file."""
    with scratch() as folder:
        shape = prepared("fc_net", kind, folder)
        wanted = trained("fc_net", kind, folder, shape, "--tp=2")
        run(tool("axopt"), f"{folder}/plan.mlir", "--compile",
            "--embed-weights", "-o", f"{folder}/plan.axc")
        axrun(f"{folder}/plan.axc", "--data", f"{folder}/data.npz",
              "--steps=20", "--no-shuffle", "--log", f"{folder}/again")
        if losses(f"{folder}/again") != [step["loss"] for step in wanted]:
            raise Failed("it trains otherwise")


def onCards(name, kind):
    """On a simulated card as on processors."""
    cards = os.environ | {
        "AXRUN_CUDA_PATH": str(Path(tool("axrun")).parents[1] / "test/simgpu"),
        "AXRUN_CUDA_ALGORITHMS": "1", "SIMGPU_CAPABILITY": "90",
        "AXRUN_TARGET": "sm_90+cudnn+sim"}
    with scratch() as folder:
        shape = prepared(name, kind, folder)
        wanted = trained(name, kind, folder, shape, "")
        found = trained(name, kind, folder, shape, "", "--device=cuda",
                        "--no-host-fallback", env=cards)
        close([step["loss"] for step in found],
              [step["loss"] for step in wanted], 5e-3, "losses")


def refused():
    """What f16 does not have is not rounded to infinity."""
    with scratch() as folder:
        shape = prepared("fc_net", "f16", folder)
        run(tool("axopt"), f"{folder}/model.onnx", *shape, "--quiet", "-o",
            f"{folder}/plan.mlir")
        np.save(f"{folder}/x.npy", np.full((64, 64), 7e4, np.float32))
        axrun(f"{folder}/plan.mlir", "--input", f"input={folder}/x.npy",
              expect=6, says="input 'input': some of its numbers are larger "
              "than f16 has them")
        with np.load(f"{folder}/data.npz") as data:
            far = dict(data)
        far["input"][-1] = 7e4
        np.savez(f"{folder}/far.npz", **far)
        says = "some of the numbers of 'input' are larger than f16 has them"
        axrun(f"{folder}/plan.mlir", "--data", f"{folder}/far.npz",
              "--predict", f"{folder}/out.npz", expect=6, says=says)
        # For all batches, and one for each.
        run(tool("axopt"), f"{folder}/model.onnx", *shape, "--train", LOSS,
            "--unbatched=input", "--unbatched=labels", "--quiet", "-o",
            f"{folder}/plan.mlir")
        np.savez(f"{folder}/whole.npz", input=far["input"][-64:],
                 labels=far["labels"][-64:])
        axrun(f"{folder}/plan.mlir", "--data", f"{folder}/whole.npz",
              "--steps=1", expect=6, says=says)


def cases(every):
    for name in LAYOUTS:
        for kind in HALVES:
            yield f"{name} {kind}", follows, name, kind
    for kind in HALVES:
        yield f"digits of {kind}", keepsDigits, kind
        yield f"export {kind}", exported, kind
        yield f"compiled {kind}", compiled, kind
        yield f"cards {kind}", onCards, "llama", kind
    yield "too large", refused
