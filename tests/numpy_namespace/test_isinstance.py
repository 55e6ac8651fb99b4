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
