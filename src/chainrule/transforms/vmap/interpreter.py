"""Into lanes and out of them: tensors, their history, and who answers for them meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from chainrule.autograd.intercept import INTERCEPTOR, SLOTS, intercepted_by, intercepting
from chainrule.autograd.node import Edge, Node, endpoint
from chainrule.autograd.record import stamp_node
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import next_seq
from chainrule.autograd.views import current_node
from chainrule.errors import AutogradError
from chainrule.transforms.vmap import indexing, rules  # noqa: F401 - they fill the table of rules
from chainrule.transforms.vmap.batched_array import BatchedArray, Level, laid_out
from chainrule.transforms.vmap.namespace import belongs, beneath, data_of, full

if TYPE_CHECKING:
    from chainrule.autograd.reverse import BackwardPass

Array = Any


_array_of = SLOTS["_array"].__get__


class VmapInterpreter:
    """A mapped function's run: it answers for tensors from outside, which all lanes share."""

    def __init__(self, count: int) -> None:
        self.outer = INTERCEPTOR.get()
        self.level = Level(count, _as_it_is if self.outer is None else self.outer.array)
        self._begin = next_seq()
        self._faces: dict[int, tuple[Tensor, Tensor]] = {}  # with the tensor, so that its id stays

    def proxy(self, tensor: Tensor) -> Tensor:
        try:
            array = _array_of(tensor)
        except AttributeError:  # it's being made
            return tensor
        if array.__class__ is BatchedArray and (array.level is self.level or self._knows(array)):
            return tensor
        known = self._faces.get(id(tensor))
        if known is None:
            with intercepted_by(self.outer):
                known = tensor, entered(self.level, tensor, None)
            self._faces[id(tensor)] = known
        return known[1]

    def proxy_for_write(self, tensor: Tensor, slot: str, value: Any) -> tuple[Tensor, Any]:
        if slot == "_array" and not self._knows(value):
            value = self.array(value)
        elif slot == "_node" and value is not None and endpoint(value)[0].seq < self._begin:
            value = BatchBoundary(self.level, value, None, True)  # what a node outside has saved
        return self.proxy(tensor), value

    @contextmanager
    def running(self) -> Iterator[None]:
        """Answer for all tensors, in this thread or task."""
        try:
            with intercepting(self):
                yield
        finally:
            self.level.over = True
            self.level.outer = _as_it_is  # the graph is to hold nothing of what is around it

    def array(self, array: Array) -> Array:
        if self._knows(array):
            return array
        return BatchedArray(self.level, data_of(self.level, self.level.outer(array)))

    def _knows(self, array: Array) -> bool:
        """Say whether an array has lanes of this map: within those of one that was in it, too."""
        while array.__class__ is BatchedArray and array.level.depth > self.level.depth:
            array = array.data
        return belongs(self.level, array)


def _as_it_is(array: Array) -> Array:
    return array


# --- arrays ---------------------------------------------------------------------------------------


def _enter(level: Level, array: Array, dim: int | None) -> BatchedArray:
    """Return lanes of an array along one of its dimensions; None is one array for all lanes."""
    if _is_deeper(array, level):
        return BatchedArray(
            array.level, _enter(level, array.data, None if dim is None else dim + 1)
        )
    if dim is None:
        return BatchedArray(level, array[None], outside=True)
    order = (dim, *[i for i in range(array.ndim) if i != dim])
    data = array if dim == 0 else laid_out(beneath(array).permute_dims(array, order))
    return BatchedArray(level, data, outside=True)


def _leave(level: Level, array: Any, dim: int | None) -> Array:
    """Return the array that has the lanes along a dimension; None is the sum of all lanes."""
    if _is_deeper(array, level):
        return BatchedArray(
            array.level, _leave(level, array.data, None if dim is None else dim + 1)
        )
    data = full(level, array.data if isinstance(array, BatchedArray) else array[None])
    xp = beneath(data)
    if dim is None:
        return xp.sum(data, axis=(0,))
    order = (*range(1, dim + 1), 0, *range(dim + 1, data.ndim))
    return xp.permute_dims(data, order) if dim else data


def _is_deeper(array: Any, level: Level) -> bool:
    """Say whether an array has lanes of a map that began later, in which this one's go on."""
    return isinstance(array, BatchedArray) and array.level.depth > level.depth


# --- tensors --------------------------------------------------------------------------------------


class BatchBoundary(Node):
    """Into lanes, or out of them: each is the adjoint of the other."""

    __slots__ = ("dim", "into", "level")

    def __init__(self, level: Level, edge: Edge, dim: int | None, into: bool) -> None:
        self.level, self.dim, self.into = level, dim, into
        self.edges = (edge,)
        stamp_node(self, 1)

    @property
    def name(self) -> str:
        return "VmapBackward0"

    def vjp(self, g: Any, run: BackwardPass) -> Sequence[Any]:
        interceptor: Any = INTERCEPTOR.get()
        if self.into and self.dim is None and getattr(interceptor, "level", None) is self.level:
            raise AutogradError(
                "vmap: a backward pass in a mapped function reached a tensor from outside, whose "
                "gradient is the sum over lanes that don't exist yet: pass it as an argument, take "
                "grad() or autograd_grad() by it, or call backward() on what vmap returned"
            )
        if run.xp is None:
            return [(_leave if self.into else _enter)(self.level, g, self.dim)]
        return [(left if self.into else entered)(self.level, g, self.dim)]

    def jvp(self, tangents: tuple[Any, ...], xp: Any) -> Any:
        return (entered if self.into else left)(self.level, tangents[0], self.dim)


def _crossed(level: Level, tensor: Tensor, dim: int | None, into: bool) -> Tensor:
    """Return a tensor on the other side, connected to this one."""
    edge, array = current_node(tensor), tensor._array
    node = None if edge is None else BatchBoundary(level, edge, dim, into)
    if not into:
        interceptor: Any = INTERCEPTOR.get()
        inside = getattr(interceptor, "level", None) is level
        with intercepted_by(interceptor.outer if inside else interceptor):
            return make(_leave(level, array, dim), node)
    made: Tensor = object.__new__(Tensor)  # who answers outside is not to know of it
    values = {"_array": _enter(level, array, dim), "_node": node, "_grad": None, "_view": None}
    for slot, value in values.items():
        SLOTS[slot].__set__(made, value)
    return made


def entered(level: Level, tensor: Tensor, dim: int | None) -> Tensor:
    """Return a tensor as lanes along a dimension; None is one for all lanes."""
    return _crossed(level, tensor, dim, True)


def left(level: Level, tensor: Tensor, dim: int | None) -> Tensor:
    """Return the tensor that has the lanes along a dimension; None is the sum of all lanes."""
    return _crossed(level, tensor, dim, False)
