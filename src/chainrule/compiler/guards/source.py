"""Source of guards: the function that checks the signature of a call and runs the program.

Checks and call are generated as one function, so that a call costs a few comparisons more than the
program itself.
"""

from __future__ import annotations

import itertools
import re
import types
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.intercept import INTERCEPTOR, SLOTS
from chainrule.autograd.modes import MODES
from chainrule.autograd.node import AccumulateGrad, NodeOutput
from chainrule.autograd.tensor import Tensor, default_dtype, default_dtypes, make
from chainrule.autograd.versions import record_write
from chainrule.autograd.views import current_node
from chainrule.backend import DEFAULT_DEVICE, ndarray, storage_of
from chainrule.compiler.backward import recorded
from chainrule.compiler.codegen.run import defined
from chainrule.compiler.ir.abstract_eval import DRAW
from chainrule.compiler.ir.constants import equality
from chainrule.compiler.ir.program import every_op
from chainrule.compiler.tracing.array_reads import never_changes, reads_elements
from chainrule.compiler.tracing.found import FORM_SCOPE, Found, large_memory
from chainrule.compiler.tracing.run import Traced
from chainrule.compiler.tracing.trace import Capture
from chainrule.compiler.tracing.varying_numbers import Check, Input, VaryingNumber
from chainrule.errors import CompileError
from chainrule.random.draw import default_generator

MISS: Any = object()
"""Returned by the function of a signature for calls of other signatures."""


def _firsts(*arrays: Any) -> list[int]:
    """Return for each array the index of the first one that shares its memory."""
    storages = [id(storage_of(array)) for array in arrays]
    return [storages.index(storage) for storage in storages]


def _same_form(found: Any, wanted: Any) -> bool:
    """Return whether a registered object has the same form; not if it can't be compared."""
    try:
        return bool(found == wanted)
    except Exception:
        return False


_LONG_PATH = 100
"""Length in characters of a path that is given a name: each container lengthens it."""


class _Check(str):
    """A condition among the lines of guards."""

    __slots__ = ()


class _Load(str):
    """A line that reads a number, and the one in its place for the call that was traced."""

    first: str = ""


class Guards:
    """Source of the checks of a signature, and of the access to tensors and arrays."""

    def __init__(self, call: Traced) -> None:
        self.trace, self.search, self.contents = call.trace, call.search, call.contents
        self.scope: dict[str, Any] = {
            "MISS": MISS,
            "INTERCEPTOR": INTERCEPTOR,
            "MODES": MODES,
            "DEFAULT_DEVICE": DEFAULT_DEVICE,
            "default_dtype": default_dtype,
            "default_generator": default_generator,
            "default_dtypes": default_dtypes,
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
            "NodeOutput": NodeOutput,
            "recorded": recorded,
            **FORM_SCOPE,
        }
        self.lines: list[str] = []
        self.variables: dict[int, str] = {}  # of captured tensors, by id
        self.arrays: dict[int, str] = {}  # variables of arrays, by id
        self.reads: list[Found] = []  # what is compared
        self._held: dict[int, str] = {}
        self._numbers: dict[int, str] = {}  # variables of varying numbers, by id
        self._places = {id(number): place for place, number in call.trace.numbers.places}
        self._modes()
        self._arguments(*call.arguments)
        self._reachable(call.found)
        self._captures()
        self._external()
        self._varying()

    def hold(self, value: Any) -> str:
        """Return the name of an object in the namespace of the source."""
        name = self._held.get(id(value))
        if name is None:
            name = self._held[id(value)] = f"_{len(self._held)}"
            self.scope[name] = value
        return name

    def key(self, key: Any) -> str:
        """Return the source of a dict key: its literal, or the name of the object."""
        return repr(key) if type(key) in (str, int, bool, bytes) else self.hold(key)

    def require(self, condition: str) -> None:
        """Add a check."""
        self.lines.append(_Check(condition))

    def _modes(self) -> None:
        self.require("INTERCEPTOR.get() is None")  # within another trace, trace the function itself
        self.require("DEFAULT_DEVICE.get() is None")
        modes = MODES.get()
        if modes is None:
            self.require("MODES.get() is None")
            self.require(f"default_dtypes[0] is {self.hold(default_dtype())}")  # sooner read
        else:
            held = self.hold(modes.in_force())
            self.require(f"(modes := MODES.get()) and modes.in_force() == {held}")
            self.require(f"default_dtype() is {self.hold(default_dtype())}")
        draws = [op for op in every_op(self.trace.ops) if op.function == DRAW]
        if any(op.args[0] is default_generator() for op in draws):  # ranks have their own
            self.require(f"default_generator() is {self.hold(default_generator())}")

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.require(f"len(args) == {len(args)}")
        self.require(f"[*kwargs] == {self.hold(list(kwargs))}" if kwargs else "not kwargs")
        for i, arg in enumerate(args):
            self._argument(f"args[{i}]", arg)
        for name, arg in kwargs.items():
            self._argument(f"kwargs[{name!r}]", arg)

    def _argument(self, path: str, value: Any) -> None:
        """Check an argument: its containers from outside in, and its leaves."""
        stack: list[tuple[str, Any, dict[int, str]]] = [(path, value, {})]
        while stack:
            path, value, above = stack.pop()
            parts = pytree.children(value)
            if parts is None:
                self._leaf(path, value)
                continue
            if id(value) in above:  # a container inside itself
                self.require(f"{path} is {above[id(value)]}")
                continue
            self.require(f"{path}.__class__ is {self.hold(type(value))}")
            if (registered := pytree.node_type(value)) is not None:
                above = {**above, id(value): path}
                name = f"c{len(self.lines)}"
                self.lines.append(f"{name} = {self.hold(registered.list_and_form)}({path})")
                _, form = registered.list_and_form(value)
                self.require(f"{self.hold(_same_form)}({name}[1], {self.hold(form)})")
                items = [(f"{name}[0][{i}]", part, above) for i, (_, part) in enumerate(parts)]
                stack += reversed(items)
                continue
            if isinstance(value, dict):
                form, keys = equality(list(value))
                self.require(form.format(f"list({path})", self.hold(keys)))
                parts = [(f"[{self.key(key)}]", part) for key, part in value.items()]
            elif isinstance(value, list | tuple):
                self.require(f"len({path}) == {len(value)}")
            if len(path) > _LONG_PATH:
                self.lines.append(f"c{len(self.lines)} = {path}")
                path = f"c{len(self.lines) - 1}"
            above = {**above, id(value): path}
            stack += [(path + step, part, above) for step, part in reversed(parts)]

    def _leaf(self, path: str, value: Any) -> None:
        """Check a leaf of the arguments."""
        if type(value) is VaryingNumber:
            return  # what depends on it is checked later
        if isinstance(value, Tensor):
            name = f"t{len(self.variables)}"
            self.lines.append(f"{name} = {path}")
            if id(value) in self.variables:
                self.require(f"{name} is {self.variables[id(value)]}")
            else:
                self.require(f"{name}.__class__ is {self.hold(type(value))}")
                self.variables[id(value)] = name
        elif isinstance(value, ndarray):
            name = f"a{len(self.arrays)}"
            self.lines.append(f"{name} = {path}")
            self._array(name, value)
            self.arrays[id(value)] = name
        elif isinstance(value, int | float | complex | str | bytes | np.generic | type(None)):
            self._equal(path, value)
        else:
            self.require(f"{path} is {self.hold(value)}")

    def _equal(self, path: str, value: Any) -> None:
        """Check for the same value, of the same type."""
        if isinstance(value, Enum):
            self.require(f"{path} is {self.hold(value)}")
            return
        self.require(f"{path}.__class__ is {self.hold(type(value))}")
        form, held = equality(value)
        self.require(form.format(path, self.hold(held)))

    def _array(self, name: str, array: Any) -> None:
        dtype = self.hold(array.dtype)
        self.require(
            f"{name}.__class__ is {self.hold(type(array))} and {name}.shape == {array.shape} and "
            f"({name}.dtype is {dtype} or {name}.dtype == {dtype})"
        )

    def _reachable(self, found: list[Found]) -> None:
        """Check the objects that the function reaches by name."""
        for item in found:
            unused = isinstance(item.value, Tensor) and id(item.value) not in self.trace.captures
            if not item.form and (unused or not item.path):  # or where the search started
                continue
            self.reads.append(item)
            path = self.hold(item.scope) + item.path
            if item.form:
                self.require(item.form.format(path, self.hold(item.value)))
            elif item.by_value:
                self._equal(path, item.value)
            else:
                self.require(f"{path} is {self.hold(item.value)}")

    def _captures(self) -> None:
        """Check the types of the captured tensors, and load their arrays and nodes."""
        grads = {
            id(before): capture
            for capture in self.trace.captures.values()
            if (before := capture.grads[0]) is not None
        }
        for key, capture in list(self.trace.captures.items()):
            if key not in self.variables and key not in grads:
                self.variables[key] = self.hold(capture.tensor)
        for key, capture in self.trace.captures.items():
            owner = grads.get(key)
            if key not in self.variables and owner is not None:
                name = self.variables[key] = f"g{len(self.variables)}"
                self.lines.append(f"{name} = {self.name(owner)}._grad")
                self.require(f"{name} is not None")
            self._capture(capture)
        names = list(dict.fromkeys(self.variables.values()))
        if len(names) > 1:  # tensors that were distinct in the trace must be distinct
            self.require(f"len({{{', '.join(f'id({n})' for n in names)}}}) == {len(names)}")

    def memory(self, writes: bool) -> None:
        """Check the order of elements where it matters and, if the program writes, aliasing."""
        captures, given = self.trace.captures.values(), [a for a, _, _ in self.trace.arrays]
        arrays = [SLOTS["_array"].__get__(c.tensor) for c in captures] + given
        names = [self.array(c) for c in captures] + [self.arrays[id(a)] for a in given]
        for name, array in zip(names, arrays, strict=True):
            if self.trace.order_matters and array.size > 1:
                contiguous = array.flags.c_contiguous
                order = "flags.c_contiguous" if contiguous else f"strides == {array.strides}"
                self.require(f"{name}.{order}")
        if writes and len(arrays) > 1:
            found = _firsts(*arrays)
            if len(set(found)) == len(found):
                storages = ", ".join(f"id(storage_of({name}))" for name in names)
                self.require(f"len({{{storages}}}) == {len(found)}")
            else:
                self.require(f"firsts({', '.join(names)}) == {found}")

    def _external(self) -> None:
        """Load NumPy arrays that are reached by name, and compare elements that Python read."""
        for array, _, _ in self.trace.arrays:
            name = self.arrays.setdefault(id(array), self.hold(array))
            if id(storage_of(array)) in self.trace.external and name != self.hold(array):
                self.require(f"{name} is {self.hold(array)}")  # an argument that is external, too
        for storage, array in self._read_by_python():
            if storage not in self.contents:
                raise CompileError(
                    f"{large_memory(type(array).__name__, array.nbytes)}. If it never changes, say "
                    "so by array.flags.writeable = False"
                )
            self.require(f"{self.hold(array)}.tobytes() == {self.hold(self.contents[storage])}")
        for source, before in self.trace.masks.values():
            name = self.array(source) if isinstance(source, Capture) else self.hold(source)
            nan = ", equal_nan=True" if before.dtype.kind in "fc" else ""
            self.require(f"np.array_equal({name}, {self.hold(before)}{nan})")

    def _read_by_python(self) -> Iterator[tuple[int, Any]]:
        """Yield the arrays from which Python code may read elements, each with its storage."""
        places: dict[int, list[tuple[Any, str]]] = {}
        for item in self.search.found:
            if isinstance(item.value, ndarray):
                key = id(storage_of(item.value))
                places.setdefault(key, []).append((item.scope, item.path))
        codes = self.search.codes()
        for storage, array in self.trace.external.items():
            uses = self.trace.array_uses.get(storage, set())
            if never_changes(array):
                continue
            if self.search.computes or reads_elements(places.get(storage, ()), codes, uses):
                yield storage, array

    def _varying(self) -> None:
        """Check what the trace knew of numbers that vary, and make inputs of them."""
        log = self.trace.numbers
        for check in log.checks:
            if isinstance(check, Check):
                text = check.text.format(*map(self.number, check.parts))
                self.require(f"bool({text}) is {check.result}")
            else:
                self._equal(self.number(check), check.value)
        for each in log.inputs.values():
            number, dtype = self.number(each.number), self.hold(each.dtype)
            self.lines.append(f"{self.input(each)} = np.asarray({number}, {dtype})")

    def number(self, number: Any) -> str:
        """Return the variable that holds a number, computed by a line of its own."""
        if type(number) is not VaryingNumber:
            return self.hold(number)
        if id(number) not in self._numbers:
            place = self._places.get(id(number))
            if place is not None:
                path = f"{'' if place.scope is None else self.hold(place.scope)}{place.path}"
                text = re.sub(r"^\[(0|1)\]", lambda found: _GIVEN[found[1]], path)
            else:
                text = number.text.format(*map(self.number, number.parts))
            name = self._numbers[id(number)] = f"n{len(self._numbers)}"
            line = _Load(f"{name} = {text}")
            self.lines.append(line)
            if place is not None:
                line.first = f"{name} = {self.hold(number.value)}"  # it may have been changed since
                self.require(f"{name}.__class__ is {self.hold(type(number.value))}")
        return self._numbers[id(number)]

    def input(self, given: Input) -> str:
        """Return the variable that holds a number as an array of shape ()."""
        return f"{self._numbers[id(given.number)]}_{given.dtype}"

    def name(self, capture: Capture) -> str:
        """Return the variable that holds a tensor."""
        return self.variables[id(capture.tensor)]

    def edge(self, capture: Capture) -> str:
        """Return the variable that holds the node of a tensor."""
        return f"{self.name(capture)}_n"

    def array(self, capture: Capture) -> str:
        """Return the variable that holds the array of a tensor."""
        return f"{self.name(capture)}_a"

    def _capture(self, capture: Capture) -> None:
        name, array = self.name(capture), self.array(capture)
        self.lines.append(f"{array} = {name}._array")
        self._array(array, SLOTS["_array"].__get__(capture.tensor))
        node = self.edge(capture)
        self.lines.append(
            f"{node} = {name}._node if {name}._view is None else current_node({name})"
        )
        if not capture.requires_grad:
            self.require(f"{node} is None")
            return
        leaf = type(capture.node) is AccumulateGrad
        self.require(f"{node} is not None and ({node}.__class__ is Leaf) is {leaf}")
        if leaf:
            before = hooked(capture.node)
            shortcut = f"{node}.hooks is None or " if before == hooked(None) else ""
            self.require(f"{shortcut}hooked({node}) == {before}")
            grad, _ = capture.grads
            self.require(f"{name}._grad is {'' if grad is None else 'not '}None")


_GIVEN = {"0": "args", "1": "kwargs"}


def hooked(node: Any) -> tuple[int, ...]:
    """Return the ids of the hooks that a backward pass calls at a node."""
    hooks = None if node is None else node.hooks
    if hooks is None:
        return ()
    kinds = (*hooks.tensor.values(), hooks.pre, hooks.post_accumulate, hooks.post)
    return tuple(number for kind in kinds for number in kind)


def calls_of(
    guards: Guards, inputs: list[str], lines: list[str], name: str
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the functions of args and kwargs that run `lines`, or give the inputs of the program.

    They return MISS if a check fails, or an object can't be accessed. They share their code, since
    Python takes long to compile many checks.
    """
    checks = "\n".join(f"        {line}" for line in _joined(guards.lines))
    body = "\n".join(f"    {line}" for line in lines)
    missing = "KeyError, AttributeError, IndexError, TypeError, ValueError, ArithmeticError"
    source = (
        f"def call(args, kwargs, only_inputs=False):\n    try:\n{checks}\n"
        f"    except ({missing}):\n        return MISS\n"
        f"    if only_inputs:\n        return [{', '.join(inputs)}]\n"
        f"{body}\n"
    )
    call: Any = _define(source, name, guards.scope)
    return call, types.FunctionType(call.__code__, guards.scope, f"{name}'s inputs", (True,))


def _joined(lines: list[str]) -> Iterator[str]:
    """Yield lines with each run of checks as one, which Python compiles sooner."""
    for are_checks, group in itertools.groupby(lines, lambda line: isinstance(line, _Check)):
        if are_checks:
            yield f"if not ({' and '.join(f'({condition})' for condition in group)}): return MISS"
        else:
            yield from group


def first_call_of(guards: Guards, lines: list[str], name: str) -> Callable[..., Any]:
    """Return the function without checks, for the call that was traced."""
    given = [getattr(line, "first", "") or line for line in guards.lines]
    access = [line for line in given if not isinstance(line, _Check)]
    body = "\n".join(f"    {line}" for line in [*access, *lines])
    return _define(f"def call(args, kwargs):\n{body}\n", name, guards.scope)


def _define(source: str, name: str, scope: dict[str, Any]) -> Callable[..., Any]:
    return defined(source, "call", f"<call of {name} {{}}>", scope)
