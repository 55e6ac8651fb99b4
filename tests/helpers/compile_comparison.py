"""Comparison of eager and compiled calls: values, gradients and written arguments agree."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import pytree
from chainrule.compiler.passes import buffer_planning, tiling

_ROUNDING = {"float16": 1e-2, "float32": 1e-4, "complex64": 1e-4}


def agree(
    function: Callable[..., Any], args: Any, kwargs: Any, tracked: bool = True, kept: bool = True
) -> None:
    """Compare the eager call on fresh copies of the arguments with two compiled calls.

    Unless not `kept`, the second call runs the program of the first.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for grads in (True, False) if tracked else (False,):
            try:
                wanted = run_once(function, args, kwargs, grads)
            except Exception:
                continue  # a leaf that requires grad can't be written to
            for compiled in (cr.compile(function), _Inside(function)):
                for _ in range(2):
                    _assert_same(run_once(compiled, args, kwargs, grads), wanted)
                outer = compiled.run if isinstance(compiled, _Inside) else compiled
                assert not kept or len(outer.signatures) == 1, "the second call was traced, too"
            return


def in_tiny_blocks(patch: pytest.MonkeyPatch) -> None:
    """Have programs do their small arrays a few elements at a time, as they do large ones."""
    patch.setattr(tiling, "BLOCK_SIZE", 3)
    patch.setattr(tiling, "MIN_BLOCKS", 1)
    patch.setattr(buffer_planning, "MIN_PLANNED_BYTES", 0)


class _Inside:
    """A function compiled together with the backward pass of its results."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.compiled = cr.compile(function)
        self.run = cr.compile(self._run)
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(args, kwargs)

    def _run(self, args: Any, kwargs: Any) -> Any:
        result = self.function(*args, **kwargs)
        back(result)
        return pytree.map_leaves(result, lambda x: x.detach() if isinstance(x, cr.Tensor) else x)


def back(result: Any) -> None:
    """Run a backward pass from all results that require grad; weights tell elements apart."""
    outs = [t for _, t in pytree.leaves(result) if isinstance(t, cr.Tensor) and t.requires_grad]
    outs = list({id(t): t for t in outs}.values())
    if outs:
        weights = [_weights(t) for t in outs]
        cr.autograd_backward(outs, weights)


def _weights(t: Any) -> Any:
    numbers = np.linspace(0.5, 1.5, max(t.numel(), 1))[: t.numel()].reshape(t.shape)
    return cr.tensor(numbers.astype(t.dtype))


def run_once(function: Callable[..., Any], args: Any, kwargs: Any, grads: bool) -> list[Any]:
    """Return what a call gives: results, gradients, and the arguments afterwards."""
    cr.manual_seed(1)
    copies: dict[int, Any] = {}

    def fresh(leaf: Any) -> Any:
        if id(leaf) not in copies:
            copies[id(leaf)] = _copied(leaf, grads)
        return copies[id(leaf)]

    args, kwargs = pytree.map_leaves((args, kwargs), fresh)
    result = function(*args, **kwargs)
    if not isinstance(function, _Inside):
        back(result)
    found = [_plain(leaf) for _, leaf in pytree.leaves(result)]
    for leaf in copies.values():
        if isinstance(leaf, cr.Tensor):
            found += [leaf.numpy(force=True), None if leaf.grad is None else leaf.grad.numpy()]
        elif isinstance(leaf, np.ndarray):
            found.append(leaf)
    return found


def _copied(leaf: Any, grads: bool) -> Any:
    if isinstance(leaf, cr.Tensor):
        twin = cr.tensor(leaf.numpy(force=True).copy())
        floating = twin.is_floating_point() or twin.is_complex()
        return twin.requires_grad_() if grads and floating else twin
    return copy.deepcopy(leaf) if isinstance(leaf, np.ndarray | np.random.Generator) else leaf


def _plain(leaf: Any) -> Any:
    return leaf.numpy(force=True) if isinstance(leaf, cr.Tensor) else leaf


def _assert_same(got: list[Any], wanted: list[Any]) -> None:
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        if isinstance(b, np.ndarray):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            bar = _ROUNDING.get(b.dtype.name, 1e-10 if b.dtype.kind in "fc" else 0)
            np.testing.assert_allclose(a, b, rtol=bar, atol=bar)
        elif isinstance(b, float | complex):
            np.testing.assert_allclose(a, b, rtol=1e-4, equal_nan=True)
        else:
            assert type(a) is type(b)
            assert a == b or not isinstance(b, bool | int | str)
