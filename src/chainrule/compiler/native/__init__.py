"""Machine code of programs: loops over memory in the place of chains of NumPy calls."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.codegen.numpy_source import Source
from chainrule.compiler.codegen.run import defined, runner
from chainrule.compiler.ir.program import Program
from chainrule.compiler.native import jit
from chainrule.compiler.native.call_wrapper import NAMES
from chainrule.compiler.native.code import Code, code_of
from chainrule.compiler.native.gemm import Product, library, with_products
from chainrule.compiler.native.layout import UnfitError
from chainrule.compiler.native.loop_codegen import Loop
from chainrule.compiler.native.loop_nest import LOOP
from chainrule.compiler.native.lowering import with_comparisons, with_loops
from chainrule.compiler.native.threads.tasks import Task
from chainrule.compiler.native.whole_program import whole

Run = Callable[..., Any]
Statements = tuple[Source, dict[str, Any]]
"""The source of a program, and what it calls besides NumPy."""


class Native(NamedTuple):
    """A program as a function of input arrays that runs machine code."""

    run: Run
    text: str  # of all that is compiled; empty where NumPy runs
    statements: Callable[[], Statements | None]  # None: it is one function


def native(program: Program) -> Native:
    """Return a program as machine code."""
    if not jit.is_installed():
        jit.numba()  # which says what to install
    program = with_comparisons(program)
    return _started(_small(program) or _in_parts(_cut(program)), None, program)


def native_if_better(program: Program, source: Source) -> Native:
    """Return the same where Numba is installed, and the loops are worth compiling them.

    Else, and where Numba fails, it's the NumPy source that runs.
    """
    otherwise = runner(source)
    as_numpy = Native(otherwise, "", lambda: (source, {}))
    if not jit.is_installed():
        return as_numpy
    program = with_comparisons(program)
    if _calls(program) >= _MANY:
        small = _small(program)
        if small is not None:
            return _started(small, as_numpy, program)
    parts = _cut(program)
    return as_numpy if parts.work < _WORTH else _started(_in_parts(parts), as_numpy, program)


class _Emitted(NamedTuple):
    """A program as machine code that is still to be had."""

    text: str
    codes: list[Code | Task]
    made: Callable[[list[Run]], Run]  # of their functions
    statements: Callable[[list[Run]], Statements | None]


_WORTH = 1 << 16
"""So many elements that operations of loops make pay for compiling them."""

_EASY = 64
"""So many multiplications of a product take as long as one such element."""

_MANY = 100
"""So many calls of NumPy's take long enough for a function of machine code in their place."""


def _small(program: Program) -> _Emitted | None:
    """Return a program of small arrays as one function, if it is one."""
    try:
        code, made, text = whole(program)
    except UnfitError:
        return None
    return _Emitted(text, [code], lambda functions: made(functions[0]), lambda _: None)


def _calls(program: Program) -> int:
    """Return how many of NumPy's functions a program calls, those of its loops each time."""
    count = len(program.ops)
    for op in program.ops:
        count += op.kwargs.get("length", 1) * sum(map(_calls, op.regions))
    return count


def _started(emitted: _Emitted, otherwise: Native | None, program: Program) -> Native:
    """Return a program that runs as machine code, which its first call reads or compiles."""
    chosen: list[Native] = []

    def chosen_now() -> Native:
        if not chosen:
            try:
                functions = [code.function() for code in emitted.codes]
                run = emitted.made(functions)
                found = Native(run, emitted.text, lambda: emitted.statements(functions))
            except Exception as error:
                if otherwise is None:
                    raise
                if jit.is_usable():
                    text = f"{program.name} runs as NumPy calls, since Numba says: {error}"
                    warnings.warn(text, stacklevel=5)
                found = otherwise
            chosen.append(found)
        return chosen[0]

    def run(*arrays: Any) -> Any:
        return (chosen[0] if chosen else chosen_now()).run(*arrays)

    return Native(run, emitted.text, lambda: chosen_now().statements())


class _Parts(NamedTuple):
    """A program, and the machine code that it calls."""

    program: Program
    loops: list[Loop]
    products: dict[str, Product]

    @property
    def work(self) -> int:
        """How much machine code has to do, in elements that operations make."""
        products: int = sum(product.work for product in self.products.values())
        return sum(loop.work for loop in self.loops) + products // _EASY


def _cut(program: Program) -> _Parts:
    """Return what of a program is to be machine code."""
    fused, loops = with_loops(program)
    whole, products = with_products(fused)
    return _Parts(whole, loops, products)


def _in_parts(parts: _Parts) -> _Emitted:
    """Return a program that calls machine code."""
    source, loops = Source(parts.program), parts.loops
    kinds = dict.fromkeys(product.kind for product in parts.products.values())
    texts = [f"{loop.text}\n\n{loop.caller}" for loop in loops] + [kind.text for kind in kinds]

    def statements(functions: list[Run]) -> Statements:
        callers = {
            loop.name: defined(
                loop.caller, loop.name, f"<{loop.name} {{}}>", {**NAMES, "np": np, LOOP: function}
            )
            for loop, function in zip(loops, functions, strict=False)  # products' are behind
        }
        calls = SimpleNamespace(**callers, **parts.products)
        return source, {"native": calls, "kernels": library()}

    def made(functions: list[Run]) -> Run:
        return runner(source, **statements(functions)[1])

    codes = [_code(loop) for loop in loops]
    codes += [kind.task.code for kind in kinds]
    return _Emitted("\n\n".join([*texts, source.text]), codes, made, statements)


def _code(loop: Loop) -> Code | Task:
    what = (loop.text, loop.types, loop.calls, loop.long)
    return Task(*what) if loop.shared else code_of(*what)
