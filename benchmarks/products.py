"""Tensor products, distances and Fourier transforms, forward and backward, compared with PyTorch.

Run it alone, on an idle machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from harness import Job, Row, measure, table, versions

import chainrule as cr

EQUATIONS = {
    "ij,jk->ik": ((4, 4), (4, 4)),
    "ji,jk->ki": ((256, 256), (256, 256)),
    "bij,bjk->bik": ((32, 64, 64), (32, 64, 64)),
    "bqhd,bkhd->bhqk": ((8, 64, 8, 32), (8, 64, 8, 32)),
    "bi,bi->b": ((1000, 100), (1000, 100)),
    "bij,bj->bi": ((64, 128, 128), (64, 128)),
    "i,j->ij": ((1000,), (1000,)),
    "ijk,jil->kl": ((30, 40, 50), (40, 30, 60)),
    "bi,kij,bj->bk": ((64, 32), (16, 32, 32), (64, 32)),
    "ij,jk,kl->il": ((100, 100), (100, 100), (100, 100)),
}
POINTS = ((100, 100, 3), (1000, 1000, 16), (1000, 1000, 64), (300, 3000, 128))
TRANSFORMS = {"fft": (64, 1024), "rfft": (65536,), "rfft2": (256, 256)}


def job(library: Any, call: Callable[..., Any], arrays: list[np.ndarray]) -> Job:
    """Return a job that computes a value and its gradients."""
    leaves = [library.tensor(array, requires_grad=True) for array in arrays]
    weights = call(library, *leaves).detach()

    def run() -> Any:
        return library.autograd.grad(call(library, *leaves), leaves, weights)

    return run


def rows(libraries: dict[str, Any]) -> list[Row]:
    rng = np.random.default_rng(0)
    calls: list[tuple[str, Callable[..., Any], Any]] = []
    for equation, shapes in EQUATIONS.items():
        calls.append((f"`{equation}` of {shapes}", _einsum(equation), shapes))
    for m, n, k in POINTS:
        calls.append((f"`cdist`, {m} × {n} in {k} dimensions", _cdist, ((m, k), (n, k))))
    for name, shape in TRANSFORMS.items():
        calls.append((f"`{name}` of {shape}", _transform(name), (shape,)))
    measured = []
    for name, call, shapes in calls:
        arrays = [rng.random(shape, np.float32) for shape in shapes]
        jobs = {title: job(library, call, arrays) for title, library in libraries.items()}
        measured.append(measure(name, jobs, {"PyTorch": 1.5}, rest=0.02))
    return measured


def _einsum(equation: str) -> Callable[..., Any]:
    return lambda library, *operands: library.einsum(equation, *operands)


def _cdist(library: Any, x: Any, y: Any) -> Any:
    return library.cdist(x, y)


def _transform(name: str) -> Callable[..., Any]:
    return lambda library, x: getattr(library.fft, name)(x)


def main() -> str:
    libraries, modules = {"chainrule": cr}, [np]
    try:
        import torch
    except ImportError:
        pass
    else:
        libraries["PyTorch"] = torch
        modules.append(torch)
    return f"{table(rows(libraries), list(libraries))}\n\n{versions(cr, *modules)}"


if __name__ == "__main__":
    print(main())
