"""What PyTorch's own tests of modules found here: aliases, batches that don't fit, old state."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import chainrule as cr
import chainrule.nn.functional as F
from chainrule import nn


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("pad", [(0, 0, 0, 0), (1, 1, 0, 0)])
def test_padding_is_never_the_input_itself(mode: str, pad: tuple[int, ...]) -> None:
    x = cr.ones(1, 3, 4, 4, requires_grad=True)
    out = F.pad(x * 1, pad, mode=mode)
    out.sum().backward()
    base = cr.ones(1, 3, 4, 4)
    F.pad(base, pad, mode=mode).fill_(4)
    assert (base == 1).all()
    assert x.grad.sum() == (out.numel() if mode != "constant" else 48)


@pytest.mark.parametrize("kind", ["RNNCell", "GRUCell", "LSTMCell"])
def test_cells_do_not_broadcast_their_state(kind: str) -> None:
    cell = getattr(nn, kind)(4, 5)
    good, bad = cr.zeros(3, 5), cr.zeros(1, 5)
    states: Any = [(bad, good), (good, bad)] if kind == "LSTMCell" else [bad]
    for state in states:
        with pytest.raises(ValueError, match=r"size \[3\] doesn't match hidden\d batch size \[1\]"):
            cell(cr.ones(3, 4), state)
    cell(cr.ones(3, 4), (good, good) if kind == "LSTMCell" else good)
    single = cr.zeros(5)
    cell(cr.ones(4), (single, single) if kind == "LSTMCell" else single)


def test_statistics_that_are_no_longer_tracked_stay() -> None:
    layer = nn.BatchNorm1d(4)
    layer(cr.randn(5, 4))
    layer.track_running_stats = False
    before = {name: value.tolist() for name, value in layer.state_dict().items()}
    layer(cr.randn(5, 4))
    assert {name: value.tolist() for name, value in layer.state_dict().items()} == before
    assert before["num_batches_tracked"] == 1


def test_state_of_before_the_number_of_batches_was_kept() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    state = net.state_dict()
    old = {name: value for name, value in state.items() if "batches" not in name}
    net.load_state_dict(old)  # a plain dict has no versions
    state.pop("1.num_batches_tracked")
    with pytest.raises(ValueError, match=r"Missing key.*1.num_batches_tracked"):
        net.load_state_dict(state)
    state._metadata["1"]["version"] = 1  # type: ignore[attr-defined]
    net.load_state_dict(state)
    del old["1.running_mean"]
    with pytest.raises(ValueError, match=r"Missing key.*1.running_mean"):
        net.load_state_dict(old)


def test_parameters_of_a_plain_dict_are_in_order_of_their_names() -> None:
    """Optimizers number them by it, in PyTorch's files too."""
    values = {"b": cr.zeros(1), "a": cr.zeros(1)}
    assert list(nn.ParameterDict(values).keys()) == ["a", "b"]
    ordered = nn.ParameterDict(OrderedDict(values))
    assert [name for name, _ in ordered.named_parameters()] == ["b", "a"]
    assert list(ordered.copy().keys()) == ["b", "a"]
    ordered.update({"d": cr.zeros(1), "c": cr.zeros(1)})
    assert list(ordered.keys()) == ["b", "a", "c", "d"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: nn.MultiheadAttention(4, 2)(*(cr.zeros(3, 0, 4),) * 3)[0],
        lambda: nn.Transformer(4, 2, 1, 1, 8)(cr.zeros(3, 0, 4), cr.zeros(3, 0, 4)),
        lambda: nn.TransformerEncoderLayer(4, 2, 8)(cr.zeros(3, 0, 4)),
        lambda: nn.FractionalMaxPool2d(2, output_size=(3, 4))(cr.zeros(3, 0, 5, 5)),
    ],
)
def test_empty_batches(call: Any) -> None:
    out = call()
    assert out.shape[:2] == (3, 0)
    assert out.shape[-1] == 4
    if out.requires_grad:
        out.sum().backward()


def test_other_arguments_of_pytorchs_tests() -> None:
    w = cr.ones(3, requires_grad=True)
    for norm, expected in (("inf", 4.0), ("2", np.sqrt(48.0))):
        w.grad = cr.full((3,), 4.0)
        assert float(nn.utils.clip_grad_norm_([w], 1.0, norm_type=norm)) == pytest.approx(expected)  # type: ignore[arg-type]
    conv, norm_layer = nn.Conv1d(1, 1, 1), nn.BatchNorm1d(1)
    conv.bias.requires_grad_(False)
    fused = nn.utils.fusion.fuse_conv_bn_eval(conv.eval(), norm_layer.eval())
    assert (fused.weight.requires_grad, fused.bias.requires_grad) == (True, False)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: F.one_hot(cr.tensor([3]), -2), "num_classes should be positive"),
        (lambda: F.one_hot(cr.tensor([3]), 0), "num_classes should be positive"),
        (lambda: nn.GroupNorm(10, 10)(cr.ones(1, 10, 1)), "more than 1 value per channel"),
        (lambda: nn.Sequential(nn.ReLU()).insert(-5, nn.ReLU()), "Index out of range: -5, of 1"),
        (lambda: nn.Sequential(nn.ReLU()).insert(2, nn.ReLU()), "Index out of range: 2, of 1"),
    ],
)
def test_errors_of_pytorchs_tests(call: Any, text: str) -> None:
    with pytest.raises((ValueError, IndexError), match=text):
        call()
    assert len(nn.Sequential(nn.ReLU()).insert(-1, nn.Tanh())) == 2
    assert nn.GroupNorm(5, 10)(cr.ones(1, 10, 1)).shape == (1, 10, 1)
    assert F.one_hot(cr.tensor([], dtype=cr.int64), 0).shape == (0, 0)


def test_normalised_vectors_are_written_where_power_iterations_keep_them() -> None:
    v, x = cr.zeros(2), cr.tensor([3.0, 4.0])
    assert F.normalize(x, dim=0, eps=1e-12, out=v) is v
    assert v.tolist() == F.normalize(x, dim=0).tolist()
