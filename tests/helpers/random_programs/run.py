"""Execution of random programs, line by line, in chainrule or in PyTorch."""

from __future__ import annotations

import functools
import math
from types import CodeType
from typing import Any

import numpy as np

import chainrule as cr
from helpers.random_programs.source import reads_and_makes
from helpers.torch_comparison import CHAINRULE, Library

# --- one library ----------------------------------------------------------------------------------


class Run:
    """A library, the variables so far, and the values that hooks and queries recorded."""

    def __init__(self, lib: Library, functions: dict[str, Any]) -> None:
        self.lib = lib
        self.seen: dict[str, list[Any]] = {}
        self.names: dict[str, Any] = {
            "lib": lib,
            "note": self._note,
            "look": self._look,
            "weigh": self.weigh,
            **functions,
        }

    def _note(self, name: str, value: Any) -> None:
        self.seen.setdefault(name, []).append(value.detach().numpy().copy())

    def _look(self, tensor: Any) -> None:
        self.seen.setdefault("flags", []).append(flags(tensor))

    def weigh(self, tensor: Any) -> Any:
        """Return a sum that weights neighbouring elements differently."""
        weights = 1.0 + np.arange(math.prod(tensor.shape)) % 3
        return (tensor * self.lib.from_numpy(weights.reshape(tuple(tensor.shape)))).sum()

    def step(self, line: str) -> Exception | None:
        """Run one line; return the exception that it raised, if any."""
        try:
            exec(_compiled(line), self.names)
        except Exception as error:
            return error.with_traceback(None)
        return None

    @property
    def tensors(self) -> dict[str, Any]:
        """The variables, in the order in which they were made."""
        return {
            name: value
            for name, value in self.names.items()
            if name[0] == "t" and name[1:].isdigit() and value is not None
        }


def flags(tensor: Any) -> tuple[bool, bool, bool]:
    made = tensor.grad_fn is not None  # asked first: PyTorch brings a view up to date only here
    return tensor.requires_grad, tensor.is_leaf, made


def runnable(line: str, names: dict[str, Any]) -> bool:
    """Say whether all variables that the line reads exist: an earlier line may have raised."""
    return all(name in names for name in reads_and_makes(line)[0])


def is_leaf_line(line: str) -> bool:
    return " = lib.leaf(" in line


@functools.lru_cache(maxsize=20_000)
def _compiled(line: str) -> CodeType:
    return compile(line, f"<{line}>", "exec")


# --- custom functions, the same code for both -----------------------------------------------------


def _cube(ctx, x):
    ctx.save_for_backward(x)
    return x**3


def _cube_backward(ctx, g):
    (x,) = ctx.saved_tensors
    return 3 * g * x * x


def _product_and_sum(ctx, x, y):
    ctx.save_for_backward(x, y)
    return x * y, x + y


def _product_and_sum_backward(ctx, g, h):
    x, y = ctx.saved_tensors
    return g * y + h, g * x + h


def _with_mask(ctx, x):
    mask = (x * x > 1).double()
    ctx.mark_non_differentiable(mask)
    ctx.save_for_backward(mask)
    return x * mask, mask


def _with_mask_backward(ctx, g, _):
    (mask,) = ctx.saved_tensors
    return g * mask


def _triple_in_place(ctx, x):
    ctx.mark_dirty(x)
    return x.mul_(3)


def _triple_backward(ctx, g):
    return g * 3


def _unchanged(ctx, x):
    return x


def _unchanged_backward(ctx, g):
    return g


_RULES: dict[str, tuple[Any, Any]] = {
    "cube": (_cube, _cube_backward),
    "product_and_sum": (_product_and_sum, _product_and_sum_backward),
    "with_mask": (_with_mask, _with_mask_backward),
    "triple_in_place": (_triple_in_place, _triple_backward),
    "unchanged": (_unchanged, _unchanged_backward),
}

_OURS = {name: cr.autograd_function(*rules) for name, rules in _RULES.items()}


def chainrule_run() -> Run:
    return Run(CHAINRULE, _OURS)


def torch_run() -> Run:
    import torch

    lib = Library(torch, torch.autograd.backward, torch.autograd.grad)
    return Run(lib, _torch_functions())


@functools.cache
def _torch_functions() -> dict[str, Any]:
    import torch

    made = {}
    for name, (forward, backward) in _RULES.items():
        body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        made[name] = type(name, (torch.autograd.Function,), body).apply
    return made
