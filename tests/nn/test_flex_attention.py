"""Attention whose scores and masks are functions of positions."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pytest
from chainrule.nn.attention import bias
from chainrule.nn.attention import flex_attention as flex

import chainrule as cr
from chainrule.nn import functional as F

RNG = np.random.default_rng(0)
Q, K = RNG.normal(size=(2, 4, 5, 3)), RNG.normal(size=(2, 2, 6, 3))
TABLE = RNG.normal(size=(4, 16))


def _program(lib: Any, functions: Any) -> tuple[Any, ...]:
    q, k, table = lib.tensor(Q), lib.tensor(K), lib.tensor(TABLE)
    mask = functions.create_block_mask(
        functions.or_masks(
            functions.and_masks(lambda b, h, i, j: i >= j, lambda b, h, i, j: i > 1),
            lambda b, h, i, j: (b == 1) & (j == 2),
        ),
        *(2, None, 5, 6),
        device="cpu",
    )

    def score(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return lib.where(j > i, s * 2, s) + table[h, i - j + 7]

    out, lse = functions.flex_attention(
        q, k, k, score, mask, scale=0.3, enable_gqa=True, return_lse=True
    )
    return out, lse, mask.shape


@pytest.mark.thorough  # PyTorch takes seconds to import its module
def test_scores_and_masks_as_in_pytorch() -> None:
    torch = pytest.importorskip("torch")
    theirs = importlib.import_module("torch.nn.attention.flex_attention")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = _program(torch, theirs)
    found = _program(cr, flex)
    for ours, other in zip(found[:2], wanted[:2], strict=True):
        np.testing.assert_allclose(ours, other, rtol=1e-10)
    assert found[2] == wanted[2]
    assert not found[0][0, :, 0].any()  # a query that attends to no key


def test_gradients_flow_to_what_scores_use() -> None:
    q = cr.tensor(Q[:1, :1])

    def loss(q: cr.Tensor, table: cr.Tensor) -> cr.Tensor:
        return flex.flex_attention(q, q, q, lambda s, b, h, i, j: s + table[i - j + 5]).sum()

    assert cr.gradcheck(loss, (q.requires_grad_(), cr.tensor(TABLE[0], requires_grad=True)))


def test_without_functions_it_is_the_usual_attention() -> None:
    q, k = cr.tensor(Q[:, :2]), cr.tensor(K)
    found, aux = flex.flex_attention(q, k, k, return_aux=flex.AuxRequest(max_scores=True))
    np.testing.assert_allclose(found, F.scaled_dot_product_attention(q, k, k), rtol=1e-12)
    assert (aux.lse, aux.max_scores.shape) == (None, (2, 2, 5))


def test_a_mask_of_positions_is_one_of_bools() -> None:
    q = cr.tensor(Q)
    shape = (None, None, 5, 5)
    near = flex.create_block_mask(lambda b, h, i, j: abs(i - j) < 2, *shape)
    found = flex.flex_attention(q, q, q, block_mask=near)
    wanted = F.scaled_dot_product_attention(q, q, q, flex.create_mask(near.mask_mod, *shape))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_blocks_of_a_mask() -> None:
    mask = flex.create_block_mask(lambda b, h, i, j: i >= j, None, None, 8, 8, BLOCK_SIZE=4)
    assert mask.to_dense().tolist() == [[[[1, 0], [1, 1]]]]
    assert (mask.sparsity(), mask.numel(), mask.to("cpu") is mask) == (25.0, 64, True)


def test_causal_masks_at_both_corners() -> None:
    assert bias.causal_upper_left(2, 3).tolist() == [[True, False, False], [True, True, False]]
    assert bias.causal_lower_right(2, 3).tolist() == [[True, True, False], [True] * 3]


def test_what_does_not_fit_is_refused() -> None:
    q, k = cr.tensor(Q), cr.tensor(K)
    with pytest.raises(cr.ArgumentError, match="enable_gqa=True"):
        flex.flex_attention(q, k, k)
    with pytest.raises(cr.ShapeError, match="4 dimensions"):
        flex.flex_attention(q[0], k[0], k[0])
    mask = flex.create_block_mask(flex.noop_mask, None, None, 2, 2)
    with pytest.raises(cr.ShapeError, match="block_mask is for"):
        flex.flex_attention(q, q, q, block_mask=mask)
