"""What networks are made of, as functions under PyTorch's names: a module for each subject."""

import sys
from typing import TYPE_CHECKING

from chainrule.nn.functional.activations import *
from chainrule.nn.functional.adaptive import *
from chainrule.nn.functional.alignment import *
from chainrule.nn.functional.attention import *
from chainrule.nn.functional.binary import *
from chainrule.nn.functional.choices import *
from chainrule.nn.functional.class_margins import *
from chainrule.nn.functional.convolution import *
from chainrule.nn.functional.dropout import *
from chainrule.nn.functional.embedding import *
from chainrule.nn.functional.fold import *
from chainrule.nn.functional.grids import *
from chainrule.nn.functional.hard import *
from chainrule.nn.functional.interpolate import *
from chainrule.nn.functional.layer_norms import *
from chainrule.nn.functional.linear import *
from chainrule.nn.functional.losses import *
from chainrule.nn.functional.losses_classification import *
from chainrule.nn.functional.losses_margin import *
from chainrule.nn.functional.max_pooling import *
from chainrule.nn.functional.normalization import *
from chainrule.nn.functional.padding import *
from chainrule.nn.functional.pooling import *
from chainrule.nn.functional.rectifiers import *
from chainrule.nn.functional.similarity import *

if not TYPE_CHECKING:  # as in `ops`
    __all__ = [
        name
        for subject in (
            "activations",
            "adaptive",
            "alignment",
            "attention",
            "pooling",
            "binary",
            "normalization",
            "choices",
            "class_margins",
            "losses_classification",
            "convolution",
            "dropout",
            "embedding",
            "fold",
            "grids",
            "hard",
            "layer_norms",
            "linear",
            "losses",
            "losses_margin",
            "max_pooling",
            "padding",
            "rectifiers",
            "interpolate",
            "similarity",
        )
        for name in sys.modules[f"{__name__}.{subject}"].__all__
    ]
