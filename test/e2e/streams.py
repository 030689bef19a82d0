# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Streams and files that fail while they are written or read."""
import os
import pty
import re
import resource
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np

from _training import DIGITS, compiled, logged

from cases import MODELS, Failed, run, scratch, tool

MLP = MODELS / "mlp_eager_ts13_dyn"
GPT2 = MODELS / "gpt2_eager_ts17_dyn"


def expect(command, code, says=(), never=("LLVM", "IO failure"), **options):
    """Exit code, and what standard error has once, where it can be read."""
    options.setdefault("stderr", subprocess.PIPE)
    options.setdefault("stdout", subprocess.DEVNULL)
    done = subprocess.run([str(word) for word in command], timeout=300,
                          text=True, **options)
    text = done.stderr or ""
    if done.returncode != code or any(text.count(part) != 1 for part in says) \
            or any(part in text for part in never):
        raise Failed(f"{command}\nexit code {done.returncode}, expected "
                     f"{code}\n{text[-2000:]}")
    return done


def closed(*streams):
    return {"preexec_fn": lambda: [os.close(stream) for stream in streams]}


def compiling():
    """On a terminal, who waits for many kernels reads why, once; of kernels
    that are there nothing is said."""
    with scratch() as folder:
        command = [tool("axrun"), str(compiled(folder)), "--separate-kernels",
                   "--cache-dir", f"{folder}/kernels", "--data",
                   str(DIGITS / "train.npz"), "--steps=1"]
        for isTold in True, False:
            ours, its = pty.openpty()
            process = subprocess.Popen(command, stderr=its)
            os.close(its)
            said = b""
            try:
                while piece := os.read(ours, 4096):
                    said += piece
            except OSError:
                # The other end is closed.
                pass
            os.close(ours)
            told = re.findall(r"axrun: compiling \d+ kernels, which '"
                              f"{folder}/kernels' keeps for later runs",
                              said.decode())
            if process.wait() != 0 or len(told) != isTold:
                raise Failed(said.decode())


def prepared(folder):
    run(tool("axopt"), MLP / "model.onnx", "--dim=batch=4", "--quiet", "-o",
        f"{folder}/mlp.mlir")
    compiled(folder)


def results():
    """What is asked for on standard output cannot be written."""
    with scratch() as folder, open("/dev/full", "w") as full:
        prepared(folder)
        plan, trains = f"{folder}/mlp.mlir", f"{folder}/plan.mlir"
        for command, tells in (
                (["axopt", MLP / "model.onnx", "--dim=batch=4"], "axopt"),
                (["axopt", plan, "--verify"], "axopt"),
                (["axopt", plan, "--explain"], "axopt"),
                (["axopt", "--help"], "axopt"),
                (["axopt", "--version"], "axopt"),
                (["axrun", plan, "--list-commands"], "axrun"),
                (["axrun", "--help"], "axrun"),
                (["axrun", trains, "--eval", DIGITS / "test.npz"], "axrun")):
            command = [tool(command[0]), *command[1:]]
            says = [f"{tells}: error: cannot write standard output: "]
            expect(command, 7, says, stdout=full)
            expect(command, 7, says, **closed(1))
            # A reader that is gone.
            reader, writer = os.pipe()
            os.close(reader)
            expect(command, 7, says, stdout=writer)
            os.close(writer)
            expect(command, 7, stdout=full, stderr=full)
        # Nothing is asked for; and a failure stays what it is.
        expect([tool("axrun"), plan, "--random-inputs=1", "--output",
                f"{folder}/out"], 0, stdout=full)
        expect([tool("axrun"), plan, "--random-inputs=1"], 7,
               ["axrun: error: cannot write standard output: "], stdout=full)
        expect([tool("axrun"), plan, "--nothing"], 2, stdout=full)


def messages():
    """Where there is nobody to tell, the result is the same."""
    with scratch() as folder, open("/dev/full", "w") as full:
        prepared(folder)
        wanted = Path(f"{folder}/mlp.mlir").read_bytes()
        again = f"{folder}/again.mlir"
        for options in ({"stderr": full}, closed(2), closed(1, 2),
                        closed(0, 1, 2)):
            expect([tool("axopt"), MLP / "model.onnx", "--dim=batch=4", "-o",
                    again], 0, **options)
            # No file of the tool has got the number of a stream.
            assert Path(again).read_bytes() == wanted
            expect([tool("axopt"), MLP / "model.onnx"], 2, **options)
            expect([tool("axrun"), again, "--random-inputs=1", "--output",
                    f"{folder}/out.npz"], 0, **options)
            np.load(f"{folder}/out.npz")


def training():
    """Goes on without its console."""
    with scratch() as folder, open("/dev/full", "w") as full:
        prepared(folder)
        reader, writer = os.pipe()
        os.close(reader)
        for options in ({"stderr": full, "stdout": full}, {"stderr": writer},
                        closed(1, 2)):
            Path(f"{folder}/log").unlink(missing_ok=True)
            shutil.rmtree(f"{folder}/run", ignore_errors=True)
            expect([tool("axrun"), f"{folder}/plan.mlir", "--data",
                    DIGITS / "train.npz", "--steps=20", "--log",
                    f"{folder}/log", "--save", f"{folder}/run"], 0, **options)
            assert len(logged(f"{folder}/log")) == 20
        os.close(writer)


def limited(numBytes):
    return {"preexec_fn": lambda: resource.setrlimit(
        resource.RLIMIT_FSIZE, (numBytes, numBytes))}


def contents(folder):
    return {path: path.read_bytes() for path in Path(folder).rglob("*")
            if path.is_file()}


def fileSizes():
    """Of what cannot be written as a whole, nothing is; what was there is."""
    with scratch() as folder:
        prepared(folder)
        plan, out = f"{folder}/mlp.mlir", Path(folder) / "out"
        cannot = ["error: cannot write '"]
        expect([tool("axopt"), MLP / "model.onnx", "--dim=batch=4", "-o", plan],
               7, cannot, **limited(1000))
        expect([tool("axopt"), GPT2 / "model.onnx", "--dim=batch=2",
                "--dim=sequence=8", "--quiet", "-o", f"{folder}/gpt.mlir"], 0)
        gpt = [tool("axrun"), f"{folder}/gpt.mlir", "--random-inputs=1"]
        for output in out, Path(f"{folder}/out.npz"):
            run(*gpt, "--output", output)
            before = contents(folder)
            expect([*gpt[:-1], "--random-inputs=2", "--output", output], 7,
                   cannot, **limited(2000))
            assert contents(folder) == before
        with open(f"{folder}/text", "w") as text:
            expect([tool("axopt"), plan], 7,
                   ["cannot write standard output: File too large"],
                   stdout=text, **limited(1000))


def shortened(command, path, isReady, size):
    """Runs until `isReady`, and goes on with a shorter file."""
    process = subprocess.Popen([str(word) for word in command],
                               stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + 120
        while process.poll() is None and not isReady():
            assert time.monotonic() < end
            time.sleep(0.02)
        os.truncate(path, size)
        text = process.communicate(timeout=120)[1]
    finally:
        process.kill()
    says = f"axrun: error: cannot read '{path}': it has become shorter since " \
        "it was opened"
    if process.returncode != 7 or text.count(says) != 1:
        raise Failed(f"exit code {process.returncode}\n{text[-2000:]}")


def mappedData(size):
    """Whole pages that are gone, and less than one."""
    with scratch() as folder:
        plan = compiled(folder)
        os.mkdir(data := Path(folder) / "data")
        samples = 1 << 14
        for name, shape, kind in (("input", (samples, 64), np.float32),
                                  ("labels", (samples,), np.int64)):
            np.lib.format.open_memmap(f"{data}/{name}.npy", "w+", kind, shape)
        path = data / "input.npy"
        log = Path(folder) / "log"
        steps = 10**9 if size == 0 else 2000
        shortened([tool("axrun"), plan, "--data", data, f"--steps={steps}",
                   "--log", log, "--save", f"{folder}/run"], path,
                  lambda: log.exists() and log.stat().st_size > 0,
                  size if size >= 0 else path.stat().st_size + size)
        assert not list(Path(folder).glob("run/step*"))


def cases(every):
    yield "results", results
    yield "messages", messages
    yield "compiling", compiling
    yield "training without a console", training
    yield "sizes of files", fileSizes
    yield "mapped data that is gone", mappedData, 0
    yield "mapped data that is shorter", mappedData, -8
