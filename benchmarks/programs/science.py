"""Gradients, Hessians and Hessian-vector products of common scientific objectives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from programs.peers import Job, Peer, Program, ready

MEASURED = {"rounds": 15, "rest": 0.05}
BARS = {"JAX jit": 0.9}
Function = Callable[..., Any]


def logsumexp(lib: Any, x: Any) -> Any:
    if lib.__name__ == "jax.numpy":
        import jax

        return jax.nn.logsumexp(x, -1)
    return lib.logsumexp(x, -1)


def mixture(lib: Any, means: Any, points: Any, weights: Any) -> Any:
    """Return the negative log-likelihood of a mixture of Gaussians of variance 1."""
    squares = (points * points).sum(-1)[:, None] + (means * means).sum(-1)[None, :]
    distances = squares - 2 * points @ means.T
    return -logsumexp(lib, weights - 0.5 * distances).sum()


def logistic(lib: Any, w: Any, x: Any, y: Any) -> Any:
    margins = y * (x @ w)
    return (lib.log1p(lib.exp(-lib.abs(margins))) + lib.maximum(-margins, 0 * margins)).mean()


def rosenbrock(lib: Any, x: Any) -> Any:
    a, b = x[:-1], x[1:]
    return (100 * (b - a * a) ** 2 + (1 - a) ** 2).sum()


def nbody_energy(lib: Any, x: Any, masses: Any) -> Any:
    offsets = x[:, None, :] - x[None, :, :]
    distances = lib.sqrt((offsets * offsets).sum(-1) + 1e-3)
    return -(masses[:, None] * masses[None, :] / distances).sum() / 2


def gradient(function: Function, *shapes: tuple[int, ...]) -> Program:
    """Return the gradient of a function with respect to its first array."""
    arrays = drawn(function, *shapes)

    def ours(peer: Peer) -> Job:
        lib, grad = peer.lib, peer.grad
        first, *rest = (peer.tensor(a) for a in arrays)
        first.requires_grad_()
        return peer.compiled(lambda: grad(function(lib, first, *rest), first)[0])

    def jitted() -> Job:
        import jax
        import jax.numpy as jnp

        return ready(jax.jit(jax.grad(lambda *a: function(jnp, *a))), *arrays)

    return Program(ours, jitted, BARS, ("torch.compile",), measured=MEASURED)


def product(function: Function, *shapes: tuple[int, ...]) -> Program:
    """Return the product of the Hessian in the first array with a vector."""
    arrays = drawn(function, *shapes)
    vector = np.random.default_rng(1).standard_normal(shapes[0]).astype("float32")

    def ours(peer: Peer) -> Job:
        lib, grad = peer.lib, peer.grad
        first, *rest = (peer.tensor(a) for a in arrays)
        first.requires_grad_()
        v = peer.tensor(vector)

        def hessian_product() -> Any:
            (slope,) = grad(function(lib, first, *rest), first, create_graph=True)
            return grad(slope, first, v)[0]

        return peer.compiled(hessian_product)

    def jitted() -> Job:
        import jax
        import jax.numpy as jnp

        @jax.jit
        def hessian_product(v: Any, first: Any, *rest: Any) -> Any:
            slope = jax.grad(lambda x: function(jnp, x, *rest))
            return jax.jvp(slope, (first,), (v,))[1]

        return ready(hessian_product, vector, *arrays)

    return Program(ours, jitted, BARS, measured=MEASURED)


def hessian(function: Function, *shapes: tuple[int, ...]) -> Program:
    """Return the Hessian in the first array, a vector; chainrule and PyTorch loop over its rows."""
    arrays = drawn(function, *shapes)

    def ours(peer: Peer) -> Job:
        lib, grad = peer.lib, peer.grad
        first, *rest = (peer.tensor(a) for a in arrays)
        first.requires_grad_()

        def rows() -> Any:
            (slope,) = grad(function(lib, first, *rest), first, create_graph=True)
            return lib.stack([grad(g, first, retain_graph=True)[0] for g in slope])

        return peer.compiled(rows)

    def jitted() -> Job:
        import jax
        import jax.numpy as jnp

        return ready(jax.jit(jax.hessian(lambda *a: function(jnp, *a))), *arrays)

    return Program(ours, jitted, BARS, measured=MEASURED)


def drawn(function: Function, *shapes: tuple[int, ...]) -> list[Any]:
    """Return random arrays; the last one has the values that the function expects there."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype("float32") for shape in shapes]
    last = {logistic: np.sign, nbody_energy: np.abs}.get(function)
    return arrays if last is None else [*arrays[:-1], last(arrays[-1])]


MIXTURES = [(n, d) for n in (1000, 10000) for d in (10, 32)]
REGRESSION = (50,), (5000, 50), (5000,)
PROGRAMS = {
    **{
        f"Gaussian mixture, n {n}, d {d}, k 25{what}": partial(
            kind, mixture, (25, d), (n, d), (25,)
        )
        for kind, what in ((gradient, ""), (product, ": Hessian times vector"))
        for n, d in MIXTURES
    },
    "logistic regression, 5000 × 50": partial(gradient, logistic, *REGRESSION),
    "logistic regression, 5000 × 50: Hessian": partial(hessian, logistic, *REGRESSION),
    "Rosenbrock, 1e6": partial(gradient, rosenbrock, (10**6,)),
    "N-body energy, 500": partial(gradient, nbody_energy, (500, 3), (500,)),
}
