"""Commands in fenced blocks marked `sh run` of README.md and docs/ work, code in
blocks marked with a file stands there, and every flag is on a page."""
import os
import re
import subprocess
from pathlib import Path

from cases import Failed, run, scratch, tool

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```sh run\n(.*?)^```", re.M | re.S)
QUOTE = re.compile(r"^```(?:cpp|td) (\S+)\n(.*?)^```", re.M | re.S)


def quotes():
    wrong = [f"{page.name}: {file} has no\n{text}"
             for page in sorted((ROOT / "docs").rglob("*.md"))
             for file, text in QUOTE.findall(page.read_text())
             if text not in (ROOT / file).read_text()]
    if wrong:
        raise Failed("\n".join(wrong))


def runBlock(text):
    environment = os.environ | {"models": str(ROOT / "test/models"),
                                "training": str(ROOT / "test/data/training"),
                                "examples": str(ROOT / "examples")}
    environment["PATH"] = environment["AX_BIN"] + os.pathsep + environment["PATH"]
    with scratch() as folder:
        done = subprocess.run(["bash", "-eu", "-o", "pipefail", "-c", text],
                              cwd=folder, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise Failed(f"exit code {done.returncode} of\n{text}\n{done.stdout}")


def flags(name, *pages):
    text = "".join((ROOT / "docs" / page).read_text()
                   for page in (*pages, "user-guide.md"))
    shown = re.findall(r"^ +--?([a-z][\w-]*)", run(tool(name), "--help-all").stdout,
                       re.M)
    known = set(shown) - {"version"}
    assert len(known) > 10, shown
    wrong = [flag for flag in sorted(known)
             if not re.search(rf"(?<![\w-])--?{flag}(?![\w-])", text)]
    if wrong:
        raise Failed(f"not on {pages}: {wrong}")


def cases(every):
    yield "code is what stands in its file", quotes
    yield "flags of axopt", flags, "axopt", "training.md"
    yield "flags of axrun", flags, "axrun", "axrun.md", "training.md"
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for i, block in enumerate(BLOCK.findall(page.read_text())):
            yield f"{page.relative_to(ROOT)}, block {i + 1}", runBlock, block
