"""Recomputation: a call that is run again in the backward pass instead of saving its tensors.

By `saved_tensors_hooks`, the graph saves a number instead of each tensor of the call. When a
backward pass asks for the first of them, the call runs again, and each tensor that it saves now is
returned once. So there is one graph, the usual one: second derivatives, `autograd_grad` and
`backward(inputs=)` need nothing else.

A derivative depends on the rest of the call through these tensors only. So their sums, kept from
the first run, tell whether what it reads has changed since.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from chainrule.autograd.intercept import SLOTS
from chainrule.autograd.modes import enable_grad, run_in, saved_tensors_hooks
from chainrule.autograd.tensor import Tensor, make
from chainrule.errors import AutogradError, InPlaceError
from chainrule.interrupts import ERRSTATE, call_with, ignore_all

T = TypeVar("T")
Run = Callable[..., None]


class CheckpointError(AutogradError):
    """A function under `checkpoint` saved other tensors in its recomputation."""


class _Done(BaseException):
    """Ends a recomputation that has saved all tensors; not caught by `except Exception`."""


class Recomputation:
    """The tensors that a call saves: their descriptions and, while a pass needs them, themselves.

    `again` makes the call once more, by the function `run(function, *args, **kwargs)` given to it,
    which ends it as soon as it has saved all tensors.
    """

    def __init__(self, again: Callable[[Run], None], checked: bool = True) -> None:
        self._again = again
        self._checked = checked
        self._described: list[tuple[Any, Any, Any]] = []
        self._levels: dict[int, Any] = {}  # of arrays that a vmap within the call has batched
        self._tensors: dict[int, tuple[Tensor, int]] = {}  # with their versions

    def first(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Make the call for the first time."""
        hooks = saved_tensors_hooks(self._pack, self._unpack)
        result = run_in(hooks, function, *args, **kwargs)
        self._tensors.clear()  # of derivatives that the call itself computes
        return result

    def _pack(self, tensor: Tensor) -> int:
        number = len(self._described)
        self._described.append(_described(tensor))
        levels = getattr(tensor._array, "levels", None)
        if levels is not None:
            self._levels[number] = levels
        return number

    def _unpack(self, number: int) -> Tensor:
        """Return the tensor with this number once; a second request makes the call again."""
        if number not in self._tensors:
            self._recompute()
        tensor, version = self._tensors.pop(number)
        if tensor._version != version:
            raise InPlaceError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: a {tensor.dtype} of shape {list(tensor.shape)} that the "
                "function under checkpoint wrote to after the graph had saved it"
            )
        if number in self._levels:  # a vmap within the call has levels of its own at each run
            array: Any = SLOTS["_array"].__get__(tensor)  # of another run than the present one
            return make(array.at_levels(self._levels[number]), None)
        return tensor

    def _recompute(self) -> None:
        """Make the call again until it has saved as many tensors as in the first run."""
        found = self._tensors = dict[int, tuple[Tensor, int]]()
        described: list[tuple[Any, Any, Any]] = []
        count = len(self._described)

        def keep(tensor: Tensor) -> Tensor:
            found[len(found)] = tensor, tensor._version
            described.append(_described(tensor))
            if len(found) == count:
                raise _Done
            return tensor

        def run(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
            hooks = saved_tensors_hooks(keep, lambda tensor: tensor)
            with contextlib.suppress(_Done):
                run_in(enable_grad(), run_in, hooks, function, *args, **kwargs)

        self._again(run)
        self._check(described)

    def _check(self, described: list[tuple[Any, Any, Any]]) -> None:
        if len(described) != len(self._described):
            raise CheckpointError(
                "checkpoint: A different number of tensors was saved during the original forward "
                "and recomputation. Number of tensors saved during forward: "
                f"{len(self._described)}, during recomputation: {len(described)}. The function "
                "must do the same every time."
            )
        pairs = zip(self._described, described, strict=True) if self._checked else ()
        for number, ((shape, dtype, total), (now, now_dtype, now_total)) in enumerate(pairs):
            if (now, now_dtype) != (shape, dtype):
                raise CheckpointError(
                    "checkpoint: Recomputed values for the following tensors have different "
                    f"metadata than during the forward pass: saved value {number} was {dtype} "
                    f"{list(shape)}, and is {now_dtype} {list(now)} now. The function must do the "
                    "same every time."
                )
            if not _is_same(total, now_total):
                raise CheckpointError(
                    f"checkpoint: the recomputation saves other values: the sum of saved value "
                    f"{number}, a {dtype} of shape {list(shape)}, was {total!r} and is "
                    f"{now_total!r} now. Something that the function reads has changed since the "
                    "forward pass, such as a tensor that was written to: pass it as an argument, "
                    "or change it after the backward pass."
                )


def _described(tensor: Tensor) -> tuple[Any, Any, Any]:
    """Return the shape, dtype and sum of a tensor; None as the sum of what can't be read."""
    array = tensor._array
    if type(array) is not np.ndarray:
        return tensor.shape, tensor.dtype, None
    total = call_with({ERRSTATE: ignore_all(ERRSTATE.get())}, np.add.reduce, array, axis=None)
    return tensor.shape, tensor.dtype, total.item()


def _is_same(first: Any, second: Any) -> bool:
    """Whether two sums are those of the same elements, as far as both are known."""
    if first is None or second is None:
        return True
    if isinstance(first, complex):
        return _is_same(first.real, second.real) and _is_same(first.imag, second.imag)
    return bool(first == second) or (math.isnan(first) and math.isnan(second))
