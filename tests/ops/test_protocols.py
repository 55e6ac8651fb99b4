"""NumPy's functions on tensors."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr

CALLS = {
    "sum": lambda xp, x: xp.sum(x, axis=0),
    "sum of all": lambda xp, x: xp.sum(x),
    "mean": lambda xp, x: xp.mean(x, axis=1, keepdims=True),
    "max": lambda xp, x: xp.max(x, axis=1),
    "var": lambda xp, x: xp.var(x, axis=0),
    "std": lambda xp, x: xp.std(x),
    "concatenate": lambda xp, x: xp.concatenate([x, x], axis=1),
    "stack": lambda xp, x: xp.stack([x, x * 2]),
    "where": lambda xp, x: xp.where(x > 0, x, 0.0),
    "clip": lambda xp, x: xp.clip(x, -0.5, 0.5),
    "reshape": lambda xp, x: xp.reshape(x, (3, 2)),
    "transpose": lambda xp, x: xp.transpose(x),
    "transpose of axes": lambda xp, x: xp.transpose(x, (1, 0)),
    "expand_dims": lambda xp, x: xp.expand_dims(x, axis=0),
    "dot": lambda xp, x: xp.dot(x, x.T),
    "cumsum": lambda xp, x: xp.cumsum(x, axis=1),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_numpys_functions_are_recorded(call):
    values = np.random.default_rng(0).standard_normal((2, 3))
    x = cr.tensor(values, requires_grad=True)
    result = call(np, x)
    np.testing.assert_allclose(result.detach().numpy(), call(np, values))
    assert result.requires_grad
    assert cr.gradcheck(lambda x: call(np, x), x)


def test_a_function_without_a_rule_loses_no_gradient():
    x = cr.ones(2, 2, requires_grad=True)
    with pytest.raises(TypeError, match=r"numpy\.unwrap has no derivative rule in chainrule"):
        np.unwrap(x)
    with pytest.raises(TypeError, match="autograd_function"):
        np.cov(x)
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        np.percentile([x[0], x[1]], 50)


def test_questions_without_a_derivative_are_answered():
    x = cr.tensor([[3.0, 1.0]], requires_grad=True)
    assert (np.shape(x), np.ndim(x), np.size(x)) == ((1, 2), 2, 2)
    assert np.argmax(x) == 0
    assert np.allclose(x, [[3, 1]])
    assert np.zeros_like(x).tolist() == [[0, 0]]


def test_a_function_without_a_rule_computes_on_arrays_where_there_is_no_gradient():
    x = cr.tensor([[2.0, 0.0], [0.0, 1.0]], requires_grad=True)
    assert np.linalg.svd(x.detach()).S.tolist() == [2, 1]
    with cr.no_grad():
        assert np.percentile(x, 100) == 2
    assert np.shape(x.detach()) == (2, 2)
    np.testing.assert_allclose(x.detach(), [[2, 0], [0, 1]])
