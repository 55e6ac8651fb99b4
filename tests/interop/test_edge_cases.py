"""Edge cases of NumPy's functions on tensors: kinks, ends, missing values, ties, empty inputs."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr

INF, NAN = np.inf, np.nan

VALUES = {
    "median of infinities": (lambda x: np.median(x), [INF, INF, 1.0, 1.0]),
    "median of one": (lambda x: np.median(x), [2.0]),
    "quantile of equal ones": (lambda x: np.quantile(x, [0.2, 0.7]), [3.0, 3.0, 3.0]),
    "quantile with nan": (lambda x: np.quantile(x, [0.0, 1.0]), [1.0, NAN, 2.0]),
    "median of nothing": (lambda x: np.median(x, axis=1), np.zeros((2, 0))),
    "median of no rows": (lambda x: np.median(x, axis=0), np.zeros((2, 0))),
    "nanquantile of nothing at all": (lambda x: np.nanquantile(x, [0.5, 1.0]), []),
    "many quantiles": (lambda x: np.quantile(x, np.linspace(0, 1, 50)), [3.0, 1.0, 4.0, 1.0, 5.0]),
    "quantiles in a list of none": (lambda x: np.quantile(x, []), [3.0, 1.0]),
    "nanquantile of nothing": (lambda x: np.nanquantile(x, 0.3, axis=1), [[NAN, NAN], [1.0, NAN]]),
    "nansum of nothing": (lambda x: np.nansum(x), [NAN, NAN]),
    "nanmax of nothing": (lambda x: np.nanmax(x, axis=0), [[NAN, 1.0], [NAN, 2.0]]),
    "nanmax of -inf": (lambda x: np.nanmax(x), [-INF, NAN]),
    "nanvar of one": (lambda x: np.nanvar(x, ddof=1), [1.0, NAN]),
    "interp at the points": (
        lambda x: np.interp(x, [0.0, 1.0, 2.0], [5.0, 6.0, 7.0], left=-1, right=9),
        [0.0, 1.0, 2.0, -0.1, 2.1, NAN],
    ),
    "interp of a step": (lambda x: np.interp(x, [0.0, 1, 1, 2], [0.0, 1, 5, 6]), [0.5, 1.0, 1.5]),
    "interp at infinities": (lambda x: np.interp(x, [0.0, 1.0], [2.0, 3.0]), [INF, -INF]),
    "gradient of two": (lambda x: np.gradient(x), [1.0, 3.0]),
    "trim_zeros of zeros": (lambda x: np.trim_zeros(x), [0.0, 0.0]),
    "roots at 0": (lambda x: np.roots(x), [0.0, 1.0, 0.0, 0.0]),
    "roots of nothing": (lambda x: np.roots(x), [0.0, 0.0]),
    "roots of a constant": (lambda x: np.roots(x), [5.0]),
    "polyval of nothing": (lambda x: np.polyval(x, 2.0), []),
    "histogram of equal ones": (lambda x: np.histogram(x, 2), [4.0, 4.0]),
    "histogram at the edges": (lambda x: np.histogram(x, [0.0, 1, 2]), [0.0, 1, 2, 2, 3, -1]),
    "unwrap at half a period": (lambda x: np.unwrap(x), [0.0, np.pi, 0.0, -np.pi, 2 * np.pi]),
    "resize of nothing": (lambda x: np.resize(x, (2, 2)), []),
    "sum of nothing": (lambda x: np.sum(x), []),
    "sort of nothing": (lambda x: np.sort(x), []),
    "cumsum of nothing": (lambda x: np.cumsum(x), []),
    "concatenate of nothing": (lambda x: np.concatenate([x, x]), []),
    "diff of one": (lambda x: np.diff(x), [1.0]),
    "ediff1d of one": (lambda x: np.ediff1d(x), [1.0]),
    "nan_to_num": (lambda x: np.nan_to_num(x, nan=1.0), [NAN, INF, -INF]),
    "unique of nan": (lambda x: np.unique(x, return_counts=True), [NAN, 1.0, NAN]),
    "unique of nothing": (lambda x: np.unique(x), []),
    "intersect1d of nothing": (lambda x: np.intersect1d(x, [1.0]), []),
    "take nothing": (lambda x: np.take(x, np.array([], int)), [1.0, 2.0]),
    "sum of integers that hold": (
        lambda x: np.sum(x.astype(int), where=x > 0, initial=7),
        [1.0, 0.0, 2.0],
    ),
    "largest of integers that hold": (
        lambda x: np.max(x.astype(int), initial=-7, where=[True, False]),
        [-9.0, 5.0],
    ),
    "mean of nothing that holds": (lambda x: np.mean(x, where=False), [1.0, 2.0]),
    "std of equal ones that hold": (lambda x: np.std(x, where=[1, 1, 0]), [2.0, 2.0, 5.0]),
    "take no list": (lambda x: np.take(x, []), [1.0, 2.0]),
    "cumprod of a number": (lambda x: np.nancumprod(x, axis=0), 3.0),
    "intersect1d of integers": (lambda x: np.intersect1d(np.array([1, 2]), x), [2.0, 3.0]),
    "spread of too few": (lambda x: np.var(x, axis=0, ddof=2), [[1.0, 2.0], [1.0, 3.0]]),
    "pad nothing": (lambda x: np.pad(x, 1), []),
    "geomspace of huge numbers": (lambda x: np.geomspace(x, 1e300, 3), [1e-300]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("call", "data"), VALUES.values(), ids=VALUES.keys())
def test_values_are_numpys(call, data):
    found, expected = call(cr.tensor(np.array(data))), call(np.array(data))
    pairs = zip(found, expected, strict=True) if type(expected) is tuple else [(found, expected)]
    for ours, numpys in pairs:
        np.testing.assert_allclose(ours.numpy(), numpys, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: np.var(x, ddof=1, correction=1), ValueError, "can't be provided simultaneous"),
        (lambda x: np.quantile(x * 1j, 0.5), cr.DTypeError, "quantile: expected real numbers"),
        (lambda x: np.nanpercentile(x * 1j, 5), cr.DTypeError, "nanpercentile: expected real"),
        (lambda x: np.max(x, where=[True, False]), ValueError, "one has to specify 'initial'"),
        (lambda x: np.sum(x, where=np.ones((2, 2), bool)), ValueError, r"\[2\], but has \[2, 2\]"),
        (
            lambda x: np.ix_(x, x[None]),
            ValueError,
            r"must be 1 dimensional, got the shapes \[\[2\]",
        ),
        (lambda x: np.expand_dims(x, None), TypeError, "expected an int .* got None"),
        (lambda x: np.multiply.reduce(x, axis=(0, -1)), cr.ArgumentError, "multiple times"),
    ],
)
def test_arguments_that_numpy_refuses_are_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(cr.tensor([1.0, 2.0]))


def test_quantiles_at_infinities_are_these():
    x = cr.tensor([1.0, INF, -INF, INF])
    assert np.quantile(x, [0.0, 1 / 3, 0.9, 1.0]).tolist() == [-INF, 1, INF, INF]


def slope(call, data):
    x = cr.tensor(np.array(data), requires_grad=True)
    call(x).sum().backward()
    return x.grad.tolist()


def test_order_statistics_pass_the_gradient_to_the_selected_elements():
    assert slope(lambda x: np.median(x), [3.0, 1.0, 2.0, 5.0]) == [0.5, 0, 0.5, 0]
    assert slope(lambda x: np.quantile(x, 1.0), [3.0, INF, 2.0]) == [0, 1, 0]
    assert slope(lambda x: np.partition(x, 1)[:2], [3.0, 1.0, 2.0]) == [0, 1, 1]
    assert slope(lambda x: np.nanquantile(x, 0.25), [3.0, NAN, 1.0]) == [0.25, 0, 0.75]


def test_extremes_share_the_gradient_between_equal_ones():
    assert slope(np.max, [2.0, 2.0, 1.0]) == [0.5, 0.5, 0]
    assert slope(np.nanmin, [2.0, NAN, 2.0]) == [0.5, 0, 0.5]
    assert slope(np.ptp, [4.0, 1.0, 4.0]) == [0.5, -1, 0.5]


def test_the_first_of_equal_elements_gets_the_gradient_of_a_set():
    assert slope(np.unique, [2.0, 1.0, 2.0]) == [1, 1, 0]
    assert slope(lambda x: np.union1d(x, x), [2.0, 1.0]) == [1, 1]
    assert slope(lambda x: np.intersect1d(x, [1.0]), [1.0, 2.0, 1.0]) == [1, 0, 0]


def test_interp_has_the_slope_of_the_line_to_the_right_and_none_outside():
    points, heights = [0.0, 1.0, 2.0], [0.0, 1.0, 4.0]
    inside = slope(lambda x: np.interp(x, points, heights), [0.0, 0.5, 1.0, 1.5])
    assert inside == [1, 1, 3, 3]
    assert slope(lambda x: np.interp(x, points, heights), [-1.0, 5.0]) == [0, 0]
    assert slope(lambda x: np.interp(x, [0.0, 1, 1, 2], [0.0, 1, 5, 6]), [1.0]) == [1]


def test_spread_of_equal_elements_has_no_slope():
    for spread in (np.std, np.nanstd, np.var, np.nanvar):
        assert slope(spread, [2.0, 2.0]) == [0, 0]
    assert slope(lambda x: np.std(x, where=[True, True, False]), [2.0, 2.0, 5.0]) == [0, 0, 0]


def test_the_gradient_of_a_product_with_a_zero_is_exact():
    assert slope(np.prod, [2.0, 0.0, 3.0]) == [0, 6, 0]
    assert slope(np.nanprod, [2.0, 0.0, NAN]) == [0, 2, 0]
    assert slope(lambda x: np.cumprod(x)[-1], [2.0, 0.0, 3.0]) == [0, 6, 0]
    assert slope(lambda x: np.vander(x, 3), [0.0]) == [1]


def test_the_last_number_of_linspace_is_the_end_itself():
    end = cr.tensor(np.array(-0.9), requires_grad=True)
    numbers = np.linspace(-2.0, end, 11)
    assert numbers[-1].item() == -0.9  # not what -2.0 + (-0.9 - -2.0) rounds to
    numbers[-1].backward()
    assert end.grad.item() == 1


def test_a_branch_that_was_not_chosen_gives_no_nan():
    assert slope(lambda x: np.where(np.isfinite(x), x, 0.0), [NAN, 4.0]) == [0, 1]
    assert slope(lambda x: np.select([x > 0], [2 * x], x), [0.0, 4.0]) == [1, 2]
    assert slope(lambda x: np.piecewise(x, [x > 0], [np.sqrt, 0.0]), [0.0, 4.0]) == [0, 0.25]
    assert slope(lambda x: np.nan_to_num(x), [NAN, INF, 2.0]) == [0, 0, 1]


def test_gradients_add_up_at_repeated_indices():
    assert slope(lambda x: np.take(x, [0, 0, 1]), [1.0, 2.0]) == [2, 1]
    assert slope(lambda x: np.repeat(x, [3, 0]), [1.0, 2.0]) == [3, 0]
    assert slope(lambda x: np.pad(x, 2, mode="edge"), [1.0, 2.0]) == [3, 3]
    assert slope(lambda x: np.resize(x, 5), [1.0, 2.0]) == [3, 2]
    windows = np.lib.stride_tricks.sliding_window_view
    assert slope(lambda x: windows(x, 2), [1.0, 2.0, 3.0]) == [1, 2, 1]


def test_overwritten_elements_get_no_gradient():
    def overwritten(x):
        y = x * 1
        np.put(y, [0, 0], [x[1], x[1]])
        return y

    assert slope(overwritten, [1.0, 2.0]) == [0, 2]


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 1), (4, 2), (2, 4), (3, 3), (5, 4), (1, 4)])
def test_windows_of_all_lengths(mode, n, m):
    a, v = np.arange(1.0, n + 1), np.arange(2.0, m + 2) ** 2
    for function in (np.convolve, np.correlate):
        result = function(cr.tensor(a), cr.tensor(v), mode)
        np.testing.assert_allclose(result.numpy(), function(a, v, mode), rtol=1e-13)
