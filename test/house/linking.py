"""What the tools load when they start: libraries are of the rooms that need
them (docs/architecture.md)."""
from cases import Failed, run, tool

# Tool -> parts of names that none of its libraries has.
WITHOUT = {
    "axopt": ["dnnl", "gomp"],
    "axopt-opt": ["dnnl", "gomp", "protobuf"],
}


def check(name):
    loaded = run("ldd", tool(name)).stdout
    if "libLLVM" not in loaded:
        raise Failed(f"{name} does not even load LLVM? ldd says:\n{loaded}")
    found = [line.strip() for line in loaded.splitlines()
             if any(part in line for part in WITHOUT[name])]
    if found:
        raise Failed(f"{name} loads {', '.join(found)}")


def cases(every):
    for name in WITHOUT:
        yield f"{name} loads no more than it needs", check, name
