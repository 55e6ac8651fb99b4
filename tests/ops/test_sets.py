"""Set functions: unique values and membership."""

import numpy as np
import pytest

import chainrule as cr

NAN = float("nan")


@pytest.mark.parametrize(
    "values",
    [[3, 1, 3, 2], [[2.0, 1.0], [2.0, 1.0]], [], [True, False, True], [NAN, 1.0, NAN], [0.0, -0.0]],
    ids=["ints", "matrix", "empty", "bools", "nans", "zeros"],
)
def test_unique_all(values):
    x = cr.tensor(values)
    found = cr.unique_all(x)
    flat, out = x.numpy().ravel(), found.values.numpy()
    assert out.dtype == x.dtype
    assert np.array_equal(flat[found.indices.numpy()], out, equal_nan=True)
    assert found.inverse_indices.shape == x.shape
    assert np.array_equal(out[found.inverse_indices.numpy()], x.numpy(), equal_nan=True)
    assert found.counts.sum() == x.numel()
    assert len(out) == len({v if v == v else object() for v in flat.tolist()})
    assert out[out == out].tolist() == sorted(set(flat[flat == flat].tolist()))


def test_the_other_functions_return_its_parts():
    x = cr.tensor([[3, 1], [3, 2]])
    every = cr.unique_all(x)
    assert cr.unique_values(x).equal(every.values)
    assert cr.unique_counts(x).values.equal(every.values)
    assert cr.unique_counts(x).counts.equal(every.counts)
    assert cr.unique_inverse(x).values.equal(every.values)
    assert cr.unique_inverse(x).inverse_indices.equal(every.inverse_indices)


def test_a_value_sends_its_gradient_to_its_first_occurrence():
    x = cr.tensor([2.0, 1.0, 2.0], requires_grad=True)
    (cr.unique_values(x) * cr.tensor([10.0, 20.0])).sum().backward()
    assert x.grad.tolist() == [20, 10, 0]


@pytest.mark.parametrize("invert", [False, True])
def test_isin_is_pytorchs(invert):
    torch = pytest.importorskip("torch")
    x, y = [[1.0, NAN], [3.0, 4.0]], [3.0, 1.0, NAN]
    theirs = torch.isin(torch.tensor(x), torch.tensor(y), invert=invert)
    assert cr.isin(cr.tensor(x), cr.tensor(y), invert=invert).tolist() == theirs.tolist()
    assert cr.isin(cr.tensor(x), 3, invert=invert).tolist() == (
        torch.isin(torch.tensor(x), 3, invert=invert).tolist()
    )
    assert cr.isin(3.0, cr.tensor(y), invert=invert).tolist() is not invert
    assert cr.isin(cr.tensor([1, 2]), cr.tensor([2]), assume_unique=True).tolist() == [False, True]
