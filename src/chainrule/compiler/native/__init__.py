"""Native backend: compile programs to machine code, with fused loops in place of NumPy calls."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from chainrule.autograd.remarks import STRICT, Remark
from chainrule.compiler.codegen.numpy_source import Source
from chainrule.compiler.codegen.run import runnable, runner
from chainrule.compiler.ir.program import Program
from chainrule.compiler.native import jit
from chainrule.compiler.native.decompositions import decompose_for_loops
from chainrule.compiler.native.gather_lowering import lower_indexing
from chainrule.compiler.native.gemm import Product, lower_products
from chainrule.compiler.native.layout import UnfitError
from chainrule.compiler.native.loop_codegen import Loop
from chainrule.compiler.native.lowering import Budget, lower_loops, lower_one_hots
from chainrule.compiler.native.missed import budget_remark, numpy_calls, python_loops
from chainrule.compiler.native.parts_call import PartsCall, loop_call
from chainrule.compiler.native.small_groups import count_calls
from chainrule.compiler.native.whole_program import WholeCall, whole_function

Run = Callable[..., Any]
Call = WholeCall | PartsCall
Keep = Callable[[Call], None]
Statements = tuple[Source, dict[str, Any]]
"""The source of a program, and the names that it uses besides NumPy."""


class Native(NamedTuple):
    """A program as a function of input arrays that runs machine code, as far as it has some."""

    run: Run
    text: str  # source of all that is compiled; empty if NumPy runs
    statements: Callable[[], Statements | None]  # None for a single function
    remarks: list[Remark]  # on what has no machine code


def native(program: Program, keep: Keep) -> Native:
    """Return a program as machine code; `keep` gets what a call needs if there are no remarks."""
    if not jit.is_installed():
        jit.llvm()  # raises with the install command
    program = lower_one_hots(program)
    whole = _emit_whole(program)
    if isinstance(whole, _Emitted):
        return _lazy(whole, None, program, [], keep)
    lowered = _partition(program, whole)
    remarks = [*_missed(program, lowered, 0), *numpy_calls(program, lowered.program)]
    return _lazy(_emit_parts(lowered), None, program, remarks, keep)


def native_if_faster(program: Program, source: Source, keep: Keep) -> Native:
    """Return a program as machine code if LLVM is installed and compiling pays.

    Otherwise, and if LLVM fails, the NumPy source runs.
    """
    fallback = runner(source)
    as_numpy = Native(fallback, "", lambda: (source, {}), [])
    program = lower_one_hots(program)
    pays = count_calls(program.ops) >= _MIN_CALLS
    if not jit.is_installed():
        return as_numpy._replace(remarks=[*_uninstalled(program)]) if pays else as_numpy
    whole = _emit_whole(program) if pays else None
    if isinstance(whole, _Emitted):
        return _lazy(whole, as_numpy, program, [], keep)
    lowered = _partition(program, whole)
    remarks = _missed(program, lowered, _TOLD_CALLS) if pays or lowered.would_pay else []
    if lowered.pays:
        return _lazy(_emit_parts(lowered), as_numpy, program, remarks, keep)
    if not remarks:
        keep(PartsCall(runnable(source), [], {}, is_native=False))
    return as_numpy._replace(remarks=remarks)


def _missed(program: Program, lowered: _Lowered, min_calls: int) -> list[Remark]:
    """Return remarks on the loops that Python runs, and on what lies beyond the budget."""
    found = [*python_loops(program, lowered.program, min_calls)]
    if lowered.budget.beyond:
        found.append(budget_remark(lowered.budget.beyond, lowered.budget.beyond_ms))
    return found


def _uninstalled(program: Program) -> Iterator[Remark]:
    """Yield a remark on each loop that Python runs since LLVM is not installed."""
    for op in program.ops:
        if op.regions and count_calls([op]) >= _TOLD_CALLS:
            text = (
                "Python runs the steps of a loop, since machine code needs llvmlite: pip install "
                "'chainrule[native]', or backend='numpy'"
            )
            yield Remark(op.function, text, is_told=False)


class _Emitted(NamedTuple):
    """A program as source of machine code that is not compiled yet."""

    text: str
    call: Call
    statements: Callable[[list[Run]], Statements | None]


_MIN_ELEMENTS = 1 << 13
"""Number of elements computed by the operations of all loops from which compiling pays."""

_MULTIPLIES_PER_ELEMENT = 64
"""Number of multiplications of a product that take as long as one such element."""

_MIN_CALLS = 8
"""Number of NumPy calls from which a function of machine code is faster than they are."""

_TOLD_CALLS = 100
"""Number of NumPy calls of a loop from which it matters that it has no machine code."""


def _emit_whole(program: Program) -> _Emitted | UnfitError:
    """Return a program of small arrays as one function, or why that is not supported."""
    try:
        call, text = whole_function(program)
    except UnfitError as reason:
        return reason.with_traceback(None)  # whose frames hold the program
    return _Emitted(text, call, lambda _: None)


def _lazy(
    emitted: _Emitted,
    fallback: Native | None,
    program: Program,
    remarks: list[Remark],
    keep: Keep,
) -> Native:
    """Return a program whose first call loads or compiles the machine code."""
    chosen: list[Native] = []
    is_strict = STRICT.get()

    def choose() -> Native:
        if not chosen:
            try:
                functions = [code.function() for code in emitted.call.codes]
                run = emitted.call.runner(functions, lambda: program)
                found = Native(run, emitted.text, lambda: emitted.statements(functions), remarks)
            except Exception as error:
                if fallback is None or is_strict:
                    raise
                if jit.is_usable():
                    text = f"{program.name} runs as NumPy calls, since LLVM says: {error}"
                    warnings.warn(text, stacklevel=5)
                found = fallback
            else:
                if not remarks:
                    keep(emitted.call)
            chosen.append(found)
        return chosen[0]

    def run(*arrays: Any) -> Any:
        return (chosen[0] if chosen else choose()).run(*arrays)

    return Native(run, emitted.text, lambda: choose().statements(), remarks)


class _Lowered(NamedTuple):
    """A lowered program, and the loops and products that it calls."""

    program: Program
    loops: list[Loop]
    products: dict[str, Product]
    moved: int  # the work that kernels of gathers and scatters save
    budget: Budget

    @property
    def work(self) -> int:
        """The work of the machine code, in elements computed by operations."""
        products: int = sum(product.work for product in self.products.values())
        loops = sum(loop.work for loop in self.loops)
        return loops + products // _MULTIPLIES_PER_ELEMENT + self.moved

    @property
    def pays(self) -> bool:
        """Whether the machine code saves more than it takes to compile."""
        calls: int = sum(loop.calls for loop in self.loops)
        return self.work >= _MIN_ELEMENTS or calls >= _MIN_CALLS

    @property
    def would_pay(self) -> bool:
        """Whether that holds with what is beyond the budget."""
        beyond = self.budget.beyond
        work: int = self.work + sum(v.size for op in beyond for v in op.outs)
        return self.pays or work >= _MIN_ELEMENTS


def _partition(program: Program, whole: UnfitError | None) -> _Lowered:
    """Return a program with its loops and products lowered to calls."""
    fused, loops, budget = lower_loops(decompose_for_loops(program), whole)
    lowered, products = lower_products(fused)
    lowered, moved = lower_indexing(lowered)
    return _Lowered(lowered, loops, products, moved, budget)


def _emit_parts(lowered: _Lowered) -> _Emitted:
    """Return a program that calls machine code."""
    source, products = Source(lowered.program), lowered.products
    call = PartsCall(runnable(source), [*map(loop_call, lowered.loops)], products, is_native=True)
    texts = [text for loop in lowered.loops for text in (loop.text, loop.wrapper)]
    texts += dict.fromkeys(product.kernel.text for product in products.values())
    text = "\n\n".join([*dict.fromkeys(texts), source.text])
    return _Emitted(text, call, lambda functions: (source, call.names(functions)))
