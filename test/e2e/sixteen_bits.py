# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that do not train in bf16 and f16, beside the framework's outputs in f32:
on several layouts, and on simulated cards."""
import os
from pathlib import Path

from cases import MODELS, tool
from models import agrees

# Of the largest magnitude of an output: what is rounded is so by up to 2^-9 and
# 2^-12, which adds up over layers, most of all in deep networks of random weights.
MOST = {"bf16": 1e-2, "fp16": 1e-3}
DEEP = {"bf16": 1e-1, "fp16": 2e-2}
LAYOUTS = ["--tp=2", "--dp=2", "--pp=2 --micro-batches=2", "--tp=2x2x1"]
# Each element may be off by more than that of itself.
LOOSE = ["--atol=1", "--rtol=1"]
ON_CARD = [*LOOSE, "--device=cuda", "--devices=0", "--no-host-fallback"]
CARD = os.environ | {
    "AXRUN_CUDA_PATH": str(Path(tool("axrun")).parents[1] / "test/simgpu"),
    "AXRUN_CUDA_ALGORITHMS": "1", "SIMGPU_CAPABILITY": "90",
    "AXRUN_TARGET": "sm_90+cudnn+sim"}
SIMULATED = ["bert_sdpa_ts20_dyn", "gpt2_eager_ts17_dyn", "llama_sdpa_ts17_dyn",
             "resnet_eager_ts17_dyn"]


def cases(every):
    for number, model in enumerate(sorted(MODELS.iterdir())):
        layouts = LAYOUTS if every else [LAYOUTS[number % len(LAYOUTS)]]
        isDeep = model.name.startswith(("resnet", "minilm"))
        for precision, most in (DEEP if isDeep else MOST).items():
            flags = [f"--precision={precision}"]
            for layout in ["", *layouts]:
                yield (f"{model.name} {precision} {layout}", agrees, model,
                       layout, flags, most, LOOSE)
            if every or model.name in SIMULATED:
                yield (f"{model.name} {precision} simulated", agrees, model, "",
                       flags, most, ON_CARD, CARD)
