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
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from chainrule.compiler.native.llvm_expressions import ExpressionWriter
from chainrule.compiler.native.llvm_split import Part, nodes_of, split
from chainrule.compiler.native.llvm_types import (
    TYPES,
    Typed,
    UnsupportedError,
    common_kind,
    llvm_type,
    weak,
)
from chainrule.compiler.native.table_loop import add_table_loop, kind_of

INTERLEAVE_COUNT = 4
"""Number of interleaved vectors in long loops. For long expressions LLVM chooses one, but then the
latency of dependent operations limits the speed."""

MAX_UNROLLED = 8
"""Number of iterations up to which LLVM may write a loop out."""

_HINTS = {
    "interleaved": f'"llvm.loop.interleave.count", i32 {INTERLEAVE_COUNT}',
    "kept": '"llvm.loop.unroll.disable"',
    "scalar": '"llvm.loop.vectorize.enable", i1 false',
    "short": '"llvm.loop.interleave.count", i32 1',
}

MAX_COLD_ITERATIONS = 256
"""Number of iterations in a call up to which a loop is neither written out nor vectorised: LLVM
takes milliseconds for that, and the call is at most some tens of nanoseconds shorter."""

_HEAD = "define internal {returned} @{symbol}({parameters}) noinline nounwind"

# --- modules --------------------------------------------------------------------------------------


class Module:
    """The text of a module: functions, and declarations of what they call."""

    def __init__(self, interleaved: bool = False) -> None:
        self.hints = ["interleaved"] * interleaved  # on each loop
        self.functions: dict[str, str] = {}
        self.kinds: dict[str, str] = {}  # what functions return
        self.kernels: dict[str, list[str]] = {}  # types of the arguments of kernels
        self.declarations: dict[str, str] = {}
        self.kept: list[str] = []  # functions that LLVM may not change or remove
        self.parts: dict[str, tuple[Part, dict[str, Any]]] = {}  # functions that it calls

    def text(self) -> str:
        """Return the text of the module."""
        nodes = [f"!{i} = !{{!{hint}}}" for i, hint in enumerate(_HINTS.values())]

        def numbered(found: re.Match[str]) -> str:
            number = len(nodes)
            hints = [f"!{i}" for i, name in enumerate(_HINTS) if name in found[0]]
            nodes.append(f"!{number} = distinct !{{{', '.join([f'!{number}', *hints])}}}")
            return f"!llvm.loop !{number}"

        functions = re.sub("!llvm.loop .*", numbered, "\n".join(self.functions.values()))
        kept = ", ".join(f"ptr @{name}" for name in dict.fromkeys(self.kept))
        if kept:
            of = f"[{kept.count('@')} x ptr]"
            text = f'@llvm.compiler.used = appending global {of} [{kept}], section "llvm.metadata"'
            nodes.append(text)
        return "\n".join([*self.declarations.values(), functions, *nodes]) + "\n"

    def declare(self, symbol: str, returned: str, *arguments: str, effects: str = "") -> None:
        """Declare an external function."""
        text = f"declare {returned} @{symbol}({', '.join(arguments)}){effects}"
        self.declarations[symbol] = text

    def define(self, head: str, symbol: str, body: list[str]) -> None:
        """Add a function."""
        self.functions[symbol] = "\n".join([f"{head} {{", *body, "}"])

    def add_source(self, text: str, symbol: str, kinds: list[str]) -> None:
        """Add the last function of generated source, with arguments of these types.

        Functions before it that have type hints are kernels, which it calls as its first argument
        says. It may call the others, whose types follow from the calls, as how often they run does.
        """
        tree = ast.parse(text)
        *others, function = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        kernels = [other for other in others if other.args.args[0].annotation]
        scope = _constants(tree)
        self.parts = {f.name: (Part(f, None), scope) for f in others if f not in kernels}
        for kernel in kernels:
            annotations = [item.annotation for item in kernel.args.args if item.annotation]
            self.kernels[kernel.name] = [kind_of(ast.unparse(item)) for item in annotations]
            self.hints = ["kept", "short"]
            self._add_split(kernel, kernel.name, self.kernels[kernel.name], scope)
        if kernels:
            add_table_loop(self, symbol, self.kernels, len(kinds) - 1)
        else:
            self._add_split(function, symbol, kinds, scope)

    def _add_split(
        self, function: ast.FunctionDef, symbol: str, kinds: list[str], scope: dict[str, Any]
    ) -> None:
        """Add a function whose arrays do not overlap, and its parts."""
        self.parts |= {part.function.name: (part, scope) for part in split(function)}
        _Function(self, function, scope, kinds, runs=1).add(symbol, _HEAD, distinct=True)

    def helper(self, name: str, kinds: list[str], runs: float = math.inf) -> tuple[str, str] | None:
        """Return the symbol of a helper function for such arguments, and what it returns.

        Its first call is one of so many `runs`.
        """
        symbol = _symbol(name, kinds)
        if symbol not in self.kinds:
            if name in self.parts:
                (part, known), scope = self.parts[name]
                runs = runs if known is None else known
                _Function(self, part, scope, kinds, runs=runs).add(symbol, _HEAD, distinct=True)
            elif name in _library():
                self.merge(_emitted_helper(name, tuple(kinds), bool(self.kernels)))
            else:
                return None
        return symbol, self.kinds[symbol]

    def merge(self, other: Module) -> None:
        """Add the functions of another module."""
        self.functions = other.functions | self.functions
        self.declarations |= other.declarations
        self.kinds |= other.kinds
        self.kept += other.kept


def _symbol(name: str, kinds: Sequence[str]) -> str:
    return "_".join([name, *(kind.replace("*", "p") for kind in kinds)])


@functools.cache
def _emitted_helper(name: str, kinds: tuple[str, ...], is_shared: bool) -> Module:
    """Return a module with a helper function and what it calls.

    If it `is_shared` by many kernels, LLVM may not write it out for each of them.
    """
    function, scope, flags, attribute = _library()[name]
    is_whole = attribute == "noinline"  # a pass over arrays
    attribute = attribute or "noinline" * is_shared
    module = Module()
    if is_whole:
        module.hints = ["short"]
    head = f"define internal {{returned}} @{{symbol}}({{parameters}}) {attribute} nounwind"
    _Function(module, function, scope, list(kinds), flags).add(
        _symbol(name, kinds), head, distinct=is_whole
    )
    return module


_FLAGS = {"plus": ("reassoc",), "times_plus": ("reassoc", "contract")}
"""Fast-math flags of sums; elementary functions have only `contract` (fused multiply-add)."""

_INLINED = {
    "vector_math.py": "alwaysinline",
    "trigonometry.py": "alwaysinline",
    "threads/worker.py": "alwaysinline",
    "dense_kernels.py": "",  # LLVM decides: there may be many calls
    "fourier_kernels.py": "noinline",
}


@functools.cache
def _library() -> dict[str, tuple[ast.FunctionDef, dict[str, Any], frozenset[str], str]]:
    """Return the functions that generated source calls, with the constants and flags of each."""
    found = {}
    for path, attribute in _INLINED.items():
        tree = ast.parse((Path(__file__).parent / path).read_text(encoding="utf-8"))
        scope = _constants(tree)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                contracts = node.name[-3:-1] == "_f" or attribute == "noinline"
                flags = _FLAGS.get(node.name, ("contract",) if contracts else ())
                found[node.name] = node, scope, frozenset(flags), attribute
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


class _Function(ExpressionWriter):
    """Emitter of one function."""

    module: Module

    def __init__(
        self,
        module: Module,
        tree: ast.FunctionDef,
        scope: dict[str, Any],
        kinds: list[str],
        flags: frozenset[str] = frozenset(),
        runs: float = math.inf,  # in a call of the whole
    ) -> None:
        super().__init__(module, scope, flags)
        self.runs = runs
        self.statements = tree.body
        arguments = [argument.arg for argument in tree.args.args]
        self.parameters = list(zip(arguments, kinds, strict=True))
        self.ends: list[str] = []  # the labels after the loops around
        self.is_open = True  # whether the current block has no terminator
        self.returned = "void"
        self.varying = _varying(tree)

    def add(self, symbol: str, head: str, distinct: bool = False) -> None:
        """Add the function to the module; `distinct` states that its arrays do not overlap."""
        parameters = []
        for name, kind in self.parameters:
            attribute = " noalias" if kind[0] == "*" and distinct else ""
            parameters.append(f"{llvm_type(kind)}{attribute} %{name}.in")
            self._assign(name, Typed(f"%{name}.in", kind))
        self._block(self.statements)
        if self.is_open:
            self.lines.append("  ret void")
        returned = "void" if self.returned == "void" else llvm_type(self.returned)
        text = head.format(returned=returned, symbol=symbol, parameters=", ".join(parameters))
        self.module.kinds[symbol] = self.returned
        self.module.define(text, symbol, [*self.allocations, *self.lines])

    # --- blocks ---

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
            values = [self.value(item) for item in node.value.elts]
            for item, value in zip(target.elts, values, strict=True):
                self._store(item, value)
        else:
            self._store(target, self.value(node.value))

    def _augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Subscript):
            address, kind = self.address(target)
            old = Typed(self.emit(f"load {TYPES[kind]}, ptr {address}"), kind)
            new = self.convert(self.binary(type(node.op), old, self.value(node.value)), kind)
            self.run(f"store {TYPES[kind]} {new.text}, ptr {address}")
        else:
            assert isinstance(target, ast.Name)
            old = self.name(ast.Name(target.id, ast.Load()))
            self._assign(target.id, self.binary(type(node.op), old, self.value(node.value)))

    def _store(self, target: ast.expr, value: Typed) -> None:
        if isinstance(target, ast.Subscript):
            address, kind = self.address(target)
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
        bounds = [self.value(item) for item in node.iter.args]
        start, stop = (weak(0), bounds[0]) if len(bounds) == 1 else bounds[:2]
        step = bounds[2] if len(bounds) == 3 else weak(1)
        kind = common_kind(start, stop, step)
        falls = step.number is not None and step.number < 0
        start, stop, step = [self.convert(item, kind) for item in (start, stop, step)]
        count = _count(start, stop, step)
        if count == 1 and not any(isinstance(item, ast.Break) for item in nodes_of(node)):
            self._assign(node.target.id, start)
            self._block(node.body)
            return
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
        around, self.runs = self.runs, self.runs * (math.inf if count is None else count)
        is_cold = self.runs <= MAX_COLD_ITERATIONS
        self._block(node.body)
        self.runs = around
        self.ends.pop()
        self._branch(latch)
        self._begin(latch)
        flags = "nuw nsw" if kind == "u8" else "nsw"
        self.run(f"{following} = add {flags} i64 {counter}, {step.text}")
        is_kept = is_cold or (count is not None and count > MAX_UNROLLED)
        self._back(head, is_kept, is_cold)
        self._begin(after)

    def _while(self, node: ast.While) -> None:
        head, body, after = self._label("head"), self._label("body"), self._label("after")
        self._branch(head)
        self._begin(head)
        self._choose(self.truth(self.value(node.test)), body, after)
        self._begin(body)
        self.ends.append(after)
        around, self.runs = self.runs, math.inf
        self._block(node.body)
        self.runs = around
        self.ends.pop()
        if self.is_open:
            self._back(head)
        self._begin(after)

    def _back(self, head: str, is_kept: bool = False, is_scalar: bool = False) -> None:
        """End the last block of a loop, which LLVM shall not write out if it `is_kept`.

        Nor shall it be vectorised if it `is_scalar`.
        """
        hints = [*self.module.hints, *["kept"] * is_kept, *["scalar"] * is_scalar]
        hint = f", !llvm.loop {' '.join(hints)}" if hints else ""
        self.lines.append(f"  br label %{head}{hint}")
        self.is_open = False

    def _if(self, node: ast.If) -> None:
        condition = self.value(node.test)
        if condition.number is not None:
            self._block(node.body if condition.number else node.orelse)
            return
        yes, no, after = self._label("then"), self._label("else"), self._label("after")
        self._choose(self.truth(condition), yes, no if node.orelse else after)
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
        value = self.value(node.value)
        value = self.convert(value, value.kind if value.number is None else common_kind(value))
        self.returned = value.kind
        self.run(f"ret {llvm_type(value.kind)} {value.text}")
        self.is_open = False

    def _expression(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self.value(node.value)

    def _pass(self, node: ast.Pass) -> None:
        pass


def _count(start: Typed, stop: Typed, step: Typed) -> int | None:
    """Return the number of iterations of a loop if it is known."""
    try:
        return len(range(int(start.text), int(stop.text), int(step.text)))
    except ValueError:
        return None


def _varying(tree: ast.FunctionDef) -> set[str]:
    """Return the variables that need memory: those assigned several times, if there are loops."""
    statements, targets, looped = [*tree.body], list[ast.expr](), set[str]()
    for node in statements:  # which grow meanwhile
        match node:
            case ast.Assign():
                targets += node.targets
            case ast.AugAssign():
                targets.append(node.target)
            case ast.For(target=ast.Name(id=name)):
                looped.add(name)
            case ast.For():
                targets.append(node.target)
        if isinstance(node, ast.For | ast.While | ast.If):
            statements += [*node.body, *node.orelse]
    if len(statements) == len(tree.body):
        return set()
    counts = Counter([argument.arg for argument in tree.args.args])
    for item in nodes_of(*targets):
        if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
            counts[item.id] += 1
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
