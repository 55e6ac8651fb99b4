"""Layers, containers and losses under PyTorch's names, in a module for each subject."""

import sys
from typing import TYPE_CHECKING, Any

from chainrule.missing_names import submodule
from chainrule.nn.modules.activation import *
from chainrule.nn.modules.container import *
from chainrule.nn.modules.conv import *
from chainrule.nn.modules.dropout import *
from chainrule.nn.modules.embedding import *
from chainrule.nn.modules.lazy import LazyModuleMixin as LazyModuleMixin
from chainrule.nn.modules.linear import *
from chainrule.nn.modules.loss import *
from chainrule.nn.modules.module import Module as Module
from chainrule.nn.modules.normalization import *
from chainrule.nn.modules.padding import *
from chainrule.nn.modules.pooling import *
from chainrule.nn.modules.rnn import *
from chainrule.nn.modules.shape import *
from chainrule.nn.modules.transformer import *

if not TYPE_CHECKING:  # as in `ops`
    __all__ = [
        "Module",
        *(
            name
            for subject in (
                "activation",
                "container",
                "conv",
                "dropout",
                "embedding",
                "linear",
                "loss",
                "normalization",
                "padding",
                "pooling",
                "rnn",
                "shape",
                "transformer",
            )
            for name in sys.modules[f"{__name__}.{subject}"].__all__
        ),
    ]

    def __getattr__(name: str) -> Any:
        return submodule(__name__, name)
