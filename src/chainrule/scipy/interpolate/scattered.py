"""Interpolation between scattered points: by simplices, by cubics on triangles, by neighbours."""

from __future__ import annotations

import functools
import itertools
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

import chainrule.numpy as cnp
from chainrule.autograd.tensor import make
from chainrule.backend import is_known
from chainrule.backend.extensions import SCIPY, LazyModule
from chainrule.implicit.examples import with_numbers
from chainrule.interop.operands import are_known, array_of, is_tracked
from chainrule.numpy.array_class import as_ndarrays
from chainrule.scipy.dispatch import call_ours, has_tensors, missing_rule
from chainrule.scipy.interpolate.interpolant import TABLE, Interpolant
from chainrule.scipy.own_code import replace_compiled

__all__ = ["CloughTocher2DInterpolator", "LinearNDInterpolator", "NearestNDInterpolator"]

scipy_spatial = LazyModule("scipy.spatial", SCIPY)


def _coordinates(points: Any, ndim: int | None = None) -> Any:
    """Return coordinates in the last axis: of an array, or of a tuple of one for each axis."""
    if isinstance(points, tuple) and len(points) == 1:
        points = points[0]
    if isinstance(points, tuple):
        if not has_tensors(points):
            return np.stack(np.broadcast_arrays(*points), axis=-1)
        return cnp.stack(cnp.broadcast_arrays(*as_ndarrays(points)), axis=-1)
    points = _array(getattr(points, "points", points))
    return points.reshape(-1, 1 if ndim is None else ndim) if points.ndim == 1 else points


def _array(values: Any) -> Any:
    """Return an array: one that records only of what is differentiated or unknown."""
    return as_ndarrays(cnp.asarray(values)) if has_tensors(values) else np.asarray(values)


replace_compiled("scipy.interpolate._interpnd", _ndim_coords_from_arrays=_coordinates)


class _Scattered(Interpolant, ABC):
    """An interpolant of values at scattered points."""

    def __init__(self, points: Any, values: Any, **settings: Any) -> None:
        self._settings = settings
        self.points, self.values = points, values
        self._scipys = None if self._has_tensors() else self.of_scipy()

    def data(self) -> tuple[Any, ...]:
        """Return the points and the values."""
        return getattr(self.points, "points", self.points), self.values

    def of_scipy(self) -> Any:
        """Return SciPy's object for numbers."""
        found: Any = getattr(TABLE.scipys, type(self).__name__)
        points = self.points
        if self._has_tensors():
            points = array_of(_coordinates(points))
        return found(points, array_of(self.values), **self._settings)

    def __call__(self, *args: Any, **settings: Any) -> Any:
        """Return values at points: an array of their coordinates, or an array for each axis."""
        if self._scipys is not None and not self._has_tensors(args):
            return self._scipys(*args, **settings)
        return call_ours(self._at, (self.points, self.values, *args), settings)

    def _at(self, points: Any, values: Any, *args: Any, **settings: Any) -> Any:
        points, values = _coordinates(points), _array(values)
        x = _coordinates(args, points.shape[1])
        found = self._found(points, values, x.reshape(-1, points.shape[1]), **settings)
        return found.reshape(*x.shape[:-1], *values.shape[1:])

    @abstractmethod
    def _found(self, points: Any, values: Any, x: Any, **settings: Any) -> Any: ...


class LinearNDInterpolator(_Scattered):
    """Linear interpolation on simplices: `scipy.interpolate.LinearNDInterpolator`.

    Parameters
    ----------
    points : array, shape (n, d), or `scipy.spatial.Delaunay`
        The points.
    values : array, shape (n, ...)
        The values there, real or complex.
    fill_value, rescale
        As in SciPy.

    Notes
    -----
    Derivatives: with respect to values, points and where it is called; the simplices are constant.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> plane = cr.scipy.interpolate.LinearNDInterpolator(points, [0.0, 2.0, 3.0])
    >>> cr.jacobian(lambda x: plane(x)[0])(np.array([0.2, 0.3]))
    array([2., 3.])
    """

    def __init__(
        self, points: Any, values: Any, fill_value: Any = np.nan, rescale: bool = False
    ) -> None:
        super().__init__(points, values, fill_value=fill_value, rescale=rescale)

    def _found(self, points: Any, values: Any, x: Any, **_: Any) -> Any:
        index, shares = _shares(self, points, x)
        shares = shares.reshape(*shares.shape, *[1] * (values.ndim - 1))
        return _filled(self, (shares * _taken(values, index)).sum(1), index)


def _shares(of: _Scattered, points: Any, x: Any) -> tuple[Any, Any]:
    """Return the corners of the simplices that hold points, and barycentric coordinates.

    Corners are -1 outside of all simplices.
    """

    def corners() -> list[Any]:
        numbers, at = array_of(points), array_of(x)
        mesh = getattr(of.points, "_found", of.points)
        if not hasattr(mesh, "simplices"):
            if of._settings["rescale"]:
                shift, scale = numbers.mean(0), np.ptp(numbers, 0)
                scale[scale <= 0] = 1.0
                numbers, at = (numbers - shift) / scale, (at - shift) / scale
            mesh = scipy_spatial.Delaunay(numbers) if of._scipys is None else of._scipys.tri
        simplex = mesh.find_simplex(at)
        return [np.where(simplex[:, None] < 0, -1, mesh.simplices[simplex])]

    if are_known((points, x)):
        (index,) = corners()
    else:
        (index,) = with_numbers("scipy.interpolate: the simplices of points", corners)
        index = index if is_known(index) else make(index, None)
    outside = np.arange(x.shape[1] + 1)  # any simplex will do
    found = _taken(points, cnp.where(index < 0, outside, index))
    edges = cnp.swapaxes(found[:, 1:] - found[:, :1], 1, 2)
    rest = cnp.linalg.solve(edges, (x - found[:, 0])[..., None])[..., 0]
    return index, cnp.concatenate([1 - rest.sum(1, keepdims=True), rest], axis=1)


def _taken(x: Any, index: Any) -> Any:
    """Return rows of an array, also by an index that vmap maps over."""
    return (x if are_known(index) else cnp.asarray(x))[index]


def _filled(self: Any, found: Any, index: Any) -> Any:
    """Return values, and outside of all simplices the value for that."""
    outside = index[:, 0] < 0
    if are_known(outside) and not outside.any():
        return found
    outside = outside.reshape(-1, *[1] * (found.ndim - 1))
    return cnp.where(outside, self._settings["fill_value"], found)


class CloughTocher2DInterpolator(_Scattered):
    """Cubic interpolation on triangles: `scipy.interpolate.CloughTocher2DInterpolator`.

    Parameters
    ----------
    points : array, shape (n, 2), or `scipy.spatial.Delaunay`
        The points.
    values : array, shape (n, ...)
        The values there, real or complex.
    fill_value, tol, maxiter, rescale
        As in SciPy.

    Notes
    -----
    Derivatives: with respect to values, of which it is linear, and where it is called. On each of
    the three parts of a triangle it is a cubic, which ten of SciPy's values determine.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> plane = cr.scipy.interpolate.CloughTocher2DInterpolator(points, points @ [2.0, 3.0])
    >>> cr.jacobian(lambda x: plane(x)[0])(np.array([0.2, 0.3])).round(6)
    array([2., 3.])
    """

    def __init__(
        self, points: Any, values: Any, fill_value: Any = np.nan, tol: float = 1e-6,
        maxiter: int = 400, rescale: bool = False,
    ) -> None:  # fmt: skip
        settings = {"fill_value": fill_value, "tol": tol, "maxiter": maxiter, "rescale": rescale}
        super().__init__(points, values, **settings)

    def _found(self, points: Any, values: Any, x: Any, **_: Any) -> Any:
        if is_tracked(points):
            raise missing_rule(
                "scipy.interpolate.CloughTocher2DInterpolator: the derivative by points",
                "SciPy estimates slopes from all points. LinearNDInterpolator and RBFInterpolator "
                "have one",
            )
        index, shares = _shares(self, points, x)
        corners = array_of(points)[index]
        part = array_of(shares).argmin(1)  # opposite to the corner that is the furthest
        rows = np.arange(len(part))
        centre = corners.mean(1)
        corners[rows, part] = centre
        nodes, inverse = _nodes()
        places = np.einsum("qc,mcd->mqd", nodes, corners).reshape(-1, 2)
        # Coordinates in the part: the centre's is three times the smallest.
        least = shares[rows, part][:, None]
        local = cnp.concatenate([shares - least, 3 * least], axis=1)
        order = np.tile(np.arange(3), (len(part), 1))
        order[rows, part] = 3
        weights = _monomials(local[rows[:, None], order]) @ inverse
        numbers = array_of(values)
        samples = self._of_scipy(numbers)(places)
        if is_tracked(values):  # the numbers of both cancel: the derivative alone is linear
            each = self._of_scipy(np.eye(len(numbers)))(places)
            change = (values - values.detach()).reshape(len(numbers), -1)
            samples = samples + (each @ change).reshape(samples.shape)
        samples = samples.reshape(*weights.shape, *values.shape[1:])
        weights = weights.reshape(*weights.shape, *[1] * (values.ndim - 1))
        return _filled(self, (weights * samples).sum(1), index)

    def _of_scipy(self, values: Any) -> Any:
        points = array_of(_coordinates(self.points))
        return TABLE.scipys.CloughTocher2DInterpolator(points, values, **self._settings)


_POWERS = [powers for powers in itertools.product(range(4), repeat=3) if sum(powers) == 3]


def _monomials(shares: Any) -> Any:
    """Return the cubic monomials of barycentric coordinates in the last axis."""
    return cnp.stack([cnp.prod(shares ** np.array(each), axis=-1) for each in _POWERS], axis=-1)


@functools.cache
def _nodes() -> tuple[Any, Any]:
    """Return ten points of a triangle, all within it, and the inverse of their monomials."""
    nodes = 0.05 + 0.85 * np.array(_POWERS) / 3
    return nodes, np.linalg.inv(np.stack([np.prod(nodes**each, axis=-1) for each in _POWERS], -1))


class NearestNDInterpolator(_Scattered):
    """The value at the nearest point: `scipy.interpolate.NearestNDInterpolator`.

    Parameters
    ----------
    x : array, shape (n, d)
        The points.
    y : array, shape (n, ...)
        The values there.
    rescale, tree_options
        As in SciPy.

    Notes
    -----
    Derivatives: with respect to values; those with respect to points are zero.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 1.0]])
    >>> def nearest(y):
    ...     return cr.scipy.interpolate.NearestNDInterpolator(x, y)([[0.9, 0.2]])[0]
    >>> cr.grad(nearest)(np.array([5.0, 6.0, 7.0]))
    array([0., 1., 0.])
    """

    def __init__(self, x: Any, y: Any, rescale: bool = False, tree_options: Any = None) -> None:
        super().__init__(x, y, rescale=rescale, tree_options=tree_options)

    def _found(self, points: Any, values: Any, x: Any, **settings: Any) -> Any:
        index = np.arange(len(values), dtype=float)
        found = TABLE.scipys.NearestNDInterpolator(array_of(points), index, **self._settings)
        nearest = found(array_of(x), **settings)
        missing = np.isnan(nearest)
        taken = values[np.where(missing, 0, nearest).astype(int)]
        if not missing.any():
            return taken
        return cnp.where(missing.reshape(-1, *[1] * (taken.ndim - 1)), np.nan, taken)
