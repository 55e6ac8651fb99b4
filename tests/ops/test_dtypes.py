"""result_type, can_cast, isdtype, finfo, iinfo."""

import itertools

import numpy as np
import pytest

import chainrule as cr

torch = pytest.importorskip("torch")

NAMES = ("bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64", "complex64")
PAIRS = list(itertools.product(NAMES, NAMES))


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_pairs_of_dtypes_are_pytorchs(a, b):
    theirs = getattr(torch, a), getattr(torch, b)
    assert cr.promote_types(a, b).name == name_of(torch.promote_types(*theirs))
    assert cr.can_cast(a, b) == torch.can_cast(*theirs)
    ours = cr.result_type(cr.zeros(2, dtype=a), cr.zeros(2, dtype=b))
    assert ours == cr.promote_types(a, b) == cr.result_type(a, np.zeros(1, b))


@pytest.mark.parametrize("number", [True, 2, 0.5, 1j], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_a_number_is_weak(name, number):
    theirs = torch.result_type(torch.zeros(2, dtype=getattr(torch, name)), number)
    if (name, number) == ("float16", 1j):
        theirs = torch.complex64  # PyTorch has a complex32
    x = cr.zeros(2, dtype=name)
    assert cr.result_type(x, number).name == cr.result_type(number, x).name == name_of(theirs)


def test_result_type_of_numbers_and_of_nothing():
    assert cr.result_type(1, 0.5) == cr.float32
    assert cr.result_type(1, True) == cr.int64
    assert cr.result_type(True, False) == cr.bool
    with pytest.raises(TypeError, match=r"result_type\(\): expected at least one"):
        cr.result_type()


def test_isdtype():
    kinds = {
        "bool": {"bool"},
        "int32": {"signed integer", "integral", "numeric"},
        "uint8": {"unsigned integer", "integral", "numeric"},
        "float16": {"real floating", "numeric"},
        "complex64": {"complex floating", "numeric"},
    }
    every = set().union(*kinds.values())
    for name, own in kinds.items():
        assert {kind for kind in every if cr.isdtype(np.dtype(name), kind)} == own
    assert cr.isdtype(cr.float32, cr.float32)
    assert not cr.isdtype(cr.float32, cr.float64)
    assert cr.isdtype(cr.int8, ("bool", cr.int8))
    assert not cr.isdtype(cr.int8, ())
    with pytest.raises(ValueError, match=r"isdtype\(\): expected a dtype or one of .*'float'"):
        cr.isdtype(cr.float32, "float")


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64"])
def test_finfo(name):
    ours, theirs = cr.finfo(cr.zeros(1, dtype=name)), torch.finfo(getattr(torch, name))
    for field in ("bits", "eps", "max", "min", "smallest_normal", "tiny", "resolution"):
        assert getattr(ours, field) == getattr(theirs, field)
        assert type(getattr(ours, field)) is type(getattr(theirs, field))
    assert ours.dtype == cr.finfo(name).dtype == theirs.dtype
    assert "eps=" in repr(ours)


def test_finfo_of_the_default_dtype():
    assert cr.finfo().dtype == cr.float32
    x = cr.ones(1) + cr.finfo().eps
    assert x.dtype == cr.float32
    assert x > 1


@pytest.mark.parametrize("name", ["uint8", "int8", "int32", "int64"])
def test_iinfo(name):
    ours, theirs = cr.iinfo(name), torch.iinfo(getattr(torch, name))
    assert (ours.bits, ours.max, ours.min) == (theirs.bits, theirs.max, theirs.min)
    assert repr(ours) == f"iinfo(min={theirs.min}, max={theirs.max}, dtype={name})"


def test_finfo_and_iinfo_send_to_each_other():
    with pytest.raises(TypeError, match=r"finfo\(\) requires a floating point input type, got int"):
        cr.finfo(cr.int64)
    with pytest.raises(TypeError, match=r"iinfo\(\) requires an integer input type, got float32"):
        cr.iinfo(cr.float32)
    with pytest.raises(TypeError, match="requires an integer input type, got bool"):
        cr.iinfo(cr.bool)


def test_dtypes_have_a_type_of_their_own():
    def scaled(x: cr.Tensor, dtype: cr.dtype = cr.float64) -> cr.Tensor:
        return (x * 2).to(dtype)

    assert isinstance(scaled(cr.ones(2)).dtype, cr.dtype)
    assert not isinstance(float, cr.dtype)


@pytest.mark.parametrize("wide", [np.array([2.0]), np.float64(2.0)], ids=["array", "scalar"])
@pytest.mark.parametrize(
    ("ours", "numpys"),
    [
        (lambda x: cr.multiply(0.3, x), lambda x: 0.3 * x),
        (lambda x: cr.divide(x, 0.3), lambda x: x / 0.3),
        (lambda x: cr.hypot(0.3, x), lambda x: np.hypot(0.3, x)),
        (lambda x: cr.where(cr.tensor(True), 0.3, x), lambda x: np.where(True, 0.3, x)),
    ],
)
def test_numbers_beside_arrays_take_their_dtype(ours, numpys, wide):
    assert ours(wide).dtype == cr.float64
    np.testing.assert_allclose(ours(wide).numpy(), numpys(wide), rtol=1e-15)
    assert ours(np.float32(2.0)).dtype == ours(cr.tensor(2.0)).dtype == cr.float32


def test_numbers_beside_integers_have_the_default_dtype():
    assert cr.multiply(0.3, np.arange(3)).dtype == cr.float32
    assert cr.multiply(0.3, 2).dtype == cr.float32
