"""NumPy's functions that pick, arrange and rank, called on tensors."""

import numpy as np
import pytest

import chainrule as cr

X = np.random.default_rng(5).permutation(24).reshape(4, 6) / 7.0
V = X[0].copy()
GAPS = np.where(X > 2, X, np.nan)

CALLS = {
    "take": lambda x: np.take(x, [1, 0, 1], 1),
    "take-flat": lambda x: np.take(x, [7, 0]),
    "take_along_axis": lambda x: np.take_along_axis(x, np.array([[1], [0], [2], [2]]), 1),
    "repeat": lambda x: np.repeat(x, 2, axis=1),
    "repeat-flat": lambda x: np.repeat(x, 2),
    "tile": lambda x: np.tile(x, (2, 1)),
    "meshgrid": lambda x: np.meshgrid(x[0], x[1])[0],
    "hstack": lambda x: np.hstack([x, x]),
    "vstack": lambda x: np.vstack([x, x[0]]),
    "dstack": lambda x: np.dstack([x, x]),
    "column_stack": lambda x: np.column_stack([x, x[:, 0]]),
    "atleast_2d": lambda x: np.atleast_2d(x[0]),
    "split": lambda x: np.split(x, 2)[1],
    "split-at": lambda x: np.split(x, [1, 4], axis=1)[1],
    "array_split": lambda x: np.array_split(x, 3)[0],
    "hsplit": lambda x: np.hsplit(x, 3)[2],
    "vsplit": lambda x: np.vsplit(x, [1])[1],
    "fliplr": lambda x: np.fliplr(x),
    "flipud": lambda x: np.flipud(x),
    "rot90": lambda x: np.rot90(x, axes=(1, 0)),
    "swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "diagonal": lambda x: np.diagonal(x, offset=1),
    "trace": lambda x: np.trace(x, offset=-1),
    "diag": lambda x: np.diag(x, k=1),
    "diagflat": lambda x: np.diagflat(x[0], 1),
    "diff": lambda x: np.diff(x, 2, axis=0),
    "trapezoid": lambda x: np.trapezoid(x, dx=0.5, axis=0),
    "trapezoid-x": lambda x: np.trapezoid(x, x[0]),
    "sort": lambda x: np.sort(x, axis=0),
    "sort-flat": lambda x: np.sort(x, axis=None),
    "median": lambda x: np.median(x, axis=0),
    "median-all": lambda x: np.median(x),
    "quantile": lambda x: np.quantile(x, 0.3, axis=1, keepdims=True),
    "quantiles": lambda x: np.quantile(x, [0.2, 0.9], 0),
    "quantile-lower": lambda x: np.quantile(x, 0.3, method="lower"),
    "percentile": lambda x: np.percentile(x, 30),
    "ptp": lambda x: np.ptp(x, axis=1),
    "vander": lambda x: np.vander(x[0], 3),
    "bincount": lambda x: np.bincount(np.array([0, 2, 2, 1, 0, 0]), x[0]),
}
AROUND_GAPS = {
    "nansum": lambda x: np.nansum(x, axis=0),
    "nanmean": lambda x: np.nanmean(x),
    "nanmedian": lambda x: np.nanmedian(x, axis=1),
    "nanquantile": lambda x: np.nanquantile(x, 0.3),
    "nanpercentile": lambda x: np.nanpercentile(x, 30, axis=0),
}


@pytest.mark.parametrize("name", [*CALLS, *AROUND_GAPS])
def test_results_are_numpys_and_recorded(name):
    function, data = (CALLS[name], X) if name in CALLS else (AROUND_GAPS[name], GAPS)
    x = cr.tensor(data, requires_grad=True)
    out = function(x)
    assert isinstance(out, cr.Tensor)
    assert out.requires_grad
    np.testing.assert_allclose(out.detach().numpy(), function(data), rtol=1e-14)


def test_an_unequal_division_is_refused():
    with pytest.raises(cr.ShapeError, match="does not result in an equal division"):
        np.split(cr.zeros(5), 2)


def test_places_have_no_derivative_to_lose():
    x = cr.tensor([0.0, 2.0], requires_grad=True)
    assert np.argwhere(x).tolist() == [[1]]
    assert np.flatnonzero(x).tolist() == [1]
