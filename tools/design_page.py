"""Write the generated parts of pages for contributors: figures, quoted code, a table of packages.

    python3 tools/design_page.py            write them between their markers in the pages
    python3 tools/design_page.py --check    only report whether the pages are current

Everything is read from the text of the modules: nothing is imported.
"""

from __future__ import annotations

import ast
import gc
import io
import re
import sys
import textwrap
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "docs" / "design.md", ROOT / "docs" / "adding-an-operation.md"]
SOURCE = "src/chainrule"
PART = re.compile(
    r"(?P<open><!-- (?P<part>[a-z-]+)(?P<details> [^>]*)? -->\n)"
    r".*?(?P<close><!-- end of (?P=part) -->)",
    re.S,
)

Graph = dict[str, set[str]]


@dataclass(frozen=True)
class Module:
    """A source file: its path below `src`, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree."""
        return list(ast.walk(self.tree))

    @property
    def is_package(self) -> bool:
        return self.path.endswith("__init__.py")

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The name by which Python imports the module."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def first_line(self) -> str:
        """The first line of the docstring."""
        return (ast.get_docstring(self.tree) or "").partition("\n")[0]


def modules() -> list[Module]:
    """Return the modules of the package, sorted by folder and name."""
    base = ROOT / "src"
    paths = sorted((ROOT / SOURCE).rglob("*.py"), key=lambda path: (path.parent.parts, path.name))
    return [
        Module(path.relative_to(base).as_posix(), path.read_text(encoding="utf-8"))
        for path in paths
    ]


# --- figures --------------------------------------------------------------------------------------

LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}


def code_lines(module: Module) -> int:
    """Return the number of lines with code: no docstrings, comments or blank lines."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in module.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def imports(nodes: Iterable[ast.AST], known: set[str]) -> set[str]:
    """Return the modules that import statements name; imports here are absolute."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            inner = {f"{source}.{alias.name}" for alias in node.names}
            found |= inner & known
            if not inner <= known:
                found.add(source)
    return found & known


STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)


def executed(tree: ast.AST, *, later: bool) -> Iterator[ast.AST]:
    """Yield the statements that run as a module is imported, or `later` too, in its functions."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            pending += node.orelse
        elif later or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            pending += [n for n in ast.iter_child_nodes(node) if isinstance(n, STATEMENTS)]


def circles(graph: Graph) -> list[set[str]]:
    """Return the sets of modules that import each other (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    found: list[set[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        path.append(name)
        for target in graph[name]:
            if target not in index:
                visit(target)
            if target in path:
                low[name] = min(low[name], low[target])
        if low[name] == index[name]:
            start = path.index(name)
            component = set(path[start:])
            del path[start:]
            if len(component) > 1:
                found.append(component)

    for name in graph:
        if name not in index:
            visit(name)
    return found


def layers() -> int:
    """Return the number of layers that import-linter holds and that exist."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (contract,) = [
        c for c in contracts if c["type"] == "layers" and c["containers"] == ["chainrule"]
    ]
    return sum(
        any(
            (ROOT / SOURCE / name).exists() or (ROOT / SOURCE / f"{name}.py").exists()
            for name in re.findall(r"\w+", layer)
        )
        for layer in contract["layers"]
    )


def figures(found: list[Module]) -> str:
    """Return the table of figures. Lines are rounded, so that few changes make the page stale."""
    known = {module.name for module in found}
    lines = {module: code_lines(module) for module in found}
    total = sum(lines.values())
    core = ("chainrule/autograd", "chainrule/primitives")
    share = sum(n for module, n in lines.items() if module.folder.startswith(core)) / total
    longest = max(lines, key=lambda module: lines[module])
    importers: Graph = {name: set() for name in known}
    for module in found:
        for target in imports(module.nodes, known) - {module.name}:
            importers[target].add(module.name)
    single = [m for m in found if not m.is_package and len(importers[m.name]) == 1]
    at_import, ever = [
        len(circles({m.name: imports(executed(m.tree, later=later), known) for m in found}))
        for later in (False, True)
    ]
    rows = [
        ("files", f"{len(found)}, in {sum(module.is_package for module in found)} packages"),
        ("lines of code, without docstrings and comments", f"{round(total, -3):,}"),
        ("share of the engine (`autograd/`) and the rules (`primitives/`)", f"{share:.0%}"),
        ("longest file", f"{_link(longest)}, {round(lines[longest], -1)} lines of code"),
        ("modules that only one other module imports", str(len(single))),
        ("import circles; with imports inside functions", f"{at_import}; {ever}"),
        ("layers of imports, held by import-linter", str(layers())),
    ]
    return "\n".join(["| figure | |", "| --- | --- |", *(f"| {a} | {b} |" for a, b in rows)]) + "\n"


# --- where things are -----------------------------------------------------------------------------


def where(found: list[Module]) -> str:
    """Return the table of packages, without those in others, and the first lines of their texts."""
    outer = [module for module in found if module.is_package and module.folder.count("/") < 2]
    rows = [f"| {_link(module)} | {_text(module)} |" for module in outer]
    return "\n".join(["| package | contents |", "| --- | --- |", *rows]) + "\n"


def _link(module: Module) -> str:
    """Return a link to a package or file, under its path below `chainrule/`."""
    path = f"{module.folder}/" if module.is_package else module.path
    return f"[`{path.removeprefix('chainrule/') or path}`](../src/{path})"


def _text(module: Module) -> str:
    return module.first_line.replace("|", "\\|")


# --- quoted code --------------------------------------------------------------------------------


def code(details: str) -> str:
    """Return a block of code with definitions of a file: ``path: name name …``.

    ``row:name`` is the row of a primitive in a conformance table.
    """
    path, _, names = details.strip().partition(": ")
    text = (ROOT / path).read_text(encoding="utf-8")
    tree = ast.parse(text)
    parts = [_source(text, _definition(tree, name, path)) for name in names.split()]
    return "```python\n" + "\n\n\n".join(parts) + "\n```\n"


def _definition(tree: ast.Module, name: str, path: str) -> ast.AST:
    kind, _, primitive = name.rpartition(":")
    for node in ast.walk(tree) if kind else tree.body:
        match node:
            case ast.FunctionDef(name=found) if found == name:
                return node
            case ast.Assign(targets=[ast.Name(id=found)]) if found == name:
                return node
            case ast.Call(func=ast.Name(id=found), args=[ast.Constant(value=first), *_]):
                if (found, first) == (kind, primitive):
                    return node
    raise SystemExit(f"a page quotes {name} of {path}, which does not exist")


def _source(text: str, node: Any) -> str:
    decorators = getattr(node, "decorator_list", [])
    first = decorators[0].lineno if decorators else node.lineno
    lines = text.splitlines()[first - 1 : node.end_lineno]
    return textwrap.dedent("\n".join(lines)).rstrip(",")


# --- the page -------------------------------------------------------------------------------------


def page(text: str) -> str:
    """Return the page with its generated parts written anew."""
    found = modules()
    tables = {"figures": figures, "where-things-are": where}

    def written(part: re.Match[str]) -> str:
        name = part["part"]
        content = tables[name](found) if name in tables else code(part["details"])
        return f"{part['open']}\n{content}\n{part['close']}"

    return PART.sub(written, text)


def main(options: list[str]) -> int:
    """Write the generated parts, or report whether they are current."""
    gc.disable()  # all trees live to the end: collections would take most of the time
    try:
        return write(options)
    finally:
        gc.enable()


def write(options: list[str]) -> int:
    code = 0
    for path in PAGES:
        before = path.read_text(encoding="utf-8")
        after = page(before)
        if "--check" not in options:
            path.write_text(after, encoding="utf-8")
            print(f"wrote {path.name}")
        elif before == after:
            print(f"{path.name} is current")
        else:
            print(f"{path.name} is out of date: run python3 tools/design_page.py")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
