"""Products with Jacobians: forward mode, reverse mode, and either of them many times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule import pytree
from chainrule.transforms.function_call import directions, listed, parted, recorded_call

__all__ = ["jvp", "linearize", "vjp"]


def jvp(function: Callable[..., Any], primals: Any, tangents: Any) -> tuple[Any, Any]:
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

    Returns
    -------
    (outputs, tangents)
        What `function` returned, and its derivative along `tangents` in the same structure: zeros
        for what doesn't depend on the primals, None for what is no tensor.

    Raises
    ------
    ShapeError, DTypeError
        If a tangent has another shape than its primal, is complex beside a real one, or a primal
        is of integers.
    TypeError
        If primals and tangents differ in structure.

    Notes
    -----
    The Jacobian times a vector, J t, at the cost of one further walk through the graph. Nests with
    itself and with reverse mode, to any depth.

    Examples
    --------
    >>> import chainrule as cr
    >>> value, slope = jvp(lambda x: x * x, cr.tensor(3.0), cr.tensor(1.0))
    >>> value.item(), slope.item()
    (9.0, 6.0)
    >>> jvp(lambda p: p["w"] * 2 + p["b"], {"w": 3.0, "b": 2.0}, {"w": 1.0, "b": 0.0})
    (tensor(8.), tensor(2.))
    """
    call = recorded_call("jvp", function, listed(primals))
    ts = directions("jvp", call.arguments, listed(tangents))
    return call.value(ts), call.like_result(call.jvp(ts), keep=False)


def linearize(function: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return the value of a function and its best linear approximation there: forward mode.

    Parameters
    ----------
    function : callable
        Takes the primals; returns a tensor, or dicts, lists, tuples, dataclasses of them.
    *primals : Tensor, or containers of Tensors
        Where to differentiate: an array or a number will do.

    Returns
    -------
    (outputs, push)
        What `function` returned, and a function that takes a tangent for each primal, of its
        structure and shapes, and returns the tangent of the outputs, J t.

    Raises
    ------
    ShapeError, DTypeError, TypeError
        As for `jvp`; of tangents, when `jvp_fn` is called.

    Notes
    -----
    `function` is called once, however often `jvp_fn` is: each call of that is one walk through the
    graph. So it's the thing for the products with one Jacobian that a Krylov method needs.

    Examples
    --------
    >>> import chainrule as cr
    >>> value, push = linearize(lambda x: x * x, 3.0)
    >>> value, push(1.0), push(0.5)
    (tensor(9.), tensor(6.), tensor(3.))
    """
    call = recorded_call("linearize", function, primals)

    def jvp_fn(*tangents: Any) -> Any:
        ts = directions("linearize", call.arguments, list(tangents))
        return call.like_result(call.jvp(ts), keep=False)

    return call.value(), jvp_fn


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return the value of a function, and what takes cotangents back through it: reverse mode.

    Parameters
    ----------
    function : callable
        Takes the primals; returns a tensor, or dicts, lists, tuples, dataclasses of them.
    *primals : Tensor, or containers of Tensors
        Where to differentiate: an array or a number will do.
    has_aux : bool, default False
        `function` returns a pair, whose second part is handed through and not differentiated.

    Returns
    -------
    (outputs, pull) or (outputs, pull, aux)
        What `function` returned, and a function that takes cotangents of its structure and shapes,
        and returns gᵀJ in the structure of the primal, with several primals a tuple of these. It
        can be called any number of times.

    Raises
    ------
    ShapeError, DTypeError
        If a cotangent has another shape than its output, is complex beside a real one, or a primal
        is of integers.
    TypeError
        If outputs and cotangents differ in structure.

    Notes
    -----
    Complex gradients follow PyTorch's convention, ∂L/∂z*.

    Examples
    --------
    >>> import chainrule as cr
    >>> value, pull = vjp(lambda x, y: {"sum": x + y, "product": x * y}, 3.0, 2.0)
    >>> value["product"], pull({"sum": 1.0, "product": 10.0})
    (tensor(6.), (tensor(21.), tensor(31.)))
    """
    call = recorded_call("vjp", function, primals)
    outputs, _ = parted("vjp", function, call.result, has_aux)
    values, aux = parted("vjp", function, call.value(), has_aux)

    def vjp_fn(cotangents: Any) -> Any:
        gs = directions("vjp", outputs, cotangents, back=True)
        rest = [None] * (len(call.outputs) - len(gs))
        found = pytree.rebuilt(call.arguments, call.vjp([*gs, *rest]))
        return found[0] if len(primals) == 1 else tuple(found)

    return (values, vjp_fn, aux) if has_aux else (values, vjp_fn)
