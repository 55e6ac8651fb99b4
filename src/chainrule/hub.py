"""PyTorch's functions for pretrained models, which scripts import: nothing is downloaded here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chainrule.errors import ArgumentError
from chainrule.missing_names import missing

__all__ = ["load_state_dict_from_url"]


def load_state_dict_from_url(url: str, *args: Any, **settings: Any) -> Any:
    """Raise an error that says how to load a state dict.

    Raises
    ------
    ArgumentError
        Always.
    """
    raise ArgumentError(
        f"nothing is downloaded: fetch {url} with a browser or curl, and say "
        "model.load_state_dict(cr.load(path))"
    )


load_url = load_state_dict_from_url


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        raise missing(__name__, name)
