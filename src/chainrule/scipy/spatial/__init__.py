"""`scipy.spatial` over tensors: distances. The other names are SciPy's own."""

from __future__ import annotations

from chainrule.backend.extensions import SCIPY
from chainrule.scipy.dispatch import Table as _Table
from chainrule.scipy.own_code import compose_others as _compose_others
from chainrule.scipy.spatial import distance as distance
from chainrule.scipy.spatial import neighbours as _neighbours
from chainrule.scipy.spatial import rotations as _rotations

del _rotations  # which gives rules to SciPy's code

_TABLE = _Table("scipy.spatial", SCIPY)
_TABLE.makers = dict(_neighbours.MAKERS)
_compose_others(_TABLE)

__getattr__, __dir__ = _TABLE.namespace()
