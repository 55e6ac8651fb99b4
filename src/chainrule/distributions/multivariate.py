"""Distributions of vectors and matrices: normal, Wishart, correlations."""

from __future__ import annotations

import math

from chainrule import linalg, ops
from chainrule.arguments import Operand, floating
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.creation import arange, eye
from chainrule.distributions import constraints, draws
from chainrule.distributions.distribution import (
    LOG_2PI,
    Distribution,
    Draws,
    ExponentialFamily,
    broadcast_all,
    lazy_property,
)
from chainrule.distributions.unit_interval import Beta
from chainrule.errors import ArgumentError, ShapeError

__all__ = ["LKJCholesky", "LowRankMultivariateNormal", "MultivariateNormal", "Wishart"]


def squared_distance(factor: Tensor, x: Tensor) -> Tensor:
    """Return |L⁻¹ x|² of vectors, for lower-triangular L."""
    solved = linalg.solve_triangular(factor, x.unsqueeze(-1), upper=False)
    return ops.sum(ops.square(solved), (-2, -1))


def half_log_det(factor: Tensor) -> Tensor:
    """Return log det L of lower-triangular L with positive diagonal."""
    return ops.sum(ops.log(ops.diagonal(factor, 0, -2, -1)), -1)


def factor_of_inverse(matrix: Tensor) -> Tensor:
    """Return the Cholesky factor of the inverse of a positive-definite matrix.

    With the rows and columns in reverse order, M = U Uᵀ for an upper-triangular U, and the factor
    of the inverse is U⁻ᵀ.
    """
    upper = ops.flip(linalg.cholesky(ops.flip(matrix, (-2, -1))), (-2, -1))
    ones = eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return linalg.solve_triangular(upper.mT, ones, upper=False)


class _Covariance(Distribution):
    """A distribution with a covariance matrix, given as such, as its inverse, or as a factor."""

    _factor: Tensor  # lower-triangular, without the dimensions that `expand` adds

    def _one_matrix(self, **given: Operand | None) -> tuple[str, Tensor]:
        """Return the name and the value of the one matrix that was given."""
        named = [(name, value) for name, value in given.items() if value is not None]
        if len(named) != 1:
            raise ArgumentError(
                f"{type(self).__name__}: Exactly one of covariance_matrix or precision_matrix or "
                f"scale_tril may be specified, got {[name for name, _ in named] or 'none'}"
            )
        name, value = named[0][0], floating(named[0][1])
        if value.ndim < 2:
            raise ShapeError(
                f"{type(self).__name__}: {name} must be at least two-dimensional, with optional "
                f"leading batch dimensions, got the shape {list(value.shape)}"
            )
        return name, value

    @staticmethod
    def _factor_of(name: str, matrix: Tensor) -> Tensor:
        """Return the lower-triangular factor of the covariance matrix."""
        if name == "scale_tril":
            return matrix
        return linalg.cholesky(matrix) if name[0] == "c" else factor_of_inverse(matrix)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower-triangular factor of the covariance matrix."""
        return ops.broadcast_to(self._factor, self._matrix_shape())

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        found = ops.matmul(self._factor, self._factor.mT)
        return ops.broadcast_to(found, self._matrix_shape())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        return ops.broadcast_to(linalg.cholesky_inverse(self._factor), self._matrix_shape())

    def _matrix_shape(self) -> tuple[int, ...]:
        return (*self.batch_shape, *self.event_shape[-1:], *self.event_shape[-1:])


class MultivariateNormal(_Covariance):
    """The normal distribution of vectors.

    Parameters
    ----------
    loc : Tensor, shape (…, n)
        Mean.
    covariance_matrix, precision_matrix, scale_tril : Tensor, shape (…, n, n)
        One of: the covariance matrix, its inverse, its lower-triangular factor.
    validate_args : bool, optional
        As for `Distribution`.

    Raises
    ------
    ArgumentError
        If not exactly one of the matrices is given.
    ShapeError
        If `loc` is a number, or the matrix a vector.

    Examples
    --------
    >>> import chainrule as cr
    >>> m = cr.distributions.MultivariateNormal(cr.zeros(2), cr.eye(2))
    >>> m.log_prob(cr.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    loc: Tensor

    def __init__(
        self,
        loc: Operand,
        covariance_matrix: Operand | None = None,
        precision_matrix: Operand | None = None,
        scale_tril: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        loc = floating(loc)
        if loc.ndim < 1:
            raise ShapeError("loc must be at least one-dimensional.")
        name, matrix = self._one_matrix(
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        batch = ops.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.loc = ops.broadcast_to(loc, (*batch, *loc.shape[-1:]))
        self.__dict__[name] = ops.broadcast_to(matrix, (*batch, *matrix.shape[-2:]))
        super().__init__(batch, loc.shape[-1:], validate_args)
        self._factor = self._factor_of(name, matrix)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        found = ops.sum(ops.square(self._factor), -1)
        return ops.broadcast_to(found, self._extended_shape())

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        drawn = draws.standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + ops.matmul(self._factor, drawn.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Operand) -> Tensor:
        distance = squared_distance(self._factor, self._value(value) - self.loc)
        norm = 0.5 * self.event_shape[0] * LOG_2PI + half_log_det(self._factor)
        return -0.5 * distance - norm

    def entropy(self) -> Tensor:
        found = 0.5 * self.event_shape[0] * (1 + LOG_2PI) + half_log_det(self._factor)
        return ops.broadcast_to(found, self.batch_shape)


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors with covariance matrix W Wᵀ + diag(D).

    The determinant and the inverse are those of matrices of r rows [1]_.

    Parameters
    ----------
    loc : Tensor, shape (…, n)
        Mean.
    cov_factor : Tensor, shape (…, n, r)
        W.
    cov_diag : Tensor, shape (…, n)
        D, positive.
    validate_args : bool, optional
        As for `Distribution`.

    Raises
    ------
    ShapeError
        If the shapes don't fit each other.

    References
    ----------
    .. [1] M. A. Woodbury, Inverting modified matrices, Princeton 1950.

    Examples
    --------
    >>> import chainrule as cr
    >>> m = cr.distributions.LowRankMultivariateNormal(cr.zeros(2), cr.ones(2, 1), cr.ones(2))
    >>> m.covariance_matrix
    tensor([[2., 1.],
            [1., 2.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    loc: Tensor
    cov_factor: Tensor
    cov_diag: Tensor

    def __init__(
        self,
        loc: Operand,
        cov_factor: Operand,
        cov_diag: Operand,
        validate_args: bool | None = None,
    ) -> None:
        loc, factor, diag = map(floating, (loc, cov_factor, cov_diag))
        event = loc.shape[-1:]
        if not event or factor.shape[-2:-1] != event or diag.shape[-1:] != event:
            raise ShapeError(
                "LowRankMultivariateNormal: expected loc (…, n), cov_factor (…, n, r) and cov_diag "
                f"(…, n), got {list(loc.shape)}, {list(factor.shape)}, {list(diag.shape)}"
            )
        batch = ops.broadcast_shapes(loc.shape[:-1], factor.shape[:-2], diag.shape[:-1])
        self.loc = ops.broadcast_to(loc, (*batch, *event))
        self.cov_factor = ops.broadcast_to(factor, (*batch, *factor.shape[-2:]))
        self.cov_diag = ops.broadcast_to(diag, (*batch, *event))
        super().__init__(batch, event, validate_args)

    def _capacitance_tril(self) -> Tensor:
        """Return the Cholesky factor of I + Wᵀ D⁻¹ W."""
        return linalg.cholesky(self._capacitance())

    def _capacitance(self) -> Tensor:
        scaled = self.cov_factor / self.cov_diag.unsqueeze(-1)
        number = self.cov_factor.shape[-1]
        ones = eye(number, dtype=self.loc.dtype, device=self.loc.device)
        return ones + ops.matmul(self.cov_factor.mT, scaled)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return ops.sum(ops.square(self.cov_factor), -1) + self.cov_diag

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        return ops.matmul(self.cov_factor, self.cov_factor.mT) + ops.diag_embed(self.cov_diag)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower-triangular factor of the covariance matrix."""
        return linalg.cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix: D⁻¹ - Aᵀ A, A = L⁻¹ Wᵀ D⁻¹."""
        scaled = (self.cov_factor / self.cov_diag.unsqueeze(-1)).mT
        a = linalg.solve_triangular(self._capacitance_tril(), scaled, upper=False)
        return ops.diag_embed(1 / self.cov_diag) - ops.matmul(a.mT, a)

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        short = draws.standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc)
        long = draws.standard_normal(shape, self.loc)
        along = ops.matmul(self.cov_factor, short.unsqueeze(-1)).squeeze(-1)
        return self.loc + along + ops.sqrt(self.cov_diag) * long

    def squared_distance(self, x: Tensor) -> Tensor:
        """Return xᵀ Σ⁻¹ x."""
        inner = ops.matmul(self.cov_factor.mT, (x / self.cov_diag).unsqueeze(-1)).squeeze(-1)
        direct = ops.sum(ops.square(x) / self.cov_diag, -1)
        return direct - squared_distance(self._capacitance_tril(), inner)

    def half_log_det(self) -> Tensor:
        """Return half of the logarithm of the determinant of the covariance matrix."""
        inner = half_log_det(self._capacitance_tril())
        return inner + 0.5 * ops.sum(ops.log(self.cov_diag), -1)

    def log_prob(self, value: Operand) -> Tensor:
        distance = self.squared_distance(self._value(value) - self.loc)
        return -0.5 * (self.event_shape[0] * LOG_2PI + distance) - self.half_log_det()

    def entropy(self) -> Tensor:
        return 0.5 * self.event_shape[0] * (1 + LOG_2PI) + self.half_log_det()


class Wishart(_Covariance, ExponentialFamily):
    """The Wishart distribution of sums of `df` outer products of normal vectors.

    Parameters
    ----------
    df : Tensor or number
        Degrees of freedom, more than n - 1.
    covariance_matrix, precision_matrix, scale_tril : Tensor, shape (…, n, n)
        One of: the covariance matrix of the vectors, its inverse, its lower-triangular factor.
    validate_args : bool, optional
        As for `Distribution`.

    Raises
    ------
    ArgumentError
        If not exactly one of the matrices is given.
    ShapeError
        If it is a vector.

    Notes
    -----
    A draw is L A Aᵀ Lᵀ, where A has normal numbers below the diagonal and roots of χ² draws on it
    [1]_.

    References
    ----------
    .. [1] M. S. Bartlett, Proc. R. Soc. Edinb. 53, 1933, 260–283.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.distributions.Wishart(3.0, cr.eye(2)).mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    df: Tensor

    def __init__(
        self,
        df: Operand,
        covariance_matrix: Operand | None = None,
        precision_matrix: Operand | None = None,
        scale_tril: Operand | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = self._one_matrix(
            covariance_matrix=covariance_matrix,
            precision_matrix=precision_matrix,
            scale_tril=scale_tril,
        )
        (df, _) = broadcast_all(df, matrix[..., 0, 0])
        batch, event = df.shape, matrix.shape[-2:]
        self.df, self._event_shape = df, event
        self.__dict__[name] = ops.broadcast_to(matrix, (*batch, *event))
        super().__init__(batch, event, validate_args)
        self._factor = self._factor_of(name, matrix)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The constraint of each parameter."""
        matrices = dict(list(MultivariateNormal.arg_constraints.items())[1:])
        return {"df": constraints.greater_than(self._event_shape[-1] - 1), **matrices}

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.event_shape[-1] - 1
        factor = ops.where(factor > 0, factor, math.nan)
        return factor[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = ops.diagonal(v, 0, -2, -1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df[..., None, None] * (ops.square(v) + products)

    def _halves(self, df: Tensor) -> Tensor:
        """Return (df - i) / 2 for the rows i."""
        rows = arange(self.event_shape[-1], dtype=df.dtype, device=df.device)
        return 0.5 * (df.unsqueeze(-1) - rows)

    def rsample(self, sample_shape: Draws = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        halves = ops.broadcast_to(self._halves(self.df), shape[:-1])
        diagonal = ops.exp(0.5 * (math.log(2) + draws.log_standard_gamma(halves)))
        below = ops.tril(draws.standard_normal(shape, self.df), -1)
        product = ops.matmul(self._factor, below + ops.diag_embed(diagonal))
        return ops.matmul(product, product.mT)

    def log_prob(self, value: Operand) -> Tensor:
        value, n = self._value(value), self.event_shape[-1]
        factor = linalg.cholesky(value)
        solved = linalg.solve_triangular(self._factor, factor, upper=False)
        trace = ops.sum(ops.square(solved), (-2, -1))
        return (
            (self.df - n - 1) * half_log_det(factor)
            - 0.5 * trace
            - self.df * (half_log_det(self._factor) + 0.5 * n * math.log(2))
            - ops.mvlgamma(0.5 * self.df, n)
        )

    def entropy(self) -> Tensor:
        n = self.event_shape[-1]
        slope = ops.sum(ops.digamma(self._halves(self.df)), -1)
        return (
            (n + 1) * (half_log_det(self._factor) + 0.5 * n * math.log(2))
            + ops.mvlgamma(0.5 * self.df, n)
            - 0.5 * (self.df - n - 1) * slope
            + 0.5 * n * self.df
        )


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices of density proportional to det^(concentration - 1).

    Parameters
    ----------
    dim : int
        Number of rows, 2 or more.
    concentration : Tensor or number, default 1.0
        Positive; 1 is the uniform distribution of correlation matrices.
    validate_args : bool, optional
        As for `Distribution`.

    Raises
    ------
    ArgumentError
        If `dim` is less than 2.

    Notes
    -----
    A draw is made row by row, by the onion method of [1]_.

    References
    ----------
    .. [1] D. Lewandowski, D. Kurowicka, H. Joe, J. Multivariate Anal. 100(9), 2009, 1989–2001.

    Examples
    --------
    >>> import chainrule as cr
    >>> factor = cr.distributions.LKJCholesky(3, 0.5).sample()
    >>> bool(((factor @ factor.mT).diagonal() - 1).abs().max() < 1e-6)
    True
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    concentration: Tensor

    def __init__(
        self, dim: int, concentration: Operand = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ArgumentError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        self._init(validate_args, (dim, dim), concentration=concentration)

    def sample(self, sample_shape: Draws = ()) -> Tensor:
        """Return draws: each row is a direction, and the square of its length a beta draw."""
        with no_grad():
            rows = arange(self.dim, dtype=self._like.dtype, device=self._like.device)
            rows = ops.clamp(rows - 1, min=0)
            a = self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 2 - rows)
            squares = Beta(rows + 0.5, a, validate_args=False).sample(sample_shape)
            shape = self._extended_shape(sample_shape)
            drawn = ops.tril(draws.standard_normal(shape, self._like), -1)
            lengths = ops.sqrt(ops.sum(ops.square(drawn), -1, keepdim=True))
            drawn = drawn / ops.where(lengths == 0, 1.0, lengths)
            below = ops.sqrt(squares).unsqueeze(-1) * drawn
            left = 1 - ops.sum(ops.square(below), -1)
            diagonal = ops.sqrt(ops.clamp(left, min=float(ops.finfo(left.dtype).tiny)))
            return below + ops.diag_embed(diagonal)

    def log_prob(self, value: Operand) -> Tensor:
        logs = ops.log(ops.diagonal(self._value(value), 0, -2, -1)[..., 1:])
        number, eta = self.dim - 1, self.concentration
        left = arange(number - 1, -1, -1, dtype=eta.dtype, device=eta.device)
        powers = 2 * (eta - 1).unsqueeze(-1) + left
        a = eta + 0.5 * number
        norm = 0.5 * number * math.log(math.pi) + ops.mvlgamma(a - 0.5, number)
        return ops.sum(powers * logs, -1) - norm + number * ops.lgamma(a)
