"""Rows of activations. NumPy has none: their definitions stand in for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.row import REAL, Situation, Strided, kink, row, situation
from conformance.situations import recorded


def _with(**settings: Any) -> tuple[Situation, ...]:
    return (
        situation("plain", (2, 3), **settings),
        situation("0-d", (), **settings),
        situation("size-0", (2, 0), **settings),
        situation("non-contiguous", Strided((2, 3)), **settings),
    )


def _torch(name: str) -> Any:
    return lambda torch, x, **settings: getattr(torch.nn.functional, name)(x, *settings.values())


def _torch_elu(torch: Any, x: Any, alpha: float, scale: float, rate: float) -> Any:
    return torch.ops.aten.elu(x, alpha, scale, rate)


def _elu(np: Any, x: Any, alpha: float, scale: float, rate: float) -> Any:
    return scale * np.where(x > 0, x, alpha * np.expm1(rate * np.where(x > 0, 0, x)))


def _softplus(np: Any, x: Any, beta: float, threshold: float) -> Any:
    return np.where(beta * x > threshold, x, np.log1p(np.exp(beta * x)) / beta)


def _normal_cdf(np: Any, x: Any) -> Any:
    import scipy.special

    return scipy.special.ndtr(x)


def _gelu_tanh(np: Any, x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3)))


ROWS = (
    row(
        "hardtanh",
        (
            *_with(low=-0.4, high=0.5),
            kink("kinks", [-2, -1, 0, 2, 3, np.nan], low=-1.0, high=2.0),
        ),
        dtypes=REAL,
        cr=recorded("hardtanh"),
        np=lambda np, x, low, high: np.clip(x, low, high),
        torch=_torch("hardtanh"),
    ),
    row(
        "leaky_relu",
        (
            *_with(slope=0.25),
            situation("steep", (2, 3), slope=1.5),
            situation("falling", (2, 3), slope=-0.5),
            kink("kinks", [-1, 0, 2, np.nan], slope=0.25),
            kink("kinks-steep", [-1, 0, 2, np.nan], slope=1.5),
            kink("flat", [-1, 0, 2, np.inf, np.nan], slope=0.0),
        ),
        dtypes=REAL,
        cr=recorded("leaky_relu"),
        np=lambda np, x, slope: np.where(x > 0, x, slope * np.where(x > 0, 0, x)),
        torch=_torch("leaky_relu"),
    ),
    row(
        "elu",
        (
            *_with(alpha=1.0, scale=1.0, rate=1.0),
            situation("scaled", (2, 3), alpha=1.5, scale=1.25, rate=0.5),
            kink("kinks", [-1, 0, 2, np.nan], alpha=1.5, scale=1.25, rate=0.5),
        ),
        dtypes=REAL,
        cr=recorded("elu"),
        np=_elu,
        torch=_torch_elu,
    ),
    row(
        "hardswish",
        (*_with(), situation("outside", [-5, -4, 4, 5]), kink("kinks", [-3, 3, np.nan])),
        (-2, 2),
        dtypes=REAL,
        cr=recorded("hardswish"),
        np=lambda np, x: x * np.clip(x + 3, 0, 6) / 6,
        torch=None,  # its backward says 1 of nan, and has no second derivative
    ),
    row(
        "softplus",
        (
            *_with(beta=1.0, threshold=20.0),
            situation("sharp", (2, 3), beta=3.0, threshold=20.0),
            situation("linear", [0.5, 2, 3], beta=2.0, threshold=3.0),
            situation("early-linear", [-0.5, 0.1, 0.5], beta=2.0, threshold=0.4),
            situation("far", [-30, 15, 50], beta=1.0, threshold=20.0),
        ),
        (-3, 3),
        dtypes=REAL,
        cr=recorded("softplus"),
        np=_softplus,
        torch=_torch("softplus"),
    ),
    row(
        "logsigmoid",
        (*_with(), situation("far", [-30, 15, 30])),
        (-3, 3),
        dtypes=REAL,
        cr=recorded("logsigmoid"),
        np=lambda np, x: -np.log1p(np.exp(-x)),
        torch=_torch("logsigmoid"),
    ),
    row(
        "softsign",
        (*_with(), kink("kinks", [-1, 0, 2])),
        (0.2, 2),
        dtypes=REAL,
        cr=recorded("softsign"),
        np=lambda np, x: x / (1 + np.abs(x)),
        torch=_torch("softsign"),
    ),
    row(
        "mish",
        _with(),
        (-3, 3),
        dtypes=REAL,
        cr=recorded("mish"),
        np=lambda np, x: x * np.tanh(np.log1p(np.exp(x))),
        torch=_torch("mish"),
    ),
    row(
        "gelu",
        _with(),
        (-3, 3),
        dtypes=REAL,
        cr=recorded("gelu"),
        np=lambda np, x: (x * _normal_cdf(np, x), _normal_cdf(np, x)),
        torch=lambda torch, x: (torch.nn.functional.gelu(x), torch.special.ndtr(x)),
    ),
    row(
        "gelu_tanh",
        _with(),
        (-3, 3),
        dtypes=REAL,
        cr=recorded("gelu_tanh"),
        np=_gelu_tanh,
        torch=lambda torch, x: torch.nn.functional.gelu(x, approximate="tanh"),
    ),
)
