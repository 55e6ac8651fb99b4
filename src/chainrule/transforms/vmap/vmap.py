"""`vmap`: vectorisation of a function of one example over a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.arguments import tensor_of
from chainrule.autograd.function_wrapper import FunctionWrapper, Made
from chainrule.autograd.operands import plain_array
from chainrule.autograd.remarks import STRICT, told_about
from chainrule.autograd.tensor import Tensor, make
from chainrule.errors import (
    ArgumentError,
    ArgumentTypeError,
    ShapeError,
    call_of_user,
)
from chainrule.interrupts import call_with
from chainrule.numpy.array_class import as_ndarray, behaves_as_array
from chainrule.ops import cat
from chainrule.ops.selections import Selection
from chainrule.random import draw as sampling
from chainrule.transforms.arguments import check_callable, title_of, with_recording
from chainrule.transforms.kinds import common_kind, in_kind
from chainrule.transforms.vmap.batched_array import BatchedArray, Level, Owner
from chainrule.transforms.vmap.interpreter import VmapInterpreter, batch_tensor, unbatch_tensor
from chainrule.transforms.vmap.namespace import broadcast_batch, data_of, inner_xp
from chainrule.transforms.vmap.randomness import (
    RANDOMNESS,
    draws_of,
    state_of_numpy,
    warn_of_draws_of_numpy,
)

__all__ = ["vmap"]


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
    strict: bool = False,
    in_axes: Any = ...,
    out_axes: Any = ...,
) -> Callable[..., Any]:
    """Return a function that applies `func` along a dimension of its arguments, all at once.

    Parameters
    ----------
    func : callable
        Takes and returns tensors, or dicts, lists, tuples, dataclasses of them.
    in_dims : int, None, or a tuple with an entry for each argument, default 0
        The dimension to map over; None for an argument that all examples share. An entry may be a
        container like its argument, or one dimension for all in it. Keyword arguments are shared.
    out_dims : int, None, or containers of them, default 0
        Position of the mapped dimension in the results; None for a result that all examples share.
    randomness : "error", "different" or "same", default "error"
        Whether random numbers may be drawn: different for each example, or the same for all.
        Draws from `numpy.random` are the same for all, which a warning tells. Methods of NumPy's
        generators and Python's `random` are not noticed: they draw once, for all examples.
    chunk_size : int, optional
        Apply `func` to at most this many examples at once, which takes less memory.
    strict : bool, default False
        Raise MissingRuleError where an operation would run for one example after the other.
    in_axes, out_axes : optional
        JAX's names of `in_dims` and `out_dims`.

    Returns
    -------
    callable
        Takes the arguments of `func` with one more dimension, and returns its results with one
        more: equal to ``stack([func(x) for x in xs])``, computed all at once. The results are
        arrays if all mapped arguments are.

    Raises
    ------
    ShapeError
        If the mapped dimensions differ in length, or an argument has no such dimension.
    ArgumentError
        If nothing is mapped, or `in_dims` or `out_dims` don't fit the arguments or results.
    AutogradError
        If `func` asks for a value that differs between examples, as `if` does, for a shape that
        depends on one, or draws random numbers while `randomness` is "error".
    InPlaceError
        If it writes to its arguments, or to a tensor from outside.
    MissingRuleError
        With `strict`, if an operation has no batching rule.

    Warns
    -----
    PerformanceWarning
        Once for each function and operation that has no batching rule, unless `strict`.

    Notes
    -----
    `func` runs once, on arrays that hold all examples and have the shape of one. Whatever doesn't
    depend on a mapped argument is computed once. `vmap` nests, with itself and with all other
    transforms: ``vmap(grad(loss), (None, 0))`` gives the gradient of each example. An operation
    without a batching rule is called for each example in turn, with a warning that names it.

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
    check_callable("vmap", func)
    if randomness not in RANDOMNESS:
        raise ArgumentError(
            f'vmap: randomness is "error", "different" or "same", but got {randomness!r}'
        )
    in_dims = _check_dims(in_dims if in_axes is ... else in_axes)
    out_dims = out_dims if out_axes is ... else out_axes

    def mapped(*args: Any, **kwargs: Any) -> Any:
        given, leaves = [leaf for _, leaf in pytree.leaves(args)], _mapped(in_dims, args, func)
        dims = [dim for _, _, dim in leaves]
        kind = common_kind([x for x, dim in zip(given, dims, strict=True) if dim is not None])
        outside = _CALLER.get()
        caller, function = outside or ("vmap", func)
        owner = Owner(f"{caller}({title_of(function)})", told_about(function), strict)
        interpreter = VmapInterpreter(_batch_size(leaves, func), owner)
        parts = with_recording(given, [dim is None for dim in dims])
        inside = iter(
            [
                part if dim is None else _example(interpreter.level, leaf, dim, part)
                for (_, leaf, dim), part in zip(leaves, parts, strict=True)
            ]
        )

        def call() -> tuple[Any, list[Any]]:
            arguments = pytree.map_leaves(args, lambda _: next(inside))
            before = state_of_numpy() if randomness != "same" else None
            result = call_of_user(func, *arguments, **kwargs)
            warn_of_draws_of_numpy(before, caller)
            tensor_positions = _flat_dims(out_dims, result, "out_dims", func)
            outs = [
                _output(interpreter, leaf, dim, path, func)
                for (path, leaf), dim in zip(pytree.leaves(result), tensor_positions, strict=True)
            ]
            return result, outs

        variables: dict[ContextVar[Any], Any]
        variables = {sampling.WATCHER: draws_of(interpreter.level, randomness)}
        if strict:
            variables[STRICT] = True
        if outside is not None:
            variables[_CALLER] = None
        result, outs = call_with(variables, interpreter.run, call)
        following = iter(_with_own_memory(outs, interpreter.level))
        return in_kind(kind, pytree.map_leaves(result, lambda _: next(following)))

    settings: dict[str, Any] = {"strict": True} if strict else {}
    called: Callable[..., Any] = mapped
    if chunk_size is not None:
        if not isinstance(chunk_size, int) or chunk_size < 1:
            raise ArgumentError(f"vmap: chunk_size is a positive int or None, got {chunk_size!r}")
        settings["chunk_size"] = chunk_size
        called = functools.partial(_in_chunks, mapped, func, chunk_size, in_dims, out_dims)
    made = Made(vmap, (func, in_dims, out_dims, randomness), settings)
    return FunctionWrapper(called, func, made)


def _in_chunks(
    mapped: Callable[..., Any],
    func: Any,
    chunk_size: int,
    in_dims: Any,
    out_dims: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Call a mapped function with some examples at a time, and join the results."""
    leaves = _mapped(in_dims, args, func)
    size = _batch_size(leaves, func)

    def call(start: int) -> Any:
        dims = iter([dim for _, _, dim in leaves])

        def chunk(leaf: Any) -> Any:
            dim = next(dims)
            if dim is None:
                return leaf
            examples = leaf if hasattr(leaf, "ndim") else np.asarray(leaf)
            places = (slice(None),) * (dim % examples.ndim)
            return examples[(*places, slice(start, start + chunk_size))]

        return mapped(*pytree.map_leaves(args, chunk), **kwargs)

    parts = [call(start) for start in range(0, max(size, 1), chunk_size)]
    places = iter(_flat_dims(out_dims, parts[0], "out_dims", func))
    columns = iter(zip(*([leaf for _, leaf in pytree.leaves(part)] for part in parts), strict=True))

    def joined(first: Any) -> Any:
        column, dim = next(columns), next(places)
        if dim is None or first is None:
            return first
        return cat(column, dim) if isinstance(first, Tensor) else np.concatenate(column, dim)

    return pytree.map_leaves(parts[0], joined)


_CALLER: ContextVar[tuple[str, Any] | None] = ContextVar("chainrule vmap caller", default=None)
"""The transform that calls vmap, and its function, in the place of ``("vmap", func)``."""


def vmap_for(caller: str, function: Any, func: Callable[..., Any], *args: Any) -> Any:
    """Call a function mapped over its arguments, for a transform of a user's function."""
    return call_with({_CALLER: (caller, function)}, vmap(func), *args)


def batched_pass(
    caller: str, function: Any, linear: Callable[[Tensor], list[Tensor]], directions: Tensor
) -> list[Tensor]:
    """Return a pass's results for the directions along the first dimension, all at once.

    Only rules of primitives may run in it, and nothing may be recorded. Then no tensor need be
    intercepted: rules take the arrays that all directions share as they are.
    """
    count = directions.shape[0]
    owner = Owner(f"{caller}({title_of(function)})", told_about(function), False)
    level = Level(count, lambda array: array, owner)
    try:
        found = linear(batch_tensor(level, directions, 0))
    finally:
        level.finished = True
    outs: list[Any] = []
    for tensor in found:
        array = tensor._array
        if array.__class__ is not BatchedArray or array.level is not level:
            array = BatchedArray(level, data_of(level, array), outside=True)
        outs.append((make(broadcast_batch(level, array.data), None), array, False))
    return list(_with_own_memory(outs, level))


def _example(level: Level, tensor: Tensor, dim: int, given: Any) -> Tensor:
    """Return what the function gets: for an array, what behaves as NumPy's arrays."""
    example = batch_tensor(level, tensor, dim % tensor.ndim)
    return as_ndarray(example) if behaves_as_array(given) else example


def _flat_dims(dims: Any, args: Any, which: str, func: Any) -> list[Any]:
    """Return the dimension of each leaf of `args`; one int may apply to a whole container."""
    if dims is None or (isinstance(dims, int) and not isinstance(dims, bool)):
        return [dims] * sum(1 for _ in pytree.leaves(args))
    parts, entries = pytree.children(args), pytree.children(dims)
    if entries is None or parts is None or len(entries) != len(parts):
        raise ArgumentError(f"vmap({title_of(func)}, {which}={dims!r}): {_expected(which, parts)}")
    found = dict(entries)
    if isinstance(dims, dict) and found.keys() != dict(parts).keys():
        raise ArgumentError(
            f"vmap({title_of(func)}): {which} has {', '.join(found)} where what is mapped has "
            f"{', '.join(dict(parts))}: say None for what all examples share"
        )
    return [
        dim
        for k, (step, part) in enumerate(parts)
        for dim in _flat_dims(found.get(step, entries[k][1]), part, which, func)
    ]


def _expected(which: str, parts: Sequence[Any] | None) -> str:
    """Return what an entry of `in_dims` or `out_dims` has to be for these parts."""
    if parts is None:
        return (
            "expected an int or None for what is no container: one vmap maps over one dimension. "
            "For two, write cr.vmap(cr.vmap(f)), each with its own in_dims and out_dims"
        )
    what = "positional argument" if which == "in_dims" else "part of the result"
    return (
        f"expected an int for all, or one entry for each {what} or each item of a container, of "
        f"which there are {len(parts)}; None is for what all examples share, as keyword arguments "
        "are"
    )


def _mapped(in_dims: Any, args: Any, func: Any) -> list[tuple[str, Any, int | None]]:
    """Return the leaves of arguments, each with its path and dimension; mapped ones as tensors."""
    dims = _flat_dims(in_dims, args, "in_dims", func)
    return [
        (path, leaf, None)
        if dim is None or leaf is None
        else (path, _as_tensor(leaf, f"argument {path}", func), dim)
        for (path, leaf), dim in zip(pytree.leaves(args), dims, strict=True)
    ]


def _check_dims(dims: Any) -> Any:
    """Return `in_dims`; raise if it is an argument of the function, as in ``vmap(f, x)``."""
    if dims is not None and not isinstance(dims, int) and pytree.children(dims) is None:
        raise ArgumentTypeError(
            f"vmap: in_dims are ints, None, or containers of them, but got "
            f"{pytree.describe(dims)}: to call the result with it, write cr.vmap(f)(x)"
        )
    return dims


def _as_tensor(leaf: Any, path: str, func: Any) -> Tensor:
    if isinstance(leaf, Selection):
        leaf = leaf.elements()
    if isinstance(leaf, np.ndarray):
        leaf = plain_array(leaf)
    try:
        return tensor_of(leaf)
    except TypeError:
        raise ArgumentTypeError(
            f"vmap({title_of(func)}): expected tensors, arrays or numbers to be mapped, but got "
            f"{type(leaf).__name__} at {path}: say None in in_dims for other arguments, and "
            "return only what can be stacked"
        ) from None


def _batch_size(leaves: list[tuple[str, Any, Any]], func: Any) -> int:
    """Return the length of the mapped dimension."""
    lengths: dict[int, str] = {}
    for path, leaf, dim in leaves:
        if dim is None:
            continue
        if not -leaf.ndim <= dim < leaf.ndim:
            raise ShapeError(
                f"vmap({title_of(func)}): argument {path} has the shape {list(leaf.shape)}, and no "
                f"dimension {dim} to map over: say None in in_dims if all examples share it"
            )
        lengths.setdefault(leaf.shape[dim], path)
    if not lengths:
        raise ArgumentError(
            f"vmap({title_of(func)}): nothing to map over: at least one argument must have a "
            "dimension in in_dims"
        )
    if len(lengths) > 1:
        said = ", ".join(f"{length} at argument {path}" for length, path in lengths.items())
        raise ShapeError(
            f"vmap({title_of(func)}): Expected all tensors to have the same size in the mapped "
            f"dimension, but got {said}"
        )
    return next(iter(lengths))


def _output(interpreter: VmapInterpreter, leaf: Any, dim: Any, path: str, func: Any) -> Any:
    """Return a result with the batch axis, its batched array, and whether all examples share it."""
    if leaf is None:
        return None
    tensor = _as_tensor(leaf, f"result{path}", func)
    array = tensor._array  # batched at this level, whatever it was made from
    if dim is None and array.data.shape[0] > 1:
        raise ArgumentError(
            f"vmap({title_of(func)}): out_dims says None for result{path}, which differs between "
            "examples: say where the mapped dimension goes"
        )
    if dim is not None and not -tensor.ndim - 1 <= dim <= tensor.ndim:
        raise ShapeError(
            f"vmap({title_of(func)}): out_dims is {dim} for result{path}, which has "
            f"{tensor.ndim + 1} dimensions with the mapped one"
        )
    axis = 0 if dim is None else dim % (tensor.ndim + 1)
    return unbatch_tensor(interpreter.level, tensor, axis), array, dim is None


def _with_own_memory(outs: list[Any], level: Level) -> Iterator[Any]:
    """Yield the results, each in memory that it shares with nothing else."""
    seen: set[int] = set()
    for out in outs:
        if out is None:
            yield None
            continue
        tensor, array, shared = out
        own = array.base is None and not array.outside and array.data.shape[0] == level.count
        if not own or id(array) in seen:
            tensor._array = inner_xp(tensor._array).array(tensor._array)
        seen.add(id(array))
        yield tensor[0] if shared else tensor
