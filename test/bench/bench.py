# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""axrun against its peers, in turns within one run; ratios of times.

usage: bench.py BUILD --minilm FOLDER [MODEL...] [--rounds N]
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import networks

PEERS = ["onnxruntime", "openvino"]
# Model -> symbolic dimensions to bind, in the order of an input's axes.
LATENCY = {"gpt2-like": [], "minilm": ["batch=1", "sequence=128"], "mlp": [],
           "resnet50": []}
HERE = Path(__file__).parent


def capture(*command, **environment):
    done = subprocess.run([str(word) for word in command],
                          capture_output=True, text=True,
                          env=os.environ | environment)
    if done.returncode:
        sys.exit(f"$ {' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def compilePlan(options, model, dims, plan, *flags):
    bind = [word for dim in dims for word in ("--dim", dim)]
    capture(options.bin / "axopt", model, *bind, *flags, "-o", plan)


def runPlan(options, plan, iterations):
    report = plan.with_suffix(".json")
    capture(options.bin / "axrun", plan, "--random-inputs", 1, "--warmup", 3,
            "--iterations", iterations, "--threads-per-rank", 1,
            "--json", report)
    return json.loads(report.read_text())["median_ms"]


def runPeer(peer, model, threads, iterations, dims):
    return float(capture(sys.executable, HERE / "peer.py", peer, model,
                         threads, iterations, *dims))


def latency(options, name, folder):
    dims = LATENCY[name]
    model = (options.minilm / "model.onnx" if name == "minilm"
             else networks.build(name, options.models))
    for ranks in 1, 2:
        plan = folder / f"{name}-{ranks}.mlir"
        compilePlan(options, model, dims, plan, f"--tp={ranks}")
        times = {engine: [] for engine in PEERS + ["axrun"]}
        for _ in range(options.rounds):
            for peer in PEERS:
                times[peer].append(
                    runPeer(peer, model, ranks, options.iterations, dims))
            times["axrun"].append(runPlan(options, plan, options.iterations))
        # Ratio within each round: what disturbs a round disturbs all in it.
        ratio = statistics.median(
            own / min(peers) for own, *peers in
            zip(times["axrun"], *(times[peer] for peer in PEERS)))
        medians = {k: statistics.median(v) for k, v in times.items()}
        print(f"| {name} | {ranks} | "
              + " | ".join(f"{medians[k]:.2f}" for k in PEERS + ["axrun"])
              + f" | {ratio:.2f} |", flush=True)


def measured(*command, **environment):
    """Wall seconds and peak resident bytes of one command."""
    start = time.perf_counter()
    child = subprocess.Popen([str(word) for word in command],
                             env=os.environ | environment,
                             stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True)
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"$ {' '.join(map(str, command))}\n{said}")
    return time.perf_counter() - start, usage.ru_maxrss * 1024


def startUp(options, folder):
    model = networks.build("gpt2-small", options.models)
    weights = sum(f.stat().st_size for f in model.parent.iterdir())
    for ranks in 1, 4:
        plan = folder / f"gpt2-small-{ranks}.mlir"
        compiling, _ = measured(options.bin / "axopt", model, "--quiet",
                                f"--tp={ranks}",
                                "-o", plan, AXOPT_CACHE=str(folder / "cold"))
        running, peak = measured(options.bin / "axrun", plan,
                                 "--random-inputs", 1, "--threads-per-rank", 1,
                                 AXOPT_CACHE=str(folder / "cold"))
        print(f"| {ranks} | {compiling:.2f} | {running:.2f} "
              f"| {compiling + running:.2f} | {peak / 2**20:.0f} "
              f"| {peak / weights:.2f} |", flush=True)


def ready(options, folder):
    """Until ranks have their weights, with kernels in the cache, beside reading
    the file of the weights."""
    model = networks.build("gpt2-small", options.models)
    data, = model.parent.glob("*.data")
    report = folder / "report.json"
    for ranks in 1, 4:
        text, code = (folder / f"ready-{ranks}.{end}" for end in ("mlir", "axc"))
        axopt = options.bin / "axopt"
        capture(axopt, model, "--quiet", f"--tp={ranks}", "-o", text)
        capture(axopt, text, "--quiet", "--compile", "-o", code)
        seconds = {"read": [], "axrun": [], "axrun-core": []}
        for _ in range(options.rounds):
            start = time.perf_counter()
            data.read_bytes()
            seconds["read"].append(time.perf_counter() - start)
            for name, plan in ("axrun", text), ("axrun-core", code):
                measured(options.bin / name, plan, "--random-inputs", 1,
                         "--threads-per-rank", 1, "--json", report,
                         "--iterations", 1)
                seconds[name].append(
                    json.loads(report.read_text())["load_seconds"])
        read, axrun, core = (min(values) for values in seconds.values())
        print(f"| {ranks} | {read:.2f} | {axrun:.2f} | {core:.2f} "
              f"| {core / read:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path)
    parser.add_argument("--minilm", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("what", nargs="*",
                        help=f"{', '.join(LATENCY)}, start-up; default: all")
    options = parser.parse_intermixed_args()
    options.bin = options.build / "bin"
    options.models = Path(os.environ["AXOPT_CACHE"]) / "bench-models"
    what = options.what or [*LATENCY, "start-up"]

    with tempfile.TemporaryDirectory() as folder:
        names = [name for name in LATENCY if name in what]
        if names:
            print("| model | ranks or threads | onnxruntime ms | openvino ms "
                  "| axrun ms | axrun / faster peer |\n|---|---|---|---|---|---|")
        for name in names:
            latency(options, name, Path(folder))
        if "start-up" in what:
            print("\n| gpt2-small, ranks | axopt s | axrun s | both s "
                  "| axrun peak MiB | peak / weights |\n|---|---|---|---|---|---|")
            startUp(options, Path(folder))
            print("\n| gpt2-small, ranks | read s | axrun plan.mlir s "
                  "| axrun-core plan.axc s | axrun-core / read |\n"
                  "|---|---|---|---|---|")
            ready(options, Path(folder))


if __name__ == "__main__":
    main()
