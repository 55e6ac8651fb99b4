"""Arguments by the names and positions that they have in PyTorch."""

import numpy as np
import pytest

import chainrule as cr
from helpers.torch_comparison import compare_with_torch

X = np.arange(24.0).reshape(2, 3, 4) / 7

CALLS = {
    "permute": lambda lib, x: x.permute(dims=(2, 0, 1)),
    "permute-function": lambda lib, x: lib.permute(x, dims=(2, 0, 1)),
    "reshape": lambda lib, x: x.reshape(shape=(6, 4)),
    "reshape-function": lambda lib, x: lib.reshape(x, shape=(6, -1)),
    "view": lambda lib, x: x.view(size=(6, 4)),
    "transpose": lambda lib, x: x.transpose(dim0=0, dim1=2),
    "swapaxes": lambda lib, x: lib.swapaxes(x, axis0=0, axis1=2),
    "movedim": lambda lib, x: x.movedim(source=0, destination=-1),
    "flip": lambda lib, x: lib.flip(x, dims=(0, 1)),
    "flip-method": lambda lib, x: x.flip(dims=[2]),
    "roll": lambda lib, x: x.roll(shifts=1, dims=1),
    "var-everything": lambda lib, x: x.var(False),
    "var": lambda lib, x: x.var(0, False),
    "var-keepdim": lambda lib, x: lib.var(x, 1, True, True),
    "var-named": lambda lib, x: x.var(dim=(0, 1), unbiased=False, keepdim=True),
    "var-correction": lambda lib, x: x.var(1, correction=2),
    "std": lambda lib, x: lib.std(x, 2, False, True),
    "std-everything": lambda lib, x: x.std(unbiased=False),
    "norm": lambda lib, x: x.norm(dim=1, p=1),
    "norm-places": lambda lib, x: lib.norm(x, 2, 1, True),
    "sort": lambda lib, x: x.sort(descending=True, stable=True, dim=1).values,
    "topk": lambda lib, x: x.topk(k=2, dim=2, largest=False, sorted=True).values,
    "masked_select": lambda lib, x: x.masked_select(mask=x > 1),
    "take_along_dim": lambda lib, x: x.take_along_dim(indices=lib.tensor([[[1]]]), dim=2),
    "masked_scatter": lambda lib, x: x.masked_scatter(mask=x > 1, source=x * 2),
    "tril": lambda lib, x: x.tril(diagonal=1),
    "tile": lambda lib, x: lib.tile(x, dims=(2, 1, 1)),
    "split-tensor": lambda lib, x: lib.split(tensor=x, split_size_or_sections=2, dim=1),
    "fftfreq": lambda lib, x: x[0, 0] * lib.fft.fftfreq(n=4, d=0.5),
    "window": lambda lib, x: x * lib.hann_window(4, layout=lib.strided),
    "signal-window": lambda lib, x: x * lib.signal.windows.hann(5, layout=lib.strided)[1:],
    "split": lambda lib, x: lib.split(x, split_size_or_sections=2, dim=1),
    "unbind-axis": lambda lib, x: x.unbind(axis=1),
    "chunk-axis": lambda lib, x: lib.chunk(x, 2, axis=2),
    "tensor_split-axis": lambda lib, x: x.tensor_split(2, axis=1),
    "topk-axis": lambda lib, x: lib.topk(x, 2, axis=1).values,
    "kthvalue-keepdims": lambda lib, x: x.kthvalue(2, axis=1, keepdims=True).values,
    "mode-keepdims": lambda lib, x: lib.mode(x, axis=0, keepdims=True).values,
}


@pytest.mark.parametrize("name", CALLS)
def test_arguments(name):
    compare_with_torch(CALLS[name], X)


def test_the_array_apis_sort_gives_the_values_alone():
    x = cr.tensor([[3.0, 1.0], [2.0, 4.0]])
    assert cr.sort(x, axis=0).tolist() == [[2, 1], [3, 4]]


def test_the_array_apis_name_of_a_dimension_where_only_pytorch_has_the_function():
    x = cr.tensor([[3, 3], [2, 2]])
    assert [part.tolist() for part in cr.split(x, 1, axis=1)] == [[[3], [2]], [[3], [2]]]
    assert cr.unique(x, axis=1).tolist() == [[3], [2]]
    assert cr.unique_consecutive(x, axis=1).tolist() == [[3], [2]]


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "rand", "randn"])
def test_sizes_by_name(name):
    assert getattr(cr, name)(size=(2, 3)).shape == (2, 3)


def test_views_as_another_dtype():
    def function(lib, x):
        return x.view(lib.int32), x.view(dtype=lib.int16)

    compare_with_torch(function, np.array([[1.0, -2.0]], "float32"))
    compare_with_torch(lambda lib, x: x.view(lib.float64), np.ones((2, 4), "int32"))
    x = cr.zeros(2)
    x.view(cr.int32).fill_(1065353216)
    assert x.tolist() == [1, 1]


def test_the_same_dtype_keeps_the_history():
    x = cr.ones(2, requires_grad=True)
    x.view(cr.float32).sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_bits_that_do_not_fit():
    with pytest.raises(cr.ShapeError, match=r"divisible by 2 to view int32 as float64 .* got 3"):
        cr.zeros(3, dtype=cr.int32).view(cr.float64)
    with pytest.raises(cr.ShapeError, match=r"self.stride\(-1\) must be 1 to view int32 as int64"):
        cr.zeros(2, 4, dtype=cr.int32).t().view(cr.int64)
    with pytest.raises(cr.ShapeError, match=r"self.dim\(\) cannot be 0 to view int32 as int16"):
        cr.tensor(1, dtype=cr.int32).view(cr.int16)


def test_in_place_spellings():
    compare_with_torch(lambda lib, x: (x * 1).tril_(1), X)
    compare_with_torch(lambda lib, x: (x * 1).triu_(), X)
    compare_with_torch(lambda lib, x: (x * 1).cumsum_(1), X)
    compare_with_torch(lambda lib, x: (x + 1).cumprod_(0), X)


def test_bounds_of_draws_by_their_names_in_pytorch():
    x = cr.zeros(50).uniform_(2, to=3)
    assert 2 <= x.min() <= x.max() < 3
    assert 1 <= cr.zeros(50).uniform_(**{"from": 1, "to": 2}).min() < 2
    assert cr.zeros(50).random_(**{"from": 3, "to": 4}).tolist() == [3] * 50
    for name in ("uniform_", "random_"):
        with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected .* 'upto'"):
            getattr(cr.zeros(1), name)(upto=1)
