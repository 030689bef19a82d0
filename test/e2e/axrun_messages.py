# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What axrun says of inputs, weights and plans that cannot be."""
import json
import pathlib
import struct
import zipfile

import numpy as np

from cases import Failed, run, scratch, tool

PLAN = """ax.plan @p version 1 {
  ax.mesh [pipe = 1, col = 1] in time [micro = 1]
  ax.state @w : tensor<4xf32> stages [0] from "w.bin" offset 0 length 16
  ax.program @main(%x: tensor<4xf32> {ax.name = "x"})
      -> (tensor<4xf32> {ax.name = "y"}) {
    %s = ax.stage @f on 0 (%a = %x : tensor<4xf32>) -> (tensor<4xf32>) {
      %w = ax.load @w : tensor<4xf32>
      %r = ax.binary add %a, %w {node = "sum"} : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
      ax.yield %r : tensor<4xf32>
    }
    ax.schedule "forward" { stage 0: "F0" }
    ax.return %s : tensor<4xf32>
  }
}
"""
STATE = """  ax.state @w : tensor<4xf32> stages [0] from "w.bin" offset 0 length 16
"""
LOAD = "      %w = ax.load @w : tensor<4xf32>\n"
TYPES = "tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>"
ADD = '%r = ax.binary add %a, %w {node = "sum"}'


def refuse(change, message, code, *flags, random=True):
    """axrun in a folder that `change` has filled; it may give another plan."""
    with scratch() as folder:
        folder = pathlib.Path(folder)
        (folder / "w.bin").write_bytes(b"\0" * 16)
        plan = change(folder) or PLAN
        (folder / "plan.mlir").write_text(plan)
        done = run(tool("axrun"), "plan.mlir", "--model-dir", ".",
                   *(["--random-inputs", 1] if random else []), *flags,
                   expect=code, cwd=folder)
    if message not in done.stderr:
        raise Failed(f"expected: {message}\ngot: {done.stderr}")


def nothing(folder):
    pass


def flags():
    few = "--iterations and --in-flight are at least 1, --warmup is not negative"
    for flags in ("--iterations=1 --warmup=-1", "--iterations=-1",
                  "--iterations=0", "--iterations=1 --in-flight=0"):
        yield flags, few
    yield "--expect=y.npz --rtol=-1", "--rtol and --atol must not be negative"
    yield "--expect=y.npz --atol=nan", "--atol=nan: expected a number"
    idle = " has no use in this run: it is for "
    for flag, what in (
            ("--steps=3", "training (--data, without --predict)"),
            ("--warmup=1", "measuring runs (--iterations or --profile)"),
            ("--in-flight=1", "measuring runs (--iterations or --profile)"),
            ("--rtol=1", "comparing outputs (--expect or --test-data)"),
            ("--predict=y.npz", "samples (--data)"),
            ("--tokens=uint16", "samples (--data), or evaluation (--eval, "
             "without --predict)"),
            ("--save-every=2", "training that saves (--save)"),
            ("--eval-every=2", "evaluation in training (--data and --eval)"),
            ("--trace-steps=2", "steps that are traced (--trace, --profile or "
             "--json, with --data)"),
            ("--devices=0", "cards (--device=cuda)"),
            ("--control=here:1", "processes that mpirun, srun or torchrun "
             "starts")):
        yield flag, flag.split("=")[0] + idle + what
    yield "--list-commands", "--random-inputs has no use in this run: " \
        "--list-commands runs nothing"
    yield "--input=x=x.npy --input=x=y.npy", \
        "--input=x=y.npy: 'x' has a file already"
    for output in "plan.mlir", "o.txt", "new.d":
        yield f"--output={output}", f"--output={output}: outputs go to " \
            f"FILE.npz, FILE.npy (if there is one), or a folder: '{output}/' " \
            "makes one of that name"
    yield "--input=x", "--input=x: expected NAME=FILE.npy"
    yield "--program=other", "the plan has no program 'other', but: main\n"
    yield "--program=eval", "the plan has no program 'eval', but: main; " \
        "compile it with axopt --train\n"
    yield "--weights=w.bin", \
        "--weights=w.bin: expected a .safetensors or .npz file, a folder " \
        "with model.safetensors, or a checkpoint's"


def npy(header, data=b"\0" * 16, version=1, start=b"\x93NUMPY"):
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return start + bytes([version, 0]) + length + header + data


def arrays():
    """Name, bytes of x.npy, message."""
    def header(descr="'<f4'", order="False", shape="(4,)"):
        return (f"{{'descr': {descr}, 'fortran_order': {order}, "
                f"'shape': {shape}}}\n").encode()

    where = "not a readable .npy file: "
    yield "start", npy(header(), start=b"\x93NUMPI"), \
        where + "it does not start with \\x93NUMPY"
    yield "version", npy(header(), version=9), where + "its version is 9"
    yield "length", b"\x93NUMPY\x02\x00\x05\x00", where + "it is truncated"
    yield "header", b"\x93NUMPY\x01\x00\xff\x00{", \
        where + "its header is truncated or too long"
    yield "records", npy(header("[('a', '<f4')]")), \
        where + "records are not supported"
    yield "corrupt", npy(b"{'descr': '<f4', 'shape'\n"), \
        where + "its header is corrupt"
    yield "type", npy(header("'<c8'")), \
        where + "element type '<c8' is not supported"
    yield "shape", npy(header(shape="(4611686018427387904, 4)")), \
        where + "impossible shape [4611686018427387904x4]"
    yield "data", npy(header(), b"\0" * 4), \
        where + ("it is truncated: shape [4] of f32 needs 16 bytes, there are "
                 "4")


def array(data):
    return lambda folder: (folder / "x.npy").write_bytes(data) and None


def archived(compression=zipfile.ZIP_STORED):
    """Bytes of an archive with one array, x."""
    with scratch() as folder:
        np.save(f"{folder}/x.npy", np.zeros(4, np.float32))
        with zipfile.ZipFile(f"{folder}/x.npz", "w", compression) as archive:
            archive.write(f"{folder}/x.npy", "x.npy")
        return bytearray(pathlib.Path(f"{folder}/x.npz").read_bytes())


def archives():
    """Name, bytes of x.npz, message."""
    def put(data, at, form, value):
        struct.pack_into(form, data, at, value)
        return bytes(data)

    def changed(offset, form, value, compression=zipfile.ZIP_STORED):
        """In the entry of the directory."""
        data = archived(compression)
        return put(data, data.rindex(b"PK\1\2") + offset, form, value)

    def local(offset, form, value):
        return put(archived(), offset, form, value)

    end = "PK\5\6".encode()
    where = "not a readable zip archive: "
    member = where + "member 'x.npy' "
    yield "empty", b"", where + "it is truncated"
    yield "directory", b"\0" * 100, \
        where + "it has no directory (truncated?)"
    data = archived()
    yield "directory outside", put(data, data.rindex(end) + 16, "<I", 1 << 30), \
        where + "its directory lies outside the file"
    data = archived()
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, 1 << 40, 1)
    yield "directory ZIP64", bytes(data[:-22] + locator + data[-22:]), \
        where + "its ZIP64 directory is not where it should be"
    data = archived()
    yield "directory count", put(data, data.rindex(end) + 10, "<H", 2), \
        where + "its directory is corrupt"
    yield "directory entry", changed(0, "<I", 0), \
        where + "its directory is corrupt"
    data = bytearray(changed(24, "<I", 0xFFFFFFFF))  # size: see extra field
    at = data.rindex(b"PK\1\2")
    data[at + 30] = 4  # its length
    data[at + 46 + len("x.npy"):-22] = b"\1\0\0\0"
    data[-10] += 4  # directory's size
    yield "ZIP64 size", bytes(data), \
        where + "a ZIP64 field is missing"
    data = archived()
    at = data.rindex(b"PK\1\2")
    again = data[:at] + 2 * data[at:-22] + data[-22:]
    struct.pack_into("<HHI", again, len(again) - 14, 2, 2, 2 * (len(data) - 22 - at))
    yield "twice", bytes(again), where + "its members overlap"
    yield "large", changed(24, "<I", 1 << 30, zipfile.ZIP_DEFLATED), \
        where + "a member claims an impossible size"
    data = archived(zipfile.ZIP_DEFLATED)
    yield "deflated", put(data, 30 + 5, "<Q", 0xFFFFFFFFFFFFFFFF), \
        where + "a compressed member is corrupt"
    yield "place", local(0, "<I", 0), member + "is not where it should be"
    yield "encrypted", changed(8, "<H", 1), member + "is encrypted"
    yield "truncated", changed(20, "<I", 1 << 20), member + "is truncated"
    yield "method", changed(10, "<H", 12), \
        member + "is neither stored nor deflated"
    yield "checksum", changed(16, "<I", 1), member + "has a wrong checksum"


def archive(data):
    return lambda folder: (folder / "x.npz").write_bytes(data) and None


def weights():
    """Name, bytes of w.safetensors, message."""
    def file(header, data=b"\0" * 16):
        text = header if isinstance(header, bytes) else \
            json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + data

    def entry(dtype="F32", shape=(4,), offsets=(0, 16)):
        return file({"w": {"dtype": dtype, "shape": shape,
                           "data_offsets": offsets}})

    where = "weights 'w.safetensors': "
    yield "empty", b"", where + "no safetensors header"
    yield "length", b"\xff" * 8, where + "no safetensors header"
    yield "JSON", file(b"{"), where + "the header is no JSON"
    yield "object", file([1]), where + "the header is no JSON object"
    for name, data in (("entry", file({"w": 1})),
                       ("fields", file({"w": {}})),
                       ("negative", entry(shape=(-4,))),
                       ("offsets", entry(offsets=(0, 12))),
                       ("outside", entry(offsets=(100, 116)))):
        yield name, data, where + "the entry of 'w' is malformed"
    yield "type", entry("F4"), where + "'w' has the unknown element type F4"
    yield "shape", entry(shape=(2, 2)), "2x2"
    yield "dimensions", entry(shape=(4,) + (1,) * 64), \
        where + "the entry of 'w' is malformed"

    def entries(*starts, numBytes):
        return file({f"w{i}": {"dtype": "F32", "shape": [4],
                               "data_offsets": [start, start + 16]}
                     for i, start in enumerate(starts)}, b"\0" * numBytes)

    between = where + "its tensors overlap, or leave bytes between them"
    yield "aliases", entries(0, 0, numBytes=16), between
    yield "overlap", entries(8, 0, numBytes=24), between
    yield "hole", entries(20, 0, numBytes=36), between
    yield "no start", entries(4, numBytes=20), between
    yield "rest", entries(16, 0, numBytes=33), \
        where + "there are bytes behind its tensors"


def weightFile(data):
    return lambda folder: (folder / "w.safetensors").write_bytes(data) and None


def replaced(*pairs, end=""):
    """The plan with one text for another."""
    def change(folder):
        plan = PLAN
        for before, after in pairs:
            assert before in plan, before
            plan = plan.replace(before, after)
        return plan + end
    return change


def single(inputs, result, op):
    """A plan of one operation, `%r = OP`, on inputs %a, %b, ..."""
    names = "abcd"[:len(inputs)]
    ports = ", ".join(f'%x{n}: tensor<{t}> {{ax.name = "{n}"}}'
                      for n, t in zip(names, inputs))
    operands = ", ".join(f"%{n} = %x{n} : tensor<{t}>"
                         for n, t in zip(names, inputs))
    types = ", ".join(f"tensor<{t}>" for t in inputs)
    return lambda folder: f"""ax.plan @p version 1 {{
  ax.mesh [pipe = 1, col = 1] in time [micro = 1]
  ax.program @main({ports}) -> (tensor<{result}> {{ax.name = "y"}}) {{
    %s = ax.stage @f on 0 ({operands}) -> (tensor<{result}>) {{
      %r = {op} : {types} -> tensor<{result}>
      ax.yield %r : tensor<{result}>
    }}
    ax.schedule "forward" {{ stage 0: "F0" }}
    ax.return %s : tensor<{result}>
  }}
}}
"""


def operations():
    """Name, plan, message, exit code."""
    window = "strides [1] pads [0, 0] dilations [1] ceil_extra [0]"
    cube = "strides [1, 1, 1, 1] pads [0, 0, 0, 0, 0, 0, 0, 0] " \
           "dilations [1, 1, 1, 1] ceil_extra [0, 0, 0, 0]"
    yield "matmul", single(["4x4xi1", "4x4xi1"], "4x4xi1",
                           "ax.dot %a, %b batch [] x [] contract [1] x [0]"), \
        "matmul 4x4 x 4x4 bool: no such matrix product", 4
    yield "pool", single(["1x4x9xi1"], "1x4x8xi1",
                         f"ax.pool max %a kernel [2] {window}"), \
        "no windows of booleans", 4
    yield "pool rank", single(["1x1x4x4x4x4xf32"], "1x1x3x3x3x3xf32",
                              f"ax.pool max %a kernel [2, 2, 2, 2] {cube}"), \
        "windows of 1, 2 or 3 dimensions only", 4
    # Each of these crashed, or was wrong without a word.
    yield "slice", single(["4xf32"], "65537xf32", "ax.slice %a starts [0] "
                          "steps [281474976710656]"), \
        "dimension 0 reads 65537 elements from 0 in steps of " \
        "281474976710656, but has 4", 5
    yield "dilation", single(
        ["1x1x9xf32", "1x1x65537xf32"], "1x1x65545xf32",
        "ax.conv %a, %b strides [1] pads [0, 0] dilations [281474976710655]"), \
        "is larger than the padded dimension 2 of 9", 5
    yield "gather", single(["0xf32", "2xi64"], "2xf32",
                           "ax.gather %a[%b] axis 0"), \
        "'ax.gather' op nothing to choose from in an empty dimension", 5
    yield "weight", single(["64x5xf32", "5x7xf64"], "64x7xf32",
                           "ax.linear %a, %b"), \
        "'ax.linear' op element types differ: 'f32' and 'f64'", 5
    yield "shift", single(["4xf32", "4xf32"], "4xf32", "ax.binary shl %a, %b"), \
        "'ax.binary' op shl needs integers, got 'f32'", 5


def plans():
    """Name, change of the plan, message, exit code."""
    yield "no resource", replaced(
        (ADD, "%w2 = ax.constant dense_resource<r> : tensor<4xf32> -> "
         "tensor<4xf32>\n" + ADD.replace("%w", "%w2"))), \
        "resource 'r' has no bytes", 5
    yield "short resource", replaced(
        (ADD, "%w2 = ax.constant dense_resource<r> : tensor<4xf32> -> "
         "tensor<4xf32>\n" + ADD.replace("%w", "%w2")),
        end='{-# dialect_resources: {builtin: {r: "0x0400000000000000"}} #-}'), \
        "resource 'r' has 4 bytes, not 16", 5
    yield "sparse", replaced(
        (ADD, "%w2 = ax.constant sparse<[[0]], [1.0]> : tensor<4xf32> -> "
         "tensor<4xf32>\n" + ADD.replace("%w", "%w2"))), \
        "'ax.constant' op is neither dense nor a resource", 5
    yield "element type", replaced(
        (ADD, '%v = ax.cast %w {node = "odd"} : tensor<4xf32> -> '
         "tensor<4xi7>\n" + ADD)), \
        "has elements of type i7, with which no rank computes", 5
    yield "program's element type", replaced(("xf32", "xf8E3M4"),
                                             ("length 16", "length 4")), \
        "has elements of type f8E3M4", 5
    yield "states that change places", replaced(
        (STATE, STATE + "  ax.state @v : tensor<4xf32> stages [0]\n"),
        (ADD, "%v = ax.load @v : tensor<4xf32>\n"
         "ax.store @v, %w : tensor<4xf32>\n" + ADD),
        ("ax.yield", "ax.store @w, %v : tensor<4xf32>\nax.yield")), \
        "states are to change places: 'v' and 'w'", 4
    yield "memory", replaced(
        (STATE, ""), (LOAD, ""), (TYPES, "tensor<4xf32> -> tensor<4xf32>"),
        (ADD, "%r = ax.unary exp %a"),
        ("tensor<4xf32>", "tensor<1000000000000xf32>")), \
        "input 'x': out of memory: tensor 1000000000000xf32 needs " \
        "4000000000000 bytes", 8
    yield "short file", lambda folder: (folder / "w.bin").write_bytes(b"\0") \
        and None, "bytes 0 to 0 + 16 are not inside './w.bin', which has 1", 3
    yield "no file", lambda folder: (folder / "w.bin").unlink(), \
        "state 'w': there is no './w.bin', from which the plan was made: " \
        "--model-dir=DIR says where the model's files are now", 7
    yield "folder", lambda folder: ((folder / "w.bin").unlink(),
                                    (folder / "w.bin").mkdir()) and None, \
        "cannot read './w.bin': not a regular file", 7


def others():
    """Name, change, message, exit code, flags."""
    yield "no inputs", nothing, ("no value for these inputs (--input, "
                                 "--inputs, --test-data or --random-inputs; "
                                 "to train, --data):"
                                 "\n  x: 4xf32"), 6, []
    yield "no steps", nothing, "--data needs --steps=N or --epochs=N, one of them", 2, [
        "--data", "x.npz"]
    yield "no folder", nothing, "'nowhere' is no folder of test data", 7, [
        "--test-data", "nowhere"]
    yield "no output", lambda folder: np.savez(
        folder / "z.npz", z=np.zeros(4)), \
        "the plan has no output 'z' to compare", 6, [
            "--random-inputs", 1, "--expect", "z.npz"]
    long = "o" * 300
    yield "output folder", nothing, f"cannot make folder '{long}'", 7, [
        "--random-inputs", 1, "--output", long]
    yield "below a file", nothing, "cannot write 'w.bin/out': Not a dir", 7, [
        "--random-inputs", 1, "--output", "w.bin/out"]
    yield "output name", replaced(
        ('ax.name = "y"', f'ax.name = "{"y" * 70000}"')), \
        "name too long for a zip archive", 7, [
            "--random-inputs", 1, "--output", "out.npz"]
    yield "output file", nothing, "cannot write 'nowhere/out.npz'", 7, [
        "--random-inputs", 1, "--output", "nowhere/out.npz"]


def cases(every):
    for flag, message in flags():
        yield f"flag {flag}", refuse, nothing, message, 2, *flag.split()
    for name, data, message in arrays():
        yield f"npy {name}", refuse, array(data), message, 6, "--input=x=x.npy"
    for name, data, message in archives():
        yield f"npz {name}", refuse, archive(data), message, 6, "--inputs=x.npz"
    yield "weights that are not there", refuse, nothing, \
        "--weights=none: there is no such file or folder", 7, "--weights=none"
    for name, data, message in weights():
        yield f"weights {name}", refuse, weightFile(data), message, 6, \
            "--weights=w.safetensors"
    for name, change, message, code in (*plans(), *operations()):
        yield f"plan {name}", refuse, change, message, code
    for name, change, message, code, more in others():
        yield name, refuseOther, change, message, code, more


def refuseOther(change, message, code, more):
    refuse(change, message, code, *more, random=False)
