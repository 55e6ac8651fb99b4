"""``python -m chainrule doctor``: what chainrule runs on here, and what would be better."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

import chainrule as cr
from chainrule import blas
from chainrule.blas import Info
from chainrule.compiler.native.gemm import registers
from chainrule.compiler.native.jit import is_installed
from chainrule.kernels.threads import get_num_threads, usable_cores

VARIABLES = {
    "OPENBLAS_NUM_THREADS": "threads of a product, where NumPy has OpenBLAS",
    "MKL_NUM_THREADS": "threads of a product, where NumPy has MKL",
    "OMP_NUM_THREADS": "threads of both kinds, unless the others say otherwise",
    "OPENBLAS_CORETYPE": "OpenBLAS' kernels, in place of its own choice",
    "OPENBLAS_L2_SIZE": "what OpenBLAS takes for the size of the cache",
    "OPENBLAS_THREAD_TIMEOUT": "how long OpenBLAS' threads wait busily for the next product",
    "NPY_DISABLE_CPU_FEATURES": "instructions that NumPy is not to use",
    "CHAINRULE_BLAS": "'off': chainrule leaves the BLAS alone, and all products to it",
    "CHAINRULE_CACHE": "the folder for machine code of compiled functions; empty: none is kept",
}

EXTRAS = {
    "scipy": "linear algebra, special functions and optimisers beside tensors",
    "matplotlib": "curves and pictures (chainrule.plotting)",
    "scikit-learn": "the digits that the demo reads",
    "numba": "machine code of compiled functions",
    "cupy": "tensors on a GPU",
}

# CuPy's distributions are named after the CUDA that they are built for.
DISTRIBUTIONS = {"cupy": ("cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy")}


def report() -> str:
    """Return the whole report, several tables and what to do."""
    info = blas.info()
    threads = {"chainrule": f"{get_num_threads()} for one operation on a large array"}
    if info.threads is not None:
        threads["products"] = f"{info.threads}, of {info.library}"
    threads["cores"] = f"{usable_cores()} that this process may use"
    sections = {
        "Versions": _table(
            {
                "chainrule": f"{cr.__version__}, in {Path(cr.__file__).parent}",
                "NumPy": f"{np.__version__}, in {Path(np.__file__).parent}",
                "Python": f"{platform.python_version()}, {sys.executable}",
                "system": f"{platform.system()} on {platform.machine()}",
            }
        ),
        "Products of matrices (chainrule.blas)": f"{info}\n{_compiled_products()}",
        "Threads": _table(threads),
        "Variables": _table({name: _variable(name, use) for name, use in VARIABLES.items()}),
        "Optional packages": _table({name: _package(name, use) for name, use in EXTRAS.items()}),
        "GPU": gpu(cr.cuda.is_available(), _has_driver(), _version("cupy") is not None),
    }
    found = list(advice(info, get_num_threads(), usable_cores(), os.environ))
    sections["What to do"] = "\n".join(found) or "Nothing: all is as it should be."
    return "\n\n".join(f"{title}\n{_indented(text)}" for title, text in sections.items())


def advice(info: Info, threads: int, cores: int, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield what would make products or large operations quicker, a sentence each."""
    if not info.is_best:
        yield f"Kernels: {info.advice}."
    products = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
    if info.threads is not None:
        yield from _about_threads("Products", info.threads, cores, products, environment)
    yield from _about_threads(
        "Operations on large arrays", threads, cores, ("OMP_NUM_THREADS",), environment
    )


def _about_threads(
    what: str, count: int, cores: int, names: tuple[str, ...], environment: Mapping[str, str]
) -> Iterator[str]:
    if count > cores:
        yield (
            f"{what} run in {count} threads on {cores} cores, where they wait for one another: "
            f"set OMP_NUM_THREADS={cores}."
        )
    said = " and ".join(f"{name}={environment[name]}" for name in names if name in environment)
    if count < cores and said:
        yield (
            f"{what} run in {count} of {cores} possible threads, since {said}: right where several "
            "processes share the machine, else unset it."
        )


def gpu(available: bool, driver: bool, cupy: bool) -> str:
    """Say whether tensors can be on a GPU, and what is missing."""
    if available:
        return "CuPy sees a CUDA device: tensors go there by device='cuda'"
    if driver and cupy:
        return "an NVIDIA driver and CuPy are here, but CuPy sees no device"
    if driver:
        return "an NVIDIA driver is here: pip install cupy-cuda13x brings tensors to the GPU"
    return "none is seen"


def _variable(name: str, use: str) -> str:
    value = os.environ.get(name)
    return f"{'not set' if value is None else value:<10}  {use}"


def _package(name: str, use: str) -> str:
    return f"{_version(name) or 'missing':<10}  {use}"


def _version(name: str) -> str | None:
    for distribution in DISTRIBUTIONS.get(name, (name,)):
        try:
            return version(distribution)
        except PackageNotFoundError:
            pass
    return None


def _has_driver() -> bool:
    return Path("/proc/driver/nvidia/version").exists()


def _compiled_products() -> str:
    """Return the row that says what large products of compiled functions run on."""
    found = registers() if is_installed() else None
    if found is None:
        return f"{'compiled':<12}as these"
    kind = "AVX-512" if found.vector == 64 else "AVX2"
    return f"{'compiled':<12}large ones by machine code of chainrule's own ({kind})"


def _table(rows: Mapping[str, str]) -> str:
    width = max(map(len, rows)) + 2
    return "\n".join(f"{name:<{width}}{text}" for name, text in rows.items())


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def main() -> None:
    """Print the report."""
    print(report())
