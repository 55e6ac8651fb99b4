"""One signature of a compiled function: what has to hold for it, its program, what a call changes.

The check and the call are one function, written as source: a call costs a few comparisons above the
program itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.intercept import INTERCEPTOR, SLOTS
from chainrule.autograd.modes import MODES
from chainrule.autograd.node import AccumulateGrad, NodeOutput
from chainrule.autograd.tensor import Tensor, default_dtype, make
from chainrule.autograd.versions import record_write
from chainrule.autograd.views import current_node
from chainrule.backend import ndarray, storage_of
from chainrule.compiler.backward import recorded
from chainrule.compiler.codegen.run import defined
from chainrule.compiler.guards.discovery import Found
from chainrule.compiler.tracing.run import Traced
from chainrule.compiler.tracing.trace import Capture

MISS: Any = object()
"""What a signature returns for a call that is not its own."""


_READ = 1 << 14
"""So many bytes of an array that no operation used are compared at each call."""


def _firsts(*arrays: Any) -> list[int]:
    """Return for each array which is the first one of its memory."""
    storages = [id(storage_of(array)) for array in arrays]
    return [storages.index(storage) for storage in storages]


class Guards:
    """Writes the source of what has to hold, and where the tensors of the trace are found."""

    def __init__(self, call: Traced, args: Any, kwargs: Any) -> None:
        self.trace, self.contents = call.trace, call.contents
        self.scope: dict[str, Any] = {
            "MISS": MISS,
            "ANSWERER": INTERCEPTOR,
            "MODES": MODES,
            "default_dtype": default_dtype,
            "Tensor": Tensor,
            "ndarray": ndarray,
            "np": np,
            "make": make,
            "record_write": record_write,
            "current_node": current_node,
            "storage_of": storage_of,
            "firsts": _firsts,
            "Leaf": AccumulateGrad,
            "hooked": hooked,
            "Port": NodeOutput,
            "recorded": recorded,
        }
        self.rows: list[str] = []
        self.where: dict[int, str] = {}  # how to get at each captured tensor
        self.arrays: dict[int, str] = {}  # and at each array among the arguments
        self._held: dict[int, str] = {}
        self._mode()
        self._arguments(args, kwargs)
        self._surroundings(call.found)
        self._captures()
        self._outside()

    def hold(self, value: Any) -> str:
        """Return a name by which the source knows an object."""
        name = self._held.get(id(value))
        if name is None:
            name = self._held[id(value)] = f"_{len(self._held)}"
            self.scope[name] = value
        return name

    def key(self, key: Any) -> str:
        """Return the source of a dict's key: itself where that can be read back."""
        return repr(key) if type(key) in (str, int, bool, bytes) else self.hold(key)

    def unless(self, condition: str) -> None:
        """Add what has to hold."""
        self.rows.append(f"if not ({condition}): return MISS")

    def _mode(self) -> None:
        self.unless("ANSWERER.get() is None")  # in a trace, the function itself is traced on
        modes = MODES.get()
        if modes is None:
            self.unless("MODES.get() is None")
        else:
            held = self.hold(modes.in_force())
            self.unless(f"(modes := MODES.get()) and modes.in_force() == {held}")
        self.unless(f"default_dtype() is {self.hold(default_dtype())}")

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.unless(f"len(args) == {len(args)}")
        self.unless(f"kwargs.keys() == {self.hold(set(kwargs))}" if kwargs else "not kwargs")
        for i, arg in enumerate(args):
            self._argument(f"args[{i}]", arg)
        for name, arg in kwargs.items():
            self._argument(f"kwargs[{name!r}]", arg)

    def _argument(self, path: str, value: Any) -> None:
        parts = pytree.children(value)
        if parts is not None:
            self.unless(f"{path}.__class__ is {self.hold(type(value))}")
            if isinstance(value, dict):
                self.unless(f"list({path}) == {self.hold(list(value))}")
                parts = [(f"[{self.key(key)}]", part) for key, part in value.items()]
            elif isinstance(value, list | tuple):
                self.unless(f"len({path}) == {len(value)}")
            for step, part in parts:
                self._argument(path + step, part)
        elif isinstance(value, Tensor):
            name = f"t{len(self.where)}"
            self.rows.append(f"{name} = {path}")
            if id(value) in self.where:
                self.unless(f"{name} is {self.where[id(value)]}")
            else:
                self.unless(f"{name}.__class__ is {self.hold(type(value))}")
                self.where[id(value)] = name
        elif isinstance(value, ndarray):
            name = f"a{len(self.arrays)}"
            self.rows.append(f"{name} = {path}")
            self._array(name, value)
            self.arrays[id(value)] = name
        elif isinstance(value, int | float | complex | str | bytes | type(None)):
            self._alike(path, value)
        else:
            self.unless(f"{path} is {self.hold(value)}")

    def _alike(self, path: str, value: Any) -> None:
        """Ask for an equal value of the same type: 1, 1.0 and True are equal, 0.0 and -0.0 too."""
        self.unless(f"{path}.__class__ is {self.hold(type(value))}")
        is_nan = bool(value != value)
        self.unless(f"{path} != {path}" if is_nan else f"{path} == {self.hold(value)}")
        if isinstance(value, float | complex) and value == 0:
            self.unless(f"repr({path}) == {repr(value)!r}")

    def _array(self, name: str, array: Any) -> None:
        dtype = self.hold(array.dtype)
        self.unless(
            f"{name}.__class__ is {self.hold(type(array))} and {name}.shape == {array.shape} and "
            f"({name}.dtype is {dtype} or {name}.dtype == {dtype})"
        )

    def _surroundings(self, found: list[Found]) -> None:
        """Ask whether the names that the function uses still mean the same."""
        for item in found:
            path = self.hold(item.scope) + item.path
            if item.form:
                self.unless(item.form.format(path, self.hold(item.value)))
            elif not item.path:  # it can't be another one
                continue
            elif item.alike:
                self._alike(path, item.value)
            elif not isinstance(item.value, Tensor) or id(item.value) in self.trace.captures:
                self.unless(f"{path} is {self.hold(item.value)}")

    def _captures(self) -> None:
        """Ask whether the tensors are of the types they had, and get at their arrays."""
        grads = {
            id(before): capture
            for capture in self.trace.captures.values()
            if (before := capture.grads[0]) is not None
        }
        for key, capture in list(self.trace.captures.items()):
            if key not in self.where and key not in grads:
                self.where[key] = self.hold(capture.tensor)
        for key, capture in self.trace.captures.items():
            owner = grads.get(key)
            if key not in self.where and owner is not None:
                name = self.where[key] = f"g{len(self.where)}"
                self.rows.append(f"{name} = {self.name(owner)}._grad")
                self.unless(f"{name} is not None")
            self._captured(capture)
        names = list(dict.fromkeys(self.where.values()))
        if len(names) > 1:  # what the trace saw as several tensors is not one now
            self.unless(f"len({{{', '.join(f'id({n})' for n in names)}}}) == {len(names)}")

    def memory(self, record_write: bool) -> None:
        """Ask for the order of elements where it matters, and, if something is written to, whether
        the arrays still are memory of their own.
        """
        captures, given = self.trace.captures.values(), [a for a, _, _ in self.trace.arrays]
        arrays = [SLOTS["_array"].__get__(c.tensor) for c in captures] + given
        names = [self.array(c) for c in captures] + [self.arrays[id(a)] for a in given]
        for name, array in zip(names, arrays, strict=True):
            if self.trace.order_matters and array.size > 1:
                contiguous = array.flags.c_contiguous
                order = "flags.c_contiguous" if contiguous else f"strides == {array.strides}"
                self.unless(f"{name}.{order}")
        if record_write and len(arrays) > 1:
            found = _firsts(*arrays)
            if len(set(found)) == len(found):
                storages = ", ".join(f"id(storage_of({name}))" for name in names)
                self.unless(f"len({{{storages}}}) == {len(found)}")
            else:
                self.unless(f"firsts({', '.join(names)}) == {found}")

    def _outside(self) -> None:
        """Get at the NumPy arrays that are found by name, and ask for elements that were seen."""
        for array, _, _ in self.trace.arrays:
            name = self.arrays.setdefault(id(array), self.hold(array))
            if id(storage_of(array)) in self.trace.outside and name != self.hold(array):
                self.unless(f"{name} is {self.hold(array)}")  # an argument, and found by name
        used = {id(storage_of(array)) for array, _, _ in self.trace.arrays}
        for storage, array in self.trace.outside.items():
            if storage not in used and array.nbytes <= _READ:  # if at all, Python has looked at it
                self.unless(f"{self.hold(array)}.tobytes() == {self.hold(self.contents[storage])}")
        for array, before in self.trace.masks:
            self.unless(f"np.array_equal({self.hold(array)}, {self.hold(before)})")

    def name(self, capture: Capture) -> str:
        """Return the variable that holds a tensor."""
        return self.where[id(capture.tensor)]

    def edge(self, capture: Capture) -> str:
        """Return the variable that holds its node."""
        return f"{self.name(capture)}_n"

    def array(self, capture: Capture) -> str:
        """Return the variable that holds its array."""
        return f"{self.name(capture)}_a"

    def _captured(self, capture: Capture) -> None:
        name, array = self.name(capture), self.array(capture)
        self.rows.append(f"{array} = {name}._array")
        self._array(array, SLOTS["_array"].__get__(capture.tensor))
        node = self.edge(capture)
        self.rows.append(f"{node} = {name}._node if {name}._view is None else current_node({name})")
        if not capture.requires_grad:
            self.unless(f"{node} is None")
            return
        leaf = type(capture.node) is AccumulateGrad
        self.unless(f"{node} is not None and ({node}.__class__ is Leaf) is {leaf}")
        if leaf:
            before = hooked(capture.node)
            quick = f"{node}.hooks is None or " if before == hooked(None) else ""
            self.unless(f"{quick}hooked({node}) == {before}")
            grad, _ = capture.grads
            self.unless(f"{name}._grad is {'' if grad is None else 'not '}None")


def hooked(node: Any) -> tuple[int, ...]:
    """Return the numbers of the hooks that a pass calls at a node."""
    hooks = None if node is None else node.hooks
    if hooks is None:
        return ()
    kinds = (*hooks.tensor.values(), hooks.pre, hooks.post_accumulate, hooks.post)
    return tuple(number for kind in kinds for number in kind)


def call_of(guards: Guards, rows: list[str], name: str) -> Callable[..., Any]:
    """Return the function ``call(args, kwargs)`` that runs `rows` if all holds.

    What the guards can't get at doesn't hold.
    """
    checks = "\n".join(f"        {row}" for row in guards.rows)
    body = "\n".join(f"    {row}" for row in rows)
    missing = "KeyError, AttributeError, IndexError, TypeError, ValueError"
    source = (
        f"def call(args, kwargs):\n    try:\n{checks}\n"
        f"    except ({missing}):\n        return MISS\n"
        f"{body}\n"
    )
    return _written(source, name, guards.scope)


def first_call_of(guards: Guards, rows: list[str], name: str) -> Callable[..., Any]:
    """Return the same without checks, for the call that was traced."""
    kept = [row for row in guards.rows if not row.startswith("if not")]
    body = "\n".join(f"    {row}" for row in [*kept, *rows])
    return _written(f"def call(args, kwargs):\n{body}\n", name, guards.scope)


def _written(source: str, name: str, scope: dict[str, Any]) -> Callable[..., Any]:
    return defined(source, "call", f"<call of {name} {{}}>", scope)
