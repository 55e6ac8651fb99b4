"""`cr.scipy.spatial.distance`: SciPy's values, and derivatives beside their differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_distance = pytest.importorskip("scipy.spatial.distance")

RNG = np.random.default_rng(4)
U, V = RNG.uniform(0.2, 1.5, (2, 4))
W = RNG.uniform(0.2, 1.5, 4)
A, B = RNG.uniform(0.2, 1.5, (7, 4)), RNG.uniform(0.2, 1.5, (3, 4))
VI = np.linalg.inv(np.cov(np.concatenate([A, B]).T))

PAIRS: list[tuple[str, dict[str, Any]]] = [
    *[(name, {}) for name in (
        "braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "euclidean",
        "jensenshannon", "minkowski", "sqeuclidean",
    )],
    *[(name, {"w": W}) for name in (
        "braycurtis", "canberra", "chebyshev", "cityblock", "correlation", "cosine", "euclidean",
        "minkowski", "sqeuclidean",
    )],
    ("minkowski", {"p": 3}), ("minkowski", {"p": 1.5, "w": W}), ("minkowski", {"p": 1}),
    ("minkowski", {"p": np.inf}), ("correlation", {"centered": False}),
    ("seuclidean", {"V": W}), ("mahalanobis", {"VI": VI}),
    ("jensenshannon", {"base": 2.0}),
]  # fmt: skip


def labels(cases: list[tuple[str, dict[str, Any]]]) -> Any:
    ids = [f"{name}-{'-'.join(settings)}{i}" for i, (name, settings) in enumerate(cases)]
    return pytest.mark.parametrize(("name", "settings"), cases, ids=ids)


@labels(PAIRS)
def test_distances_of_two_vectors(name: str, settings: dict[str, Any]) -> None:
    ours = getattr(cr.scipy.spatial.distance, name)
    wanted = getattr(scipy_distance, name)(U, V, **settings)
    assert ours(U, V, **settings) == wanted

    def distance(u: Any, v: Any, *arrays: Any) -> Any:
        changed = dict(zip([k for k in settings if k in ("w", "V", "VI")], arrays, strict=False))
        return ours(u, v, **{**settings, **changed})

    arrays = [U, V, *[settings[k] for k in settings if k in ("w", "V", "VI")]]
    tensors = [cr.tensor(x, requires_grad=True) for x in arrays]
    np.testing.assert_allclose(distance(*tensors).item(), wanted, 1e-12)
    assert cr.gradcheck(distance, tensors, check_forward_ad=True, fast_mode=True)
    assert cr.gradgradcheck(distance, tensors, fast_mode=True)
    np.testing.assert_allclose(cr.compile(distance)(*tensors).item(), wanted, 1e-12)
    narrow = distance(*[cr.tensor(x.astype(np.float32)) for x in arrays])
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow.item(), wanted, 1e-4)
    rows = cr.vmap(lambda v: distance(U, v, *arrays[2:]))(B)
    np.testing.assert_allclose(rows, [getattr(scipy_distance, name)(U, b, **settings) for b in B])
    seen = []
    cr.grad(lambda u: seen.append(ours(u, list(V), **settings)) or seen[0])(U)
    assert type(seen[0]) is cr.numpy.ndarray


SETS = [
    *[(name, {}) for name, settings in PAIRS if not settings],
    *[(name, {"w": W}) for name in ("chebyshev", "euclidean", "cityblock", "canberra")],
    ("minkowski", {"p": 3.0}), ("seuclidean", {}), ("seuclidean", {"V": W}), ("mahalanobis", {}),
    ("mahalanobis", {"VI": VI}), ("cos", {}), ("e", {}),
]  # fmt: skip


@pytest.mark.sampled(3)
@labels(SETS)
def test_distances_of_all_pairs(name: str, settings: dict[str, Any]) -> None:
    distance = cr.scipy.spatial.distance
    a, b = cr.tensor(A, requires_grad=True), cr.tensor(B, requires_grad=True)
    between = distance.cdist(a, b, name, **settings)
    np.testing.assert_allclose(
        between.detach().numpy(), scipy_distance.cdist(A, B, name, **settings), 1e-12
    )
    within = distance.pdist(a, name, **settings)
    np.testing.assert_allclose(
        within.detach().numpy(), scipy_distance.pdist(A, name, **settings), 1e-12
    )
    assert cr.gradcheck(lambda a, b: distance.cdist(a, b, name, **settings), [a, b], fast_mode=True)
    assert cr.gradcheck(lambda a: distance.pdist(a, name, **settings), [a], fast_mode=True)
    compiled = cr.compile(lambda a: distance.pdist(a, name, **settings))(a)
    np.testing.assert_allclose(compiled.detach().numpy(), within.detach().numpy(), 1e-12)


def test_a_metric_may_be_a_function() -> None:
    def metric(u: Any, v: Any) -> Any:
        return np.abs(u - v).sum()

    found = cr.grad(lambda a: cr.scipy.spatial.distance.pdist(a, lambda u, v: (u - v).max()).sum())
    assert type(found(A)) is np.ndarray
    for named in (cr.scipy.spatial.distance.seuclidean, scipy_distance.seuclidean):
        found = cr.scipy.spatial.distance.pdist(cr.tensor(A), named)
        np.testing.assert_allclose(found.numpy(), scipy_distance.pdist(A, "seuclidean"))

    for name, sets in (("cdist", (A, B)), ("pdist", (A,))):
        found = getattr(cr.scipy.spatial.distance, name)(*map(cr.tensor, sets), metric)
        np.testing.assert_allclose(
            found.numpy(), getattr(scipy_distance, name)(*sets, "cityblock"), 1e-12
        )


SMOOTH_AT_ZERO = [name for name, settings in PAIRS if not settings and name != "cosine"]


@pytest.mark.parametrize("name", [*SMOOTH_AT_ZERO, "seuclidean", "mahalanobis"])
def test_the_gradient_at_distance_zero_is_zero(name: str) -> None:
    settings = {"seuclidean": {"V": W}, "mahalanobis": {"VI": VI}}.get(name, {})
    ours = getattr(cr.scipy.spatial.distance, name)
    zero = np.zeros(4)
    points = [U, zero] if name in ("euclidean", "canberra", "minkowski") else [U]
    for point in points:
        found = cr.grad(lambda u, p=point: ours(u, p, **settings))(point)
        np.testing.assert_allclose(found, 0.0, atol=1e-7)
    pairs = cr.grad(lambda x: cr.scipy.spatial.distance.cdist(x, x).sum())(A)
    assert np.isfinite(pairs).all()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_squareform(n: int) -> None:
    vector = np.arange(1.0, n * (n - 1) / 2 + 1)
    ours = cr.scipy.spatial.distance.squareform
    matrix = ours(cr.tensor(vector))
    np.testing.assert_array_equal(matrix.numpy(), scipy_distance.squareform(vector))
    if n > 1:
        np.testing.assert_array_equal(ours(matrix).numpy(), vector)
        assert cr.gradcheck(
            lambda v: ours(ours(v) * 2), cr.tensor(vector, requires_grad=True), fast_mode=True
        )


def test_the_hausdorff_distance() -> None:
    a = cr.tensor(A, requires_grad=True)
    distance = cr.scipy.spatial.distance.directed_hausdorff
    assert (distance(a, B)[0].item(), *distance(a, B)[1:]) == pytest.approx(
        scipy_distance.directed_hausdorff(A, B)
    )
    assert cr.gradcheck(lambda a: distance(a, B)[0], a, fast_mode=True)


def test_what_compares_truth_values() -> None:
    distance = cr.scipy.spatial.distance
    u, v = np.array([True, False, True]), np.array([True, True, False])
    assert distance.yule(cr.tensor(u), v) == scipy_distance.yule(u, v)
    bits = cr.tensor(np.array([u, v]).astype(float))
    wanted = scipy_distance.pdist(np.array([u, v]), "hamming")
    assert distance.pdist(bits, "hamming").tolist() == wanted.tolist()
    assert distance.is_valid_y(cr.tensor([1.0], requires_grad=True))
    with pytest.raises(
        cr.AutogradError, match=r"distance.jaccard has no derivative rule in chainrule: it"
    ):
        distance.jaccard(cr.tensor([1.0, 0.0], requires_grad=True), [1.0, 1.0])
    with pytest.raises(cr.AutogradError, match="metric 'hamming' has no derivative: those with"):
        distance.pdist(bits.requires_grad_(), "hamming")


def test_wrong_calls_say_how_they_are_right() -> None:
    distance, u = cr.scipy.spatial.distance, cr.tensor(U)
    with pytest.raises(cr.ShapeError, match=r"euclidean: Input vector should be 1-D.* and \[3\]"):
        distance.euclidean(u, U[:3])
    with pytest.raises(cr.ShapeError, match=r"cdist: expected a matrix .* \[\[4\], \[3, 4\]\]"):
        distance.cdist(u, B)
    with pytest.raises(cr.ArgumentError, match="cosine: expected weights that are not negative"):
        distance.cosine(u, V, -W)
    with pytest.raises(cr.ArgumentError, match="minkowski: p must be greater than 0, got -1"):
        distance.minkowski(u, V, -1)
    with pytest.raises(TypeError, match="cdist of tensors takes no out: use the result"):
        distance.cdist(cr.tensor(A), B, out=np.empty((7, 3)))
    with pytest.raises(TypeError, match="the metric euclidean takes w, got p"):
        distance.cdist(cr.tensor(A), B, p=3)
    with pytest.raises(cr.ShapeError, match=r"squareform: expected n .* got 2"):
        distance.squareform(u[:2])
    with pytest.raises(cr.ShapeError, match="squareform: expected a vector or a matrix"):
        distance.squareform(u, force="tovector")
    assert np.isnan(distance.euclidean(u, np.full(4, np.nan)).item())
