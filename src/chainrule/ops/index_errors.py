"""NumPy's errors of indices, in the words of a tensor's user."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from chainrule.errors import OutOfBoundsError


def in_our_words(error: IndexError) -> OutOfBoundsError:
    """Return NumPy's error, saying dimension and tensor instead of axis and array."""
    text = str(error).replace("for axis", "for dimension").replace("for array", "for tensor")
    text = _MASK.sub(
        r"The shape of the mask does not match the shape of the indexed tensor: at dimension \1 "
        r"the mask has size \3 and the tensor size \2",
        text,
    )
    if "tensor is 0-dimensional" in text.replace("array is", "tensor is"):
        text = f"invalid index of a 0-dim tensor: {text}. Use `tensor.item()` for its number"
    return OutOfBoundsError(text.replace("array is", "tensor is"))


_MASK = re.compile(
    r"boolean index did not match indexed array along axis (\d+); size of axis is (\d+) but size "
    r"of corresponding boolean axis is (\d+)"
)


@contextlib.contextmanager
def indexing() -> Iterator[None]:
    """Around what indexes with NumPy: its errors are raised in our words."""
    try:
        yield
    except IndexError as error:
        raise in_our_words(error) from None
