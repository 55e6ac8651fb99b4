"""The base class of transforms, and transforms made of others."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

from chainrule import ops
from chainrule.arguments import Operand, floating
from chainrule.autograd.tensor import Tensor
from chainrule.creation import zeros_like
from chainrule.distributions import constraints
from chainrule.distributions.constraints import Constraint
from chainrule.errors import ArgumentError, MissingRuleError

__all__ = [
    "CatTransform",
    "ComposeTransform",
    "IndependentTransform",
    "StackTransform",
    "Transform",
    "identity_transform",
]

Shape = tuple[int, ...]


def sum_rightmost(value: Tensor, number: int) -> Tensor:
    """Sum over the last dimensions."""
    return ops.sum(value, tuple(range(-number, 0))) if number else value


def sign_of(x: Any) -> Any:
    """Return the sign of a tensor, or of a number as an int."""
    return ops.sign(x) if isinstance(x, Tensor) else (x > 0) - (x < 0)


def log_of(x: Any) -> Any:
    """Return the logarithm of a tensor, or of a number in double precision."""
    return ops.log(x) if isinstance(x, Tensor) else math.log(x)


class Transform:
    """A function y = f(x), called as such; `inv` is its inverse.

    A subclass defines `domain`, `codomain`, `_call`, `_inverse` and, if it is `bijective`,
    `log_abs_det_jacobian`, and `sign` if it is monotone.

    Parameters
    ----------
    cache_size : 0 or 1, default 0
        With 1, the inverse of the last result is the tensor it was computed from: exact where the
        inverse isn't, such as that of tanh near 1.

    Raises
    ------
    ArgumentError
        For another `cache_size`.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.distributions import TanhTransform
    >>> squash, x = TanhTransform(cache_size=1), cr.tensor(50.0)
    >>> squash.inv(squash(x))
    tensor(50.)
    """

    domain: Constraint
    codomain: Constraint
    bijective: bool = False

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ArgumentError(f"cache_size must be 0 or 1, got {cache_size}")
        self._cache_size = cache_size
        self._last: tuple[Any, Any] = (None, None)

    @property
    def event_dim(self) -> int:
        """Number of dimensions that are transformed as one, where both ends have the same."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ArgumentError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse: a Transform."""
        return _InverseTransform(self)

    @property
    def sign(self) -> Any:
        """1 of an increasing, -1 of a decreasing function."""
        raise MissingRuleError(f"{type(self).__name__} isn't monotone: it has no sign")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform with another cache."""
        if cache_size == self._cache_size:
            return self
        new: Transform = object.__new__(type(self))
        new.__dict__.update(vars(self), _cache_size=cache_size, _last=(None, None))
        return new

    def __call__(self, x: Operand) -> Tensor:
        """Return f(x)."""
        x = floating(x)
        if not self._cache_size:
            return self._call(x)
        known_x, known_y = self._last
        y: Tensor = known_y if x is known_x else self._call(x)
        self._last = x, y
        return y

    def _inv_call(self, y: Operand) -> Tensor:
        y = floating(y)
        if not self._cache_size:
            return self._inverse(y)
        known_x, known_y = self._last
        x: Tensor = known_x if y is known_y else self._inverse(y)
        self._last = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise MissingRuleError(f"{type(self).__name__} has no _call: define _call(self, x)")

    def _inverse(self, y: Tensor) -> Tensor:
        raise MissingRuleError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log |det dy/dx| for arguments and their results."""
        raise MissingRuleError(f"{type(self).__name__} has no Jacobian determinant")

    def forward_shape(self, shape: Sequence[int]) -> Shape:
        """Return the shape of the result for arguments of a shape."""
        return tuple(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Shape:
        """Return the shape of the arguments for results of a shape."""
        return tuple(shape)

    def _settings(self) -> dict[str, Any]:
        ends = ("domain", "codomain", "bijective")  # they follow from the others
        return {name: x for name, x in vars(self).items() if name[0] != "_" and name not in ends}

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        theirs = other._settings()
        return all(_same(value, theirs.get(name)) for name, value in self._settings().items())

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self._settings().items())
        return f"{type(self).__name__}({settings})"


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return a is b or bool(ops.all(a == b))
    return bool(a == b)


class _InverseTransform(Transform):
    """The inverse of a transform, whose cache is that of the transform."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self.transform = transform
        self.domain, self.codomain = transform.codomain, transform.domain
        self.bijective = transform.bijective

    @property
    def inv(self) -> Transform:
        return self.transform

    @property
    def sign(self) -> Any:
        return self.transform.sign

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self.transform.with_cache(cache_size).inv

    def __call__(self, x: Operand) -> Tensor:
        return self.transform._inv_call(x)

    def _inv_call(self, y: Operand) -> Tensor:
        return self.transform(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.transform.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> Shape:
        return self.transform.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Shape:
        return self.transform.forward_shape(shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self.transform == other.transform

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"_InverseTransform({self.transform!r})"


class ComposeTransform(Transform):
    """Apply transforms one after the other.

    Parameters
    ----------
    parts : list of Transform
        The first is applied first.
    cache_size : 0 or 1, default 0
        As for `Transform`; the parts get it, too.

    Examples
    --------
    >>> from chainrule.distributions import AffineTransform, ComposeTransform, ExpTransform
    >>> ComposeTransform([AffineTransform(1.0, 2.0), ExpTransform()]).inv(1.0)
    tensor(-0.5000)
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)
        self.bijective = all(part.bijective for part in self.parts)
        first, last = (self.parts[0], self.parts[-1]) if self.parts else (None, None)
        start = first.domain if first else constraints.real
        end = last.codomain if last else constraints.real
        self.domain = _of_dims(start, self._dims(forwards=False))
        self.codomain = _of_dims(end, self._dims(forwards=True))

    def _dims(self, forwards: bool) -> int:
        """Return the number of dimensions of a value at one end: what the parts need there."""
        number = 0
        for part in self.parts if forwards else reversed(self.parts):
            near, far = part.domain.event_dim, part.codomain.event_dim
            if not forwards:
                near, far = far, near
            number = max(number - near, 0) + far
        return number

    @property
    def sign(self) -> Any:
        return reduce(operator.mul, [part.sign for part in self.parts], 1)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return ComposeTransform([part.with_cache(cache_size) for part in self.parts], cache_size)

    def __call__(self, x: Operand) -> Tensor:
        result = floating(x)
        for part in self.parts:
            result = part(result)
        return result

    def _inv_call(self, y: Operand) -> Tensor:
        result = floating(y)
        for part in reversed(self.parts):
            result = part._inv_call(result)
        return result

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        number, total = self.domain.event_dim, None
        for k, part in enumerate(self.parts):
            out = y if k + 1 == len(self.parts) else part(x)
            term = sum_rightmost(
                part.log_abs_det_jacobian(x, out), max(number - part.domain.event_dim, 0)
            )
            total = term if total is None else total + term
            number += part.codomain.event_dim - part.domain.event_dim
            x = out
        return zeros_like(x) if total is None else total

    def forward_shape(self, shape: Sequence[int]) -> Shape:
        return reduce(lambda found, part: part.forward_shape(found), self.parts, tuple(shape))

    def inverse_shape(self, shape: Sequence[int]) -> Shape:
        parts = self.parts[::-1]
        return reduce(lambda found, part: part.inverse_shape(found), parts, tuple(shape))


def _of_dims(constraint: Constraint, number: int) -> Constraint:
    """Return a constraint of values of at least so many dimensions."""
    extra = number - constraint.event_dim
    return constraints.independent(constraint, extra) if extra > 0 else constraint


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose rightmost batch dimensions are parts of one value.

    Parameters
    ----------
    base_transform : Transform
        What is applied.
    reinterpreted_batch_ndims : int
        Over so many dimensions the logarithms of the Jacobian are summed.
    cache_size : 0 or 1, default 0
        As for `Transform`.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.distributions import ExpTransform, IndependentTransform
    >>> x = cr.ones(3)
    >>> IndependentTransform(ExpTransform(), 1).log_abs_det_jacobian(x, x.exp())
    tensor(3.)
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = number = reinterpreted_batch_ndims
        self.bijective = base_transform.bijective
        self.domain = constraints.independent(base_transform.domain, number)
        self.codomain = constraints.independent(base_transform.codomain, number)

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform._inv_call(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        found = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_rightmost(found, self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> Shape:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Shape:
        return self.base_transform.inverse_shape(shape)


class CatTransform(Transform):
    """Transform the parts of a dimension of given lengths, each by its own transform.

    Parameters
    ----------
    tseq : list of Transform
        One for each part.
    dim : int, default 0
        The dimension.
    lengths : list of int, optional
        Of the parts; default: all 1.
    cache_size : 0 or 1, default 0
        As for `Transform`.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.distributions import CatTransform, ExpTransform, identity_transform
    >>> CatTransform([ExpTransform(), identity_transform], 0, [2, 1])(cr.zeros(3))
    tensor([1., 1., 0.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(cache_size)
        self.transforms = [part.with_cache(cache_size) for part in tseq]
        self.dim, self.lengths = dim, list(lengths or [1] * len(self.transforms))
        self.bijective = all(part.bijective for part in self.transforms)
        ends = [[getattr(t, end) for t in self.transforms] for end in ("domain", "codomain")]
        self.domain = constraints.cat(ends[0], dim, self.lengths)
        self.codomain = constraints.cat(ends[1], dim, self.lengths)

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        return ops.split(x, self.lengths, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._parts(x), strict=True)
        return ops.cat([t(part) for t, part in pairs], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._parts(y), strict=True)
        return ops.cat([t._inv_call(part) for t, part in pairs], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        number = self.domain.event_dim
        terms = [
            sum_rightmost(t.log_abs_det_jacobian(a, b), number - t.domain.event_dim)
            for t, a, b in zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        ]
        dim = (self.dim - x.ndim if self.dim >= 0 else self.dim) + number
        if dim < 0:
            return ops.cat(terms, dim)
        return reduce(operator.add, terms)


class StackTransform(Transform):
    """Transform the slices of a dimension, each by its own transform.

    Parameters
    ----------
    tseq : list of Transform
        One for each slice.
    dim : int, default 0
        The dimension.
    cache_size : 0 or 1, default 0
        As for `Transform`.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.distributions import ExpTransform, StackTransform, identity_transform
    >>> StackTransform([ExpTransform(), identity_transform])(cr.zeros(2))
    tensor([1., 0.])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = [part.with_cache(cache_size) for part in tseq], dim
        self.bijective = all(part.bijective for part in self.transforms)
        ends = [[getattr(t, end) for t in self.transforms] for end in ("domain", "codomain")]
        self.domain = constraints.stack(ends[0], dim)
        self.codomain = constraints.stack(ends[1], dim)

    def _call(self, x: Tensor) -> Tensor:
        pairs = zip(self.transforms, ops.unbind(x, self.dim), strict=True)
        return ops.stack([t(part) for t, part in pairs], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, ops.unbind(y, self.dim), strict=True)
        return ops.stack([t._inv_call(part) for t, part in pairs], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        slices = zip(self.transforms, ops.unbind(x, self.dim), ops.unbind(y, self.dim), strict=True)
        return ops.stack([t.log_abs_det_jacobian(a, b) for t, a, b in slices], self.dim)
