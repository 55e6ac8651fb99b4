"""Transforms: invertible functions of random numbers, with the logarithms of their Jacobians.

>>> import chainrule as cr
>>> from chainrule.distributions.transforms import AffineTransform, ExpTransform
>>> x, f = cr.tensor(0.0), AffineTransform(1.0, 2.0)
>>> f.inv(f(x)), f.log_abs_det_jacobian(x, f(x)).exp(), ExpTransform().inv(1.0)
(tensor(0.), tensor(2.), tensor(0.))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from chainrule import linalg, ops
from chainrule.arguments import Operand
from chainrule.autograd.tensor import Tensor
from chainrule.creation import arange, eye, zeros, zeros_like
from chainrule.distributions import constraints
from chainrule.distributions.constraints import Constraint
from chainrule.distributions.transform import (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    Shape,
    StackTransform,
    Transform,
    identity_transform,
    log_of,
    sign_of,
    sum_rightmost,
)
from chainrule.errors import ShapeError
from chainrule.nn import functional as F

if TYPE_CHECKING:
    from chainrule.distributions.distribution import Distribution

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]

# --- functions of numbers -------------------------------------------------------------------------


class _Increasing(Transform):
    """An increasing function of numbers."""

    domain: Constraint = constraints.real
    codomain: Constraint = constraints.real
    bijective = True

    @property
    def sign(self) -> Any:
        return 1


class ExpTransform(_Increasing):
    """y = exp(x).

    Examples
    --------
    >>> from chainrule.distributions import ExpTransform
    >>> ExpTransform()(0.0)
    tensor(1.)
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return ops.exp(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return ops.log(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(_Increasing):
    """y = x ** exponent, of positive numbers.

    Parameters
    ----------
    exponent : Tensor or number
        Not 0.
    cache_size : 0 or 1, default 0
        As for `Transform`.

    Examples
    --------
    >>> from chainrule.distributions import PowerTransform
    >>> PowerTransform(2.0)(3.0)
    tensor(9.)
    """

    domain = codomain = constraints.positive

    def __init__(self, exponent: Operand, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent: Any = exponent

    @property
    def sign(self) -> Any:
        return sign_of(self.exponent)

    def _call(self, x: Tensor) -> Tensor:
        y: Tensor = x**self.exponent
        return y

    def _inverse(self, y: Tensor) -> Tensor:
        x: Tensor = y ** (1 / self.exponent)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return ops.log(ops.abs(self.exponent * y / x))

    def forward_shape(self, shape: Sequence[int]) -> Shape:
        return ops.broadcast_shapes(tuple(shape), getattr(self.exponent, "shape", ()))

    inverse_shape = forward_shape


class SigmoidTransform(_Increasing):
    """y = 1 / (1 + exp(-x)), kept within the numbers between 0 and 1.

    Examples
    --------
    >>> from chainrule.distributions import SigmoidTransform
    >>> SigmoidTransform()(0.0)
    tensor(0.5000)
    """

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        info = ops.finfo(x.dtype)
        return ops.clamp(ops.sigmoid(x), float(info.tiny), 1 - float(info.eps))

    def _inverse(self, y: Tensor) -> Tensor:
        info = ops.finfo(y.dtype)
        y = ops.clamp(y, float(info.tiny), 1 - float(info.eps))
        return ops.log(y) - ops.log1p(-y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(_Increasing):
    """y = log(1 + exp(x)).

    Examples
    --------
    >>> from chainrule.distributions import SoftplusTransform
    >>> SoftplusTransform()(0.0)
    tensor(0.6931)
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return F.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y + ops.log(-ops.expm1(-y))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x)


class TanhTransform(_Increasing):
    """y = tanh(x); near ±1 the inverse is inaccurate without `cache_size=1`.

    Examples
    --------
    >>> from chainrule.distributions import TanhTransform
    >>> TanhTransform()(1.0)
    tensor(0.7616)
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return ops.tanh(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return ops.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * (math.log(2) - x - F.softplus(-2 * x))  # 1 - tanh² without cancellation


class AbsTransform(Transform):
    """y = |x|, whose pseudo-inverse is y.

    Examples
    --------
    >>> from chainrule.distributions import AbsTransform
    >>> AbsTransform()(-2.0)
    tensor(2.)
    """

    domain: Constraint = constraints.real
    codomain: Constraint = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return ops.abs(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """y = loc + scale * x.

    Parameters
    ----------
    loc, scale : Tensor or number
        The scale is not 0.
    event_dim : int, default 0
        Number of dimensions that are one value.
    cache_size : 0 or 1, default 0
        As for `Transform`.

    Examples
    --------
    >>> from chainrule.distributions import AffineTransform
    >>> AffineTransform(1.0, 2.0)(3.0)
    tensor(7.)
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc: Tensor | float = loc
        self.scale: Tensor | float = scale
        self._event_dim = event_dim
        real = constraints.real
        self.domain = constraints.independent(real, event_dim) if event_dim else real
        self.codomain = self.domain

    @property
    def sign(self) -> Any:
        return sign_of(self.scale)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        slope = log_of(abs(self.scale)) + zeros_like(x)
        return sum_rightmost(slope, self._event_dim)

    def forward_shape(self, shape: Sequence[int]) -> Shape:
        ends = [getattr(value, "shape", ()) for value in (self.loc, self.scale)]
        return ops.broadcast_shapes(tuple(shape), *ends)

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """y = F(x), the cumulative distribution function of a distribution of numbers.

    Parameters
    ----------
    distribution : Distribution
        It has `cdf`, and for the inverse `icdf`.
    cache_size : 0 or 1, default 0
        As for `Transform`.

    Examples
    --------
    >>> from chainrule.distributions import CumulativeDistributionTransform, Normal
    >>> CumulativeDistributionTransform(Normal(0.0, 1.0))(0.0)
    tensor(0.5000)
    """

    bijective = True
    codomain: Constraint = constraints.unit_interval

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution
        self.domain = distribution.support

    @property
    def sign(self) -> Any:
        return 1

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


# --- functions of vectors and matrices ------------------------------------------------------------


class SoftmaxTransform(Transform):
    """y = softmax(x) of vectors, which is no bijection: x + c gives the same y.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.distributions.SoftmaxTransform()(cr.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain: Constraint = constraints.real_vector
    codomain: Constraint = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return ops.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return ops.log(y)


class StickBreakingTransform(Transform):
    """Map n numbers to n + 1 shares of a stick, from which pieces are broken off one by one.

    Piece i is the share sigmoid(xᵢ - log(n - i + 1)) of what is left, i from 1, so that zeros give
    equal pieces.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.distributions.StickBreakingTransform()(cr.zeros(3))
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    domain: Constraint = constraints.real_vector
    codomain: Constraint = constraints.simplex
    bijective = True

    def _shares(self, x: Tensor) -> Tensor:
        """Return the logits of the share of each piece."""
        left = arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device)
        return x - ops.log(left)

    def _call(self, x: Tensor) -> Tensor:
        logits = self._shares(x)
        log_left = ops.cumsum(-F.softplus(logits), -1)
        before = F.pad(log_left, [1, 0])
        return ops.exp(before + F.pad(-F.softplus(-logits), [0, 1]))

    def _inverse(self, y: Tensor) -> Tensor:
        pieces = y[..., :-1]
        left = ops.clamp(1 - ops.cumsum(pieces, -1), min=float(ops.finfo(y.dtype).tiny))
        return ops.log(pieces) - ops.log(left) - self._shares(zeros_like(pieces))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # dyᵢ/dxᵢ = yᵢ (1 - sigmoid) of a lower-triangular Jacobian
        return ops.sum(ops.log(y[..., :-1]) - F.softplus(self._shares(x)), -1)

    def forward_shape(self, shape: Sequence[int]) -> Shape:
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Sequence[int]) -> Shape:
        return (*shape[:-1], shape[-1] - 1)


class LowerCholeskyTransform(Transform):
    """Map square matrices to lower-triangular ones with positive diagonal, its exponential.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.distributions.LowerCholeskyTransform()(cr.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain: Constraint = constraints.independent(constraints.real, 2)
    codomain: Constraint = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return ops.tril(x, -1) + ops.diag_embed(ops.exp(ops.diagonal(x, 0, -2, -1)))

    def _inverse(self, y: Tensor) -> Tensor:
        return ops.tril(y, -1) + ops.diag_embed(ops.log(ops.diagonal(y, 0, -2, -1)))


class PositiveDefiniteTransform(Transform):
    """Map square matrices to positive-definite ones: L Lᵀ of those of `LowerCholeskyTransform`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.distributions.PositiveDefiniteTransform()(cr.zeros(1, 1))
    tensor([[1.]])
    """

    domain: Constraint = constraints.independent(constraints.real, 2)
    codomain: Constraint = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return ops.matmul(factor, factor.mT)

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """Map d (d - 1) / 2 numbers to the Cholesky factor of a correlation matrix of d rows.

    Row by row, r = tanh(x) are partial correlations: an element is r times the length that the
    elements before it leave of a unit row [1]_.

    References
    ----------
    .. [1] D. Lewandowski, D. Kurowicka, H. Joe, J. Multivariate Anal. 100(9), 2009, 1989–2001.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.distributions.CorrCholeskyTransform()(cr.zeros(1))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain: Constraint = constraints.real_vector
    codomain: Constraint = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = float(ops.finfo(x.dtype).eps)
        r = _lower(ops.clamp(ops.tanh(x), -1 + eps, 1 - eps))
        log_left = 0.5 * ops.cumsum(ops.log1p(-ops.square(r)), -1)
        ones = eye(r.shape[-1], dtype=x.dtype, device=x.device)
        return (r + ones) * ops.exp(F.pad(log_left[..., :-1], [1, 0]))

    def _inverse(self, y: Tensor) -> Tensor:
        left = 1 - ops.cumsum(ops.square(y), -1)
        before = ops.sqrt(ops.clamp(F.pad(left[..., :-1], [1, 0], value=1.0), min=1e-300))
        rows, columns = _below_diagonal(y.shape[-1])
        return ops.atanh((y / before)[..., rows, columns])

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # of element (i, j): the length left before it, and 1 - tanh²
        left = F.pad(1 - ops.cumsum(ops.square(y), -1)[..., :-1], [1, 0], value=1.0)
        rows, columns = _below_diagonal(y.shape[-1])
        lengths = 0.5 * ops.log(left[..., rows, columns])
        return ops.sum(lengths + TanhTransform().log_abs_det_jacobian(x, x), -1)

    def forward_shape(self, shape: Sequence[int]) -> Shape:
        number = shape[-1]
        size = (1 + math.isqrt(1 + 8 * number)) // 2
        if size * (size - 1) // 2 != number:
            raise ShapeError(
                f"CorrCholeskyTransform: expected d (d - 1) / 2 numbers for a whole d, got {number}"
            )
        return (*shape[:-1], size, size)

    def inverse_shape(self, shape: Sequence[int]) -> Shape:
        if shape[-2] != shape[-1]:
            raise ShapeError(f"CorrCholeskyTransform: expected square matrices, got {list(shape)}")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


def _below_diagonal(size: int) -> tuple[list[int], list[int]]:
    """Return the rows and the columns of the places below the diagonal, row by row."""
    places = [(i, j) for i in range(size) for j in range(i)]
    return [i for i, _ in places], [j for _, j in places]


def _lower(x: Tensor) -> Tensor:
    """Return matrices with the numbers of vectors below the diagonal, else 0."""
    size = CorrCholeskyTransform().forward_shape(x.shape)[-1]
    places = [i * (i - 1) // 2 + j if j < i else -1 for i in range(size) for j in range(size)]
    return F.pad(x, [0, 1])[..., places].reshape(*x.shape[:-1], size, size)


class ReshapeTransform(Transform):
    """Reshape the rightmost dimensions.

    Parameters
    ----------
    in_shape, out_shape : tuple of int
        Of equally many elements.
    cache_size : 0 or 1, default 0
        As for `Transform`.

    Raises
    ------
    ShapeError
        If the numbers of elements differ.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.distributions.ReshapeTransform((4,), (2, 2))(cr.zeros(3, 4)).shape
    (3, 2, 2)
    """

    bijective = True

    def __init__(
        self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(in_shape) != math.prod(out_shape):
            raise ShapeError(
                f"in_shape {in_shape} and out_shape {out_shape} have different numbers of elements"
            )
        self.domain = constraints.independent(constraints.real, len(self.in_shape))
        self.codomain = constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        batch = x.shape[: x.ndim - len(self.in_shape)]
        return zeros(batch, dtype=x.dtype, device=x.device)

    def forward_shape(self, shape: Sequence[int]) -> Shape:
        return self._replaced(tuple(shape), self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> Shape:
        return self._replaced(tuple(shape), self.out_shape, self.in_shape)

    @staticmethod
    def _replaced(shape: Shape, before: Shape, after: Shape) -> Shape:
        cut = len(shape) - len(before)
        if cut < 0 or shape[cut:] != before:
            raise ShapeError(f"expected the last dimensions {list(before)}, got {list(shape)}")
        return shape[:cut] + after
