# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One case or more for every operator that axopt imports, in every version that
operator sets 7 and later have of it."""
import pathlib
import re

import onnx

from _operator_elements import Elements
from _operator_layers import Layers
from _operator_rest import Rest
from _operator_sampling import Sampling
from _operator_selection import Selection

ROOT = pathlib.Path(__file__).parents[2]
OLDEST = 7
NEWEST = onnx.defs.onnx_opset_version()

# Of other meanings than their inputs decide: see test/e2e/dropout.py.
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike",
          "RandomUniform", "RandomUniformLike"}


def schemas():
    """(operator, operator set) -> schema: each since_version, the one that is
    in force at set 7 as that of 7."""
    found = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            found.setdefault(schema.name, []).append(schema)
    table = {}
    for name, versions in found.items():
        versions.sort(key=lambda schema: schema.since_version)
        old = [s for s in versions if s.since_version <= OLDEST]
        for schema in old[-1:] + versions[len(old):]:
            table[name, max(schema.since_version, OLDEST)] = schema
    return table


def imported():
    """Operators with an importer, and those that functions explain."""
    files = (ROOT / "lib/Import/Ops").glob("*.cpp")
    names = set(re.findall(r'^ +\{"(\w+)",|, \{"(\w+)",',
                           "".join(f.read_text() for f in files), re.M))
    names = {a or b for a, b in names}
    for (name, _), schema in schemas().items():
        if schema.has_function or schema.has_context_dependent_function:
            names.add(name)
    return names


def wanted():
    """(operator, operator set) -> schema of all that axopt should import."""
    names = imported()
    return {key: schema for key, schema in schemas().items()
            if key[0] in names
            and (not schema.deprecated or key == ("GroupNormalization", 18))}


class Operators(Elements, Layers, Rest, Sampling, Selection):
    pass


def cases_of(op, opset):
    """The cases of one operator's version; none when there are none."""
    return list(Operators(op, opset, wanted()[op, opset]).cases())
