"""The interpreter of vmap: it batches tensors and their history, and unbatches results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from chainrule.autograd.intercept import (
    INTERCEPTOR,
    SLOTS,
    Interceptor,
    intercepted_by,
    intercepting,
)
from chainrule.autograd.modes import MODES
from chainrule.autograd.node import Edge, Node, endpoint
from chainrule.autograd.record import stamp_node
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.versions import next_seq
from chainrule.autograd.views import current_node
from chainrule.backend import namespace, ndarray, whole
from chainrule.errors import AutogradError
from chainrule.interrupts import T, call_then
from chainrule.transforms.vmap import (  # noqa: F401 - they fill the tables of rules
    batched_primitives,
    indexing,
    rules,
)
from chainrule.transforms.vmap.batched_array import BatchedArray, Level, Owner, copy_batch_major
from chainrule.transforms.vmap.namespace import (
    ENTERED,
    broadcast_batch,
    data_of,
    inner_xp,
    is_batched,
)

if TYPE_CHECKING:
    from chainrule.autograd.reverse import BackwardPass

Array = Any


_array_of = SLOTS["_array"].__get__


class VmapInterpreter(Interceptor):
    """A run of a function under vmap; tensors from outside are shared by all examples."""

    own: Any = BatchedArray
    records = True

    def __init__(self, count: int, owner: Owner) -> None:
        self.outer = INTERCEPTOR.get()
        outer = _identity if self.outer is None else self.outer.array
        self.level = self.own_level = Level(count, outer, owner)
        self._begin = next_seq()
        self._proxies: dict[int, tuple[Tensor, Tensor]] = {}  # keeps tensors: ids stay unique

    def proxy(self, tensor: Tensor) -> Tensor:
        try:
            array = _array_of(tensor)
        except AttributeError:  # under construction
            return tensor
        if array.__class__ is BatchedArray and (array.level is self.level or self._contains(array)):
            return tensor
        known = self._proxies.get(id(tensor))
        if known is None:
            known = tensor, intercepted_by(self.outer, batch_tensor, self.level, tensor, None)
            self._proxies[id(tensor)] = known
        return known[1]

    def proxy_for_write(self, tensor: Tensor, slot: str, value: Any) -> tuple[Tensor, Any]:
        if slot == "_array" and not self._contains(value):
            value = self.array(value)
        elif slot == "_node" and value is not None and endpoint(value)[0].seq < self._begin:
            value = BatchBoundary(self.level, value, None, True)  # saved by a node outside
        return self.proxy(tensor), value

    def check_pass(
        self, roots: Iterable[Node], targets: list[tuple[Node, int]]
    ) -> tuple[bool, list[tuple[Node, int]]]:
        outside = list(targets)
        for i, (node, output) in enumerate(targets):
            while isinstance(node, BatchBoundary) and node.is_shared and not node.level.finished:
                node, output = endpoint(node.edges[0])
            outside[i] = node, output
        return outside != targets, outside

    def nested_in(self, outer: Any) -> VmapInterpreter:
        """Return an interpreter of the same run for tensors that another vmap has batched before.

        That one has ended, and a graph that was recorded in it is differentiated in this run.
        """
        found: VmapInterpreter = object.__new__(VmapInterpreter)
        found.outer, found._begin, found._proxies = outer, self._begin, {}
        found.level = found.own_level = self.level
        return found

    def run(self, function: Callable[[], T]) -> T:
        """Call a function with all tensors intercepted, in this thread or task."""
        return call_then(self._finish, intercepting, self, function)

    def _finish(self) -> None:
        self.level.finished = True
        self.level.outer = _identity  # the graph must not keep outer interpreters alive

    def array(self, array: Array) -> Array:
        if self._contains(array):
            return array
        return BatchedArray(self.level, data_of(self.level, self.level.outer(array)))

    def _contains(self, array: Array) -> bool:
        """Tell whether an array is batched at this level, also below deeper levels."""
        while array.__class__ is BatchedArray and array.level.depth > self.level.depth:
            array = array.data
        return is_batched(self.level, array)


def _identity(array: Array) -> Array:
    return array


# --- batching of arrays ---------------------------------------------------------------------------


def _batch_array(level: Level, array: Array, dim: int | None) -> BatchedArray:
    """Return an array batched along a dimension; None shares it between all examples."""
    if _is_deeper(array, level):
        return BatchedArray(
            array.level, _batch_array(level, array.data, None if dim is None else dim + 1)
        )
    if array.__class__ is not ndarray:
        xp = namespace(whole(array))
        level.xp = xp if getattr(xp, "waits", False) else level.xp
    ENTERED.xp = level.xp
    if dim is None:
        return BatchedArray(level, array[None], outside=True)
    order = (dim, *[i for i in range(array.ndim) if i != dim])
    data = array if dim == 0 else copy_batch_major(inner_xp(array).permute_dims(array, order))
    return BatchedArray(level, data, outside=True)


def _unbatch_array(level: Level, array: Any, dim: int | None) -> Array:
    """Return the array with the batch axis at a dimension; None sums over the batch."""
    if _is_deeper(array, level):
        return BatchedArray(
            array.level, _unbatch_array(level, array.data, None if dim is None else dim + 1)
        )
    data = broadcast_batch(level, array.data if isinstance(array, BatchedArray) else array[None])
    xp = inner_xp(data)
    if dim is None:
        return xp.sum(data, axis=(0,))
    order = (*range(1, dim + 1), 0, *range(dim + 1, data.ndim))
    return xp.permute_dims(data, order) if dim else data


def _is_deeper(array: Any, level: Level) -> bool:
    """Tell whether an array is batched by a vmap that runs inside the one of `level`."""
    return isinstance(array, BatchedArray) and array.level.depth > level.depth


# --- batching of tensors --------------------------------------------------------------------------


class BatchBoundary(Node):
    """Node of batching (`into`) or of unbatching: each is the adjoint of the other."""

    __slots__ = ("dim", "into", "level")

    def __init__(self, level: Level, edge: Edge, dim: int | None, into: bool) -> None:
        self.level, self.dim, self.into = level, dim, into
        self.edges = (edge,)
        stamp_node(self, 1)

    @property
    def name(self) -> str:
        return "VmapBackward0"

    @property
    def is_shared(self) -> bool:
        """Whether it leads to a tensor from outside, shared by all examples."""
        return self.into and self.dim is None

    def vjp(self, g: Any, run: BackwardPass) -> Sequence[Any]:
        if run.crosses and self.is_shared and not self.level.finished:
            return [g]  # what is outside has a gradient for each example
        interceptor: Any = INTERCEPTOR.get()
        if self.is_shared and getattr(interceptor, "level", None) is self.level:
            raise AutogradError(
                "vmap: a backward pass in a mapped function reached a tensor from outside, whose "
                "gradient is a sum over examples, known only when vmap returns: pass it as an "
                "argument, take grad() or autograd_grad() by it, or call backward() on what vmap "
                "returned"
            )
        if run.xp is None:
            return [(_unbatch_array if self.into else _batch_array)(self.level, g, self.dim)]
        return [(unbatch_tensor if self.into else batch_tensor)(self.level, g, self.dim)]

    def jvp(self, tangents: tuple[Any, ...], xp: Any) -> Any:
        return (batch_tensor if self.into else unbatch_tensor)(self.level, tangents[0], self.dim)


def _across_boundary(level: Level, tensor: Tensor, dim: int | None, into: bool) -> Tensor:
    """Return a batched or unbatched tensor, connected to this one by a `BatchBoundary`."""
    edge, array = current_node(tensor), tensor._array
    node = None if edge is None else BatchBoundary(level, edge, dim, into)
    modes = MODES.get()
    if not into:
        interceptor: Any = INTERCEPTOR.get()
        inside = getattr(interceptor, "level", None) is level
        outer = interceptor.outer if inside else interceptor
        unbatched = intercepted_by(outer, lambda: make(_unbatch_array(level, array, dim), node))
        if modes is not None and modes.explain is not None:
            modes.explain.see_same(tensor, array, unbatched, _array_of(unbatched), node)
        return unbatched
    made: Tensor = object.__new__(Tensor)  # unknown to the outer interceptor
    values = {
        "_array": _batch_array(level, array, dim),
        "_node": node,
        "_grad": None,
        "_view": None,
    }
    for slot, value in values.items():
        SLOTS[slot].__set__(made, value)
    if modes is not None and modes.explain is not None:
        modes.explain.see_same(tensor, array, made, values["_array"], node)
    return made


def batch_tensor(level: Level, tensor: Tensor, dim: int | None) -> Tensor:
    """Return a tensor batched along a dimension; None shares it between all examples."""
    return _across_boundary(level, tensor, dim, True)


def unbatch_tensor(level: Level, tensor: Tensor, dim: int | None) -> Tensor:
    """Return the tensor with the batch axis at a dimension; None sums over the batch."""
    return _across_boundary(level, tensor, dim, False)
