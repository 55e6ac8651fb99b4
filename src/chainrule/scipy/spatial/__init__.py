"""`scipy.spatial` over tensors: distances. The other names are SciPy's own."""

from __future__ import annotations

from chainrule.backend.extensions import SCIPY
from chainrule.scipy.dispatch import Table as _Table
from chainrule.scipy.spatial import distance

__all__ = ["distance"]

__getattr__, __dir__ = _Table("scipy.spatial", SCIPY).namespace()
