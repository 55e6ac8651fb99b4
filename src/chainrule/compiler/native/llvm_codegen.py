"""LLVM's intermediate language from the Python subset of generated loops and hand-written kernels.

The subset has numbers of fixed types, arrays as pointers, `for` over ranges, `while`, `if`, and
calls of the functions of `vector_math`, which are inlined. All types follow from the arguments, so
that one pass over the syntax tree emits typed instructions: compile times are those of LLVM.

Numbers have NumPy's types, except that Python numbers take the type of the other operand. Index
arithmetic is in `u8`, of which overflow is undefined: LLVM need not consider that it wraps.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.native import gemm_microkernel
from chainrule.compiler.native.threads import atomics

INTERLEAVE_COUNT = 4
"""Number of interleaved vectors in long loops. For long expressions LLVM chooses one, but then the
latency of dependent operations limits the speed."""

TYPES = {
    **{"f4": "float", "f8": "double", "i4": "i32", "i8": "i64", "u1": "i8", "u8": "i64"},
    **{"b1": "i1", "ptr": "ptr"},
}
"""LLVM's names of the types of numbers."""

_BITS = {"b1": 1, "u1": 8, "i4": 32, "i8": 64, "u8": 64, "f4": 32, "f8": 64}
_UNSIGNED = ("b1", "u1", "u8")
_RANKS = {kind: rank for rank, kind in enumerate(("b1", "u1", "i4", "i8", "f4", "f8"))}


class UnsupportedError(TypeError):
    """The source is outside of the subset."""


class Typed(NamedTuple):
    """An operand: its text, and its type.

    Types besides those of numbers are `int` and `float` of Python constants, which have a `number`
    instead of a text, and `*` followed by the element type for pointers.
    """

    text: str
    kind: str
    number: Any = None


class Parameter(NamedTuple):
    name: str
    kind: str


# --- constants and conversions --------------------------------------------------------------------


def constant(number: Any, kind: str) -> Typed:
    """Return a number as an operand of a type."""
    if kind == "b1":
        return Typed("true" if number else "false", kind)
    if kind[0] == "f":
        with np.errstate(over="ignore"):
            wide = float(np.dtype(kind).type(number))
        return Typed(f"0x{struct.unpack('Q', struct.pack('d', wide))[0]:016X}", kind)
    half = 0 if kind in _UNSIGNED else 1 << (_BITS[kind] - 1)
    return Typed(str((int(number) + half) % (1 << _BITS[kind]) - half), kind)


def weak(number: Any) -> Typed:
    """Return a Python number as an operand that takes the type of others."""
    return Typed("", "float" if isinstance(number, float) else "int", number)


def common_kind(*operands: Typed) -> str:
    """Return the type in which operands are combined."""
    kinds = {operand.kind for operand in operands if operand.number is None}
    if not kinds:
        return "f8" if any(operand.kind == "float" for operand in operands) else "i8"
    if any(operand.kind == "float" for operand in operands) and not kinds & {"f4", "f8"}:
        kinds.add("f8")
    if kinds == {"b1"} and any(operand.number is not None for operand in operands):
        return "i8"
    if len(kinds) == 1:
        return next(iter(kinds))
    if not kinds <= _RANKS.keys():
        raise UnsupportedError(f"operands of types {', '.join(sorted(kinds))}")
    return max(kinds, key=_RANKS.__getitem__)


def llvm_type(kind: str) -> str:
    """Return LLVM's name of a type."""
    return "ptr" if kind[0] == "*" else TYPES[kind]


def element_kind(pointer: str) -> str:
    """Return the type of the elements of a pointer; booleans are bytes."""
    return "u1" if pointer == "*b1" else pointer[1:]


# --- modules --------------------------------------------------------------------------------------


class Module:
    """The text of a module: functions, and declarations of what they call."""

    def __init__(self, interleaved: bool = False) -> None:
        self.interleaved = interleaved
        self.functions: dict[str, str] = {}
        self.kinds: dict[str, str] = {}  # what functions return
        self.declarations: dict[str, str] = {}
        self.loops = 0

    def text(self) -> str:
        """Return the text of the module."""
        lines = [*self.declarations.values(), *self.functions.values()]
        if self.loops:
            lines.append(f'!0 = !{{!"llvm.loop.interleave.count", i32 {INTERLEAVE_COUNT}}}')
            lines += [f"!{i} = distinct !{{!{i}, !0}}" for i in range(1, self.loops + 1)]
        return "\n".join(lines) + "\n"

    def declare(self, symbol: str, returned: str, *arguments: str, effects: str = "") -> None:
        """Declare an external function."""
        text = f"declare {returned} @{symbol}({', '.join(arguments)}){effects}"
        self.declarations[symbol] = text

    def define(self, head: str, symbol: str, body: list[str]) -> None:
        """Add a function."""
        self.functions[symbol] = "\n".join([f"{head} {{", *body, "}"])

    def add_source(self, text: str, symbol: str, kinds: list[str]) -> None:
        """Add the function of generated source, with arguments of these types."""
        tree = ast.parse(text)
        (function,) = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        scope = _constants(tree)
        head = "define internal {returned} @{symbol}({parameters}) noinline nounwind"
        _Function(self, function, scope, kinds, frozenset()).add(symbol, head)

    def helper(self, name: str, kinds: list[str]) -> tuple[str, str]:
        """Return the symbol of a helper function for such arguments, and what it returns."""
        symbol = "_".join([name, *(kind.replace("*", "p") for kind in kinds)])
        if symbol not in self.kinds:
            self.merge(_emitted_helper(name, tuple(kinds)))
        return symbol, self.kinds[symbol]

    def merge(self, other: Module) -> None:
        """Add the functions of another module."""
        self.functions = other.functions | self.functions
        self.declarations |= other.declarations
        self.kinds |= other.kinds


@functools.cache
def _emitted_helper(name: str, kinds: tuple[str, ...]) -> Module:
    """Return a module with a helper function and what it calls."""
    function, scope, flags = _library()[name]
    module = Module()
    symbol = "_".join([name, *(kind.replace("*", "p") for kind in kinds)])
    head = "define internal {returned} @{symbol}({parameters}) alwaysinline nounwind"
    _Function(module, function, scope, list(kinds), flags).add(symbol, head)
    return module


_FLAGS = {"plus": ("reassoc",), "times_plus": ("reassoc", "contract")}
"""Fast-math flags of sums; elementary functions have only `contract` (fused multiply-add)."""


@functools.cache
def _library() -> dict[str, tuple[ast.FunctionDef, dict[str, Any], frozenset[str]]]:
    """Return the functions that generated source calls, with the constants and flags of each."""
    found = {}
    for path in ("vector_math.py", "threads/worker.py"):
        tree = ast.parse((Path(__file__).parent / path).read_text(encoding="utf-8"))
        scope = _constants(tree)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                flags = _FLAGS.get(node.name, ("contract",) if node.name[-3:-1] == "_f" else ())
                found[node.name] = node, scope, frozenset(flags)
    return found


def _constants(tree: ast.Module) -> dict[str, Any]:
    """Return the numbers that a module assigns to names."""
    found: dict[str, Any] = {"INF": math.inf, "NAN": math.nan}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            try:
                code = compile(ast.Expression(node.value), "", "eval")
                value = eval(code, {"__builtins__": {}}, dict(found))
            except (NameError, AttributeError):
                continue
            if isinstance(value, int | float):
                found[node.targets[0].id] = value
    return found


# --- functions ------------------------------------------------------------------------------------

_OPERATORS: dict[type[ast.AST], tuple[str, str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", "fadd", operator.add),
    ast.Sub: ("sub", "fsub", operator.sub),
    ast.Mult: ("mul", "fmul", operator.mul),
    ast.Div: ("", "fdiv", operator.truediv),
    ast.BitAnd: ("and", "", operator.and_),
    ast.BitOr: ("or", "", operator.or_),
    ast.BitXor: ("xor", "", operator.xor),
    ast.LShift: ("shl", "", operator.lshift),
    ast.RShift: ("ashr", "", operator.rshift),
    ast.FloorDiv: ("div", "", operator.floordiv),
    ast.Mod: ("rem", "", operator.mod),
    ast.Pow: ("", "pow", operator.pow),
}
_COMPARISONS: dict[type[ast.AST], tuple[str, str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("eq", "oeq", operator.eq),
    ast.NotEq: ("ne", "une", operator.ne),
    ast.Lt: ("lt", "olt", operator.lt),
    ast.LtE: ("le", "ole", operator.le),
    ast.Gt: ("gt", "ogt", operator.gt),
    ast.GtE: ("ge", "oge", operator.ge),
}
_INTRINSICS = frozenset(
    [
        *("sqrt", "floor", "ceil", "trunc", "rint", "copysign", "fabs"),
        *("sin", "cos", "pow", "exp2", "log2", "log10"),
    ]
)
"""Functions that LLVM knows."""

_LIBM = {
    **{"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2"},
    **{name: name for name in ("tan", "sinh", "cosh", "hypot")},
}
"""Other functions of libm, by NumPy's names."""


class _Function:
    """Emitter of one function."""

    def __init__(
        self,
        module: Module,
        tree: ast.FunctionDef,
        scope: dict[str, Any],
        kinds: list[str],
        flags: frozenset[str],
    ) -> None:
        self.module, self.tree, self.constants = module, tree, scope
        self.flags = "".join(f" {flag}" for flag in sorted(flags))
        self.parameters = [
            Parameter(argument.arg, kind)
            for argument, kind in zip(tree.args.args, kinds, strict=True)
        ]
        self.lines: list[str] = []
        self.allocations: list[str] = []
        self.names: dict[str, Typed] = {}
        self.slots: dict[str, Typed] = {}  # memory of variables that are assigned several times
        self.number = 0
        self.ends: list[str] = []  # the labels after the loops around
        self.is_open = True  # whether the current block has no terminator
        self.returned = "void"
        self.varying = _varying(tree)

    def add(self, symbol: str, head: str) -> None:
        """Add the function to the module."""
        parameters = []
        for name, kind in self.parameters:
            attribute = " noalias" if kind[0] == "*" else ""
            parameters.append(f"{llvm_type(kind)}{attribute} %{name}.in")
            self._assign(name, Typed(f"%{name}.in", kind))
        self._block(self.tree.body)
        if self.is_open:
            self.lines.append("  ret void")
        returned = "void" if self.returned == "void" else llvm_type(self.returned)
        text = head.format(returned=returned, symbol=symbol, parameters=", ".join(parameters))
        self.module.kinds[symbol] = self.returned
        self.module.define(text, symbol, [*self.allocations, *self.lines])

    # --- instructions ---

    typed = Typed

    def emit(self, text: str) -> str:
        """Add an instruction with a result; return its name."""
        self.number += 1
        name = f"%t{self.number}"
        self.lines.append(f"  {name} = {text}")
        return name

    def run(self, text: str) -> None:
        """Add an instruction without a result."""
        self.lines.append(f"  {text}")

    def allocate(self, text: str) -> str:
        """Reserve memory on the stack; return its address."""
        self.number += 1
        name = f"%t{self.number}"
        self.allocations.append(f"  {name} = alloca {text}")
        return name

    def _label(self, stem: str) -> str:
        self.number += 1
        return f"{stem}{self.number}"

    def _begin(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.is_open = True

    def _branch(self, label: str) -> None:
        if self.is_open:
            self.lines.append(f"  br label %{label}")
        self.is_open = False

    def _choose(self, condition: Typed, yes: str, no: str) -> None:
        self.lines.append(f"  br i1 {condition.text}, label %{yes}, label %{no}")
        self.is_open = False

    # --- statements ---

    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if not self.is_open:
                return
            _STATEMENTS[type(statement)](self, statement)

    def _assignment(self, node: ast.Assign) -> None:
        target = node.targets[0]
        if isinstance(target, ast.Tuple):
            assert isinstance(node.value, ast.Tuple)
            values = [self._value(item) for item in node.value.elts]
            for item, value in zip(target.elts, values, strict=True):
                self._store(item, value)
        else:
            self._store(target, self._value(node.value))

    def _augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Subscript):
            address, kind = self._address(target)
            old = Typed(self.emit(f"load {TYPES[kind]}, ptr {address}"), kind)
            new = self.convert(self._binary(type(node.op), old, self._value(node.value)), kind)
            self.run(f"store {TYPES[kind]} {new.text}, ptr {address}")
        else:
            assert isinstance(target, ast.Name)
            old = self._name(ast.Name(target.id, ast.Load()))
            self._assign(target.id, self._binary(type(node.op), old, self._value(node.value)))

    def _store(self, target: ast.expr, value: Typed) -> None:
        if isinstance(target, ast.Subscript):
            address, kind = self._address(target)
            value = self.convert(value, kind)
            self.run(f"store {TYPES[kind]} {value.text}, ptr {address}")
        else:
            assert isinstance(target, ast.Name)
            self._assign(target.id, value)

    def _assign(self, name: str, value: Typed) -> None:
        if name not in self.varying:
            self.names[name] = value
            return
        slot = self.slots.get(name)
        if slot is None:
            kind = value.kind if value.number is None else common_kind(value)
            slot = Typed(self.allocate(llvm_type(kind)), kind)
            self.slots[name] = slot
        if value.number is None and value.kind != slot.kind:
            raise UnsupportedError(f"{name} is {slot.kind} and {value.kind}")
        value = self.convert(value, slot.kind)
        self.run(f"store {llvm_type(slot.kind)} {value.text}, ptr {slot.text}")

    def _for(self, node: ast.For) -> None:
        assert isinstance(node.target, ast.Name)
        assert isinstance(node.iter, ast.Call)
        bounds = [self._value(item) for item in node.iter.args]
        start, stop = (weak(0), bounds[0]) if len(bounds) == 1 else bounds[:2]
        step = bounds[2] if len(bounds) == 3 else weak(1)
        kind = common_kind(start, stop, step)
        falls = step.number is not None and step.number < 0
        start, stop, step = [self.convert(item, kind) for item in (start, stop, step)]
        head, body, after = self._label("head"), self._label("body"), self._label("after")
        latch = self._label("latch")
        before = self._label("before")
        self._branch(before)
        self._begin(before)
        self._branch(head)
        self._begin(head)
        self.number += 2
        counter, following = f"%t{self.number - 1}", f"%t{self.number}"
        self.run(f"{counter} = phi i64 [ {start.text}, %{before} ], [ {following}, %{latch} ]")
        sign = "u" if kind == "u8" else "s"
        test = self.emit(f"icmp {sign}{'gt' if falls else 'lt'} i64 {counter}, {stop.text}")
        self._choose(Typed(test, "b1"), body, after)
        self._begin(body)
        self.ends.append(after)
        self._assign(node.target.id, Typed(counter, kind))
        self._block(node.body)
        self.ends.pop()
        self._branch(latch)
        self._begin(latch)
        flags = "nuw nsw" if kind == "u8" else "nsw"
        self.run(f"{following} = add {flags} i64 {counter}, {step.text}")
        self._back(head)
        self._begin(after)

    def _while(self, node: ast.While) -> None:
        head, body, after = self._label("head"), self._label("body"), self._label("after")
        self._branch(head)
        self._begin(head)
        self._choose(self._truth(self._value(node.test)), body, after)
        self._begin(body)
        self.ends.append(after)
        self._block(node.body)
        self.ends.pop()
        if self.is_open:
            self._back(head)
        self._begin(after)

    def _back(self, head: str) -> None:
        """End the last block of a loop."""
        hint = ""
        if self.module.interleaved:
            self.module.loops += 1
            hint = f", !llvm.loop !{self.module.loops}"
        self.lines.append(f"  br label %{head}{hint}")
        self.is_open = False

    def _if(self, node: ast.If) -> None:
        condition = self._value(node.test)
        if condition.number is not None:
            self._block(node.body if condition.number else node.orelse)
            return
        yes, no, after = self._label("then"), self._label("else"), self._label("after")
        self._choose(self._truth(condition), yes, no if node.orelse else after)
        ends = []
        for label, statements in ((yes, node.body), (no, node.orelse)):
            if statements:
                self._begin(label)
                self._block(statements)
                ends.append(self.is_open)
                self._branch(after)
        if any(ends) or not node.orelse:
            self._begin(after)

    def _break(self, node: ast.Break) -> None:
        self._branch(self.ends[-1])

    def _return(self, node: ast.Return) -> None:
        assert node.value is not None
        value = self._value(node.value)
        value = self.convert(value, value.kind if value.number is None else common_kind(value))
        self.returned = value.kind
        self.run(f"ret {llvm_type(value.kind)} {value.text}")
        self.is_open = False

    def _expression(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self._value(node.value)

    def _pass(self, node: ast.Pass) -> None:
        pass

    # --- expressions ---

    def _value(self, node: ast.expr) -> Typed:
        found = _EXPRESSIONS.get(type(node))
        if found is None:
            raise UnsupportedError(f"no instructions for {ast.unparse(node)}")
        value: Typed = found(self, node)
        return value

    def _constant(self, node: ast.Constant) -> Typed:
        return weak(node.value)

    def _name(self, node: ast.Name) -> Typed:
        if node.id in self.slots:
            slot = self.slots[node.id]
            return Typed(self.emit(f"load {llvm_type(slot.kind)}, ptr {slot.text}"), slot.kind)
        if node.id in self.names:
            return self.names[node.id]
        if node.id in self.constants:
            return weak(self.constants[node.id])
        raise UnsupportedError(f"{node.id} is unknown")

    def _address(self, node: ast.Subscript) -> tuple[str, str]:
        """Return the address of an element, and its type."""
        array = self._value(node.value)
        index = self.convert(self._value(node.slice), "i8")
        kind = element_kind(array.kind)
        address = f"getelementptr inbounds {TYPES[kind]}, ptr {array.text}, i64 {index.text}"
        return self.emit(address), kind

    def _element(self, node: ast.Subscript) -> Typed:
        address, kind = self._address(node)
        return Typed(self.emit(f"load {TYPES[kind]}, ptr {address}"), kind)

    def _operation(self, node: ast.BinOp) -> Typed:
        return self._binary(type(node.op), self._value(node.left), self._value(node.right))

    def _binary(self, operation: type[ast.AST], x: Typed, y: Typed) -> Typed:
        integer, floating, plain = _OPERATORS[operation]
        if x.number is not None and y.number is not None:
            return weak(plain(x.number, y.number))
        kind = common_kind(x, y)
        if kind == "b1" and integer not in ("and", "or", "xor"):
            kind = "i8"
        if kind[0] != "f" and operation in (ast.Div, ast.Pow):
            kind = "f8"
        x, y = self.convert(x, kind), self.convert(y, kind)
        if operation is ast.Pow:
            return self._elementary("pow", [x, y])
        if kind[0] == "f":
            if not floating:
                raise UnsupportedError(f"{integer} of floating numbers")
            text = f"{floating}{self.flags} {TYPES[kind]} {x.text}, {y.text}"
            return Typed(self.emit(text), kind)
        if integer in ("div", "rem"):
            return self._divide(integer, x, y)
        if integer == "ashr" and kind in _UNSIGNED:
            integer = "lshr"
        if kind == "u8" and integer in ("add", "sub", "mul"):
            integer += " nuw nsw"
        return Typed(self.emit(f"{integer} {TYPES[kind]} {x.text}, {y.text}"), kind)

    def _divide(self, operation: str, x: Typed, y: Typed) -> Typed:
        """Divide integers, rounding down, as Python does."""
        kind, of = x.kind, TYPES[x.kind]
        if kind in _UNSIGNED:
            return Typed(self.emit(f"u{operation} {of} {x.text}, {y.text}"), kind)
        quotient = self.emit(f"sdiv {of} {x.text}, {y.text}")
        rest = self.emit(f"srem {of} {x.text}, {y.text}")
        signs = self.emit(f"xor {of} {rest}, {y.text}")
        differ = self.emit(f"icmp slt {of} {signs}, 0")
        some = self.emit(f"icmp ne {of} {rest}, 0")
        lower = self.emit(f"and i1 {differ}, {some}")
        if operation == "div":
            amount = self.emit(f"sext i1 {lower} to {of}")
            return Typed(self.emit(f"add {of} {quotient}, {amount}"), kind)
        amount = self.emit(f"select i1 {lower}, {of} {y.text}, {of} 0")
        return Typed(self.emit(f"add {of} {rest}, {amount}"), kind)

    def _unary(self, node: ast.UnaryOp) -> Typed:
        value = self._value(node.operand)
        if isinstance(node.op, ast.Not):
            if value.number is not None:
                return weak(not value.number)
            return Typed(self.emit(f"xor i1 {self._truth(value).text}, true"), "b1")
        if value.number is not None:
            return weak(-value.number if isinstance(node.op, ast.USub) else +value.number)
        if isinstance(node.op, ast.UAdd):
            return value
        if value.kind[0] == "f":
            return Typed(
                self.emit(f"fneg{self.flags} {TYPES[value.kind]} {value.text}"), value.kind
            )
        return self._binary(ast.Sub, constant(0, value.kind), value)

    def _comparison(self, node: ast.Compare) -> Typed:
        x, found = self._value(node.left), None
        for operation, item in zip(node.ops, node.comparators, strict=True):
            if isinstance(operation, ast.NotIn):
                assert isinstance(item, ast.Tuple)
                parts = [self._compare(ast.NotEq, x, self._value(each)) for each in item.elts]
            else:
                y = self._value(item)
                parts = [self._compare(type(operation), x, y)]
                x = y
            for part in parts:
                found = part if found is None else self._both(found, part)
        assert found is not None
        return found

    def _compare(self, operation: type[ast.AST], x: Typed, y: Typed) -> Typed:
        integer, floating, plain = _COMPARISONS[operation]
        if x.number is not None and y.number is not None:
            return weak(plain(x.number, y.number))
        kind = common_kind(x, y)
        x, y = self.convert(x, kind), self.convert(y, kind)
        if kind[0] == "f":
            return Typed(self.emit(f"fcmp {floating} {TYPES[kind]} {x.text}, {y.text}"), "b1")
        sign = "" if integer in ("eq", "ne") else "u" if kind in _UNSIGNED else "s"
        return Typed(self.emit(f"icmp {sign}{integer} {TYPES[kind]} {x.text}, {y.text}"), "b1")

    def _both(self, x: Typed, y: Typed) -> Typed:
        return self._binary(ast.BitAnd, self._truth(x), self._truth(y))

    def _logical(self, node: ast.BoolOp) -> Typed:
        """Return `and` or `or`, whose operands have no effects: all are computed."""
        operation = ast.BitAnd if isinstance(node.op, ast.And) else ast.BitOr
        values = [self._value(item) for item in node.values]
        found = self._truth(values[0])
        for value in values[1:]:
            found = self._binary(operation, found, self._truth(value))
        return found

    def _truth(self, value: Typed) -> Typed:
        return self.convert(value, "b1")

    def _conditional(self, node: ast.IfExp) -> Typed:
        condition = self._value(node.test)
        if condition.number is not None:
            return self._value(node.body if condition.number else node.orelse)
        return self._select(condition, self._value(node.body), self._value(node.orelse))

    def _select(self, condition: Typed, x: Typed, y: Typed) -> Typed:
        kind = common_kind(x, y)
        x, y = self.convert(x, kind), self.convert(y, kind)
        of, test = llvm_type(kind), self._truth(condition).text
        return Typed(self.emit(f"select i1 {test}, {of} {x.text}, {of} {y.text}"), kind)

    # --- calls ---

    def _call(self, node: ast.Call) -> Typed:
        function = node.func
        if isinstance(function, ast.Attribute):
            if function.attr == "view":
                assert isinstance(node.args[0], ast.Name)
                kind, value = node.args[0].id, self._value(function.value)
                text = f"bitcast {TYPES[value.kind]} {value.text} to {TYPES[kind]}"
                return Typed(self.emit(text), kind)
            return self._elementary(function.attr, [self._value(item) for item in node.args])
        assert isinstance(function, ast.Name)
        name, values = function.id, [self._value(item) for item in node.args]
        if name in TYPES:
            return self.convert(values[0], name)
        if name == "int":
            return self.convert(values[0], "i8")
        if name in ("min", "max"):
            order = ast.Lt if name == "min" else ast.Gt
            return self._select(self._compare(order, values[1], values[0]), values[1], values[0])
        if name == "abs":
            return self._absolute(values[0])
        special = atomics.EMITTERS.get(name)
        if special is not None:
            return special(self, values)
        if gemm_microkernel.is_known(name):
            return gemm_microkernel.call(self, name, values)
        if name in _library():
            values = [
                value if value.number is None else self.convert(value, common_kind(value))
                for value in values
            ]
            symbol, kind = self.module.helper(name, [value.kind for value in values])
            return self.call(symbol, kind, values)
        raise UnsupportedError(f"{name} is unknown")

    def call(self, symbol: str, kind: str, values: list[Typed]) -> Typed:
        """Call a function of the module."""
        arguments = ", ".join(f"{llvm_type(value.kind)} {value.text}" for value in values)
        if kind == "void":
            self.run(f"call void @{symbol}({arguments})")
            return Typed("", "void")
        return Typed(self.emit(f"call {llvm_type(kind)} @{symbol}({arguments})"), kind)

    def _elementary(self, name: str, values: list[Typed]) -> Typed:
        """Call a function of floating numbers by NumPy's name."""
        kind = common_kind(*values)
        kind = kind if kind[0] == "f" else "f8"
        values = [self.convert(value, kind) for value in values]
        if name in _INTRINSICS:
            symbol, effects = f"llvm.{name}.f{_BITS[kind]}", ""
        else:
            symbol = _LIBM[name] if kind == "f8" else f"{_LIBM[name]}f"
            effects = " nounwind willreturn memory(none)"
        self.module.declare(symbol, TYPES[kind], *[TYPES[kind]] * len(values), effects=effects)
        return self.call(symbol, kind, values)

    def _absolute(self, value: Typed) -> Typed:
        if value.kind in _UNSIGNED:
            return value
        if value.kind[0] != "f":
            return self._select(
                self._compare(ast.Lt, value, weak(0)),
                self._binary(ast.Sub, constant(0, value.kind), value),
                value,
            )
        return self._elementary("fabs", [value])

    def convert(self, value: Typed, kind: str) -> Typed:
        """Return an operand converted to a type."""
        if value.number is not None:
            return constant(value.number, kind)
        if value.kind == kind:
            return value
        source, target = TYPES[value.kind], TYPES[kind]
        if kind == "b1":
            return self._compare(ast.NotEq, value, weak(0))
        if value.kind[0] == "f" and kind[0] == "f":
            how = "fpext" if kind == "f8" else "fptrunc"
        elif kind[0] == "f":
            how = "uitofp" if value.kind in _UNSIGNED else "sitofp"
        elif value.kind[0] == "f":
            how = "fptosi"
        elif source == target:
            return Typed(value.text, kind)
        elif _BITS[value.kind] > _BITS[kind]:
            how = "trunc"
        else:
            how = "zext" if value.kind in _UNSIGNED else "sext"
        return Typed(self.emit(f"{how} {source} {value.text} to {target}"), kind)


def _varying(tree: ast.FunctionDef) -> set[str]:
    """Return the variables that need memory: those assigned several times, if there are loops."""
    if not any(isinstance(node, ast.For | ast.While | ast.If) for node in ast.walk(tree)):
        return set()
    counts = Counter([argument.arg for argument in tree.args.args])
    targets = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            targets.add(node.target)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in targets:
            counts[node.id] += 1
    looped = {node.id for node in targets}
    return {name for name, n in counts.items() if n > 1 or name in looped}


_STATEMENTS: dict[type[ast.stmt], Callable[[_Function, Any], None]] = {
    ast.Assign: _Function._assignment,
    ast.AugAssign: _Function._augmented,
    ast.For: _Function._for,
    ast.While: _Function._while,
    ast.If: _Function._if,
    ast.Break: _Function._break,
    ast.Return: _Function._return,
    ast.Expr: _Function._expression,
    ast.Pass: _Function._pass,
}
_EXPRESSIONS: dict[type[ast.expr], Callable[[_Function, Any], Typed]] = {
    ast.Constant: _Function._constant,
    ast.Name: _Function._name,
    ast.Subscript: _Function._element,
    ast.BinOp: _Function._operation,
    ast.UnaryOp: _Function._unary,
    ast.Compare: _Function._comparison,
    ast.BoolOp: _Function._logical,
    ast.IfExp: _Function._conditional,
    ast.Call: _Function._call,
}


# --- entry points ---------------------------------------------------------------------------------


class EntryPoint:
    """Emitter of a C function for Python, which unpacks arrays and numbers.

    It takes an object, which it returns, and an array of arguments (METH_FASTCALL). It releases the
    interpreter lock while it runs.
    """

    def __init__(self, module: Module, name: str, types: tuple[str, ...], data_offset: int) -> None:
        self.module, self.name = module, name
        self.lines: list[str] = []
        self.arguments: list[str] = []
        for i, code in enumerate(types):
            self.lines.append(f"  %p{i} = getelementptr inbounds ptr, ptr %arguments, i64 {i}")
            self.lines.append(f"  %o{i} = load ptr, ptr %p{i}")
            if code in _READERS:
                symbol, kind = _READERS[code]
                module.declare(symbol, kind, "ptr")
                self.lines.append(f"  %a{i} = call {kind} @{symbol}(ptr %o{i})")
                self.arguments.append(f"{kind} %a{i}")
            else:
                self.lines.append(
                    f"  %d{i} = getelementptr inbounds i8, ptr %o{i}, i64 {data_offset}"
                )
                self.lines.append(f"  %a{i} = load ptr, ptr %d{i}")
                self.arguments.append(f"ptr %a{i}")
        module.declare("PyEval_SaveThread", "ptr")
        self.lines.append("  %state = call ptr @PyEval_SaveThread()")

    def finish(self) -> None:
        """Add the function to the module."""
        self.module.declare("PyEval_RestoreThread", "void", "ptr")
        self.module.declare("Py_IncRef", "void", "ptr")
        self.lines.append("  call void @PyEval_RestoreThread(ptr %state)")
        self.lines.append("  call void @Py_IncRef(ptr %self)")
        self.lines.append("  ret ptr %self")
        head = f"define ptr @{self.name}(ptr %self, ptr %arguments) nounwind"
        self.module.define(head, self.name, self.lines)


_READERS = {"n": ("PyLong_AsSsize_t", "i64"), "d": ("PyFloat_AsDouble", "double")}


def add_entry(module: Module, loop: str, name: str, types: tuple[str, ...], offset: int) -> None:
    """Add an entry point for Python that runs a loop."""
    entry = EntryPoint(module, name, types, offset)
    entry.lines.append(f"  call void @{loop}({', '.join(entry.arguments)})")
    entry.finish()


def add_parallel_entry(
    module: Module, loop: str, name: str, types: tuple[str, ...], offset: int, share: int
) -> None:
    """Add an entry point that runs a loop on several threads.

    Threads call a task with the address of the arguments, each in a word of 64 bits. `share` is the
    index of the word that holds the address of `worker.share`.
    """
    entry = EntryPoint(module, name, ("i8", "n", "n", *types), offset)
    team, iterations, step = (argument.partition(" ")[2] for argument in entry.arguments[:3])
    given = [argument.partition(" ") for argument in entry.arguments[3:]]
    body = []
    arguments = ["i64 %start", "i64 %stop"]
    entry.lines.append(f"  %words = alloca [{len(given) or 1} x i64]")
    for i, (kind, _, value) in enumerate(given):
        place = f"getelementptr inbounds i64, ptr %words, i64 {i}"
        entry.lines += [f"  %w{i} = {place}", f"  store {kind} {value}, ptr %w{i}"]
        body += [f"  %w{i} = {place}", f"  %v{i} = load {kind}, ptr %w{i}"]
        arguments.append(f"{kind} %v{i}")
    body += [f"  call void @{loop}({', '.join(arguments)})", "  ret void"]
    task = f"{name}_task"
    head = f"define internal void @{task}(i64 %address, i64 %start, i64 %stop) nounwind"
    module.define(head, task, ["  %words = inttoptr i64 %address to ptr", *body])
    entry.lines += [
        "  %address = ptrtoint ptr %words to i64",
        f"  %alone = icmp sle i64 {iterations}, {step}",
        "  br i1 %alone, label %one, label %several",
        "one:",
        f"  call void @{task}(i64 %address, i64 0, i64 {iterations})",
        "  br label %done",
        "several:",
        f"  %place = getelementptr inbounds i64, ptr {team}, i64 {share}",
        "  %function = load i64, ptr %place",
        "  %share = inttoptr i64 %function to ptr",
        f"  %task = ptrtoint ptr @{task} to i64",
        f"  call void %share(ptr {team}, i64 %task, i64 %address, i64 {iterations}, i64 {step})",
        "  br label %done",
        "done:",
    ]
    entry.finish()
