"""The exceptions of chainrule, and its warning of slow programs.

Each exception is a RuntimeError, which code written for PyTorch catches, and also the built-in
exception that a NumPy user expects. A message names the operation, the actual and the expected
arguments, and a remedy; it contains PyTorch's or NumPy's words where people search for them.
As text, it also has the public function that was called, and the user's line, if it lacks them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, ClassVar, ParamSpec, TypeVar

from numpy.linalg import LinAlgError as _NumPyLinAlgError

P = ParamSpec("P")
T = TypeVar("T")

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "AutogradError",
    "ClusterError",
    "CommunicationError",
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
    "PartitionError",
    "PerformanceWarning",
    "ShapeError",
    "VerificationError",
]


class LocatedError(RuntimeError):
    """An error whose text names the public function that the user called, and the user's line."""

    find_caller: ClassVar[list[Callable[[], Any]]] = []
    """Returns what completes a text; added by chainrule.autograd.location."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self._caller = self.find_caller[0]() if self.find_caller else None

    def __str__(self) -> str:
        text = super().__str__()
        caller = vars(self).get("_caller")
        return text if caller is None else str(caller.completed(text))

    def __reduce__(self) -> Any:
        """Return what a pickle holds: another process knows neither the frame nor its source."""
        state = {name: value for name, value in vars(self).items() if name != "_caller"}
        return _restored, (type(self), str(self), self.args), state


def call_of_user(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function of the user; raise our error where NumPy has put its own in the place of it.

    It does where it asks for the number of a sequence, as in ``a[0] = t``.
    """
    try:
        return function(*args, **kwargs)
    except ValueError as error:
        cause, traceback = error.__cause__, error.__traceback__
        if not isinstance(cause, LocatedError) or "setting an array element" not in str(error):
            raise
    raise cause.with_traceback(traceback) from None


def _restored(kind: type[LocatedError], text: str, args: tuple[Any, ...]) -> LocatedError:
    error = kind.__new__(kind)
    error.args = (text, *args[1:]) if args else args
    return error


class ArgumentError(LocatedError, ValueError):
    """An argument of the right type with an invalid value."""


class ArgumentTypeError(LocatedError, TypeError):
    """An argument of a wrong type."""


class NoLengthError(ArgumentTypeError, AttributeError):
    """A number was asked for its length, by ``len()`` or ``hasattr()``."""


class AutogradError(LocatedError):
    """An operation that the graph doesn't allow: no history, freed, detached, or a failed rule."""


class CommunicationError(LocatedError):
    """Calls of several ranks that don't fit each other, or a rank that has ended or failed."""


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


class OutOfBoundsError(LocatedError, IndexError):
    """An index that is out of range for its dimension."""


class MissingRuleError(AutogradError, NotImplementedError):
    """A rule that doesn't exist, of a derivative, a batch or a distribution.

    PyTorch raises NotImplementedError, which programs catch.
    """


class ShapeError(LocatedError, ValueError):
    """Shapes that don't fit each other or the operation."""


class LinAlgError(LocatedError, _NumPyLinAlgError):
    """A matrix for which an operation is not defined: singular, or not positive-definite."""


class DTypeError(LocatedError, TypeError):
    """Dtypes that don't fit each other or the operation."""


class DeviceError(LocatedError, ValueError):
    """Tensors on different devices, or a device that this machine doesn't have."""


class DeviceFunctionError(DeviceError, AttributeError, NotImplementedError):
    """A function that is computed on the CPU only: CuPy doesn't have it.

    Its namespace raises AttributeError, and PyTorch NotImplementedError, for the same.
    """


class FormatError(RuntimeError, ValueError):
    """A file that is damaged, or contains what `load` doesn't read: says what, and how to mend it.

    Nothing in a file is executed, and no memory is reserved for more than the file contains.
    """


class MissingExtraError(ImportError):
    """A missing optional package; the message names the extra that installs it."""


class ClusterError(LocatedError):
    """A cluster that can't be reached any more, or none to compute on."""


class PartitionError(LocatedError):
    """A partition of distributed data that could not be loaded or evaluated.

    The text begins with the partition, and has the error of the worker, which is also the cause.
    """


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
