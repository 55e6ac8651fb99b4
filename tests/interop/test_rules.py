"""NumPy's functions on tensors: values of NumPy, gradients by finite differences."""

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
    """Return the parts of a result as a flat list."""
    if isinstance(result, tuple | list):
        return [part for inner in result for part in flat(inner)]
    return [result]


def test_each_rule_is_called():
    assert {name_of(f) for f in RULES} == {name_of(f) for f in CALLS}


@pytest.mark.filterwarnings("ignore:.*NaN", "ignore:Arrays of 2-dimensional")
@pytest.mark.parametrize("call", CASES)
def test_values_are_numpys(call):
    arrays = arguments(call)
    copies = [array.copy() for array in arrays]
    expected = call(*arrays)
    result = call(*[cr.tensor(array) for array in arrays])
    assert getattr(result, "_fields", None) == getattr(expected, "_fields", None)
    for ours, numpys in zip(flat(result), flat(expected), strict=True):
        assert isinstance(ours, cr.Tensor | int | float) or isinstance(numpys, np.integer)
        assert np.shape(ours) == np.shape(numpys)
        numbers = ours.numpy() if isinstance(ours, cr.Tensor) else np.asarray(ours, numpys.dtype)
        assert numbers.dtype == np.asarray(numpys).dtype
        np.testing.assert_allclose(numbers, numpys, rtol=1e-9, atol=1e-11)
    for array, copy in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.sampled(4)
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
        assert cr.gradcheck(parts, inputs, eps=1e-5, fast_mode=True)
        assert cr.gradgradcheck(parts, inputs, atol=1e-5, rtol=1e-4, fast_mode=True)


# To know a shape, a dtype or a branch; quantiles for some of NumPy's methods only.
NEED_VALUES = """
    arange argwhere bincount geomspace histogram histogram2d histogram_bin_edges histogramdd
    intersect1d lib.scimath.arccos lib.scimath.arcsin lib.scimath.arctanh lib.scimath.log
    lib.scimath.log10 lib.scimath.log2 lib.scimath.logn lib.scimath.power lib.scimath.sqrt
    linalg.eig linalg.eigvals linalg.lstsq nanpercentile nanquantile percentile piecewise place poly
    polydiv polyfit putmask
    quantile real_if_close roots setdiff1d setxor1d trim_zeros union1d unique unique_all
    unique_counts unique_inverse unique_values where
"""


def gradients(outputs, inputs):
    """Return the gradients of a sum of the outputs, each times fixed numbers."""
    tracked = [part for part in flat(outputs) if isinstance(part, cr.Tensor) and part.requires_grad]
    rng = np.random.default_rng(0)
    gs = [cr.tensor(rng.standard_normal(part.shape)).to(part.dtype) for part in tracked]
    return list(cr.autograd_grad(tracked, inputs, gs, materialize_grads=True)) if tracked else []


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CASES)
def test_compiled_calls_are_the_eager_ones_or_say_that_they_need_values(call, request):
    inputs = [cr.tensor(array, requires_grad=True) for array in arguments(call)]
    expected = flat(call(*inputs))
    expected += gradients(expected, inputs)
    try:
        found = flat(cr.compile(call, backend="numpy")(*inputs))
    except (cr.CompileError, cr.errors.AutogradError, ValueError):
        name = request.node.callspec.id.removeprefix("numpy.").rpartition("-")[0]
        assert name in NEED_VALUES.split()
        return
    found += gradients(found, inputs)
    for ours, eager in zip(found, expected, strict=True):
        a, b = [t.numpy(force=True) if isinstance(t, cr.Tensor) else t for t in (ours, eager)]
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
