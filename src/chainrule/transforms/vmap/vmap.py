"""`vmap`: a function of one example, called on many at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.arguments import tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, AutogradError, ShapeError
from chainrule.random import draw as sampling
from chainrule.transforms.function_call import named
from chainrule.transforms.vmap.batched_array import BatchedArray, Level
from chainrule.transforms.vmap.interpreter import VmapInterpreter, entered, left
from chainrule.transforms.vmap.namespace import beneath, deepest, looped

__all__ = [
    "vmap",
]

# --- draws ----------------------------------------------------------------------------------------
#
# Random numbers in a mapped function: others for each lane, or the same for all.

RANDOMNESS = ("error", "different", "same")


@contextmanager
def drawing(level: Level, randomness: str) -> Iterator[None]:
    """Draw for all lanes of a level as `randomness` says."""
    outer = sampling.WATCHER.get()

    def once(generator: Any, method: Any, args: Any, settings: Any) -> Any:
        token = sampling.WATCHER.set(outer)
        try:
            return sampling.draw(method, generator, *args, **settings)
        finally:
            sampling.WATCHER.reset(token)

    def draw(generator: Any, method: Any, args: Any, settings: Any) -> Any:
        if randomness == "error":
            raise AutogradError(
                "vmap: called random operation while in randomness error mode. Say "
                'randomness="different" for other random numbers in each example, "same" for the '
                "same in all, or draw outside and pass what was drawn"
            )
        if randomness == "same":
            if deepest(args, settings) is level:
                raise AutogradError(
                    'vmap(randomness="same"): what is drawn depends on the example: say "different"'
                )
            return once(generator, method, args, settings)
        if method in _SHAPED and deepest(args, settings) is None:
            shape = args[0] if isinstance(args[0], tuple) else (args[0],)
            drawn = once(generator, method, ((level.count, *shape), *args[1:]), settings)
            return BatchedArray(level, drawn)

        def one(lane: Any, *args: Any) -> Any:
            return once(generator, method, args, settings)

        return looped(level, one, BatchedArray(level, np.arange(level.count)), *args)

    token = sampling.WATCHER.set(draw)
    try:
        yield
    finally:
        sampling.WATCHER.reset(token)


_SHAPED = ("random", "standard_normal")
"""Methods whose first argument is a shape: one draw serves all lanes."""


# --- vmap -----------------------------------------------------------------------------------------


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
) -> Callable[..., Any]:
    """Return a function that maps `func` over a dimension of its arguments.

    Parameters
    ----------
    func : callable
        Takes and returns tensors, or dicts, lists, tuples, dataclasses of them.
    in_dims : int, None, or a tuple with an entry for each argument, default 0
        The dimension to map over; None for what is the same each time. An entry may be a container
        like its argument, or one dimension for all in it. Keywords are the same each time.
    out_dims : int, None, or containers of them, default 0
        Where the mapped dimension is in what is returned; None for what is the same each time.
    randomness : "error", "different" or "same", default "error"
        Whether random numbers may be drawn: others for each example, or the same for all.

    Returns
    -------
    callable
        Takes the arguments of `func` with one more dimension, and returns what it returns with one
        more: what ``stack([func(x) for x in xs])`` would be, computed all at once.

    Raises
    ------
    ShapeError
        If what is mapped over has several lengths, or no such dimension.
    ArgumentError
        If nothing is mapped, or `in_dims` and `out_dims` don't fit what is passed and returned.
    AutogradError
        If `func` asks for a value that examples differ in, as `if` does, for a shape that depends
        on one, or draws random numbers, and `randomness` doesn't say which.
    InPlaceError
        If it writes to what it was passed, or to a tensor from outside.

    Notes
    -----
    `func` runs once, on arrays that hold all examples and look like one. What depends on nothing
    that is mapped is computed once. Maps nest, with each other and with all other transforms:
    ``vmap(grad(loss), (None, 0))`` gives the gradient of each example. What has no rule for many
    examples is called for one after the other.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> vmap(cr.dot)(x, x)
    tensor([ 5., 25.])
    >>> vmap(cr.grad(lambda w, x: cr.dot(w, x) ** 2), in_dims=(None, 0))(cr.ones(2), x)
    tensor([[ 6., 12.],
            [42., 56.]])
    """
    if randomness not in RANDOMNESS:
        raise ArgumentError(
            f'vmap: randomness is "error", "different" or "same", but got {randomness!r}'
        )

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        given = _spread(in_dims, args, "in_dims", func)
        leaves = [
            (path, leaf, None)
            if dim is None or leaf is None
            else (path, _tensor(leaf, f"argument {path}", func), dim)
            for (path, leaf), dim in zip(pytree.leaves(args), given, strict=True)
        ]
        interpreter = VmapInterpreter(_count(leaves, func))
        inside = iter(
            [
                leaf if dim is None else entered(interpreter.level, leaf, dim % leaf.ndim)
                for _, leaf, dim in leaves
            ]
        )
        with interpreter.running(), drawing(interpreter.level, randomness):
            result = func(*pytree.mapped(args, lambda _: next(inside)), **kwargs)
            places = _spread(out_dims, result, "out_dims", func)
            outs = [
                _out(interpreter, leaf, dim, path, func)
                for (path, leaf), dim in zip(pytree.leaves(result), places, strict=True)
            ]
        following = iter(_settled(outs, interpreter.level))
        return pytree.mapped(result, lambda _: next(following))

    return mapped


def _spread(dims: Any, args: Any, which: str, func: Any) -> list[Any]:
    """Return the dimension of each leaf of `args`, where one may stand for a whole container."""
    if dims is None or (isinstance(dims, int) and not isinstance(dims, bool)):
        return [dims] * sum(1 for _ in pytree.leaves(args))
    parts, entries = pytree.children(args), pytree.children(dims)
    if entries is None or parts is None or len(entries) != len(parts):
        raise ArgumentError(
            f"vmap({named(func)}, {which}={dims!r}): expected an int, None, or containers of them "
            "like what is mapped, "
            f"which is {'no container' if parts is None else f'one of {len(parts)}'}"
        )
    found = dict(entries)
    if isinstance(dims, dict) and found.keys() != dict(parts).keys():
        raise ArgumentError(
            f"vmap({named(func)}): {which} has {', '.join(found)} where what is mapped has "
            f"{', '.join(dict(parts))}: say None for what is the same each time"
        )
    return [
        dim
        for k, (step, part) in enumerate(parts)
        for dim in _spread(found.get(step, entries[k][1]), part, which, func)
    ]


def _tensor(leaf: Any, place: str, func: Any) -> Tensor:
    try:
        return tensor_of(leaf)
    except TypeError:
        raise TypeError(
            f"vmap({named(func)}): expected tensors, arrays or numbers to be mapped, but got "
            f"{type(leaf).__name__} at {place}: say None in in_dims for what is handed through, "
            "and return what can be stacked"
        ) from None


def _count(leaves: list[tuple[str, Any, Any]], func: Any) -> int:
    """Return the length of what is mapped over."""
    lengths: dict[int, str] = {}
    for path, leaf, dim in leaves:
        if dim is None:
            continue
        if not -leaf.ndim <= dim < leaf.ndim:
            raise ShapeError(
                f"vmap({named(func)}): argument {path} has the shape {list(leaf.shape)}, and no "
                f"dimension {dim} to map over: say None in in_dims if it's the same each time"
            )
        lengths.setdefault(leaf.shape[dim], path)
    if not lengths:
        raise ArgumentError(
            f"vmap({named(func)}): nothing to map over: at least one argument has a dimension in "
            "in_dims"
        )
    if len(lengths) > 1:
        said = ", ".join(f"{length} at argument {path}" for length, path in lengths.items())
        raise ShapeError(
            f"vmap({named(func)}): Expected all tensors to have the same size in the mapped "
            f"dimension, but got {said}"
        )
    return next(iter(lengths))


def _out(interpreter: VmapInterpreter, leaf: Any, dim: Any, path: str, func: Any) -> Any:
    """Return what was returned, with the mapped dimension; and of which lanes it is."""
    if leaf is None:
        return None
    tensor = _tensor(leaf, f"result{path}", func)
    lanes = tensor._array  # of this level, whatever it was made from
    if dim is None and lanes.data.shape[0] > 1:
        raise ArgumentError(
            f"vmap({named(func)}): out_dims says None for result{path}, which differs from "
            "example to example: say where the mapped dimension goes"
        )
    if dim is not None and not -tensor.ndim - 1 <= dim <= tensor.ndim:
        raise ShapeError(
            f"vmap({named(func)}): out_dims is {dim} for result{path}, which has "
            f"{tensor.ndim + 1} dimensions with the mapped one"
        )
    place = 0 if dim is None else dim % (tensor.ndim + 1)
    return left(interpreter.level, tensor, place), lanes, dim is None


def _settled(outs: list[Any], level: Level) -> Iterator[Any]:
    """Yield what goes to the caller: in memory that nothing else shows."""
    handed: set[int] = set()
    for out in outs:
        if out is None:
            yield None
            continue
        whole, lanes, alike = out
        own = lanes.base is None and not lanes.outside and lanes.data.shape[0] == level.count
        if not own or id(lanes) in handed:
            whole._array = beneath(whole._array).array(whole._array)
        handed.add(id(lanes))
        yield whole[0] if alike else whole
