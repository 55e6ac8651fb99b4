"""In-place operations as functions: sin_(x), fill_diagonal_(x); and fill."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import leaf
from helpers.torch_comparison import same_as_torch


def test_fill():
    def program(lib):
        v = lib.leaf(3.0)
        x = lib.leaf([[1.0, 2.0]])
        y = lib.fill(x, v)
        (slope,) = lib.grad(lib.fill(x, 2.0).sum(), (x,))  # it requires grad, though it's constant
        return [
            y,
            slope,
            lib.fill(lib.tensor([1, 2]), 3.5),
            *lib.grad((y * y).sum() + x.sum(), (x, v)),
        ]

    same_as_torch(program)
    with pytest.raises(cr.ShapeError, match="only supports 0-dimension value tensor"):
        cr.fill(cr.ones(2), cr.ones(2))


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (7, 3), (3, 3, 3), (0, 2), (3, 1), (2, 0)])
def test_fill_diagonal(shape, wrap):
    def program(lib):
        x = lib.module.zeros(shape, dtype=lib.float64, requires_grad=True)
        y = x * 1
        assert y.fill_diagonal_(5, wrap=wrap) is y
        return [y, *lib.grad(y.sum(), x)]

    same_as_torch(program)


def test_fill_diagonal_errors():
    with pytest.raises(cr.ShapeError, match="dimensions must larger than 1"):
        cr.zeros(3).fill_diagonal_(1.0)
    with pytest.raises(cr.ShapeError, match=r"equal length, got \[2, 2, 3\]"):
        cr.zeros(2, 2, 3).fill_diagonal_(1.0)


def test_constant_pad_nd():
    same_as_torch(lambda lib: lib.constant_pad_nd(lib.tensor([[1.0, 2.0]]), (1, 2, 0, 1), 7.0))


def test_other_names():
    assert cr.ger is cr.outer
    assert cr.concatenate is cr.cat


# --- in-place functions ---------------------------------------------------------------------------

IN_PLACE = [
    *("abs_", "acos_", "asin_", "atan_", "ceil_", "cos_", "cosh_", "deg2rad_", "erf_", "erfc_"),
    *("exp2_", "exp_", "expm1_", "fix_", "floor_", "frac_", "i0_", "log10_", "log1p_", "log2_"),
    *("log_", "logit_", "nan_to_num_", "neg_", "negative_", "rad2deg_", "reciprocal_", "round_"),
    *("rsqrt_", "sigmoid_", "sin_", "sinc_", "sinh_", "sqrt_", "square_", "tan_", "tanh_"),
    *("trunc_", "zero_", "arctan_"),
]


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_functions(name):
    def program(lib):
        x = lib.leaf([0.25, 0.75])
        y = x * 1
        assert getattr(lib, name)(y) is y
        return [y, *lib.grad(y.sum(), x)]

    same_as_torch(program)


def test_in_place_functions_of_several_arguments():
    def program(lib):
        x = lib.tensor([4.0, 9.0])
        lib.clamp_(x, max=5)
        lib.xlogy_(x, lib.tensor([2.0, 3.0]))
        lib.clamp_min_(x, 3.0)
        lib.fill_(x[:1], 8.0)
        return x, lib.gcd_(lib.tensor([6]), lib.tensor([4]))

    same_as_torch(program)


def test_in_place_functions_take_tensors_only():
    with pytest.raises(TypeError, match=r"sin_\(\): argument .input. must be a Tensor"):
        cr.sin_(np.ones(2))
    with pytest.raises(cr.InPlaceError, match="a leaf Variable that requires grad"):
        cr.sin_(leaf([1.0]))
