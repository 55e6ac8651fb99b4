"""Accuracy, in units in the last place, of the special functions used without SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from chainrule.kernels import elementwise, erf_gamma

RNG = np.random.default_rng(0)
EDGES = [0.0, -0.0, 1.0, -1.0, 5.0, math.inf, -math.inf, 1e-320]


def units(got: np.ndarray, wanted: np.ndarray) -> float:
    """Return the largest error in units in the last place."""
    np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
    with np.errstate(invalid="ignore"):
        errors = np.abs(got - wanted) / np.spacing(np.abs(wanted))
    return float(np.nanmax(np.where(got == wanted, 0, errors)))


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_error_functions(name):
    x = np.concatenate(
        [
            RNG.uniform(-6, 6, 20000),
            RNG.uniform(0, 27, 5000),
            10 ** RNG.uniform(-300, 0, 2000),
            [*EDGES, math.nan],
        ]
    )
    wanted = np.array([getattr(math, name)(v) for v in x])
    tiny = np.abs(wanted) < 1e-300  # subnormal numbers have fewer digits
    got = getattr(erf_gamma, name)(x)
    assert units(got[~tiny], wanted[~tiny]) <= 6
    np.testing.assert_allclose(got[tiny], wanted[tiny], atol=1e-307)


def test_log_gamma():
    x = np.concatenate(
        [
            RNG.uniform(-20, 20, 20000),
            10 ** RNG.uniform(-300, 300, 3000),
            -(10 ** RNG.uniform(-300, 1, 2000)),
            RNG.uniform(0.5, 3, 5000),
        ]
    )
    wanted = np.array([math.lgamma(v) for v in x])
    error = np.abs(erf_gamma.lgamma(x) - wanted) / np.maximum(1, np.abs(wanted))
    assert error.max() < 2e-14
    poles = np.array([0.0, -0.0, -1.0, -2.0, math.inf, -math.inf])
    np.testing.assert_array_equal(erf_gamma.lgamma(poles), np.inf)
    assert np.isnan(erf_gamma.lgamma(np.array(math.nan)))


def test_digamma():
    special = pytest.importorskip("scipy.special")
    x = np.concatenate([RNG.uniform(-20, 20, 5000), 10 ** RNG.uniform(-300, 300, 2000)])
    wanted = special.psi(x)
    error = np.abs(erf_gamma.digamma(x) - wanted) / np.maximum(1, np.abs(wanted))
    assert error.max() < 5e-12  # near a pole both lose 20 ulp
    np.testing.assert_array_equal(
        erf_gamma.digamma(np.array([0.0, -0.0, -1.0, math.inf, math.nan])),
        [-math.inf, math.inf, math.nan, math.inf, math.nan],
    )


@pytest.mark.parametrize("order", range(6))
def test_spherical_bessel_functions(order):
    special = pytest.importorskip("scipy.special")
    x = np.concatenate([RNG.uniform(0, 40, 3000), 10 ** RNG.uniform(-5, 1, 1000)])
    wanted = special.spherical_jn(order, x)
    got = elementwise.spherical_bessel_j(np, x, order=order)
    np.testing.assert_allclose(got, wanted, rtol=3e-14, atol=1e-15)
    flipped = elementwise.spherical_bessel_j(np, -x, order=order)
    np.testing.assert_allclose(flipped, (-1) ** order * got, rtol=3e-15)
    single = elementwise.spherical_bessel_j(np, x.astype(np.float32), order=order)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, wanted, rtol=2e-4, atol=1e-5)
