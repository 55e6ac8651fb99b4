"""Object code of loops, by Numba, which is imported when a loop is first compiled."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.util
import os
import threading
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import numpy as np

from chainrule.compiler.codegen.run import defined
from chainrule.compiler.native import vector_math
from chainrule.compiler.native.loop_nest import LOOP
from chainrule.compiler.native.scalar_codegen import CODES
from chainrule.compiler.native.threads.worker import SHARE
from chainrule.errors import CompileError

DATA = object.__basicsize__
"""Where an array's structure has the address of its data: behind what all objects have."""

_NAMES = {name for name, value in vars(vector_math).items() if isinstance(value, FunctionType)}
lock = threading.RLock()
"""Held by who makes machine code. A fork waits for it: a child has no thread that would let go of
it, or of what Numba holds meanwhile."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
    )


@functools.cache
def is_installed() -> bool:
    """Say whether Numba can be imported, without importing it."""
    return importlib.util.find_spec("numba") is not None


@functools.cache
def numba() -> Any:
    """Return Numba."""
    try:
        import numba as found
    except ImportError as error:
        raise CompileError(
            "compile(backend='native') needs Numba: pip install 'chainrule[native]', or "
            "backend='numpy'"
        ) from error
    return found


@functools.cache
def is_usable() -> bool:
    """Import Numba, and say whether that works: it is particular about NumPy's version."""
    try:
        numba()
    except CompileError:
        return False
    return True


INTERLEAVED = 4
"""So many vectors are computed side by side in a long loop. LLVM takes one where a formula is long;
but its operations wait for one another, and the processor for them."""


def object_code(
    text: str,
    types: tuple[str, ...],
    calls: frozenset[str],
    long: bool,
    name: str,
    shared: bool = False,
) -> bytes:
    """Return the object code of a function called `loop`, under a name, for Python to call.

    `types` says what each argument is: a code of `CODES` for the array of such elements, whose
    places are the loop's own business, `n` for an integer, `d` for a number. `long` are loops of so
    many turns that the rest which fills no vectors doesn't matter. The turns of those that are
    `shared` are done by several threads: they get start and stop first, and Python gives the words
    of `spinning`, how many turns there are and how many at a time instead.
    """
    core = numba().core
    target = core.registry.cpu_target
    of_code = {code: core.types.CPointer(_element(code)) for code in CODES.values()}
    of_code |= {"n": core.types.int64, "d": core.types.float64}
    with lock, _no_collection():
        function = plain(text, {other: inlined(other) for other in calls})
        library = target.target_context.codegen().create_library(name)
        # What simplifies functions one by one is done again when they are together.
        library.add_llvm_module = library._final_module.link_in
        if long:
            add = library.add_ir_module
            library.add_ir_module = lambda module: add(_interleaved(module))

        if shared:
            ends = [core.types.int64] * 2
            loop = _compiled(library, function, [*ends, *[of_code[t] for t in types]])
            module = _shared_entry(library, loop, types, name)
        else:
            loop = _compiled(library, function, [of_code[t] for t in types])
            module = _entry(library, loop, types, name)
        library.add_ir_module(module)
        for other in library._linking_libraries:
            library._final_module.link_in(other._get_module_for_linking(), preserve=True)
        library._optimize_final_module()
        return bytes(_machine().emit_object(library._final_module))


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Collect no garbage meanwhile: to look at all that Numba makes takes a tenth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _compiled(library: Any, function: Callable[..., None], arguments: list[Any]) -> Any:
    """Add a function to a library, and return what Numba knows of it."""
    core = numba().core
    target = core.registry.cpu_target
    return core.compiler.compile_extra(
        *(target.typing_context, target.target_context, function, tuple(arguments)),
        *(core.types.void, _flags(), {}, library),
    ).fndesc


def plain(text: str, calls: dict[str, Any]) -> Callable[..., None]:
    """Return the function of a loop's source as Python runs it."""
    scope: dict[str, Any] = {code: dtype.type for dtype, code in CODES.items()}
    scope |= {"u8": np.uint64, "np": np, "INF": np.inf, "NAN": np.nan, "__name__": __name__}
    return defined(text, LOOP, f"<{LOOP} {{}}>", scope | calls)


def _element(code: str) -> Any:
    """Return Numba's type of an element; truth values are bytes."""
    types = numba().core.types
    return types.uint8 if code == "b1" else getattr(types, np.dtype(code).name)


def _flags() -> Any:
    """Return how Numba compiles a loop: nothing in it is for Numba to write in another way.

    No array of a loop is memory of another's, by `noalias`: without it, LLVM asks at run time, and
    gives up where arrays are many.
    """
    flags = numba().core.compiler.Flags()
    flags.error_model, flags.noalias = "numpy", True
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.nrt = flags.enable_looplift = flags.enable_pyobject = False
    flags.no_rewrites = True
    return flags


def _interleaved(module: Any) -> Any:
    """Tell LLVM how many vectors the loops of a module compute side by side."""
    from llvmlite import ir

    count = ir.Constant(ir.IntType(32), INTERLEAVED)
    for function in module.functions:
        order = {block: number for number, block in enumerate(function.blocks)}
        for block, number in order.items():
            targets = [b for b in block.terminator.operands if order.get(b, number + 1) <= number]
            if targets:  # the end of a loop's body goes back to its head
                hint = module.add_metadata(["llvm.loop.interleave.count", count])
                own = module.add_metadata([f"{function.name} {number}"])  # LLVM wants nodes
                loop = module.add_metadata([hint, own])
                loop.operands = (loop, *loop.operands)  # as LLVM knows a loop by
                block.terminator.set_metadata("llvm.loop", loop)
    return module


def _entry(library: Any, loop: Any, types: tuple[str, ...], name: str) -> Any:
    """Return a module with a C function for Python, which runs a loop."""
    python = _Python(library, name, types)
    _run(python.module, python.builder, loop, python.given)
    return python.ended()


def _shared_entry(library: Any, loop: Any, types: tuple[str, ...], name: str) -> Any:
    """Return the same, which has threads share a loop.

    They call a task, with the address of the arguments, each in a word of 64 bits.
    """
    from llvmlite import ir

    python = _Python(library, name, ("i8", "n", "n", *types))
    module, builder = python.module, python.builder
    team, turns, step, *given = python.given
    word, none = ir.IntType(64), ir.VoidType()
    task = ir.Function(module, ir.FunctionType(none, [word] * 3), f"{name}_task")
    task.linkage = "internal"
    inner = ir.IRBuilder(task.append_basic_block())
    words = builder.alloca(word, len(given) or 1)
    arguments = [task.args[1], task.args[2]]
    source = inner.inttoptr(task.args[0], word.as_pointer())
    for place, value in enumerate(given):
        target = builder.gep(words, [word(place)])
        builder.store(value, builder.bitcast(target, value.type.as_pointer()))
        found = inner.gep(source, [word(place)])
        arguments.append(inner.load(inner.bitcast(found, value.type.as_pointer())))
    _run(module, inner, loop, arguments)
    inner.ret_void()
    address = builder.ptrtoint(words, word)
    kind = ir.FunctionType(none, [team.type, *[word] * 4]).as_pointer()
    with builder.if_else(builder.icmp_signed("<=", turns, step)) as (alone, together):
        with alone:
            builder.call(task, [address, word(0), turns])
        with together:
            share = builder.inttoptr(builder.load(builder.gep(team, [word(SHARE)])), kind)
            builder.call(share, [team, builder.ptrtoint(task, word), address, turns, step])
    return python.ended()


def _run(module: Any, builder: Any, function: Any, given: list[Any]) -> None:
    """Call a function that Numba has compiled."""
    from llvmlite import ir

    convention = numba().core.registry.cpu_target.target_context.call_conv
    kind = convention.get_function_type(function.restype, function.argtypes)
    callee = ir.Function(module, kind, function.llvm_func_name)
    convention.call_function(
        builder, callee, function.restype, function.argtypes, given, attrs=("noinline",)
    )


class _Python:
    """A C function for Python as it is written: it finds the data of arrays, and numbers.

    It takes an object that it returns, and an array of arguments, as METH_FASTCALL says. Other
    threads of Python run until it has ended.
    """

    def __init__(self, library: Any, name: str, types: tuple[str, ...]) -> None:
        from llvmlite import ir

        self.module = library.create_ir_module(name)
        number, anything = ir.IntType(64), ir.IntType(8).as_pointer()
        self._entry = self._imported(name, anything, anything, anything.as_pointer(), number)
        self.builder = builder = ir.IRBuilder(self._entry.append_basic_block())
        read = {
            "n": self._imported("PyLong_AsSsize_t", number, anything),
            "d": self._imported("PyFloat_AsDouble", ir.DoubleType(), anything),
        }
        self.given: list[Any] = []
        for place, code in enumerate(types):
            item = builder.load(builder.gep(self._entry.args[1], [number(place)]))
            if code in read:
                self.given.append(builder.call(read[code], [item]))
            else:
                kind = numba().core.types.CPointer(_element(code))
                context = numba().core.registry.cpu_target.target_context
                data = builder.gep(item, [number(DATA)])
                pointer = context.get_value_type(kind).as_pointer()
                self.given.append(builder.load(builder.bitcast(data, pointer)))
        self._state = builder.call(self._imported("PyEval_SaveThread", anything), [])

    def _imported(self, name: str, returned: Any, *arguments: Any) -> Any:
        from llvmlite import ir

        return ir.Function(self.module, ir.FunctionType(returned, arguments), name)

    def ended(self) -> Any:
        """Return the module, with the function's end."""
        from llvmlite import ir

        anything = ir.IntType(8).as_pointer()
        restore = self._imported("PyEval_RestoreThread", ir.VoidType(), anything)
        self.builder.call(restore, [self._state])
        hold = self._imported("Py_IncRef", ir.VoidType(), anything)
        self.builder.call(hold, [self._entry.args[0]])
        self.builder.ret(self._entry.args[0])
        return self.module


@functools.cache
def _machine() -> Any:
    """Return what makes object code for this processor, to be anywhere in memory."""
    from llvmlite import binding

    features = binding.get_host_cpu_features().flatten()
    target = binding.Target.from_triple(binding.get_process_triple())
    return target.create_target_machine(
        cpu=binding.get_host_cpu_name(), features=features, opt=3, reloc="pic", codemodel="small"
    )


_REORDERED = {"plus": {"reassoc"}, "times_plus": {"reassoc", "contract"}}
"""What LLVM may do to sums; elementary functions may round a product and a sum at once."""


@functools.cache
def inlined(name: str) -> Any:
    """Return an elementary function as what is compiled into loops."""
    with lock:
        if name not in _NAMES:  # what threads wait with, or multiply with
            from chainrule.compiler.native import gemm_microkernel
            from chainrule.compiler.native.threads import atomics

            return getattr(atomics, name, None) or gemm_microkernel.named(name)
        plain = getattr(vector_math, name)
        scope = dict(vars(vector_math))  # where it finds others that are compiled, too
        scope |= {other: inlined(other) for other in plain.__code__.co_names if other in _NAMES}
        function = FunctionType(plain.__code__, scope, name)
        flags = _REORDERED.get(name, {"contract"} if name[-3:-1] == "_f" else set())
        how = {"error_model": "numpy", "forceinline": True, "no_rewrites": True}
        return numba().njit(fastmath=flags, **how)(function)
