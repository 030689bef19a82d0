# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks of many kinds: axrun beside its peers, one thread each, in turns.

usage: zoo.py BUILD [NETWORK...] [--rounds N] [--seconds S] [--threads N]
              [--bf16] [--packages] [--quantised]

Each engine is a process that keeps the network; in each round each runs it for
some time, and its least time counts. The ratio, axrun's time to the fastest
peer's, is the median of the rounds'. All outputs must agree with onnxruntime's.
With --bf16 products are of bf16 where an engine has that, which onnxruntime has not.
Of networks whose outputs in bf16 are too far off, axrun's and a peer's, there is no
ratio. With --packages the networks are those that packages of PyPI bring, with
--quantised some in eight bits as onnxruntime's quantisers write them.
"""
import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from bench import PEERS, capture
import zoo_packages
import zoo_quantised
from zoo_networks import NETWORKS

HERE = Path(__file__).parent
TOLERANCE = {"fp32": 1e-3, "bf16": 1e-1}
# Numbers that are rounded to steps of a quantised model, or to f16, on the way.
ROUNDED = {"rounded", "rounded_decode", "integers", "dequantized", "half",
           "half_decode", "smart_turn_int8", "uvdoc_f16"}
OF_ROUNDED = 3e-2
# Whichever way a number in the middle is rounded, others behind it follow.
OF_QUANTISED = 0.2
WANTED = 1.1


class Engine:
    def __init__(self, name, model, folder, precision, threads, *library):
        self.outputs = folder / f"{name}.npz"
        self.process = subprocess.Popen(
            [sys.executable, HERE / "zoo_engine.py", name, model,
             folder / "feeds.npz", self.outputs, precision, str(threads),
             *library],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            sys.exit(f"{name} did not run {model}")

    def run(self, seconds):
        print(seconds, file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def difference(outputs, expected):
    """The largest, in units of the output's largest value."""
    got, wanted = np.load(outputs), np.load(expected)
    return max(np.abs(got[name] - wanted[name]).max() /
               max(np.abs(wanted[name]).max(), 1e-20) for name in wanted)


def measure(options, name, folder):
    model, plan = folder / "model.onnx", folder / "plan.mlir"
    network = (NETWORKS | zoo_packages.NETWORKS |
               zoo_quantised.NETWORKS)[name](False)
    network.save(model)
    np.savez(folder / "feeds.npz", **network.feeds())
    precision = "bf16" if options.bf16 else "fp32"
    capture(options.bin / "axopt", model, f"--precision={precision}", "-o", plan)
    peers = getattr(network, "peers", PEERS)
    how = precision, options.threads
    engines = {peer: Engine(peer, model, folder, *how) for peer in peers}
    engines["axrun"] = Engine("axrun", plan, folder, *how,
                              options.build / "lib" / "libaxrun.so")
    times = {engine: [] for engine in engines}
    for _ in range(options.rounds):
        for engine in engines:
            times[engine].append(engines[engine].run(options.seconds))
    for engine in engines.values():
        engine.end()
    most = max(TOLERANCE[precision], OF_ROUNDED if name in ROUNDED else 0,
               OF_QUANTISED if name in zoo_quantised.NETWORKS else 0)
    off = {engine: far for engine in engines if not
           (far := difference(engines[engine].outputs,
                              engines["onnxruntime"].outputs)) <= most}
    # Peers show which networks make much of little.
    if off and not (options.bf16 and "axrun" in off and len(off) > 1):
        sys.exit(f"{name}: outputs off onnxruntime's: {off}")
    if off:
        return {engine: min(each) for engine, each in times.items()}, None
    ratio = statistics.median(
        own / min(others) for own, *others in
        zip(times["axrun"], *(times[peer] for peer in peers)))
    return {engine: min(each) for engine, each in times.items()}, ratio


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=lambda path: Path(path).resolve())
    parser.add_argument("networks", nargs="*", help=", ".join(NETWORKS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--packages", action="store_true")
    parser.add_argument("--quantised", action="store_true")
    options = parser.parse_intermixed_args()
    options.bin = options.build / "bin"
    networks = (zoo_packages.NETWORKS if options.packages else
                zoo_quantised.NETWORKS if options.quantised else NETWORKS)
    unknown = set(options.networks) - set(networks)
    if unknown:
        parser.error(f"no network is called {', '.join(sorted(unknown))}; there "
                     f"are {', '.join(networks)}")
    print("| network |", " | ".join(f"{peer} ms" for peer in PEERS),
          "| axrun ms | axrun / faster peer |\n|---|---|---|---|---|")
    ratios = {}
    for name in options.networks or networks:
        with tempfile.TemporaryDirectory() as folder:
            times, ratios[name] = measure(options, name, Path(folder))
        print(f"| {name} |", " | ".join(
            f"{times[e]:.2f}" if e in times else "-" for e in [*PEERS, "axrun"]),
              f"| {ratios[name]:.2f} |" if ratios[name] else "| too far off |",
              flush=True)
    slow = [name for name, ratio in ratios.items() if ratio and ratio > WANTED]
    if slow:
        print(f"\nmore than {WANTED}: {', '.join(slow)}")


if __name__ == "__main__":
    main()
