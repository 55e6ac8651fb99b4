"""The pages of the site: other libraries' spellings on them give what ours give.

`python3 dev.py docs` runs every cell of every page, each page in a notebook of its own; an error
fails the build. So pages are not run here but for those that have the spellings of a library.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import io
import re
import sys
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

DOCS = Path(__file__).parents[1] / "docs"
FOLDERS = ("tutorials", "how-to", "explanations", "coming-from")
PAGES = sorted(str(page.relative_to(DOCS)) for f in FOLDERS for page in (DOCS / f).glob("*.md"))
PEERS = {"PyTorch": "torch", "JAX": "jax", "HIPS autograd": "autograd.numpy"}

_BLOCK = re.compile(r"^```(?P<kind>.*)\n(?P<text>(?:.*\n)*?)```$", re.M)
_OPTION = re.compile(r":(\w+): *(.*)\n")


class Cell(NamedTuple):
    """A block of code of a page."""

    peer: str | None  # the library whose spelling it is; None for ours
    code: str
    line: int

    def run(self, scope: dict[str, Any]) -> Any:
        """Run the cell and return the value of its last line, if that is an expression."""
        tree = ast.parse(self.code)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, f"<line {self.line}>", "exec"), scope)
        if not isinstance(last, ast.Expr):
            return None
        return eval(compile(ast.Expression(last.value), f"<line {self.line}>", "eval"), scope)


def cells(page: str) -> Iterator[Cell]:
    """Yield the blocks of a page that are run, without their options."""
    content = (DOCS / page).read_text(encoding="utf-8")
    for found in _BLOCK.finditer(content):
        options, code = {}, found["text"]
        while option := _OPTION.match(code):
            options[option[1]], code = option[2], code[option.end() :]
        peer = options.get("caption")
        if found["kind"] == "{code-cell}" or (found["kind"] == "{code-block} python" and peer):
            yield Cell(peer, code, content[: found.start()].count("\n") + 1)


WITH_PEERS = [page for page in PAGES if any(cell.peer for cell in cells(page))]


def numbers(value: Any) -> list[Any]:
    """Return the arrays of a result, in their order."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        return [array for part in value for array in numbers(part)]
    return [np.asarray(value.detach() if hasattr(value, "detach") else value)]


@pytest.mark.parametrize("page", WITH_PEERS)
def test_both_spellings_give_the_same(page: str) -> None:
    found = list(cells(page))
    (peer,) = {cell.peer for cell in found if cell.peer}
    pytest.importorskip(PEERS[peer])
    theirs: dict[str, Any] = {}
    ours: dict[str, Any] = {}
    expected = None
    compared = 0
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the other library
        for cell in found:
            if cell.peer:
                expected = cell.run(theirs)
                continue
            result = cell.run(ours)
            if expected is not None:
                for a, b in zip(numbers(result), numbers(expected), strict=True):
                    line = f"{page}, line {cell.line}"
                    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=line)
                compared += 1
            expected = None
    assert compared >= 4


def test_the_pages_with_other_spellings_are_found() -> None:
    names = [Path(page).stem for page in WITH_PEERS if page.startswith("coming-from")]
    assert names == ["hips-autograd", "jax", "pytorch"]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_has_a_title_and_a_kernel(page: str) -> None:
    content = (DOCS / page).read_text(encoding="utf-8")
    assert len(re.findall(r"^# .+", _BLOCK.sub("", content), re.M)) == 1
    if "{code-cell}" in content:
        assert content.startswith("---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n")


def test_what_pages_import_is_installed_for_them() -> None:
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    required = [re.split(r"[\[<>=]", each)[0] for each in project["dependencies"] + extras["docs"]]
    own = {"chainrule", "gaussian_process", "regression"}  # pages write the others
    for page in PAGES:
        for code in [cell.code for cell in cells(page) if not cell.peer]:
            for line in re.findall(r"^ *(?:import|from) +(\w+)", code, re.M):
                known = line in sys.stdlib_module_names or line in {*own, *required}
                assert known, f"{page} imports {line}, which the extra `docs` lacks"
            if "cr.distributed" in code or "chainrule.distributed" in code:
                assert set(extras["distributed"]) <= set(required)


def test_outputs_on_the_site_are_tidy() -> None:
    pytest.importorskip("docutils")
    path = DOCS / "cell_outputs.py"
    spec = importlib.util.spec_from_file_location("cell_outputs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    source = "    t1 = np.exp(x)" + 60 * " " + "# f8[3]\n"
    assert module.tidy(source) == source
    message = "  f (kernels/ipykernel_12/345.py:1) " + 15 * "returns " + "None"
    first, second = module.tidy(message).splitlines()
    assert first.startswith("  f (cell:1) returns")
    assert len(first) <= module.WIDTH
    assert second.startswith("  returns")
