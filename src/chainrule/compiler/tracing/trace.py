"""A trace: what happens while a function runs once on symbols, and what it changed."""

from __future__ import annotations

import dis
import keyword
import pickle
import re
import sys
import weakref
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from chainrule import arguments, pytree
from chainrule.autograd.intercept import SLOTS, intercepted_by, intercepting
from chainrule.autograd.location import locate, user_frame
from chainrule.autograd.node import AccumulateGrad, ErrorNode
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.views import current_node
from chainrule.backend import ndarray, storage_of
from chainrule.compiler.codegen import runtime
from chainrule.compiler.guards.discovery import Found, is_generator
from chainrule.compiler.guards.names import named_values
from chainrule.compiler.ir.abstract_eval import DRAW, abstract_eval
from chainrule.compiler.ir.program import Op, Value, every_op
from chainrule.compiler.tracing.symbol import TRACING, Symbol
from chainrule.errors import RAISED, CompileError
from chainrule.random import draw

# --- overlay --------------------------------------------------------------------------------------
#
# While a function is traced, the trace answers for tensors, and sees arrays and draws.

if TYPE_CHECKING:
    pass


@contextmanager
def tracing(trace: Trace) -> Iterator[None]:
    """Let `trace` answer for all tensors, in this thread or task."""
    token, errors = TRACING.set(trace), RAISED.set(trace.errors)
    drawn, made = draw.WATCHER.set(trace.draw), arguments.WATCHER.set(trace.seen)
    try:
        with intercepting(trace):
            yield
    finally:
        arguments.WATCHER.reset(made)
        draw.WATCHER.reset(drawn)
        RAISED.reset(errors)
        TRACING.reset(token)


@contextmanager
def within(trace: Trace | None) -> Iterator[None]:
    """While one traces, let another trace answer, or nobody."""
    token = TRACING.set(trace)
    try:
        with intercepted_by(trace):
            yield
    finally:
        TRACING.reset(token)


# --- trace ----------------------------------------------------------------------------------------

_array, _grad, _node = SLOTS["_array"], SLOTS["_grad"], SLOTS["_node"]


class Capture(NamedTuple):
    """A tensor that existed before the trace, and the one that stands for it."""

    tensor: Tensor
    proxy: Tensor
    symbol: Symbol
    value: Value
    found: Any  # its node as the trace began

    @property
    def node(self) -> Any:
        """The tensor's node, as the trace has it."""
        return _node.__get__(self.proxy)

    @property
    def requires_grad(self) -> bool:
        """Whether operations on the tensor are recorded."""
        return self.node is not None

    @property
    def grads(self) -> tuple[Tensor | None, Tensor | None]:
        """The tensor's `.grad` before the trace, and after it."""
        return _grad.__get__(self.tensor), _grad.__get__(self.proxy)


_ARRAYS = (ndarray, np.memmap)
"""NumPy's arrays that compute as plain ones do."""

_TAKEN = frozenset(["np", "kernels", *runtime.__all__, *keyword.kwlist])
"""What programs know by other names."""


class Trace:
    """One run of a function on symbols."""

    def __init__(self, name: str) -> None:
        self.name = f"{name}_" if name in _TAKEN else name
        self.ops: list[Op] = []
        self.constants: dict[Value, Any] = {}
        self.captures: dict[int, Capture] = {}  # by the tensor's id, in the order first used
        self.arrays: list[tuple[Any, Symbol, Value]] = []  # NumPy arrays among the arguments
        self.outside: dict[int, Any] = {}  # NumPy arrays that the function can get at, by storage
        self.masks: list[tuple[Any, Any]] = []  # those looked at, and what they held
        self.asked: set[str] = set()  # what of memory mattered: see `order_matters`
        self.naming = True  # take names from the user's variables
        self.errors: list[CompileError] = []  # also those that the function has caught
        self.made: list[weakref.ref[Tensor]] = []  # tensors that were made
        self.held: list[Any] = []  # nodes of loops, which hold tensors for their backward passes
        self._known: dict[int, tuple[Any, Value]] = {}  # constants by the array's id
        self._hinted: tuple[Any, list[Value]] = (None, [])

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function with this trace answering for all tensors."""
        with tracing(self):
            return function(*args, **kwargs)

    def given(self, arguments: Any) -> Any:
        """Return arguments with symbols in the place of NumPy arrays.

        Containers of none are the caller's: the function may change them.
        """
        parts = pytree.children(arguments)
        if parts is None:
            return self._given(arguments)
        given = [self.given(part) for _, part in parts]
        if all(new is part for new, (_, part) in zip(given, parts, strict=True)):
            return arguments
        return pytree.remade(arguments, given)

    def _given(self, leaf: Any) -> Any:
        if isinstance(leaf, ndarray) and type(leaf) not in _ARRAYS:
            raise CompileError(
                f"compile: a {type(leaf).__name__} has operations of its own, which a compiled "
                "function doesn't know: pass numpy.asarray() of it"
            )
        return self._input(leaf) if isinstance(leaf, ndarray) else leaf

    def _input(self, array: Any) -> Symbol:
        """Return what stands for a NumPy array from outside."""
        for known, symbol, _ in self.arrays:
            if known is array:
                return symbol
        value = Value(array.shape, array.dtype)
        symbol = Symbol(value)
        symbol.layout, symbol.locked = array.strides, not array.flags.writeable
        self.arrays.append((array, symbol, value))
        return symbol

    def array(self, array: Any) -> Any:
        """Return an array as a symbol."""
        return array if array.__class__ is Symbol else self.symbol_of(array)

    def symbol_of(self, array: Any) -> Symbol:
        """Return what stands for an array: what the function can get at may change until later."""
        if array.__class__ is ndarray and id(storage_of(array)) in self.outside:
            return self._input(array)
        found = Symbol(self.constant(array))
        found.layout = self.constants[found.value].strides
        return found

    def seen(self, array: Any) -> Symbol:
        """Return what shows an array's memory, for a tensor that is made of it."""
        symbol = array if isinstance(array, Symbol) else self.symbol_of(array)
        return Symbol.region(symbol, lambda whole: whole, lambda whole, part: part, symbol.layout)

    @property
    def order_matters(self) -> bool:
        """Whether another order of elements in memory may make another program.

        It decides whether a reshaped array is a view, which matters where something is written, or
        what was given is returned; and it is what `is_contiguous` says.
        """
        asked = self.asked
        return "layout" in asked or ("order" in asked and len(asked) > 1)

    # --- tensors ---

    def proxy(self, tensor: Tensor) -> Tensor:
        """Return what stands for a tensor: itself, if it was made in this trace."""
        capture = self.captures.get(id(tensor))
        if capture is not None:
            return capture.proxy
        try:
            array = _array.__get__(tensor)
        except AttributeError:  # it's being made
            return tensor
        if array.__class__ is Symbol:
            return tensor
        return self.capture(tensor, array).proxy

    def proxy_for_write(self, tensor: Tensor, slot: str, value: Any) -> tuple[Tensor, Any]:
        """Return where to set a slot, and to what: new tensors hold symbols from the start."""
        if slot == "_array":
            if value.__class__ is not Symbol:
                value = self.symbol_of(value)
            if id(tensor) not in self.captures:
                self.made.append(weakref.ref(tensor))
        return self.proxy(tensor), value

    def survivors(self) -> list[Tensor]:
        """Return the tensors that were made and that somebody holds, after the run."""
        for node in self.held:
            node.release()
        found = [t for reference in self.made if (t := reference()) is not None]
        return list({id(t): t for t in found}.values())

    def capture(self, tensor: Tensor, array: Any) -> Capture:
        """Make the tensor that stands for one from outside."""
        if array.__class__ is not ndarray:
            raise CompileError(
                f"compile: expected tensors on the CPU, got one of {type(array).__name__}"
            )
        value = Value(array.shape, array.dtype)
        proxy: Tensor = object.__new__(Tensor)
        symbol = Symbol(value)
        symbol.layout, symbol.locked = array.strides, not array.flags.writeable
        _array.__set__(proxy, symbol)
        _grad.__set__(proxy, _grad.__get__(tensor))
        SLOTS["_view"].__set__(proxy, None)
        edge = self._edge(tensor)
        _node.__set__(proxy, edge)
        capture = self.captures[id(tensor)] = Capture(tensor, proxy, symbol, value, edge)
        return capture

    def settle(self, result: Any) -> None:
        """Bring what outlives the function up to date, as long as lines can be recorded.

        What it returns is let go of as a view, so that what it was a view of doesn't live on.
        """
        leaves = [leaf for _, leaf in pytree.leaves(result)]
        tensors: list[Any] = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        tensors += [_grad.__get__(self.proxy(tensor)) for tensor in tensors]
        for capture in list(self.captures.values()):
            before, after = capture.grads
            tensors.append(None if after is before else after)
        with tracing(self):
            for leaf in leaves:
                _ = leaf.value if isinstance(leaf, Symbol) else None
            given = {capture.value for capture in self.captures.values()}
            if any(isinstance(leaf, Tensor) and leaf._array.value in given for leaf in leaves):
                self.asked.add("returned")  # itself, or its copy: contiguous() chooses by order
            for tensor in tensors:
                if tensor is not None and self.proxy(tensor) is tensor:
                    current_node(tensor)
                    SLOTS["_view"].__set__(tensor, None)
            for reference in list(self.made):
                if (alive := reference()) is not None:
                    _ = _array.__get__(alive).value

    def hooks(self) -> list[Callable[..., Any]]:
        """Return the hooks that passes inside may have called at leaves from outside."""
        found = [c.node.hooks for c in self.captures.values() if type(c.node) is AccumulateGrad]
        kinds = [
            kind
            for h in found
            if h is not None
            for kind in (*h.tensor.values(), h.pre, h.post_accumulate, h.post)
        ]
        return [hook for kind in kinds for hook in kind.values()]

    def _edge(self, tensor: Tensor) -> Any:
        """Return a leaf's own node; where history begins outside, one that no pass gets through."""
        with within(None):
            node = current_node(tensor)
        if node is None or type(node) is AccumulateGrad:
            return node
        return ErrorNode(
            "the graph of a tensor that was made outside a compiled function can't be walked "
            "inside: detach() it, make it inside, or call backward() outside",
            (),
        )

    def constant(self, array: Any) -> Value:
        """Return the value of an array that is the same at every call."""
        known = self._known.get(id(array))
        if known is not None:
            return known[1]
        array = np.asarray(array)
        value = Value(array.shape, array.dtype)
        self._known[id(array)] = array, value
        self.constants[value] = array
        return value

    def known(self, array: Any) -> Any:
        """Return an array whose elements have to be known, or None; they are asked for from now."""
        if isinstance(array, Symbol):
            outer = next((a for a, _, v in self.arrays if v is array.value), None)
            if outer is None:
                return self.constants.get(array.value)
            array = outer if id(storage_of(outer)) in self.outside else None
        if array is not None and id(storage_of(array)) in self.outside:
            self.masks.append((array, array.copy()))
        return array

    # --- lines ---

    def call(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Value, ...], type | None]:
        """Record a call; return what comes out, and the kind of sequence it comes in."""
        args = tuple([self._plain(arg) for arg in args])
        kwargs = {key: self._plain(arg) for key, arg in kwargs.items()}
        found = abstract_eval(name, args, kwargs)
        outs = tuple([Value(shape, dtype) for shape, dtype in found.types])
        op = Op(name, args, kwargs, outs)
        self._place(op)
        self.ops.append(op)
        return outs, found.kind

    def draw(
        self, generator: Any, method: Any, args: tuple[Any, ...], settings: dict[str, Any]
    ) -> Symbol:
        """Record a draw of random numbers."""
        (drawn,), _ = self.call(DRAW, (generator, method, *args), settings)
        return Symbol(drawn)

    def _plain(self, tree: Any) -> Any:
        """Return arguments with values in the place of symbols, arrays and tensors."""
        if isinstance(tree, Symbol):
            return tree.value
        if isinstance(tree, ndarray):
            return self.symbol_of(tree).value
        if isinstance(tree, Tensor):
            return tree._array.value
        if isinstance(tree, tuple | list):
            items = [self._plain(item) for item in tree]
            return type(tree)(*items) if hasattr(tree, "_fields") else type(tree)(items)
        return tree

    def _place(self, op: Op) -> None:
        """Note the user's line, and the name that it gives to what comes out."""
        frame = user_frame(sys._getframe(3))
        if frame is None:
            return
        op.location = _located(frame.f_code, frame.f_lasti)
        name = _assigned(frame.f_code, frame.f_lasti)
        at = (id(frame), frame.f_lasti)
        if name is None or not name.isidentifier() or not self.naming:
            return
        if self._hinted[0] == at:  # one call of the user's made several lines: the last has it
            for value in self._hinted[1]:
                value.hint = ""
        self._hinted = at, list(op.outs)
        op.outs[0].hint = name


_located = lru_cache(1024)(locate)


def _assigned(code: CodeType, instruction: int) -> str | None:
    """Return the name of the variable that takes the result of an instruction, if one does."""
    offsets, stores = _stores(code)
    following = bisect_right(offsets, instruction)
    return stores.get(offsets[following]) if following < len(offsets) else None


@cache
def _stores(code: CodeType) -> tuple[list[int], dict[int, str]]:
    """Return where the instructions of a function begin, and which of them set a variable."""
    found = list(dis.get_instructions(code))
    stores = {i.offset: i.argval for i in found if i.opname in _STORES}
    return [i.offset for i in found], stores


_STORES = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")


def in_order(trace: Trace, args: Any, kwargs: Any) -> list[Capture]:
    """Return the tensors from outside: arguments as they were given, then the others."""
    order = {id(leaf): i for i, (_, leaf) in enumerate(pytree.leaves((args, kwargs)))}
    return sorted(trace.captures.values(), key=lambda c: order.get(id(c.tensor), len(order)))


def overlapping(trace: Trace) -> tuple[Value, Value] | None:
    """Return two inputs that share memory of which one is written to, if there are such."""
    inputs = [(_array.__get__(c.tensor), c.symbol, c.value) for c in trace.captures.values()]
    by_storage: dict[int, tuple[Symbol, Value]] = {}
    for array, symbol, value in [*inputs, *trace.arrays]:
        other, first = by_storage.setdefault(id(storage_of(array)), (symbol, value))
        if other is not symbol and (other.writes or symbol.writes):
            return first, value
    return None


def _identifier(path: str) -> str:
    """Return a path as a name: ``layers[0].weight`` as ``layers_0_weight``."""
    return re.sub(r"\W+", "_", path).strip("_").lstrip("0123456789_")


def name_inputs(trace: Trace, function: Any, args: Any, kwargs: Any, found: list[Found]) -> None:
    """Give the program's inputs the names that the function has for them, or ways to them."""
    names: dict[int, str] = {}
    for name, value in named_values(function, args, kwargs):
        for path, leaf in pytree.leaves(value):
            names.setdefault(id(leaf), _identifier(name + path))
    for item in sorted(found, key=lambda item: len(item.path)):
        path = item.path.removeprefix(".cell_contents").removeprefix(".value")
        names.setdefault(id(item.value), _identifier(path))
    for capture in trace.captures.values():
        capture.value.hint = names.get(id(capture.tensor), "")
        before, _ = capture.grads
        if before is not None and id(before) in trace.captures:
            names[id(before)] = f"{capture.value.hint or 'leaf'}_grad"
    for array, _, value in trace.arrays:
        value.hint = names.get(id(array), "")


# --- draws ----------------------------------------------------------------------------------------
#
# Generators of random numbers in a trace: which may be recorded, and who else drew from them.


class Watched:
    """The generators that a function can get at, and how far they had come before it was traced."""

    def __init__(self, args: Any, kwargs: Any, found: Iterable[Found]) -> None:
        leaves = [leaf for _, leaf in pytree.leaves([args, kwargs])]
        values = [*leaves, *(item.value for item in found)]
        self._states = [(g, _state(g)) for g in values if is_generator(g)]

    def check(self, ops: list[Op]) -> None:
        """Raise if the function drew by a generator's own method, or from one that it made."""
        for generator, before in self._states:
            if _state(generator) != before:
                raise CompileError(
                    f"a compiled function called a method of a {_name(generator)}, whose "
                    "numbers would be the same at every call: draw with cr.randn(…, rng=rng) and "
                    "its kin, or pass the numbers as an argument"
                )
        draws = [op for op in every_op(ops) if op.function == DRAW]
        times = Counter(id(op.args[0]) for op in draws)
        for op in draws:
            if sys.getrefcount(op.args[0]) - _PASSING == times[id(op.args[0])]:
                raise CompileError(
                    "a compiled function drew from a generator that it had made itself, which "
                    "would go on at the next call in the place of beginning anew: make it outside"
                )


def _state(generator: Any) -> bytes:
    if hasattr(generator, "bit_generator"):
        return pickle.dumps(generator.bit_generator.state)
    state = getattr(generator, "get_state", None) or generator.getstate  # NumPy's or Python's
    return pickle.dumps(state())


def _name(generator: Any) -> str:
    module = type(generator).__module__.removesuffix(".mtrand").removesuffix("._generator")
    return f"{module}.{type(generator).__name__}"


_PROBE = (object(),)
_PASSING = sys.getrefcount(_PROBE[0]) - 1
"""How many references a call of getrefcount has of its own."""
