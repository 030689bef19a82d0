"""Models as text, in the syntax of onnx.parser."""
import onnx
import onnx.parser


def model(inputs, outputs, nodes, initializers="", opset=None):
    """A model whose graph is given in parts: `float[2,3] x`, `y = Relu(x)`."""
    opset = opset or onnx.defs.onnx_opset_version()
    text = (f'<ir_version: 10, opset_import: ["" : {opset}]>\n'
            f"g ({inputs}) => ({outputs})\n"
            + (f"<{initializers}>\n" if initializers else "")
            + "{ " + nodes + " }")
    return onnx.parser.parse_model(text)
