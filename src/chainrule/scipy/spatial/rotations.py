"""Rotations: SciPy's code for arrays of other libraries, but where it differs from its own.

SciPy computes rotations of NumPy's arrays in compiled code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import chainrule.numpy as cnp
from chainrule.backend.extensions import SCIPY, LazyModule
from chainrule.implicit.examples import with_numbers
from chainrule.interop.operands import are_known, array_of, arrays_of, is_tracked
from chainrule.scipy.linalg.decompositions import polar
from chainrule.scipy.own_code import replace_compiled, run_again

__all__: list[str] = []

_PATH = "scipy.spatial.transform"
_scipys = LazyModule(_PATH, SCIPY)
_IDENTITY = np.array([[0.0, 0.0, 0.0, 1.0]])


def _backend() -> Any:
    return run_again(f"{_PATH}._rotation_xp")


def _reduce(quat: Any, left: Any = None, right: Any = None) -> Any:
    """Return the products l q r of the smallest angles, and which of `left` and `right` they have.

    SciPy's code takes the quaternion (1, 1, 1, 1) for the identity where one of both is missing.
    """
    if left is None and right is None:
        return quat, None, None
    groups = [cnp.atleast_2d(_IDENTITY if each is None else each) for each in (left, right)]
    quat = cnp.atleast_2d(quat)

    def indices() -> list[Any]:
        rotation = _scipys.Rotation
        given = [rotation.from_quat(array_of(each)) for each in groups]
        found = rotation.from_quat(array_of(quat)).reduce(*given, return_indices=True)
        return [np.atleast_1d(each) for each in found[1:]]

    first, last = with_numbers(f"{_PATH}.Rotation.reduce", indices)
    product = _backend().compose_quat
    return product(groups[0][first], product(quat, groups[1][last])), first, last


def _from_matrix(matrix: Any, assume_valid: bool = False) -> Any:
    """Return the quaternions of matrices, of which SciPy takes the nearest orthogonal ones.

    That of an orthogonal matrix is itself, but its derivative is a projection.
    """
    backend = _backend()
    if not assume_valid:
        if are_known(matrix):  # SciPy raises for those that are no rotations
            found = _scipys.Rotation.from_matrix(arrays_of(matrix))
            if not is_tracked(matrix):
                return cnp.asarray(found.as_quat())
        matrix = cnp.asarray(polar(matrix)[0])
    return backend._from_matrix_orthogonal(matrix)


for _kind in ("_rotation", "_rigid_transform"):
    replace_compiled(
        f"{_PATH}.{_kind}",
        select_backend=lambda *_, _name=f"{_PATH}.{_kind}_xp", **__: run_again(_name),
    )
replace_compiled(f"{_PATH}._rotation_xp", reduce=_reduce, from_matrix=_from_matrix)
