# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What training tells of its steps: --log, --log-every, --epochs, --quiet."""
import csv
import signal
import subprocess
import sys
from pathlib import Path

from _training import DIGITS, axrun, compiled, logged, part
from cases import ROOT, Failed, run, scratch, tool

import numpy as np


def data(folder, samples=100):
    path = f"{folder}/data.npz"
    np.savez(path, **part("train", slice(0, samples)))
    return path


def expect(got, wanted, what):
    if got != wanted:
        raise Failed(f"{what}: {got}, expected {wanted}")


def facts():
    """Epochs are counted, and what the console says is in the log."""
    with scratch() as folder:
        plan, samples = compiled(folder), data(folder)
        for last, steps in (("drop", 6), ("pad", 8)):
            axrun(plan, "--data", samples, "--epochs=2", "--last", last,
                  "--log", f"{folder}/{last}.log")
            lines = logged(f"{folder}/{last}.log")
            expect([line["step"] for line in lines],
                   list(range(1, steps + 1)), "steps")
            expect([line["epoch"] for line in lines],
                   [0] * (steps // 2) + [1] * (steps // 2), "epochs")
            for line in lines:
                rate = 32 / line["seconds"]
                if not 0.99 < line["samples_per_second"] / rate < 1.01 \
                        or line["peak_bytes"] < 1e6:
                    raise Failed(str(line))


def epochsOfOtherBatches():
    """Epochs end where the data does, whatever the batches before were."""
    with scratch() as folder:
        samples = data(folder, samples=48)
        plans = {batch: compiled(folder, shape=f"input={batch}x64",
                                 name=f"of{batch}") for batch in (8, 16)}
        for first, epochs, second, until, steps in (
                (8, 2, 16, 4, 12 + 6), (16, 2, 8, 3, 6 + 6),
                (16, 4, 8, 4, 12)):
            run = f"{folder}/{first}-{second}-{until}"
            command = ["--data", samples, "--save", run, "--log", f"{run}.log"]
            axrun(plans[first], *command, f"--epochs={epochs}")
            axrun(plans[second], *command, f"--epochs={until}", "--resume", run)
            lines = logged(f"{run}.log")
            expect((lines[-1]["step"], lines[-1]["epoch"]),
                   (steps, until - 1), "last step, its epoch")
        # From amidst an epoch on.
        command = ["--data", samples, "--save", f"{folder}/amidst", "--log",
                   f"{folder}/amidst.log"]
        axrun(plans[8], *command, "--steps=9")
        axrun(plans[16], *command, "--epochs=2", "--last=pad", "--resume",
              f"{folder}/amidst")
        expect(len(logged(f"{folder}/amidst.log")), 9 + 2, "steps")


def every():
    """Some steps have a line, the last one always, in a file and elsewhere."""
    with scratch() as folder:
        plan, samples = compiled(folder), data(folder)
        done = axrun(plan, "--data", samples, "--steps=7", "--log-every=3",
                     "--log", f"{folder}/log")
        expect([line["step"] for line in logged(f"{folder}/log")], [3, 6, 7],
               "log")
        expect([line.split()[2] for line in done.stderr.splitlines()
                if " step " in line], ["3", "6", "7"], "console")


def cutOff():
    """A log that cannot be written ends no training, but fails it."""
    with scratch() as folder:
        plan, samples = compiled(folder), data(folder)
        done = axrun(plan, "--data", samples, "--steps=4", "--log", "/dev/full",
                     "--save", f"{folder}/run", "--eval", DIGITS / "test.npz",
                     "--eval-every=2", expect=7)
        says = "cannot write '/dev/full': No space left on device"
        goesOn = f"axrun: warning: {says}: training goes on, and nothing more " \
            "is logged"
        ends = f"axrun: error: {says}: the log is cut off there"
        if done.stderr.count(goesOn) != 1 or done.stderr.count(ends) != 1 or \
                "step 4 of 4" not in done.stderr or \
                not Path(folder, "run/step-4").exists():
            raise Failed(done.stderr)


def last():
    """The last step before Ctrl-C has a line, whatever --log-every says."""
    with scratch() as folder:
        plan, samples = compiled(folder), data(folder)
        command = [tool("axrun"), plan, "--data", samples, "--steps=1000000",
                   "--log-every=1000000", "--log", f"{folder}/log",
                   "--eval", DIGITS / "test.npz", "--eval-every=5"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in process.stderr:
            if "evaluation after step 10:" in line:
                break
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        expect(process.wait(), 130, "exit code")
        steps = [int(line.split()[2]) for line in rest.splitlines()
                 if line.startswith("axrun: step ")]
        expect(steps, [line["step"] for line in logged(f"{folder}/log")
                       if "loss" in line], "steps")
        if f"interrupted after step {steps[0]} of" not in rest:
            raise Failed(rest)


def table():
    """A resumed run has one header, and no step twice."""
    with scratch() as folder:
        plan, samples = compiled(folder), data(folder)
        log = f"{folder}/log.csv"
        command = [plan, "--data", samples, "--log", log, "--eval",
                   DIGITS / "test.npz", "--eval-every=2", "--metric=accuracy"]
        axrun(*command, "--steps=4", "--save", f"{folder}/run", "--save-every=2",
              "--save-keep=0")
        axrun(*command, "--steps=5", "--resume", f"{folder}/run/step-2")
        axrun(*command[:-1], "--steps=5", "--resume", f"{folder}/run/step-2",
              expect=2, says="', to which this run would add")
        with open(log) as file:
            rows = list(csv.DictReader(file))
        expect([(row["step"], bool(row["loss"]), bool(row["eval_accuracy"]))
                for row in rows],
               [("1", True, False), ("2", True, False), ("2", False, True),
                ("3", True, False), ("4", True, False), ("4", False, True),
                ("5", True, False), ("5", False, True)], "rows")
        if not float(rows[0]["loss"]) > 0 or rows[2]["eval_samples"] != "360":
            raise Failed(str(rows))


def drawn():
    """examples/curve.py makes the same of both."""
    with scratch() as folder:
        for log in "log", "log.csv":
            axrun(compiled(folder), "--data", data(folder), "--steps=4",
                  "--log", f"{folder}/{log}", "--eval", DIGITS / "test.npz",
                  "--eval-every=2")
            run(sys.executable, ROOT / "examples/curve.py", f"{folder}/{log}",
                f"{folder}/{log}.svg")
        of, ofTable = (Path(folder, f"{log}.svg").read_text()
                       for log in ("log", "log.csv"))
        expect(ofTable, of, "curve.py")


def quiet():
    """What was asked for is told."""
    with scratch() as folder:
        done = axrun(compiled(folder), "--data", data(folder), "--steps=2",
                     "--quiet", "--eval", DIGITS / "test.npz")
        line, = done.stderr.splitlines()
        if "evaluation after step 2: loss" not in line:
            raise Failed(line)


def notKept():
    """A note where nothing is saved, and there only."""
    note = "axrun: note: what is trained is not kept: --save=DIR or " \
        "--save-weights=FILE.safetensors keeps it\n"
    with scratch() as folder:
        train = [compiled(folder), "--data", data(folder), "--steps=1"]
        for flags, isTold in (((), True), (("--quiet",), False),
                              (("--save", f"{folder}/run"), False),
                              (("--save-weights", f"{folder}/w.safetensors"),
                               False),
                              # Nothing to do.
                              (("--resume", f"{folder}/run"), False)):
            done = axrun(*train, *flags)
            if done.stderr.count(note) != isTold:
                raise Failed(f"{flags}:\n{done.stderr}")


def refused():
    with scratch() as folder:
        plan, samples = compiled(folder), data(folder)
        for flags in (), ("--steps=1", "--epochs=1"):
            axrun(plan, "--data", samples, *flags, expect=2,
                  says="--data needs --steps=N or --epochs=N, one of them, to "
                  "train; --predict=OUT gives what the model makes of it")
        for flags in ("--steps=0",), ("--epochs=-1",), \
                ("--steps=1", "--log-every=0"):
            axrun(plan, "--data", samples, *flags, expect=2,
                  says="--steps, --epochs and --log-every are at least 1")


def resumed():
    """With another order of samples, and with weights of its own."""
    with scratch() as folder:
        command = [compiled(folder), "--data", data(folder)]
        axrun(*command, "--steps=2", "--save", f"{folder}/run")
        again = [*command, "--steps=3", "--resume", f"{folder}/run"]
        for flag in "--seed=5", "--no-shuffle":
            axrun(*again, flag, says="the order of samples is another one")
        axrun(*again, "--weights", f"{folder}/run", expect=2,
              says="--weights has no use beside --resume")


def another():
    """A run of its own does not overwrite another's log."""
    with scratch() as folder:
        command = [compiled(folder), "--data", data(folder), "--quiet"]
        for name in "log", "log.csv":
            path = f"{folder}/{name}"
            train = [*command, "--log", path]
            axrun(*train, "--steps=2", "--save", f"{folder}/{name}-run")
            before = open(path).read()
            axrun(*train, "--steps=2", expect=2, says=f"--log={path} is there "
                  "already, and this run goes on with none (--resume): remove "
                  "it, or give another name")
            expect(open(path).read(), before, "log")
            axrun(*train, "--steps=3", "--resume", f"{folder}/{name}-run")
            if not open(path).read().startswith(before):
                raise Failed(open(path).read())
        open(f"{folder}/empty", "w")
        axrun(*command, "--log", f"{folder}/empty", "--steps=1")
        axrun(*command, "--log", "/dev/null", "--steps=1")


def cases(every_case):
    yield "another run's", another
    yield "cut off", cutOff
    yield "the last step", last
    yield "resumed", resumed
    yield "facts of steps", facts
    yield "epochs of other batches", epochsOfOtherBatches
    yield "--log-every", every
    yield "a table", table
    yield "curve.py", drawn
    yield "--quiet", quiet
    yield "what is not kept", notKept
    yield "refused", refused
