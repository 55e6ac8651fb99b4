"""Where a pass starts, and what it is for: what users hand to it, checked."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from chainrule.autograd.node import Edge, GradientEdge, Port, endpoint
from chainrule.autograd.operands import as_tensors
from chainrule.autograd.record import RECORDERS, current_node
from chainrule.autograd.reverse import Pass
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import namespace, ndarray
from chainrule.errors import AutogradError, DTypeError, ShapeError


def listed(tensors: Any) -> list[Any]:
    """Return one tensor, several or a dict of them as a list."""
    if tensors.__class__ is Tensor or isinstance(tensors, Tensor | np.ndarray | GradientEdge):
        return [tensors]
    if not isinstance(tensors, Iterable):
        return [tensors]
    return list(tensors.values() if isinstance(tensors, Mapping) else tensors)


def start(tensors: Any, grad_tensors: Any, retain_graph: bool | None, create_graph: bool) -> Pass:
    """Return a pass with the roots' cotangents in it, after checking everything about them."""
    run = Pass(create_graph if retain_graph is None else retain_graph, create_graph)
    if tensors.__class__ is Tensor and grad_tensors is None:  # as nearly every pass starts
        run.deposit(_checked_root(tensors, None, 0), _cotangent(tensors, None, run))
        return run
    roots = listed(tensors)
    grads: list[Any] = [None] * len(roots) if grad_tensors is None else listed(grad_tensors)
    if len(roots) != len(grads):
        raise AutogradError(
            f"got {len(roots)} tensors and {len(grads)} gradients: give one gradient (or None) for "
            "each tensor"
        )
    if not roots:
        raise AutogradError("'tensors' argument to backward() cannot be empty")
    for i, root in enumerate(roots):
        if grads[i] is not None:
            grads[i] = _checked_gradient(root, grads[i], i)
        run.deposit(_checked_root(root, grads[i], i), _cotangent(root, grads[i], run))
    return run


def _cotangent(root: Tensor, grad: Tensor | None, run: Pass) -> Any:
    if grad is not None:
        return run.take(grad)
    array = root._array
    if array.__class__ is ndarray and not array.shape:
        g = _one(array.dtype)
    else:
        g = namespace(array).ones(array.shape, array.dtype)
    return g if run.xp is None else make(g, None)


@functools.cache
def _one(dtype: Any) -> Any:
    """Return the number 1, which all passes share: nobody may write to it."""
    one = np.ones((), dtype)
    one.flags.writeable = False
    return one


def _checked_root(root: Any, grad: Tensor | None, index: int) -> Edge:
    """Return the edge to a root, from which a pass can start with `grad`."""
    if root.__class__ is GradientEdge:
        if grad is None:
            raise AutogradError(
                "grad can be implicitly created only for scalar outputs, and of element "
                f"{index} of tensors, a GradientEdge, the shape is not known: give a gradient"
            )
        return root.node if root.node.output_count == 1 else Port(*root)
    if root.__class__ is not Tensor and not isinstance(root, Tensor):
        raise TypeError(f"element {index} of tensors is no Tensor but {type(root).__name__}")
    edge = root._node if root._view is None else current_node(root)
    if edge is None:
        raise AutogradError(
            f"element {index} of tensors does not require grad and does not have a grad_fn: no "
            "operation with a tensor that requires grad led to it. Was it computed under no_grad, "
            "detached, or rebound as in w = w - lr * w.grad under no_grad?"
        )
    if grad is None and root._array.size != 1:
        raise AutogradError(
            f"grad can be implicitly created only for scalar outputs, but element {index} of "
            f"tensors has shape {list(root.shape)}: give a gradient of that shape, or reduce it "
            "first, for instance with sum()"
        )
    if grad is None and root._array.dtype.kind == "c":
        raise AutogradError(
            "grad can be implicitly created only for real scalar outputs but got "
            f"{root.dtype.name}: give a gradient"
        )
    return edge


def _checked_gradient(root: Any, grad: Any, index: int) -> Tensor:
    if not isinstance(grad, Tensor):
        (grad,) = as_tensors((grad,))
    if isinstance(root, Tensor) and grad.shape != root.shape:
        raise ShapeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {list(grad.shape)} and "
            f"output[{index}] has a shape of {list(root.shape)}. A gradient must have its tensor's "
            "shape."
        )
    if isinstance(root, Tensor) and grad.dtype.kind == "c" and root.dtype.kind != "c":
        raise DTypeError(
            f"grad_output[{index}] is {grad.dtype} but output[{index}] is {root.dtype}: both are "
            "required to have the same dtype when one is complex. Mismatch in dtype: take .real"
        )
    if isinstance(root, Tensor) and grad.dtype != root.dtype:
        grad = RECORDERS["astype"](grad, dtype=root.dtype)
    checked: Tensor = grad
    return checked


def target(tensor: Any, name: Any) -> Any:
    """Return the node of an input, and which of its outputs it is."""
    if tensor.__class__ is GradientEdge:
        return tuple(tensor)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"input {name!r} is no Tensor but {type(tensor).__name__}")
    edge = current_node(tensor)
    if edge is None:
        raise AutogradError(
            f"One of the differentiated Tensors does not require grad: input {name!r}. Call "
            "requires_grad_() on it before the computation"
        )
    return endpoint(edge)
