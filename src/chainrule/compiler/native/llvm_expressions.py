"""Instructions of expressions in the Python subset of generated source."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any, Protocol

from chainrule.compiler.native import gemm_microkernel, libm_beyond
from chainrule.compiler.native.llvm_types import (
    BITS,
    TYPES,
    UNSIGNED,
    VOID,
    Typed,
    UnsupportedError,
    common_kind,
    constant,
    element_kind,
    llvm_type,
    weak,
)
from chainrule.compiler.native.threads import atomics

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
        *("sin", "cos", "pow", "log"),
    ]
)
"""Functions that LLVM knows."""


class Module(Protocol):
    """The module of a function."""

    functions: dict[str, str]
    declarations: dict[str, str]
    kept: list[str]

    def declare(self, symbol: str, returned: str, *arguments: str, effects: str = "") -> None:
        """Declare an external function."""

    def helper(self, name: str, kinds: list[str], runs: float = math.inf) -> tuple[str, str] | None:
        """Return the symbol of a helper function for such arguments, and what it returns."""


class ExpressionWriter:
    """Emitter of the instructions of expressions."""

    runs: float  # of the function, or of the loop that is emitted

    def __init__(self, module: Module, constants: dict[str, Any], flags: frozenset[str]) -> None:
        self.module, self.constants = module, constants
        self.flags = "".join(f" {flag}" for flag in sorted(flags))  # of fast floating arithmetic
        self.lines: list[str] = []
        self.allocations: list[str] = []
        self.names: dict[str, Typed] = {}
        self.slots: dict[str, Typed] = {}  # memory of variables that are assigned several times
        self.number = 0

    # --- instructions ---

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

    # --- expressions ---

    def value(self, node: ast.expr) -> Typed:
        """Return the operand that an expression computes."""
        found = _EXPRESSIONS.get(type(node))
        if found is None:
            raise UnsupportedError(f"no instructions for {ast.unparse(node)}")
        value: Typed = found(self, node)
        return value

    def _constant(self, node: ast.Constant) -> Typed:
        return weak(node.value)

    def name(self, node: ast.Name) -> Typed:
        """Return a variable or constant."""
        if node.id in self.slots:
            slot = self.slots[node.id]
            return Typed(self.emit(f"load {llvm_type(slot.kind)}, ptr {slot.text}"), slot.kind)
        if node.id in self.names:
            return self.names[node.id]
        if node.id in self.constants:
            return weak(self.constants[node.id])
        raise UnsupportedError(f"{node.id} is unknown")

    def address(self, node: ast.Subscript) -> tuple[str, str]:
        """Return the address of an element, and its type."""
        array = self.value(node.value)
        index = self.convert(self.value(node.slice), "i8")
        kind = element_kind(array.kind)
        address = f"getelementptr inbounds {TYPES[kind]}, ptr {array.text}, i64 {index.text}"
        return self.emit(address), kind

    def _element(self, node: ast.Subscript) -> Typed:
        address, kind = self.address(node)
        return Typed(self.emit(f"load {TYPES[kind]}, ptr {address}"), kind)

    def _operation(self, node: ast.BinOp) -> Typed:
        return self.binary(type(node.op), self.value(node.left), self.value(node.right))

    def binary(self, operation: type[ast.AST], x: Typed, y: Typed) -> Typed:
        """Combine two numbers by an operator."""
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
        if integer == "ashr" and kind in UNSIGNED:
            integer = "lshr"
        if kind == "u8" and integer in ("add", "sub", "mul"):
            integer += " nuw nsw"
        return Typed(self.emit(f"{integer} {TYPES[kind]} {x.text}, {y.text}"), kind)

    def _divide(self, operation: str, x: Typed, y: Typed) -> Typed:
        """Divide integers, rounding down, as Python does."""
        kind, of = x.kind, TYPES[x.kind]
        if kind in UNSIGNED:
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
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            if value.number is not None:
                return weak(not value.number)
            return Typed(self.emit(f"xor i1 {self.truth(value).text}, true"), "b1")
        if value.number is not None:
            return weak(-value.number if isinstance(node.op, ast.USub) else +value.number)
        if isinstance(node.op, ast.UAdd):
            return value
        if value.kind[0] == "f":
            return Typed(
                self.emit(f"fneg{self.flags} {TYPES[value.kind]} {value.text}"), value.kind
            )
        return self.binary(ast.Sub, constant(0, value.kind), value)

    def _comparison(self, node: ast.Compare) -> Typed:
        x, found = self.value(node.left), None
        for operation, item in zip(node.ops, node.comparators, strict=True):
            if isinstance(operation, ast.NotIn):
                assert isinstance(item, ast.Tuple)
                parts = [self.compare(ast.NotEq, x, self.value(each)) for each in item.elts]
            else:
                y = self.value(item)
                parts = [self.compare(type(operation), x, y)]
                x = y
            for part in parts:
                found = part if found is None else self._both(found, part)
        assert found is not None
        return found

    def compare(self, operation: type[ast.AST], x: Typed, y: Typed) -> Typed:
        """Compare two numbers."""
        integer, floating, plain = _COMPARISONS[operation]
        if x.number is not None and y.number is not None:
            return weak(plain(x.number, y.number))
        kind = common_kind(x, y)
        x, y = self.convert(x, kind), self.convert(y, kind)
        if kind[0] == "f":
            return Typed(self.emit(f"fcmp {floating} {TYPES[kind]} {x.text}, {y.text}"), "b1")
        sign = "" if integer in ("eq", "ne") else "u" if kind in UNSIGNED else "s"
        return Typed(self.emit(f"icmp {sign}{integer} {TYPES[kind]} {x.text}, {y.text}"), "b1")

    def _both(self, x: Typed, y: Typed) -> Typed:
        return self.binary(ast.BitAnd, self.truth(x), self.truth(y))

    def _logical(self, node: ast.BoolOp) -> Typed:
        """Return `and` or `or`, whose operands have no effects: all are computed."""
        operation = ast.BitAnd if isinstance(node.op, ast.And) else ast.BitOr
        values = [self.value(item) for item in node.values]
        found = self.truth(values[0])
        for value in values[1:]:
            found = self.binary(operation, found, self.truth(value))
        return found

    def truth(self, value: Typed) -> Typed:
        """Return whether a number is not zero."""
        return self.convert(value, "b1")

    def _conditional(self, node: ast.IfExp) -> Typed:
        condition = self.value(node.test)
        if condition.number is not None:
            return self.value(node.body if condition.number else node.orelse)
        return self._select(condition, self.value(node.body), self.value(node.orelse))

    def _select(self, condition: Typed, x: Typed, y: Typed) -> Typed:
        kind = common_kind(x, y)
        x, y = self.convert(x, kind), self.convert(y, kind)
        of, test = llvm_type(kind), self.truth(condition).text
        return Typed(self.emit(f"select i1 {test}, {of} {x.text}, {of} {y.text}"), kind)

    # --- calls ---

    def _call(self, node: ast.Call) -> Typed:
        function = node.func
        if isinstance(function, ast.Attribute):
            if function.attr == "view":
                assert isinstance(node.args[0], ast.Name)
                kind, value = node.args[0].id, self.value(function.value)
                text = f"bitcast {TYPES[value.kind]} {value.text} to {TYPES[kind]}"
                return Typed(self.emit(text), kind)
            return self._elementary(function.attr, [self.value(item) for item in node.args])
        assert isinstance(function, ast.Name)
        name, values = function.id, [self.value(item) for item in node.args]
        if name in TYPES:
            return self.convert(values[0], name)
        if name == "int":
            return self.convert(values[0], "i8")
        if name in ("min", "max"):
            order = ast.Lt if name == "min" else ast.Gt
            return self._select(self.compare(order, values[1], values[0]), values[1], values[0])
        if name == "abs":
            return self._absolute(values[0])
        special = atomics.EMITTERS.get(name)
        if special is not None:
            return special(self, values)
        if gemm_microkernel.is_known(name):
            return gemm_microkernel.call(self, name, values)
        if libm_beyond.is_known(name):
            libm_beyond.add(self.module, name)
            return self.call(name, values[0].kind, values, libm_beyond.attributes(name))
        values = [
            value if value.number is None else self.convert(value, common_kind(value))
            for value in values
        ]
        helper = self.module.helper(name, [value.kind for value in values], self.runs)
        if helper is None:
            raise UnsupportedError(f"{name} is unknown")
        return self.call(*helper, values)

    def call(self, symbol: str, kind: str, values: list[Typed], attributes: str = "") -> Typed:
        """Call a function of the module."""
        arguments = ", ".join(f"{llvm_type(value.kind)} {value.text}" for value in values)
        if kind == "void":
            self.run(f"call void @{symbol}({arguments})")
            return VOID
        return Typed(self.emit(f"call {llvm_type(kind)} @{symbol}({arguments}){attributes}"), kind)

    def _elementary(self, name: str, values: list[Typed]) -> Typed:
        """Call a function of floating numbers by NumPy's name."""
        kind = common_kind(*values)
        kind = kind if kind[0] == "f" else "f8"
        values = [self.convert(value, kind) for value in values]
        if name in _INTRINSICS:
            symbol, effects = f"llvm.{name}.f{BITS[kind]}", ""
        else:
            symbol = name.replace("arc", "a") + "f" * (kind == "f4")  # of libm
            effects = " nounwind willreturn memory(none)"
        self.module.declare(symbol, TYPES[kind], *[TYPES[kind]] * len(values), effects=effects)
        return self.call(symbol, kind, values)

    def _absolute(self, value: Typed) -> Typed:
        if value.number is not None:
            return weak(abs(value.number))
        if value.kind in UNSIGNED:
            return value
        if value.kind[0] != "f":
            return self._select(
                self.compare(ast.Lt, value, weak(0)),
                self.binary(ast.Sub, constant(0, value.kind), value),
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
            return self.compare(ast.NotEq, value, weak(0))
        if value.kind[0] == "f" and kind[0] == "f":
            how = "fpext" if kind == "f8" else "fptrunc"
        elif kind[0] == "f":
            how = "uitofp" if value.kind in UNSIGNED else "sitofp"
        elif value.kind[0] == "f":
            how = "fptosi"
        elif source == target:
            return Typed(value.text, kind)
        elif BITS[value.kind] > BITS[kind]:
            how = "trunc"
        else:
            how = "zext" if value.kind in UNSIGNED else "sext"
        return Typed(self.emit(f"{how} {source} {value.text} to {target}"), kind)


_EXPRESSIONS: dict[type[ast.expr], Callable[[ExpressionWriter, Any], Typed]] = {
    ast.Constant: ExpressionWriter._constant,
    ast.Name: ExpressionWriter.name,
    ast.Subscript: ExpressionWriter._element,
    ast.BinOp: ExpressionWriter._operation,
    ast.UnaryOp: ExpressionWriter._unary,
    ast.Compare: ExpressionWriter._comparison,
    ast.BoolOp: ExpressionWriter._logical,
    ast.IfExp: ExpressionWriter._conditional,
    ast.Call: ExpressionWriter._call,
}
