"""Legendre functions, spherical harmonics and combinations, beside differences of SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

special = pytest.importorskip("scipy.special")
pytest.importorskip("scipy", minversion="1.15")

ANGLES = np.array([0.7, 1.9, 4.0])
POINTS = np.array([-0.4, 0.3, 0.8])

CASES: dict[str, tuple[Callable[[Any, Any, Any], Any], Any]] = {
    "legendre_p": (lambda s, xp, x: s.legendre_p([[2], [5]], x), POINTS),
    "legendre_p_all": (lambda s, xp, x: s.legendre_p_all(3, x, diff_n=2), POINTS),
    "assoc_legendre_p": (
        lambda s, xp, x: s.assoc_legendre_p(3, [[-2], [1], [-4]], x, diff_n=1), POINTS),
    "assoc_legendre_p_all": (
        lambda s, xp, x: s.assoc_legendre_p_all(2, 2, x, norm=True), POINTS),
    "sph_legendre_p": (lambda s, xp, x: s.sph_legendre_p(3, [[-3], [0], [2]], x), ANGLES),
    "sph_legendre_p_all": (lambda s, xp, x: s.sph_legendre_p_all(2, 3, x, diff_n=1), ANGLES),
    "sph_harm_y": (lambda s, xp, x: xp.real(s.sph_harm_y(3, -2, x, x[::-1])), ANGLES),
    "sph_harm_y-diff": (
        lambda s, xp, x: xp.imag(s.sph_harm_y(3, 1, x, x[0], diff_n=2)[2]), ANGLES),
    "sph_harm_y_all": (
        lambda s, xp, x: xp.real(s.sph_harm_y_all(2, 1, x, x[0], diff_n=1)[1]), ANGLES),
    "comb": (lambda s, xp, x: s.comb(4 + x, 2 + x), POINTS),
    "comb-repetition": (lambda s, xp, x: s.comb(3 + x, 2, repetition=True), POINTS),
    "perm": (lambda s, xp, x: s.perm(4 + x, 2), POINTS),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values_and_both_orders(name: str) -> None:
    program, x = CASES[name]
    weights = np.cos(np.arange(1.0, 1.0 + program(special, np, x).size))

    def ours(x: Any) -> Any:
        return (weights * program(cr.scipy.special, cr.numpy, x).ravel()).sum()

    def scipys(x: Any) -> Any:
        return (weights * program(special, np, x).ravel()).sum()

    found = program(cr.scipy.special, cr.numpy, cr.numpy.array(x))
    np.testing.assert_allclose(found, program(special, np, x), 1e-10, 1e-12)
    slope, step = cr.grad(ours)(x), 1e-6
    wanted = [(scipys(x + step * e) - scipys(x - step * e)) / (2 * step) for e in np.eye(3)]
    np.testing.assert_allclose(slope, wanted, 1e-6, 1e-7)
    direction = np.array([0.3, -1.0, 0.4])
    assert cr.jvp(ours, (x,), (direction,))[1] == pytest.approx(slope @ direction, rel=1e-9)
    ends = [cr.grad(ours)(x + sign * step * direction) for sign in (1, -1)]
    change = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(cr.hvp(ours, x, direction), change, 1e-5, 1e-6)
    compiled = cr.compile(cr.grad(ours), backend="numpy")
    np.testing.assert_allclose(compiled(x), slope, 1e-9, 1e-12)


def test_harmonics_have_derivatives_at_the_poles() -> None:
    y = cr.scipy.special.sph_harm_y
    slope = cr.grad(lambda theta: y(2, 1, theta, 0.0).real)(0.0)
    assert slope == pytest.approx(special.sph_harm_y(2, 1, 1e-7, 0.0).real / 1e-7, rel=1e-6)


def test_mistakes_are_errors() -> None:
    s, x = cr.scipy.special, cr.numpy.array(POINTS)
    with pytest.raises(cr.ArgumentError, match="diff_n is 0, 1 or 2, got 3"):
        s.legendre_p(2, x, diff_n=3)
    with pytest.raises(cr.AutogradError, match=r"sph_harm_y has no derivative .* n: n counts, so"):
        cr.grad(lambda n: s.sph_harm_y(n, 1, 0.3, 0.4).real)(2.0)
    with pytest.raises(cr.ArgumentError, match="takes branch_cut=2, got 3"):
        s.assoc_legendre_p(2, 1, x, branch_cut=3)
    for function in (s.comb, s.perm):
        with pytest.raises(cr.ArgumentError, match="takes exact=False: it is for integers"):
            function(x, 2, exact=True)
