"""A training run: its steps, and the state that a checkpoint holds."""

from __future__ import annotations

import itertools
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.creation import tensor
from chainrule.distributed.clients import MAX_INLINE_BYTES, result_of
from chainrule.distributed.micro_batches import (
    MicroBatch,
    Point,
    Result,
    evaluate,
    mean,
    replica_of,
    tensors_of,
)
from chainrule.distributed.partitions import pickled
from chainrule.distributed.reduction import reduce_tree
from chainrule.distributed.settings import capture
from chainrule.distributed.training_data import TrainingData, send
from chainrule.errors import ArgumentError
from chainrule.io import load, save
from chainrule.nn.modules.module import Module
from chainrule.optim.lr_scheduler import ReduceLROnPlateau
from chainrule.utils import progress


class Plan(NamedTuple):
    """The options of `fit`."""

    epochs: int
    micro_batches: int
    scheduler: Any
    interval: str
    validate: Callable[[Any], Any] | None
    patience: int | None
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: int | None
    retries: int
    progress: bool


@dataclass
class Fit:
    """Result of `fit`.

    Attributes
    ----------
    model : Module or tree of Tensors
        The model that `fit` got, with its fitted parameters.
    losses : list of float
        The loss of each step, before its update: the mean over its examples.
    history : list of dict
        For each epoch the mean ``"loss"`` of its examples, their number ``"examples"``, the
        ``"seconds"``, and ``"validation"``, what `validate` returned.
    stopped_early : bool
        Whether `patience` ended the run.
    """

    model: Any
    losses: list[float] = field(default_factory=list)
    history: list[dict[str, float]] = field(default_factory=list)
    stopped_early: bool = False

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.losses)


@dataclass
class _Epoch:
    """An epoch under way."""

    random: list[Any]  # states of generators at its start
    steps: int = 0
    examples: int = 0
    loss: float = 0.0  # summed over examples
    seconds: float = 0.0


class Run:
    """A run of `fit`. Its state changes by whole steps and whole epochs."""

    def __init__(
        self, client: Any, model: Any, loss: Any, optimizer: Any, data: Any, plan: Plan
    ) -> None:
        self._client, self._optimizer, self._plan = client, optimizer, plan
        self._model, self._found = model, Fit(model)
        self._parameters, self._buffers = _updated(model, optimizer)
        self._data = TrainingData(data, client)
        self._settings = capture()
        written = pickled((model, loss), "the model, or the loss,")
        self._replica = send(client, replica_of, uuid.uuid4().hex, written)
        self._epoch = _Epoch(self._data.random_state())
        self._saved = 0, 0  # steps and epochs in the file
        self._is_whole = True  # False while a step updates
        self._updates = ThreadPoolExecutor(1, thread_name_prefix="chainrule fit")

    def fitted(self) -> Fit:
        """Run what a checkpoint doesn't hold yet, and return the result."""
        self._restore()
        if self._plan.progress and "dashboard" in self._client.scheduler_info()["services"]:
            print(f"fit: {self._client.dashboard_link}", file=sys.stderr)
        try:
            with self._updates:  # an interrupt waits here for the end of an update
                while len(self._found.history) < self._plan.epochs and not self._is_done():
                    self._run_epoch()
                    self._save()
        finally:
            self._save()
        return self._found

    def _is_done(self) -> bool:
        """Whether the last epochs have not improved on the best one."""
        watched = [_watched(record) for record in self._found.history]
        waited = len(watched) - 1 - watched.index(min(watched)) if watched else 0
        self._found.stopped_early = waited >= (self._plan.patience or float("inf"))
        return self._found.stopped_early

    # --- steps ---

    def _run_epoch(self) -> None:
        plan, epoch = self._plan, self._epoch
        self._data.set_random_state(epoch.random)
        number = len(self._found.history)
        steps = _grouped(self._data.epoch(), plan.micro_batches)
        total = self._data.steps(plan.micro_batches)
        bar = progress(steps, f"epoch {number + 1}/{plan.epochs}", total, disable=not plan.progress)
        started = time.monotonic() - epoch.seconds  # also of the run before
        for done, step in enumerate(bar):
            if done < epoch.steps:  # of a run that goes on
                continue
            self._whole(self._update, self._computed(f"epoch {number}", step), started)
            rate = epoch.examples / epoch.seconds
            bar.set_postfix_str(f"loss {self._found.losses[-1]:.4g}, {rate:.0f} examples/s")
            if plan.checkpoint_every and self._found.steps % plan.checkpoint_every == 0:
                self._save()
        if not epoch.examples:
            raise ArgumentError("fit: the data has no batches: check the length of the loader")
        record = {"loss": epoch.loss / epoch.examples, "examples": epoch.examples}
        record["seconds"] = epoch.seconds
        if plan.validate is not None:
            record["validation"] = float(plan.validate(self._model))
        self._whole(self._end_epoch, record)

    def _computed(self, epoch: str, step: list[MicroBatch]) -> Result:
        """Return the mean of the micro-batches of a step."""
        labels: dict[Any, str] = {}
        found: Result = result_of(
            self._client,
            f"fit: {epoch}",
            lambda: self._started(step, labels),
            lambda task: labels.get(task, f"task {task}"),
        )
        return found

    def _started(self, step: list[MicroBatch], labels: dict[Any, str]) -> Any:
        """Send the tasks of a step, with their labels by key; return the future of the mean."""
        client = self._client
        buffers = {name: buffer.detach() for name, buffer in self._buffers.items()}
        parameters = {name: p.detach() for name, p in self._parameters.items()}
        tensors = [*parameters.values(), *buffers.values()]
        point = Point(parameters, buffers, self._settings)
        if sum(each.nbytes for each in tensors) > MAX_INLINE_BYTES:
            point = send(client, Point, parameters, buffers, self._settings)
        futures = []
        for label, seed, source in step:
            shared = self._replica, point, self._data.fetcher
            future = client.submit(
                evaluate, *shared, label, seed, source, pure=False, retries=self._plan.retries
            )
            labels[future.key] = label
            futures.append(future)
        return reduce_tree(futures, lambda group: client.submit(mean, group, pure=False))

    # --- changes of the state, in a thread of their own, where no interrupt comes ---

    def _whole(self, change: Callable[..., None], *args: Any) -> None:
        self._updates.submit(copy_context().run, change, *args).result()

    def _update(self, result: Result, started: float) -> None:
        self._is_whole = False
        gradients = result.means["gradients"]
        for name, parameter in self._parameters.items():
            parameter.grad = gradients[name]
        self._optimizer.step()
        with no_grad():
            for name, value in (result.means["buffers"] | result.counters).items():
                self._buffers[name].copy_(value)
        if self._plan.scheduler is not None and self._plan.interval == "step":
            self._plan.scheduler.step()
        loss = result.means["loss"].item()
        self._found.losses.append(loss)
        self._epoch.steps += 1
        self._epoch.examples += result.examples
        self._epoch.loss += loss * result.examples
        self._epoch.seconds = time.monotonic() - started
        self._is_whole = True

    def _end_epoch(self, record: dict[str, float]) -> None:
        scheduler = self._plan.scheduler
        if isinstance(scheduler, ReduceLROnPlateau):
            scheduler.step(_watched(record))
        elif scheduler is not None and self._plan.interval == "epoch":
            scheduler.step()
        self._found.history.append(record)
        self._epoch = _Epoch(self._data.random_state())

    # --- checkpoints ---

    def _save(self) -> None:
        now = self._found.steps, len(self._found.history)
        if self._plan.checkpoint is None or now == self._saved or not self._is_whole:
            return
        scheduler = self._plan.scheduler
        save(
            {
                "model": _state_of(self._model),
                "optimizer": self._optimizer.state_dict(),
                "scheduler": None if scheduler is None else scheduler.state_dict(),
                "losses": tensor(self._found.losses, dtype="float64"),
                "history": self._found.history,
                "epoch": vars(self._epoch),
            },
            self._plan.checkpoint,
        )
        self._saved = now

    def _restore(self) -> None:
        path = self._plan.checkpoint
        if path is None or not Path(path).exists():
            return
        saved = load(path)
        try:
            _set_state(self._model, saved["model"])
            self._optimizer.load_state_dict(saved["optimizer"])
            if self._plan.scheduler is not None:
                self._plan.scheduler.load_state_dict(saved["scheduler"])
        except Exception as error:
            error.add_note(f"{path} is from another run: delete it, or pass another checkpoint")
            raise
        self._found.losses, self._found.history = saved["losses"].tolist(), saved["history"]
        self._epoch = _Epoch(**saved["epoch"])
        self._saved = self._found.steps, len(self._found.history)


def _watched(record: dict[str, float]) -> float:
    """Return what `patience` and `ReduceLROnPlateau` watch."""
    return record.get("validation", record["loss"])


def _grouped(batches: Iterator[MicroBatch], size: int) -> Iterator[list[MicroBatch]]:
    while group := list(itertools.islice(batches, size)):
        yield group


def _updated(model: Any, optimizer: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameters that an optimiser updates by their names in the model, and buffers."""
    parameters, buffers = tensors_of(model)
    names = {id(parameter): name for name, parameter in reversed(parameters.items())}
    found = {}
    for parameter in (p for group in optimizer.param_groups for p in group["params"]):
        if id(parameter) not in names:
            raise ArgumentError(
                f"fit: the optimiser updates a tensor of shape {list(parameter.shape)} that is not "
                "in the model: make it of the tensors of the model that is passed"
            )
        if parameter.requires_grad:
            found[names[id(parameter)]] = parameter
    return found, buffers


def _state_of(model: Any) -> dict[str, Tensor]:
    return model.state_dict() if isinstance(model, Module) else tensors_of(model)[0]


def _set_state(model: Any, state: dict[str, Tensor]) -> None:
    if isinstance(model, Module):
        model.load_state_dict(state)
        return
    found, _ = tensors_of(model)
    if found.keys() != state.keys():
        raise ArgumentError(f"the model has the tensors {list(found)}, the file {list(state)}")
    with no_grad():
        for name, value in state.items():
            found[name].copy_(value)
