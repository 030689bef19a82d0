# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/dev, with stand-ins for what it runs."""
import os
import re
import shutil
import subprocess
from pathlib import Path

from cases import Failed, scratch

ROOT = Path(__file__).parents[2]
# An environment of Python's says what it is asked to run.
MAKE_VENV = """if [ "$2" = venv ]; then
  mkdir -p "$3/bin"
  printf '#!/bin/sh\\necho "python $*"\\n' >"$3/bin/python"
  printf '#!/bin/sh\\n' >"$3/bin/pip"
  chmod +x "$3/bin/python" "$3/bin/pip"
fi"""
STAND_INS = {"cmake": "true", "dpkg-query": "printf installed",
             "ninja": 'echo "ninja $*"', "python3": MAKE_VENV}


def tree(folder):
    """tools/dev in a tree of its own, where all that it needs is there."""
    version, = re.findall(r"^set\(AX_ONNX_VERSION (.*)\)",
                          (ROOT / "cmake/AxOnnx.cmake").read_text(), re.M)
    for name in "tools/dev", "tools/setup.bash", "cmake/AxOnnx.cmake":
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (library := folder / f"cache/onnx-{version}/lib").mkdir(parents=True)
    (library / "libonnx.a").touch()
    (folder / "bin").mkdir()
    for name, command in STAND_INS.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{command}\n")
        (folder / "bin" / name).chmod(0o755)
    return {"cwd": folder, "stderr": subprocess.STDOUT, "timeout": 60,
            "env": os.environ | {"AXOPT_CACHE": f"{folder}/cache",
                                 "TERM": "xterm", "PATH": os.pathsep.join(
                                     [f"{folder}/bin", os.environ["PATH"]])}}


def progress():
    """On a terminal ninja shows how far it is, elsewhere it is quiet."""
    with scratch() as folder:
        settings = tree(Path(folder))
        command = ["tools/dev", "build", "axopt"]
        ninja = f"ninja -C {folder}/build/release "
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                              **settings).stdout
        if said != ninja + "--quiet axopt\n":
            raise Failed(said)
        reader, terminal = os.openpty()
        subprocess.run(command, stdout=terminal, **settings)
        os.close(terminal)
        with open(reader, "rb") as shown:
            said = shown.readline().decode()
        if said.strip() != ninja + "axopt":
            raise Failed(said)


def benches():
    """Each benchmark is reached, and has what it needs."""
    with scratch() as folder:
        settings = tree(Path(folder))
        minilm = Path(folder) / "cache/minilm"
        for made in minilm, Path(folder) / "test/models/minilm":
            made.mkdir(parents=True)
        for name in "model.safetensors", "vocab.txt":
            (minilm / name).touch()
        shutil.copytree(ROOT / "test/bench", Path(folder) / "test/bench")
        for path in (ROOT / "test").glob("requirements*.txt"):
            shutil.copy(path, Path(folder) / "test")
        build = f" {folder}/build/release"
        for name, script, extra in [
                ("mlp", "bench.py", f" --minilm {minilm} mlp"),
                ("zoo", "zoo.py", ""), ("training", "training.py", ""),
                ("images", "images.py", ""), ("layouts", "layouts.py", ""),
                ("recompute", "recompute.py", ""), ("compile", "compile.py", ""),
                ("pipelines", "pipelines.py", "")]:
            said = subprocess.run(["tools/dev", "bench", name], text=True,
                                  stdout=subprocess.PIPE, **settings).stdout
            last = said.splitlines()[-1]
            if last != f"python {folder}/test/bench/{script}{build}{extra}":
                raise Failed(said)


def cases(every):
    yield "progress", progress
    yield "benches", benches
