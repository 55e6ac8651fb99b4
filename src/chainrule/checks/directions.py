"""Fast checks: derivatives along random directions, in a few calls and passes whatever the sizes.

The slope of Re Σ conj(v) f(x + t u), for a random direction u of one input and a random cotangent v
of one output, is the same by a backward pass, by forward mode and by one central difference if, but
for a set of directions of measure zero, all elements of the derivative are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule.autograd.forward import jvp_through
from chainrule.autograd.tensor import Tensor
from chainrule.checks.numerical import (
    Array,
    CheckSettings,
    Pair,
    Subject,
    check_metadata,
    checked_inputs,
    evaluate,
    flat_numpy,
    heading,
    quotient,
    tensor_like,
    trial,
    vjp,
)
from chainrule.checks.report import GradcheckError
from chainrule.interrupts import errstate


def check_directions(
    subject: Subject, outputs: dict[int, Tensor], positions: Sequence[int], settings: CheckSettings
) -> tuple[dict[int, Array], dict[int, Array]]:
    """Raise if a slope is wrong.

    Returns
    -------
    A cotangent of each output, and the gradient of each input for them if backward is linear;
    nothing if backward passes aren't checked.
    """
    source = np.random.default_rng(20240602)
    cotangents = {o: _random_like(outputs[o], source) for o in positions}
    checked = checked_inputs(subject)
    inputs = [subject.inputs[k] for k in checked]
    gradients, jvp = {}, None
    if settings.backward:
        gradients = {o: vjp(subject, outputs, {o: v}) for o, v in cotangents.items()}
    if settings.forward:
        jvp = jvp_through(inputs, [outputs[o] for o in positions])
    for k, x in zip(checked, inputs, strict=True):
        direction, numerical = _difference(subject, outputs, positions, k, source, settings.eps)
        tangents: list[Any] = []
        if jvp is not None:
            units = [tensor_like(direction, x) if y is x else None for y in inputs]
            tangents = [flat_numpy(tangent) for tangent in jvp(units, False)]
        for at, (o, v) in enumerate(cotangents.items()):
            size = float(max(np.linalg.norm(direction), np.linalg.norm(v)))
            found = {}
            if settings.backward:
                found["Jacobian mismatch"] = _pairing(gradients[o][k], direction)
            if tangents:
                forward = "Jacobian computed with forward mode mismatch"
                found[forward] = _pairing(v, tangents[at])
            for what, slope in found.items():
                slopes = slope, _pairing(v, numerical[o])
                _compare(subject, outputs, (o, k), slopes, size, settings, what)
    if not settings.backward:
        return {}, {}
    others = {o: _random_like(outputs[o], source) for o in positions}
    sums = vjp(subject, outputs, others)
    for gradient in gradients.values():
        sums = {k: total + gradient[k] for k, total in sums.items()}
    return {o: v + others[o] for o, v in cotangents.items()}, sums


def _random_like(tensor: Tensor, source: np.random.Generator) -> Array:
    """Return as many random numbers as a tensor has elements, of both signs, none near zero."""
    return trial(source, tensor) * source.choice([-1.0, 1.0], tensor.numel())


def _difference(
    subject: Subject,
    outputs: dict[int, Tensor],
    positions: Sequence[int],
    k: int,
    source: np.random.Generator,
    eps: float,
) -> tuple[Array, dict[int, Array]]:
    """Return a direction of an input, and the central difference of each output along it."""
    x = subject.inputs[k]
    center = flat_numpy(x)
    # Far from zero, eps may be lost in rounding: step over at least 1000 representable numbers.
    step = np.maximum(eps, 1000 * np.spacing(np.abs(center))) * _random_like(x, source)
    above, below = (
        evaluate(subject, k, (...,), tensor_like(end, x)._array)
        for end in (center + step, center - step)
    )
    for o in positions:
        others = above.get(o), below.get(o)
        check_metadata(subject, (o, k), "along a random direction", outputs[o], others)
    differences = {o: quotient(above[o], below[o], eps) for o in positions}
    # The exact distance of the rounded numbers.
    return ((center + step) - (center - step)) / eps, differences


@errstate(all="ignore")
def _pairing(a: Array, b: Array) -> float:
    return float(np.sum(np.real(np.conj(a) * b)))


def _compare(
    subject: Subject,
    outputs: dict[int, Tensor],
    pair: Pair,
    slopes: tuple[float, float],
    size: float,
    settings: CheckSettings,
    what: str,
) -> None:
    analytical, numerical = slopes
    tolerance: Any = settings.atol * size + settings.rtol * abs(numerical)
    if abs(analytical - numerical) <= tolerance:  # False for nan
        return
    o, k = pair
    raise GradcheckError(
        f"{heading(subject, outputs, pair, what)}: the {subject.order} "
        f"derivative of {subject.output_name(o)} with respect to {subject.input_names[k]}, along "
        f"a random direction and weighted at random\n"
        f"analytical: {analytical:.10g}\n"
        f"numerical:  {numerical:.10g}\n"
        "Without fast_mode=True the check names the elements"
    )
