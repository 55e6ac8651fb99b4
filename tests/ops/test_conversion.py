"""Copies, dtypes and devices; the list of methods."""

import numpy as np
import pytest

import chainrule as cr


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("half", "float16"),
        ("float", "float32"),
        ("double", "float64"),
        ("short", "int16"),
        ("int", "int32"),
        ("long", "int64"),
        ("bool", "bool"),
        ("cfloat", "complex64"),
        ("cdouble", "complex128"),
    ],
)
def test_converters(name, dtype):
    x = cr.tensor([1, 0], dtype=cr.uint8)
    result = getattr(x, name)()
    assert result.dtype == dtype
    assert getattr(result, name)() is result


@pytest.mark.parametrize("dtype", [cr.float64, "float64", np.float64, np.dtype("f8"), cr.double])
def test_ways_to_say_a_dtype(dtype):
    x = cr.ones(2)
    for result in (
        x.to(dtype),
        x.to(dtype=dtype),
        x.type(dtype),
        x.astype(dtype),
        cr.astype(x, dtype),
    ):
        assert result.dtype == cr.float64


def test_to():
    x = cr.ones(2)
    assert x.to(cr.float32) is x
    assert x.to("cpu") is x
    assert x.to(cr.device("cpu"), cr.float64).dtype == cr.float64
    assert x.to(cr.tensor([1])).dtype == cr.int64
    assert x.to(other=cr.tensor([1])).dtype == cr.int64
    assert x.type_as(cr.tensor([True])).dtype == cr.bool
    assert x.cpu() is x
    assert x.to(cr.float32, True) is x
    assert x.to("cpu", cr.float32, False, True) is not x
    copied = x.to(cr.float32, copy=True)
    assert copied is not x
    copied.zero_()
    assert x.tolist() == [1, 1]


def test_to_is_recorded():
    x = cr.ones(2, requires_grad=True)
    y = x.double() * 3
    y.sum().backward()
    assert x.grad.dtype == cr.float32
    assert x.grad.tolist() == [3, 3]
    assert x.double().grad_fn.name == "ToCopyBackward0"


def test_a_dtype_that_tensors_can_not_have():
    with pytest.raises(cr.DTypeError, match="can't make a tensor of dtype"):
        cr.ones(2).to("datetime64[s]")


@pytest.mark.skipif(cr.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_cuda_says_what_is_missing():
    for move in (lambda x: x.cuda(), lambda x: x.to("cuda"), lambda x: x.cuda(1)):
        with pytest.raises((cr.MissingExtraError, RuntimeError)):
            move(cr.ones(2))
    with pytest.raises(cr.DeviceError, match="Expected one of cpu, cuda"):
        cr.ones(2).to(device="tpu")


def test_clone():
    x = cr.ones(2, requires_grad=True)
    y = x.clone()
    assert y.grad_fn.name == "CloneBackward0"
    with cr.no_grad():
        x.add_(1)
    assert y.tolist() == [1, 1]


def test_numel_is_tensor_and_conj():
    x = cr.zeros(2, 3)
    assert cr.numel(x) == x.numel() == 6
    assert cr.is_tensor(x)
    assert not cr.is_tensor(np.zeros(2))
    assert x.conj() is x
    assert cr.tensor([1 + 2j]).conj().tolist() == [1 - 2j]


def test_every_method_says_what_it_does():
    for name, value in vars(cr.Tensor).items():
        if callable(value) and not name.startswith("_"):
            assert value.__doc__, name


def test_every_public_name_is_there():
    assert len(set(cr.__all__)) == len(cr.__all__)
    for name in cr.__all__:
        assert hasattr(cr, name), name


def test_non_blocking_is_accepted():
    x = cr.ones(2)
    assert x.to("cpu", non_blocking=True) is x
    assert x.copy_(cr.zeros(2), non_blocking=True).tolist() == [0, 0]
