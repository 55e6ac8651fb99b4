"""Our functions beside PyTorch's of the same names: values, gradients, gradients of gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr


def functional(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return our function of that name, and PyTorch's."""
    torch = pytest.importorskip("torch")
    return getattr(cr.nn.functional, name), getattr(torch.nn.functional, name)


def agree(
    ours: Callable[..., Any],
    theirs: Callable[..., Any],
    *arrays: np.ndarray,
    second: bool = False,
    rtol: float = 1e-9,
    atol: float = 1e-12,
) -> None:
    """Hold value, dtype and gradients against each other; floating arrays require grad."""
    torch = pytest.importorskip("torch")
    x = [cr.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    y = [torch.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    our, their = ours(*x), theirs(*y)
    close = {"rtol": rtol, "atol": atol}
    assert our.dtype.name == str(their.dtype).removeprefix("torch.")
    assert our.shape == tuple(their.shape)
    np.testing.assert_allclose(our.detach().numpy(), their.detach().numpy(), **close)
    weights = np.asarray(np.cos(np.arange(our.numel())).reshape(our.shape), our.dtype.name)
    xs, ys = [t for t in x if t.requires_grad], [t for t in y if t.requires_grad]
    first = cr.autograd_grad(
        (our,), xs, (cr.tensor(weights),), create_graph=second, materialize_grads=True
    )
    their_first = torch.autograd.grad(
        (their,), ys, (torch.tensor(weights),), create_graph=second, materialize_grads=True
    )
    for a, b in zip(first, their_first, strict=True):
        assert a.dtype.name == str(b.dtype).removeprefix("torch.")
        np.testing.assert_allclose(a.detach().numpy(), b.numpy(force=True), **close)
    if second:
        _second(torch, first, their_first, xs, ys, close)


def _second(torch: Any, first: Any, their_first: Any, xs: Any, ys: Any, close: Any) -> None:
    ours = sum([(g * cr.sin(g + 1)).sum() for g in first])
    theirs = sum([(g * torch.sin(g + 1)).sum() for g in their_first])
    if not theirs.requires_grad:
        assert not ours.requires_grad
        return
    if ours.requires_grad:
        ours = cr.autograd_grad((ours,), xs, materialize_grads=True)
    else:  # the first derivative is constant
        ours = [cr.zeros_like(x) for x in xs]
    theirs = torch.autograd.grad((theirs,), ys, materialize_grads=True)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(force=True), **close)
