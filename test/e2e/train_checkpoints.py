# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training that is saved, interrupted, and gone on with elsewhere."""
import json
import os
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np

from _training import DIGITS, axrun, close, compiled, logged, losses

from cases import Failed, scratch, tool


def entries(folder):
    """But for the file that is locked."""
    return sorted(set(os.listdir(folder)) - {".lock"})


def resumes(first, second):
    """Where it was: the same bits on the same layout, the same losses on
    others."""
    with scratch() as folder:
        plan, other = compiled(folder, *first.split()), \
            compiled(folder, *second.split(), name="other")
        train = ["--data", DIGITS / "train.npz", "--seed=7"]
        # 44 batches an epoch.
        axrun(plan, *train, "--steps=50", "--save", f"{folder}/whole",
              "--log", f"{folder}/whole.log")
        axrun(plan, *train, "--steps=41", "--save", f"{folder}/run",
              "--save-every=20", "--log", f"{folder}/run.log")
        assert entries(f"{folder}/run") == ["latest", "step-40", "step-41"]
        shutil.copy(f"{folder}/run.log", f"{folder}/other.log")
        shutil.copytree(f"{folder}/run", f"{folder}/elsewhere")
        rest = ["--data", DIGITS / "train.npz", "--steps=50"]
        axrun(plan, *rest, "--save", f"{folder}/run", "--resume",
              f"{folder}/run", "--log", f"{folder}/run.log",
              says="resumed after step 41 from")
        whole, again = (Path(folder) / name / "step-50"
                        for name in ("whole", "run"))
        names = sorted(os.listdir(whole))
        assert names == sorted(os.listdir(again))
        for name in names:
            if (whole / name).read_bytes() != (again / name).read_bytes():
                raise Failed(f"{name} is another")
        wanted = losses(f"{folder}/whole.log")
        assert losses(f"{folder}/run.log") == wanted
        axrun(other, *rest, "--resume", f"{folder}/elsewhere/step-41",
              "--log", f"{folder}/other.log")
        close(losses(f"{folder}/other.log"), wanted, 1e-4, "losses")


def flip(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def refusesDamage():
    with scratch() as folder:
        plan = compiled(folder, "--tp=2")
        train = ["--data", DIGITS / "train.npz", "--quiet"]
        saved = Path(folder) / "saved"
        axrun(plan, *train, "--steps=4", "--save-every=2", "--save", saved)
        step = saved / "step-4"

        def refused(change, *says):
            shutil.rmtree(f"{folder}/run", ignore_errors=True)
            shutil.copytree(saved, f"{folder}/run")
            change(Path(folder) / "run" / "step-4")
            name = f"checkpoint '{folder}/run/step-4': "
            for text in says:
                axrun(plan, *train, "--steps=5", "--resume",
                      f"{folder}/run/step-4", expect=6, says=text)
            axrun(plan, *train[:2], "--steps=5", "--resume", f"{folder}/run",
                  says="resumed after step 2 from")
            axrun(plan, *train, "--steps=5", "--resume", f"{folder}/run",
                  says=name)

        def edited(change):
            def edit(path):
                manifest = json.loads((path / "manifest.json").read_text())
                change(manifest["content"])
                (path / "manifest.json").write_text(json.dumps(manifest))
            return edit

        refused(lambda path: flip(path / "rank-1.safetensors", -5),
                "rank-1.safetensors is damaged: the checksum of '")
        refused(lambda path: os.truncate(path / "rank-0.safetensors", 5000),
                "rank-0.safetensors': ")
        refused(lambda path: (path / "rank-1.safetensors").unlink(),
                "rank-1.safetensors': No such file or directory")
        refused(lambda path: (path / "manifest.json").write_text("{"),
                "manifest.json is malformed")
        refused(lambda path: (path / "manifest.json").write_text("[" * 99),
                "manifest.json is malformed")
        for replace, says in ((os.mkfifo, "manifest.json': not a regular file"),
                              (lambda path: path.touch() or
                               os.truncate(path, 2**31),
                               "manifest.json' has more than 1073741824 bytes")):
            refused(lambda path: ((path / "manifest.json").unlink(),
                                  replace(path / "manifest.json")), says)
        (Path(folder) / "run" / "latest").unlink()
        os.mkfifo(f"{folder}/run/latest")
        axrun(plan, *train[:2], "--steps=5", "--resume", f"{folder}/run",
              says="resumed after step 2 from")
        refused(edited(lambda content: content.update(step=5)),
                "manifest.json is damaged: its checksum is another")
        refused(edited(lambda content: content.update(version=2)),
                "manifest.json has a version other than 3")
        (Path(folder) / "run" / "step-4" / "manifest.json").unlink()
        (Path(folder) / "run" / "step-2" / "manifest.json").unlink()
        axrun(plan, *train, "--steps=5", "--resume", f"{folder}/run", expect=6,
              says="manifest.json': No such file or directory")
        axrun(plan, *train, "--steps=5", "--resume", folder, expect=6,
              says=f"there is no checkpoint in '{folder}'")


def refusesOthers():
    with scratch() as folder:
        plan = compiled(folder, "--optimizer=sgd(lr=0.1,momentum=0.9)")
        train = ["--data", DIGITS / "train.npz", "--quiet"]
        axrun(plan, *train, "--steps=2", "--save", f"{folder}/run")
        resume = ["--steps=3", "--resume", f"{folder}/run"]
        other = f"/run/step-2' is of another optimizer: it has momentum " \
            "of each weight, where the plan keeps "
        alone = f"; --weights={folder}/run takes its weights alone\n"
        for name, optimizer, says in (
                ("adam", "adam(lr=0.1)", "exp_avg and exp_avg_sq"),
                ("sgd", "sgd(lr=1)", "nothing")):
            done = axrun(compiled(folder, f"--optimizer={optimizer}",
                                  name=name), *train, *resume, expect=6,
                         says=other + says + alone)
            assert len(done.stderr.splitlines()) == 1, done.stderr
        axrun(f"{folder}/adam.mlir", *train, "--steps=1", "--weights",
              f"{folder}/run")
        # They keep the same, with another meaning.
        axrun(f"{folder}/adam.mlir", *train, "--steps=2", "--save",
              f"{folder}/adam")
        made = f"/adam/step-2' is of another optimizer: it is of adam(lr=0.1," \
            "weight_decay=0,betas=0.9:0.999,eps=1e-08), and the plan trains " \
            "with adamw(lr=0.1,weight_decay=0.01,betas=0.9:0.999,eps=1e-08); " \
            f"--weights={folder}/adam takes its weights alone"
        axrun(compiled(folder, "--optimizer=adamw(lr=0.1)", name="adamw"),
              *train, "--steps=3", "--resume", f"{folder}/adam", expect=6,
              says=made)
        axrun(compiled(folder, "--optimizer=sgd(lr=0.1,momentum=0.9,"
                       "nesterov=1)", name="nesterov"), *train, *resume,
              says="training goes on with sgd(lr=0.1,weight_decay=0,"
              "momentum=0.9,nesterov=1), where checkpoint "
              f"'{folder}/run/step-2' was made with sgd(lr=0.1,"
              "weight_decay=0,momentum=0.9,nesterov=0)")
        axrun(compiled(folder, "--optimizer=sgd(lr=0.1,momentum=0.9)",
                       "--clip-norm=2", "--param-group=rank<2:lr=1",
                       "--lr-schedule=linear(steps=9)", name="more"), *train,
              *resume, says="training goes on with sgd(lr=0.1,weight_decay=0,"
              "momentum=0.9,nesterov=0) lr-schedule=linear(steps=9) "
              "clip-norm=2 param-group=rank<2:lr=1, where checkpoint ")
        # Of other weights, in the order of their names.
        done = axrun(compiled(folder, "--optimizer=sgd(lr=1)",
                              "--frozen=embed*", name="frozen"), *train,
                     *resume, expect=6,
                     says="is of another model or optimizer:")
        lines = done.stderr.splitlines()[1:-1]
        assert lines and lines == sorted(lines), done.stderr
        assert "embed.weight is in the checkpoint, but the plan does not " \
            "train it" in done.stderr, done.stderr
        data = np.load(DIGITS / "train.npz")
        np.savez(f"{folder}/fewer.npz", input=data["input"][:99],
                 labels=data["labels"][:99])
        axrun(plan, "--data", f"{folder}/fewer.npz", *resume, expect=6,
              says="there are 99 samples; the checkpoint was made with 1437: "
              "to train on with other data, give --weights=DIR instead of "
              "--resume=DIR")


def nothingLeft():
    with scratch() as folder:
        plan = compiled(folder)
        train = [plan, "--data", DIGITS / "train.npz", "--save",
                 f"{folder}/run"]
        axrun(*train, "--steps=3")
        before = os.stat(f"{folder}/run/step-3").st_ino
        for steps in 2, 3:
            axrun(*train, f"--steps={steps}", "--resume", f"{folder}/run",
                  says="3 steps are done already: nothing to do")
        assert os.stat(f"{folder}/run/step-3").st_ino == before
        axrun(*train[:-1], f"{folder}/other", "--steps=2", "--resume",
              f"{folder}/run/step-3", says=f"saved '{folder}/other/step-3'")


def logsOfStepsDoneAgain():
    with scratch() as folder:
        plan = compiled(folder)
        train = [plan, "--data", DIGITS / "train.npz", "--log", f"{folder}/log"]
        axrun(*train, "--steps=6", "--save-every=4", "--save", f"{folder}/run",
              "--eval", DIGITS / "test.npz", "--eval-every=2")
        whole = logged(f"{folder}/log")
        with open(f"{folder}/log", "a") as file:
            file.write('remark\n{"step": 6, "lo')
        axrun(*train, "--steps=6", "--resume", f"{folder}/run/step-4",
              "--eval", DIGITS / "test.npz")
        axrun(*train[:3], "--steps=5", "--resume", f"{folder}/run/step-4",
              "--save", f"{folder}/run", says="has checkpoints up to step 6: "
              "its 'latest' goes back behind step 4")
        lines = Path(f"{folder}/log").read_text().splitlines()
        assert lines.pop(6) == "remark", lines
        got = [json.loads(line) for line in lines]

        def told(lines):
            return [{key: line[key] for key in line.keys() - {
                "seconds", "samples_per_second", "peak_bytes"}}
                for line in lines]

        assert told(got) == told(whole), (got, whole)


def replacesAndKeeps():
    """Only checkpoints go: nothing of somebody's that has such a name."""
    with scratch() as folder:
        plan = compiled(folder)
        (mine := Path(folder) / "mine").mkdir()
        (mine / "thesis").write_text("")
        elsewhere = Path(folder) / "elsewhere"
        folder = Path(folder) / "run"
        command = [plan, "--data", DIGITS / "train.npz", "--save", folder]
        axrun(*command, "--steps=1")
        command += ["--resume", elsewhere]
        shutil.move(folder / "step-1", elsewhere)
        (folder / "step-1").symlink_to(elsewhere)
        (folder / ".unfinished-a").symlink_to(mine)
        shutil.copytree(mine, folder / ".unfinished-b")
        (folder / ".unfinished-c").mkdir()
        (folder / ".unfinished-c" / "rank-0.safetensors").write_text("")
        for name in "step-2", "step-9":
            for make in ((folder / name).mkdir,
                         lambda: (folder / name).symlink_to(mine)):
                make()
                before = entries(folder)
                axrun(*command, "--steps=4", expect=7, says=f"'{folder}/{name}' "
                      "is no checkpoint, but where one would be: move it away, "
                      "or save to another folder")
                assert entries(folder) == before
                os.rename(folder / name, mine / f"{name}-{len(os.listdir(mine))}")
        axrun(*command, "--steps=4", "--save-every=3", "--save-keep=1")
        assert entries(folder) == [".unfinished-a", ".unfinished-b", "latest",
                                   "step-4"], entries(folder)
        assert (mine / "thesis").exists()
        assert (folder / ".unfinished-b" / "thesis").exists()
        assert (elsewhere / "manifest.json").exists()


def removesDamagedFirst():
    """What was passed over stays in place of none that is whole."""
    with scratch() as folder:
        plan = compiled(folder)
        saved, run = Path(folder) / "saved", Path(folder) / "run"
        train = [plan, "--data", DIGITS / "train.npz", "--save"]
        axrun(*train, saved, "--steps=10", "--save-every=5")
        flip(saved / "step-10" / "rank-0.safetensors", -5)

        def keeps(*names, flags):
            shutil.rmtree(run, ignore_errors=True)
            shutil.copytree(saved, run)
            # By another name of the folder, too.
            axrun(*train, run, "--resume", f"{folder}/saved/../run", *flags,
                  says="/step-5' is taken instead")
            assert entries(run) == ["latest", *sorted(names)], entries(run)

        keeps("step-5", "step-12", flags=["--steps=12"])
        keeps("step-12", flags=["--steps=12", "--save-keep=1"])
        keeps("step-5", "step-10", "step-12",
              flags=["--steps=12", "--save-keep=3"])
        keeps("step-5", "step-10", "step-12",
              flags=["--steps=12", "--save-keep=0"])
        # One that is of a later step goes, too.
        keeps("step-5", "step-7", flags=["--steps=7"])
        # One that was written in its place is whole.
        keeps("step-10", "step-12", flags=["--steps=12", "--save-every=5"])


def otherBatches():
    """A batch of another size is told, and may be gone on with again."""
    with scratch() as folder:
        run = ["--data", DIGITS / "train.npz", "--save", f"{folder}/run",
               "--resume", f"{folder}/run"]
        axrun(compiled(folder), *run[:-2], "--steps=5")
        for steps, batch, before in (7, 16, 32), (9, 24, 16), (11, 24, 24):
            done = axrun(compiled(folder, shape=f"input={batch}x64"), *run,
                         f"--steps={steps}")
            told = f"warning: a batch has {batch} samples, where the run that "                 f"is gone on with had {before}"
            if (told in done.stderr) != (batch != before):
                raise Failed(done.stderr)
        place = json.loads((Path(folder) / "run" / "step-11" / "manifest.json")
                           .read_text())["content"]["progress"]["data"]
        assert place["position"] == 5 * 32 + 2 * 16 + 4 * 24, place
        assert [entry["step"] for entry in place["earlier"]] == [5, 7], place


def limited(numBytes):
    return {"preexec_fn": lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (numBytes, numBytes))}


def fullDisk():
    """As a limit of a file's size, which fails like a disk without space."""
    with scratch() as folder:
        plan = compiled(folder)
        command = [plan, "--data", DIGITS / "train.npz", "--save",
                   f"{folder}/run"]
        axrun(*command, "--steps=2")
        before = sorted(Path(folder).rglob("run/**"))
        axrun(*command, "--steps=6", "--save-every=2", "--resume",
              f"{folder}/run", expect=7, says="cannot write '",
              **limited(10**5))
        done = axrun(*command, "--steps=6", "--save-every=4", "--resume",
                     f"{folder}/run", expect=7,
                     says="File too large", **limited(10**5))
        text = "training goes on without this checkpoint"
        assert done.stderr.count(text) == 1, done.stderr
        assert "step 6 of 6" in done.stderr
        assert sorted(Path(folder).rglob("run/**")) == before
        axrun(*command, "--steps=3", "--resume", f"{folder}/run",
              says="resumed after step 2")
        (Path(folder) / "file").write_text("")
        axrun(plan, "--data", DIGITS / "train.npz", "--steps=1", "--save",
              f"{folder}/file/run", expect=7, says="cannot write '")


def interrupted(codes, *signals):
    with scratch() as folder:
        plan = compiled(folder)
        command = [tool("axrun"), plan, "--data", DIGITS / "train.npz",
                   "--log", f"{folder}/log", "--save", f"{folder}/run"]
        process = subprocess.Popen(
            [str(word) for word in (*command, "--steps=1000000")],
            stderr=subprocess.PIPE, text=True)
        try:
            while process.poll() is None and (
                    not os.path.exists(f"{folder}/log") or
                    Path(f"{folder}/log").read_text().count("\n") < 3):
                time.sleep(0.05)
            # Stopped, so that it cannot end between two of them.
            process.send_signal(signal.SIGSTOP)
            for number in signals:
                process.send_signal(number)
                time.sleep(0.1)
                if len(signals) > 1:
                    process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGCONT)
            text = process.communicate(timeout=120)[1]
        finally:
            process.kill()
        if len(signals) > 1:
            # Different threads may take them, and so in any order.
            if process.returncode not in (*codes, *(-s for s in signals)):
                raise Failed(f"exit code {process.returncode}\n{text[-999:]}")
            return
        steps = len(losses(f"{folder}/log"))
        for part in ("stopping after this step; once more stops at once",
                     f"interrupted after step {steps} of 1000000: go on with "
                     f"--resume={folder}/run"):
            if process.returncode not in codes or part not in text:
                raise Failed(f"exit code {process.returncode}\n{text[-999:]}")
        axrun(*command[1:], "--steps", steps + 1, "--resume", f"{folder}/run",
              says=f"resumed after step {steps} from")


def twoWriters():
    """The second run with one folder is an error, and changes nothing."""
    with scratch() as folder:
        command = [compiled(folder), "--data", DIGITS / "train.npz", "--save",
                   f"{folder}/run"]
        process = subprocess.Popen(
            [str(word) for word in (tool("axrun"), *command, "--log",
                                    f"{folder}/log", "--steps=1000000")],
            stderr=subprocess.DEVNULL)
        try:
            while process.poll() is None and not (
                    os.path.exists(f"{folder}/log") and
                    os.path.getsize(f"{folder}/log")):
                time.sleep(0.01)
            (Path(folder) / "run" / ".unfinished-mine").mkdir()
            os.symlink("run", f"{folder}/link")
            for name in "run", "link", "../" + Path(folder).name + "/run":
                axrun(*command[:-1], f"{folder}/{name}", "--steps=2", expect=7,
                      says=f"another run saves to '{folder}/{name}': give this "
                      "one a folder of its own")
            assert entries(f"{folder}/run") == [".unfinished-mine"]
            process.send_signal(signal.SIGINT)
            process.wait(timeout=120)
        finally:
            process.kill()
        assert process.returncode == 130
        # Nothing is left behind, and the next one may.
        axrun(*command, "--steps=2", "--resume", f"{folder}/run")
        names = entries(f"{folder}/run")
        assert len(names) == 2 and names[0] == "latest", names


def interruptedEvaluation():
    """Measures all or nothing."""
    with scratch() as folder:
        plan = compiled(folder)
        (data := Path(folder) / "eval").mkdir()
        for name, shape, kind in (("input", (1 << 21, 64), np.float32),
                                  ("labels", (1 << 21,), np.int64)):
            np.lib.format.open_memmap(f"{data}/{name}.npy", "w+", kind, shape)
        process = subprocess.Popen(
            [str(word) for word in (
                tool("axrun"), plan, "--data", DIGITS / "train.npz",
                "--steps=3", "--eval", data, "--eval-every=1", "--log",
                f"{folder}/log")], stderr=subprocess.PIPE, text=True)
        try:
            while process.poll() is None and not (
                    os.path.exists(f"{folder}/log") and
                    os.path.getsize(f"{folder}/log")):
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            text = process.communicate(timeout=120)[1]
        finally:
            process.kill()
        assert process.returncode == 130 and "evaluation" not in text, text
        line, = logged(f"{folder}/log")
        assert line["step"] == 1 and "loss" in line, line


def cases(every):
    for first, second in (("", "--dp=2"), ("--dp=2 --zero=2", "--tp=2x2x2"),
                          ("--tp=4", "--dp=2 --tp=2 --zero=3")):
        yield f"resumes {first} as {second}", resumes, first, second
    yield "refuses damage", refusesDamage
    yield "refuses other models", refusesOthers
    yield "nothing left to do", nothingLeft
    yield "logs of steps done again", logsOfStepsDoneAgain
    yield "replaces and keeps", replacesAndKeeps
    yield "removes damaged ones first", removesDamagedFirst
    yield "batches of other sizes", otherBatches
    yield "two writers", twoWriters
    yield "interrupted evaluation", interruptedEvaluation
    yield "full disk", fullDisk
    yield "interrupt", interrupted, [130], signal.SIGINT
    yield "terminate", interrupted, [143], signal.SIGTERM
    yield "asked by a launcher", interrupted, [130], signal.SIGUSR1
    yield "interrupt twice", interrupted, [130], signal.SIGINT, signal.SIGINT
    yield ("interrupt, then terminate", interrupted, [130, 143], signal.SIGINT,
           signal.SIGTERM)
