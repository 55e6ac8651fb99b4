"""Checks of arguments that exported modules make on entry; the modules contain copies of them."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "check_apart",
    "check_arrays",
    "check_keys",
    "check_length",
    "check_same",
    "check_value",
]


def check_arrays(*arrays: Any, least: Any = (), c_order: bool = False) -> Any:
    """Raise unless arrays have their dtypes and shapes; return the sizes that have names."""
    sizes = dict[str, int]()
    for label, array, dtype, shape in arrays:
        if not isinstance(array, np.generic) and type(array) not in (np.ndarray, np.memmap):
            kind = type(array).__name__  # such as a matrix, whose products are others
            raise TypeError(f"{label}: expected an array, got {kind}: pass numpy.asarray() of it")
        parts = [f"{s} >= {least[s]}" if s in least else str(s) for s in shape]
        wanted = f"expected {dtype} [{', '.join(parts)}]"
        if array.dtype != np.dtype(dtype):
            raise TypeError(f"{label}: {wanted}, got {array.dtype} {list(array.shape)}")
        matches = len(shape) == len(array.shape)
        for size, found in zip(shape, array.shape, strict=False):
            expected = sizes.setdefault(size, found) if isinstance(size, str) else size
            matches = matches and found == expected and (size not in least or found >= least[size])
        if not matches:
            known = "".join([f", {s} = {sizes[s]}" for s in sizes if s in shape])
            raise ValueError(f"{label}: {wanted}, got {dtype} {list(array.shape)}{known}")
        if c_order and not array.flags.c_contiguous:
            raise ValueError(f"{label}: expected C order, got strides {array.strides}")
    return tuple(sizes.values())


def check_value(label: str, value: Any, expected: Any) -> None:
    """Raise unless a value is the one that the function was made with."""
    if type(value) is not type(expected) or repr(value) != repr(expected):
        raise ValueError(f"{label}: expected {expected!r}, a constant here, got {value!r}")


def check_keys(label: str, value: Any, keys: Any, ordered: bool = False) -> None:
    """Raise unless a dict has these keys, in their order if that matters."""
    if not isinstance(value, dict) or set(value) != set(keys) or (ordered and list(value) != keys):
        found = list(value) if isinstance(value, dict) else type(value).__name__
        order = ", in this order" if ordered else ""
        raise ValueError(f"{label}: expected a dict with the keys {keys}{order}, got {found}")


def check_length(
    label: str, value: Any, length: int, kind: Any = (list, tuple), fields: Any = None
) -> None:
    """Raise unless a list or tuple has so many items; a named tuple has the same fields."""
    if not isinstance(value, kind) or len(value) != length:
        wanted = "list or tuple" if isinstance(kind, tuple) else kind.__name__
        found = len(value) if isinstance(value, kind) else type(value).__name__
        raise ValueError(f"{label}: expected a {wanted} of length {length}, got {found}")
    if fields is not None and getattr(value, "_fields", fields) != fields:
        raise ValueError(f"{label}: expected the fields {fields}, got {value._fields}")


def check_same(label: str, value: Any, other_label: str, other: Any) -> None:
    """Raise unless two arguments are one array."""
    if value is not other:
        raise ValueError(f"{label}: expected the array that is {other_label}, got another one")


def check_apart(*arrays: Any) -> None:
    """Raise if arrays share memory, since the function writes to it."""
    for number, (label, array) in enumerate(arrays):
        for other_label, other in arrays[:number]:
            if np.may_share_memory(array, other):
                raise ValueError(
                    f"{label}: expected memory of its own, got memory that {other_label} has, too"
                )
