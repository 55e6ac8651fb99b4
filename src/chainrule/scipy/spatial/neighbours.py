"""Neighbours and hulls of points: which points they are is constant, their geometry is recorded.

SciPy finds the neighbours and the corners of cells; distances, volumes and centres follow from the
coordinates of these points.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import chainrule.numpy as cnp
from chainrule.autograd.tensor import make
from chainrule.backend import is_known
from chainrule.backend.extensions import SCIPY, LazyModule
from chainrule.implicit.examples import with_numbers
from chainrule.interop.operands import array_of, arrays_of, is_tracked
from chainrule.numpy.array_class import as_ndarrays
from chainrule.scipy.dispatch import are_constants, either_class, has_tensors, missing_rule

_scipys = LazyModule("scipy.spatial", SCIPY)


class _OfPoints:
    """An object of SciPy's for points that are differentiated: other attributes are its own."""

    def __init__(self, name: str, points: Any, *args: Any, **settings: Any) -> None:
        self._name = name
        self._points = cnp.asarray(as_ndarrays(points))
        self._found = getattr(_scipys, name)(array_of(points), *args, **settings)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of SciPy's object: indices and the like, which are constants."""
        if name.startswith("_") or hasattr(type(self), name):
            raise AttributeError(name)
        found = getattr(self._found, name)
        if not callable(found):
            return self._constant(name, found)

        def method(*args: Any, **settings: Any) -> Any:
            return self._constant(name, found(*_found_in(arrays_of(args)), **arrays_of(settings)))

        return method

    def _constant(self, name: str, found: Any) -> Any:
        if is_tracked(self._points) and not are_constants(found):
            reason = "compute it from the points, and from the indices that it has"
            raise missing_rule(f"scipy.spatial.{self._name}.{name}", reason)
        return found


def _found_in(values: Any) -> Any:
    return [each._found if isinstance(each, _OfPoints) else each for each in values]


class _Tree(_OfPoints):
    """`scipy.spatial.KDTree` of points: the distances of `query` are recorded."""

    @property
    def data(self) -> Any:
        """The points."""
        return self._points

    def query(self, x: Any, k: Any = 1, eps: Any = 0, p: Any = 2, *args: Any, **rest: Any) -> Any:
        """Return the distances of the nearest neighbours, and their indices."""

        def indices() -> list[Any]:
            return [np.asarray(self._found.query(array_of(x), k, eps, p, *args, **rest)[1])]

        (index,) = with_numbers(f"scipy.spatial.{self._name}.query", indices)
        known = is_known(index)
        index = index if known else make(index, None)
        missing = index == len(self._points)
        points = self._points[np.where(missing, 0, index)]
        at = cnp.asarray(as_ndarrays(x))
        if np.ndim(k) or k != 1:
            at = at[..., None, :]
        step, period = at - points, self._found.boxsize
        if period is not None:  # to the nearest of the periodic images
            turns = np.round(arrays_of(step) / np.where(period > 0, period, np.inf))
            step = step - turns * period
        distances = cnp.linalg.norm(step, ord=p, axis=-1)
        if not known or missing.any():
            distances = cnp.where(missing, np.inf, distances)
        return distances, index


class _Simplices(_OfPoints):
    """`scipy.spatial.Delaunay` and `ConvexHull` of points."""

    @property
    def points(self) -> Any:
        """The points."""
        return self._points

    @property
    def volume(self) -> Any:
        """The volume of a hull: of the simplices between a corner and the faces."""
        corner = self._points[self._found.vertices[0]]
        sizes = cnp.abs(cnp.linalg.det(self._points[self._found.simplices] - corner))
        return sizes.sum() / math.factorial(len(corner))

    @property
    def area(self) -> Any:
        """The area of a hull's faces."""
        faces = self._points[self._found.simplices]
        edges = faces[:, 1:] - faces[:, :1]
        squares = cnp.linalg.det(edges @ cnp.swapaxes(edges, 1, 2))
        return cnp.sqrt(squares).sum() / math.factorial(edges.shape[1])

    @property
    def equations(self) -> Any:
        """The normals of the faces, and their offsets from the origin, in one row for each."""
        rows = self._found.equations
        if rows.shape[1] != self._points.shape[1] + 1:
            raise missing_rule(f"scipy.spatial.{self._name}.equations", "they are of paraboloids")
        faces = self._points[self._found.simplices]
        edges = faces[:, 1:] - faces[:, :1]
        # The normal is what a constant vector off the face has beside its projection on it.
        away = rows[:, :-1, None]
        square = edges @ cnp.swapaxes(edges, 1, 2)
        along = cnp.swapaxes(edges, 1, 2) @ cnp.linalg.solve(square, edges @ away)
        normal = (away - along)[:, :, 0]
        normal = normal / cnp.linalg.norm(normal, axis=1, keepdims=True)
        offset = -(normal * faces[:, 0]).sum(1)
        return cnp.concatenate([normal, offset[:, None]], axis=1)


class _Cells(_OfPoints):
    """`scipy.spatial.Voronoi` of points: its corners have the same distance from several."""

    @property
    def points(self) -> Any:
        """The points."""
        return self._points

    @property
    def vertices(self) -> Any:
        """The corners of the cells: the centres of circles through points."""
        places, numbers = self._found.vertices, array_of(self._points)
        size = numbers.shape[1]
        distances = np.linalg.norm(places[:, None] - numbers, axis=2)
        corners = self._points[np.argsort(distances, axis=1)[:, : size + 1]]
        edges = corners[:, 1:] - corners[:, :1]
        right = (edges**2).sum(2, keepdims=True) / 2
        return corners[:, 0] + cnp.linalg.solve(edges, right)[:, :, 0]


def _class(name: str, kind: type) -> Callable[[], Any]:
    def made() -> Any:
        scipys = getattr(_scipys, name)

        def ours(points: Any, *args: Any, **settings: Any) -> Any:
            return kind(name, points, *args, **settings)

        def query(self: Any, x: Any, *args: Any, **settings: Any) -> Any:
            if not has_tensors(x):
                return scipys.query(self, x, *args, **settings)
            tree = _Tree.__new__(_Tree)
            tree._name, tree._found, tree._points = name, self, cnp.asarray(self.data)
            return tree.query(x, *args, **settings)

        def plain(*args: Any, **settings: Any) -> Any:
            return type.__call__(found, *args, **settings)

        found = either_class(scipys, ours, has_tensors, kind, plain)
        found.__module__ = "chainrule.scipy.spatial"
        if kind is _Tree:
            found.query = functools.wraps(scipys.query)(query)
        return found

    return made


MAKERS: dict[str, Callable[[], Any]] = {
    **{name: _class(name, _Tree) for name in ("KDTree", "cKDTree")},
    **{name: _class(name, _Simplices) for name in ("Delaunay", "ConvexHull")},
    "Voronoi": _class("Voronoi", _Cells),
}
"""Functions that make the classes, when they are needed."""
