# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that are killed while they save, and disks that take nothing more."""
import glob
import os
import random
import shutil
import signal
import time
from pathlib import Path

from _jobs import DIGITS, Running, compiled, oneMessage, same, sameLogs
from _mpirun import MODULE, launch, mpirun, needMpi
from cases import Failed, Unsupported, run, scratch, tool

BAD_INPUT, INPUT_OUTPUT = 6, 7
RANKS = 4
LAYOUT = "--tp=2 --dp=2 --zero=3"  # Each rank has something to write.


def unfinishedIn(saved):
    """Not the folder that is made to see who sees it, which has no file."""
    return {os.path.dirname(path) for path in glob.glob(f"{saved}/.unfinished-*/*")}


def waitForSave(job, saved, left):
    """Until a file of a new checkpoint is begun."""
    last = time.monotonic() + 60
    while not unfinishedIn(saved) - left:
        if job.process.poll() is not None or time.monotonic() > last:
            raise Failed(f"nothing is saved:\n{job.end()}")
        time.sleep(0.001)


def newestIn(saved):
    return max(int(path.name[len("step-"):]) for path in saved.glob("step-*"))


def latestIn(saved):
    """What is gone on with. The newest is another for a moment: it is in its place before it is
    named."""
    return int((saved / "latest").read_text()[len("step-"):])


def killed(times):
    """While something new is written, put in its place, or something old is removed: one rank, or
    all. The newest checkpoint is whole each time, and in the end nothing tells of it."""
    choose = random.Random(times)
    with scratch() as folder:
        plan = compiled(folder, LAYOUT)

        def train(name):
            return [tool("axrun"), plan, "--data", DIGITS, "--save", f"{folder}/{name}",
                    "--save-every=1", "--log", f"{folder}/{name}.log", "--save-weights",
                    f"{folder}/{name}.safetensors"]

        saved = Path(folder) / "run"
        launch(RANKS, *train("run"), "--steps=2")
        resume = [*train("run"), "--resume", saved]
        while times:
            before, left = latestIn(saved), unfinishedIn(saved)
            # mpirun kills the others as soon as it knows.
            job = Running(RANKS, *resume, "--steps=1000000",
                          OMPI_MCA_odls_base_sigkill_timeout="0")
            ranks = list(job.findRanks(RANKS).values())
            waitForSave(job, saved, left)
            time.sleep(choose.uniform(0, 0.03))
            isSaving = bool(unfinishedIn(saved) - left)
            victims = choose.sample(ranks, choose.choice((1, RANKS)))
            for victim in victims:
                os.kill(victim, signal.SIGKILL)
            output = job.end()
            job.noneLeft()
            times -= isSaving
            if f"resumed after step {before} from" not in output:
                raise Failed(output)
            run(*train("run"), "--resume", saved / f"step-{newestIn(saved)}", "--steps=1")
        steps = newestIn(saved) + 2
        launch(RANKS, *resume, f"--steps={steps}")
        run(*train("whole"), f"--steps={steps}")
        sameLogs(f"{folder}/run.log", f"{folder}/whole.log")
        same(f"{folder}/run.safetensors", f"{folder}/whole.safetensors")
        if left := unfinishedIn(saved):
            raise Failed(f"is left: {left}")


def damaged():
    """One voice of four, whoever has read what is damaged. Many places:
    test/unit/Runtime/DamagedCheckpointTest.cpp."""
    with scratch() as folder:
        plan = compiled(folder, LAYOUT)
        train = [tool("axrun"), plan, "--data", DIGITS, "--quiet", "--save",
                 f"{folder}/run"]
        launch(RANKS, *train, "--steps=1")
        step = Path(folder) / "run/step-1"
        for name, change in (("rank-3.safetensors", lambda whole: whole[:-100]),
                             ("rank-2.safetensors",
                              lambda whole: whole[:-9] + bytes([whole[-9] ^ 4]) + whole[-8:])):
            whole = (step / name).read_bytes()
            (step / name).write_bytes(change(whole))
            oneMessage(launch(RANKS, *train, "--steps=2", "--resume", step,
                              expect=BAD_INPUT), f"checkpoint '{step}'", name)
            (step / name).write_bytes(whole)


# argv: the size of a new file system at $1, what is there beforehand, what is done with it before
# the second command, and the commands: the first, "--", the second. What is in it afterwards is
# copied out.
INSIDE = """
set -e
size=$1 folder=$2 between=$3
shift 3
mount -t tmpfs -o "size=$size" tmpfs "$folder/disk"
first=()
while [ "$1" != -- ]; do first+=("$1"); shift; done
shift
"${first[@]}" > "$folder/first" 2>&1
cp -a "$folder/disk" "$folder/before"
eval "$between"
code=0
"$@" || code=$?
cp -a "$folder/disk" "$folder/after"
exit $code
"""


def onDisk(between, *says):
    """A file system of 8 MB that is full, or can only be read, after the first checkpoints."""
    needMpi()
    if os.geteuid() != 0 or not shutil.which("unshare") or run("unshare", "--mount", "true",
                                expect=range(256)).returncode:
        raise Unsupported("file systems are root's")
    with scratch() as folder:
        plan = compiled(folder, LAYOUT)
        (disk := Path(folder) / "disk").mkdir()
        train = [*mpirun(), "-np", RANKS, tool("axrun"), plan, "--data", DIGITS, "--quiet",
                 "--save", disk / "run", "--save-every=1"]
        done = run("unshare", "--mount", "bash", "-c", INSIDE, "bash", "8m", folder, between,
                   *train, "--steps=2", "--", *train, "--steps=4", "--resume", disk / "run",
                   expect=INPUT_OUTPUT, env=os.environ | {"AXRUN_MPI_MODULE": str(MODULE)})
        oneMessage(done, *says)
        before, after = (filesIn(Path(folder) / name / "run") for name in ("before", "after"))
        if before != after:
            raise Failed(f"{sorted(before)}\n{sorted(after)}\n{done.stderr}")


def filesIn(folder):
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b""
            for path in folder.rglob("*")}


def forbidden(mode):
    """A folder in which nothing may be made."""
    needMpi()
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        raise Unsupported("there is no setpriv, and root may write everywhere")
    with scratch() as folder:
        plan = compiled(folder, LAYOUT)
        train = [tool("axrun"), plan, "--data", DIGITS, "--quiet", "--save",
                 f"{folder}/run/here"]
        (outer := Path(folder) / "run").mkdir()
        outer.chmod(mode)
        # Root may write everywhere, unless it gives that up.
        without = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
        try:
            done = run(*(without if os.geteuid() == 0 else []), *mpirun(), "-np", RANKS, *train,
                       "--steps=2", expect=INPUT_OUTPUT,
                       env=os.environ | {"AXRUN_MPI_MODULE": str(MODULE)})
        finally:
            outer.chmod(0o700)
        oneMessage(done, f"cannot write '{folder}/run/here': Permission denied")
        if left := list(outer.iterdir()):
            raise Failed(f"is left: {left}")


def cases(every):
    for times in [2] + [100] * every:
        yield f"killed {times} times", killed, times
    yield "damaged", damaged
    yield ("a disk is full", onDisk, 'head -c 8M /dev/zero > "$folder/disk/fill" || true',
           "No space left on device")
    yield ("a file system is read-only", onDisk, 'mount -o remount,ro "$folder/disk"',
           "Read-only file system")
    for mode in 0o555, 0o000:
        yield f"a folder of mode {mode:03o}", forbidden, mode
