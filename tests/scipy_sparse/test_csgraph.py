"""Graphs whose weights record: lengths of shortest paths, trees and Laplacians."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import chainrule as cr

scipy_sparse = pytest.importorskip("scipy.sparse")
from scipy.sparse import csgraph as scipys  # noqa: E402

ours = cr.scipy.sparse.csgraph
W = np.array([1.0, 5.0, 2.5, 0.7, 1.6, 3.1])
ROW, COL = np.array([0, 0, 1, 2, 3, 1]), np.array([1, 2, 2, 3, 0, 3])
OURS = SimpleNamespace(graph=ours, sparse=cr.scipy.sparse)
SCIPYS = SimpleNamespace(graph=scipys, sparse=scipy_sparse)


def sparse(m: Any, w: Any) -> Any:
    return m.sparse.csr_array((w, (ROW, COL)), shape=(4, 4))


def dense(m: Any, w: Any) -> Any:
    return sparse(m, w).toarray()


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "shortest_path": lambda m, w: m.graph.shortest_path(sparse(m, w)).ravel(),
    "dense": lambda m, w: m.graph.shortest_path(dense(m, w)).ravel(),
    "undirected": lambda m, w: m.graph.shortest_path(sparse(m, w), directed=False).ravel(),
    "dijkstra-one": lambda m, w: m.graph.dijkstra(sparse(m, w), indices=3),
    "dijkstra-some": lambda m, w: m.graph.dijkstra(dense(m, w), False, [1, 3]).ravel(),
    "dijkstra-nearest": lambda m, w: m.graph.dijkstra(sparse(m, w), indices=[1, 3], min_only=True),
    "floyd_warshall": lambda m, w: m.graph.floyd_warshall(dense(m, w)).ravel(),
    "bellman_ford": lambda m, w: m.graph.bellman_ford(sparse(m, w), indices=0),
    "johnson": lambda m, w: m.graph.johnson(sparse(m, w), return_predecessors=True)[0].ravel(),
    "minimum_spanning_tree": lambda m, w: (
        m.graph.minimum_spanning_tree(sparse(m, w)).toarray().ravel()
    ),
    "breadth_first_tree": lambda m, w: (
        m.graph.breadth_first_tree(sparse(m, w), 3).toarray().ravel()
    ),
    "laplacian": lambda m, w: m.graph.laplacian(sparse(m, w)).toarray().ravel(),
    "laplacian-dense": lambda m, w: m.graph.laplacian(dense(m, w), normed=True).ravel(),
    "laplacian-symmetrized": lambda m, w: m.graph.laplacian(dense(m, w), symmetrized=True).ravel(),
    "laplacian-degrees": lambda m, w: m.graph.laplacian(
        sparse(m, w), normed=True, return_diag=True, use_out_degree=True
    )[1],
    "connected_components": lambda m, w: w * m.graph.connected_components(sparse(m, w))[0],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_differences_are_scipys(name: str) -> None:
    program, h = PROGRAMS[name], 1e-6
    wanted = [
        (program(SCIPYS, W + h * e) - program(SCIPYS, W - h * e)) / (2 * h) for e in np.eye(W.size)
    ]
    values = program(OURS, cr.tensor(W, requires_grad=True))
    slopes = cr.jacobian(lambda w: program(OURS, w))(W)
    np.testing.assert_allclose(values.detach(), program(SCIPYS, W), rtol=1e-12)
    np.testing.assert_allclose(slopes, np.transpose(wanted), atol=1e-8)
    np.testing.assert_allclose(cr.jvp(lambda w: program(OURS, w), W, W)[1], slopes @ W, atol=1e-12)


def test_second_derivatives_and_further_results() -> None:
    def energy(w: Any) -> Any:
        lengths, before = ours.dijkstra(sparse(OURS, w), indices=0, return_predecessors=True)
        assert before.tolist() == [-9999, 0, 1, 1]
        return (lengths**3).sum()

    assert cr.hessian(energy)(W)[5, 0] == pytest.approx(6 * (W[0] + W[5]))
    assert type(ours.dijkstra(sparse(SCIPYS, W))) is np.ndarray
    hops = cr.grad(lambda w: (ours.shortest_path(dense(OURS, w), unweighted=True) * w[0]).sum())(W)
    assert hops[0] == scipys.shortest_path(dense(SCIPYS, W), unweighted=True).sum()


def test_paths_under_transforms_without_numbers_raise() -> None:
    def length(w: Any) -> Any:
        return ours.dijkstra(sparse(OURS, w), indices=0)[2]

    with pytest.raises(cr.ArgumentError, match="dijkstra looks at values, which differ under vmap"):
        cr.vmap(length)(np.stack([W, W]))
    with pytest.raises(cr.CompileError, match=r"csgraph\.dijkstra: a solver"):
        cr.compile(length)(W)
    with pytest.raises(cr.MissingRuleError, match=r"csgraph\.yen has no derivative"):
        cr.grad(lambda w: ours.yen(sparse(OURS, w), 0, 3, 2)[0])(W)
