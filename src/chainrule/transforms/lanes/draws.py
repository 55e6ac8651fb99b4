"""Random numbers in a mapped function: others for each lane, or the same for all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from chainrule.errors import AutogradError
from chainrule.random import draw as sampling
from chainrule.transforms.vmap.batched_array import Lanes, Level
from chainrule.transforms.vmap.namespace import deepest, looped

RANDOMNESS = ("error", "different", "same")


@contextmanager
def drawing(level: Level, randomness: str) -> Iterator[None]:
    """Draw for all lanes of a level as `randomness` says."""
    outer = sampling.WATCHER.get()

    def once(generator: Any, method: Any, args: Any, settings: Any) -> Any:
        token = sampling.WATCHER.set(outer)
        try:
            return sampling.draw(method, generator, *args, **settings)
        finally:
            sampling.WATCHER.reset(token)

    def draw(generator: Any, method: Any, args: Any, settings: Any) -> Any:
        if randomness == "error":
            raise AutogradError(
                "vmap: called random operation while in randomness error mode. Say "
                'randomness="different" for other random numbers in each example, "same" for the '
                "same in all, or draw outside and pass what was drawn"
            )
        if randomness == "same":
            if deepest(args, settings) is level:
                raise AutogradError(
                    'vmap(randomness="same"): what is drawn depends on the example: say "different"'
                )
            return once(generator, method, args, settings)
        if method in _SHAPED and deepest(args, settings) is None:
            shape = args[0] if isinstance(args[0], tuple) else (args[0],)
            drawn = once(generator, method, ((level.count, *shape), *args[1:]), settings)
            return Lanes(level, drawn)

        def one(lane: Any, *args: Any) -> Any:
            return once(generator, method, args, settings)

        return looped(level, one, Lanes(level, np.arange(level.count)), *args)

    token = sampling.WATCHER.set(draw)
    try:
        yield
    finally:
        sampling.WATCHER.reset(token)


_SHAPED = ("random", "standard_normal")
"""Methods whose first argument is a shape: one draw serves all lanes."""
