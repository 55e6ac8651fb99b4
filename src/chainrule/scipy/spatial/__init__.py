"""`scipy.spatial` over tensors: distances. The other names are SciPy's own."""

from __future__ import annotations

from chainrule.backend.extensions import SCIPY
from chainrule.scipy.dispatch import Table as _Table
from chainrule.scipy.own_code import compose_others as _compose_others
from chainrule.scipy.spatial import distance

__all__ = ["distance"]

_TABLE = _Table("scipy.spatial", SCIPY)
_compose_others(_TABLE)

__getattr__, __dir__ = _TABLE.namespace()
