# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who is not of the job, what hosts do not have in common, and what stands in the
way: one message, the table's exit code, and no process that stays."""
import os
import signal
import subprocess
import sys

from _hosts import Hosts, ranksOf, waitUntil
from cases import ROOT, Failed, run, tool

sys.path.append(str(ROOT / "test/mpi"))
from _jobs import DIGITS, compiled, logged, oneMessage, sameLogs  # noqa: E402

USAGE, INPUT_OUTPUT, INTERRUPTED = 2, 7, 130
PORT = 23456
CONTROL = f"--control=host1:{PORT}"

# argv: the port, how many, and how long each waits to be let in. Says how many were.
SPEAK = """
import random, socket, sys
port, count = map(int, sys.argv[1:3])
greeting = b"\\xff" + bytes(7) + b"\\x01\\x7f\\x03\\x01PLAIN" + bytes(47)
heard = 0
for number in range(count):
    with socket.socket() as stranger:
        try:
            stranger.settimeout(float(sys.argv[3]))
            stranger.connect(("host1", port))
            stranger.sendall(random.choice([b"", greeting]) +
                             random.randbytes(random.randrange(1, 200)))
            heard += 1
        except OSError:
            pass
print(heard)
"""


def command(hosts, plan, *flags):
    return [*hosts.mpirun("-np", str(len(hosts.names)), "--map-by", "node"),
            tool("axrun"), plan, "--data", DIGITS, "--quiet", *flags]


def refused(hosts, plan, code, flags, *says):
    done = hosts.run("host1", *command(hosts, plan, "--steps=2", *flags), expect=code)
    oneMessage(done, *says)
    waitUntil(lambda: not ranksOf(plan), "no process is left", 5)


def strangers(count):
    """So many before the second rank can join, and as many while the job runs."""
    with Hosts(2) as hosts:
        plan = compiled(hosts.folder, "--tp=2")
        log, script = hosts.folder / "log", hosts.folder / "speak.py"
        script.write_text(SPEAK)

        def speak(seconds):
            return int(hosts.run("host1", sys.executable, script, str(PORT),
                                 str(count), seconds).stdout)

        hosts.run("host2", "nft", "add table ip late; add chain ip late out { type "
                  "filter hook output priority 0; }; add rule ip late out tcp dport "
                  f"{PORT} drop")
        job = hosts.open("host1", *command(
            hosts, plan, "--steps=1000000", "--log=log", CONTROL),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        listens = f":{PORT:04X} 00000000:0000 0A"
        waitUntil(lambda: listens in hosts.run("host1", "cat", "/proc/net/tcp").stdout,
                  "process 0 listens")
        heard = speak("1")
        if heard < count / 2 or log.exists() or len(ranksOf(plan)) != 2:
            raise Failed(f"{heard} were heard, ranks: {ranksOf(plan)}")
        hosts.run("host2", "nft", "delete table ip late")
        waitUntil(lambda: log.exists() and '"step":5,' in log.read_text(), "steps")
        speak("0.001")
        os.kill(hosts.pidOf(job), signal.SIGUSR1)
        said = job.communicate(timeout=60)[0]
        if job.returncode != INTERRUPTED:
            raise Failed(f"{job.returncode}\n{said}")
        run(tool("axrun"), plan, "--data", DIGITS, "--quiet",
            f"--steps={len(logged(log))}", "--log", hosts.folder / "threads")
        sameLogs(log, hosts.folder / "threads")


def onePort():
    """The second job with it is refused; the first one goes on."""
    with Hosts(2) as hosts:
        plan = compiled(hosts.folder, "--tp=2")
        other = compiled(hosts.folder, "--dp=2", name="other")
        log = hosts.folder / "log"
        job = hosts.open("host1", *command(
            hosts, plan, "--steps=1000000", "--log=log", CONTROL),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        waitUntil(lambda: log.exists() and '"step":2,' in log.read_text(), "a step")
        refused(hosts, other, USAGE, [CONTROL], "the control channel cannot listen at "
                f"host1:{PORT}: Address already in use")
        done = len(logged(log))
        waitUntil(lambda: f'"step":{done + 5},' in log.read_text(), "it goes on")
        os.kill(hosts.pidOf(job), signal.SIGUSR1)
        said = job.communicate(timeout=60)[0]
        if job.returncode != INTERRUPTED:
            raise Failed(f"{job.returncode}\n{said}")


def unreadable(name):
    """The plan is on one host alone."""
    with Hosts(2) as hosts:
        plan = compiled(hosts.folder, "--tp=2")
        own = f"/tmp/{hosts.folder.name}.mlir"
        hosts.run(name, "cp", plan, own)
        other, = set(hosts.names) - {name}
        done = hosts.run("host1", *command(hosts, own, "--steps=2"), expect=USAGE)
        oneMessage(done, "rank 1 on host 'host2' has another plan than rank 0 on host "
                   "'host1'", "which cannot be read (", own)
        waitUntil(lambda: not ranksOf(own), "no process is left", 5)


def noRecords(names):
    """A folder that some hosts cannot make."""
    with Hosts(2) as hosts:
        plan = compiled(hosts.folder, "--tp=2")
        for name in names:
            hosts.run(name, "touch", "/tmp/file")
        refused(hosts, plan, INPUT_OUTPUT, ["--flight-recorder=/tmp/file/records"],
                "cannot make '/tmp/file/records' for flight records: Not a directory",
                *["rank 1 on host 'host2'"] * (names == ["host2"]))


def cases(every):
    yield "strangers", strangers, 10000 if every else 1000
    yield "one port", onePort
    for name in "host1", "host2":
        yield f"a plan that {name} alone can read", unreadable, name
    for names in (["host1", "host2"], ["host2"]):
        yield f"no folder for records on {' and '.join(names)}", noRecords, names
