"""Zero gradients: a pass that is gone through once more, to the operation where it becomes zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.modes import no_grad, run_in
from chainrule.autograd.node import AccumulateGrad, Node, endpoint, made_at, reachable
from chainrule.autograd.primitive_node import PrimitiveNode
from chainrule.autograd.reachability import leading
from chainrule.autograd.reverse import BackwardPass
from chainrule.backend import namespace, whole
from chainrule.interrupts import errstate
from chainrule.primitives import (
    activations,
    contraction,
    elementwise,
    indexing,
    losses,
    reductions,
    special,
)
from chainrule.primitives.primitive import TABLE, Primitive

_DEAD = (
    "every element is negative there, where its derivative is 0 (a dead ReLU): try leaky_relu, a "
    "smaller learning rate, or another initial value"
)
_SATURATED = (
    "it is saturated: so far out that its derivative is rounded to 0. Make its input smaller, or "
    "use a loss that takes logits"
)
_CLAMPED = (
    "every element is outside of its limits, where the derivative is 0: clamp less, or penalise "
    "what is outside"
)
_MASKED = "the elements come from the other branch of the mask"
_OTHER_WON = "the other operand, or another element, was selected everywhere"
_NOT_SELECTED = "only other elements were selected: nothing that was computed used these"
_STEP = (
    "it is a step function, whose derivative is 0 everywhere. To pass the gradient straight "
    "through, write x + (f(x) - x).detach()"
)
_FACTOR = "the other factor is 0"
_UNDERFLOW = (
    "the product of the factors is so small that {} rounds it to 0: multiply the loss by a large "
    "number before the pass (amp.GradScaler does it), or compute in a wider dtype"
)
_CONSTANT_SUM = (
    "the same gradient comes to all elements of a row, and a row of probabilities has the sum 1 "
    "whatever the scores are: weigh them, or choose some, before you sum"
)
_ONE_ELEMENT = (
    "it is over a dimension of size 1, where the result is the same for every input: choose "
    "another dim, or a sigmoid"
)
_CERTAIN = (
    "the prediction is certain and right, so far out that the slope of the loss is rounded to 0: "
    "there is nothing left to learn, or the scores are too large"
)
_FLAT = "its derivative at this very value is 0: start from another one"

REASONS: dict[Primitive, str] = {
    elementwise.relu: _DEAD,
    **dict.fromkeys(
        [
            *(elementwise.sigmoid, elementwise.tanh, elementwise.exp, activations.hardswish),
            *(reductions.softmax, reductions.log_softmax, special.erf, special.erfc),
            activations.logsigmoid,
        ],
        _SATURATED,
    ),
    **dict.fromkeys(
        [
            *(elementwise.clamp, elementwise.clamp_min, elementwise.clamp_max),
            activations.hardtanh,
        ],
        _CLAMPED,
    ),
    **dict.fromkeys([elementwise.where, elementwise.masked], _MASKED),
    **dict.fromkeys(
        [*(elementwise.maximum, elementwise.minimum), *(reductions.max, reductions.min)],
        _OTHER_WON,
    ),
    **dict.fromkeys([indexing.getitem, indexing.select, indexing.index], _NOT_SELECTED),
    **dict.fromkeys(
        [primitive for primitive in TABLE.values() if primitive.steps],
        _STEP,
    ),
    **dict.fromkeys([elementwise.multiply, contraction.matmul], _FACTOR),
    **dict.fromkeys([losses.class_losses, losses.binary_cross_entropy_with_logits], _CERTAIN),
    **dict.fromkeys([elementwise.pow, elementwise.power, elementwise.square], _FLAT),
    **dict.fromkeys([elementwise.abs, elementwise.cos], _FLAT),
}
"""Why the gradient behind an operation is zero."""


class Outcome(NamedTuple):
    """What a pass brings to a node, and where it became zero or ended."""

    cotangent: Any  # an array; None if none arrives
    zeros: list[Node]  # that returned zeros for cotangents that were none, in order of the pass
    stops: list[Node]  # that returned None
    sums: bool  # whether several contributions cancel


@errstate(all="ignore")
def trace(root: Any, target: Node) -> Outcome:
    """Go through the graph from a tensor to a node, with ones as its gradient, without hooks."""
    array = root._array
    edge = root._edge
    seed = namespace(array).ones(array.shape, array.dtype)
    result: Outcome = run_in(no_grad(), _walk, edge, seed, target)
    return result


def _walk(edge: Any, seed: Any, target: Node) -> Outcome:
    run = BackwardPass(True, False)
    run.anomaly = False
    first = endpoint(edge)[0]
    path = leading(reachable([first], target.seq), {target}) | {target}
    run.accumulate(edge, seed)
    zeros: list[Node] = []
    stops: list[Node] = []
    arrivals = 0
    while run.pending:
        node = max(run.pending, key=lambda each: each.seq)
        g = run.pending.pop(node)
        if node is target:
            cotangent = next(iter(g.values())) if g.__class__ is dict else g
            return Outcome(cotangent, zeros, stops, arrivals > 1 and not _any(cotangent))
        if type(node) is AccumulateGrad or node not in path:
            continue
        kept = [e for e in node.edges if e is not None and endpoint(e)[0] in path]
        grads: Sequence[Any] = node.vjp(g, run)
        found = [
            (e, grad)
            for e, grad in zip(node.edges, grads, strict=False)
            if any(e is k for k in kept)
        ]
        if _any(g) and found and not any(_any(grad) for _, grad in found):
            (stops if all(grad is None for _, grad in found) else zeros).append(node)
        for each, grad in found:
            if grad is not None:
                arrivals += endpoint(each)[0] is target and _any(grad)
                run.accumulate(each, grad)
    return Outcome(None, zeros, stops, False)


def _any(g: Any) -> bool:
    """Tell whether a cotangent, or one of several, has elements that are not zero."""
    if g is None:
        return False
    parts = g.values() if g.__class__ is dict else [g]
    return any(bool(np.any(np.asarray(whole(part)) != 0)) for part in parts)


def reason_of(node: Node) -> str:
    """Return why an operation returned zeros, and where it was called."""
    if isinstance(node, PrimitiveNode):
        text = REASONS.get(node.plan.primitive, "its derivative is 0 for these values")
        text = _by_values(node) or text
    else:
        text = "its backward returned zeros"
    return f"It becomes zero at {made_at(node)}: {text}."


def _by_values(node: PrimitiveNode) -> str | None:
    """Return a reason that the saved values show and the operation alone doesn't."""
    primitive, settings = node.plan.primitive, node.settings or {}
    saved = [np.asarray(whole(x)) for x in node.saved or () if hasattr(x, "shape")]
    if primitive in (reductions.softmax, reductions.log_softmax):
        axis = settings["axis"]
        if any(x.shape[axis] == 1 for x in saved):
            return _ONE_ELEMENT
        if primitive is reductions.softmax and any(x.max(axis).min() < 0.999 for x in saved):
            return _CONSTANT_SUM
    if primitive is elementwise.multiply and saved and all((x != 0).all() for x in saved):
        return _UNDERFLOW.format(saved[0].dtype)
    return None


def candidates(root: Node, target: Node) -> list[Node]:
    """Return the operations on the way that can return zeros, by what they are."""
    path = leading(reachable([root], target.seq), {target})
    found = [
        node
        for node in path
        if isinstance(node, PrimitiveNode)
        and node.plan.primitive in REASONS
        and REASONS[node.plan.primitive] is not _FACTOR
    ]
    return sorted(found, key=lambda node: -node.seq)


def is_step(node: Node) -> bool:
    """Tell whether an operation returns zeros for all values."""
    return isinstance(node, PrimitiveNode) and REASONS.get(node.plan.primitive) is _STEP
