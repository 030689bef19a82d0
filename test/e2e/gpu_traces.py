# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the streams of a card (the simulated one) do when: a track each in a trace,
and in --profile exchanges by their own time and by how long they hold computing up."""
import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from _training import axrun, compiled, part
from axrun_profile import check, profile, sums
from cases import scratch
from gpu_graphs import reference
from gpu_streams import CUDA

# Times are floats of milliseconds there.
SLACK = 2
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter")
# Which stream does what begins so, beside the computing one that waits for it.
BESIDE = {"send": "send", "recv": "receive"} | dict.fromkeys(COLLECTIVES, "exchange")

# What is begun and awaited later: a layout, and whose.
AWAITED = "--tp=2 --dp=2 --zero=3", ("gpt2_tied", "input=4x32")


def traced(folder, layout, comm, order, model=("fc_net", "input=32x64"), late=0):
    """The events of each track, by the rank and the stream that it names, in order;
    and the report."""
    plan = reference(folder, *model, *layout.split())
    report, table = profile(
        folder, plan, "--data", f"{folder}/data.npz", "--steps=4", "--quiet",
        "--trace-steps=2..4", "--profile=0", f"--comm={comm}", "--trace",
        f"{folder}/trace", env=CUDA | {
            "SIMGPU_ORDER": order, "SIMGPU_PATIENCE": "20000",
            "SIMGPU_LATE": str(late),
            "SIMGPU_CARDS": "4" if comm == "nccl" else "1"})
    events = json.loads(Path(f"{folder}/trace").read_text())["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events
             if event["ph"] == "M"}
    check(len(set(names.values())) == len(names), names)
    tracks = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            rank, _, stream = names[event["tid"]].split(", ")
            tracks[rank, stream].append(event)
    for track in tracks.values():
        track.sort(key=lambda event: (event["ts"], event["ts"] + event["dur"]))
    return tracks, report, table


def oneAfterAnother(tracks):
    """A stream does its work in order, in the steps that are asked for."""
    ends = [event["ts"] + event["dur"] for track in tracks.values()
            for event in track]
    for name, track in tracks.items():
        for before, after in zip(track, track[1:]):
            check(after["ts"] >= before["ts"] + before["dur"] - SLACK,
                  (name, before, after))
        check(track[0]["ts"] >= 0 and max(ends) < 600e6, name)


def onTheirStreams(tracks):
    """Everything is on the stream that does it; where another one does, computing
    has how long it waits."""
    counts = defaultdict(int)
    for (_, stream), track in tracks.items():
        for event in track:
            kind = event["args"].get("what", event["name"]).split()[0]
            counts[kind, stream] += 1
            wanted = {"inputs": "upload", "outputs": "download"}.get(
                kind, BESIDE.get(kind, "compute"))
            check(stream in (wanted, "compute") and
                  (stream == wanted or kind in BESIDE), (kind, stream))
    for kind, stream in BESIDE.items():
        check((counts[kind, "compute"] > 0) == (counts[kind, stream] > 0), counts)
    check(counts["inputs", "upload"] and counts["outputs", "download"], counts)
    return {kind for kind, _ in counts}


def behindTheirOperands(tracks):
    """What is exchanged is made by then. (What is sent may go when it is, before
    computing comes to the command.)"""
    for (rank, stream), track in tracks.items():
        if stream != "exchange":
            continue
        commands = defaultdict(lambda: ([], []))
        for number, events in enumerate((track, tracks[rank, "compute"])):
            for event in events:
                of = event["args"]["what"], event["name"], event["args"]["micro-batch"]
                commands[of][number].append(event["ts"])
        for of, (done, asked) in commands.items():
            # Of each time one part, or a beginning and an end.
            for begun, first in zip(asked, done[::len(done) // len(asked) or 1]):
                check(first >= begun - SLACK, (rank, of, begun, first))


def besideComputing(tracks):
    """For how long computing and exchanges of a rank are at it at the same time,
    in microseconds."""
    both = 0
    for (rank, stream), track in tracks.items():
        if stream != "exchange":
            continue
        computed = [event for event in tracks[rank, "compute"]
                    if event["args"]["what"].startswith(("kernel", "matmul"))]
        for a in track:
            for b in computed:
                both += max(0, min(a["ts"] + a["dur"], b["ts"] + b["dur"]) -
                            max(a["ts"], b["ts"]))
    return both


def timesAddUp(report, table):
    """Of the ranks' time as long as exchanges hold computing up."""
    spent, commands = report["rank_seconds"], report["commands"]
    held = sum(command["held_seconds"] for command in commands)
    parts = [spent[key] for key in ("computing", "exchanging", "waiting",
                                    "between_commands")]
    check(abs(sum(parts) - spent["total"]) < 1e-6 and min(parts) >= 0, spent)
    check(abs(held - sum(parts[:3])) < 1e-6, (held, spent))
    for command in commands:
        if not command["exchange"]:
            check(command["held_seconds"] == command["seconds"], command)
        elif command["what"].startswith("wait"):
            check(command["held_seconds"] == command["seconds"] == 0 and
                  command["executions"], command)
        else:
            check(0 < command["seconds"] and
                  0 <= command["waiting_seconds"] <= command["seconds"] + 1e-9,
                  command)
    heads = [line.split()[:6] for line in table if line.endswith("nodes")]
    check(heads[1] == ["ms", "%", "calls", "waiting", "held", "GB/s"], heads)
    check(not any("  wait for " in line for line in table), table)


def ofStreams(layout, comm, order, wanted, *model):
    with scratch() as folder:
        tracks, report, table = traced(folder, layout, comm, order, *model)
        oneAfterAnother(tracks)
        behindTheirOperands(tracks)
        kinds = onTheirStreams(tracks)
        check(wanted <= kinds, kinds)
        timesAddUp(report, table)


def stepsThatAreSeenLate():
    """What the host sees late has not been later: a step is behind the one before,
    not in it."""
    with scratch() as folder:
        tracks, _, _ = traced(folder, "--dp=2", "local", "eager", late=20000)
        oneAfterAnother(tracks)


def overlap():
    """A sum goes on while something else is computed, where the card chooses so. On
    one stream nothing would be at the same time as anything."""
    both = []
    with scratch() as folder:
        for order in "random:1", "random:2", "random:3":
            tracks, _, _ = traced(folder, AWAITED[0], "nccl", order, AWAITED[1])
            both.append(besideComputing(tracks))
    check(max(both) > 100 * SLACK, both)


def ofOneStream():
    """A processor's rank has one track, with all that it does."""
    with scratch() as folder:
        plan = compiled(folder, "--dp=2")
        np.savez(f"{folder}/data.npz", **part("train", slice(0, 100)))
        report, table = profile(
            folder, plan, "--data", f"{folder}/data.npz", "--steps=2", "--quiet",
            "--profile=0", "--trace", f"{folder}/trace")
        sums(report)
        check(all(command["held_seconds"] == command["seconds"]
                  for command in report["commands"]), report)
        check(not any(" held " in line for line in table), table)
        events = json.loads(Path(f"{folder}/trace").read_text())["traceEvents"]
        names = [event["args"]["name"] for event in events if event["ph"] == "M"]
        check(names == ["rank 0, stage stage0", "rank 1, stage stage0"], names)
        check({event["tid"] for event in events} == {0, 1}, events[0])


def cases(every):
    for order in "eager", "lazy", "random:1":
        yield (f"ranks with a card each: {order}", ofStreams,
               "--dp=2 --pp=2 --micro-batches=2 --zero=1", "nccl", order,
               {"send", "recv", "reduce_scatter", "kernel", "matmul"})
        yield (f"ranks of one card: {order}", ofStreams,
               "--dp=2 --pp=2 --micro-batches=4", "local", order,
               {"send", "recv", "all_reduce", "kernel"})
    for comm in "local", "nccl":
        yield (f"exchanges that are awaited later: {comm}", ofStreams,
               AWAITED[0], comm, "random:2", {"all_reduce", "wait"}, AWAITED[1])
    yield "steps that are seen late", stepsThatAreSeenLate
    yield "exchanges beside computing", overlap
    yield "a processor", ofOneStream
