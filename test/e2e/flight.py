# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Flight records: when axrun writes them, and what ax-analyze-flight says."""
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, save

from _training import DIGITS, compiled
from cases import Failed, run, scratch, tool


def analyzed(folder, *says, expect=0):
    done = run(tool("ax-analyze-flight"), folder, expect=expect)
    text = done.stdout + done.stderr
    for part in says:
        if part not in text:
            raise Failed(f"expected: {part}\ngot: {text}")
    return text


def read(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def hangs():
    """The first stage takes longer than the timeout, and the second waits."""
    with scratch() as folder:
        size = 6144
        value = helper.make_tensor_value_info
        shape = [size, size]
        save(helper.make_model(helper.make_graph(
            [helper.make_node("Transpose", ["x"], ["t"], "turn", perm=[1, 0]),
             helper.make_node("MatMul", ["x", "t"], ["p"], "product"),
             helper.make_node("Tanh", ["p"], ["y"], "tanh")], "model",
            [value("x", TensorProto.FLOAT, shape)],
            [value("y", TensorProto.FLOAT, shape)]),
            opset_imports=[helper.make_opsetid("", 20)], ir_version=9),
            f"{folder}/model.onnx")
        np.save(f"{folder}/x.npy", np.ones(shape, np.float32))
        plan = f"{folder}/plan.mlir"
        run(tool("axopt"), f"{folder}/model.onnx", "--pp=2", "--quiet", "-o", plan)
        done = run(tool("axrun"), plan, "--input", f"x={folder}/x.npy",
                   "--timeout=0.3", "--flight-recorder", f"{folder}/a/b",
                   expect=8)
        for part in ("no rank got on for 300 ms; meanwhile",
                     f"; what ranks did last is in '{folder}/a/b': "
                     "ax-analyze-flight reads it"):
            if done.stderr.count(part) != 1:
                raise Failed(f"expected: {part}\ngot: {done.stderr}")
        assert sorted(os.listdir(f"{folder}/a/b")) == \
            ["rank-0.jsonl", "rank-1.jsonl"]
        analyzed(f"{folder}/a/b", "records of 2 of 2 ranks",
                 "rank 0 fell out: rank 1 waits for it",
                 "it has not come to number 0 of transfer '",
                 "then it was at: rank 0, stage '",
                 "rank 1 waits for rank 0, since 0.",
                 "ranks agree on order and shape")


def notFinite():
    with scratch() as folder:
        plan = compiled(folder, "--tp=2", "--optimizer=sgd(lr=1e30)")
        done = run(tool("axrun"), plan, "--data", DIGITS / "train.npz",
                   "--steps=20", "--flight-recorder", f"{folder}/records",
                   expect=9)
        for part in ("is no finite number",
                     f"; what ranks did last is in '{folder}/records'"):
            if done.stderr.count(part) != 1:
                raise Failed(f"expected: {part}\ngot: {done.stderr}")
        header, *lines = read(f"{folder}/records/rank-1.jsonl")
        assert header["is_failure"] and "is no finite" in header["reason"]
        events = [line for line in lines if "event" in line]
        assert events and all(event["finished"] for event in events), events
        analyzed(f"{folder}/records", "ranks 0 and 1, failed: the ",
                 "no rank fell out: none waits for another")


def onRequest():
    """SIGUSR2 has them written, again and again, and the run goes on."""
    with scratch() as folder:
        log, records = Path(folder) / "log", Path(folder) / "records"
        process = subprocess.Popen(
            [tool("axrun"), compiled(folder, "--tp=2", "--dp=2"), "--data",
             DIGITS / "train.npz", "--log", log, "--steps=1000000", "--quiet",
             "--flight-recorder", records],
            stderr=subprocess.PIPE, text=True)

        def steps():
            return log.read_text().count("\n") if log.exists() else 0

        def awaits(condition):
            for _ in range(2400):
                if condition():
                    return
                assert process.poll() is None, process.communicate()
                time.sleep(0.05)
            raise Failed("nothing happens")

        try:
            events = []
            for _ in range(2):
                before = steps()
                awaits(lambda: steps() > before + 400)
                for file in records.iterdir():
                    file.unlink()
                process.send_signal(signal.SIGUSR2)
                awaits(lambda: len([name for name in os.listdir(records)
                                    if name.endswith(".jsonl")]) == 4)
                header, *lines = read(records / "rank-3.jsonl")
                assert header["rank"] == 3 and header["reason"] == "SIGUSR2"
                new = [line["event"] for line in lines if "event" in line]
                assert len(new) in (999, 1000), len(new)
                assert not events or new[0] > events[0]
                events = new
                text = analyzed(records, "records of 4 of 4 ranks",
                                "ranks 0, 1, 2 and 3, asked by: SIGUSR2",
                                "ranks agree on order and shape")
                assert "fell out: rank" not in text, text
            before = steps()
            awaits(lambda: steps() > before)
            process.send_signal(signal.SIGINT)
            text = process.communicate(timeout=120)[1]
        finally:
            process.kill()
        assert process.returncode == 130 and "warning: no flight" not in text, \
            text


def nobodyKeeps():
    """SIGUSR2 where no records are asked for: the run goes on, too."""
    with scratch() as folder:
        log = Path(folder) / "log"
        process = subprocess.Popen(
            [tool("axrun"), compiled(folder), "--data", DIGITS / "train.npz",
             "--log", log, "--steps=1000000", "--quiet"],
            stderr=subprocess.PIPE, text=True)
        try:
            for number in signal.SIGUSR2, signal.SIGINT:
                before = log.read_text().count("\n") if log.exists() else 0
                while not log.exists() or log.read_text().count("\n") <= before:
                    assert process.poll() is None, process.communicate()
                    time.sleep(0.01)
                process.send_signal(number)
            process.communicate(timeout=120)
        finally:
            process.kill()
        assert process.returncode == 130, process.returncode


def refusesFolders():
    with scratch() as folder:
        plan = compiled(folder)
        (Path(folder) / "file").write_text("")
        for to, says in (
                (f"{folder}/file/records", "cannot make '{}' for flight records: "),
                (f"{folder}/file", "flight records in '{}': cannot write '")):
            done = run(tool("axrun"), plan, "--data", DIGITS / "train.npz",
                       "--steps=1", "--flight-recorder", to, expect=7)
            if done.stderr.count("\n") != 1 or \
                    says.format(to) not in done.stderr:
                raise Failed(done.stderr)


def header(rank, ranks, **fields):
    return {"flight_record": 1, "rank": rank, "num_ranks": ranks, "run": "7",
            "host": "a", "process": 0, "is_failure": True,
            "reason": "no rank got on", "doing": f"rank {rank}, 'softmax'",
            "taken": 90_000_000, "stopped": 0, "stopped_until": None} | fields


def group(number, ranks, started, finished=None, **fields):
    return {"group": number, "name": "{col}", "is_transfer": False,
            "ranks": ranks, "started": started,
            "finished": started if finished is None else finished} | fields


def event(sequence, finished=True, **fields):
    at = 1_000_000 * sequence
    return {"event": sequence, "in_group": 0, "sequence": sequence,
            "name": f"h.{sequence}", "kind": "all_reduce",
            "what": "all_reduce 16 f32", "bytes": 64, "nodes": ["n"],
            "program": "main", "stage": "f", "micro_batch": 0, "started": at,
            "waited": at + 1, "finished": at + 2 if finished else None} | fields


def write(folder, rank, *lines):
    Path(folder, f"rank-{rank}.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines))


def fallenOut():
    """By way of a rank that waits itself; then with no record at all."""
    with scratch() as folder:
        write(folder, 0, header(0, 3), group(0, [0, 1], 43, 42),
              event(41), event(42, False))
        write(folder, 1, header(1, 3), group(0, [0, 1], 42),
              group(1, [1, 2], 8, 7, name="{row}"), event(41),
              event(7, False, in_group=1, waited=50_000_000))
        write(folder, 2, header(2, 3), group(0, [1, 2], 7, name="{row}"),
              event(6))
        text = analyzed(
            folder, "records of 3 of 3 ranks",
            "ranks 0, 1 and 2, failed: no rank got on",
            "rank 2 fell out: rank 1 waits for it",
            "it has not come to number 7 of group {row} of ranks 1 and 2: 'h.7' "
            "(all_reduce 16 f32, 64 bytes, micro-batch 0, node n)",
            "finished, 84.000 s before its record, is number 6 of group {row}",
            "then it was at: rank 2, 'softmax'",
            "rank 0 waits for rank 1, since 48.000 s, in number 42 of group {col}",
            "rank 1 waits for rank 2, since 40.000 s, in number 7 of group {row}",
            "ranks agree on order and shape")
        assert text.count("fell out") == 1, text
        os.remove(f"{folder}/rank-2.jsonl")
        analyzed(folder, "records of 2 of 3 ranks", "no record of rank 2",
                 "rank 2 fell out: rank 1 waits for it",
                 "it left no record: its process has ended, is stopped, or could not "
                 "write")


def allCame():
    with scratch() as folder:
        for rank in range(2):
            write(folder, rank, header(rank, 2), group(0, [0, 1], 2, 1),
                  event(0), event(1, False))
        analyzed(folder, "no rank fell out that records tell of: all have come to "
                 "what they wait in, where one was stopped or has lost its "
                 "connection",
                 "rank 0 waits for the end, as all have come, since 89.000 s",
                 "ranks agree on order and shape")


def stoppedInside():
    """In an exchange to which all had come, and that the others have left."""
    with scratch() as folder:
        write(folder, 0, header(0, 2), group(0, [0, 1], 3, 2), event(1),
              event(2, False, waited=10_000_000))
        write(folder, 1, header(1, 2), group(0, [0, 1], 2, 1), event(0),
              event(1, False, waited=10_000_000))
        analyzed(folder, "rank 1 fell out: rank 0 waits for it",
                 "it has not come to number 2",
                 "rank 1 waits for the end, as all have come")


def wasStopped():
    """In an exchange to which all had come, and in which all wait."""
    with scratch() as folder:
        for rank in range(3):
            fields = {"stopped": 3_120_000, "stopped_until": 89_000_000} \
                if rank == 1 else {}
            write(folder, rank, header(rank, 3, **fields),
                  group(0, [0, 1, 2], 2, 1), event(0), event(1, False))
        text = analyzed(
            folder, "rank 1 fell out: its process was stopped for 3.120 s, in number "
            "1 of group {col} of ranks 0, 1 and 2: 'h.1' (all_reduce 16 f32",
            "rank 0 waits for the end, as all have come")
        assert text.count("fell out") == 1, text
        # Before that exchange; or all of them, with their machine.
        write(folder, 1, header(1, 3, stopped=3_120_000, stopped_until=900_000),
              group(0, [0, 1, 2], 2, 1), event(0), event(1, False))
        analyzed(folder, "no rank fell out that records tell of")
        for rank in range(3):
            write(folder, rank, header(rank, 3, stopped=3_120_000,
                                       stopped_until=89_000_000),
                  group(0, [0, 1, 2], 2, 1), event(0), event(1, False))
        analyzed(folder, "no rank fell out that records tell of")


def doesNotWait():
    """One has begun, and computes or hangs before it waits."""
    with scratch() as folder:
        for rank in range(3):
            fields = {"waited": None} if rank == 2 else {}
            write(folder, rank, header(rank, 3), group(0, [0, 1, 2], 2, 1),
                  event(0), event(1, False, **fields))
        text = analyzed(
            folder, "rank 2 fell out: it has begun what others wait in, and does "
            "not wait for its end, in number 1 of group {col}",
            "rank 0 waits for the end, as all have come")
        assert text.count("fell out") == 1, text


def cameLate():
    """One that was stopped, and went on when all was over."""
    with scratch() as folder:
        for rank, sequence, at in (0, 1, 70_000_000), (1, 2, 89_500_000):
            write(folder, rank, header(rank, 2),
                  group(0, [0, 1], sequence + 1, sequence), event(0),
                  event(sequence, False, waited=at))
        late = "rank 1 fell out for 19.500 s: so long after all others it began to wait"
        text = analyzed(folder, late, "rank 0 waits for the end, as all have come")
        assert "stopped" not in text, text
        # Its own record says why.
        write(folder, 1, header(1, 2, stopped=19_300_000, stopped_until=89_400_000),
              group(0, [0, 1], 3, 2), event(0),
              event(2, False, started=89_450_000, waited=89_500_000))
        analyzed(folder, late, "its process was stopped for 19.300 s, until 0.600 s "
                 "before its record")


def disagree(what, *fields):
    with scratch() as folder:
        for rank in range(2):
            write(folder, rank, header(rank, 2), group(0, [0, 1], 4), event(1),
                  event(2, **fields[rank]), event(3, **fields[rank]))
        text = analyzed(
            folder, f"ranks disagree on the {what}: number 2 of group {{col}} of "
            "ranks 0 and 1 is on rank 0 'h.2' (all_reduce 16 f32, 64 bytes",
            ", and on rank 1 '")
        assert text.count("disagree") == 1 and "agree on order" not in text, text


def transfers():
    """Their two ends have names of their own; sizes have to agree."""
    with scratch() as folder:
        for size, says in (64, "ranks agree on order"), \
                (32, "ranks disagree on the shape: number 5 of transfer 'main: "
                     "x' from rank 0 to rank 1"):
            for rank in range(2):
                fields = {"name": "main: x", "is_transfer": True}
                write(folder, rank, header(rank, 2),
                      group(0, [0, 1], 6, **fields),
                      event(5, name=f"x{rank}", kind="receive" if rank else "send",
                            what=f"{rank}", bytes=64 if rank else size))
            analyzed(folder, "no rank fell out: none waits for another", says)


def otherRuns():
    with scratch() as folder:
        write(folder, 0, header(0, 3), group(0, [0, 1, 2], 3, 2), event(2, False))
        write(folder, 1, header(1, 3, run="6", taken=8), group(0, [0, 1, 2], 9))
        write(folder, 2, header(2, 3, is_failure=False), group(0, [0, 1, 2], 9))
        text = analyzed(
            folder, "the record of rank 1 is of another run, and left out",
            "the record of rank 2 is of before the failure, and left out",
            "no record of ranks 1 and 2", "rank 1 fell out: rank 0 waits for it")
        assert "rank 2 fell out" in text, text


def damage():
    """One warning a file that is no record, and one error if none is."""
    with scratch() as folder:
        good = "".join(json.dumps(line) + "\n" for line in (
            header(0, 1), group(0, [0], 2), event(0), event(1)))
        file = Path(folder) / "rank-0.jsonl"
        lines = good.splitlines(keepends=True)

        def replaced(line, **fields):
            changed = json.dumps(json.loads(lines[line]) | fields) + "\n"
            return "".join(lines[:line] + [changed] + lines[line + 1:])

        bad = [("", "it has no whole line"), ("{", "it has no whole line"),
               (good[:10], "it has no whole line"), ("no\n", "line 1: "),
               ("\0" * 99 + "\n", "line 1: "), (b"\xff\xfe\n", "line 1: "),
               ("[1, 2]\n", "line 1: it is no JSON object"),
               (lines[0] + "null\n", "line 2: it is no JSON object"),
               ("[" * 1_000_000 + "\n", "its brackets are deeper than those of "
                "any record"),
               ('{"a":' * 100_000 + "\n", "line 1: its brackets are deeper"),
               ("x" * (1 << 21) + "\n", "it is longer than any line of a record"),
               (lines[0] + lines[2], "no such 'in_group' is in a record")]
        for line, field, value in (
                (0, "flight_record", 2), (0, "rank", 1), (0, "rank", "0"),
                (0, "num_ranks", 0), (0, "num_ranks", 1 << 40), (0, "taken", -1),
                (0, "taken", 1e300), (0, "stopped", "1"),
                (0, "stopped_until", -1), (0, "reason", None), (1, "ranks", []),
                (1, "ranks", [0, 0]), (1, "ranks", [1]), (1, "ranks", [0, -1]),
                (1, "ranks", [0, 9]), (1, "ranks", 0), (1, "finished", 9),
                (1, "group", 1), (2, "in_group", 1), (2, "in_group", -1),
                (2, "sequence", (1 << 63) - 1), (2, "sequence", -1),
                (2, "bytes", "1"), (2, "nodes", [1]), (3, "started", "now")):
            bad.append((replaced(line, **{field: value}),
                        f"line {line + 1}: no such '{field}' is in a record"))
        bad.append((replaced(1, is_transfer=True), "no such 'ranks'"))
        for text, says in bad:
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
            done = run(tool("ax-analyze-flight"), folder, expect=6)
            warning, error = done.stderr.splitlines()
            if f"warning: '{file}' is no flight record: " not in warning or \
                    says not in warning or len(warning) > 500 or done.stdout or \
                    "has no flight record that is whole" not in error:
                raise Failed(f"{text[:99]!r}: {done.stdout}{done.stderr}")
        # Cut off in each place.
        for end in range(len(lines[0]), len(good), 7):
            file.write_text(good[:end])
            text = analyzed(folder, "no rank fell out")
            assert ("is cut off in line" in text) != good[:end].endswith("\n")
        with open(file, "w") as huge:
            huge.truncate(1 << 40)
        analyzed(folder, "it is larger than any record", expect=6)
        file.unlink()
        file.mkdir()
        analyzed(folder, "it is no regular file that can be read", expect=6)
        file.rmdir()
        analyzed(folder, "has no flight record (rank-N.jsonl), which axrun "
                 "--flight-recorder=DIR writes", expect=6)
        analyzed(f"{folder}/none", f"cannot read the folder '{folder}/none'",
                 expect=7)
        # What is in it does not get to the terminal as it is.
        file.write_text(replaced(0, reason="\x1b[31m\r\nwhy"))
        text = analyzed(folder, "failed: ?[31m??why")
        assert "\x1b" not in text


def cases(every):
    yield "a stage hangs", hangs
    yield "a loss that is no number", notFinite
    yield "SIGUSR2", onRequest
    yield "SIGUSR2 that nobody keeps", nobodyKeeps
    yield "refuses folders", refusesFolders
    yield "a rank falls out", fallenOut
    yield "all have come", allCame
    yield "a rank is stopped where all have come", stoppedInside
    yield "a rank's process was stopped", wasStopped
    yield "a rank does not wait", doesNotWait
    yield "a rank came late", cameLate
    for what, *fields in (
            ("order", {}, {"name": "other"}), ("order", {}, {"kind": "all_gather"}),
            ("order", {}, {"micro_batch": 1}), ("shape", {}, {"bytes": 32}),
            ("shape", {}, {"what": "all_reduce 4x4 f32"})):
        yield f"ranks disagree on {what}: {fields[1]}", disagree, what, *fields
    yield "transfers", transfers
    yield "records of other runs", otherRuns
    yield "damage", damage
