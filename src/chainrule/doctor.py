"""``python -m chainrule doctor``: a report on the environment, with advice."""

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
    "OPENBLAS_NUM_THREADS": "threads of a matrix product, with OpenBLAS",
    "MKL_NUM_THREADS": "threads of a matrix product, with MKL",
    "OMP_NUM_THREADS": "threads of products and operations, unless overridden by the others",
    "OPENBLAS_CORETYPE": "OpenBLAS' kernels, in place of its own choice",
    "OPENBLAS_L2_SIZE": "cache size that OpenBLAS assumes",
    "OPENBLAS_THREAD_TIMEOUT": "time that OpenBLAS' threads spin before they sleep",
    "NPY_DISABLE_CPU_FEATURES": "processor features that NumPy must not use",
    "CHAINRULE_BLAS": "'off': chainrule leaves the BLAS alone and uses it for all products",
    "CHAINRULE_VERIFY": "on or a number: some compiled calls are compared with eager ones",
    "CHAINRULE_CACHE": "folder for machine code of compiled functions; empty: no cache",
    "CHAINRULE_CACHE_SIZE": "largest size of that folder in megabytes; 256 by default",
}

EXTRAS = {
    "scipy": "special functions, linear algebra and optimisers",
    "matplotlib": "plots (chainrule.plotting)",
    "scikit-learn": "the digits of the demo",
    "llvmlite": "machine code of compiled functions",
    "cupy": "tensors on a GPU",
}

# CuPy's distributions are named after their CUDA version.
DISTRIBUTIONS = {"cupy": ("cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x", "cupy")}


def report() -> str:
    """Return the report: several tables, and advice."""
    info = blas.info()
    threads = {"chainrule": f"{get_num_threads()} for an operation on large arrays"}
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
        "Products of matrices (chainrule.blas)": f"{info}\n{_compiled_products_row()}",
        "Threads": _table(threads),
        "Variables": _table({name: _variable_row(name, use) for name, use in VARIABLES.items()}),
        "Optional packages": _table(
            {name: _package_row(name, use) for name, use in EXTRAS.items()}
        ),
        "GPU": gpu(cr.cuda.is_available(), _has_driver(), _version("cupy") is not None),
    }
    found = list(advice(info, get_num_threads(), usable_cores(), os.environ))
    sections["What to do"] = "\n".join(found) or "Nothing: all is as it should be."
    return "\n\n".join(f"{title}\n{_indented(text)}" for title, text in sections.items())


def advice(info: Info, threads: int, cores: int, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield sentences on what would make products or large operations faster."""
    if not info.is_best:
        yield f"Kernels: {info.advice}."
    products = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
    if info.threads is not None:
        yield from _thread_advice("Products", info.threads, cores, products, environment)
    yield from _thread_advice(
        "Operations on large arrays", threads, cores, ("OMP_NUM_THREADS",), environment
    )


def _thread_advice(
    subject: str, count: int, cores: int, names: tuple[str, ...], environment: Mapping[str, str]
) -> Iterator[str]:
    if count > cores:
        yield (
            f"{subject} run in {count} threads on {cores} cores, which slows them down: "
            f"set OMP_NUM_THREADS={cores}."
        )
    settings = " and ".join(f"{name}={environment[name]}" for name in names if name in environment)
    if count < cores and settings:
        yield (
            f"{subject} run in {count} of {cores} possible threads, since {settings}: right if "
            "several processes share the machine, else unset it."
        )


def gpu(available: bool, driver: bool, cupy: bool) -> str:
    """Return a sentence on whether tensors can be on a GPU, and what is missing."""
    if available:
        return "CuPy sees a CUDA device: use it with device='cuda'"
    if driver and cupy:
        return "an NVIDIA driver and CuPy are here, but CuPy sees no device"
    if driver:
        return "an NVIDIA driver is here: pip install cupy-cuda13x brings tensors to the GPU"
    return "none is seen"


def _variable_row(name: str, use: str) -> str:
    value = os.environ.get(name)
    return f"{'not set' if value is None else value:<10}  {use}"


def _package_row(name: str, use: str) -> str:
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


def _compiled_products_row() -> str:
    """Return the table row on large matrix products of compiled functions."""
    found = registers() if is_installed() else None
    if found is None:
        return f"{'compiled':<12}as above"
    kind = "AVX-512" if found.vector == 64 else "AVX2"
    return f"{'compiled':<12}large products by chainrule's own machine code ({kind})"


def _table(rows: Mapping[str, str]) -> str:
    width = max(map(len, rows)) + 2
    return "\n".join(f"{name:<{width}}{text}" for name, text in rows.items())


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def main() -> None:
    """Print the report."""
    print(report())
