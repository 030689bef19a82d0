# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What axrun says of training that cannot be."""
from pathlib import Path

import numpy as np

from _onnx_text import model
from _training import axrun, compiled

from cases import Failed, run, scratch, tool, TRAINING

MODEL = TRAINING / "fc_net" / "model.onnx"


def samples(count=8):
    return {"input": np.zeros((count, 64), np.float32),
            "target": np.zeros((count, 10), np.float32)}


def train(flags, data, message, code, made=None):
    """`data`: arrays, of which a batch takes 4 samples."""
    with scratch() as folder:
        np.savez(f"{folder}/data.npz", **data)
        path = MODEL
        if made:
            path = f"{folder}/model.onnx"
            with open(path, "wb") as file:
                file.write(made.SerializeToString())
        shape = [] if made else ["--shape", "input=4x64"]
        run(tool("axopt"), path, *shape, *flags, "--quiet", "-o",
            f"{folder}/plan.mlir")
        done = run(tool("axrun"), f"{folder}/plan.mlir", "--data", "data.npz",
                   "--steps", 4, expect=code, cwd=folder)
    if message not in done.stderr:
        raise Failed(f"expected: {message}\ngot: {done.stderr}")


def otherFiles():
    """What no archive is, is not called a damaged one."""
    with scratch() as folder:
        run(tool("axopt"), MODEL, "--shape=input=4x64", *TRAIN, "--quiet", "-o",
            f"{folder}/plan.mlir")
        np.zeros(99, np.uint16).tofile(f"{folder}/ids.bin")
        np.save(f"{folder}/x.npy", np.zeros(9))
        np.zeros(99, np.uint16).tofile(f"{folder}/ids.npz")
        for file, code, says in (
                *((file, 6, f"--data={file}: expected an .npz or a folder of "
                   ".npy files; token ids need --tokens=uint16 or "
                   "--tokens=uint32") for file in ("ids.bin", "x.npy")),
                ("ids.npz", 6, "ids.npz: not a readable zip archive"),
                ("none.bin", 7, "none.bin")):
            done = run(tool("axrun"), "plan.mlir", "--data", file, "--steps=1",
                       expect=code, cwd=folder)
            if says not in done.stderr:
                raise Failed(f"expected: {says}\ngot: {done.stderr}")


def unused():
    """Arrays of other tasks beside those of this one are told, once."""
    with scratch() as folder:
        run(tool("axopt"), MODEL, "--shape=input=4x64", *TRAIN, "--quiet", "-o",
            f"{folder}/plan.mlir")
        arrays = samples() | {"weights": np.zeros(8), "b": np.zeros(3)}
        np.savez(f"{folder}/data.npz", **arrays)
        for name, array in arrays.items():
            np.save(f"{folder}/{name}.npy", array)
        for flags, says in (
                (["--data=data.npz", "--steps=4"],
                 "--data=data.npz: no input takes 'weights', 'b'"),
                (["--data=.", "--steps=4"],
                 "--data=.: no input takes 'b.npy', 'weights.npy'"),
                (["--eval=data.npz"],
                 "--eval=data.npz: no input takes 'weights', 'b'"),
                # Labels are none of its inputs.
                (["--data=data.npz", "--predict=out.npz"], None)):
            done = run(tool("axrun"), "plan.mlir", *flags, cwd=folder)
            told = [line for line in done.stderr.splitlines()
                    if "no input takes" in line]
            if told != ([f"axrun: warning: {says}"] if says else []):
                raise Failed(f"expected: {says}\ngot: {done.stderr}")


def savedNowhere():
    """That weights cannot be written is said before they are trained."""
    with scratch() as folder:
        run(tool("axopt"), MODEL, "--shape=input=4x64", *TRAIN, "--quiet", "-o",
            f"{folder}/plan.mlir")
        np.savez(f"{folder}/data.npz", **samples())
        done = run(tool("axrun"), "plan.mlir", "--data=data.npz", "--steps=4",
                   "--save-weights=none/w.safetensors", "--log=log", expect=7,
                   cwd=folder)
        log = Path(folder) / "log"
        if "none/w.safetensors" not in done.stderr or (
                log.exists() and '"loss"' in log.read_text()):
            raise Failed(done.stderr)


TRAIN = ["--train", "--loss=mse(logits,target)"]


def labelsWithoutData():
    """What is no class is refused however it is given."""
    with scratch() as folder:
        plan = compiled(folder, "--dp=2", shape="input=4x64")
        np.save(f"{folder}/x.npy", np.ones((4, 64), np.float32))
        for program in "main", "eval":
            for label, code in ((3, 0), (-100, 0), (10, 6), (-5, 6)):
                np.save(f"{folder}/labels.npy",
                        np.array([0, 1, label, 9], np.int64))
                axrun(plan, "--program", program, "--input",
                      f"input={folder}/x.npy", "--input",
                      f"labels={folder}/labels.npy", expect=code,
                      says=code and f"label {label} of input 'labels', element "
                      "2, is none of the 10 classes 0 to 9, nor -100, which is "
                      "ignored")
            axrun(plan, "--program", program, "--random-inputs=1")


def cases(every):
    where = "--data=data.npz: "
    yield "other files", otherFiles
    yield "weights saved nowhere", savedNowhere
    yield "unused arrays", unused
    yield "no training", train, [], samples(), \
        ("program 'main' does not train: compile it with axopt --train, or "
         "give --predict=OUT for what it makes of --data"), 2
    infinite = samples()
    infinite["input"][:] = np.inf
    yield "infinite loss", train, TRAIN, infinite, \
        ("the loss of step 1 is no finite number: input 'input' has an infinity "
         "in sample "), 9
    large = samples()
    large["input"][:] = 3e38
    yield "loss of the first step", train, TRAIN, large, \
        ("the loss of step 1 is no finite number: this run had updated nothing "
         "before, so that the weights, or what the model computes of them, are "
         "at fault, and not the learning rate"), 9
    yield "too high a rate", train, \
        [*TRAIN, "--optimizer=sgd(lr=1e30)"], samples(), \
        ("is no finite number: lower the learning rate, or clip gradients "
         "(axopt --clip-norm)"), 9
    for name, data, message in (
            ("array", {"input": samples()["input"]},
             "there is no array 'target'"),
            ("shape", samples() | {"input": np.zeros((8, 63), np.float32)},
             "'input' is 8x63xf32; a batch of it is to be 4x64xf32"),
            ("count", samples() | {"target": np.zeros((7, 10), np.float32)},
             "'target' has 7 samples, other inputs 8"),
            ("few", samples(3), "3 samples are less than one batch of 4")):
        yield f"data: {name}", train, TRAIN, data, where + message, 6
    uneven = model("float[4,3] x, float[2,3] z", "float[4,2] y",
                   "h = MatMul(x, w)\nk = MatMul(z, w)\ns = ReduceSum(k)\n"
                   "y = Add(h, s)", "float[3,2] w = {1, 2, 3, 4, 5, 6}")
    yield "data: uneven batches", train, \
        ["--train", "--loss=mse(y,target)"], {}, where + \
        "input 'z' takes batches of 2, other inputs of 4", 6, uneven
    scaled = model("float[4,3] x, float s", "float[4,2] y",
                   "h = MatMul(x, w)\ny = Mul(h, s)",
                   "float[3,2] w = {1, 2, 3, 4, 5, 6}")
    yield "data: scalar", train, TRAIN, {"x": np.zeros((8, 3), np.float32),
                                         "s": np.float32(1)}, \
        where + "input 's' has no dimension for samples (axopt " \
        "--unbatched=s says that this is meant)", 6, scaled
    yield "labels without data", labelsWithoutData
