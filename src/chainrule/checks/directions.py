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
    A cotangent of each output, and the gradient of each input for them if backward is linear.
    """
    source = np.random.default_rng(20240602)
    cotangents = {o: _random_like(outputs[o], source) for o in positions}
    gradients = {o: vjp(subject, outputs, {o: v}) for o, v in cotangents.items()}
    checked = checked_inputs(subject)
    inputs = [subject.inputs[k] for k in checked]
    jvp = jvp_through(inputs, [outputs[o] for o in positions])
    for k, x in zip(checked, inputs, strict=True):
        direction, numerical = _difference(subject, outputs, positions, k, source, settings.eps)
        tangents: dict[int, Array] = {}
        if settings.forward:
            units = [tensor_like(direction, x) if y is x else None for y in inputs]
            rows = [flat_numpy(tangent) for tangent in jvp(units, False)]
            tangents = dict(zip(positions, rows, strict=True))
        for o, v in cotangents.items():
            size = float(max(np.linalg.norm(direction), np.linalg.norm(v)))
            slope = _pairing(v, numerical[o])
            if settings.backward:
                found = _pairing(gradients[o][k], direction)
                _compare(subject, outputs, (o, k), (found, slope), size, settings, "")
            if settings.forward:
                found = _pairing(v, tangents[o])
                forward = " computed with forward mode"
                _compare(subject, outputs, (o, k), (found, slope), size, settings, forward)
    others = {o: _random_like(outputs[o], source) for o in positions}
    sums = vjp(subject, outputs, others)
    for gradient in gradients.values():
        sums = {k: total + gradient[k] for k, total in sums.items()}
    return {o: v + others[o] for o, v in cotangents.items()}, sums


def _random_like(tensor: Tensor, source: np.random.Generator) -> Array:
    """Return as many random numbers as a tensor has elements, real or complex, none near zero."""
    shape = (2, tensor.numel())
    values = source.uniform(0.5, 1.5, shape) * source.choice([-1.0, 1.0], shape)
    return values[0] + 1j * values[1] if tensor.dtype.kind == "c" else values[0]


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
    mode: str,
) -> None:
    analytical, numerical = slopes
    tolerance: Any = settings.atol * size + settings.rtol * abs(numerical)
    if abs(analytical - numerical) <= tolerance:  # False for nan
        return
    o, k = pair
    raise GradcheckError(
        f"{heading(subject, outputs, pair, f'Jacobian{mode} mismatch')}: the {subject.order} "
        f"derivative of {subject.output_name(o)} with respect to {subject.input_names[k]}, along "
        f"a random direction and weighted at random\n"
        f"analytical: {analytical:.10g}\n"
        f"numerical:  {numerical:.10g}\n"
        "Without fast_mode=True the check names the elements"
    )
