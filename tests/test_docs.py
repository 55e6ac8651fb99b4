"""The Python blocks of the documentation run in order, and print the text below them.

Run as a script with the name of a page, this writes the output of the blocks into the page.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).parent.parent
NAMES = ("compiling", "custom-functions", "scaling", "solvers", "stats", "transforms", "why")
PAGES = ["README.md", *(f"docs/{name}.md" for name in NAMES)]
BLOCK = re.compile(r"```python\n(?P<code>.*?)```(?P<between>\n\n```text\n(?P<text>.*?)```)?", re.S)


def outputs(page: pathlib.Path) -> Iterator[tuple[re.Match[str], str]]:
    """Yield the blocks of a page and their output, run in order."""
    scope: dict[str, object] = {"__name__": "page"}
    content = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(content):
        line = content[: found.start()].count("\n") + 1
        code = compile("\n" * line + found["code"], str(page), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, scope)
        yield found, printed.getvalue()


@pytest.mark.parametrize("page", PAGES)
def test_the_page_says_what_it_prints(page: str) -> None:
    if re.search(r"import scipy|cr\.scipy\.", (ROOT / page).read_text(encoding="utf-8")):
        pytest.importorskip("scipy")
    if page == "docs/scaling.md":
        pytest.importorskip("distributed")
    for found, printed in outputs(ROOT / page):
        if found["text"] is not None:
            assert found["text"] == printed


# --- links ----------------------------------------------------------------------------------------

MARKDOWN = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
MARKDOWN = [page for page in MARKDOWN if "_build" not in page.parts]


def slugs(page: pathlib.Path) -> set[str]:
    """Return the anchors of a page's headings, as Git hosts and MyST make them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    headings = re.findall(r"(?m)^#+ (.+)$", text)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere_on_a_git_host(page: pathlib.Path) -> None:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S)
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", text):
        path, _, anchor = (target[0] or target[1]).partition("#")
        if re.match(r"\w+:", path) or "reference/" in path:  # which is written for the site alone
            continue
        found = page.parent / path if path else page
        if not found.exists() or (anchor and anchor not in slugs(found)):
            broken.append(f"{path}#{anchor}")
    assert broken == []


def glossary() -> list[tuple[str, str, str]]:
    """Return the terms of the glossary with their meanings and files."""
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [(row[0], row[1], row[2] if len(row) > 2 else "") for row in rows[2:]]


def test_the_glossary_is_sorted() -> None:
    terms = [re.sub(r"[*`]", "", term).lower() for term, _, _ in glossary()]
    assert terms == sorted(terms)


@pytest.mark.parametrize(("term", "meaning", "files"), glossary())
def test_the_glossary_names_what_exists(term: str, meaning: str, files: str) -> None:
    content = ""
    for name in re.findall(r"`(.+?)`", files):
        path = ROOT / name if name.startswith("tests/") else ROOT / "src" / "chainrule" / name
        assert path.exists()
        sources = [path] if path.is_file() else path.rglob("*.py")
        content += "".join(source.read_text(encoding="utf-8") for source in sources)
    for name in re.findall(r"`(\w+)`", term + meaning):
        assert not content or re.search(rf"\b{name}\b", content)


def load_tool(name: str) -> Any:
    """Return a module in tools/, which writes a page."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    sys.modules[name] = tool  # where dataclasses look for it
    spec.loader.exec_module(tool)
    return tool


def design_tool() -> Any:
    """Return tools/design_page.py, which writes the generated parts of two pages."""
    return load_tool("design_page")


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["design_page", "readme_page"])
def test_a_written_page_is_current(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = load_tool(name).main(["--check"])
    assert status == 0, capsys.readouterr().out


def test_the_readme_has_figures_that_the_benchmarks_print() -> None:
    tool = load_tool("readme_page")
    text = tool.BENCHMARKS.read_text(encoding="utf-8")
    row = tool.figures(text, "eager", "add")
    assert f"| add | {row['chainrule']} | {row['PyTorch']} |" in text
    with pytest.raises(SystemExit, match="no row 'nothing' in the part eager"):
        tool.figures(text, "eager", "nothing")


def test_an_outdated_design_page_is_noticed(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = design_tool()
    page, other = tmp_path / "design.md", tmp_path / "adding-an-operation.md"
    monkeypatch.setattr(tool, "PAGES", [page, other])
    other.write_text("Nothing is quoted here.", encoding="utf-8")
    row = "<!-- code tests/conformance/rows/binary.py: row:hypot -->\nold\n<!-- end of code -->\n"
    page.write_text(row, encoding="utf-8")
    assert tool.main(["--check"]) == 1
    assert "run python3 tools/design_page.py" in capsys.readouterr().out
    assert tool.main([]) == 0
    assert 'row(\n    "hypot"' in page.read_text(encoding="utf-8")
    assert tool.main(["--check"]) == 0


def test_the_design_page_quotes_only_what_exists() -> None:
    with pytest.raises(SystemExit, match="no_such_name"):
        design_tool().page("<!-- code dev.py: no_such_name -->\n<!-- end of code -->")


def test_import_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"e"}}
    assert design_tool().circles(graph) == [{"b", "c"}]


def write(page: pathlib.Path) -> None:
    content = page.read_text(encoding="utf-8")
    for found, printed in reversed(list(outputs(page))):
        if found["text"] is not None:
            content = content[: found.start("text")] + printed + content[found.end("text") :]
    page.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    write(ROOT / sys.argv[1])
