"""Averaged models, beside PyTorch's."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.optim import swa_utils


def net(lib: Any) -> Any:
    return lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4), lib.nn.Linear(4, 1))


def pair() -> tuple[Any, Any, Any]:
    torch = pytest.importorskip("torch")
    theirs, ours = net(torch), net(cr)
    ours.load_state_dict(theirs.state_dict())
    return torch, theirs, ours


AVERAGES: dict[str, Any] = {
    "mean": lambda lib: {},
    "ema": lambda lib: {"avg_fn": lib.get_ema_avg_fn(0.7)},
    "multi": lambda lib: {"multi_avg_fn": lib.get_ema_multi_avg_fn(0.7), "use_buffers": True},
    "buffers": lambda lib: {"use_buffers": True},
}


@pytest.mark.parametrize("kind", AVERAGES)
def test_averages_are_pytorchs(kind: str) -> None:
    torch, theirs, ours = pair()
    from torch.optim import swa_utils as torch_utils

    averaged = swa_utils.AveragedModel(ours, **AVERAGES[kind](swa_utils))
    wanted = torch_utils.AveragedModel(theirs, **AVERAGES[kind](torch_utils))
    rng = np.random.default_rng(0)
    for _ in range(4):
        x = rng.normal(size=(8, 3)).astype("f4")
        for model, library in ((ours, cr), (theirs, torch)):
            model(library.tensor(x))
            with library.no_grad():
                for parameter in model.parameters():
                    parameter += library.tensor(np.float32(0.1)) * parameter
        averaged.update_parameters(ours)
        wanted.update_parameters(theirs)
    state, expected = averaged.state_dict(), wanted.state_dict()
    assert list(state) == list(expected)
    for name, value in expected.items():
        if "tracked" in name and "use_buffers" in AVERAGES[kind](swa_utils):
            continue  # PyTorch rounds averages of this count to integers; here it is copied
        np.testing.assert_allclose(state[name].numpy(), value.numpy(), rtol=1e-5, atol=1e-6)


def test_statistics_are_those_of_all_batches() -> None:
    torch, theirs, ours = pair()
    from torch.optim import swa_utils as torch_utils

    batches = np.random.default_rng(1).normal(size=(5, 8, 3)).astype("f4")
    ours.eval()
    swa_utils.update_bn([(cr.tensor(b), None) for b in batches], ours)
    torch_utils.update_bn([torch.tensor(b) for b in batches], theirs)
    assert not ours.training
    assert not ours[1].training
    assert ours[1].momentum == 0.1
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        found, wanted = getattr(ours[1], name).numpy(), getattr(theirs[1], name).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_model_without_batch_normalisation_is_left_alone() -> None:
    layer = cr.nn.Linear(2, 1)
    swa_utils.update_bn([cr.ones(3, 2)], layer)
    assert layer.training


def test_the_original_is_not_shared() -> None:
    layer = cr.nn.Linear(2, 1)
    averaged = swa_utils.AveragedModel(layer)
    averaged.update_parameters(layer)
    with cr.no_grad():
        layer.weight.zero_()
    assert averaged.module.weight.detach().abs().sum() > 0
    np.testing.assert_array_equal(
        averaged(cr.ones(1, 2)).detach().numpy(), averaged.module(cr.ones(1, 2)).detach().numpy()
    )


def test_errors_name_what_was_expected() -> None:
    layer = cr.nn.Linear(2, 1)
    average = swa_utils.get_swa_avg_fn()
    with pytest.raises(cr.ArgumentError, match="Only one of avg_fn and multi_avg_fn"):
        swa_utils.AveragedModel(layer, None, average, swa_utils.get_swa_multi_avg_fn())
    with pytest.raises(cr.ShapeError, match=r"update_parameters.*\[1, 2\].*\[1, 3\]"):
        swa_utils.AveragedModel(layer).update_parameters(cr.nn.Linear(3, 1))


def test_averaged_models_are_pickled() -> None:
    for how in ({}, {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.5)}):
        average = swa_utils.AveragedModel(net(cr), **how)
        average.update_parameters(net(cr))
        copied, other = pickle.loads(pickle.dumps(average)), net(cr)
        for each in (average, copied):
            each.update_parameters(other)
        assert copied.module[0].weight.tolist() == average.module[0].weight.tolist()
