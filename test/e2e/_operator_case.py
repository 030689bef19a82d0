# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A node to try, and how cases of one operator are made."""
import itertools
import zlib

import numpy as np
import onnx
from onnx import helper, numpy_helper


class Case:
    """A node: `inputs` are arrays (None: absent), those at `known` constants."""

    def __init__(self, op, opset, inputs, attributes, known=(), outputs=1,
                 rtol=2e-5, nodes=None, compared=None, room=None):
        self.op, self.opset = op, opset
        self.inputs, self.known = list(inputs), set(known)
        self.attributes = attributes
        self.outputs, self.rtol = outputs, rtol
        # More than one node: (op, inputs, outputs, attributes); names of the
        # case's inputs are i0, i1, ..., of its outputs o0, o1, ...
        self.nodes = nodes
        self.compared = range(outputs) if compared is None else compared
        # For axopt --max.
        self.room = room
        shapes = ",".join("-" if x is None else "x".join(map(str, x.shape)) +
                          ("" if x.dtype == np.float32 else f":{x.dtype}")
                          for x in self.inputs)
        written = ",".join(f"{k}={v}" for k, v in attributes.items()
                           if not isinstance(v, (onnx.GraphProto,
                                                 onnx.TensorProto)))
        self.name = f"{op}-{opset}({shapes}{';' if written else ''}{written})"

    def protos(self, prefix):
        """(inputs, initializers, nodes, outputs), names beginning so."""
        inputs, initializers = [], []
        names = []
        for i, value in enumerate(self.inputs):
            names.append("" if value is None else f"{prefix}i{i}")
            if value is None:
                continue
            if i in self.known:
                initializers.append(numpy_helper.from_array(value, names[i]))
            else:
                inputs.append(helper.make_tensor_value_info(
                    names[i], helper.np_dtype_to_tensor_dtype(value.dtype),
                    value.shape))
        results = [f"{prefix}o{i}" for i in range(self.outputs)]
        if self.nodes:
            add = lambda name: prefix + name if name else ""
            nodes = [helper.make_node(op, list(map(add, ins)),
                                      list(map(add, outs)), **attributes)
                     for op, ins, outs, attributes in self.nodes]
        else:
            while names and not names[-1]:
                names.pop()
            nodes = [helper.make_node(self.op, names, results,
                                      **self.attributes)]
        outputs = [onnx.ValueInfoProto(name=results[i]) for i in self.compared]
        return inputs, initializers, nodes, outputs

    def feeds(self, prefix):
        return {f"{prefix}i{i}": value for i, value in enumerate(self.inputs)
                if value is not None and i not in self.known}


def model_of(cases, opset):
    """One model of all cases; names of the n-th begin with `n_`."""
    graph = onnx.GraphProto(name="g")
    for n, case in enumerate(cases):
        inputs, initializers, nodes, outputs = case.protos(f"n{n}_")
        graph.input.extend(inputs)
        graph.initializer.extend(initializers)
        graph.node.extend(nodes)
        graph.output.extend(outputs)
    return helper.make_model(graph, ir_version=10,
                             opset_imports=[helper.make_opsetid("", opset)])


def random(shape, dtype=np.float32, low=-2, high=2, seed=0):
    generator = np.random.default_rng(
        zlib.crc32(repr((shape, str(dtype), low, high, seed)).encode()))
    if np.dtype(dtype) == bool:
        return generator.random(shape) < 0.5
    if np.issubdtype(dtype, np.integer):
        return generator.integers(low, high, shape).astype(dtype)
    return generator.uniform(low, high, shape).astype(dtype)


def ints(*values):
    return np.array(values, np.int64)


def product(**choices):
    for values in itertools.product(*choices.values()):
        yield {k: v for k, v in zip(choices, values) if v is not None}


def axes_form(schema, values, name="axes"):
    """(inputs, attributes): of what was an attribute and became an input."""
    if values is None:
        return [], {}
    if name in schema.attributes:
        return [], {name: list(values)}
    return [ints(*values)], {}


class Maker:
    """Yields the cases of one operator's version."""

    def __init__(self, op, opset, schema):
        self.op, self.opset, self.schema = op, opset, schema

    def case(self, *inputs, known=(), outputs=1, attributes=None, **more):
        return Case(self.op, self.opset, inputs, attributes or {}, known,
                    outputs, **more)

    def has(self, name):
        return name in self.schema.attributes

    def takes(self, name):
        return name in [i.name for i in self.schema.inputs]

    def allows(self, *attributes):
        return all(map(self.has, attributes))

    def some(self, choices):
        """Those attributes that this version has."""
        return [c for c in choices if self.allows(*c)]
