"""Optimisers for training loops, with the arguments of PyTorch's."""

from chainrule.optim.adam import Adam
from chainrule.optim.optimizer import Optimizer
from chainrule.optim.sgd import SGD

__all__ = ["Optimizer", "SGD", "Adam"]
