"""How a view leads from its base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chainrule.autograd.node import Edge
from chainrule.autograd.versions import next_seq
from chainrule.primitives.primitive import Primitive

if TYPE_CHECKING:
    from chainrule.autograd.tensor import Tensor


class View:
    """What makes a tensor a view: its base, and the view operations that lead from it.

    The operations are a chain of (earlier ones, primitive, settings): one more costs the same
    however many there are.

    `base_node` is the base's node that the view's own was made from: another operation's there now
    means that the base has a new history. `refusal` says why in-place writes are refused, if they
    are. Without a base it is the alias that a custom function made at `stamp`.
    """

    __slots__ = ("base", "base_node", "path", "refusal", "stamp")

    def __init__(
        self,
        base: Tensor | None,
        path: tuple[Any, Primitive, dict[str, Any]] | None,
        refusal: str | None = None,
    ) -> None:
        self.base = base
        self.path = path
        self.base_node: Edge = None if base is None else base._node
        self.stamp = next_seq()
        self.refusal = refusal

    def steps(self) -> tuple[tuple[Primitive, dict[str, Any]], ...]:
        """Return the view operations from the base, first to last."""
        steps = []
        link = self.path
        while link is not None:
            link, primitive, settings = link
            steps.append((primitive, settings))
        return tuple(reversed(steps))

    @property
    def hidden(self) -> bool:
        """Whether nobody else holds the base: see `ReshapedInPlace`."""
        return False


class ReshapedInPlace(View):
    """What a tensor has that owned its memory before its shape was changed in place.

    Its base is a tensor that only this one, and views made earlier, know of: it holds the history
    in the shape that the memory had then. So those views keep their place in it.
    """

    __slots__ = ()

    @property
    def hidden(self) -> bool:
        return True
