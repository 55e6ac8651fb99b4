"""``isinstance`` of what stands for NumPy's arrays and numbers, by which code decides."""

from __future__ import annotations

import copy
import functools
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre, polynomial

import chainrule as cr
import chainrule.numpy as cnp

C = np.random.default_rng(0).normal(size=(3, 3))
X = np.array([0.3, -0.5, 0.8])


@functools.singledispatch
def by_kind(x: Any) -> Any:
    return 5.0 * x.sum()


@by_kind.register
def _(x: np.ndarray) -> Any:  # type: ignore[type-arg]
    return 3.0 * x.sum()


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    # NumPy's own functions, of as many points as polynomials
    "polyval": lambda x: polynomial.polyval(x, C).sum(),
    "polyval-points": lambda x: polynomial.polyval(x, C, tensor=False).sum(),
    "polyvalfromroots": lambda x: polynomial.polyvalfromroots(x, C).sum(),
    "chebval": lambda x: chebyshev.chebval(x, C).sum(),
    "legval": lambda x: legendre.legval(x, C).sum(),
    "lagval": lambda x: laguerre.lagval(x, C).sum(),
    "hermval": lambda x: hermite.hermval(x, C).sum(),
    "hermeval": lambda x: hermite_e.hermeval(x, C).sum(),
    # programs
    "array": lambda x: x.sum() if isinstance(x, np.ndarray) else 7.0 * x[0],
    "list-or-array": lambda x: x[0] if isinstance(x, list | tuple) else 2.0 * x[1],
    "element": lambda x: x[0] if isinstance(x[0], np.ndarray) else 2.0 * x[0],
    "element-a-float": lambda x: x[0] if isinstance(x[0], float) else 2.0 * x[0],
    "sum-a-number": lambda x: x.sum() if isinstance(x.sum(), numbers.Number) else 2.0 * x[0],
    "is-scalar": lambda x: x.sum() if np.isscalar(x.sum()) else 2.0 * x[0],
    "no-complex": lambda x: x.sum() if isinstance(x[0], complex) else 2.0 * x[0],
    "single-dispatch": by_kind,
    "no-length": lambda x: x[0] if hasattr(x[0], "__len__") else 2.0 * x[0],
    "reversed": lambda x: next(reversed(x)) ** 2 + len(list(reversed(x))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_ask_for_the_class_take_numpys_branch(name: str) -> None:
    program = PROGRAMS[name]
    expected = program(X)
    value, slope = cr.value_and_grad(program)(X)
    assert value == pytest.approx(expected, rel=1e-12)
    differences = [(program(X + h) - program(X - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(slope, differences, 1e-8)
    for call in (cr.compile(program, backend="numpy"), cr.compile(cr.grad(program))):
        np.testing.assert_allclose(call(X), expected if call(X).ndim == 0 else slope, 1e-12)
    np.testing.assert_allclose(cr.vmap(program)(np.stack([X, X])), [expected] * 2, 1e-12)


RECORDED_ONLY: dict[str, Callable[[Any], Any]] = {
    "objects": lambda x: x.astype(object).sum() * x[0],
    "objects-of-a-matrix": lambda x: np.outer(x, x).astype(object)[1, 2] * x[0],
    "integer": lambda x: x[1] if x[0].is_integer() else 2.0 * x[0],
}


@pytest.mark.parametrize("name", RECORDED_ONLY)
def test_conversions_keep_the_gradient(name: str) -> None:
    program = RECORDED_ONLY[name]
    differences = [(program(X + h) - program(X - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(cr.grad(program)(X), differences, 1e-8)


@pytest.mark.parametrize("name", ["as_integer_ratio", "hex", "__trunc__"])
def test_conversions_to_other_numbers_raise(name: str) -> None:
    with pytest.raises(cr.AutogradError, match="makes a number of a Tensor"):
        cr.grad(lambda x: getattr(x[0], name)() and x[0])(X)
    x = cnp.array([1.5])[0:1].sum()
    assert getattr(x, name)() == getattr(np.float64(1.5), name)()


def test_numbers_have_no_length() -> None:
    def f(x: Any) -> Any:
        assert len(x) == 3
        with pytest.raises(TypeError, match=r"has no len\(\)"):
            len(x[0])
        return x.sum()

    np.testing.assert_array_equal(cr.grad(f)(X), 1.0)


SERIES: dict[str, Callable[[Any], Any]] = {
    "sum": lambda s: (s.sum() + s.mean() * s.var()) * s.iloc[0],
    "map": lambda s: s.map(lambda v: v * v).sum() * s[1],
    "exp": lambda s: np.exp(s).cumsum().iloc[-1],
    "sorted": lambda s: s.sort_values().iloc[0] ** 2,
    "rolling": lambda s: s.rolling(2).mean().iloc[-1] * s[0],
    "product": lambda s: (s * s).sum(),
    "values": lambda s: (s.values * [1.0, 2.0, 3.0]).sum() * s[0],
    "numbers": lambda s: s.tolist()[0] * s[0],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SERIES)
def test_a_series_of_pandas_keeps_the_gradient_or_raises(name: str) -> None:
    pandas, raised = pytest.importorskip("pandas"), ("rolling", "product", "numbers")

    def program(x: Any) -> Any:
        return SERIES[name](pandas.Series(x))

    if name in raised:
        with pytest.raises(cr.AutogradError, match="makes a number of a Tensor"):
            cr.grad(program)(X)
        return
    differences = [(program(X + h) - program(X - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(cr.grad(program)(X), differences, 1e-8)


def test_read_by_name_the_class_is_the_arrays_own() -> None:
    def f(x: Any) -> Any:
        assert x.__class__ is type(x) is cnp.ndarray
        assert isinstance(x, cr.Tensor)
        assert isinstance(x, cnp.ndarray)
        assert not isinstance(x[0], cnp.ndarray) or type(x[0]) is cnp.ndarray
        return copy.copy(x).sum()

    np.testing.assert_array_equal(cr.grad(f)(X), 1.0)


def test_what_takes_numpys_memory_still_raises() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError):
        cr.grad(lambda x: torch.from_numpy(x).sum().item() * x[0])(X)


def test_tensors_are_of_no_class_of_numpys() -> None:
    x = cr.tensor([1.0, 2.0])
    assert not isinstance(x, np.ndarray)
    assert not isinstance(x[0], float)
    assert not cr.compile(lambda x: cr.tensor(isinstance(x, np.ndarray)))(x)


def test_functions_that_dispatch_by_the_class_of_arrays() -> None:
    @functools.singledispatch
    def square(x: Any) -> Any:
        return 0.0 * x

    square.register(cnp.ndarray)(lambda x: x**2)
    assert cr.grad(lambda t: square(t).sum())(X).tolist() == (2 * X).tolist()
    assert square(X).tolist() == (X**2).tolist()
    assert not issubclass(list, cnp.ndarray)


def test_arrays_of_objects_hold_what_records() -> None:
    def product(t: Any) -> Any:
        pairs = cnp.array([[t[0], t[1]], [1.0, t[1]]], dtype=object)
        return pairs[0].dot(pairs[1])

    assert cr.grad(product)(X[:2]).tolist() == [1.0, 2 * X[1]]
