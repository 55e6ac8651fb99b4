"""Translation of NumPy's index errors into PyTorch's terms."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from chainrule.errors import OutOfBoundsError


def translate_index_error(error: IndexError) -> OutOfBoundsError:
    """Return NumPy's error with "dimension" and "tensor" instead of "axis" and "array"."""
    text = str(error).replace("for axis", "for dimension").replace("for array", "for tensor")
    text = _MASK_MISMATCH.sub(
        r"The shape of the mask does not match the shape of the indexed tensor: at dimension \1 "
        r"the mask has size \3 and the tensor size \2",
        text,
    )
    if "tensor is 0-dimensional" in text.replace("array is", "tensor is"):
        text = f"invalid index of a 0-dim tensor: {text}. Use `tensor.item()` for its number"
    return OutOfBoundsError(text.replace("array is", "tensor is"))


_MASK_MISMATCH = re.compile(
    r"boolean index did not match indexed array along axis (\d+); size of axis is (\d+) but size "
    r"of corresponding boolean axis is (\d+)"
)


@contextlib.contextmanager
def translated_index_errors() -> Iterator[None]:
    """Translate the index errors that NumPy raises in a `with` block."""
    try:
        yield
    except IndexError as error:
        raise translate_index_error(error) from None
