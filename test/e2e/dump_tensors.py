# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""axopt --dump-tensors: intermediate values of any layout, beside onnxruntime's,
which gets them as outputs of the model."""
from pathlib import Path

from _training import DIGITS, FC_NET, LOSS
from cases import MODELS, Failed, run, scratch, tool

import numpy as np
import onnx
import onnxruntime

CONVNET, GPT = (MODELS / f"{name}_eager_ts17_dyn" for name in ("convnet", "gpt2"))

# Values in the middle of what is fused, split or added up by ranks; patterns
# over values, nodes and modules.
DUMPED = {
    CONVNET: ["*/Conv*_output_0", "*Relu*", "*Pool*"],
    GPT: ["/m/transformer/h.0/attn/*", "*ln_2/LayerNormalization*",
          "*/c_fc/Gemm_output_0", "*/mlp/act/Mul_3", "/m/transformer/h.?/Add_1"],
}
LAYOUTS = ["", "--tp=2", "--tp=2 --pp=2 --micro-batches=2", "--dp=2",
           "--tp=2x1x2 --dp=2"]


def reference(folder, names):
    """What onnxruntime makes of these values, inputs being the test data."""
    model = onnx.load(folder / "model.onnx")
    data = folder / "test_data_set_0"
    feeds = {value.name: onnx.numpy_helper.to_array(
        onnx.load_tensor(data / f"input_{i}.pb"))
        for i, value in enumerate(model.graph.input)}
    known = {output.name for output in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name)
                              for name in names if name not in known)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return dict(zip(names, session.run(names, feeds)))


def compare(got, wanted, what):
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        raise Failed(f"{what}: {got.dtype}{got.shape}, expected "
                     f"{wanted.dtype}{wanted.shape}")
    if not np.allclose(got, wanted, rtol=1e-3, atol=1e-4):
        raise Failed(f"{what}: off by {np.abs(got - wanted).max()}")


def compiled(folder, model, patterns, *flags):
    plan = f"{folder}/plan.mlir"
    dumps = [word for pattern in patterns
             for word in ("--dump-tensors", pattern)]
    run(tool("axopt"), model, *dumps, *flags, "--quiet", "-o", plan)
    return plan


def dumped(model, layout, patterns=None, least=4):
    with scratch() as folder:
        plan = compiled(folder, model / "model.onnx",
                        patterns or DUMPED[model], "--test-data", model,
                        *layout.split())
        run(tool("axrun"), plan, "--test-data", model, "--output",
            f"{folder}/all.npz")
        got = dict(np.load(f"{folder}/all.npz"))
        if len(got) < least:
            raise Failed(f"only {list(got)}")
        wanted = reference(model, list(got))
        for name, value in got.items():
            compare(value, wanted[name], name)
        if patterns:
            return
        # A file each, of which few are open at a time.
        run("bash", "-c", 'ulimit -n 24; exec "$@"', "bash", tool("axrun"),
            plan, "--test-data", model, "--output", f"{folder}/each")
        files = {name.replace("/", "_") + ".npy" for name in got}
        there = {file.name for file in Path(f"{folder}/each").iterdir()}
        if files != there:
            raise Failed(f"{there}, expected {files}")


def predicted():
    """A plan that trains gives them in evaluation mode."""
    with scratch() as folder:
        plan = compiled(folder, FC_NET, ["*Gemm*", "/Add_1"], "--shape", "input=32x64",
                        "--train", LOSS)
        data = np.load(DIGITS / "test.npz")
        samples = {key: data[key][:50] for key in data}
        np.savez(f"{folder}/test.npz", **samples)
        run(tool("axrun"), plan, "--data", f"{folder}/test.npz", "--predict",
            f"{folder}/out.npz")
        got = dict(np.load(f"{folder}/out.npz"))
        model = onnx.load(FC_NET)
        names = [name for name in got
                 if name not in {output.name for output in model.graph.output}]
        if not names:
            raise Failed(str(list(got)))
        model.graph.output.extend(onnx.ValueInfoProto(name=name)
                                  for name in names)
        session = onnxruntime.InferenceSession(model.SerializeToString())
        wanted = session.run(names, {"input": samples["input"]})
        for name, value in zip(names, wanted):
            compare(got[name], value, name)


def known():
    """What the exporter computes of shapes is there before anything runs."""
    with scratch() as folder:
        done = run(tool("axopt"), GPT / "model.onnx", "--test-data", GPT,
                   "--dump-tensors", "/m/transformer/Unsqueeze*", "--quiet", "-o",
                   f"{folder}/plan.mlir")
        if "axopt: warning: --dump-tensors: '/m/transformer/" not in done.stderr \
                or "are no tensors, or known already: the plan does not give " \
                "them" not in done.stderr:
            raise Failed(done.stderr)


def expectedFolders():
    """What --output wrote to a folder is what --expect takes, of any names."""
    with scratch() as folder:
        plan = compiled(folder, CONVNET / "model.onnx", ["/f/f.1/Relu"],
                        "--dim=batch=4")
        values = Path(folder) / "values"
        command = [tool("axrun"), plan, "--random-inputs=1"]
        run(*command, "--output", f"{values}/")
        done = run(*command, "--expect", values)
        for file in values.iterdir():
            name = np.load(file)
            np.save(file, name + 1)
            run(*command, "--expect", f"{values}/", expect=1)
            np.save(file, name)
        if "not compared" in done.stderr or done.stderr.count("max") != 2:
            raise Failed(done.stderr)
        one, other = values.iterdir()
        one.unlink()
        done = run(*command, "--expect", values)
        if "note: not compared:" not in done.stderr:
            raise Failed(done.stderr)
        # Read before it is written.
        done = run(*command, "--expect", values, "--output", values, expect=2)
        if f"would destroy '{other}'" not in done.stderr:
            raise Failed(done.stderr)
        other.unlink()
        done = run(*command, "--expect", values, expect=6)
        if "there is nothing in it to compare with: .npy files of the " \
                "outputs' names, or arrays of an .npz" not in done.stderr:
            raise Failed(done.stderr)


def refused():
    def refuse(pattern, says):
        done = run(tool("axopt"), CONVNET / "model.onnx", "--dim=batch=4",
                   "--dump-tensors", pattern, "-o", "/dev/null", expect=2)
        if says not in done.stderr:
            raise Failed(f"expected: {says}\ngot: {done.stderr}")

    refuse("*Rely*", "--dump-tensors=*Rely*: no value, node or module has such "
           "a name; there are '")
    refuse("[", "--dump-tensors=[: ")
    with scratch() as folder:
        plan = compiled(folder, CONVNET / "model.onnx", ["/f/f.1/Relu"],
                        "--dim=batch=4")
        done = run(tool("axrun"), plan, "--random-inputs=1", "--expect=y.npy",
                   expect=6)
        if "--expect=y.npy: the plan has 2 outputs, and only an .npz or a " \
                "folder can name them" not in done.stderr:
            raise Failed(done.stderr)
        done = run(tool("axopt"), plan, "--dump-tensors=*", expect=2)
        if "--dump-tensors is for models" not in done.stderr:
            raise Failed(done.stderr)


def cases(every):
    for model in DUMPED:
        for layout in LAYOUTS:
            yield f"{model.name} {layout}", dumped, model, layout
    # All that there is.
    for folder in sorted(MODELS.iterdir()) if every else [CONVNET, GPT]:
        if folder.name != "minilm":  # Its weights are elsewhere.
            for layout in ("--tp=2",) + (("", "--dp=2") if every else ()):
                yield f"all of {folder.name} {layout}", dumped, folder, layout, ["*"]
    yield "known", known
    yield "predicted", predicted
    yield "expected folders", expectedFolders
    yield "refused", refused
