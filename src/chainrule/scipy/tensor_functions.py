"""Functions of SciPy's names: ours for tensors, SciPy's own for arrays and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np

from chainrule.arguments import cast
from chainrule.autograd.operands import plain, scalar_array
from chainrule.autograd.tensor import Tensor, default_dtype, make
from chainrule.backend import promoted
from chainrule.errors import AutogradError, DTypeError
from chainrule.interop.operands import arrays_of, is_tracked, tensor_of, tensors_in
from chainrule.numpy.array_class import as_ndarrays, in_float64

Function = Callable[..., Any]


# --- operands -------------------------------------------------------------------------------------


def floats(name: str, *values: Any) -> list[Tensor]:
    """Return operands of `name` as tensors of one floating dtype: that of tensors and arrays.

    Numbers take this dtype. Without a floating operand it is the default dtype.
    """
    found = [value if _is_number(value) else tensor_of(value) for value in values]
    dtype, like = None, None
    for part in found:
        if isinstance(part, Tensor):
            like = part if like is None or part.requires_grad else like
            if (kind := part._array.dtype.kind) == "f":
                dtype = part.dtype if dtype is None else promoted(dtype, part.dtype)
            elif kind == "c":
                raise _complex_error(name)
    dtype = default_dtype() if dtype is None else dtype
    like = make(np.zeros((), dtype), None) if like is None else cast(like, dtype)
    tensors = []
    for part in found:
        if isinstance(part, complex):
            raise _complex_error(name)
        if not isinstance(part, Tensor):
            part = make(scalar_array(part, like._array), None)
        tensors.append(cast(part, dtype))
    return tensors


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | complex | np.generic)


def _complex_error(name: str) -> DTypeError:
    return DTypeError(
        f"{name}: expected real numbers, got complex ones, for which it is not defined. Take the "
        "real part, or the absolute value, first"
    )


# --- functions of tensors or of arrays ------------------------------------------------------------


def has_tensors(*values: Any) -> bool:
    """Return whether a tensor is among arguments, or in a list among them."""
    for value in values:
        if isinstance(value, Tensor):
            return True
        if value.__class__ in (list, tuple, dict) and next(tensors_in(value), None) is not None:
            return True
    return False


def call_ours(function: Function, args: Any, kwargs: Any) -> Any:
    """Call a function of tensors; its results are of the class that its operands are carried in.

    A function among the arguments gets that class, too; others compute with plain tensors.
    """
    if not any([t.is_carried for t in tensors_in((args, kwargs))]):
        return function(*args, **kwargs)
    if not any([callable(value) for value in (*args, *kwargs.values())]):
        args, kwargs = _plain(args), _plain(kwargs)
    found = in_float64(function, *args, **kwargs)
    return found.map_parts(as_ndarrays) if hasattr(found, "map_parts") else as_ndarrays(found)


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return plain(value)
    if value.__class__ in (list, tuple):
        return value.__class__([_plain(part) for part in value])
    if value.__class__ is dict:
        return {key: _plain(part) for key, part in value.items()}
    return value


def either(ours: Function, scipys: Function) -> Function:
    """Return the function that is `ours` of tensors, and SciPy's own of all else."""

    def function(*args: Any, **kwargs: Any) -> Any:
        if has_tensors(*args, *kwargs.values()):
            return call_ours(ours, args, kwargs)
        return scipys(*args, **kwargs)

    update_wrapper(function, ours)
    del function.__dict__["__wrapped__"]
    return function


def refused(name: str, scipys: Function, reason: str) -> Function:
    """Return SciPy's function, which raises if a gradient is asked for."""

    def function(*args: Any, **kwargs: Any) -> Any:
        if is_tracked(args, kwargs):
            raise AutogradError(
                f"{name} has no derivative: {reason}. Pass x.detach() if the argument is to count "
                "as constant"
            )
        return scipys(*arrays_of(args), **arrays_of(kwargs))

    update_wrapper(function, scipys)
    del function.__dict__["__wrapped__"]
    return function


PASSED = "it is SciPy's own here, without a derivative rule"


def namespace(
    title: str,
    library: Any,
    ours: Mapping[str, Any],
    reasons: Mapping[str, str],
    constants: Sequence[str] = (),
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a module that stands for one of SciPy's.

    Parameters
    ----------
    title : str
        The module's name, for errors.
    library : LazyModule
        SciPy's module.
    ours : mapping of str to Any
        Functions of tensors by name. Classes and objects stand for themselves.
    reasons : mapping of str to str
        Why functions of SciPy's have no derivative.
    constants : sequence of str
        Functions of SciPy's whose results are truth values or integers.
    """

    found: dict[str, Any] = {}

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {title!r} has no attribute {name!r}")
        if name not in found:
            found[name] = _of(f"scipy.{title.partition('.scipy.')[2]}.{name}", name)
        return found[name]

    def _of(full: str, name: str) -> Any:
        mine = ours.get(name)
        if mine is not None:
            is_whole = isinstance(mine, type) or not hasattr(mine, "__code__")
            return mine if is_whole else either(mine, getattr(library, name))
        scipys = getattr(library, name)
        if isinstance(scipys, type) or not callable(scipys) or not hasattr(scipys, "__code__"):
            return scipys
        if name in constants:
            return lambda *args, **kwargs: scipys(*arrays_of(args), **arrays_of(kwargs))
        return refused(full, scipys, reasons.get(name, PASSED))

    def names() -> list[str]:
        return sorted({*ours, *library.__all__})

    return get, names
