"""Names of PyTorch that chainrule doesn't have, with their replacements for error messages."""

from __future__ import annotations

from collections.abc import Iterable

_INSTEAD = {
    "chainrule": {
        "bfloat16": "NumPy has no such numbers. Use float32, or float16 for 16 bits with fewer "
        "exponents",
        "save load": "write arrays, numpy.savez(file, weight=weight.detach().numpy()), and read "
        "them with numpy.load; leaves can be pickled",
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
        "Module Sequential ModuleList ModuleDict ParameterList ParameterDict": "a network is a "
        "function of its parameters, or a class of your own that keeps them in a list, for "
        "cr.optim; layers other than nn.Linear are functions of nn.functional",
        "Parameter": "a parameter is a leaf that requires grad: values.requires_grad_()",
        "init": "tensors fill themselves, under no_grad(): w.uniform_(-a, a), w.normal_(0, std), "
        "b.zero_()",
        "RNN RNNCell LSTM LSTMCell GRU GRUCell": "write the cell with nn.functional.linear, tanh() "
        "and sigmoid(), and loop in Python, or with cr.scan",
        "MultiheadAttention Transformer TransformerEncoder TransformerEncoderLayer "
        "TransformerDecoder TransformerDecoderLayer": "compose it of nn.Linear and "
        "nn.functional.scaled_dot_product_attention",
        "BCELoss": "say nn.functional.binary_cross_entropy(input, target)",
        "BCEWithLogitsLoss": "say nn.functional.binary_cross_entropy_with_logits(input, target)",
        "Flatten Unflatten": "tensors have it as a method",
        "ZeroPad1d ZeroPad2d ConstantPad1d ConstantPad2d ReflectionPad1d ReflectionPad2d "
        "ReplicationPad1d ReplicationPad2d": "call nn.functional.pad",
        "Identity": "leave it out",
        "DataParallel": "a process computes alone",
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


def missing(module: str, name: str, functions: Iterable[str] = ()) -> AttributeError:
    """Return the error for a missing name of a module; `functions` are those of `nn.functional`."""
    mend = _MENDS.get((module, name)) or _as_function(name, functions)
    lacks = f"module {module!r} has no attribute {name!r}"
    return AttributeError(f"{lacks}: {mend}" if mend else lacks)


def _as_function(layer: str, functions: Iterable[str]) -> str:
    """Return advice on the function behind a class like `Conv2d`, `MSELoss` or `BatchNorm1d`."""
    if not layer[:1].isupper():
        return ""
    plain = layer.lower()
    known = {function.replace("_", ""): function for function in functions if function[-1] != "_"}
    for spelling in (plain, plain.removesuffix("loss"), plain.rstrip("123d")):
        if spelling in known:
            function = known[spelling]
            with_weights = ", on weights that you keep" if function in _WITH_WEIGHTS else ""
            return f"call nn.functional.{function}{with_weights}"
    return ""


_WITH_WEIGHTS = {
    *(f"conv{n}d" for n in (1, 2, 3)),
    *(f"conv_transpose{n}d" for n in (1, 2, 3)),
    *(f"{of}_norm" for of in ("batch", "layer", "group", "instance", "rms")),
    *("embedding", "embedding_bag", "bilinear", "prelu"),
}
