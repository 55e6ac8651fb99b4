"""Special functions: the names of `scipy.special`, as `chainrule.scipy.special` has them."""

from __future__ import annotations

from typing import Any

from chainrule.scipy import special


def __getattr__(name: str) -> Any:
    return getattr(special, name)


def __dir__() -> list[str]:
    return dir(special)
