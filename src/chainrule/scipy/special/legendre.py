"""Legendre functions and spherical harmonics under the names that SciPy has from 1.15 on.

Derivatives that SciPy returns for `diff_n` are recorded, too, and so differentiable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd.tensor import Tensor
from chainrule.creation import ones_like
from chainrule.errors import ArgumentError
from chainrule.interop.operands import arrays_of, is_tracked, tensor_of
from chainrule.operation import SCIPY_UFUNCS
from chainrule.ops.special import lgamma
from chainrule.scipy.special.ufunc import refusal
from chainrule.transforms.products import jvp

Function = Callable[[Tensor], Tensor]


def _counts(function: str, **given: Any) -> Any:
    """Return degrees and orders, which are integers."""
    for argument, value in given.items():
        if is_tracked(value):
            refusal(function, argument, f"{argument} counts, so it is an integer")(ops)
    return [np.asarray(arrays_of(value)) for value in given.values()]


def _slope(f: Function) -> Function:
    def slope(x: Tensor) -> Tensor:
        found: Tensor = jvp(f, (x,), (ones_like(x),))[1]
        return found

    return slope


def _orders(name: str, f: Function, x: Any, diff_n: int) -> Tensor:
    """Return a function and its derivatives to the order `diff_n`, along a first axis."""
    _check(name, diff_n)
    x, found = tensor_of(x), []
    for _ in range(diff_n + 1):
        found.append(f(x))
        f = _slope(f)
    return ops.stack(found)


def _check(name: str, diff_n: Any) -> None:
    if diff_n not in (0, 1, 2):
        raise ArgumentError(f"scipy.special.{name}: diff_n is 0, 1 or 2, got {diff_n!r}")


def _all(function: Callable[..., Tensor], n: int, m: int | None, axis: int) -> Tensor:
    """Return a function of all degrees, and all orders (0 … m, -m … -1), along new axes."""
    columns = [function(i) if m is None else _of_orders(function, i, m, axis) for i in range(n + 1)]
    return ops.stack(columns, dim=axis)


def _of_orders(function: Callable[..., Tensor], n: int, m: int, axis: int) -> Tensor:
    return ops.stack([function(n, j) for j in [*range(m + 1), *range(-m, 0)]], dim=axis)


# --- Legendre functions ---------------------------------------------------------------------------


def legendre_p(n: Any, z: Any, *, diff_n: int = 0) -> Tensor:
    """Return Legendre's polynomial of degree `n`, and derivatives along a first axis."""
    (n,) = _counts("legendre_p", n=n)
    return _orders("legendre_p", lambda z: SCIPY_UFUNCS["eval_legendre"](n, z), z, diff_n)


def legendre_p_all(n: int, z: Any, *, diff_n: int = 0) -> Tensor:
    """Return Legendre's polynomials of all degrees up to `n`, along a second axis."""
    return _all(lambda i: legendre_p(i, z, diff_n=diff_n), n, None, 1)


def assoc_legendre_p(
    n: Any, m: Any, z: Any, *, branch_cut: int = 2, norm: bool = False, diff_n: int = 0
) -> Tensor:
    """Return the associated Legendre function, and derivatives along a first axis."""
    name = "assoc_legendre_p"
    n, m = _counts(name, n=n, m=m)
    if branch_cut != 2:
        raise ArgumentError(f"scipy.special.{name} of tensors takes branch_cut=2, got {branch_cut}")
    exists = abs(m) <= n
    m = np.where(exists, m, 0)
    scale = np.where(exists, _norm(n, m) if norm else 1.0, 0.0)
    return _orders(name, lambda z: scale * SCIPY_UFUNCS["lpmv"](m, n, z), z, diff_n)


def _norm(n: Any, m: Any) -> Any:
    ratio = [arrays_of(lgamma(tensor_of(n + sign * m + 1.0))) for sign in (-1, 1)]
    return np.sqrt((2 * n + 1) / 2) * np.exp((ratio[0] - ratio[1]) / 2)


def assoc_legendre_p_all(
    n: int, m: int, z: Any, *, branch_cut: int = 2, norm: bool = False, diff_n: int = 0
) -> Tensor:
    """Return associated Legendre functions of all degrees up to `n`, and orders up to `m`."""

    def function(i: int, j: int) -> Tensor:
        return assoc_legendre_p(i, j, z, branch_cut=branch_cut, norm=norm, diff_n=diff_n)

    return _all(function, n, m, 1)


def sph_legendre_p(n: Any, m: Any, theta: Any, *, diff_n: int = 0) -> Tensor:
    """Return the spherical Legendre function, and derivatives along a first axis."""
    n, m = _counts("sph_legendre_p", n=n, m=m)
    function = SCIPY_UFUNCS["sph_legendre_p"]
    return _orders("sph_legendre_p", lambda theta: function(n, m, theta), theta, diff_n)


def sph_legendre_p_all(n: int, m: int, theta: Any, *, diff_n: int = 0) -> Tensor:
    """Return spherical Legendre functions of all degrees up to `n`, and orders up to `m`."""
    return _all(lambda i, j: sph_legendre_p(i, j, theta, diff_n=diff_n), n, m, 1)


# --- spherical harmonics --------------------------------------------------------------------------


def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, *, diff_n: int = 0) -> Any:
    """Return a spherical harmonic; with `diff_n`, also its gradient, and its matrix of second ones.

    Derivatives: with respect to both angles, at the poles, too.
    """
    _check("sph_harm_y", diff_n)
    n, m = _counts("sph_harm_y", n=n, m=m)
    theta, phi = tensor_of(theta), tensor_of(phi)
    # d/dφ multiplies by im
    waves = [ops.exp(1j * m * phi) * (1j * m) ** order for order in range(diff_n + 1)]
    legendre = sph_legendre_p(n, m, theta, diff_n=diff_n)
    value = legendre[0] * waves[0]
    if not diff_n:
        return value
    gradient = ops.stack([legendre[1] * waves[0], legendre[0] * waves[1]], dim=-1)
    if diff_n == 1:
        return value, gradient
    mixed = legendre[1] * waves[1]
    rows = [[legendre[2] * waves[0], mixed], [mixed, legendre[0] * waves[2]]]
    matrix = ops.stack([ops.stack(row, dim=-1) for row in rows], dim=-2)
    return value, gradient, matrix


def sph_harm_y_all(n: int, m: int, theta: Any, phi: Any, *, diff_n: int = 0) -> Any:
    """Return spherical harmonics of all degrees up to `n`, and orders up to `m`, along two axes."""
    parts = range(diff_n + 1)

    def part(k: int) -> Tensor:
        def function(i: int, j: int) -> Tensor:
            found = sph_harm_y(i, j, theta, phi, diff_n=diff_n)
            kept: Tensor = found[k] if diff_n else found
            return kept

        return _all(function, n, m, 0)

    return tuple([part(k) for k in parts]) if diff_n else part(0)


# --- combinations ---------------------------------------------------------------------------------


def comb(N: Any, k: Any, *, exact: bool = False, repetition: bool = False) -> Tensor:
    """Return the number of combinations, by gamma functions; 0 where there is none."""
    if exact:
        raise ArgumentError("scipy.special.comb of tensors takes exact=False: it is for integers")
    if repetition:
        return comb(N + k - 1, k)
    N, k = tensor_of(N), tensor_of(k)
    found: Tensor = ops.where((k <= N) & (N >= 0) & (k >= 0), SCIPY_UFUNCS["binom"](N, k), 0.0)
    return found


def perm(N: Any, k: Any, exact: bool = False) -> Tensor:
    """Return the number of arrangements, by gamma functions; 0 where there is none."""
    if exact:
        raise ArgumentError("scipy.special.perm of tensors takes exact=False: it is for integers")
    N, k = tensor_of(N), tensor_of(k)
    poch = SCIPY_UFUNCS["poch"](N - k + 1, k)
    found: Tensor = ops.where((k <= N) & (N >= 0) & (k >= 0), poch, 0.0)
    return found


FUNCTIONS: dict[str, Callable[..., Any]] = {
    found.__name__: found
    for found in (
        *(legendre_p, legendre_p_all, assoc_legendre_p, assoc_legendre_p_all, sph_legendre_p),
        *(sph_legendre_p_all, sph_harm_y, sph_harm_y_all, comb, perm),
    )
}
"""Functions of tensors for functions of SciPy's that are no ufuncs."""
