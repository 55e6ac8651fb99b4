"""What networks are made of, as functions under PyTorch's names: a module for each subject."""

from typing import TYPE_CHECKING

from chainrule.nn.functional import (
    activations,
    adaptive,
    alignment,
    attention,
    choices,
    class_margins,
    classification,
    convolution,
    dropouts,
    embeddings,
    folding,
    grids,
    hard,
    layers,
    losses,
    margins,
    normalisation,
    padding,
    pooling,
    rectifiers,
    resizing,
    similarity,
)
from chainrule.nn.functional.activations import *  # noqa: F403
from chainrule.nn.functional.adaptive import *  # noqa: F403
from chainrule.nn.functional.alignment import *  # noqa: F403
from chainrule.nn.functional.attention import *  # noqa: F403
from chainrule.nn.functional.choices import *  # noqa: F403
from chainrule.nn.functional.class_margins import *  # noqa: F403
from chainrule.nn.functional.classification import *  # noqa: F403
from chainrule.nn.functional.convolution import *  # noqa: F403
from chainrule.nn.functional.dropouts import *  # noqa: F403
from chainrule.nn.functional.embeddings import *  # noqa: F403
from chainrule.nn.functional.folding import *  # noqa: F403
from chainrule.nn.functional.grids import *  # noqa: F403
from chainrule.nn.functional.hard import *  # noqa: F403
from chainrule.nn.functional.layers import *  # noqa: F403
from chainrule.nn.functional.losses import *  # noqa: F403
from chainrule.nn.functional.margins import *  # noqa: F403
from chainrule.nn.functional.normalisation import *  # noqa: F403
from chainrule.nn.functional.padding import *  # noqa: F403
from chainrule.nn.functional.pooling import *  # noqa: F403
from chainrule.nn.functional.rectifiers import *  # noqa: F403
from chainrule.nn.functional.resizing import *  # noqa: F403
from chainrule.nn.functional.similarity import *  # noqa: F403

if not TYPE_CHECKING:  # as in `ops`
    __all__ = [
        name
        for module in (
            activations,
            adaptive,
            alignment,
            attention,
            choices,
            class_margins,
            classification,
            convolution,
            dropouts,
            embeddings,
            folding,
            grids,
            hard,
            layers,
            losses,
            margins,
            normalisation,
            padding,
            pooling,
            rectifiers,
            resizing,
            similarity,
        )
        for name in module.__all__
    ]
