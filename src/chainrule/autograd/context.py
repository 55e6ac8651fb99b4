"""`ctx`: what the forward of a custom function leaves for its backward."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from chainrule.autograd.modes import current_modes, is_grad_enabled
from chainrule.autograd.record import current_node, pack_array
from chainrule.autograd.tape import (
    AccumulateGrad,
    Edge,
    Packed,
    Severed,
    check_unwritten,
    freed_error,
)
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import ledger
from chainrule.backend import ndarray
from chainrule.errors import InPlaceError

if TYPE_CHECKING:
    from chainrule.autograd.function_node import FunctionNode

Array = Any


class Named:
    """Values read by attribute, by key and by position.

    Its `__dict__` is the values by name (by number, where they have none) and it has no methods but
    Python's own: so a value named ``keys`` or ``count`` reads as the user's.
    """

    def __init__(self, values: dict[Any, Any]) -> None:
        self.__dict__ = values

    def __getitem__(self, key: Any) -> Any:
        values = self.__dict__
        if not isinstance(key, str):
            return tuple(values.values())[key]
        if key not in values:
            raise KeyError(f"there is no {key!r} here, only {_listed(self)}")
        return values[key]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no {name!r} here, only {_listed(self)}")

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


def _listed(named: Named) -> str:
    names = [repr(name) for name in named.__dict__ if isinstance(name, str)]
    return f"the names {', '.join(names)}" if names else f"{len(named)} by position"


NOTHING = Named({})


_INTERMEDIATE: Any = object()  # the origin of a tensor that forward computed on the way


def _restored(node: FunctionNode, value: Any, origin: Any) -> Tensor:
    """Return a saved tensor with its place in the graph, after checking for writes."""
    array = value
    output = type(origin) is int
    if type(array) is Packed:
        array = array.unpack(node, 0)
    elif ledger.last > node.seq:
        source = node.output_edge(origin) if output else origin
        check_unwritten(node, array, None if origin is _INTERMEDIATE else source, 0)
    if output:
        return make(array, node.output_edge(origin))
    if origin is not _INTERMEDIATE:
        return make(array, origin)
    if not is_grad_enabled() or array.dtype.kind not in "fc":
        return make(array, None)
    return make(array, Severed(_severed_text(node), node.edges))


def _severed_text(node: FunctionNode) -> str:
    return (
        f"the backward of {node.function.name} uses a tensor that its forward computed on the way "
        "and saved. Forward runs unrecorded, so how that tensor depends on the inputs is unknown "
        "and a second derivative would silently lack a term. Save inputs or outputs and compute it "
        "in backward, return it as an output, save a bool or integer mask, or mark backward with "
        "@once_differentiable."
    )


class Context:
    """What forward and backward of a custom function share; `ctx` in their signatures.

    Any attribute may be set on it. Tensors belong into `save_for_backward`, which checks that
    nobody wrote to them and lets them go when the graph is freed.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_edges",
        "_names",
        "_node",
        "_origins",
        "_saved",
    )

    _names: tuple[str, ...]
    _edges: tuple[Edge, ...]  # of the arguments, None where no gradient is needed
    _saved: Named | None  # None: released
    _node: weakref.ref[Any] | None  # set when there are tensors among the saved values,
    _origins: dict[Any, Any]  # with where each of them came from

    # What few functions change: then in the instance's own dict.
    _dirty: tuple[Any, ...] = ()
    _constant: tuple[Any, ...] = ()
    _materialize: bool = True

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @property
    def needs_input_grad(self) -> Named:
        """For each argument of forward, whether its gradient is needed; truthful in each pass."""
        needs = [edge is not None for edge in self._edges]
        return Named(dict(zip(self._names, needs, strict=True)))

    def save_for_backward(self, /, *values: Any, **by_name: Any) -> None:
        """Save values, of any type, for backward; named ones are read by name. The last call wins.

        Parameters
        ----------
        *values, **by_name
            Tensors, None, or anything else; order and names are kept.
        """
        saved: dict[Any, Any] = {**dict(enumerate(values)), **by_name} if values else by_name
        self._saved = Named(saved) if saved else NOTHING

    @property
    def saved_variables(self) -> Named:
        """What was saved, by attribute, key and position; tensors are checked for writes."""
        saved = self._saved
        if saved is None:
            raise freed_error(None if self._node is None else self._node())
        if self._node is None:
            return saved
        node: Any = self._node()  # None if the graph is gone, and somebody kept ctx
        written = node is not None and ledger.last > node.seq
        values = saved.__dict__.copy()
        for name, origin in self._origins.items():
            array = values[name]
            if node is None and origin is _INTERMEDIATE:
                values[name] = make(array, None)
            elif written or origin is _INTERMEDIATE or array.__class__ is not ndarray:
                values[name] = _restored(node, array, origin)
            elif origin.__class__ is int:
                values[name] = make(array, None if node is None else node.output_edge(origin))
            else:
                values[name] = make(array, origin)
        return Named(values)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was saved, as a tuple: PyTorch's spelling."""
        return tuple(self.saved_variables)

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say that forward wrote to these inputs in place; they must be returned."""
        for tensor in tensors:
            node = tensor._node
            if type(node) is AccumulateGrad and any(edge is node for edge in self._edges):
                raise InPlaceError(
                    "a leaf Variable that requires grad has been used in an in-place operation: "
                    "mark_dirty of an argument that is a leaf. Pass a clone() of it"
                )
        self._dirty = (*self._dirty, *tensors)

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say that these outputs have no gradient; backward gets zeros for them."""
        self._constant = (*self._constant, *tensors)

    def set_materialize_grads(self, value: bool) -> None:
        """Choose whether gradients of unused outputs arrive as zeros (the default) or as None."""
        self._materialize = bool(value)


def seal(
    ctx: Context, node: FunctionNode, arguments: Sequence[Any], outputs: Sequence[Any]
) -> None:
    """Replace saved tensors by arrays and where they come from, so that no cycle is left."""
    assert ctx._saved is not None
    saved = ctx._saved.__dict__
    origins = {}
    for name, value in saved.items():
        if value.__class__ is Tensor or isinstance(value, Tensor):
            origins[name] = _origin(value, arguments, outputs)
    if not origins:
        return
    values = {name: saved[name]._array if name in origins else saved[name] for name in saved}
    modes = current_modes()
    if modes is not None and modes.saved_hooks is not None:
        for name in origins:
            values[name] = pack_array(values[name], *modes.saved_hooks)
    ctx._saved = Named(values)
    ctx._origins = origins
    ctx._node = weakref.ref(node)


def narrowed(ctx: Context, edges: tuple[Edge, ...]) -> Context:
    """Return `ctx` as a pass sees it that needs only these edges; attributes are shared."""
    view = object.__new__(Context)
    view.__dict__ = ctx.__dict__
    view._names, view._edges = ctx._names, edges
    view._saved, view._node = ctx._saved, ctx._node
    if view._node is not None:
        view._origins = ctx._origins
    return view


def _origin(tensor: Tensor, arguments: Sequence[Any], outputs: Sequence[Any]) -> Any:
    """Return where a saved tensor came from: an output's number, an edge, or `_INTERMEDIATE`."""
    for index, output in enumerate(outputs):
        if output is tensor:
            return index
    edge: Edge = tensor._node if tensor._view is None else current_node(tensor)
    if edge is not None:
        return edge
    for argument in arguments:
        if argument is tensor:
            return None
    return _INTERMEDIATE
