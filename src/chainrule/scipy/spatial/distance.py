"""`scipy.spatial.distance` over tensors: distances of vectors, and of all pairs of rows.

A metric is a function of the last axis, which serves a pair of vectors, `pdist` and `cdist`. At a
distance of zero, where many have a kink, the derivative is 0. Given arrays, a function is SciPy's
own.

>>> import numpy as np
>>> import chainrule as cr
>>> distance = cr.scipy.spatial.distance
>>> cr.grad(lambda u: distance.euclidean(u, [0.0, 0.0]))(np.array([3.0, 4.0]))
array([0.6, 0.8])
>>> cr.grad(lambda u: distance.euclidean(u, [3.0, 4.0]))(np.array([3.0, 4.0]))
array([0., 0.])
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.autograd.tensor import Tensor
from chainrule.backend import holds_somewhere
from chainrule.backend.extensions import SCIPY, LazyModule
from chainrule.errors import ArgumentError, ArgumentTypeError, AutogradError, ShapeError
from chainrule.interop.operands import arrays_of, is_tracked, tensor_of
from chainrule.linalg import inv
from chainrule.scipy.dispatch import Table
from chainrule.scipy.operands import floats
from chainrule.scipy.own_code import compose_others

Metric = Callable[..., Any]

scipy_distance = LazyModule("scipy.spatial.distance", SCIPY)

# --- metrics of the last axis ---------------------------------------------------------------------


def root(square: Any) -> Any:
    """Return the square root, whose derivative at 0 is taken as 0."""
    zero = square == 0
    return ops.where(zero, 0.0, ops.sqrt(ops.where(zero, 1.0, square)))


def _ratio(part: Any, whole: Any) -> Any:
    """Return a quotient, and 0 for 0/0."""
    zero = ops.logical_and(part == 0, whole == 0)
    return ops.where(zero, 0.0, part / ops.where(zero, 1.0, whole))


def _weighted(values: Any, w: Any) -> Any:
    return values if w is None else w * values


def _total(values: Any, w: Any = None) -> Any:
    return ops.sum(_weighted(values, w), dim=-1)


def _minkowski(u: Any, v: Any, w: Any = None, p: Any = 2) -> Any:
    if isinstance(p, int | float):
        if p <= 0:
            raise ArgumentError(f"minkowski: p must be greater than 0, got {p}")
        if math.isinf(p):
            return _chebyshev(u, v, w)
        if p == 2:
            return root(_sqeuclidean(u, v, w))
        if p == 1:
            return _cityblock(u, v, w)
    return _power(_total(_power(ops.abs(u - v), p), w), 1 / p)


def _power(x: Any, p: Any) -> Any:
    """Return x**p for x ≥ 0, with the derivative 0 at 0."""
    zero = x == 0
    return ops.where(zero, 0.0, ops.where(zero, 1.0, x) ** p)


def _sqeuclidean(u: Any, v: Any, w: Any = None) -> Any:
    return _total(ops.square(u - v), w)


def _cityblock(u: Any, v: Any, w: Any = None) -> Any:
    return _total(ops.abs(u - v), w)


def _chebyshev(u: Any, v: Any, w: Any = None) -> Any:
    difference = ops.abs(u - v)
    if w is not None:
        difference = ops.where(w > 0, difference, 0.0)
    return ops.amax(difference, dim=-1)


def _canberra(u: Any, v: Any, w: Any = None) -> Any:
    return _total(_ratio(ops.abs(u - v), ops.abs(u) + ops.abs(v)), w)


def _braycurtis(u: Any, v: Any, w: Any = None) -> Any:
    return _total(ops.abs(u - v), w) / _total(ops.abs(u + v), w)


def _correlation(u: Any, v: Any, w: Any = None, centered: bool = True) -> Any:
    if w is not None:
        w = w / ops.sum(w, dim=-1, keepdim=True)
    if centered:
        count = u.shape[-1]
        u, v = [x - (_total(x) / count if w is None else _total(x, w))[..., None] for x in (u, v)]
    uv, uu, vv = _total(u * v, w), _total(u * u, w), _total(v * v, w)
    return ops.clamp(1.0 - uv / ops.sqrt(uu * vv), 0.0, 2.0)


def _cosine(u: Any, v: Any, w: Any = None) -> Any:
    return _correlation(u, v, w, centered=False)


def _seuclidean(u: Any, v: Any, V: Any) -> Any:
    return root(_sqeuclidean(u, v, 1 / V))


def _mahalanobis(u: Any, v: Any, VI: Any) -> Any:
    difference = u - v
    moved = ops.matmul(difference[..., None, :], VI)[..., 0, :]
    return root(_total(moved * difference))


def _rel_entr(x: Any, y: Any) -> Any:
    zero = x == 0
    x, y = ops.where(zero, 1.0, x), ops.where(zero, 1.0, y)
    return ops.where(zero, 0.0, x * ops.log(x / y))


def _jensenshannon(u: Any, v: Any, base: Any = None) -> Any:
    u, v = u / _total(u)[..., None], v / _total(v)[..., None]
    middle = (u + v) / 2
    found = _total(_rel_entr(u, middle)) + _total(_rel_entr(v, middle))
    found = ops.clamp_min(found, 0.0)
    return root((found if base is None else found / math.log(base)) / 2)


METRICS: dict[str, Metric] = {
    "braycurtis": _braycurtis,
    "canberra": _canberra,
    "chebyshev": _chebyshev,
    "cityblock": _cityblock,
    "correlation": _correlation,
    "cosine": _cosine,
    "euclidean": _minkowski,
    "jensenshannon": _jensenshannon,
    "mahalanobis": _mahalanobis,
    "minkowski": _minkowski,
    "seuclidean": _seuclidean,
    "sqeuclidean": _sqeuclidean,
}
"""Metrics with a derivative, by SciPy's names."""

_ALIASES = {
    **dict.fromkeys(["cblock", "cb", "c"], "cityblock"),
    **dict.fromkeys(["chebychev", "cheby", "cheb", "ch"], "chebyshev"),
    **dict.fromkeys(["cos"], "cosine"),
    **dict.fromkeys(["co"], "correlation"),
    **dict.fromkeys(["euclid", "eu", "e"], "euclidean"),
    **dict.fromkeys(["js"], "jensenshannon"),
    **dict.fromkeys(["mahal", "mah"], "mahalanobis"),
    **dict.fromkeys(["mi", "m", "pnorm"], "minkowski"),
    **dict.fromkeys(["se", "s"], "seuclidean"),
    **dict.fromkeys(["sqe", "sqeuclid"], "sqeuclidean"),
}

# --- of two vectors -------------------------------------------------------------------------------


def _vectors(name: str, u: Any, v: Any, *more: Any) -> list[Any]:
    """Return two vectors and further operands, or None, as tensors."""
    present = [value for value in more if value is not None]
    u, v, *rest = floats(name, u, v, *present)
    if u.ndim != 1 or u.shape != v.shape:
        raise ShapeError(
            f"{name}: Input vector should be 1-D, and both of one length: got shapes "
            f"{list(u.shape)} and {list(v.shape)}"
        )
    found = iter(rest)
    return [u, v, *[None if value is None else next(found) for value in more]]


def _check_weights(name: str, w: Any) -> Any:
    if w is not None and holds_somewhere((w < 0)._array):
        raise ArgumentError(f"{name}: expected weights that are not negative")
    return w


def _of_vectors(name: str) -> Callable[..., Any]:
    metric = METRICS[name]

    def distance(u: Any, v: Any, w: Any = None) -> Any:
        u, v, w = _vectors(name, u, v, w)
        return metric(u, v, _check_weights(name, w))

    distance.__name__ = distance.__qualname__ = name
    return distance


def _minkowski_distance(u: Any, v: Any, p: Any = 2, w: Any = None) -> Any:
    u, v, w = _vectors("minkowski", u, v, w)
    return _minkowski(u, v, _check_weights("minkowski", w), p)


def _correlation_distance(u: Any, v: Any, w: Any = None, centered: bool = True) -> Any:
    u, v, w = _vectors("correlation", u, v, w)
    return _correlation(u, v, _check_weights("correlation", w), centered)


def _seuclidean_distance(u: Any, v: Any, V: Any) -> Any:
    return _seuclidean(*_vectors("seuclidean", u, v, V))


def _mahalanobis_distance(u: Any, v: Any, VI: Any) -> Any:
    return _mahalanobis(*_vectors("mahalanobis", u, v, VI))


def _jensenshannon_distance(
    p: Any, q: Any, base: Any = None, *, axis: int = 0, keepdims: bool = False
) -> Any:
    p, q = floats("jensenshannon", p, q)
    found = _jensenshannon(ops.movedim(p, axis, -1), ops.movedim(q, axis, -1), base)
    return ops.unsqueeze(found, axis if axis >= 0 else axis + found.ndim + 1) if keepdims else found


# --- of all pairs ---------------------------------------------------------------------------------


def _rows(name: str, *sets: Any) -> list[Tensor]:
    found = floats(name, *sets)
    for x in found:
        if x.ndim != 2 or x.shape[1] != found[0].shape[1]:
            raise ShapeError(
                f"{name}: expected a matrix for each set of points, a point in each row, and as "
                f"many columns; got shapes {[list(x.shape) for x in found]}"
            )
    return found


def _name_of(metric: Any) -> Any:
    """Return the name of one of SciPy's functions or ours, other metrics as they are."""
    if getattr(metric, "__module__", "") in ("scipy.spatial.distance", __name__):
        return metric.__name__
    return metric


def _metric_of(name: str, metric: Any, sets: list[Tensor], settings: dict[str, Any]) -> Any:
    """Return a metric of the last axis with its settings, or None if SciPy has to compute it."""
    out = settings.pop("out", None)
    if out is not None:
        raise ArgumentTypeError(f"{name} of tensors takes no out: use the result")
    metric = _name_of(metric)
    if callable(metric):
        return lambda u, v: metric(u, v, **settings)
    label = str(metric).lower()
    label = _ALIASES.get(label, label)
    if label not in METRICS:
        return None
    function = METRICS[label]
    given = {key: _setting(sets[0], value) for key, value in settings.items() if value is not None}
    _check_weights(name, given.get("w"))
    if label == "seuclidean" and "V" not in given:
        every = ops.cat(sets)
        given["V"] = ops.var(every, dim=0, correction=1)
    if label == "mahalanobis" and "VI" not in given:
        every = ops.cat(sets)
        centred = every - ops.mean(every, dim=0)
        covariance = ops.matmul(centred.T, centred) / (every.shape[0] - 1)
        given["VI"] = inv(covariance)
    if label == "euclidean" and set(given) - {"w"}:
        raise ArgumentTypeError(
            f"{name}: the metric euclidean takes w, got {', '.join(sorted(given))}"
        )
    return lambda u, v: function(u, v, **given)


def _setting(like: Tensor, value: Any) -> Any:
    return value if isinstance(value, bool | int | float) else floats("distance", like, value)[1]


def _cdist(XA: Any, XB: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    """Return the distances of all pairs of rows of two matrices."""
    a, b = _rows("cdist", XA, XB)
    found = _metric_of("cdist", metric, [a, b], {**kwargs, "out": out})
    if found is None:
        return _of_scipy("cdist", metric, (a, b), kwargs)
    if callable(_name_of(metric)):
        return ops.stack([ops.stack([tensor_of(found(u, v)) for v in b]) for u in a])
    return found(a[:, None, :], b[None, :, :])


def _pdist(X: Any, metric: Any = "euclidean", *, out: Any = None, **kwargs: Any) -> Any:
    """Return the distances of all pairs of rows of a matrix, those of the first row first."""
    (x,) = _rows("pdist", X)
    found = _metric_of("pdist", metric, [x], {**kwargs, "out": out})
    if found is None:
        return _of_scipy("pdist", metric, (x,), kwargs)
    i, j = np.triu_indices(x.shape[0], 1)
    if callable(_name_of(metric)):
        rows = list(x)
        return ops.stack([tensor_of(found(rows[p], rows[q])) for p, q in zip(i, j, strict=True)])
    return found(x[i], x[j])


def _of_scipy(name: str, metric: Any, sets: tuple[Tensor, ...], settings: dict[str, Any]) -> Any:
    """Return the distances of a metric of truth values, which has no derivative."""
    if is_tracked(sets):
        raise AutogradError(
            f"{name}: the metric {metric!r} has no derivative: those with one are "
            f"{', '.join(METRICS)}. Pass x.detach() if the points are to count as constants"
        )
    function = getattr(scipy_distance, name)
    return tensor_of(function(*arrays_of(list(sets)), metric, **arrays_of(settings)))


def _squareform(X: Any, force: str = "no", checks: bool = True) -> Any:
    """Return the matrix of distances for a vector of those of pairs, and the other way round."""
    x = tensor_of(X)
    wrong = {"tomatrix": 2, "tovector": 1}.get(force.lower())
    if x.ndim not in (1, 2) or x.ndim == wrong:
        raise ShapeError(f"squareform: expected a vector or a matrix, got {list(x.shape)}")
    if x.ndim == 2:
        if checks:
            scipy_distance.is_valid_dm(arrays_of(x), throw=True, name="X")
        i, j = np.triu_indices(x.shape[0], 1)
        return x[i, j]
    n = math.ceil(math.sqrt(2 * x.shape[0])) or 1
    if n * (n - 1) != 2 * x.shape[0]:
        raise ShapeError(
            f"squareform: expected n (n - 1) / 2 distances of n points, got {x.shape[0]}"
        )
    number = np.zeros((n, n), dtype=np.intp)
    number[np.triu_indices(n, 1)] = np.arange(x.shape[0])
    number += number.T
    diagonal = np.eye(n, dtype=bool)
    return ops.where(diagonal, 0, x[number]) if x.shape[0] else ops.cat([x, x.new_zeros(1)])[None]


def _directed_hausdorff(u: Any, v: Any, rng: Any = 0) -> Any:
    """Return the largest distance of a row of `u` from the nearest of `v`, and both indices."""
    u, v = _rows("directed_hausdorff", u, v)
    _, i, j = scipy_distance.directed_hausdorff(*arrays_of([u, v]), rng)
    return _minkowski(u[i], v[j]), i, j


_TABLE = Table("scipy.spatial.distance", SCIPY)
_TABLE.refused = dict.fromkeys(
    ["dice", "hamming", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"],
    "it compares truth values",
)
_TABLE.of_values = frozenset(["is_valid_dm", "is_valid_y", "num_obs_dm", "num_obs_y"])
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        name: _of_vectors(name)
        for name in (
            *("braycurtis", "canberra", "chebyshev", "cityblock", "cosine", "euclidean"),
            "sqeuclidean",
        )
    },
    "correlation": _correlation_distance,
    "jensenshannon": _jensenshannon_distance,
    "mahalanobis": _mahalanobis_distance,
    "minkowski": _minkowski_distance,
    "seuclidean": _seuclidean_distance,
    "cdist": _cdist,
    "pdist": _pdist,
    "squareform": _squareform,
    "directed_hausdorff": _directed_hausdorff,
}
for _name, _function in _FUNCTIONS.items():
    _TABLE.function(_name, "composite")(_function)

compose_others(_TABLE)
__getattr__, __dir__ = _TABLE.namespace()
