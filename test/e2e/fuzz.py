"""Every fuzz target for some seconds, over what lies in test/fuzz/TARGET and
what its line here adds. Targets: *Fuzzer in the build's test/fuzz, and those
that have a corpus."""
import os
from pathlib import Path

from cases import Failed, run, scratch

ROOT = Path(__file__).parents[2]
TARGETS = Path(os.environ["AX_BIN"]).parent / "test/fuzz"
CORPUS = {
    "ImportFuzzer": lambda: (ROOT / "test/models").glob("*/model.onnx"),
}
SMALL = 200_000


def fuzz(target, seconds):
    if not target.exists():
        raise Failed(f"{target} is not built: ninja tests")
    corpus = list((ROOT / "test/fuzz" / target.name).glob("*"))
    corpus += [file for file in CORPUS.get(target.name, lambda: [])()
               if file.stat().st_size < SMALL]
    with scratch() as folder:
        try:
            run(target, f"-max_total_time={seconds}", "-timeout=20",
                f"-artifact_prefix={folder}/", *corpus,
                timeout=seconds + 120, cwd=folder)
        except Failed as failure:
            culprits = list(Path(folder).iterdir())
            kept = [target.with_name(f"{target.name}-{c.name}")
                    for c in culprits]
            for culprit, copy in zip(culprits, kept):
                copy.write_bytes(culprit.read_bytes())
            raise Failed(f"{failure}\ninput: {', '.join(map(str, kept))}")


def cases(every):
    names = {path.name for folder in (TARGETS, ROOT / "test/fuzz")
             for path in folder.glob("*Fuzzer")}
    for name in sorted(names | CORPUS.keys()):
        yield name, fuzz, TARGETS / name, 300 if every else 8
