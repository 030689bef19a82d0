# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled plans: the same bits as from the text, refused when not sound."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np

from cases import MODELS, ROOT, Failed, run, scratch, tool
from _training import DIGITS, FC_NET, GPT, axrun, compiled, losses

LAYOUTS = ["--tp=1", "--tp=2", "--pp=2 --tp=2"]


def both(folder, *command):
    """The plan as text and compiled."""
    text, code = Path(folder) / "plan.mlir", Path(folder) / "plan.axc"
    run(tool("axopt"), *command, "--quiet", "-o", text)
    run(tool("axopt"), *command, "--quiet", "--compile", "-o", code)
    return text, code


def sameOutputs(model, layout):
    with scratch() as folder:
        results = []
        for plan in both(folder, model / "model.onnx", "--test-data",
                         model / "test_data_set_0", *layout.split()):
            axrun(plan, "--test-data", model / "test_data_set_0", "--output",
                  f"{plan}.npz")
            results.append(np.load(f"{plan}.npz"))
        for name in results[0].files:
            np.testing.assert_array_equal(results[0][name], results[1][name])


def withoutCompiler():
    """axrun-core gives the same bits, of compiled plans only."""
    with scratch() as folder:
        model = MODELS / "bert_sdpa_ts20_dyn"
        data = model / "test_data_set_0"
        text, code = both(folder, model / "model.onnx", "--test-data", data,
                          "--tp=2")
        core = tool("axrun-core")
        results = []
        for program, plan in (tool("axrun"), text), (core, code):
            run(program, plan, "--random-inputs=1", "--output",
                f"{Path(program).name}.npz", cwd=folder)
            results.append(np.load(f"{folder}/{Path(program).name}.npz"))
        for name in results[0].files:
            np.testing.assert_array_equal(results[0][name], results[1][name])
        for command, code, says in [
                ([text, "--random-inputs=1"], 4,
                 f"'{text}' is no compiled plan (.axc), and there is no "
                 "compiler here: axopt --compile makes one"),
                (["none.mlir", "--random-inputs=1"], 7,
                 "cannot open 'none.mlir'"),
                ([code, "--test-data", data], 2,
                 "--test-data needs ONNX's library, which is not here: give "
                 "--inputs=FILE.npz and --expect=FILE.npz")]:
            done = run(core, *command, expect=code)
            if f"axrun-core: error: {says}" not in done.stderr:
                raise Failed(f"expected: {says}\ngot: {done.stderr}")
        told = run(core, "--help-all").stdout
        for flag in "--test-data", "--dump-after", "--cache-dir":
            if flag in told:
                raise Failed(f"{flag} is refused, and offered:\n{told}")
        if "axrun-core plan.axc --input" not in told or ".mlir" in told:
            raise Failed(f"examples of what it does not take:\n{told}")


def sameTraining():
    """Steps, evaluation, checkpoints and what goes on with them."""
    with scratch() as folder:
        logs = []
        command = [FC_NET, "--shape=input=32x64", "--train",
                   "--loss=cross_entropy(logits,labels)", "--dp=2", "--zero=2"]
        text, code = both(folder, *command)
        data = ["--data", DIGITS / "train.npz", "--eval", DIGITS / "test.npz"]
        for first, second in (text, text), (code, code), (text, code):
            # The first part of a run needs no compiler.
            program = tool("axrun-core" if first == code else "axrun")
            save, log = f"{folder}/run{len(logs)}", f"{folder}/{len(logs)}.jsonl"
            run(program, first, *data, "--steps=4", "--save", save, "--quiet",
                "--log", log)
            axrun(second, *data, "--steps=8", "--resume", save, "--quiet",
                  "--log", log)
            logs.append(losses(log))
            axrun(second, "--eval", DIGITS / "test.npz", "--weights", save)
        assert len(logs[0]) == 8 and logs[0] == logs[1] == logs[2], logs


def elsewhere():
    """It finds its model's files from another folder, and can be moved with
    them."""
    with scratch() as folder:
        model = Path(folder) / "there" / "model.onnx"
        shutil.copytree(MODELS / "mlp_eager_ts13_dyn", model.parent)
        here = Path(folder) / "here"
        here.mkdir()
        run(tool("axopt"), model, "--dim=batch=4", "--compile", "--quiet", "-o",
            here / "plan.axc")
        axrun("plan.axc", "--random-inputs=1", cwd=here)
        for file in model.parent.iterdir():
            if file.is_file():
                shutil.move(file, here)
        axrun("plan.axc", "--random-inputs=1", cwd=here)
        # From a plan as text, in the same folder.
        run(tool("axopt"), here / "model.onnx", "--dim=batch=4", "--quiet",
            "-o", here / "plan.mlir")
        run(tool("axopt"), here / "plan.mlir", "--compile", "-o",
            here / "again.axc")
        axrun(here / "again.axc", "--random-inputs=1")


def embedded():
    """One file is enough, at any place and under any name; what is wrong with
    any byte of its weights is said."""
    with scratch() as folder:
        folder = Path(folder)
        model = folder / "model.onnx"
        shutil.copytree(MODELS / "mlp_eager_ts13_dyn", folder / "model")
        shutil.move(folder / "model" / "model.onnx", model)
        for file in (folder / "model").iterdir():
            if file.is_file():
                shutil.move(file, folder)
        flags = [model, "--dim=batch=4", "--tp=2", "--quiet"]
        run(tool("axopt"), *flags, "-o", folder / "plan.mlir")
        run(tool("axopt"), *flags, "--compile", "--embed-weights", "-o",
            folder / "plan.axc")
        axrun(folder / "plan.mlir", "--random-inputs=1", "--output",
              folder / "text.npz")
        alone = folder / "alone"
        alone.mkdir()
        shutil.move(folder / "plan.axc", alone / "other.axc")
        shutil.rmtree(folder / "model")
        model.unlink()
        (folder / "link.axc").symlink_to(alone / "other.axc")
        wanted = np.load(folder / "text.npz")
        for plan in alone / "other.axc", folder / "link.axc":
            run(tool("axrun-core"), plan, "--random-inputs=1", "--output",
                folder / "alone.npz")
            got = np.load(folder / "alone.npz")
            for name in wanted.files:
                np.testing.assert_array_equal(got[name], wanted[name])
        plan = alone / "other.axc"
        done = axrun(plan, "--random-inputs=1", "--model-dir", alone, expect=2)
        assert "has its weights itself: --model-dir has no use" in done.stderr
        whole = bytearray(plan.read_bytes())
        says = f"compiled plan '{plan}' is damaged: its weights are not those"
        for place in len(whole) - 1, len(whole) - 5000, len(whole) * 3 // 4:
            whole[place] ^= 1
            plan.write_bytes(whole)
            axrun(plan, "--random-inputs=1", expect=5, says=says)
            whole[place] ^= 1
        for bytes_ in whole[:-1], whole + b"\0":
            plan.write_bytes(bytes_)
            axrun(plan, "--random-inputs=1", expect=5, says=says)


def explained():
    with scratch() as folder:
        text, code = both(folder, GPT, "--dim=batch=2", "--tp=2")
        said = [run(tool("axopt"), plan, "--explain").stdout
                for plan in (text, code)]
        assert said[0] and said[0] == said[1], said


def schema():
    """CompiledPlan.proto knows every field."""
    if not shutil.which("protoc"):
        raise Failed("there is no protoc")
    with scratch() as folder:
        plan = compiled(folder, "--dp=2", "--pp=2", "--micro-batches=2")
        code = Path(folder) / "plan.axc"
        run(tool("axopt"), plan, "--compile", "--embed-weights", "-o", code)
        line, _, message = code.read_bytes().partition(b"\n")
        decoded = subprocess.run(
            ["protoc", f"-I{ROOT}/runtime/Program", "--decode=ax.CompiledPlan",
             "CompiledPlan.proto"], input=message, capture_output=True,
            check=True).stdout.decode()
        unknown = re.findall(r"^ *\d+[:{ ].*", decoded, re.M)
        if unknown or "is_mutable: true" not in decoded:
            raise Failed(f"fields without names: {unknown[:5]}")


def severalTargets():
    """Bits are those of the best alone; weights are there once."""
    with scratch() as folder:
        model = [MODELS / "convnet_eager_ts17_dyn" / "model.onnx",
                 "--dim=batch=2", "--compile", "--embed-weights", "--quiet"]
        results, sizes = [], []
        for number, targets in enumerate(["native", "x86-64,native,sm_80"]):
            plan = f"{folder}/{number}.axc"
            run(tool("axopt"), *model, f"--target={targets}", "-o", plan)
            run(tool("axrun-core"), plan, "--random-inputs=1", "--output",
                f"{folder}/{number}.npz")
            results.append(np.load(f"{folder}/{number}.npz"))
            line = Path(plan).read_bytes().split(b"\n", 1)[0]
            sizes.append(Path(plan).stat().st_size - int(line.split()[-1]))
        for name in results[0].files:
            np.testing.assert_array_equal(results[0][name], results[1][name])
        # What is behind the checked part is weights, but for less than 64 bytes
        # before them.
        assert sizes[0] > 1000 and abs(sizes[0] - sizes[1]) < 100, sizes


def targets():
    """A lower level runs here; a processor that has more is refused."""
    with scratch() as folder:
        model = [MODELS / "mlp_eager_ts13_dyn" / "model.onnx", "--dim=batch=4",
                 "--compile", "--quiet", "-o", f"{folder}/plan.axc"]
        run(tool("axopt"), *model, "--target=x86-64")
        axrun(f"{folder}/plan.axc", "--random-inputs=1")
        for flags, says in [
                (["--target=x86-64-v9"],
                 "--target=x86-64-v9: there is no target 'x86-64-v9', but "
                 "native, x86-64, x86-64-v2, x86-64-v3, x86-64-v4, sm_80, "
                 "sm_90, sm_100 (+cudnn: with cuDNN); did you mean "
                 "'x86-64-v2'?"),
                (["--target=x86-64,sm_9"],
                 "--target=sm_9: there is no target 'sm_9', but native"),
                (["--target=x86-64,"], "--target=: there is no target ''"),
                (["--target=sm_80,x86-64,sm_80"],
                 "--target has 'sm_80' twice"),
                (["--target=x86-64", "--target=x86-64"],
                 "--target has 'x86-64' twice"),
                (["--output=-"], "--compile makes a file that ends in .axc"),
                ([f"--output={folder}/plan.mlir"],
                 "--compile makes a file that ends in .axc: -o model.axc")]:
            arguments = model if "--target" in flags[0] else model[:-2]
            done = run(tool("axopt"), *arguments, *flags, expect=2)
            if says not in done.stderr:
                raise Failed(done.stderr)
        for name, flag in ("p.axc", "--compile"), ("p.onnx", "--export-onnx"):
            done = run(tool("axopt"), *model[:2], "-o", f"{folder}/{name}",
                       expect=2)
            if "a plan's text has no such name; " + flag not in done.stderr:
                raise Failed(done.stderr)


def outputs():
    """The plan's text is not overwritten by what is made of it."""
    with scratch() as folder:
        folder = Path(folder)
        text, code = both(folder, MODELS / "mlp_eager_ts13_dyn" / "model.onnx",
                          "--dim=batch=4")
        (folder / "link.axc").symlink_to(text)
        before = text.read_text()
        run(tool("axopt"), text, "--compile", "-o", folder / "link.axc",
            expect=2)
        assert text.read_text() == before
        # A cache costs time, not results.
        done = run(tool("axopt"), text, "--compile", "-o", code, "--quiet",
                   env=os.environ | {"AXOPT_CACHE": "/proc/none"})
        assert "kernels are not cached" in done.stderr, done.stderr


def onlyByName():
    """What is code is run only where its name says so."""
    with scratch() as folder:
        text, code = both(folder, MODELS / "mlp_eager_ts13_dyn" / "model.onnx",
                          "--dim=batch=4")
        shutil.copy(code, text)
        axrun(text, "--random-inputs=1", expect=5,
              says=f"'{text}' is a compiled plan, which is code: it is run "
              "only under a name that ends in .axc")
        shutil.copy(MODELS / "mlp_eager_ts13_dyn" / "model.onnx", code)
        axrun(code, "--random-inputs=1", expect=5,
              says=f"compiled plan '{code}' is none: it does not begin like "
              "one")


def usage():
    with scratch() as folder:
        text, code = both(folder, MODELS / "mlp_eager_ts13_dyn" / "model.onnx",
                          "--dim=batch=4")
        axopt = tool("axopt")
        for command, says in [
                ([axopt, code], "is a compiled plan: --explain tells of it, "
                                "axrun runs it"),
                ([axopt, code, "--inspect"],
                 "--inspect is for models: --explain tells of the compiled "
                 f"plan '{code}'"),
                ([axopt, code, "--explain", "--report=r.json"],
                 "--report is for models and plans as text"),
                ([axopt, text, "--target=native"],
                 "--target is for --compile"),
                ([axopt, text, "--embed-weights"],
                 "--embed-weights is for --compile"),
                *(([tool("axrun"), code, "--random-inputs=1", flag],
                   "is compiled: --cache-dir, --dump-after, --mlir-timing, "
                   "--separate-kernels and --target are for plans as text")
                  for flag in ("--separate-kernels", "--dump-after=fuse",
                               "--mlir-timing", "--cache-dir=c"))]:
            done = run(*command, expect=2)
            if says not in done.stderr:
                raise Failed(f"expected: {says}\ngot: {done.stderr}")


def cases(every):
    for name in "mlp_eager_ts13_dyn", "cnn", "gpt":
        for model in sorted(MODELS.glob(f"{name}*"))[:1]:
            for layout in LAYOUTS:
                yield f"{model.name} {layout}", sameOutputs, model, layout
    yield "without compiler", withoutCompiler
    yield "training", sameTraining
    yield "elsewhere", elsewhere
    yield "embedded weights", embedded
    yield "explained", explained
    yield "schema", schema
    yield "targets", targets
    yield "several targets", severalTargets
    yield "outputs", outputs
    yield "only by name", onlyByName
    yield "usage", usage
