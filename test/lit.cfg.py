# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Suites: test/lit (RUN lines), and folders whose Python files list cases.

Their lit.local.cfg choose the format; GoogleTest programs are a suite of
their own, in the build folder.
"""
import os
import sys

import lit.formats

config.name = "axopt"
config.test_source_root = config.source_root + "/test"
config.test_exec_root = config.build_root + "/test"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = []
config.environment.update(os.environ)
# Tests run side by side; those of threads say how many a rank has.
config.environment.setdefault("OMP_NUM_THREADS", "1")
config.environment["PATH"] = os.pathsep.join(
    [config.build_root + "/bin", config.llvm_tools, os.environ["PATH"]]
)
config.environment["AX_BIN"] = config.build_root + "/bin"
os.environ.update(config.environment)
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(("%lib", config.build_root + "/lib"))
config.substitutions.append(("%models", config.test_source_root + "/models"))
config.substitutions.append(
    ("%exit", f"{sys.executable} {config.test_source_root}/expect_exit.py")
)

sys.path.insert(0, config.test_source_root)

from cases import isSanitized  # noqa: E402

if isSanitized():
    config.available_features.add("sanitizer")
