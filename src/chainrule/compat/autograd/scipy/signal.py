"""Convolution along some axes of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import chainrule.compat.autograd.numpy as np
from chainrule.errors import ArgumentError
from chainrule.numpy import lib as _lib

__all__ = ["convolve"]

Axes = Sequence[Sequence[int]]


def convolve(
    A: Any, B: Any, axes: Axes | None = None, dot_axes: Axes | None = None, mode: str = "full"
) -> Any:
    """Return the convolution of two arrays along pairs of axes.

    Parameters
    ----------
    A, B : array
        Have as many axes as you like.
    axes : pair of lists of int, optional
        The axes of A, and those of B, to convolve along; all by default.
    dot_axes : pair of lists of int, optional
        The axes of A, and those of B, whose products are summed.
    mode : "full", "valid" or "same"
        Which part of the convolution is returned; "same" has the size of A.

    Returns
    -------
    array
        Its axes: the others of A, the others of B, and those of the convolution.

    Raises
    ------
    ValueError
        If `mode` is another one, or it is "valid" and neither array is the larger in all axes.
    """
    if mode not in ("full", "valid", "same"):
        raise ArgumentError(f"convolve: mode is 'valid', 'full' or 'same', got {mode!r}")
    along_a, along_b = axes if axes is not None else (range(np.ndim(A)), range(np.ndim(B)))
    dot_a, dot_b = dot_axes if dot_axes is not None else ((), ())
    sizes_a = [np.shape(A)[i] for i in along_a]
    sizes_b = [np.shape(B)[i] for i in along_b]
    names_a, names_b, out = _names(A, B, (along_a, along_b), (dot_a, dot_b))
    if mode == "valid":
        if all(a <= b for a, b in zip(sizes_a, sizes_b, strict=True)):
            A, B, along_a, along_b = B, A, along_b, along_a
            out = out.replace("".join(names_a[i] for i in along_b), "")
            names_a, names_b, sizes_b = names_b, names_a, sizes_a
            out += "".join(names_a[i] for i in along_a)
        elif any(a < b for a, b in zip(sizes_a, sizes_b, strict=True)):
            raise ArgumentError(
                "convolve: in mode 'valid' one array must be the larger in all convolved axes, got "
                f"the sizes {sizes_a} and {sizes_b}"
            )
    else:
        widths = [(0, 0)] * np.ndim(A)
        for axis, size in zip(along_a, sizes_b, strict=True):
            before = size - 1 if mode == "full" else size - 1 - (size - 1) // 2
            widths[axis] = (before, size - 1 if mode == "full" else (size - 1) // 2)
        A = np.pad(A, widths)
    # The axes of the windows come last; those of their positions keep their places.
    windows = _lib.stride_tricks.sliding_window_view(A, sizes_b, axis=tuple(along_a))
    within = [names_b[axis] for axis in along_b]
    flipped = np.flip(B, tuple(along_b))
    return np.einsum(f"{names_a}{''.join(within)},{names_b}->{out}", windows, flipped)


def _names(A: Any, B: Any, axes: Any, dot_axes: Any) -> tuple[str, str, str]:
    """Return a letter for each axis of A, of B and of the result."""
    a = [chr(ord("a") + i) for i in range(np.ndim(A))]
    b = [chr(ord("A") + i) for i in range(np.ndim(B))]
    for i, j in zip(*dot_axes, strict=True):
        b[j] = a[i]
    others_a = [a[i] for i in range(len(a)) if i not in axes[0] and i not in dot_axes[0]]
    others_b = [b[j] for j in range(len(b)) if j not in axes[1] and j not in dot_axes[1]]
    positions = [a[i] for i in axes[0]]
    return "".join(a), "".join(b), "".join(others_a + others_b + positions)
