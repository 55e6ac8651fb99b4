"""A program in parts, NumPy calls and machine code, as what a call needs without its operations."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from chainrule.compiler.codegen.run import Runnable, defined, runner
from chainrule.compiler.ir.program import Program
from chainrule.compiler.native.call_wrapper import RUNTIME
from chainrule.compiler.native.code import Code, cached_code
from chainrule.compiler.native.gather_lowering import FUNCTIONS
from chainrule.compiler.native.gemm import Product
from chainrule.compiler.native.layout import Products
from chainrule.compiler.native.loop_codegen import Loop
from chainrule.compiler.native.loop_nest import LOOP_NAME
from chainrule.compiler.native.namespace import gemm_namespace
from chainrule.compiler.native.threads.tasks import Task
from chainrule.compiler.native.whole_program import numpy_runner

Run = Callable[..., Any]


class Fallback:
    """A program that NumPy computes if machine code reports that it cannot; rarely unpickled."""

    def __init__(self, program: Program | bytes) -> None:
        self._program = program

    def __call__(self) -> Program:
        """Return the program."""
        found = self._program
        return pickle.loads(found) if isinstance(found, bytes) else found

    def __reduce__(self) -> Any:
        found = self._program
        return Fallback, (found if isinstance(found, bytes) else pickle.dumps(found),)


class LoopCall(NamedTuple):
    """A function of machine code, and its wrapper that Python calls."""

    name: str
    wrapper: str
    code: Code | Task
    otherwise: Fallback | None
    table: Any
    unused: int
    products: Products | None
    constants: tuple[Any, ...]

    def function(self, loop: Run) -> Run:
        """Return the wrapper of machine code."""
        if self.products is not None:
            loop = self.products.bound(loop)
        scope: dict[str, Any] = {**RUNTIME, "np": np, LOOP_NAME: loop}
        if self.otherwise is not None:
            scope["otherwise"] = numpy_runner(self.otherwise)
        if self.constants:
            scope["constants"] = self.constants
        if self.table is not None:
            scope |= {"table": self.table, "unused": [self.table] * self.unused}
        return defined(self.wrapper, self.name, f"<{self.name} {{}}>", scope)


def loop_call(loop: Loop) -> LoopCall:
    """Return the call of a loop, whose machine code is not made yet."""
    source = (loop.text, loop.types, loop.long)
    code = Task(*source) if loop.parallel else cached_code(*source)
    otherwise = None if loop.checked is None else Fallback(loop.checked)
    rest = (loop.table, loop.unused, loop.products, loop.constants)
    return LoopCall(loop.name, loop.wrapper, code, otherwise, *rest)


class PartsCall(NamedTuple):
    """The source of a program, and the machine code that it calls, if any."""

    source: Runnable
    loops: list[LoopCall]
    products: dict[str, Product]
    is_native: bool  # whether the source calls machine code

    @property
    def codes(self) -> list[Code | Task]:
        """The machine code of loops, then of products."""
        kernels = dict.fromkeys(product.kernel.task.code for product in self.products.values())
        return [*(loop.code for loop in self.loops), *kernels]

    def names(self, functions: list[Run]) -> dict[str, Any]:
        """Return what the source uses besides NumPy, given the functions of `codes`."""
        if not self.is_native:
            return {}
        pairs = zip(self.loops, functions, strict=False)  # those of products follow
        wrappers = {loop.name: loop.function(function) for loop, function in pairs}
        calls = SimpleNamespace(**FUNCTIONS, **wrappers, **self.products)
        return {"native": calls, "kernels": gemm_namespace()}

    def runner(self, functions: list[Run], _: Callable[[], Program]) -> Run:
        """Return the function on arrays, given the functions of `codes`."""
        return runner(self.source, **self.names(functions))
