# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights of a few bits, which onnxruntime's tools write."""
import itertools
import re
from pathlib import Path

import ml_dtypes
import numpy as np

from _contrib import Case, compared, model_of
from _operator_case import random
from cases import Failed, run, scratch, tool


def product(rows, columns, block, bits, zeros, shape=(2, 3), bias=False,
            half=False, flat=False, **attributes):
    """A MatMulNBits; `zeros`: none, packed, or floats."""
    blocks = -(-columns // block)
    kind = np.float16 if half else np.float32
    x = random((*shape, columns)).astype(kind)
    w = random((rows, blocks, block * bits // 8), np.uint8, 0, 256)
    scales = random((rows, blocks), low=0.01, high=0.1).astype(kind)
    zero = {None: None,
            "packed": random((rows, -(-blocks * bits // 8)), np.uint8, 0, 256),
            "floats": random((rows, blocks), low=0, high=2 ** bits)
            .astype(kind)}[zeros]
    if flat:
        scales, zero = scales.ravel(), zero.ravel()
    more = [None, random((rows,)).astype(kind)] if bias else []
    return Case("MatMulNBits", x, w, scales, zero, *more, known=[1, 2, 3, 5],
                K=columns, N=rows, bits=bits, block_size=block, **attributes,
                rtol=1e-2 if half else 5e-5)


def products():
    for bits, zeros in itertools.product((4, 8), (None, "packed")):
        yield product(6, 64, 32, bits, zeros)
        yield product(5, 40, 16, bits, zeros, bias=True)
        yield product(8, 96, 32, bits, zeros, shape=(1,))
    yield product(5, 40, 16, 4, "floats", bias=True)
    yield product(6, 64, 32, 4, "packed", flat=True)
    yield product(6, 64, 32, 4, "packed", half=True)
    yield product(6, 64, 32, 2, "packed")
    yield product(6, 64, 32, 4, None, accuracy_level=1)


def largeProducts():
    """Of weights that are several parts as floats."""
    for count in 1, 3:
        yield product(1040, 640, 32, 4, "packed", shape=(1, count), bias=True)
        yield product(1030, 648, 16, 4, None, shape=(count,))
        yield product(1040, 640, 32, 8, "packed", shape=(count,))
        yield product(1040, 640, 32, 2, "packed", shape=(count,))


def roundedProducts():
    """Of rows that may be rounded to eight bits, as onnxruntime does."""
    for bits, zeros in itertools.product((4, 8), (None, "packed")):
        for shape in (1, 1), (2, 9):
            yield product(600, 640, 32, bits, zeros, shape=shape,
                          accuracy_level=4)
    yield product(600, 640, 128, 4, "packed", shape=(7,), bias=True,
                  accuracy_level=4)
    for shape in (1,), (3, 4), ():
        yield product(600, 640, 32, 4, "packed", shape=shape, half=True,
                      accuracy_level=4)
    # Beside zero points of floats, and two bits in some blocks, nothing is.
    for count in 1, 5:
        yield product(600, 640, 32, 4, "floats", shape=(count,),
                      accuracy_level=4)
        for block in 16, 32, 64, 128, 256:
            yield product(64, 512, block, 2, "packed", shape=(count,),
                          accuracy_level=4)
    # Small ones; blocks that are not whole.
    yield product(6, 64, 16, 4, "packed", accuracy_level=4)
    yield product(5, 40, 16, 4, None, accuracy_level=4)
    yield product(700, 648, 16, 8, "packed", accuracy_level=4)


def tables():
    for bits, zeros in itertools.product((4, 8), (0, 1)):
        columns, block = 64, 16
        data = random((9, columns * bits // 8), np.uint8, 0, 256)
        scales = random((9, columns // block), low=0.01, high=0.1)
        zero = (random((9, columns // block * bits // 8), np.uint8, 0, 256)
                if zeros else None)
        for ids in random((2, 5), np.int64, 0, 9), random((3,), np.int32, 0, 9):
            yield Case("GatherBlockQuantized", data, ids, scales, zero,
                       known=[0, 2, 3], bits=bits, block_size=block)


def typedTables():
    """ONNX's own numbers of four bits, whose zero point is 0."""
    for dtype, low in (ml_dtypes.int4, -8), (ml_dtypes.uint4, 0):
        data = random((9, 64), np.int64, low, low + 16).astype(dtype)
        zeros = random((9, 2), np.int64, low, low + 16).astype(dtype)
        for zero in None, zeros:
            yield Case("GatherBlockQuantized", data,
                       random((2, 5), np.int64, 0, 9), random((9, 2)), zero,
                       known=[0, 2, 3], block_size=32)


GROUPS = (products, largeProducts, roundedProducts, tables, typedTables)


def multipliesIntegers():
    """Bytes that rows meet which were rounded; nothing else is made of them."""
    for bits, rows, half in itertools.product((2, 4, 8), (1, 9), (False, True)):
        case = product(96, 512, 32, bits, "packed", shape=(rows,), half=half,
                       accuracy_level=4)
        with scratch() as folder:
            model, plan = Path(folder) / "m.onnx", Path(folder) / "p.mlir"
            model.write_bytes(model_of([case]).SerializeToString())
            run(tool("axopt"), model, "--quiet", "-o", plan)
            text = plan.read_text()
            commands = run(tool("axrun"), plan, "--list-commands").stdout
        if f"block_matmul {rows}x512 x 512x96 u{bits}" not in commands or \
                re.search(r"prepared.*: tensor<96x512xf", text):
            raise Failed(f"{case.name}:\n{commands}")


def cases(every):
    yield from compared(GROUPS)
    yield "rounded rows multiply integers", multipliesIntegers
