# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The flags of axrun, what it says of bad input, and its exit codes."""
import json
from pathlib import Path

import numpy as np

from cases import MODELS, Failed, run, scratch, tool

MODEL = MODELS / "mlp_eager_ts13_dyn"
DATA = MODEL / "test_data_set_0"


def compiled(folder, *flags):
    plan = f"{folder}/plan.mlir"
    run(tool("axopt"), MODEL / "model.onnx", "--test-data", DATA, *flags,
        "-o", plan)
    return plan


def expectText(done, *texts):
    for text in texts:
        if text not in done.stderr:
            raise Failed(f"no '{text}' in:\n{done.stderr}")


def outputsAreInputsOfTheNextComparison():
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        run(tool("axrun"), plan, "--test-data", DATA, "--output",
            f"{folder}/out.npz")
        run(tool("axrun"), plan, "--test-data", DATA, "--output",
            f"{folder}/out")
        outputs = dict(np.load(f"{folder}/out.npz"))
        for name, value in outputs.items():
            assert np.array_equal(value, np.load(f"{folder}/out/{name}.npy"))
        run(tool("axrun"), plan, "--test-data", DATA, "--expect",
            f"{folder}/out.npz", "--rtol", 0, "--atol", 0)
        name, value = next(iter(outputs.items()))
        value.flat[3] += 0.25
        np.savez(f"{folder}/wrong.npz", **outputs)
        done = run(tool("axrun"), plan, "--test-data", DATA, "--expect",
                   f"{folder}/wrong.npz", expect=1)
        expectText(done, f"{name}: max |difference| 0.25 at [0, 3]",
                   f"1 of {value.size} elements differ")
        # The largest difference is not the one that is too large.
        outputs[name] = np.load(f"{folder}/out.npz")[name]
        outputs[name].flat[3] = 1000
        outputs[name].flat[4] = 0
        np.savez(f"{folder}/wrong.npz", **outputs)
        done = run(tool("axrun"), plan, "--test-data", DATA, "--expect",
                   f"{folder}/wrong.npz", "--rtol=1.5", "--atol=0", expect=1)
        expectText(done, " at [0, 3], ", f"1 of {value.size} elements differ, "
                   "the most by its tolerance at [0, 4], ")


def toldOutputs():
    """Of whom nobody says what to do with them."""
    with scratch() as folder:
        plan = compiled(folder)
        data = ["--test-data", DATA, "--output"]
        run(tool("axrun"), plan, *data, f"{folder}/y.npy")
        run(tool("axrun"), plan, *data, f"{folder}/y.npz")
        value, = np.load(f"{folder}/y.npz").values()
        assert np.array_equal(np.load(f"{folder}/y.npy"), value)
        done = run(tool("axrun"), plan, "--random-inputs=1", "--output",
                   f"{folder}/r.npy")
        assert not done.stdout, done.stdout
        value = np.load(f"{folder}/r.npy").ravel()
        done = run(tool("axrun"), plan, "--random-inputs=1")
        wanted = (f"from {value.min():.6g} to {value.max():.6g}, mean "
                  f"{value.astype(float).mean():.6g}; "
                  + ", ".join(f"{x:.6g}" for x in value[:4]) + ", ...\n")
        if not done.stdout.endswith(wanted) or done.stdout.count("\n") != 1:
            raise Failed(f"expected: {wanted}\ngot: {done.stdout}")


def inputsByName():
    with scratch() as folder:
        plan = compiled(folder)
        done = run(tool("axrun"), plan, expect=6)
        expectText(done, "no value for these inputs")
        words = done.stderr.split("):")[1].strip().split(": ")
        name, *sizes = words[0], *words[1].strip().split("x")
        shape = [int(size) for size in sizes[:-1]]
        value = np.random.default_rng(0).normal(size=shape).astype(np.float32)
        np.save(f"{folder}/x.npy", value)
        np.savez(f"{folder}/x.npz", **{name: value})
        run(tool("axrun"), plan, "--input", f"{name}={folder}/x.npy",
            "--output", f"{folder}/a.npz")
        run(tool("axrun"), plan, "--inputs", f"{folder}/x.npz",
            "--expect", f"{folder}/a.npz", "--rtol", 0, "--atol", 0)
        run(tool("axrun"), plan, "--inputs", f"{folder}/x.npz",
            "--output", f"{folder}/a.npy")
        run(tool("axrun"), plan, "--inputs", f"{folder}/x.npz",
            "--expect", f"{folder}/a.npy", "--rtol", 0, "--atol", 0)
        np.save(f"{folder}/a.npy", np.load(f"{folder}/a.npy") + 1)
        run(tool("axrun"), plan, "--inputs", f"{folder}/x.npz",
            "--expect", f"{folder}/a.npy", expect=1)
        np.save(f"{folder}/bad.npy", value[..., :1])
        done = run(tool("axrun"), plan, "--input", f"{name}={folder}/bad.npy",
                   expect=6)
        expectText(done, f"input '{name}' must be")
        done = run(tool("axrun"), plan, "--input", f"other={folder}/x.npy",
                   "--random-inputs", 1, expect=6)
        expectText(done, "the plan has no input 'other'")
        Path(f"{folder}/x.npy").write_bytes(b"\x93NUMPY\x01\x00")
        run(tool("axrun"), plan, "--input", f"{name}={folder}/x.npy", expect=6)


def measurements():
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        done = run(tool("axrun"), plan, "--random-inputs", 1, "--warmup", 1,
                   "--iterations", 7, "--json", f"{folder}/r.json",
                   "--trace", f"{folder}/t.json")
        expectText(done, "7 runs: median")
        expectText(done, " ms on 'generic CPU core'")
        report = json.loads(Path(f"{folder}/r.json").read_text())
        assert report["iterations"] == 7 and report["ranks"] == 2
        assert 0 < report["min_ms"] <= report["median_ms"] <= report["p99_ms"]
        assert report["flops"] > 0 and report["commands"]
        assert report["predicted_ms"] > 0
        assert report["predicted_for"] == "generic CPU core"
        # A compiled plan knows, which nothing here could predict.
        run(tool("axopt"), plan, "--compile", "--quiet", "-o", f"{folder}/c.axc")
        run(tool("axrun-core"), f"{folder}/c.axc", "--random-inputs", 1,
            "--iterations", 1, "--json", f"{folder}/r.json")
        again = json.loads(Path(f"{folder}/r.json").read_text())
        assert again["predicted_ms"] == report["predicted_ms"], again
        trace = json.loads(Path(f"{folder}/t.json").read_text())
        assert trace["traceEvents"] if isinstance(trace, dict) else trace


def otherWeights():
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        text = Path(plan).read_text()
        states = {}
        for line in text.splitlines():
            words = line.split()
            if words[:1] == ["ax.state"]:
                name = words[1].lstrip("@").strip('"')
                shape = words[3].split("<")[1].split("xf32")[0]
                states[name] = np.zeros(
                    [int(size) for size in shape.split("x")], np.float32)
        np.savez(f"{folder}/zero.npz", **states)
        run(tool("axrun"), plan, "--test-data", DATA, "--weights",
            f"{folder}/zero.npz", "--output", f"{folder}/out.npz", expect=1)
        for value in np.load(f"{folder}/out.npz").values():
            assert not value.any()
        states.popitem()
        np.savez(f"{folder}/less.npz", **states)
        done = run(tool("axrun"), plan, "--test-data", DATA, "--weights",
                   f"{folder}/less.npz", expect=6)
        expectText(done, "is missing")


def badPlansAndFlags():
    with scratch() as folder:
        plan = Path(compiled(folder, "--tp=2"))
        run(tool("axrun"), f"{folder}/none.mlir", expect=7)
        text = plan.read_text()
        (broken := Path(folder) / "broken.mlir").write_text(text[:-200])
        run(tool("axrun"), broken, "--random-inputs", 1, expect=5)
        run(tool("axrun"), plan, "--random-inputs", 1, "--threads-per-rank", -1,
            expect=2)
        run(tool("axrun"), plan, "--nonsense", expect=2)
        run(tool("axrun"), plan, "--random-inputs", 1, "--model-dir",
            f"{folder}/nowhere", expect=7)


def kernelsByThemselves():
    """Fused or not, on one thread or more: the same within rounding."""
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        run(tool("axrun"), plan, "--test-data", DATA, "--separate-kernels")
        run(tool("axrun"), plan, "--test-data", DATA, "--threads-per-rank", 2)
        for _ in range(2):  # Compiled, then from the cache.
            run(tool("axrun"), plan, "--test-data", DATA, "--cache-dir",
                f"{folder}/cache")
        for file in Path(f"{folder}/cache").rglob("*.o"):
            file.write_bytes(b"damaged")
        run(tool("axrun"), plan, "--test-data", DATA, "--cache-dir",
            f"{folder}/cache")


def fromC():
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        done = run(tool("run_plan"), plan)
        if "output" not in done.stdout:
            raise Failed(f"no output in:\n{done.stdout}")
        run(tool("run_plan"), f"{folder}/none.mlir", expect=7)
        done = run(tool("run_plan"), plan, "--tp=4", expect=2)
        if "is a plan: it takes no flags" not in done.stderr:
            raise Failed(f"no such message in:\n{done.stderr}")


def cases(every):
    for function in (outputsAreInputsOfTheNextComparison, toldOutputs,
                     inputsByName,
                     measurements, otherWeights, badPlansAndFlags,
                     kernelsByThemselves, fromC):
        yield function.__name__, function
