"""Fuzzer: random functions, run in all ways that have to agree.

``python tests/fuzz/compare_ways.py --minutes 60 --seed 7`` draws functions from that seed on, and
prints a script for each failure, with as few statements as still fail.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.random_programs.functions import random_function
from helpers.random_programs.ways import Disagreement, check, minimal, refusals


def failure_of(seed: int, native: bool) -> str:
    """Return the failure of the function of a seed, with the minimal function; empty if none."""
    function = random_function(seed)
    try:
        check(function, native)
    except Disagreement:
        function, text = minimal(function, native)
        return f"# seed {seed}: {text}\n{function}\n"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long to draw functions")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--native-every", type=int, default=10, help="one of so many as machine code"
    )
    options = parser.parse_args()
    end, seed, failures = time.monotonic() + 60 * options.minutes, options.seed, 0
    while time.monotonic() < end:
        native = options.native_every > 0 and seed % options.native_every == 0
        text = failure_of(seed, native)
        if text:
            failures += 1
            print(text, flush=True)
        seed += 1
    print(f"{seed - options.seed} functions, {failures} failures; not run, with the reason:")
    for reason, count in refusals.most_common(30):
        print(f"{count:6d}  {reason}")
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main())
