"""Second derivatives and special functions: ratios to a gradient, JAX's jit, PyTorch and SciPy.

Run it alone, on an idle machine.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from harness import Job, Row, measure, table, versions

import chainrule as cr

RNG = np.random.default_rng(0)


def jobs_of_jax(make: Callable[[Any], Callable[..., Any]], *arrays: Any) -> dict[str, Job]:
    """Return the job of JAX, compiled, in double precision; none if it isn't installed."""
    try:
        import jax
    except ImportError:
        return {}
    jax.config.update("jax_enable_x64", True)
    call, inputs = jax.jit(make(jax)), [jax.numpy.asarray(a) for a in arrays]
    return {"JAX": lambda: jax.block_until_ready(call(*inputs))}


# --- products with Hessians -----------------------------------------------------------------------


def network(p: Any, x: Any, y: Any) -> Any:
    """Return the loss of a network of two hidden layers."""
    for w, b in zip(p[:-2:2], p[1:-2:2], strict=True):
        x = cr.tanh(x @ w + b)
    return ((x @ p[-2] + p[-1] - y) ** 2).mean()


def chain(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def hessian_products() -> list[Row]:
    rows = []
    for examples, width in ((64, 32), (256, 128)):
        sizes = [20, width, width, 1]
        p = [
            cr.tensor(RNG.normal(size=shape) * 0.2)
            for a, b in itertools.pairwise(sizes)
            for shape in ((a, b), (b,))
        ]
        x, y = cr.tensor(RNG.normal(size=(examples, 20))), cr.ones(examples, 1)
        name = f"network of width {width}, {examples} examples"
        rows += products(name, lambda p, x=x, y=y: network(p, x, y), p)
    rows += products("Rosenbrock, 1000 variables", chain, cr.tensor(RNG.normal(size=1000)))
    return rows


def products(name: str, loss: Any, p: Any) -> list[Row]:
    """Return the rows of a Hessian-vector product beside a gradient, eager and compiled."""
    v = cr.tree.map(cr.ones_like, p)
    point = (p,)
    rows = []
    for title, wrap in (("", lambda f: f), (", compiled", cr.compile)):
        gradient = wrap(lambda p: cr.grad(loss)(p))
        product = wrap(lambda p, v: cr.hvp(loss, (p,), (v,)))
        jobs: dict[str, Job] = {
            "chainrule": lambda product=product: product(*point, v),
            "gradient": lambda gradient=gradient: gradient(*point),
        }
        rows.append(measure(f"Hessian-vector product, {name}{title}", jobs, {"gradient": 3}))
    return rows


# --- Hessians and Jacobians -----------------------------------------------------------------------


def logistic(np: Any) -> Callable[..., Any]:
    def loss(w: Any, x: Any, y: Any) -> Any:
        margin = (x @ w) * y
        return np.logaddexp(0.0, -margin).mean() + 0.5e-3 * (w * w).sum()

    return loss


def mixture(np: Any, logsumexp: Any, components: int, dimensions: int) -> Callable[..., Any]:
    def loss(v: Any, x: Any) -> Any:
        weights, rest = v[:components], v[components:]
        means = rest[: components * dimensions].reshape(components, dimensions)
        logs = rest[components * dimensions :].reshape(components, dimensions)
        z = (x[:, None, :] - means) * np.exp(-logs)
        densities = weights - logs.sum(1) - 0.5 * (z * z).sum(2)
        return logsumexp(weights) - logsumexp(densities).mean()

    return loss


def hessians() -> list[Row]:
    x = RNG.normal(size=(10_000, 30))
    y = np.sign(x @ RNG.normal(size=30) + RNG.normal(size=10_000))
    w = 0.1 * RNG.normal(size=30)
    hessian = cr.compile(cr.hessian(logistic(cr)))
    tensors = [cr.tensor(a) for a in (w, x, y)]
    jobs: dict[str, Job] = {"chainrule": lambda: hessian(*tensors)}
    jobs |= jobs_of_jax(lambda jax: jax.hessian(logistic(jax.numpy)), w, x, y)
    rows = [measure("Hessian of logistic regression, 30 × 10,000", jobs, {"JAX": 0.6})]

    data, v = RNG.normal(size=(300, 16)), 0.3 * RNG.normal(size=330)
    ours = mixture(cr, lambda a: cr.logsumexp(a, -1), 10, 16)
    hessian_of_mixture = cr.compile(cr.hessian(ours))
    vector, points = cr.tensor(v), cr.tensor(data)
    jobs = {"chainrule": lambda: hessian_of_mixture(vector, points)}
    jobs |= jobs_of_jax(
        lambda jax: jax.hessian(
            mixture(jax.numpy, lambda a: jax.scipy.special.logsumexp(a, -1), 10, 16)
        ),
        v,
        data,
    )
    rows.append(measure("Hessian of a mixture, 330 parameters", jobs, {"JAX": 0.6}, rounds=9))
    return rows


def jacobians() -> list[Row]:
    matrix, x = RNG.normal(size=(100, 100)) / 10, RNG.normal(size=100)
    ours, point = cr.tensor(matrix), cr.tensor(x)
    eager = cr.jacobian(lambda x: cr.tanh(ours @ x))
    compiled = cr.compile(eager)
    others: dict[str, Job] = {}
    try:
        import torch
    except ImportError:
        pass
    else:
        torch.set_num_threads(1)  # two threads wait for each other longer than they compute
        theirs, at = torch.from_numpy(matrix), torch.from_numpy(x)
        jacobian = torch.func.jacrev(lambda x: torch.tanh(theirs @ x))
        others["PyTorch"] = lambda: jacobian(at)
    return [
        measure(
            f"Jacobian of tanh(W x), 100 × 100{title}",
            {"chainrule": lambda function=function: function(point), **others},
            {"PyTorch": 0.5},
            rest=0.02,
        )
        for title, function in (("", eager), (", compiled", compiled))
    ]


# --- special functions ----------------------------------------------------------------------------

SPECIAL: dict[str, int] = {
    **dict.fromkeys(["gammaln", "digamma", "erf", "erfcx", "ndtri"], 1),
    **dict.fromkeys(["j0", "k1e", "expi", "exp1"], 1),
    **dict.fromkeys(["gammainc", "betaln", "jv", "xlogy", "stdtrit"], 2),
    "betainc": 3,
}


def special_functions() -> list[Row]:
    """Return the rows of values of special functions, beside SciPy's own."""
    rows = []
    for name, count in SPECIAL.items():
        arrays = [RNG.uniform(0.1, 0.9, 10_000) for _ in range(count)]
        ours, theirs = getattr(cr.scipy.special, name), getattr(scipy.special, name)
        jobs: dict[str, Job] = {
            "chainrule": lambda f=ours, arrays=arrays: f(*arrays),
            "SciPy": lambda f=theirs, arrays=arrays: f(*arrays),
        }
        rows.append(measure(f"{name}, 10,000 numbers", jobs, {"SciPy": 1.3}))
    return rows


def main() -> str:
    groups = [hessian_products(), hessians(), jacobians(), special_functions()]
    peers = ["gradient", "JAX", "PyTorch", "SciPy"]
    tables = [table(rows, ["chainrule", peer]) for rows, peer in zip(groups, peers, strict=True)]
    modules: list[Any] = [cr, np, scipy]
    for name in ("torch", "jax"):
        with contextlib.suppress(ImportError):
            modules.append(importlib.import_module(name))
    return "\n\n".join([*tables, versions(*modules)])


if __name__ == "__main__":
    print(main())
