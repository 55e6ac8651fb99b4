"""The exceptions of chainrule, and its warning of slow programs.

Each exception is a RuntimeError, which code written for PyTorch catches, and also the built-in
exception that a NumPy user expects. A message names the operation, the actual and the expected
arguments, and a remedy; it contains PyTorch's or NumPy's words where people search for them.
"""

from __future__ import annotations

from contextvars import ContextVar

from numpy.linalg import LinAlgError as _NumPyLinAlgError

__all__ = [
    "ArgumentError",
    "AutogradError",
    "CompileError",
    "DTypeError",
    "DeviceError",
    "FormatError",
    "FreedGraphError",
    "InPlaceError",
    "LinAlgError",
    "MissingExtraError",
    "MissingRuleError",
    "OutOfBoundsError",
    "PerformanceWarning",
    "ShapeError",
    "VerificationError",
]


class ArgumentError(RuntimeError, ValueError):
    """An argument of the right type with an invalid value."""


class AutogradError(RuntimeError):
    """An operation that the graph doesn't allow: no history, freed, detached, or a failed rule."""


class CompileError(AutogradError):
    """A function that can't be compiled: it looks at values, or has effects at run time."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        raised = RAISED.get()
        if raised is not None:
            raised.append(self)


RAISED: ContextVar[list[CompileError] | None] = ContextVar("chainrule raised", default=None)
"""Errors raised during the current trace; a function that catches them must not hide them."""


class VerificationError(RuntimeError, AssertionError):
    """A compiled call that differs from the eager one: see ``compile(verify=…)``."""


class FreedGraphError(AutogradError):
    """A second backward pass over a node whose saved values an earlier pass has freed."""


class InPlaceError(AutogradError):
    """An in-place write that is not allowed, or that modified a value saved by the graph."""


class OutOfBoundsError(RuntimeError, IndexError):
    """An index that is out of range for its dimension."""


class MissingRuleError(AutogradError, NotImplementedError):
    """A derivative or batching rule that doesn't exist; PyTorch raises NotImplementedError."""


class ShapeError(RuntimeError, ValueError):
    """Shapes that don't fit each other or the operation."""


class LinAlgError(RuntimeError, _NumPyLinAlgError):
    """A matrix for which an operation is not defined: singular, or not positive-definite."""


class DTypeError(RuntimeError, TypeError):
    """Dtypes that don't fit each other or the operation."""


class DeviceError(RuntimeError, ValueError):
    """Tensors on different devices, or a device that this machine doesn't have."""


class FormatError(RuntimeError, ValueError):
    """A file that is damaged, or contains what `load` doesn't read: says what, and how to mend it.

    Nothing in a file is executed, and no memory is reserved for more than the file contains.
    """


class MissingExtraError(ImportError):
    """A missing optional package; the message names the extra that installs it."""


class PerformanceWarning(UserWarning):
    """A part of a function that runs as a loop of Python where its form promises better.

    Issued once for each function and operation, at the line of your code that runs. The text names
    the operation, the reason, what happens instead, and what to write. ``strict=True`` of `compile`
    and `vmap` raises an error instead.

    Examples
    --------
    >>> import warnings
    >>> import chainrule as cr
    >>> warnings.filterwarnings("ignore", category=cr.PerformanceWarning)  # don't tell
    >>> warnings.filterwarnings("error", category=cr.PerformanceWarning)  # raise, everywhere
    >>> warnings.filterwarnings("default", category=cr.PerformanceWarning)
    """
