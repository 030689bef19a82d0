# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of weights, and what tools say of them."""
import json
import struct
from pathlib import Path

import numpy as np

from cases import Failed


def bits(array, kind):
    if kind == "BF16":
        return (array.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return array.astype({"F32": np.float32, "F16": np.float16,
                         "F64": np.float64}[kind]).tobytes()


def save(path, tensors, kind="F32"):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, array in tensors.items():
        part = bits(array, kind)
        header[name] = {"dtype": kind, "shape": array.shape,
                        "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def close(got, wanted):
    # What is small beside others may be a difference of large numbers.
    if not np.allclose(got, wanted, rtol=1e-4,
                       atol=1e-5 * max(1, np.abs(wanted).max(initial=0))):
        raise Failed(f"{got}, expected {wanted}")


def expect(done, *texts):
    for text in texts:
        if done.stderr.count(text) != 1:
            raise Failed(f"not once '{text}' in:\n{done.stderr}")
