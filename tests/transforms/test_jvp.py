"""Forward mode: jvp, the structure of its results, and nested modes."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import chainrule as cr

Function = Callable[[cr.Tensor], cr.Tensor]


def number(value: float) -> cr.Tensor:
    return cr.tensor(value, dtype=cr.float64)


def forward(f: Function) -> Function:
    return lambda x: cr.jvp(f, x, cr.ones_like(x))[1]


def reverse(f: Function) -> Function:
    def derivative(x: cr.Tensor) -> cr.Tensor:
        with cr.enable_grad():
            inner = x.clone() if x.requires_grad else x.detach().requires_grad_()
            y = f(inner)
        (found,) = cr.autograd_grad(y, inner, create_graph=True)
        return found

    return derivative


MODES = {"forward": forward, "reverse": reverse}


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_modes_nest_to_any_depth_in_any_order(order: int) -> None:
    wanted = [np.cos(0.3), -np.sin(0.3), -np.cos(0.3), np.sin(0.3)][order - 1]
    for names in itertools.product(MODES, repeat=order):
        f: Function = cr.sin
        for name in names:
            f = MODES[name](f)
        assert f(number(0.3)).item() == pytest.approx(wanted), names


def test_sinc_at_zero_in_both_modes() -> None:
    for names in itertools.product(MODES, repeat=4):
        f: Function = cr.sinc
        for name in names:
            f = MODES[name](f)
        assert f(number(0.0)).item() == pytest.approx(np.pi**4 / 5), names


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product(MODES, repeat=2)))
def test_derivatives_through_closed_over_tensors(outer: str, inner: str) -> None:
    around, within = MODES[outer], MODES[inner]

    def direct(x: cr.Tensor) -> cr.Tensor:
        return within(lambda y: x * y * y)(number(2.0))

    def computed(x: cr.Tensor) -> cr.Tensor:
        square = x * x
        return within(lambda y: square * y * y)(number(2.0))

    assert around(direct)(number(3.0)).item() == 4.0
    assert around(computed)(number(3.0)).item() == 24.0


@pytest.mark.parametrize(("outer", "inner"), list(itertools.product(MODES, repeat=2)))
def test_perturbations_are_not_confused(outer: str, inner: str) -> None:
    around, within = MODES[outer], MODES[inner]
    assert around(lambda x: x * within(lambda y: x + y)(number(1.0)))(number(1.0)).item() == 1.0
    assert around(lambda x: x * within(lambda y: x * y)(number(2.0)))(number(3.0)).item() == 6.0
    assert around(lambda x: within(lambda y: x * y * y)(x))(number(3.0)).item() == 12.0


def test_a_backward_pass_reaches_what_a_jvp_closes_over() -> None:
    w = number(2.0).requires_grad_()
    square = w * w
    value, slope = cr.jvp(lambda x: square * x * x, number(3.0), number(1.0))
    assert value.requires_grad
    slope.backward()
    assert w.grad is not None
    assert w.grad.item() == 24.0


def test_a_jvp_alone_records_nothing() -> None:
    value, slope = cr.jvp(cr.sin, number(1.0), number(1.0))
    assert not value.requires_grad
    assert not slope.requires_grad
    x = number(1.0).requires_grad_()
    with cr.no_grad():
        value, slope = cr.jvp(lambda y: x * y, x, number(1.0))
    assert not value.requires_grad
    assert not slope.requires_grad


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass
class Point:
    x: Any
    y: Any


def test_outputs_and_tangents_have_the_structure_of_the_result() -> None:
    x, t = number(3.0), number(1.0)
    for make in (list, tuple, lambda parts: Pair(*parts), lambda parts: Point(*parts)):
        value, slope = cr.jvp(lambda x, make=make: make([x * x, 2 * x]), x, t)
        assert type(value) is type(slope) is type(make([0, 0]))
        assert value == make([number(9.0), number(6.0)])
        assert slope == make([number(6.0), number(2.0)])
    value, slope = cr.jvp(lambda x: OrderedDict(b=x, a=[x * x, "label", None]), x, t)
    assert list(value) == list(slope) == ["b", "a"]
    assert value["a"][1:] == ["label", None]
    assert slope["a"] == [number(6.0), None, None]


def test_a_constant_and_an_integer_have_zeros_for_a_tangent() -> None:
    value, slope = cr.jvp(lambda x: (number(4.0), x.to(cr.int32)), number(2.5), number(1.0))
    assert [v.item() for v in value] == [4.0, 2]
    assert [s.item() for s in slope] == [0.0, 0]


def test_primals_may_be_containers_arrays_and_numbers() -> None:
    def line(parameters: dict[str, Any], x: Any) -> Any:
        return parameters["w"] * x + parameters["b"]

    primals = ({"w": np.array([2.0, 3.0]), "b": number(1.0)}, 5.0)
    tangents = ({"w": np.array([1.0, 0.0]), "b": 0.5}, 0.0)
    value, slope = cr.jvp(line, primals, tangents)
    assert value.tolist() == [11.0, 16.0]
    assert slope.tolist() == [5.5, 0.5]
    assert cr.jvp(lambda x: x * x, 3.0, 1.0) == (9.0, 6.0)
    assert cr.jvp(lambda p: p["w"] * 2, {"w": 3.0}, {"w": 1.0})[1] == 2.0


def test_a_tangent_takes_the_dtype_of_its_primal() -> None:
    x = cr.tensor([1.0, 2.0])
    assert cr.jvp(lambda x: x * x, x, np.ones(2))[1].dtype == cr.float32
    z = cr.tensor([1.0 + 2.0j])
    assert cr.jvp(lambda z: z * z, z, cr.ones(1))[1].tolist() == [2.0 + 4.0j]


def test_what_does_not_fit_is_named() -> None:
    def product(x: Any, y: Any) -> Any:
        return x * y

    with pytest.raises(TypeError, match="at primals is a list of 2, at tangents a list of 1"):
        cr.jvp(product, (1.0, 2.0), (1.0,))
    text = r"at primals\[0\] is a dict of 1 \('w'\), at tangents\[0\] a fl"
    with pytest.raises(TypeError, match=text):
        cr.jvp(lambda p: p["w"], {"w": 1.0}, 1.0)
    with pytest.raises(cr.ShapeError, match=r"got \[2\], expected \[3\]"):
        cr.jvp(cr.sin, cr.ones(3), cr.ones(2))
    with pytest.raises(cr.DTypeError, match="must be floating or complex, got int64"):
        cr.jvp(cr.sin, cr.tensor(1), cr.tensor(1))
    with pytest.raises(cr.DTypeError, match="got complex64 for float32"):
        cr.jvp(cr.sin, cr.tensor(1.0), cr.tensor(1.0j))


def test_auxiliary_data_of_a_jvp() -> None:
    found = cr.func.jvp(lambda x: (x * x, {"x": x, "n": 3}), (3.0,), (2.0,), has_aux=True)
    assert found == (9.0, 12.0, {"x": 3.0, "n": 3})
    with pytest.raises(TypeError, match=r"jvp.*has_aux=True.*expected .* to return a pair"):
        cr.func.jvp(lambda x: x * x, (3.0,), (2.0,), has_aux=True)
