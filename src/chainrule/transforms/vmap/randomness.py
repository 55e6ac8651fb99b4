"""Random numbers under vmap: draws for each example or for all, and those that NumPy makes."""

from __future__ import annotations

import ctypes
import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule.autograd.location import user_stack_level
from chainrule.errors import AutogradError
from chainrule.interrupts import call_with
from chainrule.random import draw as sampling
from chainrule.transforms.vmap.batched_array import BatchedArray, Level
from chainrule.transforms.vmap.namespace import (
    align_ranks,
    broadcast_batch,
    deepest_level,
    loop_over_batch,
)

RANDOMNESS = ("error", "different", "same")
"""The values of the argument `randomness` of `vmap`."""


def draws_of(level: Level, randomness: str) -> Callable[..., Any]:
    """Return the function that draws random numbers for the examples of a level."""
    outer = sampling.WATCHER.get()

    def once(generator: Any, method: Any, args: Any, settings: Any) -> Any:
        variables = {sampling.WATCHER: outer}
        return call_with(variables, sampling.draw, method, generator, *args, **settings)

    def draw(generator: Any, method: Any, args: Any, settings: Any) -> Any:
        if randomness == "error":
            raise AutogradError(
                "vmap: called random operation while in randomness error mode. Say "
                'randomness="different" for different random numbers in each example, "same" for '
                "the same in all, or draw outside of vmap and pass the numbers as an argument"
            )
        if randomness == "same":
            if deepest_level(args, settings) is level:
                raise AutogradError(
                    'vmap(randomness="same"): the draw depends on the example: say "different"'
                )
            return once(generator, method, args, settings)
        whole = _whole_batch(level, method, args, settings)
        if whole is not None:
            return BatchedArray(level, once(generator, method, whole, settings))

        def draw_example(index: Any, *args: Any) -> Any:
            return once(generator, method, args, settings)

        indices = BatchedArray(level, np.arange(level.count))
        name = method if isinstance(method, str) else getattr(method, "__name__", "draw")
        return loop_over_batch(
            level, draw_example, indices, *args, title=f"random.{name.lstrip('_')}"
        )

    return draw


def _whole_batch(level: Level, method: Any, args: Any, settings: Any) -> Any:
    """Return the arguments of one draw for all examples, None if there is none."""
    if method in _ELEMENTWISE:
        return [broadcast_batch(level, data) for data in align_ranks(level, *args)]
    shapes = [i for i, part in enumerate(args) if isinstance(part, tuple)]
    if len(shapes) != 1 or deepest_level(args, settings) is not None:
        return None
    (at,) = shapes
    return (*args[:at], (level.count, *args[at]), *args[at + 1 :])


_ELEMENTWISE = ("poisson", "binomial")
"""Methods that draw a number for each element of their arguments."""


def state_of_numpy() -> bytes | None:
    """Return the state of `numpy.random`, in a tenth of a microsecond; None if it isn't imported.

    Empty for other generators than NumPy's default. It does not include the second number of a pair
    of normal ones, which NumPy keeps.
    """
    module = sys.modules.get("numpy.random.mtrand")
    return None if module is None else _memory_of(module._rand._bit_generator).raw


@functools.lru_cache(1)
def _memory_of(generator: Any) -> Any:
    if type(generator).__name__ != "MT19937":
        return ctypes.create_string_buffer(0)
    address = generator.ctypes.state_address  # 624 words and the position among them
    return (ctypes.c_char * (4 * 625)).from_address(address)


def warn_of_draws_of_numpy(before: bytes | None, caller: str) -> None:
    """Warn if `numpy.random` has drawn, whose functions do not know of examples."""
    if before is None or state_of_numpy() == before:
        return
    warnings.warn(
        f"{caller}: random numbers were drawn from numpy.random. If the function drew them, all "
        "examples have the same. Draw with chainrule.randn() and its kin, which know of the "
        "examples, or outside of vmap, and pass the numbers as an argument; if all examples are to "
        'have the same numbers, say randomness="same". Another thread, or a function of SciPy that '
        "estimates norms, such as logm, may have drawn as well",
        UserWarning,
        user_stack_level(),
    )
