"""inv_ex, solve_ex, cholesky_ex: PyTorch's info; singular matrices do not disturb the others."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import leaf
from helpers.torch_comparison import same_as_torch

GOOD = [[4.0, 1.0], [1.0, 3.0]]
MATRICES = {
    "good": GOOD,
    "good stack": [GOOD, [[2.0, 0.0], [0.0, 5.0]]],
    "bad": [[1.0, 2.0], [2.0, 4.0]],
    "first": [[0.0, 0.0], [0.0, 3.0]],
    "mixed": [GOOD, [[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]],
    "none": np.zeros((0, 2, 2)),
    "empty": np.zeros((0, 0)),
}
B = [[1.0, 0.0, 2.0, 1.0], [3.0, 1.0, 1.0, 0.5]]
CALLS = {
    "inv_ex": lambda lib, x, b: lib.linalg.inv_ex(x),
    "solve_ex": lambda lib, x, b: lib.linalg.solve_ex(x, b),
    "solve_ex left": lambda lib, x, b: lib.linalg.solve_ex(x, b.mT, left=False),
    "solve_ex vector": lambda lib, x, b: lib.linalg.solve_ex(x, b[:, 0]),
    "cholesky_ex": lambda lib, x, b: lib.linalg.cholesky_ex(x),
    "cholesky_ex upper": lambda lib, x, b: lib.linalg.cholesky_ex(x, upper=True),
}
calls = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for name in CALLS
        for kind in MATRICES
        if kind != "empty" or "solve" not in name  # no right sides fit
    ],
)
def test_info_and_results_of_good_matrices(name, kind):
    call, matrix = CALLS[name], MATRICES[kind]

    def program(lib):
        x = lib.leaf(matrix)
        b = lib.leaf(B)
        result, info = call(lib, x, b)
        good = info == 0
        kept = result[good] if result.ndim > info.ndim and info.ndim else result
        if not info.ndim and not good:
            return [info]
        (g,) = lib.grad((kept * kept).sum(), x)
        return [info, kept, g[good] if info.ndim else g]

    same_as_torch(program, rtol=1e-10)


@calls
def test_bad_matrices_are_nan_and_have_no_gradient(call):
    x = leaf(MATRICES["mixed"])
    b = leaf(B)
    result, info = call(cr, x, b)
    assert np.isnan(result[1:].detach().numpy()).all()
    assert (info[1:] > 0).all()
    result[0].sum().backward()
    assert (x.grad[1:] == 0).all()
    assert x.grad[0].isfinite().all()


@calls
def test_matrices_that_are_not_finite(call):
    x = cr.tensor([GOOD, [[np.nan, 0.0], [0.0, 1.0]]])
    result, info = call(cr, x, cr.tensor(B))
    assert result[0].isfinite().all()
    assert not result[1].isfinite().all()
    assert info[0] == 0


def test_errors_when_asked_for():
    bad = cr.tensor(MATRICES["mixed"])
    for call in (
        lambda: cr.linalg.inv_ex(bad, check_errors=True),
        lambda: cr.linalg.solve_ex(bad, cr.tensor(B), check_errors=True),
        lambda: cr.linalg.cholesky_ex(bad, check_errors=True),
    ):
        with pytest.raises(cr.linalg.LinAlgError, match=r"\(Batch element 1\)"):
            call()


def test_the_results_have_pytorchs_names():
    x = cr.eye(2)
    assert cr.linalg.inv_ex(x)._fields == ("inverse", "info")
    assert cr.linalg.cholesky_ex(x)._fields == ("L", "info")
    assert cr.linalg.solve_ex(x, x)._fields == ("result", "info")


@pytest.mark.parametrize("kind", ["float64", "complex128"])
@calls
def test_compiled_functions_and_vmap_have_the_same_results_and_codes(call, kind):
    stack = cr.tensor(
        [GOOD, MATRICES["bad"], MATRICES["first"], [[1.0, 9.0], [9.0, -1.0]]], dtype=kind
    )
    b = cr.tensor(B, dtype=kind)

    def loss(x):
        return call(cr, x, b)[0].nan_to_num().abs().sum()

    for function in (lambda x: call(cr, x, b), lambda x: (cr.grad(loss)(x),)):
        each = [function(x) for x in stack]
        for i, found in enumerate(cr.vmap(function)(stack)):
            np.testing.assert_allclose(found, [one[i] for one in each], rtol=1e-12, atol=1e-12)
        compiled = cr.compile(function)
        for x, wanted in zip(stack, each, strict=True):
            for one, other in zip(compiled(x), wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_compiled_functions_of_no_numbers_and_with_checks():
    assert cr.compile(cr.linalg.cholesky_ex)(cr.zeros(0, 0)).info.item() == 0
    checked = cr.compile(lambda x: cr.linalg.inv_ex(x, check_errors=True))
    assert checked(cr.tensor(GOOD)).info.item() == 0
    with pytest.raises(np.linalg.LinAlgError):
        checked(cr.zeros(2, 2))
