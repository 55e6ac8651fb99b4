"""wrap: functions of foreign code, whose derivatives rules give."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

P = {"a": np.array([0.1, 0.2, 0.3]), "b": [np.array([1.0, 2.0, 3.0]), 2.0]}


def tree_of(p: Any) -> Any:
    x, (y, z) = p["a"], p["b"]
    return {"u": np.sin(x) * y * z, "v": (np.cumsum(y) * z, "a label")}


def tree_vjp(g: Any, out: Any, p: Any) -> Any:
    x, (y, z) = p["a"], p["b"]
    u, (v, _) = g["u"], g["v"]
    of_y = u * np.sin(x) * z + np.flip(np.cumsum(np.flip(v))) * z
    of_z = (u * np.sin(x) * y).sum() + (v * np.cumsum(y)).sum()
    return {"a": u * np.cos(x) * y * z, "b": [of_y, of_z]}


def tree_jvp(t: Any, out: Any, p: Any) -> Any:
    (x, (y, z)), (tx, (ty, tz)) = (p["a"], p["b"]), (t["a"], t["b"])
    u = np.cos(x) * tx * y * z + np.sin(x) * (ty * z + y * tz)
    return {"u": u, "v": (np.cumsum(ty) * z + np.cumsum(y) * tz, None)}


def energy(f: Callable[..., Any]) -> Callable[..., Any]:
    def of(*args: Any) -> Any:
        found = f(*args)
        return (found["u"] ** 3).sum() + np.cos(found["v"][0]).sum()

    return of


WRAPPED = cr.wrap(tree_of, vjp=tree_vjp, jvp=tree_jvp)


def flat(tree: Any) -> Any:
    return np.concatenate([np.ravel(leaf) for leaf in cr.tree.leaves(tree)])


WAYS: dict[str, Callable[[Any], Any]] = {
    "reverse": cr.grad,
    "forward": lambda f: cr.jacobian(f, mode="forward"),
    "reverse over reverse": lambda f: cr.jacobian(cr.grad(f), mode="reverse"),
    "forward over reverse": lambda f: cr.jacobian(cr.grad(f), mode="forward"),
    "reverse over forward": lambda f: cr.jacobian(cr.jacobian(f, mode="forward"), mode="reverse"),
    "forward over forward": lambda f: cr.jacobian(cr.jacobian(f, mode="forward"), mode="forward"),
    "compiled": lambda f: cr.compile(cr.grad(f)),
}


@pytest.mark.parametrize("way", WAYS)
def test_derivatives_are_those_of_the_recorded_function(way: str) -> None:
    found, wanted = (WAYS[way](energy(f))(P) for f in (WRAPPED, tree_of))
    np.testing.assert_allclose(flat(found), flat(wanted), rtol=1e-10, atol=1e-12)


def gamma_of(x: Any) -> float:
    return math.gamma(x)


def gamma_vjp(g: Any, out: Any, x: Any) -> Any:
    return g * out * cr.digamma(x)


gamma = cr.wrap(gamma_of, vjp=gamma_vjp, jvp=gamma_vjp)


def test_the_function_gets_numbers_and_the_user_what_the_arguments_are() -> None:
    seen: list[type] = []
    f = cr.wrap(lambda x: seen.append(type(x)) or np.sin(x), vjp=lambda g, out, x: g * np.cos(x))
    assert type(f(np.ones(2))) is np.ndarray
    assert type(f(cr.ones(2))) is cr.Tensor
    t = cr.ones(2, requires_grad=True)
    y = f(t)
    assert (type(y), y.requires_grad, y.dtype) == (cr.Tensor, True, cr.float32)
    y.sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), np.cos(np.ones(2)), rtol=1e-6)
    cr.grad(lambda x: f(x).sum())(np.ones(2))
    cr.grad(lambda x: f(x))(1.0)
    assert seen == [np.ndarray] * 4 + [np.float64]


def test_arguments_by_name_and_arguments_that_are_not_differentiated() -> None:
    f = cr.wrap(
        lambda x, n, scale=1.0: scale * np.asarray(x) ** n,
        vjp=lambda g, out, x, n, scale: (g * scale * n * x ** (n - 1), None, (g * x**n).sum()),
        jvp=lambda t, out, x, n, scale: scale * n * x ** (n - 1) * t[0] + x**n * t[2],
    )
    g = cr.value_and_grad(lambda s, x: f(n=3, x=x, scale=s).sum(), (0, 1))
    value, (of_scale, of_x) = g(2.0, np.array([1.0, 2.0]))
    assert (value, of_scale, of_x.tolist()) == (18.0, 9.0, [6.0, 24.0])
    assert cr.jvp(lambda x: f(x, 3, 2.0), 2.0, 1.0) == (16.0, 24.0)
    with pytest.raises(TypeError, match="missing a required argument"):
        f(1.0)


@pytest.mark.filterwarnings("ignore::chainrule.PerformanceWarning")
def test_vmap_runs_the_function_for_each_example() -> None:
    points = np.array([2.0, 3.0, 4.0])
    for way in (lambda f: f, cr.grad, lambda f: cr.grad(cr.grad(f)), WAYS["forward over reverse"]):
        wanted = [way(gamma)(p) for p in points]
        np.testing.assert_allclose(cr.vmap(way(gamma))(points), wanted)
    total = cr.hessian(lambda p: cr.vmap(gamma)(p).sum())(points)
    np.testing.assert_allclose(total, np.diag(cr.vmap(cr.grad(cr.grad(gamma)))(points)))


def test_rules_of_foreign_code_run_for_each_example_with_a_warning() -> None:
    f = cr.wrap(
        lambda x: np.array([math.sin(v) for v in x]),
        vjp=lambda g, out, x: np.array([gi * math.cos(v) for gi, v in zip(g, x, strict=True)]),
        jvp=lambda t, out, x: np.array([ti * math.cos(v) for ti, v in zip(t, x, strict=True)]),
    )
    x = np.array([0.1, 0.2])
    for mode in ("reverse", "forward"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = cr.jacobian(f, mode=mode)(x)
        np.testing.assert_allclose(found, np.diag(np.cos(x)))
        assert {each.category for each in caught} <= {cr.PerformanceWarning}
    with pytest.raises(cr.AutogradError, match="makes a number of a Tensor"):
        cr.hessian(lambda x: f(x).sum())(x)  # the rule isn't recorded


def test_a_rule_that_returns_numbers_without_history_has_no_second_derivative() -> None:
    f = cr.wrap(lambda x: x**3, vjp=lambda g, out, x: np.asarray(3.0 * float(out) ** 0))
    assert cr.grad(f)(1.0) == 3.0
    f = cr.wrap(lambda x: x**3, vjp=lambda g, out, x: 3.0)
    with pytest.raises(cr.AutogradError, match="keeps no history"):
        cr.grad(cr.grad(f))(1.0)


def test_complex_cotangents_are_pytorchs_gradients() -> None:
    f = cr.wrap(np.exp, vjp=lambda g, out, z: g * np.conj(out), jvp=lambda t, out, z: t * out)
    z = np.array([1 + 2j, 0.5 - 1j])
    for way in (cr.grad, lambda h: lambda z: cr.jvp(h, z, z)[1]):
        found, wanted = (way(lambda z, e=e: np.abs(e(z) - 1).sum())(z) for e in (f, np.exp))
        np.testing.assert_allclose(found, wanted)


def test_a_c_library() -> None:
    name = ctypes.util.find_library("m")
    if name is None:
        pytest.skip("no C library of mathematics")
    tgamma = ctypes.CDLL(name).tgamma
    tgamma.restype, tgamma.argtypes = ctypes.c_double, [ctypes.c_double]
    f = cr.wrap(tgamma, vjp=lambda g, out, x: g * out * cr.digamma(x))
    assert cr.grad(f)(3.0) == pytest.approx(cr.grad(gamma)(3.0))
    assert cr.grad(cr.grad(f))(3.0) == pytest.approx(cr.grad(cr.grad(gamma))(3.0))


def test_pickle_and_gradcheck() -> None:
    f = pickle.loads(pickle.dumps(gamma))
    x = cr.tensor(2.5, dtype=cr.float64, requires_grad=True)
    assert cr.gradcheck(f, x, check_forward_ad=True, fast_mode=True)
    assert cr.gradgradcheck(f, x, fast_mode=True)


Y = cr.tensor(2.0, dtype=cr.float64, requires_grad=True)
two = cr.wrap(lambda x, y: x * y, vjp=lambda g, out, x, y: (g * y, None))
FAULTS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no vjp": (lambda: cr.grad(cr.wrap(gamma_of))(2.0), cr.MissingRuleError, r"wrap\(f, vjp="),
    "no jvp": (
        lambda: cr.jvp(cr.wrap(gamma_of, vjp=gamma_vjp), 2.0, 1.0),
        cr.MissingRuleError,
        r"wrap\(f, jvp=",
    ),
    "None": (lambda: cr.grad(two, (0, 1))(2.0, 3.0), cr.AutogradError, "None as the derivative"),
    "count": (
        lambda: cr.grad(cr.wrap(lambda x, y: x * y, vjp=lambda g, out, x, y: g))(2.0, 3.0),
        cr.AutogradError,
        "a cotangent for each of its 2 arguments",
    ),
    "shape": (
        lambda: cr.grad(cr.wrap(lambda x: 2 * x, vjp=lambda g, out, x: np.ones(3)))(2.0),
        cr.ShapeError,
        r"shape \(3,\) for an array of shape \(\)",
    ),
    "structure": (
        lambda: cr.grad(energy(cr.wrap(tree_of, vjp=lambda g, out, p: p["a"])))(P),
        cr.AutogradError,
        "as the derivative of argument 0",
    ),
    "closure": (
        lambda: cr.grad(lambda y: cr.wrap(lambda x: x * float(y), vjp=tree_vjp)(y))(2.0),
        cr.AutogradError,
        "makes a number of a Tensor",
    ),
    "closure of a Tensor": (
        lambda: cr.wrap(lambda x: x * Y, vjp=tree_vjp)(Y),
        TypeError,
        "not among its arguments",
    ),
    "closure of an array": (
        lambda: cr.wrap(lambda x: x * np.asarray(Y), vjp=tree_vjp)(Y),
        cr.AutogradError,
        "requires grad",
    ),
    "no function": (lambda: cr.wrap(3), TypeError, "expected functions, got f=3"),
    "compiled": (
        lambda: cr.compile(gamma)(cr.tensor(3.0)),
        cr.CompileError,
        "a value was asked for",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named(name: str) -> None:
    call, error, text = FAULTS[name]
    with pytest.raises(error, match=text):
        call()
