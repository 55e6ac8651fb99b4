"""Forward and vjp of common operations on large arrays, compared with eager PyTorch.

Float32 arrays of ten thousand, a million and ten million elements. Each cell is our time divided
by PyTorch's, both medians of interleaved rounds; both libraries run with two threads. A vjp is
timed as `out.backward(g, retain_graph=True)` into leaves whose `.grad` is None, where both
libraries allocate the gradients; PyTorch's `autograd.grad` may return `g` itself or a view of it.
The tables are for NumPy's kernels, the default, and for those of machine code.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any

import harness
import numpy as np

import chainrule as cr

try:
    import torch
except ImportError:
    torch = None

SIZES = {"1e4": 10_000, "1e6": 1_000_000, "1e7": 10_000_000}
ROUNDS = {"1e4": 21, "1e6": 15, "1e7": 7}
MATRICES = {"1e4": (100, 100), "1e6": (1000, 1000), "1e7": (10_000, 1000)}
SQUARES = {"1e4": 100, "1e6": 512, "1e7": 1024}
BAR, MEDIAN_BAR, CONVOLUTION_BAR = 1.5, 0.8, 3.0

Arrays = list[np.ndarray]
Function = Callable[..., Any]


def flat(size: str) -> Arrays:
    return [RNG.uniform(0.1, 2.0, SIZES[size])]


def signed(size: str) -> Arrays:
    return [RNG.standard_normal(SIZES[size])]


def two(size: str) -> Arrays:
    return [*signed(size), *signed(size)]


def matrix(size: str) -> Arrays:
    return [RNG.standard_normal(MATRICES[size])]


def square(size: str) -> Arrays:
    side = SQUARES[size]
    return [RNG.standard_normal((side, side)) for _ in range(2)]


def masked(size: str) -> Arrays:
    return [RNG.uniform(size=SIZES[size]) < 0.5, *two(size)]


def indexed(size: str) -> Arrays:
    """Return a matrix and an array of its shape that holds column numbers."""
    shape = MATRICES[size]
    return [RNG.standard_normal(shape), RNG.integers(0, shape[1], shape)]


def rows(size: str) -> Arrays:
    shape = MATRICES[size]
    return [RNG.standard_normal(shape), RNG.integers(0, shape[0], shape[0])]


def images(size: str) -> Arrays:
    return [RNG.standard_normal((SIZES[size] // 10_000, 16, 25, 25))]


RNG = np.random.default_rng(0)

OPERATIONS: dict[str, tuple[Callable[[str], Arrays], Function]] = {
    "add": (two, lambda lib, x, y: x + y),
    "mul": (two, lambda lib, x, y: x * y),
    "div": (lambda size: [*signed(size), *flat(size)], lambda lib, x, y: x / y),
    "sub": (two, lambda lib, x, y: x - y),
    "neg": (signed, lambda lib, x: -x),
    "exp": (signed, lambda lib, x: x.exp()),
    "log": (flat, lambda lib, x: x.log()),
    "sqrt": (flat, lambda lib, x: x.sqrt()),
    "sin": (signed, lambda lib, x: x.sin()),
    "tanh": (signed, lambda lib, x: x.tanh()),
    "sigmoid": (signed, lambda lib, x: x.sigmoid()),
    "relu": (signed, lambda lib, x: x.relu()),
    "gelu": (signed, lambda lib, x: lib.nn.functional.gelu(x)),
    "pow(2)": (signed, lambda lib, x: x.pow(2)),
    "pow(1.5)": (flat, lambda lib, x: x.pow(1.5)),
    "maximum": (two, lambda lib, x, y: lib.maximum(x, y)),
    "where, random mask": (masked, lambda lib, mask, x, y: lib.where(mask, x, y)),
    "clamp": (signed, lambda lib, x: x.clamp(-0.5, 0.5)),
    "sum": (signed, lambda lib, x: x.sum()),
    "sum(0)": (matrix, lambda lib, x: x.sum(0)),
    "mean": (signed, lambda lib, x: x.mean()),
    "max": (signed, lambda lib, x: x.max()),
    "softmax": (matrix, lambda lib, x: x.softmax(-1)),
    "logsumexp": (matrix, lambda lib, x: x.logsumexp(-1)),
    "layer_norm": (matrix, lambda lib, x: lib.nn.functional.layer_norm(x, x.shape[-1:])),
    "cumsum": (matrix, lambda lib, x: x.cumsum(-1)),
    "matmul": (square, lambda lib, x, y: x @ y),
    "copy of x.T": (matrix, lambda lib, x: x.t().contiguous()),
    "cat": (two, lambda lib, x, y: lib.cat((x, y))),
    "index_select": (rows, lambda lib, x, index: x.index_select(0, index)),
    "gather": (indexed, lambda lib, x, index: x.gather(1, index)),
    "scatter_add": (indexed, lambda lib, x, index: lib.zeros_like(x).scatter_add(1, index, x)),
    "max_pool2d": (images, lambda lib, x: lib.nn.functional.max_pool2d(x, 2)),
}

CONVOLUTIONS = {
    "conv2d, 32×3×32×32, 32 filters 3×3": ((32, 3, 32, 32), (32, 3, 3, 3)),
    "conv2d, 32×16×28×28, 16 filters 3×3": ((32, 16, 28, 28), (16, 16, 3, 3)),
}


def single(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if array.dtype.kind == "f" else array


def forward_and_vjp(lib: Any, function: Function, arrays: Arrays) -> tuple[Any, Any]:
    """Return two jobs: the operation on plain tensors, and the vjp of a recorded one."""
    tensor = cr.from_numpy if lib is cr else torch.from_numpy
    plain = [tensor(single(array).copy()) for array in arrays]
    leaves = [tensor(single(array).copy()) for array in arrays]
    wanted = [x.requires_grad_() for x in leaves if x.is_floating_point()]
    out = function(lib, *leaves)
    g = lib.ones_like(out.detach())

    def vjp() -> None:
        for x in wanted:
            x.grad = None
        out.backward(g, retain_graph=True)

    return lambda: function(lib, *plain), vjp


def forward_then_backward(lib: Any, function: Function, arrays: Arrays) -> Any:
    """Return a job that records the operation and computes its gradients."""
    tensor = cr.from_numpy if lib is cr else torch.from_numpy
    leaves = [tensor(single(array)).requires_grad_() for array in arrays]
    g = lib.ones_like(function(lib, *leaves).detach())
    return lambda: lib.autograd.grad(function(lib, *leaves), leaves, g)


def ratios(function: Function, arrays: Arrays, size: str, rest: float) -> list[harness.Row]:
    """Measure the forward and the vjp in both libraries."""
    ours = forward_and_vjp(cr, function, arrays)
    theirs = forward_and_vjp(torch, function, arrays)
    return [
        harness.measure(
            kind,
            {"chainrule": our, "PyTorch": their},
            {"PyTorch": BAR},
            rounds=ROUNDS[size],
            rest=rest,
        )
        for kind, our, their in zip(("forward", "vjp"), ours, theirs, strict=True)
    ]


def cell(row: harness.Row) -> str:
    text = f"{row.ratio('PyTorch'):.2f}"
    return text if row.ratio("PyTorch") <= row.bars["PyTorch"] else f"**{text}**"


def convolutions() -> list[str]:
    lines = []
    for name, shapes in CONVOLUTIONS.items():
        arrays = [RNG.standard_normal(shape) for shape in shapes]

        def function(lib: Any, x: Any, w: Any) -> Any:
            return lib.conv2d(x, w, padding=1)

        jobs = {
            "chainrule": forward_then_backward(cr, function, arrays),
            "PyTorch": forward_then_backward(torch, function, arrays),
        }
        row = harness.measure(name, jobs, {"PyTorch": CONVOLUTION_BAR}, rest=0.1)
        met = "" if row.ratio("PyTorch") <= CONVOLUTION_BAR else "**not met** "
        lines.append(
            f"| {name} | {row.median('chainrule') * 1e3:.2f} | {row.median('PyTorch') * 1e3:.2f} | "
            f"{row.ratio('PyTorch'):.2f} | {met}≤ {CONVOLUTION_BAR:g} |"
        )
    return lines


def table(names: Sequence[str]) -> list[str]:
    """Return the table of all operations and a line that counts the ratios above the bar."""
    head = ["ours over PyTorch's", *[f"{kind} {s}" for s in SIZES for kind in ("forward", "vjp")]]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    found: list[float] = []
    for name in names or OPERATIONS:
        draw, function = OPERATIONS[name]
        cells = []
        for size in SIZES:
            measured = ratios(function, draw(size), size, 0.05 if name == "matmul" else 0.01)
            cells += [cell(row) for row in measured]
            found += [row.ratio("PyTorch") for row in measured]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    missed = sum(ratio > BAR for ratio in found)
    median = statistics.median(found)
    verdict = "≤" if median <= MEDIAN_BAR else "**not met** ≤"
    return [
        *lines,
        "",
        f"{missed} of {len(found)} are above {BAR:g}, which is the bar for each; the median is "
        f"{median:.2f}, bar {verdict} {MEDIAN_BAR:g}.",
    ]


def tables(names: Sequence[str]) -> list[str]:
    """Return the table of all operations and that of convolutions, forward and backward."""
    head = ["| forward + backward, ms | chainrule | PyTorch | ratio | bar |", "|" + " --- |" * 5]
    return [*table(names), "", *head, *convolutions()]


def native_tables(names: Sequence[str]) -> list[str]:
    """Return the same tables with machine-code kernels, if LLVM is installed."""
    try:
        cr.set_kernels("native")
    except cr.MissingExtraError as error:
        return [f"Not measured: {error}."]
    try:
        return tables(names)
    finally:
        cr.set_kernels("numpy")


def main(names: Sequence[str] = ()) -> str:
    if torch is None:
        return "PyTorch is not installed."
    torch.set_num_threads(2)
    cr.set_num_threads(2)
    lines = [
        *tables(names),
        "",
        '`cr.set_kernels("native")`:',
        "",
        *native_tables(names),
        "",
        harness.versions(cr, np, torch),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(main(sys.argv[1:]))
