"""The context `ctx` of a custom function: values saved by forward for backward."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from chainrule import pytree
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

    def __getitem__(self, key: Any) -> Any:
        values = self.__dict__
        if key.__class__ is int or not isinstance(key, str):
            return (*values.values(),)[key]
        if key not in values:
            raise KeyError(_missing_text(self, key))
        return values[key]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(_missing_text(self, name))

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


def _missing_text(named: Named, name: str) -> str:
    names = [repr(each) for each in named.__dict__ if isinstance(each, str)]
    if isinstance(named, Needs):
        return f"ctx.needs_input_grad has no {name!r}: the arguments are {', '.join(names)}"
    unnamed = len(named) - len(names)
    there = [*names, *([f"{unnamed} by position, as [0]"] if unnamed else [])]
    only = f", only {', '.join(there)}" if there else ": nothing was saved"
    return (
        f"ctx.saved_variables has no {name!r}{only}. Save it in forward, by its name: "
        f"ctx.save_for_backward({name}={name})"
    )


class Needs(Named):
    """Flags of the arguments that need a gradient; immutable, since cached and shared."""

    __slots__ = ("__flags",)

    def __init__(self, names: tuple[str, ...], flags: tuple[bool, ...]) -> None:
        object.__setattr__(self, "_Needs__flags", flags)
        self.__dict__.update(zip(names, flags, strict=True))

    def __getitem__(self, key: Any) -> Any:
        return self.__flags[key] if key.__class__ is int else super().__getitem__(key)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"needs_input_grad can't be changed: {name!r}")


_NEEDS: dict[tuple[tuple[str, ...], int], Needs] = {}
"""Flags by the names of the arguments and the flags as bits."""

_MAX_NEEDS = 1024


NOTHING: tuple[Any, ...] = ()
"""The saved values if `save_for_backward` is not called."""

UNMARKED: tuple[tuple[Any, ...], tuple[Any, ...]] = (), ()
"""The marked tensors, dirty ones and constant ones, if none is marked."""

_OTHER = "no tensor"
_OUTPUT = "output"
_INTERMEDIATE = "neither input nor output"
_PACKED = "packed by a hook"


UNSEALED: Any = object()
"""Stands in for the reference of a `ctx` to its node, if tensors are saved, until forward ends."""


def _restored(node: Any, value: Any, origin: Any, kind: str | None) -> Tensor:
    """Return a saved tensor connected to the graph, checked for in-place writes."""
    if type(origin) is int:
        origin = None if node is None else node.output_edge(origin)
    if type(value) is SavedTensor:
        value = value.unpack(node, 0)
    elif node is not None and write_log.last > node.seq:
        check_unwritten(node, value, origin, 0)
    unknown = node is not None and kind is _INTERMEDIATE
    if unknown and is_grad_enabled() and value.dtype.kind in "fc":
        origin = ErrorNode(_unknown_derivative_text(node), node.edges)
    return make(value, origin)


def _unknown_derivative_text(
    node: FunctionNode, tensor: str = "a tensor", attribute: str = ""
) -> str:
    constant = f" If it is a constant, write ctx.{attribute}.detach()." if attribute else ""
    return (
        f"the backward of {node.function.name} uses {tensor} that its forward computed on the way "
        "and saved. Forward runs unrecorded, so how that tensor depends on the inputs is unknown "
        "and a second derivative would silently lack a term. Save inputs or outputs and compute it "
        "in backward, return it as an output, save a bool or integer mask, or mark backward with "
        f"@once_differentiable.{constant}"
    )


class Context:
    """State shared by forward and backward of a custom function: `ctx` in their signatures.

    Any attribute may be set on it. Tensors belong in `save_for_backward`, which checks that they
    are not written to in place, and releases them when the graph is freed.
    """

    __slots__ = ("__dict__", "__weakref__", "_edges", "_marks", "_names", "_node", "_saved")

    _names: tuple[str, ...]
    _edges: tuple[Edge, ...]  # of the arguments, None where no gradient is needed
    _saved: Any  # by position or by name; None once released
    _node: Any  # a weak reference, if tensors are saved: then `_saved` is sealed
    _marks: tuple[tuple[Any, ...], tuple[Any, ...]]  # dirty and constant tensors, by forward
    _materialize: bool = True  # rarely changed: then in the instance's `__dict__`
    _computed: tuple[Tensor, ...] = ()  # on `ctx`, and neither input nor output; there, too

    if TYPE_CHECKING:  # a class that has it reads all of its attributes more slowly

        def __getattr__(self, name: str) -> Any: ...

    @property
    def needs_input_grad(self) -> Needs:
        """For each argument of forward, whether the running pass needs its gradient."""
        bits = 1
        for edge in self._edges:
            bits += bits + (edge is not None)
        try:
            return _NEEDS[self._names, bits]
        except KeyError:
            if len(_NEEDS) >= _MAX_NEEDS:
                _NEEDS.clear()
            flags = tuple([edge is not None for edge in self._edges])
            made = _NEEDS[self._names, bits] = Needs(self._names, flags)
            return made

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
        if type(self._node) is _REFERENCE:
            raise saved_late_error(self._node())
        saved: Any = values or NOTHING
        if by_name:
            saved = {**dict(enumerate(values)), **by_name} if values else by_name
        self._saved = saved
        for value in saved.values() if by_name else saved:
            if value.__class__ is Tensor or isinstance(value, _SEALED):
                self._node = UNSEALED
                break

    @property
    def saved_variables(self) -> Named:
        """The saved values, by attribute, key and position; tensors are checked for writes."""
        saved = self._saved
        if saved.__class__ is not dict or type(self._node) is _REFERENCE:
            values = self.saved_tensors
            names = saved if saved.__class__ is dict else range(len(values))
            saved = dict(zip(names, values, strict=True))
        found = Named()
        found.__dict__ = saved
        return found

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The saved values as a tuple, as in PyTorch."""
        saved, node = self._saved, self._node
        if type(node) is _REFERENCE:
            node = node()  # None if ctx outlived the graph
        elif saved is not None:
            return tuple(saved.values() if saved.__class__ is dict else saved)
        if saved is None:
            raise freed_error(node)
        written = node is not None and write_log.last > node.seq
        values: list[Any] = []
        for value, origin, kind in saved.values() if saved.__class__ is dict else saved:
            if kind is _OUTPUT:
                origin, kind = None if node is None else node.output_edge(origin), None
            if kind is None and not written:
                tensor = _new(Tensor)  # `make` inline, in half the time
                tensor._array, tensor._node = value, origin
                tensor._grad = tensor._view = None
                values.append(tensor)
            elif kind is _OTHER:
                values.append(value)
            else:
                values.append(_restored(node, value, origin, kind))
        return tuple(values)

    def saved_arrays(self) -> dict[Any, Any]:
        """Return what is saved, by name or number, with arrays for tensors; nothing once freed."""
        saved: Any = self._saved or ()
        items = dict(saved.items() if saved.__class__ is dict else enumerate(saved))
        if type(self._node) is not _REFERENCE:
            return items
        return {name: value for name, (value, *_) in items.items()}

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
        dirty, constant = self._marks
        self._marks = (*dirty, *tensors), constant

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declare that these outputs have no gradient; backward gets zeros for them."""
        _check_tensors("mark_non_differentiable", tensors)
        dirty, constant = self._marks
        self._marks = dirty, (*constant, *tensors)

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether gradients of unused outputs arrive as zeros (the default) or as None."""
        self._materialize = bool(value)


def seal_saved(
    ctx: Context,
    node: FunctionNode,
    arguments: Sequence[Any],
    outputs: Sequence[Any],
    new: Tensor | None = None,
) -> None:
    """Replace saved tensors by their arrays, so that there is no reference cycle.

    Each value becomes a triple: the value or the array; the edge of the tensor, or the index of an
    output; and what it is, if not the tensor of an edge. `new` is the output if it is the only one,
    and neither an argument nor a view.
    """
    saved, modes = ctx._saved, current_modes()
    hooks = None if modes is None else modes.saved_hooks
    sealed: list[tuple[Any, Any, str | None]] = []
    for value in saved.values() if saved.__class__ is dict else saved:
        if value.__class__ is not Tensor and not isinstance(value, Tensor):
            if isinstance(value, _CONTAINERS):
                _check_container(node, value)
            sealed.append((value, None, _OTHER))
            continue
        array, origin, kind = value._array, None, None
        if value is new:
            if array.dtype.kind in "fc":
                origin, kind = 0, _OUTPUT
        else:
            origin = value._node if value._view is None else current_node(value)
            if origin is None or new is None:
                origin, kind = _origin(value, origin, arguments, outputs, ctx._marks)
        if hooks is not None:
            array, kind = pack_array(array, *hooks), kind if kind is _INTERMEDIATE else _PACKED
        sealed.append((array, origin, kind))
    ctx._saved = dict(zip(saved, sealed, strict=True)) if saved.__class__ is dict else sealed
    ctx._node = _REFERENCE(node)


def _check_container(node: FunctionNode, value: Any) -> None:
    if any(isinstance(leaf, Tensor) for _, leaf in pytree.leaves(value)):
        raise ArgumentTypeError(
            f"save_for_backward can only save tensors that it gets as arguments, but {node.name} "
            f"got a {type(value).__name__} that contains some: write save_for_backward(*tensors)"
        )


_REFERENCE = weakref.ref
_CONTAINERS = (list, tuple, dict)
_SEALED = (Tensor, *_CONTAINERS)


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
    view._marks = UNMARKED
    return view


def with_unknown_derivatives(ctx: Context, node: FunctionNode) -> Context:
    """Return a `ctx` for a recorded pass, whose computed tensors raise when differentiated."""
    view = for_edges(ctx, ctx._edges)
    view.__dict__ = dict(ctx.__dict__)

    def unknown(name: str, value: Any) -> Any:
        if not isinstance(value, Tensor) or not _contains(ctx._computed, value):
            return value
        reason = _unknown_derivative_text(node, f"ctx.{name}, a tensor", name)
        return make(value._array, ErrorNode(reason, node.edges))

    for name, attribute in ctx.__dict__.items():
        if name != "_computed":
            change = functools.partial(unknown, name)
            view.__dict__[name] = pytree.changed_leaves(attribute, change)
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
    tensor: Tensor, edge: Edge, arguments: Sequence[Any], outputs: Sequence[Any], marks: Any
) -> tuple[Any, str | None]:
    """Return the origin of a saved tensor, an edge or an output's index, and what it is."""
    dirty, constant = marks
    for argument in arguments:
        if argument is tensor and not (dirty and _contains(dirty, tensor)):
            return edge, None
    for index in range(len(outputs) - 1, -1, -1):
        if outputs[index] is tensor:
            plain = tensor._array.dtype.kind not in "fc" or _contains(constant, tensor)
            return (None, None) if plain else (index, _OUTPUT)
    return edge, _INTERMEDIATE if edge is None else None


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
