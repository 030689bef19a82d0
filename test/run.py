# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs every test of a build; the last line is `N passed, M failed`.

lit is the one driver: test/lit, the cases of Python files, and each case of
each GoogleTest program are its tests.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
from collections import Counter

PASSED = {"PASS", "XFAIL", "FLAKYPASS"}
NOT_RUN = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--filter", default=".", help="regular expression")
    parser.add_argument("--all", action="store_true", help="long ones too")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    options = parser.parse_args()

    results = options.build / "test" / "results.json"
    results.unlink(missing_ok=True)
    lit = [pathlib.Path(sys.executable).parent / "lit", "--succinct", "--verbose",
           "--no-progress-bar", "--order=smart", f"-j{options.j}",
           f"--filter={options.filter}", f"--output={results}",
           options.build / "test"]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    if options.all:
        environment["AX_TEST_ALL"] = "1"
    done = subprocess.run(lit, env=environment)
    if not results.exists():
        print("the tests did not run", file=sys.stderr)
        return done.returncode or 1

    tests = json.loads(results.read_text())["tests"]
    codes = Counter(test["code"] for test in tests)
    passed = sum(codes[code] for code in PASSED)
    skipped = sum(codes[code] for code in NOT_RUN)
    failed = len(tests) - passed - skipped
    print(f"{passed} passed, {failed} failed"
          + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed or done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
