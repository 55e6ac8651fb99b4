"""Rules of users' functions: primitive, defvjp, defjvp, vspace."""

from __future__ import annotations

import math

import numpy
import pytest

import chainrule as cr
import chainrule.compat.autograd.numpy as np
from chainrule.compat.autograd import deriv, grad, hessian, jacobian, make_vjp
from chainrule.compat.autograd.extend import (
    Box,
    VSpace,
    def_linear,
    defjvp,
    defvjp,
    defvjp_argnum,
    notrace_primitive,
    primitive,
    vspace,
)
from chainrule.compat.autograd.misc.fixed_points import fixed_point
from chainrule.compat.autograd.numpy.numpy_boxes import ArrayBox
from chainrule.compat.autograd.numpy.numpy_vjps import unbroadcast_f
from chainrule.compat.autograd.test_util import check_grads
from chainrule.compat.autograd.tracer import Node, Rules, getval, isbox, trace

X = numpy.array([0.3, -0.7, 1.1])
M = numpy.array([[1.0, 0.2, -0.5], [0.3, 0.8, 0.1]])
seen = []


@primitive
def cube(x):
    seen.append(type(x))
    y = numpy.empty(numpy.shape(x), numpy.result_type(x))
    y[...] = numpy.asarray(x) ** 3
    return y


defvjp(cube, lambda ans, x: lambda g: 3 * x**2 * g)
defjvp(cube, lambda g, ans, x: 3 * x**2 * g)


@primitive
def scaled(x, s):
    return {"product": x * s, "pair": (x + s, 3)}


defvjp(
    scaled,
    lambda ans, x, s: unbroadcast_f(x, lambda g: g["product"] * s + g["pair"][0]),
    lambda ans, x, s: unbroadcast_f(s, lambda g: g["product"] * x + g["pair"][0]),
)


@primitive
def total(parts, power):
    return sum(numpy.sum(part**power) for part in parts)


defvjp(total, lambda ans, parts, power: lambda g: [g * power * p ** (power - 1) for p in parts])

linear = primitive(lambda x, y: numpy.dot(x, y))
def_linear(linear)
defvjp_argnum(linear, lambda i, ans, args, kwargs: lambda g: g * args[1 - i])


@pytest.mark.parametrize(
    ("function", "arguments", "modes"),
    [
        (lambda x: cube(np.sin(x)) * x, (X,), None),
        (cube, (0.7,), None),
        (lambda x: cube(x) * 1j + x, (X + 0.5j,), None),
        (lambda x, s: np.sum(scaled(x, s)["product"] * scaled(x, s)["pair"][0]), (X, 1.5), ["rev"]),
        (lambda x, y: total([x, M, np.sin(y)], 3.0), (X, M), ["rev"]),
        (lambda x, y: linear(np.sin(x), y), (X, X + 1), None),
    ],
)
def test_rules_give_derivatives_to_second_order(function, arguments, modes):
    check_grads(function, tuple(range(len(arguments))), modes=modes, order=2)(*arguments)


def test_a_primitive_gets_numpys_arrays_and_its_jacobian_is_stacked():
    seen.clear()
    numpy.testing.assert_allclose(jacobian(cube)(X), numpy.diag(3 * X**2))
    numpy.testing.assert_allclose(hessian(lambda x: np.sum(cube(x)))(X), numpy.diag(6 * X))
    assert set(seen) == {numpy.ndarray}
    assert type(cube(X)) is numpy.ndarray
    assert grad(grad(grad(cube)))(2.0) == 6.0
    assert deriv(grad(deriv(cube)))(2.0) == 6.0


def test_a_result_that_is_an_argument_is_copied():
    same = primitive(lambda x: x)
    defvjp(same, lambda ans, x: lambda g: g)

    def f(x):
        y = same(x)
        assert not numpy.shares_memory(getval(x), getval(y))
        return np.sum(x * y)

    numpy.testing.assert_allclose(grad(f)(X), 2 * X)


def test_rules_that_take_no_batch_of_cotangents_are_called_for_each():
    foreign = primitive(lambda x: x**2)
    defvjp(foreign, lambda ans, x: lambda g: numpy.asarray(getval(g)) * 2 * getval(x))
    numpy.testing.assert_allclose(jacobian(foreign)(X), numpy.diag(2 * X))
    assert jacobian(foreign)(2.0) == 4.0


def test_calls_without_rules_say_so():
    plain = primitive(lambda x: x * 2)
    with pytest.raises(NotImplementedError, match=r"VJP of <lambda> wrt argnums \(0,\) not"):
        grad(plain)(1.0)
    with pytest.raises(NotImplementedError, match="JVP of <lambda>"):
        deriv(plain)(1.0)
    defvjp(plain, lambda ans, x: lambda g: g * 2, argnums=[1])
    with pytest.raises(NotImplementedError, match="wrt argnum 0 not defined"):
        grad(plain)(1.0)
    with pytest.raises(TypeError, match="Bad VJP 3"):
        defvjp(plain, 3)
    with pytest.raises(TypeError, match=r"keyword argument .*x.* by position"):
        grad(lambda x: plain(x=x))(1.0)
    with pytest.warns(UserWarning, match="has no effect"):
        defvjp(np.sin, lambda ans, x: lambda g: g)
    defvjp(plain, lambda ans, x: lambda g: g * X)
    with pytest.raises(ValueError, match=r"shape \(3,\) for an array of shape \(\)"):
        grad(plain)(1.0)


CLOSURES = {
    "result": lambda x, y: x * y,
    "float": lambda x, y: x * float(y),
    "math": lambda x, y: x * math.sin(y),
    "array": lambda x, y: x * numpy.asarray(y),
    "written": lambda x, y: numpy.stack([x, x]) @ numpy.array([y, y]),
}


@pytest.mark.parametrize("name", CLOSURES)
def test_no_gradient_of_what_a_primitive_closes_over_is_lost_in_silence(name):
    def f(y):
        closure = primitive(lambda x: CLOSURES[name](x, y))
        defvjp(closure, lambda ans, x: lambda g: g)
        return closure(y)

    with pytest.raises((TypeError, cr.AutogradError)):
        grad(f)(2.0)


def test_numpy_is_plain_within_a_primitive_and_recorded_in_a_transform_that_it_calls():
    @primitive
    def slope(x):
        assert type(np.zeros(2)) is numpy.ndarray
        return grad(lambda v: np.sum(np.array([v, v**2])))(x)

    defvjp(slope, lambda ans, x: lambda g: 2.0 * g)
    assert grad(lambda x: slope(x) * np.sum(np.ones(2)))(3.0) == 4.0


def test_none_stands_for_zeros():
    def f(x, y):
        return switch(x, y) * x

    switch = primitive(lambda x, y: x * y)
    defvjp(switch, None, lambda ans, x, y: lambda g: g * x)
    defjvp(switch, None, lambda g, ans, x, y: g * x)
    assert grad(f, (0, 1))(2.0, 3.0) == (6.0, 4.0)
    assert deriv(f)(2.0, 3.0) == 6.0


def test_boxes_and_their_values():
    def f(x):
        assert isbox(x)
        assert isinstance(x, Box)
        assert isinstance(x, ArrayBox)
        assert type(getval(x)) is numpy.ndarray
        assert x._value.tolist() == X.tolist()
        assert not isbox(np.zeros(2))
        assert rounded(x).tolist() == numpy.round(X).tolist()
        assert not isbox(rounded(x))
        return np.sum(x)

    rounded = notrace_primitive(numpy.round)
    assert grad(f)(X).tolist() == [1, 1, 1]
    assert not isbox(X)
    assert getval("a") == "a"


@pytest.mark.parametrize("value", [X, 1.5, 1 + 2j, M * 1j, {"a": X, "b": (1.0, [M])}])
def test_vector_spaces(value):
    space = vspace(value)
    basis = list(space.standard_basis())
    assert len(basis) == space.size
    v, w = space.randn(), space.randn()
    assert vspace(v) == space == vspace(space.zeros()) == vspace(space.ones())
    coordinates = [space.inner_prod(e, v) for e in basis]
    found = space.zeros()
    for e, c in zip(basis, coordinates, strict=True):
        found = space.add(found, space.scalar_mul(e, c))
    assert space.inner_prod(found, w) == pytest.approx(space.inner_prod(v, w))
    assert space != vspace({"other": 1.0})
    with pytest.raises(TypeError, match="Can't find vector space for value"):
        vspace([value, 1])


def test_arrays_subclasses_are_accepted_and_other_classes_are_not():
    class Labelled(numpy.ndarray):
        pass

    for kind in (Box, ArrayBox, VSpace):
        kind.register(Labelled)
        with pytest.raises(TypeError, match="objects of Rules can't be differentiated by"):
            kind.register(Rules)


@pytest.mark.filterwarnings("ignore:Output seems independent")
def test_fixed_points_are_differentiated_by_the_implicit_function_theorem():
    def newton(a):
        return lambda x: (x + a["v"] / x) / 2

    def root(a):
        return fixed_point(newton, {"v": a}, 1.0, lambda x, y: abs(x - y), 1e-12)

    assert root(2.0) == pytest.approx(2**0.5)
    assert grad(root)(2.0) == pytest.approx(0.5 / 2**0.5)
    assert grad(grad(root))(2.0) == pytest.approx(-0.25 * 2**-1.5)


def test_products_are_of_chainrules_tensors_for_tensors():
    vjp, value = make_vjp(lambda x: cube(x))(cr.tensor([2.0]))
    assert isinstance(value, cr.Tensor)
    assert vjp(cr.tensor([1.0])).tolist() == [12.0]


class Recorded(Node):
    def __init__(self, value, fun, args, kwargs, parent_argnums, parents):
        self.line = fun.__name__, value, list(parent_argnums)
        self.parents = parents

    def initialize_root(self, name):
        self.line, self.parents = name, []


def test_trace_makes_a_node_for_each_operation():
    def f(x):
        return (np.sin(x) + np.sum(X)) * x

    value, node = trace(Recorded.new_root("x"), f, 0.5)
    assert value == pytest.approx((numpy.sin(0.5) + X.sum()) * 0.5)
    assert node.line == ("multiply", value, [0, 1])
    add, root = node.parents
    assert root.line == "x"
    assert add.line[0] == "add"
    assert add.parents[0].line == ("sin", numpy.sin(0.5), [0])
    slope, last = trace(Recorded.new_root("x"), grad(f), 0.5)
    assert slope == pytest.approx(grad(f)(0.5))
    assert last.line[1] == slope
    with pytest.warns(UserWarning, match="independent of input"):
        assert trace(Recorded.new_root("x"), lambda x: 1.5, 0.5) == (1.5, None)
    with pytest.raises(NotImplementedError, match="Node has no __init__"):
        trace(Node.new_root(), f, 0.5)


def test_derivatives_can_be_compiled():
    def f(x):
        return np.sum(np.tanh(x) ** 2)

    numpy.testing.assert_allclose(cr.compile(grad(f))(X), grad(f)(X))
    numpy.testing.assert_allclose(cr.compile(hessian(f))(X), hessian(f)(X))


def test_names_that_numpy_does_not_have():
    def f(x):
        return np.make_diagonal(np.row_stack([x, x**2]), axis1=-1, axis2=-2)

    assert f(X).shape == (2, 3, 3)
    assert numpy.diagonal(f(X), axis1=1, axis2=2).tolist() == [X.tolist(), (X**2).tolist()]
    check_grads(f)(X)
    with pytest.raises(NotImplementedError, match="expected offset=0, axis1=-1, axis2=-2"):
        np.make_diagonal(X)
    with pytest.raises(AttributeError, match="has no attribute 'nosuch'"):
        _ = np.nosuch
