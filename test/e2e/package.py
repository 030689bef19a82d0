# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The archive for a card, made for the simulated GPU: what is in it runs elsewhere,
with nothing in the environment."""
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

from cases import ROOT, Failed, run, scratch

BUILD = Path(os.environ["AX_BIN"]).parent
# One of each kind at least, of those that take little.
CASES = (r"^test (DeviceSuite|AttentionSuite.SizesOfOne|CardRates)$|"
         r"^outputs mlp_eager_ts13_dyn|^outputs Softmax$|^(training|resumed) fc_net$|"
         r"^captured fc_net( |$)|^repeats mlp_eager_ts13_dyn --tp=2$|"
         r"^profile (kernels|step --dp=2)$|^timed step --capture=on$|"
         r"^bench gpt2-latency$")
KINDS = {"test", "outputs", "training", "resumed", "captured", "repeats",
         "profile", "timed"}
ROW = re.compile(rf"^\| ((?:{'|'.join(KINDS)}) .*) \| (.*) \| (.*) \| (.*) \|$",
                 re.M)


def unpacked(folder):
    """The archive's folder, whose plans are nowhere else; a case's folder there
    by its name."""
    archive = Path(folder) / "card.tar.gz"
    run(sys.executable, ROOT / "test/card/package.py", BUILD, "--simulated",
        "--output", archive, "--cases", CASES, "-j1")
    (elsewhere := Path(folder) / "else where").mkdir()
    with tarfile.open(archive) as tar:
        tar.extractall(elsewhere)
    card = elsewhere / "card"
    rows = (line.split("\t") for line in
            (card / "cases.tsv").read_text().splitlines())
    return card, {row[1]: card / "cases" / row[2] for row in rows}


def report(card, *flags, expect=0):
    """The verdict and the worst difference of each case."""
    place = card.parent / ("report" + "".join(flags))
    run(card / "run", "--report", place, "--jobs", 2, *flags, expect=expect,
        env={})
    text = (place / "report.md").read_text()
    return {case: rest for case, *rest in ROW.findall(text)}, place


def allPasses(card, places):
    rows, folder = report(card)
    if set(rows) != set(places) or {row.split()[0] for row in rows} != KINDS:
        raise Failed(f"{sorted(rows)}, but the archive has {sorted(places)}")
    if any(verdict != "passed" for verdict, *_ in rows.values()):
        said = "".join(file.read_text() for file in folder.glob("said/*"))
        raise Failed(f"{rows}\n{said}")
    for case in "outputs mlp_eager_ts13_dyn", "training fc_net":
        if not 0 <= float(rows[case][1]) < 2e-5:
            raise Failed(str(rows))
    if "copy on the card" not in (folder / "rates.md").read_text() or \
            "glibc" not in (folder / "machine.txt").read_text():
        raise Failed("rates or the machine are not told")
    profile = (folder / "profile.md").read_text()
    for said in ("## profile kernels", "softmax", "## profile step --dp=2",
                 "all_reduce", "GB/s"):
        if said not in profile:
            raise Failed(f"no word of {said}:\n{profile}")


def benches(card):
    """Where there is no Python, they are axrun's alone."""
    said = run(card / "bench", "--rounds", 1, "--iterations", 1,
               env={"BENCH_PYTHON": "no-such-python"}).stdout
    if not re.search(r"^\| gpt2-latency \| \d+\.\d+ \| - \| - \| - \| - \| ", said,
                     re.M) or "PyTorch is not measured: " not in said:
        raise Failed(said)


def failuresAreTold(card, places):
    """Of a log in which one number is another, and of a plan that is cut off.
    All else passes with the glibc that comes along."""
    trained, split = "training fc_net", "outputs mlp_eager_ts13_dyn --tp=2"
    log = places[trained] / "log.csv"
    lines = [line.split(",") for line in log.read_text().splitlines()]
    column = lines[0].index("loss")
    lines[3][column] = str(1.01 * float(lines[3][column]))
    log.write_text("".join(",".join(line) + "\n" for line in lines))
    plan = places[split] / "plan.axc"
    plan.write_bytes(plan.read_bytes()[:-100])
    rows, folder = report(card, "--libc", "own", expect=1)
    for case, (verdict, *_) in rows.items():
        if (verdict == "passed") == (case in (trained, split)):
            raise Failed(f"{case}: {verdict}")
    if not 0.005 < float(rows[trained][1]) < 0.02:
        raise Failed(str(rows[trained]))
    said = (folder / "said" / f"{places[split].name}.txt").read_text()
    if "axrun-core: error: " not in said:
        raise Failed(f"what was said is lost: {said}")


def runs():
    with scratch() as folder:
        card, places = unpacked(folder)
        allPasses(card, places)
        benches(card)
        failuresAreTold(card, places)
        rows, _ = report(card, "--minutes", "0", expect=1)
        if set(rows) != set(places) or \
                any(verdict != "not run" for verdict, *_ in rows.values()):
            raise Failed(str(rows))


def usage():
    for script, *flags in ("run", "--minutes"), ("run", "--what"), \
            ("bench", "--minutes", "x"), ("bench", "--rounds"), ("bench", "--what"):
        done = subprocess.run([ROOT / "test/card" / script, *flags], text=True,
                              capture_output=True)
        if done.returncode != 2 or f"usage: {script}" not in done.stderr:
            raise Failed(f"{script} {flags}: {done.returncode}, {done.stderr}")


def cases(every):
    yield "runs", runs
    yield "usage", usage
