"""Printing of tensors in PyTorch's layout, so that printed values compare by eye.

One pass over the values to be printed chooses notation and width; a second writes them. The rules
are those of PyTorch 2.13, and the tests compare the two where it is installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from chainrule.backend import CPU, is_known, move
from chainrule.errors import ArgumentError

__all__ = ["format_tensor", "set_printoptions", "tensor_text"]


class _PrintOptions(NamedTuple):
    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_DEFAULTS = _PrintOptions()
_PROFILES = {
    "default": _DEFAULTS,
    "short": _PrintOptions(precision=2, edgeitems=2),
    "full": _PrintOptions(threshold=math.inf),
}
_options: ContextVar[_PrintOptions] = ContextVar("chainrule_printoptions", default=_DEFAULTS)


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print, in the current context (thread or task).

    Options that are left out keep their values, except `sci_mode`, which each call sets.

    Parameters
    ----------
    precision : int, optional
        Digits after the decimal point; 4 at first.
    threshold : int or math.inf, optional
        Tensors of more elements than this are summarised; 1000 at first.
    edgeitems : int, optional
        Items shown at either end of a summarised axis; 3 at first.
    linewidth : int, optional
        Columns of a line; 80 at first.
    profile : "default", "short" or "full", optional
        Set the other options to their first values; "short" shows 2 digits and 2 items at either
        end, "full" all elements. Options that are given, too, are set after it.
    sci_mode : bool or None, default None
        Scientific notation always (True), never (False), or when the values ask for it (None).

    Raises
    ------
    ArgumentError
        If a number is negative, or there is no such profile.

    Examples
    --------
    >>> import contextvars
    >>> import numpy as np
    >>> def show():
    ...     set_printoptions(precision=2)
    ...     print(format_tensor(np.array([0.125, -3.5])))
    >>> contextvars.copy_context().run(show)
    tensor([ 0.12, -3.50])
    """
    numbers = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    changes: dict[str, Any] = {name: n for name, n in numbers.items() if n is not None}
    for name, number in changes.items():
        if number < 0:
            raise ArgumentError(f"set_printoptions: got {name}={number}, expected 0 or more")
    if profile is not None and profile not in _PROFILES:
        raise ArgumentError(
            f"set_printoptions: profile is one of {', '.join(_PROFILES)}, got {profile!r}"
        )
    options = _options.get() if profile is None else _PROFILES[profile]
    _options.set(options._replace(**changes, sci_mode=sci_mode))


def format_tensor(
    array: np.ndarray, *, prefix: str = "tensor", suffixes: Sequence[str] = ()
) -> str:
    """Return `array` as PyTorch prints a tensor of these values, followed by `suffixes`.

    Parameters
    ----------
    array : ndarray, any shape; bool, integer, real or complex floating
        The values.
    prefix : str, default "tensor"
        The text before the parenthesis; its length sets the indent of later lines.
    suffixes : sequence of str, default ()
        Texts after the values, such as ``dtype=float64``.

    Returns
    -------
    str
        One or more lines, without a newline at the end.

    Examples
    --------
    >>> print(format_tensor(np.array([[1.0, -2.5], [3.0, 4.0]]), suffixes=["dtype=float64"]))
    tensor([[ 1.0000, -2.5000],
            [ 3.0000,  4.0000]], dtype=float64)
    """
    options = _options.get()
    indent = len(prefix) + 1
    if array.size == 0:
        body = "[]"
    else:
        # Above the threshold only the edges are printed; math.inf means all items.
        edge = options.edgeitems if array.size > options.threshold else math.inf
        writer = _writer(_shown(array, edge), options)
        body = _block(array, writer, edge, indent, options.linewidth)
    # The shape is printed where the brackets don't show it.
    hidden = array.ndim != 1 if array.size == 0 else options.edgeitems == 0
    if hidden:
        at = sum(suffix.startswith("device=") for suffix in suffixes)
        suffixes = [*suffixes[:at], f"size={array.shape}", *suffixes[at:]]
    return _with_suffixes(f"{prefix}({body}", suffixes, indent, options.linewidth) + ")"


class _Writer(NamedTuple):
    """The text of one value of a tensor, and the number of columns reserved for it."""

    write: Callable[[Any], str]
    width: int


def _writer(shown: np.ndarray, options: _PrintOptions) -> _Writer:
    """Return the writer for the dtype and the values of `shown`."""
    if shown.dtype.kind == "c":
        return _complex_writer(shown, options)
    if shown.dtype.kind == "f":
        return _float_writer(shown, options)
    width = max((len(str(value)) for value in shown.ravel().tolist()), default=0)
    return _Writer(lambda value: str(value).rjust(width), width)


def _float_writer(shown: np.ndarray, options: _PrintOptions) -> _Writer:
    """Return a writer in one notation: whole numbers as "1.", fixed point or scientific."""
    values = [value for value in shown.ravel().tolist() if value != 0 and math.isfinite(value)]
    whole = all(value == math.floor(value) for value in values)
    scientific = False
    if values:
        sizes = [abs(value) for value in values]
        low, high = min(sizes), max(sizes)
        # Compared as a quotient, as in PyTorch: 1000 * low rounds differently.
        scientific = high / low > 1000 or high > 1e8 or low < 1e-4
        scientific = scientific if options.sci_mode is None else options.sci_mode
    dotted = whole and not scientific
    spec = ".0f" if dotted else f".{options.precision}{'e' if scientific else 'f'}"

    def text(value: float) -> str:
        return format(value, spec) + ("." if dotted and math.isfinite(value) else "")

    # Zeros, infinities and nans don't count, and can be wider, as in PyTorch.
    width = max((len(text(value)) for value in values), default=1)
    return _Writer(lambda value: text(value).rjust(width), width)


def _complex_writer(shown: np.ndarray, options: _PrintOptions) -> _Writer:
    """Return a writer with a notation for each part; only the real one is padded."""
    real, imag = _float_writer(shown.real, options), _float_writer(shown.imag, options)

    def write(value: complex) -> str:
        tail = imag.write(value.imag).lstrip()
        return f"{real.write(value.real)}{'' if tail.startswith('-') else '+'}{tail}j"

    return _Writer(write, real.width + imag.width + 1)


def _shown(array: np.ndarray, edge: float) -> np.ndarray:
    """Return `array` without the middle of its long axes."""
    for axis, length in enumerate(array.shape):
        if length > 2 * edge:
            ends = [*range(int(edge)), *range(length - int(edge), length)]
            array = array.take(ends, axis=axis)
    return array


def _block(array: np.ndarray, writer: _Writer, edge: float, indent: int, linewidth: int) -> str:
    """Return the bracketed text of `array`, whose opening bracket is in column `indent`."""
    if array.ndim == 0:
        return writer.write(array.item())

    def items(part: np.ndarray) -> list[str]:
        if array.ndim == 1:
            return [writer.write(value) for value in part.tolist()]
        return [_block(inner, writer, edge, indent + 1, linewidth) for inner in part]

    if len(array) <= 2 * edge:
        texts = items(array)
    elif edge == 0:
        texts = ["..."]
    else:
        cut = int(edge)
        dots = " ..." if array.ndim == 1 else "..."
        texts = [*items(array[:cut]), dots, *items(array[-cut:])]
    margin = " " * (indent + 1)
    if array.ndim > 1:
        # A newline for each inner axis: blank lines separate blocks.
        newlines = "\n" * (array.ndim - 1)
        return "[" + f",{newlines}{margin}".join(texts) + "]"
    per_line = max(1, (linewidth - indent) // (writer.width + len(", ")))
    lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
    return "[" + f",\n{margin}".join(lines) + "]"


def _with_suffixes(text: str, suffixes: Sequence[str], indent: int, linewidth: int) -> str:
    """Return `text` and the suffixes, each on a new line if it does not fit on the last one."""
    # PyTorch counts the last line of values two columns too long, but no later line.
    column = len(text) - (text.rfind("\n") + 1) + 2
    for suffix in suffixes:
        if column + len(", ") + len(suffix) > linewidth:
            text += f",\n{' ' * indent}{suffix}"
            column = indent + len(suffix)
        else:
            text += f", {suffix}"
            column += len(", ") + len(suffix)
    return text


def tensor_text(tensor: Any, default_dtype: np.dtype[Any]) -> str:
    """Return what `repr` shows of a tensor."""
    suffixes = []
    array = move(tensor._array, CPU)
    if not is_inferred(array, default_dtype):
        suffixes.append(f"dtype={array.dtype.name}")
    if tensor.device != CPU:
        suffixes.insert(0, f"device='{tensor.device}'")
    if tensor.grad_fn is not None:
        suffixes.append(f"grad_fn={tensor.grad_fn}")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    if not is_known(array):  # a function is being compiled
        return f"tensor({', '.join([f'<unknown {list(array.shape)}>', *suffixes])})"
    return format_tensor(array, suffixes=suffixes)


def is_inferred(array: Any, default: np.dtype[Any]) -> bool:
    """Return whether `tensor` would choose the dtype of an array by its elements."""
    dtype = array.dtype
    if dtype == default or not array.size:  # no elements, nothing to tell an integer by
        return bool(dtype == default)
    double = dtype.kind == "c" and dtype.itemsize == 2 * default.itemsize
    return double or dtype in (np.dtype(np.int64), np.dtype(np.bool_))
