"""Object code of loops, by Numba, which is imported when a loop is first compiled."""

from __future__ import annotations

import functools
import importlib.util
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from chainrule.compiler.native import elementary
from chainrule.compiler.native.nest import LOOP
from chainrule.compiler.native.scalars import CODES
from chainrule.compiler.runner import defined
from chainrule.errors import CompileError

DATA = object.__basicsize__
"""Where an array's structure has the address of its data: behind what all objects have."""

_NAMES = {name for name, value in vars(elementary).items() if isinstance(value, FunctionType)}
_lock = threading.RLock()


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
    text: str, types: tuple[str, ...], calls: frozenset[str], long: bool, name: str
) -> bytes:
    """Return the object code of a function called `loop`, under a name, for Python to call.

    `types` says what each argument is: a code of `CODES` for the array of such elements, whose
    places are the loop's own business, or `n` for an integer. `long` are loops of so many turns
    that the rest which fills no vectors doesn't matter.
    """
    core = numba().core
    target = core.registry.cpu_target
    of_code = {code: core.types.CPointer(_element(code)) for code in CODES.values()}
    arguments = tuple([core.types.int64 if t == "n" else of_code[t] for t in types])
    with _lock:
        function = plain(text, {other: inlined(other) for other in calls})
        library = target.target_context.codegen().create_library(name)
        if long:
            add = library.add_ir_module
            library.add_ir_module = lambda module: add(_interleaved(module))
        compiled = core.compiler.compile_extra(
            *(target.typing_context, target.target_context, function, arguments),
            *(core.types.void, _flags(), {}, library),
        )
        library.add_ir_module(_entry(library, compiled.fndesc, types, name))
        for other in library._linking_libraries:
            library._final_module.link_in(other._get_module_for_linking(), preserve=True)
        library._optimize_final_module()
        return bytes(_machine().emit_object(library._final_module))


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
    """Return how Numba compiles a loop.

    No array of a loop is memory of another's, by `noalias`: without it, LLVM asks at run time, and
    gives up where arrays are many.
    """
    flags = numba().core.compiler.Flags()
    flags.error_model, flags.noalias = "numpy", True
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.nrt = flags.enable_looplift = flags.enable_pyobject = False
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
                loop = module.add_metadata([hint, f"{function.name} {number}"])
                loop.operands = (loop, *loop.operands)  # as LLVM knows a loop by
                block.terminator.set_metadata("llvm.loop", loop)
    return module


def _entry(library: Any, function: Any, types: tuple[str, ...], name: str) -> Any:
    """Return a module with a C function for Python: it finds the data of arrays, and runs the loop.

    It takes an object that it returns, and an array of arguments, as METH_FASTCALL says. Other
    threads of Python run meanwhile.
    """
    from llvmlite import ir

    context = numba().core.registry.cpu_target.target_context
    module = library.create_ir_module(name)
    number, anything = ir.IntType(64), ir.IntType(8).as_pointer()

    def imported(name: str, returned: Any, *arguments: Any) -> Any:
        return ir.Function(module, ir.FunctionType(returned, arguments), name)

    kind = context.call_conv.get_function_type(function.restype, function.argtypes)
    loop = ir.Function(module, kind, function.llvm_func_name)
    entry = imported(name, anything, anything, anything.as_pointer(), number)
    builder = ir.IRBuilder(entry.append_basic_block())
    as_number = imported("PyLong_AsSsize_t", number, anything)
    given = []
    for place, (code, argument) in enumerate(zip(types, function.argtypes, strict=True)):
        item = builder.load(builder.gep(entry.args[1], [number(place)]))
        if code == "n":
            given.append(builder.call(as_number, [item]))
        else:
            pointer = context.get_value_type(argument).as_pointer()
            given.append(builder.load(builder.bitcast(builder.gep(item, [number(DATA)]), pointer)))
    state = builder.call(imported("PyEval_SaveThread", anything), [])
    context.call_conv.call_function(
        builder, loop, function.restype, function.argtypes, given, attrs=("noinline",)
    )
    builder.call(imported("PyEval_RestoreThread", ir.VoidType(), anything), [state])
    builder.call(imported("Py_IncRef", ir.VoidType(), anything), [entry.args[0]])
    builder.ret(entry.args[0])
    return module


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
    with _lock:
        plain = getattr(elementary, name)
        scope = dict(vars(elementary))  # where it finds others that are compiled, too
        scope |= {other: inlined(other) for other in plain.__code__.co_names if other in _NAMES}
        function = FunctionType(plain.__code__, scope, name)
        flags = _REORDERED.get(name, {"contract"} if name[-3:-1] == "_f" else set())
        return numba().njit(error_model="numpy", fastmath=flags, forceinline=True)(function)
