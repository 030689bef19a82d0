# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of other files once more, their ranks on devices whose memory the host
cannot touch: of test/guarded, and on the simulated GPU (test/simgpu)."""
import os
import re
from pathlib import Path

from cases import Failed, load

# File -> which of its cases: together they move data in each way that there is.
FEW = {
    "axrun_profile": "^(?!on a GPU)",
    "compiled_plans": "pp=2|without compiler|training|embedded",
    "dropout": "",
    "dump_tensors": "",
    "experts": "",
    "given_weights": "",
    "max_detection": "",
    "models": "--dp=2 --tp=2 --pp=2$",
    "optimizers": "",
    "predict": "",
    "prepare": "",
    "quantized": "",
    "recompute": "",
    "train": "adamw --dp=2.*--zero=3",
    "train_checkpoints": "",
    "zoo": "",
}
# The same on a device without libraries, for which the CPU does their work.
BARE = {
    "max_detection": "",
    "models": "(bert_sdpa_ts20|gpt2_sdpa|resnet_eager_ts17).*--dp=2 --tp=2 --pp=2$",
    "quantized": "^per-",
    "train": "adamw --dp=2 --tp=2 --zero=3",
}
# On the simulated GPU, whose threads take turns on one processor.
CUDA = {
    "carried": "^rows at random, .$",
    "context": "gpt2_tied --dp=2 --cp=2 --zero=3$|llama_sdpa_dynamo23",
    "dropout": "^(mask|RandomNormal|Bernoulli)$",
    "experts": "",
    "given_weights": "--tied|F16",
    "indices": "",
    "integer_products": "^dynamic-.*(odd|terms)$|"
                        "^dequantized-.*-(middle-.*-True|columns-False)$",
    "max_detection": "",
    "max_results": "^(too many|no size)",
    "models": "mlp|--dp=2 --tp=2 --pp=2$",
    "narrow_sums": "^many",
    "optimizers": "lion .*--(zero=3|micro-batches=2)",
    "recompute": "",
    "train": "^(batchnorm|convnet|fc_net|gpt2_tied) .*--dp=2 --tp=2 --zero=3$|"
             "^fc_net .*--dp=2 --pp=2 --micro-batches=2 --zero=3",
    "train_checkpoints": "resumes as",
}
# In other orders of what its streams do; that these make no difference to bits is
# `gpu_orders`' to show.
ORDERS = {
    "indices": "--dp=2 --tp=2|--pp=2 --micro-batches=2|gpt2 --pp=2",
}
# On two cards, which do not reach each other.
CARDS = {
    "models": "(mlp|gpt2_sdpa).*--dp=2 --tp=2 --pp=2$",
    "prepare": "",
    "train": "^fc_net .*(--dp=2 --tp=2 --zero=3$|"
             "--dp=2 --pp=2 --micro-batches=2 --zero=3)",
    "train_checkpoints": "resumes as",
}
# Each rank on a card of its own, which exchange by the simulated NCCL.
NCCL = {
    "context": "gpt2_tied --dp=2 --cp=2 --zero=3$",
    "models": "(mlp|gpt2_sdpa|llama_eager).*--dp=2 --tp=2 --pp=2$",
    "prepare": "",
    "train": "^(batchnorm|convnet|fc_net|gpt2_tied) .*--dp=2 --tp=2 --zero=3$|"
             "^fc_net .*--pp=2.*--micro-batches",
    "train_checkpoints": "resumes as",
}
# With --all the first and `cuda` run all files but these, and all cases (FILE/CASE)
# but these, each for a reason.
COMMON = {
    "axrun_errors/unknownBackends": "names the devices that there are",
    "devices": "is this one",
    "docs": "its commands are those of a user, who has no such device",
    "edited_plans": "is on its device in any case",
    "extend": "builds axopt again",
    "fuzz": "runs no tool",
    "gpu_attention": "is on its device in any case",
    "gpu_composed": "is on its device in any case",
    "gpu_faults": "is on its device in any case",
    "gpu_graphs": "is on its device in any case",
    "gpu_kernels": "compiles for cards, or is on device cuda in any case",
    "gpu_orders": "is on its device in any case",
    "gpu_plans": "is on its device in any case",
    "gpu_streams": "is on its device in any case",
    "host_fallback": "is on its devices in any case",
    "import_errors": "runs no plan",
    "import_graphs": "runs no plan",
    "inspection": "runs no plan",
    "install": "runs what it has installed",
    "memory": "measures memory of the host, where device cpu has its own",
    "minilm_training": "its commands are those of a user, who has no such device",
    "model_errors": "runs no plan",
    "package": "is on its device in any case",
    "tf32": "is on its devices in any case",
}
NOT = {
    "": COMMON | {
        "conformance": "starts axrun by itself",
        "extremes/very many inputs": "maps more than a process may have",
    },
    "cuda": COMMON | {
        "axlaunch/fewer ranks, compiled": "compiles for processors",
        "byte_tables": "looks up on processors alone",
        "compiled_plans": "compiles for processors",
        "dump_tensors/expected folders": "wants nothing to be said",
        **{f"train/{name} --tp={ranks} --sequence-parallel, for a card":
           "runs code for processors"
           for name in ("gpt2_tied", "llama") for ranks in (2, 4)},
    },
}


def simulated(build, order):
    return {"AXRUN_DEVICE": "cuda", "AXRUN_TARGET": "sm_90+sim",
            "AXRUN_CUDA_PATH": str(build / "test" / "simgpu"),
            "AXRUN_CUDA_ALGORITHMS": "1",
            "SIMGPU_ORDER": order}


def devices(build):
    """Name -> environment of axrun; which tests it gets without --all."""
    guarded = {"AX_RUNNERS": str(build / "test" / "guarded")}
    return {"": (guarded | {"AXRUN_DEVICE": "guarded"}, FEW),
            "bare": (guarded | {"AXRUN_DEVICE": "bare"}, BARE),
            "cuda": (simulated(build, "eager"), CUDA),
            "cuda, two cards": (simulated(build, "random:4") |
                                {"SIMGPU_CARDS": "2"}, CARDS),
            "cuda, nccl": (simulated(build, "random:5") |
                           {"AXRUN_COMM": "nccl", "SIMGPU_CARDS": "8",
                            "SIMGPU_PATIENCE": "20000"}, NCCL),
            "cuda, lazy": (simulated(build, "lazy"), ORDERS),
            "cuda, random 1": (simulated(build, "random:1"), ORDERS)}


def on(environment, function, *arguments):
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        function(*arguments)
    finally:
        os.environ.clear()
        os.environ.update(before)


def cases(every):
    folder = Path(__file__).parent
    build = Path(os.environ["AX_BIN"]).parent
    files = {file.stem for file in folder.glob("[!_]*.py")}
    if missing := {name.partition("/")[0] for those in NOT.values()
                   for name in those} - files:
        raise Failed(f"there is no {missing}")
    for device, (environment, few) in devices(build).items():
        left = NOT[device] if every and device in NOT else {}
        chosen = dict.fromkeys(sorted(files - set(left)), "") if left else few
        for name, pattern in chosen.items():
            for case, call in load(str(folder / f"{name}.py")).items():
                if re.search(pattern, case) and f"{name}/{case}" not in left:
                    yield (f"{name} {case}" + f" ({device})" * bool(device),
                           on, environment, *call)
