"""Calls of users' functions: their arguments, directions and results, checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.arguments import cast, tensor_of
from chainrule.autograd.error_messages import check_devices
from chainrule.autograd.function_call import FunctionCall
from chainrule.autograd.inplace import WRITTEN, forget_histories
from chainrule.autograd.location import file_text
from chainrule.autograd.operands import BESIDE_ARRAYS, as_tensors, plain, plain_array
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import is_array, storage_of
from chainrule.errors import ArgumentTypeError, DTypeError, ShapeError
from chainrule.numpy.array_class import as_ndarray, behaves_as_array, ndarray
from chainrule.primitives.elementwise import clone
from chainrule.transforms.kinds import common_kind_of, has_numbers, in_kind, kind_of, values_of


class TransformCall(FunctionCall):
    """One recorded call, whose results have the kinds of the arguments: see `kinds`."""

    def __init__(
        self,
        title: str,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        copy: bool = False,
        name_of: Callable[[int], str] | None = None,
    ) -> None:
        check_callable(title, function)
        self.given = list(arguments)
        found = [(path, leaf) for path, leaf in pytree.leaves(self.given) if leaf is not None]
        primals = [primal(title, path, leaf, copy, name_of) for path, leaf in found]
        self.paths = [path for path, _ in found]
        self.kinds = [kind_of(leaf) for _, leaf in found]
        self.are_arrays = [behaves_as_array(leaf) for _, leaf in found]
        self.kind = common_kind_of(self.kinds)
        variables: dict[ContextVar[Any], Any] = {}
        if has_numbers(self.kinds):
            variables[BESIDE_ARRAYS] = ndarray
        if WRITTEN.get() is not None:
            super().__init__(function, self.given, primals, variables=variables)
            return
        # Arrays that outlive the outermost call keep their numbers alone, but for its own result.
        written: dict[int, Any] = {}
        variables[WRITTEN] = written
        super().__init__(function, self.given, primals, variables=variables)
        if self._has_history:
            for t in self.outputs:
                written.pop(id(t if t._view is None else t._view.base), None)
        forget_histories(written)

    @property
    def arguments(self) -> list[Any]:
        """The arguments, with the tensors that the function is differentiated by."""
        own: list[Any] = pytree.with_leaves(self.given, self.inputs)
        return own

    def handed(self, arguments: list[Any]) -> list[Any]:
        """Return what the function gets: in the place of arrays, what behaves as NumPy's arrays.

        These are copies, to which the function may write.
        """
        if not any(self.are_arrays):
            return super().handed(arguments)
        pairs = zip(self.are_arrays, self.inputs, strict=True)
        own = [as_ndarray(clone.apply(t)) if is_array else t for is_array, t in pairs]
        handed: list[Any] = pytree.with_leaves(arguments, own)
        return handed

    def like_arguments(self, tensors: Sequence[Tensor]) -> list[Any]:
        """Return the structure of the arguments with tensors, each in the kind of its argument."""
        pairs = zip(self.kinds, tensors, strict=True)
        return list(pytree.with_leaves(self.given, [kind(t) for kind, t in pairs]))

    def value_in_kind(self, tangents: Sequence[Tensor | None] = (), *, copy: bool = False) -> Any:
        """Return the result of the function in the kind of the arguments."""
        return in_kind(self.kind, self.value(tangents), copy=copy)


def with_recording(values: Sequence[Any], are_constants: Sequence[bool]) -> Sequence[Any]:
    """Return arguments of a function with `ndarray`s in the place of constant arrays of NumPy's.

    So the function may call their methods, and write results to them or to their copies. They have
    the same memory. Beside tensors nothing is replaced: these don't go with `ndarray`s. An array
    that shares memory with another argument stays, too: what is written to one would be no part
    of the history of the other.
    """
    pairs = list(zip(values, are_constants, strict=True))
    if not any([is_constant and _is_of_floats(value) for value, is_constant in pairs]):
        return values
    for value, is_constant in pairs:
        leaves = [] if is_constant else [leaf for _, leaf in pytree.leaves(value)]
        if any([isinstance(leaf, Tensor) and not leaf.is_carried for leaf in leaves]):
            return values
    owners = Counter([id(storage_of(value)) for value in values if is_array(value)])
    return [
        as_ndarray(make(value, None))
        if is_constant and _is_of_floats(value) and owners[id(storage_of(value))] == 1
        else value
        for value, is_constant in pairs
    ]


def _is_of_floats(value: Any) -> bool:
    """Return whether a value is an array of floats, of no subclass of NumPy's class."""
    is_subclass = isinstance(value, np.ndarray) and value.__class__ is not np.ndarray
    return is_array(value) and not is_subclass and value.dtype.kind in "fc"


def recorded_call(
    title: str,
    function: Callable[..., Any],
    arguments: Sequence[Any],
    *,
    copy: bool = False,
    name_of: Callable[[int], str] | None = None,
) -> TransformCall:
    """Call a function of trees of tensors, arrays and numbers, recorded to be differentiated.

    `copy` arrays, whose elements the caller may change while the graph is still used. `name_of`
    gives the name of an argument by its position, for errors.
    """
    return TransformCall(title, function, arguments, copy, name_of)


def primal(
    title: str, path: str, leaf: Any, copy: bool, name_of: Callable[[int], str] | None = None
) -> Tensor:
    """Return an argument to differentiate by as a tensor."""
    values = values_of(leaf)
    if values.__class__ is np.ndarray and values.dtype.kind in "fc" and not copy:
        return make(values, None)
    if is_array(values):
        values = plain_array(values)
        values = values.copy() if copy else values
    try:
        x = tensor_of(values)
    except TypeError:
        kind = "an array of objects" if is_array(values) else type(leaf).__name__
        mend = "cr.tree.register() makes a class a container of its parts"
        if isinstance(leaf, str | bytes):
            mend = "hand texts over in an argument of their own"
        raise ArgumentTypeError(
            f"{title}: expected a tensor, an array or a float at {_place(path, name_of)}, got "
            f"{kind}: {mend}, and argnums says which arguments to differentiate by"
        ) from None
    if x.dtype.kind not in "fc":
        mend = "write 2.0 for 2"
        if is_array(leaf) or isinstance(leaf, Tensor):
            how = ".to(cr.float32)" if isinstance(leaf, Tensor) else ".astype(float)"
            mend = f"convert it with {how}"
        raise DTypeError(
            f"{title}: a primal must be floating or complex, got {x.dtype} at "
            f"{_place(path, name_of)}: {mend}, or leave it out of what is differentiated by"
        )
    return x


def _place(path: str, name_of: Callable[[int], str] | None) -> str:
    """Return where a leaf of the arguments is: by name, if it is known."""
    if name_of is None:
        return f"arguments{path}"
    first, _, rest = path.removeprefix("[").partition("]")
    return f"{name_of(int(first))}{rest}"


def as_list(arguments: Any) -> list[Any]:
    """Return the arguments of a function as a list: a tuple or list of them, or a single one.

    A named tuple is a single one.
    """
    return list(arguments) if are_several(arguments) else [arguments]


def are_several(arguments: Any) -> bool:
    """Return whether an object is a tuple or list of arguments, not a single one."""
    return isinstance(arguments, tuple | list) and not hasattr(arguments, "_fields")


def directions(title: str, like: Any, given: Any, *, back: bool = False) -> list[Tensor | None]:
    """Return the tangents (or cotangents, if `back`) of the tensors of a tree, checked."""
    own, other = ("outputs", "cotangents") if back else ("primals", "tangents")
    return [
        None if t is None else _checked_direction(title, x, t, f"a {other[:-1]}", f"its {own[:-1]}")
        for x, t in _matching_leaves(title, like, given, own, other)
    ]


def _matching_leaves(
    title: str, like: Any, given: Any, own: str, other: str
) -> Iterator[tuple[Tensor, Any]]:
    for path, x, t in pytree.zip_leaves(like, given):
        if t is None:  # zeros, also for all of a container
            yield from ((leaf, None) for _, leaf in pytree.leaves(x) if isinstance(leaf, Tensor))
            continue
        if pytree.children(x) is not None or pytree.children(t) is not None:
            raise ArgumentTypeError(
                f"{title}: {own} and {other} must have the same structure: at {own}{path} is "
                f"{pytree.describe(x)}, at {other}{path} {pytree.describe(t)}"
            )
        if isinstance(x, Tensor):
            yield x, t


def _checked_direction(title: str, x: Tensor, given: Any, kind: str, like: str) -> Tensor | None:
    """Return a tangent or cotangent as a tensor of the dtype of `x`; None for integers."""
    _, t = as_tensors((x, values_of(given)))
    if x.shape != t.shape:
        raise ShapeError(
            f"{title}: {kind} must have the shape of {like}: got {list(t.shape)}, expected "
            f"{list(x.shape)}"
        )
    if t._array.__class__ is not x._array.__class__:
        check_devices((x._array, t._array), f"{title}, for {kind}")
    if x.dtype.kind not in "fc":
        return None
    if t.dtype.kind == "c" and x.dtype.kind == "f":
        raise DTypeError(
            f"{title}: {kind} must be real where {like} is: got {t.dtype} for {x.dtype}. Take "
            f".real, or make {like} complex"
        )
    return cast(plain(t), x.dtype)


def check_callable(title: str, function: Any) -> None:
    """Raise if what should be a function is none."""
    if not callable(function):
        raise ArgumentTypeError(
            f"{title}: expected a function, got {pytree.describe(function)}: a transform takes the "
            f"function itself, as in cr.{title}(f) and not cr.{title}(f(x))"
        )


def split_aux(title: str, function: Any, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """Return the differentiated part of a function's result, and the auxiliary part."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise ArgumentTypeError(
            f"{title}(has_aux=True): expected {title_of(function)} to return a pair, the "
            f"output to differentiate and auxiliary data, but got {pytree.describe(result)}"
        )
    return result


def title_of(function: Any) -> str:
    """Return the name and the location of a function, for errors."""
    code = getattr(function, "__code__", None)
    name: str = getattr(function, "__qualname__", None) or type(function).__qualname__
    return name if code is None else f"{name} ({file_text(code.co_filename)}:{code.co_firstlineno})"
