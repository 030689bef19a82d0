# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What ranks use of a card's memory, as the simulated driver counts it, beside what is
predicted."""
import json
from pathlib import Path

from _gpt import gpt
from cases import TRAINING, Failed, run, scratch, tool
from gpu_plans import CUDA

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


def cases(every):
    yield "a transformer", isUsed, TRANSFORMER, "--optimizer=adamw(lr=1e-3)"
    yield "a transformer, bf16", isUsed, TRANSFORMER, "--precision=bf16"
    yield "images", isUsed, IMAGES
    yield ("a pipeline", lambda: isUsed(
        TRANSFORMER, "--precision=bf16", "--pp=2", "--micro-batches=2", numCards=2))
    for network in TRANSFORMER, IMAGES:
        yield (f"{network}, two ranks of a card", lambda network=network: isUsed(
            network, "--dp=2", "--zero=1", ranks=2))
