"""Elements of arrays: the index and example of one, the numbers there, and both as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from chainrule.backend import whole

Array = Any


class Place(NamedTuple):
    """One element: its index, and that of the example under vmap."""

    example: tuple[int, ...]
    position: tuple[int, ...]
    shape: tuple[int, ...]  # of the array, without the batch axes

    def __str__(self) -> str:
        text = f"element {list(self.position)}" if self.position else "its only element"
        if self.example:
            text += f" of example {self.example[0] if len(self.example) == 1 else self.example}"
        return text


def has_numbers(array: Array) -> bool:
    return getattr(array.dtype, "kind", "") in ("f", "c")


def place_of(array: Array, mask: Array) -> Place:
    """Return the first element of `array` that a mask of its whole memory selects."""
    full = np.unravel_index(int(mask.reshape(-1).argmax()), mask.shape)
    index = tuple(int(i) for i in full)
    lead = len(index) - len(array.shape)
    return Place(index[:lead], index[lead:], tuple(array.shape))


def item_of(array: Array, place: Place) -> Any:
    """Return the number that an array, broadcast, has at an element; None if it has none."""
    shape, memory = tuple(array.shape), whole(array)
    offset = len(place.shape) - len(shape)
    sizes = list(zip(shape, place.shape[offset:], strict=True)) if offset >= 0 else []
    if offset < 0 or any(own not in (1, size) for own, size in sizes):
        return None
    lead = memory.shape[: memory.ndim - len(shape)]
    example = place.example[len(place.example) - len(lead) :]
    first = [min(i, size - 1) for i, size in zip(example, lead, strict=False)]
    last = [min(i, own - 1) for i, own in zip(place.position[offset:], shape, strict=True)]
    return memory[(*first, *last)].item()


def _row(array: Array, place: Place, axis: Any, keepdims: bool) -> Any:
    """Return the numbers that are reduced to the element `place` of a result."""
    memory, ndim = whole(array), len(array.shape)
    axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    reduced = {a % ndim for a in axes} if ndim else set()
    kept = iter(place.position)
    index: list[Any] = []
    same = len(place.position) == ndim or keepdims
    for dim in range(ndim):
        at = next(kept, 0) if same or dim not in reduced else 0
        index.append(slice(None) if dim in reduced else at)
    first = [min(i, n - 1) for i, n in zip(place.example, memory.shape, strict=False)]
    lead = memory.ndim - ndim
    return memory[(*first[:lead], *index)]


Values = dict[str, Any]


def row_values(array: Array, place: Place, settings: Mapping[str, Any]) -> Values:
    if "axis" not in settings:
        return {}
    try:
        row = _row(array, place, settings["axis"], bool(settings.get("keepdims")))
    except (IndexError, TypeError):
        return {}
    if row.size == 0:
        return {"row_size": 0}
    if row.dtype.kind != "f":
        return {}
    return {"row_size": row.size, "row_max": float(row.max()), "row_min": float(row.min())}


def shown(values: Values) -> str:
    """Return the values at an element as text, inputs before the result."""
    named = [(n, v) for n, v in values.items() if n not in ("out", "g") and n[:4] != "row_"]
    text = ", ".join(f"{name} = {number(value)}" for name, value in named)
    if "row_size" in values and not values["row_size"]:
        return "it has no elements"
    if "row_max" in values:
        text = f"its row is from {number(values['row_min'])} to {number(values['row_max'])}"
    return text


def number(value: Any) -> str:
    if isinstance(value, complex):
        return f"{value:.6g}"
    return f"{value:.6g}" if isinstance(value, float) and not value.is_integer() else str(value)
