"""Optimisers for training loops, with the arguments of PyTorch's."""

from typing import TYPE_CHECKING, Any

from chainrule.missing_names import missing
from chainrule.optim.adam import Adam, AdamW
from chainrule.optim.optimizer import Optimizer
from chainrule.optim.sgd import SGD

__all__ = ["Optimizer", "SGD", "Adam", "AdamW"]


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        raise missing(__name__, name)
