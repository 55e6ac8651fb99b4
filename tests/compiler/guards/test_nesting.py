"""Containers nested deeply, or inside themselves: as arguments, results and globals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import chainrule as cr
from chainrule import pytree


@dataclass
class Branch:
    k: Any
    parent: Any = None
    parts: list[Any] = field(default_factory=list)


def ring(kind: str) -> Any:
    """Return a container with a number, which contains itself."""
    if kind == "list":
        made: Any = [2.0]
        made.append(made)
    elif kind == "dict":
        made = {0: 2.0}
        made["self"] = made
    else:
        made = Branch(2.0)
        made.parts.append(Branch(3.0, made))
    return made


def number(container: Any) -> Any:
    return container.k if isinstance(container, Branch) else container[0]


@pytest.mark.parametrize("kind", ["list", "dict", "dataclass"])
def test_a_container_may_contain_itself(kind: str) -> None:
    x, held = cr.tensor([1.0, 2.0]), ring(kind)
    closed = cr.compile(lambda x: x * number(held))
    given = cr.compile(lambda x, container: x * number(container))
    for _ in range(2):
        assert closed(x).tolist() == [2.0, 4.0]
        assert given(x, ring(kind)).tolist() == [2.0, 4.0]
    assert len(closed.signatures) == len(given.signatures) == 1


WRAP: dict[str, Callable[[Any], Any]] = {
    "list": lambda part: [part],
    "tuple": lambda part: (part,),
    "dict": lambda part: {"k": part},
    "dataclass": lambda part: Branch(part),
}


@pytest.mark.parametrize("depth", [19, 20, 21, 500])
@pytest.mark.parametrize("kind", WRAP)
def test_containers_nest_to_any_depth(kind: str, depth: int) -> None:
    def wrapped(part: Any) -> Any:
        for _ in range(depth):
            part = WRAP[kind](part)
        return part

    def doubled(tree: Any) -> Any:
        return pytree.map_leaves(tree, lambda x: x * 2 if isinstance(x, cr.Tensor) else x)

    x = cr.tensor([1.0, 2.0])
    for found in (cr.compile(doubled)(wrapped(x)), cr.compile(lambda x: wrapped(x * 2))(x)):
        tensors = [leaf for _, leaf in pytree.leaves(found) if isinstance(leaf, cr.Tensor)]
        assert [t.tolist() for t in tensors] == [[2.0, 4.0]]
        while not isinstance(found, cr.Tensor):
            (_, found), *_ = pytree.children(found)
