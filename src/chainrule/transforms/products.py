"""Products with Jacobians, forward (`jvp`, `linearize`) and reverse (`vjp`); `stop_gradient`."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.function_call import FunctionCall
from chainrule.autograd.function_wrapper import FunctionWrapper, Made
from chainrule.autograd.tensor import Tensor
from chainrule.numpy.array_class import as_ndarrays
from chainrule.transforms.arguments import as_list, directions, recorded_call, split_aux
from chainrule.transforms.kinds import in_kind

__all__ = ["jvp", "linearize", "stop_gradient", "vjp"]


def jvp(
    function: Callable[..., Any], primals: Any, tangents: Any, *, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return the value of a function and its derivative in one direction: forward mode.

    Parameters
    ----------
    function : callable
        Takes the primals; returns a tensor, or dicts, lists, tuples, dataclasses of them.
    primals : Tensor, or tuple or list of arguments
        Where to differentiate. An argument is a tensor, an array or a number, or containers of
        them.
    tangents : as `primals`
        The direction: for each primal one of its shape, or None for zeros. It is cast to the
        primal's dtype.
    has_aux : bool, default False
        `function` returns a pair, whose second part is auxiliary data and not differentiated.

    Returns
    -------
    (outputs, tangents) or (outputs, tangents, aux)
        The result of `function`, and its derivative along `tangents` in the same structure: zeros
        for outputs that don't depend on the primals, None for leaves that are not tensors. Arrays
        or numbers if all primals are, as for `value_and_grad`.

    Raises
    ------
    ShapeError, DTypeError
        If a tangent has another shape than its primal, is complex for a real primal, or a primal
        is of integers.
    TypeError
        If primals and tangents differ in structure.

    Notes
    -----
    The Jacobian times a vector, J t, at the cost of one more traversal of the graph. Nests with
    itself and with reverse mode, to any depth.

    Examples
    --------
    >>> import chainrule as cr
    >>> value, slope = jvp(lambda x: x * x, cr.tensor(3.0), cr.tensor(1.0))
    >>> value.item(), slope.item()
    (9.0, 6.0)
    >>> jvp(lambda p: p["w"] * 2 + p["b"], {"w": 3.0, "b": 2.0}, {"w": 1.0, "b": 0.0})
    (8.0, 2.0)
    """
    call = recorded_call("jvp", function, as_list(primals))
    ts = directions("jvp", call.arguments, as_list(tangents))
    found = call.like_result(call.jvp(ts), keep=False)
    tangent, _ = split_aux("jvp", function, in_kind(call.kind, found), has_aux)
    value, aux = split_aux("jvp", function, call.value_in_kind(ts), has_aux)
    return (value, tangent, aux) if has_aux else (value, tangent)


def linearize(function: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return the value of a function and its best linear approximation there: forward mode.

    Parameters
    ----------
    function : callable
        Takes the primals; returns a tensor, or dicts, lists, tuples, dataclasses of them.
    *primals : Tensor, or containers of Tensors
        Where to differentiate; arrays and numbers are converted.

    Returns
    -------
    (outputs, jvp_fn)
        The result of `function`, and a function that takes a tangent for each primal, of its
        structure and shapes, and returns the tangent of the outputs, J t. Both are arrays or
        numbers if all primals are.

    Raises
    ------
    ShapeError, DTypeError, TypeError
        As for `jvp`; for tangents, when `jvp_fn` is called.

    Notes
    -----
    `function` is called once; each call of `jvp_fn` is one traversal of the graph. This suits
    methods that need many products with one Jacobian, such as Krylov methods.

    Examples
    --------
    >>> import chainrule as cr
    >>> value, jvp_fn = linearize(lambda x: x * x, 3.0)
    >>> value, jvp_fn(1.0), jvp_fn(0.5)
    (9.0, 6.0, 3.0)
    """
    call = recorded_call("linearize", function, primals, copy=True)

    def jvp_fn(*tangents: Any) -> Any:
        ts = directions("linearize", call.arguments, list(tangents))
        return in_kind(call.kind, call.like_result(call.jvp(ts), keep=False))

    made = Made(_linearized_again, (function, primals, _without_history(call)), {})
    return call.value_in_kind(copy=True), FunctionWrapper(jvp_fn, jvp_fn, made)


def _linearized_again(function: Any, primals: Any, wanted: Any) -> Any:
    """Return the linear function of a pickle."""
    value, jvp_fn = linearize(function, *primals)
    _check_same_value("linearize", wanted, value)
    return jvp_fn


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return the value of a function and its vector-Jacobian product function: reverse mode.

    Parameters
    ----------
    function : callable
        Takes the primals; returns a tensor, or dicts, lists, tuples, dataclasses of them.
    *primals : Tensor, or containers of Tensors
        Where to differentiate; arrays and numbers are converted.
    has_aux : bool, default False
        `function` returns a pair, whose second part is auxiliary data and not differentiated.

    Returns
    -------
    (outputs, vjp_fn) or (outputs, vjp_fn, aux)
        The result of `function`, and a function that takes cotangents of its structure and shapes,
        and returns gᵀJ in the structure and kind of the primal, for several primals a tuple of
        these. It can be called any number of times.

    Raises
    ------
    ShapeError, DTypeError
        If a cotangent has another shape than its output, is complex for a real output, or a primal
        is of integers.
    TypeError
        If outputs and cotangents differ in structure.

    Notes
    -----
    Complex gradients follow PyTorch's convention, ∂L/∂z*.

    Examples
    --------
    >>> import chainrule as cr
    >>> value, vjp_fn = vjp(lambda x, y: {"sum": x + y, "product": x * y}, 3.0, 2.0)
    >>> value["product"], vjp_fn({"sum": 1.0, "product": 10.0})
    (6.0, (21.0, 31.0))
    """
    call = recorded_call("vjp", function, primals, copy=True)
    outputs, _ = split_aux("vjp", function, call.result, has_aux)
    values, aux = split_aux("vjp", function, call.value_in_kind(copy=True), has_aux)

    def vjp_fn(cotangents: Any) -> Any:
        gs = directions("vjp", outputs, cotangents, back=True)
        rest = [None] * (len(call.outputs) - len(gs))
        found = call.like_arguments(call.vjp([*gs, *rest]))
        return found[0] if len(primals) == 1 else tuple(found)

    made = Made(_pulled_back_again, (function, primals, has_aux, _without_history(call)), {})
    found = FunctionWrapper(vjp_fn, vjp_fn, made)
    return (values, found, aux) if has_aux else (values, found)


def _pulled_back_again(function: Any, primals: Any, has_aux: bool, wanted: Any) -> Any:
    """Return the vector-Jacobian product function of a pickle."""
    value, vjp_fn, *aux = vjp(function, *primals, has_aux=has_aux)
    _check_same_value("vjp", wanted, (value, *aux) if has_aux else value)
    return vjp_fn


def stop_gradient(x: Any) -> Any:
    """Return values that count as constants: no derivative goes through them.

    Parameters
    ----------
    x : Tensor, or dicts, lists, tuples, dataclasses of them
        Other leaves, such as arrays and numbers, are returned as they are.

    Returns
    -------
    as `x`
        Each tensor detached: it has the same values and memory, and no history.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.grad(lambda x: x * stop_gradient(x**2))(3.0)
    9.0
    """

    def stopped(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        return as_ndarrays(leaf.detach()) if leaf.is_carried else leaf.detach()

    return pytree.map_leaves(x, stopped)


# --- pickles --------------------------------------------------------------------------------------
#
# A graph is not pickled: the function is called again at its point. If it then has another value,
# its derivative is another one, too.


def _without_history(call: FunctionCall) -> Any:
    return call.like_result([t.detach() for t in call.outputs], keep=True)


def _check_same_value(title: str, wanted: Any, found: Any) -> None:
    """Raise if a function has another value than where it was pickled, beyond rounding."""
    for path, old, new in pytree.zip_leaves(wanted, found):
        if not isinstance(old, Tensor):
            continue
        a, b = old.numpy(), np.asarray(new.detach() if isinstance(new, Tensor) else new)
        eps = np.finfo(a.dtype).eps ** 0.5 if a.dtype.kind in "fc" else 0
        scale = np.abs(a[np.isfinite(a)]).max(initial=0) if a.dtype.kind in "fc" else 0
        if a.shape != b.shape or not np.allclose(a, b, eps, eps * scale, equal_nan=True):
            raise pickle.UnpicklingError(
                f"{title}: a pickled derivative calls its function again, and its value{path} is "
                "another one now: the function draws random numbers, or a tensor that it uses has "
                f"changed since. Pickle function and point, and call {title} where they are read"
            )
