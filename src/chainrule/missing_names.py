"""Names of PyTorch that chainrule doesn't have, with their replacements for error messages."""

from __future__ import annotations

_INSTEAD = {
    "chainrule": {
        "bfloat16": "NumPy has no such numbers. Use float32, or float16 for 16 bits with fewer "
        "exponents",
        "autocast amp": "convert what shall be in lower precision, with .half(), and keep the "
        "parameters in float32",
        "backends use_deterministic_algorithms are_deterministic_algorithms_enabled": "there is "
        "nothing to choose: results are always deterministic",
        "set_default_device get_default_device": "functions that make tensors take device=",
        "set_default_tensor_type": "say set_default_dtype(cr.float64)",
        "set_float32_matmul_precision": "float32 products are always exact to float32; cr.blas "
        "tells which kernels compute them",
        "distributions": "write the density, and draw with randn(), rand(), poisson(), "
        "multinomial() and their kin",
        "sparse sparse_coo_tensor sparse_csr_tensor": "tensors are dense. index_add and "
        "scatter_add sum at indices; scipy.sparse fits into an autograd_function",
        "Size": "shapes are tuples",
        "symeig": "say linalg.eigh",
        "eig": "say linalg.eig",
        "lstsq": "say linalg.lstsq",
        "solve": "say linalg.solve",
        "matrix_rank": "say linalg.matrix_rank",
        "range": "say arange, which leaves out the end",
        "jit": "say cr.compile",
        "distributed multiprocessing": "a process computes alone; cr.set_num_threads says with "
        "how many threads",
        "profiler": "cr.profile measures compiled functions, cProfile and perf all others",
        "channels_last contiguous_format preserve_format memory_format": "results have NumPy's "
        "order in memory, and contiguous() makes it so",
        **{
            f"{title}Tensor": f"say cr.tensor(values, dtype=cr.{dtype}), or cr.empty(sizes, "
            f"dtype=cr.{dtype})"
            for title, dtype in {
                "Half": "float16",
                "Float": "float32",
                "Double": "float64",
                "Byte": "uint8",
                "Char": "int8",
                "Short": "int16",
                "Int": "int32",
                "Long": "int64",
                "Bool": "bool",
            }.items()
        },
    },
    "chainrule.cuda": {
        "manual_seed manual_seed_all": "cr.manual_seed() seeds all devices",
        "synchronize empty_cache": "there is nothing to wait for, or to free",
        "device_count get_device_name current_device set_device": "a tensor is made on a device "
        "with device=, and x.device tells its own",
        "amp": "convert what shall be in lower precision, with .half()",
    },
    "chainrule.nn": {
        "DataParallel SyncBatchNorm": "a process computes alone",
        "LazyLinear LazyConv1d LazyConv2d LazyConv3d LazyBatchNorm1d LazyBatchNorm2d "
        "LazyBatchNorm3d": "give the layer without Lazy its input size",
        "FractionalMaxPool2d FractionalMaxPool3d": "say nn.AdaptiveMaxPool2d, whose windows are "
        "not random",
    },
    "chainrule.optim": {
        "SparseAdam": "gradients are dense: say optim.Adam",
    },
    "chainrule.utils": {
        "tensorboard": "losses are numbers after .item(): print them, or plot them with matplotlib",
    },
    "chainrule.autograd": {
        "forward_ad": "forward mode is cr.jvp(function, primals, tangents)",
        "profiler": "cr.profile measures compiled functions, cProfile and perf all others",
    },
}
_MENDS = {
    (module, name): mend
    for module, mends in _INSTEAD.items()
    for names, mend in mends.items()
    for name in names.split()
}


def missing(module: str, name: str) -> AttributeError:
    """Return the error for a missing name of a module."""
    mend = _MENDS.get((module, name))
    lacks = f"module {module!r} has no attribute {name!r}"
    return AttributeError(f"{lacks}: {mend}" if mend else lacks)
