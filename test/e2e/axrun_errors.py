# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Flags, plans and files that axrun refuses, or can do without: one message."""
import json
import os
import re
import resource
import shutil
import struct
import subprocess
import time
from pathlib import Path

import numpy as np

from cases import MODELS, Failed, Unsupported, run, scratch, tool

MODEL = MODELS / "mlp_eager_ts13_dyn"
DATA = MODEL / "test_data_set_0"

# Two outputs whose names differ in what file names cannot hold.
TWO_OUTPUTS = """
ax.plan @names version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 1] in time [micro = 1]
  ax.program @main(%x: tensor<4xf32> {ax.name = "x"})
      -> (tensor<4xf32> {ax.name = "a/b"}, tensor<4xf32> {ax.name = "a_b"}) {
    %0:2 = ax.stage @stage0 on 0 (%a = %x : tensor<4xf32>)
        -> (tensor<4xf32>, tensor<4xf32>) {
      %1 = ax.unary relu %a : tensor<4xf32> -> tensor<4xf32>
      %2 = ax.unary neg %a : tensor<4xf32> -> tensor<4xf32>
      ax.yield %1, %2 : tensor<4xf32>, tensor<4xf32>
    }
    ax.schedule "forward" {
      stage 0: "F0"
    }
    ax.return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
  }
}
"""


def compiled(folder, *flags, shape="--test-data"):
    plan = Path(folder) / "plan.mlir"
    run(tool("axopt"), MODEL / "model.onnx",
        *((shape, DATA) if shape == "--test-data" else shape.split()), *flags,
        "--quiet", "-o", plan)
    return plan


def refused(code, *command, says, **options):
    """One message that says so, and nothing else."""
    done = run(tool("axrun"), *command, expect=code, **options)
    if says not in done.stderr or done.stderr.count("axrun: error: ") != 1 \
            or not done.stderr.startswith("axrun: "):
        raise Failed(f"not one message with '{says}':\n{done.stderr}")
    return done


def within(numBytes):
    """Options of run() for little memory; sanitizers need more."""
    limit = {"preexec_fn": lambda: resource.setrlimit(
        resource.RLIMIT_AS, (numBytes, numBytes))}
    if subprocess.run([tool("axrun"), "--version"], capture_output=True,
                      **limit).returncode:
        raise Unsupported("axrun does not start with so little memory")
    return limit


def numbersOutOfRange():
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        for seconds in ("1e10", "0.0004", "-1"):
            refused(2, plan, "--random-inputs=1", f"--timeout={seconds}",
                    says="expected 0 (for ever), or 0.001 to 1e+09")
        refused(2, plan, "--random-inputs=1", "--threads-per-rank=-1",
                says="--threads-per-rank=-1: a rank has 1 thread or more")
        for threads in (100000, 2**31 - 1):
            refused(2, plan, "--random-inputs=1",
                    f"--threads-per-rank={threads}",
                    says=f"1 rank with {threads} threads each: one process "
                         "runs 1 to 4096 threads")
        refused(2, plan, "--random-inputs=1", "--threads-per-rank=99999999999",
                says="threads each: one process runs 1 to 4096 threads")
        for flag in ("--random-inputs=abc", "--warmup=1e3", "--rtol=little",
                     "--timeout=", "--timeout=nan", "--timeout=inf",
                     "--timeout=0x10"):
            refused(2, plan, flag, says=f"{flag}: expected a ")
        run(tool("axrun"), plan, "--random-inputs=1", "--timeout=0")
        refused(2, plan, "--data=x.npz", "--steps=1", "--warmup=1",
                says="--warmup has no use in this run: it is for measuring "
                "runs (--iterations or --profile)")


def manyRanks():
    """Said at once, and not after all has been tried."""
    with scratch() as folder:
        text = compiled(folder, "--tp=2").read_text()
        for ranks in (4096, 2**23):
            (plan := Path(folder) / "many.mlir").write_text(
                text.replace("col = 2]", f"col = 2, extra = {ranks}]"))
            begin = time.monotonic()
            refused(2, plan, "--random-inputs=1", says=f"{2 * ranks} ranks")
            assert time.monotonic() - begin < 30


def unknownBackends():
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        refused(2, plan, "--random-inputs=1", "--device=gpu",
                says="there is no device 'gpu', but: cpu")
        refused(2, plan, "--random-inputs=1", "--comm=gossip",
                says="there is no communicator 'gossip', but: local, mpi, nccl")
        refused(2, plan, "--random-inputs=1", "--comm=mpi",
                says="communicator 'mpi' is for processes that a launcher has "
                     "started")
        # Before the plan is looked at.
        refused(2, f"{folder}/none.mlir", "--device=", says="no device ''")
        run(tool("axrun"), plan, "--random-inputs=1", "--device=cpu",
            "--comm=local")


def cardsThatThereAreNot():
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        for cards, word in ("0,x", "x"), ("", ""), ("0,,1", ""), ("0,-1", "-1"), \
                ("4294967296", "4294967296"):
            refused(2, plan, "--random-inputs=1", "--device=cuda",
                    f"--devices={cards}", says=f"--devices={cards}: '{word}' is no number of a card: "
                    "expected one for each rank, from 0, with commas between")
        for cards, says in ("0", "1 card"), ("0,0,0", "3 cards"):
            refused(2, plan, "--random-inputs=1", "--device=cuda",
                    f"--devices={cards}", says=f"{plan}: --devices has {says}, and the plan 2 ranks: "
                    "give one for each rank")


def threadsThatDoNotStart():
    """Their stacks need more memory than there is."""
    limit = within(2 << 30)
    with scratch() as folder:
        plan = compiled(folder, "--dp=512", shape="--dim batch=512")
        refused(8, plan, "--random-inputs=1",
                says="of 512 ranks could be started", **limit)


def inputsThatDoNotFit():
    limit = within(64 << 30)
    with scratch() as folder:
        size = 10**12
        (plan := Path(folder) / "big.mlir").write_text(
            TWO_OUTPUTS.replace("tensor<4x", f"tensor<{size}x"))
        refused(8, plan, "--random-inputs=1", says="input 'x': out of memory",
                **limit)


def comparisonsWithNothing():
    with scratch() as folder:
        plan = compiled(folder)
        np.savez(f"{folder}/empty.npz")
        refused(6, plan, "--random-inputs=1", "--expect",
                f"{folder}/empty.npz", says="there is nothing in it to compare with")
        (case := Path(folder) / "case").mkdir()
        refused(6, plan, "--random-inputs=1", "--test-data", case,
                says="there is no output_0.pb to compare with")
        refused(6, plan, "--test-data", case, "--output", f"{folder}/o",
                says=f"--test-data={case}: there is no input_0.pb")
        run(tool("axrun"), plan, "--random-inputs=1", "--test-data", case,
            "--output", f"{folder}/out.npz")
        refused(7, plan, "--test-data", case / "none", says="case/none")
        (two := Path(folder) / "two.mlir").write_text(TWO_OUTPUTS)
        np.savez(f"{folder}/a.npz", **{"a_b": np.full(4, -1, np.float32)})
        np.savez(f"{folder}/x.npz", x=np.ones(4, np.float32))
        done = run(tool("axrun"), two, "--inputs", f"{folder}/x.npz",
                   "--expect", f"{folder}/a.npz")
        if "axrun: note: not compared: a/b" not in done.stderr:
            raise Failed(done.stderr)
        for name, values in (("x", [np.nan, 1, 1, 1]),
                             ("a_b", [np.nan, -1, -1, -1])):
            np.savez(f"{folder}/{name}.npz",
                     **{name: np.array(values, np.float32)})
        done = run(tool("axrun"), two, "--inputs", f"{folder}/x.npz",
                   "--expect", f"{folder}/a_b.npz")
        if "0 of 4 elements differ, 1 are NaN in both" not in done.stderr:
            raise Failed(done.stderr)
        refused(5, MODEL / "model.onnx", "--random-inputs=1",
                says="is an ONNX model: compile it with axopt first")


def namesAndFiles():
    with scratch() as folder:
        (plan := Path(folder) / "two.mlir").write_text(TWO_OUTPUTS)
        refused(2, plan, "--random-inputs=1", "--output", f"{folder}/y.npy",
                says="has room for one output, there are 2: give FILE.npz or "
                     "a folder")
        refused(2, plan, "--random-inputs=1", "--output", f"{folder}/out",
                says="outputs 'a/b' and 'a_b' would both be a_b.npy: "
                     "give --output FILE.npz")
        (inside := Path(folder) / "k=v").mkdir()
        np.save(inside / "x.npy", np.ones(4, np.float32))
        run(tool("axrun"), plan, "--input", f"x={inside}/x.npy")
        # Before the weights are read and ranks are started.
        away = ["--model-dir", f"{folder}/away"]
        plan = compiled(folder, "--tp=2")
        (file := Path(folder) / "file").write_text("")
        for flag, path in [("--json", "no/r.json"), ("--trace", "no/t.json"),
                           ("--output", "no/o.npz"), ("--output", "file/o")]:
            refused(7, plan, "--random-inputs=1", *away, flag,
                    f"{folder}/{path}", says=path)
        done = run(tool("axrun"), plan, "--list-commands", *away)
        assert "stage" in done.stdout
        done = run(tool("axrun"), plan, "--random-inputs=1", "--iterations=1",
                   "--json", "/dev/stdout")
        assert json.loads(done.stdout)["iterations"] == 1


def tracesOfWhatIsMeasured():
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        run(tool("axrun"), plan, "--random-inputs=1", "--warmup=3",
            "--iterations=2", "--json", f"{folder}/r.json", "--trace",
            f"{folder}/t.json")
        commands = json.loads(Path(f"{folder}/r.json").read_text())["commands"]
        for command in commands:
            if command["executions"] != 2 * 2:
                raise Failed(f"2 runs on 2 ranks: {command}")


def cachesThatCannotBe():
    with scratch() as folder:
        plan = compiled(folder)
        home = os.environ | {"HOME": "/proc/nope"}
        home.pop("AXOPT_CACHE", None)
        for flags, env in ((["--cache-dir=/proc/nope"], os.environ),
                           ([], home)):
            done = run(tool("axrun"), plan, "--test-data", DATA, *flags,
                       env=dict(env))
            if "axrun: warning: kernels are not cached" not in done.stderr:
                raise Failed(done.stderr)


def weightsNestedDeeply():
    with scratch() as folder:
        plan = compiled(folder)
        for header in (b"[" * 3_000_000, b'{"a": {"b": [[[1]]]}}'):
            (weights := Path(folder) / "w.safetensors").write_bytes(
                len(header).to_bytes(8, "little") + header)
            refused(6, plan, "--random-inputs=1", "--weights", weights,
                    says="the header is too long or nested too deeply")


def weightsBehindLinks():
    with scratch() as folder:
        # The model may be reached by a link ...
        (link := Path(folder) / "link.onnx").symlink_to(MODEL / "model.onnx")
        run(tool("axopt"), link, "--test-data", DATA, "--quiet", "-o",
            f"{folder}/plan.mlir")
        run(tool("axrun"), f"{folder}/plan.mlir", "--test-data", DATA)
        # ... but a plan may not name one.
        refused(5, compiled(folder), "--test-data", DATA, "--model-dir",
                folderWithLink(folder), says="is a symbolic link")


def folderWithLink(folder):
    (other := Path(folder) / "other").mkdir()
    (other / "model.onnx").symlink_to(MODEL / "model.onnx")
    return other


def modelsThatChanged():
    with scratch() as folder:
        shutil.copytree(MODEL, f"{folder}/model")
        plan = Path(folder) / "plan.mlir"
        run(tool("axopt"), f"{folder}/model/model.onnx", "--test-data", DATA,
            "--quiet", "-o", plan)
        run(tool("axrun"), plan, "--test-data", DATA)
        name = re.search(r' from "([^"]+)"', plan.read_text())[1]
        file = Path(folder) / "model" / name
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        for changed in bytes(data), bytes(data) + b"x":
            file.write_bytes(changed)
            refused(6, plan, "--test-data", DATA,
                    says=f"{name}' is not the file that this plan was "
                         "compiled from: compile it again")
        run(tool("axrun"), plan, "--test-data", DATA, "--model-dir", MODEL)
        text, count = re.subn(r"ax.files = \{.*?\}, ", "", plan.read_text())
        assert count == 1
        plan.write_text(text)
        # Below the plan's own folder it may do without.
        run(tool("axrun"), plan, "--random-inputs=1")


def foldersElsewhere():
    """A plan reads only what lies with it, or what it knows already."""
    with scratch() as folder:
        folder = Path(folder)
        (folder / "own").mkdir()
        shutil.copytree(MODEL, folder / "model")
        plan = folder / "own" / "plan.mlir"
        run(tool("axopt"), folder / "model" / "model.onnx", "--test-data", DATA,
            "--quiet", "-o", plan)
        whole = plan.read_text()
        run(tool("axrun"), plan, "--test-data", DATA)
        there = f'ax.model_dir = "{folder}/model"'
        assert there in whole
        without = re.sub(r"ax.files = \{.*?\}, ", "", whole)
        empty = re.sub(r'( = )"\d+:[0-9a-f]+"', r'\1""', whole)
        (folder / "own" / "link").symlink_to(folder / "model")
        for text in without, empty:
            for name in str(folder / "model"), "../model", "link":
                plan.write_text(text.replace(there,
                                             f'ax.model_dir = "{name}"'))
                refused(5, plan, "--test-data", DATA,
                        says="outside of the plan's folder, and the plan has "
                             "no fingerprint (ax.files) of 'model.onnx': give "
                             "--model-dir if that folder is meant")
                run(tool("axrun"), plan, "--test-data", DATA, "--model-dir",
                    folder / "model")
        # Relative to the plan, wherever it is run.
        shutil.copytree(MODEL, folder / "own" / "below" / "model")
        for name in "below/model", f"{folder}/own/below/model":
            plan.write_text(without.replace(there, f'ax.model_dir = "{name}"'))
            run(tool("axrun"), plan, "--test-data", DATA, cwd=folder)
        shutil.copy(folder / "model" / "model.onnx", folder / "own")
        plan.write_text(without.replace(", " + there, "").replace(there, ""))
        run(tool("axrun"), plan, "--test-data", DATA, cwd=folder)


def archivesThatDoNotFit():
    limit = within(2 << 30)
    with scratch() as folder:
        (plan := Path(folder) / "two.mlir").write_text(TWO_OUTPUTS)
        np.savez_compressed(f"{folder}/x.npz", x=np.random.default_rng(0)
                            .integers(0, 256, 3 << 20).astype(np.uint8))
        data = bytearray((file := Path(f"{folder}/x.npz")).read_bytes())
        struct.pack_into("<I", data, data.rindex(b"PK\1\2") + 24, 3 * 10**9)
        file.write_bytes(data)
        refused(8, plan, "--inputs", file, says="out of memory", **limit)


def manySlots():
    with scratch() as folder:
        plan = compiled(folder, "--pp=2")
        text, count = re.subn(r"slots \d+", "slots 1024", plan.read_text())
        assert count
        plan.write_text(text)
        run(tool("axrun"), plan, "--test-data", DATA)


def cases(every):
    for function in (numbersOutOfRange, manyRanks, unknownBackends,
                     cardsThatThereAreNot, threadsThatDoNotStart,
                     inputsThatDoNotFit, comparisonsWithNothing,
                     namesAndFiles, tracesOfWhatIsMeasured,
                     cachesThatCannotBe, weightsNestedDeeply,
                     weightsBehindLinks, modelsThatChanged, foldersElsewhere,
                     archivesThatDoNotFit, manySlots):
        yield function.__name__, function
