"""Fast Hankel transforms: linear in the array, whose spectrum they multiply (A. Hamilton, 2000)."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from chainrule.arguments import cast
from chainrule.autograd.tensor import Tensor, make
from chainrule.errors import MissingRuleError
from chainrule.fft import irfft, rfft
from chainrule.ops.permute import flip
from chainrule.scipy.fft.arguments import TABLE, in_double

Array = Any


@functools.lru_cache(maxsize=16)
def _factors(
    name: str, n: int, dln: float, mu: float, offset: float, bias: float
) -> tuple[Array, Array, Array]:
    """Return the factors of the array, of its spectrum and of the result.

    Those of the spectrum are what SciPy makes of an array that is 1, 0, 0 ...
    """
    steps = (np.arange(n) - (n - 1) / 2) * dln
    before, after = np.exp(-bias * steps), np.exp(-bias * (steps + offset))
    if name == "ifht":
        before, after = 1 / after, 1 / before
    unit = np.zeros(n)
    unit[0] = 1 / before[0]
    response = getattr(TABLE.scipys, name)(unit, dln, mu, offset=offset, bias=bias)
    return before, np.fft.rfft(np.flip(response / after)), after


def _transform(name: str, x: Any, dln: Any, mu: Any, offset: Any = 0.0, bias: Any = 0.0) -> Tensor:
    for setting, value in {"dln": dln, "mu": mu, "offset": offset, "bias": bias}.items():
        if isinstance(value, Tensor) and value.requires_grad:
            raise MissingRuleError(
                f"scipy.fft.{name} has no derivative with respect to {setting}: pass "
                f"{setting}.detach() if it is to count as constant"
            )
    tensor = cast(in_double(x), np.float64)  # the factors are in double precision
    n = tensor.shape[-1]
    settings = [float(value) for value in (dln, mu, offset, bias)]
    before, spectrum, after = [make(part, None) for part in _factors(name, n, *settings)]
    return flip(irfft(rfft(tensor * before) * spectrum, n), (-1,)) * after


@TABLE.function("fht", "linear")
def fht(a: Any, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Tensor:
    """Return the fast Hankel transform."""
    return _transform("fht", a, dln, mu, offset, bias)


@TABLE.function("ifht", "linear")
def ifht(A: Any, dln: float, mu: float, offset: float = 0.0, bias: float = 0.0) -> Tensor:
    """Return the inverse fast Hankel transform."""
    return _transform("ifht", A, dln, mu, offset, bias)
