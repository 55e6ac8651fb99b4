"""Second derivatives without their matrix: products with it, and its trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule import pytree
from chainrule.autograd.function_call import check_real, zeros_for_none
from chainrule.autograd.function_wrapper import FunctionWrapper, Made
from chainrule.autograd.namespace import TENSOR_XP
from chainrule.autograd.tensor import Tensor
from chainrule.control_flow import scan
from chainrule.creation import arange
from chainrule.errors import MissingRuleError
from chainrule.transforms.argnums import (
    Argnums,
    ArgnumSelection,
    Unused,
    check_argnums,
    raise_unused,
    settings_of,
)
from chainrule.transforms.arguments import (
    TransformCall,
    are_several,
    as_list,
    check_callable,
    directions,
    recorded_call,
)
from chainrule.transforms.gradients import scalar_cotangents
from chainrule.transforms.kinds import in_kind
from chainrule.transforms.vmap.vmap import vmap_for

__all__ = ["ggnvp", "hvp", "laplacian", "vhp"]


def hvp(function: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """Return the Hessian of a function times a vector.

    Parameters
    ----------
    function : callable
        Takes the primals; returns a real tensor of one element.
    primals : Tensor, or tuple or list of arguments
        Where to differentiate, as for `jvp`.
    tangents : as `primals`
        The vector t: for each primal one of its shape, or None for zeros.

    Returns
    -------
    as `primals`
        H t, in about the time of two gradients: no Hessian is formed. Of the kinds of the primals,
        as for `grad`.

    Raises
    ------
    AutogradError
        If the result of `function` isn't one real number.
    ShapeError, DTypeError, TypeError
        As for `jvp`.

    Notes
    -----
    The gradient of ⟨∇f, t⟩ (Pearlmutter, Fast exact multiplication by the Hessian, 1994), which is
    the derivative along t: reverse over forward mode. Where a custom function has no jvp, reverse
    mode alone. For many products with one Hessian, ``linearize(grad(f), x)`` computes the gradient
    once, and each product by forward mode.

    Examples
    --------
    >>> import chainrule as cr
    >>> hvp(lambda x: x[0] ** 2 * x[1], cr.tensor([1.0, 2.0]), cr.tensor([1.0, 0.0]))
    tensor([4., 2.])
    """
    return _hessian_product("hvp", function, primals, tangents)


def vhp(function: Callable[..., Any], primals: Any, cotangents: Any) -> Any:
    """Return a vector times the Hessian of a function.

    Parameters
    ----------
    function : callable
        Takes the primals; returns a real tensor of one element.
    primals : Tensor, or tuple or list of arguments
        Where to differentiate, as for `jvp`.
    cotangents : as `primals`
        The vector v: for each primal one of its shape, or None for zeros.

    Returns
    -------
    as `primals`
        vᵀH, which is H v, since a Hessian is symmetric: `hvp` says more.

    Raises
    ------
    AutogradError
        If the result of `function` isn't one real number.
    ShapeError, DTypeError, TypeError
        As for `jvp`.

    Examples
    --------
    >>> import chainrule as cr
    >>> vhp(lambda x: x[0] ** 2 * x[1], cr.tensor([1.0, 2.0]), cr.tensor([1.0, 0.0]))
    tensor([4., 2.])
    """
    return _hessian_product("vhp", function, primals, cotangents)


def _hessian_product(title: str, function: Any, primals: Any, vector: Any) -> Any:
    call = recorded_call(title, function, as_list(primals))
    scalar_cotangents(title, function, call, has_aux=False)
    ts = directions(title, call.arguments, as_list(vector))
    try:
        product = call.hvp(ts)
    except MissingRuleError:
        product = _by_reverse_mode(title, function, as_list(primals), ts)
    return _like(primals, call.like_arguments(product))


def _by_reverse_mode(
    title: str, function: Any, primals: list[Any], vector: list[Tensor | None]
) -> list[Tensor]:
    """Return the product by the gradient of the gradient, which needs no rules for tangents."""

    def gradients(*values: Any) -> list[Tensor]:
        inner = recorded_call(title, function, values)
        cotangents = scalar_cotangents(title, function, inner, has_aux=False)
        return inner.vjp(cotangents, retain_graph=False)

    return recorded_call(title, gradients, primals).vjp(vector, retain_graph=False)


def _like(primals: Any, found: list[Any]) -> Any:
    """Return one result for each primal, in the form in which they were given."""
    return type(primals)(found) if are_several(primals) else found[0]


# --- Gauss-Newton ---------------------------------------------------------------------------------


def half_square(outputs: Any) -> Any:
    """Return half the sum of squares of all elements, whose Hessian is the identity."""
    parts = [leaf for _, leaf in pytree.leaves(outputs) if isinstance(leaf, Tensor)]
    return 0.5 * sum([TENSOR_XP.sum(TENSOR_XP.real(part.conj() * part)) for part in parts])


def ggnvp(
    function: Callable[..., Any],
    primals: Any,
    tangents: Any,
    loss: Callable[[Any], Any] = half_square,
) -> Any:
    """Return the generalised Gauss-Newton matrix of ``loss(function(*primals))`` times a vector.

    Parameters
    ----------
    function : callable
        Takes the primals; returns a tensor, or dicts, lists, tuples, dataclasses of them: the
        predictions of a model, or the residuals of a fit.
    primals : Tensor, or tuple or list of arguments
        Where to differentiate, as for `jvp`.
    tangents : as `primals`
        The vector t: for each primal one of its shape, or None for zeros.
    loss : callable, optional
        Takes the result of `function`; returns a real tensor of one element. By default half the
        sum of squares, for which this is the Gauss-Newton matrix of least squares, JᵀJ.

    Returns
    -------
    as `primals`
        Jᵀ H J t with the Jacobian J of `function` and the Hessian H of `loss`: one call of each,
        one pass in forward mode and three in reverse; no matrix is formed. Of the kinds of the
        primals, as for `grad`.

    Raises
    ------
    AutogradError
        If the result of `loss` isn't one real number.
    ShapeError, DTypeError, TypeError
        As for `jvp`.
    MissingRuleError
        If a custom function has no jvp.

    Notes
    -----
    The Hessian of the composition without the second derivatives of `function`. Where `loss` is
    convex, it is positive semidefinite, so that conjugate gradients can solve with it (Schraudolph,
    Fast curvature matrix-vector products for second-order gradient descent, 2002).

    Examples
    --------
    >>> import chainrule as cr
    >>> def residuals(x):
    ...     return cr.stack([x[0] * x[1], x[1] - 3])
    >>> ggnvp(residuals, cr.tensor([1.0, 2.0]), cr.tensor([1.0, 0.0]))
    tensor([4., 2.])
    >>> ggnvp(residuals, cr.tensor([1.0, 2.0]), cr.tensor([1.0, 0.0]), lambda r: (r**4).sum())
    tensor([192.,  96.])
    """
    call = recorded_call("ggnvp", function, as_list(primals))
    ts = directions("ggnvp", call.arguments, as_list(tangents))
    moved = in_kind(call.kind, call.like_result(call.jvp(ts), keep=False))
    (upstream,) = _hessian_product("ggnvp", loss, (call.value_in_kind(ts),), (moved,))
    cotangents = directions("ggnvp", call.result, upstream, back=True)
    found = call.like_arguments(call.vjp(cotangents, retain_graph=False))
    return _like(primals, found)


# --- Laplacian ------------------------------------------------------------------------------------


def laplacian(
    function: Callable[..., Any], argnums: Argnums = 0, *, unused: Unused = "zeros"
) -> Callable[..., Any]:
    """Return the function that gives the Laplacian of `function`.

    Parameters
    ----------
    function : callable
        Returns a real tensor of one element.
    argnums : int, str, or sequence of them, default 0
        The arguments whose elements are the coordinates: positions, or names. Each is a real
        tensor, array or number, or dicts, lists, tuples, dataclasses of them.
    unused : "zeros" or "raise", default "zeros"
        What to do if the result doesn't depend on an argument: count zero for it, or raise.

    Returns
    -------
    callable
        Takes the arguments of `function`, returns the sum of its second derivatives by all
        coordinates, which is the trace of the Hessian. A number if all coordinates are numbers or
        arrays, else a tensor.

    Raises
    ------
    AutogradError
        If the result of `function` isn't one real number, a coordinate is complex, or with
        ``unused="raise"`` nothing depends on an argument.
    ArgumentError, DTypeError
        If a call lacks a selected argument, one is of integers, or `unused` is something else.
    MissingRuleError
        If a custom function has no jvp.

    Notes
    -----
    One gradient, and its derivative in forward mode along 32 coordinates at once. So the memory is
    about that of 32 gradients, however many coordinates there are; that of the Hessian grows with
    their square. `vmap` gives the Laplacian at each point of a batch.

    Examples
    --------
    >>> import chainrule as cr
    >>> laplacian(lambda x: (x**3).sum())(cr.tensor([1.0, 2.0]))
    tensor(18.)
    >>> def wave(x, t):
    ...     return cr.sin(3 * x) * cr.cos(t)
    >>> round(laplacian(wave, ("x", "t"))(0.5, 0.0) / wave(0.5, 0.0).item(), 4)
    -10.0
    """
    settings = settings_of("laplacian", unused)
    check_callable("laplacian", function)
    check_argnums("laplacian", argnums)

    def derivative(*args: Any, **kwargs: Any) -> Any:
        choice = ArgnumSelection("laplacian", function, argnums, args, kwargs)

        def gradients(*values: Any) -> list[Tensor]:
            inner = recorded_call("laplacian", choice.call, values)
            cotangents = scalar_cotangents("laplacian", function, inner, has_aux=False)
            found = inner.grads(cotangents, retain_graph=False)
            if settings and None in found:
                raise_unused("laplacian", choice, inner, [g is not None for g in found])
            return zeros_for_none(found, inner.inputs)

        call = recorded_call("laplacian", gradients, choice.values, name_of=choice.name_of)
        check_real("laplacian", call.inputs, "coordinates")
        parts = [_trace(call, index, function) for index in range(len(call.inputs))]
        return in_kind(call.kind, sum(parts[1:], parts[0]))

    made = Made(laplacian, (function, argnums), settings)
    return FunctionWrapper(derivative, function, made)


AT_ONCE = 32
"""Number of coordinates whose second derivatives are computed together."""


def _trace(call: TransformCall, index: int, function: Any) -> Tensor:
    """Return the trace of the block of a Hessian that belongs to one input of its gradient."""
    x = call.inputs[index]
    count = x.numel()

    def diagonal_element(position: Tensor) -> Tensor:
        unit = (arange(count) == position).to(x.dtype).reshape(x.shape)
        tangents = [unit if i == index else None for i in range(len(call.inputs))]
        found: Tensor = (call.jvp(tangents)[index] * unit).sum()
        return found

    def add(total: Tensor, positions: Tensor) -> tuple[Tensor, None]:
        elements: Tensor = vmap_for("laplacian", function, diagonal_element, positions)
        return total + elements.sum(), None

    total = TENSOR_XP.beside(x).zeros((), dtype=x.dtype)
    whole = count - count % AT_ONCE
    if whole > AT_ONCE:
        total, _ = scan(add, total, arange(whole).reshape(-1, AT_ONCE))
    else:
        whole = 0
    for start in range(whole, count, AT_ONCE):
        total, _ = add(total, arange(start, min(start + AT_ONCE, count)))
    return total
