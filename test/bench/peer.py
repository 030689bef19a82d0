# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One peer runs one model: prints the median time of a run in milliseconds.

usage: peer.py onnxruntime|openvino MODEL THREADS ITERATIONS [DIM=SIZE...]
"""
import statistics
import sys
import time

import numpy as np


def randomInput(dtype, shape):
    random = np.random.default_rng(1)
    if np.issubdtype(dtype, np.integer):
        # Small enough for any vocabulary; 0/1 masks become all ones.
        return np.ones(shape, dtype)
    return random.standard_normal(shape, np.float32).astype(dtype)


def onnxruntime(model, threads, dims={}, feeds=None):
    """A function that runs the model once; inputs are made up where there are
    no `feeds`."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Else it multiplies weights of a few bits with 8 bits of its inputs.
    options.add_session_config_entry(
        "session.qdq_matmulnbits_accuracy_level", "1")
    session = onnxruntime.InferenceSession(
        model, options, providers=["CPUExecutionProvider"])
    types = {"tensor(int64)": np.int64, "tensor(float)": np.float32}
    feeds = feeds or {
        i.name: randomInput(types[i.type],
                            [dims.get(d, d) for d in i.shape])
        for i in session.get_inputs()}
    return lambda: session.run(None, feeds)


def openvino(model, threads, dims={}, feeds=None, bf16=False):
    import openvino

    core = openvino.Core()
    loaded = core.read_model(model)
    shapes = {}
    for port in loaded.inputs:
        shapes[port.any_name] = [
            size.get_length() if size.is_static else
            dims[list(dims)[axis]]
            for axis, size in enumerate(port.partial_shape)]
    loaded.reshape(shapes)
    # What weights of few bits are multiplied with stays f32, too.
    compiled = core.compile_model(loaded, "CPU", {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
        "INFERENCE_PRECISION_HINT": "bf16" if bf16 else "f32"})
    feeds = feeds or {
        port.any_name: randomInput(port.element_type.to_dtype(),
                                   shapes[port.any_name])
        for port in compiled.inputs}
    request = compiled.create_infer_request()
    return lambda: list(request.infer(feeds).values())


def main():
    engine, model, threads, iterations, *dims = sys.argv[1:]
    dims = {name: int(size) for name, size in (d.split("=") for d in dims)}
    run = {"onnxruntime": onnxruntime, "openvino": openvino}[engine](
        model, int(threads), dims)
    for _ in range(3):
        run()
    times = []
    for _ in range(int(iterations)):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    print(statistics.median(times) * 1e3)


if __name__ == "__main__":
    main()
