"""The exceptions of chainrule.

Every one is a RuntimeError, since code that comes from PyTorch catches that, and also the built-in
exception that a NumPy user would expect. A message says the operation, what came, what was expected
and the mend; it keeps the words that people search for.
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
    "FreedGraphError",
    "InPlaceError",
    "LinAlgError",
    "MissingExtraError",
    "MissingRuleError",
    "OutOfBoundsError",
    "ShapeError",
]


class ArgumentError(RuntimeError, ValueError):
    """An argument of the right type whose value makes no sense to the operation."""


class AutogradError(RuntimeError):
    """The graph can't do what was asked: no history, freed, cut, or a rule that went wrong."""


class CompileError(AutogradError):
    """A function that can't be compiled: it looks at values, or does what a program can't."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        raised = RAISED.get()
        if raised is not None:
            raised.append(self)


RAISED: ContextVar[list[CompileError] | None] = ContextVar("chainrule raised", default=None)
"""The errors of the trace that runs, which a function that catches them must not hide."""


class FreedGraphError(AutogradError):
    """A second pass over a node whose saved values an earlier pass released."""


class InPlaceError(AutogradError):
    """An in-place write that is not allowed, or that changed a value which the graph had saved."""


class OutOfBoundsError(RuntimeError, IndexError):
    """An index that its dimension doesn't have."""


class MissingRuleError(AutogradError, NotImplementedError):
    """Something for which nobody gave a rule: PyTorch raises NotImplementedError there."""


class ShapeError(RuntimeError, ValueError):
    """Shapes that don't fit each other."""


class LinAlgError(RuntimeError, _NumPyLinAlgError):
    """A matrix that an operation is not defined for: singular, or not positive-definite."""


class DTypeError(RuntimeError, TypeError):
    """Dtypes that don't fit each other or the operation."""


class DeviceError(RuntimeError, ValueError):
    """Tensors on different devices, or a device that this machine doesn't have."""


class MissingExtraError(ImportError):
    """An optional package is needed: the message names the extra that brings it."""
