# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What detectors have behind their network, whose boxes data decide the number
of (`axopt --max`): beside onnxruntime, on every layout."""
import numpy as np

from _onnx_text import model
from _results import byOnnxruntime, compare, compiled, ours
from cases import scratch

LAYOUTS = "", "--dp=2", "--tp=2", "--pp=2"

DETECTION = """
taken = NonMaxSuppression(boxes, scores, most, overlap, least)
image, class, box = Split<axis=1, num_outputs=3>(taken)
which = Squeeze(box, one)
all = Squeeze(boxes, zero)
found_boxes = Gather(all, which)
found_scores = GatherND(scores, taken)
labels = Squeeze(class, one)
n = Shape(labels)
k = Min(n, best)
top, order = TopK<axis=0>(found_scores, k)
top_boxes = Gather(found_boxes, order)
top_labels = Gather(labels, order)
"""

# As torchvision's heads: what scores too little goes first, by class.
TWO_STAGES = """
flat = Squeeze(scores, zero)
by_box = Transpose(flat)
good = Greater(by_box, threshold)
where = NonZero(good)
candidates, class = Split<axis=0, num_outputs=2>(where)
which = Squeeze(candidates, zero)
all = Squeeze(boxes, zero)
some = Gather(all, which)
pairs = Transpose(where)
their = GatherND(by_box, pairs)
classes = Squeeze(class, zero)
offset = Cast<to=1>(classes)
moved = Mul(offset, large)
column = Unsqueeze(moved, one)
apart = Add(some, column)
batch = Unsqueeze(apart, zero)
row = Unsqueeze(their, both)
taken = NonMaxSuppression(batch, row, most, overlap)
number = Gather<axis=1>(taken, two)
top_boxes = Gather(some, number)
top = Gather(their, number)
top_labels = Gather(classes, number)
"""


def detection(nodes, rooms, layout):
    graph = model(
        "float[1,40,4] boxes, float[1,3,40] scores",
        "float top, float top_boxes, int64 top_labels", nodes,
        "int64[1] most = {30}, float[1] overlap = {0.4}, float[1] least = {0.5}"
        ", int64[1] one = {1}, int64[1] zero = {0}, int64[1] best = {12}, "
        "float threshold = {0.6}, float large = {1000}, int64[2] both = {0, 1},"
        " int64 two = {2}", opset=18)
    for output in graph.graph.output:
        output.ClearField("type")
    with scratch() as folder:
        compiled(folder, graph, *rooms, *layout.split())
        for seed in range(3):
            random = np.random.default_rng(seed)
            low = random.uniform(0, 8, (1, 40, 2))
            size = random.uniform(1, 4, (1, 40, 2))
            feeds = {"boxes": np.concatenate([low, low + size], 2)
                     .astype(np.float32),
                     "scores": random.uniform(0, 1, (1, 3, 40))
                     .astype(np.float32)}
            compare(byOnnxruntime(graph, feeds), ours(folder, feeds),
                    f"{layout}, {seed}")
        # No box is good enough.
        feeds["scores"] *= 0
        if "least" in nodes:
            compare(byOnnxruntime(graph, feeds), ours(folder, feeds), "none")


def cases(every):
    for layout in LAYOUTS:
        yield f"one stage {layout}", detection, DETECTION, [], layout
        yield f"two stages {layout}", detection, TWO_STAGES, \
            ["--max=where=90"], layout
