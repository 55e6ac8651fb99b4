"""Calls of NumPy's functions in their forms: arguments by position and by keyword, and settings.

`numpy_forms.txt` has one expression of two matrices on each line.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr

LINES = (Path(__file__).parent / "numpy_forms.txt").read_text().splitlines()
X = np.array([[1.5, 0.5, 3.0], [2.0, -1.0, 0.25]])
TOGETHER = 12


def function_of(lines: list[str]) -> Callable[..., Any]:
    """Return a function that returns the results of several expressions."""
    found: Callable[..., Any] = eval(f"lambda x, y: [{', '.join(lines)}]", {"np": np})
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("start", range(0, len(LINES), TOGETHER))
def test_compiled_calls_are_numpys(start: int, backend: str) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite")
    lines = LINES[start : start + TOGETHER]
    function, y = function_of(lines), 2 * X - 1
    found = cr.compile(function, backend=backend)(X, y)
    for line, ours, numpys in zip(lines, found, function(X, y), strict=True):
        assert np.shape(ours) == np.shape(numpys), line
        assert np.asarray(ours).dtype == np.asarray(numpys).dtype, line
        np.testing.assert_allclose(ours, numpys, rtol=1e-6, atol=1e-12, err_msg=line)
