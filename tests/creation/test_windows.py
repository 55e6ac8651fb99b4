"""Windows, logarithmic scales, places by number."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import leaf
from helpers.torch_comparison import same_as_torch

WINDOWS = ["hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window"]


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 33])
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_pytorchs(name, periodic, length):
    def program(lib):
        values = getattr(lib, name)(length, periodic, dtype=lib.float64)
        return values + 1, values.requires_grad  # some are 1e-17 there and 0 here

    same_as_torch(program)


def test_their_other_arguments():
    def program(lib):
        return [
            lib.hamming_window(5, True, 0.6, 0.3, dtype=lib.float64),
            lib.kaiser_window(6, False, 3.0, dtype=lib.float64),
            lib.hann_window(3, dtype=lib.float64, requires_grad=True).requires_grad,
            [str(lib.hann_window(3).dtype).split(".")[-1]],
        ]

    same_as_torch(program)
    with pytest.raises(cr.DTypeError, match="hann_window expects floating point dtypes"):
        cr.hann_window(3, dtype=cr.int64)


@pytest.mark.parametrize(
    "arguments", [(0, 2, 3), (-1, 1, 5, 2.0), (0, 3, 0), (0.5, 0.5, 1), (3, 0, 4, 10)]
)
def test_logspace(arguments):
    same_as_torch(lambda lib: lib.logspace(*arguments, dtype=lib.float64))


def test_logspace_of_other_dtypes():
    same_as_torch(lambda lib: lib.logspace(0, 3, 4, base=2, dtype=lib.int64))
    assert cr.logspace(0, 1, 3).dtype == cr.get_default_dtype()
    assert cr.logspace(0, 1j, 3).dtype == cr.complex64
    assert cr.logspace(cr.tensor(0.0), cr.tensor(2.0), 3).tolist() == [1.0, 10.0, 100.0]


@pytest.mark.parametrize("shape", [(3, 4), 12, (2, 3, 2), (12, 1)])
@pytest.mark.parametrize("numbers", [5, [7, 0, 11], [[1, 2], [3, 4]], np.zeros((2, 0), int)])
def test_unravel_index(numbers, shape):
    same_as_torch(lambda lib: list(lib.unravel_index(lib.module.as_tensor(numbers), shape)))


def test_unravel_index_errors():
    with pytest.raises(IndexError, match=r"out of range for the shape \[2, 3\]"):
        cr.unravel_index(cr.tensor([6]), (2, 3))
    with pytest.raises(cr.DTypeError, match="expected 'indices' to be integer dtype"):
        cr.unravel_index(cr.tensor([1.0]), (2, 3))


def test_fill():
    def program(lib):
        v = lib.leaf(3.0)
        x = lib.leaf([[1.0, 2.0]])
        y = lib.fill(x, v)
        return [y, lib.fill(lib.tensor([1, 2]), 3.5), *lib.grad((y * y).sum() + x.sum(), (x, v))]

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
def test_functions_that_write_in_place(name):
    def program(lib):
        x = lib.leaf([0.25, 0.75])
        y = x * 1
        assert getattr(lib, name)(y) is y
        return [y, *lib.grad(y.sum(), x)]

    same_as_torch(program)


def test_those_of_several_arguments():
    def program(lib):
        x = lib.tensor([4.0, 9.0])
        lib.clamp_(x, max=5)
        lib.xlogy_(x, lib.tensor([2.0, 3.0]))
        lib.clamp_min_(x, 3.0)
        lib.fill_(x[:1], 8.0)
        return x, lib.gcd_(lib.tensor([6]), lib.tensor([4]))

    same_as_torch(program)


def test_what_is_written_to_is_a_tensor():
    with pytest.raises(TypeError, match=r"sin_\(\): argument .input. must be a Tensor"):
        cr.sin_(np.ones(2))
    with pytest.raises(cr.InPlaceError, match="a leaf Variable that requires grad"):
        cr.sin_(leaf([1.0]))


# --- steps in memory ------------------------------------------------------------------------------

SOURCES = {
    "matrix": lambda x: x * 1,
    "transposed": lambda x: (x * 1).T,
    "rows": lambda x: (x * 1)[1:],
    "permuted": lambda x: (x * 1).reshape(2, 2, 3).permute(2, 0, 1),
}


@pytest.mark.parametrize(
    "arguments",
    [
        ((3, 2), (1, 1)),
        ((2, 3), (2, 0)),
        ((4,), (2,)),
        ((), ()),
        ((0, 2), (9, 9)),
        ((2, 2), (1, 4), 4),
    ],
    ids=str,
)
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES.keys())
def test_as_strided(source, arguments):
    def program(lib):
        x = lib.leaf(np.arange(1.0, 13.0).reshape(4, 3))
        y = source(x)
        z = y.as_strided(*arguments)
        return [z, lib.as_strided(y, *arguments), *lib.grad((z * z).sum() + x.sum() * 0, x)]

    same_as_torch(program)


def test_as_strided_refuses_what_is_no_element():
    x = cr.arange(12).reshape(3, 4)
    for call in (
        lambda: x.as_strided((4,), (4,)),
        lambda: x[:, :2].as_strided((3,), (1,)),
        lambda: x[1:].as_strided((2,), (1,), 0),
        lambda: cr.zeros(0).as_strided((1,), (1,)),
    ):
        with pytest.raises(cr.ShapeError, match="as_strided: setStorage: a place is out of bounds"):
            call()
    with pytest.raises(cr.ShapeError, match="mismatch in length of strides and shape"):
        x.as_strided((2, 2), (1,))
    with pytest.raises(cr.ShapeError, match="Negative strides and sizes are not supported"):
        x.as_strided((2,), (-1,))
    with pytest.raises(cr.InPlaceError, match="the memory is read-only"):
        x.as_strided((2,), (1,)).mul_(2)
    assert cr.tensor(3.0).as_strided((2,), (0,)).tolist() == [3.0, 3.0]
