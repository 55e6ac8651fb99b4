"""Random numbers: generators, and draws from continuous and discrete distributions."""

from typing import TYPE_CHECKING, Any

from chainrule.missing_names import missing
from chainrule.random import continuous, discrete
from chainrule.random.continuous import *
from chainrule.random.discrete import *
from chainrule.random.discrete import fork_rng as fork_rng

# mypy can't read an `__all__` put together from others; without one, it takes what the stars bring.
if not TYPE_CHECKING:
    __all__ = [*continuous.__all__, *discrete.__all__]

    def __getattr__(name: str) -> Any:
        raise missing(__name__, name)
