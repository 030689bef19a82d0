# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Code of the host that touches memory of a device does not compile."""
import json
import re
import shlex
from pathlib import Path

from cases import ROOT, Failed, run, scratch, tool

# A source of the runtime, whose flags the attempts are compiled with.
LIKE = "runtime/Backend/HostTransfer.cpp"

CODE = """
#include "ax/Runtime/Device.h"
#include <cstring>
#include <memory>
using namespace ax::rt;
void attempt(Stream &stream, DeviceAddress address, DeviceMemory &memory,
             PinnedMemory &pinned, char *host) {{ {} }}
"""

ALLOWED = """
llvm::cantFail(stream.download(address + 4, pinned, 0, 16));
std::memcpy(host, pinned.getData(), 16);
"""

# What is tried, and what Clang or GCC says of it.
ATTEMPTS = {
    "reads it": ("*host = *address;",
                 r"'DeviceAddress' invalid|no match for 'operator\*'"),
    "indexes it": ("host[0] = memory.getAddress()[0];",
                   r"does not provide a subscript|no match for 'operator\[\]'"),
    "copies to it": ("std::memcpy(address, host, 16);",
                     r"no viable conversion from 'DeviceAddress' to 'void \*'|"
                     r"cannot convert 'ax::rt::DeviceAddress' to 'void\*'"),
    "casts it": ("host = reinterpret_cast<char *>(address);",
                 r"from 'DeviceAddress' to 'char \*' is not allowed|invalid cast"),
    "takes its number": ("host = nullptr; host += address.value;",
                         "is a private member|is private within this context"),
    "makes one of a pointer": ("address = DeviceAddress{host};",
                               "no matching (function|constructor)"),
}


def compiled(code, expect):
    """What the compiler says of a function of the host with this code."""
    build = Path(tool("axopt")).parents[1]
    command = next(shlex.split(entry["command"]) for entry in
                   json.loads((build / "compile_commands.json").read_text())
                   if Path(entry["file"]).resolve() == (ROOT / LIKE).resolve())
    with scratch() as folder:
        source = Path(folder) / "attempt.cpp"
        source.write_text(CODE.format(code))
        at = command.index("-c")
        return run(*command[:command.index("-o")], "-fsyntax-only", source,
                   *command[at + 2:], cwd=build, expect=expect).stderr


def refused(code, says):
    said = compiled(code, 1).replace("‘", "'").replace("’", "'")
    if not re.search(says, said):
        raise Failed(f"no word of `{says}`:\n{said}")


def cases(every):
    # Else the others would fail for something else.
    yield "by a stream it is read", compiled, ALLOWED, 0
    for name, attempt in ATTEMPTS.items():
        yield name, refused, *attempt
