"""A tensor inside an xarray.DataArray: labelled operations keep values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

xarray = pytest.importorskip("xarray")

CALLS: dict[str, Callable[[Any], Any]] = {
    "product": lambda d: d * d,
    "ufunc": lambda d: np.sin(d),
    "number first": lambda d: 1 - d,
    "array first": lambda d: np.ones((2, 3)) + d,
    "by label": lambda d: d.sel(a=20) ** 2,
    "by position": lambda d: d.isel(b=slice(0, 2)),
    "other dims": lambda d: d * xarray.DataArray(np.array([1.0, 2.0]), dims="a"),
    "transpose": lambda d: d.T * 2,
    "where": lambda d: d.where(d > 2, 0.0),
    "fillna": lambda d: d.where(d > 2).fillna(7.0),
    "clip": lambda d: d.clip(1.5, 4.5),
    "sum": lambda d: d.sum("a"),
    "mean": lambda d: d.mean("a"),
    "std": lambda d: d.std("b"),
    "max": lambda d: d.max("b"),
    "prod": lambda d: d.stack(z=("a", "b")).prod(),
    "median": lambda d: d.median(),
    "cumsum": lambda d: d.cumsum("b"),
    "diff": lambda d: d.diff("b"),
    "roll": lambda d: d.roll(a=1) * d,
    "shift": lambda d: d.shift(a=1, fill_value=0.0),
    "pad": lambda d: d.pad(b=1, constant_values=3.0),
    "dot": lambda d: xarray.dot(d, d, dim="b"),
    "rolling": lambda d: d.rolling(b=2).mean().isel(b=slice(1, None)),
    "concat": lambda d: xarray.concat([d, d], "a"),
    "dataset": lambda d: xarray.Dataset({"v": d}).mean("a").v,
    "groups": lambda d: d.groupby("a").mean(),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_labelled_operations_keep_the_gradient(call: Callable[[Any], Any]) -> None:
    values = np.array([[0.3, 1.7, 2.6], [3.9, 4.1, 5.2]])

    def labelled(data: Any) -> Any:
        array = xarray.DataArray(data, dims=("a", "b"), coords={"a": [10, 20]})
        return call(array).data

    x = cr.tensor(values, requires_grad=True)
    result = labelled(x)
    np.testing.assert_allclose(result.detach().numpy(), labelled(values), rtol=1e-12)
    assert cr.gradcheck(labelled, x)
