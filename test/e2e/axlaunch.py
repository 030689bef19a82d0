# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""axlaunch: runs that fail go on, runs that are stopped do not."""
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from _training import DIGITS, compiled, losses

from cases import Failed, run, scratch, tool

# Does as MODE says in the run whose number is the lines of FILE, which each run
# adds one to; other runs are the command's. Where mpirun is to be, named so.
STAND_IN = """#!{python}
import os, signal, subprocess, sys, time
modes, command = {modes}, sys.argv[1:]
with open({runs!r}, "a+") as file:
    file.seek(0)
    number = len(file.readlines())
    file.write(" ".join(command) + "\\n")
mode = modes[min(number, len(modes) - 1)]
if mode.isdigit():
    sys.exit(int(mode))
while command[0].startswith("-") or command[0].isdigit():
    command.pop(0)
if mode == "run":
    os.execvp(command[0], command)
process = subprocess.Popen(command)
while process.poll() is None and not os.path.exists(mode):
    time.sleep(0.002)
process.kill()
os.kill(os.getpid(), signal.SIGKILL)
"""


def standIn(folder, *modes, name="mpirun"):
    """A launcher; modes: a code to end with, `run`, or a path: when that is
    there, all is killed."""
    path = Path(folder) / name
    path.write_text(STAND_IN.format(python=sys.executable, modes=list(modes),
                                    runs=f"{folder}/runs"))
    path.chmod(0o755)
    return path


def axlaunch(*words, expect=0, says=(), **options):
    done = run(tool("axlaunch"), *words, expect=expect, **options)
    for text in [says] if isinstance(says, str) else says:
        if text not in done.stderr:
            raise Failed(f"expected: {text}\ngot: {done.stderr}")
    return done


def training(plan, folder, name="run", steps=40):
    return [tool("axrun"), plan, "--data", DIGITS / "train.npz", "--steps",
            steps, "--save", f"{folder}/{name}", "--save-every=1",
            "--save-keep=0", "--log", f"{folder}/{name}.log", "--seed=3",
            "--save-weights", f"{folder}/{name}.safetensors"]


def sameRun(folder, first, second):
    same = losses(f"{folder}/{first}.log") == losses(f"{folder}/{second}.log")
    weights = [Path(f"{folder}/{name}.safetensors").read_bytes()
               for name in (first, second)]
    if not same or weights[0] != weights[1]:
        raise Failed(f"{second} is another run than {first}")


def killed(layout):
    """Five times on its way; ends with the bits of an undisturbed run."""
    with scratch() as folder:
        plan = compiled(folder, *layout.split())
        run(*training(plan, folder, "whole"))
        steps = sorted(random.Random(layout).sample(range(1, 40), 5))
        launcher = standIn(folder, *(f"{folder}/run/step-{step}"
                                     for step in steps), "run")
        done = axlaunch("--max-restarts=5", "--", launcher, "-np", "2",
                        *training(plan, folder),
                        says=["the run ended with exit code 137 (signal 9, "
                              "Killed)", "restart 5 of 5, from step "])
        assert done.stderr.count("axlaunch: restart ") == 5, done.stderr
        sameRun(folder, "whole", "run")


def beginsAnew():
    """Where nothing is saved, also with a log; never with another run's."""
    with scratch() as folder:
        plan = compiled(folder)
        run(*training(plan, folder, "whole"))
        command = training(plan, folder)
        launcher = standIn(folder, f"{folder}/run.log", "run")
        command[command.index("--save-every=1")] = "--save-every=39"
        axlaunch("--", launcher, *command,
                 says="restart 1 of 3, from the start: nothing is saved yet")
        sameRun(folder, "whole", "run")
        # The log of another run stays, and axrun refuses it.
        Path(f"{folder}/mine.log").write_text('{"step": 1}\n')
        launcher = standIn(folder, "8", "run")
        os.remove(f"{folder}/runs")
        axlaunch("--", launcher, *training(plan, folder, "mine"), expect=2,
                 says="mine.log is there already")
        assert Path(f"{folder}/mine.log").read_text() == '{"step": 1}\n'


def replacesResume():
    """What the first run goes on from is what the others do, until there is
    something newer."""
    with scratch() as folder:
        plan = compiled(folder)
        run(*training(plan, folder, "whole"))
        command = [*training(plan, folder),
                   "--resume", f"{folder}/whole/step-20"]
        launcher = standIn(folder, "8", f"{folder}/run/step-30", "run")
        axlaunch("--", launcher, *command,
                 says=[f"restart 1 of 3, from '{folder}/whole/step-20': "
                       "nothing is saved yet", "restart 2 of 3, from step "])
        first, second, third = Path(f"{folder}/runs").read_text().splitlines()
        assert first == second and "whole/step-20" in second, second
        assert "whole" not in third and f"--resume={folder}/run" in third, third
        whole = losses(f"{folder}/whole.log")
        if losses(f"{folder}/run.log") != whole[20:]:
            raise Failed("another run")


def fewerRanks(compiles):
    """From 4 ranks to 2 when 4 cannot be started twice in a row."""
    with scratch() as folder:
        plan = compiled(folder, "--tp=4", name="four")
        fallback = compiled(folder, "--dp=2", name="two")
        if compiles:
            text, fallback = fallback, fallback.with_suffix(".axc")
            run(tool("axopt"), text, "--compile", "--quiet", "-o", fallback)
        run(*training(plan, folder, "whole"))
        launcher = standIn(folder, f"{folder}/run/step-9", "1", "255", "run")
        axlaunch("--fallback", fallback, "--", launcher, "-np", "4",
                 *training(plan, folder),
                 says=["two runs in a row saved no step: the next one is of "
                       f"'{fallback}'", "restart 3 of 3, from step "])
        runs = Path(f"{folder}/runs").read_text().splitlines()
        assert [words.split()[1] for words in runs] == ["4", "4", "4", "2"]
        assert str(fallback) in runs[3] and str(plan) not in runs[3], runs[3]
        whole, both = losses(f"{folder}/whole.log"), losses(f"{folder}/run.log")
        assert len(both) == 40 and max(
            abs(a - b) / a for a, b in zip(whole, both)) < 1e-4, (whole, both)


def givesUp():
    with scratch() as folder:
        plan = compiled(folder)
        command = training(plan, folder)
        axlaunch("--", standIn(folder, "8"), *command, expect=8,
                 says="error: gives up: two runs in a row saved no step (axrun "
                 "--save-every=N saves more often); what is saved: nothing")
        os.remove(f"{folder}/runs")
        launcher = standIn(folder, *(f"{folder}/run/step-{step}"
                                     for step in (3, 6, 9)))
        axlaunch("--max-restarts=2", "--", launcher, *command, expect=8,
                 says="error: gives up after --max-restarts=2; what is saved: '")
        # So would be what is not finite, and a command that is not there.
        for code in "9", "127":
            os.remove(f"{folder}/runs")
            done = axlaunch("--", standIn(folder, code), *command,
                            expect=int(code))
            assert "restart" not in done.stderr, done.stderr
        # axrun's own verdict is one.
        command[command.index("--seed=3")] = "--seed=x"
        done = axlaunch("--", *command, expect=2, says="--seed=x: expected")
        assert "restart" not in done.stderr, done.stderr


def isRunning(process, path):
    """A step is done: from then on signals are taken."""
    end = time.monotonic() + 120
    while process.poll() is None and \
            not (os.path.exists(path) and '"step"' in Path(path).read_text()):
        if time.monotonic() > end:
            raise Failed(f"{path} still tells of no step")
        time.sleep(0.01)


def stopped(number, code, launched):
    """Saves, ends, and is not begun again."""
    with scratch() as folder:
        plan = compiled(folder)
        command = training(plan, folder, steps=1000000)
        command[command.index("--save-keep=0")] = "--save-keep=2"
        command[command.index("--save-every=1")] = "--save-every=1000000"
        launcher = ["mpirun", "--allow-run-as-root", "-np", "1"]
        process = subprocess.Popen(
            list(map(str, [tool("axlaunch"), "--grace=1", "--",
                           *(launcher if launched else []), *command])),
            stderr=subprocess.PIPE, text=True)
        try:
            isRunning(process, f"{folder}/run.log")
            process.send_signal(number)
            text = process.communicate(timeout=120)[1]
        finally:
            process.kill()
        steps = len(losses(f"{folder}/run.log"))
        if process.returncode != code or "restart " in text or \
                "axlaunch: stopping: the command saves and ends; once more " \
                "stops at once" not in text or \
                not os.path.exists(f"{folder}/run/step-{steps}"):
            raise Failed(f"exit code {process.returncode}\n{text[-2000:]}")


def left(name):
    """Processes with that text in their command lines."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if name.encode() in file.read_bytes():
                found.append(file.parent.name)
        except OSError:
            pass  # It has ended.
    return found


# A launcher that hands no signal on, with ranks in a session of their own.
DEAF = """#!/bin/sh
trap '' USR1
setsid "$@" &
while [ ! -e run.log ]; do sleep 0.05; done
[ {} ] && exit 3
wait
"""


def leavesNone(how, code):
    """Of a launcher that ends alone, when stopped twice, when it is killed: each
    time axrun is asked to end, and saves."""
    with scratch() as folder:
        plan = compiled(folder)
        deaf = Path(folder) / "deaf"
        deaf.write_text(DEAF.format("1" if how == "launcher ends" else ""))
        deaf.chmod(0o755)
        command = training(plan, folder, steps=10000000)
        command[command.index("--save-every=1")] = "--save-every=10000000"
        process = subprocess.Popen(
            list(map(str, [tool("axlaunch"), "--grace=30", "--",
                           *([] if how == "killed" else [deaf]), *command])),
            stderr=subprocess.PIPE, text=True, cwd=folder)
        try:
            isRunning(process, f"{folder}/run.log")
            if how == "killed":
                process.kill()
            elif how == "twice":
                process.send_signal(signal.SIGINT)
                time.sleep(0.5)
                process.send_signal(signal.SIGINT)
            # Its streams are closed when all who have them are gone.
            text = process.communicate(timeout=60)[1]
        finally:
            process.kill()
        steps = len(losses(f"{folder}/run.log"))
        if left(folder) or process.returncode != code or \
                not os.path.exists(f"{folder}/run/step-{steps}"):
            raise Failed(f"{process.returncode} {left(folder)}\n{text[-2000:]}")


def errors():
    with scratch() as folder:
        plan, other = compiled(folder, "--tp=2"), compiled(folder, "--dp=2",
                                                           name="other")
        command = ["mpirun", "-np", "2", "axrun", plan, "--save", "run"]
        for words, code, says in (
                ([], 2, "the command is missing: axlaunch [FLAG]... -- "
                 "COMMAND..."),
                (command, 2, "the command is missing"),
                (["x", "--", *command], 2,
                 "'x' is no flag: the command stands behind '--'"),
                (["--", "hostname"], 2, "the command does not run axrun"),
                (["--", *command[:-2]], 2, "the command has no --save=DIR"),
                (["--", f"{folder}/none", *command], 7,
                 f"cannot start '{folder}/none': No such file or directory"),
                (["--max-restarts=x", "--", *command], 2,
                 "--max-restarts=x: expected a whole number"),
                (["--max-restarts", "--", *command], 2,
                 "--max-restarts needs a value: --max-restarts=N"),
                (["--fallback", other, "--", *command], 2,
                 f"--fallback={other} is for 2 ranks, and the plan before it "
                 "for 2: it must be for fewer"),
                (["--fallback", f"{folder}/none", "--", *command], 7, "none'"),
                (["--fallback", DIGITS / "train.npz", "--", *command], 5,
                 "has no mesh of ranks, which every plan has")):
            said = axlaunch(*words, expect=code, says=says).stderr
            if said.count("\n") != 1 or \
                    not said.startswith("axlaunch: error: "):
                raise Failed(said)


def cases(every):
    yield "killed, one rank", killed, ""
    yield "killed, --tp=2 --dp=2", killed, "--tp=2 --dp=2"
    yield "begins anew", beginsAnew
    yield "replaces --resume", replacesResume
    yield "fewer ranks", fewerRanks, False
    yield "fewer ranks, compiled", fewerRanks, True
    yield "gives up", givesUp
    for name, number, code in (("SIGINT", signal.SIGINT, 130),
                               ("SIGTERM", signal.SIGTERM, 143),
                               ("SIGUSR1", signal.SIGUSR1, 130)):
        yield f"stopped by {name}", stopped, number, code, False
    yield "stopped under mpirun", stopped, signal.SIGTERM, 143, True
    for how, code in ("launcher ends", 3), ("twice", 130), ("killed", -9):
        yield f"leaves none: {how}", leavesNone, how, code
    yield "errors", errors
