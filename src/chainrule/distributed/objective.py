"""`Objective`: a loss over partitions of data, and its derivatives, computed by Dask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule import pytree, tree
from chainrule.autograd.function import Function, once_differentiable
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.tensor import Tensor
from chainrule.distributed.clients import usable
from chainrule.distributed.partitions import partitions, pickled
from chainrule.distributed.rounds import Rounds
from chainrule.distributed.settings import capture
from chainrule.distributed.tasks import Request
from chainrule.errors import ArgumentError, AutogradError
from chainrule.scipy.optimize.minimization import WITH_HESSIAN, WITH_PRODUCTS

__all__ = ["Objective"]


class Objective:
    """A loss summed over partitions of data, with its derivatives, computed by the workers of Dask.

    The derivatives of a sum are the sums of derivatives. Each worker loads a partition, computes,
    and frees it again; results are added on the workers, and one comes back. So the data may be
    larger than the memory of all machines, and only the parameters and what is asked for travel.

    Parameters
    ----------
    loss : callable
        ``loss(w, *data)`` returns one real number for the data of one partition: a tuple is passed
        by position, a dict by name, anything else as one argument. A function that `compile` made
        is traced and compiled once in each worker process. With a `model`, the loss is called as
        ``loss(model(w, *data), *data)``.
    parts : list of callables, paths, Delayed objects or futures; or Dask collections
        The partitions. A callable without arguments loads one on the worker; so does the path of a
        .npy, .npz, .parquet or .zarr file, as an array or a dict of arrays. The chunks of a
        `dask.array` along its first axis, or the partitions of a bag or data frame, are partitions,
        too; several collections, divided alike, come in a tuple or dict.
    client : distributed.Client, optional
        The client of the cluster, by default the current one of this process.
    model : callable, optional
        ``model(w, *data)`` returns predictions or residuals, of which the loss is a function. Only
        `gauss_newton_vp` needs to know the two apart.
    reduction : "sum" or "mean", default "sum"
        "mean" is for a loss that is a mean over examples: partitions are weighted by their numbers
        of examples, the lengths of the first dimension of their arrays.
    persist : bool, default False
        Load each partition once, and keep it in the memory of its worker. What a lost worker had is
        loaded again elsewhere.
    retries : int, default 0
        How often a partition that failed with an error is tried again. Partitions of a worker that
        was lost are always computed elsewhere.

    Raises
    ------
    MissingExtraError
        If Dask is not installed: ``pip install 'chainrule[distributed]'``.
    ArgumentError, ArgumentTypeError
        If there is no client, no partition, something can't be sent to workers, or partitions are
        not loaded but in memory.

    Notes
    -----
    The methods return the same bits for any number of workers and in any order of events: each
    partition is computed under the settings of this process (default dtype, grad mode, kernels)
    with `get_num_threads` threads if `set_num_threads` was called here, else one; and the sum is
    added in an order that depends on the number of partitions alone. Other partitions, processors
    or versions of NumPy round differently.

    The methods have no effect besides: they leave the parameters as they are, and may be called
    again after any error.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> from chainrule.distributed import Objective, local_cluster
    >>> def load(seed):
    ...     rng = np.random.default_rng(seed)
    ...     x = rng.normal(size=(100, 2))
    ...     return x, x @ np.array([1.0, -2.0])
    >>> def loss(w, x, y):
    ...     return ((x @ w - y) ** 2).sum()
    >>> with local_cluster(2, processes=False) as client:
    ...     objective = Objective(loss, [lambda s=s: load(s) for s in range(4)], client=client)
    ...     fit = cr.scipy.optimize.minimize(x0=np.zeros(2), **objective.problem("BFGS"))
    >>> fit.x.round(3)
    array([ 1., -2.])
    """

    def __init__(
        self,
        loss: Callable[..., Any],
        parts: Any,
        *,
        client: Any = None,
        model: Callable[..., Any] | None = None,
        reduction: str = "sum",
        persist: bool = False,
        retries: int = 0,
    ) -> None:
        if reduction not in ("sum", "mean"):
            raise ArgumentError(f"Objective: reduction is 'sum' or 'mean', got {reduction!r}")
        client = usable(client)
        self._losses = pickled((loss, model), "the loss, or the model,")
        self._has_model, self._is_mean = model is not None, reduction == "mean"
        self._rounds = Rounds(client, partitions(parts), persist, retries)

    def value(self, w: Any) -> Any:
        """Return the loss.

        Parameters
        ----------
        w : array, number, Tensor, or dicts, lists, tuples, dataclasses of them
            The parameters.

        Returns
        -------
        number, or Tensor
            A tensor if one of the parameters is one. If they require grad, it is recorded, so that
            it may be a term of a larger function: its backward pass multiplies the gradient, which
            is computed with the value. It can be differentiated once.

        Raises
        ------
        PartitionError
            If a partition can't be loaded, its loss fails, is nan or is not one number: the text
            says which.
        ClusterError
            If the scheduler can't be reached any more.
        """
        leaves = tree.leaves(w)
        places = [i for i, leaf in enumerate(leaves) if _is_recorded(leaf)]
        if places:
            tensors = [leaves[i] for i in places]
            return _RecordedValue.apply(self, _detached(w), places, *tensors)
        return self._sum("value", w)

    def value_and_grad(self, w: Any) -> tuple[Any, Any]:
        """Return the loss and its gradient.

        Parameters
        ----------
        w : as for `value`

        Returns
        -------
        (value, gradient)
            The gradient in the structure and the kinds of `w`, as of `chainrule.value_and_grad`.

        Raises
        ------
        PartitionError, ClusterError
            As for `value`.
        AutogradError
            If `w` requires grad: the results have no history.
        """
        found: tuple[Any, Any] = self._derivative("value_and_grad", w)
        return found

    def hvp(self, w: Any, v: Any) -> Any:
        """Return the Hessian of the loss times a vector.

        Parameters
        ----------
        w : as for `value`
        v : as `w`
            The vector.

        Returns
        -------
        as `w`
            H v: no Hessian is formed.

        Raises
        ------
        PartitionError, ClusterError, AutogradError
            As for `value_and_grad`.
        """
        return self._derivative("hvp", w, v)

    def gauss_newton_vp(self, w: Any, v: Any) -> Any:
        """Return the generalised Gauss-Newton matrix times a vector.

        Parameters
        ----------
        w : as for `value`
        v : as `w`
            The vector.

        Returns
        -------
        as `w`
            Σ Jᵀ H J v with the Jacobian J of the model and the Hessian H of the loss of each
            partition, by its predictions: see `chainrule.ggnvp`.

        Raises
        ------
        ArgumentError
            If the objective was made without `model`.
        PartitionError, ClusterError, AutogradError
            As for `value_and_grad`.
        """
        if not self._has_model:
            raise ArgumentError(
                "gauss_newton_vp: the matrix is made of the model's Jacobian and the Hessian of "
                "the loss by predictions: make Objective(loss, parts, model=model) with "
                "model(w, *data) and loss(predictions, *data)"
            )
        return self._derivative("gauss_newton_vp", w, v)

    def hessian(self, w: Any) -> Any:
        """Return the Hessian matrix of the loss.

        Parameters
        ----------
        w : as for `value`

        Returns
        -------
        Tensor or array, or containers of them
            As of `chainrule.hessian`: for a tree blocks by names. Each worker needs memory for the
            square of the number of parameters. A `model` must not be compiled here.

        Raises
        ------
        PartitionError, ClusterError, AutogradError
            As for `value_and_grad`.
        """
        return self._derivative("hessian", w)

    def problem(self, method: str = "L-BFGS-B") -> dict[str, Any]:
        """Return the arguments of `chainrule.scipy.optimize.minimize` that minimise this loss.

        Parameters
        ----------
        method : str, default "L-BFGS-B"
            A method of SciPy that uses gradients.

        Returns
        -------
        dict
            `fun` and `jac`, and for methods that use them `hessp` or `hess`; and `method`. The
            start `x0`, bounds and options are yours.

        Examples
        --------
        >>> import chainrule as cr
        >>> def loss(w, x):
        ...     return ((x - w) ** 2).sum()
        >>> loaders = [lambda: np.array([1.0, 2.0]), lambda: np.array([6.0])]
        >>> with cr.distributed.local_cluster(1) as client:  # doctest: +SKIP
        ...     problem = cr.distributed.Objective(loss, loaders, client=client).problem()
        ...     cr.scipy.optimize.minimize(x0=np.zeros(()), **problem).x
        array(3.)
        """
        found = {"fun": self._for_scipy, "jac": True, "method": method}
        if method.lower() in WITH_PRODUCTS:
            found["hessp"] = self.hvp
        elif method.lower() in WITH_HESSIAN:
            found["hess"] = lambda w: self._derivative("hessian_matrix", w)
        return found

    def _for_scipy(self, w: Any) -> tuple[Any, Any]:
        """Return value and gradient; of what is recorded the value, whose gradient is recorded."""
        if any(map(_is_recorded, tree.leaves(w))):
            return self.value(w), None
        return self.value_and_grad(w)

    def _derivative(self, quantity: str, *point: Any) -> Any:
        if any(map(_is_recorded, tree.leaves(point))):
            raise AutogradError(
                f"{quantity}: the parameters require grad, and what workers compute has no "
                "history: pass w.detach(), or call it under cr.no_grad(). value(w) is recorded"
            )
        return self._sum(quantity, *point)

    def _sum(self, quantity: str, *point: Any) -> Any:
        """Return the sum or mean over partitions."""
        request = Request(quantity, self._losses, _detached(point), self._is_mean, capture())
        found = self._rounds.sum(request)
        if not self._is_mean:
            return found
        if found is None:
            raise ArgumentError(
                f"{quantity}: the mean is over no examples: all {len(self._rounds)} partitions are "
                "empty"
            )
        count, total = found
        return tree.map(lambda leaf: leaf / count, total)


def _is_recorded(leaf: Any) -> bool:
    return isinstance(leaf, Tensor) and leaf.requires_grad and is_grad_enabled()


def _detached(point: Any) -> Any:
    return pytree.map_leaves(point, lambda x: x.detach() if isinstance(x, Tensor) else x)


class _RecordedValue(Function):
    """The loss as a function of tensors that require grad."""

    @staticmethod
    def forward(ctx: Any, objective: Objective, w: Any, places: list[int], *tensors: Tensor) -> Any:
        value, gradient = objective._sum("value_and_grad", w)
        parts = tree.leaves(gradient)
        ctx.gradients = [parts[i] for i in places]
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g: Tensor) -> Any:
        return (None, None, None, *(g * gradient for gradient in ctx.gradients))
