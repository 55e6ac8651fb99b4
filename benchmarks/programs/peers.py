"""Adapters of the libraries: the same few names for each, so that a program is written once."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

import chainrule as cr

Job = Callable[[], Any]

CHAINRULE = {"chainrule": None, "chainrule, NumPy": "numpy", "chainrule, native": "native"}
"""Backend of `cr.compile` for each name; None leaves the choice to chainrule."""


class Peer:
    """chainrule or PyTorch, with common names for the functions that are named differently."""

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def lib(self) -> Any:
        return cr if self.name in CHAINRULE else importlib.import_module("torch")

    def tensor(self, array: Any, **settings: Any) -> Any:
        return self.lib.tensor(np.asarray(array), **settings)

    @property
    def grad(self) -> Callable[..., Any]:
        return cr.autograd_grad if self.lib is cr else self.lib.autograd.grad

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Compile a function with the library's compiler; plain PyTorch runs it eagerly."""
        if self.name in CHAINRULE:
            return cr.compile(function, backend=CHAINRULE[self.name])
        return self.lib.compile(function) if self.name == "torch.compile" else function


@dataclass(frozen=True)
class Program:
    """A training step or a gradient, with the bars for its ratios."""

    ours: Callable[[Peer], Job]
    jitted: Callable[[], Job]
    bars: dict[str, float]
    others: tuple[str, ...] = ()  # further libraries, beside chainrule, PyTorch and JAX
    floor: Job | None = None  # the least work that any library has to do
    measured: dict[str, Any] = field(default_factory=dict)  # arguments of `harness.measure`

    def job(self, peer: str) -> Job:
        """Return the program's job for one library."""
        if peer == "floor":
            assert self.floor is not None
            return self.floor
        if peer == "torch.compile":  # it limits how often one line of code may be recompiled
            importlib.import_module("torch").compiler.reset()
        return self.jitted() if peer == "JAX jit" else self.ours(Peer(peer))

    def jobs(self) -> dict[str, Job]:
        """Return the program's job for each installed library."""
        names = ["chainrule", "PyTorch", "JAX jit", *self.others]
        names += ["floor"] if self.floor is not None else []
        return {name: self.job(name) for name in names if is_installed(name)}


def is_installed(peer: str) -> bool:
    """Return whether a library is installed, without importing it."""
    module = {"PyTorch": "torch", "torch.compile": "torch", "JAX jit": "jax"}.get(peer)
    return module is None or importlib.util.find_spec(module) is not None


def ready(function: Callable[..., Any], *args: Any) -> Job:
    """Return a job that calls a jitted JAX function and waits for its results."""
    import jax

    placed = jax.device_put(args)
    return lambda: jax.block_until_ready(function(*placed))
