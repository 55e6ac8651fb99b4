"""The libraries, each behind the same few names, so that one text serves several of them."""

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
"""How chainrule compiles: by its own choice, without Numba, or with it always."""


class Peer:
    """chainrule or PyTorch: what differs between them where both run the same text."""

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
        """Compile as the library does; PyTorch by itself runs eagerly."""
        if self.name in CHAINRULE:
            return cr.compile(function, backend=CHAINRULE[self.name])
        return self.lib.compile(function) if self.name == "torch.compile" else function


@dataclass(frozen=True)
class Program:
    """A step or a gradient, with the bars for its ratios."""

    ours: Callable[[Peer], Job]
    jitted: Callable[[], Job]
    bars: dict[str, float]
    others: tuple[str, ...] = ()  # what it's measured with besides chainrule, PyTorch and JAX
    floor: Job | None = None
    measured: dict[str, Any] = field(default_factory=dict)  # rounds, and rest between them

    def job(self, peer: str) -> Job:
        """Return the program as a library runs it."""
        if peer == "floor":
            assert self.floor is not None
            return self.floor
        if peer == "torch.compile":  # else its limits on how often it compiles a line would count
            importlib.import_module("torch").compiler.reset()
        return self.jitted() if peer == "JAX jit" else self.ours(Peer(peer))

    def jobs(self) -> dict[str, Job]:
        """Return the program as each of the installed libraries runs it."""
        names = ["chainrule", "PyTorch", "JAX jit", *self.others]
        names += ["floor"] if self.floor is not None else []
        return {name: self.job(name) for name in names if is_installed(name)}


def is_installed(peer: str) -> bool:
    """Say whether a library is there, without importing it."""
    module = {"PyTorch": "torch", "torch.compile": "torch", "JAX jit": "jax"}.get(peer)
    return module is None or importlib.util.find_spec(module) is not None


def ready(function: Callable[..., Any], *args: Any) -> Job:
    """Return the job of a function that JAX has jitted, done when its results are there."""
    import jax

    placed = jax.device_put(args)
    return lambda: jax.block_until_ready(function(*placed))
