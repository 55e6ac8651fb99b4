"""Tensors handed to other libraries, and their objects handed to tensors."""

from __future__ import annotations

import math
import runpy
from pathlib import Path

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
    with pytest.raises(RuntimeError, match=r"matplotlib .* axes.plot\(x\): hand it x.detach"):
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


@pytest.mark.parametrize(
    ("library", "code", "mend"),
    [
        ("matplotlib.pyplot", "library.plot(x)", r"in library.plot\(x\)"),
        ("pandas", "library.Series(x)", r"in library.Series\(x\)"),
        ("pandas", "library.Series([1.0, 2.0]) * x", r"pandas computes with numbers: hand it x.de"),
        ("pandas", "x * library.Series([1.0, 2.0])", r"pandas computes with numbers: hand it x.de"),
        ("sklearn.preprocessing", "library.scale(x)", r"in library.scale\(x\). sklearn computes"),
        ("numpy", "library.asarray(x)", r"in library.asarray\(x\). cr.stack"),
    ],
)
def test_errors_name_the_users_expression(
    library: str, code: str, mend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(library)
    monkeypatch.setenv("MPLBACKEND", "agg")
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    file = tmp_path / "script.py"  # the expression is read from its file
    file.write_text(f"import {library} as library\n{code}\n")
    with pytest.raises(cr.errors.AutogradError, match=mend):
        runpy.run_path(str(file), {"x": x})
    file.write_text(f"import {library} as library\n{code.replace('x', 'x.detach()')}\n")
    runpy.run_path(str(file), {"x": x})
