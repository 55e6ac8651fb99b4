"""What networks are made of, as functions under PyTorch's names: a module for each subject."""

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

__all__: list[str] = []
__all__ += activations.__all__
__all__ += adaptive.__all__
__all__ += alignment.__all__
__all__ += attention.__all__
__all__ += choices.__all__
__all__ += class_margins.__all__
__all__ += classification.__all__
__all__ += convolution.__all__
__all__ += dropouts.__all__
__all__ += embeddings.__all__
__all__ += folding.__all__
__all__ += grids.__all__
__all__ += hard.__all__
__all__ += layers.__all__
__all__ += losses.__all__
__all__ += margins.__all__
__all__ += normalisation.__all__
__all__ += padding.__all__
__all__ += pooling.__all__
__all__ += rectifiers.__all__
__all__ += resizing.__all__
__all__ += similarity.__all__
