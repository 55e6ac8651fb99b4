"""Gradients of functions that return one number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.function_call import FunctionCall, zeros_for_none
from chainrule.autograd.function_wrapper import FunctionWrapper, Made
from chainrule.autograd.namespace import TENSOR_XP
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import ndarray
from chainrule.errors import AutogradError
from chainrule.transforms.argnums import (
    Argnums,
    ArgnumSelection,
    Unused,
    check_argnums,
    raise_unused,
    settings_of,
)
from chainrule.transforms.arguments import check_callable, recorded_call, split_aux, title_of

__all__ = ["grad", "value_and_grad"]


def value_and_grad(
    function: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    unused: Unused = "zeros",
) -> Callable[..., Any]:
    """Return the function that gives the value of `function` and its gradient.

    Parameters
    ----------
    function : callable
        Returns a real tensor of one element.
    argnums : int, str, or sequence of them, default 0
        The arguments to differentiate by: positions, or names. Each is a tensor, an array or a
        number, or dicts, lists, tuples, dataclasses of them.
    has_aux : bool, default False
        `function` returns a pair, whose second part is auxiliary data and not differentiated.
    unused : "zeros" or "raise", default "zeros"
        The gradient by what the result doesn't depend on: zeros, or an error with its name.

    Returns
    -------
    callable
        Takes the arguments of `function`, returns ``(value, gradient)``, or ``((value, aux),
        gradient)``. The gradient has the structure of the argument; for several arguments it is a
        tuple of these, or a dict if they were named. It has the kind of the argument, too: see the
        notes.

    Raises
    ------
    AutogradError
        If the result of `function` isn't one real number, or with ``unused="raise"`` doesn't depend
        on an argument.
    ArgumentError, DTypeError
        If a call lacks a selected argument, one is of integers, or `unused` is something else.

    Notes
    -----
    The result has the kind of what is differentiated by, leaf by leaf: a Tensor for a Tensor, an
    array for an array, a Python number for a Python number, which is computed in double precision,
    a NumPy scalar for a NumPy scalar, and an xarray or pandas object with the same labels for such
    an object. The value is a Tensor if one of these is, a Python number if all are, and otherwise
    what NumPy would return. `function` receives Tensors (an xarray object with a Tensor in it).

    No `.grad` is touched. Gradients have a history, and can be differentiated again, where they
    depend on anything that requires grad; so transforms nest. Such results are always Tensors.

    Examples
    --------
    >>> import chainrule as cr
    >>> def loss(w, b, x):
    ...     return ((w * x + b) ** 2).sum()
    >>> value_and_grad(loss)(2.0, 1.0, cr.tensor([1.0, 2.0]))
    (34.0, 26.0)
    >>> value_and_grad(loss, ("w", "b"))(2.0, cr.tensor(1.0), cr.tensor([1.0, 2.0]))[1]
    {'w': 26.0, 'b': tensor(16.)}
    """
    made = Made(value_and_grad, (function, argnums, has_aux), settings_of("value_and_grad", unused))
    return _derivative("value_and_grad", made, lambda value, grad: (value, grad))


def grad(
    function: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    unused: Unused = "zeros",
) -> Callable[..., Any]:
    """Return the function that gives the gradient of `function`.

    Parameters
    ----------
    function, argnums, has_aux, unused
        As for `value_and_grad`.

    Returns
    -------
    callable
        Takes the arguments of `function`, returns the gradient, or ``(gradient, aux)``.

    Examples
    --------
    >>> import chainrule as cr
    >>> grad(cr.sin)(0.0)
    1.0
    >>> grad(grad(lambda x: x**3))(2.0)
    12.0
    >>> grad(lambda p: (p["w"] * p["b"]).sum())({"w": cr.ones(2), "b": 3.0})
    {'w': tensor([3., 3.]), 'b': 2.0}

    SciPy's solvers take the gradient of a function of arrays:

    >>> import numpy as np
    >>> from scipy.optimize import minimize
    >>> def f(x):
    ...     return ((x - 1) ** 2).sum()
    >>> minimize(f, np.zeros(2), jac=cr.grad(f)).x
    array([1., 1.])
    """

    return grad_for("grad", function, argnums, has_aux, unused)


def grad_for(
    title: str, function: Any, argnums: Argnums, has_aux: bool, unused: Unused
) -> Callable[..., Any]:
    """Return `grad` of a function for a transform, whose name errors have."""

    def without_value(value: Any, grad: Any) -> Any:
        return (grad, value[1]) if has_aux else grad

    made = Made(grad, (function, argnums, has_aux), settings_of(title, unused))
    return _derivative(title, made, without_value)


def _derivative(title: str, made: Made, form: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    function, argnums, has_aux = made.args
    check_callable(title, function)
    check_argnums(title, argnums)

    def derivative(*args: Any, **kwargs: Any) -> Any:
        choice = ArgnumSelection(title, function, argnums, args, kwargs)
        call = recorded_call(title, choice.call, choice.values, name_of=choice.name_of)
        cotangents = scalar_cotangents(title, function, call, has_aux)
        found = call.grads(cotangents, retain_graph=False)
        if made.kwargs and None in found:
            raise_unused(title, choice, call, [g is not None for g in found])
        grads = zeros_for_none(found, call.inputs)
        return form(call.value_in_kind(), choice.like(call.like_arguments(grads)))

    return FunctionWrapper(derivative, function, made)


def scalar_cotangents(
    title: str, function: Any, call: FunctionCall, has_aux: bool
) -> list[Tensor | None]:
    """Return the cotangents of the outputs: 1 for the scalar, None for auxiliary tensors."""
    out, _ = split_aux(title, function, call.result, has_aux)
    if not isinstance(out, Tensor):
        out = pytree.without_labels(out)
    if not isinstance(out, Tensor) or out.numel() != 1 or out.dtype.kind == "c":
        got = pytree.describe(out)
        mend = "Reduce it, with sum() or mean(), or take jacobian() or vjp() of the function"
        if isinstance(out, Tensor):
            got = f"a tensor of shape {list(out.shape)} and dtype {out.dtype}"
            if out.numel() == 1:
                mend = "Take .real, or abs() of it"
        elif pytree.children(out) is not None:
            mend = "Return the number alone, or with has_aux=True a pair of it and other results"
        elif out is None:
            mend = "Is there a return statement?"
        elif isinstance(out, int | float | complex | np.generic):
            mend = "That is a constant: compute it from the arguments by operations on tensors"
        raise AutogradError(
            f"{title}: grad can be implicitly created only for real scalar outputs, but "
            f"{title_of(function)} returned {got}. {mend}"
        )
    rest: list[Tensor | None] = [None] * (len(call.outputs) - 1)
    array = out._array
    if array.__class__ is ndarray:
        return [make(np.ones(array.shape, array.dtype), None), *rest]
    return [TENSOR_XP.ones_like(out.detach()), *rest]
