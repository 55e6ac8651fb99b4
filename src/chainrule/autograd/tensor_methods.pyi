"""Methods, operators and properties that `chainrule.operation` gives `Tensor`.

Written by `python3 tools/stubs.py`: change the functions, not this file.
"""

import builtins
from collections.abc import Callable as Callable
from collections.abc import Sequence as Sequence
from types import ModuleType as ModuleType
from typing import Any as Any
from typing import Literal as Literal
from typing import NoReturn as NoReturn
from typing import Unpack as Unpack
from typing import overload as overload

from numpy.random import Generator as Generator

from chainrule.arguments import DeviceLike as DeviceLike
from chainrule.arguments import Dims as Dims
from chainrule.arguments import DTypeLike as DTypeLike
from chainrule.arguments import MemoryOptions as MemoryOptions
from chainrule.arguments import Operand as Operand
from chainrule.arguments import Sizes as Sizes
from chainrule.autograd.tensor import Tensor as Tensor
from chainrule.linalg import decompositions as decompositions
from chainrule.linalg.deprecated import GeqrfResult as GeqrfResult
from chainrule.linalg.deprecated import SVDResult as SVDResult
from chainrule.linalg.deprecated import TriangularSolveResult as TriangularSolveResult
from chainrule.linalg.functions import SlogdetResult as SlogdetResult
from chainrule.linalg.lu import LUFactors as LUFactors
from chainrule.linalg.lu import LUFactorsEx as LUFactorsEx
from chainrule.ops.binary import Frexp as Frexp
from chainrule.ops.matmul import Number as Number
from chainrule.ops.order_statistics import Histogram as Histogram
from chainrule.ops.reductions import Extremes as Extremes
from chainrule.ops.statistics import Bounds as Bounds
from chainrule.ops.storage import Storage as Storage
from chainrule.sparse import SparseCSRTensor as SparseCSRTensor
from chainrule.sparse import SparseTensor as SparseTensor

class TensorMethods:
    __slots__ = ()
    # --- chainrule.autograd.backward ---
    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: builtins.bool | None = None,
        create_graph: builtins.bool = False,
        inputs: Any = None,
    ) -> None:
        """Add the gradients of this tensor to the `.grad` of the leaves it depends on."""
    # --- chainrule.autograd.tensor ---
    def nelement(self) -> builtins.int:
        """Return the number of elements."""
    # --- chainrule.creation.like ---
    def new_zeros(
        self,
        *sizes: Any,
        size: Sizes | None = None,
        dtype: DTypeLike = None,
        device: DeviceLike = None,
        requires_grad: builtins.bool = False,
        **memory: Unpack[MemoryOptions],
    ) -> Tensor:
        """Return zeros of a shape, by default in the dtype and on the device of this tensor."""
    def new_ones(
        self,
        *sizes: Any,
        size: Sizes | None = None,
        dtype: DTypeLike = None,
        device: DeviceLike = None,
        requires_grad: builtins.bool = False,
        **memory: Unpack[MemoryOptions],
    ) -> Tensor:
        """Return ones of a shape, by default in the dtype and on the device of this tensor."""
    def new_empty(
        self,
        *sizes: Any,
        size: Sizes | None = None,
        dtype: DTypeLike = None,
        device: DeviceLike = None,
        requires_grad: builtins.bool = False,
        **memory: Unpack[MemoryOptions],
    ) -> Tensor:
        """Return uninitialised memory, by default in the dtype and on the device of this tensor."""
    def new_full(
        self,
        size: Sizes,
        fill_value: Any,
        *,
        dtype: DTypeLike = None,
        device: DeviceLike = None,
        requires_grad: builtins.bool = False,
        **memory: Unpack[MemoryOptions],
    ) -> Tensor:
        """Return a constant tensor, by default in the dtype and on the device of this tensor."""
    def new_tensor(
        self,
        data: Any,
        *,
        dtype: DTypeLike = None,
        device: DeviceLike = None,
        requires_grad: builtins.bool = False,
        **memory: Unpack[MemoryOptions],
    ) -> Tensor:
        """Return a copy of `data`, by default in the dtype and on the device of this tensor."""
    # --- chainrule.creation.strided ---
    def new_empty_strided(
        self,
        size: Sizes,
        stride: Sizes,
        *,
        dtype: DTypeLike = None,
        device: DeviceLike = None,
        requires_grad: builtins.bool = False,
        **memory: Unpack[MemoryOptions],
    ) -> Tensor:
        """Return `empty_strided`, by default in the dtype and on the device of a tensor."""
    # --- chainrule.creation.tensor_types ---
    def __new__(self, *data: Any) -> Tensor:
        """Return a tensor of the default dtype, as `torch.Tensor` does."""
    def new(self, *data: Any) -> Tensor:
        """Return a tensor of the dtype of `x`: of values, or uninitialised of sizes."""
    # --- chainrule.fft.stft ---
    def stft(
        self,
        n_fft: builtins.int,
        hop_length: builtins.int | None = None,
        win_length: builtins.int | None = None,
        window: Operand | None = None,
        center: builtins.bool = True,
        pad_mode: str = "reflect",
        normalized: builtins.bool = False,
        onesided: builtins.bool | None = None,
        return_complex: builtins.bool | None = None,
    ) -> Tensor:
        """Return the short-time Fourier transform: the spectra of overlapping frames of a
        signal."""
    def istft(
        self,
        n_fft: builtins.int,
        hop_length: builtins.int | None = None,
        win_length: builtins.int | None = None,
        window: Operand | None = None,
        center: builtins.bool = True,
        normalized: builtins.bool = False,
        onesided: builtins.bool | None = None,
        length: builtins.int | None = None,
        return_complex: builtins.bool = False,
    ) -> Tensor:
        """Return the signal of a spectrogram: the inverse of `stft`."""
    # --- chainrule.linalg.deprecated ---
    def cholesky(self, upper: builtins.bool = False) -> Tensor:
        """Return the triangular factors of positive-definite matrices, as `linalg.cholesky`
        does."""
    def geqrf(self) -> GeqrfResult:
        """Return the QR decomposition as LAPACK does: reflections in the place of Q."""
    def lu(
        self, pivot: builtins.bool = True, get_infos: builtins.bool = False
    ) -> LUFactors | LUFactorsEx:
        """Return the LU factors in one matrix, and the pivots, as `linalg.lu_factor` does."""
    def lu_solve(self, LU_data: Operand, LU_pivots: Operand) -> Tensor:
        """Return the solution of A X = b from the LU factors of A, as `linalg.lu_solve` does."""
    def qr(self, some: builtins.bool = True) -> decompositions.QRResult:
        """Return the QR decomposition, as `linalg.qr` does: "complete" if `some` is False."""
    def svd(self, some: builtins.bool = True, compute_uv: builtins.bool = True) -> SVDResult:
        """Return the singular value decomposition A = U diag(S) Vᴴ."""
    def triangular_solve(
        self,
        A: Operand,
        upper: builtins.bool = True,
        transpose: builtins.bool = False,
        unitriangular: builtins.bool = False,
    ) -> TriangularSolveResult:
        """Return X, the solution of A X = b with triangular matrices A, and a copy of A."""
    # --- chainrule.linalg.functions ---
    def det(self) -> Tensor:
        """Return the determinant of square matrices."""
    def slogdet(self) -> SlogdetResult:
        """Return the sign of the determinant of square matrices, and the logarithm of its
        magnitude."""
    def logdet(self) -> Tensor:
        """Return the logarithm of the determinant of square matrices."""
    def matrix_exp(self) -> Tensor:
        """Return the exponential of square matrices, I + A + A²/2 + …."""
    def matrix_power(self, n: builtins.int) -> Tensor:
        """Return the n-th power of square matrices."""
    # --- chainrule.linalg.products ---
    def orgqr(self, tau: Operand) -> Tensor:
        """Return the first columns of a product of Householder reflections, Π (I - τᵢ vᵢ vᵢᴴ)."""
    def ormqr(
        self,
        tau: Operand,
        other: Operand,
        left: builtins.bool = True,
        transpose: builtins.bool = False,
    ) -> Tensor:
        """Multiply matrices by a product Q of Householder reflections, without making Q."""
    # --- chainrule.linalg.solve ---
    def inverse(self) -> Tensor:
        """Return the inverse of square matrices."""
    def pinverse(self, rcond: Operand = 1e-15) -> Tensor:
        """Return the pseudoinverse, as `pinv` does, with PyTorch's default tolerance of this
        name."""
    def cholesky_solve(self, L: Operand, upper: builtins.bool = False) -> Tensor:
        """Return X, the solution of A X = B, from the Cholesky factor of A."""
    def cholesky_inverse(self, upper: builtins.bool = False) -> Tensor:
        """Return A⁻¹ from the Cholesky factor of A: `cholesky_solve` of the identity."""
    # --- chainrule.nn.functional.activations ---
    def hardshrink(self, lambd: builtins.float = 0.5) -> Tensor:
        """Return x where it is farther than `lambd` from 0, else 0."""
    def prelu(self, weight: Operand) -> Tensor:
        """Return x where it is positive, else weight · x, where `weight` is learned."""
    # --- chainrule.ops.arithmetic ---
    def add(
        self, other: Operand, former: Any = None, *, alpha: Any = 1, out: Tensor | None = None
    ) -> Tensor:
        """Return x + alpha · y."""
    def add_(self, other: Operand, former: Any = None, *, alpha: Any = 1) -> Tensor:
        """Add alpha · other in place."""
    def subtract(
        self, other: Operand, former: Any = None, *, alpha: Any = 1, out: Tensor | None = None
    ) -> Tensor:
        """Return x - alpha · y; the arguments are those of `add`."""
    def sub(
        self, other: Operand, former: Any = None, *, alpha: Any = 1, out: Tensor | None = None
    ) -> Tensor:
        """Return x - alpha · y; the arguments are those of `add`."""
    def subtract_(self, other: Operand, former: Any = None, *, alpha: Any = 1) -> Tensor:
        """Do `subtract` in place."""
    def sub_(self, other: Operand, former: Any = None, *, alpha: Any = 1) -> Tensor:
        """Subtract alpha · other in place."""
    def multiply(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """Return x · y, element by element."""
    def mul(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """Return x · y, element by element."""
    def multiply_(self, other: Operand) -> Tensor:
        """Do `multiply` in place."""
    def mul_(self, other: Operand) -> Tensor:
        """Multiply by another tensor or a number in place."""
    def divide(
        self, other: Operand, *, rounding_mode: str | None = None, out: Tensor | None = None
    ) -> Tensor:
        """Return x / y, element by element."""
    def div(
        self, other: Operand, *, rounding_mode: str | None = None, out: Tensor | None = None
    ) -> Tensor:
        """Return x / y, element by element."""
    def true_divide(
        self, other: Operand, *, rounding_mode: str | None = None, out: Tensor | None = None
    ) -> Tensor:
        """Return x / y, element by element."""
    def divide_(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """Do `divide` in place."""
    def true_divide_(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """Do `divide` in place."""
    def div_(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """Divide by another tensor or a number in place."""
    def floor_divide(self, other: Operand) -> Tensor:
        """Return ⌊x / y⌋; the arguments are those of `multiply`."""
    def floor_divide_(self, other: Operand) -> Tensor:
        """Do `floor_divide` in place."""
    def remainder(self, other: Operand) -> Tensor:
        """Return x - y · ⌊x / y⌋, which has the sign of y; the arguments are those of
        `multiply`."""
    def remainder_(self, other: Operand) -> Tensor:
        """Do `remainder` in place."""
    def negative(self, *, out: Tensor | None = None) -> Tensor:
        """Return -x."""
    def neg(self, *, out: Tensor | None = None) -> Tensor:
        """Return -x."""
    def negative_(self) -> Tensor:
        """Do `negative` in place."""
    def neg_(self) -> Tensor:
        """Do `negative` in place."""
    def positive(self) -> Tensor:
        """Return `input` unchanged."""
    def pow(self, exponent: Operand, *, out: Tensor | None = None) -> Tensor:
        """Return x to the power y, element by element."""
    def pow_(self, exponent: Operand) -> Tensor:
        """Do `pow` in place."""
    def square(self, *, out: Tensor | None = None) -> Tensor:
        """Return x²."""
    def square_(self) -> Tensor:
        """Do `square` in place."""
    def reciprocal(self, *, out: Tensor | None = None) -> Tensor:
        """Return 1 / x."""
    def reciprocal_(self) -> Tensor:
        """Do `reciprocal` in place."""
    def gcd(self, other: Operand) -> Tensor:
        """Return the greatest common divisor, which is not negative; gcd(0, 0) is 0."""
    def gcd_(self, other: Operand) -> Tensor:
        """Do `gcd` in place."""
    def lcm(self, other: Operand) -> Tensor:
        """Return the least common multiple; lcm(0, n) is 0. The arguments are those of `gcd`."""
    def lcm_(self, other: Operand) -> Tensor:
        """Do `lcm` in place."""
    def bitwise_left_shift(self, other: Operand) -> Tensor:
        """Return x · 2**y, by shifting bits to the left; the arguments are those of `gcd`."""
    def bitwise_left_shift_(self, other: Operand) -> Tensor:
        """Do `bitwise_left_shift` in place."""
    def bitwise_right_shift(self, other: Operand) -> Tensor:
        """Return ⌊x / 2**y⌋, by shifting bits to the right; the arguments are those of `gcd`."""
    def bitwise_right_shift_(self, other: Operand) -> Tensor:
        """Do `bitwise_right_shift` in place."""
    # --- chainrule.ops.binary ---
    def atan2(self, other: Operand) -> Tensor:
        """Return the angle of the point (x, y) in the plane, from -π to π."""
    def arctan2(self, other: Operand) -> Tensor:
        """Return the angle of the point (x, y) in the plane, from -π to π."""
    def atan2_(self, other: Operand) -> Tensor:
        """Do `atan2` in place."""
    def arctan2_(self, other: Operand) -> Tensor:
        """Do `atan2` in place."""
    def hypot(self, other: Operand) -> Tensor:
        """Return √(x² + y²), without intermediate overflow; the arguments are those of `atan2`."""
    def hypot_(self, other: Operand) -> Tensor:
        """Do `hypot` in place."""
    def logaddexp(self, other: Operand) -> Tensor:
        """Return log(exp(x) + exp(y)), without overflow."""
    def logaddexp2(self, other: Operand) -> Tensor:
        """Return log2(2**x + 2**y), without overflow; the arguments are those of `atan2`."""
    def xlogy(self, other: Operand) -> Tensor:
        """Return x log y, which is 0 where x is 0; the arguments are those of `atan2`."""
    def xlogy_(self, other: Operand) -> Tensor:
        """Do `xlogy` in place."""
    def copysign(self, other: Operand) -> Tensor:
        """Return |x| with the sign of y, which -0.0 has too; the arguments are those of `atan2`."""
    def copysign_(self, other: Operand) -> Tensor:
        """Do `copysign` in place."""
    def nextafter(self, other: Operand) -> Tensor:
        """Return the next floating number after x towards y; the arguments are those of `atan2`."""
    def nextafter_(self, other: Operand) -> Tensor:
        """Do `nextafter` in place."""
    def fmod(self, other: Operand) -> Tensor:
        """Return x - y · trunc(x / y), which has the sign of x; `remainder` has that of y."""
    def fmod_(self, other: Operand) -> Tensor:
        """Do `fmod` in place."""
    def fmax(self, other: Operand) -> Tensor:
        """Return the larger of x and y, ignoring nan; the arguments are those of `fmod`."""
    def fmin(self, other: Operand) -> Tensor:
        """Return the smaller of x and y, ignoring nan; the arguments are those of `fmod`."""
    def heaviside(self, values: Operand) -> Tensor:
        """Return 0 where x < 0, 1 where x > 0, `values` where x is 0; arguments are those of
        `fmod`."""
    def heaviside_(self, values: Operand) -> Tensor:
        """Do `heaviside` in place."""
    def ldexp(self, other: Operand) -> Tensor:
        """Return x · 2**other."""
    def ldexp_(self, other: Operand) -> Tensor:
        """Do `ldexp` in place."""
    def frexp(self) -> Frexp:
        """Return mantissa and exponent: x = mantissa · 2**exponent, 1/2 ≤ abs(mantissa) < 1."""
    def float_power(self, exponent: Operand) -> Tensor:
        """Return x to the power y, computed in double precision."""
    def float_power_(self, exponent: Operand) -> Tensor:
        """Do `float_power` in place."""
    def lerp(self, end: Operand, weight: Operand) -> Tensor:
        """Return input + weight · (end - input), the linear interpolation from `input` to `end`."""
    def lerp_(self, end: Operand, weight: Operand) -> Tensor:
        """Interpolate towards `end` by the fraction `weight` in place."""
    def addcmul(
        self, tensor1: Operand, tensor2: Operand, former: Any = None, *, value: Any = 1
    ) -> Tensor:
        """Return input + value · tensor1 · tensor2."""
    def addcmul_(
        self, tensor1: Operand, tensor2: Operand, former: Any = None, *, value: Any = 1
    ) -> Tensor:
        """Add value · tensor1 · tensor2 in place."""
    def addcdiv(
        self, tensor1: Operand, tensor2: Operand, former: Any = None, *, value: Any = 1
    ) -> Tensor:
        """Return input + value · tensor1 / tensor2; the arguments are those of `addcmul`."""
    def addcdiv_(
        self, tensor1: Operand, tensor2: Operand, former: Any = None, *, value: Any = 1
    ) -> Tensor:
        """Add value · tensor1 / tensor2 in place."""
    def clamp_min(self, min: Operand) -> Tensor:
        """Return max(input, min): `clamp` with a lower bound only."""
    def clamp_min_(self, min: Operand) -> Tensor:
        """Do `clamp_min` in place."""
    def clamp_max(self, max: Operand) -> Tensor:
        """Return min(input, max): `clamp` with an upper bound only."""
    def clamp_max_(self, max: Operand) -> Tensor:
        """Do `clamp_max` in place."""
    def frac(self) -> Tensor:
        """Return x - trunc(x), the fractional part of each element, with its sign."""
    def frac_(self) -> Tensor:
        """Do `frac` in place."""
    def nan_to_num(
        self,
        nan: builtins.float | None = 0.0,
        posinf: builtins.float | None = None,
        neginf: builtins.float | None = None,
    ) -> Tensor:
        """Return `input` with nan and the infinities replaced by numbers."""
    def nan_to_num_(
        self,
        nan: builtins.float | None = 0.0,
        posinf: builtins.float | None = None,
        neginf: builtins.float | None = None,
    ) -> Tensor:
        """Do `nan_to_num` in place."""
    def deg2rad(self) -> Tensor:
        """Convert angles from degrees to radians."""
    def deg2rad_(self) -> Tensor:
        """Do `deg2rad` in place."""
    def rad2deg(self) -> Tensor:
        """Convert angles from radians to degrees."""
    def rad2deg_(self) -> Tensor:
        """Do `rad2deg` in place."""
    def exp2(self) -> Tensor:
        """Return 2 to the power of each element."""
    def exp2_(self) -> Tensor:
        """Do `exp2` in place."""
    def signbit(self) -> Tensor:
        """Test each element for a negative sign, which -0.0 has too."""
    def isposinf(self) -> Tensor:
        """Test each element for positive infinity."""
    def isneginf(self) -> Tensor:
        """Test each element for negative infinity."""
    # --- chainrule.ops.comparison ---
    def eq(self, other: Operand) -> Tensor:
        """Return for each element whether x = y. `equal` compares two tensors as a whole."""
    def eq_(self, other: Operand) -> Tensor:
        """Do `eq` in place."""
    def not_equal(self, other: Operand) -> Tensor:
        """Return for each element whether x ≠ y; the arguments are those of `eq`."""
    def ne(self, other: Operand) -> Tensor:
        """Return for each element whether x ≠ y; the arguments are those of `eq`."""
    def not_equal_(self, other: Operand) -> Tensor:
        """Do `not_equal` in place."""
    def ne_(self, other: Operand) -> Tensor:
        """Do `not_equal` in place."""
    def less(self, other: Operand) -> Tensor:
        """Return for each element whether x < y; the arguments are those of `eq`."""
    def lt(self, other: Operand) -> Tensor:
        """Return for each element whether x < y; the arguments are those of `eq`."""
    def less_(self, other: Operand) -> Tensor:
        """Do `less` in place."""
    def lt_(self, other: Operand) -> Tensor:
        """Do `less` in place."""
    def less_equal(self, other: Operand) -> Tensor:
        """Return for each element whether x ≤ y; the arguments are those of `eq`."""
    def le(self, other: Operand) -> Tensor:
        """Return for each element whether x ≤ y; the arguments are those of `eq`."""
    def less_equal_(self, other: Operand) -> Tensor:
        """Do `less_equal` in place."""
    def le_(self, other: Operand) -> Tensor:
        """Do `less_equal` in place."""
    def greater(self, other: Operand) -> Tensor:
        """Return for each element whether x > y; the arguments are those of `eq`."""
    def gt(self, other: Operand) -> Tensor:
        """Return for each element whether x > y; the arguments are those of `eq`."""
    def greater_(self, other: Operand) -> Tensor:
        """Do `greater` in place."""
    def gt_(self, other: Operand) -> Tensor:
        """Do `greater` in place."""
    def greater_equal(self, other: Operand) -> Tensor:
        """Return for each element whether x ≥ y; the arguments are those of `eq`."""
    def ge(self, other: Operand) -> Tensor:
        """Return for each element whether x ≥ y; the arguments are those of `eq`."""
    def greater_equal_(self, other: Operand) -> Tensor:
        """Do `greater_equal` in place."""
    def ge_(self, other: Operand) -> Tensor:
        """Do `greater_equal` in place."""
    def isnan(self) -> Tensor:
        """Test each element for nan."""
    def isinf(self) -> Tensor:
        """Test each element for inf or -inf."""
    def isfinite(self) -> Tensor:
        """Test each element for a finite number: not inf, -inf or nan."""
    def logical_not(self) -> Tensor:
        """Test each element for zero or False."""
    def logical_not_(self) -> Tensor:
        """Do `logical_not` in place."""
    def logical_and(self, other: Operand) -> Tensor:
        """Return x AND y for each element, where nonzero is true; the arguments are those of
        `eq`."""
    def logical_and_(self, other: Operand) -> Tensor:
        """Do `logical_and` in place."""
    def logical_or(self, other: Operand) -> Tensor:
        """Return x OR y for each element, where nonzero is true; the arguments are those of
        `eq`."""
    def logical_or_(self, other: Operand) -> Tensor:
        """Do `logical_or` in place."""
    def logical_xor(self, other: Operand) -> Tensor:
        """Return x XOR y for each element, where nonzero is true; the arguments are those of
        `eq`."""
    def logical_xor_(self, other: Operand) -> Tensor:
        """Do `logical_xor` in place."""
    def bitwise_not(self) -> Tensor:
        """Invert each bit of integers, or each bool: ``~x``."""
    def bitwise_not_(self) -> Tensor:
        """Do `bitwise_invert` in place."""
    def bitwise_and(self, other: Operand) -> Tensor:
        """Return the bitwise AND of integers or bools: ``x & y``."""
    def bitwise_and_(self, other: Operand) -> Tensor:
        """Do `bitwise_and` in place."""
    def bitwise_or(self, other: Operand) -> Tensor:
        """Return the bitwise OR of integers or bools: ``x | y``."""
    def bitwise_or_(self, other: Operand) -> Tensor:
        """Do `bitwise_or` in place."""
    def bitwise_xor(self, other: Operand) -> Tensor:
        """Return the bitwise XOR of integers or bools: ``x ^ y``."""
    def bitwise_xor_(self, other: Operand) -> Tensor:
        """Do `bitwise_xor` in place."""
    def isclose(
        self,
        other: Operand,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> Tensor:
        """Test for each element whether |x - y| ≤ atol + rtol |y|, or x = y."""
    def allclose(
        self,
        other: Operand,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> builtins.bool:
        """Test whether all elements of x and y are close; the arguments are those of `isclose`."""
    def equal(self, other: Tensor | Any) -> builtins.bool:
        """Test whether two tensors have the same shape and equal elements. `eq` is elementwise."""
    # --- chainrule.ops.complex ---
    def conj(self) -> Tensor:
        """Return the complex conjugate of each element; a real tensor unchanged."""
    def conj_physical(self) -> Tensor:
        """Return the complex conjugate of each element; a real tensor unchanged."""
    def conjugate(self) -> Tensor:
        """Return the complex conjugate of each element; a real tensor unchanged."""
    def conj_physical_(self) -> Tensor:
        """Do `conj` in place."""
    def isreal(self) -> Tensor:
        """Test each element for an imaginary part of 0, which real numbers have."""
    def sgn(self) -> Tensor:
        """Return z / |z| for complex numbers z (0 at 0), and `sign` for real numbers."""
    def sgn_(self) -> Tensor:
        """Do `sgn` in place."""
    def angle(self) -> Tensor:
        """Return the argument of each complex number; for a real number, 0 or π."""
    def adjoint(self) -> Tensor:
        """Return the conjugate transpose of each matrix; for real numbers, a view."""
    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix."""
    @property
    def mH(self) -> Tensor:
        """The conjugate transpose of each matrix."""
    @property
    def real(self) -> Tensor:
        """The real part; writable."""
    @real.setter
    def real(self, value: Operand) -> None: ...
    @property
    def imag(self) -> Tensor:
        """The imaginary part; writable."""
    @imag.setter
    def imag(self, value: Operand) -> None: ...
    # --- chainrule.ops.conversion ---
    def clone(self, *, memory_format: Any = None) -> Tensor:
        """Return a copy of `input` that is part of the graph; PyTorch's `memory_format` has no
        effect."""
    def astype(
        self, dtype: DTypeLike, /, *, copy: builtins.bool = True, device: DeviceLike = None
    ) -> Tensor:
        """Return `x` in another dtype."""
    def to(
        self,
        *target: Any,
        dtype: DTypeLike = None,
        device: Any = None,
        copy: builtins.bool = False,
        other: Tensor | None = None,
        non_blocking: builtins.bool = False,
        memory_format: Any = None,
    ) -> Tensor:
        """Return the tensor in another dtype or on another device; itself if nothing changes."""
    def type(self, dtype: DTypeLike = None) -> Any:
        """Return the tensor in another dtype; itself if the dtype is the same."""
    def to_dense(self) -> Tensor:
        """Return this tensor, which is dense: scripts call it of sparse ones."""
    def type_as(self, other: Tensor) -> Tensor:
        """Return the tensor in the dtype of `other`."""
    def cpu(self) -> Tensor:
        """Return the tensor on the CPU; itself if it is there already."""
    def cuda(self, device: Any = "cuda", non_blocking: builtins.bool = False) -> Tensor:
        """Return the tensor on a GPU; itself if it is there already."""
    def half(self, memory_format: Any = None) -> Tensor:
        """Return the tensor as float16; itself if it has that dtype already."""
    def float(self, memory_format: Any = None) -> Tensor:
        """Return the tensor as float32; itself if it has that dtype already."""
    def double(self, memory_format: Any = None) -> Tensor:
        """Return the tensor as float64; itself if it has that dtype already."""
    def cfloat(self, memory_format: Any = None) -> Tensor:
        """Return the tensor as complex64; itself if it has that dtype already."""
    def cdouble(self, memory_format: Any = None) -> Tensor:
        """Return the tensor as complex128; itself if it has that dtype already."""
    def byte(self, memory_format: Any = None) -> Tensor:
        """Return the tensor as uint8; itself if it has that dtype already."""
    def char(self, memory_format: Any = None) -> Tensor:
        """Return the tensor as int8; itself if it has that dtype already."""
    def short(self, memory_format: Any = None) -> Tensor:
        """Return the tensor as int16; itself if it has that dtype already."""
    def int(self, memory_format: Any = None) -> Tensor:
        """Return the tensor as int32; itself if it has that dtype already."""
    def long(self, memory_format: Any = None) -> Tensor:
        """Return the tensor as int64; itself if it has that dtype already."""
    def bool(self, memory_format: Any = None) -> Tensor:
        """Return the tensor as bool; itself if it has that dtype already."""
    # --- chainrule.ops.cumulative ---
    def cummax(
        self, dim: builtins.int | None = None, *, axis: builtins.int | None = None
    ) -> Extremes:
        """Return the cumulative maximum along a dimension, and its indices."""
    def cummin(
        self, dim: builtins.int | None = None, *, axis: builtins.int | None = None
    ) -> Extremes:
        """Return the cumulative minimum along a dimension, and its indices; see `cummax`."""
    def logcumsumexp(
        self, dim: builtins.int | None = None, *, axis: builtins.int | None = None
    ) -> Tensor:
        """Return the logarithms of the cumulative sums of exponentials along a dimension."""
    def diff(
        self,
        n: builtins.int = 1,
        dim: builtins.int = -1,
        prepend: Operand | None = None,
        append: Operand | None = None,
        *,
        axis: builtins.int | None = None,
    ) -> Tensor:
        """Return the n-th differences of neighbouring elements along a dimension."""
    # --- chainrule.ops.diagonals ---
    def tril(self, diagonal: builtins.int = 0, *, k: builtins.int | None = None) -> Tensor:
        """Return `input` with zeros above a diagonal of its last two dimensions."""
    def tril_(self, diagonal: builtins.int = 0, *, k: builtins.int | None = None) -> Tensor:
        """Do `tril` in place."""
    def triu(self, diagonal: builtins.int = 0, *, k: builtins.int | None = None) -> Tensor:
        """Return `input` with zeros below a diagonal of its last two dimensions."""
    def triu_(self, diagonal: builtins.int = 0, *, k: builtins.int | None = None) -> Tensor:
        """Do `triu` in place."""
    def diagonal(
        self, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1
    ) -> Tensor:
        """Return a diagonal of two dimensions as the last dimension of the result."""
    def diag_embed(
        self, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1
    ) -> Tensor:
        """Return matrices with the last dimension of `input` on a diagonal, and zeros elsewhere."""
    def diagflat(self, offset: builtins.int = 0) -> Tensor:
        """Return the matrix with all elements of `input`, in row-major order, on a diagonal."""
    def trace(self) -> Tensor:
        """Return the sum of the diagonal of a matrix."""
    def diag(self, diagonal: builtins.int = 0) -> Tensor:
        """Return the diagonal of a matrix, or the matrix with a vector on its diagonal."""
    # --- chainrule.ops.dtypes ---
    def is_signed(self) -> builtins.bool:
        """Return whether the dtype can represent negative numbers."""
    def is_nonzero(self) -> builtins.bool:
        """Return whether the tensor's single element is not zero."""
    def is_same_size(self, other: Operand) -> builtins.bool:
        """Return whether two tensors have the same shape."""
    def is_conj(self) -> builtins.bool:
        """Return whether the conjugation of the tensor is pending: False, `conj` is not lazy."""
    def is_neg(self) -> builtins.bool:
        """Return whether the negation of the tensor is pending: False, negation is not lazy."""
    def is_inference(self) -> builtins.bool:
        """Return whether the tensor is an inference tensor: False, see `inference_mode`."""
    def resolve_conj(self) -> Tensor:
        """Return the tensor unchanged: conjugation is never pending."""
    def resolve_neg(self) -> Tensor:
        """Return the tensor unchanged: negation is never pending."""
    def get_device(self) -> builtins.int:
        """Return the index of the tensor's GPU, -1 for the CPU."""
    def data_ptr(self) -> builtins.int:
        """Return the address of the first element."""
    def ndimension(self) -> builtins.int:
        """Return the number of dimensions."""
    def bfloat16(self) -> NoReturn:
        """Raise: NumPy has no such dtype."""
    @property
    def is_cpu(self) -> builtins.bool:
        """Whether the tensor is on the CPU."""
    @property
    def is_cuda(self) -> builtins.bool:
        """Whether the tensor is on a GPU."""
    @property
    def is_mps(self) -> builtins.bool:
        """Whether the tensor is on Apple's GPU: False."""
    @property
    def is_xpu(self) -> builtins.bool:
        """Whether the tensor is on Intel's GPU: False."""
    @property
    def is_meta(self) -> builtins.bool:
        """Whether the tensor has no data: False."""
    @property
    def is_quantized(self) -> builtins.bool:
        """Whether the elements are quantised: False."""
    @property
    def is_nested(self) -> builtins.bool:
        """Whether it is a nested tensor: False."""
    @property
    def is_sparse(self) -> builtins.bool:
        """Whether the tensor is sparse: False."""
    @property
    def is_sparse_csr(self) -> builtins.bool:
        """Whether it is sparse by rows: False."""
    @property
    def layout(self) -> str:
        """The layout: always strided."""
    @property
    def itemsize(self) -> builtins.int:
        """The size of an element in bytes."""
    @property
    def nbytes(self) -> builtins.int:
        """The size of all elements in bytes."""
    # --- chainrule.ops.elementary ---
    def sqrt(self, *, out: Tensor | None = None) -> Tensor:
        """Return the square root of each element."""
    def sqrt_(self) -> Tensor:
        """Do `sqrt` in place."""
    def exp(self, *, out: Tensor | None = None) -> Tensor:
        """Return e to the power of each element."""
    def exp_(self) -> Tensor:
        """Do `exp` in place."""
    def expm1(self, *, out: Tensor | None = None) -> Tensor:
        """Return exp x - 1, accurate also where x is small."""
    def expm1_(self) -> Tensor:
        """Do `expm1` in place."""
    def log(self, *, out: Tensor | None = None) -> Tensor:
        """Return the natural logarithm of each element."""
    def log_(self) -> Tensor:
        """Do `log` in place."""
    def log1p(self, *, out: Tensor | None = None) -> Tensor:
        """Return log(1 + x), accurate also where x is small."""
    def log1p_(self) -> Tensor:
        """Do `log1p` in place."""
    def log2(self) -> Tensor:
        """Return the base-2 logarithm of each element."""
    def log2_(self) -> Tensor:
        """Do `log2` in place."""
    def log10(self) -> Tensor:
        """Return the base-10 logarithm of each element."""
    def log10_(self) -> Tensor:
        """Do `log10` in place."""
    def sigmoid(self, *, out: Tensor | None = None) -> Tensor:
        """Return the logistic function 1 / (1 + exp -x)."""
    def sigmoid_(self) -> Tensor:
        """Do `sigmoid` in place."""
    def rsqrt(self, *, out: Tensor | None = None) -> Tensor:
        """Return 1 / √x."""
    def rsqrt_(self) -> Tensor:
        """Do `rsqrt` in place."""
    def sin(self, *, out: Tensor | None = None) -> Tensor:
        """Return the sine of each element."""
    def sin_(self) -> Tensor:
        """Do `sin` in place."""
    def cos(self, *, out: Tensor | None = None) -> Tensor:
        """Return the cosine of each element."""
    def cos_(self) -> Tensor:
        """Do `cos` in place."""
    def tan(self) -> Tensor:
        """Return the tangent of each element."""
    def tan_(self) -> Tensor:
        """Do `tan` in place."""
    def asin(self) -> Tensor:
        """Return the arcsine of each element, from -π/2 to π/2."""
    def arcsin(self) -> Tensor:
        """Return the arcsine of each element, from -π/2 to π/2."""
    def asin_(self) -> Tensor:
        """Do `asin` in place."""
    def arcsin_(self) -> Tensor:
        """Do `asin` in place."""
    def acos(self) -> Tensor:
        """Return the arccosine of each element, from 0 to π."""
    def arccos(self) -> Tensor:
        """Return the arccosine of each element, from 0 to π."""
    def acos_(self) -> Tensor:
        """Do `acos` in place."""
    def arccos_(self) -> Tensor:
        """Do `acos` in place."""
    def atan(self) -> Tensor:
        """Return the arctangent of each element, from -π/2 to π/2."""
    def arctan(self) -> Tensor:
        """Return the arctangent of each element, from -π/2 to π/2."""
    def atan_(self) -> Tensor:
        """Do `atan` in place."""
    def arctan_(self) -> Tensor:
        """Do `atan` in place."""
    def sinh(self) -> Tensor:
        """Return the hyperbolic sine of each element."""
    def sinh_(self) -> Tensor:
        """Do `sinh` in place."""
    def cosh(self) -> Tensor:
        """Return the hyperbolic cosine of each element."""
    def cosh_(self) -> Tensor:
        """Do `cosh` in place."""
    def tanh(self, *, out: Tensor | None = None) -> Tensor:
        """Return the hyperbolic tangent of each element."""
    def tanh_(self) -> Tensor:
        """Do `tanh` in place."""
    def asinh(self) -> Tensor:
        """Return the inverse hyperbolic sine of each element."""
    def arcsinh(self) -> Tensor:
        """Return the inverse hyperbolic sine of each element."""
    def asinh_(self) -> Tensor:
        """Do `asinh` in place."""
    def arcsinh_(self) -> Tensor:
        """Do `asinh` in place."""
    def acosh(self) -> Tensor:
        """Return the inverse hyperbolic cosine of each element."""
    def arccosh(self) -> Tensor:
        """Return the inverse hyperbolic cosine of each element."""
    def acosh_(self) -> Tensor:
        """Do `acosh` in place."""
    def arccosh_(self) -> Tensor:
        """Do `acosh` in place."""
    def atanh(self) -> Tensor:
        """Return the inverse hyperbolic tangent of each element."""
    def arctanh(self) -> Tensor:
        """Return the inverse hyperbolic tangent of each element."""
    def atanh_(self) -> Tensor:
        """Do `atanh` in place."""
    def arctanh_(self) -> Tensor:
        """Do `atanh` in place."""
    def abs(self, *, out: Tensor | None = None) -> Tensor:
        """Return the absolute value of each element."""
    def absolute(self, *, out: Tensor | None = None) -> Tensor:
        """Return the absolute value of each element."""
    def abs_(self) -> Tensor:
        """Do `abs` in place."""
    def absolute_(self) -> Tensor:
        """Do `abs` in place."""
    def sign(self) -> Tensor:
        """Return -1, 0 or 1, the sign of each element; for a complex number z, z / |z|."""
    def sign_(self) -> Tensor:
        """Do `sign` in place."""
    def relu(self) -> Tensor:
        """Return max(x, 0), the rectified linear unit."""
    def relu_(self) -> Tensor:
        """Do `relu` in place."""
    def maximum(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """Return the larger of x and y, element by element; nan if either is nan."""
    def minimum(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """Return the smaller of x and y, element by element; the arguments are those of
        `maximum`."""
    def clamp(
        self, min: Operand | None = None, max: Operand | None = None, *, out: Tensor | None = None
    ) -> Tensor:
        """Return `input`, limited to the range from `min` to `max`."""
    def clip(
        self, min: Operand | None = None, max: Operand | None = None, *, out: Tensor | None = None
    ) -> Tensor:
        """Return `input`, limited to the range from `min` to `max`."""
    def clamp_(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """Do `clamp` in place."""
    def clip_(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """Do `clamp` in place."""
    def floor(self, *, out: Tensor | None = None) -> Tensor:
        """Return the largest integer ≤ x, element by element."""
    def floor_(self) -> Tensor:
        """Do `floor` in place."""
    def ceil(self, *, out: Tensor | None = None) -> Tensor:
        """Return the smallest integer ≥ x, element by element."""
    def ceil_(self) -> Tensor:
        """Do `ceil` in place."""
    def trunc(self) -> Tensor:
        """Return each element rounded towards zero."""
    def fix(self) -> Tensor:
        """Return each element rounded towards zero."""
    def trunc_(self) -> Tensor:
        """Do `trunc` in place."""
    def fix_(self) -> Tensor:
        """Do `trunc` in place."""
    def round(self, *, decimals: builtins.int = 0) -> Tensor:
        """Return each element rounded to the nearest integer, halves to the nearest even
        integer."""
    def round_(self, *, decimals: builtins.int = 0) -> Tensor:
        """Do `round` in place."""
    def __round__(self, ndigits: builtins.int | None = None) -> Tensor:
        """Return ``round(x, ndigits)``, which Python's function calls."""
    # --- chainrule.ops.indexing ---
    def __getitem__(self, key: Any) -> Tensor:
        """Return ``x[key]``: a view for ints, slices, Ellipsis and None, else a copy."""
    def __setitem__(self, key: Any, value: Operand) -> None:
        """Write ``x[key] = value`` and record it."""
    def __delitem__(self, key: Any) -> None:
        """Raise: a tensor keeps its elements."""
    def gather(
        self, dim: builtins.int, index: Operand, *, sparse_grad: builtins.bool = False
    ) -> Tensor:
        """Return the elements of `input` at `index` along a dimension."""
    def take_along_dim(
        self, indices: Operand, dim: builtins.int | None = None, *, axis: builtins.int | None = None
    ) -> Tensor:
        """Return the elements of `input` at `indices` along a dimension."""
    def index_select(self, dim: builtins.int, index: Operand) -> Tensor:
        """Return the slices of `input` at `index` along a dimension."""
    def take(self, indices: Operand, /, *, axis: builtins.int | None = None) -> Tensor:
        """Return the slices of `x` at `indices` along an axis; of the flattened tensor without
        one."""
    def masked_select(self, mask: Operand) -> Tensor:
        """Return the elements of `input` where `mask` is true, as a vector."""
    # --- chainrule.ops.inplace ---
    def zero_(self) -> Tensor:
        """Fill with zeros in place."""
    def fill_(self, value: Operand) -> Tensor:
        """Fill with a number, or with a 0-d tensor, in place."""
    def copy_(self, source: Operand, non_blocking: builtins.bool = False) -> Tensor:
        """Overwrite all elements with `source`: its shape broadcasts, its dtype is converted."""
    def normal_(
        self,
        mean: builtins.float = 0.0,
        std: builtins.float = 1.0,
        *,
        rng: Generator | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        """Fill with numbers from a normal distribution in place."""
    def uniform_(
        self,
        low: builtins.float = 0.0,
        high: builtins.float = 1.0,
        *,
        rng: Generator | None = None,
        generator: Generator | None = None,
        **bounds: builtins.float,
    ) -> Tensor:
        """Fill with numbers drawn uniformly from [low, high) in place."""
    def fill_diagonal_(self, fill_value: builtins.float, wrap: builtins.bool = False) -> Tensor:
        """Write a number on the main diagonal in place."""
    def t_(self) -> Tensor:
        """Transpose a matrix in place; tensors of fewer dimensions don't change."""
    def transpose_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Swap two dimensions in place, as `t_` does."""
    def swapaxes_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Swap two dimensions in place, as `t_` does."""
    def swapdims_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Swap two dimensions in place, as `t_` does."""
    def squeeze_(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, *, axis: Any = None
    ) -> Tensor:
        """Remove all or the given dimensions of length 1 in place. See `t_`."""
    def unsqueeze_(
        self, dim: builtins.int | None = None, *, axis: builtins.int | None = None
    ) -> Tensor:
        """Insert a dimension of length 1 in place. See `t_`."""
    # --- chainrule.ops.join_split ---
    def split(
        self,
        split_size_or_sections: builtins.int | Sequence[builtins.int] | None = None,
        dim: builtins.int = 0,
        *,
        axis: builtins.int | None = None,
        split_size: builtins.int | Sequence[builtins.int] | None = None,
        tensor: Operand | None = None,
    ) -> tuple[Tensor, ...]:
        """Return parts of `input` along a dimension."""
    def unsafe_split(
        self,
        split_size_or_sections: builtins.int | Sequence[builtins.int] | None = None,
        dim: builtins.int = 0,
        *,
        axis: builtins.int | None = None,
        split_size: builtins.int | Sequence[builtins.int] | None = None,
        tensor: Operand | None = None,
    ) -> tuple[Tensor, ...]:
        """Return parts of `input` along a dimension."""
    def chunk(
        self, chunks: builtins.int, dim: builtins.int = 0, *, axis: builtins.int | None = None
    ) -> tuple[Tensor, ...]:
        """Return `input` in parts of equal length (the last may be shorter), at most `chunks` of
        them."""
    def unsafe_chunk(
        self, chunks: builtins.int, dim: builtins.int = 0, *, axis: builtins.int | None = None
    ) -> tuple[Tensor, ...]:
        """Return `input` in parts of equal length (the last may be shorter), at most `chunks` of
        them."""
    def unbind(
        self, dim: builtins.int = 0, *, axis: builtins.int | None = None
    ) -> tuple[Tensor, ...]:
        """Return the slices of `input` along a dimension, without that dimension."""
    def tensor_split(
        self,
        indices_or_sections: builtins.int | Sequence[builtins.int] | Tensor | None = None,
        dim: builtins.int = 0,
        *,
        axis: builtins.int | None = None,
        sections: builtins.int | None = None,
        indices: Sequence[builtins.int] | None = None,
    ) -> tuple[Tensor, ...]:
        """Return parts of `input` along a dimension, by their number or by the indices of the
        cuts."""
    def hsplit(
        self, indices_or_sections: builtins.int | Sequence[builtins.int]
    ) -> tuple[Tensor, ...]:
        """Return parts of `input` along its second dimension; of a vector along its only one."""
    def vsplit(
        self, indices_or_sections: builtins.int | Sequence[builtins.int]
    ) -> tuple[Tensor, ...]:
        """Return parts along the first dimension of a tensor of two or more; as `hsplit` does."""
    def dsplit(
        self, indices_or_sections: builtins.int | Sequence[builtins.int]
    ) -> tuple[Tensor, ...]:
        """Return parts of `input` along its third dimension; as `hsplit` does."""
    def split_with_sizes(
        self, split_sizes: Sequence[builtins.int], dim: builtins.int = 0
    ) -> tuple[Tensor, ...]:
        """Return parts of `input` of given lengths, as `split` does with a list."""
    def unsafe_split_with_sizes(
        self, split_sizes: Sequence[builtins.int], dim: builtins.int = 0
    ) -> tuple[Tensor, ...]:
        """Return parts of `input` of given lengths, as `split` does with a list."""
    # --- chainrule.ops.matmul ---
    def matmul(self, other: Operand, *, out: Tensor | None = None) -> Tensor:
        """Return the matrix product x @ y."""
    def mm(self, mat2: Operand, *, out: Tensor | None = None) -> Tensor:
        """Return the product of two matrices."""
    def mv(self, vec: Operand, *, out: Tensor | None = None) -> Tensor:
        """Return the product of a matrix, shape (m, k), and a vector, shape (k,)."""
    def dot(self, tensor: Operand, *, out: Tensor | None = None) -> Tensor:
        """Return the inner product of two vectors, without conjugation."""
    def bmm(self, mat2: Operand, *, out: Tensor | None = None) -> Tensor:
        """Return the matrix products of two stacks, of shapes (b, m, k) and (b, k, n)."""
    def outer(self, vec2: Operand) -> Tensor:
        """Return the outer product of two vectors: the products of all pairs of their elements."""
    def ger(self, vec2: Operand) -> Tensor:
        """Return the outer product of two vectors: the products of all pairs of their elements."""
    def addmm(
        self, mat1: Operand, mat2: Operand, *former: Operand, beta: Number = 1, alpha: Number = 1
    ) -> Tensor:
        """Return beta · x + alpha · (mat1 @ mat2)."""
    def addmm_(
        self, mat1: Operand, mat2: Operand, *former: Operand, beta: Number = 1, alpha: Number = 1
    ) -> Tensor:
        """Do `addmm` in place."""
    def addmv(
        self, mat: Operand, vec: Operand, *former: Operand, beta: Number = 1, alpha: Number = 1
    ) -> Tensor:
        """Return beta · x + alpha · (mat @ vec), for a matrix and a vector."""
    def addmv_(
        self, mat: Operand, vec: Operand, *former: Operand, beta: Number = 1, alpha: Number = 1
    ) -> Tensor:
        """Do `addmv` in place."""
    def addr(
        self, vec1: Operand, vec2: Operand, *former: Operand, beta: Number = 1, alpha: Number = 1
    ) -> Tensor:
        """Return beta · x + alpha · (the outer product of two vectors)."""
    def addr_(
        self, vec1: Operand, vec2: Operand, *former: Operand, beta: Number = 1, alpha: Number = 1
    ) -> Tensor:
        """Do `addr` in place."""
    def addbmm(
        self,
        batch1: Operand,
        batch2: Operand,
        *former: Operand,
        beta: Number = 1,
        alpha: Number = 1,
    ) -> Tensor:
        """Return beta · x + alpha · Σ (batch1[i] @ batch2[i]), the sum over two stacks of
        matrices."""
    def addbmm_(
        self,
        batch1: Operand,
        batch2: Operand,
        *former: Operand,
        beta: Number = 1,
        alpha: Number = 1,
    ) -> Tensor:
        """Do `addbmm` in place."""
    def baddbmm(
        self,
        batch1: Operand,
        batch2: Operand,
        *former: Operand,
        beta: Number = 1,
        alpha: Number = 1,
    ) -> Tensor:
        """Return beta · x[i] + alpha · (batch1[i] @ batch2[i]) for all matrices of two stacks."""
    def baddbmm_(
        self,
        batch1: Operand,
        batch2: Operand,
        *former: Operand,
        beta: Number = 1,
        alpha: Number = 1,
    ) -> Tensor:
        """Do `baddbmm` in place."""
    # --- chainrule.ops.order_statistics ---
    @overload
    def median(
        self,
        dim: None = None,
        keepdim: builtins.bool = False,
        *,
        axis: None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """Return the median of all elements, or the medians along a dimension with their
        indices."""
    @overload
    def median(
        self, dim: builtins.int, keepdim: builtins.bool = False, *, keepdims: builtins.bool = False
    ) -> Extremes:
        """Return the median of all elements, or the medians along a dimension with their
        indices."""
    @overload
    def median(
        self,
        dim: None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int,
        keepdims: builtins.bool = False,
    ) -> Extremes:
        """Return the median of all elements, or the medians along a dimension with their
        indices."""
    @overload
    def nanmedian(
        self,
        dim: None = None,
        keepdim: builtins.bool = False,
        *,
        axis: None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """Return the median, ignoring nan; the arguments and results are those of `median`."""
    @overload
    def nanmedian(
        self, dim: builtins.int, keepdim: builtins.bool = False, *, keepdims: builtins.bool = False
    ) -> Extremes:
        """Return the median, ignoring nan; the arguments and results are those of `median`."""
    @overload
    def nanmedian(
        self,
        dim: None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int,
        keepdims: builtins.bool = False,
    ) -> Extremes:
        """Return the median, ignoring nan; the arguments and results are those of `median`."""
    def kthvalue(
        self,
        k: builtins.int,
        dim: builtins.int = -1,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | None = None,
        keepdims: builtins.bool = False,
    ) -> Extremes:
        """Return the k-th smallest element along a dimension, and its index."""
    def mode(
        self,
        dim: builtins.int = -1,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | None = None,
        keepdims: builtins.bool = False,
    ) -> Extremes:
        """Return the most frequent element along a dimension, and the index of its last
        occurrence."""
    def msort(self) -> Tensor:
        """Sort the elements along the first dimension, in ascending order."""
    def quantile(
        self,
        q: builtins.float | Operand,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        interpolation: str = "linear",
        axis: builtins.int | None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """Return the q-quantiles: values below which a fraction q of the elements lies."""
    def nanquantile(
        self,
        q: builtins.float | Operand,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        interpolation: str = "linear",
        axis: builtins.int | None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """Return quantiles, ignoring nan; the arguments are those of `quantile`."""
    def bincount(self, weights: Operand | None = None, minlength: builtins.int = 0) -> Tensor:
        """Count the occurrences of each of the numbers 0, 1, 2, …, or sum their weights."""
    def histc(
        self, bins: builtins.int = 100, min: builtins.float = 0, max: builtins.float = 0
    ) -> Tensor:
        """Count the elements in each of several bins of equal width."""
    def histogram(
        self,
        bins: builtins.int | Operand = 100,
        *,
        range: tuple[builtins.float, builtins.float] | None = None,
        weight: Operand | None = None,
        density: builtins.bool = False,
    ) -> Histogram:
        """Count the elements in each of several bins; return the counts and the bin edges."""
    # --- chainrule.ops.permute ---
    def permute(self, *order: Any, dims: Sequence[builtins.int] | None = None) -> Tensor:
        """Return `input` with its dimensions in another order, as `permute_dims` does."""
    def transpose(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Return `input` with two dimensions exchanged."""
    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Return `input` with two dimensions exchanged."""
    def swapaxes(self, axis0: builtins.int, axis1: builtins.int) -> Tensor:
        """Return `input` with two dimensions exchanged: NumPy's name of `transpose`."""
    def t(self) -> Tensor:
        """Return the transpose of a matrix; a tensor of fewer dimensions as it is."""
    def movedim(
        self,
        source: builtins.int | Sequence[builtins.int],
        destination: builtins.int | Sequence[builtins.int],
    ) -> Tensor:
        """Return `input` with some dimensions moved; the others keep their order."""
    def moveaxis(
        self,
        source: builtins.int | Sequence[builtins.int],
        destination: builtins.int | Sequence[builtins.int],
    ) -> Tensor:
        """Return `input` with some dimensions moved; the others keep their order."""
    def flip(
        self,
        *along: builtins.int | Sequence[builtins.int],
        dims: builtins.int | Sequence[builtins.int] | None = None,
        axis: Any = None,
    ) -> Tensor:
        """Return a copy of `input` with the elements along dimensions in reverse order."""
    def roll(
        self,
        shifts: builtins.int | Sequence[builtins.int],
        dims: builtins.int | Sequence[builtins.int] | None = None,
        *,
        axis: Any = None,
    ) -> Tensor:
        """Return `input` with the elements shifted along dimensions, from the end to the front."""
    def fliplr(self) -> Tensor:
        """Return a copy of `input` with its columns, the second dimension, in reverse order."""
    def flipud(self) -> Tensor:
        """Return a copy of `input` with its rows, the first dimension, in reverse order."""
    def rot90(self, k: builtins.int = 1, dims: Sequence[builtins.int] = ...) -> Tensor:
        """Return a copy of `input` rotated by multiples of 90° in the plane of two dimensions."""
    @property
    def T(self) -> Tensor:
        """The tensor with its dimensions in reverse order."""
    @property
    def mT(self) -> Tensor:
        """The tensor with each matrix transposed."""
    # --- chainrule.ops.products ---
    def inner(self, other: Operand) -> Tensor:
        """Return the products of two tensors, summed over the last dimension of both."""
    def vdot(self, other: Operand) -> Tensor:
        """Return the inner product Σ conj(x) y of two vectors."""
    def cross(
        self, other: Operand, dim: builtins.int | None = None, *, axis: builtins.int | None = None
    ) -> Tensor:
        """Return the cross products of vectors of three elements."""
    def kron(self, other: Operand) -> Tensor:
        """Return the Kronecker product: the blocks ``input[i, j, ...] * other``."""
    # --- chainrule.ops.protocols ---
    def __dlpack__(
        self,
        /,
        *,
        stream: Any = None,
        max_version: tuple[builtins.int, builtins.int] | None = None,
        dl_device: tuple[Any, builtins.int] | None = None,
        copy: builtins.bool | None = None,
    ) -> Any:
        """Return the memory as a DLPack capsule, for `from_dlpack` of any library."""
    def __dlpack_device__(self, /) -> tuple[Any, builtins.int]:
        """Return the type and the index of the tensor's device, as DLPack numbers them."""
    def to_device(self, device: DeviceLike, /, *, stream: Any = None) -> Tensor:
        """Return the tensor on a device; itself if it is there already."""
    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        """Return `chainrule.array_api`, the array API's functions over tensors."""
    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Call the function of tensors for a NumPy function; see the package `interop`."""
    # --- chainrule.ops.reductions ---
    def sum(
        self,
        dim: Dims = None,
        keepdim: builtins.bool = False,
        *,
        axis: Dims = None,
        keepdims: builtins.bool = False,
        dtype: DTypeLike = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return the sum of the elements along dimensions."""
    def mean(
        self,
        dim: Dims = None,
        keepdim: builtins.bool = False,
        *,
        axis: Dims = None,
        keepdims: builtins.bool = False,
        dtype: DTypeLike = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return the mean of the elements along dimensions; the arguments are those of `sum`."""
    def prod(
        self,
        dim: Dims = None,
        keepdim: builtins.bool = False,
        *,
        axis: Dims = None,
        keepdims: builtins.bool = False,
        dtype: DTypeLike = None,
    ) -> Tensor:
        """Return the product of the elements along dimensions; the arguments are those of `sum`."""
    def cumsum(
        self,
        dim: builtins.int | None = None,
        *,
        axis: builtins.int | None = None,
        dtype: DTypeLike = None,
    ) -> Tensor:
        """Return the cumulative sums of the elements along a dimension."""
    def cumsum_(
        self,
        dim: builtins.int | None = None,
        *,
        axis: builtins.int | None = None,
        dtype: DTypeLike = None,
    ) -> Tensor:
        """Do `cumsum` in place."""
    def cumprod(
        self,
        dim: builtins.int | None = None,
        *,
        axis: builtins.int | None = None,
        dtype: DTypeLike = None,
    ) -> Tensor:
        """Return the cumulative products along a dimension; the arguments are those of `cumsum`."""
    def cumprod_(
        self,
        dim: builtins.int | None = None,
        *,
        axis: builtins.int | None = None,
        dtype: DTypeLike = None,
    ) -> Tensor:
        """Do `cumprod` in place."""
    def all(
        self,
        dim: Dims = None,
        keepdim: builtins.bool = False,
        *,
        axis: Dims = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """Test whether all elements along dimensions are true; the arguments are those of `sum`."""
    def any(
        self,
        dim: Dims = None,
        keepdim: builtins.bool = False,
        *,
        axis: Dims = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """Test whether any element along dimensions is true; the arguments are those of `sum`."""
    def count_nonzero(
        self, dim: Dims = None, *, axis: Dims = None, keepdims: builtins.bool = False
    ) -> Tensor:
        """Count the nonzero elements along dimensions; the arguments are those of `sum`."""
    @overload
    def max(
        self,
        dim: Tensor | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: Dims = None,
        keepdims: builtins.bool = False,
        other: Operand | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return the largest element: of all, of each row along a dimension, or of two tensors."""
    @overload
    def max(
        self,
        dim: builtins.int,
        keepdim: builtins.bool = False,
        *,
        keepdims: builtins.bool = False,
        out: tuple[Tensor, Tensor] | None = None,
    ) -> Extremes:
        """Return the largest element: of all, of each row along a dimension, or of two tensors."""
    @overload
    def min(
        self,
        dim: Tensor | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: Dims = None,
        keepdims: builtins.bool = False,
        other: Operand | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Return the smallest element: of all, of each row along a dimension, or of two tensors."""
    @overload
    def min(
        self,
        dim: builtins.int,
        keepdim: builtins.bool = False,
        *,
        keepdims: builtins.bool = False,
        out: tuple[Tensor, Tensor] | None = None,
    ) -> Extremes:
        """Return the smallest element: of all, of each row along a dimension, or of two tensors."""
    def amax(
        self,
        dim: Dims = None,
        keepdim: builtins.bool = False,
        *,
        axis: Dims = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """Return the largest element along dimensions."""
    def amin(
        self,
        dim: Dims = None,
        keepdim: builtins.bool = False,
        *,
        axis: Dims = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """Return the smallest element along dimensions; the arguments are those of `amax`."""
    def argmax(
        self,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """Return the index of the largest element, the first of equal ones."""
    def argmin(
        self,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        axis: builtins.int | None = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """Return the index of the smallest element; the arguments are those of `argmax`."""
    # --- chainrule.ops.repeat ---
    def tile(self, *repeats: Any, dims: Sequence[builtins.int] | None = None) -> Tensor:
        """Return `input` repeated along its dimensions, the last ones if fewer numbers are
        given."""
    def repeat(self, /, *repeats: Any) -> Tensor:
        """Return the tensor repeated along each of its dimensions, as NumPy's `tile` does."""
    def repeat_interleave(
        self,
        repeats: builtins.int | Operand | None = None,
        dim: builtins.int | None = None,
        *,
        output_size: builtins.int | None = None,
        axis: builtins.int | None = None,
    ) -> Tensor:
        """Return `input` with each element along a dimension repeated."""
    # --- chainrule.ops.reshape ---
    def reshape(self, *sizes: Any, shape: Sizes | None = None) -> Tensor:
        """Return the elements of `input`, in row-major order, in another shape."""
    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
        """Return `input` with the dimensions from `start_dim` to `end_dim` merged into one."""
    def ravel(self) -> Tensor:
        """Return the elements of `input`, in row-major order, as a vector."""
    def squeeze(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, *, axis: Any = None
    ) -> Tensor:
        """Return `input` without dimensions of length 1."""
    def unsqueeze(
        self, dim: builtins.int | None = None, *, axis: builtins.int | None = None
    ) -> Tensor:
        """Return `input` with a new dimension of length 1."""
    def expand(self, /, *sizes: Any) -> Tensor:
        """Return `x` with dimensions of length 1 repeated, without copying."""
    def broadcast_to(self, shape: Sizes) -> Tensor:
        """Return `input` broadcast to `shape`, without copying."""
    def expand_as(self, other: Tensor) -> Tensor:
        """Return the tensor expanded to the shape of `other`."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """Return the tensor reshaped to the shape of `other`."""
    # --- chainrule.ops.scatter ---
    def scatter(
        self,
        dim: builtins.int,
        index: Operand,
        src: Operand | None = None,
        *,
        value: Any = None,
        reduce: str | None = None,
    ) -> Tensor:
        """Return `input` with the elements of `src` written at `index` along a dimension."""
    def scatter_(
        self,
        dim: builtins.int,
        index: Operand,
        src: Operand | None = None,
        *,
        value: Any = None,
        reduce: str | None = None,
    ) -> Tensor:
        """Do `scatter` in place."""
    def scatter_add(self, dim: builtins.int, index: Operand, src: Operand) -> Tensor:
        """Return `input` with the elements of `src` added at `index`; the arguments are
        `scatter`'s."""
    def scatter_add_(self, dim: builtins.int, index: Operand, src: Operand) -> Tensor:
        """Do `scatter_add` in place."""
    def scatter_reduce(
        self,
        dim: builtins.int,
        index: Operand,
        src: Operand,
        reduce: str,
        *,
        include_self: builtins.bool = True,
    ) -> Tensor:
        """Return `input` with the elements of `src` reduced into it at `index`."""
    def scatter_reduce_(
        self,
        dim: builtins.int,
        index: Operand,
        src: Operand,
        reduce: str,
        *,
        include_self: builtins.bool = True,
    ) -> Tensor:
        """Do `scatter_reduce` in place."""
    def index_add(
        self, dim: builtins.int, index: Operand, source: Operand, *, alpha: builtins.float = 1
    ) -> Tensor:
        """Return `input` with slices added at `index` along a dimension."""
    def index_add_(
        self, dim: builtins.int, index: Operand, source: Operand, *, alpha: builtins.float = 1
    ) -> Tensor:
        """Do `index_add` in place."""
    def index_copy(self, dim: builtins.int, index: Operand, source: Operand) -> Tensor:
        """Return `input` with slices written at `index`; the arguments are those of `index_add`."""
    def index_copy_(self, dim: builtins.int, index: Operand, source: Operand) -> Tensor:
        """Do `index_copy` in place."""
    def index_fill(self, dim: builtins.int, index: Operand, value: Operand) -> Tensor:
        """Return `input` with a number written to the slices at `index` along a dimension."""
    def index_fill_(self, dim: builtins.int, index: Operand, value: Operand) -> Tensor:
        """Do `index_fill` in place."""
    def index_reduce(
        self,
        dim: builtins.int,
        index: Operand,
        source: Operand,
        reduce: str,
        *,
        include_self: builtins.bool = True,
    ) -> Tensor:
        """Return `input` with slices reduced into it at `index`."""
    def index_reduce_(
        self,
        dim: builtins.int,
        index: Operand,
        source: Operand,
        reduce: str,
        *,
        include_self: builtins.bool = True,
    ) -> Tensor:
        """Do `index_reduce` in place."""
    def index_put(
        self, indices: Sequence[Operand], values: Operand, accumulate: builtins.bool = False
    ) -> Tensor:
        """Return `input` with values at ``x[indices]``."""
    def index_put_(
        self, indices: Sequence[Operand], values: Operand, accumulate: builtins.bool = False
    ) -> Tensor:
        """Do `index_put` in place."""
    def put(self, index: Operand, source: Operand, accumulate: builtins.bool = False) -> Tensor:
        """Return `input` with the elements of `source` at `index` in the flattened tensor."""
    def put_(self, index: Operand, source: Operand, accumulate: builtins.bool = False) -> Tensor:
        """Do `put` in place."""
    def masked_scatter(self, mask: Operand, source: Operand) -> Tensor:
        """Return `input` with elements of `source`, in their order, written where `mask` is
        true."""
    def masked_scatter_(self, mask: Operand, source: Operand) -> Tensor:
        """Do `masked_scatter` in place."""
    # --- chainrule.ops.sort_search ---
    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor:
        """Return the indices of the elements that are not zero."""
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]:
        """Return the indices of the elements that are not zero."""
    def nonzero_static(self, *, size: builtins.int, fill_value: builtins.int = -1) -> Tensor:
        """Return the indices of the first elements that are not zero, in a matrix of a given
        size."""
    def argwhere(self) -> Tensor:
        """Return the indices of the elements that are not zero, as rows: NumPy's name of
        `nonzero`."""
    def unique(
        self,
        sorted: builtins.bool = True,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        dim: builtins.int | None = None,
        *,
        axis: builtins.int | None = None,
    ) -> Any:
        """Return the distinct elements, or the distinct slices along a dimension."""
    def unique_consecutive(
        self,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        dim: builtins.int | None = None,
        *,
        axis: builtins.int | None = None,
    ) -> Any:
        """Return the elements, or slices, without those that equal their predecessor."""
    @overload
    def sort(
        self,
        dim: builtins.int = -1,
        descending: builtins.bool = False,
        stable: builtins.bool = True,
        *,
        axis: None = None,
    ) -> Extremes:
        """Return the elements sorted along a dimension, and their original indices."""
    @overload
    def sort(
        self,
        dim: builtins.int = -1,
        descending: builtins.bool = False,
        stable: builtins.bool = True,
        *,
        axis: builtins.int,
    ) -> Tensor:
        """Return the elements sorted along a dimension, and their original indices."""
    def argsort(
        self,
        dim: builtins.int | None = None,
        descending: builtins.bool = False,
        stable: builtins.bool = True,
        *,
        axis: builtins.int | None = None,
    ) -> Tensor:
        """Return the indices that sort along a dimension; the arguments are those of `sort`."""
    def topk(
        self,
        k: builtins.int,
        dim: builtins.int = -1,
        largest: builtins.bool = True,
        sorted: builtins.bool = True,
        *,
        axis: builtins.int | None = None,
    ) -> Extremes:
        """Return the `k` largest elements along a dimension, largest first, and their indices."""
    # --- chainrule.ops.special ---
    def erf(self, *, out: Tensor | None = None) -> Tensor:
        """Return the error function, 2/√π ∫ exp(-t²) dt from 0 to x."""
    def erf_(self) -> Tensor:
        """Do `erf` in place."""
    def erfc(self) -> Tensor:
        """Return 1 - erf(x), accurate also where it is tiny; the argument is that of `erf`."""
    def erfc_(self) -> Tensor:
        """Do `erfc` in place."""
    def erfinv(self) -> Tensor:
        """Return the inverse of `erf`: ±inf at ±1, nan outside of [-1, 1]."""
    def erfinv_(self) -> Tensor:
        """Do `erfinv` in place."""
    def lgamma(self) -> Tensor:
        """Return log |Γ(x)|, which is inf at 0, -1, -2, …"""
    def lgamma_(self) -> Tensor:
        """Do `lgamma` in place."""
    def digamma(self) -> Tensor:
        """Return the derivative of log Γ(x); the argument is that of `lgamma`."""
    def digamma_(self) -> Tensor:
        """Do `digamma` in place."""
    def polygamma_(self, n: builtins.int) -> Tensor:
        """Replace each element x by the n-th derivative of digamma at x."""
    def mvlgamma(self, p: builtins.int) -> Tensor:
        """Return the logarithm of the multivariate gamma function of dimension p."""
    def mvlgamma_(self, p: builtins.int) -> Tensor:
        """Do `mvlgamma` in place."""
    def i0(self) -> Tensor:
        """Return the modified Bessel function of the first kind of order 0."""
    def i0_(self) -> Tensor:
        """Do `i0` in place."""
    def igamma(self, other: Operand) -> Tensor:
        """Return the regularised lower incomplete gamma function, which rises from 0 at x = 0 to
        1."""
    def igamma_(self, other: Operand) -> Tensor:
        """Do `igamma` in place."""
    def igammac(self, other: Operand) -> Tensor:
        """Return the regularised upper incomplete gamma function, 1 - igamma(a, x)."""
    def igammac_(self, other: Operand) -> Tensor:
        """Do `igammac` in place."""
    def sinc(self) -> Tensor:
        """Return sin(πx) / (πx), which is 1 at 0."""
    def sinc_(self) -> Tensor:
        """Do `sinc` in place."""
    def logit(self, eps: builtins.float | None = None) -> Tensor:
        """Return log(x / (1 - x)), the inverse of `sigmoid`."""
    def logit_(self, eps: builtins.float | None = None) -> Tensor:
        """Do `logit` in place."""
    def polygamma(self, n: builtins.int) -> Tensor:
        """Return the n-th derivative of digamma at each element."""
    # --- chainrule.ops.statistics ---
    def var(
        self,
        dim: Dims | builtins.bool = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.float | None = None,
        axis: Dims = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """Return the variance of the elements along dimensions."""
    def std(
        self,
        dim: Dims | builtins.bool = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.float | None = None,
        axis: Dims = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """Return the standard deviation; the arguments are those of `var`."""
    def norm(
        self,
        p: builtins.float | str = 2,
        dim: Dims = None,
        keepdim: builtins.bool = False,
        *,
        axis: Dims = None,
        keepdims: builtins.bool = False,
        dtype: DTypeLike = None,
    ) -> Tensor:
        """Return the vector norm of the elements along dimensions."""
    def logsumexp(
        self,
        dim: Dims = None,
        keepdim: builtins.bool = False,
        *,
        axis: Dims = None,
        keepdims: builtins.bool = False,
    ) -> Tensor:
        """Return the logarithm of the sum of exponentials along dimensions."""
    def softmax(
        self,
        dim: builtins.int | None = None,
        dtype: DTypeLike = None,
        *,
        axis: builtins.int | None = None,
    ) -> Tensor:
        """Return exp x divided by its sum along a dimension."""
    def log_softmax(
        self,
        dim: builtins.int | None = None,
        dtype: DTypeLike = None,
        *,
        axis: builtins.int | None = None,
    ) -> Tensor:
        """Return the logarithm of `softmax`, accurate where it is tiny; the arguments are the
        same."""
    def nansum(
        self,
        dim: Dims = None,
        keepdim: builtins.bool = False,
        *,
        axis: Dims = None,
        keepdims: builtins.bool = False,
        dtype: DTypeLike = None,
    ) -> Tensor:
        """Return the sum along dimensions, ignoring nan; the arguments are those of `sum`."""
    def nanmean(
        self,
        dim: Dims = None,
        keepdim: builtins.bool = False,
        *,
        axis: Dims = None,
        keepdims: builtins.bool = False,
        dtype: DTypeLike = None,
    ) -> Tensor:
        """Return the mean along dimensions, ignoring nan; the arguments are those of `sum`."""
    def aminmax(
        self,
        *,
        dim: Dims = None,
        keepdim: builtins.bool = False,
        axis: Dims = None,
        keepdims: builtins.bool = False,
    ) -> Bounds:
        """Return the smallest and the largest element along dimensions; see `amin` and `amax`."""
    def dist(self, other: Operand, p: builtins.float = 2) -> Tensor:
        """Return the norm of the difference of two tensors."""
    def renorm(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """Return `input` with each slice along a dimension scaled to a norm of at most
        `maxnorm`."""
    def renorm_(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """Do `renorm` in place."""
    def cov(
        self,
        *,
        correction: builtins.int = 1,
        fweights: Operand | None = None,
        aweights: Operand | None = None,
    ) -> Tensor:
        """Return the covariance matrix of variables, which are the rows of a matrix."""
    def corrcoef(self) -> Tensor:
        """Return the correlation matrix of variables, which are the rows of a matrix."""
    # --- chainrule.ops.storage ---
    def share_memory_(self) -> Tensor:
        """Move a tensor to memory that processes share which are forked afterwards; return it."""
    def is_shared(self) -> builtins.bool:
        """Return whether processes that are forked share the memory of a tensor."""
    def pin_memory(self, device: Any = None) -> Tensor:
        """Return this tensor: memory isn't page-locked."""
    def is_pinned(self, device: Any = None) -> builtins.bool:
        """Return whether the memory is page-locked: False."""
    def record_stream(self, stream: Any) -> None:
        """Keep the memory until a stream has done its work, once the tensor is used no more."""
    def storage(self) -> Storage:
        """Return the memory of a tensor as a row of elements: a `Storage`."""
    def untyped_storage(self) -> Storage:
        """Return the memory of a tensor as a row of bytes: a `Storage`."""
    def resize_(self, *sizes: Any, memory_format: Any = None) -> Tensor:
        """Give a tensor another shape, in place; return it."""
    def resize_as_(self, other: Tensor, memory_format: Any = None) -> Tensor:
        """Give a tensor the shape of another, in place, as `resize_` does; return it."""
    def set_(self, source: Tensor | None = None) -> Tensor:
        """Give a tensor the memory, shape and dtype of another; return it."""
    def apply_(self, callable: Callable[[Any], Any]) -> Tensor:
        """Replace each element by what a Python function returns for it, in place; return the
        tensor."""
    def map_(self, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        """Replace each element by a function of it and another tensor's, in place; return the
        tensor."""
    # --- chainrule.ops.ufuncs ---
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        """Record a ufunc that was called on a tensor; raise if there is no rule for it."""
    # --- chainrule.ops.views ---
    def view(self, /, *sizes: Any, size: Sizes | None = None, dtype: DTypeLike = None) -> Tensor:
        """Return a view of `x` in another shape; the arguments are those of `reshape`."""
    def contiguous(self, /, memory_format: Any = None) -> Tensor:
        """Return `x` itself if its memory is in row-major order, else a copy in that order."""
    def sum_to_size(self, /, *sizes: Any) -> Tensor:
        """Return the tensor summed to a shape that broadcasts to the tensor's shape."""
    def stride(self, dim: builtins.int | None = None) -> Any:
        """Return the steps in memory between neighbours, in elements, for all dimensions or one."""
    def storage_offset(self) -> builtins.int:
        """Return the number of elements in memory before the first one of this tensor."""
    def narrow(
        self, dim: builtins.int, start: builtins.int | Tensor, length: builtins.int
    ) -> Tensor:
        """Return `length` elements along a dimension, from `start` on."""
    def narrow_copy(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
        """Return a copy of the elements that `narrow` selects."""
    def select(self, dim: builtins.int, index: builtins.int | Tensor) -> Tensor:
        """Return the slice at an index of a dimension, without that dimension."""
    def unfold(self, /, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
        """Return sliding windows of `size` elements along a dimension, `step` apart."""
    def unflatten(self, dim: builtins.int, sizes: builtins.int | Sequence[builtins.int]) -> Tensor:
        """Return `input` with one dimension split into several: the inverse of `flatten`."""
    def select_scatter(self, src: Operand, dim: builtins.int, index: builtins.int) -> Tensor:
        """Return `input` with the slice at an index of a dimension replaced."""
    def slice_scatter(
        self,
        src: Operand,
        dim: builtins.int = 0,
        start: builtins.int | None = None,
        end: builtins.int | None = None,
        step: builtins.int = 1,
    ) -> Tensor:
        """Return `input` with the slices from `start` to `end` replaced; see `select_scatter`."""
    def diagonal_scatter(
        self, src: Operand, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1
    ) -> Tensor:
        """Return `input` with a diagonal replaced; see `diagonal` and `select_scatter`."""
    def as_strided(
        self, size: Sizes, stride: Sizes, storage_offset: builtins.int | None = None
    ) -> Tensor:
        """Return elements of the tensor's memory by a shape, strides and an offset."""
    def as_strided_scatter(
        self, src: Operand, size: Sizes, stride: Sizes, storage_offset: builtins.int | None = None
    ) -> Tensor:
        """Return `input` with the elements replaced that `as_strided` returns."""
    def view_as(self, other: Tensor) -> Tensor:
        """Return a view of the tensor in the shape of `other`."""
    # --- chainrule.ops.where ---
    def masked_fill(self, mask: Operand, value: Operand) -> Tensor:
        """Return `input` with `value` where `mask` is true."""
    def masked_fill_(self, mask: Operand, value: Operand) -> Tensor:
        """Do `masked_fill` in place."""
    def where(self, condition: Any, other: Any) -> Tensor:
        """Return the tensor's elements where `condition` is true, else those of `other`."""
    # --- chainrule.random.discrete ---
    def multinomial(
        self,
        num_samples: builtins.int,
        replacement: builtins.bool = False,
        *,
        rng: Generator | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        """Return numbers of categories, drawn with the given weights."""
    # --- chainrule.random.inplace ---
    def bernoulli(
        self,
        p: builtins.float | None = None,
        *,
        rng: Generator | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        """Return ones with the probabilities in the tensor, or all with `p`, else zeros."""
    def bernoulli_(
        self, p: Operand = 0.5, *, rng: Generator | None = None, generator: Generator | None = None
    ) -> Tensor:
        """Fill with ones with probability `p`, a number or one for each element, else with
        zeros."""
    def exponential_(
        self,
        lambd: builtins.float = 1.0,
        *,
        rng: Generator | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        """Fill with numbers from the exponential distribution of rate `lambd`, in place."""
    def geometric_(
        self, p: builtins.float, *, rng: Generator | None = None, generator: Generator | None = None
    ) -> Tensor:
        """Fill with numbers of trials up to the first success, of probability `p`, in place."""
    def cauchy_(
        self,
        median: builtins.float = 0.0,
        sigma: builtins.float = 1.0,
        *,
        rng: Generator | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        """Fill with numbers from the Cauchy distribution, in place; `sigma` is its half width."""
    def log_normal_(
        self,
        mean: builtins.float = 1.0,
        std: builtins.float = 2.0,
        *,
        rng: Generator | None = None,
        generator: Generator | None = None,
    ) -> Tensor:
        """Fill with numbers whose logarithm is normal, with this mean and deviation, in place."""
    def random_(
        self,
        *bounds: builtins.int | None,
        rng: Generator | None = None,
        generator: Generator | None = None,
        **named: Any,
    ) -> Tensor:
        """Fill with integers in place: ``random_(end)`` from 0, ``random_(start, end)`` without
        `end`."""
    # --- chainrule.sparse ---
    def to_sparse(
        self, sparse_dim: builtins.int | None = None, *, layout: str | None = None
    ) -> SparseTensor:
        """Return a tensor's elements that aren't 0 as a sparse tensor."""
    def to_sparse_csr(self) -> SparseCSRTensor:
        """Return a matrix's elements that aren't 0 as a sparse matrix by its rows."""
    # --- operators ---
    def __add__(self, other: Operand) -> Tensor: ...
    def __radd__(self, other: Operand) -> Tensor: ...
    def __iadd__(self, other: Operand) -> Tensor: ...
    def __sub__(self, other: Operand) -> Tensor: ...
    def __rsub__(self, other: Operand) -> Tensor: ...
    def __isub__(self, other: Operand) -> Tensor: ...
    def __mul__(self, other: Operand) -> Tensor: ...
    def __rmul__(self, other: Operand) -> Tensor: ...
    def __imul__(self, other: Operand) -> Tensor: ...
    def __truediv__(self, other: Operand) -> Tensor: ...
    def __rtruediv__(self, other: Operand) -> Tensor: ...
    def __itruediv__(self, other: Operand) -> Tensor: ...
    def __floordiv__(self, other: Operand) -> Tensor: ...
    def __rfloordiv__(self, other: Operand) -> Tensor: ...
    def __ifloordiv__(self, other: Operand) -> Tensor: ...
    def __mod__(self, other: Operand) -> Tensor: ...
    def __rmod__(self, other: Operand) -> Tensor: ...
    def __imod__(self, other: Operand) -> Tensor: ...
    def __neg__(self) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __pow__(self, other: Operand) -> Tensor: ...
    def __rpow__(self, other: Operand) -> Tensor: ...
    def __ipow__(self, other: Operand) -> Tensor: ...
    def __lshift__(self, other: Operand) -> Tensor: ...
    def __rlshift__(self, other: Operand) -> Tensor: ...
    def __ilshift__(self, other: Operand) -> Tensor: ...
    def __rshift__(self, other: Operand) -> Tensor: ...
    def __rrshift__(self, other: Operand) -> Tensor: ...
    def __irshift__(self, other: Operand) -> Tensor: ...
    def __divmod__(self, other: Operand) -> tuple[Tensor, Tensor]: ...
    def __rdivmod__(self, other: Operand) -> tuple[Tensor, Tensor]: ...
    def __eq__(self, other: object) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: object) -> Tensor: ...  # type: ignore[override]
    def __lt__(self, other: Operand) -> Tensor: ...
    def __le__(self, other: Operand) -> Tensor: ...
    def __gt__(self, other: Operand) -> Tensor: ...
    def __ge__(self, other: Operand) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __and__(self, other: Operand) -> Tensor: ...
    def __rand__(self, other: Operand) -> Tensor: ...
    def __iand__(self, other: Operand) -> Tensor: ...
    def __or__(self, other: Operand) -> Tensor: ...
    def __ror__(self, other: Operand) -> Tensor: ...
    def __ior__(self, other: Operand) -> Tensor: ...
    def __xor__(self, other: Operand) -> Tensor: ...
    def __rxor__(self, other: Operand) -> Tensor: ...
    def __ixor__(self, other: Operand) -> Tensor: ...
    def __abs__(self) -> Tensor: ...
    def __matmul__(self, other: Operand) -> Tensor: ...
    def __rmatmul__(self, other: Operand) -> Tensor: ...
