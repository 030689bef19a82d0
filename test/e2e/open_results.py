# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What docs/user-guide.md says of results that ONNX leaves open."""
import numpy as np
import onnx

from _onnx_text import model
from cases import Failed, run, scratch, tool


def evaluate(made, **values):
    with scratch() as folder:
        onnx.save(made, f"{folder}/model.onnx")
        np.savez(f"{folder}/in.npz", **values)
        run(tool("axopt"), f"{folder}/model.onnx", "--quiet",
            "-o", f"{folder}/plan.mlir")
        run(tool("axrun"), f"{folder}/plan.mlir", "--inputs",
            f"{folder}/in.npz", "--output", f"{folder}/out.npz")
        return dict(np.load(f"{folder}/out.npz"))


def casts(name, kind):
    numbers = np.array([300, -1, -300, 255.9, 1e10, -1e10, 1e20, np.nan,
                        np.inf, -np.inf, 2.0 ** 31])
    types = {"uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6,
             "int64": 7, "uint32": 12, "uint64": 13}
    made = model(f"{kind}[{len(numbers)}] x",
                 ", ".join(f"{type} y_{type}" for type in types),
                 " ".join(f"y_{type} = Cast<to = {number}>(x)"
                          for type, number in types.items()))
    results = evaluate(made, x=numbers.astype(name))
    for type in types:
        bits = 64 if type in ("int64", "uint64", "uint32") else 32
        least, most = -2 ** (bits - 1), 2 ** (bits - 1) - 1
        if type == "uint64":
            most = 2 ** 64 - 1
        width = np.dtype(type).itemsize * 8
        wanted = []
        for number in numbers.astype(name).astype(np.float64):
            value = 0 if np.isnan(number) else int(
                min(max(number, least), float(most))) if np.isfinite(
                    number) else (most if number > 0 else least)
            value = min(max(value, least), most) % 2 ** width
            if type[0] == "i" and value >= 2 ** (width - 1):
                value -= 2 ** width
            wanted.append(value)
        if results[f"y_{type}"].tolist() != wanted:
            raise Failed(f"{name} to {type}: {results[f'y_{type}'].tolist()}, "
                         f"not {wanted}")


def powers():
    bases = np.array([2, 3, -3, 10, 7, 1, -1, -1, 46341, 0], np.int32)
    exponents = np.array([31, 21, 21, 10, -1, -5, -5, -4, 2, 0], np.int32)
    made = model(f"int32[{len(bases)}] a, int32[{len(bases)}] b", "int32 y",
                 "y = Pow(a, b)")
    wanted = []
    for a, b in zip(bases.tolist(), exponents.tolist()):
        value = a ** b if b >= 0 else (a ** -b if abs(a) == 1 else 0)
        wanted.append((value + 2 ** 31) % 2 ** 32 - 2 ** 31)
    result = evaluate(made, a=bases, b=exponents)["y"].tolist()
    if result != wanted:
        raise Failed(f"{result}, not {wanted}")


def quotients():
    made = model("int32[3] a, int32[3] b", "int32 y", "y = Div(a, b)")
    result = evaluate(made, a=np.array([7, -7, -2 ** 31], np.int32),
                      b=np.array([0, 0, -1], np.int32))["y"].tolist()
    if result != [0, 0, -2 ** 31]:
        raise Failed(f"{result}")


def cases(every):
    yield "casts of f64", casts, "float64", "double"
    yield "casts of f32", casts, "float32", "float"
    yield "powers", powers
    yield "quotients", quotients
