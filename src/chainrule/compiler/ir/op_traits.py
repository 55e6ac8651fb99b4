"""What the passes and the emitters know of functions."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from chainrule.compiler.ir.abstract_eval import DRAW, abstract_eval, resolve
from chainrule.compiler.ir.program import Op, Value

VIEWS = frozenset(
    [
        *("np.reshape", "np.permute_dims", "np.broadcast_to", "getitem", "diagonal", "windows"),
        *("np.real", "np.imag", "np.flip", "np.squeeze", "np.expand_dims", "np.ravel"),
        *("np.swapaxes", "np.moveaxis", "np.split"),
    ]
)
"""Functions whose result may be memory of their first argument."""


@cache
def is_ufunc(name: str) -> bool:
    """Say whether a function acts element by element, and takes `out=`."""
    if not name.startswith("np."):
        return False
    function = resolve(name)
    return isinstance(function, np.ufunc) and function.signature is None


def is_elementwise(name: str) -> bool:
    """Say whether a function acts element by element, with broadcasting, into `out=` if wanted."""
    return name == "masked" or is_ufunc(name)


BLOCKS = "blocks"
"""What does the lines of its body for some rows at a time."""


def takes_out(name: str) -> bool:
    """Say whether a function can write its results into memory that it is given."""
    return name in ("np.matmul", BLOCKS) or is_elementwise(name) or name.startswith("native.")


def written_over(op: Op, out: Value) -> list[Value]:
    """Return the arguments of a line over which it may write a result while it reads them."""
    if is_elementwise(op.function):
        return op.inputs
    places = op.kwargs.get("over")  # of what does several lines: only one
    place = None if places is None else places[op.outs.index(out)]
    return [] if place is None else [op.args[place]]


def makes_new(name: str) -> bool:
    """Say whether what a function returns is memory that nobody else has."""
    return takes_out(name) or name in _NEW or name.startswith(_ALL_NEW)


_ALL_NEW = ("np.linalg.", "np.fft.", "kernels.", "native.")
_NEW = frozenset(
    [
        *("np.sum", "np.max", "np.min", "np.mean", "np.prod", "np.any", "np.all", "np.vdot"),
        *("np.concat", "np.concatenate", "np.stack", "np.where", "np.zeros", "np.ones", "np.take"),
        *("np.astype", "np.cumulative_sum", "np.cumulative_prod", "np.sort", "np.argsort"),
        *("np.argmax", "np.argmin", "np.clip", "np.tril", "np.triu", "np.add.reduce"),
        *("add_along_axis", "add_at", "assign_at", "index_add", "maximum_at", "plus_at"),
        *("minimum_at", "take_along_axis", "logcumsumexp", "with_imag", "with_real", DRAW),
        *("for", "while", "if"),
        "lasting",
    ]
)


def is_alone(op: Op) -> bool:
    """Say whether a line's one result comes in a tuple, or in a list."""
    return (
        len(op.outs) == 1
        and op.function.startswith("np.")
        and abstract_eval(op.function, op.args, op.kwargs).kind is not None
    )


def scalar_of(value: Any, constants: dict[Value, Any]) -> Any:
    """Return the Python number that an argument always is, or None."""
    if isinstance(value, Value):
        array = constants.get(value)
        if array is None or array.ndim or array.dtype.kind not in "biuf":
            return None
        return number_of(array)
    return value if isinstance(value, int | float) else None


def number_of(array: Any) -> Any:
    """Return the one element of an array as the shortest Python number that its dtype rounds to."""
    element = array.reshape(())[()]
    return float(str(element)) if array.dtype.kind == "f" else element.item()
