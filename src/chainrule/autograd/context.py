"""`ctx`: what the forward of a custom function leaves for its backward."""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from chainrule.autograd.modes import current_modes, is_grad_enabled
from chainrule.autograd.record import current_node, pack_array
from chainrule.autograd.tape import Edge, Packed, Severed, check_unwritten, freed_error
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import ledger

if TYPE_CHECKING:
    from chainrule.autograd.function_node import FunctionNode

Array = Any


class Named(tuple[Any, ...]):
    """Values read by attribute, by key and by position.

    A tuple whose class has a property for each name: a value named ``keys`` or ``count`` reads as
    the user's.
    """

    __slots__ = ()
    _names: tuple[str | None, ...] = ()

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self._names:
                raise KeyError(f"there is no {key!r} here, only {self._listed()}")
            return tuple.__getitem__(self, self._names.index(key))
        return tuple.__getitem__(self, key)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no {name!r} here, only {self._listed()}")

    def _listed(self) -> str:
        named = [repr(name) for name in self._names if name is not None]
        return f"the names {', '.join(named)}" if named else f"{len(self)} by position"

    def _replaced(self, values: Sequence[Any]) -> Named:
        """Return other values under the same names."""
        return _new_tuple(type(self), values)

    def __repr__(self) -> str:
        parts = (
            repr(value) if name is None else f"{name}={value!r}"
            for name, value in zip(self._names, self, strict=True)
        )
        return f"({', '.join(parts)})"


@functools.cache
def _named_class(names: tuple[str | None, ...]) -> type[Named]:
    fields: dict[str, Any] = {
        name: property(operator.itemgetter(i)) for i, name in enumerate(names) if name is not None
    }
    # Underscored names come last, so that no user's name hides what the class itself needs.
    return type("Named", (Named,), {**fields, "__slots__": (), "_names": names})


_new_tuple = tuple.__new__


NOTHING: Named = _new_tuple(Named)


def named(names: tuple[str | None, ...], values: tuple[Any, ...]) -> Named:
    """Return `values` to be read by name too."""
    return _new_tuple(_named_class(names), values)


class _Saved:
    """A tensor saved for backward: its array, and where in the graph it came from."""

    __slots__ = ("array", "edge", "origin")

    def __init__(self, array: Any, origin: str, edge: Any) -> None:
        self.array = array  # an array, or Packed
        self.origin = origin  # "input", "output", "elsewhere" or "intermediate"
        self.edge = edge  # which argument, which output, or an edge

    def restore(self, node: FunctionNode) -> Tensor:
        """Return the tensor with its place in the graph."""
        array = self.array
        if type(array) is Packed:
            array = array.unpack(node, 0)
        elif ledger.last > node.seq:
            check_unwritten(node, array, self._source(node), 0)
        if self.origin == "input":
            return make(array, node.edges[self.edge])
        if self.origin == "elsewhere":
            return make(array, self.edge)
        if self.origin == "output":
            return make(array, node.output_edge(self.edge))
        if not is_grad_enabled() or array.dtype.kind not in "fc":
            return make(array, None)
        return make(array, Severed(_severed_text(node), node.edges))

    def _source(self, node: FunctionNode) -> Edge:
        if self.origin == "input":
            return node.edges[self.edge]
        return node.output_edge(self.edge) if self.origin == "output" else self.edge


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
        "_saved",
    )

    _names: tuple[str, ...]
    _edges: tuple[Edge, ...]  # of the arguments, None where no gradient is needed
    _saved: Named | None  # None: released
    _node: weakref.ref[Any] | None  # set with tensors among the saved values

    # What few functions change: then in the instance's own dict.
    _dirty: tuple[Any, ...] = ()
    _constant: tuple[Any, ...] = ()
    _materialize: bool = True

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @property
    def needs_input_grad(self) -> Named:
        """For each argument of forward, whether its gradient is needed; truthful in each pass."""
        return named(self._names, tuple([edge is not None for edge in self._edges]))

    def save_for_backward(self, /, *values: Any, **by_name: Any) -> None:
        """Save values, of any type, for backward; named ones are read by name. The last call wins.

        Parameters
        ----------
        *values, **by_name
            Tensors, None, or anything else; order and names are kept.
        """
        names = ((None,) * len(values)) + tuple(by_name) if values else tuple(by_name)
        self._saved = _new_tuple(_named_class(names), (*values, *by_name.values()))

    @property
    def saved_variables(self) -> Named:
        """What was saved, by attribute, key and position; tensors are checked for writes."""
        saved = self._saved
        if saved is None:
            raise freed_error(None if self._node is None else self._node())
        if self._node is None:
            return saved
        node: Any = self._node()  # alive: it is what holds us, or what runs us
        return saved._replaced([v.restore(node) if v.__class__ is _Saved else v for v in saved])

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was saved, as a tuple: PyTorch's spelling."""
        return tuple(self.saved_variables)

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say that forward wrote to these inputs in place; they must be returned."""
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
    sealed = None
    for i, value in enumerate(ctx._saved):
        if isinstance(value, Tensor):
            sealed = sealed or list(ctx._saved)
            sealed[i] = saved = _seal(value, arguments, outputs)
            modes = current_modes()
            if modes is not None and modes.saved_hooks is not None:
                saved.array = pack_array(saved.array, *modes.saved_hooks)
    if sealed:
        ctx._saved = ctx._saved._replaced(sealed)
        ctx._node = weakref.ref(node)


def narrowed(ctx: Context, edges: tuple[Edge, ...]) -> Context:
    """Return `ctx` as a pass sees it that needs only these edges; attributes are shared."""
    view = object.__new__(Context)
    view.__dict__ = ctx.__dict__
    view._names, view._edges = ctx._names, edges
    view._saved, view._node = ctx._saved, ctx._node
    return view


def _seal(tensor: Tensor, arguments: Sequence[Any], outputs: Sequence[Any]) -> _Saved:
    for index, output in enumerate(outputs):
        if output is tensor:
            return _Saved(tensor._array, "output", index)
    for index, argument in enumerate(arguments):
        if argument is tensor:
            return _Saved(tensor._array, "input", index)
    edge: Edge = current_node(tensor)
    if edge is not None:
        return _Saved(tensor._array, "elsewhere", edge)
    return _Saved(tensor._array, "intermediate", None)
