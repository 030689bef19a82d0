"""Rooms know only the rooms below them (docs/architecture.md)."""
import re
from pathlib import Path

from cases import Failed

ROOT = Path(__file__).parents[2]

# Room -> rooms it may use directly; what these use is allowed too.
BELOW = {
    "Support": [],
    "Sharding": [],
    "Dialect": ["Sharding"],
    "Eval": ["Dialect", "Support"],
    "Import": ["Dialect", "Eval", "Support"],
    "Export": ["Dialect", "Support"],
    "Cost": ["Dialect", "Support"],
    "Passes": ["Dialect", "Cost", "Eval"],
    "Plan": ["Dialect", "Cost", "Eval"],
    "Inspect": ["Import", "Passes", "Plan"],
    "Codegen": ["Dialect", "Cost", "Eval", "Runtime"],
    "Compile": ["Passes", "Plan", "Codegen"],
    "Runtime": ["Support", "Sharding"],
    "Session": ["Plan", "Codegen", "Runtime"],
}

# First folder of an #include from outside -> the only rooms that may name it;
# a minus: every room but these.
OUTSIDE = {
    "mlir": "-Support Sharding Runtime",
    "llvm": "-Sharding",
    "mlir-c": "",
    "onnx": "Import Export",
    "google": "Import Export",
    "nlohmann": "-Sharding Dialect",
}

INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([\w.+-]+)(?:/([\w.+-]+))?', re.M)


def folders(room):
    special = {"Passes": "passes", "Runtime": "runtime"}
    return [ROOT / "include/ax" / room, ROOT / special.get(room, f"lib/{room}")]


def allowed(room):
    found = {room}
    for below in BELOW[room]:
        found |= allowed(below)
    return found


def mayInclude(room, library):
    rule = OUTSIDE[library]
    listed = room in rule.lstrip("-").split()
    return listed != rule.startswith("-")


def check(room):
    wrong = []
    for folder in folders(room):
        for file in sorted(folder.rglob("*")):
            if file.suffix not in (".h", ".cpp", ".td"):
                continue
            for first, second in INCLUDE.findall(file.read_text()):
                where = f"{file.relative_to(ROOT)} includes {first}/{second}"
                if first == "ax" and second not in allowed(room):
                    wrong.append(where)
                elif first in OUTSIDE and not mayInclude(room, first):
                    wrong.append(where)
    if wrong:
        raise Failed(f"{room} may use {', '.join(sorted(allowed(room)))}, but\n"
                     + "\n".join(wrong))


def everyRoomIsListed():
    found = {f.name for top in ("include/ax", "lib")
             for f in (ROOT / top).glob("*") if f.is_dir()}
    if found - BELOW.keys():
        raise Failed(f"rooms without an entry here: {found - BELOW.keys()}")


def cases(every):
    yield "every room is listed", everyRoomIsListed
    for room in BELOW:
        yield f"{room} knows only what is below it", check, room
