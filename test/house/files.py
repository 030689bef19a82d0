# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What holds for every source file."""
import re
import subprocess
from pathlib import Path

from cases import Failed

ROOT = Path(__file__).parents[2]
CODE = {".h", ".cpp", ".c", ".td", ".inc", ".def", ".proto", ".map",
        ".py", ".cmake", ".bash", ".txt", ".in", ".cfg"}
# Those that begin with a line of their own name, as LLVM's do.
BANNERS = {".h", ".cpp", ".td", ".inc", ".def"}
NO_BANNER = {"include/ax-c/axrun.h": "it is C"}

# A longer file does two things. Exceptions, with the reason:
LONGEST = 500
LONG = {
}

# A line of every source file's first ones.
LICENSE = "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"

# Folders of one machine that have no business in the tree.
MACHINE = re.compile(r"(?<![\w.$}~])/(?:home|root|work|Users)/[\w.]")


def sources():
    names = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"],
        check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        path = ROOT / name
        if path.is_file() and not name.startswith("test/models/"):
            yield name, path


def readText(path):
    try:
        return path.read_text()
    except UnicodeDecodeError:
        return ""


def isCode(path):
    """Scripts may have no suffix."""
    return path.suffix in CODE or (
        not path.suffix and readText(path).startswith("#!"))


def lengths():
    long = [f"{name}: {lines} lines" for name, path in sources()
            if isCode(path) and name not in LONG
            and (lines := readText(path).count("\n")) > LONGEST]
    if long:
        raise Failed(f"over {LONGEST} lines, split these:\n" + "\n".join(long))


def machinePaths():
    found = [f"{name}:{number}: {line.strip()[:120]}"
             for name, path in sources()
             for number, line in enumerate(readText(path).splitlines(), 1)
             if MACHINE.search(line)]
    if found:
        raise Failed("paths of one machine:\n" + "\n".join(found[:20]))


def headerGuards():
    wrong = []
    for name, path in sources():
        if not name.startswith("include/ax/") or path.suffix != ".h":
            continue
        parts = name[len("include/"):-len(".h")].replace("-", "_").split("/")
        guard = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|\W", "", "_".join(parts)).upper()
        if f"#ifndef {guard}_H\n" not in path.read_text():
            wrong.append(f"{name}: {guard}_H")
    if wrong:
        raise Failed("headers without their guard:\n" + "\n".join(wrong))


def banners():
    """`//===- Name.h - What is in it ---*- C++ -*-===//`, 80 columns."""
    wrong = []
    for name, path in sources():
        if path.suffix not in BANNERS or name in NO_BANNER:
            continue
        line = readText(path).partition("\n")[0]
        if (not line.startswith(f"//===- {path.name} - ")
                or not line.endswith("-===//") or len(line) != 80):
            wrong.append(f"{name}: {line}")
    if wrong:
        raise Failed("first lines that do not name the file:\n"
                     + "\n".join(wrong))


def citedPages():
    cited = re.compile(r"docs/[\w./-]+\.(?:md|svg)")
    missing = [f"{name}:{number}: {page}"
               for name, path in sources() if isCode(path)
               for number, line in enumerate(readText(path).splitlines(), 1)
               for page in cited.findall(line) if not (ROOT / page).exists()]
    if missing:
        raise Failed("pages that are not there:\n" + "\n".join(missing))


def licenses():
    """Texts have none, but CMake's; nor has what tests read."""
    missing = [name for name, path in sources()
               if isCode(path)
               and (path.suffix != ".txt" or path.name == "CMakeLists.txt")
               and (not name.startswith("test/data/") or path.suffix == ".py")
               and LICENSE not in "".join(readText(path).split("\n")[:3])]
    if missing:
        raise Failed(f"first lines without `{LICENSE}`:\n" + "\n".join(missing))


def cases(every):
    yield "no file is too long", lengths
    yield "no paths of one machine", machinePaths
    yield "header guards are named after the file", headerGuards
    yield "first lines name the file", banners
    yield "every file says its license", licenses
    yield "comments cite pages that are there", citedPages
