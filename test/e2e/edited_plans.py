# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled plans with another number and a checksum that is right: refused by one
message, or run without touching what is not theirs. They run on a device whose
memory the host cannot touch, and ends with a signal are failures."""
import os
import resource
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cases import MODELS, Failed, Unsupported, isSanitized, run, scratch, tool
from _adapters import save
from _training import DIGITS, FC_NET

BUILD = Path(os.environ["AX_BIN"]).parent
RANDOM = ["--random-inputs=1"]
BLOCKS = "blocks.onnx"
# Name -> flags of axopt, flags of axrun.
PLANS = {
    # Products of rounded rows with numbers of few bits.
    "blocks": ([BLOCKS, "--tp=2"], RANDOM),
    "convolutions": ([MODELS / "convnet_eager_ts17_dyn" / "model.onnx",
                      "--test-data", MODELS / "convnet_eager_ts17_dyn",
                      "--tp=2"], RANDOM),
    "attention": ([MODELS / "gpt2_eager_ts17_dyn" / "model.onnx", "--test-data",
                   MODELS / "gpt2_eager_ts17_dyn", "--tp=2", "--pp=2"], RANDOM),
    # Of two targets, one of which does not run here.
    "targets": ([MODELS / "mlp_eager_ts13_dyn" / "model.onnx", "--dim=batch=4",
                 "--tp=2", "--target=sm_90,native"], RANDOM),
    "training": ([FC_NET, "--shape=input=32x64", "--train", "--dp=2",
                  "--loss=cross_entropy(logits,labels)", "--zero=2", "--pp=2",
                  "--micro-batches=2"],
                 ["--data", DIGITS / "train.npz", "--steps=1", "--quiet"]),
}
# What a run may end with: done, or an error of a kind that plans have, or weights
# that are no numbers.
CODES = {0, 2, 3, 4, 5, 6, 7, 8, 9}


def limited():
    """Before a run: sizes that there cannot be fail at once."""
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def outcome(plan, flags):
    runner = BUILD / "test" / "guarded" / "axrun-core"
    try:
        done = subprocess.run([runner, plan, *flags, "--timeout=5"],
                              capture_output=True, text=True, timeout=100,
                              preexec_fn=limited,
                              env=os.environ | {"AXRUN_DEVICE": "guarded"})
    except subprocess.TimeoutExpired:
        return None, "hangs"
    finally:
        plan.unlink()
    return done.returncode, done.stderr


def edited(name, count):
    making, running = PLANS[name]
    with scratch() as folder:
        folder = Path(folder)
        if making[0] is BLOCKS:
            making = [folder / BLOCKS, *making[1:]]
            save(making[0], True, accuracy_level=4)
        plan = folder / "plan.axc"
        run(tool("axopt"), *making, "--compile", "--quiet", "-o", plan)
        changes = run(BUILD / "test" / "edits" / "EditCompiledPlan", plan,
                      folder, count).stdout.splitlines()
        with ThreadPoolExecutor(2) as pool:
            results = list(pool.map(
                lambda i: outcome(folder / f"{i}.axc", running),
                range(len(changes))))
        wrong = [f"edit {i}, {change}: {code} {text[-300:]}"
                 for i, (change, (code, text)) in enumerate(zip(changes, results))
                 if code not in CODES or code and text.count("axrun") > 2]
        if wrong:
            raise Failed(f"{len(wrong)} of {len(changes)}:\n" + "\n".join(wrong))
        codes = [code for code, text in results]
        assert 0 in codes and 5 in codes, codes


def cases(every):
    if isSanitized():
        raise Unsupported("sanitizers take all of the address space, which this "
                          "limits")
    for name in PLANS:
        yield name, edited, name, 1000 if every else 60
