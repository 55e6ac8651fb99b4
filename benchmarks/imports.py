"""Time of `import chainrule` compared with `import numpy`, each in fresh processes."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

ROUNDS = 15
PROGRAM = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def seconds(module: str) -> float:
    command = [sys.executable, "-c", PROGRAM.format(module)]
    # Installed packages are compiled to bytecode, so these have to be as well.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    run = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    return float(run.stdout)


def main() -> str:
    seconds("chainrule")  # writes the bytecode
    taken: dict[str, list[float]] = {"numpy": [], "chainrule": []}
    for _ in range(ROUNDS):
        for module, times in taken.items():
            times.append(seconds(module))
    numpy, ours = (statistics.median(taken[module]) for module in ("numpy", "chainrule"))
    return (
        "| | ms | ratio | bar |\n| --- | --- | --- | --- |\n"
        f"| `import numpy` | {numpy * 1e3:.1f} | 1 | |\n"
        f"| `import chainrule` | {ours * 1e3:.1f} | {ours / numpy:.2f} | ≤ 1.6 |"
    )


if __name__ == "__main__":
    print(main())
