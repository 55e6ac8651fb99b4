"""Functions of neural networks under PyTorch's names, in a module for each subject."""

import sys
from typing import TYPE_CHECKING

from chainrule.nn.functional.activations import *
from chainrule.nn.functional.adaptive_pooling import *
from chainrule.nn.functional.attention import *
from chainrule.nn.functional.convolution import *
from chainrule.nn.functional.dropout import *
from chainrule.nn.functional.embedding import *
from chainrule.nn.functional.fold import *
from chainrule.nn.functional.fractional_pooling import *
from chainrule.nn.functional.interpolate import *
from chainrule.nn.functional.linear import *
from chainrule.nn.functional.losses import *
from chainrule.nn.functional.losses_classification import *
from chainrule.nn.functional.losses_ctc import *
from chainrule.nn.functional.losses_margin import *
from chainrule.nn.functional.normalization import *
from chainrule.nn.functional.padding import *
from chainrule.nn.functional.pooling import *

if not TYPE_CHECKING:  # as in `ops`
    __all__ = [
        name
        for subject in (
            "activations",
            "adaptive_pooling",
            "losses_classification",
            "losses_ctc",
            "attention",
            "pooling",
            "normalization",
            "losses_margin",
            "convolution",
            "dropout",
            "embedding",
            "fold",
            "fractional_pooling",
            "interpolate",
            "linear",
            "losses",
            "padding",
        )
        for name in sys.modules[f"{__name__}.{subject}"].__all__
    ]
