"""Commands in fenced blocks marked `sh run` of README.md and docs/ work."""
import os
import re
import subprocess
from pathlib import Path

from cases import Failed, scratch

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```sh run\n(.*?)^```", re.M | re.S)


def runBlock(text):
    environment = os.environ | {"models": str(ROOT / "test/models")}
    environment["PATH"] = environment["AX_BIN"] + os.pathsep + environment["PATH"]
    with scratch() as folder:
        done = subprocess.run(["bash", "-eu", "-o", "pipefail", "-c", text],
                              cwd=folder, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise Failed(f"exit code {done.returncode} of\n{text}\n{done.stdout}")


def cases(every):
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for i, block in enumerate(BLOCK.findall(page.read_text())):
            yield f"{page.relative_to(ROOT)}, block {i + 1}", runBlock, block
