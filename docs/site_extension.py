"""Additions to Sphinx for this site: formulas as MathML, links in docstrings and to sources."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

DOCS = Path(__file__).resolve().parent
SOURCE = DOCS.parent / "src"
sys.path.insert(0, str(DOCS.parent / "tools"))

import reference_pages  # noqa: E402 - in tools/

# --- formulas: browsers show MathML, without a script ---------------------------------------------


def visit_inline(self: Any, node: nodes.math) -> None:
    self.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def visit_display(self: Any, node: nodes.math_block) -> None:
    formula = tex2mathml(node.astext(), as_block=True)
    self.body.append(f'<div class="formula">{formula}</div>')
    raise nodes.SkipNode


# --- docstrings -----------------------------------------------------------------------------------

CODE = re.compile(r"(?<![`:\w\\])`([^`\n]+)`(?![`_])")


@cache
def described() -> frozenset[str]:
    """Return the full names that have a description of their own to link to."""
    parts = [part for page in reference_pages.pages() for part in page.sections]
    return frozenset(name.path for part in parts for name in part.described)


def as_markup(prose: str, link: Callable[[str], str]) -> str:
    """Return the prose of a docstring as reStructuredText.

    Vertical bars and asterisks are no markup: they are absolute values and arguments. References
    to literature get plain labels, which must be unique in a docstring, not on a page.
    """
    prose = re.sub(r"``.+?``|`[^`]+`|[|*]", lambda m: "\\" * (m[0] in "|*") + m[0], prose)
    prose = re.sub(r"(?m)^(\s*)\.\. \[(\d+)\] ", r"\1| [\2] ", prose)
    prose = re.sub(r"\[(\d+)\]_", r"[\1]", prose)
    return CODE.sub(lambda m: link(m[1]), prose)


def mend_docstring(
    app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]
) -> None:
    """Link the names between backticks that have a description; make all others code."""
    try:
        own = set(inspect.signature(found).parameters)
    except (TypeError, ValueError):
        own = set()
    scopes = [f"{name}.", f"{name.rpartition('.')[0]}.", "chainrule.", ""]

    def link(text: str) -> str:
        code = text.removesuffix("()")
        if code not in own and re.fullmatch(r"[A-Za-z_][\w.]+", code):  # not `t`, a tensor
            for scope in scopes:
                path = scope + (code.removeprefix("cr.") if scope else code)
                if path in described() and path != name:
                    return f":py:obj:`{text} <{path}>`"
        return f"``{text}``"

    paragraphs = []
    for paragraph in "\n".join(lines).split("\n\n"):
        prose, prompt, example = paragraph.partition(">>> ")
        paragraphs.append(as_markup(prose, link) + prompt + example)
    lines[:] = "\n\n".join(paragraphs).split("\n")


def restore_first_line(
    app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]
) -> None:
    """Undo that napoleon takes what precedes a colon in a property's first line for its type."""
    for index, line in enumerate(lines):
        if what in ("property", "attribute") and line.startswith(":type: "):
            lines[0] = f"{line.removeprefix(':type: ')}: {lines[0]}"
            del lines[index]
            return


def add_source(app: Any, what: str, name: str, found: Any, options: Any, lines: list[str]) -> None:
    """Name the file below a description of a function or class."""
    if what not in ("function", "class", "exception"):
        return
    try:
        file = Path(inspect.getsourcefile(inspect.unwrap(found)) or "")
    except TypeError:
        return
    if file.is_relative_to(SOURCE):
        lines += ["", ".. rst-class:: source", "", file.relative_to(SOURCE).as_posix()]


# --- pages ----------------------------------------------------------------------------------------

INCLUDE = re.compile(r"<!-- include (\S+) -->")
LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<path>\.\.?/[^)]+)\)")
# Files at the top of the repository that are pages of the site, too.
PAGES = {"README": "index", "CHANGELOG": "changelog", "CONTRIBUTING": "contributing"}


def adapt_page(app: Any, document: str, content: list[str]) -> None:
    """Include files of the repository, unlink those that the site lacks, and drop empty globs."""
    for file in INCLUDE.findall(content[0]):
        path = (DOCS / file).resolve()
        app.env.note_dependency(str(path))
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"\]\((?!\w+:|#)", "](../", text)
        content[0] = content[0].replace(
            f"<!-- include {file} -->", text.replace('src="docs/', 'src="')
        )
    content[0] = LINK.sub(site_link, content[0])
    if document == "index":
        content[0] = re.sub(
            r"(?m)^([\w/-]+\*)$", lambda m: m[0] if [*DOCS.glob(f"{m[1]}.md")] else "", content[0]
        )


def site_link(link: re.Match[str]) -> str:
    """Return a link that leads out of docs/ as one to a page of the site, or as text alone."""
    path = link["path"]
    if path.startswith("./"):
        return link[0]
    while path.startswith("../"):
        path = path.removeprefix("../")
    path, _, anchor = path.removeprefix("docs/").partition("#")
    page = PAGES.get(path.removesuffix(".md"), path.removesuffix(".md"))
    if (DOCS / f"{page}.md").is_file() or (DOCS / path).is_file():
        target = path if path.endswith(".rst") else f"{page}.md"
        return f"[{link['text']}](/{target}{'#' + anchor if anchor else ''})"
    return link["text"]


def setup(app: Any) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    app.connect("autodoc-process-docstring", mend_docstring, priority=100)  # napoleon has 500
    app.connect("autodoc-process-docstring", restore_first_line, priority=900)
    app.connect("autodoc-process-docstring", add_source, priority=900)
    app.connect("source-read", adapt_page)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
