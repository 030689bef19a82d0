# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The hosts that tests of several hosts are made with: _hosts.py."""
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from cases import Failed, scratch

from _hosts import HERE, Hosts, statOf, waitUntil

PEER = HERE / "_peer.py"


def measure(hosts, what, *arguments):
    """What host1 finds out by talking to host2."""
    server = hosts.open("host2", sys.executable, PEER, "serve",
                        stdout=subprocess.PIPE)
    assert server.stdout.readline() == b"ready\n"
    try:
        done = hosts.run("host1", sys.executable, PEER, what,
                         hosts.address("host2"), *arguments)
    finally:
        server.kill()
    return json.loads(done.stdout)


def between(value, least, most, what):
    if not least <= value <= most:
        raise Failed(f"{what} is {value}, not between {least} and {most}")


def apart():
    """Names, /tmp and /dev/shm of their own; one folder for all."""
    with Hosts(3) as hosts:
        for name in hosts.names:
            assert hosts.run(name, "hostname").stdout == f"{name}\n"
            hosts.run(name, "touch", f"/tmp/{name}", f"/dev/shm/{name}", name)
        for name in hosts.names:
            for folder in "/tmp", "/dev/shm":
                found = hosts.run(name, "ls", folder).stdout.split()
                assert [each for each in found if each in hosts.names] == \
                    [name], (name, folder, found)
        for name in hosts.names:
            assert (hosts.folder / name).exists()
            assert not os.path.exists(f"/tmp/{name}")


def seeEachOther():
    with Hosts(3) as hosts:
        for name in hosts.names:
            for other in hosts.names:
                text = hosts.run(name, "sh", hosts.agent, other, "hostname")
                assert text.stdout == f"{other}\n", text
        between(measure(hosts, "lost", "100"), 0, 0, "the part that is lost")


def mpiruns():
    with Hosts(3) as hosts:
        done = hosts.run("host1", *hosts.mpirun("-np", "3", "hostname"))
        assert sorted(done.stdout.split()) == hosts.names, done.stdout


def isCut():
    with Hosts(3) as hosts:
        hosts.cut("host2")
        between(measure(hosts, "lost", "20"), 1, 1, "the part that is lost")
        says = hosts.run("host1", *hosts.mpirun("-np", "3", "hostname"),
                         expect=255).stderr
        assert "connect to host host2: No route to host" in says, says
        hosts.mend("host2")
        between(measure(hosts, "lost", "20"), 0, 0, "the part that is lost")
        hosts.run("host1", *hosts.mpirun("-np", "3", "hostname"))


def isSlow():
    """Either end of a cable may be the slow one."""
    with Hosts(2) as hosts:
        for name in "host2", "host1":
            hosts.limit(name, rate=8e6)
            rate = measure(hosts, "rate", "1000000")
            between(rate, 5e6, 9e6, f"the rate with {name} limited")
            hosts.limit(name)
        between(measure(hosts, "rate", "1000000"), 3e7, 1e12, "no limit's rate")


def isLossy():
    with Hosts(2) as hosts:
        # An echo is lost on its way there or back.
        for name in "host2", "host1":
            hosts.limit(name, loss=0.1)
            between(measure(hosts, "lost", "2000"), 0.15, 0.23,
                    f"the part that is lost with {name} limited")
            hosts.limit(name)
        between(measure(hosts, "lost", "200"), 0, 0, "the part that is lost")


def isLate():
    """There and back; with a rate, a loss and a cut on the same cable."""
    with Hosts(2) as hosts:
        hosts.limit("host2", delay=0.03)
        between(measure(hosts, "time"), 0.06, 0.08, "time with a delay")
        hosts.limit("host1", delay=0.01)
        between(measure(hosts, "time"), 0.08, 0.1, "time with two delays")
        hosts.limit("host2", delay=0.03, rate=8e6, loss=0.1)
        between(measure(hosts, "time"), 0.08, 0.1, "time with all of it")
        between(measure(hosts, "lost", "500"), 0.11, 0.27,
                "the part that is lost with all of it")
        hosts.limit("host2", rate=8e6)
        between(measure(hosts, "time"), 0.02, 0.04, "time with one delay")
        between(measure(hosts, "rate", "1000000"), 4e6, 9e6, "the rate")
        hosts.cut("host2")
        between(measure(hosts, "lost", "20"), 1, 1, "the part that is lost")


def leavesNothing():
    """Not even of a test that is killed."""
    with scratch() as folder:
        script = Path(folder) / "test.py"
        script.write_text(
            "import sys, time\n"
            f"sys.path[:0] = {[str(HERE.parent), str(HERE)]}\n"
            "from _hosts import Hosts\n"
            "with Hosts(2) as hosts:\n"
            "    hosts.limit('host2', delay=0.01)\n"
            "    hosts.open('host2', 'sh', '-c', 'sleep 1234 & sleep 1234')\n"
            "    print(hosts._first, hosts.folder, flush=True)\n"
            "    time.sleep(60)\n")
        test = subprocess.Popen([sys.executable, script], text=True,
                                stdout=subprocess.PIPE,
                                env=os.environ | {"TMPDIR": folder})
        first, shared = test.stdout.readline().split()
        namespace = os.stat(f"/proc/{first}/ns/pid").st_ino

        def inside():
            found = []
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    if os.stat(process / "ns/pid").st_ino == namespace and \
                            statOf(process.name)[0] != "Z":
                        found.append(process.name)
                except OSError:
                    pass  # It has ended.
            return found

        # The first, two hosts, a relay, two that sleep.
        waitUntil(lambda: len(inside()) >= 6, "processes of the hosts")
        test.send_signal(signal.SIGKILL)
        test.wait()
        waitUntil(lambda: not inside(), "nothing is left", seconds=5)
        # A folder outside of the namespaces is what is left.
        assert not os.path.ismount(shared)


def cases(every):
    yield "hosts are apart", apart
    yield "hosts see each other", seeEachOther
    yield "mpirun has a rank on each", mpiruns
    yield "cut", isCut
    yield "rate", isSlow
    yield "loss", isLossy
    yield "delay", isLate
    yield "leave nothing", leavesNothing
