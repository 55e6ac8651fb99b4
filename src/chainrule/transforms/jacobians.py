"""Jacobians and Hessians of functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.function_call import FunctionCall, check_real
from chainrule.autograd.function_wrapper import FunctionWrapper, Made
from chainrule.autograd.namespace import TENSOR_XP
from chainrule.autograd.tensor import Tensor
from chainrule.creation import eye
from chainrule.errors import ArgumentError, AutogradError, MissingRuleError
from chainrule.transforms.argnums import (
    Argnums,
    ArgnumSelection,
    Unused,
    check_argnums,
    raise_unused,
    settings_of,
)
from chainrule.transforms.arguments import (
    check_callable,
    recorded_call,
    split_aux,
    title_of,
)
from chainrule.transforms.gradients import grad_for
from chainrule.transforms.vmap.vmap import batched_pass, vmap_for

__all__ = ["hessian", "jacobian"]


def jacobian(
    function: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    mode: str | None = None,
    unused: Unused = "zeros",
) -> Callable[..., Any]:
    """Return the function that gives the Jacobian of `function`.

    Parameters
    ----------
    function : callable
        Returns a tensor, or dicts, lists, tuples, dataclasses of them.
    argnums : int, str, or sequence of them, default 0
        The arguments to differentiate by: positions, or names. Each is a tensor, an array or a
        number, or dicts, lists, tuples, dataclasses of them.
    has_aux : bool, default False
        `function` returns a pair, whose second part is auxiliary data and not differentiated.
    mode : "reverse", "forward" or None, default None
        One pass for each element of the outputs, or one for each element of the arguments; None
        chooses the smaller number.
    unused : "zeros" or "raise", default "zeros"
        The block of an argument that no output depends on: zeros, or an error with its name.

    Returns
    -------
    callable
        Takes the arguments of `function`. For each tensor of the result, in its structure, it
        returns the structure of the argument (for several a tuple of these, or a dict if they were
        named) with blocks of the shape ``(*output.shape, *argument.shape)``. With `has_aux`, it
        returns a pair of this and the auxiliary data. Blocks have the kind of their argument, as
        for `value_and_grad`, but no labels unless their shape is that of the argument. Results
        that are floats or arrays of them, and no tensors, have blocks of zeros; others None.

    Raises
    ------
    AutogradError
        If outputs (reverse mode) or arguments (forward mode) are complex, or with
        ``unused="raise"`` nothing depends on an argument.
    ArgumentError, DTypeError
        If a call lacks a selected argument, one is of integers, or `mode` is something else.
    MissingRuleError
        In forward mode, if a custom function has no jvp. By default, reverse mode is used then.

    Examples
    --------
    >>> import chainrule as cr
    >>> jacobian(lambda x: x[0] * x)(cr.tensor([2.0, 3.0]))
    tensor([[4., 0.],
            [3., 2.]])
    >>> def line(w, b):
    ...     return {"y": w * 2 + b}
    >>> jacobian(line, ("w", "b"))(cr.tensor([1.0, 1.0]), cr.tensor(0.0))
    {'y': {'w': tensor([[2., 0.],
            [0., 2.]]), 'b': tensor([1., 1.])}}
    """
    settings = settings_of("jacobian", unused)
    made = Made(jacobian, (function, argnums, has_aux), {"mode": mode, **settings})
    return _jacobian("jacobian", made, function, function)


def _jacobian(title: str, made: Made, user: Any, function: Any) -> Callable[..., Any]:
    """Return the Jacobian of a function that a transform made of the user's."""
    argnums, has_aux = made.args[1], made.args[2:] == (True,)
    mode, check_used = made.kwargs["mode"], made.maker is jacobian and "unused" in made.kwargs
    check_callable(title, user)
    check_argnums(title, argnums)
    if mode not in (None, "reverse", "forward"):
        raise ArgumentError(f'{title}: mode is "reverse", "forward" or None, but got {mode!r}')

    def derivative(*args: Any, **kwargs: Any) -> Any:
        choice = ArgnumSelection(title, function, argnums, args, kwargs)
        call = recorded_call(title, choice.call, choice.values, name_of=choice.name_of)
        _, aux = split_aux(title, function, call.value_in_kind(), has_aux)
        outputs, _ = split_aux(title, function, call.result, has_aux)
        count = sum(isinstance(leaf, Tensor) for _, leaf in pytree.leaves(outputs))
        if not count:
            raise AutogradError(
                f"{title}: {title_of(user)} returned {pytree.describe(outputs)}, in which there is "
                "no tensor: compute the result from the arguments by operations on tensors"
            )
        if check_used and not all(used := call.used(count)):
            raise_unused(title, choice, call, used)
        blocks = iter(_blocks(call, count, mode, function))

        def block_of(leaf: Any) -> Any:
            if isinstance(leaf, Tensor):
                return choice.like(call.like_arguments(next(blocks)))
            if not isinstance(leaf, _CONSTANTS) or np.asarray(leaf).dtype.kind not in "fc":
                return None
            return choice.like(call.like_arguments(_zeros(np.shape(leaf), call.inputs)))

        found = pytree.map_leaves(outputs, block_of)
        return (found, aux) if has_aux else found

    return FunctionWrapper(derivative, function, made)


_CONSTANTS = (float, complex, np.inexact, np.ndarray)


def _zeros(shape: tuple[int, ...], inputs: Sequence[Tensor]) -> list[Tensor]:
    """Return the blocks of a result that depends on nothing."""
    return [TENSOR_XP.zeros((*shape, *x.shape), dtype=x._array.dtype) for x in inputs]


def hessian(
    function: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    mode: str | None = None,
    unused: Unused = "zeros",
) -> Callable[..., Any]:
    """Return the function that gives the Hessian of `function`: the Jacobian of its gradient.

    Parameters
    ----------
    function : callable
        Returns a real tensor of one element.
    argnums : int, str, or sequence of them, default 0
        As for `jacobian`.
    mode : "reverse", "forward" or None, default None
        The mode in which the gradient is differentiated.
    unused : "zeros" or "raise", default "zeros"
        As for `grad`: what the function itself doesn't depend on.

    Returns
    -------
    callable
        Takes the arguments of `function`. It returns the structure of the argument (for several a
        tuple of these, or a dict if they were named), in which each leaf is such a structure again,
        of blocks of the shape ``(*leaf.shape, *argument.shape)``.

    Raises
    ------
    AutogradError, ArgumentError, DTypeError, MissingRuleError
        As for `grad` and `jacobian`.

    Examples
    --------
    >>> import chainrule as cr
    >>> hessian(lambda x: x[0] ** 2 * x[1])(cr.tensor([2.0, 3.0]))
    tensor([[6., 4.],
            [4., 0.]])
    >>> hessian(lambda w, b: w * b * b, ("w", "b"))(2.0, 3.0)["w"]
    {'w': 0.0, 'b': 6.0}
    """
    check_callable("hessian", function)
    made = Made(hessian, (function, argnums), {"mode": mode, **settings_of("hessian", unused)})
    gradient = grad_for("hessian", function, argnums, False, unused)
    return _jacobian("hessian", made, function, gradient)


def _blocks(call: FunctionCall, count: int, mode: str | None, function: Any) -> list[list[Tensor]]:
    """Return the blocks of the first `count` outputs: for each output, one for each input."""
    outputs = call.outputs[:count]
    columns, rows = (sum(x.numel() for x in xs) for xs in (call.inputs, outputs))
    if mode == "forward" or (mode is None and columns < rows):
        try:
            return _by_columns(call, outputs, function)
        except MissingRuleError:
            if mode is not None:
                raise
    return _by_rows(call, outputs, function)


def _by_rows(call: FunctionCall, outputs: list[Tensor], function: Any) -> list[list[Tensor]]:
    check_real("jacobian", outputs, "outputs")
    blocks = []
    for index, out in enumerate(outputs):
        found = _for_unit_vectors(call, functools.partial(_row, call, index), out, function)
        blocks.append(
            [
                _shaped(row, (*out.shape, *x.shape))
                for row, x in zip(found, call.inputs, strict=True)
            ]
        )
    return blocks


def _by_columns(call: FunctionCall, outputs: list[Tensor], function: Any) -> list[list[Tensor]]:
    check_real("jacobian", call.inputs, "arguments of forward mode")
    blocks: list[list[Tensor]] = [[] for _ in outputs]
    for index, x in enumerate(call.inputs):
        found = _for_unit_vectors(call, functools.partial(_column, call, index), x, function)
        for block, columns, out in zip(blocks, found, outputs, strict=False):
            last = columns.movedim(0, -1) if x.ndim else columns[0]
            block.append(_shaped(last, (*out.shape, *x.shape)))
    return blocks


def _shaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return a tensor in a shape that it mostly has."""
    return x if x.shape == shape else x.reshape(shape)


def _row(call: FunctionCall, index: int, unit: Tensor) -> list[Tensor]:
    return call.vjp([unit if i == index else None for i in range(len(call.outputs))])


def _column(call: FunctionCall, index: int, unit: Tensor) -> list[Tensor]:
    return call.jvp([unit if i == index else None for i in range(len(call.inputs))])


def _for_unit_vectors(
    call: FunctionCall, linear: Callable[[Tensor], list[Tensor]], x: Tensor, function: Any
) -> list[Tensor]:
    """Return a linear function's results for all unit vectors of the shape of `x`, stacked.

    `function` is the user's, whose derivative it is.
    """
    if x.numel() == 1:
        return [found.unsqueeze(0) for found in linear(TENSOR_XP.ones_like(x.detach()))]
    units = _shaped(eye(x.numel(), dtype=x.dtype, device=x.device), (x.numel(), *x.shape))
    if call.runs_own_code_only():
        return batched_pass("jacobian", function, linear, units)
    found: list[Tensor] = vmap_for("jacobian", function, linear, units)
    return found
