"""`heatmap`: Jacobians and other matrices as pictures of their elements."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError

_MAX_CELLS = 96
"""Number of rows and of columns from which elements are pooled."""
_LEVELS = " ·-+*#@"


def heatmap(values: Any, *, output_ndim: int | None = None) -> Heatmap:
    """Return a matrix, or the blocks of a Jacobian, as a picture of the elements.

    Parameters
    ----------
    values : Tensor or array, or nested dict, list or tuple of them
        A matrix, as `jacobian` and `hessian` return, or blocks by name. Of more dimensions, the
        first are those of the output, the others those of the input.
    output_ndim : int, optional
        Number of dimensions of the output; by default half of them, rounded down.

    Returns
    -------
    Heatmap
        Notebooks show it, ``save("j.svg")`` writes it, and ``print`` shows it with characters.
        Red is positive, blue negative, white zero; nan and infinity are yellow. Of more than 96
        rows or columns, each cell is the element of largest magnitude in its block.

    Raises
    ------
    ArgumentError
        If there is no array, or an array has no elements or is not numeric.

    Examples
    --------
    >>> import chainrule as cr
    >>> J = cr.jacobian(lambda x: x.cumsum(0))(cr.ones(4))
    >>> print(cr.heatmap(J))
    4 × 4, from 0 to 1
    @
    @@
    @@@
    @@@@
    """
    matrices = []
    for path, leaf in pytree.leaves(values):
        array = leaf.detach().numpy(force=True) if isinstance(leaf, Tensor) else np.asarray(leaf)
        if array.dtype.kind not in "biufc" or array.size == 0:
            raise ArgumentError(
                f"heatmap: expected numbers, got an array of {array.dtype} and shape {array.shape}"
            )
        matrices.append((path, _as_matrix(array, output_ndim)))
    if not matrices:
        raise ArgumentError("heatmap: expected a matrix or blocks of a Jacobian, got no array")
    return Heatmap(matrices)


def _as_matrix(array: Any, output_ndim: int | None) -> Any:
    split = array.ndim // 2 if output_ndim is None else output_ndim
    rows = int(np.prod(array.shape[:split]))
    matrix = array.reshape(rows, -1)
    return np.abs(matrix) if matrix.dtype.kind == "c" else matrix.astype(np.float64)


class Heatmap:
    """Matrices as pictures, made by `heatmap`."""

    def __init__(self, matrices: list[tuple[str, Any]]) -> None:
        self._matrices = matrices

    def to_svg(self) -> str:
        """Return the picture as SVG, the blocks below each other."""
        parts, top, width = [], 0.0, 0.0
        for name, matrix in self._matrices:
            cells = _pooled(matrix)
            size = max(3.0, min(24.0, 420.0 / max(cells.shape)))
            title = escape(f"{name} {_about(matrix)}".strip())
            parts.append(f'<text x="4" y="{top + 15:.0f}">{title}</text>')
            parts += _cells(cells, size, top + 22)
            width = max(width, cells.shape[1] * size + 8, 7.2 * len(title) + 8)
            top += cells.shape[0] * size + 34
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{top:.0f}" '
            f'viewBox="0 0 {width:.0f} {top:.0f}" role="img" aria-label="heat map">'
            f'<rect width="{width:.0f}" height="{top:.0f}" rx="6" fill="#fdfdfe"/>'
            '<g font-family="system-ui, Helvetica, sans-serif" font-size="12" fill="#1d2733">'
            f"{''.join(parts)}</g></svg>\n"
        )

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file that ends in ``.svg``; return the path."""
        path = Path(path)
        if path.suffix.lower() != ".svg":
            raise ArgumentError(f"save: expected a file that ends in .svg, got {path.name!r}")
        path.write_text(self.to_svg(), encoding="utf-8")
        return path

    def __str__(self) -> str:
        blocks = []
        for name, matrix in self._matrices:
            cells = _pooled(matrix)
            scale = _largest(cells) or 1.0
            steps = len(_LEVELS) - 1
            lines = [f"{name} {_about(matrix)}".strip()]
            for row in cells:
                levels = [
                    _LEVELS[int(np.ceil(min(abs(v) / scale, 1.0) * steps))]
                    if np.isfinite(v)
                    else "!"
                    for v in row
                ]
                lines.append("".join(levels).rstrip())
            blocks.append("\n".join(lines))
        return "\n\n".join(blocks)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.to_svg()


def _about(matrix: Any) -> str:
    finite = matrix[np.isfinite(matrix)]
    size = f"{matrix.shape[0]} × {matrix.shape[1]}"
    limits = f", from {finite.min():.4g} to {finite.max():.4g}" if finite.size else ""
    lost = matrix.size - finite.size
    return f"{size}{limits}{f', {lost} not finite' if lost else ''}"


def _largest(cells: Any) -> float:
    finite = np.abs(cells[np.isfinite(cells)])
    return float(finite.max()) if finite.size else 0.0


def _pooled(matrix: Any) -> Any:
    """Return a matrix of at most so many cells, each the largest of its block in magnitude."""
    for axis in (0, 1):
        length = matrix.shape[axis]
        if length > _MAX_CELLS:
            edges = np.linspace(0, length, _MAX_CELLS + 1).astype(int)
            blocks = np.split(matrix, edges[1:-1], axis)
            matrix = np.stack([_strongest(block, axis) for block in blocks], axis)
    return matrix


def _strongest(block: Any, axis: int) -> Any:
    magnitude = np.where(np.isnan(block), np.inf, np.abs(block))
    index = np.expand_dims(magnitude.argmax(axis), axis)
    return np.take_along_axis(block, index, axis).squeeze(axis)


def _cells(cells: Any, size: float, top: float) -> list[str]:
    scale = _largest(cells) or 1.0
    found = []
    for i, row in enumerate(cells):
        for j, value in enumerate(row):
            colour = _colour(value / scale) if np.isfinite(value) else "#f2c200"
            found.append(
                f'<rect x="{4 + j * size:.1f}" y="{top + i * size:.1f}" width="{size:.1f}" '
                f'height="{size:.1f}" fill="{colour}" stroke="#e3e7ec" stroke-width="0.4">'
                f"<title>[{i}, {j}] = {value:.6g}</title></rect>"
            )
    return found


def _colour(level: float) -> str:
    """Return the colour of a number between -1 (blue) and 1 (red); 0 is white."""
    end = (178, 24, 43) if level > 0 else (33, 102, 172)
    strength = min(abs(level), 1.0) ** 0.7
    red, green, blue = (round(255 + (c - 255) * strength) for c in end)
    return f"#{red:02x}{green:02x}{blue:02x}"
