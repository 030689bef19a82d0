# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ax-collectives --calibrate on several hosts: what is within one, and between them."""
import sys

from _hosts import Hosts
from cases import ROOT, Failed, tool

sys.path.append(str(ROOT / "test/mpi"))
from _machine import checkNumbers, checkPlan, readMachine  # noqa: E402


def calibrate(hosts, map_by, file, ranks, **options):
    return hosts.run(
        "host1", *hosts.mpirun("-np", ranks, "--map-by", map_by, slots=2),
        tool("ax-collectives"), f"--calibrate={hosts.folder}/{file}", timeout=240,
        **options)


def twoHosts():
    """What leads out of one of them takes 2 ms."""
    with Hosts(2) as hosts:
        hosts.limit("host2", delay=0.002)
        said = calibrate(hosts, "ppr:2:node", "machine.yaml", "4").stdout
        machine = readMachine(hosts.folder / "machine.yaml")
        checkNumbers(machine, 2)
        if not machine["name"].endswith(", 4 ranks on 2 hosts") or \
                machine["ranks-per-host"] != 2 or "exchanges in a host" not in said:
            raise Failed(f"{machine}\n{said}")
        if not 1e-3 < machine["host-latency"] < 0.1 or \
                machine["latency"] > 1e-3 or \
                machine["bandwidth"] < machine["host-bandwidth"]:
            raise Failed(f"{machine}\n{said}")
        checkPlan(hosts.folder / "machine.yaml", machine)


def oneRankOnEach():
    """There is nothing within a host."""
    with Hosts(2) as hosts:
        said = calibrate(hosts, "ppr:1:node", "machine.yaml", "2").stdout
        machine = readMachine(hosts.folder / "machine.yaml")
        if machine["ranks-per-host"] != 1 or "exchanges in" in said or \
                machine["bandwidth"] != machine["host-bandwidth"] or \
                machine["latency"] != machine["host-latency"]:
            raise Failed(f"{machine}\n{said}")


def byTurns():
    """Plans take neighbours for ranks of one host."""
    with Hosts(2) as hosts:
        done = calibrate(hosts, "node", "machine.yaml", "4", expect=2)
        messages = [line for line in done.stderr.splitlines() if "error:" in line]
        if messages != ["ax-collectives: error: --calibrate needs as many ranks on "
                        "each host as on the others, numbered host by host: start "
                        "them with mpirun --map-by ppr:N:node"] or \
                (hosts.folder / "machine.yaml").exists():
            raise Failed(done.stderr)


def cases(every):
    yield "two hosts", twoHosts
    yield "one rank on each", oneRankOnEach
    yield "hosts by turns", byTurns
