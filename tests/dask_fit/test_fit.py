"""`cr.distributed.fit`: the steps of a loop in one process, on any number of workers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn
from chainrule.distributed import Fit, fit, local_cluster
from chainrule.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset


def examples(number: int = 48) -> TensorDataset:
    g = cr.Generator().manual_seed(3)
    x = cr.randn(number, 5, generator=g)
    return TensorDataset(x, cr.sin(x.sum(1, keepdim=True)))


def loader(batch: int = 4, number: int = 48) -> Any:
    g = cr.Generator().manual_seed(4)
    return DataLoader(examples(number), batch, shuffle=True, generator=g)


def network(*layers: Any) -> Any:
    cr.manual_seed(5)
    return nn.Sequential(nn.Linear(5, 8), *layers, nn.Tanh(), nn.Linear(8, 1))


def loss(net: Any, x: Any, y: Any) -> Any:
    return ((net(x) - y) ** 2).mean()


def trained(model: Any, client: Any, data: Any = None, loss: Any = loss, **options: Any) -> Fit:
    optimizer = cr.optim.Adam(model.parameters(), lr=0.01)
    data = loader() if data is None else data
    settings = {"epochs": 2, "micro_batches": 4, "progress": False} | options
    return fit(model, loss, optimizer, data, client=client, **settings)


def values(model: Any) -> list[Any]:
    return [value.tolist() for value in model.state_dict().values()]


# --- the same as in one process, and on several ---------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("micro_batches", [1, 2, 4, 8])
def test_steps_are_those_of_a_loop_to_the_bit(processes: Any, micro_batches: int) -> None:
    model = network()
    found = trained(model, processes, loader(4, 64), micro_batches=micro_batches)
    wanted = network()
    optimizer = cr.optim.Adam(wanted.parameters(), lr=0.01)
    data, losses = loader(4, 64), []
    for _ in range(2):
        batches = list(data)
        for start in range(0, len(batches), micro_batches):
            step = batches[start : start + micro_batches]
            optimizer.zero_grad()
            parts = [loss(wanted, x, y) / len(step) for x, y in step]
            for part in parts:
                part.backward()
            optimizer.step()
            losses.append(sum(part.item() for part in parts))
    assert values(model) == values(wanted)
    np.testing.assert_allclose(found.losses, losses, rtol=1e-6)
    assert found.model is model
    assert found.steps == len(losses) == 2 * 16 / micro_batches
    assert [each["examples"] for each in found.history] == [64, 64]
    np.testing.assert_allclose(found.history[1]["loss"], np.mean(losses[len(losses) // 2 :]))


class Noisy(Dataset[Any]):
    """Examples that change at random when they are taken."""

    def __len__(self) -> int:
        return 48

    def __getitem__(self, index: Any) -> Any:
        x, y = examples()[index]
        return {"x": x + 0.1 * cr.randn(5), "y": y}


def test_bits_do_not_depend_on_workers(client: Any, processes: Any) -> None:
    found = []
    with local_cluster(1, processes=False) as one:
        for each in (one, client, processes):
            model = network(nn.BatchNorm1d(8), nn.Dropout(0.3))
            data = DataLoader(Noisy(), 5, shuffle=True)
            losses = trained(model, each, data, micro_batches=10).losses
            found.append((losses, values(model)))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("number", "batch", "micro_batches"), [(46, 4, 12), (45, 9, 5), (48, 4, 9)]
)
def test_a_step_is_the_gradient_of_its_examples(
    client: Any, number: int, batch: int, micro_batches: int
) -> None:
    model, wanted = network(), network()
    before = values(model)
    optimizer = cr.optim.SGD(model.parameters(), lr=0.1)
    data = DataLoader(examples(number), batch)
    found = fit(
        model, loss, optimizer, data, client=client, micro_batches=micro_batches, progress=False
    )
    taken = examples(number)[: batch * micro_batches]
    loss(wanted, *taken).backward()
    if found.steps == 1:
        for value, start, p in zip(values(model), before, wanted.parameters(), strict=True):
            np.testing.assert_allclose(value, start - 0.1 * p.grad.numpy(), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found.losses[0], loss(wanted, *taken).item(), rtol=1e-6)


def test_buffers_are_means_and_counters_count_steps(client: Any) -> None:
    model = nn.BatchNorm1d(5, momentum=0.5)
    x, _ = examples(6)[:]
    data = DataLoader(TensorDataset(x), 4)
    optimizer = cr.optim.SGD(model.parameters(), lr=0.1)

    def centred(net: Any, x: Any) -> Any:
        return (net(x) ** 2).mean()

    fit(model, centred, optimizer, data, client=client, micro_batches=2, progress=False)
    np.testing.assert_allclose(model.running_mean, 0.5 * x.mean(0), rtol=1e-5, atol=1e-7)
    assert model.num_batches_tracked.item() == 1


# --- models and data ------------------------------------------------------------------------------


def partition(start: int, folder: Path | None = None) -> Any:
    x, y = examples()[start : start + 12]
    return {"x": x.numpy(), "y": y.numpy()}


def linear(params: Any, x: Any, y: Any) -> Any:
    return ((x @ params["w"] + params["b"] - y) ** 2).mean()


def parts(kind: str, folder: Path) -> Any:
    starts = range(0, 48, 12)
    if kind == "callables":
        return [lambda start=start: partition(start) for start in starts]
    if kind == "files":
        for start in starts:
            np.savez(folder / f"{start}.npz", **partition(start))
        return [folder / f"{start}.npz" for start in starts]
    if kind == "loader":
        return DataLoader(examples(), 12)
    if kind == "stream":
        return DataLoader(Stream(), 12)
    if kind == "examples":
        return DataLoader([partition(start) for start in starts], batch_size=None)
    array = pytest.importorskip("dask.array").from_array
    x, y = (array(each.numpy(), chunks=(12, -1)) for each in examples()[:])
    return {"x": x, "y": y}


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return (examples()[i] for i in range(48))


@pytest.mark.parametrize("kind", ["callables", "files", "loader", "stream", "examples", "dask"])
def test_kinds_of_data(kind: str, client: Any, tmp_path: Path) -> None:
    found, data = [], parts(kind, tmp_path)
    for each in (data, parts("loader", tmp_path)):
        params = {"w": cr.zeros(5, 1, requires_grad=True), "b": cr.zeros(1, requires_grad=True)}
        fixed = {"scale": cr.ones(1), **params}
        optimizer = cr.optim.SGD(params.values(), lr=0.1, momentum=0.9)
        done = fit(
            fixed, linear, optimizer, each, client=client, epochs=2, micro_batches=2, progress=False
        )
        assert done.model is fixed
        found.append([params["w"].tolist(), params["b"].tolist(), done.losses])
    assert found[0] == found[1]
    assert len(found[0][2]) == 4


def test_a_single_tensor_is_a_model(client: Any, tmp_path: Path) -> None:
    w = cr.zeros(5, 1, requires_grad=True)

    def product(w: Any, x: Any, y: Any) -> Any:
        return ((x @ w - y) ** 2).mean()

    file = tmp_path / "w.cr"
    for epochs in (1, 2):
        optimizer = cr.optim.SGD([w], lr=0.1)
        found = fit(
            w, product, optimizer, loader(), epochs=epochs, client=client, checkpoint=file,
            micro_batches=4, progress=False,
        )  # fmt: skip
    assert found.steps == 6
    assert found.losses[-1] < found.losses[0]


def test_frozen_and_unused_parameters(client: Any) -> None:
    model = network()
    model[0].requires_grad_(False)
    model.unused = nn.Parameter(cr.ones(2))
    before = values(model)

    def head(net: Any, x: Any, y: Any) -> Any:
        return ((net[2](net[1](net[0](x))) - y) ** 2).mean()

    trained(model, client, loss=head)
    changed = [a != b for a, b in zip(values(model), before, strict=True)]
    assert dict(zip(model.state_dict(), changed, strict=True)) == {
        "0.weight": False, "0.bias": False, "2.weight": True, "2.bias": True, "unused": False,
    }  # fmt: skip
    assert model.unused.grad is None


def count_traces() -> None:
    from chainrule.compiler import build

    trace_call = build.trace_call

    def counted(*call: Any) -> Any:
        os.environ["TRACES"] = f"{traces()}+"
        return trace_call(*call)

    build.trace_call = counted


def traces() -> str:
    return os.environ.get("TRACES", "")


def test_a_compiled_loss_is_traced_once_in_a_process(processes: Any) -> None:
    processes.run(count_traces)
    model, wanted = network(), network()
    trained(model, processes, loss=cr.compile(loss))
    trained(wanted, processes)
    for found, value in zip(values(model), values(wanted), strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-5)
    assert set(processes.run(traces).values()) in ({"+"}, {"+", ""})  # one may have done all


def test_the_mode_of_the_module_and_the_settings_of_the_client_hold(client: Any) -> None:
    model = network(nn.Dropout(0.9)).eval()

    def observed(net: Any, x: Any, y: Any) -> Any:
        assert not net.training
        assert cr.get_default_dtype() == cr.float64
        return loss(net, x, y)

    cr.set_default_dtype(cr.float64)
    try:
        with cr.no_grad():
            found = trained(model, client, loss=observed, epochs=1)
    finally:
        cr.set_default_dtype(cr.float32)
    assert found.steps == 3


# --- the course of a run --------------------------------------------------------------------------


def test_schedules(client: Any) -> None:
    rates = {}
    for interval in ("epoch", "step"):
        model = network()
        optimizer = cr.optim.SGD(model.parameters(), lr=1.0)
        schedule = cr.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        fit(
            model, loss, optimizer, loader(), client=client, epochs=2, micro_batches=4,
            scheduler=schedule, interval=interval, progress=False,
        )  # fmt: skip
        rates[interval] = optimizer.param_groups[0]["lr"]
    assert rates == {"epoch": 0.25, "step": 0.5**6}


def test_patience_watches_validation(client: Any) -> None:
    returned = iter([3.0, 1.0, 2.0, 2.0, 0.0])
    model = network()
    optimizer = cr.optim.SGD(model.parameters(), lr=1.0)
    schedule = cr.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    found = fit(
        model, loss, optimizer, loader(), client=client, epochs=9, micro_batches=12, patience=2,
        validate=lambda net: next(returned), scheduler=schedule, progress=False,
    )  # fmt: skip
    assert [each["validation"] for each in found.history] == [3.0, 1.0, 2.0, 2.0]
    assert found.stopped_early
    np.testing.assert_allclose(optimizer.param_groups[0]["lr"], 0.01)
    assert not trained(network(), client, epochs=1, patience=1).stopped_early


def test_progress_shows_loss_and_rate(client: Any, capsys: pytest.CaptureFixture[str]) -> None:
    found = trained(network(), client, epochs=2, progress=True)
    shown = capsys.readouterr().err
    assert "epoch 2/2: 3/3 (100 %)" in shown
    assert f"loss {found.losses[-1]:.4g}, " in shown
    assert "examples/s" in shown
