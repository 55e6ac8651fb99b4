"""What networks are made of, as functions under PyTorch's names: a module for each subject."""

from typing import TYPE_CHECKING

from chainrule.nn.functional import (
    activations,
    adaptive,
    alignment,
    attention,
    avg_pooling,
    binary,
    channel_norms,
    choices,
    class_margins,
    classification,
    convolution,
    dropouts,
    embeddings,
    folding,
    grids,
    hard,
    layer_norms,
    layers,
    losses,
    margins,
    max_pooling,
    padding,
    rectifiers,
    resizing,
    similarity,
)
from chainrule.nn.functional.activations import *
from chainrule.nn.functional.adaptive import *
from chainrule.nn.functional.alignment import *
from chainrule.nn.functional.attention import *
from chainrule.nn.functional.avg_pooling import *
from chainrule.nn.functional.binary import *
from chainrule.nn.functional.channel_norms import *
from chainrule.nn.functional.choices import *
from chainrule.nn.functional.class_margins import *
from chainrule.nn.functional.classification import *
from chainrule.nn.functional.convolution import *
from chainrule.nn.functional.dropouts import *
from chainrule.nn.functional.embeddings import *
from chainrule.nn.functional.folding import *
from chainrule.nn.functional.grids import *
from chainrule.nn.functional.hard import *
from chainrule.nn.functional.layer_norms import *
from chainrule.nn.functional.layers import *
from chainrule.nn.functional.losses import *
from chainrule.nn.functional.margins import *
from chainrule.nn.functional.max_pooling import *
from chainrule.nn.functional.padding import *
from chainrule.nn.functional.rectifiers import *
from chainrule.nn.functional.resizing import *
from chainrule.nn.functional.similarity import *

if not TYPE_CHECKING:  # as in `ops`
    __all__ = [
        name
        for module in (
            activations,
            adaptive,
            alignment,
            attention,
            avg_pooling,
            binary,
            channel_norms,
            choices,
            class_margins,
            classification,
            convolution,
            dropouts,
            embeddings,
            folding,
            grids,
            hard,
            layer_norms,
            layers,
            losses,
            margins,
            max_pooling,
            padding,
            rectifiers,
            resizing,
            similarity,
        )
        for name in module.__all__
    ]
