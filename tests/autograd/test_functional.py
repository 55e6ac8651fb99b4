"""cr.autograd.functional: derivatives of functions, compared with PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import equal, leaf
from helpers.torch_comparison import same_as_torch


def functional(lib):
    return lib.module.autograd.functional


X, Y = [1.0, 2.0, -1.5], [[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]]


def vector(x):
    return x.exp() * x.sum()


def pair(x, y):
    return y @ x, (x * x).sum() * y


def scalar(x):
    return (x**3).sum() * x[0]


def scalar_of_two(x, y):
    return ((y @ x) ** 2).sum() + x.prod()


def one(lib):
    return lib.tensor(X, "float64")


def two(lib):
    return one(lib), lib.tensor(Y, "float64")


# --- values ---------------------------------------------------------------------------------------

PRODUCTS = {
    "vjp of one": lambda f, lib: f.vjp(vector, one(lib), lib.tensor([1.0, 0.5, -2.0], "float64")),
    "vjp of a number": lambda f, lib: f.vjp(scalar, one(lib)),
    "vjp of two": lambda f, lib: f.vjp(
        pair, two(lib), (lib.tensor([1.0, 2.0], "float64"), lib.tensor(Y, "float64"))
    ),
    "jvp of one": lambda f, lib: f.jvp(vector, one(lib), lib.tensor([1.0, 0.5, -2.0], "float64")),
    "jvp of a number": lambda f, lib: f.jvp(lambda x: x * x, lib.tensor(3.0, "float64")),
    "jvp of two": lambda f, lib: f.jvp(pair, two(lib), two(lib)),
    "vhp of one": lambda f, lib: f.vhp(scalar, one(lib), lib.tensor([1.0, 0.5, -2.0], "float64")),
    "hvp of one": lambda f, lib: f.hvp(scalar, one(lib), lib.tensor([1.0, 0.5, -2.0], "float64")),
    "hvp of two": lambda f, lib: f.hvp(scalar_of_two, two(lib), two(lib)),
    "hvp of a number": lambda f, lib: f.hvp(lambda x: x**4, lib.tensor(3.0, "float64")),
}


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS.keys())
def test_products_are_those_of_torch(product):
    same_as_torch(lambda lib: product(functional(lib), lib))


MATRICES = {
    "jacobian of one": lambda f, lib, **how: f.jacobian(vector, one(lib), **how),
    "jacobian of two": lambda f, lib, **how: f.jacobian(pair, two(lib), **how),
    "jacobian of a number": lambda f, lib, **how: f.jacobian(
        lambda x: x * x, lib.tensor(3.0, "float64"), **how
    ),
    "jacobian of matrices": lambda f, lib, **how: f.jacobian(
        lambda y: y.T.exp() @ y, lib.tensor(Y, "float64"), **how
    ),
    "independent": lambda f, lib, **how: f.jacobian(
        lambda x, y: (x * x, y.detach()), two(lib), **how
    ),
}


@pytest.mark.parametrize("how", [{}, {"strategy": "forward-mode", "vectorize": True}], ids=str)
@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES.keys())
def test_jacobians_are_those_of_torch_by_either_mode(matrix, how):
    same_as_torch(lambda lib: matrix(functional(lib), lib, **how))


@pytest.mark.parametrize(
    "how", [{}, {"outer_jacobian_strategy": "forward-mode", "vectorize": True}], ids=str
)
def test_hessians_are_those_of_torch_by_either_mode(how):
    same_as_torch(lambda lib: functional(lib).hessian(scalar, one(lib), **how))
    same_as_torch(lambda lib: functional(lib).hessian(scalar_of_two, two(lib), **how))
    same_as_torch(lambda lib: functional(lib).hessian(lambda x: x**4, one(lib)[0], **how))


def test_a_hessian_is_that_of_the_formula():
    x = leaf([2.0, 3.0])
    found = cr.autograd.functional.hessian(lambda x: x[0] * x[0] * x[1], x)
    assert found.tolist() == [[6, 4], [4, 0]]


def test_of_a_linear_function_second_derivatives_are_zeros():
    x = cr.tensor(X)
    assert equal(cr.autograd.functional.hessian(lambda x: 3 * x.sum(), x), np.zeros((3, 3), "f4"))
    assert equal(cr.autograd.functional.hvp(lambda x: 3 * x.sum(), x, x)[1], np.zeros(3, "f4"))


def test_empty_tensors_give_empty_jacobians():
    x = cr.ones(2, requires_grad=True)
    assert cr.autograd.functional.jacobian(lambda x: x[:0], x).shape == (0, 2)
    assert cr.autograd.functional.jacobian(lambda x: x * 2, cr.ones(0)).shape == (0, 0)


# --- whose graph it is ----------------------------------------------------------------------------


def test_nothing_of_the_callers_is_touched_and_results_have_no_history():
    x = leaf(X)
    y, product = cr.autograd.functional.vjp(vector, x, cr.ones(3))
    assert not y.requires_grad
    assert not product.requires_grad
    assert not cr.autograd.functional.jacobian(vector, x).requires_grad
    assert not cr.autograd.functional.hessian(scalar, x).requires_grad
    assert x.grad is None


def test_closed_over_tensors_are_constants():
    x = leaf(X)
    assert equal(cr.autograd.functional.jacobian(lambda y: x * y, x), np.diag(np.float32(X)))


def test_with_create_graph_results_are_differentiated():
    def program(lib):
        x, v = lib.leaf(X), lib.leaf([1.0, 0.5, -2.0])
        f = functional(lib)
        results = [
            f.vjp(vector, x, v, create_graph=True)[1],
            f.jvp(vector, x, v, create_graph=True)[1],
            f.hvp(scalar, x, v, create_graph=True)[1],
            f.jacobian(vector, x, create_graph=True),
            f.hessian(scalar, x, create_graph=True),
        ]
        return [lib.grad((r * r).sum(), [x, v], allow_unused=True) for r in results]

    same_as_torch(program)


def test_with_create_graph_it_records_under_no_grad_too():
    x = leaf(X)
    with cr.no_grad():
        assert cr.autograd.functional.jacobian(vector, x, create_graph=True).requires_grad
        assert cr.autograd.functional.vjp(scalar, x, create_graph=True)[1].requires_grad


def test_jacobians_by_forward_mode_are_differentiated_too():
    x = leaf(X, cr.float64)
    by_columns = cr.autograd.functional.jacobian(
        vector, x, create_graph=True, strategy="forward-mode"
    )
    (slope,) = cr.autograd_grad((by_columns**2).sum(), x)
    by_rows = cr.autograd.functional.jacobian(vector, x, create_graph=True)
    np.testing.assert_allclose(slope.numpy(), cr.autograd_grad((by_rows**2).sum(), x)[0].numpy())


def test_jvp_needs_no_forward_rule_of_a_custom_function():
    @cr.autograd_function
    def square(ctx, x):
        ctx.save_for_backward(x=x)
        return x * x

    @square.backward
    def _(ctx, g):
        return {"x": 2 * g * ctx.saved_variables.x}

    x = cr.tensor([3.0, 5.0])
    assert equal(cr.autograd.functional.jvp(square, x, cr.ones(2))[1], np.float32([6.0, 10.0]))


# --- strict ---------------------------------------------------------------------------------------

STRICT = {
    "no gradient": (lambda x: x.detach() * 2, "Output 0 .* does not require gradients"),
    "another leaf": (lambda x: cr.ones(1, requires_grad=True).sum(), "is independent of input 0"),
}


@pytest.mark.parametrize("title", ["vjp", "jvp", "vhp", "hvp", "jacobian", "hessian"])
@pytest.mark.parametrize(("function", "text"), STRICT.values(), ids=STRICT.keys())
def test_strict_refuses_an_output_that_does_not_depend_on_an_input(title, function, text):
    operation = getattr(cr.autograd.functional, title)
    x = cr.ones(1)
    with pytest.raises(cr.AutogradError, match=text):
        operation(function, x, strict=True)
    operation(function, x)


def test_strict_with_create_graph_refuses_a_constant_jacobian():
    x = leaf([2.0])
    f = cr.autograd.functional
    with pytest.raises(cr.AutogradError, match="jacobian of the user-provided function is indep"):
        f.jacobian(lambda x: 3 * x, x, strict=True, create_graph=True)
    with pytest.raises(cr.AutogradError, match=r"jacobian .* with respect to input 0 is indep"):
        f.hessian(lambda x: 3 * x.sum(), x, strict=True)
    with pytest.raises(cr.AutogradError, match="hessian of the user-provided function is indep"):
        f.vhp(lambda x: (x * x).sum(), x, strict=True, create_graph=True)


def test_strict_refuses_one_output_without_a_derivative():
    def second_is_another(x):
        return x * 2, cr.ones(3, requires_grad=True) * 1

    x = cr.ones(3)
    with pytest.raises(cr.AutogradError, match=r"Output 1 .* independent of input 0"):
        cr.autograd.functional.jacobian(second_is_another, x, strict=True)
    with pytest.raises(cr.AutogradError, match=r"output 1 .* independent of the inputs"):
        cr.autograd.functional.jvp(second_is_another, x, x, strict=True)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("title", ["vjp", "jvp", "vhp", "hvp", "jacobian", "hessian"])
def test_inputs_and_outputs_are_tensors_or_tuples_of_them(title):
    operation = getattr(cr.autograd.functional, title)
    with pytest.raises(TypeError, match=f"The inputs given to {title} must be either a Tensor"):
        operation(lambda x: x, 1.0)
    with pytest.raises(TypeError, match="the value at index 1 has type"):
        operation(lambda x, y: x, (cr.ones(1), "b"))
    with pytest.raises(TypeError, match=f"outputs of the user-provided function given to {title}"):
        operation(lambda x: [x], cr.ones(1))


def test_the_vector_has_the_structure_of_the_inputs_or_outputs():
    f, x = cr.autograd.functional, cr.ones(3)
    with pytest.raises(cr.AutogradError, match="can only be None if the user-provided function"):
        f.vjp(vector, x)
    with pytest.raises(cr.AutogradError, match="can only be None if the input to the user"):
        f.jvp(vector, x)
    with pytest.raises(cr.ShapeError, match=r"v has invalid size: should be \[3\] but got \[2\]"):
        f.jvp(vector, x, cr.ones(2))
    with pytest.raises(cr.ShapeError, match="The given v should contain a single Tensor"):
        f.jvp(vector, x, (x, x))
    with pytest.raises(cr.ShapeError, match="v is a tuple of invalid length: should be 2 but got"):
        f.jvp(lambda x, y: x * y, (x, x), x)
    with pytest.raises(cr.ShapeError, match="Entry 1 in v has invalid size"):
        f.jvp(lambda x, y: x * y, (x, x), (x, cr.ones(2)))


def test_a_hessian_is_that_of_one_number():
    with pytest.raises(cr.AutogradError, match="given to hvp should contain a single element"):
        cr.autograd.functional.hvp(vector, cr.ones(3), cr.ones(3))
    with pytest.raises(cr.AutogradError, match="given to hessian should return a single Tensor"):
        cr.autograd.functional.hessian(lambda x: (x.sum(), x.sum()), cr.ones(3))


def test_there_are_two_strategies():
    with pytest.raises(ValueError, match='either "forward-mode" or "reverse-mode"'):
        cr.autograd.functional.jacobian(vector, cr.ones(3), strategy="sideways")


def test_jacobians_of_complex_numbers_are_of_real_outputs():
    def program(lib):
        z = lib.tensor([1 + 1j, 2 - 1j], "complex128")
        f = functional(lib)
        with pytest.raises(RuntimeError, match="created only for real"):
            f.jacobian(lambda z: z * z, z)
        with pytest.raises(RuntimeError, match="created only for real"):
            f.hessian(lambda z: (abs(z) ** 2).sum(), z)
        return f.jacobian(abs, z), f.vjp(lambda z: z * z, z, z), f.jvp(lambda z: z * z, z, z)

    same_as_torch(program)
    with pytest.raises(cr.AutogradError, match="only for real inputs of forward mode"):
        cr.autograd.functional.jacobian(abs, cr.tensor([1j]), strategy="forward-mode")


def test_gradients_are_those_of_inputs_only():
    x = leaf([2.0])
    with pytest.raises(cr.ArgumentError, match="only_inputs=False is not supported"):
        cr.autograd.grad((x * x).sum(), x, only_inputs=False)
