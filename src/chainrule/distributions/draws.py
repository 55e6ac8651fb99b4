"""Random numbers in the forms that distributions need, and the implicit derivatives of draws.

The derivative of a draw z with respect to a parameter θ is -(∂F/∂θ) / (∂F/∂z), where F is the
cumulative distribution function: F of the draw is the same random number for all θ [1]_.

.. [1] M. Figurnov, S. Mohamed, A. Mnih, Implicit reparameterization gradients, NeurIPS 2018.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from chainrule import ops
from chainrule.arguments import cast, leaf
from chainrule.autograd.function import autograd_function
from chainrule.autograd.tensor import Tensor
from chainrule.backend import namespace
from chainrule.creation import tensor
from chainrule.primitives import special as rules
from chainrule.random import rand, randn
from chainrule.random.draw import draw, values_of

__all__ = ["log_standard_gamma", "noise", "standard_normal", "uniform", "von_mises_angle"]


def standard_normal(shape: Sequence[int], like: Tensor) -> Tensor:
    """Return draws of the standard normal distribution."""
    return randn(tuple(shape), dtype=like.dtype, device=like.device)


def uniform(shape: Sequence[int], like: Tensor) -> Tensor:
    """Return numbers between 0 and 1, of which neither occurs."""
    drawn = rand(tuple(shape), dtype=like.dtype, device=like.device)
    return ops.clamp(drawn, min=float(ops.finfo(like.dtype).tiny))


def noise(method: str, shape: Sequence[int], like: Tensor) -> Tensor:
    """Return draws by a method of NumPy's generator that needs no parameters."""
    return _leaf(draw(method, None, size=tuple(shape)), like)


def _leaf(drawn: Any, like: Tensor) -> Tensor:
    drawn = np.asarray(drawn) if isinstance(drawn, float) else drawn  # of shape ()
    return leaf(namespace(drawn).asarray(drawn).astype(like.dtype), like.device)


# --- gamma ----------------------------------------------------------------------------------------


@autograd_function
def log_standard_gamma(ctx: Any, concentration: Tensor) -> Tensor:
    """Return the logarithm of a draw of the gamma distribution of scale 1 for each element.

    Its logarithm doesn't underflow: a draw for a is one for a + 1, times u^(1/a) for a uniform u
    (G. Marsaglia, W. W. Tsang, ACM Trans. Math. Softw. 26(3), 2000).
    """
    values = values_of(concentration).astype(np.float64)
    drawn = np.log(draw("standard_gamma", None, values + 1))
    drawn = drawn - draw("standard_exponential", None, values.shape) / values
    out = _leaf(drawn, concentration)
    ctx.save_for_backward(concentration=concentration, out=out)
    return out


def _log_gamma_slope(ctx: Any) -> Tensor:
    """Return the derivative of a log-draw l by a: where z = exp(l) is tiny, F is z^a / Γ(a + 1)."""
    saved = ctx.saved_variables
    a, log_z = cast(saved.concentration, np.float64), cast(saved.out, np.float64)
    is_tiny = log_z < -60
    safe = ops.where(is_tiny, 0.0, log_z)
    z = ops.exp(safe)
    moment = rules.gammainc_moment.apply(a, z, order=1)
    usual = -moment * ops.exp(z + ops.lgamma(a) - a * safe)
    slope = ops.where(is_tiny, (ops.digamma(a + 1) - log_z) / a, usual)
    return cast(slope, saved.concentration.dtype)


@log_standard_gamma.backward
def _(ctx: Any, grad_output: Tensor) -> Tensor:
    return grad_output * _log_gamma_slope(ctx)


@log_standard_gamma.jvp
def _(ctx: Any, tangent: Tensor) -> Tensor:
    return tangent * _log_gamma_slope(ctx)


# --- von Mises ------------------------------------------------------------------------------------

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)


@autograd_function
def von_mises_angle(ctx: Any, concentration: Tensor) -> Tensor:
    """Return an angle of the von Mises distribution around 0 for each element, from -π to π."""
    values = values_of(concentration).astype(np.float64)
    out = _leaf(draw("vonmises", None, 0.0, values), concentration)
    ctx.save_for_backward(concentration=concentration, out=out)
    return out


def _von_mises_slope(ctx: Any) -> Tensor:
    """Return dz/dκ = -∫ (cos t - I₁/I₀) exp(κ (cos t - cos z)) dt, from -π to z.

    By symmetry z is negative. The integrand decays below z over a length of 1/√κ, so that the
    integral, by Gauss and Legendre's rule, is over fifteen of these.
    """
    saved = ctx.saved_variables
    kappa, z = cast(saved.concentration, np.float64), cast(saved.out, np.float64)
    side = ops.where(z.detach() > 0, -1.0, 1.0)
    end = side * z
    length = ops.minimum(end + math.pi, 15 / ops.sqrt(kappa)).unsqueeze(-1)
    t = end.unsqueeze(-1) - length * tensor((1 - _NODES) / 2, device=z.device)
    k = kappa.unsqueeze(-1)
    mean = rules.bessel_ie.apply(k, order=1) / rules.bessel_ie.apply(k, order=0)
    # cos t - cos z without cancellation
    fall = -2 * ops.sin((t + end.unsqueeze(-1)) / 2) * ops.sin((t - end.unsqueeze(-1)) / 2)
    part = (ops.cos(t) - mean) * ops.exp(k * fall)
    weights = tensor(_WEIGHTS / 2, device=z.device)
    slope = -side * ops.sum(part * weights * length, -1)
    return cast(slope, saved.concentration.dtype)


@von_mises_angle.backward
def _(ctx: Any, grad_output: Tensor) -> Tensor:
    return grad_output * _von_mises_slope(ctx)


@von_mises_angle.jvp
def _(ctx: Any, tangent: Tensor) -> Tensor:
    return tangent * _von_mises_slope(ctx)
