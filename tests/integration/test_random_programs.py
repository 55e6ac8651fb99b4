"""Random programs of operations, views, in-place writes, hooks and backward passes.

Hypothesis draws the programs (`helpers.random_programs`) and shrinks a failing one to a few lines,
printed as code. Where PyTorch is installed, values, gradients, flags, versions and errors have to
be the same there. Without it, derivatives are compared with finite differences, with forward mode,
and between runs.

``HYPOTHESIS_EXAMPLES=5000`` tries that many programs instead of 200.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, note, settings

import chainrule as cr
from helpers.random_programs.operations import EVERYTHING, SMOOTH
from helpers.random_programs.run import chainrule_run, is_leaf_line, runnable
from helpers.random_programs.settings import EXAMPLES, many_examples
from helpers.random_programs.source import programs
from helpers.random_programs.torch_comparison import compare_libraries
from helpers.tensors import memory


@settings(many_examples, max_examples=2 * EXAMPLES)
@given(program=programs(EVERYTHING))
def test_a_random_program_ends_as_in_torch(program):
    pytest.importorskip("torch")
    event(compare_libraries(program))


# --- without a second library ---------------------------------------------------------------------

Leaves = dict[str, cr.Tensor]


def loss_of(
    program: Sequence[str], bind: Callable[[str, cr.Tensor], cr.Tensor]
) -> tuple[cr.Tensor, Leaves]:
    """Run a smooth program; return a weighted sum of all it made, and its leaves.

    `bind` says which tensor to take for each leaf. Lines that raise are left out: they do so
    whatever the numbers are.
    """
    run, leaves = chainrule_run(), {}
    for line in program:
        if runnable(line, run.names):
            run.step(line)
            if is_leaf_line(line):
                name = line.partition(" = ")[0]
                run.names[name] = leaves[name] = bind(name, run.names[name])
    terms = [
        run.weigh(tensor) * (1 + i % 2)
        for i, tensor in enumerate(run.tensors.values())
        if tensor.requires_grad
    ]
    return sum(terms, cr.tensor(0.0, dtype=cr.float64)), leaves


def direction(name: str, tensor: cr.Tensor) -> np.ndarray:
    """Return the direction in which a leaf is moved, different for each leaf."""
    return np.cos(np.arange(tensor.numel()) * 1.7 + int(name[1:])).reshape(tensor.shape)


def shifted(by: float) -> Callable[[str, cr.Tensor], cr.Tensor]:
    """Return the leaves, moved a step along their direction."""
    return lambda name, leaf: cr.tensor(
        memory(leaf) + by * direction(name, leaf), requires_grad=True
    )


def gradients(loss: cr.Tensor, leaves: Leaves, **settings: Any) -> dict[str, cr.Tensor]:
    return cr.autograd_grad(loss, leaves, materialize_grads=True, **settings)


def along(vectors: dict[str, cr.Tensor]) -> cr.Tensor:
    """Return the inner product with the direction."""
    return sum((v * direction(name, v)).sum() for name, v in vectors.items())


STEP = 1e-5


def compare(exact: float, value: Callable[[float], float], scale: float) -> None:
    """Compare a derivative with differences, whose error is estimated from two step sizes."""
    coarse, fine = ((value(step) - value(-step)) / (2 * step) for step in (STEP, STEP / 2))
    note(f"{exact} by the rules, {coarse} and {fine} by differences")
    assert abs(exact - fine) <= 1e-5 * max(1.0, scale) + 2 * abs(coarse - fine)


def tame(loss: cr.Tensor) -> bool:
    """Say whether finite differences of the loss are precise."""
    return bool(abs(loss.item()) < 1e4)


def differentiated(program: Sequence[str]) -> tuple[cr.Tensor, dict[str, cr.Tensor], float] | None:
    """Return loss, recorded gradients and slope; None if there is no gradient."""
    loss, leaves = loss_of(program, shifted(0))
    if not loss.requires_grad or not tame(loss):
        return None
    try:
        grads = gradients(loss, leaves, create_graph=True)
    except cr.InPlaceError:
        return None  # a saved value was overwritten, and found out
    return loss, grads, along(grads).item()


@settings(many_examples)
@given(program=programs(SMOOTH))
def test_gradients_agree_with_differences(program):
    note("\n".join(program))
    found = differentiated(program)
    if found is None:
        event("no gradient")
        return
    loss, _, slope = found

    def loss_at(step: float) -> float:
        return loss_of(program, shifted(step))[0].item()

    compare(slope, loss_at, abs(loss.item()) + abs(slope))


@settings(many_examples)
@given(program=programs(SMOOTH))
def test_second_derivatives_agree_with_differences(program):
    note("\n".join(program))
    found = differentiated(program)
    if found is None or not along(found[1]).requires_grad:
        event("no second derivative")
        return
    loss, leaves = loss_of(program, shifted(0))
    slope = along(gradients(loss, leaves, create_graph=True))
    curvature = along(gradients(slope, leaves)).item()

    def slope_at(step: float) -> float:
        return along(gradients(*loss_of(program, shifted(step)))).item()

    compare(curvature, slope_at, abs(found[2]) + abs(curvature))


@settings(many_examples, max_examples=EXAMPLES // 2)
@given(program=programs(SMOOTH))
def test_forward_mode_agrees_with_reverse_mode(program):
    note("\n".join(program))
    found = differentiated(program)
    if found is None:
        event("no gradient")
        return
    _, leaves = loss_of(program, shifted(0))

    def function(*inputs: cr.Tensor) -> cr.Tensor:
        given_inputs = dict(zip(leaves, inputs, strict=True))
        return loss_of(program, lambda name, _: given_inputs[name])[0]

    primals = [leaf.detach() for leaf in leaves.values()]
    tangents = [cr.tensor(direction(name, leaf)) for name, leaf in leaves.items()]
    value, tangent = cr.jvp(function, primals, tangents)
    slope = found[2]
    np.testing.assert_allclose(value.item(), found[0].item(), rtol=1e-12)
    np.testing.assert_allclose(tangent.item(), slope, rtol=1e-8, atol=1e-8)


@settings(many_examples, max_examples=EXAMPLES // 2)
@given(program=programs(SMOOTH))
def test_s74_first_derivatives_do_not_depend_on_create_graph(program):
    note("\n".join(program))
    found = differentiated(program)
    if found is None:
        event("no gradient")
        return
    plain = gradients(*loss_of(program, shifted(0)))
    for name, grad in plain.items():
        np.testing.assert_allclose(memory(grad), memory(found[1][name]), rtol=1e-12, atol=1e-14)


@settings(many_examples, max_examples=EXAMPLES // 2)
@given(program=programs(EVERYTHING))
def test_s69_a_program_gives_the_same_bits_twice(program):
    note("\n".join(program))

    def everything() -> list[Any]:
        run = chainrule_run()
        errors = [type(run.step(line)) for line in program if runnable(line, run.names)]
        tensors = list(run.tensors.values())
        tensors += [t.grad for t in tensors if t.grad is not None]
        arrays = [memory(t) for t in tensors]
        return [errors, *[array.tobytes() for array in arrays]]

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        assert everything() == everything()
