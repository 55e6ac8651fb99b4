"""Trace: records the ops, captures and side effects of a function that runs on symbols."""

from __future__ import annotations

import keyword
import pickle
import random
import re
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np

from chainrule import arguments, pytree
from chainrule.autograd.array_proxy import ArrayProxy
from chainrule.autograd.intercept import INTERCEPTOR, SLOTS, Interceptor, intercepting
from chainrule.autograd.location import user_frame
from chainrule.autograd.node import AccumulateGrad, ErrorNode
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.views import current_node
from chainrule.backend import device_of, ndarray, storage_of
from chainrule.compiler.codegen import runtime
from chainrule.compiler.ir.abstract_eval import DRAW, abstract_eval
from chainrule.compiler.ir.program import ATOMS, Op, Value, every_op
from chainrule.compiler.tracing.discovery import Search
from chainrule.compiler.tracing.execution import reporting
from chainrule.compiler.tracing.found import Found
from chainrule.compiler.tracing.known_elements import KnownElements, checked
from chainrule.compiler.tracing.names import UserLines, argument_names, cell_names
from chainrule.compiler.tracing.object_kinds import generator_state, is_generator
from chainrule.compiler.tracing.size_reads import check_limit, plain
from chainrule.compiler.tracing.symbol import (
    TRACING,
    Symbol,
    address_of,
    outlived_error,
    view_index,
)
from chainrule.compiler.tracing.varying_numbers import NumberLog, known
from chainrule.errors import RAISED, CompileError
from chainrule.interrupts import P, T, call_with
from chainrule.ops.selections import Selection, elements_of
from chainrule.random import draw

# --- active trace ---------------------------------------------------------------------------------


def tracing(trace: Trace, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function with the tensors, arrays and draws of this thread or task traced."""
    variables: dict[ContextVar[Any], Any] = {
        TRACING: trace,
        RAISED: trace.errors,
        draw.WATCHER: trace.draw,
        arguments.WATCHER: trace.memory_of,
        arguments.CREATOR: trace.create,
    }
    return call_with(variables, intercepting, trace, function, *args, **kwargs)


def switched_to(
    trace: Trace | None, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call a function with another trace than the active one, or with none."""
    variables: dict[ContextVar[Any], Any] = {TRACING: trace, INTERCEPTOR: trace}
    return call_with(variables, function, *args, **kwargs)


# --- traces ---------------------------------------------------------------------------------------

_array, _grad, _node = SLOTS["_array"], SLOTS["_grad"], SLOTS["_node"]


class Capture(NamedTuple):
    """A tensor that existed before the trace, and its proxy."""

    tensor: Tensor
    proxy: Tensor
    symbol: Symbol
    value: Value
    found: Any  # its node when the trace began

    @property
    def node(self) -> Any:
        """The node of the tensor within the trace."""
        return _node.__get__(self.proxy)

    @property
    def requires_grad(self) -> bool:
        """Whether operations on the tensor are recorded."""
        return self.node is not None

    @property
    def grads(self) -> tuple[Tensor | None, Tensor | None]:
        """The tensor's `.grad` before the trace, and now."""
        return _grad.__get__(self.tensor), _grad.__get__(self.proxy)


def _hooks_of(leaf: Any) -> list[Callable[..., Any]]:
    """Return the hooks of a leaf, which backward passes inside may call."""
    hooks = leaf.hooks
    kinds = (*hooks.tensor.values(), hooks.pre, hooks.post_accumulate, hooks.post)
    return [hook for kind in kinds for hook in kind.values()]


_ARRAY_TYPES = (ndarray, np.memmap)
"""Array classes without operations of their own."""

_MAX_CONSTANT_BYTES = 1 << 24
"""Size in bytes up to which an array that the function makes of nothing is kept as a constant."""

_RESERVED_NAMES = frozenset(
    [
        *("np", "scipy", "kernels", "native", "slice", "complex", "range", "reversed"),
        *runtime.__all__,
        *keyword.kwlist,
    ]
)
"""Names that generated source uses for other things."""


class Trace(Interceptor):
    """One run of a function on symbols."""

    own: Any = Symbol
    records = True

    def __init__(self, name: str) -> None:
        self.name = f"{name}_" if name in _RESERVED_NAMES else name
        self.origin: object = object()  # also of the traces within it
        self.ops: list[Op] = []
        self.constants: dict[Value, Any] = {}
        self.outside_nodes: list[ErrorNode] = []  # of captured tensors that have a history
        self.captures: dict[int, Capture] = {}  # by the tensor's id, in the order of first use
        self.arrays: list[tuple[Any, Symbol, Value]] = []  # NumPy arrays that are inputs
        self.external: dict[int, Any] = {}  # reachable NumPy arrays, by storage
        self.arguments: frozenset[int] = frozenset()  # ids of the tensors among the arguments
        self.readable: dict[Value, Capture] = {}  # captured tensors that are no variables
        self.masks: dict[int, tuple[Any, Any]] = {}  # arrays and captures read, and their content
        self.elements = KnownElements()
        self.memory_uses: set[str] = set()  # see `order_matters`
        self.lines = UserLines()
        self.errors: list[CompileError] = []  # also those that the function caught
        self.made: list[weakref.ref[Tensor]] = []  # tensors created by the function
        self.loop_nodes: list[Any] = []  # these hold tensors for their backward passes
        self.search = Search()  # what the function reads
        self.array_uses: dict[int, set[tuple[int, int]]] = {}  # instructions, by storage
        self.numbers = NumberLog()  # what is done with numbers that vary
        self._known: dict[int, tuple[Any, Value]] = {}  # constants by the array's id
        self._inputs: dict[int, Symbol] = {}  # of NumPy arrays, by id
        self._views: dict[Any, Any] = {}  # what `view_index` has found
        self.calls: dict[Any, Any] = {}  # what has run, see `repeated_calls`
        self.kinds: dict[Any, object] = {}  # of symbols, there as well

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function under this trace."""
        return tracing(self, function, *args, **kwargs)

    def searching(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function, and search what the code reads that runs."""
        result, complete = reporting(self.search.started, function, *args, **kwargs)
        self.search.complete &= complete
        return result

    def to_symbols(self, arguments: Any) -> Any:
        """Return arguments with symbols in place of NumPy arrays.

        Containers without arrays are returned as they are, since the function may change them.
        """
        return pytree.changed_leaves(arguments, self._leaf_to_symbol)

    def _leaf_to_symbol(self, leaf: Any) -> Any:
        if isinstance(leaf, ndarray) and type(leaf) not in _ARRAY_TYPES:
            raise CompileError(
                f"compile: a {type(leaf).__name__} has operations of its own, which a compiled "
                "function doesn't know: pass numpy.asarray() of it"
            )
        return self._input(leaf) if isinstance(leaf, ndarray) else leaf

    def _input(self, array: Any) -> Symbol:
        """Return the symbol of a NumPy array that is an input of the program."""
        found = self._inputs.get(id(array))
        if found is not None:
            return found
        value = Value(array.shape, array.dtype)
        symbol = self._inputs[id(array)] = Symbol(value)
        symbol.layout, symbol.read_only = array.strides, not array.flags.writeable
        self.arrays.append((array, symbol, value))
        return symbol

    def _external(self, array: Any, base: Any) -> Symbol:
        """Return the symbol of an array that the function can reach: if it can, a view of `base`.

        So rows of a table are slices of one input, not inputs each.
        """
        if id(array) in self._inputs or array.dtype.kind == "b":  # a mask, whose elements count
            return self._input(array)
        writeable = array.flags.writeable, base.flags.writeable
        place = address_of(array), array.shape, array.strides, array.dtype, writeable
        kind = id(base), array is base, *place
        if kind not in self._views:
            self._views[kind] = view_index(array, base)
        index = self._views[kind]
        if index is None:
            return self._input(array)
        key, axes = index
        view: Symbol = self._input(base)[key].transpose(axes).reshape(array.shape)
        return view

    def array(self, array: Any) -> Any:
        """Return an array as a symbol, or as a batched array of symbols."""
        return array if isinstance(array, ArrayProxy) else self.symbol_of(array)

    def symbol_of(self, array: Any) -> Symbol:
        """Return the symbol of an array: an input if the function can reach it, else a constant."""
        if isinstance(array, ndarray) and (key := id(storage_of(array))) in self.external:
            frame = user_frame(sys._getframe(1))
            if frame is not None:
                self.array_uses.setdefault(key, set()).add((id(frame.f_code), frame.f_lasti))
            return self._external(array, self.external[key])
        found = Symbol(self.constant(array))
        found.layout = self.constants[found.value].strides
        return found

    def memory_of(self, array: Any) -> Symbol:
        """Return a view of an array, as the memory of a tensor that is made from it."""
        symbol = array if isinstance(array, Symbol) else self.symbol_of(array)
        return Symbol.view_of(symbol, lambda base: base, lambda base, view: view, symbol.layout)

    def create(self, name: str, nbytes: int, *args: Any) -> Any:
        """Make an array by a function of NumPy: at each call, if it is too large to be kept."""
        if nbytes <= _MAX_CONSTANT_BYTES:
            return getattr(np, name)(*args)
        name = "zeros" if name == "empty" else name  # a program has no values that differ each time
        outs, _ = self.call(f"np.{name}", args, {})
        return Symbol(outs[0])

    @property
    def order_matters(self) -> bool:
        """Whether the program depends on the order of elements in memory.

        The order decides whether a reshaped array is a view, which matters if anything is written
        or an input is returned, and it is the result of `is_contiguous`.
        """
        uses = self.memory_uses
        return "layout" in uses or ("order" in uses and len(uses) > 1)

    # --- tensors ---

    def proxy(self, tensor: Tensor) -> Tensor:
        """Return the proxy of a tensor; a tensor made in this trace is its own."""
        capture = self.captures.get(id(tensor))
        if capture is not None:
            return capture.proxy
        try:
            array = _array.__get__(tensor)
        except AttributeError:  # under construction
            return tensor
        if isinstance(array, ArrayProxy):
            return tensor
        return self.capture(tensor, array).proxy

    def proxy_for_write(self, tensor: Tensor, slot: str, value: Any) -> tuple[Tensor, Any]:
        """Return the tensor whose slot to set, and the value; arrays become symbols."""
        if slot == "_array":
            if not isinstance(value, ArrayProxy):  # a symbol, or a batched array of symbols
                value = self.symbol_of(value)
            if id(tensor) not in self.captures:
                self.made.append(weakref.ref(tensor))
        return self.proxy(tensor), value

    def survivors(self) -> list[Tensor]:
        """Return the tensors made in the trace that are still referenced after it."""
        for node in self.loop_nodes:
            node.release()
        found = [t for reference in self.made if (t := reference()) is not None]
        return list({id(t): t for t in found}.values())

    def capture(self, tensor: Tensor, array: Any) -> Capture:
        """Return the capture of a tensor from outside the trace, with a new proxy."""
        check_on_cpu(array)
        value = Value(array.shape, array.dtype)
        proxy: Tensor = object.__new__(Tensor)
        symbol = Symbol(value)
        symbol.layout, symbol.read_only = array.strides, not array.flags.writeable
        _array.__set__(proxy, symbol)
        _grad.__set__(proxy, _grad.__get__(tensor))
        SLOTS["_view"].__set__(proxy, None)
        edge = self._edge(tensor)
        _node.__set__(proxy, edge)
        capture = self.captures[id(tensor)] = Capture(tensor, proxy, symbol, value, edge)
        if edge is None and id(tensor) not in self.arguments:
            self.readable[value] = capture
        if type(edge) is AccumulateGrad and edge.hooks is not None:
            self.search.visit(*_hooks_of(edge))
        return capture

    def finish(self, result: Any) -> Any:
        """Return the result of the function.

        Bring values and nodes that outlive the function up to date, while ops can be recorded.

        Returned tensors stop being views, so that they don't keep their bases alive. The call's own
        node leads on to the graphs outside.
        """
        for node in self.outside_nodes:
            node.edges = ()
        leaves = [leaf for _, leaf in pytree.leaves(result)]
        if any([isinstance(leaf, Selection) for leaf in leaves]):
            result = tracing(self, pytree.map_leaves, result, elements_of)
            leaves = [leaf for _, leaf in pytree.leaves(result)]
        tensors: list[Any] = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        tensors += [_grad.__get__(self.proxy(tensor)) for tensor in tensors]
        for capture in list(self.captures.values()):
            before, after = capture.grads
            tensors.append(None if after is before else after)
        tracing(self, self._finish, leaves, tensors)
        return result

    def _finish(self, leaves: list[Any], tensors: list[Tensor | None]) -> None:
        for leaf in leaves:
            _ = leaf.value if isinstance(leaf, Symbol) else None
        given = {capture.value for capture in self.captures.values()}
        if any(isinstance(leaf, Tensor) and leaf._array.value in given for leaf in leaves):
            self.memory_uses.add("returned")  # contiguous() returns its input, or a copy
        for tensor in tensors:
            if tensor is not None and self.proxy(tensor) is tensor:
                current_node(tensor)
                SLOTS["_view"].__set__(tensor, None)
        for reference in list(self.made):
            if (alive := reference()) is not None:
                _ = _array.__get__(alive).value

    def _edge(self, tensor: Tensor) -> Any:
        """Return the node of a captured leaf; of a non-leaf one that raises in a backward pass."""
        node = switched_to(None, current_node, tensor)
        if node is None or type(node) is AccumulateGrad:
            return node
        found = ErrorNode(
            "the graph of a tensor that was made outside a compiled function can't be walked "
            "inside: detach() it, make it inside, or call backward() outside",
            (node,),
        )
        self.outside_nodes.append(found)
        return found

    def constant(self, array: Any) -> Value:
        """Return the value of a constant array."""
        known = self._known.get(id(array))
        if known is not None:
            return known[1]
        check_on_cpu(array)
        array = np.asarray(array)
        value = Value(array.shape, array.dtype)
        self._known[id(array)] = array, value
        self.constants[value] = array
        return value

    def known(self, array: Any, of_tensors: bool = True) -> Any:
        """Return the array of a symbol with known elements, else None; guards check the content.

        These may depend on tensors that the function reaches by name, unless `of_tensors` is False.
        """
        if isinstance(array, Symbol):
            return self.elements.of(self, array.value, of_tensors)
        return checked(self, array)

    # --- ops ---

    def call(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Value, ...], type | None]:
        """Record an op; return its results, and the container that the function returns."""
        args = self.numbers.operands(name, args)
        args = tuple([self._to_values(arg) for arg in args])
        if kwargs:
            kwargs = {key: self._to_values(arg) for key, arg in kwargs.items()}
        found = abstract_eval(name, args, kwargs)
        outs = tuple([Value(shape, dtype) for shape, dtype in found.types])
        for value in outs:
            check_limit(value.shape)
        self.append([Op(name, args, kwargs, outs)])
        return outs, found.container

    def append(self, ops: list[Op]) -> None:
        """Append ops that the present instruction of the user makes."""
        self.ops += ops
        if ops:
            self.lines.annotate(ops, sys._getframe(1))

    def draw(
        self, generator: Any, method: Any, args: tuple[Any, ...], settings: dict[str, Any]
    ) -> Symbol:
        """Record a draw of random numbers."""
        (drawn,), _ = self.call(DRAW, (generator, method, *args), settings)
        return Symbol(drawn)

    def _to_values(self, tree: Any) -> Any:
        """Return arguments with values in place of symbols, arrays and tensors."""
        kind = type(tree)
        if kind in ATOMS or kind is Value:
            return tree
        if kind is not Symbol and isinstance(tree, Tensor):
            tree = tree._array
            kind = type(tree)
        if kind is Symbol or isinstance(tree, Symbol):
            if tree._origin is not self.origin and tree.outlived:
                raise outlived_error()
            return tree._value if tree._base is None else tree.value
        if isinstance(tree, ndarray):
            return self.symbol_of(tree).value
        if kind is tuple:
            return tuple([self._to_values(item) for item in tree])
        if isinstance(tree, (tuple, list)):
            items = [self._to_values(item) for item in tree]
            return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
        if isinstance(tree, slice):
            parts = (tree.start, tree.stop, tree.step)
            return slice(*[plain(known(part)) for part in parts])
        return plain(known(tree))


def check_on_cpu(array: Any) -> None:
    """Raise for an array of a device, or of another library."""
    if not isinstance(array, ndarray | np.generic) and hasattr(array, "device"):
        raise CompileError(
            f"compile: expected tensors on the CPU, got one on {device_of(array)}: call the "
            "function itself, which runs on any device, or move its tensors with .cpu()"
        )


def ordered_captures(trace: Trace, args: Any, kwargs: Any) -> list[Capture]:
    """Return the captured tensors: arguments in their order, then the others."""
    order = {id(leaf): i for i, (_, leaf) in enumerate(pytree.leaves((args, kwargs)))}
    return sorted(trace.captures.values(), key=lambda c: order.get(id(c.tensor), len(order)))


def overlapping(trace: Trace) -> tuple[Value, Value] | None:
    """Return two inputs that share memory of which at least one is written to, else None."""
    inputs = [(_array.__get__(c.tensor), c.symbol, c.value) for c in trace.captures.values()]
    by_storage: dict[int, tuple[Symbol, Value]] = {}
    for array, symbol, value in [*inputs, *trace.arrays]:
        other, first = by_storage.setdefault(id(storage_of(array)), (symbol, value))
        if other is not symbol and (other.writes or symbol.writes):
            return first, value
    return None


def _identifier(path: str) -> str:
    """Return a path as a name: ``layers[0].weight`` as ``layers_0_weight``."""
    name = re.sub(r"\W+", "_", path).strip("_").lstrip("0123456789_")
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME // 2].rstrip("_")


_LONGEST_NAME = 60
"""Number of characters from which the name of a value is shortened, so that it fits on a line."""


def name_inputs(trace: Trace, function: Any, args: Any, kwargs: Any, found: list[Found]) -> None:
    """Name the inputs after the variables of the function, or after the paths to them."""
    names: dict[int, str] = {}
    for name, value in argument_names(function, args, kwargs):
        for path, leaf in pytree.leaves(value):
            names.setdefault(id(leaf), _identifier(name + path))
    cells = cell_names(function)
    space = getattr(getattr(function, "__func__", function), "__globals__", None)
    inputs = {*trace.captures, *(id(array) for array, _, _ in trace.arrays)}
    found = [item for item in found if id(item.value) in inputs]
    own = [item for item in found if id(item.scope) in cells or item.scope is space]
    for item in (*own, *sorted(found, key=lambda item: len(item.path))):
        path = item.path.removeprefix(".value")
        if path.startswith(".cell_contents"):
            rest = path.removeprefix(".cell_contents")
            path = rest if "." in rest else cells.get(id(item.scope), "") + rest
        names.setdefault(id(item.value), _identifier(path))
    for capture in trace.captures.values():
        capture.value.hint = names.get(id(capture.tensor), "")
        before, _ = capture.grads
        if before is not None and id(before) in trace.captures:
            names[id(before)] = f"{capture.value.hint or 'leaf'}_grad"
    for array, _, value in trace.arrays:
        value.hint = names.get(id(array), "")
    for place, number in trace.numbers.places:
        names.setdefault(id(number), _identifier(place.path))
    for number, _, value in trace.numbers.inputs.values():
        value.hint = names.get(id(number), "")


# --- random generators ----------------------------------------------------------------------------


class GeneratorStates:
    """The random generators that a function can reach, and their states before the trace."""

    def __init__(self, arguments: Iterable[Any]) -> None:
        self._states: list[tuple[Any, bytes]] = []
        for value in arguments:
            if is_generator(value):
                self.add(value)

    def add(self, generator: Any) -> None:
        """Keep the state of a generator that was found."""
        if not any(known is generator for known, _ in self._states):
            self._states.append((generator, _state(generator)))

    def check(self, ops: list[Op]) -> None:
        """Raise if the function called a generator's method, or drew from one that it made."""
        for generator, before in self._states:
            if _state(generator) != before:
                raise CompileError(
                    f"a compiled function called a method of {_name(generator)}, whose "
                    "numbers would be the same at every call: draw with cr.randn(…, rng=rng) and "
                    "its kin, or pass the numbers as an argument"
                )
        draws = [op for op in every_op(ops) if op.function == DRAW]
        times = Counter(id(op.args[0]) for op in draws)
        for op in draws:
            if sys.getrefcount(op.args[0]) - _CALL_REFERENCES == times[id(op.args[0])]:
                raise CompileError(
                    "a compiled function drew from a generator that it had made itself, which "
                    "would go on at the next call instead of beginning anew: make it outside"
                )


def _state(generator: Any) -> bytes:
    return pickle.dumps(generator_state(generator))


def _name(generator: Any) -> str:
    shared = {id(np.random.mtrand._rand): "np.random", id(random._inst): "random"}
    if id(generator) in shared:
        return f"the module {shared[id(generator)]}"
    module = type(generator).__module__.removesuffix(".mtrand").removesuffix("._generator")
    return f"a {module}.{type(generator).__name__}"


_PROBE = (object(),)
_CALL_REFERENCES = sys.getrefcount(_PROBE[0]) - 1
"""Number of references that a call of `getrefcount` itself holds."""
