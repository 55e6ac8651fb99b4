"""The random number generator: NumPy's, with PyTorch's methods."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from chainrule.backend import device as as_device
from chainrule.errors import ArgumentTypeError

__all__ = ["Generator"]


class Generator(np.random.Generator):
    """A `numpy.random.Generator` that can be seeded again, as PyTorch's can.

    Parameters
    ----------
    device : device or str, default "cpu"
        Without effect: numbers are always drawn on the CPU, and moved, so that a seed gives the
        same on every device.

    Examples
    --------
    >>> import chainrule as cr
    >>> g = cr.Generator().manual_seed(1)
    >>> a = cr.randint(0, 10, (3,), generator=g)
    >>> bool((a == cr.randint(0, 10, (3,), generator=g.manual_seed(1))).all())
    True
    """

    is_seeded: bool
    _seed: int

    def __init__(self, device: Any = "cpu") -> None:
        super().__init__(np.random.default_rng().bit_generator)
        self._device = as_device(device)
        self._of_ranks: list[Generator] = []
        self.seed()

    @property
    def device(self) -> as_device:
        """The device that it was made for."""
        return self._device

    def manual_seed(self, seed: int) -> Generator:
        """Start the sequence of a seed; return the generator."""
        if not hasattr(seed, "__index__") and not isinstance(seed, float | np.floating):
            raise ArgumentTypeError(
                f"manual_seed: seed must be an int, got {seed!r}: zlib.crc32(text.encode()) makes "
                "one of a text"
            )
        seed = int(seed) if seed >= 0 else int(seed) + 2**64  # as PyTorch maps negative ones
        bits = self.bit_generator
        bits.state = type(bits)(seed).state
        self._seed = seed
        self.is_seeded = True
        return self

    def seed(self) -> int:
        """Start an unpredictable sequence; return its seed."""
        entropy: Any = np.random.SeedSequence().entropy
        self.manual_seed(entropy % 2**63)
        self.is_seeded = False
        return self._seed

    def initial_seed(self) -> int:
        """Return the seed of the sequence."""
        return self._seed

    def get_state(self) -> Any:
        """Return the state of the generator, for `set_state`."""
        return {**copy.deepcopy(dict(self.bit_generator.state)), "seed": self._seed}

    def set_state(self, state: Any) -> None:
        """Go on from a state that `get_state` returned."""
        if not isinstance(state, dict) or "seed" not in state:
            raise ArgumentTypeError(
                f"expected the result of get_state(), but got {type(state).__name__}"
            )
        self.bit_generator.state = {k: v for k, v in state.items() if k != "seed"}
        self._seed = state["seed"]
        self.is_seeded = True

    def of_ranks(self, count: int) -> list[Generator]:
        """Return the generators of the ranks of a program, as processes would have them.

        They are in the state of this one if that was seeded, as if each rank had done it.
        """
        self._of_ranks += [Generator(self._device) for _ in range(len(self._of_ranks), count)]
        for each in self._of_ranks[:count]:
            if self.is_seeded:
                each.set_state(self.get_state())
            else:
                each.seed()
        return self._of_ranks[:count]

    def __reduce__(self) -> Any:
        return _restored, (self.get_state(), str(self._device))


def _restored(state: Any, device: str = "cpu") -> Generator:
    generator = Generator(device)
    generator.set_state(state)
    return generator
