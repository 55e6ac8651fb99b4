"""`summary`: a table of the layers of a module, with shapes, parameters, bytes and FLOPs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.modes import enable_grad, run_in
from chainrule.autograd.node import Node
from chainrule.autograd.primitive_node import PrimitiveNode
from chainrule.autograd.tensor import Tensor
from chainrule.autograd.versions import next_seq
from chainrule.errors import ArgumentError
from chainrule.nn.modules.module import Module
from chainrule.visualization.naming import Naming
from chainrule.visualization.recording import Recording, Vertex, read, shape_text
from chainrule.visualization.svg_drawing import bytes_text


@dataclass
class LayerRow:
    """A module, and what one call of the whole does in it."""

    path: str
    kind: str
    depth: int
    outputs: str = ""
    parameters: int = 0
    """Number of parameters of the module itself, without those of modules within."""
    trainable: int = 0
    nbytes: int = 0
    flops: int | None = None
    """FLOPs of the recorded operations, of modules within too; None if nothing was recorded."""
    calls: int = 0
    has_forward: bool = True
    """Whether it can be called, unlike a `ModuleList`."""
    _begins: list[int] = field(default_factory=list)
    _spans: list[tuple[int, int]] = field(default_factory=list)


class Summary:
    """The layers of a module, made by `summary`: print it."""

    def __init__(self, rows: list[LayerRow], saved: int) -> None:
        self.rows = rows
        self.saved = saved
        """Bytes that the graph of one call keeps for its backward pass."""

    @property
    def parameters(self) -> int:
        """Number of parameters; a shared one counts once."""
        return sum(row.parameters for row in self.rows)

    @property
    def trainable(self) -> int:
        """Number of parameters that require grad."""
        return sum(row.trainable for row in self.rows)

    @property
    def nbytes(self) -> int:
        """Bytes of the parameters."""
        return sum(row.nbytes for row in self.rows)

    @property
    def flops(self) -> int | None:
        """FLOPs of one call, as far as they are known: a multiplication and an addition are two."""
        return self.rows[0].flops

    def __str__(self) -> str:
        table = [("layer", "output", "parameters", "bytes", "FLOPs")]
        for row, lead in zip(self.rows, _leads(self.rows), strict=True):
            name = row.path.rpartition(".")[2]
            calls = f" × {row.calls}" if row.calls > 1 else ""
            table.append(
                (
                    f"{lead}{name}{' · ' if name else ''}{row.kind}{calls}",
                    row.outputs or ("not called" if row.has_forward else ""),
                    f"{row.parameters:,}" if row.parameters else "",
                    bytes_text(row.nbytes) if row.nbytes else "",
                    _count_text(row.flops),
                )
            )
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = []
        for cells in table:
            left = [cell.ljust(width) for cell, width in zip(cells[:2], widths[:2], strict=True)]
            right = [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=True)]
            lines.append("  ".join([*left, *right]).rstrip())
        rule = "─" * max(map(len, lines))
        frozen = self.parameters - self.trainable
        total = f"{self.parameters:,} parameters, {bytes_text(self.nbytes)}"
        if frozen:
            total += f", {frozen:,} of them frozen"
        flops = "" if self.flops is None else f"; {_count_text(self.flops)} FLOP a call"
        kept = f"; the backward pass keeps {bytes_text(self.saved)}" if self.saved else ""
        return "\n".join([lines[0], rule, *lines[1:], rule, total + flops + kept])

    __repr__ = __str__


def summary(module: Module, *inputs: Any, **keywords: Any) -> Summary:
    """Return a table of the layers of a module: output shapes, parameters, bytes and FLOPs.

    Parameters
    ----------
    module : Module
        It is called once in evaluation mode, and has its own mode again afterwards.
    *inputs, **keywords
        Arguments of the call.

    Returns
    -------
    Summary
        Prints as a table. Its `rows` are the modules in order, parents first, and `parameters`,
        `trainable`, `nbytes`, `flops` and `saved` are totals. FLOPs are those of recorded
        operations: products and convolutions count two for each multiplication, other
        operations one for each element; what depends on no parameter is not recorded.

    Raises
    ------
    ArgumentError
        If `module` is no Module, or is called without arguments though it takes some.

    Examples
    --------
    >>> import chainrule as cr
    >>> net = cr.nn.Sequential(cr.nn.Linear(3, 4), cr.nn.ReLU(), cr.nn.Linear(4, 1))
    >>> print(cr.summary(net, cr.ones(8, 3)))
    layer          output  parameters  bytes  FLOPs
    ───────────────────────────────────────────────
    Sequential     8 × 1                        328
    ├─ 0 · Linear  8 × 4           16   64 B    224
    ├─ 1 · ReLU    8 × 4                         32
    └─ 2 · Linear  8 × 1            5   20 B     72
    ───────────────────────────────────────────────
    21 parameters, 84 B; 328 FLOP a call; the backward pass keeps 224 B
    """
    if not isinstance(module, Module):
        raise ArgumentError(
            f"summary: expected a Module, got {type(module).__name__}: write "
            "cr.summary(net, input), with the arguments of a call"
        )
    rows, result = _called(module, inputs, keywords)
    tensors = [leaf for _, leaf in pytree.leaves(result) if isinstance(leaf, Tensor)]
    saved = 0
    if any(tensor.requires_grad for tensor in tensors):
        recording = read(tensors, Naming(), "summary")
        _count_flops(rows, recording)
        saved = sum(
            {
                array.key: array.nbytes
                for vertex in recording.vertices
                for array in vertex.saved or ()
                if not array.lives_anyway
            }.values()
        )
    return Summary(rows, saved)


def _called(module: Module, inputs: Any, keywords: Any) -> tuple[list[LayerRow], Any]:
    """Return a row for each module, and the result of one call."""
    calls = _Calls(module)
    modes = [(each, each.training) for each in module.modules()]
    try:
        for each in calls.rows:
            each.register_forward_pre_hook(calls.before)
            each.register_forward_hook(calls.after)
        module.eval()
        return list(calls.rows.values()), run_in(enable_grad(), module, *inputs, **keywords)
    finally:
        for each, training in modes:
            each.training = training
            if each._hooks is not None:  # not by handles: Ctrl-C may come before there is one
                for kind in ("pre", "post"):
                    each._hooks.remove(kind, calls.owns)


class _Calls:
    """The calls of a module and of those within, which hooks note."""

    def __init__(self, module: Module) -> None:
        self.rows: dict[Module, LayerRow] = {}
        seen = set[int]()
        for path, each in module.named_modules():
            row = LayerRow(path, type(each).__name__, path.count(".") + 1 if path else 0)
            own = [p for p in each.parameters(recurse=False) if id(p) not in seen]
            seen.update(map(id, own))
            row.parameters = sum(int(p.numel()) for p in own)
            row.trainable = sum(int(p.numel()) for p in own if p.requires_grad)
            row.has_forward = type(each).forward is not Module.forward
            row.nbytes = sum(int(p._array.nbytes) for p in own)
            self.rows[each] = row

    def before(self, module: Module, args: Any) -> None:
        self.rows[module]._begins.append(next_seq())

    def after(self, module: Module, args: Any, output: Any) -> None:
        row = self.rows[module]
        row._spans.append((row._begins.pop(), next_seq()))
        row.calls += 1
        shapes = [t.shape for _, t in pytree.leaves(output) if isinstance(t, Tensor)]
        text = "; ".join(dict.fromkeys(map(shape_text, shapes)))
        row.outputs = text or type(output).__name__

    def owns(self, registered: Any) -> bool:
        """Tell whether a registered hook is one of these."""
        return getattr(registered[1], "__self__", None) is self


# --- FLOPs ----------------------------------------------------------------------------------------


def _count_flops(rows: list[LayerRow], recording: Recording) -> None:
    counts = [(node.seq, _flops(node, vertex)) for node, vertex in recording.nodes.items()]
    for row in rows:
        if row.calls:
            row.flops = sum(
                flops
                for seq, flops in counts
                if any(begin < seq < end for begin, end in row._spans)
            )


def _flops(node: Node, vertex: Vertex) -> int:
    """Return the FLOPs of an operation."""
    found = vertex.types[0]
    if not isinstance(node, PrimitiveNode) or found is None:
        return 0
    primitive, size = node.plan.primitive, int(np.prod(found[0]))
    if primitive.name == "matmul":
        return 2 * size * _inner_length(node, vertex)
    if primitive.name == "convolve":
        weight = _operand_shape(node, vertex, 1)
        return 2 * size * int(np.prod(weight[1:])) if weight else 0
    if primitive.view or primitive.name in _DATA_MOVEMENT:
        return 0
    shapes = [_operand_shape(node, vertex, i) for i in range(len(node.edges))]
    return max([size, *(int(np.prod(shape)) for shape in shapes if shape is not None)])


_DATA_MOVEMENT = frozenset(
    ["assign", "astype", "broadcast_to", "concat", "copy", "reshape_copy", "stack", "where"]
)


def _inner_length(node: PrimitiveNode, vertex: Vertex) -> int:
    for position, axis in ((0, -1), (1, -2)):
        shape = _operand_shape(node, vertex, position)
        if shape:
            return shape[max(axis, -len(shape))]
    return 0


def _operand_shape(node: PrimitiveNode, vertex: Vertex, position: int) -> tuple[int, ...] | None:
    if node.input_meta is not None:
        return node.input_meta[position][0]
    operand = vertex.operands[position]
    found = None if isinstance(operand, str) else operand.vertex.types[operand.output]
    return None if found is None else found[0]


def _leads(rows: list[LayerRow]) -> Iterator[str]:
    """Yield the lines of the tree before each row."""
    for i, row in enumerate(rows):
        lead = ""
        for depth in range(1, row.depth + 1):
            following = [r.depth for r in rows[i + 1 :]]
            end = next((d for d in following if d <= depth), 0)
            more = end == depth
            if depth == row.depth:
                lead += "├─ " if more else "└─ "
            else:
                lead += "│  " if more else "   "
        yield lead


def _count_text(count: int | None) -> str:
    if count is None:
        return "–"
    value = float(count)
    for prefix in ("", " k", " M", " G"):
        if value < 1000:
            return f"{value:.3g}{prefix}"
        value /= 1000
    return f"{value:.3g} T"
