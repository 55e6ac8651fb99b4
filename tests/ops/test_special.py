"""Special functions: edge cases, compared with PyTorch, and without SciPy."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import compare_with_torch

pytest.importorskip("scipy.special")

NAN, INF = math.nan, math.inf


def derivatives(function: Any, x: float, order: int) -> list[float]:
    """Return the first derivatives of a function at a float64 number."""
    point = cr.tensor(x, dtype=cr.float64, requires_grad=True)
    values, last = [], function(point)
    for _ in range(order):
        (last,) = cr.autograd_grad(last, point, create_graph=True)
        values.append(last.item())
    return values


# --- hard places ----------------------------------------------------------------------------------


def test_sinc_is_smooth_at_0():
    expected = [0, -(math.pi**2) / 3, 0, math.pi**4 / 5, 0, -(math.pi**6) / 7]
    np.testing.assert_allclose(derivatives(cr.sinc, 0.0, 6), expected, rtol=1e-13)
    for x in (1e-12, 1e-6, 1e-3):
        slope = -(math.pi**2) * x / 3 + math.pi**4 * x**3 / 30
        assert derivatives(cr.sinc, x, 1)[0] == pytest.approx(slope, rel=1e-10)
    assert cr.sinc(cr.tensor(0)).item() == 1


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64"])
def test_sinc_keeps_dtypes(dtype):
    x = cr.tensor([0.0, 0.5], dtype=dtype)
    assert cr.sinc(x).dtype == x.dtype
    np.testing.assert_allclose(cr.sinc(x).numpy(), np.sinc(x.numpy()), rtol=2e-3)


def test_lgamma_and_digamma_at_their_poles():
    x = cr.tensor([0.0, -1.0, INF, -INF], dtype=cr.float64, requires_grad=True)
    assert cr.lgamma(x).tolist()[:3] == [INF, INF, INF]
    (g,) = cr.autograd_grad(cr.lgamma(x).sum(), x)
    np.testing.assert_array_equal(g.numpy()[:3], [-INF, NAN, INF])
    assert cr.digamma(cr.tensor([0.0, -0.0])).tolist() == [-INF, INF]


def test_erfinv_and_logit_at_the_ends():
    with np.errstate(all="ignore"):
        assert derivatives(cr.erfinv, 1.0, 1) == [INF]
        assert cr.erfinv(cr.tensor([-1.0, 2.0])).tolist()[0] == -INF
        compare_with_torch(lambda lib, x: lib.logit(x), [0.0, 1.0, 0.5, -0.1, 1.2], order=1)
        compare_with_torch(lambda lib, x: lib.special.entr(x), [0.0, -1.0, 1.0], order=1)
    compare_with_torch(
        lambda lib, x: lib.logit(x, eps=0.1), [0.0, 1, 0.5, -0.1, 1.2, 0.1, 0.9], order=1
    )
    compare_with_torch(lambda lib, x: lib.logit(x, 0.1), [0.05, 0.3])


def test_polygamma_has_all_orders():
    for n in range(4):
        expected = [cr.polygamma(n + k, cr.tensor(0.7, dtype=cr.float64)).item() for k in (1, 2)]
        np.testing.assert_allclose(
            derivatives(lambda x, n=n: cr.polygamma(n, x), 0.7, 2), expected, rtol=1e-13
        )
    assert cr.polygamma(3, cr.tensor([1.0])).dtype == cr.float32
    assert cr.tensor([1.0]).polygamma(1).item() == pytest.approx(math.pi**2 / 6, rel=1e-6)
    with pytest.raises(ValueError, match="does not support negative n, got n = -1"):
        cr.polygamma(-1, cr.ones(1))


def test_bessel_functions_are_smooth_at_0():
    assert derivatives(cr.special.i1, 0.0, 3) == [0.5, 0, 0.375]
    assert derivatives(cr.special.bessel_j1, 0.0, 3) == [0.5, 0, -0.375]
    assert derivatives(cr.i0, 0.0, 2) == [0, 0.5]
    assert derivatives(cr.special.spherical_bessel_j0, 0.0, 2) == [0, pytest.approx(-1 / 3)]
    assert derivatives(cr.special.i1e, 0.0, 1) == [0.5]


def test_log_ndtr_of_huge_numbers():
    (slope,) = derivatives(cr.special.log_ndtr, -1e4, 1)
    assert slope == pytest.approx(1e4 + 1e-4, rel=1e-12)
    assert derivatives(cr.special.log_expit, -1e3, 1) == [1]
    assert derivatives(cr.special.log_ndtr, 50.0, 1) == [0]


def test_the_second_derivative_of_log_ndtr_is_finite_everywhere():
    density = math.exp(-450) / math.sqrt(2 * math.pi)
    assert derivatives(cr.special.log_ndtr, 30.0, 2) == pytest.approx([density, -30 * density])
    for x in (50.0, 171.0, 1e10, INF):
        assert derivatives(cr.special.log_ndtr, x, 2) == [0, 0]
    found = derivatives(cr.special.log_ndtr, -700.0, 2)
    assert found == pytest.approx([700.001428565598, -0.999997959208663], rel=1e-12)


@pytest.mark.parametrize(
    ("name", "x", "expected"),  # by mpmath
    [
        ("erfcx", 20.0, [-0.0014052174534598, 0.000139999343710593]),
        ("erfcx", 1e4, [-5.64189575084913e-9, 1.12837913324414e-12]),
        ("erfcx", INF, [0, 0]),
        ("dawsn", 20.0, [-0.00125471705614688, 0.000125946393067771]),
        ("dawsn", -1e4, [-5.000000075e-9, -1.00000003e-12]),
        ("dawsn", -INF, [0, 0]),
    ],
)
def test_derivatives_at_huge_numbers_do_not_cancel(name, x, expected):
    found = derivatives(getattr(cr.special, name), x, 2)
    assert found == pytest.approx(expected, rel=1e-9, abs=0)


@pytest.mark.parametrize(
    ("name", "slope"),
    [
        ("i0e", -1.9947114e-16),
        ("i1e", -1.9947114e-16),
        ("scaled_modified_bessel_k0", -6.2665707e-16),
        ("scaled_modified_bessel_k1", -6.2665707e-16),
    ],
)
def test_scaled_bessel_functions_of_huge_numbers(name, slope):
    function = getattr(cr.special, name)
    assert derivatives(function, 1e10, 1) == pytest.approx([slope], rel=1e-5)
    for x in (1e10, 1e200, INF):
        np.testing.assert_allclose(derivatives(function, x, 2), 0, atol=1e-15)
    if name.startswith("i"):
        sign = 1 if name == "i1e" else -1
        assert derivatives(function, -1e10, 1) == pytest.approx([sign * slope], rel=1e-5)


def test_derivatives_without_a_closed_form_say_so():
    x = cr.tensor([1.5], requires_grad=True)
    with pytest.raises(cr.AutogradError, match="derivative of zeta for x is not implemented"):
        cr.special.zeta(x, 1.0).backward()
    assert cr.special.zeta(x.detach(), 1.0).item() == pytest.approx(2.6123753, rel=1e-6)


# --- beside PyTorch -------------------------------------------------------------------------------

NAMES = (
    *("erf", "erfc", "erfcx", "exp2", "expit", "expm1", "i0", "i0e", "i1", "i1e", "log1p"),
    *("logit", "ndtr", "ndtri", "log_ndtr", "sinc", "entr", "round", "gammaln", "erfinv"),
)


@pytest.mark.parametrize("name", NAMES)
def test_special_functions_as_in_pytorch(name):
    order = 1 if name in ("gammaln", "log_ndtr") else 2  # its second ones are right to nine digits
    compare_with_torch(lambda lib, x: getattr(lib.special, name)(x), [0.2, 0.5, 0.9], order=order)
    compare_with_torch(
        lambda lib, x: getattr(lib.special, name)(x), np.float32([0.25, 0.5]), order=0
    )
    if name != "round":
        compare_with_torch(
            lambda lib, x: getattr(lib.special, name)(x), np.array([0, 1])[:0], order=0
        )


@pytest.mark.parametrize(
    "name",
    [
        *("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "spherical_bessel_j0"),
        *("modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1"),
        *("scaled_modified_bessel_k0", "scaled_modified_bessel_k1"),
    ],
)
def test_values_as_in_pytorch(name):
    compare_with_torch(lambda lib, x: getattr(lib.special, name)(x), [0.2, 1.5, 3.0], order=0)


def test_binary_functions_as_in_pytorch():
    x, y = [0.5, 2.0], [1.5, 3.0]
    for name in ("xlogy", "xlog1py"):
        compare_with_torch(lambda lib, a, b, n=name: getattr(lib.special, n)(a, b), x, y)
    for name in ("gammainc", "gammaincc", "zeta"):
        compare_with_torch(
            lambda lib, a, b, n=name: getattr(lib.special, n)(a.detach() + 1, b.detach()), x, y
        )
    compare_with_torch(lambda lib, b: lib.igamma(lib.tensor(2.0, dtype=b.dtype), b), y)
    compare_with_torch(lambda lib, b: lib.tensor([2.0, 3.0], dtype=b.dtype).igammac(b), y)


@pytest.mark.parametrize("p", [1, 2, 5])
def test_mvlgamma(p):
    compare_with_torch(lambda lib, x: lib.mvlgamma(x, p), [2.5, 4.0], order=1)
    compare_with_torch(lambda lib, x: x.mvlgamma(p), np.array([3, 4]), order=0)
    compare_with_torch(lambda lib, x: lib.special.multigammaln(x, p), [2.5, 4.0], order=1)
    with pytest.raises(ValueError, match="p has to be greater than or equal to 1, got p = 0"):
        cr.mvlgamma(cr.ones(1), 0)


def test_every_name_of_the_module_is_there():
    for name in cr.special.__all__:
        function = getattr(cr.special, name)
        assert function.__doc__, name
    torch = pytest.importorskip("torch")
    beyond = ("polynomial", "airy_ai")
    theirs = [n for n in torch.special.__all__ if not any(part in n for part in beyond)]
    assert set(theirs) <= set(cr.special.__all__)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["erf", "erfc", "erfinv", "lgamma", "digamma", "i0", "logit"])
def test_dtypes_are_kept(name, dtype):
    x = cr.tensor([0.25, 0.5], dtype=dtype, requires_grad=True)
    out = getattr(cr, name)(x)
    assert out.dtype == dtype
    assert cr.autograd_grad(out.sum(), x)[0].dtype == dtype
    assert getattr(cr, name)(cr.tensor([1])[:0]).dtype == cr.float32


@pytest.mark.parametrize("name", ["erf", "lgamma", "digamma", "logit", "i0", "mvlgamma"])
def test_complex_numbers_are_refused(name):
    settings = {"p": 2} if name == "mvlgamma" else {}
    with pytest.raises(cr.DTypeError, match=f"{name}: expected real numbers"):
        getattr(cr, name)(cr.tensor([1j]), **settings)


# --- without SciPy --------------------------------------------------------------------------------


def test_without_scipy_the_commonest_work_and_the_others_name_the_extra():
    code = """
import sys
sys.modules["scipy"] = None
import numpy as np, math
import chainrule as cr
x = cr.tensor([0.3, -1.5, 2.5], dtype=cr.float64, requires_grad=True)
def check(function, exact):
    out = function(x)
    np.testing.assert_allclose(out.detach().numpy(), [exact(v) for v in x.tolist()], rtol=1e-14)
    assert cr.gradcheck(function, x, fast_mode=True)
check(cr.erf, math.erf)
check(cr.erfc, math.erfc)
check(cr.lgamma, math.lgamma)
check(cr.special.ndtr, lambda v: math.erfc(-v / math.sqrt(2)) / 2)
for function in (cr.sinc, cr.special.log_expit, cr.special.spherical_bessel_j0):
    assert cr.gradgradcheck(function, x, fast_mode=True)
assert cr.erf(x.float()).dtype == cr.float32
for call in (lambda: cr.erfinv(x), lambda: cr.i0(x), lambda: cr.special.gamma(x),
             lambda: cr.polygamma(1, x)):
    try:
        call()
    except cr.MissingExtraError as error:
        assert "needs SciPy, which is not installed: pip install 'chainrule[scipy]'" in str(error)
    else:
        raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("x", [math.inf, -math.inf])
def test_spherical_bessel_functions_vanish_at_infinity(x):
    x = cr.tensor(x, requires_grad=True)
    out = cr.special.spherical_bessel_j0(x)
    out.backward()
    assert out == 0
    assert x.grad == 0


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_polygamma_of_many_numbers_is_that_of_each(order):
    x = np.concatenate([np.logspace(-50, 290, 9000), [math.inf, math.nan]])
    many = cr.polygamma(order, cr.from_numpy(x)).numpy()
    few = [
        cr.polygamma(order, cr.from_numpy(x[i : i + 200])).numpy() for i in range(0, len(x), 200)
    ]
    np.testing.assert_allclose(many, np.concatenate(few), rtol=3e-15, atol=1e-300)
    x[5] = -0.5
    assert cr.polygamma(order, cr.from_numpy(x))[5] == cr.polygamma(order, cr.tensor(x[5]))


def test_polygamma_of_many_numbers_satisfies_its_recurrence():  # DLMF 5.15.5
    x = np.linspace(0.5, 30, 1000)
    for order in (1, 2, 3, 4):
        here, next_one = [cr.polygamma(order, cr.from_numpy(x + i)).numpy() for i in (0, 1)]
        step = (-1) ** order * math.factorial(order) * x ** (-order - 1.0)
        np.testing.assert_allclose(here + step, next_one, rtol=1e-12, atol=1e-12)
    trigamma = cr.polygamma(1, cr.ones(300, dtype=cr.float64)).numpy()
    np.testing.assert_allclose(trigamma, math.pi**2 / 6, rtol=4e-16)
