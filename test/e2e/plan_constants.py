# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants of a plan in the file beside it, which nobody believes."""
import os
import re
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from cases import Failed, run, scratch, tool

ROWS = 512
STORED = re.compile(r'#ax\.stored<offset (\d+) length (\d+) checksum "(\w+)">')


def table(rng, kind, shape):
    if kind == TensorProto.BOOL:
        return rng.random(shape) < 0.5
    return rng.standard_normal(shape).astype(np.float32)


def model(path):
    """Three tables as numbers of protobuf, which no file has as they are in
    memory: they can be no weights."""
    rng = np.random.default_rng(5)
    kinds = {"a": (TensorProto.FLOAT16, [ROWS, 4]),
             "b": (TensorProto.FLOAT16, [2 * ROWS, 2]),
             "c": (TensorProto.BOOL, [ROWS, 4])}
    arrays = {name: table(rng, *of) for name, of in kinds.items()}
    arrays = {name: array.astype(np.float16) if array.dtype == np.float32
              else array for name, array in arrays.items()}
    inits = [helper.make_tensor(name, kind, shape, arrays[name].ravel())
             for name, (kind, shape) in kinds.items()]
    inits.append(helper.make_tensor("shape", TensorProto.INT64, [2],
                                    [ROWS, 4]))
    nodes = [helper.make_node("Reshape", ["b", "shape"], ["d"]),
             helper.make_node("Where", ["c", "a", "d"], ["w"]),
             helper.make_node("Mul", ["x", "w"], ["v"]),
             helper.make_node("Mul", ["v", "a"], ["u"]),
             helper.make_node("Where", ["c", "u", "v"], ["t"]),
             helper.make_node("Add", ["t", "d"], ["y"])]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [value("x", TensorProto.FLOAT16, [ROWS, 4])],
        [value("y", TensorProto.FLOAT16, [ROWS, 4])], inits)
    onnx.save(helper.make_model(
        graph, ir_version=9, opset_imports=[helper.make_opsetid("", 18)]),
        path)
    x = rng.standard_normal([ROWS, 4]).astype(np.float16)
    d = arrays["b"].reshape(ROWS, 4)
    v = x * np.where(arrays["c"], arrays["a"], d)
    return x, np.where(arrays["c"], v * arrays["a"], v) + d


class Compiled:
    def __init__(self, folder, *flags):
        self.folder = Path(folder)
        x, self.wanted = model(self.folder / "model.onnx")
        np.save(self.folder / "x.npy", x)
        self.run("axopt", "model.onnx", "--quiet", "-o", "plan.mlir", *flags)
        self.text = (self.folder / "plan.mlir").read_text()
        self.data = (self.folder / "plan.mlir.data").read_bytes()

    def run(self, name, *command, **options):
        return run(tool(name), *command, cwd=self.folder, **options)

    def check(self, plan):
        self.run("axrun", plan, "--input=x=x.npy", "--output=y.npy")
        got = np.load(self.folder / "y.npy")
        if not np.allclose(got, self.wanted, rtol=2e-3, atol=2e-3):
            raise Failed(f"{plan}: {got}, not {self.wanted}")

    def refused(self, text, data, says, code=5):
        (self.folder / "edited.mlir").write_text(text)
        (self.folder / "plan.mlir.data").write_bytes(data)
        for command in (["axopt", "edited.mlir", "--verify"],
                        ["axrun", "edited.mlir", "--random-inputs=1"],
                        ["axopt", "edited.mlir", "-o", "other.mlir"]):
            done = self.run(*command, expect=code)
            if says not in done.stderr:
                raise Failed(f"expected: {says}\ngot: {done.stderr}")
        assert not (self.folder / "other.mlir").exists()
        (self.folder / "plan.mlir.data").write_bytes(self.data)


def layouts(*flags):
    """Plans are small, and may be read, written again, and moved."""
    with scratch() as folder:
        made = Compiled(folder, *flags)
        stored = STORED.findall(made.text)
        assert len(set(stored)) >= 3 and len(made.text) < 20000, made.text
        assert 'version 2 attributes {ax.data = "plan.mlir.data"' in made.text
        assert sum({int(at): int(length) for at, length, _ in stored}.values()
                   ) <= len(made.data)
        made.check("plan.mlir")
        made.run("axopt", "plan.mlir", "--verify")
        made.run("axopt", "plan.mlir", "--quiet", "-o", "plan.mlir")
        assert (made.folder / "plan.mlir").read_text() == made.text
        made.run("axopt", "plan.mlir", "--quiet", "-o", "copy.mlir")
        assert (made.folder / "copy.mlir.data").read_bytes() == made.data
        (made.folder / "elsewhere").mkdir()
        for name in "copy.mlir", "copy.mlir.data":
            os.rename(made.folder / name, made.folder / "elsewhere" / name)
        made.check("elsewhere/copy.mlir")
        os.symlink("elsewhere/copy.mlir", made.folder / "link.mlir")
        made.check("link.mlir")
        # What a link names is replaced, with what is beside it.
        made.run("axopt", "plan.mlir", "--quiet", "-o", "link.mlir")
        assert not (made.folder / "link.mlir.data").exists()
        made.check("elsewhere/copy.mlir")
        # Standard output has nothing beside it.
        text = made.run("axopt", "plan.mlir", "--quiet", "-o", "-").stdout
        assert "ax.data" not in text and "#ax.stored" not in text
        (made.folder / "whole.mlir").write_text(text)
        made.check("whole.mlir")


def damaged():
    """Other bytes than the plan means, or none."""
    with scratch() as folder:
        made = Compiled(folder)
        text, data = made.text, made.data
        places = sorted({int(at): (int(length), checksum) for at, length,
                         checksum in STORED.findall(text)}.items())
        other = (" has other bytes than this constant's checksum says: it is "
                 "damaged, or of another plan")
        outside = "are not inside './plan.mlir.data', which has"
        for at, (length, checksum) in places:
            for byte in at, at + length // 2, at + length - 1:
                flipped = bytearray(data)
                flipped[byte] ^= 4
                made.refused(text, flipped, other)
            was = f"offset {at} length {length}"
            for offset in at + 2, at ^ 64:
                made.refused(text.replace(was, f"offset {offset} length "
                                          f"{length}"), data + bytes(4096),
                             other)
            for offset in -1, -2**63, len(data), 2**62, 2**63 - 1:
                made.refused(text.replace(was, f"offset {offset} length "
                                          f"{length}"), data, outside)
            for wrong in length - 1, 0, -length, 2**62:
                made.refused(text.replace(was, f"offset {at} length {wrong}"),
                             data, "are not those of their type")
            made.refused(text.replace(checksum, checksum[::-1]), data, other)
        for size in 0, 1, len(data) // 2, len(data) - 1:
            made.refused(text, data[:size], outside)
        # One place for several: the plan would be larger in memory than its
        # file.
        (at, (length, checksum)), *_ = places
        shapes = [[ROWS, 4], [4, ROWS], [4 * ROWS]]
        types = [f"tensor<{'x'.join(map(str, shape))}xf16>" for shape in shapes]
        lines = "".join(
            f'%{i} = ax.constant #ax.stored<offset 0 length {length} checksum '
            f'"{checksum}"> : {kind} -> {kind}\n'
            for i, kind in enumerate(types))
        made.refused(
            'ax.plan @p version 2 attributes {ax.data = "plan.mlir.data"} {\n'
            "ax.mesh [pipe = 1] in time [micro = 1]\n"
            f"ax.program @main() -> ({', '.join(types)}) {{\n"
            f"%s:3 = ax.stage @s on 0 () -> ({', '.join(types)}) {{\n{lines}"
            f"ax.yield %0, %1, %2 : {', '.join(types)}\n}}\n"
            'ax.schedule "forward" { stage 0: "F0" }\n'
            f"ax.return %s#0, %s#1, %s#2 : {', '.join(types)}\n}}\n}}\n",
            data[at:at + length],
            "the stored constants have more bytes than './plan.mlir.data'")


def named():
    """The file that a plan names is one beside it."""
    with scratch() as folder:
        made = Compiled(folder)
        text, data = made.text, made.data
        named = 'ax.data = "plan.mlir.data"'
        (made.folder / "inner").mkdir()
        shutil.copy(made.folder / "plan.mlir.data", made.folder / "inner/d")
        os.symlink("plan.mlir.data", made.folder / "link")
        for name in ("../d", "inner/d", "link", "", ".", "..",
                     str(made.folder / "plan.mlir.data")):
            made.refused(text.replace(named, f'ax.data = "{name}"'), data,
                         "is no file beside the plan, where its constants are"
                         if name != "." else "", code=(5, 7))
        made.refused(text.replace(named, 'ax.data = "lost"'), data,
                     "edited.mlir: the plan's constants, which move with it: "
                     "cannot open './lost'", code=7)
        made.refused(text.replace(named + ", ", ""), data,
                     "edited.mlir: constants are in a file, but the plan has no "
                     "'ax.data', which names it")
        made.refused(text.replace(named, "ax.data = 3"), data,
                     "ax.data' = 3 : i64, which it cannot have")
        made.refused(text.replace("version 2", "version 1"), data,
                     "has a 'ax.data', which version 1 has not")
        made.refused(STORED.sub("#ax.stored<offset 1>", text, count=1), data,
                     "expected 'length'")
        made.refused(re.sub(STORED.pattern + r" : \S+", r"#ax.stored<offset "
                            r'\1 length \2 checksum "\3"> : i32', text), data,
                     "stored elements need the type of a tensor")


def kept():
    """What is beside a plan is one of its files."""
    with scratch() as folder:
        made = Compiled(folder)
        before = made.data

        def refused(*command, says):
            done = made.run(*command, expect=2)
            if says not in done.stderr:
                raise Failed(f"expected: {says}\ngot: {done.stderr}")
            assert (made.folder / "plan.mlir.data").read_bytes() == before

        destroy = "would destroy './plan.mlir.data'"
        refused("axrun", "plan.mlir", "--input=x=x.npy", "--iterations=1",
                "--json=plan.mlir.data", says=destroy)
        refused("axopt", "plan.mlir", "-o", "plan.mlir.data", says=destroy)
        refused("axopt", "plan.mlir", "-o", "new", "--report=plan.mlir.data",
                says=destroy)
        # Of another name than the plan has now.
        os.rename(made.folder / "plan.mlir", made.folder / "moved.mlir")
        refused("axopt", "moved.mlir", "-o", "plan.mlir", says=destroy)
        made.check("moved.mlir")
        refused("axopt", "model.onnx", "-o", "o", "--report=o.data",
                says="--report and -o would both write 'o.data'")


def tooLarge():
    """Text has room for 64 MiB, hexadecimal, and no more."""
    with scratch() as folder:
        count = 9 << 20
        x = helper.make_tensor_value_info("x", TensorProto.INT32, [1])
        y = helper.make_tensor_value_info("y", TensorProto.INT32, [count])
        large = helper.make_tensor("t", TensorProto.INT32, [count],
                                   np.arange(count) & 127)
        onnx.save(helper.make_model(
            helper.make_graph([helper.make_node("Add", ["x", "t"], ["y"])],
                              "g", [x], [y], [large]), ir_version=9,
            opset_imports=[helper.make_opsetid("", 18)]),
            f"{folder}/model.onnx")
        done = run(tool("axopt"), f"{folder}/model.onnx", "--quiet", expect=4)
        says = ("plans have at most 67108864: with -o FILE its constants go to "
                "FILE.data")
        if says not in done.stderr:
            raise Failed(f"expected: {says}\ngot: {done.stderr}")
        run(tool("axopt"), f"{folder}/model.onnx", "--quiet", "-o",
            f"{folder}/plan.mlir")
        run(tool("axrun"), f"{folder}/plan.mlir", "--random-inputs=1")


def cases(every):
    for flags in ([], ["--tp=2"], ["--pp=2"], ["--dp=2"]):
        yield " ".join(["layouts", *flags]), layouts, *flags
    for function in damaged, named, kept, tooLarge:
        yield function.__name__, function
