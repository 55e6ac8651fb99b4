"""Outputs of cells on the site: long messages are wrapped, and cells have no file names."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from docutils import nodes

LONGEST = 100
"""Columns of the longest line that stays as it is, such as a line of generated source."""
WIDTH = 84
"""Columns that a wide window shows."""

_FILE = re.compile(r"[^\s(]*ipykernel_\d+/\d+\.py")


def tidy(text: str) -> str:
    """Return an output with `cell` for the files of a kernel, and with its long lines wrapped."""
    lines = []
    for line in _FILE.sub("cell", text).splitlines():
        indent = " " * (len(line) - len(line.lstrip()))
        if len(line) > LONGEST:
            line = textwrap.fill(
                line.strip(),
                WIDTH,
                initial_indent=indent,
                subsequent_indent=indent,
                break_long_words=False,
                break_on_hyphens=False,
            )
        lines.append(line)
    return "\n".join(lines) + "\n" * text.endswith("\n")


def tidy_outputs(app: Any, doctree: nodes.document) -> None:
    """Replace the text of each output of a page."""
    for block in doctree.findall(nodes.literal_block):
        if "output" in block["classes"]:
            text = tidy(block.astext())
            block.rawsource = text
            block.children = []
            block += nodes.Text(text)


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("doctree-read", tidy_outputs)
    return {"parallel_read_safe": True, "version": "1"}
