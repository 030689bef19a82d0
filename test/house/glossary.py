# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every term of docs/glossary.md is found where the page says."""
import re
from pathlib import Path

from cases import Failed

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/glossary.md"
HEAD = "| term | means here | elsewhere | find |"
FOUND = re.compile(r"`([^`]+)` in (\S+)")


def rows():
    lines = PAGE.read_text().splitlines()
    for line in lines[lines.index(HEAD) + 2:]:
        yield [cell.strip() for cell in line.strip("|").split("|")]


def lookUp(name, path):
    """Why the name is not found there."""
    if not (ROOT / path).is_file():
        return f"there is no {path}"
    # Whole words: a name that was renamed is not found in a longer one.
    if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)",
                     (ROOT / path).read_text()):
        return f"{path} has no `{name}`"
    return None


def found():
    wrong = []
    for cells in rows():
        if len(cells) != 4 or not cells[1] or not FOUND.fullmatch(cells[3]):
            wrong.append(f"{cells[0]}: not a row of the table")
        elif fault := lookUp(*FOUND.fullmatch(cells[3]).groups()):
            wrong.append(f"{cells[0]}: {fault}")
    if wrong:
        raise Failed(f"{PAGE.name}:\n" + "\n".join(wrong))


def ordered():
    terms = [cells[0] for cells in rows()]
    wanted = sorted(set(terms), key=str.lower)
    if len(wanted) < 40 or terms != wanted:
        raise Failed(f"{PAGE.name}: not in order, or twice: "
                     f"{[a for a, b in zip(terms, wanted) if a != b][:1]}")


def cases(every):
    yield "every term is found where the page says", found
    yield "terms are in order", ordered
