"""Function transforms compared with `torch.func` and JAX without jit: eager calls of each.

Run it alone, on an idle machine.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from harness import Job, Row, measure, table, versions

import chainrule as cr

Arrays = list[np.ndarray]
Program = Callable[[Any], Callable[..., Any]]


def norm(lib: Any) -> Callable[..., Any]:
    return lib.grad(lambda x: (x * x).sum())


def rows_of_tanh(lib: Any) -> Callable[..., Any]:
    return lib.jacrev(lambda x, w: lib.np.tanh(w @ x))


def curvature(lib: Any) -> Callable[..., Any]:
    return lib.hessian(lambda x, w: lib.np.log(lib.np.exp(w @ x).sum()))


def network(lib: Any) -> Callable[..., Any]:
    def loss(w1: Any, w2: Any, x: Any) -> Any:
        return (lib.np.tanh(w2 @ lib.np.tanh(w1 @ x)) ** 2).sum()

    return lib.vmap(lib.grad(loss, (0, 1)), (None, None, 0))


def solved(lib: Any) -> Callable[..., Any]:
    return lib.vmap(lambda a, b: lib.np.linalg.solve(a @ a.T + lib.np.eye(8), b))


def pairs(lib: Any) -> Callable[..., Any]:
    def kernel(x: Any, y: Any) -> Any:
        return lib.np.exp(-((x - y) ** 2).sum())

    return lib.vmap(lib.vmap(kernel, (None, 0)), (0, None))


PROGRAMS: dict[str, tuple[Program, tuple[tuple[int, ...], ...]]] = {
    "gradient of x · x, 4 numbers": (norm, ((4,),)),
    "Jacobian of tanh(W x), 20 × 20": (rows_of_tanh, ((20,), (20, 20))),
    "Hessian of log Σ exp(W x), 50 × 50": (curvature, ((50,), (50, 50))),
    "gradients of 256 examples, 32-64-10": (network, ((64, 32), (10, 64), (256, 32))),
    "1,000 systems of 8 × 8": (solved, ((1000, 8, 8), (1000, 8))),
    "300 × 300 pairs in 3 dimensions": (pairs, ((300, 3), (300, 3))),
}


def libraries() -> tuple[dict[str, Any], list[Any]]:
    """Return the transforms and array constructor of each installed library, and the modules."""
    found = {
        "chainrule": SimpleNamespace(**{n: getattr(cr.func, n) for n in cr.func.__all__}, np=cr)
    }
    wrap, modules = {"chainrule": cr.tensor}, [cr, np]
    try:
        import torch
    except ImportError:
        pass
    else:
        names = {n: getattr(torch.func, n) for n in ("grad", "jacrev", "hessian", "vmap")}
        found["PyTorch"] = SimpleNamespace(**names, np=torch)
        wrap["PyTorch"] = torch.from_numpy
        modules.append(torch)
    try:
        import jax
    except ImportError:
        pass
    else:
        found["JAX"] = SimpleNamespace(
            grad=jax.grad, jacrev=jax.jacrev, hessian=jax.hessian, vmap=jax.vmap, np=jax.numpy
        )
        wrap["JAX"] = jax.numpy.asarray
        modules.append(jax)
    return {name: (lib, wrap[name]) for name, lib in found.items()}, modules


def job(program: Program, lib: Any, arrays: Arrays, wrap: Callable[..., Any]) -> Job:
    call, inputs = program(lib), [wrap(array) for array in arrays]
    if lib.np.__name__ == "jax.numpy":
        from jax import block_until_ready

        return lambda: block_until_ready(call(*inputs))
    return lambda: call(*inputs)


def main() -> str:
    rng = np.random.default_rng(0)
    found, modules = libraries()
    measured: list[Row] = []
    for name, (program, shapes) in PROGRAMS.items():
        arrays = [0.1 * rng.standard_normal(shape, np.float32) for shape in shapes]
        jobs = {title: job(program, lib, arrays, wrap) for title, (lib, wrap) in found.items()}
        measured.append(measure(name, jobs, {}, rest=0.02))
    return f"{table(measured, list(found))}\n\n{versions(*modules)}"


if __name__ == "__main__":
    print(main())
