"""Lazy modules, which get their shapes from the first input, beside PyTorch's."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn

CASES: list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = [
    ("LazyLinear", (4,), {}, (2, 3)),
    ("LazyLinear", (4, False), {}, (2, 5, 3)),
    ("LazyConv1d", (4, 2, 2), {}, (2, 3, 5)),
    ("LazyConv2d", (4, 2), {"groups": 2, "padding": 1}, (2, 6, 5, 5)),
    ("LazyConv2d", (4, 2, 1, 0, 1, 1, False), {}, (3, 5, 5)),
    ("LazyConv3d", (4, 2), {}, (2, 2, 3, 3, 3)),
    ("LazyConvTranspose1d", (4, 2, 2, 1, 1), {}, (2, 3, 5)),
    ("LazyConvTranspose2d", (4, 2), {"groups": 2, "bias": False}, (2, 6, 5, 5)),
    ("LazyConvTranspose3d", (2, 2), {}, (1, 3, 3, 3, 3)),
    ("LazyBatchNorm1d", (), {}, (3, 4)),
    ("LazyBatchNorm2d", (1e-4, 0.2), {}, (3, 4, 2, 2)),
    ("LazyBatchNorm3d", (), {"track_running_stats": False}, (3, 4, 2, 2, 2)),
    ("LazyInstanceNorm1d", (), {}, (3, 4, 5)),
    ("LazyInstanceNorm2d", (1e-4,), {}, (3, 4, 5, 5)),
    ("LazyInstanceNorm3d", (1e-4, 0.1, True, False), {}, (3, 4, 2, 2, 2)),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "args", "kwargs", "shape"), CASES)
def test_lazy_modules_follow_pytorch(name: str, args: tuple, kwargs: dict, shape: tuple) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs, loaded = (getattr(m.nn, name)(*args, **kwargs) for m in (cr, torch, cr))
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert ours.load_state_dict(loaded.state_dict()).missing_keys == []
    x = np.random.default_rng(0).normal(size=shape)
    for each in (ours, theirs, loaded):
        each.double()
    theirs(torch.tensor(x)), ours(cr.tensor(x))
    assert type(ours) is getattr(nn, name.removeprefix("Lazy"))
    assert repr(ours) == repr(theirs)
    assert ours._hooks is None
    state = theirs.state_dict()
    ours.load_state_dict(state), loaded.load_state_dict(state)
    expected = theirs(torch.tensor(x)).detach().numpy()
    for each in (ours, loaded):
        y = each(cr.tensor(x))
        np.testing.assert_allclose(y.detach().numpy(), expected, rtol=1e-9, atol=1e-12)
        assert repr(each) == repr(theirs)
        if y.requires_grad:
            optimizer = cr.optim.SGD(each.parameters(), lr=0.1)
            y.sum().backward()
            optimizer.step()
            assert all(p.grad is not None for p in each.parameters())


def test_a_parameter_without_a_shape_refuses_to_compute() -> None:
    layer = nn.LazyLinear(3)
    assert isinstance(layer.weight, nn.Parameter)
    assert isinstance(layer.weight, nn.UninitializedParameter)
    assert repr(layer.weight) == "<UninitializedParameter>"
    uses = [
        lambda w: w * 2,
        lambda w: w.shape,
        lambda w: setattr(w, "data", cr.ones(3, 2)),
    ]
    for use in uses:
        with pytest.raises(cr.ShapeError, match="call it once with an input"):
            use(layer.weight)
    layer.reset_parameters()
    with pytest.warns(UserWarning, match="writing to it has no effect"):
        layer.weight.data.normal_(0, 0.01)
    assert layer.has_uninitialized_params()
    assert layer.to(cr.float64).cpu().weight.dtype == cr.float64
    weight = layer.weight
    layer(cr.ones(2, 4, dtype=cr.float64))
    assert layer.weight is weight
    assert not isinstance(weight, nn.UninitializedParameter)
    assert isinstance(weight, nn.Parameter)
    assert isinstance(copy.deepcopy(layer).weight, nn.Parameter)


def test_an_optimizer_may_be_made_before_the_first_call() -> None:
    net = nn.Sequential(nn.LazyLinear(2), nn.LazyBatchNorm1d())
    optimizer = cr.optim.AdamW(net.parameters(), lr=0.1)
    optimizer.step()
    before = None
    for _ in range(2):
        loss = (net(cr.arange(6.0).reshape(2, 3)) - 1).square().sum()
        optimizer.zero_grad()
        loss.backward()
        before = [p.detach().clone() for p in net.parameters()]
        optimizer.step()
    assert not any(map(cr.equal, before, net.parameters()))
    assert len(optimizer.state) == 4


def test_a_lazy_module_is_copied_and_pickled_before_its_first_call() -> None:
    layer = nn.LazyBatchNorm1d(dtype=cr.float64)
    for copied in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert copied.has_uninitialized_params()
        assert copied.weight is not layer.weight
        assert copied.weight.dtype == cr.float64
        copied(cr.ones(3, 2, dtype=cr.float64))
        assert isinstance(copied.weight, nn.Parameter)
        assert copied.running_mean.shape == (2,)
    assert layer.has_uninitialized_params()


class Scale(nn.modules.lazy.LazyModuleMixin, nn.Module):
    def __init__(self, complete: bool = True) -> None:
        super().__init__()
        self.scale, self.complete = nn.UninitializedParameter(), complete

    def initialize_parameters(self, x: cr.Tensor) -> None:
        if self.complete:
            self.scale.materialize(x.shape[-1:])
            nn.init.ones_(self.scale)

    def forward(self, x: cr.Tensor) -> cr.Tensor:
        return self.scale * x


def test_a_lazy_module_of_ones_own() -> None:
    layer = Scale()
    assert layer(cr.ones(3)).tolist() == [1, 1, 1]
    layer(cr.ones(3)).sum().backward()
    assert layer.scale.grad.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="has not been fully initialized"):
        Scale(False)(cr.ones(3))
