# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of docs/benchmarks.md about generating: what a token takes of decoders
whose caches are carried (axopt --carry), by axrun and by onnxruntime, in turns. Of
onnxruntime a cache that is filled in place is one buffer for past and present; one
that grows by Concat is handed from step to step.

usage: generate.py BUILD
"""
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

TEST = Path(__file__).parents[1]
sys.path[:0] = [str(TEST), str(TEST / "e2e")]
from _decoders import CACHES, Size, by_concat, in_place, session_of

THREADS, PROMPT, COUNT, ROUNDS = 2, 16, 33, 3
SIZE = {"layers": 4, "width": 768, "heads": 12, "vocabulary": 8192, "places": 4096}
KINDS = {"by Concat": (by_concat, Size(**SIZE), ["past"]),
         "in place": (in_place, Size(**SIZE, keyHeads=4), ["past", "total"])}
LAYOUTS = {"": THREADS, "--tp=2": 1}


def by_axrun(bin, plan, prompt, threads):
    """Milliseconds of each token behind the first, and the tokens."""
    done = subprocess.run(
        [bin / "axrun", plan, f"--generate={COUNT}", "--prompt", prompt,
         f"--threads-per-rank={threads}"], check=True, capture_output=True, text=True)
    took = re.search(r"each token behind the first ([\d.]+) ms", done.stderr)
    return float(took[1]), [int(word) for word in done.stdout.split()]


def by_onnxruntime(kind, session, size, room, prompt):
    """The same, with as much room for keys and values."""
    import onnxruntime
    isInPlace = kind == "in place"
    inputs = [port.name for port in session.get_inputs()]
    outputs = [port.name for port in session.get_outputs()]
    shape = [1, size.keyHeads, room, size.head]
    caches = {name: onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(shape, np.float32))
              for name in inputs if name.startswith("past")}
    tokens, times = list(prompt), []
    while len(tokens) < len(prompt) + COUNT:
        place, begin = len(times), time.perf_counter()
        new = np.array([[tokens[place]]], np.int64)
        mask = np.zeros([1, room + (not isInPlace)], np.int64)
        if isInPlace:
            mask[0, :place + 1] = 1
        else:
            mask[0, room - place:] = 1
        feeds = {"input_ids": new, "attention_mask": mask,
                 "position_ids": np.array([[place]], np.int64)}
        binding = session.io_binding()
        for name in inputs:
            if name in caches:
                binding.bind_ortvalue_input(name, caches[name])
            else:
                binding.bind_cpu_input(name, feeds[name])
        for name in outputs:
            cache = caches.get(name.replace("present", "past_key_values"))
            if cache and isInPlace:
                binding.bind_ortvalue_output(name, cache)
            else:
                binding.bind_output(name)
        session.run_with_iobinding(binding)
        made = dict(zip(outputs, binding.get_outputs()))
        if not isInPlace:
            # What is oldest falls out.
            caches = {name: onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(
                made[name.replace("past_key_values", "present")].numpy()[:, :, 1:]))
                for name in caches}
        if place + 1 == len(tokens):
            tokens.append(int(made["logits"].numpy()[0, -1].argmax()))
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.mean(times[len(prompt):]), tokens[len(prompt):]


def main():
    bin = Path(sys.argv[1]) / "bin"
    print("| cache | room | onnxruntime, ms a token | axrun | ratio | axrun `--tp=2` |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        np.save(folder / "prompt.npy", np.arange(PROMPT))
        for kind, (make, size, names) in KINDS.items():
            model = make(1, size)
            (folder / "model.onnx").write_bytes(model.SerializeToString())
            session = session_of(model, THREADS)
            for room in 255, 1023, 4095:
                plans = {}
                for layout in LAYOUTS:
                    plans[layout] = folder / f"{layout}.mlir"
                    subprocess.run(
                        [bin / "axopt", folder / "model.onnx", "--dim=length=1",
                         *[f"--dim={name}={room}" for name in names], CACHES,
                         *layout.split(), "--quiet", "-o", plans[layout]], check=True)
                peer, ours = [], {layout: [] for layout in LAYOUTS}
                for _ in range(ROUNDS):
                    took, wanted = by_onnxruntime(kind, session, size, room,
                                                  np.arange(PROMPT))
                    peer.append(took)
                    for layout, threads in LAYOUTS.items():
                        took, tokens = by_axrun(bin, plans[layout],
                                                folder / "prompt.npy", threads)
                        ours[layout].append(took)
                        if tokens != wanted:
                            sys.exit(f"{kind}, {room}, {layout}: {tokens}, not {wanted}")
                took = statistics.median(peer)
                one, two = (statistics.median(ours[layout]) for layout in LAYOUTS)
                print(f"| {kind} | {room} | {took:.2f} | {one:.2f} | {one / took:.2f} "
                      f"| {two:.2f} |", flush=True)


main()
