"""The tasks of an objective, as workers run them."""

from __future__ import annotations

import functools
import pickle
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from chainrule import pytree, tree
from chainrule.arguments import tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.distributed.extra import distributed_pickle
from chainrule.distributed.partitions import arguments_of, load, number_of_examples
from chainrule.distributed.reduction import sum_trees
from chainrule.distributed.settings import Settings
from chainrule.errors import AutogradError
from chainrule.interop.operands import arrays_of
from chainrule.transforms import ggnvp, hessian, hvp, value_and_grad
from chainrule.transforms.kinds import common_kind, in_kind


class PartitionFailure(Exception):
    """The error of a partition, on its way to the client: its label, and the error as text."""


@dataclass(frozen=True)
class Request:
    """What a client asks of all partitions."""

    quantity: str  # the name of a method of `Losses`
    losses: bytes  # the pickle of the loss and the model
    point: tuple[Any, ...]  # the parameters, and a direction
    is_mean: bool
    settings: Settings

    @property
    def nbytes(self) -> int:
        """The size, without what holds the arrays together."""
        arrays = [arrays_of(leaf) for leaf in tree.leaves(self.point)]
        return len(self.losses) + sum([getattr(array, "nbytes", 8) for array in arrays])

    def __dask_tokenize__(self) -> int:
        """Return what stands for it in the name of a graph, whose keys are new each time."""
        return id(self)


class Losses:
    """The loss of a partition and its derivatives, as functions of the parameters."""

    def __init__(self, loss: Callable[..., Any], model: Callable[..., Any] | None) -> None:
        self._loss, self._model = loss, model
        # Errors name the function: that of the user, where there is only one.
        self._value_and_grad = value_and_grad(self._of_parameters if model else loss)

    def _of_parameters(self, w: Any, *args: Any, **kwargs: Any) -> Any:
        if self._model is None:
            return self._loss(w, *args, **kwargs)
        return self._loss(self._model(w, *args, **kwargs), *args, **kwargs)

    def value(self, w: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the loss, of the kind that its value has beside the gradient."""
        found = self._of_parameters(w, *args, **kwargs)
        if np.size(arrays_of(found)) != 1:
            raise AutogradError(
                f"the loss must be one real number, got the shape {list(np.shape(found))}: reduce "
                "it with sum() or mean()"
            )
        return in_kind(common_kind(tree.leaves(w)), tensor_of(found))

    def value_and_grad(self, w: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the loss and its gradient."""
        return self._value_and_grad(w, *args, **kwargs)

    def hvp(self, w: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the Hessian times a vector."""
        return hvp(lambda w: self._of_parameters(w, *args, **kwargs), (w,), (v,))[0]

    def gauss_newton_vp(self, w: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the generalised Gauss-Newton matrix times a vector."""
        model, loss = self._model, self._loss
        assert model is not None  # checked by the client
        return ggnvp(
            lambda w: model(w, *args, **kwargs), (w,), (v,), lambda out: loss(out, *args, **kwargs)
        )[0]

    def hessian(self, w: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the Hessian matrix."""
        return hessian(self._of_parameters)(w, *args, **kwargs)

    def hessian_matrix(self, w: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the Hessian by the vector of all parameters."""
        vector, unravel = tree.ravel(w)
        return hessian(lambda v: self._of_parameters(unravel(v), *args, **kwargs))(vector)


_LOCK = threading.Lock()


def losses_of(pickled: bytes) -> Losses:
    """Return the losses of a pickle: for the same bytes the same, so that they compile once."""
    with _LOCK:
        return _unpickled(pickled)


@functools.lru_cache(maxsize=32)
def _unpickled(pickled: bytes) -> Losses:
    return Losses(*pickle.loads(pickled))


# --- tasks ----------------------------------------------------------------------------------------


def load_partition(label: str, settings: Settings, source: Any) -> Any:
    """Return the data of a partition that stays in memory."""
    return labelled(label, settings, lambda: load(source))


def evaluate(request: Request, label: str, source: Any) -> Any:
    """Return what was asked of a partition, with its weight; None if it has no weight."""
    return labelled(label, request.settings, lambda: _evaluated(request, load(source)))


def add(results: list[Any]) -> Any:
    """Return the sum of results of `evaluate`."""
    some = [each for each in results if each is not None]
    return sum_trees(some) if some else None


def _evaluated(request: Request, data: Any) -> Any:
    count = number_of_examples(data) if request.is_mean else 1
    if not count:
        return None
    args, kwargs = arguments_of(data)
    compute = getattr(losses_of(request.losses), request.quantity)
    found = compute(*request.point, *args, **kwargs)
    if any(isinstance(leaf, Tensor) and leaf.requires_grad for leaf in tree.leaves(found)):
        raise AutogradError(
            "the loss depends on a tensor that requires grad and is not among the parameters, such "
            "as a layer's weight that it closes over: that has no gradient from other processes. "
            "Put it among the parameters, or detach() it"
        )
    _refuse_nan(request.quantity, found)
    if not request.is_mean:
        return found
    return count, tree.map(lambda leaf: leaf * count, found)


def labelled(label: str, settings: Settings, function: Callable[[], Any]) -> Any:
    """Call a function under settings; its error says the label."""
    try:
        with settings.applied():
            return function()
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # the latter would end the worker
        cause, text = _sent(error), f"{type(error).__name__}: {error}"
    # Not in the block above, which would make the error part of what is sent.
    raise PartitionFailure(label, text) from cause


def _sent(error: BaseException) -> BaseException | None:
    """Return an error that can be sent to the client, else None: its text is sent anyway."""
    try:
        distributed_pickle.loads(distributed_pickle.dumps(error))
    except Exception:  # whatever its class raises
        return None
    return error


def _refuse_nan(quantity: str, found: Any) -> None:
    for path, leaf in pytree.leaves(found):
        array = np.asarray(arrays_of(leaf))
        if array.dtype.kind in "fc" and np.isnan(array).any():
            place = np.argwhere(np.isnan(array))[0].tolist()
            raise AutogradError(
                f"{quantity}{path} is nan" + (f" at {place}" if place else "") + ": look for nan "
                "in this partition, and call the loss with it under cr.detect_anomaly()"
            )
