"""chainrule: define-by-run automatic differentiation for NumPy arrays, in Python alone.

>>> import chainrule as cr
>>> x = cr.tensor([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4.])
"""

from importlib import import_module as _import_module
from types import SimpleNamespace as _SimpleNamespace
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

import numpy as _np

from chainrule import creation, draws, errors, ops, random
from chainrule.autograd.derivatives import autograd_backward, autograd_grad
from chainrule.autograd.formatting import set_printoptions
from chainrule.autograd.function import autograd_function, once_differentiable
from chainrule.autograd.modes import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    is_anomaly_enabled,
    is_grad_enabled,
    no_grad,
    saved_tensors_hooks,
    set_detect_anomaly,
    set_grad_enabled,
)
from chainrule.autograd.tensor import Tensor, set_default_dtype
from chainrule.autograd.tensor import default_dtype as get_default_dtype
from chainrule.backend import cuda_is_available as _cuda_is_available
from chainrule.backend import device
from chainrule.creation import *  # noqa: F403
from chainrule.draws import *  # noqa: F403
from chainrule.errors import *  # noqa: F403
from chainrule.ops import *  # noqa: F403
from chainrule.random import *  # noqa: F403

if _TYPE_CHECKING:
    from chainrule import checks as checks
    from chainrule import fft as fft
    from chainrule import linalg as linalg
    from chainrule import nn as nn
    from chainrule import optim as optim
    from chainrule import special as special
    from chainrule import transforms as transforms
    from chainrule.checks import GradcheckError, gradcheck, gradgradcheck
    from chainrule.fft.spectrograms import istft, stft
    from chainrule.generators import Generator
    from chainrule.kernels.threads import get_num_threads, set_num_threads
    from chainrule.linalg import (
        cholesky_inverse,
        cholesky_solve,
        det,
        inverse,
        logdet,
        matrix_exp,
        matrix_power,
        pinverse,
        slogdet,
    )
    from chainrule.linalg.products import chain_matmul
    from chainrule.nn.functional import (
        alpha_dropout,
        celu,
        celu_,
        cosine_similarity,
        dropout,
        feature_alpha_dropout,
        group_norm,
        hardshrink,
        layer_norm,
        pairwise_distance,
        prelu,
        relu_,
        rms_norm,
        rrelu,
        rrelu_,
        selu,
        selu_,
        threshold,
        threshold_,
    )
    from chainrule.nn.functional.padding import constant_pad_nd
    from chainrule.transforms import jvp

__version__ = "0.1.0"

_LATER = {
    "gradcheck": "chainrule.checks",
    "gradgradcheck": "chainrule.checks",
    "GradcheckError": "chainrule.checks",
    "jvp": "chainrule.transforms",
    "array_api": None,
    "constant_pad_nd": "chainrule.nn.functional.padding",
    "get_num_threads": "chainrule.kernels.threads",
    "set_num_threads": "chainrule.kernels.threads",
    "conv1d": "chainrule.nn.functional",
    "conv2d": "chainrule.nn.functional",
    "conv3d": "chainrule.nn.functional",
    "conv_transpose1d": "chainrule.nn.functional",
    "conv_transpose2d": "chainrule.nn.functional",
    "conv_transpose3d": "chainrule.nn.functional",
    "adaptive_avg_pool1d": "chainrule.nn.functional",
    "adaptive_max_pool1d": "chainrule.nn.functional",
    "avg_pool1d": "chainrule.nn.functional",
    "channel_shuffle": "chainrule.nn.functional",
    "max_pool1d": "chainrule.nn.functional",
    "max_pool2d": "chainrule.nn.functional",
    "max_pool3d": "chainrule.nn.functional",
    "pixel_shuffle": "chainrule.nn.functional",
    "pixel_unshuffle": "chainrule.nn.functional",
    "alpha_dropout": "chainrule.nn.functional",
    "celu": "chainrule.nn.functional",
    "celu_": "chainrule.nn.functional",
    "cosine_similarity": "chainrule.nn.functional",
    "dropout": "chainrule.nn.functional",
    "feature_alpha_dropout": "chainrule.nn.functional",
    "group_norm": "chainrule.nn.functional",
    "hardshrink": "chainrule.nn.functional",
    "layer_norm": "chainrule.nn.functional",
    "pairwise_distance": "chainrule.nn.functional",
    "prelu": "chainrule.nn.functional",
    "relu_": "chainrule.nn.functional",
    "rms_norm": "chainrule.nn.functional",
    "rrelu": "chainrule.nn.functional",
    "rrelu_": "chainrule.nn.functional",
    "selu": "chainrule.nn.functional",
    "selu_": "chainrule.nn.functional",
    "threshold": "chainrule.nn.functional",
    "threshold_": "chainrule.nn.functional",
    "Generator": "chainrule.generators",
    "checks": None,
    "istft": "chainrule.fft.spectrograms",
    "stft": "chainrule.fft.spectrograms",
    "fft": None,
    "linalg": None,
    "det": "chainrule.linalg",
    "slogdet": "chainrule.linalg",
    "logdet": "chainrule.linalg",
    "matrix_exp": "chainrule.linalg",
    "matrix_power": "chainrule.linalg",
    "inverse": "chainrule.linalg",
    "pinverse": "chainrule.linalg",
    "cholesky_solve": "chainrule.linalg",
    "cholesky_inverse": "chainrule.linalg",
    "chain_matmul": "chainrule.linalg.products",
    "nn": None,
    "optim": None,
    "special": None,
    "transforms": None,
}


def __getattr__(name: str) -> _Any:
    """Import what training and checking need when it is first asked for."""
    if name not in _LATER:
        if name == "bfloat16":
            raise AttributeError(
                f"module {__name__!r} has no attribute 'bfloat16': NumPy has no such numbers. Use "
                "float32, or float16 for 16 bits with fewer exponents"
            )
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = _import_module(_LATER[name] or f"{__name__}.{name}")
    value = module if _LATER[name] is None else getattr(module, name)
    globals()[name] = value
    return value


cuda = _SimpleNamespace(is_available=_cuda_is_available)

inf, nan, pi, e = _np.inf, _np.nan, _np.pi, _np.e
newaxis = None

# Dtypes are NumPy's own objects, under NumPy's names and PyTorch's.
float16 = half = _np.dtype("float16")
float32 = float = _np.dtype("float32")
float64 = double = _np.dtype("float64")
complex64 = cfloat = _np.dtype("complex64")
complex128 = cdouble = _np.dtype("complex128")
uint8 = _np.dtype("uint8")
uint16 = _np.dtype("uint16")
uint32 = _np.dtype("uint32")
uint64 = _np.dtype("uint64")
int8 = _np.dtype("int8")
int16 = short = _np.dtype("int16")
int32 = int = _np.dtype("int32")
int64 = long = _np.dtype("int64")
bool = _np.dtype("bool")

__all__ = ["Generator", "Tensor"]
__all__ += creation.__all__
__all__ += random.__all__
__all__ += draws.__all__
__all__ += ops.__all__
__all__ += [
    # derivatives
    "autograd_backward",
    "autograd_grad",
    "autograd_function",
    "once_differentiable",
    "jvp",
    "gradcheck",
    "gradgradcheck",
    "GradcheckError",
    # linear algebra
    "det",
    "slogdet",
    "logdet",
    "matrix_exp",
    "matrix_power",
    "inverse",
    "pinverse",
    "cholesky_solve",
    "cholesky_inverse",
    "chain_matmul",
    # spectrograms
    "stft",
    "istft",
    # modes
    "no_grad",
    "inference_mode",
    "enable_grad",
    "set_grad_enabled",
    "is_grad_enabled",
    "detect_anomaly",
    "set_detect_anomaly",
    "is_anomaly_enabled",
    "saved_tensors_hooks",
    # threads
    "get_num_threads",
    "set_num_threads",
    # dtypes and devices
    "float16",
    "half",
    "float32",
    "float",
    "float64",
    "double",
    "complex64",
    "cfloat",
    "complex128",
    "cdouble",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "short",
    "int32",
    "int",
    "int64",
    "long",
    "bool",
    "inf",
    "nan",
    "pi",
    "e",
    "newaxis",
    "get_default_dtype",
    "set_default_dtype",
    "device",
    "cuda",
    # layers
    "alpha_dropout",
    "celu",
    "celu_",
    "constant_pad_nd",
    "cosine_similarity",
    "dropout",
    "feature_alpha_dropout",
    "group_norm",
    "hardshrink",
    "layer_norm",
    "pairwise_distance",
    "prelu",
    "relu_",
    "rms_norm",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "threshold",
    "threshold_",
    # printing
    "set_printoptions",
]
__all__ += errors.__all__
