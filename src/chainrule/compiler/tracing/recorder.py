"""Applications of primitives in a trace, as by `autograd.record`, and backward passes.

The slots of tensors are redirected in a trace, and all code is watched that could be the user's.
Either takes longer than the rest. So a recorder leaves operations on the tensors of a trace to this
one, which runs unwatched and reads and sets the slots themselves.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule.autograd.error_messages import fail
from chainrule.autograd.intercept import SLOTS
from chainrule.autograd.location import user_frame
from chainrule.autograd.modes import MODES
from chainrule.autograd.node import Edge
from chainrule.autograd.primitive_node import PrimitiveNode
from chainrule.autograd.record import types_of_inputs
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.versions import keep_saved, next_seq
from chainrule.autograd.views import current_node, view_of
from chainrule.backend import promote
from chainrule.compiler.tracing import repeated_calls, rolled_walk
from chainrule.compiler.tracing.execution import reported, unreported
from chainrule.compiler.tracing.size_reads import READS
from chainrule.compiler.tracing.symbol import TRACING, Symbol, outlived_error
from chainrule.primitives.primitive import Primitive

if TYPE_CHECKING:
    from chainrule.autograd.reverse import BackwardPass
    from chainrule.compiler.tracing.trace import Trace

_new: Any = object.__new__
_mode = MODES.get
_read_array, _read_node, _read_view = [SLOTS[s].__get__ for s in ("_array", "_node", "_view")]
_set_array, _set_node, _set_view, _set_grad = [
    SLOTS[s].__set__ for s in ("_array", "_node", "_view", "_grad")
]


def record(
    trace: Trace, primitive: Primitive, operands: Sequence[Any], settings: dict[str, Any] | None
) -> Any:
    """Return the result of a primitive; NotImplemented if the general recorder must compute it.

    Operands of a binary primitive without settings may be numbers.
    """
    modes = _mode()
    if primitive.multiple or (modes is not None and modes.special):
        return NotImplemented
    found = _symbols_of(trace, operands, takes_numbers=settings is None)
    if found is None:
        return NotImplemented
    tensors, arrays, carried = found
    taken = arrays  # those to compute with
    several = len(arrays) > 1
    if settings is None and several:
        x, y = arrays
        if type(x) is not Symbol or type(y) is not Symbol:
            several = False  # a number takes the other's type
            taken = arrays = _with_number(x, y)
            if not arrays:
                return NotImplemented
        elif x.dtype is not y.dtype:
            taken = [*promote(x, y)]
    lines = trace.lines
    before = lines.frame
    frame = lines.frame = before or user_frame(sys._getframe(2))
    try:
        out, call = repeated_calls.run_single(primitive, taken, settings)
    except Exception as error:
        fail(error, primitive, tuple(taken))
    finally:
        lines.frame = before
    result: Tensor = _new(carried or Tensor)
    _set_array(result, out)
    _set_grad(result, None)
    if primitive.view:
        # A write to the view asks for the class of the base, which a proxy doesn't have.
        base = tensors[0] if carried is None else operands[0]
        _set_view(result, view_of(base, primitive, settings or {}))
    else:
        _set_view(result, None)
    _set_node(result, None)
    trace.made.append(weakref.ref(result))
    if not (primitive.differentiable and (modes is None or modes.grad)):
        return result
    if out.dtype.kind not in "fc":
        return result
    edges = tuple(
        [
            None if t is None else _read_node(t) if _read_view(t) is None else _node_of_view(t)
            for t in tensors
        ]
    )
    needs = tuple([edge is not None for edge in edges])
    if True not in needs:
        return result
    known = None if call is None or taken is not arrays else call.nodes.get(needs)
    if known is None:
        plan = primitive.plan(needs)
        meta = types_of_inputs(primitive, edges, tuple(arrays), out) if several else None
        if call is not None and taken is arrays and READS.get() is None:
            call.nodes[needs] = plan, meta
    else:
        plan, meta = known
    node: PrimitiveNode = _new(PrimitiveNode)
    node.plan = plan
    node.edges = edges
    pick = plan.pick  # calling a slot's value as if it were a method takes longer
    node.saved = pick(out, *taken)
    node.settings = settings
    node.input_meta = meta
    node.hooks = None
    node.seq = next_seq()
    node.code, node.instruction = (None, 0) if frame is None else (frame.f_code, frame.f_lasti)
    _set_node(result, node)
    if carried is not None and plan.holds:
        keep_saved(node)
    return result


def _symbols_of(
    trace: Trace, operands: Sequence[Any], takes_numbers: bool
) -> tuple[list[Any], list[Any], type[Tensor] | None] | None:
    """Return the tensors of the trace, their symbols, and the class that results are of, if any.

    None in the place of a number's tensor; nothing at all if an operand is of another kind.
    """
    tensors: list[Any] = []
    arrays: list[Any] = []
    carried: type[Tensor] | None = None
    for t in operands:
        kind = type(t)
        if kind is Tensor or (issubclass(kind, Tensor) and kind.is_carried):
            if kind is not Tensor and carried is None:
                carried = kind
            x = _read_array(t)
            if type(x) is not Symbol:
                t = trace.proxy(t)
                x = _read_array(t)
                if type(x) is not Symbol:
                    return None
            tensors.append(t)
        elif takes_numbers and kind in (float, int):
            tensors.append(None)
            x = t
        else:
            return None
        arrays.append(x)
    return tensors, arrays, carried


def _node_of_view(tensor: Tensor) -> Edge:
    """Return `current_node` of a view; itself if the base is of the trace and hasn't changed."""
    view: Any = _read_view(tensor)
    base = view.base
    if base is None or type(_read_array(base)) is not Symbol or _read_view(base) is not None:
        return current_node(tensor)
    node: Edge = _read_node(tensor)
    return node if _read_node(base) is view.base_node else current_node(tensor)


def _with_number(x: Any, y: Any) -> list[Symbol]:
    """Return a symbol and a number as symbols; [] if the number isn't of the symbol's dtype."""
    like = x if type(x) is Symbol else y
    if type(like) is not Symbol or like.dtype.kind != "f":
        return []
    number = repeated_calls.number(np.array(y if like is x else x, like.dtype))
    return [x, number] if like is x else [number, y]


_record: Any = record  # as an argument of `partial`, checkers would bind its parameters
apply: Any = functools.partial(unreported, _record)


def walk(run: BackwardPass, walk: Callable[[], None]) -> None:
    """Walk, and watch only what may be code of users; the ops are those of the line that asks."""
    trace = TRACING.get()
    if trace is None:
        raise outlived_error()
    lines = trace.lines
    before = lines.frame
    frame = lines.frame = before or user_frame(sys._getframe(1))

    def watched(function: Callable[..., Any], *args: Any) -> Any:
        lines.frame = None
        try:
            return reported(function, *args)
        finally:
            lines.frame = frame

    def rolled() -> None:
        rolled_walk.prepare(trace, run)
        walk()

    run.watched = watched
    try:
        unreported(rolled)
    finally:
        lines.frame, run.watched = before, None
