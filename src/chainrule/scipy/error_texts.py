"""Errors of SciPy's own functions: the call, what it got, the user's line and a remedy."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from chainrule.autograd.location import INTERNAL, is_installed
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, ArgumentTypeError, LinAlgError, LocatedError

P = ParamSpec("P")
R = TypeVar("R")

_KINDS: dict[type[Exception], type[LocatedError]] = {
    np.linalg.LinAlgError: LinAlgError,
    ValueError: ArgumentError,
    TypeError: ArgumentTypeError,
    RuntimeError: LocatedError,
}

_MENDS = {
    r"[Uu]nknown solver": "the methods are listed by help(scipy.{name})",
    r"different signs": "choose ends of the bracket between which the function changes its sign, "
    "or give x0 in its place",
    r"bracket nor starting point": "give x0=, or bracket=(a, b) with a change of sign",
    r"positive.definite|potrf": "the matrix is not positive definite: add a small multiple of the "
    "identity matrix, or symmetrise it if it is the result of a computation",
    r"[Ss]ingular": "linalg.lstsq solves by least squares, linalg.pinv is the pseudo-inverse",
    r"infs or NaNs": "cr.detect_anomaly() finds the operation that they come from",
    r"square": "x.T @ x is square, and linalg.lstsq and linalg.pinv take other matrices, too",
    r"upper bound is less": "a bound is a pair (low, high)",
    r"outside of (the )?provided bounds": "begin between the bounds",
    r"number of residuals is less": "method='trf' takes fewer residuals than unknowns",
    r"not within `t_span`": "extend t_span to the last of the times",
    r"must be 1-dimensional": "flatten it with ravel(), and reshape it in the function",
    r"unexpected keyword": "its arguments are listed by help(scipy.{name})",
    r"positional argument": "the function of yours gets the unknowns, and then what args= holds",
    r"not iterable": "a pair of ends is needed, such as (0.0, 1.0)",
    r"shape|size|broadcast": "shapes of arguments and of what your function returns have to fit",
}


def explaining(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of what stands for a function of SciPy's, whose errors it explains."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except tuple(_KINDS) as error:
                if type(error) not in _KINDS or _is_of_user(error.__traceback__):
                    raise
                raise _explained(error, name, args, kwargs) from None

        return call

    return decorate


def _explained(error: Exception, name: str, args: Any, kwargs: Any) -> LocatedError:
    """Return the error to raise in the place of one that SciPy raised in a call."""
    text = " ".join(str(error).split()).rstrip(".")
    got = [_shown(arg) for arg in args] + [f"{key}={_shown(kwargs[key])}" for key in kwargs]
    mend = next((mend for words, mend in _MENDS.items() if re.search(words, text)), "")
    advice = f": {mend.format(name=name.removeprefix('scipy.'))}" if mend else ""
    return _KINDS[type(error)](f"{name}({', '.join(got)}): {text}{advice}")


def _is_of_user(traceback: TracebackType | None) -> bool:
    """Tell whether a call of the user's code, within this one, raised the error."""
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        if not (INTERNAL[filename] or is_installed(filename)):
            return True
        traceback = traceback.tb_next
    return False


def _shown(value: Any) -> str:
    """Return an argument in few words: an array as its shape, a function as its name."""
    if isinstance(value, Tensor | np.ndarray):
        return f"{value.dtype} {list(value.shape)}"
    text = getattr(value, "__name__", "") if callable(value) else repr(value)
    return text if 0 < len(text) <= 40 else type(value).__name__
