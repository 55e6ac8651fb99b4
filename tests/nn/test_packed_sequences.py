"""Padded and packed sequences, and recurrent layers over them, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn
from chainrule.nn.utils import rnn

LENGTHS = [2, 6, 1, 4]


def sequences(m: Any, lengths: list[int] = LENGTHS, width: int = 3) -> list[Any]:
    rng = np.random.default_rng(0)
    return [m.tensor(rng.normal(size=(n, width)), requires_grad=True) for n in lengths]


def both(program: Any) -> None:
    """Compare what a program returns, and the gradients of the sequences that it is given."""
    torch = pytest.importorskip("torch")
    found = []
    for m, tools in ((cr, rnn), (torch, torch.nn.utils.rnn)):
        given = sequences(m)
        results = [t for t in program(m, tools, given) if t is not None]
        floating = [t for t in results if t.is_floating_point()]
        sum((t**3).sum() for t in floating).backward()
        found.append([*results, *(t.grad for t in given)])
    assert len(found[0]) == len(found[1])
    for own, other in zip(*found, strict=True):
        np.testing.assert_allclose(
            own.detach().numpy(), other.detach().numpy(), rtol=1e-10, atol=1e-12
        )


@pytest.mark.parametrize("first", [True, False])
def test_padding_and_packing_follow_pytorch(first: bool) -> None:
    def program(m: Any, tools: Any, given: list[Any]) -> list[Any]:
        padded = tools.pad_sequence(given, batch_first=first, padding_value=-1.5)
        left = tools.pad_sequence(given, batch_first=first, padding_side="left")
        settings = {"batch_first": first, "enforce_sorted": False}
        packed = tools.pack_padded_sequence(padded, m.tensor(LENGTHS), **settings)
        again, lengths = tools.pad_packed_sequence(packed, first, 2.5, total_length=8)
        listed = tools.pack_sequence(given, enforce_sorted=False)
        # PyTorch transposes the argument of unpad_sequence in place.
        parts = tools.unpad_sequence(padded.clone(), lengths, first)
        parts += tools.unpack_sequence(listed)
        return [padded, left, *packed, again, lengths, *listed, *parts]

    both(program)


def test_a_packed_sequence_is_a_tuple_with_conversions() -> None:
    packed = rnn.pack_sequence([cr.ones(3, 2), cr.zeros(1, 2)])
    assert packed.batch_sizes.tolist() == [2, 1, 1]
    assert packed.sorted_indices is None
    assert packed.double().data.dtype == cr.float64
    assert isinstance(packed.to(cr.float64).half(), rnn.PackedSequence)
    assert packed.long().int().data.dtype == cr.int32
    assert not packed.cpu().pin_memory().is_cuda
    assert packed.to(packed.data.dtype) is packed.cpu()
    sizes = [each.data.dtype.itemsize for each in (packed.short(), packed.char(), packed.byte())]
    assert sizes == [2, 1, 1]
    made = rnn.PackedSequence(packed.data, packed.batch_sizes, cr.tensor([1, 0]))
    assert made.unsorted_indices.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: rnn.pack_padded_sequence(x, [1, 2]), "must be sorted in decreasing order"),
        (lambda x: rnn.pack_padded_sequence(x, [4, 1]), "between 1 and 3"),
        (lambda x: rnn.pack_padded_sequence(x, [2, 0]), "between 1 and 3"),
        (lambda x: rnn.pack_padded_sequence(x, [2]), "a length for each of 2 sequences"),
        (lambda x: rnn.pack_padded_sequence(x, [2.0, 1.0]), "float64 lengths"),
        (lambda x: rnn.pad_sequence([]), "empty list"),
        (lambda x: rnn.pad_sequence(5), "Expected iterable for input sequences"),
        (lambda x: rnn.pad_sequence([x], padding_side="top"), "'left' or 'right', got 'top'"),
        (lambda x: rnn.pad_sequence([x, x[:, :1]]), "differ in their first dimension only"),
        (
            lambda x: rnn.pad_packed_sequence(rnn.pack_padded_sequence(x, [3, 1]), total_length=2),
            "total_length=2 and max sequence length being 3",
        ),
        (lambda x: nn.GRU(5, 2)(rnn.pack_sequence([x[:, 0]])), "the last of size 5"),
        (lambda x: rnn.PackedSequence(x), "batch_sizes is missing"),
    ],
)
def test_errors(call: Any, text: str) -> None:
    with pytest.raises((ValueError, TypeError), match=text):
        call(cr.ones(3, 2, 4))


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("given_state", [True, False])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("RNN", {}),
        ("RNN", {"nonlinearity": "relu", "bidirectional": True}),
        ("GRU", {"num_layers": 2, "bidirectional": True}),
        ("GRU", {"bias": False}),
        ("LSTM", {"num_layers": 2, "bidirectional": True}),
        ("LSTM", {"bidirectional": True, "proj_size": 2}),
        ("LSTM", {"batch_first": True, "bias": False}),
    ],
    ids=str,
)
def test_recurrent_layers_follow_pytorch(
    kind: str, settings: dict, ordered: bool, given_state: bool
) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    theirs, ours = (getattr(m.nn, kind)(3, 4, **settings).double() for m in (torch, cr))
    ours.load_state_dict(theirs.state_dict())
    count = settings.get("num_layers", 1) * (1 + settings.get("bidirectional", False))
    rng = np.random.default_rng(1)
    states = [rng.normal(size=(count, 4, settings.get("proj_size", 4)))]
    if kind == "LSTM":
        states.append(rng.normal(size=(count, 4, 4)))

    def program(m: Any, tools: Any, given: list[Any]) -> list[Any]:
        layer = ours if m is cr else theirs
        layer.zero_grad()
        given = sorted(given, key=len, reverse=True) if ordered else given
        hx: Any = tuple(m.tensor(s) for s in states)
        hx = (hx if kind == "LSTM" else hx[0]) if given_state else None
        outputs, last = layer(tools.pack_sequence(given, enforce_sorted=ordered), hx)
        assert isinstance(outputs, tools.PackedSequence)
        return [*outputs, *(last if kind == "LSTM" else [last])]

    both(program)
    for own, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(own.grad.numpy(), other.grad.numpy(), rtol=1e-9, atol=1e-12)


def test_a_step_with_packed_sequences_compiles() -> None:
    layer = nn.LSTM(3, 4)
    padded = rnn.pad_sequence(sequences(cr)).float().detach()

    def run(x: cr.Tensor) -> cr.Tensor:
        packed = rnn.pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
        outputs, (h, c) = layer(packed)
        return rnn.pad_packed_sequence(outputs)[0].sum() + (h * c).sum()

    assert cr.compile(run)(padded).item() == pytest.approx(run(padded).item(), rel=1e-5)
