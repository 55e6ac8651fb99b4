"""Run the benchmarks and write their tables between the markers in docs/benchmarks.md."""

from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import compile_times
import compiling
import eager
import eager_programs
import files
import imports
import lengths
import million
import peak
import products
import scatter
import second_order
import solvers
import training
import various

import blas
import kernels
import transforms

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "benchmarks.md"
SUITES = {
    "eager": eager.main,
    "eager_programs": eager_programs.main,
    "million": million.main,
    "scatter": scatter.main,
    "products": products.main,
    "transforms": transforms.main,
    "second_order": second_order.main,
    "solvers": solvers.main,
    "compiling": compiling.main,
    "various": various.main,
    "compile_times": compile_times.main,
    "lengths": lengths.main,
    "peak": peak.main,
    "blas": blas.main,
    "imports": imports.main,
    "files": files.main,
    "kernels": kernels.main,
    "training": training.main,
}


def main(names: list[str]) -> None:
    """Run the named suites, or all of them; print their tables and write them into the page."""
    for name in names or SUITES:
        table = SUITES[name]()
        print(f"## {name}\n\n{table}\n", flush=True)
        before, rest = PAGE.read_text(encoding="utf-8").split(f"<!-- {name} -->", 1)
        _, after = rest.split(f"<!-- end of {name} -->", 1)
        filled = f"{before}<!-- {name} -->\n\n{table}\n\n<!-- end of {name} -->{after}"
        PAGE.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
