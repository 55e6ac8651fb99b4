"""NumPy's modules under the names of `chainrule.numpy`, for every form of import."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import chainrule as cr
import chainrule.numpy as cnp

FORMS = """
from chainrule.numpy.linalg import inv
import chainrule.numpy.linalg as la
import chainrule.numpy.fft
from chainrule.numpy.polynomial.polynomial import polyval
from chainrule.numpy.lib.stride_tricks import as_strided
from chainrule.numpy.random import default_rng
from chainrule.numpy import linalg, pi
import chainrule.numpy
assert la is linalg is chainrule.numpy.linalg and la.inv is inv
"""


def test_forms_of_import() -> None:
    subprocess.run([sys.executable, "-c", FORMS], check=True, timeout=60)


def test_imported_functions_record() -> None:
    linalg: Any = import_module("chainrule.numpy.linalg")

    def function(a: Any) -> Any:
        return linalg.inv(linalg.norm(a) * np.eye(2)).sum()

    a = np.array([[1.0, 2.0], [0.5, 1.0]])
    np.testing.assert_allclose(cr.grad(function)(a), -2 * a / np.linalg.norm(a) ** 3)
    assert type(linalg.inv(np.eye(2))) is cnp.ndarray
    assert set(linalg.__all__) == set(np.linalg.__all__)


@pytest.mark.parametrize("name", ["nonesuch", "linalg.nonesuch"])
def test_modules_that_numpy_lacks(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"No module named 'chainrule.numpy.{name}'"):
        import_module(f"chainrule.numpy.{name}")


def test_modules_of_scipys_are_found_below_ours() -> None:
    windows = pytest.importorskip("scipy.signal.windows")
    from chainrule.scipy.signal.windows import hann

    assert (hann(5) == windows.hann(5)).all()
    assert import_module("chainrule.scipy.signal.windows") is cr.scipy.signal.windows
    assert import_module("chainrule.scipy.constants").golden == cr.scipy.constants.golden
    for name in ("signal.nosuch", "stats._nosuch", "misc"):
        with pytest.raises(ModuleNotFoundError, match=f"No module named 'chainrule.scipy.{name}'"):
            import_module(f"chainrule.scipy.{name}")
