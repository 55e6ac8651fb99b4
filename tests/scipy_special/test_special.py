"""`cr.scipy.special`: every ufunc, the errors of arguments without a derivative, hard places."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.operation import SCIPY_UFUNCS
from chainrule.scipy.special.ufunc import UFUNCS, ufunc
from conformance.rows.scipy_special import POINTS, special

scipy = pytest.importorskip("scipy")

ALL = {
    name: found for name in dir(special) if isinstance(found := getattr(special, name), np.ufunc)
}
TOOL = Path(__file__).resolve().parents[2] / "tools" / "special_page.py"

REFUSED = [
    (name, argument)
    for name, declared in UFUNCS.items()
    for argument in declared.reasons
    if name in POINTS
]


def test_branches_of_lambertw_and_derivatives_of_spherical_functions_are_scipys() -> None:
    ours, z, step = cr.scipy.special, np.array([0.3, 2.0]), 1e-6
    for k in (0, 1):
        found = cr.grad(
            lambda x, k=k: ours.lambertw(x, k).imag.sum() + ours.lambertw(x).real.sum()
        )(z)
        ends = [
            special.lambertw(z + h, k).imag + special.lambertw(z + h).real for h in (step, -step)
        ]
        np.testing.assert_allclose(found, (ends[0] - ends[1]) / (2 * step), rtol=1e-7)
    assert cr.grad(lambda x: ours.lambertw(x).real)(0.0) == 1.0
    for name in ("spherical_jn", "spherical_yn", "spherical_in", "spherical_kn"):
        f, scipys = getattr(ours, name), getattr(special, name)
        for n in (0, 3):
            slope = cr.grad(lambda x, f=f, n=n: f(n, x).sum())(z)
            np.testing.assert_allclose(slope, scipys(n, z, derivative=True), rtol=1e-12)
            given = cr.jvp(lambda x, f=f, n=n: f(n, x, derivative=True), (z,), (np.ones(2),))
            np.testing.assert_allclose(given[0], scipys(n, z, True), rtol=1e-12)
            ends = [scipys(n, z + h, derivative=True) for h in (step, -step)]
            np.testing.assert_allclose(given[1], (ends[0] - ends[1]) / (2 * step), rtol=1e-6)
    with pytest.raises(cr.AutogradError, match="spherical_jn has no derivative with respect to n"):
        cr.grad(lambda n: ours.spherical_jn(n, 1.0))(2.0)


# --- coverage -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_every_ufunc_differentiates_or_says_why_not(name: str) -> None:
    declared = UFUNCS.get(ALL[name].__name__)
    assert callable(getattr(cr.scipy.special, name))
    if declared is None:
        assert ALL[name].__name__ in SCIPY_UFUNCS  # with all derivatives: tests/ops/test_ufuncs.py
        return
    assert len(declared.inputs) == ALL[name].nin
    assert len(declared.outputs) == ALL[name].nout
    if not declared.constant:
        assert {*declared.partials, *declared.reasons} == set(declared.inputs)
        assert not declared.partials.keys() & declared.reasons.keys()


def test_most_ufuncs_have_a_derivative() -> None:
    names = {found.__name__ for found in ALL.values()}
    without = {name for name, d in UFUNCS.items() if not d.partials}
    assert len(names - without) >= 210


def page_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("special_page", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(
    np.lib.NumpyVersion(scipy.__version__) >= "1.18.0", reason="it names arguments otherwise"
)
def test_the_page_is_current() -> None:
    tool = page_tool()
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page(), "run tools/special_page.py"


@pytest.mark.parametrize(("name", "argument"), REFUSED)
def test_an_argument_without_a_derivative_raises_in_both_modes(name: str, argument: str) -> None:
    declared = UFUNCS[name]
    function, at = getattr(cr.scipy.special, name), declared.inputs.index(argument)
    point = [np.real(x) for x in POINTS[name][0]]

    def total(x: Any) -> Any:
        out = function(*point[:at], x, *point[at + 1 :])
        out = sum(out) if isinstance(out, tuple) else out
        return out.real if out.dtype.kind == "c" else out

    x = cr.tensor(float(point[at]), dtype=cr.float64, requires_grad=True)
    text = f"{name} has no derivative with respect to {argument}: .*{argument}.detach"
    with pytest.raises(cr.AutogradError, match=text):
        total(x).backward()
    with pytest.raises(cr.AutogradError, match=text):
        cr.jvp(total, (x.detach(),), (cr.ones_like(x.detach()),))
    assert total(x.detach()).dtype == np.float64


# --- kinds, dtypes and errors ---------------------------------------------------------------------


def test_arrays_and_numbers_get_scipys_own_results() -> None:
    assert type(cr.scipy.special.jv(1, 0.5)) is np.float64
    x = np.array([0.5, 1.5])
    assert type(cr.scipy.special.airy(x)[1]) is np.ndarray
    out = np.empty(2)
    assert cr.scipy.special.ellipk(x / 2, out=out) is out
    assert len(cr.scipy.special.roots_legendre(3)) == 2  # which takes no tensors
    with pytest.raises(AttributeError, match="bessel_of_no_kind"):
        cr.scipy.special.bessel_of_no_kind  # noqa: B018
    assert {"jv", "roots_legendre"} <= set(dir(cr.scipy.special))


def test_scipys_own_functions_record() -> None:
    x = cr.tensor([0.5, 1.5], dtype=cr.float64, requires_grad=True)
    (g,) = cr.autograd_grad(special.jv(0.0, x).sum() + special.airy(x)[0].sum(), x)
    np.testing.assert_allclose(g.numpy(), -special.j1([0.5, 1.5]) + special.airy([0.5, 1.5])[1])
    assert special.jn is special.jv
    assert cr.scipy.special.digamma(x).tolist() == cr.scipy.special.psi(x).tolist()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["airy", "jv", "pro_ang1", "hankel1", "kelvin"])
def test_dtypes_are_kept(name: str, dtype: str) -> None:
    point = POINTS[name][0]
    x = cr.tensor(point[-1], dtype=dtype, requires_grad=True)
    out = getattr(cr.scipy.special, name)(*point[:-1], x)
    first = out[0] if isinstance(out, tuple) else out
    narrow = {"float64": "complex128"}.get(dtype, "complex64")
    assert first.dtype == (narrow if name in ("hankel1", "kelvin") else dtype)
    (g,) = cr.autograd_grad(abs(first), x)
    assert g.dtype == dtype


def test_calls_that_are_wrong_say_how_they_are_right() -> None:
    x = cr.tensor([0.5], dtype=cr.float64)
    with pytest.raises(TypeError, match=r"jv\(v, z\): expected 2 arguments, got 1"):
        cr.scipy.special.jv(x)
    with pytest.raises(TypeError, match=r"jv\(v, z\) of tensors takes no out: leave it out"):
        cr.scipy.special.jv(0, x, out=x)
    with pytest.raises(cr.DTypeError, match="jve: expected real numbers for z, got complex128"):
        cr.scipy.special.jve(0, x + 1j)
    with pytest.raises(cr.DTypeError, match="jv: expected real numbers for v, got complex128"):
        cr.scipy.special.jv(1j, x)
    with pytest.raises(ValueError, match="clash: rules call other things t: rename"):
        ufunc("clash", "t")


def test_logsumexp_of_lists_and_with_signs() -> None:
    special, scipys, h = cr.scipy.special, pytest.importorskip("scipy.special"), 1e-6
    weights = [1.0, -2.0]

    def log(x: float, module: object = special) -> object:
        return module.logsumexp([x, 2 * x], b=weights, return_sign=True)[0]

    assert log(0.3) == scipys.logsumexp([0.3, 0.6], b=weights, return_sign=True)[0]
    wanted = (log(0.3 + h, scipys) - log(0.3 - h, scipys)) / (2 * h)
    assert cr.grad(log)(0.3) == pytest.approx(wanted, rel=1e-8)
    signs = special.logsumexp(cr.tensor([0.3, 0.6]), b=cr.tensor(weights), return_sign=True)[1]
    assert signs.item() == -1.0
    assert cr.grad(lambda x: special.softmax([x, 2 * x])[1])(0.0) == 0.25


def test_scipy_is_imported_when_a_function_is_called() -> None:
    code = "import sys, chainrule as cr; cr.scipy.special; assert 'scipy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- functions that are no ufuncs -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        *[(n, s) for n in ("softmax", "log_softmax") for s in ({}, {"axis": 0}, {"axis": (0, 1)})],
        *[("logsumexp", s) for s in ({}, {"axis": 1}, {"axis": 0, "keepdims": True})],
        ("logsumexp", {"axis": 1, "b": np.array([0.5, 2.0, 1.0])}),
        ("logsumexp", {"b": np.array([0.5, 0.0, 1.0]), "keepdims": True}),
        ("sinc", {}),
    ],
)
def test_functions_that_are_no_ufuncs(name: str, settings: dict[str, Any]) -> None:
    x = np.random.default_rng(5).normal(size=(2, 3))
    function = getattr(cr.scipy.special, name)
    t = cr.tensor(x, requires_grad=True)
    wanted = getattr(special, name)(x, **settings)
    np.testing.assert_allclose(function(t, **settings).detach().numpy(), wanted, rtol=1e-13)
    assert cr.gradcheck(lambda t: function(t, **settings), t, fast_mode=True)
    assert cr.gradgradcheck(lambda t: function(t, **settings), t, fast_mode=True)


# --- hard places, and JAX -------------------------------------------------------------------------


def gradient(name: str, point: tuple[float, ...], argument: int) -> float:
    xs = [cr.tensor(float(x), dtype=cr.float64) for x in point]
    xs[argument].requires_grad_()
    out = getattr(cr.scipy.special, name)(*xs)
    (g,) = cr.autograd_grad(out, xs[argument])
    return float(g.item())


@pytest.mark.parametrize("x", [1e-100, 1e-9, 0.999, 1.0, 1.001])
def test_series_meet_at_the_threshold(x: float) -> None:
    """Of ∫ (1 - J₀(t))/t, whose integrand is x/4 - x³/64 + ... near 0."""
    t = cr.tensor(x, dtype=cr.float64, requires_grad=True)
    (g,) = cr.autograd_grad(cr.scipy.special.it2j0y0(t)[0], t)
    terms = [(-1) ** k * (x / 2) ** (2 * k + 2) / special.factorial(k + 1) ** 2 for k in range(9)]
    np.testing.assert_allclose(g.item(), sum(terms) / x, rtol=1e-13)


@pytest.mark.parametrize("m", [0.4999999, 0.5, 0.5000001, -0.4999999, -0.5])
def test_rules_for_elliptic_integrals_meet_at_the_threshold(m: float) -> None:
    k, e = special.ellipk(m), special.ellipe(m)
    np.testing.assert_allclose(
        gradient("ellipk", (m,), 0), (e - (1 - m) * k) / (2 * m * (1 - m)), rtol=1e-13
    )
    np.testing.assert_allclose(gradient("ellipe", (m,), 0), (e - k) / (2 * m), rtol=1e-13)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_the_reciprocal_gamma_function_is_smooth_at_the_poles(n: int) -> None:
    wanted = (-1.0) ** n * special.factorial(n)
    np.testing.assert_allclose(gradient("rgamma", (-n,), 0), wanted, rtol=1e-12)


JAX = [
    ("gammainc", (2.3, 1.7)), ("gammainc", (0.2, 0.01)), ("gammaincc", (30.0, 25.0)),
    ("betainc", (0.4, 3.0, 0.2)), ("betainc", (20.0, 12.0, 0.7)), ("spence", (0.4,)),
    ("ndtri", (0.2,)), ("hyp1f1", (0.7, 1.9, 0.8)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "point"), JAX)
def test_beside_jax(name: str, point: tuple[float, ...]) -> None:
    jax = pytest.importorskip("jax")
    last = len(point) - 1
    with jax.enable_x64(True):
        function = getattr(jax.scipy.special, name)
        for i in [last] if name in ("hyp1f1", "betainc") else range(len(point)):
            theirs = float(jax.grad(function, argnums=i)(*map(jax.numpy.float64, point)))
            np.testing.assert_allclose(gradient(name, point, i), theirs, rtol=1e-8)


def test_tukeys_lambda_distribution_is_constant_outside_of_its_support() -> None:
    scipys, step = pytest.importorskip("scipy.special").tklmbda, 1e-6
    for x in (np.array([0.2, -0.3]), np.array([0.6, -0.7])):  # the support ends at 1 / 2.5
        total = lambda x, lmbda: cr.scipy.special.tklmbda(x, lmbda).sum()  # noqa: E731
        by_x, by_lambda = cr.grad(total, (0, 1))(x, 2.5)
        wanted = (scipys(x + step, 2.5) - scipys(x - step, 2.5)) / (2 * step)
        np.testing.assert_allclose(by_x, wanted, 1e-6)
        wanted = (scipys(x, 2.5 + step) - scipys(x, 2.5 - step)).sum() / (2 * step)
        np.testing.assert_allclose(by_lambda, wanted, 1e-6, 1e-8)


def test_parameters_of_distributions_far_in_the_tails() -> None:
    """Beside fifty digits, by central differences of mpmath."""
    mp = pytest.importorskip("mpmath")
    with mp.workdps(50):
        step = mp.mpf(10) ** -15
        for a, x in ((0.05, 1e-6), (0.05, 4.0), (3.0, 1e-3), (3.0, 40.0), (80.0, 30.0)):
            below, above = (
                mp.gammainc(mp.mpf(a) + sign * step, 0, x, regularized=True) for sign in (-1, 1)
            )
            wanted = float((above - below) / (2 * step))
            np.testing.assert_allclose(gradient("gammainc", (a, x), 0), wanted, rtol=1e-11)
        for a, b, x in ((0.05, 60.0, 0.3), (40.0, 0.1, 0.99), (0.5, 0.5, 1e-9), (20.0, 30.0, 0.8)):
            below, above = (
                mp.betainc(a, mp.mpf(b) + sign * step, 0, x, regularized=True) for sign in (-1, 1)
            )
            wanted = float((above - below) / (2 * step))
            np.testing.assert_allclose(gradient("betainc", (a, b, x), 1), wanted, rtol=1e-10)


# --- complex arguments, and arrays in compiled functions ------------------------------------------

Z = np.array([0.7 + 0.3j, 1.2 - 0.4j])
HOLOMORPHIC = ["erf", "erfc", "erfcx", "erfi", "dawsn", "exp1", "expi", "ndtr", "log_ndtr", "wofz"]
STEP = 1e-5


def tangent(function: Any, z: Any) -> Any:
    return cr.jvp(function, z, np.ones_like(z))[1]


@pytest.mark.parametrize("name", [*HOLOMORPHIC, "gamma", "rgamma", "loggamma"])
def test_derivatives_by_complex_numbers(name: str) -> None:
    ours, scipys = getattr(cr.scipy.special, name), ALL[name]
    differences = (scipys(Z + STEP) - scipys(Z - STEP)) / (2 * STEP)
    np.testing.assert_allclose(tangent(ours, Z), differences, rtol=1e-7)
    np.testing.assert_allclose(cr.compile(ours)(Z), scipys(Z), rtol=1e-12)
    gradient = cr.grad(lambda z: np.sum(np.abs(scipys(z)) ** 2))(Z)  # 2 f conj(f')
    np.testing.assert_allclose(gradient, 2 * scipys(Z) * differences.conj(), rtol=1e-7)
    if name in HOLOMORPHIC:
        second = (tangent(ours, Z + STEP) - tangent(ours, Z - STEP)) / (2 * STEP)
        np.testing.assert_allclose(tangent(lambda z: tangent(ours, z), Z), second, rtol=1e-7)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
@pytest.mark.parametrize(("x", "y"), [(0.4 + 0.1j, 1.3 - 0.2j), (0.4, 1.3 - 0.2j)])
def test_products_with_logarithms_of_complex_numbers(name: str, x: complex, y: complex) -> None:
    ours, scipys = getattr(cr.scipy.special, name), ALL[name]
    first = (scipys(x + STEP, y) - scipys(x - STEP, y)) / (2 * STEP)
    second = (scipys(x, y + STEP) - scipys(x, y - STEP)) / (2 * STEP)
    ones = (np.ones_like(x), np.ones_like(y))
    found = [
        cr.jvp(lambda x: ours(x, y), x, ones[0])[1],
        cr.jvp(lambda y: ours(x, y), y, ones[1])[1],
    ]
    np.testing.assert_allclose(found, [first, second], rtol=1e-7)
    np.testing.assert_allclose(ours(cr.tensor(x), cr.tensor(y)).numpy(), scipys(x, y), rtol=1e-6)


def test_digamma_of_complex_numbers_says_why_it_has_no_derivative() -> None:
    np.testing.assert_allclose(cr.scipy.special.psi(cr.tensor(Z)).numpy(), special.psi(Z))
    with pytest.raises(cr.AutogradError, match="no polygamma function of complex numbers"):
        tangent(cr.scipy.special.psi, Z)


@pytest.mark.parametrize("namespace", [cr.scipy.special, special], ids=["ours", "scipy"])
@pytest.mark.parametrize(
    "call",
    [
        lambda s, x: s.erf(x) * s.gammaln(x),
        lambda s, x: s.jv(0.5, x) + s.betainc(x, 1.5, 0.3),
        lambda s, x: s.airy(x)[0] + s.xlogy(x, 2.0),
    ],
)
def test_compiled_functions_of_arrays(call: Any, namespace: Any) -> None:
    x = np.array([0.5, 1.5, 2.5])
    found = cr.compile(lambda x: call(namespace, x))(x)
    assert type(found) is np.ndarray
    np.testing.assert_allclose(found, call(special, x), rtol=1e-10)


def test_compiled_functions_of_arrays_that_are_no_ufuncs() -> None:
    x = np.array([0.5, 1.5, 2.5])
    ours = cr.scipy.special
    compiled = cr.compile(lambda x: ours.logsumexp(x) * ours.softmax(x) + ours.log_softmax(x))
    expected = special.logsumexp(x) * special.softmax(x) + special.log_softmax(x)
    np.testing.assert_allclose(compiled(x), expected, rtol=1e-12)


LISTS: dict[str, Callable[[Any, Any], Any]] = {
    "orders": lambda s, t: s.polygamma([0, 1, 2], t).sum(),
    "orders and points": lambda s, t: s.polygamma(np.array([[0], [1]]), [t, 2.0]).sum(),
    "constants and a number": lambda s, t: s.xlogy([1.0, 2.0], t).sum(),
    "constants and points": lambda s, t: s.xlogy([1.0, 2.0], [t, t * t]).sum(),
    "axes": lambda s, t: s.softmax(t * np.eye(2), (0, 1))[0, 0],
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_among_the_arguments(name: str) -> None:
    program, h = LISTS[name], 1e-6
    wanted = (program(special, 1.3 + h) - program(special, 1.3 - h)) / (2 * h)
    found = cr.grad(lambda t: program(cr.scipy.special, t))(1.3)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
