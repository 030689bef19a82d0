# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/user-guide.md has a line for each program that the build makes."""
import re
from pathlib import Path

from cases import Failed

ROOT = Path(__file__).parents[2]
MADE = re.compile(r"^\s*ax_add_tool\(([\w-]+)", re.M)
TOLD = re.compile(r"^\| `([\w-]+)` \|", re.M)


def told():
    made = {name for folder in ("tools", "examples")
            for file in (ROOT / folder).glob("*/CMakeLists.txt")
            for name in MADE.findall(file.read_text())}
    page = (ROOT / "docs/user-guide.md").read_text()
    table = page.partition("\n## Programs\n")[2].partition("\n## ")[0]
    if not made or made != set(TOLD.findall(table)):
        raise Failed(f"the build makes {sorted(made)},\nand the page tells of "
                     f"{sorted(TOLD.findall(table))}")


def cases(every):
    yield "every program has a line", told
