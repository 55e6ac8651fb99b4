"""chainrule: define-by-run automatic differentiation for NumPy arrays, in Python alone.

>>> import chainrule as cr
>>> x = cr.tensor([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4.])
"""

from chainrule import blas as blas  # first: it selects NumPy's BLAS kernels while NumPy loads

# isort: split
import sys as _sys
import typing as _typing
from importlib import import_module as _import_module

import numpy as _np

from chainrule import autograd as autograd
from chainrule import creation, errors, ops, random
from chainrule.autograd.backward import autograd_backward as autograd_backward
from chainrule.autograd.backward import autograd_grad as autograd_grad
from chainrule.autograd.formatting import set_printoptions as set_printoptions
from chainrule.autograd.function import autograd_function as autograd_function
from chainrule.autograd.function import once_differentiable as once_differentiable
from chainrule.autograd.modes import detect_anomaly as detect_anomaly
from chainrule.autograd.modes import enable_grad as enable_grad
from chainrule.autograd.modes import inference_mode as inference_mode
from chainrule.autograd.modes import is_anomaly_enabled as is_anomaly_enabled
from chainrule.autograd.modes import is_grad_enabled as is_grad_enabled
from chainrule.autograd.modes import no_grad as no_grad
from chainrule.autograd.modes import saved_tensors_hooks as saved_tensors_hooks
from chainrule.autograd.modes import set_detect_anomaly as set_detect_anomaly
from chainrule.autograd.modes import set_grad_enabled as set_grad_enabled
from chainrule.autograd.size import Size as Size
from chainrule.autograd.tensor import Tensor as Tensor
from chainrule.autograd.tensor import default_dtype as _default_dtype
from chainrule.autograd.tensor import set_default_dtype as set_default_dtype
from chainrule.backend import device as device
from chainrule.creation import *
from chainrule.errors import *
from chainrule.missing_names import missing as _missing
from chainrule.module_aliases import ModuleAliasFinder as _ModuleAliasFinder
from chainrule.ops import *
from chainrule.out_argument import TAKING_OUT as _TAKING_OUT
from chainrule.out_argument import takes_out as _takes_out
from chainrule.out_argument import taking_out as _taking_out
from chainrule.random import *

__version__ = "0.2.0"

# Names that are imported on first use, and the modules that contain them.
_LATER = {
    name: module
    for module, names in {
        __name__: """
            accelerator amp array_api backends checks compiler cuda distributed
            distributions fft func hub io jit linalg masked
            multiprocessing nested nn numpy onnx optim plotting profiler scipy serialization signal
            sparse special testing transforms tree types utils""",
        "chainrule.amp": "autocast GradScaler clear_autocast_cache is_autocast_enabled",
        "chainrule.arguments": "bfloat16",
        "chainrule.backends": """
            are_deterministic_algorithms_enabled get_default_device get_float32_matmul_precision
            set_default_device set_float32_matmul_precision use_deterministic_algorithms
            layout memory_format strided sparse_coo sparse_csr version
            get_deterministic_debug_mode get_num_interop_threads is_warn_always_enabled
            set_deterministic_debug_mode set_flush_denormal set_num_interop_threads set_warn_always
            channels_last channels_last_3d contiguous_format preserve_format
            """,
        "chainrule.checks": "gradcheck gradgradcheck GradcheckError",
        "chainrule.transforms": """
            grad value_and_grad vjp jvp linearize jacobian hessian hvp vhp ggnvp laplacian vmap
            checkpoint stop_gradient""",
        "chainrule.approximation": "taylor",
        "chainrule.compiler": "compile export profile",
        "chainrule.compiler.eager": "get_kernels set_kernels",
        "chainrule.creation.ranges": "range",
        "chainrule.creation.strided": "empty_permuted empty_strided",
        "chainrule.ops.segments": "segment_reduce",
        "chainrule.control_flow": "scan while_loop cond",
        "chainrule.diagnostics": "explain why",
        "chainrule.foreign": "wrap",
        "chainrule.implicit": "implicit_function",
        "chainrule.random.generator": "Generator",
        "chainrule.io": "save load",
        "chainrule.kernels.threads": "get_num_threads set_num_threads",
        "chainrule.fft.stft": "stft istft",
        "chainrule.linalg": """
            det slogdet logdet matrix_exp matrix_power inverse pinverse cholesky_solve
            cholesky_inverse""",
        "chainrule.linalg.deprecated": """
            cholesky geqrf lu lu_solve lu_unpack orgqr qr svd triangular_solve""",
        "chainrule.linalg.least_squares": "pca_lowrank svd_lowrank",
        "chainrule.linalg.products": "chain_matmul ormqr",
        "chainrule.sparse": "sparse_coo_tensor sparse_csr_tensor",
        "chainrule.visualization.derivation_steps": "derivation",
        "chainrule.visualization.graph_view": "graph",
        "chainrule.visualization.heat_map": "heatmap",
        "chainrule.visualization.layer_summary": "summary",
        "chainrule.visualization.memory_report": "saved_report",
        "chainrule.nn.functional": """
            conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
            adaptive_avg_pool1d adaptive_max_pool1d avg_pool1d max_pool1d max_pool2d max_pool3d
            channel_shuffle pixel_shuffle pixel_unshuffle
            dropout alpha_dropout feature_alpha_dropout
            group_norm layer_norm rms_norm cosine_similarity pairwise_distance
            celu celu_ hardshrink prelu relu_ rrelu rrelu_ selu selu_ threshold threshold_""",
        "chainrule.nn.functional.padding": "constant_pad_nd",
    }.items()
    for name in names.split()
}
for _name in _TAKING_OUT:  # to these, `out` is given on first use
    del globals()[_name]


def _later(name: str) -> _typing.Any:
    """Import a function or module on first use, or give `out` to a function."""
    if name in ("functional", "_dynamo", "_inductor"):  # PyTorch's modules
        return _import_module(f"{__name__}.{name}")
    if name == "torch":  # `torch.torch.Tensor`, as scripts write by mistake
        return _import_module(__name__)
    module = _LATER.get(name) or _TAKING_OUT.get(name)
    if module is None:
        private = _import_module("chainrule.ops.private_names").private_function(name)
        if private is None:
            raise _missing(__name__, name)
        return private
    if module == __name__:
        return _import_module(f"{__name__}.{name}")
    value = getattr(_import_module(module), name)
    if _takes_out(name, value):
        value = _taking_out(value, __name__, name)
    globals()[name] = value
    return value


get_default_dtype = _default_dtype

inf, nan, pi, e = _np.inf, _np.nan, _np.pi, _np.e
newaxis = None

# NumPy's dtypes, under NumPy's and PyTorch's names.
dtype = _np.dtype
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

# Not for type checkers: they read only a literal `__all__` (see `ops`), and with `__getattr__` they
# would accept every name.
if not _typing.TYPE_CHECKING:
    __getattr__ = _later

    def __dir__() -> list[str]:
        """Return what is public: consoles offer it, and not the modules that others are made of."""
        special = [name for name in globals() if name.startswith("__")]
        return sorted({*special, *__all__, *_LATER, "autograd", "blas", "errors", "random"})

    __all__ = ["Tensor"]
    for _module in (creation, random, ops, errors):
        __all__ += _module.__all__
    __all__ += [
        # derivatives
        "autograd_backward",
        "autograd_grad",
        "autograd_function",
        "once_differentiable",
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
        # dtypes and devices
        "dtype",
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
        "Size",
        "get_default_dtype",
        "set_default_dtype",
        "device",
        # printing
        "set_printoptions",
    ]
    # Of the modules, `import *` gives one alone, which scripts ask for by name.
    __all__ += [name for name, module in _LATER.items() if module != __name__ or name == "cuda"]


_sys.meta_path.append(_ModuleAliasFinder())
