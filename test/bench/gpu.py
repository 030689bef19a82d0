# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""axrun on a card beside PyTorch, in turns: makes the plans of test/card/benches.py,
and runs test/card/bench, which is card/bench in the package.

usage: gpu.py BUILD [NAME...] [--simulated] [--minutes N] [--rounds N]
              [--iterations N]
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

TEST = Path(__file__).parents[1]
sys.path.append(str(TEST / "card"))
import benches


def start(folder, build):
    """What the package's script of this name does: here libraries are at hand."""
    (folder / "start").write_text(
        f'#!/bin/sh\nprogram=$1\nshift\nexec "{build}/bin/$program" "$@"\n')
    (folder / "start").chmod(0o755)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=lambda text: Path(text).absolute())
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help=", ".join(benches.BENCHES))
    parser.add_argument("--simulated", action="store_true",
                        help="tiny networks on the simulated GPU, not to measure")
    parser.add_argument("--minutes", default="120")
    for flag in "--rounds", "--iterations":
        parser.add_argument(flag)
    options = parser.parse_intermixed_args()
    unknown = [name for name in options.names if name not in benches.BENCHES]
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are "
                     f"{', '.join(benches.BENCHES)}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        benches.copyScripts(folder)
        start(folder, options.build)
        if options.simulated:
            (folder / "simgpu").symlink_to(options.build / "test/simgpu")
        # Before the plans, which take their time.
        if subprocess.call([folder / "bench", "--check"]):
            sys.exit(1)
        benches.write(folder, options.build / "bin/axopt",
                      options.names or benches.BENCHES, options.simulated)
        given = [word for flag in ("minutes", "rounds", "iterations")
                 if (value := getattr(options, flag))
                 for word in (f"--{flag}", value)]
        sys.exit(subprocess.call([folder / "bench", *given]))


if __name__ == "__main__":
    main()
