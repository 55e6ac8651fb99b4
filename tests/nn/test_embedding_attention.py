"""Embeddings, one-hot vectors, similarity and attention, compared with PyTorch; their errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.nn import functional as F
from helpers.torch_comparison import compare_with_torch, optional_tensor

RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((6, 3))

# --- embedding ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"padding_idx": 2},
        {"padding_idx": -1},
        {"scale_grad_by_freq": True},
        {"padding_idx": 0, "scale_grad_by_freq": True},
    ],
    ids=["plain", "padding", "padding-from-the-end", "frequency", "both"],
)
@pytest.mark.parametrize("shape", [(), (7,), (2, 5), (0,)], ids=str)
def test_embedding_as_in_pytorch(shape: tuple[int, ...], settings: dict[str, Any]) -> None:
    compare_with_torch(
        lambda lib, numbers, table: lib.nn.functional.embedding(numbers, table, **settings),
        np.asarray(np.random.default_rng(1).integers(0, 6, shape)),
        TABLE,
        order=1,
    )


def test_long_rows_are_shortened_in_place_as_in_pytorch() -> None:
    torch = pytest.importorskip("torch")
    numbers = np.array([[0, 2], [2, 5]])
    for norm_type in (2.0, 1.0):
        ours = cr.tensor(TABLE, requires_grad=True)
        theirs = torch.tensor(TABLE, requires_grad=True)
        out = F.embedding(cr.tensor(numbers), ours, max_norm=1.0, norm_type=norm_type)
        their_out = torch.nn.functional.embedding(
            torch.tensor(numbers), theirs.clone(), max_norm=1.0, norm_type=norm_type
        )
        np.testing.assert_allclose(out.detach().numpy(), their_out.numpy(force=True), rtol=1e-6)
        assert (ours.detach().numpy()[[1, 3, 4]] == TABLE[[1, 3, 4]]).all()
        assert (ours.detach().numpy()[[0, 2, 5]] != TABLE[[0, 2, 5]]).any()
        out.sum().backward()
        assert ours.grad.tolist() == [
            [1.0] * 3,
            [0.0] * 3,
            [2.0] * 3,
            [0.0] * 3,
            [0.0] * 3,
            [1.0] * 3,
        ]


BAGS: dict[str, tuple[Any, ...]] = {
    "matrix": (np.array([[0, 1, 1], [5, 5, 2]]), None, {}),
    "offsets": (np.array([0, 1, 1, 4, 2]), np.array([0, 2, 2, 3]), {}),
    "last": (np.array([0, 1, 1, 4, 2]), np.array([0, 2, 5]), {"include_last_offset": True}),
    "padding": (np.array([0, 1, 1, 4, 1]), np.array([0, 2, 4]), {"padding_idx": 1}),
    "all padding": (np.array([[1, 1], [1, 1]]), None, {"padding_idx": 1}),
    "nothing": (np.array([], np.int64), np.array([0, 0]), {}),
}


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("case", BAGS)
def test_embedding_bag_as_in_pytorch(case: str, mode: str) -> None:
    numbers, offsets, settings = BAGS[case]
    compare_with_torch(
        lambda lib, i, table: lib.nn.functional.embedding_bag(
            i, table, optional_tensor(lib, offsets), mode=mode, **settings
        ),
        numbers,
        TABLE,
        order=1,
    )


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_with_padding_can_be_compiled_and_mapped(mode: str) -> None:
    bags = cr.tensor([[[1, 0, 2], [0, 0, 0]], [[3, 3, 1], [0, 1, 0]]])
    table = cr.tensor(np.random.default_rng(0).normal(size=(4, 2)))

    def slope(table: Any, numbers: Any) -> Any:
        def loss(table: Any) -> Any:
            found = F.embedding_bag(
                numbers, table, mode=mode, padding_idx=0, scale_grad_by_freq=True
            )
            return (found**2).sum()

        return cr.value_and_grad(loss)(table)

    each = [slope(table, numbers) for numbers in bags]
    for i, mapped in enumerate(cr.vmap(slope, in_dims=(None, 0))(table, bags)):
        np.testing.assert_allclose(mapped, [one[i] for one in each])
        np.testing.assert_allclose(cr.compile(slope)(table, bags[0])[i], each[0][i])


@pytest.mark.parametrize("layer", ["Embedding", "EmbeddingBag"])
def test_sparse_gradients_are_dense_ones_of_the_same_values(layer: str) -> None:
    torch = pytest.importorskip("torch")
    found = []
    for library in (cr, torch):
        table = getattr(library.nn, layer)(5, 2, sparse=True, _weight=library.ones(5, 2))
        table(library.tensor([[1, 3, 1]])).square().sum().backward()
        found.append(table.weight.grad)
    assert found[0].tolist() == found[1].to_dense().tolist()


def test_embedding_bag_with_weights_as_in_pytorch() -> None:
    numbers = np.array([[0, 1, 1], [5, 5, 2]])
    for settings in ({}, {"padding_idx": 5}):
        compare_with_torch(
            lambda lib, i, t, w, s=settings: lib.nn.functional.embedding_bag(
                i, t, mode="sum", per_sample_weights=w, **s
            ),
            numbers,
            TABLE,
            RNG.standard_normal((2, 3)),
            order=1,
        )


@pytest.mark.parametrize("count", [-1, 5])
@pytest.mark.parametrize("shape", [(), (4,), (2, 3)], ids=str)
def test_one_hot_as_in_pytorch(shape: tuple[int, ...], count: int) -> None:
    torch = pytest.importorskip("torch")
    numbers = np.asarray(np.random.default_rng(2).integers(0, 4, shape))
    got = F.one_hot(cr.tensor(numbers), count)
    assert got.dtype == cr.int64
    wanted = torch.nn.functional.one_hot(torch.tensor(numbers), count)
    assert got.tolist() == wanted.tolist()


# --- similarity -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cosine_similarity_as_in_pytorch(dim: int) -> None:
    compare_with_torch(
        lambda lib, x, y: lib.nn.functional.cosine_similarity(x, y, dim),
        *RNG.standard_normal((2, 3, 4, 2)),
        rtol=1e-7,
    )
    compare_with_torch(
        lambda lib, x, y: lib.nn.functional.cosine_similarity(x, y, 1),
        RNG.standard_normal((3, 1, 2)),
        RNG.standard_normal((4, 2)),
        order=1,
    )


def test_cosine_similarity_of_short_vectors() -> None:
    x, y = np.array([[0.0, 0], [0.1, 0.2]]), np.array([[1.0, 0], [3.0, 0.2]])
    compare_with_torch(
        lambda lib, x, y: lib.nn.functional.cosine_similarity(x, y, -1, 0.5), x, y, order=0
    )
    # PyTorch's gradient is as if nothing were limited; ours is that of what is computed.
    leaves = (cr.tensor(x[1:], requires_grad=True), cr.tensor(y[1:], requires_grad=True))
    assert cr.gradcheck(lambda a, b: F.cosine_similarity(a, b, -1, 0.5), leaves, fast_mode=True)


@pytest.mark.parametrize("p", [0, 1, 2, 3, 0.5, math.inf, -math.inf])
@pytest.mark.parametrize("keepdim", [False, True])
def test_pairwise_distance_as_in_pytorch(p: float, keepdim: bool) -> None:
    compare_with_torch(
        lambda lib, x, y: lib.nn.functional.pairwise_distance(x, y, p, 1e-6, keepdim),
        *RNG.standard_normal((2, 3, 4)),
        rtol=1e-8,
        order=1,
    )


@pytest.mark.parametrize("p", [1, 2, 3, math.inf])
@pytest.mark.parametrize("dim", [0, 1])
def test_normalize_as_in_pytorch(p: float, dim: int) -> None:
    compare_with_torch(
        lambda lib, x: lib.nn.functional.normalize(x, p, dim),
        RNG.standard_normal((3, 4)),
        order=2 if p == 2 else 1,
        rtol=1e-8,
    )


def test_vectors_of_length_zero_have_finite_gradients() -> None:
    for p in (0.5, 1, 2, 3):
        x = cr.zeros(2, 3, requires_grad=True)
        F.normalize(x, p).sum().backward()
        assert np.isfinite(x.grad.numpy()).all()
        y = cr.zeros(2, 3, requires_grad=True)
        F.pairwise_distance(y, cr.zeros(2, 3), p, 0.0).sum().backward()
        assert y.grad.tolist() == [[0.0] * 3] * 2
    F.cosine_similarity(x, y).sum().backward()
    assert np.isfinite(x.grad.numpy()).all()


# --- attention ------------------------------------------------------------------------------------

HEADS = {
    "plain": ((5, 4), (6, 4), (6, 3)),
    "batch": ((2, 3, 5, 4), (2, 3, 6, 4), (2, 3, 6, 3)),
}
MASKS: dict[str, Any] = {
    "none": None,
    "bool": np.random.default_rng(3).random((5, 6)) < 0.6,
    "float": RNG.standard_normal((5, 6)),
    "closed": np.arange(30).reshape(5, 6) >= 6,
}


@pytest.mark.parametrize("scale", [None, 0.7])
@pytest.mark.parametrize("mask", [*MASKS, "causal"])
@pytest.mark.parametrize("heads", HEADS)
def test_attention_as_in_pytorch(heads: str, mask: str, scale: float | None) -> None:
    settings = {"scale": scale, "is_causal": mask == "causal"}
    given = MASKS.get(mask)
    compare_with_torch(
        lambda lib, *x: lib.nn.functional.scaled_dot_product_attention(
            *x, optional_tensor(lib, given), **settings
        ),
        *[RNG.standard_normal(shape) for shape in HEADS[heads]],
        order=2 if mask != "closed" else 1,
        rtol=1e-8,
        atol=1e-10,
    )


def test_heads_may_share_keys_as_in_pytorch() -> None:
    compare_with_torch(
        lambda lib, *x: lib.nn.functional.scaled_dot_product_attention(*x, enable_gqa=True),
        RNG.standard_normal((2, 6, 5, 4)),
        *RNG.standard_normal((2, 2, 3, 5, 4)),
        rtol=1e-8,
        order=1,
    )


def test_masked_scores_get_no_gradient_even_if_infinite() -> None:
    q, v = cr.ones(1, 1), cr.tensor([[1.0], [2.0]])
    k = cr.tensor([[1.0], [math.inf]], requires_grad=True)
    mask = cr.tensor([[True, False]])
    out = F.scaled_dot_product_attention(q, k, v, mask)
    assert out.tolist() == [[1.0]]
    out.sum().backward()
    assert k.grad.tolist() == [[0.0], [0.0]]


def test_attention_drops_weights() -> None:
    q, k, v = cr.zeros(1, 2), cr.zeros(1000, 2), cr.eye(1000)
    weights = F.scaled_dot_product_attention(
        q, k, v, dropout_p=0.5, rng=np.random.default_rng(0)
    ).numpy()
    np.testing.assert_allclose(np.unique(weights), [0, 0.002], rtol=1e-6)
    assert 400 < np.count_nonzero(weights) < 600


# --- errors ---------------------------------------------------------------------------------------

_T = cr.ones(4, 2)
_I = cr.tensor([0, 1, 3])
ERRORS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "dtype": (lambda: F.embedding(_T, _T), TypeError, "scalar types: Long, Int; but got float32"),
    "table": (lambda: F.embedding(_I, _I), ValueError, r"'weight' must be 2-D.*\[3\]"),
    "row": (lambda: F.embedding(cr.tensor([4]), _T), IndexError, "index out of range in self: 4"),
    "negative-row": (lambda: F.embedding(cr.tensor([-1]), _T), IndexError, "in self: -1 is none"),
    "padding": (
        lambda: F.embedding(_I, _T, padding_idx=4),
        IndexError,
        "Padding_idx must be within num_embeddings: 4",
    ),
    "mode": (lambda: F.embedding_bag(_I, _T, mode="min"), ValueError, "sum, mean or max.*'min'"),
    "no-offsets": (lambda: F.embedding_bag(_I, _T), ValueError, "offsets has to be a 1D Tensor"),
    "both": (
        lambda: F.embedding_bag(_I.reshape(1, 3), _T, cr.tensor([0])),
        ValueError,
        "if input is 2D, then offsets has to be None",
    ),
    "bag-dims": (
        lambda: F.embedding_bag(_I.reshape(1, 1, 3), _T),
        ValueError,
        "1D or 2D Tensor, but got Tensor of dimension 3",
    ),
    "first-offset": (
        lambda: F.embedding_bag(_I, _T, cr.tensor([1])),
        ValueError,
        r"offsets\[0\] has to be 0.*got \[1\]",
    ),
    "last-offset": (
        lambda: F.embedding_bag(_I, _T, cr.tensor([0, 2]), include_last_offset=True),
        ValueError,
        "the last offset, 2, has to be the number of elements, 3",
    ),
    "bag-weights": (
        lambda: F.embedding_bag(_I, _T, cr.tensor([0]), per_sample_weights=cr.ones(3)),
        ValueError,
        "only supported for mode='sum'",
    ),
    "bag-weights-size": (
        lambda: F.embedding_bag(_I, _T, cr.tensor([0]), mode="sum", per_sample_weights=cr.ones(2)),
        ValueError,
        r"must have the same shape as the input \(\[3\]\)",
    ),
    "one-hot-dtype": (lambda: F.one_hot(_T), TypeError, "Long, Int; but got float32"),
    "one-hot-empty": (
        lambda: F.one_hot(cr.zeros(0, dtype=cr.int64)),
        ValueError,
        "Can not infer total number of classes from empty tensor",
    ),
    "one-hot-negative": (
        lambda: F.one_hot(cr.tensor([-1])),
        ValueError,
        "Class values must be non-negative, but got -1",
    ),
    "one-hot-large": (
        lambda: F.one_hot(_I, 3),
        ValueError,
        "must be smaller than num_classes: got 3 with num_classes=3",
    ),
    "attention-dims": (
        lambda: F.scaled_dot_product_attention(_T[0], _T, _T),
        ValueError,
        "at least 2 dimensional, but got 1, 2, 2",
    ),
    "attention-shapes": (
        lambda: F.scaled_dot_product_attention(_T, cr.ones(4, 3), _T),
        ValueError,
        r"don't fit: \[4, 2\], \[4, 3\] and \[4, 2\]",
    ),
    "attention-masks": (
        lambda: F.scaled_dot_product_attention(_T, _T, _T, cr.ones(4, 4), is_causal=True),
        ValueError,
        "attn_mask should not be set when is_causal=True",
    ),
    "attention-mask-dtype": (
        lambda: F.scaled_dot_product_attention(_T, _T, _T, cr.tensor([[1]])),
        TypeError,
        "Expected attn_mask dtype to be bool or float, but got int64",
    ),
    "attention-heads": (
        lambda: F.scaled_dot_product_attention(
            cr.ones(3, 4, 2), cr.ones(2, 4, 2), cr.ones(2, 4, 2), enable_gqa=True
        ),
        ValueError,
        "must divide those of query",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case: str) -> None:
    call, error, text = ERRORS[case]
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("batched", [False, True])
def test_attention_of_given_projections_is_that_of_the_module(apart: bool, batched: bool) -> None:
    sizes = {"kdim": 3, "vdim": 2} if apart else {}
    layer = cr.nn.MultiheadAttention(4, 2, add_bias_kv=True, add_zero_attn=True, **sizes)
    shapes = (5, 3, 4), (6, 3, layer.kdim), (6, 3, layer.vdim)
    inputs = [cr.randn(*shape) if batched else cr.randn(*shape)[:, 0] for shape in shapes]
    mask = cr.randn(5, 6)
    expected = layer(*inputs, attn_mask=mask, average_attn_weights=False)
    weights = {f"{letter}_proj_weight": getattr(layer, f"{letter}_proj_weight") for letter in "qkv"}
    found = cr.nn.functional.multi_head_attention_forward(
        *inputs,
        4,
        2,
        layer.in_proj_weight,
        layer.in_proj_bias,
        layer.bias_k,
        layer.bias_v,
        True,
        0.5,
        layer.out_proj.weight,
        layer.out_proj.bias,
        training=False,
        attn_mask=mask,
        use_separate_proj_weight=apart,
        average_attn_weights=False,
        **weights,
    )
    for got, wanted in zip(found, expected, strict=True):
        assert got.shape == wanted.shape
        assert cr.allclose(got, wanted)


def test_wrong_arguments_of_attention_by_heads() -> None:
    attend, x, w = cr.nn.functional.multi_head_attention_forward, cr.ones(3, 1, 4), cr.eye(4)
    rest = None, None, None, False, 0.0, w, None
    with pytest.raises(ValueError, match="embedding dimension of 6, divisible by 2 heads"):
        attend(x, x, x, 6, 2, cr.cat([w, w, w]), *rest)
    with pytest.raises(ValueError, match="static_k and static_v are not supported"):
        attend(x, x, x, 4, 2, cr.cat([w, w, w]), *rest, static_k=x)
    with pytest.raises(ValueError, match="need attn_mask if specifying the is_causal hint"):
        attend(x, x, x, 4, 2, cr.cat([w, w, w]), *rest, is_causal=True)
