# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a device lacks the CPU does, and says so once for each kind of operation;
--no-host-fallback makes it an error; --launch-blocking changes no number."""
import os
from pathlib import Path

from cases import MODELS, run, scratch, tool

RUNNER = Path(os.environ["AX_BIN"]).parent / "test" / "guarded" / "axrun"
MODEL = MODELS / "gpt2_eager_ts17_dyn"


def compiled(folder):
    plan = Path(folder) / "plan.mlir"
    run(tool("axopt"), MODEL / "model.onnx", "--test-data", MODEL, "--tp=2",
        "--pp=2", "-o", plan)
    return plan


def told():
    with scratch() as folder:
        plan = compiled(folder)
        for flags in [], ["--launch-blocking"]:
            said = run(RUNNER, plan, "--test-data", MODEL, "--device=bare",
                       *flags).stderr
            for kind in "matmul", "attention":
                line = f"device 'bare' lacks {kind}: the CPU does it"
                assert said.count(line) == 1, said
        # Nothing is lacking there.
        said = run(RUNNER, plan, "--test-data", MODEL, "--device=guarded",
                   "--no-host-fallback").stderr
        assert "lacks" not in said, said


def refused():
    with scratch() as folder:
        said = run(RUNNER, compiled(folder), "--test-data", MODEL,
                   "--device=bare", "--no-host-fallback", expect=4).stderr
        assert "device 'bare' has no matmul" in said, said


def cases(every):
    yield "told once for each kind", told
    yield "refused", refused
