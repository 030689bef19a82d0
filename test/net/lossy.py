# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training over cables that are slow, late, and lose packets."""
import sys

from _hosts import Hosts
from cases import ROOT, run, tool

sys.path.append(str(ROOT / "test/mpi"))
from _jobs import DIGITS, compiled, same, sameLogs  # noqa: E402


def sameBits():
    """Losses and weights are those of threads."""
    with Hosts(3) as hosts:
        plan = compiled(hosts.folder, "--tp=2 --pp=2 --dp=2")
        for name in hosts.names:
            hosts.limit(name, rate=50e6, loss=0.01, delay=0.02)

        def train(start, *words, name, **options):
            start(*words, tool("axrun"), plan, "--data", DIGITS, "--steps=20",
                  "--quiet", "--log", hosts.folder / f"{name}.log", "--save-weights",
                  hosts.folder / f"{name}.safetensors", **options)

        train(run, name="threads")
        train(hosts.run, "host1",
              *hosts.mpirun("-np", "8", "--map-by", "node", slots=3),
              name="processes", timeout=300)
        same(hosts.folder / "threads.safetensors",
             hosts.folder / "processes.safetensors")
        sameLogs(hosts.folder / "threads.log", hosts.folder / "processes.log")


def cases(every):
    if every:
        yield "three hosts, 20 steps", sameBits
