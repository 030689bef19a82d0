# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What ranks use of a card's memory, as the simulated driver counts it, beside what is
predicted."""
import json
from pathlib import Path

from onnx import TensorProto, helper, save

from _gpt import gpt
from cases import TRAINING, Failed, run, scratch, tool
from gpu_plans import CUDA, RUN_FAILED

TRANSFORMER, IMAGES = "transformer", "images"
BATCH = 256
# Of the simulated cuDNN a convolution uses as much as it gives, for each image at most
# 16 channels of 8 x 8. What libraries use is not predicted.
CONVOLUTION = 4 * 16 * 8 * 8


def predicted(folder, network, *flags):
    """Bytes of a rank of each stage."""
    source = f"{folder}/model.onnx"
    if network == IMAGES:
        source = TRAINING / "convnet/model.onnx"
        flags = [f"--shape=input={BATCH}x1x8x8", "--loss=cross_entropy(logits,labels)",
                 *flags]
    else:
        gpt(source, layers=2, width=128, heads=4, vocabulary=256, batch=4, tokens=64)
        flags = ["--loss=mse(logits,target)", *flags]
    report = Path(folder) / "report.json"
    run(tool("axopt"), source, "--train", *flags, "--report", report, "--compile",
        "--target=sm_90+cudnn+sim", "-o", f"{folder}/plan.axc")
    return [stage["memory_bytes"]["peak"]
            for stage in json.loads(report.read_text())["programs"][0]["stages"]]


def isUsed(network, *flags, numCards=1, ranks=1):
    """By each card: the ranks of a stage, or all."""
    with scratch() as folder:
        wanted = predicted(folder, network, *flags)
        run(tool("axrun"), f"{folder}/plan.axc", "--random-inputs=1", "--iterations=3",
            env=CUDA | {"SIMGPU_CARDS": str(numCards),
                        "SIMGPU_COUNTS": f"{folder}/counts"})
        counts = dict(line.split() for line in
                      Path(f"{folder}/counts").read_text().splitlines())
    for card, peak in enumerate(wanted):
        needed = ranks * peak + (network == IMAGES) * BATCH * CONVOLUTION
        used = int(counts[f"memoryOfCard{card}"])
        if not 0.95 < used / needed < 1.05:
            raise Failed(f"card {card}: {used} bytes, predicted {needed}")


def attention(path, tokens):
    """Of 32 heads of 64 of f16: queries, keys and values are inputs."""
    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT16,
                                             [1, 32, tokens, 64])
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], is_causal=1)
    graph = helper.make_graph([node], "model", [value(name) for name in "qkv"],
                              [value("y")])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)],
                           ir_version=11), path)


def longAttention():
    """Of 16384 tokens all scores would be 17 GB; its operands, twice, are 0.5 GB."""
    with scratch() as folder:
        attention(f"{folder}/model.onnx", 16384)
        report = Path(f"{folder}/report.json")
        run(tool("axopt"), f"{folder}/model.onnx", "--report", report, "--compile",
            "--target=sm_90+cudnn", "-o", f"{folder}/plan.axc")
        stage, = json.loads(report.read_text())["programs"][0]["stages"]
    memory = stage["memory_bytes"]
    if memory["peak"] > 0.6e9:
        raise Failed(f"{memory}")


def gradientOfAttention():
    """What is predicted has the gradient of all scores. Where sums have any order, a
    card is enough that has no room for it."""
    batch, heads, tokens, width = 2, 8, 512, 64
    scores = 2 * batch * heads * tokens * tokens
    with scratch() as folder:
        model, plan = f"{folder}/model.onnx", f"{folder}/plan.axc"
        gpt(model, layers=1, width=width, heads=heads, vocabulary=64, batch=batch,
            tokens=tokens)
        report = Path(f"{folder}/report.json")
        run(tool("axopt"), model, "--train", "--loss=mse(logits,target)",
            "--precision=bf16", "--report", report, "--compile",
            "--target=sm_90+cudnn+sim", "-o", plan)
        stage, = json.loads(report.read_text())["programs"][0]["stages"]
        # Sums of the gradient of queries, in f32, take its place.
        room = stage["memory_bytes"]["peak"] - scores + 4 * batch * tokens * width
        environment = CUDA | {"SIMGPU_MEMORY": str(room + (1 << 18))}
        for flags, code in ([], RUN_FAILED), (["--nondeterministic"], 0):
            done = run(tool("axrun"), plan, "--random-inputs=1", *flags,
                       expect=range(256), env=environment)
            if done.returncode != code or \
                    ("of memory free, and the rank on it needs" in done.stderr) != bool(code):
                raise Failed(f"{flags}: {done.returncode}, {done.stderr}")


def cases(every):
    yield "long attention", longAttention
    yield "gradients of attention", gradientOfAttention
    yield "a transformer", isUsed, TRANSFORMER, "--optimizer=adamw(lr=1e-3)"
    yield "a transformer, bf16", isUsed, TRANSFORMER, "--precision=bf16"
    yield "images", isUsed, IMAGES
    yield ("a pipeline", lambda: isUsed(
        TRANSFORMER, "--precision=bf16", "--pp=2", "--micro-batches=2", numCards=2))
    for network in TRANSFORMER, IMAGES:
        yield (f"{network}, two ranks of a card", lambda network=network: isUsed(
            network, "--dp=2", "--zero=1", ranks=2))
