# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every error message is expected by a test, every pass has one.

A diagnostic site is a call of SITES, or a literal returned by a function that
gives std::optional<std::string>: what is wrong. Its longest piece of literal
text must occur in an expectation: a line of a lit test with expected-error or
CHECK, a string of a Python or C++ test.
"""
import ast
import re
from pathlib import Path

from cases import Failed

ROOT = Path(__file__).parents[2]
FOLDERS = ["lib", "passes", "runtime", "tools"]

SITES = [
    "emitOpError", "emitOptionalError", "emitError", "emitWarning",
    "emitUnsupported",
    "makeError", "makeErrorf", "makeErrnoError", "addContext",
    # What passes its text on to these.
    "bad", "badInput", "badWeights", "complain", "damaged", "dnnlError", "fail", "fault",
    "malformed", "refuse", "require", "unsupported", "usage",
]

# Reason -> messages that no test brings about.
UNTESTED = {
    "LLVM and MLIR would have to fail on kernels that verify": [
        "kernel: lowering to LLVM failed",
        "kernel: translation to LLVM failed",
        "kernel: no object files here",
        "no code generator for",
        "kernel: there is no code for",
        "was lowered to what is no local program",
        "ax-straight-through failed",
    ],
    "Codegen would have to give its own compiler or device what these cannot "
    "do": [
        "the loops of the kernel of node",
        "cannot be part of a kernel",
        "in a kernel reads what is no operand of it",
        "its value has the wrong size",
        "impossible heads",
        "no attention of integers",
        "impossible k or strides",
        "impossible sizes or strides",
        "indices are i32 or i64",
        "are started",
        "impossible tensor shape",
        "no such convolution",
        "no products of booleans",
        "the program cannot take the input",
        "the program cannot give the result",
        "is of bits and has no gradient",
    ],
    "the system would have to refuse a few pages of memory, or that they be "
    "run": [
        "no memory for its code",
        "its code may not be run",
    ],
    "memory would have to suffice for the tool's libraries, not for a stack": [
        "cannot start a thread with a stack of",
    ],
    "collectives would have to go wrong": [
        "values are wrong",
        "MPI's error",
    ],
    "an op without kernel and library call; today there is none": [
        "has no kernel",
    ],
    "the verifier has proved that layouts fit; MutationTest runs what passes "
    "it": [
        "its axes do not nest in those of the layout",
        "its axes do not split the dimension",
        "parts of an uneven split do not nest",
        "its layouts do not differ as it says",
        "the parts before and after differ in size",
        "is split and sliced across its parts",
        "a split dimension is padded",
        "a constant cannot be a partial sum",
        "collective_permute of node",
    ],
    "the verifier has proved that who changes a state is on the same stages as "
    "who loads it": [
        "does not hold it",
    ],
    "an importer would have to give what ONNX's own inference does not": [
        "is not of the type and shape that ONNX infers",
    ],
    "only tests evaluate on several ranks": [
        "a part is",
        "differs from another rank in elements that both hold",
        "no rank holds some elements",
    ],
    "who evaluates an op has made or verified it, and skips what fails": [
        "a constant has a type without values at run time",
        "a constant is neither dense nor a resource",
        "a result has a type without values at run time",
        "wrong number of operands",
        "which is not what the operation says",
        "a result is too large",
        "cannot be evaluated",
    ],
    "ops and passes say themselves what is wrong; this is for one that does "
    "not": [
        "malformed operation",
        "the operands do not fit",
        "the imported program does not verify",
        "is no plan",
        "failed without saying why",
    ],
    "the ONNX checker, or our list of operators, comes first": [
        "is made by no node",
        "which nothing before it makes",
        "this operator is not supported",
        "a sparse constant has not one index for each value",
        "a sparse constant's index is out of range",
        "quantized elements of type",
    ],
    "the operating system or a library of it would have to fail": [
        "cannot map",
        "bytes are not available",
        "cannot find a random key",
        "cannot wait for SIGUSR2",
        "cannot wait for signals",
        "zlib does not start",
        "failed with status",
        "cannot find folder",
        "cannot find",
        "creating a primitive",
        "creating a reorder",
        "creating a stream",
        "a primitive",
    ],
    "an imported model has these; passes say nothing where they are missing": [
        "the model's folder is not known",
        "its type has no values at run time",
    ],
    "ZeroMQ would have to be missing, or older, where tests are built": [
        "a job of several processes needs ZeroMQ (Debian's package libzmq5",
        "a job of several processes needs ZeroMQ, and this was built without "
        "its header (zmq.h",
        "the ZeroMQ that is there has no function",
    ],
    "a run that was stopped from outside, between requests": [
        "the executor was stopped",
    ],
}
UNTESTED_MESSAGES = {text for texts in UNTESTED.values() for text in texts}

COMMENT_OR_LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"\((?P<raw>.*?)\)"|"(?:[^"\\\n]|\\.)*"'
    r"|'(?:[^'\\\n]|\\.)'", re.S)
CALL = re.compile(r"(?<!::)\b(?:%s)\(|\bfault\(\) <<" % "|".join(SITES))
GIVES_FAULT = re.compile(
    r"^(?:static )?std::optional<std::string>\s[^;{]*\{.*?^\}", re.M | re.S)
PREFIX = re.compile(r"--check-prefix(?:es)?=([\w-]+)")
RETURN = re.compile(r"\breturn\b")
ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\"}


def unquote(literal):
    return re.sub(r"\\.", lambda m: ESCAPES.get(m[0], m[0]), literal[1:-1])


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def withoutComments(text):
    return COMMENT_OR_LITERAL.sub(
        lambda m: blank(m) if m[0].startswith("/") else m[0], text)


def strings(text):
    """Literals of C++ code without comments; adjacent ones are one."""
    found, end = [], None
    for match in COMMENT_OR_LITERAL.finditer(text):
        if match[0][0] not in 'R"':
            continue
        value = match["raw"] or unquote(match[0])
        if end is not None and not text[end:match.start()].strip():
            found[-1] += value
        else:
            found.append(value)
        end = match.end()
    return found


def statement(text, start):
    """From `start` to the end of the statement, or of what encloses it."""
    depth, at = 0, start
    while at < len(text):
        if literal := COMMENT_OR_LITERAL.match(text, at):
            at = literal.end()
            continue
        if depth == 0 and text[at] in ";{":
            break
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth < 0:
            break
        at += 1
    return text[start:at]


def pieces(source):
    """Longest piece of each literal: what stands between `{0}`s."""
    for literal in strings(source):
        yield max((part.strip(" \n':;,.()[]")
                   for part in re.split(r"\{\d+\}", literal)), key=len)


def sites(text):
    """(position, longest piece) of every diagnostic with a text of its own."""
    starts = [m.start() for m in CALL.finditer(text)]
    for function in GIVES_FAULT.finditer(text):
        starts += [function.start() + m.start()
                   for m in RETURN.finditer(function[0])]
    for start in sorted(starts):
        piece = max(pieces(statement(text, start)), key=len, default="")
        if re.search(r"[a-z]{2}", piece):
            yield start, piece


def messages():
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in (".cpp", ".h", ".inc"):
                text = withoutComments(file.read_text())
                for start, piece in sites(text):
                    line = text.count("\n", 0, start) + 1
                    yield f"{file.relative_to(ROOT)}:{line}", piece


def expectations():
    for file in sorted((ROOT / "test").rglob("*")):
        if file.suffix in (".cpp", ".h"):
            yield from strings(withoutComments(file.read_text()))
        elif file.suffix == ".py" and file != Path(__file__):
            yield from (node.value for node in ast.walk(ast.parse(file.read_text()))
                        if isinstance(node, ast.Constant)
                        and isinstance(node.value, str))
        elif file.suffix in (".mlir", ".test") and "lit" in file.parts:
            text = file.read_text()
            prefixes = "|".join(["CHECK"] + PREFIX.findall(text))
            line = re.compile(rf".*(?:expected-\w+ |\b(?:{prefixes})[\w-]*:).*")
            yield from line.findall(text)


def everyMessageIsExpected():
    expected = "\n".join(expectations())
    missing = [f"{where}: {piece}" for where, piece in messages()
               if piece not in expected and piece not in UNTESTED_MESSAGES]
    if missing:
        raise Failed("no test expects these messages:\n" + "\n".join(missing))


def exceptionsAreNeeded():
    texts = {piece for _, piece in messages()}
    expected = "\n".join(expectations())
    stale = [piece for piece in UNTESTED_MESSAGES
             if piece not in texts or piece in expected]
    if stale:
        raise Failed("these need no exception:\n" + "\n".join(stale))


def everyPassHasATest():
    text = "".join(file.read_text() for top in ("include", "lib", "passes")
                   for file in sorted((ROOT / top).rglob("*.td")))
    names = re.findall(r'^def \w+ : (?:Pass|InterfacePass)<"([\w-]+)"', text,
                       re.M)
    folder = ROOT / "test/lit/passes"
    tests = {file.stem for file in folder.rglob("*.mlir")}
    tests |= {file.parent.name for file in folder.rglob("*.mlir")}
    missing = [name for name in names
               if re.sub("^axl?-", "", name) not in tests]
    if missing or not names:
        raise Failed("passes without test/lit/passes/PHASE/NAME.mlir, or a "
                     "folder of that name: " + ", ".join(missing))


def cases(every):
    yield "every message is expected by a test", everyMessageIsExpected
    yield "exceptions are needed", exceptionsAreNeeded
    yield "every pass has a lit test named like it", everyPassHasATest
