"""`fit`: training steps whose micro-batches are computed by the workers of Dask."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from chainrule.distributed.clients import usable
from chainrule.distributed.training_run import Fit, Plan, Run
from chainrule.errors import ArgumentError
from chainrule.optim import LBFGS
from chainrule.optim.lr_scheduler import ReduceLROnPlateau

__all__ = ["fit"]


def fit(
    model: Any,
    loss: Callable[..., Any],
    optimizer: Any,
    data: Any,
    *,
    epochs: int = 1,
    micro_batches: int = 1,
    client: Any = None,
    scheduler: Any = None,
    interval: str = "epoch",
    validate: Callable[[Any], Any] | None = None,
    patience: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    retries: int = 0,
    progress: bool = True,
) -> Fit:
    """Train a model by synchronous steps whose gradients the workers of Dask compute.

    A step takes the next `micro_batches` batches of the data, wherever they are computed, adds
    their gradients on the workers in a fixed order, and updates the parameters here by their mean
    over all examples. It is the step of a loop that accumulates gradients: the number of workers
    changes the time only. With k batches for each of n workers, pass ``micro_batches=k * n``.

    Parameters
    ----------
    model : Module, or Tensors in dicts, lists, tuples, dataclasses
        What is trained, updated in place. Workers compute in the mode, training or evaluation, that
        the module has when `fit` is called.
    loss : callable
        ``loss(model, *batch)`` returns the mean over the examples of a batch, a tensor with one
        real number. A batch that is a tuple or a list is passed by position, a dict by name. A
        function that `compile` made is compiled once in each process.
    optimizer : Optimizer
        Updates tensors of the model, and runs here: so do its hooks, such as one that clips
        gradients.
    data : DataLoader, or partitions
        The batches. A `utils.data.DataLoader` says which examples are in each; the workers make
        them of the data set, which each of them gets once (`num_workers` has no effect). Batches of
        an `IterableDataset` are made here and sent. Or the parts of an `Objective`, each a batch,
        in their order: callables or paths of files that workers load at each use, or collections of
        Dask.
    epochs : int, default 1
        Number of passes over the data, those before a checkpoint included.
    micro_batches : int, default 1
        Number of batches in a step.
    client : distributed.Client, optional
        The client of Dask, by default the current one of this process.
    scheduler : LRScheduler, optional
        A schedule of the optimiser. `ReduceLROnPlateau` gets what is watched, see `patience`.
    interval : "epoch" or "step", default "epoch"
        When the schedule goes on.
    validate : callable, optional
        ``validate(model)`` returns a number, the smaller the better. It runs here after each epoch.
    patience : int, optional
        End the run when this number of epochs has not improved on the best: of `validate`, or else
        of the mean loss.
    checkpoint : path, optional
        A file of `save` for model, optimiser, schedule, random generators and history. If it is
        there, the run goes on from it, within an epoch too, to the same bits as without a break. It
        is written after each epoch, and when an error or an interrupt ends the run.
    checkpoint_every : int, optional
        Number of steps after which it is written as well.
    retries : int, default 0
        How often a batch that failed with an error is tried again. Batches of a worker that was
        lost are always computed elsewhere.
    progress : bool, default True
        Show a bar for each epoch with the loss and examples per second (`utils.progress`), and the
        address of Dask's dashboard.

    Returns
    -------
    Fit
        The model, and the losses of steps and epochs.

    Raises
    ------
    MissingExtraError
        If Dask is not installed: ``pip install 'chainrule[distributed]'``.
    ArgumentError, ArgumentTypeError
        If there is no client, the model or the loss can't be sent, or arguments don't fit.
    PartitionError
        If a batch can't be loaded, its loss fails, is not one number, or the loss or a gradient is
        not finite: the text says which batch. Parameters, optimiser and schedule are as the step
        before left them, as after an interrupt by Ctrl-C.
    ClusterError
        If the scheduler can't be reached any more.

    Notes
    -----
    The bits do not depend on the number of workers, on timing or retries: each batch has a seed of
    its own, drawn from the default generator, for dropout and for random changes of examples. For
    one batch in a step they are those of a loop in this process (with the same number of threads);
    for 2, 4 or 8 batches of equal size, those of a loop that calls ``(loss / k).backward()`` for
    each; for other numbers and sizes they are equal up to rounding.

    Floating-point buffers, such as the statistics of batch normalisation, become the mean over the
    examples of what the batches of a step make of them, since each batch starts from the same ones;
    others, such as counters of batches, count steps. Statistics of a batch are of that batch alone.

    A process computes one batch at a time: start workers with one thread each, as `local_cluster`
    does. At each step the parameters pass from here through the scheduler, and one gradient
    returns; a model of a million float32 parameters sends 4 MB each way.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.utils.data import DataLoader, TensorDataset
    >>> _ = cr.manual_seed(0)
    >>> x = cr.randn(64, 2)
    >>> y = x @ cr.tensor([1.0, -2.0])
    >>> w = cr.zeros(2, requires_grad=True)
    >>> def loss(w, x, y):
    ...     return ((x @ w - y) ** 2).mean()
    >>> with cr.distributed.local_cluster(2, processes=False):
    ...     found = cr.distributed.fit(
    ...         w,
    ...         loss,
    ...         cr.optim.SGD([w], lr=0.2),
    ...         DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True),
    ...         epochs=5,
    ...         micro_batches=4,
    ...         progress=False,
    ...     )
    >>> w.detach().numpy().round(1), found.steps
    (array([ 1., -2.], dtype=float32), 10)
    """
    plan = Plan(
        epochs=epochs,
        micro_batches=micro_batches,
        scheduler=scheduler,
        interval=interval,
        validate=validate,
        patience=patience,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        retries=retries,
        progress=progress,
    )
    _check(plan, optimizer)
    return Run(usable(client), model, loss, optimizer, data, plan).fitted()


def _check(plan: Plan, optimizer: Any) -> None:
    for name in ("epochs", "micro_batches", "patience", "checkpoint_every"):
        value = getattr(plan, name)
        optional = value is None and name in ("patience", "checkpoint_every")
        if not optional and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise ArgumentError(f"fit: {name} must be a positive int, got {value!r}")
    if plan.checkpoint_every is not None and plan.checkpoint is None:
        raise ArgumentError("fit: checkpoint_every needs the file: pass checkpoint='run.cr'")
    if plan.interval not in ("epoch", "step"):
        raise ArgumentError(f"fit: interval is 'epoch' or 'step', got {plan.interval!r}")
    if isinstance(plan.scheduler, ReduceLROnPlateau) and plan.interval == "step":
        raise ArgumentError("fit: ReduceLROnPlateau goes on after epochs: pass interval='epoch'")
    if isinstance(optimizer, LBFGS):
        raise ArgumentError(
            "fit: LBFGS evaluates the loss several times in a step, over the same data: minimise "
            "cr.distributed.Objective(loss, parts) by cr.scipy.optimize.minimize instead"
        )
