"""Attention: means of values, weighted by the match of keys and queries."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from chainrule import ops
from chainrule.arguments import Operand, constant, floating, tensor_of
from chainrule.autograd.array_proxy import as_float
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import is_known, namespace
from chainrule.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from chainrule.nn.functional.dropout import dropout
from chainrule.nn.functional.linear import linear
from chainrule.nn.functional.padding import pad
from chainrule.primitives import elementwise

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]


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


# --- several heads --------------------------------------------------------------------------------


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: None = None,
    static_v: None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return what `nn.MultiheadAttention` computes, from its parameters.

    Parameters
    ----------
    query : Tensor, shape (l, n, embed_dim), or (l, embed_dim) without a batch, like the others
    key, value : Tensor, shape (s, n, kdim) and (s, n, vdim)
    embed_dim_to_check, num_heads : int
        The last size of `query`, and the number of heads, which divides it.
    in_proj_weight, in_proj_bias : Tensor or None
        Of shapes (3 embed_dim, embed_dim) and (3 embed_dim,): the projections of query, key and
        value, one above the other.
    bias_k, bias_v, add_zero_attn
        A key and a value that are added to each sequence, and whether zeros are.
    dropout_p, training
        The probability of dropout of weights, which is applied in training.
    out_proj_weight, out_proj_bias : Tensor
        Of the last projection.
    key_padding_mask, need_weights, attn_mask, average_attn_weights, is_causal
        As for a call of `nn.MultiheadAttention`.
    use_separate_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight
        Whether the projections are three tensors of their own, and which.
    static_k, static_v : None
        Not supported.

    Returns
    -------
    (Tensor, Tensor or None)
        The outputs, in the shape of `query`, and the weights if they are needed.

    Raises
    ------
    ShapeError, ArgumentError
        If shapes don't fit, or an argument isn't supported.

    Examples
    --------
    >>> import chainrule as cr
    >>> x, w = cr.ones(3, 1, 4), cr.eye(4)
    >>> f = cr.nn.functional.multi_head_attention_forward
    >>> y, weights = f(
    ...     x, x, x, 4, 2, cr.cat([w, w, w]), None, None, None, False, 0.0, w, None
    ... )
    >>> y.shape, weights.shape
    ((3, 1, 4), (1, 3, 3))
    """
    if static_k is not None or static_v is not None:
        raise ArgumentError(
            "multi_head_attention_forward: static_k and static_v are not supported: call "
            "scaled_dot_product_attention with the projected keys and values"
        )
    if is_causal and attn_mask is None:
        raise ArgumentError(
            "multi_head_attention_forward: need attn_mask if specifying the is_causal hint"
        )
    if query.shape[-1] != embed_dim_to_check or embed_dim_to_check % num_heads:
        raise ShapeError(
            f"multi_head_attention_forward: was expecting embedding dimension of "
            f"{embed_dim_to_check}, divisible by {num_heads} heads, but got {query.shape[-1]} as "
            f"the last size of query, {list(query.shape)}"
        )
    apart = q_proj_weight, k_proj_weight, v_proj_weight
    together = None if use_separate_proj_weight else in_proj_weight
    inputs = projected((query, key, value), together, apart, in_proj_bias)
    batched = query.ndim == 3
    q, k, v = [x.transpose(0, 1) if batched else x.unsqueeze(0) for x in inputs]
    result, weights = attend_by_heads(
        (q, k, v),
        num_heads,
        (bias_k, bias_v),
        add_zero_attn,
        (attn_mask, key_padding_mask),
        dropout_p if training else 0.0,
        need_weights,
    )
    output = linear(result, out_proj_weight, out_proj_bias)
    if weights is not None and average_attn_weights:
        weights = weights.mean(1)
    if not batched:
        return output.squeeze(0), None if weights is None else weights.squeeze(0)
    return output.transpose(0, 1), weights


def projected(
    inputs: tuple[Tensor, Tensor, Tensor],
    together: Tensor | None,
    apart: tuple[Tensor | None, Tensor | None, Tensor | None],
    bias: Tensor | None,
) -> list[Tensor]:
    """Return the projections of query, key and value, by one weight or by three."""
    query, key, value = inputs
    if together is not None and query is key is value:
        return list(linear(query, together, bias).chunk(3, -1))
    weights: Any = apart if together is None else together.chunk(3)
    biases: Any = (None,) * 3 if bias is None else bias.chunk(3)
    return [linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]


def attend_by_heads(
    projections: tuple[Tensor, Tensor, Tensor],
    num_heads: int,
    added_rows: tuple[Tensor | None, Tensor | None],
    add_zero_attn: bool,
    masks: tuple[Tensor | None, Tensor | None],
    dropout_p: float,
    need_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    """Return the joined results of all heads, (n, l, embed_dim), and their weights.

    `projections` are of shape (n, l, embed_dim) and (n, s, embed_dim).
    """
    q, k, v = projections
    added = 0
    if added_rows[0] is not None and added_rows[1] is not None:
        rows = [row.expand(k.shape[0], 1, -1) for row in added_rows if row is not None]
        k, v, added = ops.cat([k, rows[0]], 1), ops.cat([v, rows[1]], 1), added + 1
    if add_zero_attn:
        row = k.new_zeros((k.shape[0], 1, k.shape[-1]))
        k, v, added = ops.cat([k, row], 1), ops.cat([v, row], 1), added + 1
    mask = _added_mask(masks, q, num_heads, added)
    n, length, size = q.shape
    q, k, v = [
        x.reshape(n, x.shape[1], num_heads, x.shape[2] // num_heads).transpose(1, 2)
        for x in (q, k, v)
    ]
    weights: Tensor | None = None
    if need_weights:
        scores = (q * (1 / math.sqrt(q.shape[-1]))) @ k.transpose(-1, -2)
        weights = (scores if mask is None else scores + mask).softmax(-1)
        if dropout_p:
            weights = dropout(weights, dropout_p)
        result = weights @ v
    else:
        result = scaled_dot_product_attention(q, k, v, mask, dropout_p)
    return result.transpose(1, 2).reshape(n, length, size), weights


def _added_mask(
    masks: tuple[Tensor | None, Tensor | None], q: Tensor, num_heads: int, added: int
) -> Tensor | None:
    """Return both masks as numbers to add to scores; keys that were added stay visible."""
    total: Tensor | None = None
    for mask, title in zip(masks, ("attn_mask", "key_padding_mask"), strict=True):
        if mask is None:
            continue
        if mask.dtype.kind not in "bf":
            raise ArgumentError(
                f"MultiheadAttention: {title} is of bool or floating dtype, got {mask.dtype}"
            )
        numbers = _as_numbers(mask, q)
        if added:
            numbers = pad(numbers, (0, added))
        if title == "key_padding_mask":
            numbers = numbers.reshape(-1, 1, 1, numbers.shape[-1])
        elif numbers.ndim == 3:
            numbers = numbers.reshape(-1, num_heads, *numbers.shape[1:])
        total = numbers if total is None else total + numbers
    return total


def _as_numbers(mask: Tensor, like: Tensor) -> Tensor:
    """Return a mask as numbers to add: -inf where a boolean one is True."""
    if mask.dtype.kind != "b":
        return mask.to(like.dtype)
    return like.new_zeros(mask.shape).masked_fill(mask, -math.inf)


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
