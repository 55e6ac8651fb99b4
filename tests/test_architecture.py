"""Rules for the source tree: first lines, sizes and names of modules, terms, shadowed modules.

Each rule is a function that takes parsed modules and returns one message for each fault: the file,
the fault, and how to mend it. The last section plants a fault for each rule.
"""

from __future__ import annotations

import ast
import gc
import importlib
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType

import pytest

import chainrule as cr


@pytest.fixture(autouse=True)
def _no_collections() -> Iterator[None]:
    """Trees live as long as the tests: collections would take most of the time."""
    gc.disable()
    yield
    gc.enable()


# --- modules --------------------------------------------------------------------------------------


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
        """All nodes of the tree, which each rule goes through."""
        return list(ast.walk(self.tree))

    @property
    def basename(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def name(self) -> str:
        """The name by which Python imports the module."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        return self.name if self.basename == "__init__.py" else self.name.rpartition(".")[0]


def modules_of(files: dict[str, str]) -> list[Module]:
    return [Module(path, text) for path, text in files.items()]


SRC = Path(cr.__file__).parents[1]
MODULES = modules_of(
    {
        path.relative_to(SRC).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(Path(cr.__file__).parent.rglob("*.py"))
    }
)


def docstrings(module: Module) -> Iterator[ast.Constant]:
    """Yield all docstrings, those of constants included."""
    for node in module.nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


@cache
def code_lines(module: Module) -> int:
    """Return the number of lines with code: no docstrings, comments or blank lines."""
    layout = (
        *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
        *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
    )
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type not in layout:
            lines.update(range(token.start[0], token.end[0] + 1))
    for text in docstrings(module):
        lines.difference_update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return len(lines)


def imports(
    module: Module, nodes: Iterable[ast.AST] | None = None
) -> Iterator[tuple[str, str | None]]:
    """Yield (module, name) of each `from module import name`, (module, None) of each `import`.

    With `nodes`, those of the module that are among them.
    """
    for node in module.nodes if nodes is None else nodes:
        if isinstance(node, ast.Import):
            yield from [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                above = module.package.split(".")
                above = above[: len(above) - node.level + 1]
                source = ".".join([*above, source]).rstrip(".")
            yield from [(source, alias.name) for alias in node.names]


def importers(
    modules: Iterable[Module], walk: Callable[[Module], Iterable[ast.AST] | None] = lambda _: None
) -> dict[str, set[str]]:
    """Return, for the name of each module, the names of the modules that import it.

    `walk` yields the nodes of a module that count.
    """
    modules = list(modules)
    known = {module.name for module in modules}
    found: dict[str, set[str]] = {name: set() for name in known}
    for module in modules:
        for source, name in imports(module, walk(module)):
            target = f"{source}.{name}" if f"{source}.{name}" in known else source
            if target in known and target != module.name:
                found[target].add(module.name)
    return found


# --- the first line of a module -------------------------------------------------------------------

QUESTION = re.compile(r"(What|Which|Who|Whose|Whom|Where|How)\b")


def riddling_first_lines(modules: Iterable[Module]) -> list[str]:
    return [
        f"{module.path}: the docstring begins with {match[1]!r}. Say what the module contains or "
        f"does, with a noun phrase or an imperative first: {match.string.splitlines()[0]!r}"
        for module in modules
        if (match := QUESTION.match(ast.get_docstring(module.tree) or ""))
    ]


# --- sizes ----------------------------------------------------------------------------------------

MAX_CODE_LINES = 400
MIN_CODE_LINES_OF_ONE_IMPORTER = 40

SMALL = {
    "chainrule.compiler.eager.kernels.matmul": "a family of kernels, listed in a table",
    **dict.fromkeys(
        [
            *("chainrule.backends.cuda", "chainrule.backends.cudnn", "chainrule.backends.mps"),
            *("chainrule.cuda.amp", "chainrule.nn.utils.init"),
        ],
        "scripts import it by PyTorch's name",
    ),
    "chainrule.distributed.cluster": "imported when asked for, since Dask is optional",
}
"""Small modules with one importer, and why they stay modules."""

PEERS_NAMES = "chainrule.compat."
"""Modules below stand for those of another package, under its names and in its cuts."""


def long_modules(modules: Iterable[Module]) -> list[str]:
    return [
        f"{module.path}: {lines} lines of code, more than {MAX_CODE_LINES}. Split it by subject"
        for module in modules
        if module.text.count("\n") > MAX_CODE_LINES
        and (lines := code_lines(module)) > MAX_CODE_LINES
    ]


def small_modules(modules: Iterable[Module]) -> list[str]:
    """Find small modules with a single importer; one loaded by its name alone has none."""
    modules = list(modules)
    clients = importers(modules)
    return [
        f"{module.path}: {lines} lines of code, fewer than {MIN_CODE_LINES_OF_ONE_IMPORTER}, and "
        f"only {next(iter(clients[module.name]))} imports it. Move its contents there"
        for module in modules
        if module.basename not in ("__init__.py", "__main__.py")
        and module.name not in SMALL
        and not module.name.startswith(PEERS_NAMES)
        and len(clients[module.name]) == 1
        and (lines := code_lines(module)) < MIN_CODE_LINES_OF_ONE_IMPORTER
    ]


# --- one meaning for each file name ---------------------------------------------------------------

_LAYERS = "one subject in several layers: rules, public functions, NumPy's functions, kernels"

SHARED_BASENAMES = {
    **dict.fromkeys(
        [
            *("activations", "binary", "convolution", "decompositions", "elementwise"),
            *("gather_scatter", "indexing", "losses", "lu", "matmul", "matrices", "norms"),
            "matrix_functions",
            *("pooling", "products", "recurrence", "reductions", "resampling", "softmax_norm"),
            *("solve", "special", "statistics"),
        ],
        _LAYERS,
    ),
    "amp": "mixed precision: of all devices, and under PyTorch's former name",
    "arguments": "validation of the arguments of a package's functions",
    **dict.fromkeys(
        ["dropout", "embedding", "normalization", "padding"],
        "one subject in two layers: functions of nn.functional, and modules of nn",
    ),
    "counts": "distributions of counts: PyTorch's classes, and SciPy's",
    "distribution": "what distributions have in common: PyTorch's classes, and SciPy's",
    "multivariate": "distributions of vectors: PyTorch's classes, and SciPy's",
    "random": "NumPy's random numbers, and the same under HIPS autograd's names",
    "backward": "the backward pass: of the recorded graph, and of a compiled program",
    "init": "initial values: functions that set them, and modules made without",
    "hooks": "hooks: of nodes and leaves, and of modules",
    "inplace": "in-place operations: the engine's, the public ones, NumPy's and random fills",
    "linalg": "linear algebra: NumPy's functions, and the modules under HIPS autograd's names",
    "jit": "compilation at run time: by LLVM, and under PyTorch's names",
    "linear": "the linear layer: cr.nn.Linear and cr.nn.functional.linear",
    "module": "modules: the class nn.Module, and the text of an exported Python module",
    "namespace": "array operations: on tensors, on symbols and on batched arrays",
    "operands": "conversion of operands: of the recorders, and of NumPy's functions",
    "parallel": "work in parallel: of kernels on threads, and of modules under PyTorch's names",
    "rnn": "sequences: recurrent layers, and packed sequences",
    "run": "the running call: of a trace, and of generated code",
    "state": "state: of a module, to save and load, and around a verified call",
    "tasks": "tasks: of threads, and of Dask's workers",
    "table": "the table of a package: of eager kernels, and of NumPy's functions",
    "trace": "traces: of a compiled function, and of the body of a loop",
    "views": "views: the engine's records of them, and the public functions that make them",
    "windows": "window functions: PyTorch has them in two places, too",
}
"""File names that occur in several folders, and the one meaning that they have in all of them."""


def shared_basenames(modules: Iterable[Module]) -> list[str]:
    folders = defaultdict(list)
    for module in modules:
        folders[module.basename.removesuffix(".py")].append(module.path)
    return [
        f"{name}.py is the name of several files: {', '.join(paths)}. Rename all but one, or add "
        "the meaning that they share to SHARED_BASENAMES"
        for name, paths in folders.items()
        if len(paths) > 1 and name not in SHARED_BASENAMES and not name.startswith("__")
    ]


def needless_basenames(modules: Iterable[Module]) -> list[str]:
    names = [module.basename.removesuffix(".py") for module in modules]
    return [
        f"{name}.py is in SHARED_BASENAMES but not the name of several files. Remove the entry"
        for name in SHARED_BASENAMES
        if names.count(name) < 2
    ]


# --- imports inside functions ---------------------------------------------------------------------

LAZY_IMPORTS = {
    "chainrule.autograd.anomaly": "needed in anomaly mode only: keeps import chainrule fast",
    "chainrule.backend.cupy_namespace": "imports CuPy, if an array of CuPy's is met",
    "chainrule.blas.lapack": "needed by linear algebra only: keeps import chainrule fast",
    "chainrule.blas.openblas": "imports NumPy, which has to be loaded with the right kernels",
    "chainrule.compiler.eager.table": "imports the native backend, if it is asked for",
    "chainrule.compiler.native": "imports the native backend, if it is asked for",
    "chainrule.compiler.native.program_files": "imports the native backend, if it is asked for",
    "chainrule.kernels.gather_scatter": "needed by large arrays only: keeps import chainrule fast",
    "chainrule.kernels.parallel": "needed by large arrays only: keeps import chainrule fast",
    "chainrule.kernels.product_stacks": "needed by large arrays only: keeps import chainrule fast",
    "chainrule.kernels.threads": "needed by large arrays only: keeps import chainrule fast",
    "chainrule.random.generator": "imports numpy.random",
}
"""Modules of this package that a function may import, and why it is not done at the top."""


def imports_inside_functions(modules: Iterable[Module]) -> list[str]:
    modules = list(modules)
    known = {module.name for module in modules}
    found = []
    for module in modules:
        for target in sorted(_imported_in_functions(module, known)):
            if target not in LAZY_IMPORTS:
                found.append(
                    f"{module.path}: a function imports {target}. Import it at the top, or if that "
                    "closes a circle, move what both need below both; LAZY_IMPORTS lists what "
                    "would be loaded without need"
                )
    return found


def _imported_in_functions(module: Module, known: set[str]) -> set[str]:
    targets = set()
    for function in module.nodes:
        if isinstance(function, ast.FunctionDef):
            for source, name in imports(module, ast.walk(function)):
                target = f"{source}.{name}" if f"{source}.{name}" in known else source
                if target in known:
                    targets.add(target)
    return targets


def import_circles(modules: Iterable[Module]) -> list[str]:
    """Find circles of imports, those inside functions included, those for type checkers not."""
    clients = importers(modules, lambda module: _imports_at_run_time(module.tree))
    waiting = {name: {c for c in found if c in clients} for name, found in clients.items()}
    while free := [name for name, found in waiting.items() if not found]:
        for name in free:  # nobody imports it, so it is on no circle
            del waiting[name]
        for found in waiting.values():
            found.difference_update(free)
    while free := [n for n in waiting if not any(n in found for found in waiting.values())]:
        for name in free:  # it imports nothing that is left
            del waiting[name]
    if not waiting:
        return []
    return [
        f"circle of imports among {', '.join(sorted(waiting))}: move what they share below them"
    ]


def _imports_at_run_time(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the imports in a node, but for those that stand under `if TYPE_CHECKING`."""
    of_checkers = isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
    for child in node.orelse if of_checkers else ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        elif not isinstance(child, ast.expr):
            yield from _imports_at_run_time(child)


# --- the field's terms ----------------------------------------------------------------------------

IDENTIFIERS = {
    **dict.fromkeys(["Port", "port", "ports"], "NodeOutput, output"),
    **dict.fromkeys(["Severed", "severed"], "ErrorNode"),
    **dict.fromkeys(["Packed", "PackedNode"], "SavedTensor, HookedNode"),
    **dict.fromkeys(["pull", "pulled"], "vjp, vjp_of"),
    **dict.fromkeys(["push", "pushed"], "jvp, jvp_of"),
    **dict.fromkeys(["Line", "bodies"], "Op, regions"),
    **dict.fromkeys(["Cluster", "cluster", "clusters"], "FusionGroup, group"),
    **dict.fromkeys(["Lanes", "lanes", "lane"], "BatchedArray, examples, batch axis"),
    **dict.fromkeys(["StandIn", "standin", "stand_in", "face"], "ArrayProxy, proxy"),
    **dict.fromkeys(["Answerer", "answerer", "answering"], "Interceptor, intercepting"),
    **dict.fromkeys(["Turned", "turned", "turning"], "ReshapedInPlace, permuted, transposed"),
    **dict.fromkeys(["largest_at", "smallest_at"], "maximum_at, minimum_at"),
    **dict.fromkeys(["Specimen", "specimen", "Watch"], "InstrumentedCall, CallRecorder"),
    "SeveralNode": "MultiOutputNode",
    "undo": "input_meta",
    "deposit": "accumulate",
    "restrict": "capture_only",
    "settle": "flush",
    "ledger": "write_log",
    "tick": "next_seq",
    "narrowed": "for_edges",
    "outcome": "abstract_eval",
    "Crossing": "BatchBoundary",
    "quicker": "use_kernel",
    "Application": "FunctionCall",
    "Choice": "ArgnumSelection",
    "kinks": "points without a derivative",
    "blends": "interpolations",
}
"""Identifiers that may not occur, underscores around them left out, and their plain names."""

PARAMETERS = dict.fromkeys(["lib", "np"], "xp")

WORDS = {
    **dict.fromkeys(["lane", "lanes"], "batched array, batch axis, example"),
    **dict.fromkeys(["cluster", "clusters"], "fusion group"),
    **dict.fromkeys(["port", "ports"], "output of a node"),
    **dict.fromkeys(["stand-in", "standin"], "proxy"),
    "answerer": "interceptor",
    "blends": "interpolations",
    "kinks": "points without a derivative",
    "ledger": "write log",
    "quicker": "faster",
    "severed": "error node",
    "specimen": "instrumented call",
}
"""Words that may not occur in docstrings, and the field's terms."""

TERMS_OF_THE_FIELD = {
    "chainrule/compiler/native/gemm_microkernel.py": {"lane", "lanes"},  # of a vector register
    **{  # Dask's word for a scheduler and its workers
        f"chainrule/{name}.py": {"cluster", "clusters"}
        for name in (*(f"distributed/{n}" for n in ("cluster", "objective", "rounds")), "errors")
    },
}


def identifiers(module: Module) -> Iterator[tuple[str, int]]:
    """Yield the names that a module defines or uses, with their lines."""
    for node in module.nodes:
        if isinstance(node, ast.Name):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).rpartition(".")[2], node.lineno


def invented_terms(modules: Iterable[Module]) -> list[str]:
    faults = []
    for module in modules:
        allowed = TERMS_OF_THE_FIELD.get(module.path, set())
        used = {name: line for name, line in reversed([*identifiers(module)])}
        for name, line in used.items():
            if (plain := IDENTIFIERS.get(name.strip("_"))) and name not in allowed:
                faults.append(f"{module.path}:{line}: the identifier {name!r}. Plainly: {plain}")
        for node in module.nodes:
            if isinstance(node, ast.arg) and node.arg in PARAMETERS:
                plain = PARAMETERS[node.arg]
                faults.append(
                    f"{module.path}:{node.lineno}: the parameter {node.arg!r}. Plainly: {plain}"
                )
        for text in docstrings(module):
            words = {word.lower() for word in re.findall(r"[\w-]+", str(text.value))}
            for word in sorted(words & WORDS.keys() - allowed):
                faults.append(
                    f"{module.path}:{text.lineno}: {word!r} in a docstring. Plainly: {WORDS[word]}"
                )
    return faults


# --- modules that functions shadow ----------------------------------------------------------------

PUBLIC_MODULES = {
    "chainrule": {"cuda"},
    "chainrule.backends": {"cuda", "cudnn", "mps"},
    "chainrule.nn": {"functional", "utils"},
    "chainrule.primitives": {path.stem for path in SRC.glob("chainrule/primitives/*.py")},
    "chainrule.scipy": {
        "fft",
        "fftpack",
        "integrate",
        "interpolate",
        "linalg",
        "optimize",
        "ndimage",
        "signal",
        "sparse",
        "spatial",
        "special",
        "stats",
    },
    "chainrule.scipy.spatial": {"distance"},
    "chainrule.signal": {"windows"},
    "chainrule.utils": {"checkpoint"},
}
"""Packages that list modules in `__all__`, and those modules."""


def modules_in_all(packages: Iterable[ModuleType]) -> list[str]:
    """Find names in `__all__` that are the module, where users expect the function in it."""
    return [
        f"{package.__name__}.__all__ lists {name!r}, which is the module. Import the function of "
        "that name from it"
        for package in packages
        for name in vars(package).get("__all__", ())
        if isinstance(value := getattr(package, name), ModuleType)
        and not callable(value)  # as aliases are, once another test has imported one
        and name not in PUBLIC_MODULES.get(package.__name__, ())
    ]


def bound_names(package: str, modules: dict[str, Module]) -> set[str]:
    """Return the names that a module imports from others; a star brings the names in `__all__`."""
    found = set()
    for source, name in imports(modules[package]):
        if name == "*" and source in modules:
            found |= names_in_all(modules[source].tree) or bound_names(source, modules)
        elif name is not None and source != package:
            found.add(name)
    return found


def names_in_all(tree: ast.Module) -> set[str]:
    """Return a literal `__all__`; nothing if it is computed."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def shadowed_modules(modules: Iterable[Module]) -> list[str]:
    """Find imports that expect a module where its package binds a function of the same name.

    `chainrule.ops.where` is the function. Within `chainrule.ops`, `from chainrule.ops import where`
    is one or the other, by the order of imports; `from chainrule.ops.where import …` is certain.
    """
    table = {module.name: module for module in modules}
    shadowed = {
        f"{package}.{name}"
        for package, module in table.items()
        if module.basename == "__init__.py"
        for name in bound_names(package, table)
        if f"{package}.{name}" in table
    }
    return [
        f"{module.path}: imports {target} as if it were a module, but its package binds a function "
        f"of that name. Write: from {target} import …"
        for module in table.values()
        for source, name in imports(module)
        if (target := source if name is None else f"{source}.{name}") in shadowed
        and (name is None or module.package == source or uses_as_module(module, table[target]))
    ]


def uses_as_module(module: Module, target: Module) -> bool:
    """Say whether a module uses functions of another one as attributes of its name."""
    name = target.name.rpartition(".")[2]
    defined = {node.name for node in target.tree.body if isinstance(node, ast.FunctionDef)}
    return any(
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        and node.attr in defined
        for node in module.nodes
    )


# --- the rules hold -------------------------------------------------------------------------------

RULES: list[Callable[[Iterable[Module]], list[str]]] = [
    riddling_first_lines,
    long_modules,
    small_modules,
    shared_basenames,
    needless_basenames,
    invented_terms,
    shadowed_modules,
    imports_inside_functions,
    import_circles,
]


def test_the_source_follows_the_rules() -> None:  # in one test: all parse the same modules
    faults = [fault for rule in RULES for fault in rule(MODULES)]
    assert not faults, "\n".join(["", *faults])


def test_names_in_all_are_no_modules() -> None:
    packages = [importlib.import_module(m.name) for m in MODULES if m.basename == "__init__.py"]
    faults = modules_in_all(packages)
    assert not faults, "\n".join(["", *faults])


def test_small_modules_that_may_stay_are_small_and_have_one_importer() -> None:
    clients = importers(MODULES)
    by_name = {module.name: module for module in MODULES}
    for name in SMALL:
        assert name in by_name, f"SMALL lists {name}, which does not exist. Remove the entry"
        lines = code_lines(by_name[name])
        needed = lines < MIN_CODE_LINES_OF_ONE_IMPORTER and len(clients[name]) == 1
        assert needed, f"SMALL need not list {name} any more. Remove the entry"


# --- planted faults -------------------------------------------------------------------------------


def assert_found(faults: list[str], *parts: str) -> None:
    assert len(faults) == 1, faults
    for part in parts:
        assert part in faults[0]


@pytest.mark.parametrize("word", ["What", "Which", "Who", "Where", "How"])
def test_a_riddling_first_line_is_noticed(word: str) -> None:
    good = {"p/a.py": '"""Whatever follows is fine."""', "p/b.py": "x = 1"}
    bad = {"p/c.py": f'"""{word} a pass comes by."""'}
    assert_found(riddling_first_lines(modules_of(good | bad)), "p/c.py", word)


def test_lines_of_code_are_counted_without_docstrings_and_comments() -> None:
    text = '"""Two\nlines."""\n\n# a comment\nx = [\n    1,\n]  # three lines\n"""Of x."""\n'
    assert code_lines(Module("p/a.py", text)) == 3


def test_a_long_module_is_noticed() -> None:
    comments = "# not code\n\n" * 50
    files = {"p/a.py": comments + "x = 1\n" * 400, "p/b.py": "x = 1\n" * 401}
    assert_found(long_modules(modules_of(files)), "p/b.py", "401")


@pytest.mark.parametrize(
    "statement",
    [
        "from p.small import x",
        "from p import small",
        "import p.small",
        "from . import small",
        "from .small import x",
        "def f():\n    from p.small import x",
    ],
)
def test_a_small_module_with_one_importer_is_noticed(statement: str) -> None:
    files = {"p/__init__.py": "", "p/small.py": "x = 1\n" * 39, "p/client.py": statement}
    assert_found(small_modules(modules_of(files)), "p/small.py", "39", "p.client")
    assert not small_modules(modules_of(files | {"p/other.py": statement}))
    assert not small_modules(modules_of(files | {"p/small.py": "x = 1\n" * 40}))


def test_a_file_name_with_two_meanings_is_noticed() -> None:
    names = ["planted", "indexing", "__init__"]
    files = {f"p/{folder}/{name}.py": "" for folder in "ab" for name in names}
    found = shared_basenames(modules_of(files))
    assert_found(found, "p/a/planted.py", "p/b/planted.py")


def test_a_needless_entry_for_a_file_name_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SHARED_BASENAMES, "planted", "nothing")
    assert_found(needless_basenames(MODULES), "planted.py")


def test_an_import_inside_a_function_is_noticed() -> None:
    files = {"p/a.py": "def f():\n    from p import b\n", "p/b.py": "import numpy"}
    assert_found(imports_inside_functions(modules_of(files)), "p/a.py", "p.b")
    assert not imports_inside_functions(modules_of(files | {"p/a.py": "from p import b"}))


def test_a_circle_of_imports_is_noticed() -> None:
    line = {"p/a.py": "from p import b", "p/b.py": "from p import c", "p/c.py": "", "p/d.py": ""}
    assert not import_circles(modules_of(line))
    for back in ("from p import a", "def f():\n    import p.a"):
        assert_found(import_circles(modules_of(line | {"p/c.py": back})), "p.a, p.b, p.c")
    checked = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import a"
    assert not import_circles(modules_of(line | {"p/c.py": checked}))


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("class Specimen: ...", "Specimen"),
        ("def _turning(): ...", "_turning"),
        ("ledger = []", "ledger"),
        ("x = node.lanes", "lanes"),
        ("def f(standin): ...", "standin"),
        ("from p.a import kinks", "kinks"),
        ("from p.a import x as blends", "blends"),
        ("def rule(lib, x): ...", "lib"),
        ('def f():\n    """Return the ledger."""', "ledger"),
        ('x = 1\n"""The length of all Lanes."""', "lanes"),
    ],
)
def test_an_invented_term_is_noticed(source: str, word: str) -> None:
    assert_found(invented_terms([Module("p/a.py", source)]), "p/a.py", repr(word), "Plainly: ")


def test_terms_that_only_contain_an_invented_one_may_occur() -> None:
    text = 'def turned_on(support, export): ...\n"""Import and export."""\nlanes_of_a_register = 4'
    assert not invented_terms([Module("p/a.py", text)])


def test_a_module_in_all_is_noticed() -> None:
    package = ModuleType("planted")
    package.function, package.module = len, ModuleType("planted.module")
    package.__all__ = ["function", "module"]
    assert_found(modules_in_all([package]), "planted.__all__", "'module'")


@pytest.mark.parametrize("binding", ["from p.where import *", "from p.where import where"])
@pytest.mark.parametrize(
    "use",
    ["import p.where", "import p.where as w", "from p import where\n\nwhere.helper()"],
)
def test_an_import_of_a_shadowed_module_is_noticed(binding: str, use: str) -> None:
    files = {
        "p/__init__.py": binding,
        "p/where.py": "__all__ = ['where']\ndef where(): ...\ndef helper(): ...",
        "p/fine.py": "from p.where import where, helper",
        "q/fine.py": "from p import where\n\nwhere.__name__\nwhere()",
        "q/other.py": use,
    }
    assert_found(shadowed_modules(modules_of(files)), "q/other.py", "p.where")
    files["q/other.py"], files["p/other.py"] = "", "from p import where"
    assert_found(shadowed_modules(modules_of(files)), "p/other.py", "p.where")
