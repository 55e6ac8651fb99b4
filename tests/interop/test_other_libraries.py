"""Tensors handed to other libraries, and their objects handed to tensors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import chainrule as cr

A = np.array([0.5, -1.5, 2.5])


def test_pandas_takes_tensors_and_is_an_index() -> None:
    pandas = pytest.importorskip("pandas")
    t = cr.tensor(A)
    assert pandas.Series(t).tolist() == A.tolist()
    assert pandas.DataFrame({"t": t})["t"].tolist() == A.tolist()
    with pytest.raises(RuntimeError, match=r"Use tensor\.detach\(\)\.numpy\(\)"):
        pandas.Series(cr.tensor(A, requires_grad=True))
    assert t[pandas.Series([2, 0])].tolist() == [2.5, 0.5]
    assert t[pandas.Series([True, False, True])].tolist() == [0.5, 2.5]
    assert t[pandas.Index([1])].tolist() == [-1.5]
    with pytest.raises(IndexError, match="integers"):
        t[pandas.Series([0.5])]
    x = cr.tensor(A, requires_grad=True)
    x[pandas.Series([0, 0])].sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0]
    with cr.no_grad():
        x[pandas.Series([1])] = 7.0
    assert x.tolist() == [0.5, 7.0, 2.5]


def test_xarray_arrays_are_indices() -> None:
    xarray = pytest.importorskip("xarray")
    assert cr.tensor(A)[xarray.DataArray([2, 1])].tolist() == [2.5, -1.5]


def test_matplotlib_takes_tensors() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, axes = pyplot.subplots()
    (line,) = axes.plot(cr.tensor(A))
    assert line.get_ydata().tolist() == A.tolist()
    x = cr.tensor(A, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"use detach\(\) first"):
        axes.plot(x)
    axes.plot(x.detach())
    pyplot.close(figure)


def test_numbers_and_formats() -> None:
    t = cr.tensor(A)
    assert math.isfinite(t[0])
    assert f"{t[0]:.2f} {t[1]:+.1e}" == "0.50 -1.5e+00"
    with pytest.raises(TypeError, match=r"Format the numbers of tolist\(\)"):
        f"{t:.2f}"
    assert np.asarray(t).tolist() == A.tolist()
