# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rooms know only the rooms below them: the table in docs/architecture.md."""
import re
from pathlib import Path

from cases import Failed

ROOT = Path(__file__).parents[2]

# What the table's last column names beside rooms; OUTSIDE says who may use it.
LIBRARIES = {"nothing", "LLVMSupport", "MLIR", "onnx", "protobuf", "oneDNN",
             "CUDA", "NCCL", "MPI", "ZeroMQ"}

ROW = re.compile(r"^\| `([\w/]+)`[^|]* \|[^|]*\| ([^|]+) \|$", re.M)


def shortName(path):
    """`lib/Support` -> Support, `runtime/Host` -> Runtime/Host."""
    return (path.rstrip("/").removeprefix("lib/").replace("runtime", "Runtime")
            .replace("passes", "Passes"))


def readTable():
    """Room -> what it may use directly, as the page has it; what that uses is
    allowed too. Among folders of the runtime the page leaves out `runtime/`.
    `tools/` may use everything, and is not looked at."""
    page = (ROOT / "docs/architecture.md").read_text()
    rows = {shortName(path): re.sub(r"\([^)]*\)", "", used)
            for path, used in ROW.findall(page) if path != "tools/"}

    def named(room, name):
        beside = f"Runtime/{name}"
        if room.startswith("Runtime/") and beside in rows:
            return beside
        return shortName(name)

    return {room: [named(room, name.strip(" `")) for name in used.split(",")]
            for room, used in rows.items()}


TABLE = readTable()
BELOW = {room: [name for name in used if name in TABLE]
         for room, used in TABLE.items()}

# First folder of an #include from outside, or a header in none -> the only rooms
# that may name it; a minus: every room but these.
OUTSIDE = {
    "mlir": "-Support Sharding Exchange Runtime",
    "llvm": "-Sharding",
    "mlir-c": "",
    "onnx": "Import",
    "google": "Import",
    "nlohmann": "-Sharding Dialect",
    "oneapi": "Runtime/Cpu",
    "cuda.h": "Runtime/Cuda",
    "cublasLt.h": "Runtime/Cuda",
    "cudnn_graph.h": "Runtime/Cuda",
    "nccl.h": "Runtime/Nccl",
    "mpi.h": "Runtime/Mpi",
    "zmq.h": "Runtime/Control",
}

INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([\w.+-]+)((?:/[\w.+-]+)*)', re.M)


def folder(room):
    top = "" if room.startswith("Runtime") or room == "Passes" else "lib/"
    return ROOT / (top + room.replace("Runtime", "runtime")
                   .replace("Passes", "passes"))


def roomOf(header):
    """The room of include/ax/HEADER. The runtime's have one folder for all:
    there X.h is of the room that has X.cpp."""
    parts = header.split("/")
    if parts[0] != "Runtime":
        return parts[0]
    source = Path(parts[-1]).with_suffix(".cpp").name
    found = [room for room in BELOW if room.startswith("Runtime")
             for name in (source, source + ".in")
             if (folder(room) / name).exists()]
    if len(found) != 1:
        raise Failed(f"include/ax/{header} is to be of the room of the runtime "
                     f"that has {source}, but these have one: {found}")
    return found[0]


def files(room):
    headers = ROOT / "include/ax"
    yield from sorted(folder(room).glob("*" if room == "Runtime" else "**/*"))
    for file in sorted((headers / room.split("/")[0]).rglob("*")):
        if file.suffix == ".h" and roomOf(str(file.relative_to(headers))) != room:
            continue
        yield file


def allowed(room):
    found = [room]
    for used in found:
        found += [below for below in BELOW[used] if below not in found]
    return set(found)


def mayInclude(room, library):
    rule = OUTSIDE[library]
    names = rule.lstrip("-").split()
    listed = room in names or room.split("/")[0] in names
    return listed != rule.startswith("-")


def check(room):
    wrong = []
    for file in files(room):
        if file.suffix not in (".h", ".cpp", ".in", ".inc", ".def", ".td"):
            continue
        for first, rest in INCLUDE.findall(file.read_text()):
            where = f"{file.relative_to(ROOT)} includes {first}{rest}"
            if first == "ax" and roomOf(rest[1:]) not in allowed(room):
                wrong.append(where)
            elif first in OUTSIDE and not mayInclude(room, first):
                wrong.append(where)
    if wrong:
        raise Failed(f"{room} may use {', '.join(sorted(allowed(room)))}, but\n"
                     + "\n".join(wrong))


def everyRoomIsListed():
    """Every room is in the table, and the table has nothing but rooms."""
    found = {str(f.relative_to(ROOT / top)) for top in ("include/ax", "lib")
             for f in (ROOT / top).glob("*") if f.is_dir()} - {"Runtime"}
    found |= {f"Runtime/{f.name}" for f in (ROOT / "runtime").glob("*")
              if f.is_dir()}
    if found - BELOW.keys():
        raise Failed("rooms that the table of docs/architecture.md lacks: "
                     f"{found - BELOW.keys()}")
    gone = {room for room in BELOW if not (folder(room) / "CMakeLists.txt").exists()}
    gone |= {name for used in TABLE.values() for name in used
             if name not in TABLE and name not in LIBRARIES}
    if gone:
        raise Failed("docs/architecture.md has rooms that do not exist: "
                     f"{sorted(gone)}")


def noRoomUsesItself():
    """Neither directly nor by way of others: that would not be below."""
    wrong = [room for room in BELOW
             if any(room in allowed(below) for below in BELOW[room])]
    if wrong:
        raise Failed(f"rooms that are below themselves: {wrong}")


def deviceMemoryIsTheDevices():
    """Only who defines a device, or asks its libraries, makes pointers of its
    addresses."""
    header = "ax/Runtime/DeviceAccess.h"
    wrong = [str(file.relative_to(ROOT))
             for top in ("include", "lib", "passes", "runtime", "tools")
             for file in (ROOT / top).rglob("*.[hci]*")
             if header in file.read_text()
             and file.parent not in (ROOT / "runtime/Cpu", ROOT / "runtime/Cuda",
                                     ROOT / "runtime/Nccl")
             and file.stem != "DeviceAccess"]
    if wrong:
        raise Failed(f"{header} is for devices alone: {wrong}")


def mpiIsTheModules():
    """Only the module that is opened by name includes MPI's header, and nothing
    of LLVM or of ours but the table of its functions."""
    found = {str(file.relative_to(ROOT)): INCLUDE.findall(file.read_text())
             for file in (ROOT / "runtime").rglob("*.[hc]*")}
    wrong = [file for file, names in found.items() if ("mpi.h", "") in names
             and file != "runtime/Mpi/Module.cpp"]
    if wrong:
        raise Failed(f"mpi.h is for runtime/Mpi/Module.cpp alone: {wrong}")
    others = {first for first, rest in found["runtime/Mpi/Module.cpp"]
              if first in ("ax", "llvm") or first.endswith(".h")}
    if others != {"mpi.h", "ModuleTable.h"}:
        raise Failed(f"runtime/Mpi/Module.cpp includes {sorted(others)}")


def cases(every):
    yield "every room is listed", everyRoomIsListed
    yield "no room uses itself", noRoomUsesItself
    yield "device memory is the devices'", deviceMemoryIsTheDevices
    yield "MPI is the module's", mpiIsTheModules
    for room in BELOW:
        yield f"{room} knows only what is below it", check, room
