"""Write docs/reference/: a description of every public name, made from the docstrings.

    python3 tools/reference_pages.py    write the pages; `python3 dev.py docs` does it, too

The pages are for Sphinx, whose autodoc reads the docstrings. They are not kept in git. A name has a
description where its object is met first, in the order of the pages, and a line in a table that
leads there under each other name.
"""

from __future__ import annotations

import importlib
import inspect
import re
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from pkgutil import iter_modules, walk_packages
from typing import Any

import chainrule as cr
from chainrule.operation import SCIPY_UFUNCS

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"

# The pages of the names of `chainrule` itself: title, and modules in the order of the sections.
# Modules of the package that are nowhere here have a section on the page "others".
TOPICS: dict[str, tuple[str, str]] = {
    "creation": (
        "Creation of tensors",
        "creation.data creation.filled creation.like creation.ranges creation.windows "
        "creation.tensor_types ops.protocols",
    ),
    "elementwise": (
        "Elementwise functions",
        "ops.arithmetic ops.elementary ops.binary ops.complex ops.special",
    ),
    "comparison": ("Comparisons, logic and selection", "ops.comparison ops.where"),
    "reductions": (
        "Reductions and statistics",
        "ops.reductions ops.statistics ops.order_statistics ops.cumulative ops.sort_search",
    ),
    "shapes": (
        "Shapes, joining and splitting",
        "ops.reshape ops.permute ops.join_split ops.repeat ops.diagonals ops.views",
    ),
    "indexing": ("Indexing and scattering", "ops.indexing ops.scatter ops.inplace"),
    "products": ("Products", "ops.matmul ops.products ops.einsum linalg.products"),
    "dtypes": (
        "Dtypes, constants, conversion and settings",
        "constants ops.dtypes ops.conversion ops.storage autograd.tensor autograd.formatting "
        "backend.devices backend arguments backends kernels.threads compiler.eager",
    ),
    "random": ("Random numbers", "random.continuous random.discrete random.generator"),
    "derivatives": (
        "Derivatives of what was recorded",
        "autograd.backward autograd.function autograd.modes",
    ),
    "transforms": (
        "Function transforms",
        "transforms approximation implicit foreign control_flow",
    ),
    "compile": ("Compiled functions", "compiler"),
    "checks": ("Checks of derivatives", "checks"),
    "explanations": ("Explanations and pictures", "diagnostics visualization"),
    "files": ("Files", "io"),
    "errors": ("Errors and warnings", "errors"),
}

# The pages of other namespaces: title, and namespaces. Of one with a `+`, only the names that no
# other page has.
NAMESPACES: dict[str, tuple[str, str]] = {
    "autograd": (
        "The graph: chainrule.autograd",
        "autograd autograd.graph autograd.functional autograd.forward_ad +autograd.formatting",
    ),
    "func": ("PyTorch's names of transforms: chainrule.func", "func"),
    "tree": ("Trees of containers: chainrule.tree", "tree"),
    "linalg": ("Linear algebra: chainrule.linalg", "linalg"),
    "fft": ("Fourier transforms: chainrule.fft", "fft +fft.stft"),
    "special": ("Special functions: chainrule.special", "special"),
    "signal": ("Windows: chainrule.signal", "signal signal.windows"),
    "sparse": ("Sparse tensors: chainrule.sparse", "sparse"),
    "scipy": (
        "SciPy's names: chainrule.scipy",
        "scipy scipy.optimize scipy.linalg scipy.fft scipy.fftpack scipy.special "
        "scipy.stats scipy.integrate scipy.interpolate scipy.ndimage scipy.signal "
        "scipy.spatial scipy.spatial.distance",
    ),
    "numpy": ("NumPy's names: chainrule.numpy", "numpy"),
    "nn": ("Modules: chainrule.nn", "nn nn.parameter nn.parallel +nn.modules.lazy"),
    "functional": ("Functions of networks: chainrule.nn.functional", "nn.functional"),
    "nn-utils": (
        "Initial values and utilities of networks",
        "nn.init nn.utils nn.utils.rnn nn.utils.parametrize nn.utils.parametrizations "
        "nn.utils.prune",
    ),
    "optim": ("Optimisers: chainrule.optim", "optim"),
    "lr-scheduler": (
        "Learning rates and averages",
        "optim.lr_scheduler optim.swa_utils",
    ),
    "distributions": (
        "Distributions: chainrule.distributions",
        "distributions distributions.transforms distributions.constraints distributions.kl "
        "+distributions.unit_interval +distributions.constraint_registry",
    ),
    "data": ("Data and training: chainrule.utils", "utils utils.data utils.checkpoint"),
    "plotting": ("Plots: chainrule.plotting", "plotting"),
    "testing": ("Comparisons in tests: chainrule.testing", "testing checks"),
    "foreign": (
        "Foreign code and approximation",
        "foreign approximation interop",
    ),
    "compiled": ("The class of compiled functions", "+compiler"),
    "blas": ("The BLAS: chainrule.blas", "blas"),
    "distributed": ("Processes and machines: chainrule.distributed", "distributed"),
    "devices": (
        "Devices and mixed precision",
        "cuda cuda.amp accelerator amp backends backends.cuda",
    ),
    "array-api": ("The array API standard: chainrule.array_api", "array_api"),
    "autograd-names": (
        "HIPS autograd's names: chainrule.compat.autograd",
        "compat.autograd compat.autograd.extend compat.autograd.core "
        "compat.autograd.differential_operators compat.autograd.tracer "
        "compat.autograd.builtins compat.autograd.call_trace compat.autograd.util "
        "compat.autograd.vector_space compat.autograd.wrap_util compat.autograd.misc "
        "compat.autograd.misc.flatten compat.autograd.misc.optimizers "
        "compat.autograd.misc.fixed_points compat.autograd.misc.tracers "
        "compat.autograd.numpy.numpy_boxes compat.autograd.numpy.numpy_vjps "
        "compat.autograd.numpy.numpy_wrapper compat.autograd.scipy.integrate "
        "compat.autograd.scipy.signal compat.autograd.scipy.stats.dirichlet "
        "compat.autograd.scipy.stats.multivariate_normal compat.autograd.test_util",
    ),
    "einops": ("einops on tensors: chainrule.compat.einops", "compat.einops"),
    "scripts": (
        "Names that PyTorch's scripts use",
        "jit multiprocessing serialization io random errors",
    ),
}


# Modules whose `__all__` is not for users: it says what other modules of the package take.
INTERNAL = (
    *("backend", "compiler.", "kernels", "primitives", "distributions.draws", "fft.helpers"),
    "nn.functional.losses",
    "multiprocessing",  # Python's own
)


# --- names --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Name:
    """A public name: the module that it is reached through, and its object."""

    module: str
    name: str
    value: Any = field(compare=False, hash=False)

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"


def plain(text: str) -> str:
    """Return a text without what is different in each run."""
    text = text.partition(" at 0x")[0].partition("\n")[0]
    return text if len(text) < 60 else text[:57] + "..."


def first_line(value: Any) -> str:
    """Return the first paragraph of a docstring, without the signature of ufuncs, and roles."""
    paragraphs = (inspect.getdoc(value) or "").strip().split("\n\n")
    if len(paragraphs) > 1 and re.match(r"\w+\(.*\)", paragraphs[0], re.S):
        paragraphs = paragraphs[1:]
    return re.sub(r":\w+:(?=`)", "", paragraphs[0]).replace("\n", " ")


def has_own_doc(value: Any) -> bool:
    """Return whether the docstring is of this object, not of the builtin class of a constant."""
    if isinstance(value, type) or inspect.isroutine(value) or isinstance(value, types.ModuleType):
        return bool(inspect.getdoc(value))
    if type(value).__module__.startswith("chainrule"):
        return bool(inspect.getdoc(value))
    return callable(value) and inspect.getdoc(value) != inspect.getdoc(type(value))


def is_constant(value: Any) -> bool:
    return not (callable(value) or isinstance(value, types.ModuleType))


def is_ours(value: Any) -> bool:
    """Return whether the docstring is chainrule's own: those of others are only referred to."""
    module = getattr(value, "__module__", None) or type(value).__module__
    return has_own_doc(value) and str(module).startswith("chainrule")


@cache
def names(namespace: str) -> tuple[Name, ...]:
    """Return the public names of a namespace, such as "nn.utils", in their order."""
    path = f"chainrule.{namespace}".removesuffix(".")
    module = importlib.import_module(path)
    if namespace == "numpy":  # made from a set
        listed: Iterable[str] = sorted(module.__all__)
    elif "__all__" in vars(module):
        listed = module.__all__
    elif hasattr(module, "_TABLE") or hasattr(module, "TABLE"):
        table = getattr(module, "_TABLE", None) or module.TABLE
        listed = sorted({*table.declared, *table.objects, *table.refused})
    elif namespace == "scipy.optimize":
        listed = sorted(name for name in vars(module) if is_own(module, name))
    elif namespace == "scipy.special":
        listed = sorted(SCIPY_UFUNCS)
    else:
        listed = [name for name in sorted(dir(module)) if _is_in_the_standard(module, name)]
    found = {name: getattr(module, name, None) for name in listed}
    found = {name: getattr(value, "without_out", value) for name, value in found.items()}
    return tuple(Name(path, name, value) for name, value in found.items())


def is_own(package: types.ModuleType, name: str) -> bool:
    """Return whether a public name of a package is a function of one of its modules."""
    value = getattr(package, name)
    return (
        name[0] != "_"
        and inspect.isfunction(value)
        and value.__module__.startswith(package.__name__)
    )


def _is_in_the_standard(module: types.ModuleType, name: str) -> bool:
    value = getattr(module, name)
    is_imported = isinstance(value, type | types.ModuleType) or name in ("annotations", "Any")
    return not (name[0] == "_" or name.isupper() or is_imported or name.endswith("_of"))


@cache
def home(name: str) -> str:
    """Return the module below chainrule that a name of `chainrule` is described with."""
    value = getattr(cr, name)
    value = getattr(value, "without_out", value)
    for package in ("ops", "creation", "random", "linalg"):
        for module in _submodules(package):
            if name in getattr(module, "__all__", ()) and getattr(module, name) is value:
                return module.__name__.removeprefix("chainrule.")
    defined: str = getattr(value, "__module__", None) or type(value).__module__
    if is_constant(value) or not defined.startswith("chainrule"):
        return "constants"
    return defined.removeprefix("chainrule.")


def _submodules(package: str) -> list[types.ModuleType]:
    path = f"chainrule.{package}"
    folder = importlib.import_module(path).__path__
    return [importlib.import_module(f"{path}.{found.name}") for found in iter_modules(folder)]


# --- pages --------------------------------------------------------------------------------------


@dataclass
class Section:
    """A part of a page: what is described in full, and what is listed with one line each."""

    title: str
    introduction: str
    described: list[Name] = field(default_factory=list)
    listed: list[tuple[Name, str]] = field(default_factory=list)  # with the target of a link


@dataclass
class Page:
    """A page of the reference."""

    file: str
    title: str
    sections: list[Section]


@cache
def pages() -> list[Page]:
    """Return all pages. Each object is described in full once: where it comes first."""
    places: dict[int, str] = {}
    covered: dict[str, list[Name]] = {}
    for name in names(""):
        if name.name != "Tensor":
            covered.setdefault(home(name.name), []).append(name)

    tensor = tensor_page(places)
    topics = [
        Page(file, title, [*topic(modules.split(), covered, places)])
        for file, (title, modules) in TOPICS.items()
    ]
    spaces = [*namespaces(places)]
    sections = [*topic(sorted(covered), covered, places)]
    sections += leftovers([tensor, *topics, *spaces], places)
    others = Page("others", "Other names", sections)
    return [tensor, *topics, others, *spaces]


def leftovers(found: Iterable[Page], places: dict[int, str]) -> Iterator[Section]:
    """Yield a section for each public module that exports what no page has."""
    parts = [part for page in found for part in page.sections]
    values = {id(name.value) for part in parts for name in part.described}
    values |= {id(name.value) for part in parts for name, _ in part.listed} | set(places)
    for module in public_modules():
        group = [name for name in names(module) if id(name.value) not in values]
        if group and module not in " ".join(text for _, text in NAMESPACES.values()).split():
            yield section(f"chainrule.{module}", "", group, places)


def public_modules() -> list[str]:
    """Return the names below chainrule of the modules that say what they export."""
    found = walk_packages(cr.__path__, "chainrule.")
    paths = [module.name.removeprefix("chainrule.") for module in found]
    public = [p for p in paths if not p.startswith(INTERNAL) and not re.search(r"(^|\.)_", p)]
    return [path for path in public if exports(f"chainrule.{path}")]


def exports(path: str) -> bool:
    """Return whether a module has an `__all__`, as far as what it needs is installed."""
    try:
        return "__all__" in vars(importlib.import_module(path))
    except ImportError:
        return False


def topic(
    modules: Iterable[str], covered: dict[str, list[Name]], places: dict[int, str]
) -> Iterator[Section]:
    """Yield a section for each module; take its names, and those of its submodules, away."""
    for module in modules:
        parts = [part for part in covered if part == module or part.startswith(f"{module}.")]
        group = [name for part in parts for name in covered.pop(part)]
        if group:
            yield section(title_of(module), "", group, places)


def namespaces(places: dict[int, str]) -> Iterator[Page]:
    """Yield the pages of the other namespaces."""
    for file, (title, modules) in NAMESPACES.items():
        parts = []
        for part in modules.split():
            module = part.removeprefix("+")
            introduction = inspect.getdoc(importlib.import_module(f"chainrule.{module}")) or ""
            group = names(module)
            if part != module:
                group = tuple(name for name in group if id(name.value) not in places)
            parts.append(section(f"chainrule.{module}", introduction, group, places))
        yield Page(file, title, parts)


def section(
    title: str, introduction: str, group: Iterable[Name], places: dict[int, str]
) -> Section:
    result = Section(title, introduction)
    for name in group:
        place = places.get(id(name.value)) if not is_constant(name.value) else None
        if place is None and is_described(name.value):
            places[id(name.value)] = name.path
            result.described.append(name)
        else:
            result.listed.append((name, place or ""))
    return result


def is_described(value: Any) -> bool:
    """Return whether a name has a description of its own, not a line in a table."""
    is_definition = isinstance(value, type) or inspect.isfunction(value)
    return is_definition and is_ours(value) and not value.__name__.endswith("_")


def title_of(module: str) -> str:
    """Return the first line of a module's docstring up to a colon."""
    if module == "constants":
        return "Constants, dtypes and layouts"
    text = first_line(importlib.import_module(f"chainrule.{module}"))
    short, _, rest = text.partition(": ")
    return (short if rest and len(short) > 4 and "`" not in short else text).rstrip(".")


# --- tensors ------------------------------------------------------------------------------------


def tensor_page(places: dict[int, str]) -> Page:
    """Return the page of `Tensor`: its own methods in full, those that are functions in tables."""
    functions = {id(name.value): name for name in names("")}
    page = Page("tensor", "Tensor", [])
    attributes = Section("Attributes", "")
    methods = Section("Methods", "")
    others = Section(
        "Methods that are functions", "``x.name(...)`` is ``cr.name(x, ...)``: see the function."
    )
    writes = Section(
        "In-place methods",
        "They write their result into the tensor, and return it. The arguments are those of the "
        "function without the underscore.",
    )
    seen: dict[int, str] = {}
    for name in sorted(vars_of(cr.Tensor)):
        value = inspect.getattr_static(cr.Tensor, name)
        found = Name("chainrule.Tensor", name, value)
        known = seen.setdefault(id(value), found.path)
        if isinstance(value, property):
            attributes.described.append(found)
        elif name.endswith("_") and len(inspect.getdoc(value) or "") < 200:
            writes.listed.append((found, ""))
        elif id(value) in functions:
            others.listed.append((found, functions[id(value)].path))
        elif known != found.path:
            others.listed.append((found, known))
        elif inspect.isroutine(value):
            methods.described.append(found)
        else:
            attributes.listed.append((found, ""))
    page.sections = [
        Section("The class", "", [Name("chainrule", "Tensor", cr.Tensor)]),
        *(attributes, methods, others, writes),
    ]
    places[id(cr.Tensor)] = "chainrule.Tensor"
    return page


def vars_of(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")}


def own_members(cls: type) -> list[str]:
    """Return the public members that no base class of the package has, and that are described."""
    inherited = {name for base in cls.__mro__[1:] for name in vars(base)}
    return [
        name
        for name, value in vars(cls).items()
        if not name.startswith("_") and name not in inherited and is_member(value)
    ]


def is_member(value: Any) -> bool:
    value = getattr(value, "__func__", value)
    is_routine = inspect.isroutine(value) or isinstance(value, property | cached_property)
    return is_routine and bool(inspect.getdoc(value))


# --- text ---------------------------------------------------------------------------------------


def heading(text: str, line: str) -> list[str]:
    return [text, line * len(text), ""]


def render(page: Page) -> str:
    lines = [".. Written by tools/reference_pages.py.", "", *heading(page.title, "=")]
    several = len([part for part in page.sections if part.described or part.listed]) > 1
    for part in page.sections:
        if several or part.introduction:
            lines += heading(part.title, "-") if several else []
            lines += [*part.introduction.splitlines(), ""]
        for name in part.described:
            lines += description(name)
        if part.listed:
            lines += table(part.listed)
    return "\n".join(lines).rstrip() + "\n"


def description(name: Name) -> list[str]:
    """Return the directives that describe a function, class, method or property."""
    if isinstance(name.value, property):
        return [f".. autoproperty:: {name.path}", ""]
    if name.module == "chainrule.Tensor":
        return [f".. automethod:: {name.path}", ""]
    if isinstance(name.value, type):
        members = [] if name.value is cr.Tensor else own_members(name.value)
        option = [f"   :members: {', '.join(members)}"] if members else []
        return [f".. autoclass:: {name.path}", *option, ""]
    return [f".. autofunction:: {name.path}", ""]


def table(listed: Iterable[tuple[Name, str]]) -> list[str]:
    lines = [".. list-table::", "   :class: names", "   :widths: auto", ""]
    for name, place in listed:
        same = f":py:obj:`{place}`" if place else ""
        if place and place.rpartition(".")[2] == name.name:
            text = f"{same}: {summary(name)}"
        elif place:
            text = f"The same as {same}."
        else:
            text = summary(name)
        lines += [f"   * - ``{name.name}``", f"     - {text}"]
    return [*lines, ""]


def summary(name: Name) -> str:
    """Return the first line of the docstring, or what a constant is."""
    if isinstance(name.value, types.ModuleType) and not has_own_doc(name.value):
        return "A module."
    if not has_own_doc(name.value):
        return f"``{plain(repr(name.value))}``"
    text = first_line(name.value)
    if not is_ours(name.value):
        text = text or f"As in {name.value.__module__.partition('.')[0]}."
    return escape(text) or "–"


def escape(text: str) -> str:
    """Return a text of one line as reStructuredText: what is between backticks is code."""
    parts = text.replace("``", "`").split("`")
    if len(parts) % 2 == 0:
        return parts[0].translate(SPECIAL) + "…"
    return "".join(
        f"``{part}``" if i % 2 and part else part.translate(SPECIAL) for i, part in enumerate(parts)
    )


SPECIAL = str.maketrans({"*": r"\*", "|": r"\|", "_": r"\_", "\\": r"\\"})


GROUPS = {
    "chainrule": ("tensor", *TOPICS, "others"),
    "Namespaces": tuple(NAMESPACES),
}


def index(found: Iterable[Page]) -> str:
    titles = {page.file: page.title for page in found if any_names(page)}
    lines = [".. Written by tools/reference_pages.py.", "", *heading("Reference", "=")]
    lines += [INTRODUCTION, ""]
    for group, files in GROUPS.items():
        lines += [*heading(group, "-"), ".. toctree::", "   :maxdepth: 1", ""]
        lines += [f"   {file}" for file in files if file in titles]
        lines += [""]
    return "\n".join(lines)


INTRODUCTION = """\
Every public name: its arguments with shapes and dtypes, what it raises, and its derivative.
``cr`` is ``chainrule``."""


def any_names(page: Page) -> bool:
    return any(part.described or part.listed for part in page.sections)


def main() -> None:
    """Write the pages; those that did not change keep their time, so that Sphinx reuses them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    texts = {f"{page.file}.rst": render(page) for page in pages() if any_names(page)}
    texts["index.rst"] = index(pages())
    for old in FOLDER.iterdir():
        if old.name not in texts:
            old.unlink()
    for file, text in texts.items():
        path = FOLDER / file
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
