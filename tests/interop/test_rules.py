"""NumPy's functions on tensors: their values are NumPy's, their gradients those of differences."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numpy.testing import overrides

import chainrule as cr
from chainrule.interop.binding import name_of
from chainrule.interop.table import RULES
from numpy_calls import ARRAYS, CALLS

NUMPY = np.lib.NumpyVersion(np.__version__)
LISTED = {name_of(f) for f in overrides.get_overridable_numpy_array_functions()}
CASES = [
    pytest.param(call, id=f"{name_of(function)}-{number}")
    for function, calls in CALLS.items()
    for number, call in enumerate(calls)
    if name_of(function) in LISTED or NUMPY >= "2.4.0"  # older NumPys list fewer of them
]


def arguments(call):
    """Return the arrays that a call takes, by the names of its parameters."""
    parameters = inspect.signature(call).parameters.values()
    return [ARRAYS[p.name] for p in parameters if p.default is p.empty]


def flat(result):
    """Return the parts of a result in a row."""
    if isinstance(result, tuple | list):
        return [part for inner in result for part in flat(inner)]
    return [result]


def test_each_rule_is_called():
    assert {name_of(f) for f in RULES} == {name_of(f) for f in CALLS}


@pytest.mark.filterwarnings("ignore:.*NaN")
@pytest.mark.parametrize("call", CASES)
def test_values_are_numpys(call):
    arrays = arguments(call)
    copies = [array.copy() for array in arrays]
    expected = call(*arrays)
    result = call(*[cr.tensor(array) for array in arrays])
    assert getattr(result, "_fields", None) == getattr(expected, "_fields", None)
    for ours, numpys in zip(flat(result), flat(expected), strict=True):
        assert isinstance(ours, cr.Tensor | int) or isinstance(numpys, np.integer)
        assert np.shape(ours) == np.shape(numpys)
        numbers = ours.numpy() if isinstance(ours, cr.Tensor) else np.asarray(ours, numpys.dtype)
        assert numbers.dtype == np.asarray(numpys).dtype
        np.testing.assert_allclose(numbers, numpys, rtol=1e-9, atol=1e-11)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("call", CASES)
def test_gradients_are_those_of_differences(call):
    inputs = [cr.tensor(array, requires_grad=True) for array in arguments(call)]
    outputs = [part for part in flat(call(*inputs)) if isinstance(part, cr.Tensor)]
    assert any(part.requires_grad for part in outputs)

    def parts(*inputs):
        found = [part for part in flat(call(*inputs)) if isinstance(part, cr.Tensor)]
        found = [part for part in found if part.dtype in (np.float64, np.complex128)]
        return [part[np.isfinite(part.detach().numpy())] for part in found]

    if parts(*inputs):
        assert cr.gradcheck(parts, inputs, eps=1e-5)
        assert cr.gradgradcheck(parts, inputs, atol=1e-5, rtol=1e-4)
