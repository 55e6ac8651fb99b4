"""Names of PyTorch that chainrule doesn't have, with their replacements for error messages."""

from __future__ import annotations

_INSTEAD = {
    "chainrule": {
        "sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor": "say sparse_coo_tensor, whose "
        "products are computed by rows, too",
        "symeig": "say linalg.eigh",
        "eig": "say linalg.eig",
        "lstsq": "say linalg.lstsq",
        "solve": "say linalg.solve",
        "matrix_rank": "say linalg.matrix_rank",
        "range": "say arange, which leaves out the end",
        "profiler": "cr.profile measures compiled functions, cProfile and perf all others",
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
