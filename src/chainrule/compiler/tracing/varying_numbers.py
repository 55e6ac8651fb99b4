"""Numbers that vary from call to call: arithmetic on them becomes part of the generated call.

A Python number is a constant of a program until it changes. From then on a trace gets a
`VaryingNumber` in its place. Arithmetic with other numbers is noted, and done again by Python at
each call; with arrays, the result is an input of the program. Whatever else depends on the value
(a comparison, an index, a number that C code reads) becomes a check of the call: of the outcome,
or of the value itself.
"""

from __future__ import annotations

import ast
import contextlib
import math
import operator
import reprlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from chainrule import pytree
from chainrule.autograd.array_proxy import ArrayProxy, NumberProxy
from chainrule.autograd.tensor import Tensor
from chainrule.compiler.ir.constants import constant_key, same_constant
from chainrule.compiler.ir.op_traits import has_loop
from chainrule.compiler.ir.program import Value
from chainrule.compiler.tracing.found import Found
from chainrule.compiler.tracing.symbol import TRACING, Symbol

T = TypeVar("T")

_NUMPY_KINDS: list[Any] = [np.float64, np.float32, np.int64, np.int32]

_BY_TYPE = ("np.where", "np.clip")
"""Functions that are no ufuncs and convert their operands to one dtype."""


class Place(NamedTuple):
    """Where a number is: at a path from an object, or in the arguments if `scope` is None."""

    scope: Any
    path: str

    @property
    def key(self) -> tuple[int, str]:
        return id(self.scope), self.path

    def read(self, args: Any, kwargs: Any) -> Any:
        """Return the number that is there now, None if there is nothing."""
        scope = (args, kwargs) if self.scope is None else self.scope
        try:
            return eval(f"scope{self.path}", {"scope": scope})
        except Exception:  # of a property of the user, for example
            return None


class Check(NamedTuple):
    """A condition on varying numbers, with the outcome that it had in the trace."""

    text: str
    parts: tuple[Any, ...]
    result: bool


class Input(NamedTuple):
    """An input of the program: a number in the dtype of the arrays that it meets."""

    number: VaryingNumber
    dtype: np.dtype[Any]
    value: Value


class NumberLog:
    """What a trace does with varying numbers."""

    def __init__(self) -> None:
        self.checks: list[Check | VaryingNumber] = []  # outcomes, and numbers whose value matters
        self.inputs: dict[tuple[int, str], Input] = {}
        self.places: list[tuple[Place, VaryingNumber]] = []
        self.needed: set[int] = set()  # ids of the numbers whose values the trace had to know
        self._known: dict[Any, VaryingNumber] = {}

    def leaf(self, place: Place, value: Any) -> VaryingNumber:
        """Return what stands for the number at a place."""
        number = VaryingNumber(value, self)
        self.places.append((place, number))
        return number

    def in_arguments(self, arguments: Any, varying: Iterable[Place]) -> Any:
        """Return arguments with varying numbers at some places."""
        places = {place.path: place for place in varying if place.scope is None}
        if not places:
            return arguments
        paths = iter([path for path, _ in pytree.leaves(arguments)])

        def change(leaf: Any) -> Any:
            place = places.get(next(paths))
            return self.leaf(place, leaf) if place is not None and may_vary(leaf) else leaf

        return pytree.changed_leaves(arguments, change)

    def result(self, text: str, parts: tuple[Any, ...], value: Any) -> VaryingNumber:
        """Return the number that an operation gives; the same one for the same operation."""
        keys = [id(p) if isinstance(p, VaryingNumber) else constant_key(p) for p in parts]
        key = text, *keys
        if key not in self._known:
            self._known[key] = VaryingNumber(value, self, text, parts)
        return self._known[key]

    def check(self, text: str, parts: tuple[Any, ...], result: T) -> T:
        """Note that the trace depends on the outcome of a condition, and return it."""
        self.checks.append(Check(text, parts, bool(result)))
        return result

    def as_input(self, number: VaryingNumber, dtype: Any) -> Symbol:
        """Return a number as a symbol of shape () of this dtype."""
        dtype = np.dtype(dtype)
        key = id(number), dtype.str
        if key not in self.inputs:
            self.inputs[key] = Input(number, dtype, Value((), dtype))
        return Symbol(self.inputs[key].value)

    def operands(self, name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments of an operation with inputs in the place of varying numbers."""
        if not self.places or not any([type(arg) is VaryingNumber for arg in args]):
            return args
        dtype = _common_dtype(name, args)
        if dtype is None:
            return tuple([known(arg) for arg in args])
        return tuple(
            [self.as_input(arg, dtype) if type(arg) is VaryingNumber else arg for arg in args]
        )

    def finish(self) -> None:
        """Find which numbers the trace had to know, those from which others follow included."""
        self.checks += self._unused()
        pending = [number for number in self.checks if type(number) is VaryingNumber]
        while pending:
            number = pending.pop()
            self.needed.add(id(number))
            pending += [part for part in number.parts if type(part) is VaryingNumber]

    def _unused(self) -> list[Check]:
        """Return checks for the numbers that nothing uses, whose operations may raise."""
        pending: list[Any] = [item.number for item in self.inputs.values()]
        for check in self.checks:
            pending += check.parts if isinstance(check, Check) else [check]
        used = set()
        while pending:
            number = pending.pop()
            if type(number) is VaryingNumber and id(number) not in used:
                used.add(id(number))
                pending += number.parts
        unused = [number for number in self._known.values() if id(number) not in used]
        return [Check(f"({number.text}) is None", number.parts, False) for number in unused]

    def split(self) -> tuple[list[Place], list[tuple[Place, Any]]]:
        """Return the places that are left open, and the others with their numbers."""
        left = [place for place, number in self.places if id(number) not in self.needed]
        known = [(place, n.value) for place, n in self.places if id(n) in self.needed]
        return left, known


def _common_dtype(name: str, args: tuple[Any, ...]) -> np.dtype[Any] | None:
    """Return the dtype to which a function converts its operands; None if it is not known."""
    if any([arg is None for arg in args]):
        return None
    like = [
        plain(arg) if type(arg) is VaryingNumber else getattr(arg, "dtype", arg) for arg in args
    ]
    try:
        dtype = np.result_type(*like)
    except (TypeError, OverflowError):
        return None
    return dtype if name in _BY_TYPE or has_loop(name, dtype) else None


_SUBCLASSES = {kind: type(kind.__name__, (kind,), {}) for kind in (int, float, *_NUMPY_KINDS)}
"""What the classes of numbers seem to be: code for plain numbers alone must not take them."""


class VaryingNumber(NumberProxy):
    """The place of a number during a trace: its type, operators and value, which is noted if read.

    It is no float, since C code would read the value of one without asking.
    """

    __slots__ = ("_log", "parts", "text", "value")

    def __init__(
        self, value: Any, log: NumberLog, text: str = "", parts: tuple[Any, ...] = ()
    ) -> None:
        self.value = value
        self._log = log
        self.text, self.parts = text, parts  # how it is computed; empty at a place

    def _kind(self) -> type:
        kind: type = type(self.value)
        return _SUBCLASSES.get(kind, kind)

    __class__ = property(_kind, vars(object)["__class__"].__set__)

    @property
    def log(self) -> NumberLog | None:
        """The log of the trace that is active here, if it is that of this number."""
        trace = TRACING.get()
        return self._log if trace is not None and trace.numbers is self._log else None

    @property
    def description(self) -> str:
        """What the calls of the program may have in its place."""
        if id(self) in self._log.needed:
            return reprlib.repr(self.value)
        return f"any {type(self.value).__name__}"

    def known(self) -> Any:
        """Return the value, which the trace depends on from now on."""
        log = self.log
        if log is not None and all(each is not self for each in log.checks):
            log.checks.append(self)
        return self.value

    def as_float(self) -> Any:
        log = self.log
        if log is None or type(self.value) is float:
            return self
        return log.result("{}({})", (float, self), float(self.value))

    def as_array(self, dtype: Any = None) -> Any:
        log = self.log
        dtype = np.asarray(self.value).dtype if dtype is None else dtype
        return np.asarray(self.value, dtype) if log is None else log.as_input(self, dtype)

    def __bool__(self) -> bool:
        result, log = bool(self.value), self.log
        return result if log is None else log.check("{}", (self,), result)

    def __getattr__(self, name: str) -> Any:
        if name in ("dtype", "shape", "ndim", "size"):  # of NumPy's numbers: decided by the type
            return getattr(self.value, name)
        if name.startswith("__"):  # protocols that numbers don't have
            raise AttributeError(name)
        return getattr(self.known(), name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.known(), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        if any(isinstance(x, Tensor | ArrayProxy) for x in inputs):
            return NotImplemented
        log, values = self.log, [plain(x) for x in inputs]
        if log is None:
            return getattr(ufunc, method)(*values, **settings)
        simple = method == "__call__" and not settings and ufunc.nout == 1
        if simple and all(map(_is_number, values)):
            text = f"{{}}({', '.join(['{}'] * len(inputs))})"
            return log.result(text, (ufunc, *inputs), ufunc(*values))
        trace = TRACING.get()
        if simple and trace is not None:
            arrays = [
                x if _is_number(y) else trace.symbol_of(np.asarray(y))
                for x, y in zip(inputs, values, strict=True)
            ]
            return ufunc(*arrays)
        return getattr(ufunc, method)(*map(known, inputs), **settings)

    def __copy__(self) -> VaryingNumber:
        return self

    def __deepcopy__(self, memo: Any) -> VaryingNumber:
        return self

    def __reduce__(self) -> Any:
        return _itself, (self.known(),)


def _itself(value: Any) -> Any:
    return value


def plain(x: Any) -> Any:
    """Return the value of a varying number, for uses on which nothing depends; others as is."""
    return x.value if type(x) is VaryingNumber else x


def known(x: Any) -> Any:
    """Return the value of a varying number, which becomes a check; other objects as they are."""
    return x.known() if type(x) is VaryingNumber else x


def _is_number(x: Any) -> bool:
    return isinstance(x, bool | int | float | complex | np.generic)


def _operator(function: Callable[..., Any], text: str) -> Callable[..., Any]:
    """Return the method of an operator of one or two numbers."""

    def compute(self: VaryingNumber, *others: Any) -> Any:
        if any(isinstance(other, Tensor | ArrayProxy | np.ndarray) for other in others):
            return NotImplemented
        log = self.log
        numbers = all(_is_number(plain(other)) for other in others)
        if log is None or not numbers or text.count("{}") != 1 + len(others):
            return function(self.known(), *map(known, others))
        return log.result(text, (self, *others), function(self.value, *map(plain, others)))

    return compute


def _reflected(function: Callable[..., Any], text: str) -> Callable[..., Any]:
    def compute(self: VaryingNumber, other: Any) -> Any:
        if isinstance(other, Tensor | ArrayProxy | np.ndarray):
            return NotImplemented
        log = self.log
        if log is None or not _is_number(plain(other)):
            return function(known(other), self.known())
        return log.result(text, (other, self), function(plain(other), self.value))

    return compute


def _comparison(function: Callable[..., Any], text: str) -> Callable[..., Any]:
    def compare(self: VaryingNumber, other: Any) -> Any:
        if isinstance(other, Tensor | ArrayProxy | np.ndarray):
            return NotImplemented
        result = function(self.value, plain(other))
        log = self.log
        if log is None or not _is_number(plain(other)):
            return function(self.known(), known(other))
        return log.check(text, (self, other), result)

    return compare


def _reading(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *others: function(self.known(), *others)


_SYMBOLS = {
    **{"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%"},
    **{"pow": "**", "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"},
}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_UNARY: dict[str, tuple[Callable[..., Any], str]] = {
    "neg": (operator.neg, "-{}"),
    "pos": (operator.pos, "+{}"),
    "abs": (abs, "abs({})"),
    "invert": (operator.invert, "~{}"),
    "round": (round, "round({})"),
    "floor": (math.floor, "{}.__floor__()"),
    "ceil": (math.ceil, "{}.__ceil__()"),
    "trunc": (math.trunc, "{}.__trunc__()"),
}
_READ: dict[str, Callable[..., Any]] = {
    **{"int": int, "float": float, "complex": complex, "index": operator.index},
    **{"hash": hash, "str": str, "repr": repr, "format": format},
}

for _name, _symbol in _SYMBOLS.items():
    _function = getattr(operator, f"__{_name}__")
    setattr(VaryingNumber, f"__{_name}__", _operator(_function, f"{{}} {_symbol} {{}}"))
    setattr(VaryingNumber, f"__r{_name}__", _reflected(_function, f"{{}} {_symbol} {{}}"))
for _name, _symbol in _COMPARISONS.items():
    _function = getattr(operator, f"__{_name}__")
    setattr(VaryingNumber, f"__{_name}__", _comparison(_function, f"{{}} {_symbol} {{}}"))
for _name, (_function, _text) in _UNARY.items():
    setattr(VaryingNumber, f"__{_name}__", _operator(_function, _text))
for _name, _function in _READ.items():
    setattr(VaryingNumber, f"__{_name}__", _reading(_function))


# --- places ---------------------------------------------------------------------------------------


def may_vary(value: Any) -> bool:
    """Whether a value is a number that a trace can leave open."""
    return type(value) in _SUBCLASSES


def numbers_of(args: Any, kwargs: Any, found: list[Found]) -> Iterator[tuple[Place, Any]]:
    """Yield the numbers that a call depends on, with their places: those that may vary."""
    for path, leaf in pytree.leaves((args, kwargs)):
        if may_vary(leaf) and len(path) < _LONG_PATH:
            yield Place(None, path), leaf
    for item in found:
        if item.by_value and not item.form and may_vary(item.value):
            yield Place(item.scope, item.path), item.value


_LONG_PATH = 100
"""Length in characters of a path to an argument from which the number there stays a constant."""


def changed_places(numbers: Iterable[tuple[Place, Any]], args: Any, kwargs: Any) -> list[Place]:
    """Return the places at which there is another number of the same type now."""
    now: dict[tuple[int, str], Any] = {}
    found = {}
    for place, before in numbers:
        key = place.key
        if key not in now:
            now[key] = place.read(args, kwargs)
        if type(now[key]) is type(before) and not same_constant(now[key], before):
            found[key] = place
    return [*found.values()]


class Substitution:
    """Varying numbers in the place of those that a function finds by name, while it is traced.

    Other threads meanwhile find what behaves as the number. Numbers in objects that can't be
    changed, or that do something when they are, stay constants.
    """

    def __init__(self, log: NumberLog, varying: Iterable[Place]) -> None:
        self._log = log
        self._restore: list[Callable[[], object]] = []
        self.changed = False  # whether the function has assigned others
        self._places = [place for place in varying if place.scope is not None]

    def begin(self) -> None:
        for place in self._places:
            value = place.read((), {})
            if may_vary(value):
                tree: Any = ast.parse(f"scope{place.path}", mode="eval").body
                if _is_settable(tree, place.scope):
                    self._set(tree, place.scope, self._log.leaf(place, value))

    def end(self) -> None:
        """Put the numbers back; what the function has assigned stays, as a plain number."""
        for restore in reversed(self._restore):
            restore()

    def _set(self, tree: Any, scope: Any, new: Any) -> None:
        """Set what an expression names; in a tuple, replace the tuple."""
        holder, key = _holder(tree, scope)
        if isinstance(holder, tuple):
            parts = [*holder]
            parts[key] = new
            self._set(tree.value, scope, pytree.with_children(holder, parts))
            return
        slot = _CellSlot(holder) if key is None else holder
        old = slot[key]

        def restore() -> None:
            with contextlib.suppress(LookupError, ValueError):  # the function has removed it
                now = slot[key]
                self.changed |= now is not new and now is not old
                found = old if now is new else pytree.changed_leaves(now, plain)
                if found is not now:
                    slot[key] = found

        self._restore.append(restore)  # first: an interrupt may come at any instruction
        slot[key] = new


class _CellSlot:
    """The variable in a cell, as an item."""

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def __getitem__(self, key: None) -> Any:
        return self._cell.cell_contents

    def __setitem__(self, key: None, value: Any) -> None:
        self._cell.cell_contents = value


def _holder(tree: Any, scope: Any) -> tuple[Any, Any]:
    """Return the container that an expression ends in, and the key or index there."""
    holder = eval(compile(ast.Expression(tree.value), "<place>", "eval"), {"scope": scope})
    if isinstance(tree, ast.Subscript):
        return holder, ast.literal_eval(tree.slice)
    if tree.attr == "cell_contents":
        return holder, None
    return vars(holder), tree.attr


def _is_settable(tree: Any, scope: Any) -> bool:
    """Whether an expression ends in a plain list, dict, attribute or cell, or in tuples there."""
    if not isinstance(tree, ast.Subscript | ast.Attribute):
        return False
    try:
        holder, key = _holder(tree, scope)
    except (TypeError, ValueError):  # an object without a `__dict__`
        return False
    if isinstance(holder, tuple):
        return _is_settable(tree.value, scope)
    if key is None:
        return True
    return type(holder) is list or (type(holder) is dict and key in holder)
