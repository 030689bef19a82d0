# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the archive that goes to a card: programs, the libraries that they need,
and the cases of cases.txt with what is expected of them. `tools/dev package` runs
it.

usage: package.py BUILD --output FILE.tar.xz [--simulated] [--cases REGEX] [-j N]
"""
import argparse
import fnmatch
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections import namedtuple
from multiprocessing.pool import ThreadPool
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

HERE = Path(__file__).parent
TEST = HERE.parent
sys.path[:0] = [str(TEST), str(TEST / "e2e"), str(HERE)]
import _contrib
import benches
import contrib_attention
import contrib_bits
import contrib_layers
import contrib_quantized
import made
import speed
from _operator_case import model_of
from _operators import RANDOM, cases_of, wanted

LARGEST = 40 << 20
# By the kernel's and the loader's ABI, these are one: they come from one glibc.
LIBC = ["libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0",
        "librt.so.1"]
LOADER = "ld-linux-x86-64.so.2"
PROGRAMS = {"axrun-core": "bin/axrun-core", "AxCardTests": "test/unit/AxCardTests"}
# Newer cards run it, too.
OLDEST = "sm_80"
# The oldest that multiplies factors of eight bits.
OLDEST_OF_FLOAT8 = "sm_90"
# Groups of nodes of onnxruntime's own operators.
CONTRIB = {(module.__name__.partition("_")[2], group.__name__): group
           for module in (contrib_attention, contrib_bits, contrib_layers,
                          contrib_quantized)
           for group in module.GROUPS}
# Flags of axrun that the CPU does not have.
OF_CARDS = {"--launch-blocking", "--comm=nccl", "--nondeterministic"}
# Rounding to half precision may go either way.
HALF = 2e-3

Case = namedtuple("Case", "kind source axopt axrun tolerance")


def name(case):
    words = [case.kind, case.source.partition("/")[2] or case.source,
             *case.axopt, *case.axrun]
    return " ".join(words)


def sources(pattern):
    """What a `what` of the table names."""
    if "*" not in pattern:
        return [pattern]
    top = pattern.split("/")[0]
    found = {"models": lambda: (TEST / "models").glob("*/model.onnx"),
             "training": lambda: (TEST / "data/training").glob("*/model.onnx")}
    if top in found:
        names = [path.parent.name for path in found[top]()]
    elif top == "contrib":
        names = [".".join(group) for group in CONTRIB]
    else:
        names = {op for op, _ in wanted()} - RANDOM
    # Its weights alone are larger than the archive may be.
    return [f"{top}/{each}" for each in sorted(names) if each != "minilm"
            if fnmatch.fnmatch(f"{top}/{each}", pattern)]


def feedsOf(cases):
    """Of nodes of one model."""
    feeds = {}
    for n, each in enumerate(cases):
        feeds |= each.feeds(f"n{n}_")
    return feeds


def readTable():
    """The cases."""
    for line in (HERE / "cases.txt").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        kind, what, axopt, axrun, tolerance = (
            [part.strip() for part in line.split("|")] + [""] * 4)[:5]
        for source in [what] if kind == "test" else sources(what):
            for flags in axopt.split(";"):
                yield Case(kind, source, flags.split(), axrun.split(), tolerance)


class Maker:
    def __init__(self, options):
        self.options, self.build = options, options.build
        self.simulated = self.build / "test/simgpu"

    def run(self, *command, **options):
        done = subprocess.run([str(word) for word in command], text=True,
                              capture_output=True, **options)
        if done.returncode:
            raise RuntimeError(f"$ {' '.join(map(str, command))}\n{done.stdout}"
                               f"{done.stderr}")
        return done.stdout

    def targets(self, case, flags):
        """With cuDNN and without, and of cards with products of eight bits,
        where there may be something for them."""
        precisions = [flag for flag in flags if flag.startswith("--precision")]
        isMade = case.source.startswith("made/")
        hasFloat8 = isMade or any("fp8" in flag for flag in precisions)
        return ",".join(card + library + "+sim" * self.options.simulated
                        for card in (OLDEST, OLDEST_OF_FLOAT8)[:1 + hasFloat8]
                        for library in ("", "+cudnn")[:1 + (isMade or
                                                            bool(precisions))])

    def compile(self, case, scratch, folder, model, *flags):
        """The plan for the card, and one for this machine."""
        self.compileForCard(case, folder, model, *flags, "--embed-weights")
        self.run(self.build / "bin/axopt", model, *flags, *case.axopt, "--quiet",
                 "-o", scratch / "plan.mlir")

    def compileForCard(self, case, folder, model, *flags):
        flags = [*flags, *case.axopt]
        self.run(self.build / "bin/axopt", model, *flags, "--quiet", "--compile",
                 f"--target={self.targets(case, list(map(str, flags)))}", "-o",
                 folder / "plan.axc")

    def axrun(self, case, scratch, *command):
        self.run(self.build / "bin/axrun", scratch / "plan.mlir", *command,
                 *[flag for flag in case.axrun if flag not in OF_CARDS],
                 env=os.environ | {"AXRUN_DEVICE": "cpu"})

    def model(self, case, scratch, folder):
        """A model of test/models, with inputs and outputs of its test data."""
        place = TEST / case.source
        graph = onnx.load(place / "model.onnx", load_external_data=False).graph
        data = place / "test_data_set_0"
        self.compile(case, scratch, folder, place / "model.onnx", "--test-data",
                     data)
        weights = {tensor.name for tensor in graph.initializer}
        for file, kind, values in (
                ("in.npz", "input", [v for v in graph.input
                                     if v.name not in weights]),
                ("out.npz", "output", graph.output)):
            arrays = {}
            for number, value in enumerate(values):
                tensor = onnx.TensorProto()
                path = data / f"{kind}_{number}.pb"
                if path.exists():
                    tensor.ParseFromString(path.read_bytes())
                    arrays[value.name] = numpy_helper.to_array(tensor)
            np.savez(folder / file, **arrays)

    def operator(self, case, scratch, folder):
        """All cases of an operator in its newest version, as the CPU does them."""
        op = case.source.split("/")[1]
        opset = max(version for known, version in wanted() if known == op)
        cases = cases_of(op, opset)
        (scratch / "model.onnx").write_bytes(
            model_of(cases, opset).SerializeToString())
        self.outputs(case, scratch, folder, feedsOf(cases),
                     *[f"--max=n{n}_o0={each.room}"
                       for n, each in enumerate(cases) if each.room])

    def contrib(self, case, scratch, folder):
        """A group of nodes of onnxruntime's own operators, likewise."""
        module, _, group = case.source.split("/")[1].partition(".")
        cases = list(CONTRIB[module, group]())
        (scratch / "model.onnx").write_bytes(
            _contrib.model_of(cases).SerializeToString())
        self.outputs(case, scratch, folder, feedsOf(cases))

    def made(self, case, scratch, folder):
        """What made.py makes, as the CPU does it."""
        recipe = getattr(made, case.source.split("/")[1])(scratch)
        steps = self.steps if "--train" in recipe.flags else self.outputs
        steps(case, scratch, folder, recipe.data, *recipe.flags)

    def training(self, case, scratch, folder):
        """Steps of test/data/training, as the CPU does them."""
        recipe = made.reference(case.source.split("/")[1], scratch)
        self.steps(case, scratch, folder, recipe.data, *recipe.flags)

    def outputs(self, case, scratch, folder, feeds, *flags):
        self.compile(case, scratch, folder, scratch / "model.onnx", *flags)
        np.savez(folder / "in.npz", **feeds)
        self.axrun(case, scratch, "--inputs", folder / "in.npz", "--output",
                   folder / "out.npz")

    def steps(self, case, scratch, folder, samples, *flags):
        self.compile(case, scratch, folder, scratch / "model.onnx", *flags)
        np.savez(folder / "data.npz", **samples)
        self.axrun(case, scratch, "--data", folder / "data.npz", "--epochs=1",
                   "--no-shuffle", "--quiet", "--log", folder / "log.csv")

    def speed(self, case, scratch, folder):
        """A model of speed.py, without weights."""
        flags = getattr(speed, case.source.split("/")[1])(scratch,
                                                          self.options.simulated)
        self.compileForCard(case, folder, scratch / "model.onnx", *flags)

    def make(self, case, folder):
        if case.kind == "test":
            return
        folder.mkdir()
        top = case.source.split("/")[0]
        maker = {"models": self.model, "operators": self.operator,
                 "contrib": self.contrib, "training": self.training,
                 "made": self.made, "speed": self.speed}[top]
        with tempfile.TemporaryDirectory() as scratch:
            maker(case, Path(scratch), folder)

    def tolerance(self, case, folder):
        if case.kind != "outputs":
            return case.tolerance
        with np.load(folder / "out.npz") as arrays:
            isHalf = any(array.dtype.itemsize == 2 for array in arrays.values())
        return str(max(float(case.tolerance), HALF)) if isHalf else case.tolerance

    def libraries(self, folder):
        """What the programs need: one folder with what glibc is, one with all
        else."""
        found = {}
        for program in PROGRAMS.values():
            for line in self.run("ldd", self.build / program).splitlines():
                if match := re.match(r"\s*(\S+) => (\S+)|\s*(/\S+)", line):
                    path = Path(match[2] or match[3])
                    found[path.name] = path
        beside = found["libc.so.6"].parent
        ours = {library: beside / library for library in LIBC}
        ours[LOADER] = found[LOADER]
        for place, paths in (("libc", ours), ("lib", found)):
            (folder / place).mkdir()
            for library, path in paths.items():
                if place == "libc" or library not in ours:
                    shutil.copy(path, folder / place / library)
        (folder / "libc/version").write_text(platform.libc_ver()[1] + "\n")

    def programs(self, folder):
        (folder / "bin").mkdir()
        for program, path in PROGRAMS.items():
            shutil.copy(self.build / path, folder / "bin" / program)
            self.run("strip", folder / "bin" / program)
        for script in "run", "start", "peer.py", "products.py":
            shutil.copy(HERE / script, folder / script)
        benches.copyScripts(folder)
        if self.options.simulated:
            (folder / "simgpu").mkdir()
            for library in self.simulated.glob("lib*.so.*"):
                shutil.copy(library, folder / "simgpu")

    def benches(self, folder):
        """What card/bench measures."""
        names = [name for name in benches.BENCHES
                 if re.search(self.options.cases, f"bench {name}")]
        benches.write(folder, self.build / "bin/axopt", names,
                      self.options.simulated)

    def package(self):
        self.options.output.absolute().parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "card"
            (folder / "cases").mkdir(parents=True)
            self.libraries(folder)
            self.programs(folder)
            cases = [case for case in dict.fromkeys(
                         Case(c.kind, c.source, tuple(c.axopt), tuple(c.axrun),
                              c.tolerance) for c in readTable())
                     if re.search(self.options.cases, name(case))]
            places = [folder / "cases" / f"{n:03}" for n in range(len(cases))]
            with ThreadPool(self.options.j) as pool:
                pool.starmap(self.make, zip(cases, places))
            with open(folder / "cases.tsv", "w") as table:
                for case, place in zip(cases, places):
                    # Never empty: the shell takes two tabs for one.
                    print(case.kind, name(case), place.name,
                          self.tolerance(case, place) or "-",
                          f"*{case.source}*" if case.kind == "test"
                          else " ".join(case.axrun), sep="\t", file=table)
            self.benches(folder)
            how = "xz" if self.options.output.suffix == ".xz" else "gz"
            with tarfile.open(self.options.output, f"w:{how}") as archive:
                archive.add(folder, "card")
        size = self.options.output.stat().st_size
        print(f"{self.options.output}: {len(cases)} cases, {size / 2**20:.1f} MB")
        if size > LARGEST:
            sys.exit(f"that is more than {LARGEST >> 20} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=lambda text: Path(text).absolute())
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--simulated", action="store_true",
                        help="for the simulated GPU, which comes along")
    parser.add_argument("--cases", default="", help="regular expression")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    Maker(parser.parse_args()).package()


if __name__ == "__main__":
    main()
