# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models as onnxruntime and its tools write them, on ranks: they are split where
exports of PyTorch are, and train the same weights."""
import json
import pathlib
import re
import shutil

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from _contrib import DOMAIN, byOnnxruntime, difference, ours
from cases import MODELS, Failed, run, scratch, tool
from models import LARGEST_DIFFERENCE, REPORT

LAYOUTS = "--tp=1", "--tp=2", "--dp=2 --tp=2"
FUSED = ("bert_eager_ts14_dyn", "convnet_eager_ts17_dyn",
         "fc_net_eager_ts17_dyn", "gpt2_eager_ts17_dyn", "llama_sdpa_ts17_dyn",
         "mlp_eager_ts13_dyn", "resnet_eager_ts17_dyn", "vit_eager_ts17_dyn")
COUNTED = ("all_reduce", "attention", "linear", "layer_norm", "rms_norm",
           "conv", "unary gelu", "unary gelu_tanh", "unary silu")


def counts(plan):
    """How often a plan has what matters in it."""
    text = pathlib.Path(plan).read_text()
    return {name: len(re.findall(rf"\bax\w*\.{name}\b", text))
            for name in COUNTED}


def optimized(model, path):
    """Saves a model as onnxruntime rewrites it for a CPU."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(path)
    options.graph_optimization_level = \
        onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    onnxruntime.InferenceSession(str(model), options, ["CPUExecutionProvider"])
    own = [node for node in onnx.load(path).graph.node
           if node.domain == DOMAIN or
           node.op_type == "SimplifiedLayerNormalization"]
    if not own:
        raise Failed(f"onnxruntime fuses nothing in {model}")


def parameters(model, data):
    done = run(tool("axopt"), model, "--test-data", data, "--inspect=json")
    return json.loads(done.stdout)["parameters"]


def fused(name):
    original, data = MODELS / name, MODELS / name / "test_data_set_0"
    with scratch() as folder:
        folder = pathlib.Path(folder)
        shutil.copytree(original, folder / "original")
        model, plan = folder / "model.onnx", folder / "plan.mlir"
        optimized(folder / "original" / "model.onnx", model)
        assert parameters(model, data) == parameters(
            original / "model.onnx", data)
        for layout in LAYOUTS:
            found = []
            for source in original / "model.onnx", model:
                run(tool("axopt"), source, "--test-data", data, "--quiet",
                    *layout.split(), "-o", plan)
                found.append(counts(plan))
            if found[0] != found[1]:
                raise Failed(f"{layout}: {found[1]}, not {found[0]}")
            done = run(tool("axrun"), plan, "--test-data", data)
            report = REPORT.findall(done.stderr)
            assert report, done.stderr
            for output, _, relative in report:
                assert float(relative) <= LARGEST_DIFFERENCE, (output, relative)


def losses(folder, model, data, *flags):
    """Of three steps."""
    plan, log = folder / "train.mlir", folder / "log"
    run(tool("axopt"), model, "--test-data", data, "--train", "--quiet",
        "--loss=mse(output,target)", "--optimizer=sgd(lr=0.5)", *flags,
        "-o", plan)
    log.unlink(missing_ok=True)
    run(tool("axrun"), plan, "--data", folder / "data.npz", "--steps=3",
        "--no-shuffle", "--log", log)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return np.array([line["loss"] for line in lines if "loss" in line])


def trains(name):
    """A fused model learns as the original does."""
    original, data = MODELS / name, MODELS / name / "test_data_set_0"
    with scratch() as folder:
        folder = pathlib.Path(folder)
        shutil.copytree(original, folder / "original")
        optimized(folder / "original" / "model.onnx", folder / "model.onnx")
        tensors = {}
        for path in data.glob("*.pb"):
            tensor = onnx.TensorProto.FromString(path.read_bytes())
            tensors[tensor.name] = numpy_helper.to_array(tensor)
        tensors["target"] = 0.1 * tensors.pop("output")
        np.savez(folder / "data.npz", **{
            key: np.concatenate([value] * 3) for key, value in tensors.items()})
        wanted = losses(folder, original / "model.onnx", data)
        assert len(wanted) == 3 and wanted[2] < wanted[0], wanted
        for layout in LAYOUTS[:2]:
            found = losses(folder, folder / "model.onnx", data, layout)
            assert np.allclose(found, wanted, rtol=1e-4), (found, wanted)


class Net:
    """A graph of operators of both domains."""

    def __init__(self):
        self.random = np.random.default_rng(0)
        self.graph = onnx.GraphProto(name="g")
        self.numbers = 0

    def weight(self, *shape, scale=None):
        values = self.random.standard_normal(shape).astype(np.float32)
        return self.constant(values * np.float32(scale or shape[0] ** -0.5))

    def constant(self, value, dtype=None):
        self.numbers += 1
        name = f"w{self.numbers}"
        self.graph.initializer.append(
            numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def input(self, name, type, shape):
        self.graph.input.append(
            helper.make_tensor_value_info(name, type, shape))
        return name

    def op(self, type, *inputs, outputs=1, domain="", **attributes):
        self.numbers += 1
        names = [f"v{self.numbers}_{i}" for i in range(outputs)]
        self.graph.node.append(helper.make_node(
            type, inputs, names, domain=domain, **attributes))
        return names if outputs > 1 else names[0]

    def own(self, type, *inputs, **attributes):
        return self.op(type, *inputs, domain=DOMAIN, **attributes)

    def skip(self, x, y, width):
        """The norm of x + y, and x + y. Outputs between have no names."""
        outputs = self.own(
            "SkipSimplifiedLayerNormalization", x, y, self.weight(width),
            outputs=4, epsilon=1e-5)
        self.graph.node[-1].output[1] = self.graph.node[-1].output[2] = ""
        return outputs[0], outputs[3]

    def few_bits(self, x, old, new, bits):
        """x w, where w has `bits` bits; 32: floats."""
        if bits == 32:
            return self.op("MatMul", x, self.weight(old, new))
        w = self.random.integers(0, 256, [new, old // 16, 2 * bits])
        scales = self.random.uniform(1, 2, [new, old // 16]) \
            / (2 ** bits * old ** 0.5)
        return self.own("MatMulNBits", x, self.constant(w, np.uint8),
                        self.constant(scales, np.float32), bits=bits, K=old,
                        N=new, block_size=16)

    def model(self, *outputs):
        self.graph.output.extend(onnx.ValueInfoProto(name=name)
                                 for name in outputs)
        return helper.make_model(self.graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)])


def decoder(bits, length, past, layers=2):
    """As onnxruntime-genai has them: width 64, 4 heads on 2 of 16."""
    net, width, hidden = Net(), 64, 96
    batch, total = 2, length + past
    ids = net.input("ids", TensorProto.INT64, [batch, length])
    ends = net.input("ends", TensorProto.INT32, [batch])
    count = net.constant([total], np.int32)
    caches = [net.constant(f(np.outer(np.arange(64), 0.5 ** np.arange(8))),
                           np.float32) for f in (np.cos, np.sin)]
    x = net.op("Gather", net.weight(50, width, scale=1), ids)
    y = net.op("SimplifiedLayerNormalization", x, net.weight(width),
               epsilon=1e-5)
    outputs = []
    for i in range(layers):
        q, k, v = (net.few_bits(y, width, n, bits) for n in (64, 32, 32))
        states = [net.input(f"{name}{i}", TensorProto.FLOAT,
                            [batch, 2, past, 16]) for name in ("k", "v")]
        y, *present = net.own(
            "GroupQueryAttention", q, k, v, *states, ends, count, *caches,
            outputs=3, num_heads=4, kv_num_heads=2, do_rotary=1)
        outputs += present
        y = net.few_bits(y, width, width, bits)
        y, x = net.skip(x, y, width)
        gate = net.own("QuickGelu", net.few_bits(y, width, hidden, bits),
                       alpha=1.0)
        y = net.op("Mul", gate, net.few_bits(y, width, hidden, bits))
        y = net.few_bits(y, hidden, width, bits)
        y, x = net.skip(x, y, width)
    y = net.op("MatMul", y, net.weight(width, 50))
    feeds = {"ids": net.random.integers(0, 50, [batch, length]),
             "ends": np.array([total - 1, total - (2 if length == 1 else 1)],
                              np.int32)}
    for info in net.graph.input[2:]:
        feeds[info.name] = net.random.standard_normal(
            [batch, 2, past, 16]).astype(np.float32)
    return net.model(y, *outputs), feeds


def encoder(layers=2):
    """As onnxruntime's optimizer has BERT: width 32, 4 heads."""
    net, width = Net(), 32
    ids, mask = (net.input(name, TensorProto.INT32, [2, 6])
                 for name in ("ids", "mask"))
    norm = lambda: (net.weight(width, scale=1), net.weight(width))
    x, ends = net.own(
        "EmbedLayerNormalization", ids, "", net.weight(50, width),
        net.weight(9, width), "", *norm(), mask, outputs=2, epsilon=1e-5)
    for _ in range(layers):
        y = net.own("Attention", x, net.weight(width, 3 * width),
                    net.weight(3 * width), ends, num_heads=4)
        y = net.op("MatMul", y, net.weight(width, width))
        x = net.own("SkipLayerNormalization", x, y, *norm(),
                    net.weight(width), epsilon=1e-5)
        y = net.own("BiasGelu", net.op("MatMul", x,
                                       net.weight(width, 4 * width)),
                    net.weight(4 * width))
        y = net.op("MatMul", y, net.weight(4 * width, width))
        x = net.own("SkipLayerNormalization", x, y, *norm(),
                    net.weight(width), epsilon=1e-5)
    random = np.random.default_rng(0)
    return net.model(x), {
        "ids": random.integers(0, 50, [2, 6]).astype(np.int32),
        "mask": np.array([[1] * 6, [1] * 4 + [0] * 2], np.int32)}


def split(made, reductions):
    """On two ranks the outputs are onnxruntime's, and there are that many
    reductions: of the table, and two a layer."""
    model, feeds = made
    wanted = byOnnxruntime(model, feeds)
    for flags in [], ["--tp=2"], ["--dp=2"]:
        got = ours(model, feeds, *flags)
        for name, want in wanted.items():
            if found := difference(got[name], want, 5e-5, 0):
                raise Failed(f"{flags} {name}: {found}")
    with scratch() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        path.write_bytes(model.SerializeToString())
        run(tool("axopt"), path, "--quiet", "--tp=2", "-o", f"{folder}/plan")
        found = counts(f"{folder}/plan")
    if found["all_reduce"] != reductions:
        raise Failed(f"{found}, not {reductions} reductions")


def trained(made, count):
    """How many weights training would change."""
    with scratch() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        path.write_bytes(made[0].SerializeToString())
        done = run(tool("axopt"), path, "--inspect=json")
    weights = json.loads(done.stdout)["weights"]
    found = [weight["name"] for weight in weights if weight["trained"]]
    if len(found) != count:
        raise Failed(f"{len(found)} are trained, not {count}: {weights}")


def cases(every):
    for name in FUSED:
        yield f"{name}, fused", fused, name
    for bits in 32, 4, 8:
        for length, past in (6, 0), (1, 6):
            yield (f"decoder of {bits} bits, {length} behind {past}", split,
                   decoder(bits, length, past), 5)
    yield "encoder", split, encoder(), 5
    for name in ("bert_eager_ts14_dyn", "gpt2_eager_ts17_dyn",
                 "llama_sdpa_ts17_dyn"):
        yield f"{name}, fused, trains", trains, name
    # Norms, tables, and, of floats, the products.
    yield "training a decoder", trained, decoder(32, 6, 0), 7 + 2 * 7
    yield "training a decoder of 4 bits", trained, decoder(4, 6, 0), 7
    yield "training an encoder", trained, encoder(), 4 + 2 * 12
