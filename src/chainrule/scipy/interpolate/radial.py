"""Interpolation of scattered data by radial functions: `scipy.interpolate.RBFInterpolator`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import cast
from chainrule.autograd.location import user_stack_level
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known
from chainrule.backend.extensions import SCIPY, LazyModule
from chainrule.errors import ArgumentError, AutogradError, LinAlgError, ShapeError
from chainrule.interop.operands import array_of, arrays_of
from chainrule.linalg import solve
from chainrule.ops import matrix_transpose
from chainrule.scipy.dispatch import call_ours, has_tensors
from chainrule.scipy.interpolate.interpolant import TABLE, Interpolant, coordinates_and_values

scipy_spatial = LazyModule("scipy.spatial", SCIPY)

# Functions of the squared distance s, and the least degree of the polynomial that is added.
_OF_DISTANCE: dict[str, tuple[Callable[[Tensor], Tensor], int]] = {
    "linear": (lambda s: -ops.sqrt(s), 0),
    "thin_plate_spline": (lambda s: 0.5 * s * ops.log(s), 1),
    "cubic": (lambda s: s * ops.sqrt(s), 1),
    "quintic": (lambda s: -(s * s) * ops.sqrt(s), 2),
}
_OF_SCALED_DISTANCE: dict[str, tuple[Callable[[Tensor], Tensor], int]] = {
    "multiquadric": (lambda s: -ops.sqrt(s + 1), 0),
    "inverse_multiquadric": (lambda s: 1 / ops.sqrt(s + 1), -1),
    "inverse_quadratic": (lambda s: 1 / (s + 1), -1),
    "gaussian": (lambda s: ops.exp(-s), -1),
}


def _kernel(name: str, epsilon: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return the radial function of the distances between points in rows."""
    s = ops.sum(ops.square(epsilon * (x[..., :, None, :] - y[..., None, :, :])), dim=-1)
    if name in _OF_SCALED_DISTANCE:
        return _OF_SCALED_DISTANCE[name][0](s)
    apart = s > 0
    return ops.where(apart, _OF_DISTANCE[name][0](ops.where(apart, s, 1)), 0)


def _monomials(rank: int, degree: int) -> list[tuple[int, ...]]:
    """Return for each monomial the numbers of its factors."""
    return [
        factors
        for power in range(degree + 1)
        for factors in combinations_with_replacement(range(rank), power)
    ]


def _polynomials(x: Tensor, monomials: list[tuple[int, ...]]) -> Tensor:
    columns = []
    for factors in monomials:
        found = 0 * x[..., 0] + 1
        for i in factors:
            found = found * x[..., i]
        columns.append(found)
    return ops.stack(columns, dim=-1) if columns else x[..., :0]


def _units(y: Tensor) -> tuple[Tensor, Tensor]:
    """Return the centre and half the extent of points, on which the interpolant doesn't depend."""
    y = y.detach()
    low, high = ops.amin(y, dim=-2, keepdim=True), ops.amax(y, dim=-2, keepdim=True)
    return (low + high) / 2, ops.where(high > low, (high - low) / 2, 1)


def _weights(
    y: Tensor, d: Tensor, smoothing: Tensor, epsilon: Tensor, kernel: str, monomials: Any
) -> Tensor:
    """Return the coefficients of the radial functions and the monomials."""
    n, count = y.shape[-2], len(monomials)
    shift, scale = _units(y)
    square = _kernel(kernel, epsilon, y, y) + smoothing[..., None] * np.eye(n, dtype=y.dtype)
    if count:
        p = _polynomials((y - shift) / scale, monomials)
        corner = ops.broadcast_to(np.zeros((), y.dtype), (*p.shape[:-2], count, count))
        below = ops.cat([matrix_transpose(p), corner], dim=-1)
        square = ops.cat([ops.cat([square, p], dim=-1), below], dim=-2)
        rest = ops.broadcast_to(np.zeros((), d.dtype), (*d.shape[:-2], count, d.shape[-1]))
        d = ops.cat([d, rest], dim=-2)
    try:
        return solve(cast(square, d.dtype), d)
    except np.linalg.LinAlgError:
        raise LinAlgError(
            "RBFInterpolator: Singular matrix: the points have to differ, and must not lie on the "
            "zeros of a polynomial of that degree, such as on one line"
        ) from None


def _evaluated(
    x: Tensor, y: Tensor, coefficients: Tensor, epsilon: Tensor, kernel: str, monomials: Any
) -> Tensor:
    shift, scale = _units(y)
    rows = _kernel(kernel, epsilon, x, y)
    if monomials:
        rows = ops.cat([rows, _polynomials((x - shift) / scale, monomials)], dim=-1)
    return cast(rows, coefficients.dtype) @ coefficients


def _checked(y: Any, d: Any, smoothing: Any, epsilon: Any) -> list[Tensor]:
    (y, smoothing, epsilon), (d,) = coordinates_and_values(
        "RBFInterpolator", [y, smoothing, epsilon], [d]
    )
    n = y.shape[0]
    if not d.ndim or d.shape[0] != n:
        raise ShapeError(
            f"RBFInterpolator: Expected the first axis of `d` to have length {n}, got the shape "
            f"{list(d.shape)}"
        )
    if smoothing.ndim and smoothing.shape != (n,):
        raise ShapeError(
            f"RBFInterpolator: Expected `smoothing` to be a scalar or have shape ({n},), got "
            f"{list(smoothing.shape)}"
        )
    return [y, d, ops.broadcast_to(smoothing, (n,)), epsilon]


def _solved(y: Any, d: Any, smoothing: Any, epsilon: Any, *settings: Any) -> Tensor:
    y, d, smoothing, epsilon = _checked(y, d, smoothing, epsilon)
    return _weights(y, ops.reshape(d, (d.shape[0], -1)), smoothing, epsilon, *settings)


def _at(
    coefficients: Any, count: Any, x: Any, y: Any, d: Any, smoothing: Any, epsilon: Any,
    *settings: Any,
) -> Tensor:  # fmt: skip
    y, d, smoothing, epsilon = _checked(y, d, smoothing, epsilon)
    (x, y, smoothing, epsilon), (d,) = coordinates_and_values(
        "RBFInterpolator", [x, y, smoothing, epsilon], [d]
    )
    if x.ndim != 2 or x.shape[1] != y.shape[1]:
        raise ShapeError(
            f"RBFInterpolator: `x` must be a 2-dimensional array, and Expected the second axis of "
            f"`x` to have length {y.shape[1]}: got the shape {list(x.shape)}"
        )
    shape = (x.shape[0], *d.shape[1:])
    if count is None:
        return ops.reshape(_evaluated(x, y, coefficients, epsilon, *settings), shape)
    if not is_known(x._array) or not is_known(y._array):
        raise AutogradError(
            "RBFInterpolator looks for neighbors by values, which a compiled function doesn't "
            "know, nor does vmap: leave neighbors out"
        )
    tree = scipy_spatial.KDTree(array_of(y))
    _, near = tree.query(array_of(x), [*range(1, count + 1)])
    near, inverse = np.unique(np.sort(near, axis=1), axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    rows = ops.reshape(d, (d.shape[0], -1))
    found = _weights(y[near], rows[near], smoothing[near], epsilon, *settings)
    values = _evaluated(x[:, None], y[near][inverse], found[inverse], epsilon, *settings)
    return ops.reshape(values, shape)


class RBFInterpolator(Interpolant):
    """The interpolant of scattered data by radial functions and a polynomial.

    Its arguments are those of `scipy.interpolate.RBFInterpolator`.

    Notes
    -----
    Derivatives: with respect to the data's points and values, `smoothing`, `epsilon` and points.
    The linear kernel has a kink at each point of the data, and the second derivative of the thin
    plate is infinite there: they count as 0. Neighbors are constants.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> rbf = cr.scipy.interpolate.RBFInterpolator(x, x[:, 0], kernel="cubic")
    >>> cr.grad(lambda p: rbf(p)[0])(np.array([[1.5]])).round(6)
    array([[1.]])
    """

    def __init__(
        self,
        y: Any,
        d: Any,
        neighbors: int | None = None,
        smoothing: Any = 0.0,
        kernel: str = "thin_plate_spline",
        epsilon: Any = None,
        degree: int | None = None,
    ) -> None:
        self._scipys: Any = None
        self._coefficients: Any = None
        if not has_tensors(y, d, smoothing, epsilon):
            settings = (neighbors, smoothing, kernel, epsilon, degree)
            self._scipys = TABLE.scipys.RBFInterpolator(y, d, *settings)
        self.kernel, self.neighbors = kernel.lower(), neighbors
        known = {**_OF_DISTANCE, **_OF_SCALED_DISTANCE}
        if self.kernel not in known:
            raise ArgumentError(f"RBFInterpolator: `kernel` must be one of {[*known]}.")
        if epsilon is None and self.kernel in _OF_SCALED_DISTANCE:
            raise ArgumentError(
                "RBFInterpolator: `epsilon` must be specified if `kernel` is not one of "
                f"{[*_OF_DISTANCE]}."
            )
        self.y, self.d, self.smoothing = y, d, smoothing
        self.epsilon = 1.0 if epsilon is None else epsilon
        self.degree = self._degree_of_polynomial(known[self.kernel][1], degree)
        if np.ndim(y) != 2:
            raise ShapeError(
                f"RBFInterpolator: `y` must be a 2-dimensional array, got {np.ndim(y)} dimensions"
            )
        rank = np.shape(y)[-1]
        self._settings = (self.kernel, _monomials(rank, self.degree))
        least = len(self._settings[1])
        if neighbors is not None:
            self.neighbors = min(int(neighbors), np.shape(y)[0])
        if least > (self.neighbors or np.shape(y)[0]):
            raise ArgumentError(
                f"RBFInterpolator: At least {least} data points are required when `degree` is "
                f"{self.degree} and the number of dimensions is {rank}."
            )
        if self._scipys is None:
            self._solve()

    def _degree_of_polynomial(self, least: int, degree: int | None) -> int:
        if degree is None:
            return max(least, 0)
        if degree < -1:
            raise ArgumentError("RBFInterpolator: `degree` must be at least -1.")
        if -1 < degree < least and self._scipys is None:
            warnings.warn(
                f"`degree` should not be below {least} except -1 when `kernel` is "
                f"'{self.kernel}'. The interpolant may not be uniquely solvable, and the smoothing "
                "parameter may have an unintuitive effect.",
                UserWarning,
                stacklevel=user_stack_level(),
            )
        return int(degree)

    def _solve(self) -> None:
        """Find the coefficients, which all points share unless they have neighbors."""
        if self.neighbors is None:
            self._coefficients = self._of_data(_solved, *self.data(), *self._settings)
        else:
            self._of_data(_checked, *self.data())

    def data(self) -> tuple[Any, ...]:
        """Return points, values and parameters."""
        return self.y, self.d, self.smoothing, self.epsilon

    def of_scipy(self) -> Any:
        """Return SciPy's object."""
        if self._scipys is not None:
            return self._scipys
        y, d, smoothing, epsilon = arrays_of([*self.data()])
        settings = (self.neighbors, smoothing, self.kernel, epsilon, self.degree)
        return TABLE.scipys.RBFInterpolator(y, d, *settings)

    def __call__(self, x: Any) -> Any:
        """Return the values at points in rows."""
        if not self._has_tensors(x):
            return self._scipys(x)
        if self._coefficients is None:
            self._solve()
        known = (self._coefficients, self.neighbors)
        return call_ours(_at, (*known, x, *self.data(), *self._settings), {})
