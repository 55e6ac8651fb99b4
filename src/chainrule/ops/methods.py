"""The methods of Tensor: which function each of them is."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from chainrule.autograd.tensor import Tensor
from chainrule.creation import like
from chainrule.ops import (
    arithmetic,
    binary,
    comparison,
    conversion,
    cumulative,
    diagonals,
    dtypes,
    elementary,
    indexing,
    inplace,
    join_split,
    operators,
    order_statistics,
    products,
    protocols,
    reductions,
    repeat,
    sort_search,
    special,
    statistics,
    ufuncs,
    views,
)
from chainrule.ops import (
    matmul as added,
)
from chainrule.ops import (
    permute as turning,
)
from chainrule.ops import (
    scatter as putting,
)
from chainrule.ops import (
    where as choosing,
)
from chainrule.random import inplace as drawn

complex: Any = import_module("chainrule.ops.complex")
matmul: Any = import_module("chainrule.ops.matmul")
permute: Any = import_module("chainrule.ops.permute")
reshape: Any = import_module("chainrule.ops.reshape")
scatter: Any = import_module("chainrule.ops.scatter")

# Functions whose first parameter is the tensor are methods as they are.
_SAME = [
    (
        arithmetic,
        """
        add subtract sub multiply mul divide div true_divide floor_divide remainder negative neg
        positive pow square reciprocal""",
    ),
    (elementary, "sqrt rsqrt exp expm1 log log1p log2 log10 sigmoid"),
    (
        elementary,
        """
        sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh
        arcsin arccos arctan arcsinh arccosh arctanh""",
    ),
    (elementary, "abs absolute sign relu maximum minimum clamp clip floor ceil trunc fix round"),
    (choosing, "masked_fill"),
    (
        binary,
        """
        arctan2 atan2 copysign float_power fmax fmin fmod frexp heaviside hypot ldexp logaddexp
        logaddexp2 nextafter xlogy""",
    ),
    (
        binary,
        """
        addcdiv addcmul clamp_max clamp_min deg2rad exp2 frac isneginf isposinf lerp nan_to_num
        rad2deg signbit""",
    ),
    (arithmetic, "bitwise_left_shift bitwise_right_shift gcd lcm"),
    (special, "digamma erf erfc erfinv i0 igamma igammac lgamma logit mvlgamma sinc"),
    (
        comparison,
        """
        eq ne lt le gt ge not_equal less less_equal greater greater_equal isnan isinf isfinite
        logical_not logical_and logical_or logical_xor bitwise_not bitwise_and bitwise_or
        bitwise_xor isclose allclose""",
    ),
    (reductions, "sum mean prod cumsum cumprod all any count_nonzero"),
    (statistics, "var std norm logsumexp softmax log_softmax"),
    (reductions, "max min amax amin argmax argmin"),
    (sort_search, "sort argsort topk"),
    (reshape, "reshape flatten ravel squeeze unsqueeze expand broadcast_to"),
    (permute, "permute transpose swapaxes swapdims t movedim moveaxis flip roll"),
    (diagonals, "tril triu diag diagonal diag_embed diagflat trace"),
    (join_split, "split chunk unbind"),
    (indexing, "gather take take_along_dim index_select masked_select"),
    (
        views,
        """
        narrow narrow_copy select unfold unflatten select_scatter slice_scatter diagonal_scatter""",
    ),
    (repeat, "tile repeat_interleave"),
    (join_split, "tensor_split hsplit vsplit dsplit split_with_sizes"),
    (
        scatter,
        """
        scatter scatter_add scatter_reduce index_add index_copy index_fill index_reduce""",
    ),
    (putting, "index_put masked_scatter put"),
    (views, "as_strided"),
    (turning, "fliplr flipud rot90"),
    (sort_search, "nonzero argwhere unique unique_consecutive"),
    (order_statistics, "bincount histc histogram"),
    (statistics, "nansum nanmean aminmax dist renorm"),
    (statistics, "cov corrcoef"),
    (order_statistics, "median nanmedian kthvalue mode msort"),
    (order_statistics, "quantile nanquantile"),
    (cumulative, "cummax cummin logcumsumexp diff"),
    (like, "new_zeros new_ones new_empty new_full new_tensor"),
    (views, "view contiguous sum_to_size stride storage_offset"),
    (matmul, "matmul mm mv dot bmm outer ger"),
    (products, "inner vdot cross kron"),
    (added, "addmm addmv addr addbmm baddbmm"),
    (complex, "adjoint angle conj conj_physical isreal sgn"),
    (conversion, "clone astype to type_as cpu cuda"),
]


def expand_as(x: Tensor, other: Tensor) -> Any:
    """Return the tensor expanded to the shape of `other`."""
    return reshape.expand(x, other.shape)


def reshape_as(x: Tensor, other: Tensor) -> Any:
    """Return the tensor reshaped to the shape of `other`."""
    return reshape.reshape(x, other.shape)


def view_as(x: Tensor, other: Tensor) -> Tensor:
    """Return a view of the tensor in the shape of `other`."""
    return views.view(x, other.shape)


def where(x: Tensor, condition: Any, other: Any) -> Tensor:
    """Return the tensor's elements where `condition` is true, else those of `other`."""
    return choosing.where(condition, x, other)


def polygamma(x: Tensor, n: int) -> Tensor:
    """Return the n-th derivative of digamma at each element."""
    return special.polygamma(n, x)


# Where PyTorch's method is not the function of that name.
_OTHERS: dict[str, Any] = {
    "expand_as": expand_as,
    "reshape_as": reshape_as,
    "view_as": view_as,
    "where": where,
    "repeat": repeat.repeat_whole,
    "equal": comparison.same,
    "type": conversion.type_,
    "polygamma": polygamma,
    "__array_ufunc__": ufuncs.array_ufunc,
    "__array_function__": protocols.array_function,
    "__array_namespace__": protocols.array_namespace,
    "__dlpack__": protocols.dlpack,
    "__dlpack_device__": protocols.dlpack_device,
    "to_device": protocols.to_device,
}

_LATER = {
    "chainrule.linalg": """
        det slogdet logdet matrix_exp matrix_power inverse pinverse cholesky_solve
        cholesky_inverse""",
    "chainrule.linalg.deprecated": "cholesky lu lu_solve qr svd triangular_solve",
    "chainrule.fft.stft": "stft istft",
    "chainrule.nn.functional": "hardshrink prelu",
}


def _of_module(module: str, name: str) -> Callable[..., Any]:
    """Return the method of a function that is imported when it is first called."""

    def method(x: Tensor, *arguments: Any, **settings: Any) -> Any:
        return getattr(import_module(module), name)(x, *arguments, **settings)

    method.__name__ = name
    method.__doc__ = f"Return `{module}.{name}` of the tensor."
    return method


_PROPERTIES = {
    "T": property(permute.reverse_dims, doc="The tensor with its dimensions in reverse order."),
    "real": property(complex.real, inplace.set_real, doc="The real part; writable."),
    "imag": property(complex.imag, inplace.set_imag, doc="The imaginary part; writable."),
    "H": property(complex.hermitian, doc="The matrix, transposed and conjugated."),
    "mH": property(complex.adjoint, doc="The tensor with each matrix transposed and conjugated."),
    "mT": property(permute.matrix_transpose, doc="The tensor with each matrix transposed."),
}


def attach() -> None:
    """Give Tensor its operators and methods."""
    for module, names in _SAME:
        for name in names.split():
            setattr(Tensor, name, getattr(module, name))
    for table in (
        inplace.METHODS,
        drawn.METHODS,
        inplace.TURNING,
        conversion.CONVERTERS,
        dtypes.METHODS,
        operators.OPERATORS,
        _OTHERS,
        {
            name: _of_module(module, name)
            for module, names in _LATER.items()
            for name in names.split()
        },
        _PROPERTIES,
    ):
        for name, method in table.items():
            setattr(Tensor, name, method)
