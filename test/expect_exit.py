# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""expect_exit.py CODE COMMAND...: runs it; fails unless it exits with CODE."""
import subprocess
import sys

expected = int(sys.argv[1])
code = subprocess.run(sys.argv[2:]).returncode
if code != expected:
    sys.exit(f"expected exit code {expected}, got {code}")
