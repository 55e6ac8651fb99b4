"""Run the array API's conformance suite on chainrule, without and with recording.

    ARRAY_API_TESTS_DIR=… python3 tools/array_api_tests.py --max-examples 100

The suite is data-apis/array-api-tests. Clone it with its submodule, install its requirements, and
name the folder in the variable; without the variable nothing is run. Arguments that this script
does not know go to pytest: a file of the suite, -k and so on. `array_api_xfails.txt`, in this
folder, lists the expected failures with their reasons. `--api-version 2024.12` tests that version
of the standard instead of the newest one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODES = {"plain": "chainrule.array_api", "recorded": "recorded_array_api"}
VERSIONS = ("2025.12", "2024.12")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--max-examples", type=int, default=100, help="examples of each property")
    parser.add_argument("--mode", choices=MODES, help="run only one of the modes")
    parser.add_argument("--api-version", choices=VERSIONS, default=VERSIONS[0])
    options, to_pytest = parser.parse_known_args()
    folder = os.environ.get("ARRAY_API_TESTS_DIR")
    if not folder:
        print("skipped, because ARRAY_API_TESTS_DIR does not say where array-api-tests is")
        return 0
    if not (Path(folder) / "array_api_tests").is_dir():
        print(f"skipped, because there is no array_api_tests in {folder}")
        return 0
    if not any(argument.startswith("array_api_tests") for argument in to_pytest):
        to_pytest.append("array_api_tests")  # the whole suite
    modes = [options.mode] if options.mode else list(MODES)
    found = [
        run(m, options.api_version, Path(folder), options.max_examples, to_pytest) for m in modes
    ]
    return max(found)


def run(mode: str, version: str, folder: Path, max_examples: int, to_pytest: list[str]) -> int:
    """Run the suite in one mode, print the counts and return pytest's exit status."""
    with tempfile.TemporaryDirectory() as scratch:
        xfails, report = Path(scratch, "xfails.txt"), Path(scratch, "report.json")
        xfails.write_text("\n".join(expected_failures(mode, version)) + "\n", encoding="utf-8")
        environment = os.environ | {
            "ARRAY_API_TESTS_MODULE": MODES[mode],
            "ARRAY_API_TESTS_VERSION": version,
            "PYTHONPATH": os.pathsep.join(
                [str(HERE), str(HERE.parent / "src"), os.environ.get("PYTHONPATH", "")]
            ),
        }
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-rfEX", "-p", "no:cacheprovider"),
                *("--disable-deadline", f"--max-examples={max_examples}"),
                *(f"--xfails-file={xfails}", "--json-report", f"--json-report-file={report}"),
                *("-W", "ignore:Converting a tensor with requires_grad", "--tb=short"),
                *to_pytest,
            ],
            cwd=folder,
            env=environment,
            check=False,
        )
        if not report.exists():
            print(f"{mode}: the suite did not start: are its requirements installed?")
            return done.returncode or 1
        tests = json.loads(report.read_text(encoding="utf-8"))["tests"]
    counts = Counter(test["outcome"] for test in tests)
    print(
        f"{mode}, {version}: "
        + ", ".join(f"{n} {outcome}" for outcome, n in sorted(counts.items()))
    )
    return done.returncode


def expected_failures(mode: str, version: str) -> list[str]:
    """Return the ids of tests that are expected to fail in this mode and version."""
    lines = (HERE / "array_api_xfails.txt").read_text(encoding="utf-8").splitlines()
    wanted = []
    for line in lines:
        name, _, rest = line.partition(": ")
        is_condition = name in MODES or name in VERSIONS
        if is_condition and name not in (mode, version):
            continue
        if line.strip() and not line.startswith("#"):
            wanted.append(rest if is_condition else line)
    return wanted


if __name__ == "__main__":
    raise SystemExit(main())
