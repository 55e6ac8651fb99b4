"""The context `ctx` of a custom function: values saved by forward for backward."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from chainrule.autograd.modes import current_modes, is_grad_enabled
from chainrule.autograd.node import (
    AccumulateGrad,
    Edge,
    ErrorNode,
    check_unwritten,
    freed_error,
)
from chainrule.autograd.primitive_node import SavedTensor
from chainrule.autograd.record import pack_array
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import write_log
from chainrule.autograd.views import current_node
from chainrule.errors import ArgumentTypeError, AutogradError, InPlaceError

if TYPE_CHECKING:
    from chainrule.autograd.function_node import FunctionNode

Array = Any
_new = object.__new__


class Named:
    """Values that are read by attribute, by key and by position.

    Its `__dict__` holds the values by name, or by number without a name. It has only special
    methods, so that a value can be named ``keys`` or ``count``.
    """

    def __init__(self, values: dict[Any, Any]) -> None:
        self.__dict__ = values

    def __getitem__(self, key: Any) -> Any:
        values = self.__dict__
        if key.__class__ is int or not isinstance(key, str):
            return (*values.values(),)[key]
        if key not in values:
            raise KeyError(f"there is no {key!r} here, only {_available(self)}")
        return values[key]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no {name!r} here, only {_available(self)}")

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__dict__.values())

    def __len__(self) -> int:
        return len(self.__dict__)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Named | tuple | list):
            return NotImplemented
        return tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        parts = (
            f"{name}={value!r}" if isinstance(name, str) else repr(value)
            for name, value in self.__dict__.items()
        )
        return f"({', '.join(parts)})"


def _available(named: Named) -> str:
    names = [repr(name) for name in named.__dict__ if isinstance(name, str)]
    return f"the names {', '.join(names)}" if names else f"{len(named)} by position"


class Needs(Named):
    """Flags of the arguments that need a gradient; immutable, since cached and shared."""

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"needs_input_grad can't be changed: {name!r}")


def _needs_of(names: tuple[str, ...], needs: tuple[bool, ...]) -> Needs:
    """Return a new `ctx.needs_input_grad` for arguments of these names, and keep it."""
    if len(_NEEDS) >= _MAX_NEEDS:
        _NEEDS.clear()
    made: Needs = _new(Needs)
    made.__dict__.update(zip(names, needs, strict=True))
    _NEEDS[names, needs] = made
    return made


_NEEDS: dict[tuple[tuple[str, ...], tuple[bool, ...]], Needs] = {}
_MAX_NEEDS = 1024


NOTHING: dict[Any, Any] = {}
"""The saved values if `save_for_backward` is not called."""

_NO_TENSOR: Any = object()  # the origin of a value that is no tensor
_INTERMEDIATE: Any = object()  # the origin of a tensor that is neither input nor output


def _restored(node: Any, value: Any, origin: Any) -> Tensor:
    """Return a saved tensor connected to the graph, checked for in-place writes."""
    source = None if origin is _INTERMEDIATE else origin
    if type(origin) is int:
        source = None if node is None else node.output_edge(origin)
    if type(value) is SavedTensor:
        value = value.unpack(node, 0)
    elif node is not None and write_log.last > node.seq:
        check_unwritten(node, value, source, 0)
    unknown = node is not None and origin is _INTERMEDIATE
    if unknown and is_grad_enabled() and value.dtype.kind in "fc":
        source = ErrorNode(_unknown_derivative_text(node), node.edges)
    return make(value, source)


def _unknown_derivative_text(node: FunctionNode) -> str:
    return (
        f"the backward of {node.function.name} uses a tensor that its forward computed on the way "
        "and saved. Forward runs unrecorded, so how that tensor depends on the inputs is unknown "
        "and a second derivative would silently lack a term. Save inputs or outputs and compute it "
        "in backward, return it as an output, save a bool or integer mask, or mark backward with "
        "@once_differentiable."
    )


class Context:
    """State shared by forward and backward of a custom function: `ctx` in their signatures.

    Any attribute may be set on it. Tensors belong in `save_for_backward`, which checks that they
    are not written to in place, and releases them when the graph is freed.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_constant",
        "_dirty",
        "_edges",
        "_names",
        "_node",
        "_origins",
        "_saved",
        "_unsealed",
    )

    _names: tuple[str, ...]
    _edges: tuple[Edge, ...]  # of the arguments, None where no gradient is needed
    _saved: dict[Any, Any] | None  # by name or number; None once released
    _unsealed: bool  # whether forward has saved tensors
    _origins: list[Any]  # of the saved values, if tensors are saved: `_saved` has their arrays
    _node: weakref.ref[Any] | None  # set if tensors are saved

    _dirty: tuple[Any, ...]  # marked by forward
    _constant: tuple[Any, ...]
    _materialize: bool = True  # rarely changed: then in the instance's `__dict__`

    if TYPE_CHECKING:  # a class that has it reads all of its attributes more slowly

        def __getattr__(self, name: str) -> Any: ...

    @property
    def needs_input_grad(self) -> Needs:
        """For each argument of forward, whether the running pass needs its gradient."""
        key = self._names, tuple(map(bool, self._edges))
        try:
            return _NEEDS[key]
        except KeyError:
            return _needs_of(*key)

    def save_for_backward(self, /, *values: Any, **by_name: Any) -> None:
        """Save values of any type for backward; keywords are read by name. The last call wins.

        Parameters
        ----------
        *values, **by_name
            Tensors, None, or anything else; order and names are kept.

        Raises
        ------
        AutogradError
            If it is called in backward.
        """
        if self._node is not None:
            raise saved_late_error(self._node())
        saved: dict[Any, Any] = by_name
        if values:
            saved = dict(enumerate(values))
            saved.update(by_name)
        self._saved = saved or NOTHING
        for value in saved.values():
            if value.__class__ is Tensor or isinstance(value, Tensor):
                self._unsealed = True
                break

    @property
    def saved_variables(self) -> Named:
        """The saved values, by attribute, key and position; tensors are checked for writes."""
        saved = self._saved
        found: Named = _new(Named)
        if saved is None or self._node is not None:
            saved = dict(zip(saved or (), self._restored(), strict=True))
        found.__dict__ = saved
        return found

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved values as a tuple, as in PyTorch."""
        if self._saved is None or self._node is not None:
            return tuple(self._restored())
        return tuple(self._saved.values())

    def _restored(self) -> list[Any]:
        """Return the saved values, with tensors in place of arrays."""
        saved = self._saved
        node: Any = None if self._node is None else self._node()  # None if ctx outlived the graph
        if saved is None:
            raise freed_error(node)
        written = node is not None and write_log.last > node.seq
        values: list[Any] = []
        for value, origin in zip(saved.values(), self._origins):  # noqa: B905 - strict= costs 60 ns
            if origin is _NO_TENSOR:
                values.append(value)
            elif (
                written
                or origin.__class__ is int
                or origin is _INTERMEDIATE
                or value.__class__ is SavedTensor
            ):
                values.append(_restored(node, value, origin))
            else:
                tensor = _new(Tensor)  # `make` inline, in half the time
                tensor._array, tensor._node = value, origin
                tensor._grad = tensor._view = None
                values.append(tensor)
        return values

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declare that forward wrote to these inputs in place; it must return them."""
        _check_tensors("mark_dirty", tensors)
        for tensor in tensors:
            node = tensor._node
            if type(node) is AccumulateGrad and any(edge is node for edge in self._edges):
                raise InPlaceError(
                    "a leaf Variable that requires grad has been used in an in-place operation: "
                    "mark_dirty of an argument that is a leaf. Pass a clone() of it"
                )
        self._dirty = (*self._dirty, *tensors)

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declare that these outputs have no gradient; backward gets zeros for them."""
        _check_tensors("mark_non_differentiable", tensors)
        self._constant = (*self._constant, *tensors)

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether gradients of unused outputs arrive as zeros (the default) or as None."""
        self._materialize = bool(value)


def seal_saved(
    ctx: Context, node: FunctionNode, arguments: Sequence[Any], outputs: Sequence[Any]
) -> None:
    """Replace saved tensors by their arrays and origins, so that there is no reference cycle."""
    saved: Any = ctx._saved
    modes = current_modes()
    hooks = None if modes is None else modes.saved_hooks
    origins: list[Any] = []
    only = outputs[0] if len(outputs) == 1 else None
    for name, value in saved.items():
        origin = _NO_TENSOR
        if value.__class__ is Tensor or isinstance(value, Tensor):
            origin = value._node if value._view is None else current_node(value)
            if origin is None or only is None or value is only:
                origin = _origin(value, origin, arguments, outputs, ctx)
            saved[name] = value._array if hooks is None else pack_array(value._array, *hooks)
        origins.append(origin)
    ctx._origins = origins
    ctx._node = weakref.ref(node)


def _check_tensors(method: str, values: tuple[Any, ...]) -> None:
    for index, value in enumerate(values):
        if not isinstance(value, Tensor):
            raise ArgumentTypeError(
                f"{method} should only accept tensors, but argument {index} is of type "
                f"{type(value).__name__}"
            )


def for_edges(ctx: Context, edges: tuple[Edge, ...]) -> Context:
    """Return a `ctx` for a pass that needs only these edges; attributes are shared."""
    view = Context()
    view.__dict__ = ctx.__dict__
    view._names, view._edges = ctx._names, edges
    view._saved, view._node = ctx._saved, ctx._node
    if ctx._node is not None:
        view._origins = ctx._origins
    view._dirty = view._constant = ()
    view._unsealed = False
    return view


def saved_late_error(node: FunctionNode | None) -> AutogradError:
    """Return the error for values that are saved when forward has ended."""
    name = "a custom function" if node is None else node.function.name
    return AutogradError(
        "save_for_backward can only be called in forward, or in setup_context, but the backward "
        f"of {name} called it: what it saved would reach no other pass. Set an attribute of ctx, "
        "or use a local variable"
    )


def _origin(
    tensor: Tensor, edge: Edge, arguments: Sequence[Any], outputs: Sequence[Any], ctx: Context
) -> Any:
    """Return the origin of a saved tensor: its edge, an output index, or `_INTERMEDIATE`."""
    for argument in arguments:
        if argument is tensor and not (ctx._dirty and _contains(ctx._dirty, tensor)):
            return edge
    for index in range(len(outputs) - 1, -1, -1):
        if outputs[index] is tensor:
            plain = tensor._array.dtype.kind not in "fc" or _contains(ctx._constant, tensor)
            return None if plain else index
    return _INTERMEDIATE if edge is None else edge


def _contains(values: Sequence[Any], tensor: Tensor) -> bool:
    return any(value is tensor for value in values)


def explain_attribute(error: Exception) -> None:
    """Add a mend to an error of backward that has read what forward has not set."""
    name = getattr(error, "name", None)
    if name and isinstance(error, AttributeError) and isinstance(error.obj, Context):
        error.args = (
            f"ctx has no attribute {name!r}: forward sets it, ctx.{name} = ..., or saves a tensor "
            f"with ctx.save_for_backward({name}={name}), which backward reads as "
            f"ctx.saved_variables.{name}",
        )
