# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One engine holds one model and runs it when told to.

usage: zoo_engine.py ENGINE MODEL FEEDS.npz OUTPUTS.npz fp32|bf16 THREADS [LIBRARY]

After a first run, whose outputs go to OUTPUTS.npz, it says "ready". Each line of
standard input is a number of seconds, for which it runs the model again and
again; it answers with milliseconds of a run in the best of some blocks.
"""
import ctypes
import os
import sys
import time

import numpy as np

import peer

# Seconds; shorter ones are below what a processor's time is counted in.
BLOCK = 0.04
# AxDType's order, ax-c/axrun.h.
TYPES = [np.float32, np.float64, np.float16, None, np.int8, np.int16, np.int32,
         np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.bool_]


class Port(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int),
                ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("bytes", ctypes.c_size_t)]


def axrun(plan, library, feeds):
    """Runs the plan by way of the C interface."""
    lib = ctypes.CDLL(library)
    lib.axLastError.restype = ctypes.c_char_p
    lib.axInput.restype = lib.axOutput.restype = ctypes.POINTER(Port)
    session = ctypes.c_void_p()

    def check(code):
        if code:
            sys.exit(lib.axLastError().decode())

    check(lib.axLoad(plan.encode(), None, ctypes.byref(session)))
    inputs = [np.ascontiguousarray(
        feeds[lib.axInput(session, i).contents.name.decode()])
        for i in range(lib.axNumInputs(session))]
    ports = [lib.axOutput(session, i).contents
             for i in range(lib.axNumOutputs(session))]
    outputs = [np.empty(port.shape[:port.rank], TYPES[port.type])
               for port in ports]

    def addresses(arrays):
        return (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))

    given, wanted = addresses(inputs), addresses(outputs)

    def run():
        check(lib.axRun(session, given, wanted))
        return outputs

    return run


def block(run):
    """Milliseconds of a run, the mean of some: of the processor, which others do
    not disturb, or of the clock, which does not count threads that wait."""
    wall, processor, runs = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - wall < BLOCK:
        run()
        runs += 1
    return 1e3 / runs * min(time.perf_counter() - wall,
                            time.process_time() - processor)


def main(engine, model, feeds, outputs, precision, threads, *library):
    feeds = dict(np.load(feeds))
    if engine == "axrun":
        os.environ["OMP_NUM_THREADS"] = threads
        run = axrun(model, *library, feeds)
    else:
        narrow = {"bf16": True} if engine == "openvino" and precision == "bf16" else {}
        run = getattr(peer, engine)(model, int(threads), feeds=feeds, **narrow)
    np.savez(outputs, *run())
    print("ready", flush=True)
    for line in sys.stdin:
        end = time.perf_counter() + float(line)
        times = [block(run)]
        while time.perf_counter() < end:
            times.append(block(run))
        print(min(times), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
