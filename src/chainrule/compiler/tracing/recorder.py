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

from chainrule.autograd.error_messages import fail
from chainrule.autograd.intercept import SLOTS
from chainrule.autograd.location import user_frame
from chainrule.autograd.modes import MODES
from chainrule.autograd.primitive_node import PrimitiveNode
from chainrule.autograd.record import types_of_inputs
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.versions import next_seq
from chainrule.autograd.views import current_node, view_of
from chainrule.compiler.tracing import repeated_calls, rolled_walk
from chainrule.compiler.tracing.execution import reported, unreported
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
    trace: Trace,
    primitive: Primitive,
    operands: Sequence[Any],
    given: Sequence[Any] | None,
    settings: dict[str, Any] | None,
) -> Any:
    """Return the result of a primitive; NotImplemented if the general recorder must compute it.

    `given` are the arrays of the operands, if they are not to be taken as they are. An operand of
    which the array is a number is None.
    """
    modes = _mode()
    if primitive.multiple or (modes is not None and modes.special):
        return NotImplemented
    grad = primitive.differentiable and (modes is None or modes.grad)
    several, tracked = len(operands) > 1, False
    tensors: list[Any] = []
    arrays: list[Any] = []  # of the operands
    taken: list[Any] = []  # those to compute with
    for t in operands:
        if t is None and given is not None:
            x: Any = repeated_calls.number(given[len(arrays)])
            taken.append(x)
            several = False  # a number takes the other's type
        elif t.__class__ is not Tensor:
            return NotImplemented
        else:
            x = _read_array(t)
            if x.__class__ is not Symbol:
                t = trace.proxy(t)
                x = _read_array(t)
            taken.append(x if given is None else given[len(arrays)])
            tracked = tracked or _read_node(t) is not None or _read_view(t) is not None
        if x.__class__ is not Symbol:
            return NotImplemented
        tensors.append(t)
        arrays.append(x)
    lines = trace.lines
    before = lines.frame
    frame = lines.frame = before or user_frame(sys._getframe(2))
    try:
        out = repeated_calls.run_forward(primitive, None, taken, settings)
    except Exception as error:
        if given is not None:
            raise  # to the recorder of two operands
        fail(error, primitive, tuple(taken))
    finally:
        lines.frame = before
    result: Tensor = _new(Tensor)
    _set_array(result, out)
    _set_grad(result, None)
    _set_view(result, view_of(tensors[0], primitive, settings or {}) if primitive.view else None)
    _set_node(result, None)
    trace.made.append(weakref.ref(result))
    if not (grad and tracked) or out.dtype.kind not in "fc":
        return result
    edges = tuple(
        [
            None if t is None else _read_node(t) if _read_view(t) is None else current_node(t)
            for t in tensors
        ]
    )
    needs = tuple([edge is not None for edge in edges])
    if True not in needs:
        return result
    node: PrimitiveNode = _new(PrimitiveNode)
    node.plan = plan = primitive.plan(needs)
    node.edges = edges
    node.saved = plan.pick(out, *taken)
    node.settings = settings
    node.input_meta = types_of_inputs(primitive, edges, tuple(arrays), out) if several else None
    node.hooks = None
    node.seq = next_seq()
    node.code, node.instruction = (None, 0) if frame is None else (frame.f_code, frame.f_lasti)
    _set_node(result, node)
    return result


_record: Any = record
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
