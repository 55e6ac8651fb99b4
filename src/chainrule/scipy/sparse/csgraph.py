"""`scipy.sparse.csgraph` over tensors: lengths of shortest paths, spanning trees, Laplacians.

SciPy finds paths and trees, which are constant nearby; derivatives are by the weights on them.

>>> import numpy as np
>>> import chainrule as cr
>>> def length(w):
...     graph = cr.scipy.sparse.csr_array((w, ([0, 0, 1], [1, 2, 2])), shape=(3, 3))
...     return cr.scipy.sparse.csgraph.dijkstra(graph, indices=0)[2]
>>> cr.grad(length)(np.array([1.0, 5.0, 2.0]))
array([1., 0., 1.])
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

import chainrule.numpy as cnp
from chainrule import ops
from chainrule.autograd.tensor import make
from chainrule.backend.extensions import SCIPY, LazyModule
from chainrule.creation import zeros
from chainrule.errors import ArgumentError
from chainrule.implicit.examples import with_numbers
from chainrule.interop.operands import arrays_of, tensor_of
from chainrule.numpy.array_class import as_ndarrays
from chainrule.scipy.dispatch import are_constants, has_tensors, missing_rule, namespace_of
from chainrule.scipy.error_texts import explaining
from chainrule.scipy.sparse.matrix import SparseMatrix, is_sparse, recorded
from chainrule.scipy.sparse.operators import numbers_of
from chainrule.transforms.vmap.batched_array import BatchedArray

_scipys = LazyModule("scipy.sparse.csgraph", SCIPY)

Options = Mapping[str, Any]


def _find(name: str) -> Any:
    scipys: Callable[..., Any] = getattr(_scipys, name)
    if isinstance(scipys, type | ModuleType):
        return scipys
    ours: Callable[..., Any] = _RECORDED.get(name, _constant)
    title, signature = f"scipy.sparse.csgraph.{name}", inspect.signature(scipys)

    @explaining(title)
    def either(*args: Any, **settings: Any) -> Any:
        given = [*args, *settings.values()]
        if not any([isinstance(x, SparseMatrix) or has_tensors(x) for x in given]):
            return scipys(*args, **settings)
        graph, *others = signature.bind(*args, **settings).arguments.items()
        return ours(title, scipys, graph[1], dict(others))

    return functools.update_wrapper(either, scipys)


__getattr__, __dir__ = namespace_of("scipy.sparse.csgraph", _find)


def _results(title: str, scipys: Callable[..., Any], graph: Any, options: Options) -> list[Any]:
    """Return SciPy's results for the numbers of a graph."""

    def compute() -> list[Any]:
        numbers = numbers_of(graph)
        if isinstance(graph, SparseMatrix):
            numbers = numbers.tocsr()
            for name in ("indices", "indptr"):  # `yen` takes no others
                setattr(numbers, name, getattr(numbers, name).astype(np.int32))
        found = scipys(numbers, **{key: arrays_of(value) for key, value in options.items()})
        results.extend(found if isinstance(found, tuple) else (found,))
        return []

    results: list[Any] = []
    data = graph.data if isinstance(graph, SparseMatrix) else tensor_of(graph)
    if isinstance(data._array, BatchedArray):
        raise ArgumentError(f"{title} looks at values, which differ under vmap: loop over examples")
    with_numbers(title, compute)
    return results


def _constant(title: str, scipys: Callable[..., Any], graph: Any, options: Options) -> Any:
    """Return SciPy's own results if they are integers and truth values."""
    found = _results(title, scipys, graph, options)
    if not all(map(are_constants, found)):
        raise missing_rule(title, "take lengths of paths by dijkstra, and edges by graph[i, j]")
    return tuple(found) if len(found) > 1 else found[0]


# --- paths and trees ------------------------------------------------------------------------------


def _edges(graph: Any) -> SparseMatrix:
    """Return a graph as a sparse matrix: in a dense one, 0, inf and nan are no edges."""
    found = recorded(graph)
    if is_sparse(graph):
        return found
    kept = np.flatnonzero(np.isfinite(arrays_of(found.data)))
    return SparseMatrix(found.data[kept], found.row[kept], found.col[kept], found.shape)


def _weights(graph: Any, directed: bool) -> Any:
    """Return the weights of edges as a dense array: of both directions that of the lighter one."""
    edges = _edges(graph)
    if directed:
        return edges.toarray()
    is_edge = np.zeros(edges.shape, bool)
    is_edge[edges.row, edges.col] = True
    weights = cnp.where(is_edge, edges.toarray(), np.inf)
    return cnp.minimum(weights, weights.T)


def _distances(title: str, scipys: Callable[..., Any], graph: Any, options: Options) -> Any:
    """Return lengths of shortest paths: sums of the weights on the paths that SciPy finds."""
    lengths, before, *rest = _results(
        title, scipys, graph, {**options, "return_predecessors": True}
    )
    if not options.get("unweighted"):
        weights = _weights(graph, options.get("directed", True))
        lengths = _along_paths(weights, np.where(np.isinf(lengths), np.inf, 0.0), before)
    return (lengths, before, *rest) if options.get("return_predecessors") else lengths


def _along_paths(weights: Any, total: Any, before: Any) -> Any:
    """Add the weights on paths, which are given by the node before each node, to `total`."""
    node = np.broadcast_to(np.arange(before.shape[-1]), before.shape)
    previous = before
    while (is_on := previous >= 0).any():
        total = total + cnp.where(is_on, weights[previous * is_on, node], 0.0)
        node = np.where(is_on, previous, node)
        previous = np.where(is_on, np.take_along_axis(before, node, -1), -1)
    return total


def _tree(title: str, scipys: Callable[..., Any], graph: Any, options: Options) -> Any:
    """Return a matrix of the edges that SciPy chooses."""
    (found,) = _results(title, scipys, graph, options)
    row, col = found.tocoo().coords
    undirected = scipys.__name__ == "minimum_spanning_tree" or not options.get("directed", True)
    weights = _weights(graph, not undirected)
    return SparseMatrix(weights[row, col], row, col, found.shape, is_matrix=False)


def _laplacian(title: str, scipys: Callable[..., Any], graph: Any, options: Options) -> Any:
    """Return the degrees of the nodes on the diagonal, and the weights with a minus beside it."""
    if options.get("form", "array") != "array":
        raise missing_rule(title, "form='array' has one")
    edges = recorded(graph)
    if options.get("symmetrized"):
        edges = edges + edges.T.conj()
    kept, count = np.flatnonzero(edges.row != edges.col), edges.shape[0]
    weights, row, col = edges.data[kept], edges.row[kept], edges.col[kept]
    ends = make(row if options.get("use_out_degree") else col, None)
    degree = as_ndarrays(
        ops.index_add(zeros(count, dtype=edges.dtype), 0, ends, tensor_of(weights))
    )
    diagonal = scale = degree
    if options.get("normed"):
        alone = arrays_of(degree) == 0
        scale = cnp.where(alone, 1.0, cnp.sqrt(cnp.where(alone, 1.0, degree)))
        weights, diagonal = weights / (scale[row] * scale[col]), 1.0 - alone
    nodes = np.arange(count)
    places = np.concatenate([nodes, row]), np.concatenate([nodes, col])
    found = SparseMatrix(cnp.concatenate([diagonal, -weights]), *places, edges.shape)
    shown = found if is_sparse(graph) else found.toarray()
    return (shown, scale) if options.get("return_diag") else shown


_RECORDED: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(
        ["shortest_path", "dijkstra", "floyd_warshall", "bellman_ford", "johnson"], _distances
    ),
    **dict.fromkeys(
        ["minimum_spanning_tree", "breadth_first_tree", "depth_first_tree", "reconstruct_path"],
        _tree,
    ),
    "laplacian": _laplacian,
}
