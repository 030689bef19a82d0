"""tools/dev, with stand-ins for what it runs."""
import os
import re
import shutil
import subprocess
from pathlib import Path

from cases import Failed, scratch

ROOT = Path(__file__).parents[2]
STAND_INS = {"cmake": "true", "dpkg-query": "printf installed",
             "ninja": 'echo "ninja $*"'}


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


def cases(every):
    yield "progress", progress
