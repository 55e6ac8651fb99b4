"""`Objective`: a loss over partitions of data, and its derivatives, computed by Dask."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from chainrule import pytree, tree
from chainrule.autograd.modes import is_grad_enabled
from chainrule.autograd.tensor import Tensor
from chainrule.distributed import tasks
from chainrule.distributed.extra import dask, dask_core, distributed
from chainrule.distributed.partitions import Partition, partitions, pickled
from chainrule.distributed.reduction import reduce_tree
from chainrule.distributed.settings import capture
from chainrule.errors import ArgumentError, AutogradError, ClusterError, PartitionError
from chainrule.scipy.optimize.minimization import WITH_HESSIAN, WITH_PRODUCTS


class Objective:
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
        self._client = _usable(client)
        self._has_model = model is not None
        self._losses = pickled((loss, model), "the loss, or what it refers to,")
        self._is_mean, self._retries = reduction == "mean", retries
        self._partitions = partitions(parts)
        if persist:
            self._partitions = self._persisted()

    def value(self, w: Any) -> Any:
        return self._result("value", w)

    def value_and_grad(self, w: Any) -> tuple[Any, Any]:
        return self._result("value_and_grad", w)

    def hvp(self, w: Any, v: Any) -> Any:
        return self._result("hvp", w, v)

    def gauss_newton_vp(self, w: Any, v: Any) -> Any:
        if not self._has_model:
            raise ArgumentError("…")
        return self._result("gauss_newton_vp", w, v)

    def hessian(self, w: Any) -> Any:
        return self._result("hessian", w)

    def _result(self, quantity: str, *point: Any) -> Any:
        request = tasks.Request(quantity, self._losses, point, self._is_mean, capture())
        name = f"{quantity}-{uuid.uuid4().hex}"
        shared = dask.delayed(request, name=f"request-{name}", traverse=False)
        evaluate = dask.delayed(tasks.evaluate, pure=False, traverse=True)
        add = dask.delayed(tasks.add, pure=False)
        results = [
            evaluate(shared, part.label, part.source, dask_key_name=f"{name}-{i}")
            for i, part in enumerate(self._partitions)
        ]
        total = reduce_tree(results, add)
        future = self._client.compute(total, retries=self._retries, optimize_graph=False)
        found = future.result()
        count, result = found
        return tree.map(lambda leaf: leaf / count, result) if self._is_mean else result


def _usable(client):
    return client
