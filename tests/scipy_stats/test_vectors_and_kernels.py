"""Distributions of vectors and matrices, and `gaussian_kde`, of `cr.scipy.stats`."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_stats = pytest.importorskip("scipy.stats")

RNG = np.random.default_rng(6)
MEAN = RNG.normal(size=3)
FACTOR = RNG.normal(size=(3, 3)) + 2 * np.eye(3)
COV = FACTOR @ FACTOR.T
POINTS = RNG.normal(size=(4, 3))
ALPHA = np.array([1.4, 2.3, 0.8])
SHARES = np.array([[0.2, 0.1], [0.5, 0.3], [0.3, 0.6]])
OTHER = COV @ COV / 10 + np.eye(3)

CASES: list[tuple[str, str, tuple[Any, ...], dict[str, Any]]] = [
    ("multivariate_normal", "logpdf", (POINTS, MEAN, COV), {}),
    ("multivariate_normal", "pdf", (POINTS[0], MEAN, COV), {}),
    ("multivariate_normal", "logpdf", (POINTS,), {"mean": MEAN, "cov": 2.0}),
    ("multivariate_normal", "logpdf", (POINTS, MEAN, ALPHA), {}),
    ("multivariate_normal", "logpdf", (ALPHA, 0.3, 2.0), {}),
    ("multivariate_normal", "logpdf", (0.7,), {}),
    ("multivariate_normal", "entropy", (MEAN, COV), {}),
    ("multivariate_normal", "entropy", (), {"cov": COV}),
    ("multivariate_t", "logpdf", (POINTS, MEAN, COV, 3.5), {}),
    ("multivariate_t", "pdf", (POINTS, MEAN, COV), {"df": 2.5}),
    ("dirichlet", "logpdf", (SHARES, ALPHA), {}),
    ("dirichlet", "pdf", (SHARES[:2], ALPHA), {}),
    *[("dirichlet", name, (ALPHA,), {}) for name in ("mean", "var", "entropy")],
    ("multinomial", "logpmf", (np.array([2, 1, 3]), 6, np.array([0.2, 0.3, 0.5])), {}),
    ("multinomial", "pmf", (np.array([[2, 1, 3], [4, 0, 2]]), 6, np.array([0.2, 0.3, 0.5])), {}),
    ("wishart", "logpdf", (OTHER, 4.5, COV), {}),
    ("wishart", "pdf", (np.stack([OTHER, COV], -1), 4.5, COV), {}),
    ("invwishart", "logpdf", (OTHER, 4.5, COV), {}),
]


def is_data(value: Any) -> bool:
    return (isinstance(value, np.ndarray) and value.dtype.kind == "f") or isinstance(value, float)


def symmetric(value: Any) -> Any:
    """Return a matrix as a function of independent elements; other data as it is."""
    return (value + value.mT) / 2 if np.shape(value) == (3, 3) else value


@pytest.mark.parametrize(
    ("name", "method", "args", "settings"),
    [
        case if i in (0, 3, 8, 10, 15, 17) else pytest.param(*case, marks=pytest.mark.thorough)
        for i, case in enumerate(CASES)
    ],
    ids=[f"{c[0]}-{c[1]}-{i}" for i, c in enumerate(CASES)],
)
def test_densities(name: str, method: str, args: Any, settings: dict[str, Any]) -> None:
    ours = getattr(getattr(cr.scipy.stats, name), method)
    wanted = getattr(getattr(scipy_stats, name), method)(*args, **settings)
    np.testing.assert_array_equal(ours(*args, **settings), wanted)
    every = [*args, *settings.values()]
    data = [i for i, value in enumerate(every) if is_data(value) and np.shape(value) != (3, 3, 2)]

    def density(*moving: Any) -> Any:
        full = list(every)
        for i, value in zip(data, moving, strict=True):
            full[i] = symmetric(value)
        found = dict(zip(settings, full[len(args) :], strict=True))
        if name == "dirichlet" and len(args) > 1:
            full[0] = full[0][:2]
        if name == "multinomial":
            full[2] = full[2] / full[2].sum()
        return ours(*full[: len(args)], **found)

    tensors = [cr.tensor(every[i], dtype=cr.float64, requires_grad=True) for i in data]
    found = density(*tensors)
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(found.detach().numpy(), wanted, 1e-11)
    assert cr.gradcheck(density, tensors, check_forward_ad=True, fast_mode=True)
    assert cr.gradgradcheck(density, tensors, rtol=1e-3, atol=1e-4, fast_mode=True)
    compiled = cr.compile(density)(*tensors)
    np.testing.assert_allclose(compiled.detach().numpy(), wanted, 1e-10)
    two = cr.vmap(density)(*[np.stack([every[i]] * 2) for i in data])
    np.testing.assert_allclose(two, [wanted] * 2, 1e-10)
    if np.shape(every[0]) != (3, 3, 2):
        assert density(*[t.detach().to(cr.float32) for t in tensors]).dtype == "float32"
    seen: list[Any] = []
    arrays, numbers = [np.asarray(every[i]) for i in data], tuple(range(len(data)))
    cr.grad(lambda *xs: seen.append(density(*xs)) or seen[0].sum(), argnums=numbers)(*arrays)
    assert type(seen[0]) is cr.numpy.ndarray


def test_frozen_vectors() -> None:
    mean = cr.tensor(MEAN, requires_grad=True)
    frozen, scipys = (
        cr.scipy.stats.multivariate_normal(mean, COV),
        scipy_stats.multivariate_normal(MEAN, COV),
    )
    np.testing.assert_allclose(frozen.logpdf(POINTS).detach().numpy(), scipys.logpdf(POINTS))
    assert frozen.entropy().item() == pytest.approx(scipys.entropy())
    assert "multivariate_normal(tensor(" in repr(frozen)
    plain = cr.scipy.stats.multivariate_normal(MEAN, COV)
    assert plain.rvs(random_state=1).tolist() == scipys.rvs(random_state=1).tolist()
    assert plain.cdf(POINTS[0]) == pytest.approx(scipys.cdf(POINTS[0]), 1e-3)
    normal = cr.scipy.stats.multivariate_normal
    assert pickle.loads(pickle.dumps(normal)) is normal
    assert repr(normal) == "<chainrule.scipy.stats.multivariate_normal(mean, cov)>"
    with pytest.raises(cr.AutogradError, match=r"multivariate_normal.rvs has no derivative: draws"):
        frozen.rvs()


def test_a_singular_covariance() -> None:
    singular = np.diag([1.0, 2.0, 0.0])
    points = np.array([[0.3, 0.4, 0.0], [0.3, 0.4, 0.1]])
    logpdf = cr.scipy.stats.multivariate_normal.logpdf
    wanted = scipy_stats.multivariate_normal.logpdf(points, None, singular, allow_singular=True)
    found = logpdf(cr.tensor(points), np.zeros(3), singular, allow_singular=True)
    np.testing.assert_allclose(found.numpy(), wanted)
    with pytest.raises(cr.AutogradError, match=r"where cov is singular, it has no derivative"):
        logpdf(points, None, cr.tensor(singular, requires_grad=True), allow_singular=True)
    with pytest.raises(np.linalg.LinAlgError):
        logpdf(cr.tensor(points), None, singular)


def test_a_regular_covariance_that_may_be_singular() -> None:
    regular, point = np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([0.3, 0.4])
    logpdf = cr.scipy.stats.multivariate_normal.logpdf
    wanted = cr.grad(lambda c: logpdf(point, None, c))(regular)
    for transformed in (cr.grad, lambda f: cr.compile(cr.grad(f))):
        found = transformed(lambda c: logpdf(point, None, c, allow_singular=True))(regular)
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_a_point_of_one_number_has_equal_coordinates() -> None:
    logpdf, regular = cr.scipy.stats.multivariate_normal.logpdf, np.array([[2.0, 0.3], [0.3, 1.0]])
    for mean in ([0.1, 0.2], None):
        wanted = scipy_stats.multivariate_normal.logpdf([0.5], mean, regular)
        assert logpdf(cr.tensor([0.5]), mean, regular).item() == pytest.approx(wanted)


def test_counts_outside_of_the_support() -> None:
    p = cr.tensor([0.2, 0.3, 0.5], dtype=cr.float64, requires_grad=True)
    x = np.array([[1.0, 2.0, 4.0], [1.5, 2.5, 2.0], [1.0, 2.0, 3.0]])
    found = cr.scipy.stats.multinomial.logpmf(x, 6, p)
    assert found.tolist()[:2] == [-np.inf, -np.inf]
    (g,) = cr.autograd_grad(found[:2].sum(), p)
    assert g.tolist() == [0.0, 0.0, 0.0]


def test_wrong_vectors() -> None:
    stats, x = cr.scipy.stats, cr.tensor(POINTS)
    with pytest.raises(cr.ShapeError, match=r"expected points of 2 coordinates .* \[4, 3\]"):
        stats.multivariate_normal.logpdf(x, np.zeros(2))
    with pytest.raises(cr.ShapeError, match=r"expected a matrix of shape \[3, 3\], .* \[2, 2\]"):
        stats.multivariate_normal.logpdf(x, MEAN, np.eye(2))
    with pytest.raises(cr.ShapeError, match=r"expected a mean of one dimension, got \[4, 3\]"):
        stats.multivariate_t.logpdf(x, POINTS)
    with pytest.raises(cr.ShapeError, match="dirichlet: expected alpha as a vector"):
        stats.dirichlet.logpdf(x, ALPHA[:2])
    with pytest.raises(ValueError, match="must lie within the normal simplex"):
        stats.dirichlet.logpdf(cr.tensor([0.5, 0.6, 0.7]), ALPHA)
    with pytest.raises(ValueError, match="must be between zero and one"):
        stats.dirichlet.logpdf(cr.tensor([-0.5, 0.9, 0.6]), ALPHA)
    with pytest.raises(cr.AutogradError, match=r"multinomial.logpmf .*respect to x: it counts"):
        stats.multinomial.logpmf(cr.tensor([1.0, 2.0], requires_grad=True), 3, [0.5, 0.5])
    with pytest.raises(cr.ArgumentError, match="wishart: Degrees of freedom must be greater"):
        stats.wishart.logpdf(cr.tensor(OTHER), 1.5, COV)
    with pytest.raises(cr.ShapeError, match=r"invwishart: expected matrices of shape \[3, 3\]"):
        stats.invwishart.logpdf(cr.tensor(OTHER[:2, :2]), 4.5, COV)


# --- estimates by kernels -------------------------------------------------------------------------

DATA, AT, WEIGHTS = RNG.normal(size=9), RNG.normal(size=4), RNG.uniform(0.2, 1.0, 9)
PLANE, PLANE_AT = RNG.normal(size=(2, 9)), RNG.normal(size=(2, 4))


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["equal", "weighted"])
@pytest.mark.parametrize(
    "bandwidth",
    [None, "silverman", 0.4, lambda kde: kde.n ** (-0.3)],
    ids=["scott", "silverman", "number", "callable"],
)
@pytest.mark.parametrize("dim", [1, 2])
def test_estimates(dim: int, bandwidth: Any, weights: Any) -> None:
    data, points = (DATA, AT) if dim == 1 else (PLANE, PLANE_AT)
    scipys = scipy_stats.gaussian_kde(data, bandwidth, weights)

    def logs(points: Any, data: Any, *rest: Any) -> Any:
        return cr.scipy.stats.gaussian_kde(data, bandwidth, *rest).logpdf(points)

    arrays = [points, data, *([] if weights is None else [weights])]
    tensors = [cr.tensor(a, requires_grad=True) for a in arrays]
    np.testing.assert_allclose(logs(*tensors).detach().numpy(), scipys.logpdf(points), 1e-11)
    assert cr.gradcheck(logs, tensors, check_forward_ad=True, fast_mode=True)
    kde = cr.scipy.stats.gaussian_kde(tensors[1], bandwidth, *tensors[2:])
    for method in (kde, kde.evaluate, kde.pdf):
        np.testing.assert_allclose(method(points).detach().numpy(), scipys(points), 1e-11)
    if dim == 1:
        found = kde.integrate_box_1d(-0.5, 0.7)
        assert found.item() == pytest.approx(scipys.integrate_box_1d(-0.5, 0.7), 1e-11)
    plain = cr.scipy.stats.gaussian_kde(data, bandwidth, weights)
    np.testing.assert_array_equal(plain(points), scipys(points))
    assert (plain.d, plain.n, plain.factor) == (scipys.d, scipys.n, scipys.factor)


def test_an_estimate_under_transforms() -> None:
    def total(data: Any) -> Any:
        return cr.scipy.stats.gaussian_kde(data, 0.4, WEIGHTS).evaluate(AT).sum()

    assert cr.gradgradcheck(total, cr.tensor(DATA, requires_grad=True), fast_mode=True)
    wanted = scipy_stats.gaussian_kde(DATA, 0.4, WEIGHTS)(AT).sum()
    assert cr.compile(total)(cr.tensor(DATA)).item() == pytest.approx(wanted, 1e-10)
    assert cr.vmap(total)(np.stack([DATA, DATA])).tolist() == pytest.approx([wanted] * 2, 1e-10)
    bandwidth = cr.tensor(0.4, dtype=cr.float64, requires_grad=True)
    assert cr.gradcheck(
        lambda h: cr.scipy.stats.gaussian_kde(DATA, h).logpdf(AT), bandwidth, fast_mode=True
    )
    narrow = cr.scipy.stats.gaussian_kde(cr.tensor(DATA.astype(np.float32)))
    assert narrow(AT.astype(np.float32)).dtype == np.float32
    assert type(cr.grad(total)(DATA)) is np.ndarray


def test_wrong_estimates() -> None:
    kde = cr.scipy.stats.gaussian_kde(cr.tensor(PLANE, requires_grad=True))
    with pytest.raises(cr.ShapeError, match="points have dimension 3, dataset has dimension 2"):
        kde(RNG.normal(size=(3, 4)))
    with pytest.raises(cr.ShapeError, match="as many weights as points, 9, got shape"):
        cr.scipy.stats.gaussian_kde(cr.tensor(DATA), weights=WEIGHTS[:3])
    with pytest.raises(ValueError, match="should have multiple elements"):
        cr.scipy.stats.gaussian_kde(cr.tensor([1.0]))
    with pytest.raises(ValueError, match="`bw_method` should be"):
        cr.scipy.stats.gaussian_kde(cr.tensor(DATA), "wide")(AT)
    with pytest.raises(ValueError, match="only handles 1D"):
        kde.integrate_box_1d(0, 1)
    assert kde.resample(3, seed=1).shape == (2, 3)


@pytest.mark.parametrize("x", [[0.3], [[0.3, 0.2]], [[[0.3, 0.2]], [[1.0, 0.1]]]])
def test_densities_have_no_dimensions_of_one_element(x: Any) -> None:
    x = np.array(x)
    for name, more in (("multivariate_normal", {}), ("multivariate_t", {"df": 3.0})):
        cov = 2 * np.eye(x.shape[-1])
        wanted = getattr(scipy_stats, name)(np.zeros(len(cov)), cov, **more).logpdf(x)

        def logpdf(cov: Any) -> Any:
            mean = np.zeros(len(cov))
            return getattr(cr.scipy.stats, name)(mean, cov, **more).logpdf(x)  # noqa: B023

        value, _ = cr.vjp(logpdf, cov)
        assert np.shape(value) == np.shape(wanted)
        np.testing.assert_allclose(value, wanted, rtol=1e-12)
