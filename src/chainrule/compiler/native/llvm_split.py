"""Division of long functions, as LLVM's time is quadratic in the loops of one function.

Neighbouring statements move to a *part*, a function of its own, where no variable that they assign
is read by others. Arrays are arguments of a part as they are of the whole, so that what LLVM knows
about them stays the same.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Set
from typing import NamedTuple

PART_LOOPS = 16
"""Number of loops of a part. A call costs some nanoseconds, less than the loops of small arrays."""


class Part(NamedTuple):
    """A part of a function, and how often a call of the function runs it, infinite if unknown.

    None means as often as the calls of the part.
    """

    function: ast.FunctionDef
    runs: float | None


def split(function: ast.FunctionDef) -> list[Part]:
    """Return the parts of a function, which then calls them."""
    parts: list[Part] = []
    _Splitter(function, parts).divide(function.body, frozenset(), 1)
    return parts


def iterations(loop: ast.For | ast.While) -> float:
    """Return the number of iterations of a loop, infinite if it isn't known."""
    match loop:
        case ast.For(iter=ast.Call(args=[ast.Call(args=[ast.Constant(value=int(count))])])):
            return count
    return math.inf


class _Use(NamedTuple):
    """What statements do with variables."""

    exposed: Set[str] = frozenset()  # that they may read before they assign them
    stored: Set[str] = frozenset()  # that they may assign
    definite: Set[str] = frozenset()  # that they always assign
    loops: int = 0
    leaves: bool = False  # whether they may end a loop around them

    def then(self, other: _Use) -> _Use:
        """Return what these statements and the next ones do."""
        return _Use(
            self.exposed | (other.exposed - self.definite),
            self.stored | other.stored,
            self.definite | other.definite,
            self.loops + other.loops,
            self.leaves or other.leaves,
        )


class _Splitter:
    def __init__(self, function: ast.FunctionDef, parts: list[Part]) -> None:
        self.name, self.parts = function.name, parts
        self.uses: dict[ast.stmt, _Use] = {}  # of statements
        arguments = {argument.arg for argument in function.args.args}
        self.variables = arguments | self._sequence(function.body).stored

    def divide(self, body: list[ast.stmt], outside: Set[str], runs: float) -> None:
        """Replace statements by calls of parts.

        `outside` are the variables that statements outside the body, or its next run, may read. A
        call of the function `runs` the body so many times.
        """
        whole = self._sequence(body)
        if whole.loops <= PART_LOOPS or whole.leaves:
            return
        needed = [outside]  # by what follows each statement, from the last one
        for statement in body[:0:-1]:
            use = self._use(statement)
            needed.append(use.exposed | (needed[-1] - use.definite))
        found: list[ast.stmt] = []
        run: list[ast.stmt] = []
        done = _Use()
        for statement, later in zip(body, reversed(needed), strict=True):
            if self._use(statement).loops > PART_LOOPS:
                self._within(statement, later, runs)
            run.append(statement)
            done = done.then(self._use(statement))
            if done.loops >= PART_LOOPS and done.stored.isdisjoint(later):
                found.append(self._part(run, done, runs))
                run, done = [], _Use()
        body[:] = [*found, *run]

    def _within(self, statement: ast.stmt, later: Set[str], runs: float) -> None:
        """Divide the body of a statement."""
        if isinstance(statement, ast.If):
            self.divide(statement.body, later, runs)
            self.divide(statement.orelse, later, runs)
        elif isinstance(statement, ast.For | ast.While):
            inside = later | self._use(statement).exposed
            self.divide(statement.body, inside, runs * iterations(statement))
        del self.uses[statement]

    def _part(self, statements: list[ast.stmt], use: _Use, runs: float) -> ast.stmt:
        """Add a part; return its call."""
        name = f"{self.name}_part_{len(self.parts)}"
        given = sorted(use.exposed & self.variables)
        heads = ast.arguments([], [ast.arg(item) for item in given], None, [], [], None, [])
        self.parts.append(Part(ast.FunctionDef(name, heads, statements, []), runs))
        values: list[ast.expr] = [ast.Name(item, ast.Load()) for item in given]
        return ast.Expr(ast.Call(ast.Name(name, ast.Load()), values, []))

    def _use(self, statement: ast.stmt) -> _Use:
        found = self.uses.get(statement)
        if found is None:
            found = self.uses[statement] = self._used_by(statement)
        return found

    def _sequence(self, statements: list[ast.stmt]) -> _Use:
        found = _Use()
        for statement in statements:
            found = found.then(self._use(statement))
        return found

    def _used_by(self, statement: ast.stmt) -> _Use:
        match statement:
            case ast.Assign(targets=[target], value=value):
                places = target.elts if isinstance(target, ast.Tuple) else [target]
                stored = frozenset([item.id for item in places if isinstance(item, ast.Name)])
                return _Use(_read(value, *places), stored, stored)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                return _Use(_read(value) | {name}, frozenset([name]), frozenset([name]))
            case ast.For(target=ast.Name(id=name), iter=count, body=body):
                inner = self._sequence(body)
                exposed = _read(count) | (inner.exposed - {name})
                return _Use(exposed, inner.stored | {name}, loops=1 + inner.loops)
            case ast.While(test=test, body=body):
                inner = self._sequence(body)
                return _Use(_read(test) | inner.exposed, inner.stored, loops=1 + inner.loops)
            case ast.If(test=test, body=body, orelse=orelse):
                yes, no = self._sequence(body), self._sequence(orelse)
                return _Use(
                    _read(test) | yes.exposed | no.exposed,
                    yes.stored | no.stored,
                    yes.definite & no.definite,
                    yes.loops + no.loops,
                    yes.leaves or no.leaves,
                )
        return _Use(_read(statement), leaves=isinstance(statement, ast.Break | ast.Return))


def _read(*trees: ast.AST) -> frozenset[str]:
    """Return the names that expressions read."""
    names = [node for node in nodes_of(*trees) if isinstance(node, ast.Name)]
    return frozenset([node.id for node in names if isinstance(node.ctx, ast.Load)])


def nodes_of(*trees: ast.AST) -> list[ast.AST]:
    """Return the nodes of trees without contexts and operators, in a third of `ast.walk`'s time."""
    found = [*trees]
    for node in found:  # which grows meanwhile
        for name in _FIELDS[node.__class__]:
            child = getattr(node, name)
            if child.__class__ is list:
                found += child
            elif isinstance(child, ast.AST):
                found.append(child)
    return found


class _Fields(dict[type, tuple[str, ...]]):
    def __missing__(self, kind: type) -> tuple[str, ...]:
        fields: tuple[str, ...] = getattr(kind, "_fields", ())
        return fields


_FIELDS = _Fields(
    {
        ast.Name: (),
        ast.Constant: (),
        ast.BinOp: ("left", "right"),
        ast.UnaryOp: ("operand",),
        ast.Compare: ("left", "comparators"),
        ast.Subscript: ("value", "slice"),
        ast.Assign: ("targets", "value"),
        ast.For: ("target", "iter", "body", "orelse"),
    }
)
"""The fields of nodes that contain others."""
