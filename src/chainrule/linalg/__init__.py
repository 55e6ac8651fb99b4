"""Linear algebra under the names of `torch.linalg`, `numpy.linalg` and the array API.

Functions take stacks of matrices, real or complex.

>>> import chainrule as cr
>>> cr.linalg.solve(cr.tensor([[2.0, 1.0], [1.0, 3.0]]), cr.tensor([3.0, 4.0]))
tensor([1., 1.])
"""

from typing import TYPE_CHECKING, Any

from chainrule.errors import LinAlgError
from chainrule.linalg.decompositions import cholesky, qr
from chainrule.linalg.eigen_svd import eig, eigh, eigvals, eigvalsh, svd, svdvals
from chainrule.linalg.ex import cholesky_ex, inv_ex, solve_ex
from chainrule.linalg.functions import det, logdet, matrix_exp, matrix_power, slogdet
from chainrule.linalg.least_squares import lstsq
from chainrule.linalg.lu import lu, lu_factor, lu_factor_ex, lu_solve
from chainrule.linalg.norms import cond, matrix_norm, norm, vector_norm
from chainrule.linalg.products import (
    cross,
    diagonal,
    householder_product,
    multi_dot,
    trace,
    vander,
)
from chainrule.linalg.rank import matrix_rank
from chainrule.linalg.solve import (
    cholesky_inverse,
    cholesky_solve,
    inv,
    inverse,
    pinv,
    pinverse,
    solve,
    solve_triangular,
    tensorinv,
    tensorsolve,
)
from chainrule.missing_names import missing as _missing
from chainrule.ops import matmul, matrix_transpose, outer, tensordot, vecdot
from chainrule.out_argument import give_out as _give_out

__all__ = [
    # determinants and functions
    "det",
    "slogdet",
    "logdet",
    "matrix_exp",
    "matrix_power",
    # inverses and systems
    "inv",
    "inv_ex",
    "inverse",
    "pinv",
    "pinverse",
    "solve",
    "solve_ex",
    "solve_triangular",
    "lstsq",
    "cholesky_solve",
    "cholesky_inverse",
    "tensorinv",
    "tensorsolve",
    # decompositions
    "cholesky",
    "cholesky_ex",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "qr",
    "eigh",
    "eigvalsh",
    "eig",
    "eigvals",
    "svd",
    "svdvals",
    # norms, condition numbers and ranks
    "matrix_norm",
    "vector_norm",
    "norm",
    "cond",
    "matrix_rank",
    # products
    "matmul",
    "multi_dot",
    "householder_product",
    "outer",
    "tensordot",
    "vecdot",
    "cross",
    "matrix_transpose",
    "diagonal",
    "trace",
    "vander",
    # errors
    "LinAlgError",
]

_give_out(globals(), __name__)

if not TYPE_CHECKING:  # type checkers would accept every name

    def __getattr__(name: str) -> Any:
        raise _missing(__name__, name)
