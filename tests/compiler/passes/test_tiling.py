"""Tiling of elementwise ops on large arrays, at the real block size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler.passes import tiling

MANY = 4 * tiling.BLOCK_SIZE + 3
RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def both(x: Any, g: Any) -> Any:
    y = (0.7978845608 * (x + 0.044715 * x * x * x)).tanh() * x * 0.5
    return y.detach(), cr.autograd_grad(y, x, g)[0]


def results(function: Any, *args: Any) -> list[np.ndarray]:
    found = function(*args)
    return [t.detach().numpy() for t in (found if isinstance(found, tuple) else (found,))]


def test_tiling_changes_no_bit() -> None:
    x = cr.tensor(normal(MANY), requires_grad=True)
    g = cr.tensor(normal(MANY))
    compiled = cr.compile(both, backend="numpy")
    for found, wanted in zip(results(compiled, x, g), results(both, x, g), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert "each_block(" in compiled.source


@pytest.mark.parametrize("shape", [(), (1,), (1, 300), (300,), (3000, 1), (3000, 300)])
def test_broadcast_operands(shape: tuple[int, ...]) -> None:
    x, other = cr.tensor(normal(3000, 300)), cr.tensor(normal(*shape))

    def chain(x: Any, other: Any) -> Any:
        return ((x * other).sin() + other.exp()).abs()

    compiled = cr.compile(chain, backend="numpy")
    np.testing.assert_array_equal(compiled(x, other).numpy(), chain(x, other).numpy())
    assert "each_block(" in compiled.source


def test_transposed_and_reversed_arrays() -> None:
    x = cr.tensor(normal(800, 900)).T
    y = cr.tensor(normal(900, 800)).flip(0)

    def chain(x: Any, y: Any) -> Any:
        return cr.where(x > y, x.sin(), y.to(cr.float64).cos()) + (x < 0)

    compiled = cr.compile(chain, backend="numpy")
    np.testing.assert_array_equal(compiled(x, y).numpy(), chain(x, y).numpy())
    assert "each_block(" in compiled.source


def test_parameters_are_written_in_place() -> None:
    w, m, g = (cr.tensor(normal(MANY)) for _ in range(3))
    copies = w.clone(), m.clone()

    def step(w: Any, m: Any) -> None:
        m.mul_(0.9).add_(g * 0.1)
        before = w.exp()
        w.sub_(m / (before.abs() + 1))

    compiled = cr.compile(step, backend="numpy")
    for _ in range(2):
        compiled(w, m)
        step(*copies)
    np.testing.assert_array_equal(w.numpy(), copies[0].numpy())
    np.testing.assert_array_equal(m.numpy(), copies[1].numpy())
    assert "each_block(" in compiled.source


def test_parameters_that_are_read_after_a_write() -> None:
    w = cr.tensor(normal(MANY))
    copy = w.clone()

    def swap(w: Any) -> Any:
        old = w.clone()
        w.mul_(2.0).add_(1.0)
        return old * 3 + old.sin()

    compiled = cr.compile(swap, backend="numpy")
    np.testing.assert_array_equal(compiled(w).numpy(), swap(copy).numpy())
    np.testing.assert_array_equal(w.numpy(), copy.numpy())


def test_sums_and_products_split_tiled_groups() -> None:
    x = cr.tensor(RNG.standard_normal((1000, 700)), requires_grad=True)
    w = cr.tensor(RNG.standard_normal((700, 5)), requires_grad=True)

    def loss(x: Any, w: Any) -> Any:
        h = (x * x + 1).sqrt()
        return cr.autograd_grad(((h - h.mean(0)).tanh() @ w).sin().sum(), [x, w])

    compiled = cr.compile(loss, backend="numpy")
    for found, wanted in zip(results(compiled, x, w), results(loss, x, w), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)
    assert compiled.source.count("each_block(") >= 2


def test_small_arrays_are_not_tiled() -> None:
    compiled = cr.compile(lambda x: x.sin().exp() * x, backend="numpy")
    compiled(cr.tensor(normal(MANY // 8)))
    assert "each_block(" not in compiled.source


def test_several_threads_call_at_once() -> None:
    from concurrent.futures import ThreadPoolExecutor

    xs = [cr.tensor(normal(MANY), requires_grad=True) for _ in range(4)]
    g = cr.ones(MANY)
    compiled = cr.compile(both, backend="numpy")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: results(compiled, x, g), xs))
    for ours, x in zip(found, xs, strict=True):
        for one, wanted in zip(ours, results(both, x, g), strict=True):
            np.testing.assert_array_equal(one, wanted)


def test_an_array_that_other_blocks_read_is_not_overwritten() -> None:
    def shifted(x: Any) -> Any:
        with cr.no_grad():
            x.copy_((x * 2 + x[0]).sin())
        return x

    eager, compiled = (cr.tensor(normal(3000, 300)) for _ in range(2))
    compiled.copy_(eager)
    np.testing.assert_array_equal(
        cr.compile(shifted, backend="numpy")(compiled).numpy(), shifted(eager).numpy()
    )
