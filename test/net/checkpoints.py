# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints that one of three hosts cannot write any more, or none: what is
saved stays, what was begun goes, and it is said once."""
import re
import shutil
import sys
import tempfile
from pathlib import Path

from _hosts import Hosts, describeLack
from cases import ROOT, Failed, Unsupported, run, tool

sys.path.append(str(ROOT / "test/mpi"))
from _jobs import DIGITS, compiled, oneMessage  # noqa: E402

INPUT_OUTPUT = 7
SMALL = ["-t", "tmpfs", "-o", "size=8m", "tmpfs"]
# Root without these writes as others do: where it may, and what is free for all.
PLAIN = ["setpriv", "--bounding-set=-sys_resource,-dac_override"]
# A file system may keep some for a group.
GROUP = 4711
KEPT = ["setpriv", f"--groups={GROUP}"]
FILL = "head -c 100M /dev/zero > disk/filler 2> /dev/null || :"


def mpirun(hosts, plan, flags, plain):
    """One rank on each host; on those of `plain` it is as others, elsewhere of the
    group."""
    command = [tool("axrun"), plan, "--data", DIGITS, "--quiet", *flags]
    words = []
    for name in hosts.names:
        words += [":", "--host", name, "-np", "1", *(PLAIN if name in plain else KEPT), *command]
    return [*hosts.launcher(), *words[1:]]


def listed(hosts):
    """All that is in the file system, but for what fills it."""
    return hosts.run("host1", "sh", "-c", "cd disk && find run -type f "
                     "-exec sha256sum {} + | sort -k2; find run | sort").stdout


def failsLater(hosts, plain, breakIt, *says):
    """After step 5 is saved something happens, so that the next checkpoint is not:
    the run goes on until its end, whose own cannot be written, either."""
    plan = compiled(hosts.folder, "--pp=3")
    steps = ["--save", "disk/run", "--log", "log"]
    hosts.run("host1", *mpirun(hosts, plan, ["--steps=5", *steps], plain))
    before = listed(hosts)
    if "run/step-5/rank-2.safetensors" not in before:
        raise Failed(before)
    breakIt()
    done = hosts.run("host1", *mpirun(hosts, plan, [
        "--steps=12", *steps, "--resume=disk/run", "--save-every=4"], plain),
        expect=INPUT_OUTPUT)
    errors = [line for line in done.stderr.splitlines() if "axrun: error:" in line]
    warnings = re.findall("warning: .*: training goes on without this checkpoint",
                          done.stderr)
    if len(errors) != 1 or len(warnings) != 1 or \
            any(each not in text for each in says
                for text in (*errors, *warnings)):
        raise Failed(f"expected once: {says}\n{done.stderr}")
    if listed(hosts) != before:
        raise Failed(f"{before}\nhas become\n{listed(hosts)}")


def fullForAll():
    with Hosts(3, disk=SMALL) as hosts:
        failsLater(hosts, [], lambda: hosts.run("host2", "sh", "-c", FILL),
                   "No space left on device")


def fullForOne():
    """The rank of host3 is not one of those that something is kept for."""
    if lack := describeLack():
        raise Unsupported(lack)
    if not shutil.which("mkfs.ext4"):
        raise Unsupported("there is no mkfs.ext4")
    with tempfile.TemporaryDirectory(prefix="axopt-net-") as folder:
        image = Path(folder) / "image"
        run("truncate", "--size=8M", image)
        run("mkfs.ext4", "-q", "-m", "40", image)
        # A container's root may have no loop devices.
        tried = run("unshare", "--mount", "mount", "-o", "loop", image, folder,
                    expect=range(256))
        if tried.returncode:
            raise Unsupported(f"no file system in a file: {tried.stderr.strip()}")
        with Hosts(3, disk=["-o", f"loop,resuid=65534,resgid={GROUP}", image]) as hosts:
            failsLater(hosts, ["host3"],
                       lambda: hosts.run("host3", *PLAIN, "sh", "-c", FILL),
                       "rank 2 on host 'host3'", "No space left on device")


def cannotBeWritten():
    """One host has it as what can only be read."""
    with Hosts(3, disk=SMALL) as hosts:
        failsLater(hosts, [], lambda: hosts.run(
            "host3", "mount", "-o", "remount,bind,ro", hosts.folder / "disk"),
            "rank 2 on host 'host3'", "Read-only file system")


def mayNotBeWritten():
    """Found out before the first step."""
    with Hosts(3, disk=SMALL) as hosts:
        plan = compiled(hosts.folder, "--pp=3")
        hosts.run("host1", "mkdir", "--mode=555", "disk/run")
        done = hosts.run("host1", *mpirun(
            hosts, plan, ["--steps=2", "--save=disk/run", "--log=log"], hosts.names),
            expect=INPUT_OUTPUT)
        oneMessage(done, "cannot write 'disk/run/", "Permission denied")
        if hosts.run("host1", "ls", "-A", "disk/run").stdout or \
                (hosts.folder / "log").exists():
            raise Failed("something was done")


def cases(every):
    yield "full", fullForAll
    yield "full for one host", fullForOne
    yield "read-only on one host", cannotBeWritten
    yield "no permission", mayNotBeWritten
