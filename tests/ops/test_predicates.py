"""Predicates and properties of tensors, compared with PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from helpers.tensors import leaf, share_memory
from helpers.torch_comparison import same_as_torch

DTYPES = ["float32", "float64", "float16", "complex64", "int64", "uint8", "int8", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype_predicates(dtype):
    def program(lib):
        x = lib.tensor([[1, 0, 1]], dtype)
        functions = [
            getattr(lib, name)(x)
            for name in (
                *("is_floating_point", "is_complex", "is_signed", "is_conj", "is_neg"),
                *("is_inference", "typename"),
            )
        ]
        methods = [x.is_signed(), x.is_conj(), x.is_neg(), x.is_inference(), x.ndimension()]
        attributes = [x.is_cpu, x.is_cuda, x.is_meta, x.is_sparse, x.is_quantized]
        sizes = [x.itemsize, x.nbytes, x.get_device(), lib.get_device(x)]
        return [*functions, *methods, *attributes, *sizes]

    same_as_torch(program)


@pytest.mark.parametrize("value", [0.0, -0.0, 2.0, [0.0], [[3.0]], 0j, 1j, False, float("nan")])
def test_is_nonzero(value):
    same_as_torch(lambda lib: [lib.is_nonzero(lib.tensor(value)), lib.tensor(value).is_nonzero()])


def test_is_nonzero_of_several():
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is"):
        cr.is_nonzero(cr.zeros(2))
    with pytest.raises(RuntimeError, match="with no values"):
        cr.is_nonzero(cr.zeros(0))


@pytest.mark.parametrize("other", [(2, 3), (3, 2), (2, 3, 1)])
def test_is_same_size(other):
    same_as_torch(lambda lib: lib.is_same_size(lib.module.zeros(2, 3), lib.module.zeros(*other)))


@pytest.mark.parametrize("value", [[], 3, "a", int, np.float64(1), cr.ones, cr.Tensor])
def test_typename_of_other_objects(value):
    torch = pytest.importorskip("torch")
    if value is cr.Tensor:
        assert cr.typename(value) == "chainrule.autograd.tensor.Tensor"
    elif not callable(value) or isinstance(value, type):
        assert cr.typename(value) == torch.typename(value)
    else:
        assert cr.typename(value) == "builtins.function".partition(".")[2]


def test_detach_and_resolve():
    x = leaf([1 + 2j])
    assert not cr.detach(x).requires_grad
    assert share_memory(cr.detach(x), x)
    assert cr.resolve_conj(x) is x
    assert x.resolve_neg() is x
    y = x * 2
    assert cr.detach_(y) is y
    assert y.is_leaf


def test_data_ptr_is_that_of_the_memory():
    x = cr.arange(6).reshape(2, 3)
    assert x.data_ptr() == x.numpy().ctypes.data
    assert x[1].data_ptr() - x.data_ptr() == 3 * x.itemsize


@pytest.mark.parametrize("name", ["byte", "char"])
def test_small_integers(name):
    same_as_torch(lambda lib: getattr(lib.tensor([1.5, 200.0]).clamp(max=100), name)())


def test_there_is_no_bfloat16():
    with pytest.raises(cr.DTypeError, match=r"bfloat16: NumPy has no such dtype. Use float\(\)"):
        cr.ones(2).bfloat16()
    with pytest.raises(cr.DTypeError, match="bfloat16: NumPy has no such dtype"):
        cr.ones(2, dtype=cr.bfloat16)


# --- transposed and conjugated --------------------------------------------------------------------

Z = np.array([[1 + 2j, 3 - 1j, 0j], [2j, 1 + 0j, -4 + 1j]])


@pytest.mark.parametrize("data", [Z, Z.real], ids=["complex", "real"])
@pytest.mark.parametrize("call", ["H", "mH", "adjoint", "method"])
def test_adjoints(call, data):
    def program(lib):
        x = lib.leaf(data, "complex128" if data.dtype.kind == "c" else "float64")
        y = {
            "H": lambda: x.H,
            "mH": lambda: x[None].mH,
            "adjoint": lambda: lib.module.adjoint(x),
            "method": lambda: x.adjoint(),
        }[call]()
        return [y, *lib.grad((y * y).abs().sum(), x)]

    same_as_torch(program)


def test_h_is_of_matrices():
    with pytest.raises(cr.ShapeError, match=r"tensor\.H is only supported on matrices"):
        cr.zeros(2, 3, 4).H  # noqa: B018
    with pytest.raises(cr.ShapeError, match=r"only supported on matrices or batches"):
        cr.zeros(2).mH  # noqa: B018
    assert cr.tensor(1j).H.item() == -1j


def test_activations_that_are_methods():
    def program(lib):
        x = lib.tensor([-2.0, 0.25, 3.0])
        return x.hardshrink(), x.hardshrink(1.0), x.prelu(lib.tensor([0.5]))

    same_as_torch(program)


def test_the_truth_of_an_empty_tensor_is_ambiguous():
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with no values is ambiguous"):
        bool(cr.ones(0))


def test_contains():
    x = cr.tensor([1.0, 2.0])
    assert 2.0 in x
    assert np.float32(1) in x
    assert 3 not in x
    assert cr.tensor(2) in x
    with pytest.raises(RuntimeError, match="__contains__ only supports Tensor or scalar"):
        "a" in x  # noqa: B015
