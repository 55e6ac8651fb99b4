"""Loop rerolling: unrolled Python loops become loops, with the same results to the bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler import backward, build, passes
from chainrule.compiler.passes import products_after_loops, reroll
from helpers.parameters import thorough

compiled_to_numpy = partial(cr.compile, backend="numpy")  # to the bit as eagerly
RNG = np.random.default_rng(5)
N = 72
W = cr.tensor(RNG.standard_normal((4, 4)) / 2, requires_grad=True)
V = cr.tensor(RNG.standard_normal((4, 4)) / 2, requires_grad=True)
XS = cr.tensor(RNG.standard_normal((N, 4)), requires_grad=True)
YS = cr.tensor(RNG.standard_normal((N + 3, 2, 4)), requires_grad=True)
H = cr.tensor(RNG.standard_normal(4), requires_grad=True)
LEAVES = [W, V, XS, YS, H]


@pytest.fixture(autouse=True)
def verified(monkeypatch: pytest.MonkeyPatch) -> None:
    optimize = passes.optimize
    for module in (build, backward):
        monkeypatch.setattr(module, "optimize", lambda program: optimize(program, check=True))


def recurrent(h: Any, xs: Any) -> Any:
    for i in range(N):
        h = cr.tanh(h @ W + xs[i])
    return h


def listed(h: Any, xs: Any) -> Any:
    hs = []
    for x in xs:
        h = cr.tanh(h @ W + x)
        hs.append(h)
    return cr.stack(hs), cr.stack(hs[::-1]), cr.stack([xs.sum(0)]), h, hs[7]


def written(h: Any, xs: Any) -> Any:
    out = cr.zeros(N, 4, dtype=cr.float64)
    for i in range(N):
        h = h + cr.sin(h * xs[i]) * 0.1
        out[i] = h
    return out


def with_numbers(h: Any, xs: Any) -> Any:
    for i in range(N):
        h = cr.cos(h * 0.9**i) / (i + 1) + xs[N - 1 - i]
    return h


def two_back(h: Any, xs: Any) -> Any:
    a, b = h, h * 2
    for i in range(N):
        a, b = b, cr.sin(a) + b * xs[i]
    return b


def three_back(h: Any, xs: Any) -> Any:
    hs = [h, h * 2, h * 3]
    for i in range(3 * N):
        hs.append(cr.sin(hs[-3]) + hs[-1] * xs[i % N])
    return hs[-1]


def strided(h: Any, xs: Any) -> Any:
    for i in range(0, N, 2):
        h = cr.tanh(h @ W + xs[i] * xs[i + 1] + YS[i, 1] - YS[i + 2, 0])
    return h


def middle(h: Any, xs: Any) -> Any:
    h = cr.exp(h * 0.1) @ V
    for i in range(N):
        h = cr.tanh(h @ W) if i == N // 2 else cr.tanh(h @ W + xs[i])
    return (h @ V).sum()


def nested(h: Any, xs: Any) -> Any:
    for i in range(N):
        for _ in range(3):
            h = cr.tanh(h @ W)
        h = h + xs[i] @ V
    return h


def two_loops(h: Any, xs: Any) -> Any:
    hs = []
    for i in range(N):
        h = cr.tanh(h @ W + xs[i])
        hs.append(h)
    g = h
    for x in reversed(hs):
        g = cr.sigmoid(g @ V * x)
    return g, hs[3]


def runge_kutta(h: Any, xs: Any) -> Any:
    def slope(y: Any) -> Any:
        return cr.sin(y @ W) - y * 0.1

    step = 0.05
    for _ in range(N):
        a = slope(h)
        b = slope(h + step / 2 * a)
        c = slope(h + step / 2 * b)
        d = slope(h + step * c)
        h = h + step / 6 * (a + 2 * b + 2 * c + d)
    return h


def inner_gradients(h: Any, xs: Any) -> Any:
    w = W.detach().requires_grad_()
    for i in range(N):
        loss = ((xs[i] @ w - h) ** 2).mean()
        (g,) = cr.autograd_grad(loss, [w])
        w = (w - 0.1 * g).detach().requires_grad_()
    return w.detach()


def table(h: Any, xs: Any, rows: int = 12, columns: int = 11) -> Any:
    """Return the last cell of a table that dynamic programming fills cell by cell."""
    cells = [[h.sum()] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows):
        for j in range(columns):
            near = cr.stack([cells[i][j], cells[i][j + 1], cells[i + 1][j]])
            cells[i + 1][j + 1] = xs[i, 1] * xs[j, 2] - cr.logsumexp(-near, 0)
    return cells[-1][-1]


def moving(h: Any, xs: Any) -> Any:
    """Take overlapping windows of a result, and of an argument in two axes."""
    ys = cr.cos(xs)
    for i in range(N - 3):
        h = cr.tanh((ys[i : i + 3] * xs[i : i + 3, i % 4 : i % 4 + 1]).sum(0) + h @ W)
    return h


def tiles(h: Any, xs: Any) -> Any:
    """Take windows that follow each other, forwards and backwards, and one that is cut short."""
    for i in range(0, N, 4):
        h = cr.sin(h + (xs[i : i + 4] @ V).sum(0)) * xs[N - 4 - i : N - i].mean(0)
    return h + xs[N - 2 : N + 2].sum(0)


def windows_of_written(h: Any, xs: Any) -> Any:
    """Write each window from the one before it."""
    out = xs * 2
    for i in range(N - 4):
        out[i + 2 : i + 4] = cr.sin(out[i : i + 2].clone() @ W) + out[i + 2 : i + 4]
    return out + h


FUNCTIONS = [
    *(recurrent, listed, written, with_numbers, two_back, three_back, strided, middle),
    *(nested, two_loops, runge_kutta, inner_gradients, table),
    *(moving, tiles, windows_of_written),
]


def results(function: Callable[..., Any]) -> Iterator[Any]:
    """Yield the values of a compiled function, and its gradients, taken outside and inside."""
    compiled = compiled_to_numpy(function)
    outs = compiled(H, XS)
    outs = list(outs) if isinstance(outs, tuple) else [outs]
    yield from outs
    if outs[0].requires_grad:
        gs = [cr.cos(out.detach()) for out in outs]
        yield from cr.autograd_grad(outs, LEAVES, gs, materialize_grads=True)

        @compiled_to_numpy
        def inside() -> Any:
            outs = function(H, XS)
            outs = list(outs) if isinstance(outs, tuple) else [outs]
            return cr.autograd_grad(outs, LEAVES, gs, materialize_grads=True)

        yield from inside()


@pytest.mark.parametrize(
    "function",
    [
        f if f in (recurrent, written, two_back, inner_gradients, tiles) else thorough(f)
        for f in FUNCTIONS
    ],
    ids=lambda f: f.__name__,
)
def test_rerolled_loops_give_the_same_results(
    function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if (
        function is windows_of_written
    ):  # whose steps multiply several rows: one product rounds otherwise
        monkeypatch.setattr(products_after_loops, "_terms", lambda loop: [])
    rolled = [out.numpy(force=True) for out in results(function)]
    monkeypatch.setattr(reroll, "MIN_OPS_SAVED", 10**9)
    unrolled = [out.numpy(force=True) for out in results(function)]
    for a, b in zip(rolled, unrolled, strict=True):
        np.testing.assert_array_equal(a, b)
    expected = function(H, XS)
    expected = list(expected) if isinstance(expected, tuple) else [expected]
    for a, e in zip(rolled, expected, strict=False):
        np.testing.assert_allclose(a, e.numpy(force=True), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_all_steps_are_in_the_loop(function: Callable[..., Any]) -> None:
    compiled = compiled_to_numpy(function)
    compiled(H, XS)
    for program in compiled._built().programs:
        assert len(program.ops) < 150  # and more than 500 unrolled
    assert "for i in range(" in compiled.source


def stacked_cells(steps: int) -> Callable[[Any], Any]:
    """Return the values of a recurrent net of two layers, whose steps take 60 ops each."""
    xs = XS[cr.arange(steps) % N]

    def values(h: Any) -> Any:
        states = [[h, h * 0], [h * 2, h * 0]]
        total = h.sum() * 0
        for t in range(steps):
            x = xs[t]
            for state in states:
                gates = cr.cat([x @ W, state[0] @ V]) + cr.cat([state[0], x])
                i, o = cr.split(gates, 4)
                state[1] = cr.sigmoid(i) * state[1] + cr.tanh(o) * x
                x = state[0] = cr.sigmoid(o) * cr.tanh(state[1])
            total = total + (x * xs[t]).sum() - cr.logsumexp(x, 0)
        return total

    return values


def test_loops_of_any_length_are_rolled_up() -> None:
    lengths = []
    for steps in (32, 33, 90):
        values = stacked_cells(steps)
        compiled = compiled_to_numpy(lambda h, values=values: cr.autograd_grad(values(h), h))
        got, wanted = compiled(H)[0], cr.autograd_grad(values(H), H)[0]
        np.testing.assert_allclose(got.detach(), wanted.detach(), rtol=1e-9)
        lengths.append(len(compiled.source.splitlines()))
    assert len(set(lengths)) == 1


def lagged(steps: int, lag: int) -> Callable[[Any], Any]:
    """Return a sum over a list, of which a step reads what the one some steps before made."""
    xs = XS[cr.arange(steps) % N]

    def values(h: Any) -> Any:
        hs = [h * (i + 1) for i in range(lag)]
        for t in range(steps):
            hs.append(cr.tanh(0.5 * hs[-1] - 0.3 * hs[-lag] + xs[t]))
        return sum(h.sum() for h in hs) + (cr.stack(hs[::-1]) ** 2).sum()

    return values


@pytest.mark.parametrize("lag", [2, 3, 5])
def test_a_list_that_loops_made_in_turns_is_read_as_one_table(lag: int) -> None:
    lengths = []
    for steps in (40, 80):  # multiples of the steps that a rolled loop takes at a time
        values = lagged(steps, lag)
        compiled = compiled_to_numpy(lambda h, values=values: cr.autograd_grad(values(h), h))
        got, wanted = compiled(H)[0], cr.autograd_grad(values(H), H)[0]
        np.testing.assert_allclose(got.detach(), wanted.detach(), rtol=1e-9)
        lengths.append(len(compiled.source.splitlines()))
    assert max(lengths) < min(lengths) + 40


@pytest.mark.parametrize("lag", [6, 7, 8])
def test_a_loop_ends_before_a_step_that_reads_its_first(lag: int) -> None:
    def delayed(x: Any, a: Any) -> Any:
        ys = [x * (k + 1) for k in range(lag)]
        for _ in range(lag + reroll.MIN_STEPS):
            y = ys[-lag]
            for _ in range(4):
                y = (y * a).sin() + y.cos() * x
            ys.append(y)
        return sum(ys)

    compiled = cr.compile(delayed, backend="numpy")
    x, a = cr.ones(2), cr.tensor(0.7)
    np.testing.assert_allclose(compiled(x, a), delayed(x, a), rtol=1e-6)


def test_loops_in_loops_are_rolled_up_whatever_the_lengths() -> None:
    lengths = []
    for rows, columns in ((12, 11), (14, 14)):
        cells = compiled_to_numpy(lambda h, n=rows, m=columns: table(h, XS, n, m))
        np.testing.assert_allclose(cells(H).detach(), table(H, XS, rows, columns).detach())
        lengths.append(len(cells.source.splitlines()))
        assert "        for " in cells.source
    assert max(lengths) < 400  # 14 × 14 cells are 6,000 operations


def solved(u: Any, r: Any, rounds: int) -> Any:
    """Solve a tridiagonal system in each round: one loop reads parts of what another stacked."""
    for _ in range(rounds):
        c, d, rows, found = r * 0.0, r * 0.0, [], []
        for value in u:
            m = 1.0 + 2.0 * r + r * c
            c, d = -r / m, (value + r * d) / m
            rows.append(cr.stack([c, d]))
        x = r * 0.0
        for row in rows[::-1]:
            x = row[1] - row[0] * x
            found.append(x)
        u = cr.stack(found[::-1])
    return (u**2).sum()


def test_backward_loops_read_what_loops_in_loops_stacked() -> None:
    u = cr.tensor(RNG.standard_normal(18), requires_grad=True)
    r = cr.tensor(0.3, dtype=cr.float64, requires_grad=True)
    lines = []
    for rounds in (10, 14):
        compiled = compiled_to_numpy(
            lambda u, r, n=rounds: cr.autograd_grad(solved(u, r, n), (u, r))
        )
        wanted = cr.autograd_grad(solved(u, r, rounds), (u, r))
        for got, want in zip(compiled(u, r), wanted, strict=True):
            np.testing.assert_allclose(got.detach(), want.detach(), rtol=1e-9)
        lines.append(len(compiled.source.splitlines()))
        stacks = [line for line in compiled.source.splitlines() if "np.stack(" in line]
        assert max(line.count("][") for line in stacks) < 3  # no column by itself
    assert lines[0] == lines[1]


def test_equal_constants_of_the_steps_are_one() -> None:
    def multiplied(h: Any) -> Any:
        for _ in range(N):
            h = cr.where(h > 0, cr.tensor([0.5, -0.0, 1.0, 2.0], dtype=cr.float64), cr.sin(h)) + h
            h = h * cr.tensor([0.5, 0.0, 1.0, 2.0], dtype=cr.float64)
        return h

    steps = compiled_to_numpy(multiplied)
    got = steps(H.detach()).numpy()
    assert "constants" not in steps.source.split("assert")[0]
    assert steps.source.count("for ") == 1
    np.testing.assert_array_equal(np.signbit(got), np.signbit(multiplied(H.detach()).numpy()))


def test_a_few_layers_are_not_rerolled() -> None:
    @compiled_to_numpy
    def layers(h: Any) -> Any:
        for _ in range(6):
            h = cr.tanh(h @ W + h)
        return h

    layers(H)
    assert "for " not in layers.source


def test_views_alone_are_not_rerolled() -> None:
    compiled = compiled_to_numpy(lambda xs: [x.reshape(2, 2) for x in cr.cat([xs, xs, xs])])
    assert len(compiled(XS)) == 3 * N
    assert "for " not in compiled.source


GOLDEN = """\
def walk(h, xs, W):
    # h f8[4], xs f8[72, 4], W f8[4, 4]
    assert [*map(np.shape, (h, xs, W))] == [(4,), (72, 4), (4, 4)], "other shapes"
    assert [*map(np.result_type, (h, xs, W))] == ['f8', 'f8', 'f8'], "other dtypes"
    h2 = h
    hs = np.empty((72, 4), np.float64)
    for i in range(72):
        t1 = h2 @ W                                           # f8[4]
        t2 = t1 + xs[i, ...]                                  # f8[4]
        h2 = np.tanh(t2)                                      # f8[4]
        hs[i] = h2
    return hs
"""


def test_the_source_of_a_rerolled_loop() -> None:
    w = W

    @compiled_to_numpy
    def walk(h: Any, xs: Any) -> Any:
        hs = []
        for i in range(N):
            h = cr.tanh(h @ w + xs[i])
            hs.append(h)
        return cr.stack(hs)

    with cr.no_grad():
        walk(H, XS)
    assert walk.source == GOLDEN.replace("W", "w")


def test_the_body_of_a_scan_is_rerolled_too() -> None:
    def function() -> Any:
        def step(h: Any, x: Any) -> Any:
            for i in range(N):
                h = cr.sin(h) * (i + 1) + x
            return h, h.sum()

        last, ys = cr.scan(step, H, XS[:5])
        return cr.autograd_grad(last.sum() + (ys * ys).sum(), [H, XS])

    compiled = compiled_to_numpy(function)
    for a, b in zip(compiled(), function(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10)
    assert compiled.source.count("for ") > 2


def test_large_values_are_written_into_the_stack() -> None:
    xs = cr.tensor(RNG.standard_normal((N, 64, 64)), requires_grad=True)
    w = cr.tensor(RNG.standard_normal((64, 64)) / 8, requires_grad=True)

    def function() -> Any:
        h, hs = xs[0], []
        for x in xs:
            h = cr.tanh(h @ w + x)
            hs.append(h)
        return h, cr.stack(hs)

    compiled = compiled_to_numpy(function)
    last, stack = compiled()
    assert "out=hs[i]" in compiled.source
    assert not np.shares_memory(last.numpy(force=True), stack.numpy(force=True))
    for a, b in zip((last, stack), function(), strict=True):
        np.testing.assert_array_equal(a.numpy(force=True), b.numpy(force=True))
    grads = [cr.autograd_grad(f()[1].sin().sum(), [xs, w]) for f in (compiled, function)]
    for a, b in zip(*grads, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-10, atol=1e-12)


WINDOWS = [  # of an array of shape (14, 13, 12)
    lambda x, i: x[:, i : i + 3],
    lambda x, i: x[:, :, i : i + 3],
    lambda x, i: x[i : i + 3, :, i : i + 2],
    lambda x, i: x[1, 2 : i + 5 : 2][:3] if i == 0 else x[1, i + 2 : i + 7 : 2],
    lambda x, i: x[:, i : i + 3, 0:4],
    lambda x, i: x[2:5, i + 2 : i : -1, i],
    lambda x, i: x[i, i : i + 3],
    lambda x, i: x[:, i : i + 3, None, i : i + 2],
    lambda x, i: x[None, :, i : i + 3, ..., None],
    lambda x, i: x[..., i : i + 3],
]


@pytest.mark.parametrize("window", WINDOWS)
def test_windows_of_any_axis_move(window: Callable[..., Any]) -> None:
    x = RNG.standard_normal((14, 13, 12))

    def read(x: Any) -> Any:
        return sum(np.sin(window(x, i)).sum() * (i + 1) for i in range(9))

    def written(x: Any) -> Any:
        y = x * 2.0
        for i in range(9):
            part = window(y, i)
            part += np.cos(window(x, i))
            part *= 0.5
        return y

    for function in (read, cr.grad(read), written, cr.grad(lambda x: (written(x) ** 3).sum())):
        compiled = compiled_to_numpy(function)
        np.testing.assert_allclose(compiled(x), function(x), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(cr.compile(function)(x), function(x), rtol=1e-10, atol=1e-10)


def test_loops_over_windows_in_two_directions_are_rolled_up() -> None:
    def convolution(x: Any, w: Any) -> Any:
        out = cr.numpy.empty((2, 12, 12, 4))
        for i in range(12):
            for j in range(12):
                part = x[:, i : i + 3, j : j + 3, :, None] * w
                out[:, i, j, :] = part.sum(axis=(1, 2, 3))
        return (out**2).sum()

    x, w = RNG.standard_normal((2, 14, 14, 3)), RNG.standard_normal((3, 3, 3, 4))
    compiled = cr.compile(cr.grad(convolution, ("x", "w")))
    wanted = cr.grad(convolution, ("x", "w"))(x, w)
    for name, found in compiled(x, w).items():
        np.testing.assert_allclose(found, wanted[name], rtol=1e-10)
    assert len(compiled.source.splitlines()) < 80


@pytest.mark.parametrize("colours", [2, 3, 9])  # nine are too many
def test_windows_that_alternate_stay_slices(colours: int) -> None:
    """A step is as many as there are colours: slices take less time than tables of indices."""
    size = 4 * colours

    def relax(x: Any) -> Any:
        for turn in range(30 * colours):
            colour = turn % colours
            y = x.clone()
            y[colour::colours] = cr.sin(x[colour::colours]) + 0.1 * x.mean()
            x = y
        return x

    x = cr.linspace(0, 1, size, dtype=cr.float64)
    for function in (relax, cr.grad(lambda x: relax(x).sum())):
        compiled = cr.compile(function, backend="numpy")
        np.testing.assert_allclose(compiled(x).numpy(), function(x).numpy(), rtol=1e-12)
        assert compiled.source is not None
        assert ("# constants: " not in compiled.source) == (colours <= 8), compiled.source
        assert len(compiled.source.splitlines()) < 300
