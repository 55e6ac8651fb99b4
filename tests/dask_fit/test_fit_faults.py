"""Faults of `cr.distributed.fit`: errors with their batch, whole steps, runs that go on."""

from __future__ import annotations

import _thread
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule import nn
from chainrule.distributed import Fit, fit, training_run
from chainrule.errors import (
    ArgumentError,
    ArgumentTypeError,
    ClusterError,
    FormatError,
    PartitionError,
)
from chainrule.utils.data import DataLoader, RandomSampler, TensorDataset


def network() -> Any:
    cr.manual_seed(5)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.2), nn.Linear(4, 1))


def loss(net: Any, x: Any) -> Any:
    return ((net(x) - x.sum(1, keepdim=True)) ** 2).mean()


class Training:
    """A run with all that a checkpoint holds."""

    def __init__(self, client: Any, loss: Any = loss, **options: Any) -> None:
        x = cr.randn(20, 3, generator=cr.Generator().manual_seed(3))
        self.draw = cr.Generator().manual_seed(4)
        order = RandomSampler(x, generator=self.draw)
        self.data: Any = DataLoader(TensorDataset(x), 2, sampler=order)
        self.net = network()
        self.optimizer = cr.optim.Adam(self.net.parameters(), lr=0.01)
        self.schedule = cr.optim.lr_scheduler.OneCycleLR(self.optimizer, 0.1, total_steps=200)
        self.loss, self.options = loss, {"client": client, "micro_batches": 2} | options
        cr.manual_seed(6)

    def run(self, epochs: int = 3, **options: Any) -> Fit:
        return fit(
            self.net, self.loss, self.optimizer, self.data, epochs=epochs, progress=False,
            scheduler=self.schedule, interval="step", **self.options, **options,
        )  # fmt: skip

    def state(self) -> Any:
        tensors = [value.tolist() for value in self.net.state_dict().values()]
        rest = self.optimizer.state_dict(), self.schedule.state_dict()
        return tensors, str(rest), cr.get_rng_state(), self.draw.get_state()


def settle(client: Any) -> None:
    """Wait for tasks that an error has left: threads of this process have one random generator."""
    while any(client.run(number_of_tasks).values()):
        pass


def number_of_tasks(dask_worker: Any) -> int:
    return len(dask_worker.state.executing)


# --- checkpoints ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def uninterrupted(client: Any) -> tuple[Fit, Any]:
    """The result of a run, and the state that it leaves."""
    whole = Training(client)
    return whole.run(2), whole.state()


@settings(max_examples=4, deadline=None)
@given(
    stops=st.lists(st.integers(1, 9), min_size=1, max_size=2, unique=True),
    every=st.sampled_from([None, 1, 2]),
)
def test_interrupted_runs_go_on_to_the_same_bits(
    client: Any,
    tmp_path_factory: pytest.TempPathFactory,
    uninterrupted: tuple[Fit, Any],
    stops: list[int],
    every: int | None,
) -> None:
    wanted, state = uninterrupted
    path = tmp_path_factory.mktemp("runs") / "run.cr"
    options = {"checkpoint": path, "checkpoint_every": every}
    for stop in sorted(stops):
        broken = Training(client, **options)
        steps = 0 if not path.exists() else len(cr.load(path)["losses"])

        def interrupt(optimizer: Any, args: Any, kwargs: Any) -> None:
            nonlocal steps
            steps += 1
            if steps == stop:  # noqa: B023  # called within this turn
                _thread.interrupt_main()

        broken.optimizer.register_step_post_hook(interrupt)
        if steps < stop:
            with pytest.raises(KeyboardInterrupt):
                broken.run(2)
            assert len(cr.load(path)["losses"]) in (stop, stop + 1)
    last = Training(client, **options)
    found = last.run(2)
    assert last.state() == state
    assert found.losses == wanted.losses
    assert [each["loss"] for each in found.history] == [each["loss"] for each in wanted.history]


def test_a_finished_run_is_continued_by_more_epochs(client: Any, tmp_path: Path) -> None:
    whole, path = Training(client), tmp_path / "run.cr"
    whole.run(2)
    Training(client, checkpoint=path).run(1)
    again = Training(client, checkpoint=path)
    assert again.run(1).steps == 5
    last = Training(client, checkpoint=path)
    assert last.run(2).steps == 10
    assert last.state() == whole.state()


def test_trees_of_tensors_are_in_checkpoints(client: Any, tmp_path: Path) -> None:
    data = DataLoader(TensorDataset(cr.arange(8.0)), 2)

    def line(params: Any, x: Any) -> Any:
        return ((params["a"] * x + params["b"][0] - 2 * x - 1) ** 2).mean()

    found = []
    for epochs in ([2], [1, 2]):
        for number in epochs:
            params = {"a": cr.zeros((), requires_grad=True), "b": [cr.zeros(1, requires_grad=True)]}
            done = fit(
                params, line, cr.optim.SGD([params["a"], *params["b"]], lr=0.01), data,
                epochs=number, client=client, progress=False,
                checkpoint=tmp_path / f"{len(epochs)}.cr",
            )  # fmt: skip
        found.append((done.losses, params["a"].item(), params["b"][0].item()))
    assert found[0] == found[1]
    other = {"x": cr.zeros((), requires_grad=True)}
    with pytest.raises(ArgumentError, match=r"tensors .*x.*, the file .*a.*b") as caught:
        fit(
            other, line, cr.optim.SGD(other.values()), data, client=client,
            checkpoint=tmp_path / "2.cr",
        )  # fmt: skip
    assert "another run: delete it" in caught.value.__notes__[0]


def test_a_damaged_checkpoint_is_refused(client: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.cr"
    path.write_bytes(b"no checkpoint")
    with pytest.raises(FormatError):
        Training(client, checkpoint=path).run()


# --- errors name the batch and change nothing -----------------------------------------------------


def poisoned(net: Any, x: Any) -> Any:
    return loss(net, x) * (float("nan") if poison(x) else 1)


def poisoned_gradient(net: Any, x: Any) -> Any:
    return loss(net, x) + (0 * cr.sqrt(0 * net[0].bias).sum() if poison(x) else 0)


def failing(net: Any, x: Any) -> Any:
    if poison(x):
        raise ZeroDivisionError("my own")
    return loss(net, x)


def vector(net: Any, x: Any) -> Any:
    return net(x)


def number(net: Any, x: Any) -> Any:
    return loss(net, x).item()


def constant(net: Any, x: Any) -> Any:
    return x.sum()


def poison(x: Any) -> bool:
    return bool((abs(x[:, 0] - POISON) < 1e-6).any())


POISON = cr.randn(20, 3, generator=cr.Generator().manual_seed(3))[13, 0].item()
FAULTS = {
    "nan": (poisoned, r"epoch 0: micro-batch \d+ \(examples \[.*13.*\]\): .*the loss is nan"),
    "nan gradient": (poisoned_gradient, r"\[.*13.*\].*the gradient of 0.bias is nan at \[0\]"),
    "error": (failing, r"examples \[.*13.*\]\): ZeroDivisionError: my own"),
    "vector": (
        vector,
        r"epoch 0: micro-batch [01] .*one real number, got a Tensor of shape \[2, 1\]",
    ),
    "number": (number, r"epoch 0: micro-batch [01] .*one real number, got a float"),
    "constant": (constant, r"epoch 0: micro-batch [01] .*require grad"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_faults_name_the_batch_and_change_nothing(kind: str, client: Any, tmp_path: Path) -> None:
    function, text = FAULTS[kind]
    training = Training(client, function, checkpoint=tmp_path / "run.cr")
    before: list[Any] = [training.state()[:2]]
    training.optimizer.register_step_post_hook(
        lambda *_: before.append([p.tolist() for p in training.net.parameters()])
    )
    with pytest.raises(PartitionError, match=text):
        training.run()
    settle(client)
    after = [p.tolist() for p in training.net.parameters()]
    if len(before) == 1:
        assert training.state()[:2] == before[0]
        return
    assert after == before[-1]
    repaired = Training(client, checkpoint=tmp_path / "run.cr")
    whole = Training(client)
    repaired.run()
    whole.run()
    assert repaired.state() == whole.state()


def test_a_step_that_an_error_broke_off_is_not_saved(client: Any, tmp_path: Path) -> None:
    training = Training(client, checkpoint=tmp_path / "run.cr")

    def fails(optimizer: Any, args: Any, kwargs: Any) -> None:
        if optimizer.state[training.net[0].weight]["step"] == 3:
            raise RuntimeError("in a hook")

    training.optimizer.register_step_post_hook(fails)
    with pytest.raises(RuntimeError, match="in a hook"):
        training.run()
    assert not (tmp_path / "run.cr").exists()


class Broken(TensorDataset):
    def __getitem__(self, index: Any) -> Any:
        raise OSError("the disk is gone")


class Unreadable(TensorDataset):
    def __reduce__(self) -> Any:
        return unreadable, ()


def unreadable() -> Any:
    raise ImportError("no module there")


DATA = {
    "data set": (DataLoader(Broken(cr.ones(4, 3)), 2), "[01] .*OSError: the disk is gone"),
    "no examples": ([lambda: (cr.ones(2, 3),), lambda: (cr.ones(0, 3),)], "1, partition 1.*no ex"),
    "unlike lengths": ([lambda: (cr.ones(2, 3), cr.ones(3))], r"0, partition 0.*lengths \[2, 3\]"),
    "file": (["no such.npy"], "0, partition 0.*FileNotFoundError"),
}


@pytest.mark.parametrize("kind", DATA)
def test_data_that_fails(kind: str, client: Any) -> None:
    training = Training(client)
    training.data, text = DATA[kind]
    with pytest.raises(PartitionError, match=f"fit: epoch 0: micro-batch {text}"):
        training.run()
    settle(client)


def test_data_sets_that_workers_can_not_read(client: Any) -> None:
    training = Training(client)
    training.data = DataLoader(Unreadable(cr.ones(4, 3)), 2)
    with pytest.raises(PartitionError, match=r"fit: .*the data set: ImportError: no module there"):
        training.run()


def test_what_can_not_be_sent_is_refused_before_the_first_step(client: Any) -> None:
    lock = threading.Lock()
    with pytest.raises(ArgumentTypeError, match=r"the model, or the loss, can't.*lock"):
        Training(client, lambda net, x: loss(net, x) if lock else None).run()
    training = Training(client)
    training.data = DataLoader(TensorDataset(cr.ones(4, 3)), 2, collate_fn=lambda _: lock)
    with pytest.raises(ArgumentTypeError, match="the data set, or collate_fn, can't be se"):
        training.run()


def test_arguments(client: Any) -> None:
    training = Training(client)
    refused = {
        r"epochs must be a positive int, got 0": {"epochs": 0},
        r"patience must be a positive int, got True": {"patience": True},
        r"checkpoint_every needs the file": {"checkpoint_every": 3},
    }
    for text, options in refused.items():
        with pytest.raises(ArgumentError, match=text):
            training.run(**options)
    x, net = cr.ones(4, 3), training.net
    with pytest.raises(ArgumentTypeError, match=r"data is a Dataset.*DataLoader"):
        fit(net, loss, training.optimizer, TensorDataset(x), client=client)
    with pytest.raises(ArgumentError, match=r"shape \[4, 3\] that is not in the model"):
        fit(network(), loss, cr.optim.SGD(net.parameters()), training.data, client=client)
    with pytest.raises(ArgumentError, match=r"LBFGS.*Objective"):
        fit(net, loss, cr.optim.LBFGS(net.parameters()), training.data, client=client)
    empty = DataLoader([], 2)
    with pytest.raises(ArgumentError, match="no batches: check the length"):
        fit(net, loss, training.optimizer, empty, client=client)
    with pytest.raises(ArgumentError, match="interval is 'epoch' or 'step', got 'steps'"):
        fit(net, loss, training.optimizer, training.data, client=client, interval="steps")


def test_a_closed_client_is_an_error(client: Any) -> None:
    other = type(client)(client.cluster, set_as_default=False)
    other.close()
    with pytest.raises(ClusterError, match="the scheduler can't be reached"):
        Training(other).run()


# --- interrupts and workers that end --------------------------------------------------------------


def test_an_interrupt_while_workers_compute_changes_nothing(client: Any, tmp_path: Path) -> None:
    folder = tmp_path / "calls"
    folder.mkdir()

    def interrupting(net: Any, x: Any) -> Any:
        number = len(list(folder.iterdir()))
        (folder / str(number)).touch()
        if number == 7:
            os.kill(os.getpid(), signal.SIGINT)  # of threads of this process
        return loss(net, x)

    broken = Training(client, interrupting, checkpoint=tmp_path / "run.cr")
    with pytest.raises(KeyboardInterrupt):
        broken.run()
    settle(client)
    whole, last = Training(client), Training(client, checkpoint=tmp_path / "run.cr")
    whole.run()
    last.run()
    assert last.state() == whole.state()


def deadly(folder: Path) -> Any:
    """Return the loss, which kills its process at two of the first calls."""

    def kills(net: Any, x: Any) -> Any:
        number = len(list(folder.iterdir()))
        (folder / str(number)).touch()
        if number in (3, 7):
            os.kill(os.getpid(), signal.SIGKILL)
        return loss(net, x)

    return kills


@pytest.mark.thorough
def test_a_killed_worker_changes_no_bit(
    client: Any, processes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_run, "MAX_INLINE_BYTES", 0)  # copies of parameters are lost, too
    wanted = Training(client)
    losses = wanted.run().losses
    found = Training(processes, deadly(tmp_path))
    assert found.run().losses == losses
    assert found.state() == wanted.state()
    assert len(list(tmp_path.iterdir())) > 30
