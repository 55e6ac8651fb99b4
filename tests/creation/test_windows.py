"""Window functions, logspace and unravel_index."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
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


def test_window_arguments():
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
