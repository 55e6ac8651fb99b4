"""Schedules of the learning rate, with the names, arguments and state of PyTorch's."""

from chainrule.optim.lr_scheduler.combinations import (
    ChainedScheduler,
    ReduceLROnPlateau,
    SequentialLR,
)
from chainrule.optim.lr_scheduler.cycles import CyclicLR, OneCycleLR
from chainrule.optim.lr_scheduler.functions_of_step import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from chainrule.optim.lr_scheduler.scheduler import LRScheduler
from chainrule.optim.lr_scheduler.scheduler import _LRScheduler as _LRScheduler

__all__ = [
    "LRScheduler",
    "LambdaLR",
    "MultiplicativeLR",
    "StepLR",
    "MultiStepLR",
    "ConstantLR",
    "LinearLR",
    "ExponentialLR",
    "PolynomialLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "OneCycleLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "ChainedScheduler",
]
