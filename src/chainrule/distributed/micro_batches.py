"""The tasks of `fit`, as workers run them: micro-batches, and the means of their results."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from chainrule import pytree, tree
from chainrule.autograd.backward import autograd_grad
from chainrule.autograd.modes import enable_grad, no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.distributed.partitions import arguments_of, load, number_of_examples
from chainrule.distributed.reduction import sum_trees
from chainrule.distributed.settings import Settings
from chainrule.distributed.tasks import labelled
from chainrule.errors import AutogradError
from chainrule.nn.modules.module import Module
from chainrule.random import fork_rng, manual_seed
from chainrule.utils.data.workers import Fetcher


class MicroBatch(NamedTuple):
    """A part of the batch of a step, computed by one worker."""

    label: str
    seed: int  # of the default generator, while it is computed
    source: Any  # what `load` loads, or indices for the fetcher of a data loader


@dataclass(frozen=True)
class Point:
    """The tensors by name at which a step computes the gradients."""

    parameters: dict[str, Tensor]  # those that the optimiser updates
    buffers: dict[str, Tensor]
    settings: Settings


class Result(NamedTuple):
    """What a step needs of a micro-batch, or of several."""

    examples: int
    means: dict[str, Any]  # over examples: the loss, gradients, floating-point buffers
    counters: dict[str, Any]  # other buffers, as the first micro-batch leaves them


class Replica:
    """The model and the loss of a run."""

    def __init__(self, run: str, pickled: bytes) -> None:
        self.run, self._pickled = run, pickled
        self.model, self.loss = pickle.loads(pickled)

    def __reduce__(self) -> Any:
        return replica_of, (self.run, self._pickled)


_REPLICAS: dict[str, Replica] = {}
_MAX_REPLICAS = 2
_LOCK = threading.Lock()


def replica_of(run: str, pickled: bytes) -> Replica:
    """Return the replica of a run in this process, so that the loss compiles once.

    Dask drops copies that no task needs at the moment, and sends them again.
    """
    with _LOCK:
        if run not in _REPLICAS:
            while len(_REPLICAS) >= _MAX_REPLICAS:
                del _REPLICAS[next(iter(_REPLICAS))]
            _REPLICAS[run] = Replica(run, pickled)
        return _REPLICAS[run]


def tensors_of(model: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameters and the buffers of a module by name, or the tensors of a tree."""
    if isinstance(model, Module):
        return dict(model.named_parameters()), dict(model.named_buffers())
    leaves = pytree.leaves(model)
    return {path: leaf for path, leaf in leaves if isinstance(leaf, Tensor)}, {}


_TURN = threading.Lock()
"""Held while a micro-batch is computed: all in a process have one model and one generator."""


def evaluate(
    replica: Replica, point: Point, fetcher: Fetcher | None, label: str, seed: int, source: Any
) -> Result:
    """Return the loss of a micro-batch, its gradients, and the buffers after it."""

    def evaluated() -> Result:
        with _TURN, enable_grad(), fork_rng():
            manual_seed(seed)
            return _evaluated(replica, point, *_loaded(source, fetcher))

    result: Result = labelled(label, point.settings, evaluated)
    return result


def _loaded(source: Any, fetcher: Fetcher | None) -> tuple[Any, int]:
    """Return the data of a micro-batch, and its number of examples."""
    data = load(source) if fetcher is None else fetcher.by_index(source)
    if fetcher is not None and isinstance(data, list):
        data = tuple(data)  # the loader's batch of an example that is a tuple
    count = len(source) if isinstance(source, list) else number_of_examples(data)
    if not count:
        raise AutogradError("it has no examples: leave it out")
    return data, count


def _evaluated(replica: Replica, point: Point, data: Any, count: int) -> Result:
    model = replica.model
    parameters, buffers = tensors_of(model)
    with no_grad():
        for name, value in point.parameters.items():
            parameters[name].copy_(value)
        for name, value in point.buffers.items():
            buffers[name].copy_(value)
    args, kwargs = arguments_of(data)
    value = replica.loss(model, *args, **kwargs)
    if not isinstance(value, Tensor) or value.numel() != 1 or not value.is_floating_point():
        got = pytree.describe(value)
        if isinstance(value, Tensor):
            got += f" of shape {list(value.shape)} and dtype {value.dtype}"
        raise AutogradError(
            f"the loss must be a tensor with one real number, got {got}: reduce it with mean()"
        )
    wanted = [parameters[name] for name in point.parameters]
    gradients = autograd_grad(value, wanted, allow_unused=True)
    means = {
        "loss": value.detach(),
        "gradients": dict(zip(point.parameters, gradients, strict=True)),
        "buffers": {k: b.detach().clone() for k, b in buffers.items() if b.is_floating_point()},
    }
    _refuse_nonfinite(means)
    counters = {k: b.clone() for k, b in buffers.items() if not b.is_floating_point()}
    return Result(count, means, counters)


def _refuse_nonfinite(means: dict[str, Any]) -> None:
    named = {"the loss": means["loss"]}
    named |= {f"the gradient of {name or 'the model'}": g for name, g in means["gradients"].items()}
    for what, values in named.items():
        array = np.zeros(()) if values is None else values.numpy()
        if not np.isfinite(array).all():
            place = np.argwhere(~np.isfinite(array))[0]
            raise AutogradError(
                f"{what} is {array[tuple(place)]}"
                + (f" at {place.tolist()}" if len(place) else "")
                + ": call the loss with this micro-batch under cr.detect_anomaly()"
            )


def mean(results: Sequence[Result]) -> Result:
    """Return the mean over the examples of all results, in their order."""
    counts = [each.examples for each in results]
    total = sum(counts)
    if len(set(counts)) == 1:  # the bits of a plain mean
        means = _scaled(sum_trees([each.means for each in results]), 1, len(counts))
    else:
        means = sum_trees([_scaled(each.means, each.examples, total) for each in results])
    return Result(total, means, results[0].counters)


def _scaled(means: Any, numerator: int, denominator: int) -> Any:
    return tree.map(lambda x: None if x is None else x * numerator / denominator, means)
