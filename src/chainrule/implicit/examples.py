"""Functions that need numbers, called under `vmap` for one example after the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.autograd.intercept import INTERCEPTOR, SLOTS, Interceptor
from chainrule.autograd.modes import MODES, ModeContext, enable_grad, no_grad
from chainrule.autograd.node import ErrorNode
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, CompileError
from chainrule.interrupts import call_with
from chainrule.random.draw import WATCHER
from chainrule.transforms.vmap.batched_array import BatchedArray, Level
from chainrule.transforms.vmap.namespace import tell_of_loop

_array_of = SLOTS["_array"].__get__


_OF_ONE_EXAMPLE = (
    "vmap: a derivative by a tensor that a solver or a foreign function closes over was asked for "
    "while it ran for one example: pass the tensor as an argument"
)


class _Example(Interceptor):
    """An interceptor that shows the numbers of one example in the place of batched arrays."""

    def __init__(self, index: dict[Level, int]) -> None:
        self._index = index
        self._proxies: dict[int, tuple[Tensor, Tensor]] = {}
        self.differs = False  # whether a number was read that differs between examples

    def proxy(self, tensor: Tensor) -> Tensor:
        try:
            array = _array_of(tensor)
        except AttributeError:  # under construction
            return tensor
        if array.__class__ is not BatchedArray or array.level not in self._index:
            return tensor  # of the example, perhaps with all directions of a pass within it
        known = self._proxies.get(id(tensor))
        if known is None:
            node = SLOTS["_node"].__get__(tensor)
            values = {
                "_array": self.array(array),
                "_node": None if node is None else ErrorNode(_OF_ONE_EXAMPLE, ()),
                "_grad": None,
                "_view": None,
            }
            made: Tensor = object.__new__(Tensor)
            for slot, value in values.items():
                SLOTS[slot].__set__(made, value)
            known = self._proxies[id(tensor)] = tensor, made
        return known[1]

    def proxy_for_write(self, tensor: Tensor, slot: str, value: Any) -> tuple[Tensor, Any]:
        return self.proxy(tensor), value

    def array(self, array: Any) -> Any:
        indices: list[Any] = [...]
        while array.__class__ is BatchedArray:
            several = array.data.shape[0] > 1
            self.differs |= several
            indices.insert(0, self._index[array.level] if several else 0)
            array = array.data
        if array.__class__ is not np.ndarray:
            raise _compile_error("vmap")
        example: Any = array[tuple(indices)]
        return example


def _compile_error(title: str) -> CompileError:
    return CompileError(
        f"{title}: a solver or a foreign function needs numbers, which a compiled function doesn't "
        "have while it is traced. Call it outside of the compiled function, and compile what it "
        "calls: the objective, the residual, their derivatives. Or write the solver in operations "
        "that are traced, such as Newton's steps in while_loop(), and hand it to "
        "implicit_function()"
    )


def with_numbers(title: str, function: Callable[[], list[Any]]) -> list[Any]:
    """Call a function that needs numbers and returns arrays, without recording.

    Under vmap it is called for each example in turn, with the tensors that it reads as they are for
    the example, and the results are batched arrays.
    """
    return _of_examples(title, function, no_grad(), symbols=False)


def with_solver(title: str, function: Callable[[], list[Any]]) -> list[Any]:
    """Call a solver that may be made of recorded operations: a compiled function traces it."""
    interceptor = INTERCEPTOR.get()
    if interceptor is None or hasattr(interceptor, "level"):
        return with_numbers(title, function)
    try:
        return call_with({MODES: no_grad().entered(MODES.get())}, function)
    except Exception as error:  # of whatever code that got no numbers
        raise _compile_error(title) from error


def with_foreign(title: str, function: Callable[[], list[Any]]) -> list[Any]:
    """Call a function of foreign code: as `with_numbers`, but it is recorded what it closes over.

    So what it closes over can't become a number without notice. A compiled function gets its
    symbols, of which functions of NumPy are traced.
    """
    return _of_examples(title, function, enable_grad(), symbols=True)


def _of_examples(
    title: str, function: Callable[[], list[Any]], mode: ModeContext, *, symbols: bool
) -> list[Any]:
    variables: dict[Any, Any] = {MODES: mode.entered(MODES.get())}
    levels: list[Level] = []
    interceptor: Any = INTERCEPTOR.get()
    while interceptor is not None:
        if not hasattr(interceptor, "level"):
            if levels or not symbols:
                raise _compile_error(title)
            break
        levels.insert(0, interceptor.level)
        interceptor = interceptor.outer
    if not levels:
        return call_with(variables, function)
    counts = [level.count for level in levels]
    if 0 in counts:
        raise ArgumentError(
            f"{title}: under vmap over no examples, a solver is not called, and the shape of its "
            "result is unknown: leave the call out for an empty batch"
        )
    variables[WATCHER] = None
    outs: list[list[Any]] = []
    for index in itertools.product(*map(range, counts)):
        example = _Example(dict(zip(levels, index, strict=True)))
        outs.append(call_with({**variables, INTERCEPTOR: example}, function))
        if not example.differs and len(outs) == 1:
            counts = [1] * len(counts)
            break
        if len(outs) == 1 and len(levels) and counts != [1] * len(counts):
            tell_of_loop(levels[-1], title)
    found = []
    for column in zip(*outs, strict=True):
        array: Any = np.stack(column).reshape(*counts, *np.shape(column[0]))
        for level in levels:
            array = BatchedArray(level, array)
        found.append(array)
    return found
