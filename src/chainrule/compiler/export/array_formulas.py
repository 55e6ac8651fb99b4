"""Expressions of constant arrays that depend on sizes: uniform, evenly spaced, triangular."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.compiler.codegen.expression import literal
from chainrule.compiler.export.formulas import Formulas, Mismatch


def close(a: Any, b: Any) -> bool:
    """Whether two arrays or numbers are equal up to rounding."""
    if not hasattr(a, "dtype"):
        return type(a) is type(b) and bool(a == b or a != a)
    if np.shape(a) != np.shape(b) or a.dtype != b.dtype:
        return False
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    rounding = float(np.finfo(a.dtype).eps) * 100
    scale = float(np.max(np.abs(b[np.isfinite(b)]), initial=0))
    return bool(np.allclose(a, b, rtol=rounding, atol=rounding * scale, equal_nan=True))


def varying_constants(points: list[dict[str, Any]], formulas: Formulas) -> dict[str, str]:
    """Return the constants that differ between points, each with an expression for it."""
    if len(set(map(tuple, points))) > 1:
        raise Mismatch
    found = {}
    for name in points[0]:
        arrays = [constants[name] for constants in points]
        if any(a is not arrays[0] and not _same_bits(a, arrays[0]) for a in arrays):
            found[name] = _expression(arrays, formulas)
    return found


def _same_bits(a: Any, b: Any) -> bool:
    same_type = a.shape == b.shape and a.dtype == b.dtype
    return bool(same_type and a.tobytes() == b.tobytes())


def _expression(arrays: list[Any], formulas: Formulas) -> str:
    """Return the expression of an array: uniform, evenly spaced, or triangular."""
    shapes = list(zip(*(a.shape for a in arrays), strict=True))
    if len({(a.ndim, a.dtype) for a in arrays}) > 1 or any(a.size == 0 for a in arrays):
        raise Mismatch
    lengths = [formulas.find(list(s)) if len(set(s)) > 1 else str(s[0]) for s in shapes]
    shape = f"({', '.join(lengths)},)"
    dtype = f"np.{arrays[0].dtype.name}"
    if arrays[0].dtype.kind not in "biuf":
        raise Mismatch
    if all(_same_bits(a, np.full_like(a, a.flat[0])) for a in arrays):
        return f"np.full({shape}, {_number_text([a.flat[0] for a in arrays], formulas)}, {dtype})"
    if arrays[0].ndim == 1 and all(a.size > 1 for a in arrays):
        return _spaced(arrays, lengths[0], dtype, formulas)
    if arrays[0].ndim == 2:
        return _triangular(arrays, lengths, dtype, formulas)
    raise Mismatch


def _number_text(numbers: list[Any], formulas: Formulas) -> str:
    values = [n.item() for n in numbers]
    if len(set(map(repr, values))) == 1:
        return literal(values[0]).text
    if any(v < 0 for v in values):
        return f"-{formulas.find([-v for v in values])}"
    return formulas.find(values)


def _spaced(arrays: list[Any], length: str, dtype: str, formulas: Formulas) -> str:
    """Return the expression of evenly spaced numbers."""
    if arrays[0].dtype.kind == "b":
        raise Mismatch
    starts, steps = [a[0] for a in arrays], [(a[-1] - a[0]) / (a.size - 1) for a in arrays]
    for a, start, step in zip(arrays, starts, steps, strict=True):
        made = (start + np.arange(a.size) * float(step)).astype(a.dtype)
        if not close(made, a):
            raise Mismatch
    if arrays[0].dtype.kind in "iu":
        steps = [np.asarray(round(float(s))) for s in steps]
    start, step = _number_text(starts, formulas), _number_text(steps, formulas)
    text = f"np.arange({length})"
    text = text if step in ("1", "1.0") else f"({text} * {step})"
    text = text if start in ("0", "0.0") else f"({start} + {text})"
    return f"{text}.astype({dtype})"


def _triangular(arrays: list[Any], lengths: list[str], dtype: str, formulas: Formulas) -> str:
    """Return the expression of matrices of two numbers: a triangle or diagonal, and the rest."""
    for form in ("np.tri({0}, {1}, {2}, bool)", "np.eye({0}, {1}, {2}, bool)"):
        for k in (0, -1, 1):
            made = [eval(form.format(*a.shape, k), {"np": np, "bool": bool}) for a in arrays]
            inside = [a[m] for a, m in zip(arrays, made, strict=True)]
            outside = [a[~m] for a, m in zip(arrays, made, strict=True)]
            if all(_is_uniform(part) for part in (*inside, *outside)):
                one = _number_text([part[0] for part in inside], formulas)
                two = _number_text([part[0] for part in outside], formulas)
                mask = form.format(*lengths, k)
                return f"np.where({mask}, {one}, {two}).astype({dtype})"
    raise Mismatch


def _is_uniform(array: Any) -> bool:
    return bool(array.size and (array.tobytes() == np.full_like(array, array[0]).tobytes()))
