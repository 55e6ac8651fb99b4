"""The public operations, one module for each subject.

A new operation needs a primitive, a function in one of these modules, registered by `operation`,
and a row in the conformance table of the tests; `python tools/stubs.py` then shows it to editors.
"""

import sys
from typing import TYPE_CHECKING

import chainrule.ops.storage  # methods
import chainrule.ops.ufuncs
import chainrule.random.inplace  # noqa: F401 - methods
from chainrule.operation import lazy_methods
from chainrule.ops.arithmetic import *
from chainrule.ops.binary import *
from chainrule.ops.comparison import *
from chainrule.ops.complex import *
from chainrule.ops.conversion import *
from chainrule.ops.cumulative import *
from chainrule.ops.diagonals import *
from chainrule.ops.dtypes import *
from chainrule.ops.einsum import *
from chainrule.ops.elementary import *
from chainrule.ops.indexing import *
from chainrule.ops.inplace import *
from chainrule.ops.join_split import *
from chainrule.ops.matmul import *
from chainrule.ops.order_statistics import *
from chainrule.ops.permute import *
from chainrule.ops.products import *
from chainrule.ops.protocols import *
from chainrule.ops.reductions import *
from chainrule.ops.repeat import *
from chainrule.ops.reshape import *
from chainrule.ops.scatter import *
from chainrule.ops.sort_search import *
from chainrule.ops.special import *
from chainrule.ops.statistics import *
from chainrule.ops.views import *
from chainrule.ops.where import *

# mypy can't read a computed `__all__`; without one, it exports what the stars import.
if not TYPE_CHECKING:
    __all__ = [
        name
        for subject in (
            "arithmetic",
            "elementary",
            "where",
            "binary",
            "special",
            "comparison",
            "reductions",
            "statistics",
            "sort_search",
            "order_statistics",
            "cumulative",
            "reshape",
            "permute",
            "diagonals",
            "join_split",
            "indexing",
            "scatter",
            "views",
            "repeat",
            "matmul",
            "einsum",
            "products",
            "complex",
            "conversion",
            "dtypes",
            "protocols",
            "inplace",
        )
        for name in sys.modules[f"{__name__}.{subject}"].__all__
    ]

lazy_methods("chainrule.sparse", "to_sparse to_sparse_csr")
lazy_methods(
    "chainrule.linalg",
    "det slogdet logdet matrix_exp matrix_power inverse pinverse cholesky_solve cholesky_inverse",
)
lazy_methods(
    "chainrule.linalg.deprecated", "cholesky geqrf lu lu_solve orgqr qr svd triangular_solve"
)
lazy_methods("chainrule.linalg.products", "ormqr")
lazy_methods("chainrule.creation.strided", "new_empty_strided")
lazy_methods("chainrule.fft.stft", "stft istft")
lazy_methods("chainrule.nn.functional", "hardshrink prelu")
