"""`scipy.spatial` over tensors: distances. The other names are SciPy's own."""

from __future__ import annotations

from chainrule.backend.extensions import SCIPY
from chainrule.scipy.dispatch import Table as _Table
from chainrule.scipy.own_code import compose_others as _compose_others
from chainrule.scipy.own_code import replace_compiled as _replace_compiled
from chainrule.scipy.own_code import run_again as _run_again
from chainrule.scipy.spatial import distance
from chainrule.scipy.spatial import neighbours as _neighbours

__all__ = ["distance"]

_TABLE = _Table("scipy.spatial", SCIPY)
_TABLE.makers = dict(_neighbours.MAKERS)
_compose_others(_TABLE)

for _kind in ("_rotation", "_rigid_transform"):  # SciPy computes both by arrays of other libraries
    _replace_compiled(
        f"scipy.spatial.transform.{_kind}",
        select_backend=lambda *_, _name=f"scipy.spatial.transform.{_kind}_xp", **__: _run_again(
            _name
        ),
    )

__getattr__, __dir__ = _TABLE.namespace()
