"""Traits of ops, which passes and code generators ask: views, elementwise, `out=`, allocation."""

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
"""Functions whose result may be a view of their first argument."""


@cache
def is_ufunc(name: str) -> bool:
    """Whether a function is one of NumPy's elementwise ufuncs, which take `out=`."""
    if not name.startswith("np."):
        return False
    function = resolve(name)
    return isinstance(function, np.ufunc) and function.signature is None


def has_loop(name: str, dtype: np.dtype[Any]) -> bool:
    """Whether a function is a ufunc that can compute with operands of this dtype alone."""
    if not is_ufunc(name):
        return False
    function: Any = resolve(name)
    return any([form.startswith(dtype.char * function.nin + "->") for form in function.types])


def is_elementwise(name: str) -> bool:
    """Whether a function is elementwise: it broadcasts its operands and takes `out=`."""
    return name == "masked" or is_ufunc(name)


TILED = "blocks"
"""Name of the op that runs its region on one block of rows after the other."""


def takes_out(name: str) -> bool:
    """Whether a function can write its results into given memory, as `out=`."""
    known = name in _WITH_OUT or name in _TRANSFORMS
    return known or is_elementwise(name) or name.startswith("native.")


_WITH_OUT = frozenset(
    [
        *("np.matmul", "np.concat", "np.concatenate", "np.stack", TILED),
        *("np.cumulative_sum", "np.cumulative_prod"),
    ]
)


def is_padding(op: Op) -> bool:
    """Whether an op puts zeros around an array, which takes `out=`, too."""
    key = op.kwargs.get("key")
    parts = key if isinstance(key, tuple) else (key,)
    return op.function == "index_add" and all(
        part is Ellipsis or isinstance(part, slice | int) for part in parts
    )


def overwritable_inputs(op: Op, out: Value) -> list[Value]:
    """Return the inputs of an op whose memory one of its results may overwrite."""
    if is_elementwise(op.function) or op.function in _COMPLEX_TRANSFORMS:
        return [*op.inputs]
    positions = op.kwargs.get("over")  # tiled and native ops: at most one input for each result
    position = None if positions is None else positions[op.outs.index(out)]
    return [] if position is None else [op.args[position]]


_COMPLEX_TRANSFORMS = frozenset(["np.fft.fft", "np.fft.ifft", "np.fft.fftn", "np.fft.ifftn"])
_TRANSFORMS = _COMPLEX_TRANSFORMS | {
    f"np.fft.{name}" for name in ("rfft", "irfft", "rfftn", "irfftn", "hfft", "ihfft")
}


def returns_new_memory(name: str) -> bool:
    """Whether the results of a function never alias other arrays."""
    return takes_out(name) or name in _ALLOCATING or name.startswith(_ALLOCATING_PREFIXES)


_ALLOCATING_PREFIXES = ("np.linalg.", "np.fft.", "scipy.", "kernels.", "native.")
_ALLOCATING = frozenset(
    [
        *("np.sum", "np.max", "np.min", "np.mean", "np.prod", "np.any", "np.all", "np.vdot"),
        *("np.where", "np.zeros", "np.ones", "np.take", "np.astype", "np.sort", "np.argsort"),
        *("np.argmax", "np.argmin", "np.clip", "np.tril", "np.triu", "np.add.reduce"),
        *("add_along_axis", "add_at", "assign_at", "index_add", "maximum_at", "plus_at"),
        *("minimum_at", "take_along_axis", "logcumsumexp", "with_imag", "with_real", DRAW),
        *("for", "while", "if"),
        *("lasting", "solve_triangular"),
    ]
)


WRITES = ("assign_at", "plus_at", "add_at")
"""Functions that return a copy with something written, for which the array itself may serve."""


def returns_1_tuple(op: Op) -> bool:
    """Whether the function of an op returns its single result in a tuple or a list."""
    return (
        len(op.outs) == 1
        and op.function.startswith("np.")
        and abstract_eval(op.function, op.args, op.kwargs).container is not None
    )
