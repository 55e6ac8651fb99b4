"""Attention: means of values, weighted by the match of keys and queries."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from chainrule import ops
from chainrule.arguments import Operand, constant, floating, tensor_of
from chainrule.autograd.array_proxy import as_float
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import is_known, namespace
from chainrule.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from chainrule.nn.functional.dropout import dropout
from chainrule.primitives import elementwise

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["scaled_dot_product_attention"]


def scaled_dot_product_attention(
    query: Operand,
    key: Operand,
    value: Operand,
    attn_mask: Operand | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    rng: Generator | None = None,
) -> Tensor:
    """Return softmax(query keyᵀ · scale + mask) value.

    Parameters
    ----------
    query : Tensor, shape (..., l, d)
    key : Tensor, shape (..., s, d)
    value : Tensor, shape (..., s, e)
        The leading dimensions (batch, heads) broadcast.
    attn_mask : Tensor, shape (l, s) or one that broadcasts to (..., l, s), optional
        Of bools: True where a query may attend to a key. Of floats: added to the scores.
    dropout_p : number, default 0
        The probability of each weight to become 0, as for `dropout`. It is always applied: give 0
        outside of training.
    is_causal : bool, default False
        Query i attends to the keys 0 … i only.
    scale : number, optional
        1/√d if left out.
    enable_gqa : bool, default False
        Let several heads of `query` (dimension -3) share one of `key` and `value`.
    rng : numpy.random.Generator, optional
        The generator of dropout: the one that `manual_seed` seeds if left out.

    Returns
    -------
    Tensor, shape (..., l, e)
        0 for a query that may attend to no key.

    Raises
    ------
    ShapeError, DTypeError, ArgumentError
        If shapes don't fit, `attn_mask` is of integers, or both it and `is_causal` are given.

    Notes
    -----
    All l · s weights of a head are in memory at once [1]_.

    References
    ----------
    .. [1] A. Vaswani et al., Attention is all you need, NIPS 2017.

    Examples
    --------
    >>> import chainrule as cr
    >>> q, k, v = cr.zeros(2, 4), cr.zeros(2, 4), cr.tensor([[1.0], [3.0]])
    >>> cr.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    tensor([[1.],
            [2.]])
    """
    q, k, v = floating(query), floating(key), floating(value)
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise ShapeError(
            "scaled_dot_product_attention: Expected query, key, and value to be at least 2 "
            f"dimensional, but got {q.ndim}, {k.ndim}, {v.ndim} instead"
        )
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ShapeError(
            "scaled_dot_product_attention: query (..., l, d), key (..., s, d) and value "
            f"(..., s, e) don't fit: {list(q.shape)}, {list(k.shape)} and {list(v.shape)}"
        )
    if enable_gqa:
        k, v = _shared_heads(q, k), _shared_heads(q, v)
    factor = 1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else as_float(scale)
    scores = ops.matmul(ops.multiply(q, factor), ops.swapaxes(k, -1, -2))
    scores, fully_masked = _apply_mask(scores, attn_mask, is_causal)
    weights = ops.softmax(scores, -1)
    if fully_masked is not None:
        weights = elementwise.masked.apply(weights, ~fully_masked)
    if dropout_p:
        weights = dropout(weights, dropout_p, rng=rng)
    return ops.matmul(weights, v)


def _shared_heads(q: Tensor, x: Tensor) -> Tensor:
    if q.ndim < 3 or x.ndim < 3 or q.shape[-3] % x.shape[-3]:
        raise ShapeError(
            "scaled_dot_product_attention: with enable_gqa the heads (dimension -3) of key and "
            f"value must divide those of query, but got {list(q.shape)} and {list(x.shape)}"
        )
    times = q.shape[-3] // x.shape[-3]
    if times == 1:
        return x
    expanded = ops.broadcast_to(ops.unsqueeze(x, -3), (*x.shape[:-2], times, *x.shape[-2:]))
    return ops.reshape(expanded, (*x.shape[:-3], x.shape[-3] * times, *x.shape[-2:]))


def _apply_mask(
    scores: Tensor, mask: Operand | None, is_causal: bool
) -> tuple[Tensor, np.ndarray | None]:
    """Return the masked scores (-inf), and the mask of queries without any key; None if none is."""
    if is_causal:
        if mask is not None:
            raise ArgumentError(
                "scaled_dot_product_attention: Explicit attn_mask should not be set when "
                "is_causal=True: give one of them"
            )
        mask = constant(np.tri(*scores.shape[-2:], dtype=bool), scores)
    if mask is None:
        return scores, None
    given = tensor_of(mask)
    if given.dtype.kind == "b":
        # Zero and then -inf: masked scores pass no gradient, even where they are infinite or nan.
        xp = namespace(given._array)
        hidden = xp.where(given._array, scores.dtype.type(0), scores.dtype.type(-np.inf))
        scores = ops.add(elementwise.masked.apply(scores, given), make(hidden, None))
    elif given.dtype.kind == "f":
        scores = ops.add(scores, given)
    else:
        raise DTypeError(
            "scaled_dot_product_attention: Expected attn_mask dtype to be bool or float, but got "
            f"{given.dtype}"
        )
    fully_masked = (scores._array == -np.inf).all(axis=-1, keepdims=True)
    if is_known(fully_masked) and not (namespace(fully_masked).waits or fully_masked.any()):
        return scores, None
    return ops.where(make(fully_masked, None), 0.0, scores), fully_masked


# --- choice of a kernel: `torch.nn.attention` -----------------------------------------------------


class SDPBackend(enum.IntEnum):
    """Names of kernels of PyTorch for `scaled_dot_product_attention`."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(
    backends: SDPBackend | Sequence[SDPBackend], set_priority: bool = False
) -> Iterator[None]:
    """Accept the choice of a kernel for attention, which PyTorch's scripts make.

    Parameters
    ----------
    backends : SDPBackend or sequence of them
        Without effect: there is one way to compute it.
    set_priority : bool, default False
        Without effect.

    Raises
    ------
    ArgumentTypeError
        If `backends` are others.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.nn.attention import SDPBackend, sdpa_kernel
    >>> q = cr.ones(1, 2, 4)
    >>> with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    ...     cr.nn.functional.scaled_dot_product_attention(q, q, q).shape
    (1, 2, 4)
    """
    chosen = [backends] if isinstance(backends, SDPBackend) else backends
    if not all(isinstance(each, SDPBackend) for each in chosen):
        raise ArgumentTypeError(f"sdpa_kernel: expected SDPBackend or a list, got {backends!r}")
    yield
