"""Printed tensors: strings copied from PyTorch, and PyTorch itself where installed."""

from __future__ import annotations

import contextvars
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule.autograd.formatting import format_tensor, set_printoptions

NAN, INF = math.nan, math.inf


def printed(array: np.ndarray, options: dict[str, Any] | None = None, **kwargs: Any) -> str:
    """Return the text of `array` under `options`, set for this call alone."""

    def run() -> str:
        set_printoptions(**(options or {}))
        return format_tensor(array, **kwargs)

    return contextvars.copy_context().run(run)


VALUES = {
    "0-d float": (1.5, "1.5000"),
    "0-d whole": (1.0, "1."),
    "0-d large": (1e10, "1.0000e+10"),
    "0-d nan": (NAN, "nan"),
    "0-d int": (3, "3"),
    "0-d bool": (True, "True"),
    "0-d complex": (1 + 2j, "1.+2.j"),
    "whole": ([1.0, 2.0], "[1., 2.]"),
    "fixed": ([1.5, 1500.0], "[   1.5000, 1500.0000]"),
    "wide range": ([1.5, 1501.0], "[1.5000e+00, 1.5010e+03]"),
    "whole wide range": ([1.0, 2e8], "[1.0000e+00, 2.0000e+08]"),
    "whole up to 1e8": ([1e8], "[100000000.]"),
    "whole above 1e8": ([1e9], "[1.0000e+09]"),
    "small": ([0.0, 1e-5], "[0.0000e+00, 1.0000e-05]"),
    "not small": ([1e-4], "[0.0001]"),
    "range by quotient": ([0.009, 9.0], "[9.0000e-03, 9.0000e+00]"),  # the quotient rounds up
    "nan in a whole row": ([1.0, NAN], "[1., nan]"),
    "infinity in a fixed row": ([1.5, -INF], "[1.5000,   -inf]"),
    "negative zero": ([-0.0, 1.0], "[-0., 1.]"),
    "int": ([-1, 20], "[-1, 20]"),
    "bool": ([True, False], "[ True, False]"),
    "complex": ([1 + 2.5j, -300 + 10j], "[   1.+2.5000j, -300.+10.0000j]"),
    "complex nan": ([complex(NAN, INF), 1e-9 - 3j], "[       nan+infj, 1.0000e-09-3.j]"),
    "matrix": ([[1.0, -2.5], [3.0, 4.0]], "[[ 1.0000, -2.5000],\n        [ 3.0000,  4.0000]]"),
    "blank line": ([[[1, 2]], [[3, 4]]], "[[[1, 2]],\n\n        [[3, 4]]]"),
    "two blank lines": ([[[[1]]], [[[2]]]], "[[[[1]]],\n\n\n        [[[2]]]]"),
}


@pytest.mark.parametrize(("values", "expected"), VALUES.values(), ids=VALUES.keys())
def test_values(values: Any, expected: str) -> None:
    assert printed(np.array(values)) == f"tensor({expected})"


def test_float16() -> None:
    assert printed(np.array([INF, 0.1], np.float16)) == "tensor([   inf, 0.1000])"


@pytest.mark.parametrize(
    ("shape", "suffixes", "expected"),
    [
        ((0,), [], "tensor([])"),
        ((0,), ["dtype=float16"], "tensor([], dtype=float16)"),
        ((0, 3), [], "tensor([], size=(0, 3))"),
        ((2, 0), ["requires_grad=True"], "tensor([], size=(2, 0), requires_grad=True)"),
        (
            (0, 0),
            ["device='cuda:0'", "dtype=int64"],
            "tensor([], device='cuda:0', size=(0, 0), dtype=int64)",
        ),
    ],
)
def test_empty(shape: tuple[int, ...], suffixes: list[str], expected: str) -> None:
    assert printed(np.empty(shape), suffixes=suffixes) == expected


def test_long_row_breaks() -> None:
    assert printed(np.arange(40.0)).splitlines() == [
        "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,",
        "        14., 15., 16., 17., 18., 19., 20., 21., 22., 23., 24., 25., 26., 27.,",
        "        28., 29., 30., 31., 32., 33., 34., 35., 36., 37., 38., 39.])",
    ]


def test_summary_begins_above_the_threshold() -> None:
    assert "..." not in printed(np.arange(1000))
    assert printed(np.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"


def test_summary_of_rows() -> None:
    expected = """\
tensor([[0.0000e+00, 1.0000e+00],
        [2.0000e+00, 3.0000e+00],
        [4.0000e+00, 5.0000e+00],
        ...,
        [1.9940e+03, 1.9950e+03],
        [1.9960e+03, 1.9970e+03],
        [1.9980e+03, 1.9990e+03]])"""
    assert printed(np.arange(2000.0).reshape(1000, 2)) == expected


def test_only_shown_values_choose_the_notation() -> None:
    values = np.ones(1001)
    values[500] = 0.125
    assert printed(values) == "tensor([1., 1., 1.,  ..., 1., 1., 1.])"


@pytest.mark.parametrize(
    ("digits", "count", "gap"),
    [(15, 3, " "), (11, 4, "\n       ")],
    ids=["79 columns fit", "80 columns wrap"],
)
def test_suffix_wraps_when_the_line_is_full(digits: int, count: int, gap: str) -> None:
    number = 10 ** (digits - 1)
    text = printed(np.array([number] * count), suffixes=["requires_grad=True"])
    assert text == f"tensor([{', '.join([str(number)] * count)}],{gap}requires_grad=True)"


def test_suffixes_follow_one_another() -> None:
    text = printed(np.array([1.5]), suffixes=["dtype=float16", "grad_fn=<MulBackward0>"])
    assert text == "tensor([1.5000], dtype=float16, grad_fn=<MulBackward0>)"


@pytest.mark.parametrize(("length", "gap"), [(41, " "), (42, "\n       ")])
def test_suffix_wraps_after_another_wrapped(length: int, gap: str) -> None:
    first, second = "a" * 30, "b" * length
    text = printed(np.array([10**14] * 4), suffixes=[first, second])
    assert text.split(",\n       ", 1)[1] == f"{first},{gap}{second})"


def test_prefix_sets_the_indent() -> None:
    assert printed(np.eye(2), prefix="Tensor!") == "Tensor!([[1., 0.],\n         [0., 1.]])"


@pytest.mark.parametrize(
    ("options", "values", "expected"),
    [
        ({"precision": 2}, [0.125, -3.5], "tensor([ 0.12, -3.50])"),
        ({"sci_mode": True}, [0.0, 1.0], "tensor([0.0000e+00, 1.0000e+00])"),
        ({"sci_mode": True}, [0.0], "tensor([0.])"),
        ({"sci_mode": False}, [1e10, 1.0], "tensor([10000000000.,           1.])"),
        ({"threshold": 3, "edgeitems": 1}, [0, 1, 2, 3], "tensor([0,  ..., 3])"),
        ({"threshold": 3, "edgeitems": 0}, [0, 1, 2, 3], "tensor([...], size=(4,))"),
        ({"threshold": INF}, [0, 1], "tensor([0, 1])"),
        ({"linewidth": 13}, [0, 1, 2], "tensor([0, 1,\n        2])"),
    ],
)
def test_set_printoptions(options: dict[str, Any], values: list[float], expected: str) -> None:
    assert printed(np.array(values), options) == expected


def test_set_printoptions_keeps_omitted_options() -> None:
    def run() -> str:
        set_printoptions(precision=1, sci_mode=True)
        set_printoptions(linewidth=40)
        return format_tensor(np.array([1.25]))

    assert contextvars.copy_context().run(run) == "tensor([1.2])"
    assert format_tensor(np.array([1.25])) == "tensor([1.2500])"


def test_set_printoptions_rejects_negative_numbers() -> None:
    with pytest.raises(ValueError, match="got precision=-1, expected 0 or more"):
        set_printoptions(precision=-1)


@pytest.fixture(scope="module", name="torch")
def _torch() -> Iterator[Any]:
    torch = pytest.importorskip("torch")
    yield torch
    torch.set_printoptions(profile="default", sci_mode=None)


class TestAgainstTorch:
    """The same text from PyTorch, in the same process."""

    SHAPES = st.lists(st.sampled_from([0, 1, 2, 3, 5, 7, 11]), max_size=4).map(tuple)
    REALS = ("bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64")
    DTYPES = st.sampled_from((*REALS, "complex64", "complex128"))
    # One pool for each tensor, or nearly every tensor of floats would be in scientific notation.
    POOLS = st.sampled_from(
        [
            st.integers(-1200, 1200).map(float),
            st.floats(-3, 3).map(lambda x: round(x, 2)),
            st.floats(-1e3, 1e3),
            st.sampled_from([0.0, -0.0, NAN, INF, -INF]),
            st.sampled_from([1.0, -1.0, 10.0, 1e8, 1e8 + 1, 1e3, 1001.0, NAN, -INF, -0.0]),
            st.sampled_from([1e-4, 9.9e-5, 0.1, 0.0999, 100.0, 0.5, 0.99999, 999.99995, INF]),
            st.floats(),
            st.sampled_from([5e-324, 1e-45, 1e308, 3e38, 65504.0, 1e-7]),
        ]
    )
    OPTIONS = st.one_of(
        st.just({}),
        st.fixed_dictionaries(
            {},
            optional={
                "precision": st.integers(0, 6),
                "threshold": st.sampled_from([0, 3, 20, INF]),
                "edgeitems": st.integers(0, 4),
                "linewidth": st.integers(1, 120),
                "sci_mode": st.booleans(),
            },
        ),
    )

    @staticmethod
    def check(
        torch: Any, array: np.ndarray, options: dict[str, Any], *, grad: bool = False
    ) -> None:
        tensor = torch.from_numpy(array.copy())
        suffixes = []
        # Values tell these dtypes; where there are none, only the default goes without saying.
        plain = [torch.float32, torch.complex64, torch.bool, torch.int64]
        if tensor.dtype not in (plain if array.size else plain[:1]):
            suffixes.append(f"dtype={tensor.dtype}")
        if grad:
            tensor.requires_grad_()
            suffixes.append("requires_grad=True")
        torch.set_printoptions(profile="default", sci_mode=None)
        torch.set_printoptions(**options)
        assert printed(array, options, suffixes=suffixes) == str(tensor)

    @settings(deadline=None)  # torch's first print takes long
    @given(data=st.data(), shape=SHAPES, dtype=DTYPES, options=OPTIONS)
    def test_any_tensor(
        self,
        torch: Any,
        data: st.DataObject,
        shape: tuple[int, ...],
        dtype: str,
        options: dict[str, Any],
    ) -> None:
        pool = data.draw(st.lists(data.draw(self.POOLS), min_size=1, max_size=8))
        seed = data.draw(st.integers(0, 2**32 - 1))
        # Elements repeat a short pool: drawing each would take hypothesis far longer than printing.
        draw = np.random.default_rng(seed).choice
        with np.errstate(all="ignore"):
            array = draw(pool, shape)
            if dtype.startswith("complex"):
                parts = np.stack([array, draw(pool, shape)], axis=-1)
                array = parts.view(np.complex128)[..., 0]
            array = np.asarray(array).astype(dtype)
        grad = array.dtype.kind in "fc" and data.draw(st.booleans())
        self.check(torch, array, options, grad=grad)

    @pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "complex64"])
    @pytest.mark.parametrize(
        "shape", [(1001,), (30, 40), (10, 10, 12), (2, 1000), (3, 4, 5, 20), (200, 6)]
    )
    @pytest.mark.parametrize("scale", [1.0, 1e-6, 1e5])
    def test_summary(self, torch: Any, shape: tuple[int, ...], dtype: str, scale: float) -> None:
        rng = np.random.default_rng(0)
        with np.errstate(over="ignore"):
            self.check(torch, (rng.standard_normal(shape) * scale).astype(dtype), {})

    @pytest.mark.parametrize("length", range(1, 130))
    def test_every_length_of_row(self, torch: Any, length: int) -> None:
        ramp = np.arange(length)
        for array in (ramp, 0.0 * ramp, 0.5 * ramp, 1j * ramp):
            self.check(torch, array, {}, grad=array.dtype.kind in "fc")


def test_a_format_string_shows_one_number_as_such() -> None:
    x = cr.tensor(2.5, requires_grad=True)
    assert f"{x} {x * 2} {x:6.3f} {cr.tensor(True)}" == "2.5 5.0  2.500 True"
    assert f"{x * cr.ones(1)}" == "tensor([2.5000], grad_fn=<MulBackward0>)"


def test_profiles_of_options_and_what_is_given_on_top() -> None:
    def text(*args: object, **options: object) -> str:
        set_printoptions(*args, **options)
        return format_tensor(np.full(2000, 1 / 3))

    def run(*args: object, **options: object) -> str:
        return contextvars.copy_context().run(text, *args, **options)

    assert run(profile="full").count("0.3333") == 2000
    assert run(profile="short") == "tensor([0.33, 0.33,  ..., 0.33, 0.33])"
    assert run(3, profile="short") == "tensor([0.333, 0.333,  ..., 0.333, 0.333])"
    with pytest.raises(ValueError, match="profile is one of default, short, full, got 'long'"):
        set_printoptions(profile="long")
