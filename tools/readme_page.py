"""Write the table of speed in README.md, and its picture, docs/_static/overview.svg.

    python3 tools/readme_page.py            write both
    python3 tools/readme_page.py --check    only report whether they are current

The figures are those printed in docs/benchmarks.md; the picture shows a function, the graph that is
recorded of it, and the source of its gradient, as chainrule makes them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import chainrule as cr

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "README.md"
PICTURE = ROOT / "docs" / "_static" / "overview.svg"
BENCHMARKS = ROOT / "docs" / "benchmarks.md"

# --- the table ------------------------------------------------------------------------------------

# What the rows say, and where their figures are: a part of docs/benchmarks.md, and a row in it.
ROWS = [
    ("an addition, eager", "eager", "add"),
    ("a custom function, eager", "eager", "custom: by name"),
    ("a network of two layers, a training step", "compiling", "two-layer network, a step"),
    ("MLP 784-512-512-10 with Adam", "compiling", "MLP step, 256 × 784-512-512-10, Adam"),
    ("transformer block, gradient", "compiling", "transformer block, gradient"),
    ("LSTM, gradient", "compiling", "LSTM gradient, 2 × 14, 64 characters"),
    ("Gaussian mixture, gradient", "compiling", "Gaussian mixture, n 10000, d 10, k 25"),
    ("logistic regression, Hessian", "compiling", "logistic regression, 5000 × 50: Hessian"),
    ("convolutional network, an epoch", "training", "CNN, epoch of 1,408 digits, compiled"),
]
COLUMNS = ("chainrule", "PyTorch", "torch.compile", "JAX jit")


def figures(text: str, part: str, name: str) -> dict[str, str]:
    """Return the cells of a row of the first table with it in a part of the benchmarks."""
    found = re.search(rf"<!-- {part} -->(.*?)<!-- end of {part} -->", text, re.S)
    assert found is not None, f"docs/benchmarks.md has no part {part}"
    header: list[str] = []
    for line in found[1].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if "chainrule" in cells:
            header = cells
        elif cells[0] == name:
            return dict(zip(header, cells, strict=True))
    raise SystemExit(f"docs/benchmarks.md: no row {name!r} in the part {part}")


def table() -> str:
    text = BENCHMARKS.read_text(encoding="utf-8")
    lines = [f"| µs | {' | '.join(COLUMNS)} |", "| --- " + "| ---: " * len(COLUMNS) + "|"]
    for label, part, name in ROWS:
        cells = figures(text, part, name)
        lines.append(f"| {label} | " + " | ".join(short(cells.get(c, "–")) for c in COLUMNS) + " |")
    return "\n".join(lines)


def short(figure: str) -> str:
    """Return a figure without the digits that change from run to run."""
    return f"{float(figure):,.0f}" if figure != "–" and float(figure) >= 100 else figure


def with_table(page: str) -> str:
    pattern = r"(<!-- speed -->\n).*?(\n<!-- end of speed -->)"
    return re.sub(pattern, lambda m: m[1] + "\n" + table() + "\n" + m[2], page, flags=re.S)


# --- the picture ----------------------------------------------------------------------------------

EXAMPLE = """\
def wave(x):
    y = x * cr.sin(x)
    return y.sum()"""

STYLE = """\
    .card { fill: #ffffff; stroke: #d0d7de } .title { fill: #57606a; font-weight: 600 }
    text { fill: #1f2328; font: 14px system-ui, sans-serif }
    .code { font: 13.5px ui-monospace, Menlo, Consolas, monospace; white-space: pre }
    .key { fill: #a626a4 }
    .node { fill: #eef4ff; stroke: #4c78dd; stroke-width: 1.5 }
    .leaf { fill: #fff4e5; stroke: #d9822b }
    .edge { stroke: #8b949e; stroke-width: 1.5; fill: none; marker-end: url(#tip) }
    .mid { text-anchor: middle }
    @media (prefers-color-scheme: dark) {
      .card { fill: #161b22; stroke: #30363d } .title { fill: #9da7b3 } text { fill: #e6edf3 }
      .key { fill: #d2a8ff } .node { fill: #12233f; stroke: #6ea0ff }
      .leaf { fill: #33230f; stroke: #e3a04f }
    }"""


def example() -> tuple[Callable[..., Any], Any]:
    """Return the function of the picture, and an argument."""
    scope: dict[str, Any] = {"cr": cr}
    exec(EXAMPLE, scope)
    return scope["wave"], cr.tensor([0.5, 1.0, 2.0], dtype=cr.float64, requires_grad=True)


def operations(node: Any) -> list[str]:
    """Return the names of the recorded operations, the first first."""
    below = [name for edge, _ in node.next_functions if edge for name in operations(edge)]
    name = node.name().removesuffix("Backward0").lower()
    return list(dict.fromkeys([*below, "x" if name == "accumulategrad" else name]))


def source() -> list[str]:
    """Return the lines of the gradient's source, without the checks of its arguments."""
    wave, x = example()
    gradient = cr.compile(cr.grad(wave), backend="numpy")
    gradient(x.detach())
    lines = gradient.source.splitlines()
    return [line.partition("#")[0].rstrip() for line in lines if line.strip()[:1] not in ("#", "")]


def code(lines: Iterable[str], x: float, y: float) -> list[str]:
    """Return text elements of lines of code."""
    found = []
    for i, line in enumerate(lines):
        marked = re.sub(r"\b(def|return)\b", r'<tspan class="key">\1</tspan>', escape(line))
        found.append(f'  <text class="code" x="{x}" y="{y + 21 * i}">{marked}</text>')
    return found


def picture() -> str:
    wave, x = example()
    names = operations(wave(x).grad_fn)
    assert names == ["x", "sin", "mul", "sum"], names  # what the coordinates below are for
    gradient = [line for line in source() if "assert" not in line]
    return "\n".join(
        [
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 868 236" role="img"',
            '  aria-label="A function, the graph that is recorded of it, and its derivative">',
            f"  <style>\n{STYLE}\n  </style>",
            '  <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"',
            '    markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#8b949e"/>',
            "  </marker></defs>",
            *card(4, 256, "You write a function"),
            *code(EXAMPLE.splitlines(), 24, 74),
            *card(276, 240, "chainrule records it"),
            *(node(*place) for place in NODES),
            *(f'  <path class="edge" d="{path}"/>' for path in EDGES),
            *card(532, 332, "Its gradient is NumPy code to read"),
            *code(gradient, 552, 74),
            "</svg>\n",
        ]
    )


def card(x: int, width: int, title: str) -> list[str]:
    return [
        f'  <rect class="card" x="{x}" y="4" width="{width}" height="228" rx="10"/>',
        f'  <text class="title" x="{x + 20}" y="36">{title}</text>',
    ]


NODES = [(396, 206, "x", "leaf"), (340, 156, "sin", ""), (396, 110, "×", ""), (396, 64, "sum", "")]
EDGES = [
    "M384 193 353 173",  # from x to sin
    "M353 143 382 124",  # from sin to the product
    "M402 191C416 170 416 148 404 127",  # from x to the product
    "M396 94 396 81",
]


def node(x: int, y: int, text: str, kind: str) -> str:
    box = f'<rect class="node {kind}" x="{x - 24}" y="{y - 15}" width="48" height="30" rx="15"/>'
    return f'  {box}<text class="mid" x="{x}" y="{y + 5}">{text}</text>'


def main(options: list[str]) -> int:
    """Write both, or report with the exit status 1 which is outdated."""
    wanted = {PAGE: with_table(PAGE.read_text(encoding="utf-8")), PICTURE: picture()}
    outdated = {
        path: text
        for path, text in wanted.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    }
    for path, text in outdated.items():
        if "--check" in options:
            print(f"{path.name} is outdated: run python3 tools/readme_page.py")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.name}")
    return 1 if outdated and "--check" in options else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
