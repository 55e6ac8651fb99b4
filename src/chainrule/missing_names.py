"""Names of other libraries that chainrule doesn't have, with what to say instead."""

from __future__ import annotations

import sys
from dis import opname
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any

import numpy as np

_INSTEAD = {
    "chainrule": {
        "sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor": "say sparse_csr_tensor",
        "symeig": "say linalg.eigh",
        "eig": "say linalg.eig",
        "lstsq": "say linalg.lstsq",
        "solve": "say linalg.solve",
        "matrix_rank": "say linalg.matrix_rank",
        "backward": "say loss.backward(), or cr.autograd_backward(tensors)",
        "fx": "cr.graph(y) is what was recorded, and cr.compile(f).source what is compiled",
        "ao quantization quantize_per_tensor quantize_per_channel": "dtypes are "
        "NumPy's, without quantized ones",
        "overrides library": "say cr.autograd_function for an operation with a derivative",
        "default_generator": "say cr.manual_seed(seed), or generator=cr.Generator()",
        "mps xpu mtia": "devices are 'cpu' and 'cuda'",
        "FloatStorage DoubleStorage LongStorage UntypedStorage TypedStorage Storage": "say "
        "x.numpy(), which has the memory of x",
        "alias_copy as_strided_copy detach_copy diagonal_copy expand_copy permute_copy "
        "select_copy slice_copy split_copy split_with_sizes_copy squeeze_copy t_copy "
        "transpose_copy unbind_copy unfold_copy unsqueeze_copy view_as_complex_copy "
        "view_as_real_copy view_copy": "clone() the view",
        # of JAX and HIPS autograd
        "fori_loop": "write a for loop, or say cr.scan",
        "lax": "say cr.scan, cr.while_loop, cr.cond and cr.stop_gradient",
        "custom_vjp custom_jvp": "say cr.autograd_function, with rules by @f.backward and @f.jvp",
        "make_jaxpr": "say g = cr.compile(f), and read g.source after a call",
        "jacfwd": "say cr.func.jacfwd, or cr.jacobian",
        "jacrev": "say cr.func.jacrev, or cr.jacobian",
        "tree_map": "say cr.tree.map",
        "remat": "say cr.utils.checkpoint.checkpoint(f, *args)",
        "device_put": "say x.to(device)",
        "pmap": "say cr.vmap, or cr.distributed for many machines",
        "tree_util": "say cr.tree",
        "config": "arrays keep their dtype; for numbers, say cr.set_default_dtype(cr.float64)",
        "debug": "print() shows values, outside of compiled functions",
        "elementwise_grad grad_and_aux make_vjp": "import it from chainrule.compat.autograd",
        # of TensorFlow
        "GradientTape": "Tensors with requires_grad=True record by themselves: call "
        "loss.backward(), or take cr.grad(f)",
        "constant": "say cr.tensor",
        "keras": "say cr.nn for layers, and cr.optim for optimizers",
        "convert_to_tensor": "say cr.tensor, or cr.as_tensor, which copies nothing it can share",
        "function": "say cr.compile",
        "reduce_max": "say cr.amax",
        "reduce_min": "say cr.amin",
        # of NumPy
        "array": "say cr.tensor(data), which copies as np.array does",
        "power": "say cr.pow",
    },
    "chainrule.linalg": {
        "ldl_factor ldl_factor_ex ldl_solve": "say linalg.solve, or scipy.linalg.ldl(x.numpy())",
    },
    "chainrule.special": {
        "airy_ai": "say cr.scipy.special.airy(x)[0]",
    },
    "chainrule.random": {
        "PRNGKey key": "say generator=cr.Generator().manual_seed(seed)",
        "split fold_in": "say cr.Generator().manual_seed(seed) for each stream",
    },
    "chainrule.cuda": {
        "FloatTensor DoubleTensor HalfTensor LongTensor IntTensor ByteTensor BoolTensor": "make a "
        "tensor on the CPU, and move it with .cuda()",
        "memory_cached": "say memory_reserved",
        "max_memory_cached": "say max_memory_reserved",
        "reset_max_memory_allocated reset_max_memory_cached reset_accumulated_memory_stats": "say "
        "reset_peak_memory_stats",
        "set_per_process_memory_fraction": "say cupy.get_default_memory_pool().set_limit(fraction="
        "0.5)",
        "CUDAGraph graph make_graphed_callables": "operations are launched one by one: call the "
        "function itself",
        "nvtx": "say cupy.cuda.nvtx, or cr.profile(function)",
        "profiler cudart": "say cr.profile(function), or cupy.cuda.profiler",
        "comm nccl": "tensors of several GPUs are moved with .to('cuda:1')",
        "default_generators": "all devices have one generator: say cr.manual_seed(seed)",
    },
    "chainrule.distributed": {
        "new_group": "say cr.distributed.world().split(color)",
        "reduce_scatter gather scatter send recv": "it is a method of cr.distributed.world()",
        "fsdp rpc tensor": "say nn.parallel.DistributedDataParallel, or cr.distributed.world()",
        "all_to_all": "say x = cr.distributed.world().alltoall(x)",
    },
    "chainrule.distributions": {
        "Gaussian": "say cr.distributions.Normal",
        "Flip": "say cr.distributions.Bernoulli",
    },
    "chainrule.hub": {
        "load": "nothing is downloaded: copy the model's code, and load its weights with cr.load",
    },
    "chainrule.jit": {
        "save load": "cr.compile compiles what runs; state_dict() is what is kept",
    },
    "chainrule.onnx": {
        "export": "keep net.state_dict(), which PyTorch loads, and export from there",
    },
    "chainrule.optim": {},
    "chainrule.scipy": {},
    "chainrule.nn": {
        "quantized quantizable intrinsic qat": "dtypes are NumPy's, without quantized ones",
        # of Keras, Flax and Haiku
        "Dense": "say cr.nn.Linear(in_features, out_features), or cr.nn.LazyLinear(out_features)",
        "Conv": "say cr.nn.Conv2d(in_channels, out_channels, kernel_size), or cr.nn.LazyConv2d",
        "Embed": "say cr.nn.Embedding",
        "compact": "make the layers in __init__, and call them in forward",
        "Input InputLayer": "layers need no input layer: call the module with a tensor",
        "Activation": "say cr.nn.ReLU() or another class, or call cr.relu(x) in forward",
    },
    "chainrule.utils": {
        "bottleneck": "say timeit.repeat(f), and cr.profile(f) of a compiled function",
        "cpp_extension": "say cr.wrap(f, vjp=...) to give foreign code a derivative",
        "tensorboard": "losses are numbers after .item(): print them, or plot them with matplotlib",
    },
}
_MENDS = {
    (module, name): mend
    for module, mends in _INSTEAD.items()
    for names, mend in mends.items()
    for name in names.split()
}


# --- torch for R: its prefixes are modules here, and its names are in snake case ------------------

_R_PREFIXES = {
    "torch_fft_": "fft",
    "torch_linalg_": "linalg",
    "torch_sparse_": "sparse",
    "torch_": ". linalg fft special sparse nn.functional",
    "linalg_": "linalg",
    "nn_utils_rnn_": "nn.utils.rnn",
    "nn_utils_": "nn.utils",
    "nn_init_": "nn.init",
    "nn_": "nn",
    "nnf_": "nn.functional .",
    "optim_ignite_": "optim",
    "optim_": "optim",
    "lr_": "optim.lr_scheduler",
    "distr_": "distributions",
    "cuda_amp_": "amp",
    "cuda_": "cuda",
    "backends_": "backends",
    "jit_": "jit",
    "autograd_": "autograd .",
    "dataset_": "utils.data",
    "dataloader": "utils.data",
    "with_": ". autograd amp",
    "local_": ". autograd amp",
}

_R_NAMES = {
    "as_array": "say t.numpy(), or t.detach().numpy() of a tensor that requires grad",
    "autograd_set_grad_mode": "say with cr.set_grad_enabled(flag):",
    "buffer_from_torch_tensor": "say t.numpy().tobytes()",
    "call_torch_function": "call the function itself, getattr(cr, name)(...)",
    "clone_module": "say copy.deepcopy(module)",
    "dataloader": "say cr.utils.data.DataLoader",
    "dataloader_make_iter": "say iter(loader)",
    "dataloader_next": "say next(iterator)",
    "dataset": "subclass cr.utils.data.Dataset",
    "iterable_dataset": "subclass cr.utils.data.IterableDataset",
    "tensor_dataset": "say cr.utils.data.TensorDataset",
    "sampler": "subclass cr.utils.data.Sampler",
    "is_dataloader": "say isinstance(x, cr.utils.data.DataLoader)",
    "as_iterator": "say iter(loader)",
    "is_nn_buffer": "say name in dict(module.named_buffers())",
    "nn_buffer": "say module.register_buffer(name, tensor)",
    "install_torch": "there is nothing to install besides the package",
    "lr_scheduler": "subclass cr.optim.lr_scheduler.LRScheduler",
    "lr_reduce_on_plateau": "say cr.optim.lr_scheduler.ReduceLROnPlateau",
    "optimizer_ignite": "subclass cr.optim.Optimizer",
    "OptimizerIgnite": "subclass cr.optim.Optimizer",
    "nnf_multi_head_attention_forward": "say cr.nn.MultiheadAttention, or "
    "cr.nn.functional.scaled_dot_product_attention",
    "torch_arange": "say cr.arange, which begins at 0 and leaves out the end",
    "torch_cfloat128": "say cr.complex128",
    "torch_cfloat64": "say cr.complex64",
    "is_nn_module": "say isinstance(x, cr.nn.Module)",
    "is_nn_parameter": "say isinstance(x, cr.nn.Parameter)",
    "is_optimizer": "say isinstance(x, cr.optim.Optimizer)",
    "is_torch_device": "say isinstance(x, cr.device)",
    "is_torch_dtype": "say isinstance(x, cr.dtype)",
    "is_undefined_tensor": "say x is None",
    "jit_compile": "say cr.compile(f)",
    "load_state_dict": "say module.load_state_dict(cr.load(path))",
    "local_device": "say with cr.device(name):",
    "loop": "write a for loop: for batch in loader:",
    "enumerate": "write a for loop: for batch in loader:",
    "nn_module_dict": "say cr.nn.ModuleDict",
    "nn_prune_head": "say cr.nn.Sequential(*list(net.children())[:-n])",
    "optimizer": "subclass cr.optim.Optimizer",
    "optim_required": "an option without a default is a required argument of __init__",
    "slc": "write x[start:stop:step], from 0 and without the end",
    "torch_index": "say i for an index: they are from 0",
    "torch_serialize": "say cr.save(x, io.BytesIO())",
    "torch_install_path": "there is nothing to install besides the package",
    "torch_reduction_mean": 'say reduction="mean"',
    "torch_reduction_none": 'say reduction="none"',
    "torch_reduction_sum": 'say reduction="sum"',
    "with_device": "say with cr.device(name):",
    "with_torch_manual_seed": "say cr.manual_seed(seed), or pass generator=cr.Generator()",
    "local_torch_manual_seed": "say cr.manual_seed(seed), or pass generator=cr.Generator()",
    "with_autocast": "say with cr.autocast(device_type):",
    "local_autocast": "say with cr.autocast(device_type):",
    "set_autocast": "say with cr.autocast(device_type):",
    "unset_autocast": "say with cr.autocast(device_type, enabled=False):",
}
_R_ENDINGS = ("", "lr", "loss", "format")


def _of_r(name: str) -> str:
    """Return what to say for a name of torch for R, "" if it has none of its prefixes."""
    if name in _R_NAMES:
        return _R_NAMES[name]
    known = False
    for prefix, places in _R_PREFIXES.items():
        rest = name.removeprefix(prefix)
        if rest == name or not rest:
            continue
        known = True
        for place in places.split():
            mend = _like(rest, place)
            if mend:
                is_block = prefix in ("with_", "local_")
                return f"say with {mend.removeprefix('say ')}():" if is_block else mend
    return _NO_COUNTERPART if known else ""


_NO_COUNTERPART = "this name of torch for R has no counterpart"


def _like(name: str, place: str) -> str:
    """Return what to say for a name in snake case that means one of a module."""
    module = "chainrule" if place == "." else f"chainrule.{place}"
    path = "" if place == "." else f"{place}."
    home: Any = import_module(module)
    names = [
        each
        for each in sorted({*vars(home), *getattr(home, "__all__", ())})
        if not each.startswith("_") and not isinstance(vars(home).get(each), ModuleType)
    ]
    flat = {each.replace("_", "").lower(): f"say cr.{path}{each}" for each in names}
    flat |= {
        each.replace("_", "").lower(): mend
        for (owner, each), mend in _MENDS.items()
        if owner == module
    }
    if name in names:
        return f"say cr.{path}{name}"
    plain = name.replace("_", "").lower()
    for ending in _R_ENDINGS:
        found = flat.get(plain + ending) or flat.get(plain.removesuffix(ending))
        if found:
            return found
    first, _, rest = name.partition("_")
    inner = getattr(home, first, None) if rest else None
    return (
        f"say cr.{path}{first}.{rest}"
        if isinstance(inner, ModuleType) and hasattr(inner, rest)
        else ""
    )


# --- the error ------------------------------------------------------------------------------------


class ClassInLowerCase(ModuleType):
    """A module that has the name of a class in lower case, and says so where it is called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        package, _, name = self.__name__.rpartition(".")
        mend = _like(name, package.removeprefix("chainrule."))
        raise TypeError(f"{self.__name__} is a module" + (mend and f": {mend}"))


def missing(module: str, name: str) -> AttributeError | ImportError:
    """Return the error for a missing name of a module."""
    lacks = f"module {module!r} has no attribute {name!r}"
    mend = _MENDS.get((module, name))
    if not mend and name[:1] != "_":
        mend = _of_r(name) if module == "chainrule" else ""
        if not mend or mend is _NO_COUNTERPART:
            mend = _elsewhere(module, name) or _close(module, name) or mend
    if mend and _is_import(sys._getframe(1)):
        return ImportError(f"cannot import name {name!r} from {module!r}: {mend}", name=name)
    return AttributeError(f"{lacks}: {mend}" if mend else lacks)


def _is_import(frame: FrameType | None) -> bool:
    """Whether the user executes ``from module import name``, which hides an AttributeError."""
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("chainrule"):
        frame = frame.f_back
    return frame is not None and opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"


def mend_of_module(name: str) -> str:
    """Return what to say for a module that PyTorch has and chainrule doesn't, "" if unknown."""
    package, _, last = name.rpartition(".")
    return _MENDS.get((package, last), "")


def submodule(package: str, name: str) -> Any:
    """Return a module that only PyTorch has (see `module_aliases`), or raise `missing`."""
    try:
        return import_module(f"{package}.{name}")
    except ModuleNotFoundError:
        raise missing(package, name) from None


_HOMES = ("cuda", "autograd", "nn", "optim", "optim.lr_scheduler", "utils.data", "distributions")


def _elsewhere(module: str, name: str) -> str:
    """Return what to say for a name of another module: a class, or a function of NumPy's."""
    if module == "chainrule.nn" and name in import_module(f"{module}.functional").__all__:
        return f"say cr.nn.functional.{name}"
    if module != "chainrule":
        return ""
    if name in import_module("chainrule.nn.functional").__all__:
        return f"say cr.nn.functional.{name}, with the arguments of PyTorch's"
    if name[:1].isupper():
        found = [home for home in _HOMES if name in import_module(f"chainrule.{home}").__all__]
        return f"say cr.{found[0]}.{name}" if found else ""
    if name.startswith("reduce_"):  # of TensorFlow
        return _like(name.removeprefix("reduce_"), ".")
    of_numpy = getattr(np, name, None)
    if callable(of_numpy) and of_numpy in import_module("chainrule.interop.table").RULES:
        return f"say np.{name}, which takes Tensors"
    return ""


def _close(module: str, name: str) -> str:
    """Return the name that is spelt nearly like a missing one."""
    import difflib  # for errors alone

    home = sys.modules[module]
    names = [*vars(home), *getattr(home, "__all__", ())]
    found = difflib.get_close_matches(name, names, 1, 0.8)
    return f"did you mean {found[0]!r}?" if found and found[0][:1] != "_" else ""
