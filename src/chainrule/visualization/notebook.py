"""Displays in notebooks: tensors with their values and origin, compiled functions with source."""

from __future__ import annotations

import linecache
from html import escape
from importlib import import_module
from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor, is_parameter
from chainrule.compiler.api import Compiled
from chainrule.errors import CompileError
from chainrule.nn.parameter import is_uninitialized
from chainrule.visualization.recording import norm, type_text
from chainrule.visualization.svg_drawing import DARK_PAGES, LIGHT_PAGES, within

_COLOURS = """--cr-ink: #1d2733; --cr-muted: #5a6675; --cr-line: #d5dbe2; --cr-paper: #fdfdfe;
  --cr-keyword: #7a2a9b; --cr-string: #a3352b; --cr-number: #0b6e99; --cr-function: #1d5fbf;"""
_DARK_COLOURS = """--cr-ink: #e6ebf1; --cr-muted: #a3afbd; --cr-line: #3a4653; --cr-paper: #131a22;
  --cr-keyword: #d6a1ee; --cr-string: #f0a39a; --cr-number: #7fd0ee; --cr-function: #8fbcff;"""

_STYLE = f"""<style>
.cr-box {{ {_COLOURS} color: var(--cr-ink); background: var(--cr-paper); display: inline-block;
  border: 1px solid var(--cr-line); border-radius: 8px; padding: 6px 10px; max-width: 100%;
  overflow: auto; box-sizing: border-box;
  font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }}
@media (prefers-color-scheme: dark) {{ .cr-box {{ {_DARK_COLOURS} }} }}
{within(LIGHT_PAGES, ".cr-box")} {{ {_COLOURS} }}
{within(DARK_PAGES, ".cr-box")} {{ {_DARK_COLOURS} }}
.cr-box .cr-about {{ color: var(--cr-muted); margin: 3px 0; }}
.cr-box pre {{ color: inherit; background: none; margin: 4px 0; line-height: 1.4;
  font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }}
.cr-box :is(.k, .kn, .kc, .ow) {{ color: var(--cr-keyword); font-weight: 600; }}
.cr-box :is(.s1, .s2, .sa) {{ color: var(--cr-string); }}
.cr-box :is(.mi, .mf) {{ color: var(--cr-number); }}
.cr-box .nf {{ color: var(--cr-function); font-weight: 600; }}
.cr-box .c1 {{ color: var(--cr-muted); font-style: italic; }}
.cr-box tr {{ background: none !important; }}
.cr-box table {{ border-collapse: collapse; margin: 4px 0; font-variant-numeric: tabular-nums; }}
.cr-box td {{ text-align: right; padding: 1px 7px; border: 1px solid var(--cr-line);
  background: none; color: var(--cr-ink); font-size: 12px; }}
</style>"""

_EDGE = 5
"""Number of rows and columns that are shown at each end of a large tensor."""


def tensor_html(tensor: Tensor) -> str:
    """Return a tensor as HTML: its type, values, gradient, and the operation that made it."""
    array = None if is_uninitialized(tensor) else tensor._array
    if not isinstance(array, np.ndarray):  # of a device, of a running transform, or not yet made
        return f"{_STYLE}<div class='cr-box'><pre>{escape(repr(tensor))}</pre></div>"
    kind = "Parameter" if is_parameter(tensor) else "Tensor"
    parts = [f"<b>{kind}</b> {escape(type_text((array.shape, array.dtype)))}", _values(tensor)]
    parts.append(f"<div class='cr-about'>{escape(_origin(tensor))}</div>")
    gradient = tensor._grad
    if gradient is not None:
        parts.append(
            f"<details><summary>gradient, norm {norm(gradient):.4g}</summary>"
            f"{_values(gradient)}</details>"
        )
    return f"{_STYLE}<div class='cr-box'>{''.join(parts)}</div>"


def _values(tensor: Tensor) -> str:
    array = tensor._array
    if not isinstance(array, np.ndarray) or array.ndim not in (1, 2) or not array.size:
        return f"<pre>{escape(repr(tensor.detach()))}</pre>"
    rows = array.reshape(1, -1) if array.ndim == 1 else array
    lines = []
    for i in _shown(rows.shape[0]):
        cells = [_cell(rows, i, j) for j in _shown(rows.shape[1])]
        lines.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _shown(length: int) -> list[int | None]:
    """Return the indices that are shown, with None for those left out."""
    if length <= 2 * _EDGE + 1:
        return list(range(length))
    return [*range(_EDGE), None, *range(length - _EDGE, length)]


def _cell(rows: Any, i: int | None, j: int | None) -> str:
    if i is None or j is None:
        return "⋮" if j is not None else "…"
    value = rows[i, j]
    return escape(f"{value:.4g}" if rows.dtype.kind in "fc" else str(value))


def _origin(tensor: Tensor) -> str:
    node = tensor.grad_fn
    if node is not None:
        if node.location is None:
            return f"result of {node.name}"
        name, line, _ = node.location
        source = linecache.getline(name, line).strip()
        return f"result of {node.name}, line {line}{': ' if source else ''}{source}"
    if tensor.requires_grad:
        return "leaf: its gradient accumulates in .grad"
    return "requires no gradient"


def compiled_html(compiled: Compiled) -> str:
    """Return a compiled function as HTML: its cost, and its source with highlighting."""
    title = f"<b>{escape(repr(compiled)[1:-1])}</b>"
    try:
        source, report = compiled.source, compiled.program
    except CompileError as error:
        return f"{_STYLE}<div class='cr-box'>{title}<div>{escape(str(error))}</div></div>"
    count = len(compiled.signatures)
    signatures = f"{count} signature{'s' * (count != 1)}, the last one:"
    return (
        f"{_STYLE}<div class='cr-box'>{title}<div class='cr-about'>{signatures} "
        f"{escape(str(report.cost))}</div>{highlighted(source)}</div>"
    )


def highlighted(source: str) -> str:
    """Return Python source as HTML, with colours if Pygments is installed."""
    try:
        pygments: Any = import_module("pygments")
        formatters: Any = import_module("pygments.formatters")
        lexers: Any = import_module("pygments.lexers")
    except ImportError:
        return f"<pre>{escape(source)}</pre>"
    text: str = pygments.highlight(
        source, lexers.PythonLexer(), formatters.HtmlFormatter(nowrap=True)
    )
    return f"<pre>{text}</pre>"
