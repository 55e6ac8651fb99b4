"""The slices that a loop takes and makes, where some of its steps stand before it by themselves."""

from __future__ import annotations

from collections.abc import Mapping

from chainrule.autograd.tensor import Tensor
from chainrule.creation import zeros
from chainrule.ops import cat, unsqueeze


class Pieces:
    """How far the steps have come, and what they made, in the order of the slices.

    Steps that begin with the last slice are `descending`.
    """

    def __init__(self, length: int, descending: bool) -> None:
        self.length, self.descending = length, descending
        self.done = 0
        self._pieces: list[tuple[int, Mapping[int, Tensor]]] = []

    @property
    def left(self) -> int:
        """The number of steps that are still to be done."""
        return self.length - self.done

    @property
    def at(self) -> int:
        """The number of the slice that the next step takes."""
        return self.left - 1 if self.descending else self.done

    def rest_of(self, stack: Tensor) -> Tensor:
        """Return what all further steps take of it."""
        if not self.done:
            return stack
        return stack[: self.left] if self.descending else stack[self.done :]

    def step(self, made: Mapping[int, Tensor]) -> None:
        """Add what one step has made."""
        self._pieces.append((1, {number: unsqueeze(t, 0) for number, t in made.items()}))
        self.done += 1

    def end(self, made: Mapping[int, Tensor]) -> None:
        """Add what all further steps have made."""
        self._pieces.append((self.left, made))
        self.done = self.length

    def joined(self) -> dict[int, Tensor]:
        """Return stacks of all slices; where a step has made none, zeros."""
        pieces = self._pieces[::-1] if self.descending else self._pieces
        like = {number: t for _, made in pieces for number, t in made.items()}
        if len(pieces) == 1:
            return like
        found = {}
        for number, t in like.items():
            parts = [
                made.get(number, zeros((count, *t.shape[1:]), dtype=t.dtype))
                for count, made in pieces
            ]
            found[number] = cat(parts)
        return found
