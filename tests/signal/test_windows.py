"""Window functions, compared with PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr

NAMES: dict[str, tuple[dict[str, Any], ...]] = {
    "bartlett": ({},),
    "blackman": ({},),
    "cosine": ({},),
    "exponential": ({}, {"tau": 2.5}, {"sym": False, "center": 1.5}),
    "gaussian": ({}, {"std": 3.0}),
    "general_cosine": ({"a": [0.46, 0.23, 0.31]}, {"a": [1]}),
    "general_hamming": ({}, {"alpha": 0.25}),
    "hamming": ({},),
    "hann": ({},),
    "kaiser": ({}, {"beta": 0.5}, {"beta": 0}),
    "nuttall": ({},),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("sym", [True, False])
def test_windows_are_pytorchs(name: str, sym: bool) -> None:
    torch = pytest.importorskip("torch")
    for settings in NAMES[name]:
        for length in (0, 1, 2, 5, 8):
            given = {"sym": sym, "dtype": "float64"} | settings
            wanted = getattr(torch.signal.windows, name)(length, **given | {"dtype": torch.float64})
            got = getattr(cr.signal.windows, name)(length, **given)
            assert got.dtype == cr.float64
            np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-12, atol=1e-15)


def test_window_arguments() -> None:
    window = cr.signal.windows.hann(4, device="cpu", requires_grad=True)
    assert (window.requires_grad, window.is_leaf) == (True, True)
    assert window.dtype == cr.get_default_dtype()
    assert sorted(cr.signal.windows.__all__) == sorted(NAMES)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda w: w.hann(-1), cr.ArgumentError, "non-negative window length, got M=-1"),
        (lambda w: w.hann(3, dtype=cr.int64), cr.DTypeError, "expects float32, float64 or"),
        (lambda w: w.general_cosine(3, a=[]), cr.ArgumentError, "Coefficients cannot be empty"),
        (lambda w: w.gaussian(3, std=0), cr.ArgumentError, "deviation must be positive, got: 0"),
        (lambda w: w.exponential(3, tau=-1), cr.ArgumentError, "Tau must be positive, got: -1"),
        (lambda w: w.exponential(3, center=1), cr.ArgumentError, "must be None for symmetric"),
        (lambda w: w.kaiser(3, beta=-1), cr.ArgumentError, "beta must be non-negative"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(cr.signal.windows)
