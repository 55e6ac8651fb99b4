"""Attention whose scores and masks are functions of positions, as `torch.nn.attention` has it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from chainrule import ops
from chainrule.arguments import floating
from chainrule.autograd.tensor import Tensor
from chainrule.creation import arange, ones, tensor
from chainrule.errors import ArgumentError, ShapeError
from chainrule.transforms import vmap

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "causal_lower_right",
    "causal_upper_left",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

MaskFunction: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor], Any]
ScoreFunction: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Any]


class AuxRequest(NamedTuple):
    """What `flex_attention` returns beside the result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """Logarithms of the sums of exponentials, and largest scores, of each query."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


class BlockMask:
    """A mask of pairs of positions, given by a function.

    `create_block_mask` makes it. All pairs are computed here, masked or not.

    Attributes
    ----------
    mask_mod : callable
        The function: see `create_block_mask`.
    shape : tuple of ints
        (batch, heads, queries, keys).
    """

    def __init__(
        self, mask_mod: MaskFunction, shape: tuple[int, ...], block_size: tuple[int, int]
    ) -> None:
        self.mask_mod, self.shape, self.BLOCK_SIZE = mask_mod, shape, block_size
        self._pairs: Tensor | None = None

    def pairs(self) -> Tensor:
        """Return whether each query may attend to each key, of the shape `shape`."""
        if self._pairs is None:
            self._pairs = create_mask(self.mask_mod, *self.shape)
        return self._pairs

    def to_dense(self) -> Tensor:
        """Return 1 for each block of pairs of which some may attend, and 0 for the others."""
        pairs, (rows, columns) = self.pairs().numpy(), self.BLOCK_SIZE
        for axis, size in ((2, rows), (3, columns)):
            pairs = np.logical_or.reduceat(pairs, np.arange(0, pairs.shape[axis], size), axis)
        return tensor(pairs, dtype=np.int32)

    def numel(self) -> int:
        """Return the number of pairs."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """Return the percentage of blocks without a pair that may attend."""
        blocks = self.to_dense()
        return 100.0 * (1.0 - float(blocks.sum()) / math.prod(blocks.shape))

    def to(self, device: Any) -> BlockMask:
        """Return this mask: its function is called with positions on the device of the scores."""
        return self

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_mask(
    mod_fn: MaskFunction,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Tensor:
    """Return whether each query may attend to each key, as `mod_fn` says.

    Parameters
    ----------
    mod_fn : callable
        Returns a bool for 0-d tensors: the batch, head, query and key.
    B, H, Q_LEN, KV_LEN : int
        Numbers of them; None is 1.
    device
        Of the result.

    Returns
    -------
    Tensor of bools, shape (B, H, Q_LEN, KV_LEN)

    Examples
    --------
    >>> import chainrule as cr
    >>> create_mask(lambda b, h, q, k: q >= k, None, None, 2, 2)[0, 0]
    tensor([[ True, False],
            [ True,  True]])
    """
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    found = vmap(mod_fn)(*_positions(shape, device))
    return ops.reshape(found, shape)


def create_block_mask(
    mask_mod: MaskFunction,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = 128,
    **settings: Any,
) -> BlockMask:
    """Return a mask for `flex_attention`.

    Parameters
    ----------
    mask_mod, B, H, Q_LEN, KV_LEN, device
        As for `create_mask`.
    BLOCK_SIZE : int or tuple of two ints, default 128
        Numbers of queries and keys of the blocks that `BlockMask.to_dense` tells about.
    **settings
        PyTorch's, without effect.

    Examples
    --------
    >>> import chainrule as cr
    >>> mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256)
    >>> mask.shape, mask.sparsity()
    ((1, 1, 256, 256), 25.0)
    """
    block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    return BlockMask(mask_mod, (B or 1, H or 1, Q_LEN, KV_LEN), block)


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Return True: each query may attend to each key."""
    return tensor(True)


def and_masks(*mask_mods: MaskFunction) -> MaskFunction:
    """Return a function of masks that is True where all of them are."""

    def both(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Any:
        found: Any = tensor(True)
        for mask in mask_mods:
            found = found & mask(b, h, q, k)
        return found

    return both


def or_masks(*mask_mods: MaskFunction) -> MaskFunction:
    """Return a function of masks that is True where one of them is."""

    def either(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Any:
        found: Any = tensor(False)
        for mask in mask_mods:
            found = found | mask(b, h, q, k)
        return found

    return either


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreFunction | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Return softmax(f(query keyᵀ · scale)) value, where a function f changes single scores.

    Parameters
    ----------
    query : Tensor, shape (b, h, l, d)
    key : Tensor, shape (b, h, s, d)
    value : Tensor, shape (b, h, s, e)
        The batch of `key` and `value` may be 1.
    score_mod : callable, optional
        f: returns a score for 0-d tensors: the score, and its batch, head, query and key.
    block_mask : BlockMask, optional
        Which queries may attend to which keys: see `create_block_mask`.
    scale : number, optional
        1/√d if left out.
    enable_gqa : bool, default False
        Let several heads of `query` share one of `key` and `value`.
    return_lse : bool, default False
        Return the logarithms of the sums of exponentials as well.
    kernel_options
        PyTorch's, without effect.
    return_aux : AuxRequest, optional
        What to return on top, as an `AuxOutput`.

    Returns
    -------
    Tensor, shape (b, h, l, e); or a tuple of it and what else was asked for
        Rows of queries that may attend to no key are 0.

    Raises
    ------
    ShapeError
        If shapes don't match.

    Notes
    -----
    Derivatives flow through the scores, also to what `score_mod` closes over.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.eye(2).reshape(1, 1, 2, 2)
    >>> near = lambda score, b, h, q, k: score - 10.0 * abs(q - k)
    >>> flex_attention(x, x, x, score_mod=near).round(decimals=2)[0, 0]
    tensor([[1., 0.],
            [0., 1.]])
    """
    q, k, v = floating(query), floating(key), floating(value)
    if not q.ndim == k.ndim == v.ndim == 4:
        raise ShapeError(
            "flex_attention: expected query, key and value of 4 dimensions (batch, head, token, "
            f"feature), but got {list(q.shape)}, {list(k.shape)} and {list(v.shape)}"
        )
    groups, rest = divmod(q.shape[1], k.shape[1])
    if groups != 1 or rest:
        if not enable_gqa or rest:
            raise ArgumentError(
                f"flex_attention: expected as many heads of query as of key, but got {q.shape[1]} "
                f"and {k.shape[1]}: for a multiple, give enable_gqa=True"
            )
        k, v = ops.repeat_interleave(k, groups, 1), ops.repeat_interleave(v, groups, 1)
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = ops.matmul(q, k.mT) * factor
    if score_mod is not None:
        positions = _positions(scores.shape, scores.device)
        changed = vmap(score_mod)(ops.reshape(scores, -1), *positions)
        scores = ops.reshape(changed, scores.shape)
    if block_mask is not None:
        if block_mask.shape[2:] != scores.shape[2:]:
            raise ShapeError(
                f"flex_attention: block_mask is for {list(block_mask.shape[2:])} queries and keys, "
                f"but there are {list(scores.shape[2:])}"
            )
        scores = ops.where(block_mask.pairs(), scores, -math.inf)
    out = ops.matmul(_weights(scores), v)
    if return_aux is not None:
        lse = ops.logsumexp(scores, -1) if return_aux.lse else None
        return out, AuxOutput(lse, ops.amax(scores, -1) if return_aux.max_scores else None)
    return (out, ops.logsumexp(scores, -1)) if return_lse else out


def _weights(scores: Tensor) -> Tensor:
    """Return the softmax of each row, and 0 in rows of -inf."""
    some = ops.not_equal(ops.amax(scores.detach(), -1, keepdim=True), -math.inf)
    return ops.where(some, ops.softmax(ops.where(some, scores, 0.0), -1), 0.0)


def _positions(shape: tuple[int, ...], device: Any) -> list[Tensor]:
    """Return the index along each dimension of all elements, in one row each."""
    found = []
    for axis, length in enumerate(shape):
        index = arange(length, device=device).reshape((-1,) + (1,) * (len(shape) - axis - 1))
        found.append(ops.reshape(index.expand(shape), -1))
    return found


def causal_upper_left(*size: int) -> Tensor:
    """Return a mask for as many queries and keys: query i attends to the keys 0 … i.

    Examples
    --------
    >>> causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    return ops.tril(ones(*size, dtype=np.bool_))


def causal_lower_right(*size: int) -> Tensor:
    """Return a mask for as many queries and keys: the last query attends to all keys.

    Examples
    --------
    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    return ops.tril(ones(*size, dtype=np.bool_), size[1] - size[0])
