"""Cost of an eager operation, compared with PyTorch and HIPS autograd.

Chains of a thousand operations on four float32 elements, custom functions, and the tutorial's
two-layer network: forward and backward, in microseconds per operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import custom_functions
import harness
import numpy as np

import chainrule as cr

try:
    import torch
except ImportError:
    torch = None

LENGTH = 1000
PEERS = ["chainrule", "PyTorch", "HIPS autograd"]


def chain(step: Callable[[Any], Any], start: Any) -> Callable[[], None]:
    """Return a job that applies `step` a thousand times and differentiates the sum."""

    def job() -> None:
        x = start
        for _ in range(LENGTH):
            x = step(x)
        x.sum().backward()

    return job


def in_both(build: Callable[[Any, Callable[..., Any]], Callable[[], Any]]) -> dict[str, Any]:
    """Build the same job for chainrule and for PyTorch; `make` makes a float32 tensor."""
    jobs = {"chainrule": build(cr, lambda a, **kw: cr.tensor(np.asarray(a, np.float32), **kw))}
    if torch is not None:
        jobs["PyTorch"] = build(
            torch, lambda a, **kw: torch.tensor(np.asarray(a, np.float32), **kw)
        )
    return jobs


def chains() -> list[harness.Row]:
    four = [0.1, 0.2, 0.3, 0.4]
    eye = np.eye(4)

    def on_four(step: Callable[[Any, Any, Any], Any]) -> Callable[..., Callable[[], Any]]:
        def build(lib: Any, make: Callable[..., Any]) -> Callable[[], Any]:
            x, w = make(four, requires_grad=True), make([1.0, 1.0, 1.0, 1.0])
            return chain(lambda y: step(lib, y, w), x)

        return build

    def with_leaf(lib: Any, make: Callable[..., Any]) -> Callable[[], Any]:
        x, w = make(four, requires_grad=True), make([1.0] * 4, requires_grad=True)
        return chain(lambda y: y * w, x)

    def matmul(lib: Any, make: Callable[..., Any]) -> Callable[[], Any]:
        x, w = make(eye, requires_grad=True), make(eye)
        return chain(lambda y: y @ w, x)

    builds = {
        "mul by a tensor": on_four(lambda lib, y, w: y * w),
        "mul by a number": on_four(lambda lib, y, w: y * 1.001),
        "mul by a leaf that requires grad": with_leaf,
        "add": on_four(lambda lib, y, w: y + w),
        "sin": on_four(lambda lib, y, w: y.sin()),
        "matmul 4×4": matmul,
        "sum": on_four(lambda lib, y, w: y.sum()),
        "sum, keepdim": on_four(lambda lib, y, w: y.sum(0, keepdim=True)),
    }
    return [
        harness.measure(name, in_both(build), {"PyTorch": 0.7}, units=LENGTH)
        for name, build in builds.items()
    ]


def two_layers() -> list[harness.Row]:
    rng = np.random.default_rng(0)
    shapes = [(64, 1000), (64, 10), (1000, 100), (100, 10)]
    x0, y0, w10, w20 = (rng.standard_normal(shape) for shape in shapes)

    def build(lib: Any, make: Callable[..., Any]) -> Callable[[], Any]:
        x, y = make(x0), make(y0)
        w1, w2 = make(w10 * 0.01, requires_grad=True), make(w20 * 0.01, requires_grad=True)

        def step() -> None:
            y_pred = x.mm(w1).clamp(min=0).mm(w2)
            loss = (y_pred - y).pow(2).sum()
            loss.backward()
            with lib.no_grad():
                w1.sub_(1e-6 * w1.grad)
                w2.sub_(1e-6 * w2.grad)
                w1.grad.zero_()
                w2.grad.zero_()

        return step

    return [
        harness.measure(
            "two-layer network, a step", in_both(build), {"PyTorch": 0.95}, rounds=31, rest=0.3
        )
    ]


def main() -> str:
    if torch is not None:
        torch.set_num_threads(2)
    rows = [*chains(), *custom_functions.rows(), *two_layers()]
    modules = [module for module in (np, torch) if module is not None]
    return f"{harness.table(rows, PEERS)}\n\n{harness.versions(cr, *modules)}"


if __name__ == "__main__":
    print(main())
