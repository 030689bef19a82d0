# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every question of docs/architecture.md is answered where the page says."""
import re

from cases import Failed
from glossary import ROOT, lookUp

PAGE = ROOT / "docs/architecture.md"
HEAD = "| question | find |"
FOUND = re.compile(r"`([^`]+)` in ([\w/.]+\w)")


def answered():
    lines = PAGE.read_text().splitlines()
    begin = lines.index(HEAD) + 2
    end = lines.index("", begin)
    wrong = []
    for line in lines[begin:end]:
        question, answer = (cell.strip()
                            for cell in line.strip("|").rsplit("|", 1))
        match = FOUND.match(answer)
        fault = lookUp(*match.groups()) if match else "says no file"
        if fault:
            wrong.append(f"{question}: {fault}")
    if wrong or end - begin < 10:
        raise Failed(f"{PAGE.name}:\n" + "\n".join(wrong))


def cases(every):
    yield "every question is answered where the page says", answered
