"""Error types: each is both PyTorch's RuntimeError and Python's built-in error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import chainrule as cr

F = cr.nn.functional
X = cr.ones(2, 3)


@pytest.mark.parametrize(
    ("call", "builtin", "text"),
    [
        (lambda: cr.diagonal(X, dim1=1, dim2=1), ValueError, "dimensions cannot be identical"),
        (lambda: cr.arange(0, 3, 0), ValueError, "step must be nonzero"),
        (lambda: cr.eye(-1), ValueError, "n must be greater or equal to 0, got -1"),
        (lambda: cr.zeros(-1), ValueError, "a size can't be negative"),
        (lambda: cr.linspace(0, 1, -1), ValueError, "number of steps must be non-negative, got -1"),
        (lambda: cr.arange(0, cr.inf), ValueError, "unsupported range: 0 -> inf"),
        (lambda: cr.hstack([]), ValueError, "hstack expects a non-empty TensorList"),
        (lambda: F.avg_pool1d(X, 2, padding=-1), ValueError, "negative padding"),
        (lambda: cr.isclose(X, X, rtol=-1), ValueError, "rtol must be greater than or equal to z"),
        (lambda: cr.zeros(2).normal_(0, -1), ValueError, "expects std >= 0.0, but found std -1"),
        (lambda: cr.cov(X, fweights=cr.ones(3)), TypeError, "fweights to have integral dtype"),
        (lambda: cr.cov(X, aweights=-cr.ones(3)), ValueError, "aweights cannot be negative"),
        (lambda: cr.amax(cr.ones(2, 0), 1), IndexError, "reduction dim 1 to have non-zero size"),
        (lambda: cr.zeros(2).uniform_(3, -1), ValueError, "found from=3 > to=-1"),
        (lambda: cr.roll(X, []), ValueError, "shifts required"),
        (lambda: F.triplet_margin_loss(X, X, X, margin=0), ValueError, "margin must be greater"),
        (lambda: cr.tensor([2]) ** cr.tensor([-1]), ValueError, "negative integer powers"),
        (lambda: cr.sum(X, 2), IndexError, "Dimension out of range"),
        (lambda: X[5], IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        (lambda: cr.gather(X, 1, cr.tensor([[7]])), IndexError, "index 7 is out of bounds"),
        (lambda: cr.fft.fft(cr.tensor(1.0)), IndexError, "tensor has no dimensions"),
        (lambda: cr.fft.irfft2(cr.tensor(1.0), dim=[0]), IndexError, "tensor has no dimensions"),
        (lambda: cr.unbind(cr.tensor(1.0)), IndexError, "tensor has no dimensions"),
        (lambda: cr.rot90(cr.ones(2)), RuntimeError, "expected total dims >= 2, but got .* 1"),
        (
            lambda: cr.isclose(X, cr.ones(2)),
            ValueError,
            r"isclose: .* a \(3\) must match .* b \(2\)",
        ),
        (lambda: cr.unflatten(cr.tensor(1.0), 0, (1,)), ValueError, "a 0-d.* tensor has no dim"),
        (lambda: F.interpolate(X[None], 2, mode=3), ValueError, "mode is one of .* but got 3"),
        (lambda: F.local_response_norm(X[None], 0), ValueError, "size must be at least 1"),
        (
            lambda: cr.searchsorted(X[0], X[1], sorter=cr.tensor([0])),
            ValueError,
            r"the same size, but got boundary tensor \[3\] and sorter tensor \[1\]",
        ),
        (lambda: -cr.tensor([True]), TypeError, "negative of bool: .*`~`"),
        (lambda: cr.tensor([True]) - cr.tensor([True]), TypeError, "subtract of bool and bool"),
        (lambda: X & X, TypeError, "bitwise_and of float32 and float32"),
        (lambda: cr.masked_scatter(X, X, X), TypeError, "expected BoolTensor for mask"),
    ],
)
def test_an_error_is_a_runtime_error_and_the_built_in_one(
    call: Callable[[], Any], builtin: type[Exception], text: str
) -> None:
    with pytest.raises(RuntimeError, match=text) as caught:
        call()
    assert isinstance(caught.value, builtin)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: cr.cat(X, X),
            r"cat..: .*list or tuple of Tensors, not Tensor: write cat\(\[a, b\]\)",
        ),
        (lambda: cr.stack(X, X), r"stack..: .*list or tuple of Tensors, not Tensor: write stack"),
        (lambda: cr.compile(X), r"compile\(\) takes a function, got Tensor: write compile\(f\)"),
        (lambda: cr.where(X > 0, 1.0), "where.. takes a condition alone, or with both"),
        (lambda: f"{X:.2f}", r"unsupported format string .*'.2f' .* shape is \[2, 3\].*tolist"),
    ],
)
def test_a_wrong_call_is_a_type_error(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: cr.roll(X, 1.5), r"roll: a shift must be an int, got 1\.5 \(float\)"),
        (lambda: cr.rot90(X, 0.5), "rot90: k must be"),
        (lambda: cr.select(X, 1, 1.5), "select: index must be"),
        (lambda: cr.narrow(X, 1, 0.5, 1), "narrow: start must be"),
        (lambda: cr.narrow(X, 1, 0, None), "narrow: length must be an int, got None"),
        (lambda: cr.topk(X, "2"), r"topk: k must be an int, got '2' \(str\)"),
        (lambda: cr.kthvalue(X, 1.5), "kthvalue: k must be"),
        (lambda: cr.chunk(X, "2"), "chunk: chunks must be"),
        (lambda: cr.diff(X, None), "diff: n must be"),
        (lambda: cr.tril(X, "a"), "tril: diagonal must be"),
        (lambda: F.interpolate(X[None], (1.5,)), "interpolate: a size must be"),
        (lambda: F.local_response_norm(X[None], 2.5), "local_response_norm: size must be"),
    ],
)
def test_a_setting_that_must_be_an_int_is_one(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: cr.sin("a"), TypeError, r"^sin\(\): expected a Tensor, .* got str"),
        (lambda: cr.linalg.inv(None), TypeError, r"^inv\(\): expected a Tensor, .* got NoneType"),
        (lambda: F.mse_loss(X, {}), TypeError, r"^mse_loss\(\): expected a Tensor, .* got dict"),
        (lambda: cr.cat([X, "a"]), TypeError, r"^cat\(\): expected a Tensor"),
        (lambda: X.sum(5), IndexError, r"^sum\(\): Dimension out of range .*\[-2, 1\], but got 5"),
        (
            lambda: cr.softmax(X, "a"),
            TypeError,
            r"^softmax\(\): a dimension must be an int, not str",
        ),
        (lambda: cr.fft.fft(X, dim=2), IndexError, r"^fft\(\): Dimension out of range"),
    ],
)
def test_an_error_names_the_function_that_was_called(
    call: Callable[[], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call()
