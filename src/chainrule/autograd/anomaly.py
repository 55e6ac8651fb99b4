"""Anomaly mode: the first operation that makes a nan or an infinity, forward or backward.

Recorders show each operation here, and passes each node. An array with a nan is remembered by its
identity, with the origin of the nan; what is computed from it inherits the origin. So an error far
from the cause can name the cause.
"""

from __future__ import annotations

import ast
import math
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple

from chainrule.autograd.elements import (
    Place,
    Values,
    has_numbers,
    item_of,
    number,
    place_of,
    row_values,
    shown,
)
from chainrule.autograd.location import expression_at, locate, user_frame, user_stack_level
from chainrule.autograd.modes import Anomaly, Modes, current_modes
from chainrule.autograd.node import Node, endpoint, made_at
from chainrule.autograd.primitive_node import PrimitiveNode
from chainrule.autograd.versions import writes_since
from chainrule.backend import namespace, whole
from chainrule.errors import AutogradError
from chainrule.primitives import elementwise
from chainrule.primitives.pitfalls import GIVEN, PITFALLS, Pitfall
from chainrule.primitives.primitive import Primitive

Array = Any


def _pitfall(primitive: Primitive, values: Values) -> Pitfall | None:
    if any(isinstance(value, complex) for value in values.values()):
        return None
    return next((p for p in PITFALLS.get(primitive, ()) if p.applies(values)), None)


# --- the forward computation ----------------------------------------------------------------------


class Origin(NamedTuple):
    """The operation that made the first nan, or an infinity, of other numbers."""

    kind: str  # "nan" or "infinity"
    name: str
    given: str  # the operand of which no operation here has made the nan, else ""
    code: CodeType | None
    instruction: int
    place: Place
    values: Values
    pitfall: Pitfall | None
    before: Origin | None  # of an infinity that the nan was made of

    def __str__(self) -> str:
        location = locate(self.code, self.instruction)
        values = shown(self.values)
        given = f", where {values}" if values else ""
        article = "a" if self.kind == "nan" else "an"
        text = f"{self.name} made {article} {self.kind} at {self.place}{given}"
        if self.given:
            text = f"{self.name} got a nan at {self.place} of {self.given}"
        text += f" ({location})" if location else ""
        if self.pitfall is not None:
            text += f". That is {self.pitfall.title}: {self.pitfall.mend}"
        if self.before is not None:
            text += f". The infinity is older: {self.before}"
        return text


def origin_of(state: Anomaly, array: Array) -> Origin | None:
    """Return the origin of a nan or an infinity of an array, if it is known."""
    entry = state.origins.get(id(array))
    if entry is None or entry[0]() is not array:
        return None
    found: Origin = entry[1]
    return found


def _remember(state: Anomaly, array: Array, origin: Origin) -> None:
    key, origins = id(array), state.origins
    try:
        origins[key] = weakref.ref(array, lambda _: origins.pop(key, None)), origin
    except TypeError:  # an array without weak references
        return


def look(
    modes: Modes,
    primitive: Primitive,
    arrays: Sequence[Array],
    results: Iterable[Any],
    settings: Mapping[str, Any],
) -> None:
    """Look at an operation that was computed: remember or raise what it made."""
    state: Any = modes.anomaly
    for result in results:
        out = result._array
        node = None if result._node is None else endpoint(result._node)[0]
        if node is not None:
            state.operands.setdefault(node, tuple(arrays))
        if not has_numbers(out):
            continue
        memory = whole(out)
        if namespace(memory).isfinite(memory).all():
            continue
        origin = _inherited(state, arrays, memory) or _made(state, primitive, arrays, out, settings)
        if origin is None:
            continue
        _remember(state, out, origin[0])
        if node is not None:
            state.operands[node] = (*arrays, origin[0])
        kinds = ("nan", "infinity") if state.infinity else ("nan",)
        if state.forward and origin[1] and origin[0].kind in kinds and not modes.nesting:
            raise AutogradError(str(origin[0]))


def _bad(array: Array, kind: str) -> Array:
    memory = whole(array)
    xp = namespace(memory)
    return xp.isnan(memory) if kind == "nan" else xp.isinf(memory)


def _inherited(
    state: Anomaly, arrays: Sequence[Array], memory: Array
) -> tuple[Origin, bool] | None:
    """Return the origin of the nan of an input, or of the infinity if the result has no nan."""
    has_nan = bool(_bad(memory, "nan").any())
    for array in arrays:
        origin = origin_of(state, array)
        if origin is not None and (origin.kind == "nan" or not has_nan):
            return origin, False
    return None


def _made(
    state: Anomaly,
    primitive: Primitive,
    arrays: Sequence[Array],
    out: Array,
    settings: Mapping[str, Any],
) -> tuple[Origin, bool] | None:
    """Return the origin of a nan or infinity that no operation before this one has made."""
    inputs = [array for array in arrays if has_numbers(array)]
    for index, array in enumerate(arrays):
        if has_numbers(array) and _bad(array, "nan").any():
            if not _bad(out, "nan").any():
                return None
            names, place = _names(primitive, arrays), place_of(array, _bad(array, "nan"))
            got = Origin("nan", primitive.name, names[index], *_caller(), place, {}, GIVEN, None)
            return got, False  # it may be selected away
    for kind in ("nan", "infinity"):
        mask = _bad(out, kind)
        if not mask.any():
            continue
        before = None
        if any(_bad(array, "infinity").any() for array in inputs):
            if kind == "infinity":
                continue
            before = next(filter(None, (origin_of(state, array) for array in inputs)), None)
        place = place_of(out, mask)
        values = _named_values(primitive, arrays, place)
        if len(arrays) == 1:
            values |= row_values(arrays[0], place, settings)
        values |= {"out": item_of(out, place)}
        if "exponent" in settings:
            values["exponent"] = settings["exponent"]
        pitfall = _pitfall(primitive, values)
        made = Origin(kind, primitive.name, "", *_caller(), place, values, pitfall, before)
        return made, True
    return None


def _caller() -> tuple[CodeType | None, int]:
    """Return the code and the instruction of the user's line."""
    frame = user_frame(sys._getframe(1))
    return (None, 0) if frame is None else (frame.f_code, frame.f_lasti)


def _names(primitive: Primitive, arrays: Sequence[Array]) -> tuple[str, ...]:
    return primitive.inputs or tuple(f"operand {i}" for i in range(len(arrays)))


def _named_values(primitive: Primitive, arrays: Sequence[Array], place: Place) -> Values:
    names = _names(primitive, arrays)
    found = {n: item_of(a, place) for n, a in zip(names, arrays, strict=False) if has_numbers(a)}
    return {name: value for name, value in found.items() if value is not None}


# --- the roots of a pass --------------------------------------------------------------------------


def check_roots(run: Any) -> None:
    """Begin a pass. Warn if it starts at a nan: the warning names the operation that made it."""
    state, run.infinite = _state(), {}
    for node in run.pending:
        known = state.operands.get(node, ())
        origin = known[-1] if known and isinstance(known[-1], Origin) else None
        if origin is not None and origin.kind == "nan":
            warnings.warn(
                f"The backward pass starts at a nan, {made_at(node)}. {origin}",
                UserWarning,
                stacklevel=user_stack_level(),
            )


def _state() -> Anomaly:
    modes = current_modes()
    assert modes is not None
    assert modes.anomaly is not None
    return modes.anomaly


# --- the backward pass ----------------------------------------------------------------------------


class Source(NamedTuple):
    """The node whose backward made an infinity of finite numbers."""

    node: Node
    text: str


def checked_vjp(run: Any, node: Node, g: Any) -> Sequence[Any]:
    """Run a node, and raise if it returns a nan."""
    state, kept = _state(), run.retain_graph
    values_matter = isinstance(node, PrimitiveNode) or hasattr(type(node), "vjp_of_nodes")
    run.retain_graph = kept or values_matter  # they are in the message
    try:
        grads: Sequence[Any] = node.vjp(g, run)
        position, kind = _first_bad(run, node, grads, state.infinity)
        if position is not None:
            _rerun(run, node, g)
            raise AutogradError(_text(state, run, node, g, grads, position, kind))
        _note_infinities(run, node, g, grads)
    finally:
        run.retain_graph = kept
    if values_matter and not kept:
        _release(node)
    return grads


def _release(node: Any) -> None:
    if not isinstance(node, PrimitiveNode):
        node.saved, node.inputs = None, ()
    elif node.plan.holds:
        node.saved = None


def _array_of(g: Any) -> Any:
    return getattr(g, "_array", g)


def _gradients(run: Any, node: Node, grads: Sequence[Any]) -> Iterator[tuple[int, Array]]:
    for position, grad in enumerate(grads):
        if grad is not None and run.needs(node.edges[position]):
            array = _array_of(grad)
            if has_numbers(array):
                yield position, array


def _first_bad(
    run: Any, node: Node, grads: Sequence[Any], infinity: bool
) -> tuple[int | None, str]:
    for kind in ("nan", "infinity") if infinity else ("nan",):
        for position, array in _gradients(run, node, grads):
            if _bad(array, kind).any():
                return position, kind
    return None, ""


def _note_infinities(run: Any, node: Node, g: Any, grads: Sequence[Any]) -> None:
    """Remember at which node the infinite cotangents of the inputs began."""
    known = run.infinite.pop(node, None)
    for position, array in _gradients(run, node, grads):
        if _bad(array, "infinity").any():
            if known is None:
                place = place_of(array, _bad(array, "infinity"))
                known = Source(node, _where_in(_state(), node, g, position, place))
            run.infinite[endpoint(node.edges[position])[0]] = known


def _rerun(run: Any, node: Any, g: Any) -> None:
    """Run what a node stands for, such as a compiled function: its nodes raise by themselves."""
    again: Callable[..., Any] | None = getattr(node, "vjp_of_nodes", None)
    if again is not None and run.xp is None:
        again(g, run)


def _text(
    state: Anomaly,
    run: Any,
    node: Any,
    g: Any,
    grads: Sequence[Any],
    position: int,
    kind: str,
) -> str:
    array = _array_of(grads[position])
    place = place_of(array, _bad(array, kind))
    found_values = "nan" if kind == "nan" else "infinite"
    text = (
        f"Function '{node.name}' returned {found_values} values in its {position}th output. "
        f"The forward operation is {made_at(node)}. {_where_in(state, node, g, position, place)}"
    )
    operands = _operands(state, node)
    origin = None if isinstance(node, PrimitiveNode) else origin_of(state, array)
    if origin is None:
        found = [*operands, *[a for a in getattr(node, "saved", ()) or () if hasattr(a, "dtype")]]
        made = [a for a in state.operands.get(node, ()) if isinstance(a, Origin)]
        origin = next(filter(None, [*(origin_of(state, a) for a in found), *made]), None)
    if origin is not None:
        within = "the forward computation" if isinstance(node, PrimitiveNode) else node.name
        text += f" It began in {within}: {origin}."
    source = run.infinite.get(node)
    if source is not None and source.node is not node:
        text += (
            f" The infinite gradient that arrives began at {made_at(source.node)}. {source.text}"
        )
    before = _selection_after(run, node)
    if before is not None and _zero_arrives(g, place):
        text += " " + _double_where(node, before)
    return text


def _operands(state: Anomaly, node: Node) -> tuple[Array, ...]:
    """Return the arrays that a node was computed from, if they still have these values."""
    arrays = [a for a in state.operands.get(node, ()) if not isinstance(a, Origin)]
    return () if any(writes_since(array, node.seq) for array in arrays) else tuple(arrays)


def _where_in(state: Anomaly, node: Any, g: Any, position: int, place: Place) -> str:
    """Return the values of a node at an element of one of its inputs, and the known pattern."""
    if not isinstance(node, PrimitiveNode):
        return f"At {place} of input {position}."
    primitive = node.plan.primitive
    operands = _operands(state, node)
    values: Values = {}
    if operands:
        values |= _named_values(primitive, operands, place)
    pairs = zip(node.plan.saves, node.plan.origins, node.saved or (), strict=False)
    saved = [(n, a) for n, origin, a in pairs if origin is not None and hasattr(a, "dtype")]
    found = {n: item_of(a, place) for n, a in saved if has_numbers(a)}
    values |= {name: value for name, value in found.items() if value is not None}
    settings = node.settings or {}
    if "exponent" in settings:
        values["exponent"] = settings["exponent"]
    arriving = None if g.__class__ is dict else item_of(_array_of(g), place)
    parts = [shown(values)] if shown(values) else []
    if "out" in values:
        parts.append(f"the result is {number(values['out'])}")
    if arriving is not None:
        parts.append(f"the gradient that arrives is {number(arriving)}")
        values["g"] = arriving
    text = f"At {place}: {', '.join(parts)}." if parts else f"At {place}."
    pitfall = _pitfall(primitive, values)
    product = "0 * inf: " if arriving == 0 else "inf * 0: " if _is_inf(arriving) else ""
    if pitfall is not None:
        title = pitfall.title if pitfall.title in product else product + pitfall.title
        text += f" That is {title}. To mend it, {pitfall.mend}."
    elif product:
        text += f" That is {product.removesuffix(': ')}."
    return text


def _is_inf(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)


def _zero_arrives(g: Any, place: Place) -> bool:
    return g.__class__ is not dict and item_of(_array_of(g), place) == 0


# --- where, and the line that mends it ------------------------------------------------------------


def _selection_after(run: Any, node: Node) -> Node | None:
    """Return the nearest `where` through which this pass came to a node, if there is one."""
    waiting, seen, edges = [*run.roots], set[Node](), dict[Node, list[Node]]()
    while waiting:
        each = waiting.pop()
        for edge in each.edges:
            if edge is None or endpoint(edge)[0].seq < node.seq:
                continue
            below = endpoint(edge)[0]
            edges.setdefault(below, []).append(each)
            if below not in seen:
                seen.add(below)
                waiting.append(below)
    level, known = [node], {node}
    while level:
        above = [up for down in level for up in edges.get(down, ()) if up not in known]
        known.update(above)
        for each in above:
            if isinstance(each, PrimitiveNode) and each.plan.primitive in _SELECTIONS:
                return each
        level = above
    return None


_SELECTIONS = (elementwise.where, elementwise.masked)


def _double_where(node: Node, selection: Node) -> str:
    told = f"It is behind a where, {made_at(selection)}, which leaves this element out."
    written = _rewritten(node, selection)
    if written is None:
        return (
            f"{told} A derivative of 0 times an infinity is nan: replace the elements that are "
            "left out before the operation too, by numbers that it can take."
        )
    return f"{told} Select before the operation too: {written}"


def _rewritten(node: Node, selection: Node) -> str | None:
    """Return the lines that select before the operation as well, for the lines of this call."""
    if node.code is None or selection.code is None:
        return None
    inner = _parsed(expression_at(node.code, node.instruction))
    outer = _parsed(expression_at(selection.code, selection.instruction))
    argument = _argument(inner)
    if not isinstance(outer, ast.Call) or len(outer.args) != 3 or argument is None:
        return None
    assert inner is not None
    condition, given, call = map(ast.unparse, (outer.args[0], argument, outer.func))
    function = ast.unparse(_replaced(inner, argument, ast.Name("safe")))
    branches = [ast.unparse(_replaced(b, inner, ast.Name("safe_"))) for b in outer.args[1:]]
    within = ["safe_" in branch for branch in branches]
    safe = f"1.0, {given}" if within == [False, True] else f"{given}, 1.0"
    before = f"`safe = {call}({condition}, {safe})`"
    if not any(within):
        return f"{before}, and `{function}` in the place of `{ast.unparse(inner)}`."
    branches = [branch.replace("safe_", function) for branch in branches]
    return f"{before}, then `{call}({condition}, {', '.join(branches)})`."


def _replaced(tree: ast.expr, part: ast.expr, name: ast.Name) -> ast.expr:
    """Return a copy of an expression with a name in the place of a part of it."""
    wanted = ast.dump(part)

    class Replacement(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            return name if ast.dump(node) == wanted else self.generic_visit(node)

    copy: ast.expr = Replacement().visit(ast.parse(ast.unparse(tree), mode="eval").body)
    return copy


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _argument(call: ast.expr | None) -> ast.expr | None:
    """Return what an operation is applied to: its argument, denominator or base."""
    if isinstance(call, ast.BinOp):
        return call.right if isinstance(call.op, ast.Div) else call.left
    if not isinstance(call, ast.Call):
        return None
    if call.args:
        return call.args[0]
    return call.func.value if isinstance(call.func, ast.Attribute) else None


# --- forward mode ---------------------------------------------------------------------------------


def check_tangent(node: Any, arriving: Sequence[Any], tangent: Any) -> None:
    """Raise if the tangent of a node's output is nan."""
    array = tangent._array
    if not has_numbers(array) or not _bad(array, "nan").any():
        return
    state, place = _state(), place_of(array, _bad(array, "nan"))
    text = f"Forward mode: the tangent of {made_at(node)}, has nan values. "
    first = next((i for i, t in enumerate(arriving) if t is not None), 0)
    given = arriving[first]
    text += _where_in(state, node, None if given is None else given, first, place).replace(
        "gradient", "tangent"
    )
    raise AutogradError(text)
