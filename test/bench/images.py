# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training steps of image models (torchvision's, batch normalisation by the
batch, SGD with momentum), axrun beside PyTorch, one thread each.

usage: images.py BUILD [MODEL:BATCH..]
"""
import json
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch
import torchvision
from torch import nn

from bench import capture

MODELS = ["resnet50:4", "mobilenet_v2:8", "densenet121:4", "vgg11_bn:4",
          "shufflenet_v2_x1_0:8"]
STEPS = 6
SIZE = 224


def torchStep(model, x, labels):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9,
                                fused=True)
    times = []
    for _ in range(STEPS):
        start = time.perf_counter()
        nn.functional.cross_entropy(model(x), labels).backward()
        optimizer.step()
        optimizer.zero_grad()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[2:])


def ownStep(bin, folder, model, x, labels):
    path = folder / "model.onnx"
    torch.onnx.export(model, (x,), path, dynamo=False, opset_version=17,
                      training=torch.onnx.TrainingMode.TRAINING,
                      do_constant_folding=False, input_names=["input"],
                      output_names=["logits"])
    np.savez(folder / "data.npz", input=np.tile(x, (STEPS, 1, 1, 1)),
             labels=np.tile(labels, STEPS))
    capture(bin / "axopt", path, "--train", "--batchnorm=train",
            "--loss=cross_entropy(logits,labels)",
            "--optimizer=sgd(lr=1e-3,momentum=0.9)", "-o", folder / "plan.mlir")
    log = folder / "log.jsonl"
    log.unlink(missing_ok=True)
    capture(bin / "axrun", folder / "plan.mlir", "--data", folder / "data.npz",
            "--steps", STEPS, "--threads-per-rank", 1, "--log", log)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return 1e3 * statistics.median(line["seconds"] for line in lines[2:])


def main(build, *models):
    warnings.filterwarnings("ignore")
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, SGD(fused=True), eager; {SIZE} x "
          f"{SIZE} pixels; both bound to one processor\n")
    print("| model | batch | PyTorch ms | axrun ms | axrun / PyTorch |")
    print("|---|---|---|---|---|")
    for name, batch in (model.split(":") for model in models or MODELS):
        torch.manual_seed(0)
        model = torchvision.models.get_model(name, weights=None).train()
        x = torch.randn(int(batch), 3, SIZE, SIZE)
        labels = torch.randint(1000, (int(batch),))
        with tempfile.TemporaryDirectory() as folder:
            own = ownStep(Path(build).resolve() / "bin", Path(folder), model, x,
                          labels)
        peer = torchStep(model, x, labels)
        print(f"| {name} | {batch} | {peer:.0f} | {own:.0f} | {own / peer:.2f} |",
              flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
