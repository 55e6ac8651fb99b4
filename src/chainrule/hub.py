"""PyTorch's functions for pretrained models, which scripts import: nothing is downloaded here."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from chainrule.errors import ArgumentError
from chainrule.missing_names import missing

__all__ = ["download_url_to_file", "get_dir", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile("-([a-f0-9]*)[.]")
"""PyTorch's pattern of the hash in a file's name."""
_folder: list[str] = []


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


def download_url_to_file(url: str, dst: str, *args: Any, **settings: Any) -> None:
    """Raise an error: nothing is downloaded.

    Raises
    ------
    ArgumentError
        Always.
    """
    raise ArgumentError(f"nothing is downloaded: fetch {url} with a browser or curl, to {dst}")


def get_dir() -> str:
    """Return the folder that `set_dir` has set, or PyTorch's for downloaded files."""
    home = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    usual = os.path.join(os.environ.get("TORCH_HOME", os.path.join(home, "torch")), "hub")
    return _folder[-1] if _folder else os.path.expanduser(usual)


def set_dir(d: str | os.PathLike[str]) -> None:
    """Set the folder that `get_dir` returns."""
    _folder[:] = [os.path.expanduser(d)]


load_url = load_state_dict_from_url


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        raise missing(__name__, name)
