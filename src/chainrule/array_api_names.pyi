"""Functions and dtypes of the array API that are the same in `chainrule`.

Written by `python3 tools/stubs.py`: change the functions, not this file.
"""

import numpy as np

from chainrule.ops.arithmetic import add as add
from chainrule.ops.arithmetic import bitwise_left_shift as bitwise_left_shift
from chainrule.ops.arithmetic import bitwise_right_shift as bitwise_right_shift
from chainrule.ops.arithmetic import divide as divide
from chainrule.ops.arithmetic import floor_divide as floor_divide
from chainrule.ops.arithmetic import multiply as multiply
from chainrule.ops.arithmetic import negative as negative
from chainrule.ops.arithmetic import positive as positive
from chainrule.ops.arithmetic import pow as pow
from chainrule.ops.arithmetic import reciprocal as reciprocal
from chainrule.ops.arithmetic import remainder as remainder
from chainrule.ops.arithmetic import square as square
from chainrule.ops.arithmetic import subtract as subtract
from chainrule.ops.binary import atan2 as atan2
from chainrule.ops.binary import copysign as copysign
from chainrule.ops.binary import hypot as hypot
from chainrule.ops.binary import logaddexp as logaddexp
from chainrule.ops.binary import nextafter as nextafter
from chainrule.ops.binary import signbit as signbit
from chainrule.ops.comparison import bitwise_and as bitwise_and
from chainrule.ops.comparison import bitwise_invert as bitwise_invert
from chainrule.ops.comparison import bitwise_or as bitwise_or
from chainrule.ops.comparison import bitwise_xor as bitwise_xor
from chainrule.ops.comparison import equal as equal
from chainrule.ops.comparison import greater as greater
from chainrule.ops.comparison import greater_equal as greater_equal
from chainrule.ops.comparison import isfinite as isfinite
from chainrule.ops.comparison import isinf as isinf
from chainrule.ops.comparison import isnan as isnan
from chainrule.ops.comparison import less as less
from chainrule.ops.comparison import less_equal as less_equal
from chainrule.ops.comparison import logical_and as logical_and
from chainrule.ops.comparison import logical_not as logical_not
from chainrule.ops.comparison import logical_or as logical_or
from chainrule.ops.comparison import logical_xor as logical_xor
from chainrule.ops.comparison import not_equal as not_equal
from chainrule.ops.complex import conj as conj
from chainrule.ops.complex import imag as imag
from chainrule.ops.complex import real as real
from chainrule.ops.conversion import astype as astype
from chainrule.ops.cumulative import diff as diff
from chainrule.ops.diagonals import tril as tril
from chainrule.ops.diagonals import triu as triu
from chainrule.ops.dtypes import isdtype as isdtype
from chainrule.ops.dtypes import result_type as result_type
from chainrule.ops.elementary import abs as abs
from chainrule.ops.elementary import acos as acos
from chainrule.ops.elementary import acosh as acosh
from chainrule.ops.elementary import asin as asin
from chainrule.ops.elementary import asinh as asinh
from chainrule.ops.elementary import atan as atan
from chainrule.ops.elementary import atanh as atanh
from chainrule.ops.elementary import ceil as ceil
from chainrule.ops.elementary import cos as cos
from chainrule.ops.elementary import cosh as cosh
from chainrule.ops.elementary import exp as exp
from chainrule.ops.elementary import expm1 as expm1
from chainrule.ops.elementary import floor as floor
from chainrule.ops.elementary import log as log
from chainrule.ops.elementary import log1p as log1p
from chainrule.ops.elementary import log2 as log2
from chainrule.ops.elementary import log10 as log10
from chainrule.ops.elementary import maximum as maximum
from chainrule.ops.elementary import minimum as minimum
from chainrule.ops.elementary import round as round
from chainrule.ops.elementary import sign as sign
from chainrule.ops.elementary import sin as sin
from chainrule.ops.elementary import sinh as sinh
from chainrule.ops.elementary import sqrt as sqrt
from chainrule.ops.elementary import tan as tan
from chainrule.ops.elementary import tanh as tanh
from chainrule.ops.elementary import trunc as trunc
from chainrule.ops.indexing import take as take
from chainrule.ops.indexing import take_along_axis as take_along_axis
from chainrule.ops.join_split import stack as stack
from chainrule.ops.join_split import unstack as unstack
from chainrule.ops.matmul import matmul as matmul
from chainrule.ops.permute import flip as flip
from chainrule.ops.permute import matrix_transpose as matrix_transpose
from chainrule.ops.permute import moveaxis as moveaxis
from chainrule.ops.permute import permute_dims as permute_dims
from chainrule.ops.products import tensordot as tensordot
from chainrule.ops.protocols import from_dlpack as from_dlpack
from chainrule.ops.reductions import all as all
from chainrule.ops.reductions import any as any
from chainrule.ops.reductions import argmax as argmax
from chainrule.ops.reductions import argmin as argmin
from chainrule.ops.reductions import count_nonzero as count_nonzero
from chainrule.ops.reductions import cumulative_prod as cumulative_prod
from chainrule.ops.reductions import cumulative_sum as cumulative_sum
from chainrule.ops.reductions import mean as mean
from chainrule.ops.repeat import repeat as repeat
from chainrule.ops.repeat import tile as tile
from chainrule.ops.reshape import broadcast_arrays as broadcast_arrays
from chainrule.ops.reshape import broadcast_shapes as broadcast_shapes
from chainrule.ops.reshape import broadcast_to as broadcast_to
from chainrule.ops.reshape import expand_dims as expand_dims
from chainrule.ops.sort_search import argsort as argsort
from chainrule.ops.sort_search import isin as isin
from chainrule.ops.sort_search import searchsorted as searchsorted
from chainrule.ops.sort_search import unique_all as unique_all
from chainrule.ops.sort_search import unique_counts as unique_counts
from chainrule.ops.sort_search import unique_inverse as unique_inverse
from chainrule.ops.sort_search import unique_values as unique_values
from chainrule.ops.where import where as where

int8: np.dtype[np.int8]
int16: np.dtype[np.int16]
int32: np.dtype[np.int32]
int64: np.dtype[np.int64]
uint8: np.dtype[np.uint8]
uint16: np.dtype[np.uint16]
uint32: np.dtype[np.uint32]
uint64: np.dtype[np.uint64]
float32: np.dtype[np.float32]
float64: np.dtype[np.float64]
complex64: np.dtype[np.complex64]
complex128: np.dtype[np.complex128]
