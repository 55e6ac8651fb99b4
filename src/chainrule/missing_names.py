"""Names of PyTorch that chainrule doesn't have, with their replacements for error messages."""

from __future__ import annotations

_INSTEAD = {
    "chainrule": {
        "bfloat16": "NumPy has no such numbers. Use float32, or float16 for 16 bits with fewer "
        "exponents",
        "are_deterministic_algorithms_enabled": "there is "
        "nothing to choose: results are always deterministic",
        "set_default_device get_default_device": "functions that make tensors take device=",
        "sparse sparse_coo_tensor sparse_csr_tensor": "tensors are dense. index_add and "
        "scatter_add sum at indices; scipy.sparse fits into an autograd_function",
        "symeig": "say linalg.eigh",
        "eig": "say linalg.eig",
        "lstsq": "say linalg.lstsq",
        "solve": "say linalg.solve",
        "matrix_rank": "say linalg.matrix_rank",
        "range": "say arange, which leaves out the end",
        "profiler": "cr.profile measures compiled functions, cProfile and perf all others",
        "channels_last contiguous_format preserve_format memory_format": "results have NumPy's "
        "order in memory, and contiguous() makes it so",
    },
    "chainrule.cuda": {
        "FloatTensor DoubleTensor HalfTensor LongTensor IntTensor ByteTensor": "make a tensor on "
        "the CPU, and move it with .cuda()",
        "Stream Event stream": "work on a GPU is done in order; cr.cuda.synchronize() waits for it",
    },
    "chainrule.distributed": {
        "init_process_group get_rank get_world_size all_reduce barrier": "a process computes "
        "alone; cr.set_num_threads says with how many threads",
    },
    "chainrule.jit": {
        "save load ScriptModule": "cr.compile compiles what runs; state_dict() is what is kept",
    },
    "chainrule.onnx": {
        "export": "keep net.state_dict(), which PyTorch loads, and export from there",
    },
    "chainrule.nn.parallel": {
        "DistributedDataParallel": "a process computes alone",
    },
    "chainrule.nn": {
        "SyncBatchNorm": "a process computes alone: say nn.BatchNorm2d",
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
