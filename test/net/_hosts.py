# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several hosts on this machine, for real: each has a network, a name, /tmp and
/dev/shm of its own (namespaces), and they are joined by a bridge.

    with Hosts(3) as hosts:
        hosts.run("host1", "hostname")
        hosts.limit("host2", rate=50e6, loss=0.01, delay=0.02)
        hosts.cut("host3")

Nothing of it has a name outside: all processes, those that run() started
included, are in one PID namespace, whose first process the kernel kills with
this one, however that ends. Interfaces, mounts and rules go with the namespaces.
Of this machine's /tmp they see `folder`, this checkout and its build, and Python,
where these are in it.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cases import Failed, Unsupported

HERE = Path(__file__).parent
TOOLS = ["unshare", "nsenter", "setpriv", "ip", "tc", "nft"]
NAMESPACES = ["--net", "--uts", "--mount", "--ipc"]
PORT = "port"  # Of the bridge, with the host's number.
INTERFACE = "eth0"

# argv: the folder that all share, the host's name, Python, _shell.py, and what else is needed. A
# new /tmp would hide what of that is there: it is put into the new one before.
MAKE_HOST = """
set -e
folder=$1 name=$2 python=$3 shell=$4
shift 4
echo "$name" > /proc/sys/kernel/hostname
mount -t tmpfs tmpfs /dev/shm
new=$folder/$name.tmp
mkdir "$new"
mount -t tmpfs -o mode=1777 tmpfs "$new"
for kept in "$folder" "$@"; do
  case $kept in /tmp/*)
    mkdir -p "$new/${kept#/tmp/}"
    mount --rbind "$kept" "$new/${kept#/tmp/}";;
  esac
done
mount --move "$new" /tmp
mount --bind "$folder/hosts" /etc/hosts
ip link set lo up
echo $$ > "$folder/$name.pid"
exec "$python" "$shell" serve "$folder/$name.shell"
"""

SHELL = HERE / "_shell.py"
NEEDED = [HERE.parents[1], Path(os.environ["AX_BIN"]).parent, sys.prefix]


def describeLack():
    """Why hosts cannot be made here; empty: they can."""
    if os.geteuid() != 0:
        return "network namespaces are root's"
    lacking = [tool for tool in TOOLS if not shutil.which(tool)]
    if lacking:
        return f"these programs are missing: {', '.join(lacking)}"
    tried = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", *NAMESPACES, "sh", "-c",
         "ip link add hub type bridge && mount -t tmpfs tmpfs /tmp"],
        capture_output=True, text=True)
    return f"no namespaces: {tried.stderr.strip()}" if tried.returncode else ""


def statOf(pid):
    """Its state, and its parent; of one that has ended nothing."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "", 0
    state, parent = text.rpartition(") ")[2].split()[:2]
    return state, int(parent)


def childOf(pid):
    for folder in Path("/proc").glob("[0-9]*"):
        if statOf(folder.name)[1] == pid:
            return int(folder.name)
    return None


def waitUntil(holds, what, seconds=30):
    end = time.monotonic() + seconds
    while not (found := holds()):
        if time.monotonic() > end:
            raise Failed(f"still not after {seconds} s: {what}")
        time.sleep(0.01)
    return found


def ranksOf(plan):
    """The numbers, here, of the axruns that run the plan, of whatever host of whatever
    test: it is known by its path alone."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"/axrun") and os.fsencode(plan) in words:
            found.append(int(entry.parent.name))
    return found


class Hosts:
    """`folder` is the same for all hosts, and for who made them. `disk`: words of
    mount, by which all hosts have a file system in common in its `disk`, which who
    made them does not see."""

    def __init__(self, count=3, disk=()):
        self.disk = disk
        self.names = [f"host{i}" for i in range(1, count + 1)]
        self.relays = {}
        self._first = None

    def __enter__(self):
        if lack := describeLack():
            raise Unsupported(lack)
        self._scratch = tempfile.TemporaryDirectory(prefix="axopt-net-")
        self.folder = Path(self._scratch.name)
        self._keeper = subprocess.Popen(
            ["setpriv", "--pdeathsig=KILL", "unshare", "--pid", "--fork",
             "--kill-child", "--mount-proc", "--net", "--mount", "bash", "-c",
             "while :; do sleep 3600; done"])
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._keeper.kill()
        self._keeper.wait()
        # The first process ends after all others have.
        waitUntil(lambda: self._first is None or statOf(self._first)[0] in ("", "Z"),
                  "hosts are gone")
        self._scratch.cleanup()

    def _make(self):
        self._first = waitUntil(lambda: childOf(self._keeper.pid), "namespaces")
        # It is in them when it is bash.
        waitUntil(lambda: Path(f"/proc/{self._first}/comm").read_text()
                  == "bash\n", "the first process")
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n" + "".join(
            f"{self.address(name)} {name}\n" for name in self.names))
        self.agent = self.folder / "agent"
        self.agent.write_text(
            f'#!/bin/sh\nexec {sys.executable} {SHELL} {self.folder} "$@"\n')
        self.agent.chmod(0o755)
        self._inside("ip", "link", "add", "hub", "type", "bridge")
        self._inside("ip", "link", "set", "hub", "up")
        if self.disk:
            (self.folder / "disk").mkdir()
            self._inside("mount", *self.disk, self.folder / "disk")
        for name in self.names:
            self._open("unshare", *NAMESPACES, "sh", "-c", MAKE_HOST, "sh",
                       self.folder, name, sys.executable, SHELL, *NEEDED)
        for name in self.names:
            waitUntil((self.folder / f"{name}.shell").exists, f"{name} is up")
            pid = (self.folder / f"{name}.pid").read_text().strip()
            self._inside("ip", "link", "add", self._port(name), "type", "veth",
                         "peer", "name", INTERFACE, "netns", pid)
            self._connect(name)

    def _enter(self, command):
        return ["nsenter", "--target", str(self._first), "--pid", "--net",
                "--mount", "--", *map(str, command)]

    def _inside(self, *command):
        """Where the bridge is, and the processes of all hosts are seen."""
        done = subprocess.run(self._enter(command), capture_output=True,
                              text=True)
        if done.returncode:
            raise Failed(f"$ {' '.join(map(str, command))}\n{done.stderr}")

    def _open(self, *command, **options):
        """It ends when the Popen, which is nsenter's, is killed."""
        return subprocess.Popen(
            self._enter(["setpriv", "--pdeathsig=KILL", *command]),
            stdin=subprocess.DEVNULL, **options)

    def _on(self, name, *command):
        pid = (self.folder / f"{name}.pid").read_text().strip()
        self._inside("nsenter", "--target", pid, "--net", "--", *command)

    def _port(self, name):
        return f"{PORT}{self.names.index(name) + 1}"

    def _connect(self, name):
        self._inside("ip", "link", "set", self._port(name), "master", "hub",
                     "up")
        self._on(name, "ip", "address", "add", f"{self.address(name)}/24",
                 "dev", INTERFACE)
        # The same of every cable: others remember it.
        number = self.names.index(name) + 1
        self._on(name, "ip", "link", "set", INTERFACE, "address",
                 f"02:00:00:00:00:{number:02x}", "up")

    def address(self, name):
        return f"10.77.0.{self.names.index(name) + 1}"

    def open(self, name, *command, env=None, **options):
        """A Popen of the command on that host, in the shared folder: to wait
        for it, and to kill it. Other signals are for pidOf it."""
        pid = (self.folder / f"{name}.pid").read_text().strip()
        return self._open("nsenter", "--target", pid, "--net", "--uts",
                          "--mount", "--ipc", f"--wd={self.folder}", "--",
                          *command, env=os.environ | (env or {}), **options)

    @staticmethod
    def pidOf(process):
        """The number, here, of what open() has started."""
        return waitUntil(lambda: childOf(process.pid), "the command runs")

    def run(self, name, *command, expect=0, timeout=60, env=None):
        """Runs it there, as cases.run does here."""
        process = self.open(name, *command, env=env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        shown = f"{name}$ {' '.join(map(str, command))}"
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise Failed(f"{shown}\nstill running after {timeout} s") from error
        allowed = [expect] if isinstance(expect, int) else expect
        if process.returncode not in allowed:
            raise Failed(f"{shown}\nexit code {process.returncode}, expected "
                         f"{expect}\n{out[-4000:]}{err[-4000:]}")
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def launcher(self):
        """The words that start mpirun on the first host."""
        return ["mpirun", "--allow-run-as-root", "--mca", "plm_rsh_agent", self.agent]

    def mpirun(self, *arguments, slots=1):
        """The same, for all hosts."""
        hosts = ",".join(f"{name}:{slots}" for name in self.names)
        return [*self.launcher(), "--host", hosts, *arguments]

    def cut(self, name):
        """What is sent to and by the host is lost, and its shell is out of
        reach. That its cable is out it does not see."""
        (self.folder / f"{name}.cut").touch()
        self._inside("ip", "link", "set", self._port(name), "down")

    def mend(self, name):
        self._inside("ip", "link", "set", self._port(name), "up")
        (self.folder / f"{name}.cut").unlink()

    def limit(self, name, rate=None, loss=0.0, delay=0.0):
        """Of what the host sends, and likewise of what it gets: bits per second,
        the part of packets that are lost, and seconds on the way. Replaces what
        was there."""
        if delay or name in self.relays:
            self._relay(name, delay)
        ends = [(self._inside, (), self._port(name)),
                (self._on, (name,), INTERFACE)]
        for do, where, device in ends:
            if rate:
                # A burst is at least what a timer's tick lets through.
                do(*where, "tc", "qdisc", "replace", "dev", device, "root",
                   "tbf", "rate", f"{int(rate)}bit", "burst",
                   str(max(16000, int(rate / 8 / 250))), "latency", "200ms")
            else:
                # Error when there is none.
                do(*where, "sh", "-c",
                   f"tc qdisc del dev {device} root 2>/dev/null || :")
            table = f"loss_{device}"
            rules = f"add table netdev {table}; delete table netdev {table}; "
            if loss:
                rules += (
                    f"add table netdev {table}; add chain netdev {table} frames "
                    f"{{ type filter hook ingress device {device} priority 0; }}; "
                    f"add rule netdev {table} frames numgen random mod 10000 < "
                    f"{round(loss * 10000)} drop")
            do(*where, "nft", rules)

    def _relay(self, name, delay):
        """The host's cable is a program from now on (_relay.py)."""
        if not os.path.exists("/dev/net/tun"):
            raise Unsupported("there is no /dev/net/tun, which delays need")
        if before := self.relays.pop(name, None):
            os.kill(self.pidOf(before), signal.SIGKILL)
            before.wait()
        else:
            self._inside("ip", "link", "del", self._port(name))
        pid = (self.folder / f"{name}.pid").read_text().strip()
        self.relays[name] = relay = self._open(
            sys.executable, HERE / "_relay.py", pid, INTERFACE,
            self._port(name), delay, stdout=subprocess.PIPE)
        if relay.stdout.readline() != b"ready\n":
            raise Failed(f"the relay of {name} does not start")
        self._connect(name)
