"""The stand-in for CuPy refuses what CuPy refuses, and notices what a device must not be asked.

Its facts are those of CuPy's documentation, "Differences between CuPy and NumPy" among them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from cupy_stand_in import NumPyCallError, installed, transfers
from cupy_stand_in.session import SilentCopyError, on_device


@pytest.fixture
def cupy() -> Iterator[Any]:
    with installed():
        yield sys.modules["cupy"]


def test_it_cannot_be_imported_by_accident() -> None:
    before = set(sys.modules)
    with installed():
        assert sys.modules["cupy"].__doc__ == "Part of the stand-in for CuPy."
    assert not [name for name in set(sys.modules) - before if name.split(".")[0] == "cupy"]


def test_nothing_is_converted_unasked(cupy: Any) -> None:
    x = cupy.arange(3.0)
    with pytest.raises(TypeError, match="Implicit conversion to a NumPy array"):
        np.asarray(x)
    with pytest.raises(NumPyCallError, match=r"numpy\.sin"):
        np.sin(x)
    with pytest.raises(NumPyCallError, match=r"numpy\.concatenate"):
        np.concatenate([x, x])
    for mix in (lambda: x + np.ones(3), lambda: np.ones(3) + x, lambda: cupy.dot(x, np.ones(3))):
        with pytest.raises(TypeError, match="Unsupported type"):
            mix()
    with pytest.raises(IndexError):
        x[np.array([0])]


def test_only_documented_names_and_parameters(cupy: Any) -> None:
    for name in ("nanquantile", "vecdot", "unstack"):
        assert not hasattr(cupy, name)
    with pytest.raises(TypeError):
        cupy.max(cupy.arange(3), initial=0)
    with pytest.raises(TypeError):
        cupy.add(cupy.arange(3), 1, where=cupy.ones(3, bool))
    with pytest.raises(TypeError):
        cupy.sin(cupy.ones(3), dtype=object)


def test_differences_from_numpy(cupy: Any) -> None:
    x = cupy.arange(6.0).reshape(2, 3)
    assert x.sum().shape == x[0, 0].shape == ()
    assert isinstance(x.sum(), cupy.ndarray)
    assert cupy.arange(3)[cupy.array([4])].tolist() == [1]  # out of range: it wraps
    assert cupy.asarray(np.array([-1.0, np.inf, np.nan])).astype(np.uint8).tolist() == [0, 255, 0]
    with np.errstate(all="ignore"):
        assert np.isnan((cupy.ones(1) % np.inf).get()).all()  # x - floor(x / y) y
    assert (cupy.ones(1) // 0.1).tolist() == [10.0]
    columns = x.T + x.T
    assert columns.flags.c_contiguous
    y = cupy.zeros(1)
    y[cupy.array([0, 0])] = cupy.array([1.0, 2.0])  # in an order that is left open
    assert y.tolist() == [1.0]
    with pytest.raises(ValueError, match="Array device must be same"), cupy.cuda.Device(1):
        x + x


def test_solvers_fail_in_silence_unless_they_are_told_to_wait_and_raise(cupy: Any) -> None:
    singular, negative = cupy.ones((2, 2)), -cupy.eye(2)
    before = transfers.to_host
    found = [cupy.linalg.inv(singular), cupy.linalg.cholesky(negative)]
    assert transfers.to_host == before
    assert all(np.isfinite(x.get()).all() for x in found)
    assert np.isnan(cupy.linalg.solve(singular, singular).get()).all()
    good_and_bad = cupy.stack([cupy.eye(2), singular])
    assert cupy.linalg.inv(good_and_bad)[0].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert cupy.linalg.svd(singular * np.nan)[1].shape == (2,)
    with sys.modules["cupyx"].errstate(linalg="raise"):
        for solver, x in ((cupy.linalg.inv, singular), (cupy.linalg.cholesky, negative)):
            before = transfers.to_host
            with pytest.raises(np.linalg.LinAlgError):
                solver(x)
            assert transfers.to_host == before + 1


def test_triangular_systems_are_solved_in_the_dtype_of_the_matrix(cupy: Any) -> None:
    from cupyx.scipy.linalg import solve_triangular

    assert solve_triangular(cupy.eye(1), cupy.ones((1, 1)) * 1j).tolist() == [[0.0]]
    with pytest.raises(ValueError, match="incompatible batch count"):
        solve_triangular(cupy.ones((2, 1, 1)), cupy.ones((1, 1, 1)))


def test_copies_are_counted(cupy: Any) -> None:
    up, down = transfers.to_device, transfers.to_host
    x = cupy.asarray(np.ones(3))
    float(x.sum())
    x.get()
    bool(x.any())
    assert (transfers.to_device - up, transfers.to_host - down) == (1, 3)


def test_a_silent_copy_fails_a_test(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a fault in chainrule: its absolute value looks at the values."""

    def looks(x: Any) -> Any:
        return x if bool((x >= 0).all()) else -x

    planted: Any = compile("def f(x, looks):\n    return bool(x.all())", cr.__file__, "exec")
    space: dict[str, Any] = {}
    exec(planted, space)
    with on_device(monkeypatch):
        x = cr.ones(3)._array
        assert looks(x) is x  # the test's own look
        with pytest.raises(SilentCopyError, match=r"__init__\.py:f"):
            space["f"](x, None)
