"""Functions of functions: derivatives without touching any `.grad`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from chainrule import tree
from chainrule.arguments import cast, tensor_of
from chainrule.autograd.forward import linearized
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.tensor import Tensor
from chainrule.errors import DTypeError, ShapeError

__all__ = ["jvp"]


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
        The direction: for each primal one of its shape. It is cast to the primal's dtype.

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
    arguments, directions = _listed(primals), _listed(tangents)
    pairs = list(_pairs(arguments, directions))
    result: Any = None
    places: list[int] = []

    def of_leaves(*inputs: Tensor) -> list[Tensor]:
        nonlocal result
        result = function(*tree.rebuilt(arguments, inputs))
        leaves = [leaf for _, leaf in tree.leaves(result)]
        places.extend(i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor))
        return [leaves[i] for i in places]

    outputs, slopes = linearized(of_leaves, [p for p, _ in pairs], [t for _, t in pairs])
    return _replaced(result, places, outputs, False), _replaced(result, places, slopes, True)


def _listed(arguments: Any) -> list[Any]:
    """Return the arguments of a function: what is no tuple or list is the only one."""
    several = isinstance(arguments, tuple | list)
    return list(arguments) if several else [arguments]


def _pairs(primals: Any, tangents: Any) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield each primal with its tangent, after checking that they fit each other."""
    for path, primal, tangent in tree.beside(primals, tangents):
        if primal is None and tangent is None:
            continue
        containers = [part for part in (primal, tangent) if tree.children(part) is not None]
        if containers or primal is None or tangent is None:
            raise TypeError(
                "jvp: primals and tangents must have the same structure: at primals"
                f"{path} is {_said(primal)}, at tangents{path} {_said(tangent)}"
            )
        x = tensor_of(primal)
        _, t = as_tensors((x, tangent))
        if x.shape != t.shape:
            raise ShapeError(
                f"jvp: a tangent has its primal's shape: got {list(t.shape)}, expected "
                f"{list(x.shape)}"
            )
        if x.dtype.kind not in "fc":
            raise DTypeError(f"jvp: a primal must be floating or complex, got {x.dtype}")
        if t.dtype.kind == "c" and x.dtype.kind == "f":
            raise DTypeError(
                f"jvp: a tangent is real where its primal is: got {t.dtype} for {x.dtype}. Take "
                ".real, or make the primal complex"
            )
        yield x, cast(t, x.dtype)


def _said(part: Any) -> str:
    parts = tree.children(part)
    return f"a {type(part).__name__}" + ("" if parts is None else f" of {len(parts)}")


def _replaced(result: Any, places: list[int], tensors: list[Tensor], strict: bool) -> Any:
    """Return a tree with other tensors; what is no tensor stays, or is None if `strict`."""
    parts = [None if strict else leaf for _, leaf in tree.leaves(result)]
    for place, tensor in zip(places, tensors, strict=True):
        parts[place] = tensor
    following = iter(parts)
    return tree.mapped(result, lambda leaf: next(following))
