# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Networks of the zoo as onnxruntime's quantisers write them, in eight bits: with
`DequantizeLinear`s ("qdq"), with its own operators ("operators"), or with numbers
that are quantised as they come ("dynamic"). Weights have a scale for each channel."""
import logging
import tempfile

from onnxruntime import quantization

from bench import PEERS
from zoo_networks import NETWORKS as OF_FLOATS

OF = "resnet", "mobilenet", "efficientnet", "bert"
FORMS = {"qdq": quantization.QuantFormat.QDQ,
         "operators": quantization.QuantFormat.QOperator, "dynamic": None}


class Calibration(quantization.CalibrationDataReader):
    def __init__(self, feeds):
        self.feeds = [feeds]

    def get_next(self):
        return self.feeds.pop() if self.feeds else None


class Quantised:
    def __init__(self, name, form):
        self.name, self.form = name, form
        # OpenVINO has not all of onnxruntime's operators.
        self.peers = PEERS[:1] if form == "operators" else PEERS

    def __call__(self, small):
        self.network = OF_FLOATS[self.name](small)
        return self

    def save(self, path):
        # It says for each model what else could be done with it before.
        logging.getLogger().setLevel(logging.ERROR)
        with tempfile.TemporaryDirectory() as folder:
            self.network.save(f"{folder}/model.onnx")
            if FORMS[self.form] is None:
                quantization.quantize_dynamic(f"{folder}/model.onnx", path)
            else:
                quantization.quantize_static(
                    f"{folder}/model.onnx", path, Calibration(self.feeds()),
                    quant_format=FORMS[self.form], per_channel=True,
                    activation_type=quantization.QuantType.QUInt8,
                    weight_type=quantization.QuantType.QInt8)

    def feeds(self):
        return self.network.feeds()


NETWORKS = {f"{name}-{form}": Quantised(name, form)
            for name in OF for form in FORMS}
