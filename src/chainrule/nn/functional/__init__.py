"""What networks are made of, as functions under PyTorch's names: a module for each subject."""

from chainrule.nn.functional import (
    activations,
    choices,
    convolution,
    hard,
    layers,
    losses,
    rectifiers,
)
from chainrule.nn.functional.activations import *  # noqa: F403
from chainrule.nn.functional.choices import *  # noqa: F403
from chainrule.nn.functional.convolution import *  # noqa: F403
from chainrule.nn.functional.hard import *  # noqa: F403
from chainrule.nn.functional.layers import *  # noqa: F403
from chainrule.nn.functional.losses import *  # noqa: F403
from chainrule.nn.functional.rectifiers import *  # noqa: F403

__all__: list[str] = []
__all__ += activations.__all__
__all__ += choices.__all__
__all__ += convolution.__all__
__all__ += hard.__all__
__all__ += layers.__all__
__all__ += losses.__all__
__all__ += rectifiers.__all__
