"""SciPy's linear algebra over tensors, under SciPy's names: all of `scipy.linalg`.

For arrays a function is SciPy's own; for tensors it is recorded. How each is differentiated, and
which have no derivative, is in `docs/scipy-linalg.md`.

>>> import chainrule as cr
>>> A = cr.tensor([[0.0, 1.0], [0.0, 0.0]], requires_grad=True)
>>> cr.scipy.linalg.expm(A)[0, 1].backward()
>>> A.grad
tensor([[0.5000, 1.0000],
        [0.1667, 0.5000]])
"""

from __future__ import annotations

from chainrule.scipy.linalg import (
    banded,
    decompositions,
    eigenvalues,
    equations,
    matrix_functions,
    structured,
    systems,
)
from chainrule.scipy.linalg.arguments import TABLE as _TABLE
from chainrule.scipy.own_code import compose_others as _compose_others

_FAMILIES = (
    banded,
    decompositions,
    eigenvalues,
    equations,
    matrix_functions,
    structured,
    systems,
)

_SORTED = (
    "its vectors are defined by LAPACK's choices. Write the function of the matrix by eig(), by "
    "eigh() or as a matrix function"
)
_REFUSED = {
    **dict.fromkeys(["schur", "rsf2csf", "qz", "ordqz", "hessenberg", "cdf2rdf"], _SORTED),
    "cossin": "take svd() of the blocks",
    "ldl": "its pivoting makes blocks by values. Take cholesky(), or lu()",
    "expm_cond": "write it with expm_frechet() and norm()",
    **dict.fromkeys(
        ["qr_insert", "qr_delete", "qr_update"], "take qr() of the matrix that was changed"
    ),
    "matrix_balance": "its scales are constant powers of 2. Take them of x.detach(), with "
    "separate=True, and scale the matrix",
    "clarkson_woodruff_transform": "it is linear. Multiply by the transform of the identity, "
    "clarkson_woodruff_transform(numpy.eye(len(x)), ...) @ x",
}

_TABLE.refused.update(_REFUSED)
_TABLE.of_values = frozenset(["bandwidth", "issymmetric", "ishermitian"])

_compose_others(_TABLE)

__getattr__, __dir__ = _TABLE.namespace()
