"""Reductions of the elements that a mask selects, beside PyTorch's."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import check_derivatives, compare_with_torch, same_as_torch

X = np.random.default_rng(1).normal(size=(3, 4, 2))
MASK = np.array([[1, 0], [1, 1], [0, 1], [1, 0]], bool)  # of the last two dimensions
REDUCTIONS = {
    "sum": (),
    "prod": (),
    "amax": (),
    "amin": (),
    "mean": (),
    "var": (),
    "std": (),
    "norm": (3.0,),
    "logsumexp": (),
}
ALONG = ("cumsum", "cumprod", "softmax", "log_softmax", "softmin")


def _masked(lib: Any) -> Any:
    return import_module(f"{lib.__name__}.masked")


@pytest.mark.parametrize("dim", [None, 1, (0, -1)])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_as_in_pytorch(name: str, dim: Any) -> None:
    def function(lib: Any, x: Any, mask: Any) -> Any:
        reduce = getattr(_masked(lib), name)
        args = (*REDUCTIONS[name], dim)
        return reduce(x, *args, mask=mask), reduce(x, *args, keepdim=True)

    compare_with_torch(function, X, MASK)


@pytest.mark.parametrize("name", ALONG)
def test_functions_along_a_dimension_as_in_pytorch(name: str) -> None:
    def function(lib: Any, x: Any, mask: Any) -> Any:
        along = getattr(_masked(lib), name)
        return along(x, 1, mask=mask).nan_to_num(neginf=0.0), along(x, -1)

    compare_with_torch(function, X, MASK)


def test_other_functions_as_in_pytorch() -> None:
    def function(lib: Any, x: Any, mask: Any) -> Any:
        of = _masked(lib)
        both = of.logaddexp(x, 2 * x, input_mask=mask, other_mask=~mask)
        median = of.median(x, 1, mask=mask)
        return (
            both,
            median,
            of.normalize(x, 2.0, 1, mask=mask),
            of.norm(x, -2.0, 1, mask=mask | True),
        )

    compare_with_torch(function, X, MASK, order=1)


def test_integers_indices_and_corrections_as_in_pytorch() -> None:
    def program(lib: Any) -> Any:
        of, mask = _masked(lib), lib.tensor(MASK)
        x, n = lib.tensor(X), lib.tensor((10 * X).astype(int))
        found = [getattr(of, f)(n, 1, mask=mask) for f in ("sum", "prod", "amax", "amin")]
        indices = [getattr(of, f)(n, d, mask=mask) for f in ("argmax", "argmin") for d in (None, 0)]
        return *found, *indices, of.var(x, correction=0, mask=mask), of.std(x, 1, False, mask=mask)

    same_as_torch(program)


@pytest.mark.parametrize("name", [*REDUCTIONS, *ALONG, "normalize", "median"])
def test_elements_that_do_not_count_have_no_effect(name: str) -> None:
    leaf = cr.tensor([[1.0, np.nan, 3.0, -np.inf], [np.inf, 2.0, 0.5, np.nan]], requires_grad=True)
    mask = cr.isfinite(leaf)
    args = {"norm": (2.0, 1), "normalize": (2.0, 1)}.get(name, (1,))
    result = getattr(cr.masked, name)(leaf, *args, mask=mask)
    weights = cr.arange(1.0, 1.0 + result.numel()).reshape(result.shape)
    (slope,) = cr.autograd_grad((result * weights).nan_to_num(neginf=0.0).sum(), leaf)
    assert (slope[~mask] == 0).all()
    assert cr.isfinite(slope).all()


def test_nothing_counts() -> None:
    x, none = cr.ones(3, requires_grad=True), cr.zeros(3, dtype=cr.bool)
    found = {name: getattr(cr.masked, name)(x, mask=none).item() for name in REDUCTIONS}
    wanted = {"sum": 0, "prod": 1, "amax": -np.inf, "amin": np.inf, "norm": 0, "logsumexp": -np.inf}
    np.testing.assert_equal(found, {**dict.fromkeys(REDUCTIONS, np.nan), **wanted})


def test_variances_of_complex_numbers_are_real() -> None:
    z = cr.tensor([1 + 1j, 3 - 1j, 9.0], dtype=cr.complex128)
    mask = cr.tensor([True, True, False])
    assert cr.masked.var(z, mask=mask).item() == cr.var(z[:2]).item() == 4
    check_derivatives(
        lambda lib, z: lib.masked.var(z, mask=lib.tensor([True, True, False])), z.numpy()
    )


def test_a_mask_of_another_shape() -> None:
    with pytest.raises(
        cr.ShapeError, match=r"masked.mean: expected a mask .* \[3, 4, 2\], got \[3\]"
    ):
        cr.masked.mean(cr.tensor(X), mask=cr.ones(3))
