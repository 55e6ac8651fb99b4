"""The Python blocks of the documentation run in order, and print the text below them.

Run as a script with the name of a page, this writes the output of the blocks into the page.
"""

from __future__ import annotations

import contextlib
import io
import pathlib
import re
import sys
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parent.parent
PAGES = ["README.md", "docs/compiling.md", "docs/transforms.md"]
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
    for found, printed in outputs(ROOT / page):
        if found["text"] is not None:
            assert found["text"] == printed


def write(page: pathlib.Path) -> None:
    content = page.read_text(encoding="utf-8")
    for found, printed in reversed(list(outputs(page))):
        if found["text"] is not None:
            content = content[: found.start("text")] + printed + content[found.end("text") :]
    page.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    write(ROOT / sys.argv[1])
