"""Optimisers for training loops, with the arguments of PyTorch's."""

from typing import TYPE_CHECKING, Any

from chainrule.missing_names import ClassInLowerCase, missing
from chainrule.optim import adam, lbfgs, sgd
from chainrule.optim import lr_scheduler as lr_scheduler
from chainrule.optim import optimizer as optimizer
from chainrule.optim import swa_utils as swa_utils
from chainrule.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam, SparseAdam
from chainrule.optim.adaptive import Adadelta, Adagrad, RMSprop, Rprop
from chainrule.optim.lbfgs import LBFGS
from chainrule.optim.matrix_rules import Adafactor, Muon
from chainrule.optim.optimizer import Optimizer
from chainrule.optim.sgd import ASGD, SGD

__all__ = [
    "Optimizer",
    "SGD",
    "ASGD",
    "Adam",
    "AdamW",
    "SparseAdam",
    "Adamax",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Adagrad",
    "Adadelta",
    "Rprop",
    "Adafactor",
    "Muon",
    "LBFGS",
]


if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        raise missing(__name__, name)

    for _module in (adam, lbfgs, sgd):
        _module.__class__ = ClassInLowerCase
