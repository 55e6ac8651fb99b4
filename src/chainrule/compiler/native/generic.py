"""Type-generic functions for the source of kernels, which `kernel` replaces by typed ones.

As plain Python the kernels compute in float64. Indices are `u8`: unsigned integers need no check
for negative indices.
"""

from __future__ import annotations

from numpy import uint64 as u8

from chainrule.compiler.native.vector_math import exp_f8 as exp
from chainrule.compiler.native.vector_math import f8 as real
from chainrule.compiler.native.vector_math import log_f8 as log
from chainrule.compiler.native.vector_math import plus, times_plus
from chainrule.compiler.native.vector_math import rank_f8 as rank
from chainrule.compiler.native.vector_math import ranked_f8 as ranked
from chainrule.compiler.native.vector_math import tanh_f8 as tanh

__all__ = ["exp", "log", "plus", "rank", "ranked", "real", "tanh", "times_plus", "u8"]
