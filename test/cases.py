# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A lit format for Python files that list cases.

A file NAME.py has

    def cases(every):
        yield "name of the case", function, argument, ...

and each case is one test, NAME/name of the case: it passes when
function(argument, ...) returns. `every` is true for `tools/dev test --all`;
without it, files leave out what takes long. Files whose names begin with _ are
only imported by others. Cases run in lit's worker processes, side by side, in
no order: what they write goes to a temporary folder of their own.
"""
import functools
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import traceback

import lit.formats
import lit.Test


# Whether the long ones are wanted, too.
EVERY = bool(os.environ.get("AX_TEST_ALL"))


class Unsupported(Exception):
    """Raised by a case that cannot run here; it is not counted."""


class Failed(Exception):
    """A failure whose message says all; other exceptions show their stack."""


@functools.lru_cache(maxsize=None)
def load(path):
    """The cases of a file: lists of a function and its arguments, by name."""
    folder = str(pathlib.Path(path).parent)
    if folder not in sys.path:  # For files whose names begin with _.
        sys.path.append(folder)
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    table = {}
    for name, *call in module.cases(EVERY):
        # lit keeps how long tests took, one a line, and runs none if that file
        # has others.
        name = " ".join(name.split())
        if name in table:
            raise ValueError(f"{path}: two cases are called {name}")
        table[name] = call
    return table


class Cases(lit.formats.TestFormat):
    def getTestsInDirectory(self, suite, path, litConfig, config):
        folder = pathlib.Path(suite.getSourcePath(path))
        for file in sorted(folder.glob("[!_]*.py")):
            try:
                names = list(load(str(file)))
            except Exception:
                # Fails again, and is reported, when this one is executed.
                names = ["lists its cases"]
            for name in names:
                yield lit.Test.Test(suite, path + (file.name, name), config)

    def execute(self, test, litConfig):
        *folder, file, name = test.path_in_suite
        path = test.suite.getSourcePath(tuple(folder) + (file,))
        try:
            function, *arguments = load(path)[name]
            function(*arguments)
        except Unsupported as reason:
            return lit.Test.UNSUPPORTED, str(reason)
        except Failed as failure:
            return lit.Test.FAIL, str(failure)
        except Exception:
            return lit.Test.FAIL, traceback.format_exc(limit=-4)
        return lit.Test.PASS, ""


ROOT = pathlib.Path(__file__).parents[1]

MODELS = pathlib.Path(__file__).parent / "models"

# Training runs of PyTorch, see test/e2e/train.py.
TRAINING = pathlib.Path(__file__).parent / "data" / "training"

# What every model is compiled for.
LAYOUTS = [
    "--tp=1",
    "--tp=2",
    "--tp=4",
    "--tp=2x2x1",
    "--tp=1x2x2",
    "--tp=2x2x2",
    "--dp=2",
    "--pp=2",
    "--pp=4",
    "--tp=2 --pp=2",
    "--dp=2 --tp=2 --pp=2",
    "--tp=2 --sequence-parallel",
    "--pp=2 --micro-batches=2",
]


def minilm():
    """Folder of the sentence encoder, graph and weights and test data."""
    default = os.path.expanduser("~/.cache/axopt")
    return pathlib.Path(os.environ.get("AXOPT_CACHE", default)) / "minilm"


def graphOf(folder):
    """The graph of a model of MODELS, beside which its weights are."""
    return (minilm() if folder.name == "minilm" else folder) / "model.onnx"


def scratch():
    """A temporary folder, for `with`."""
    return tempfile.TemporaryDirectory(prefix="axopt-test-")


def tool(name):
    """Path of a tool that was built; AX_RUNNERS has other builds of what runs
    plans."""
    if name in ("axrun", "axrun-core") and "AX_RUNNERS" in os.environ:
        return os.path.join(os.environ["AX_RUNNERS"], name)
    return os.path.join(os.environ["AX_BIN"], name)


@functools.lru_cache(maxsize=None)
def isSanitized():
    """Whether the tools were built with a sanitizer, which takes memory of its
    own, and has to be in a program from its start."""
    with open(tool("axrun"), "rb") as file:
        code = file.read()
    return b"__asan_init" in code or b"__tsan_init" in code


def needSimulatedGpu(command, environment):
    """A build without cuda.h has none: what is to find one there is left out."""
    name, own = "AXRUN_CUDA_PATH=", pathlib.Path(os.environ["AX_BIN"]).parent
    asked = [word[len(name):] for word in command if word.startswith(name)]
    asked += [own / "test/simgpu"] * ("--simulated" in command)
    for folder in map(pathlib.Path, [environment.get(name[:-1], ""), *asked]):
        if folder.match("test/simgpu") and not (folder / "libcuda.so.1").exists():
            raise Unsupported("the build has no simulated GPU, as without cuda.h")


def run(*command, expect=0, timeout=300, **options):
    """Runs a command, checks its exit code, gives its CompletedProcess.

    `expect` is the code, or a collection of allowed ones.
    """
    command = [str(word) for word in command]
    needSimulatedGpu(command, options.get("env") or os.environ)
    shown = " ".join(command)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, **options
        )
    except subprocess.TimeoutExpired as error:
        raise Failed(f"$ {shown}\nstill running after {timeout} s") from error
    allowed = [expect] if isinstance(expect, int) else expect
    if done.returncode not in allowed:
        raise Failed(
            f"$ {shown}\nexit code {done.returncode}, expected {expect}\n"
            + _tail(done.stdout)
            + _tail(done.stderr)
        )
    return done


def _tail(text, lines=40):
    return "".join(text.splitlines(keepends=True)[-lines:])
