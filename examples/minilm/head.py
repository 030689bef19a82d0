# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""head.py MODEL.onnx CLASSES OUT.onnx: a classifier on top of an encoder.

The mean of the encoder's last_hidden_state over the tokens that attention_mask
marks, and a Linear. OUT.onnx is to lie beside MODEL.onnx: the encoder's weights
stay in the file where they are.
"""
import sys

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper


def main(source, classes, target):
    model = onnx.load(source, load_external_data=False)
    graph = model.graph
    [hidden] = [output for output in graph.output
                if output.name == "last_hidden_state"]
    batch, _, width = hidden.type.tensor_type.shape.dim
    shape = [int(classes), width.dim_value]
    weight = np.random.default_rng(0).normal(0, 0.02, shape)
    for name, value in (("classifier.weight", weight.astype(np.float32)),
                        ("classifier.bias", np.zeros(shape[0], np.float32)),
                        ("/pool/axes", np.array([1])),
                        ("/pool/last", np.array([2]))):
        graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    for op, inputs, output, attributes in (
            ("Cast", ["attention_mask"], "/pool/mask", {"to": 1}),
            ("Unsqueeze", ["/pool/mask", "/pool/last"], "/pool/column", {}),
            ("Mul", [hidden.name, "/pool/column"], "/pool/kept", {}),
            ("ReduceSum", ["/pool/kept", "/pool/axes"], "/pool/sum",
             {"keepdims": 0}),
            ("ReduceSum", ["/pool/mask", "/pool/axes"], "/pool/count", {}),
            ("Div", ["/pool/sum", "/pool/count"], "/pool/mean", {}),
            ("Gemm", ["/pool/mean", "classifier.weight", "classifier.bias"],
             "logits", {"transB": 1})):
        graph.node.append(
            onnx.helper.make_node(op, inputs, [output], output, **attributes))
    graph.output.remove(hidden)
    graph.output.append(onnx.helper.make_tensor_value_info(
        "logits", onnx.TensorProto.FLOAT, [batch.dim_param, shape[0]]))
    onnx.save(model, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
