"""Source of the kernels that an exported module calls, as copies that need only NumPy."""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from typing import Any

from chainrule import errors
from chainrule.backend.extensions import KERNELS
from chainrule.compiler.ir.program import Op
from chainrule.kernels import erf_gamma, special

_PACKAGE = "chainrule.kernels."
_MODULES = {name: module for module, names in KERNELS.items() for name in names}


class NotInNumpyError(Exception):
    """A kernel needs more than NumPy."""


def parallelized(*, by_rows: bool) -> Callable[..., Any]:
    """Turn a function that fills an array like its first input into one that returns it."""

    def decorate(fill: Any) -> Any:
        def kernel(xp: Any, *arrays: Any, **settings: Any) -> Any:
            out = xp.empty(arrays[0].shape, arrays[0].dtype)
            fill(xp, out, *arrays, **settings)
            return out

        return kernel

    return decorate


def parallel_fill(fill: Any, xp: Any, arrays: Any, settings: Any, *, by_rows: bool) -> None:
    """Fill the first array."""
    fill(xp, *arrays, **settings)


def for_parts(run: Any, parts: list[Any], make_memory: Any, *, parallel: bool) -> None:
    """Call a function with the number of each part, its blocks, and memory."""
    memory = make_memory()
    for i, blocks in enumerate(parts):
        run(i, blocks, memory)


_LIBRARIES = frozenset(["collections", "functools", "itertools", "math", "numpy"])
"""Modules that copies may import."""

_SUBSTITUTES = {
    ("chainrule.kernels.parallel", "parallelized"): inspect.getsource(parallelized),
    ("chainrule.kernels.parallel", "parallel_fill"): inspect.getsource(parallel_fill),
    ("chainrule.kernels.product_stacks", "for_parts"): inspect.getsource(for_parts),
    ("chainrule.kernels.product_stacks", "matmul"): "matmul = np.matmul",
    ("chainrule.kernels.fast_numpy", "is_transposed"): "def is_transposed(x): return False",
    ("chainrule.kernels.fast_numpy", "transposed"): "transposed = np.copy",
    ("chainrule.kernels.reductions", "sum_over"): "sum_over = np.sum",
    ("chainrule.interrupts", "errstate"): "errstate = np.errstate",
}
"""Statements in place of definitions that need more than NumPy."""


def missing(ops: Iterable[Op]) -> set[str]:
    """Return the kernels that ops call and that need more than NumPy."""
    return {
        op.function
        for op in ops
        if op.function.startswith("kernels.")
        and (not _is_in_numpy(op.function) or _is_higher_polygamma(op))
    }


def _is_higher_polygamma(op: Op) -> bool:
    return op.function == "kernels.polygamma" and bool(op.kwargs.get("order"))


@cache
def _is_in_numpy(function: str) -> bool:
    try:
        _Copies().kernel(function.removeprefix("kernels."))
    except NotInNumpyError:
        return False
    return True


def kernel_source(names: Iterable[str]) -> str:
    """Return the definition of `kernels`, with kernels of these names."""
    copies = _Copies()
    wanted = [f"{name}=partial({copies.kernel(name)}, np)" for name in sorted(names)]
    lines = [
        "def _kernels():",
        '    """Return functions that NumPy lacks, which are called with NumPy as xp."""',
        "    from functools import partial",
        "    from types import SimpleNamespace",
        *[textwrap.indent(f"{text}\n", "    ") for text in copies.statements],
        f"    return SimpleNamespace({', '.join(wanted)})",
    ]
    return "\n".join([*lines, "", "", "kernels = _kernels()", ""])


class _Copies:
    """Copies of definitions, and of those that they need, in an order in which they run."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.origin: dict[str, Any] = {}  # by name in the copy: the module, and the name there

    def kernel(self, name: str) -> str:
        """Copy a kernel; return its name."""
        module = f"{_PACKAGE}{_MODULES[name]}"
        return self.special(name) if module == special.__name__ else self.add(module, name)

    def special(self, name: str) -> str:
        """Copy a special function that has a form without SciPy."""
        if name not in special.NUMPY_FALLBACKS:
            raise NotInNumpyError(name)
        function = self.add(erf_gamma.__name__, {"polygamma": "digamma"}.get(name, name))
        cast = self.add(special.__name__, "_cast_to_input")
        text = f"def special_{name}(xp, x, **settings):\n    return {cast}({function})(x)"
        return self._define((special.__name__, name), f"special_{name}", text)

    def add(self, module: str, name: str) -> str:
        """Copy what a module has under a name; return its name in the copy."""
        if self.origin.get(name) == (module, name):
            return name
        substitute = _SUBSTITUTES.get((module, name))
        if substitute is not None:
            return self._define((module, name), name, _plain(ast.parse(substitute).body[0]))
        if module == errors.__name__:
            kind = getattr(errors, name)
            builtin = next(k.__name__ for k in kind.__mro__ if hasattr(builtins, k.__name__))
            return self._define((module, name), name, f"{name} = {builtin}")
        node = _definitions(module).get(name)
        if node is None or not module.startswith(_PACKAGE):
            raise NotInNumpyError(name)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("chainrule"):
            if node.module == "chainrule.kernels":  # a module of its own
                raise NotInNumpyError(name)
            return self.add(str(node.module), name)
        if isinstance(node, ast.Import | ast.ImportFrom):
            source = node.names[0].name if isinstance(node, ast.Import) else str(node.module)
            if source not in _LIBRARIES:
                raise NotInNumpyError(name)
            return self._define((ast.unparse(node), name), name, ast.unparse(node))
        return self._copy(module, name, node)

    def _copy(self, module: str, name: str, node: ast.stmt) -> str:
        self._claim(name, (module, name))
        tree = _Specials(self).visit(ast.parse(_plain(node)))
        if any(isinstance(n, ast.ImportFrom | ast.Import) for n in ast.walk(tree)):
            raise NotInNumpyError(name)
        known = _definitions(module)
        for needed in [n.id for n in ast.walk(tree) if isinstance(n, ast.Name)]:
            if needed in known and needed != name and needed != "np":
                self.add(module, needed)
        return self._define((module, name), name, ast.unparse(tree))

    def _define(self, origin: Any, name: str, text: str) -> str:
        self._claim(name, origin)
        if text not in self.statements:
            self.statements.append(text)
        return name

    def _claim(self, name: str, origin: Any) -> None:
        if self.origin.setdefault(name, origin) != origin:
            raise NotInNumpyError(name)  # which two modules define


class _Specials(ast.NodeTransformer):
    """Names of copies in place of `special.kernel_for(name, xp)`."""

    def __init__(self, copies: _Copies) -> None:
        self.copies = copies

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if ast.unparse(node.func) != "special.kernel_for":
            return node
        (name, _) = node.args
        assert isinstance(name, ast.Constant)
        copy = self.copies.special(str(name.value))
        return ast.parse(f"partial({copy}, np)", mode="eval").body


@cache
def _definitions(module: str) -> dict[str, ast.stmt]:
    """Return the statements at the top of a module by the names that they bind."""
    found: dict[str, ast.stmt] = {}
    for node in ast.parse(inspect.getsource(import_module(module))).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name: node for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [n for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)]
            found |= {name.id: node for name in names}
    return found


class _NoAnnotations(ast.NodeTransformer):
    def visit_arg(self, node: ast.arg) -> Any:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        self.generic_visit(node)
        if node.value is None:
            return ast.Pass()
        return ast.Assign([node.target], node.value)


def _plain(node: ast.stmt) -> str:
    """Return the source of a statement without annotations, whose names the module lacks."""
    tree = _NoAnnotations().visit(ast.parse(ast.unparse(node)))
    return ast.unparse(ast.fix_missing_locations(tree))
