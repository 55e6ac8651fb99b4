"""Comparison of tensors in tests, under PyTorch's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor

__all__ = ["assert_close"]

_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
"""PyTorch's relative and absolute tolerances; those of other dtypes are 0."""


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise unless tensors, numbers, or sequences and mappings of them are close.

    Parameters
    ----------
    actual, expected
        Of the same structure, shapes and dtypes.
    rtol, atol : float, optional
        Both or none: |actual - expected| ≤ atol + rtol |expected|. By default by the dtype, as in
        PyTorch: 1.3e-6 and 1e-5 for float32, 1e-7 for float64, 0 for integers.
    equal_nan : bool, default False
        Whether nan equals nan.
    check_dtype : bool, default True
        Whether dtypes must be equal.
    msg : str or callable, optional
        The text of the error, or a function of it.
    allow_subclasses, check_device, check_layout, check_stride
        As in PyTorch, without effect.

    Raises
    ------
    AssertionError
        If they are not close.
    ValueError
        If only one tolerance is given.

    Examples
    --------
    >>> import chainrule as cr
    >>> assert_close(cr.tensor(1.0), cr.tensor(1.000001))
    """
    if (rtol is None) != (atol is None):
        raise ValueError("assert_close: rtol and atol must both be specified or both unspecified")
    tolerances = None if rtol is None or atol is None else (rtol, atol)
    text = _difference(actual, expected, tolerances, equal_nan, check_dtype, "")
    if text:
        raise AssertionError(msg(text) if callable(msg) else msg or text)


def _difference(
    actual: Any, expected: Any, tolerances: Any, equal_nan: bool, check_dtype: bool, at: str
) -> str:
    """Return the first difference, or an empty text."""
    rest = tolerances, equal_nan, check_dtype
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        if actual.keys() != expected.keys():
            return f"The keys of the mappings do not match{at}: {list(actual)}, {list(expected)}"
        pairs = [(key, actual[key], expected[key]) for key in expected]
    elif isinstance(expected, Sequence) and isinstance(actual, Sequence):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch{at}: {len(actual)} != {len(expected)}"
        pairs = [(i, a, b) for i, (a, b) in enumerate(zip(actual, expected, strict=True))]
    else:
        return _mismatch(actual, expected, *rest, at)
    texts = (_difference(a, b, *rest, f"{at}[{key!r}]") for key, a, b in pairs)
    return next((text for text in texts if text), "")


def _mismatch(
    actual: Any, expected: Any, tolerances: Any, equal_nan: bool, check_dtype: bool, at: str
) -> str:
    a, b = (
        np.asarray(x.numpy(force=True) if isinstance(x, Tensor) else x) for x in (actual, expected)
    )
    place = f"\n\nThe failure occurred for item {at}" if at else ""
    if a.shape != b.shape:
        return f"The values for attribute 'shape' do not match: {a.shape} != {b.shape}.{place}"
    both = isinstance(actual, Tensor) and isinstance(expected, Tensor)
    if check_dtype and both and a.dtype != b.dtype:
        return f"The values for attribute 'dtype' do not match: {a.dtype} != {b.dtype}.{place}"
    coarser = max(a.dtype, b.dtype, key=lambda dtype: _TOLERANCES.get(dtype.name, (0, 0)))
    rtol, atol = tolerances or _TOLERANCES.get(coarser.name, (0.0, 0.0))
    with np.errstate(all="ignore"):
        close = np.isclose(a, b, rtol, atol, equal_nan)
        if close.all():
            return ""
        wrong, distance = int((~close).sum()), np.abs(a.astype(complex) - b).max()
    return (
        f"{'Tensor-likes' if a.ndim else 'Scalars'} are not close!\n\n"
        f"Mismatched elements: {wrong} / {a.size} ({wrong / a.size:.1%})\n"
        f"Greatest absolute difference: {distance} (up to {atol} allowed, and {rtol} relative)"
        f"{place}"
    )
