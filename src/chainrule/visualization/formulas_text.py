"""Formulas of traced ops, as text and as LaTeX."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from chainrule.compiler.codegen.expression import (
    Expression,
    array_literal,
    binary,
    call,
    literal,
)
from chainrule.compiler.codegen.numpy_source import Source
from chainrule.compiler.ir.program import Names, Op, Program, Value

GRADIENT = "ð"
"""Begin of the names of gradients in formulas: of ∂L/∂t2 it is ðt2."""

WITH = " with "
"""Between a long formula and the parts that it uses several times, each as ``s1 = ...``."""

_WIDEST, _SHORT = 80, 8
"""Characters from which a formula names its repeated parts, and up to which a part is repeated."""


class Formula(Source):
    """The expression of a value in terms of named ones, with the ops between them written out."""

    def __init__(
        self, ops: Sequence[Op], names: Mapping[Value, str], constants: Mapping[Value, Any]
    ) -> None:
        self.program = Program("formula", [], dict(constants), list(ops), [], [])
        self.made = {v: op for op in ops for v in op.outs}
        self.known = names
        self.names = Names(names.values())
        self.objects = {}
        self._written: dict[Value, Expression] = {}  # `expression` asks for each operand twice
        self._uses = Counter(v for op in ops for v in op.inputs)
        self._parts: dict[str, str] | None = None  # those that have names

    def tree(self, tree: Any) -> Expression:
        """Return the expression of an argument, or of nested arguments."""
        if isinstance(tree, Value):
            if tree in self.known:
                return Expression(self.known[tree])
            if tree in self.made:
                if tree not in self._written:
                    self._written[tree] = self._named(tree, self._written_out(tree))
                return self._written[tree]
            array = self.program.constants.get(tree)
            if array is not None and array.size <= 8:
                return array_literal(array) if array.ndim else literal(array[()].item())
            return Expression("constant")
        return super().tree(tree)

    def _named(self, value: Value, found: Expression) -> Expression:
        """Return the name of an expression that a long formula uses several times."""
        if self._parts is None or self._uses[value] < 2 or len(found.text) <= _SHORT:
            return found
        name = f"s{len(self._parts) + 1}"
        self._parts[name] = found.text
        return Expression(name)

    def _written_out(self, value: Value) -> Expression:
        op = self.made[value]
        first = op.args[0] if op.args else None
        if op.function in ("np.astype", "np.broadcast_to") and op.inputs:
            return self.tree(first)
        if op.function == "np.add" and first is op.args[1]:
            return binary("*", literal(2), self.tree(first))
        if op.function == "np.conj" and isinstance(first, Value):
            inner = self.made.get(first)
            if first.dtype.kind != "c" or (inner is not None and inner.function == "np.conj"):
                return self.tree(
                    first if inner is None or first.dtype.kind != "c" else inner.args[0]
                )
        if op.regions:
            return Expression("loop")
        if op.function == "masked":
            value_of, mask = map(self.show, op.args)
            return call("where", [mask, value_of, "0"])
        found = self.expression(op)
        if len(op.outs) > 1:
            return Expression(f"{found.text}[{op.outs.index(value)}]")
        return found

    def of(self, value: Value) -> str:
        """Return the formula of a value, with names for repeated parts if it is long."""
        self._parts = {}
        text = self._written_out(value).text if self._is_open(value) else self.tree(value).text
        if self._length(text) <= _WIDEST:
            self._written, self._parts = {}, None
            text = self.tree(value).text
        parts = ", ".join(f"{name} = {part}" for name, part in (self._parts or {}).items())
        text += f"{WITH}{parts}" if parts else ""
        return re.sub(r"\b(np|kernels|scipy)\.", "", text)

    def _is_open(self, value: Value) -> bool:
        return value in self.made and value not in self.known

    def _length(self, text: str) -> int:
        """Return the length of a formula with its named parts written out."""
        names = re.findall(r"\bs\d+\b", text)
        parts = self._parts or {}
        return len(text) + sum(self._length(parts[n]) for n in names if n in parts)


# --- text -----------------------------------------------------------------------------------------


def shown(text: str, root: str) -> str:
    """Return a formula with gradients as ∂root/∂name."""
    text = re.sub(rf"{GRADIENT}(\w+)(?=[.\[])", rf"(∂{root}/∂\1)", text)
    return re.sub(rf"{GRADIENT}(\w+)", rf"∂{root}/∂\1", text)


def lines(text: str) -> list[str]:
    """Return a formula and the parts that it names, each as a line."""
    main, _, parts = text.partition(WITH)
    return [main, *re.split(r", (?=s\d+ = )", parts)] if parts else [main]


# --- LaTeX ----------------------------------------------------------------------------------------

_FUNCTIONS = frozenset(
    [
        *("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log"),
        *("arcsin", "arccos", "arctan", "min", "max", "det"),
    ]
)
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: r"\cdot", ast.MatMult: r"\,"}
_PRECEDENCE = {ast.Add: 1, ast.Sub: 1, ast.Mult: 2, ast.MatMult: 2, ast.Div: 4, ast.Pow: 5}
_COMPARISONS = {ast.Lt: "<", ast.Gt: ">", ast.LtE: r"\le", ast.GtE: r"\ge", ast.Eq: "="}


def latex(text: str, root: str) -> str:
    """Return a formula in LaTeX."""
    main, *parts = lines(text)
    try:
        found = [_Latex(root).of(ast.parse(main, mode="eval").body)[0]]
        for name, _, part in (each.partition(" = ") for each in parts):
            inner = _Latex(root).of(ast.parse(part, mode="eval").body)[0]
            found.append(rf"{symbol(name)} = {inner}")
    except (SyntaxError, RecursionError):
        return rf"\texttt{{{escaped(text)}}}"
    return r",\quad ".join(found)


def escaped(text: str) -> str:
    """Return a text with the characters escaped that LaTeX reads as commands."""
    return re.sub(r"([&%$#_{}])", r"\\\1", text.replace("\\", r"\textbackslash "))


def symbol(name: str) -> str:
    """Return a name in LaTeX: a letter, with a number as its index."""
    found = re.fullmatch(r"([A-Za-z]+?)_?(\d+)", name)
    stem, index = (found[1], found[2]) if found else (name, "")
    head = stem if len(stem) == 1 else rf"\mathrm{{{escaped(stem)}}}"
    return f"{head}_{{{index}}}" if index else head


def derivative(root: str, name: str) -> str:
    """Return ∂root/∂name in LaTeX."""
    return rf"\frac{{\partial {symbol(root)}}}{{\partial {symbol(name)}}}"


class _Latex:
    """LaTeX of expressions, each with its precedence."""

    def __init__(self, root: str) -> None:
        self.root = root

    def of(self, node: ast.expr) -> tuple[str, int]:
        match node:
            case ast.Name(id=name) if name.startswith(GRADIENT):
                return derivative(self.root, name[len(GRADIENT) :]), 9
            case ast.Name(id=name):
                return symbol(name), 9
            case ast.Constant(value=value):
                return escaped(f"{value!r}"), 9
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"-{self._within(operand, 2)}", 1
            case ast.BinOp(left=ast.Name(id=name), op=ast.Div(), right=right) if name.startswith(
                GRADIENT
            ):
                found = derivative(self.root, name[len(GRADIENT) :])
                return rf"\frac{{1}}{{{self.of(right)[0]}}} \cdot {found}", 2
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return rf"\frac{{{self.of(left)[0]}}}{{{self.of(right)[0]}}}", 4
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return f"{self._within(left, 6)}^{{{self.of(right)[0]}}}", 5
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                own = _PRECEDENCE[type(op)]
                sign = _OPERATORS[type(op)]
                return f"{self._within(left, own)} {sign} {self._within(right, own + 1)}", own
            case ast.Attribute(value=value, attr="T"):
                return f"{self._within(value, 6)}^{{\\top}}", 5
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
                return f"{self.of(left)[0]} {_COMPARISONS[type(op)]} {self.of(right)[0]}", 0
            case ast.Call(func=ast.Name(id="sqrt"), args=[argument]):
                return rf"\sqrt{{{self.of(argument)[0]}}}", 9
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=keywords):
                return self._call(name, arguments, keywords), 8
            case ast.Call(func=ast.Attribute(value=value, attr=name), args=args, keywords=keys):
                return self._call(name, [value, *args], keys), 8
        return rf"\texttt{{{escaped(ast.unparse(node))}}}", 9

    def _call(
        self, name: str, arguments: Sequence[ast.expr], keywords: Sequence[ast.keyword]
    ) -> str:
        head = f"\\{name}" if name in _FUNCTIONS else rf"\operatorname{{{escaped(name)}}}"
        parts = [self.of(argument)[0] for argument in arguments]
        parts += [
            rf"\mathrm{{{escaped(k.arg or '')}={escaped(ast.unparse(k.value))}}}" for k in keywords
        ]
        return rf"{head}\left({', '.join(parts)}\right)"

    def _within(self, node: ast.expr, precedence: int) -> str:
        text, own = self.of(node)
        return text if own >= precedence else rf"\left({text}\right)"
