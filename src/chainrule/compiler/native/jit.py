"""Compilation of generated source to object code with LLVM, imported at first use."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import math
import os
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from chainrule.compiler.codegen.run import defined
from chainrule.compiler.native import (
    dense_kernels,
    fourier_kernels,
    gemm_microkernel,
    libm_beyond,
    trigonometry,
    vector_math,
)
from chainrule.compiler.native.llvm_codegen import Module
from chainrule.compiler.native.llvm_entry import add_entry, add_parallel_entry
from chainrule.compiler.native.loop_nest import LOOP_NAME
from chainrule.compiler.native.scalar_codegen import CODES
from chainrule.compiler.native.table_loop import run_table
from chainrule.compiler.native.threads.worker import SHARE
from chainrule.errors import CompileError
from chainrule.interrupts import uninterrupted, without_collector

ARRAY_DATA_OFFSET = object.__basicsize__
"""Offset in bytes of the data pointer in an array object: it follows the object header."""

_MAX_INTERLEAVED_LINES = 64
"""Number of lines up to which the vectors of a loop are interleaved: longer ones have enough
independent operations, and would take LLVM twice the time."""

lock = threading.RLock()
"""Held while machine code is compiled. A fork waits for it, since a child has no thread that would
release it or the locks of LLVM."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
    )


@functools.cache
def is_installed() -> bool:
    """Return whether llvmlite is installed, without importing it."""
    return uninterrupted(importlib.util.find_spec, "llvmlite") is not None


@functools.cache
def llvm() -> Any:
    """Return the module `llvmlite.binding`; raise with the install command if it is missing."""
    try:
        # An import that is cut off leaves packages without their submodules.
        binding = uninterrupted(importlib.import_module, "llvmlite.binding")
    except (ImportError, OSError) as error:
        raise CompileError(
            "compile(backend='native') needs llvmlite: pip install 'chainrule[native]', or "
            "backend='numpy'"
        ) from error
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@functools.cache
def is_usable() -> bool:
    """Return whether LLVM can be imported."""
    try:
        llvm()
    except CompileError:
        return False
    return True


def object_code(
    text: str, types: tuple[str, ...], long: bool, name: str, parallel: bool = False
) -> bytes:
    """Return the object code of a function called `loop`, exported as a Python-callable `name`.

    `types` has the type of each argument: a code of `CODES` for an array of such elements, `n` for
    an integer, `d` for a float. `long` loops have so many iterations that the remainder after the
    last full vector does not matter. The iterations of `parallel` loops are shared by threads: the
    loop takes start and stop first, and Python passes the words of `threads.worker`, the number of
    iterations and the number at a time instead.
    """

    def emitted() -> bytes:
        module = optimized_module(text, types, long, name, parallel)
        return bytes(target_machine().emit_object(module))

    with lock:  # the collector takes a tenth of the compile time
        return without_collector(emitted)


def optimized_module(
    text: str, types: tuple[str, ...], long: bool, name: str, parallel: bool = False
) -> Any:
    """Return the module of LLVM for which `object_code` emits the code."""
    binding = llvm()
    module = Module(interleaved=long and text.count("\n") <= _MAX_INTERLEAVED_LINES)
    kinds = [{"n": "i8", "d": "f8"}.get(code, f"*{code}") for code in types]
    module.add_source(text, LOOP_NAME, ["i8", "i8", *kinds] if parallel else kinds)
    if parallel:
        add_parallel_entry(module, LOOP_NAME, name, types, ARRAY_DATA_OFFSET, SHARE)
    else:
        add_entry(module, LOOP_NAME, name, types, ARRAY_DATA_OFFSET)
    machine = target_machine()
    parsed = binding.parse_assembly(module.text())
    parsed.verify()
    parsed.triple = binding.get_process_triple()
    parsed.data_layout = str(machine.target_data)
    # Level 3 takes up to twice the time: it writes longer loops out, which gains nothing.
    options = binding.create_pipeline_tuning_options(speed_level=2)
    has_loops = not any(map(gemm_microkernel.is_known, module.functions))  # whose vectors we choose
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = has_loops
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(parsed, builder)
    if libm_beyond.is_used(module.functions):
        inliner = binding.create_new_module_pass_manager()
        inliner.add_always_inliner_pass()
        inliner.add_sroa_pass()
        inliner.add_simplify_cfg_pass()
        inliner.run(parsed, builder)
    return parsed


def python_function(text: str) -> Callable[..., None]:
    """Return generated source as a Python function."""
    modules = dense_kernels, fourier_kernels, vector_math, trigonometry
    scope = {name: item for module in modules for name, item in vars(module).items()}
    scope |= {"__name__": __name__, "run_table": run_table}
    scope["math"] = SimpleNamespace(
        erfc=math.erfc, lgamma=_without_errors(math.lgamma), tgamma=_without_errors(math.gamma)
    )
    scope |= {code: dtype.type for dtype, code in CODES.items()}
    return defined(text, LOOP_NAME, f"<{LOOP_NAME} {{}}>", scope)


def _without_errors(function: Callable[[float], float]) -> Callable[[float], float]:
    """Return a function of `math` that returns infinities where it would raise."""

    def value(x: float) -> float:
        try:
            return function(x)
        except (OverflowError, ValueError):
            return math.inf

    return value


@functools.cache
def target_machine() -> Any:
    """Return the target machine for position-independent code of this processor."""
    binding = llvm()
    target = binding.Target.from_triple(binding.get_process_triple())
    return target.create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=",".join([binding.get_host_cpu_features().flatten(), *_avoided()]),
        opt=3,
        reloc="pic",
        codemodel="small",
    )


def _avoided() -> list[str]:
    """Return the features of this processor that LLVM must not use, each with a minus sign.

    LLVM 22 shortens VPMOV*2M of the registers 16 to 31 to instructions that only have 0 to 15:
    https://github.com/llvm/llvm-project/issues/191304.
    """
    binding = llvm()
    known = binding.get_host_cpu_features()
    if binding.llvm_version_info[0] < 22:
        return []
    return [f"-{name}" for name in ("avx512bw", "avx512dq") if known.get(name)]
