# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Commands in fenced blocks marked `sh run` of README.md and docs/ work, code in
blocks marked with a file stands there, what axrun is shown to print it prints,
and every flag is on a page."""
import os
import re
import subprocess
from pathlib import Path

from cases import Failed, run, scratch, tool

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```sh run\n(.*?)^```", re.M | re.S)
SHOWN = re.compile(r"^    (axrun: .*)", re.M)
QUOTE = re.compile(r"^```(?:cpp|td) (\S+)\n(.*?)^```", re.M | re.S)


def quotes():
    wrong = [f"{page.name}: {file} has no\n{text}"
             for page in sorted((ROOT / "docs").rglob("*.md"))
             for file, text in QUOTE.findall(page.read_text())
             if text not in (ROOT / file).read_text()]
    if wrong:
        raise Failed("\n".join(wrong))


def compare(shown, printed):
    """Words and counts; accuracy within 2 %, for processors round as they like;
    no losses near 0, which are little else than rounding."""
    for line in shown:
        pattern = re.sub(r"(loss|accuracy)\\ [\d.\\e-]+", r"\1 ([^\\s,]+)",
                         re.escape(line))
        found = re.search(f"^{pattern}$", printed, re.M)
        if not found:
            raise Failed(f"the page shows\n{line}\nbut it printed\n{printed}")
        wanted, got = (re.findall(r"accuracy ([\d.]+)", text)
                       for text in (line, found[0]))
        if any(abs(float(a) - float(b)) > 0.02 for a, b in zip(wanted, got)):
            raise Failed(f"the page shows {wanted}, it printed {got}")


def runBlock(text, shown=()):
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
    compare(shown, done.stdout)


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
        blocks = BLOCK.split(page.read_text())
        for i, (block, after) in enumerate(zip(blocks[1::2], blocks[2::2])):
            yield f"{page.relative_to(ROOT)}, block {i + 1}", runBlock, block, \
                SHOWN.findall(after.partition("```")[0])
