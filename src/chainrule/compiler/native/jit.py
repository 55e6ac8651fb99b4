"""Compilation of generated source to object code with Numba, imported at first use."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from chainrule.compiler.codegen.run import defined
from chainrule.compiler.native import vector_math
from chainrule.compiler.native.loop_nest import LOOP_NAME
from chainrule.compiler.native.scalar_codegen import CODES
from chainrule.compiler.native.threads.worker import SHARE
from chainrule.errors import CompileError
from chainrule.interrupts import uninterrupted, without_collector

ARRAY_DATA_OFFSET = object.__basicsize__
"""Offset in bytes of the data pointer in an array object: it follows the object header."""

_FUNCTION_NAMES = {
    name for name, value in vars(vector_math).items() if isinstance(value, FunctionType)
}
lock = threading.RLock()
"""Held while machine code is compiled. A fork waits for it, since a child has no thread that would
release it or the locks of Numba."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
    )


@functools.cache
def is_installed() -> bool:
    """Return whether Numba is installed, without importing it."""
    return uninterrupted(importlib.util.find_spec, "numba") is not None


@functools.cache
def numba() -> Any:
    """Return the module Numba; raise with the install command if it is missing."""
    try:
        # An import that is cut off leaves packages without their submodules.
        return uninterrupted(importlib.import_module, "numba")
    except ImportError as error:
        raise CompileError(
            "compile(backend='native') needs Numba: pip install 'chainrule[native]', or "
            "backend='numpy'"
        ) from error


@functools.cache
def is_usable() -> bool:
    """Return whether Numba can be imported, which depends on NumPy's version."""
    try:
        numba()
    except CompileError:
        return False
    return True


INTERLEAVE_COUNT = 4
"""Number of interleaved vectors in long loops. For long expressions LLVM chooses one, but then the
latency of dependent operations limits the speed."""


def object_code(
    text: str,
    types: tuple[str, ...],
    calls: frozenset[str],
    long: bool,
    name: str,
    parallel: bool = False,
) -> bytes:
    """Return the object code of a function called `loop`, exported as a Python-callable `name`.

    `types` has the type of each argument: a code of `CODES` for an array of such elements, `n` for
    an integer, `d` for a float. `long` loops have so many iterations that the remainder after the
    last full vector does not matter. The iterations of `parallel` loops are shared by threads: the
    loop takes start and stop first, and Python passes the words of `threads.worker`, the number of
    iterations and the number at a time instead.
    """
    with lock:  # the collector takes a tenth of the compile time
        return without_collector(_object_code, text, types, calls, long, name, parallel)


def _object_code(
    text: str,
    types: tuple[str, ...],
    calls: frozenset[str],
    long: bool,
    name: str,
    parallel: bool,
) -> bytes:
    core = numba().core
    target = core.registry.cpu_target
    of_code = {code: core.types.CPointer(_element(code)) for code in CODES.values()}
    of_code |= {"n": core.types.int64, "d": core.types.float64}
    function = python_function(text, {other: inline_function(other) for other in calls})
    library = target.target_context.codegen().create_library(name)
    # Skip the optimisation of single functions: it is repeated for the linked module.
    library.add_llvm_module = library._final_module.link_in
    if long:
        add = library.add_ir_module
        library.add_ir_module = lambda module: add(_interleave(module))

    if parallel:
        ends = [core.types.int64] * 2
        loop = _compile(library, function, [*ends, *[of_code[t] for t in types]])
        module = _parallel_entry(library, loop, types, name)
    else:
        loop = _compile(library, function, [of_code[t] for t in types])
        module = _entry(library, loop, types, name)
    library.add_ir_module(module)
    for other in library._linking_libraries:
        library._final_module.link_in(other._get_module_for_linking(), preserve=True)
    library._optimize_final_module()
    return bytes(_target_machine().emit_object(library._final_module))


def _compile(library: Any, function: Callable[..., None], arguments: list[Any]) -> Any:
    """Add a function to a library, and return Numba's descriptor of it."""
    core = numba().core
    target = core.registry.cpu_target
    return core.compiler.compile_extra(
        *(target.typing_context, target.target_context, function, tuple(arguments)),
        *(core.types.void, _flags(), {}, library),
    ).fndesc


def python_function(text: str, calls: dict[str, Any]) -> Callable[..., None]:
    """Return generated source as a Python function."""
    scope: dict[str, Any] = {code: dtype.type for dtype, code in CODES.items()}
    scope |= {"u8": np.uint64, "np": np, "INF": np.inf, "NAN": np.nan, "__name__": __name__}
    return defined(text, LOOP_NAME, f"<{LOOP_NAME} {{}}>", scope | calls)


def _element(code: str) -> Any:
    """Return Numba's type of an element; booleans are bytes."""
    types = numba().core.types
    return types.uint8 if code == "b1" else getattr(types, np.dtype(code).name)


def _flags() -> Any:
    """Return Numba's compiler flags, without its rewrites and Python wrappers.

    `noalias` states that arrays do not overlap; without it, LLVM checks at run time, and does not
    vectorise loops with many arrays.
    """
    flags = numba().core.compiler.Flags()
    flags.error_model, flags.noalias = "numpy", True
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.nrt = flags.enable_looplift = flags.enable_pyobject = False
    flags.no_rewrites = True
    return flags


def _interleave(module: Any) -> Any:
    """Set the interleave count of all loops of a module."""
    from llvmlite import ir

    count = ir.Constant(ir.IntType(32), INTERLEAVE_COUNT)
    for function in module.functions:
        order = {block: number for number, block in enumerate(function.blocks)}
        for block, number in order.items():
            targets = [b for b in block.terminator.operands if order.get(b, number + 1) <= number]
            if targets:  # a back edge ends a loop
                hint = module.add_metadata(["llvm.loop.interleave.count", count])
                own = module.add_metadata([f"{function.name} {number}"])  # LLVM requires a node
                loop = module.add_metadata([hint, own])
                loop.operands = (loop, *loop.operands)  # a self-reference identifies a loop
                block.terminator.set_metadata("llvm.loop", loop)
    return module


def _entry(library: Any, loop: Any, types: tuple[str, ...], name: str) -> Any:
    """Return a module with an entry point for Python that runs a loop."""
    entry = _EntryPoint(library, name, types)
    _call_loop(entry.module, entry.builder, loop, entry.arguments)
    return entry.finish()


def _parallel_entry(library: Any, loop: Any, types: tuple[str, ...], name: str) -> Any:
    """Return a module with an entry point that runs a loop on several threads.

    Threads call a task with the address of the arguments, each in a word of 64 bits.
    """
    from llvmlite import ir

    entry = _EntryPoint(library, name, ("i8", "n", "n", *types))
    module, builder = entry.module, entry.builder
    team, iterations, step, *given = entry.arguments
    word, none = ir.IntType(64), ir.VoidType()
    task = ir.Function(module, ir.FunctionType(none, [word] * 3), f"{name}_task")
    task.linkage = "internal"
    inner = ir.IRBuilder(task.append_basic_block())
    words = builder.alloca(word, len(given) or 1)
    arguments = [task.args[1], task.args[2]]
    source = inner.inttoptr(task.args[0], word.as_pointer())
    for i, value in enumerate(given):
        target = builder.gep(words, [word(i)])
        builder.store(value, builder.bitcast(target, value.type.as_pointer()))
        found = inner.gep(source, [word(i)])
        arguments.append(inner.load(inner.bitcast(found, value.type.as_pointer())))
    _call_loop(module, inner, loop, arguments)
    inner.ret_void()
    address = builder.ptrtoint(words, word)
    kind = ir.FunctionType(none, [team.type, *[word] * 4]).as_pointer()
    with builder.if_else(builder.icmp_signed("<=", iterations, step)) as (alone, together):
        with alone:
            builder.call(task, [address, word(0), iterations])
        with together:
            share = builder.inttoptr(builder.load(builder.gep(team, [word(SHARE)])), kind)
            builder.call(share, [team, builder.ptrtoint(task, word), address, iterations, step])
    return entry.finish()


def _call_loop(module: Any, builder: Any, function: Any, arguments: list[Any]) -> None:
    """Emit a call of a function that Numba has compiled."""
    from llvmlite import ir

    convention = numba().core.registry.cpu_target.target_context.call_conv
    kind = convention.get_function_type(function.restype, function.argtypes)
    callee = ir.Function(module, kind, function.llvm_func_name)
    convention.call_function(
        builder, callee, function.restype, function.argtypes, arguments, attrs=("noinline",)
    )


class _EntryPoint:
    """Emitter of a C function for Python, which unpacks arrays and numbers.

    It takes an object, which it returns, and an array of arguments (METH_FASTCALL). It releases the
    interpreter lock while it runs.
    """

    def __init__(self, library: Any, name: str, types: tuple[str, ...]) -> None:
        from llvmlite import ir

        self.module = library.create_ir_module(name)
        number, pointer_type = ir.IntType(64), ir.IntType(8).as_pointer()
        self._entry = self._declare(
            name, pointer_type, pointer_type, pointer_type.as_pointer(), number
        )
        self.builder = builder = ir.IRBuilder(self._entry.append_basic_block())
        read = {
            "n": self._declare("PyLong_AsSsize_t", number, pointer_type),
            "d": self._declare("PyFloat_AsDouble", ir.DoubleType(), pointer_type),
        }
        self.arguments: list[Any] = []
        for i, code in enumerate(types):
            item = builder.load(builder.gep(self._entry.args[1], [number(i)]))
            if code in read:
                self.arguments.append(builder.call(read[code], [item]))
            else:
                kind = numba().core.types.CPointer(_element(code))
                context = numba().core.registry.cpu_target.target_context
                data = builder.gep(item, [number(ARRAY_DATA_OFFSET)])
                pointer = context.get_value_type(kind).as_pointer()
                self.arguments.append(builder.load(builder.bitcast(data, pointer)))
        self._state = builder.call(self._declare("PyEval_SaveThread", pointer_type), [])

    def _declare(self, name: str, returned: Any, *arguments: Any) -> Any:
        from llvmlite import ir

        return ir.Function(self.module, ir.FunctionType(returned, arguments), name)

    def finish(self) -> Any:
        """Emit the end of the function, and return the module."""
        from llvmlite import ir

        pointer_type = ir.IntType(8).as_pointer()
        restore = self._declare("PyEval_RestoreThread", ir.VoidType(), pointer_type)
        self.builder.call(restore, [self._state])
        hold = self._declare("Py_IncRef", ir.VoidType(), pointer_type)
        self.builder.call(hold, [self._entry.args[0]])
        self.builder.ret(self._entry.args[0])
        return self.module


@functools.cache
def _target_machine() -> Any:
    """Return the target machine for position-independent code of this processor."""
    from llvmlite import binding

    features = binding.get_host_cpu_features().flatten()
    target = binding.Target.from_triple(binding.get_process_triple())
    return target.create_target_machine(
        cpu=binding.get_host_cpu_name(), features=features, opt=3, reloc="pic", codemodel="small"
    )


_FASTMATH = {"plus": {"reassoc"}, "times_plus": {"reassoc", "contract"}}
"""Fast-math flags of sums; elementary functions have only `contract` (fused multiply-add)."""


@functools.cache
def inline_function(name: str) -> Any:
    """Return an elementary function compiled for inlining into loops."""
    with lock:
        if name not in _FUNCTION_NAMES:  # an intrinsic of threads or of products
            from chainrule.compiler.native import gemm_microkernel
            from chainrule.compiler.native.threads import atomics

            return getattr(atomics, name, None) or gemm_microkernel.intrinsic_for(name)
        plain = getattr(vector_math, name)
        scope = dict(vars(vector_math))  # with other functions compiled, too
        scope |= {
            other: inline_function(other)
            for other in plain.__code__.co_names
            if other in _FUNCTION_NAMES
        }
        function = FunctionType(plain.__code__, scope, name)
        flags = _FASTMATH.get(name, {"contract"} if name[-3:-1] == "_f" else set())
        how = {"error_model": "numpy", "forceinline": True, "no_rewrites": True}
        return numba().njit(fastmath=flags, **how)(function)
