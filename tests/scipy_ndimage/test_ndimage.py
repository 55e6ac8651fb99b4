"""`cr.scipy.ndimage`: SciPy's values, and derivatives beside their differences."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_ndimage = pytest.importorskip("scipy.ndimage")

MODES = (
    *("reflect", "constant", "nearest", "mirror", "wrap"),
    *("grid-wrap", "grid-mirror", "grid-constant"),
)
RNG = np.random.default_rng(8)
IMAGE, VOLUME, ROW = RNG.normal(size=(5, 6)), RNG.normal(size=(2, 4, 3)), RNG.normal(size=9)
KERNEL, TAPS = RNG.normal(size=(3, 2)), RNG.normal(size=4)
POINTS = RNG.uniform(-8, 13, size=(2, 30))
WITHIN = RNG.uniform(0.1, 3.8, size=(2, 3))
LABELS = np.array([[0, 1, 1, 4, 4, 2]] * 5)
TURN = np.array([[0.91, 0.32], [-0.23, 1.13]])
FILTERS: dict[str, Callable[..., Any]] = {
    "correlate1d": lambda s, x, m: s.correlate1d(x, TAPS, 0, mode=m, cval=0.3, origin=-1),
    "convolve1d": lambda s, x, m: s.convolve1d(x, TAPS, mode=m, cval=0.3, origin=1),
    "correlate": lambda s, x, m: s.correlate(x, KERNEL, mode=m, cval=0.3, origin=(1, -1)),
    "convolve": lambda s, x, m: s.convolve(x, KERNEL, mode=m, cval=0.3, origin=(-1, 0)),
    "gaussian": lambda s, x, m: s.gaussian_filter(x, (1.2, 0.7), (3, 0), mode=m, cval=0.3),
    "gaussian1d": lambda s, x, m: s.gaussian_filter1d(x, 3.0, 0, 2, mode=m, cval=0.3),
    "uniform": lambda s, x, m: s.uniform_filter(x, (4, 1), mode=m, cval=0.3, origin=(1, 0)),
    "sobel": lambda s, x, m: s.sobel(x, 0, mode=m, cval=0.3),
    "prewitt": lambda s, x, m: s.prewitt(x, mode=m, cval=0.3),
    "laplace": lambda s, x, m: s.laplace(x, mode=m, cval=0.3),
    "gaussian_laplace": lambda s, x, m: s.gaussian_laplace(x, 0.9, mode=m, cval=0.3),
    "magnitude": lambda s, x, m: s.gaussian_gradient_magnitude(x, 0.9, mode=m, cval=0.3),
    "maximum": lambda s, x, m: s.maximum_filter(x, (3, 2), mode=m, cval=0.3, origin=(1, 0)),
    "minimum": lambda s, x, m: s.minimum_filter(x, 3, mode=m, cval=0.3),
    "median": lambda s, x, m: s.median_filter(x, (2, 3), mode=m, cval=0.3),
}
SPLINES: dict[str, Callable[..., Any]] = {
    "map": lambda s, x, o, m: s.map_coordinates(x, POINTS, order=o, mode=m, cval=0.7),
    "unfiltered": lambda s, x, o, m: s.map_coordinates(x, POINTS, None, o, m, 0.7, False),
    "shift": lambda s, x, o, m: s.shift(x, (0.7, -1.3), order=o, mode=m, cval=0.7),
    "zoom": lambda s, x, o, m: s.zoom(x, (1.7, 0.6), order=o, mode=m, cval=0.7),
    "cells": lambda s, x, o, m: s.zoom(x, 1.4, order=o, mode=m, cval=0.7, grid_mode=True),
    "rotate": lambda s, x, o, m: s.rotate(x, 33.0, order=o, mode=m, cval=0.7),
    "quarter": lambda s, x, o, m: s.rotate(x, 90.0, order=o, mode=m, cval=0.7),
    "affine": lambda s, x, o, m: s.affine_transform(x, TURN, 0.317, order=o, mode=m, cval=0.7),
    "diagonal": lambda s, x, o, m: s.affine_transform(
        x, [0.9, 1.3], [0.31, -0.27], (4, 3), order=o, mode=m, cval=0.7
    ),
}
# Calls, and the arrays that are differentiated. The first one is the one that is batched.
CASES: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    **{
        f"{name}-{mode}": (lambda s, x, f=f, m=mode: f(s, x, m), [IMAGE])
        for name, f in FILTERS.items()
        for mode in (("nearest", "mirror") if name == "correlate1d" else ("reflect",))
    },
    **{
        f"{name}-{mode}-{order}": (lambda s, x, f=f, o=order, m=mode: f(s, x, o, m), [IMAGE])
        for (name, f), (mode, order) in zip(
            SPLINES.items(), 5 * [("constant", 3), ("grid-wrap", 2)], strict=False
        )
    },
    "grey_closing": (lambda s, x: s.grey_closing(x, size=(3, 2)), [IMAGE]),
    "grey_opening": (
        lambda s, x: s.grey_opening(x, structure=np.outer([0.1, 0.3, 0.1], [0.2, 0.4])),
        [IMAGE],
    ),
    "black_tophat": (lambda s, x: s.black_tophat(x, footprint=LABELS[:3, :3] < 1), [IMAGE]),
    "generic_filter": (
        lambda s, x: s.generic_filter(x, lambda w: (w**2).sum(), 2, mode="wrap"),
        [IMAGE],
    ),
    "geometric_transform": (
        lambda s, x: s.geometric_transform(x, lambda o: (o[0] * 0.9, o[1] * 0.8 + 0.1), order=1),
        [IMAGE],
    ),
    "fourier_uniform": (lambda s, x: s.fourier_uniform(x, 2.0), [IMAGE]),
    "weights": (lambda s, x, w: s.correlate(x, w, mode="constant"), [IMAGE, KERNEL]),
    "weights-1d": (lambda s, x, w: s.convolve1d(x, w, mode="wrap"), [IMAGE, TAPS]),
    "width": (lambda s, x, w: s.gaussian_filter(x, w, (0, 1)), [IMAGE, np.array([1.2, 0.8])]),
    "one-width": (lambda s, x, w: s.gaussian_filter1d(x, w, order=3), [IMAGE, np.array(0.9)]),
    "points-1": (lambda s, x, p: s.map_coordinates(x, p, order=1), [IMAGE, WITHIN]),
    "points-3": (lambda s, x, p: s.map_coordinates(x, p, mode="mirror"), [IMAGE, WITHIN]),
    "points-5": (lambda s, x, p: s.map_coordinates(x, p, order=5, mode="wrap"), [IMAGE, WITHIN]),
    "points-nearest": (
        lambda s, x, p: s.map_coordinates(x, p, order=3, mode="nearest"),
        [IMAGE, 3 * WITHIN - 4],
    ),
    "points-reflect": (
        lambda s, x, p: s.map_coordinates(x, p, order=3, mode="reflect"),
        [IMAGE, 3 * WITHIN - 4],
    ),
    "shifts": (lambda s, x, by: s.shift(x, by, mode="wrap"), [IMAGE, np.array([0.3, -0.8])]),
    "angle": (
        lambda s, x, a: s.rotate(x, a, (0, 2), reshape=False, mode="reflect"),
        [VOLUME, np.array(21.0)],
    ),
    "matrix": (
        lambda s, x, a, b: s.affine_transform(x, a, b, mode="reflect"),
        [IMAGE, TURN, np.array([0.31, -0.27])],
    ),
    "homogeneous": (
        lambda s, x, a: s.affine_transform(x, a, mode="mirror"),
        [IMAGE, np.c_[TURN, [0.31, -0.27]]],
    ),
    "value-outside": (lambda s, x, v: s.shift(x, 1.3, cval=v), [IMAGE, np.array(0.4)]),
    "three-axes": (lambda s, x: s.convolve(x, VOLUME[:, :2]), [VOLUME]),
    "two-of-three-axes": (lambda s, x: s.correlate(x, KERNEL, axes=(0, 2)), [VOLUME]),
    "one-axis": (lambda s, x: s.gaussian_filter(x, 0.8, axes=(1,), radius=2), [VOLUME]),
    "four-axes": (lambda s, x: s.correlate(x, VOLUME[None]), [VOLUME[..., None]]),
    "footprint": (
        lambda s, x: s.percentile_filter(x, 30, footprint=[[1, 0, 1], [0, 1, 0]]), [IMAGE],
    ),
    "from-above": (lambda s, x: s.percentile_filter(x, -20, 3, axes=(1,)), [IMAGE]),
    "largest": (lambda s, x: s.percentile_filter(x, 100, 2), [IMAGE]),
    "rank": (lambda s, x: s.rank_filter(x, -2, footprint=[[1, 0, 1], [0, 1, 0]]), [IMAGE]),
    "spline_filter": (lambda s, x: s.spline_filter(x, 4), [VOLUME]),
    **{
        f"spline_filter1d-{mode}": (
            lambda s, x, m=mode: s.spline_filter1d(x, 3, 0, mode=m), [IMAGE],
        )
        for mode in ("mirror", "reflect", "grid-wrap")
    },
    **{
        f"{name}-{kind}": (lambda s, x, n=name, a=arguments: getattr(s, n)(x, *a), [IMAGE])
        for name in ("sum", "mean", "variance", "standard_deviation")
        for kind, arguments in (
            ("all", ()), ("labelled", (LABELS,)), ("one", (LABELS, 2)),
            ("each", (LABELS, [4, 1, 4])),
        )
    },
    "center": (lambda s, x: np.stack(s.center_of_mass(x + 3)), [IMAGE]),
    "centers": (
        lambda s, x: np.stack([np.stack(p) for p in s.center_of_mass(x + 3, LABELS, [1, 4])]),
        [IMAGE],
    ),
}  # fmt: skip
QUICK = {"correlate1d-mirror", "width", "points-3", "spline_filter1d-mirror", "variance-each"}


def recorded(call: Callable[..., Any], x: Any) -> Any:
    return call(cr.scipy.ndimage, cr.tensor(x, requires_grad=True)).detach().numpy()


def test_filters_in_all_modes() -> None:
    for mode in MODES:
        for name, call in FILTERS.items():
            wanted = call(scipy_ndimage, IMAGE, mode)
            found = recorded(lambda s, x, f=call, m=mode: f(s, x, m), IMAGE)
            np.testing.assert_allclose(found, wanted, 1e-10, 1e-12, err_msg=f"{name} {mode}")


@pytest.mark.parametrize(
    "order", [3, *[pytest.param(k, marks=pytest.mark.thorough) for k in (0, 1, 2, 4, 5)]]
)
def test_splines_in_all_modes(order: int) -> None:
    for mode in MODES:
        for name, call in SPLINES.items():
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                wanted = call(scipy_ndimage, IMAGE, order, mode)
            found = recorded(lambda s, x, f=call, m=mode: f(s, x, order, m), IMAGE)
            np.testing.assert_allclose(found, wanted, 1e-9, 1e-11, err_msg=f"{name} {mode}")


def test_images_of_one_row_and_filters_wider_than_the_image() -> None:
    narrow, points = ROW[:4][None], np.array([[0, 0.3, -0.4, 2.0], [0, 1, 2, 1]])
    for mode in MODES:
        for order in (0, 1, 3):
            call = lambda s, x, o=order, m=mode: s.map_coordinates(  # noqa: E731
                x, points, order=o, mode=m, cval=0.2
            )
            np.testing.assert_allclose(
                recorded(call, narrow), call(scipy_ndimage, narrow), 1e-10, 1e-12
            )
        wide = lambda s, x, m=mode: s.gaussian_filter1d(x, 4.0, mode=m, cval=0.2)  # noqa: E731
        np.testing.assert_allclose(recorded(wide, narrow), wide(scipy_ndimage, narrow), 1e-10)


@pytest.mark.parametrize(
    "label", [x if x in QUICK else pytest.param(x, marks=pytest.mark.thorough) for x in CASES]
)
def test_derivatives(label: str) -> None:
    call, arrays = CASES[label]

    def ours(*xs: Any) -> Any:
        return call(cr.scipy.ndimage, *xs)

    with warnings.catch_warnings(action="ignore", category=UserWarning):
        wanted = call(scipy_ndimage, *arrays)
        np.testing.assert_array_equal(ours(*arrays), wanted)
    tensors = [cr.tensor(x, requires_grad=True) for x in arrays]
    eager = ours(*tensors)
    np.testing.assert_allclose(eager.detach().numpy(), wanted, 1e-9, 1e-11)
    assert cr.gradcheck(ours, tensors, check_forward_ad=True, fast_mode=True)
    assert cr.gradgradcheck(ours, tensors, fast_mode=True)
    if label not in ("width", "one-width"):
        every = tuple(range(len(arrays)))
        weighted = lambda *xs: (ours(*xs) ** 2).sum()  # noqa: E731
        plain = cr.grad(weighted, every)(*arrays)
        for p, c in zip(plain, cr.compile(cr.grad(weighted, every))(*arrays), strict=True):
            assert type(p) is np.ndarray or not np.ndim(p)
            np.testing.assert_allclose(c, p, 1e-8, 1e-10)
    stacked = np.stack([arrays[0], arrays[0][::-1] * 0.5])
    mapped = cr.vmap(lambda x: ours(x, *arrays[1:]))(stacked)
    rows = [call(scipy_ndimage, x, *arrays[1:]) for x in stacked]
    np.testing.assert_allclose(mapped, rows, 1e-9, 1e-11)


def test_points_are_registered_by_their_gradient() -> None:
    y, x = np.mgrid[:16, :16]
    scene = np.exp(-((y - 7.0) ** 2 + (x - 8.5) ** 2) / 12)
    moved = scipy_ndimage.shift(scene, (0.6, -1.1))
    loss = lambda by: ((cr.scipy.ndimage.shift(scene, by) - moved) ** 2).sum()  # noqa: E731
    found = cr.scipy.optimize.minimize(loss, np.zeros(2)).x
    np.testing.assert_allclose(found, (0.6, -1.1), atol=1e-5)


def test_single_precision_stays_and_is_computed_in_double() -> None:
    narrow = IMAGE.astype(np.float32)
    for call in (
        lambda s, x: s.gaussian_filter(x, 1.1), lambda s, x: s.rotate(x, 20.0),
        lambda s, x: s.median_filter(x, 3), lambda s, x: s.correlate(x, KERNEL),
    ):  # fmt: skip
        found, wanted = recorded(call, narrow), call(scipy_ndimage, narrow)
        assert found.dtype == wanted.dtype == np.float32
        np.testing.assert_allclose(found, wanted, 1e-6, 1e-6)


def test_no_gradient_where_a_smooth_image_is_flat() -> None:
    flat = cr.grad(lambda x: cr.scipy.ndimage.gaussian_gradient_magnitude(x, 1.0).sum())
    assert np.array_equal(flat(np.zeros((3, 3))), np.zeros((3, 3)))


MISTAKES: dict[str, Callable[[Any, Any], Any]] = {
    "mode is one of reflect, .* got 'edge'": lambda s, x: s.sobel(x, mode="edge"),
    "axis 2 is not one of the 2 axes": lambda s, x: s.correlate1d(x, TAPS, 2),
    "origin 3 is outside of a window of 4": lambda s, x: s.correlate1d(x, TAPS, origin=3),
    "no filter weights given": lambda s, x: s.correlate1d(x, []),
    "weights along 2 axes, got the shape": lambda s, x: s.correlate(x, TAPS),
    "expected sigma for 2 axes, got 3": lambda s, x: s.gaussian_filter(x, [1.0, 2.0, 3.0]),
    "order must be non-negative": lambda s, x: s.gaussian_filter1d(x, 1.0, order=-1),
    "Radius must be a nonnegative integer": lambda s, x: s.gaussian_filter1d(x, 1.0, radius=-1),
    "incorrect filter size: 0": lambda s, x: s.uniform_filter1d(x, 0),
    "axes in ascending order": lambda s, x: s.correlate(x, KERNEL, axes=(1, 0)),
    "axes must be unique": lambda s, x: s.laplace(x, axes=(1, 1)),
    "no footprint or filter size": lambda s, x: s.median_filter(x),
    "expected a footprint along 2 axes": lambda s, x: s.median_filter(x, footprint=[1, 1]),
    "a rank from -3 to 2, got 3": lambda s, x: s.rank_filter(x, 3, (1, 3)),
    "invalid percentile: 101": lambda s, x: s.percentile_filter(x, 101, 3),
    "spline order not supported": lambda s, x: s.shift(x, 1.0, order=6),
    "expected 2 coordinates along the first axis": lambda s, x: s.map_coordinates(x, ROW),
    "a matrix of 2 rows and 2 columns": lambda s, x: s.affine_transform(x, np.eye(4)),
    "exactly two values": lambda s, x: s.rotate(x, 1.0, axes=(1,)),
    "output= is a floating dtype, got ndarray": lambda s, x: s.sobel(x, output=np.zeros((5, 6))),
    "real floating-point numbers, got complex128": lambda s, x: s.sobel(1j * x),
    "generic_filter1d has no derivative rule": lambda s, x: s.generic_filter1d(x, np.copyto, 2),
}


def test_mistakes() -> None:
    for text, call in MISTAKES.items():
        with pytest.raises(cr.errors.LocatedError) as caught:
            cr.grad(lambda x, f=call: f(cr.scipy.ndimage, x).sum())(IMAGE)
        message = str(caught.value).partition(f" ({__file__}")[0]  # without the line above
        assert re.search(text, message), message
    with pytest.raises(cr.errors.LocatedError, match=r"depends on the angle.*pass reshape=False"):
        cr.compile(lambda a: cr.scipy.ndimage.rotate(IMAGE, a))(cr.tensor(3.0))
    with pytest.raises(cr.errors.LocatedError, match=r"depends on sigma.*pass radius="):
        cr.vmap(lambda w: cr.scipy.ndimage.gaussian_filter1d(ROW, w))(np.ones(2))
