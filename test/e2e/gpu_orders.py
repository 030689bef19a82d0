# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Streams of a card (the simulated one) do their work in any order that events
allow: not one bit of a run depends on which. What the bits are, `devices` and the
files that it runs hold against references."""
from cases import MODELS, Failed, run, scratch, tool
from gpu_graphs import CARDS, reference, trained
from gpu_streams import CUDA

INFERRED = {
    "mlp": ["--dp=2 --tp=2 --pp=2"],
    "gpt2_sdpa": ["--dp=2 --tp=2 --pp=2", "--pp=2 --micro-batches=2"],
    "llama_eager": ["--dp=2 --tp=2 --pp=2", "--tp=2 --sequence-parallel"],
    "resnet": ["--tp=2 --pp=2"],
}
TRAINED = {
    "fc_net": ("input=8x64", ["--dp=2 --tp=2 --zero=3",
                              "--dp=2 --pp=2 --micro-batches=2 --zero=3"]),
    "convnet": ("input=8x1x8x8", ["--dp=2 --tp=2 --zero=1"]),
    "gpt2_tied": ("input=4x32", ["--pp=2 --micro-batches=2 --tp=2",
                                 "--tp=2 --sequence-parallel --zero=2 --dp=2"]),
}
# Ranks that share a card, which exchange there, and those with a card each.
WAYS = {"": (CUDA, []), "nccl": (CARDS, ["--comm=nccl"])}


def orders(every):
    return ["eager", "lazy"] + [f"random:{seed}" for seed in
                                range(1, 51 if every else 4)]


def same(results):
    """Of pairs of an order and what it gave."""
    first, wanted = next(results)
    for order, got in results:
        if got != wanted:
            raise Failed(f"{order}: other bits than {first}")


def infers(name, layout, way, every):
    model = min(MODELS.glob(f"{name}*"))
    environment, flags = WAYS[way]
    with scratch() as folder:
        plan, out = f"{folder}/plan.mlir", f"{folder}/out.npz"
        run(tool("axopt"), model / "model.onnx", "--test-data",
            model / "test_data_set_0", *layout.split(), "--quiet", "-o", plan)

        def results():
            for order in orders(every):
                run(tool("axrun"), plan, "--timeout=120", *flags,
                    "--random-inputs=1", "--output", out,
                    env=environment | {"SIMGPU_ORDER": order})
                with open(out, "rb") as file:
                    yield order, file.read()

        same(results())


def trains(name, layout, way, every):
    shape, _ = TRAINED[name]
    environment, flags = WAYS[way]
    with scratch() as folder:
        plan = reference(folder, name, shape, "--optimizer=adamw(lr=0.001)",
                         "--clip-norm=1", *layout.split())
        same((order, trained(folder, plan, "off", *flags, steps=3,
                             environment=environment, SIMGPU_ORDER=order)[1])
             for order in orders(every))


def cases(every):
    for way in WAYS:
        for name, layouts in INFERRED.items():
            for layout in layouts if every or way else layouts[:1]:
                yield (f"{name} {layout} {way}".strip(), infers, name, layout,
                       way, every)
        for name, (_, layouts) in TRAINED.items():
            for layout in layouts if every or way else layouts[:1]:
                yield (f"training {name} {layout} {way}".strip(), trains, name,
                       layout, way, every)
