"""Loops and branches in compiled functions, compared with eager mode."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import pytree
from chainrule.autograd.forward import jvp_of
from chainrule.compiler import backward, build, passes

compiled_to_numpy = partial(cr.compile, backend="numpy")  # to the bit as eagerly
RNG = np.random.default_rng(11)
W = cr.tensor(RNG.standard_normal((3, 3)), requires_grad=True)
B = cr.tensor(RNG.standard_normal(3), requires_grad=True)
XS = cr.tensor(RNG.standard_normal((5, 3)), requires_grad=True)
H = cr.tensor(RNG.standard_normal(3), requires_grad=True)
Z = cr.tensor(RNG.standard_normal(3) + 1j, requires_grad=True)
LEAVES = [W, B, XS, H, Z]


@pytest.fixture(autouse=True)
def verified(monkeypatch: pytest.MonkeyPatch) -> None:
    optimize = passes.optimize
    for module in (build, backward):
        monkeypatch.setattr(module, "optimize", lambda program: optimize(program, check=True))


def leaves(result: Any) -> list[Any]:
    return [leaf for _, leaf in pytree.leaves(result) if leaf is not None]


def gradients(outs: list[Any], **settings: Any) -> list[Any]:
    tracked = [out for out in outs if out.requires_grad]
    rng = np.random.default_rng(3)
    gs = [cr.tensor(rng.standard_normal(out.shape)).to(out.dtype) for out in tracked]
    return list(cr.autograd_grad(tracked, LEAVES, gs, materialize_grads=True, **settings))


def agree(found: list[Any], expected: list[Any], exactly: bool = False) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        a, b = a.numpy(force=True), b.numpy(force=True)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if exactly:
            np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


def beside_eager(function: Callable[..., Any], *args: Any, exactly: bool = True) -> Any:
    """Compare values, gradients taken outside and inside, and second derivatives inside."""
    compiled = compiled_to_numpy(function)
    expected = leaves(function(*args))
    for _ in range(2):
        found = leaves(compiled(*args))
        agree(found, expected, exactly)
    assert len(compiled._entries) == 1
    if any(out.requires_grad for out in expected):
        firsts = gradients(expected)
        agree(gradients(found), firsts)
        inside = compiled_to_numpy(lambda: gradients(leaves(function(*args))))
        agree(inside(), firsts)
        assert len(inside._entries) == 1

        def second() -> Any:
            outs = gradients(leaves(function(*args)), create_graph=True)
            return gradients([(out * out.conj()).real.sum() for out in outs])

        agree(compiled_to_numpy(second)(), second())
        forward_beside_eager(function, *args)
    return compiled


def forward_beside_eager(function: Callable[..., Any], *args: Any) -> None:
    """Compare tangents inside, from outside, and their gradients."""
    rng = np.random.default_rng(4)
    ts = [cr.tensor(rng.standard_normal(leaf.shape)).to(leaf.dtype) for leaf in LEAVES]

    def along(f: Callable[..., Any]) -> Any:
        return jvp_of(lambda: leaves(f(*args)), LEAVES, ts)

    expected = along(function)
    agree(compiled_to_numpy(lambda: along(function))(), expected)
    agree(along(compiled_to_numpy(function)), expected)
    if any(t.requires_grad for t in expected):
        agree(compiled_to_numpy(lambda: gradients(along(function)))(), gradients(expected))


def step(h: Any, x: Any) -> Any:
    h = cr.tanh(h @ W + x + B)
    return h, h * x


def counted(carry: Any, x: Any) -> Any:
    return {"n": carry["n"] + 1, "h": carry["h"] * x["a"]}, (carry["n"], [x["b"] * 2, None])


def swapped(carry: Any, x: Any) -> Any:
    a, b = carry
    return (b, a * x), a


def outer(h: Any, row: Any) -> Any:
    last, ys = cr.scan(lambda c, x: (cr.sin(c * x) + B[0], c + x), h[0], row)
    return h * last, ys * h


def scans() -> Iterator[tuple[str, Callable[..., Any]]]:
    yield "plain", lambda: cr.scan(step, H, XS)
    yield "reverse", lambda: cr.scan(step, H, XS, reverse=True)
    yield "only ys", lambda: cr.scan(step, H, XS)[1]
    yield "only the carry", lambda: cr.scan(step, H, XS)[0]
    yield "checkpoint", lambda: cr.scan(step, H, XS, checkpoint=True)
    yield "begins without grad", lambda: cr.scan(step, cr.zeros(3, dtype=cr.float64), XS)
    yield "xs without grad", lambda: cr.scan(step, H, XS.detach())
    yield "no xs", lambda: cr.scan(lambda c, _: (cr.sin(c) * B, c), H, length=4)
    yield "no carry", lambda: cr.scan(lambda c, x: (c, cr.sin(x) @ W), None, XS)
    yield "no ys", lambda: cr.scan(lambda c, x: (c * x, None), H, XS)
    yield "one step", lambda: cr.scan(step, H, XS[:1])
    yield "no step", lambda: cr.scan(step, H, XS[:0])
    yield "swapped", lambda: cr.scan(swapped, (H, B), XS)
    yield "swapped numbers", lambda: cr.scan(swapped, (H[0], B[1]), XS[:, 2])
    yield "an invariant", lambda: cr.scan(lambda c, x: ((c[0], c[1] @ c[0] + x), c[0]), (W, H), XS)
    yield "a slice is carried", lambda: cr.scan(lambda c, x: (x, c * x), H, XS)
    yield "a view is carried", lambda: cr.scan(lambda c, x: (x[::-1], c[::-1]), H, XS)
    yield "from outside", lambda: cr.scan(lambda c, x: (B, W), H, XS)
    yield "made of nothing", lambda: cr.scan(lambda c, x: (c + x, cr.ones(2)), H, XS)
    yield "nested", lambda: cr.scan(outer, H, XS)
    yield "of what is made inside", lambda: cr.scan(lambda c, x, w=W @ W: (c @ w + x, c), H, XS * 2)
    yield "complex", lambda: cr.scan(lambda c, x: (c * cr.exp(1j * x) + Z, c.conj() * x), Z, XS)
    yield "grown", lambda: cr.scan(lambda c, x: ((c[1], x), c[0]), (H.detach(), H.detach()), XS)
    yield "views", lambda: cr.scan(lambda c, x: ((c.T @ W).T, c.diagonal() * x), W, XS)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("function", [f for _, f in scans()], ids=[name for name, _ in scans()])
def test_scan(function: Callable[..., Any]) -> None:
    beside_eager(function)


def test_scan_of_containers() -> None:
    xs = {"a": XS, "b": cr.arange(5)}
    compiled = beside_eager(lambda: cr.scan(counted, {"n": 0, "h": H}, xs))
    carry, (numbers, (doubled, nothing)) = compiled()
    assert nothing is None
    assert (carry["n"].item(), numbers.tolist(), doubled.tolist()) == (
        5,
        [*range(5)],
        [*range(0, 10, 2)],
    )


def test_large_carries_have_memory_of_their_own() -> None:
    big = cr.tensor(RNG.standard_normal((64, 64)) / 8, requires_grad=True)

    def function(b: Any) -> Any:
        def one(c: Any, x: Any) -> Any:
            return cr.tanh(c @ b + cr.exp(c * x)) * 0.5, (c * c).sum()

        return cr.scan(one, b * 2, XS[:, 0])

    compiled = beside_eager(lambda: function(big), exactly=False)  # a sum of squares is np.vdot
    first = compiled()[0].numpy(force=True).copy()
    kept = compiled()[0]
    compiled()
    np.testing.assert_array_equal(kept.numpy(force=True), first)


def conds() -> Iterator[tuple[str, Callable[..., Any]]]:
    yield "two ways", lambda p: cr.cond(p > 0, lambda h: h @ W, lambda h: h * B, H)
    yield "as it is", lambda p: cr.cond(p > 0, lambda h: h, lambda h: B, H)
    yield "a number", lambda p: cr.cond(p > 0, lambda h: (h * h).sum(), lambda h: h[0] / 2, H)
    yield "several", lambda p: cr.cond(p > 0, lambda: {"a": H, "b": W}, lambda: {"a": B, "b": W.T})
    yield (
        "nested",
        lambda p: cr.cond(p > 0, lambda: cr.cond(p > 1, lambda: H * 2, lambda: B), lambda: H * B),
    )
    yield (
        "in a scan",
        lambda p: cr.scan(
            lambda c, x: (cr.cond(x[0] * p > 0, lambda: c @ W, lambda: c * x), c), H, XS
        ),
    )
    yield (
        "of a scan",
        lambda p: cr.cond(p > 0, lambda: cr.scan(step, H, XS)[0], lambda: cr.scan(step, B, XS)[0]),
    )


@pytest.mark.sampled(9)
@pytest.mark.parametrize("function", [f for _, f in conds()], ids=[name for name, _ in conds()])
@pytest.mark.parametrize("sign", [1.5, -1.0])
def test_cond(function: Callable[..., Any], sign: float) -> None:
    beside_eager(function, cr.tensor(sign))


def test_while_loop() -> None:
    def collatz(n: Any) -> Any:
        def body(c: Any) -> Any:
            n, steps = c
            odd = n % 2 == 1
            return cr.cond(odd, lambda: 3 * n + 1, lambda: n // 2), steps + 1

        return cr.while_loop(lambda c: c[0] != 1, body, (n, 0))

    compiled = compiled_to_numpy(collatz)
    for n in (27, 1, 97):
        last, steps = compiled(cr.tensor(n))
        assert (last.item(), steps.item()) == (1, {27: 111, 1: 0, 97: 118}[n])
    assert "while " in compiled.source
    assert "if " in compiled.source


def test_a_while_loops_result_has_memory_of_its_own() -> None:
    x = cr.zeros(3)
    compiled = compiled_to_numpy(lambda x: cr.while_loop(lambda c: c.sum() > 0, lambda c: c - 1, x))
    result = compiled(x)
    result += 1
    assert x.tolist() == [0, 0, 0]


def test_a_compiled_while_loop_has_no_backward_pass() -> None:
    compiled = compiled_to_numpy(
        lambda: cr.while_loop(lambda c: c.sum() < 100, lambda c: c * c + 1, H).sum()
    )
    with pytest.raises(cr.AutogradError, match=r"Use cr.scan\(\) with a bound"):
        compiled().backward()


@pytest.mark.parametrize("inside", [False, True])
def test_a_while_loop_whose_carry_is_detached_is_a_constant(inside: bool) -> None:
    def loss(x: Any) -> Any:
        steps = cr.while_loop(
            lambda c: c.sum() < 50, lambda c: (c * x.abs() + 1).detach(), x.detach()
        )
        return (steps * x).sum()

    def gradient(x: Any) -> Any:
        return cr.autograd_grad(loss(x), x)[0]

    x = (H.detach() + 2).requires_grad_()
    compiled = compiled_to_numpy(gradient if inside else loss)
    found = compiled(x) if inside else cr.autograd_grad(compiled(x), x)[0]
    np.testing.assert_allclose(found, gradient(x))


def test_forward_mode_goes_through_a_while_loop() -> None:
    def growing(h: Any, w: Any) -> Any:
        def body(c: Any) -> Any:
            return c[0] + 1, cr.sin(c[1] * w) + B

        return cr.while_loop(lambda c: c[0] < 4, body, (cr.tensor(0), h))[1] * h

    def along(h: Any, w: Any, t: Any) -> Any:
        return cr.jvp(growing, (h, w), (t, w.exp()))

    args = H.detach(), W.detach()[0], XS.detach()[0]
    expected = along(*args)
    found = compiled_to_numpy(along)(*args)
    agree(list(found), list(expected), exactly=True)
    outside = cr.jvp(compiled_to_numpy(growing), args[:2], (args[2], args[1].exp()))
    agree(list(outside), list(expected), exactly=True)


@pytest.mark.parametrize("order", [2, 3])
def test_forward_mode_of_forward_mode_goes_through_a_while_loop(order: int) -> None:
    def growing(x: Any) -> Any:
        return cr.while_loop(lambda c: c < 20, lambda c: c * c * x + 1.2, x + 1)

    def slope(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: cr.jvp(f, x, cr.ones_like(x))[1]

    derivative = growing
    for _ in range(order):
        derivative = slope(derivative)
    x = cr.tensor(0.7, dtype=cr.float64)
    agree([compiled_to_numpy(derivative)(x)], [derivative(x)])


def forward(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: cr.jvp(f, x, cr.ones_like(x))[1]


def reverse(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def derivative(x: Any) -> Any:
        x = x.clone() if x.requires_grad else x.detach().requires_grad_()
        return cr.autograd_grad(f(x), x, create_graph=True)[0]

    return derivative


@pytest.mark.sampled(5)
@pytest.mark.parametrize("modes", list(itertools.product((forward, reverse), repeat=3)))
def test_derivatives_of_a_scan_nest_to_the_third_order(modes: Any) -> None:
    def chain(x: Any) -> Any:
        steps = cr.arange(3.0, dtype=cr.float64)
        return cr.scan(lambda c, i: (cr.sin(c * x) + i * 0.1, None), x * 0.5, steps)[0]

    derivative = chain
    for mode in modes:
        derivative = mode(derivative)
    x = cr.tensor(0.37, dtype=cr.float64)
    agree([compiled_to_numpy(derivative)(x)], [derivative(x)])
    agree([compiled_to_numpy(derivative)(x)], [cr.tensor(4.341669853276675, dtype=cr.float64)])


def test_a_branch_may_return_one_tensor_for_several_results() -> None:
    def twice(x: Any) -> Any:
        return *cr.cond(x > 0, lambda: (x, x), lambda: (x * x, x)), x.sin()

    x = cr.tensor(0.5, dtype=cr.float64, requires_grad=True)
    compiled, t = compiled_to_numpy(twice), cr.tensor(1.0, dtype=cr.float64)
    agree(list(cr.jvp(compiled, x, t)[1]), list(cr.jvp(twice, x, t)[1]))
    for f in (compiled, twice):
        (slope,) = cr.autograd_grad(f(x)[2], x, create_graph=True)
        (found,) = cr.autograd_grad(slope, x)
        assert found.item() == pytest.approx(-np.sin(0.5))


def test_a_branch_that_is_constant_has_zeros_for_a_recorded_gradient() -> None:
    compiled = compiled_to_numpy(
        lambda x: cr.cond(x > 1, lambda: cr.full_like(x, 3.0), lambda: x * x * x)
    )
    for value, slope, curvature in ((2.0, 0.0, None), (0.5, 0.75, 3.0)):
        x = cr.tensor(value, requires_grad=True)
        (found,) = cr.autograd_grad(compiled(x), x, create_graph=True)
        assert found.item() == slope
        assert found.requires_grad == (curvature is not None)
        if curvature is not None:
            assert cr.autograd_grad(found, x)[0].item() == curvature


def test_a_while_loop_within_a_scan_bears_no_gradient_but_runs() -> None:
    def function() -> Any:
        def one(c: Any, x: Any) -> Any:
            n = cr.while_loop(lambda n: n * n < 50, lambda n: n + 1, x[0].detach())
            return c * n, n

        return cr.scan(one, H, XS)

    beside_eager(function)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda: cr.scan(lambda c, x: (c, B.add_(1)), H, XS), "writes in place to a tensor"),
        (lambda: cr.scan(lambda c, x: (c[0:].add_(x), x), H * 1, XS), "in place to what it is giv"),
        (lambda: cr.scan(lambda c, x: (c, x.add_(c)), H, XS * 1), "in place to what it is given"),
        (lambda: cr.while_loop(lambda x: x < 9, lambda x: x.mul_(2), B[0] * 1), "in place to what"),
        (lambda: cr.scan(lambda c, x: (c, (B * x).sum().backward()), H, XS), r"calls backward\(\)"),
        (lambda: cr.while_loop(lambda c: True, lambda c: c, H), "must be a tensor"),
        (lambda: cr.cond(H > 0, lambda: 1, lambda: 2), "must have one element"),
        (lambda: cr.cond(H[0] > 0, lambda: H, lambda: W), "must keep its shapes"),
    ],
)
def test_error_messages(function: Any, text: str) -> None:
    errors = (cr.CompileError, cr.ShapeError)
    with cr.set_grad_enabled("in place" not in text), pytest.raises(errors, match=text):
        compiled_to_numpy(function)()


def test_a_step_does_not_know_in_which_order_its_carry_is() -> None:
    def step(c: Any, x: Any) -> Any:
        twice = c * 1
        twice.T.reshape(-1).mul_(2)  # of a copy, if the carry is in C order
        return twice + x, None

    with pytest.raises(cr.CompileError, match="may be a view or a copy"):
        cr.compile(lambda c, x: cr.scan(step, c, x))(cr.ones(3, 2).T, cr.ones(2, 2, 3))


def test_tensors_of_a_step_cannot_be_used_outside() -> None:
    kept: list[Any] = []

    def leaking() -> Any:
        cr.scan(lambda c, x: (c, kept.append(c * x)), H, XS)
        return kept[0] + 1

    with pytest.raises(cr.CompileError, match=r"made is used outside of it.*Return it"):
        compiled_to_numpy(leaking)()


def test_loops_are_exported_and_profiled(tmp_path: Any) -> None:
    compiled = compiled_to_numpy(lambda h, xs: cr.scan(step, h, xs))
    args = H.detach(), XS.detach()
    expected = compiled(*args)
    rows = cr.profile(compiled, *args).rows
    assert any("for i in range(5):" in row.statement for row in rows)
    path = tmp_path / "exported.py"
    cr.export(compiled, path, *args)
    scope: dict[str, Any] = {"__file__": str(path)}
    exec(path.read_text(), scope)
    function = scope[compiled.program.programs[0].name]
    found = function(*(a.numpy() for a in args))
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b.numpy(force=True))
    assert "scan(h2: f8[3], x: f8[3])" in str(compiled.program)
    assert compiled.program.cost.flops == 5 * (9 * 2 + 3 * 4)


@pytest.mark.parametrize("checkpoint", [False, True])
def test_each_step_draws_its_own_numbers(checkpoint: bool) -> None:
    def noisy(h: Any, xs: Any) -> Any:
        def one(c: Any, x: Any) -> Any:
            return cr.sin(c * cr.randn(3, dtype=cr.float64)) * x, cr.rand(2)

        last, drawn = cr.scan(one, h, xs, checkpoint=checkpoint)
        return last, drawn, *cr.autograd_grad(last.sum(), [h, xs])

    compiled = compiled_to_numpy(noisy)
    for seed in range(3):
        cr.manual_seed(seed)
        expected = noisy(H, XS)
        cr.manual_seed(seed)
        agree(list(compiled(H, XS)), list(expected))


def test_unused_draws_are_kept() -> None:
    def function() -> Any:
        cr.scan(lambda c, x: (c + cr.rand(3), None), cr.zeros(3), XS)
        return cr.rand(2)

    compiled = compiled_to_numpy(function)
    compiled()
    cr.manual_seed(1)
    expected = function()
    cr.manual_seed(1)
    agree([compiled()], [expected], exactly=True)


def _noisy() -> Any:
    return cr.scan(lambda c, x: (c * x * cr.randn(3), None), H, XS)[0]


@pytest.mark.parametrize(
    "function",
    [
        lambda: cr.cond(H[0] > 0, lambda: H * cr.randn(3), lambda: H),
        lambda: cr.autograd_grad(_noisy().sum(), [H], create_graph=True)[0],
    ],
)
def test_a_step_that_draws_does_not_run_again(function: Callable[..., Any]) -> None:
    with pytest.raises(cr.CompileError, match="draws random numbers: draw outside"):
        compiled_to_numpy(lambda: cr.autograd_grad(function().sum(), [H]))()


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_backends_run_loops(backend: str) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite")

    def function(h: Any, xs: Any) -> Any:
        last, ys = cr.scan(step, h, xs)
        return cr.autograd_grad((last * cr.exp(ys)).sum(), [h, xs])

    compiled = cr.compile(function, backend=backend)
    agree(list(compiled(H, XS)), list(function(H, XS)))


def test_an_array_from_outside_may_change() -> None:
    factor = np.full(3, 2.0)
    compiled = compiled_to_numpy(
        lambda: cr.scan(lambda c, x: (c + cr.tensor(factor), None), H, XS)[0]
    )
    for value in (2.0, 3.0):
        factor[:] = value
        agree([compiled()], [H + 5 * value])


def _given_itself(x: Any, p: Any) -> Any:
    y = cr.cond(p, lambda x: x, lambda x: x * 2, x)
    return y.add_(1), x.clone()


def _found_twice(x: Any, p: Any) -> Any:
    x = x * 1
    y, z = cr.cond(p, lambda: (x, x), lambda: (x.T, x * 2))
    x.add_(1)
    return y.add_(2), z, x


def _carried_along(x: Any, p: Any) -> Any:
    (a, b), ys = cr.scan(lambda c, _: (c, c[0]), (x, x), length=3)
    return a.add_(1), b, ys, x.clone()


def _no_step(x: Any, p: Any) -> Any:
    y = cr.while_loop(lambda c: c.sum() > 100, lambda c: c * 2, x)
    return y.add_(1), x.clone()


@pytest.mark.parametrize("function", [_given_itself, _found_twice, _carried_along, _no_step])
@pytest.mark.parametrize("chosen", [True, False])
def test_a_write_to_a_result_reaches_nothing_else(
    function: Callable[..., Any], chosen: bool
) -> None:
    found, wanted = (
        f(cr.tensor([[1.0, 2.0], [3.0, 4.0]]), cr.tensor(chosen))
        for f in (compiled_to_numpy(function), function)
    )
    agree(list(found), list(wanted), exactly=True)


def _steep(t: Any) -> Any:
    """Return zeros with infinite slope: a gradient of zeros becomes nan, an absent one doesn't."""
    return (t - t.detach()).sqrt()


STEEP: dict[str, tuple[Callable[..., Any], Any]] = {
    "a carry that nobody uses": (lambda c, x: (c * 0 + _steep(c), c * x), H),
    "one of two": (lambda c, x: ((c[0] * x, _steep(c[1])), c[0]), (H, B)),
    "in turn": (lambda c, x: ((c[1], _steep(c[0]) + x), c[0]), (H, B)),
    "later": (lambda c, x: ((c[1] * x, _steep(c[2]), c[2] + 1), c[0]), (H, B, H)),
    "another one uses it": (lambda c, x: ((c[0] + c[1] * x, c[1] * B), None), (H, B)),
    "a slice": (lambda c, x: (x, _steep(c) + x), H),
    "from outside": (lambda c, x: (cr.sin(_steep(B) * c), c * x + B), H),
}


ABSENT = [
    # each name with each pair of settings
    (name, reverse, checkpoint, ["ys", "first carry", "all"][(i + reverse + 2 * checkpoint) % 3])
    for i, name in enumerate(STEEP)
    for reverse in (False, True)
    for checkpoint in (False, True)
]


@pytest.mark.sampled(5)
@pytest.mark.no_verify("0 · ∞ is nan, where eagerly there is no gradient at all")
@pytest.mark.parametrize(("name", "reverse", "checkpoint", "result"), ABSENT)
def test_absent_gradients_are_not_zeros(
    name: str, reverse: bool, checkpoint: bool, result: str
) -> None:
    step, init = STEEP[name]

    def function() -> list[Any]:
        carry, ys = cr.scan(step, init, XS, reverse=reverse, checkpoint=checkpoint)
        found = leaves((carry, ys))
        return {"ys": found[-1:], "first carry": found[:1], "all": found}[result]

    def grads(outs: list[Any]) -> list[Any]:
        total = sum((out * out).sum() for out in outs)
        return [g for g in cr.autograd_grad(total, LEAVES, allow_unused=True)]

    def tangents() -> list[Any]:
        found = []
        for without in (1, 2, 3):
            some = [leaf for i, leaf in enumerate(LEAVES[:4]) if i != without]
            found += jvp_of(function, some, [leaf.detach() * 0.5 for leaf in some])
        return found

    def same(found: list[Any], expected: list[Any]) -> None:
        assert [g is None for g in found] == [g is None for g in expected]
        both = ([g for g in part if g is not None] for part in (found, expected))
        agree(*both)

    with np.errstate(all="ignore"):
        expected = grads(function())
        same(compiled_to_numpy(lambda: grads(function()))(), expected)
        same(grads(compiled_to_numpy(function)()), expected)
        same(compiled_to_numpy(tangents)(), tangents())


def test_a_branch_that_uses_nothing_has_no_gradient() -> None:
    def function(p: Any) -> Any:
        root = _steep(B)
        return cr.cond(p, lambda: (root * 2, H * 3), lambda: (root * 3, H))[1]

    compiled = compiled_to_numpy(lambda p: cr.autograd_grad(function(p).sum(), LEAVES[3])[0])
    assert compiled(cr.tensor(True)).tolist() == [3.0] * 3
    grads = compiled_to_numpy(
        lambda p: cr.autograd_grad(function(p).sum(), [H, B], allow_unused=True)
    )
    assert grads(cr.tensor(False))[1] is None


def test_forward_mode_carries_no_absent_tangent() -> None:
    def growing(h: Any, b: Any) -> Any:
        def body(c: Any) -> Any:
            return c[0] + 1, cr.sin(c[1]), _steep(c[2])

        last = cr.while_loop(lambda c: c[0] < 4, body, (cr.tensor(0), h, b))
        return last[1] + last[2]

    def along(h: Any, b: Any) -> Any:
        with cr.enable_grad():
            b = b.requires_grad_()
            return cr.jvp(lambda h: growing(h, b), (h,), (h * 2,))[1]

    args = H.detach(), B.detach()
    expected = along(*args)
    agree([compiled_to_numpy(lambda h: along(h, B.detach() * 1))(args[0])], [expected])


def test_a_step_may_import_what_has_not_been_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "import warnings\nwarnings.filterwarnings('ignore', message='none is like this')\nTWO = 2.0"
    )
    (tmp_path / "imported_in_a_step.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))

    def step(c: Any, _: Any) -> Any:
        import imported_in_a_step as module  # type: ignore[import-not-found]

        return c * module.TWO, c

    with warnings.catch_warnings():
        found = cr.compile(lambda c: cr.scan(step, c, XS)[0])(H)
    np.testing.assert_array_equal(found.detach(), H.detach() * 2.0 ** len(XS))


def test_a_step_that_changes_captured_objects_is_refused() -> None:
    count, held = 0, {"h": B}

    def numbered(c: Any, x: Any) -> Any:
        nonlocal count
        count += 1
        return c + count, None

    def rebound(c: Any) -> Any:
        held["h"] = held["h"] * c
        return c + held["h"].sum()

    def chosen() -> Any:
        nonlocal count
        count += 1
        return H * count

    for function in (
        lambda: cr.scan(numbered, H, XS),
        lambda: cr.while_loop(lambda c: c.sum() < 9, rebound, H),
        lambda: cr.cond(H[0] > 0, chosen, lambda: H),
    ):
        with pytest.raises(cr.CompileError, match="changes what it finds by name"):
            compiled_to_numpy(function)()
        held["h"] = B


@pytest.mark.parametrize("backend", ["numpy", None])
def test_gradients_that_a_branch_broadcasts_are_added_to(backend: Any) -> None:
    def gradient(x: Any) -> Any:
        part = x[-2:, 0]
        out = cr.cond(x.sum() > 0, lambda: part * x.sum(), lambda: -part)
        return cr.autograd_grad(out.sum(), x)[0]

    compiled = cr.compile(gradient, backend=backend)
    for sign in (1.0, -1.0):
        x = (cr.arange(4.0).reshape(2, 2) * sign).requires_grad_()
        assert compiled(x).tolist() == gradient(x).tolist()


@pytest.mark.parametrize("bound", [-100.0, 100.0])
@pytest.mark.parametrize("writes", ["write", "other"])
def test_a_branch_that_writes_to_what_its_derivative_needs(bound: float, writes: str) -> None:
    """As in eager mode, the values are right and the backward pass is an error."""

    def squared(v: Any) -> Any:
        v = v.clone()
        v[...] = v * v if writes == "write" else 2 * H
        return v.tanh()

    def function(x: Any) -> Any:
        return cr.cond(x.sum() > bound, squared, lambda v: 0.5 * v, x)

    compiled = compiled_to_numpy(function)
    x = (H.detach() * 1).requires_grad_()
    np.testing.assert_allclose(compiled(x).detach(), function(x).detach())
    if writes == "write":
        with pytest.raises(cr.InPlaceError, match="modified by an inplace operation"):
            compiled(x).sum().backward()
    else:
        compiled(x).sum().backward()


# --- gradients within steps -----------------------------------------------------------------------


def through_outside(w: Any) -> Any:
    z = w * 2.0

    def step(c: Any, _: Any) -> Any:
        (g,) = cr.autograd_grad((z * w).sum(), [w], retain_graph=True)
        return c + g.sum(), g

    return cr.scan(step, cr.tensor(0.0), length=3)[0]


def through_two_loops(w: Any) -> Any:
    z = w * 2.0

    def outer(c: Any, _: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            (g,) = cr.autograd_grad((z * w).sum(), [w], retain_graph=True)
            return c + g.sum(), g

        return cr.scan(step, c, length=3)[0], c

    return cr.scan(outer, cr.tensor(0.0), length=2)[0]


def through_branch(w: Any) -> Any:
    z = w * 2.0

    def first() -> Any:
        return cr.autograd_grad((z * w).sum(), [w], retain_graph=True)[0]

    return cr.cond(w.sum() > 0, first, lambda: w * 1.0)


def through_carry(w: Any) -> Any:
    def step(c: Any, _: Any) -> Any:
        (g,) = cr.autograd_grad((c * w).sum(), [w], retain_graph=True)
        return c * w, g

    return cr.scan(step, cr.ones(2), length=3)[1].sum()


def through_condition(w: Any) -> Any:
    def body(c: Any) -> Any:
        (g,) = cr.autograd_grad((c[1] * w).sum(), [w], retain_graph=True)
        return c[0] + 1, c[1] * w + g * 0

    return cr.while_loop(lambda c: c[0] < 3, body, (cr.tensor(0), w * 1.0))[1].sum()


def through_other_carry(q: Any) -> Any:
    def step(c: Any, _: Any) -> Any:
        q, p = c
        (g,) = cr.autograd_grad((q * q * p).sum(), [q], retain_graph=True)
        q = q + 0.1 * p
        return (q, p - 0.1 * g * q), g

    return cr.scan(step, (q * 1.0, q.detach().requires_grad_()), length=3)[1].sum()


@pytest.mark.parametrize(
    "function",
    [
        *(through_outside, through_two_loops, through_branch, through_carry, through_condition),
        through_other_carry,
    ],
)
def test_a_gradient_that_would_miss_a_history_raises(function: Any) -> None:
    w = cr.tensor([1.0, 2.0], requires_grad=True)
    function(w)
    with pytest.raises(cr.CompileError, match="history between them is not part of the function"):
        cr.compile(function)(w)


def of_other_tensors(w: Any) -> Any:
    v = w.detach().requires_grad_()
    z = v * 2.0

    def step(c: Any, _: Any) -> Any:
        (g,) = cr.autograd_grad((z * w).sum(), [w], retain_graph=True)
        return c + g.sum(), g

    return cr.scan(step, cr.tensor(0.0), length=3)[0]


def of_independent_carries(q: Any) -> Any:
    def step(c: Any, _: Any) -> Any:
        q, p = c
        (g,) = cr.autograd_grad((q * q * w).sum(), [q], retain_graph=True)
        return (q + 0.1 * p, p - 0.1 * g), g

    w = q.detach() * 2.0
    return cr.scan(step, (q * 1.0, q.detach().requires_grad_()), length=3)[1].sum()


def of_detached_carries(q: Any) -> Any:
    def step(c: Any, _: Any) -> Any:
        q, p = [t.detach().requires_grad_() for t in c]
        (g,) = cr.autograd_grad((q * q * p).sum(), [q], retain_graph=True)
        q = q + 0.1 * p
        return (q, p - 0.1 * g * q), g

    return cr.scan(step, (q * 1.0, q.detach().requires_grad_()), length=3)[1].sum()


def of_what_is_made_inside(w: Any) -> Any:
    def step(c: Any, _: Any) -> Any:
        z = w * 2.0
        (g,) = cr.autograd_grad((z * w).sum(), [w], create_graph=True)
        return c + (g * w).sum(), g

    return cr.scan(step, cr.tensor(0.0), length=3)[0]


def of_a_transform(w: Any) -> Any:
    z = w * 2.0

    def step(c: Any, _: Any) -> Any:
        g = cr.grad(lambda u: (u * u * z).sum())(w)
        return c + g.sum(), g

    return cr.scan(step, cr.tensor(0.0), length=3)[0]


@pytest.mark.parametrize(
    "function",
    [
        *(of_other_tensors, of_independent_carries, of_detached_carries, of_what_is_made_inside),
        of_a_transform,
    ],
)
def test_gradients_within_a_step_are_eagers(function: Any) -> None:
    w = cr.tensor([1.0, 2.0], requires_grad=True)
    eager, compiled = function(w), cr.compile(function)(w)
    assert compiled.item() == pytest.approx(eager.item(), rel=1e-6)
    if eager.requires_grad:
        (expected,), (found,) = (
            cr.autograd_grad(eager, [w]),
            cr.autograd_grad(compiled, [w]),
        )
        np.testing.assert_allclose(found, expected, rtol=1e-6)
