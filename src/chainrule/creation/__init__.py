"""New tensors, from data and from shapes."""

from chainrule.creation import data, filled, fresh, windows
from chainrule.creation.data import *  # noqa: F403
from chainrule.creation.filled import *  # noqa: F403
from chainrule.creation.fresh import *  # noqa: F403
from chainrule.creation.windows import *  # noqa: F403

__all__: list[str] = []
__all__ += data.__all__
__all__ += filled.__all__
__all__ += fresh.__all__
__all__ += windows.__all__
