"""`graph`: the recorded graph of tensors as text, SVG, HTML, dot and Mermaid."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from chainrule.autograd.location import own_frame
from chainrule.errors import ArgumentError
from chainrule.visualization.condensing import condense
from chainrule.visualization.graph_page import page
from chainrule.visualization.graph_text import Tree, dot, mermaid
from chainrule.visualization.naming import Naming
from chainrule.visualization.recording import Recording, read
from chainrule.visualization.stretches import Arrangement, arrange
from chainrule.visualization.svg_drawing import Drawing, bytes_text


def graph(outputs: Any, *, names: Any = None) -> Graph:
    """Return the recorded graph of tensors as an object that prints, draws and saves itself.

    Parameters
    ----------
    outputs : Tensor, or nested list, tuple or dict of Tensors
        Results of a computation. A tensor without a history is a single box.
    names : dict of Tensors and Modules by name, or Module, optional
        Names of leaves and of intermediate tensors; a module gives its parameters their dotted
        names. Other tensors and modules have the names of the caller's variables.

    Returns
    -------
    Graph
        ``print`` shows a tree, a notebook shows a picture, and ``save("g.svg")`` writes a file.
        Its boxes are operations, with the shape and dtype of the result, the bytes that are kept
        for the backward pass and the line of code; leaves, with the norm of their gradient after
        a pass; and constants that are kept. Custom functions are boxes of their own.
        Modules and calls that record several operations are frames around them, and stretches that
        repeat, such as the body of a loop, are shown once. It keeps no arrays.

    Raises
    ------
    ArgumentError
        If there is no tensor among `outputs`, or `names` is of another kind.

    See Also
    --------
    derivation : The derivative step by step.
    saved_report : What the graph keeps in memory.

    Notes
    -----
    A layered drawing [1]_. Where python-igraph or Graphviz's ``dot`` is installed, it orders the
    boxes of a layer if it finds fewer crossings. From 300 boxes on, groups are closed.

    References
    ----------
    .. [1] K. Sugiyama, S. Tagawa, M. Toda, IEEE Trans. Syst. Man Cybern. 11(2), 1981.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([1.0, 2.0, 3.0])
    >>> w = cr.tensor([0.5, -1.0, 2.0], requires_grad=True)
    >>> loss = ((x * w).sum() - 1) ** 2
    >>> g = cr.graph(loss, names={"loss": loss, "x": x, "w": w})
    >>> print(g.title)
    graph of loss: 4 operations, 1 leaf, keeps 16 B
    >>> g.to_svg()[:4], g.to_mermaid()[:9]
    ('<svg', 'flowchart')
    """
    naming = Naming(names, own_frame(sys._getframe(1)))
    return Graph(read(outputs, naming, "graph"), naming)


class Graph:
    """A recorded graph, made by `graph`. It keeps no arrays and no tensors."""

    def __init__(self, recording: Recording, naming: Naming) -> None:
        recording.release()
        self._recording = recording
        self._arrangement: Arrangement = arrange(recording, naming)
        condense(self._arrangement)

    # --- contents ---

    @property
    def operations(self) -> int:
        """Number of recorded operations and calls of custom functions."""
        return len(self._recording.operations)

    @property
    def leaves(self) -> int:
        """Number of leaves, whose gradients accumulate."""
        return sum(vertex.kind == "leaf" for vertex in self._recording.vertices)

    @property
    def nbytes(self) -> int:
        """Bytes that the graph keeps for its backward pass, shared memory counted once."""
        saved = [a for v in self._recording.vertices for a in v.saved or ()]
        return sum({a.key: a.nbytes for a in saved}.values())

    @property
    def title(self) -> str:
        """One line about the graph."""
        names = [source.vertex.name for source in self._recording.outputs]
        of = f" of {', '.join(filter(None, names))}" if any(names) else ""
        counts = f"{_count(self.operations, 'operation')}, {_count(self.leaves, 'leaf', 'leaves')}"
        return f"graph{of}: {counts}, keeps {bytes_text(self.nbytes)}"

    # --- forms ---

    @cached_property
    def _drawing(self) -> Drawing:
        return Drawing(self._arrangement)

    def to_svg(self) -> str:
        """Return the picture as SVG, in light or dark as the viewer prefers."""
        return self._drawing.svg(f"cr{id(self):x}")

    def to_html(self) -> str:
        """Return a page that zooms, pans and searches, in one file that needs no network."""
        return page(self._drawing.svg(), self.title, str(Tree(self._arrangement)))

    def to_dot(self) -> str:
        """Return the graph in Graphviz's language."""
        return dot(self._arrangement)

    def to_mermaid(self) -> str:
        """Return the graph as a Mermaid flowchart, which Markdown pages show."""
        return mermaid(self._arrangement)

    def save(self, path: str | Path) -> Path:
        """Write the graph in the format of the file's suffix; return the path.

        Parameters
        ----------
        path : str or Path
            Ends in ``.svg``, ``.html``, ``.dot`` (or ``.gv``), ``.mmd`` or ``.txt``.

        Raises
        ------
        ArgumentError
            If the suffix is another.
        """
        path = Path(path)
        formats: dict[str, Callable[[], str]] = {
            ".svg": lambda: self._drawing.svg(),
            ".html": self.to_html,
            ".dot": self.to_dot,
            ".gv": self.to_dot,
            ".mmd": self.to_mermaid,
            ".txt": lambda: f"{self}\n",
        }
        if path.suffix.lower() not in formats:
            raise ArgumentError(
                f"save: expected a file that ends in {', '.join(formats)}, got {path.name!r}. For "
                "PNG or PDF, save .dot and run Graphviz on it, or open .html and print it"
            )
        path.write_text(formats[path.suffix.lower()](), encoding="utf-8")
        return path

    def __str__(self) -> str:
        tree = Tree(self._arrangement)
        where = f", in {tree.file}" if tree.file else ""
        return f"{self.title}{where}\n{tree}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f'<div style="overflow: auto; max-height: 640px">{self.to_svg()}</div>'


def _count(number: int, singular: str, plural: str = "") -> str:
    return f"{number} {singular if number == 1 else plural or singular + 's'}"
