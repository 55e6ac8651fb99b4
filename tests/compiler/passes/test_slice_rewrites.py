"""Reads and writes through slices: fewer copies, the same results."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler import backward, build, passes
from chainrule.compiler.native import jit

RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def verified(monkeypatch: pytest.MonkeyPatch) -> None:
    optimize = passes.optimize
    for module in (build, backward):
        monkeypatch.setattr(module, "optimize", lambda program: optimize(program, check=True))


SIZE = 7
KEYS = [  # each row has keys that select as many elements
    [slice(1, -1), slice(0, 5), slice(2, None), slice(-6, -1)],
    [0, -1, 3, (2, ...)],
    [slice(1, None, 2), slice(1, 4), slice(-1, 0, -2), [0, 2, 5]],
    [slice(3, 3), slice(0), slice(5, 2), slice(2, 4, -1)],
]


def random_writes(seed: int) -> Callable[[Any, Any], Any]:
    """Return a function that reads and writes regions of two arrays, in a loop or not."""
    rng = random.Random(seed)
    turns = rng.choice([1, 1, 2, 12])
    lines = []
    for _ in range(rng.randint(2, 9)):
        keys = rng.choice(KEYS)
        lines.append((rng.randrange(6), rng.randrange(2), rng.choice(keys), rng.choice(keys)))
    kept = rng.random() < 0.3

    def function(x: Any, y: Any) -> Any:
        arrays, found = [x.clone(), y * 0.5], []
        for _ in range(turns):
            for kind, which, key, other in lines:
                a, b = arrays[which], arrays[1 - which]
                if kind == 0:
                    a[key] = 0.0
                elif kind == 1:
                    a[key] += b[other] * 0.3
                elif kind == 2:
                    a[key] = cr.sin(b[key].clone()) - a[other] * 0.2
                elif kind == 3:
                    a[key] -= 0.1 * a[other].clone() * b[key].clone()
                elif kind == 4:
                    arrays[which] = a.clone()
                else:
                    found.append(a[key].sum())
        return arrays[0], arrays[1] * 2, (cr.stack(found) if found and kept else x)

    return function


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(60))
def test_random_reads_and_writes(seed: int) -> None:
    function = random_writes(seed)
    arrays = RNG.standard_normal((2, SIZE))
    arrays[0, 3] = -0.0
    points = [cr.tensor(array, requires_grad=True) for array in arrays]

    def with_gradients(x: Any, y: Any) -> Any:
        outs = function(x, y)
        total = sum((cr.cos(out) * out).sum() for out in outs)
        return [*outs, *cr.autograd_grad(total, [x, y], materialize_grads=True)]

    expected = [out.detach().numpy() for out in with_gradients(*points)]
    before = [point.detach().numpy().copy() for point in points]
    for backend in ("numpy", "native") if jit.is_usable() else ("numpy",):
        compiled = cr.compile(with_gradients, backend=backend)
        for _ in range(2):
            got = [out.detach().numpy() for out in compiled(*points)]
            for a, b in zip(got, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
            for a, b in zip(got[:2], expected, strict=False):
                np.testing.assert_array_equal(np.signbit(a), np.signbit(b))
        for point, b in zip(points, before, strict=True):
            assert point.detach().numpy().tobytes() == b.tobytes()


# --- whole arrays are not copied in steps that write to parts of them -----------------------------


def recursive_filter(x: Any) -> Any:
    y = cr.empty_like(x)
    y[0] = 0.3 * x[0]
    y[1] = 0.3 * x[1] + 0.2 * x[0] + 0.5 * y[0].clone()
    for i in range(2, len(x)):
        y[i] = 0.3 * x[i] + 0.2 * x[i - 1] + 0.5 * y[i - 1].clone() - 0.1 * y[i - 2].clone()
    return y


def recursive_filter_of_columns(x: Any) -> Any:
    return recursive_filter(x.reshape(9, 40).T).T


def staggered_waves(x: Any) -> Any:
    e, h = x.clone(), x * 0.5
    for step in range(12):
        e[0] = 0.1 * step
        e[1:] -= 0.5 * (h[1:] - h[:-1])
        h[:-1] -= 0.7 * (e[1:] - e[:-1])
    return e * h


def written_whole(x: Any) -> Any:
    u = cr.zeros_like(x)
    for _ in range(12):
        new = cr.sin(u.clone()) + x
        u[:] = new
        u[...] += 1.0
    return u


@pytest.mark.parametrize(
    "function",
    [recursive_filter, recursive_filter_of_columns, staggered_waves, written_whole],
)
def test_steps_that_write_to_parts_copy_no_whole_array(function: Callable[[Any], Any]) -> None:
    def value_and_gradient(x: Any) -> Any:
        return cr.value_and_grad(lambda x: (function(x) ** 2).sum())(x)

    x = cr.tensor(RNG.standard_normal((40, 9)))
    expected = value_and_gradient(x)
    compiled = cr.compile(value_and_gradient, backend="numpy", verify=False)
    for got, wanted in zip(compiled(x), expected, strict=True):
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-12, atol=1e-12)
    steps = [line for line in compiled.source.splitlines() if line.startswith("        ")]
    assert steps
    for line in steps:
        assert not any(f" {copy}(" in line for copy in ("assign_at", "plus_at", "index_add")), line


def test_a_large_part_that_is_read_after_a_write_is_not_copied_as_well() -> None:
    def f(x: Any, y: Any) -> Any:
        for _ in range(10):
            half = x[:5]
            x = x.clone()
            x[7] = y * 2.0
            x = x + half.sum() * 0.1
        return x

    x, y = cr.tensor(RNG.standard_normal((10, 8))), cr.tensor(RNG.standard_normal(8))
    compiled = cr.compile(f, backend="numpy", verify=False)
    np.testing.assert_allclose(compiled(x, y).numpy(), f(x, y).numpy(), rtol=1e-12)
    assert "np.positive" not in compiled.source


def test_nothing_is_left_of_steps_without_elements() -> None:
    def cholesky(a: Any) -> Any:
        a = a * 1.0
        for i in range(len(a)):
            for j in range(i):
                a[i, j] = (a[i, j] - a[i, :j] @ a[j, :j]) / a[j, j]
                a[i, i + 1 :] = 0.0
            a[i, i] = np.sqrt(a[i, i] - (a[i, :i] ** 2).sum())
        return np.tril(a)

    x = RNG.normal(size=(4, 4))
    x = x @ x.T + 4 * np.eye(4)
    compiled = cr.compile(cr.jacobian(cholesky), backend="numpy")
    np.testing.assert_allclose(compiled(x), cr.jacobian(cholesky)(x), atol=1e-12)
    np.testing.assert_allclose(cr.compile(cholesky)(x), np.linalg.cholesky(x))
    assert "f8[0]" not in compiled.source
