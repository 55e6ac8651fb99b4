"""cdist and pdist: exact for nearly equal points, PyTorch's gradients, any p."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.kernels import pair_distances
from chainrule.primitives import distances
from chainrule.transforms import jvp
from conformance import cases_of, checks
from conformance.rows.distances import ROWS

CASES = [case for row in ROWS for case in cases_of(row) if case.dtype == "float64"]
POWERS = [0, 0.5, 1, 1.5, 2, 3, math.inf]


def points(*shape: int, dtype: Any = "float64", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


def exact(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    d = x[..., :, None, :].astype("longdouble") - y[..., None, :, :].astype("longdouble")
    return np.sqrt((d * d).sum(-1))


def exact_gradient(x: np.ndarray, y: np.ndarray, g: np.ndarray) -> np.ndarray:
    d = x[:, None, :].astype("longdouble") - y[None, :, :].astype("longdouble")
    size = np.sqrt((d * d).sum(-1))
    return (g[..., None] * d / np.where(size == 0, 1, size)[..., None]).sum(1)


@pytest.fixture
def by_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the algorithm for many points for few ones, too."""
    monkeypatch.setattr(distances, "_MAX_DIRECT_SIZE", -1)
    monkeypatch.setattr(distances, "_MAX_UNROLLED_DIMENSIONS", 0)
    monkeypatch.setattr(distances, "_BLOCK_SIZE", 4)


@pytest.mark.parametrize(
    "check",
    [
        checks.check_value,
        checks.check_vjp,
        checks.check_jvp,
        checks.check_pairing,
        checks.check_second_order,
        checks.check_third_order,
        checks.check_forward_over_forward,
        checks.check_untouched,
        checks.check_contiguity,
    ],
    ids=lambda check: check.__name__,
)
@pytest.mark.parametrize("flat", [False, True])
def test_the_algorithms_for_many_points_are_right(
    check: Callable[..., None], flat: bool, by_products: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if flat:
        monkeypatch.setattr(distances, "_MAX_UNROLLED_DIMENSIONS", 4)
    smooth = [case for case in CASES if case.situation.smooth]
    checks.demand(check, smooth)


@pytest.mark.parametrize("flat", [False, True])
def test_the_algorithms_for_many_points_need_nothing_but_the_array_api(
    flat: bool, by_products: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if flat:
        monkeypatch.setattr(distances, "_MAX_UNROLLED_DIMENSIONS", 4)
    from conformance.array_api_strict import check_forward, check_jvp, check_vjp

    for check in (check_forward, check_vjp, check_jvp):
        checks.demand(check, [c for c in CASES if "size-0" not in c.situation.name])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize("shape", [(60, 2), (60, 5), (60, 20), (2, 40, 9)], ids=str)
def test_many_points(shape: tuple[int, ...], offset: float, dtype: str) -> None:
    x, y = points(*shape, dtype=dtype) + offset, points(*shape, dtype=dtype, seed=1) + offset
    x, y = x.astype(dtype), y.astype(dtype)
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    got = cr.cdist(cr.tensor(x), cr.tensor(y))
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_allclose(got.numpy(), exact(x, y).astype("float64"), rtol=tolerance)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("distance", [1e-3, 1e-6, 0.0])
def test_points_that_nearly_coincide(distance: float, dtype: str) -> None:
    x = points(50, 20, dtype=dtype)
    y = x + (distance * points(50, 20, seed=1)).astype(dtype)
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    a, b = cr.tensor(x, requires_grad=True), cr.tensor(y, requires_grad=True)
    d = cr.cdist(a, b)
    np.testing.assert_allclose(d.detach().numpy(), exact(x, y).astype("float64"), rtol=tolerance)
    g = np.eye(50, dtype=dtype)  # the gradients of the nearest pairs alone
    by_a, by_b = cr.autograd_grad(d, (a, b), cr.tensor(g))
    wanted = exact_gradient(x, y, g).astype("float64")
    np.testing.assert_allclose(by_a.numpy(), wanted, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(by_b.numpy(), -wanted, rtol=tolerance, atol=tolerance)
    tangent = jvp(lambda p: cr.cdist(p, cr.tensor(y)), cr.tensor(x), cr.tensor(x))[1].numpy()
    assert np.isfinite(tangent).all()
    np.testing.assert_allclose(
        np.diag(tangent), (wanted * x).sum(-1), rtol=10 * tolerance, atol=10 * tolerance
    )


def test_a_set_and_itself_has_zeros_on_the_diagonal_and_no_gradient_there() -> None:
    x = cr.tensor(points(200, 16, dtype="float32"), requires_grad=True)
    d = cr.cdist(x, x)
    assert not np.diag(d.detach().numpy()).any()
    (g,) = cr.autograd_grad(d, x, cr.eye(200))
    assert not g.numpy().any()


def test_infinities_and_nan_stay_with_their_points() -> None:
    x, y = points(60, 20), points(60, 20, seed=1)
    x[3, 0], y[5, 0] = np.inf, np.nan
    got = cr.cdist(cr.tensor(x), cr.tensor(y)).numpy()
    np.testing.assert_allclose(got, exact(x, y).astype("float64"), rtol=1e-12)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("shape", [(4, 3), (80, 3), (40, 30), (140, 3)], ids=str)
def test_gradients_are_pytorchs(p: float, shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    x, y = points(*shape), points(*shape, seed=1)[1:]
    y[1] = x[2]
    y[2, 0] = x[0, 0]
    g, results = points(len(x), len(y), seed=2), []
    for library in (cr, torch):
        leaves = [library.tensor(v, requires_grad=True) for v in (x, y)]
        # With products, PyTorch has 6e-8 for the pair that coincides.
        d = library.cdist(*leaves, p=p, compute_mode="donot_use_mm_for_euclid_dist")
        grads = library.autograd.grad(d, leaves, library.tensor(g))
        results.append([t.detach().numpy() for t in (d, *grads)])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
@pytest.mark.parametrize("many", [False, True])
def test_derivatives_of_any_order(p: float, many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if many:
        monkeypatch.setattr("chainrule.ops.products._MIN_PAIRS", 0)
    leaves = [cr.tensor(points(3, 2), requires_grad=True)]
    leaves.append(cr.tensor(points(2, 2, seed=1), requires_grad=True))
    assert cr.gradcheck(lambda x, y: cr.cdist(x, y, p), leaves, fast_mode=True)
    assert cr.gradgradcheck(lambda x, y: cr.cdist(x, y, p), leaves, fast_mode=True)


def test_the_largest_of_equal_differences_share_the_gradient() -> None:
    x = cr.tensor([[1.0, -1.0]], requires_grad=True)
    cr.cdist(x, cr.zeros(1, 2), p=math.inf).backward()
    assert x.grad.tolist() == [[0.5, -0.5]]


def test_stacks_broadcast_and_dtypes_promote() -> None:
    torch = pytest.importorskip("torch")
    x, y = points(3, 1, 2, 4), points(2, 5, 4)
    for p in (2, 1):
        got = cr.cdist(cr.tensor(x), cr.tensor(y), p)
        wanted = torch.cdist(torch.tensor(x), torch.tensor(y), p)
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-12)
    leaf = cr.tensor(x, requires_grad=True)
    cr.cdist(leaf, cr.tensor(y)).sum().backward()
    assert leaf.grad.shape == x.shape
    assert cr.cdist(cr.tensor(x), cr.ones(5, 4)).dtype == cr.float64
    half = cr.ones(2, 3, dtype=cr.float16, requires_grad=True)
    cr.cdist(half, cr.zeros(1, 3, dtype=cr.float16)).sum().backward()
    assert half.grad.dtype == cr.float16


@pytest.mark.parametrize("mode", [None, "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"])
def test_modes(mode: str | None) -> None:
    x, y = points(50, 20), points(40, 20, seed=1)
    got = cr.cdist(cr.tensor(x), cr.tensor(y), compute_mode=mode)
    np.testing.assert_allclose(got.numpy(), exact(x, y).astype("float64"), rtol=1e-12)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("n", [2, 5])
def test_pairs_of_one_set(n: int, p: float) -> None:
    torch = pytest.importorskip("torch")
    x, results = points(n, 3), []
    for library in (cr, torch):
        leaf = library.tensor(x, requires_grad=True)
        d = library.pdist(leaf, p)
        (d * d).sum().backward()
        results.append((d.detach().numpy(), leaf.grad.numpy()))
    for ours, theirs in zip(*results, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("n", [0, 1])
def test_no_pairs(n: int, p: float) -> None:
    leaf = cr.tensor(points(n, 3), requires_grad=True)  # PyTorch crashes
    d = cr.pdist(leaf, p)
    d.sum().backward()
    assert d.shape == (0,)
    assert leaf.grad.tolist() == [[0, 0, 0]] * n


def o(*shape: int) -> cr.Tensor:
    return cr.ones(*shape)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: cr.cdist(o(2, 3), o(4, 2)), cr.ShapeError, "must have the same number of columns"),
        (lambda: cr.cdist(o(3), o(4, 3)), cr.ShapeError, "only supports at least 2D tensors, X1"),
        (lambda: cr.cdist(o(2, 2, 1), o(3, 2, 1)), cr.ShapeError, "don't broadcast"),
        (lambda: cr.cdist(o(2, 3), o(4, 3) * 1j), cr.DTypeError, "X2 got: ComplexFloat"),
        (lambda: cr.cdist(o(2, 3), o(4, 3).to(cr.int64)), cr.DTypeError, "X2 got: Long"),
        (lambda: cr.cdist(o(2, 3), o(4, 3), p=-1), ValueError, "only supports non-negative p"),
        (lambda: cr.cdist(o(2, 3), o(4, 3), p=math.nan), ValueError, "only supports non-negative"),
        (lambda: cr.cdist(o(2, 3), o(4, 3), compute_mode="x"), ValueError, "not a valid value for"),
        (lambda: cr.pdist(o(2, 2, 3)), cr.ShapeError, "pdist only supports 2D tensors, got: 3D"),
        (lambda: cr.pdist(o(2, 3), p=-1), ValueError, "pdist only supports non-negative p values"),
    ],
    ids=range(10),
)
def test_what_does_not_fit(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("dimensions", [1, 4, 5, 40])
@pytest.mark.parametrize("stack", [(), (2, 2)])
def test_blocks_of_pairs(
    dimensions: int, stack: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gradients with respect to one set or both, from blocks that near pairs are in or not."""
    monkeypatch.setattr(pair_distances, "_BLOCK_SIZE", 300)
    x, y = points(*stack, 70, dimensions), points(*stack, 60, dimensions, seed=1)
    x[..., 30:34, :] = y[..., 20:24, :]
    x[..., 33, :] += 1e-9
    g = points(*stack, 70, 60, seed=2)
    a, b = cr.tensor(x, requires_grad=True), cr.tensor(y, requires_grad=True)
    d = cr.cdist(a, b)
    d.backward(cr.tensor(g))
    np.testing.assert_allclose(d.detach().numpy(), exact(x, y).astype(float), rtol=1e-12)
    for i in np.ndindex(stack):
        of_x = exact_gradient(x[i], y[i], g[i]).astype(float)
        np.testing.assert_allclose(a.grad.numpy()[i], of_x, atol=1e-10)
        of_y = exact_gradient(y[i], x[i], g[i].T).astype(float)
        np.testing.assert_allclose(b.grad.numpy()[i], of_y, atol=1e-10)
    for leaf, value in ((a, cr.cdist(a, cr.tensor(y))), (b, cr.cdist(cr.tensor(x), b))):
        (alone,) = cr.autograd.grad(value, leaf, cr.tensor(g))
        np.testing.assert_array_equal(alone.numpy(), leaf.grad.numpy())
