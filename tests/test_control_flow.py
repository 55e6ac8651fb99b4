"""scan, while_loop and cond, compared with plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr

RNG = np.random.default_rng(7)
W = cr.tensor(RNG.standard_normal((3, 3)), requires_grad=True)
XS = cr.tensor(RNG.standard_normal((5, 3)), requires_grad=True)
H = cr.tensor(RNG.standard_normal(3), requires_grad=True)
LEAVES = {"W": W, "XS": XS, "H": H}


def step(h: Any, x: Any) -> Any:
    h = cr.tanh(h @ W + x)
    return h, h * x


def plain(f: Any, carry: Any, xs: Any, reverse: bool = False) -> Any:
    rows = []
    for i in reversed(range(len(xs))) if reverse else range(len(xs)):
        carry, y = f(carry, xs[i])
        rows.append(y)
    return carry, cr.stack(rows[::-1] if reverse else rows)


def grads(*outs: Any) -> list[Any]:
    total = sum((out * out).sum() for out in outs)
    return [g.numpy() for g in cr.autograd_grad(total, LEAVES, materialize_grads=True).values()]


def same(found: Any, expected: Any) -> None:
    for a, b in zip(found, expected, strict=True):
        a, b = (t.numpy(force=True) if isinstance(t, cr.Tensor) else t for t in (a, b))
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_is_a_python_loop(reverse: bool, checkpoint: bool) -> None:
    found = cr.scan(step, H, XS, reverse=reverse, checkpoint=checkpoint)
    expected = plain(step, H, XS, reverse)
    same(found, expected)
    same(grads(*found), grads(*expected))


def test_scan_has_derivatives_of_second_order() -> None:
    for checkpoint in (False, True):

        def loss(h: Any, x: Any, flag: bool = checkpoint) -> Any:
            carry, ys = cr.scan(lambda c, s: (c * s, cr.sin(c)), h, x, checkpoint=flag)
            return (carry * ys).sum()

        assert cr.gradgradcheck(loss, (H, XS), fast_mode=True)


def test_a_checkpointed_step_is_not_kept() -> None:
    kept: list[int] = []

    def noting(h: Any, x: Any) -> Any:
        kept.append(1)
        for _ in range(10):
            h = cr.exp(h * 0.1)
        return h, None

    carry, nothing = cr.scan(noting, H, XS, checkpoint=True)
    assert nothing is None
    assert len(kept) == 5
    carry.sum().backward(inputs=[H])
    assert len(kept) == 10
    H.grad = None


def test_a_checkpointed_step_draws_the_same_numbers_again() -> None:
    def noisy(h: Any, x: Any) -> Any:
        return cr.sin(h * cr.randn(3, dtype=cr.float64)), None

    found = []
    for checkpoint in (False, True):
        cr.manual_seed(3)
        carry, _ = cr.scan(noisy, H, XS, checkpoint=checkpoint)
        found.append(grads(carry))
    same(*found)


def changes(name: str) -> Any:
    """Return a scan of steps that read a bias and a number, a change of what they read, and both.

    The step saves none of them, only what it computes from them.
    """
    bias, init = cr.ones(3, dtype=cr.float64), H.detach() * 1
    number = [1.0]

    def shifted(h: Any, x: Any) -> Any:
        return cr.sin(h + number[0] + bias) * H, None

    def scan(checkpoint: bool) -> Any:
        return cr.scan(shifted, init, XS.detach(), checkpoint=checkpoint)[0]

    change: Any = {
        "bias": lambda: bias.add_(0.5),
        "one element": lambda: bias[1:2].add_(1e-6),
        "init": lambda: init.mul_(2),
        "number": lambda: number.append(number.pop() + 1),
        "nothing": lambda: bias.mul_(1),
    }[name]
    return scan, change


@pytest.mark.parametrize("name", ["bias", "one element", "init", "number"])
def test_a_checkpointed_step_notices_what_has_changed(name: str) -> None:
    scan, change = changes(name)
    last = scan(checkpoint=True)
    change()
    with pytest.raises(cr.AutogradError, match="the recomputation saves other values"):
        grads(last)


def test_a_checkpointed_step_may_read_what_was_written_with_the_same_values() -> None:
    scan, change = changes("nothing")
    wanted, last = grads(scan(checkpoint=False)), scan(checkpoint=True)
    change()
    same(grads(last), wanted)


def test_a_checkpointed_step_notices_that_it_wrote_to_what_was_saved() -> None:
    last, _ = cr.scan(lambda h, x: (cr.sin(cr.exp(-h * h).mul_(2)), None), H, XS, checkpoint=True)
    with pytest.raises(cr.InPlaceError, match="wrote to after the graph had saved it"):
        grads(last)


def test_a_derivative_within_a_checkpointed_step() -> None:
    def descent(h: Any, x: Any) -> Any:
        slope = cr.grad(lambda z: (cr.exp(z * 0.1) * x).sum() + z.sum() ** 2)(h)
        return h - 0.01 * slope, slope

    found = [cr.scan(descent, H, XS, checkpoint=checkpoint) for checkpoint in (False, True)]
    same(*found)
    same(*[grads(*each) for each in found])


def test_scan_takes_containers() -> None:
    def both(carry: Any, x: Any) -> Any:
        return {"n": carry["n"] + 1, "h": [carry["h"][0] + x["a"]]}, (x["a"] * x["b"], None)

    init = {"h": [H], "n": 0}
    carry, (ys, nothing) = cr.scan(both, init, {"a": XS, "b": RNG.standard_normal(5)})
    assert list(carry) == ["h", "n"]
    assert (carry["n"].item(), carry["n"].dtype) == (5, cr.int64)
    assert nothing is None
    assert ys.shape == (5, 3)
    same([carry["h"][0]], [H + XS.sum(0)])


def test_scan_without_xs_runs_length_steps() -> None:
    carry, ys = cr.scan(lambda c, _: (c + c, c), H, length=4)
    same([carry, ys[3]], [H * 16, H * 8])


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_of_no_steps(reverse: bool) -> None:
    carry, ys = cr.scan(step, H, XS[:0], reverse=reverse)
    same([carry], [H])
    assert carry is not H  # the caller's own, as after any number of steps
    assert (ys.shape, ys.dtype) == ((0, 3), cr.float64)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: cr.scan(lambda c, x: c, H, XS), TypeError, r"must return a pair \(carry, y\)"),
        (lambda: cr.scan(step, H), ValueError, "give length"),
        (lambda: cr.scan(step, H, H.sum()), cr.ShapeError, r"of shape \[\]"),
        (lambda: cr.scan(step, H, XS, 4), cr.ShapeError, "the same number of slices.*length=4"),
        (
            lambda: cr.scan(lambda c, x: ({"h": cr.cat([c["h"], x])}, None), {"h": H}, XS),
            cr.ShapeError,
            r"carry\['h'\] was of shape \[3\], and is of \[6\] now: begin with",
        ),
        (
            lambda: cr.scan(lambda c, x: (c + x, None), cr.zeros(3), XS),
            cr.DTypeError,
            r"carry was float32, and is float64 now: .*to\(cr.float32\)",
        ),
        (
            lambda: cr.scan(lambda c, x: (c[0], None), (H, H), XS),
            TypeError,
            r"must keep its structure: carry was a tuple of 2, and is a Tensor",
        ),
        (lambda: cr.scan(lambda c, x: (None, c), H, XS), TypeError, "is None now"),
        (lambda: cr.scan(lambda c, x: (c, "y"), H, XS), TypeError, "scan: y: expected a Tensor"),
        (lambda: cr.scan(lambda c, x: ("c", c), H, XS), TypeError, "scan: the carry: expected"),
        (
            lambda: cr.while_loop(lambda c: True, lambda c: c[:1], H),
            cr.ShapeError,
            "while_loop: the carry must keep its shapes",
        ),
    ],
)
def test_errors_say_what_to_write(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_while_loop_is_pythons() -> None:
    last = cr.while_loop(lambda c: c["x"] < 100, lambda c: {"x": c["x"] * c["x"]}, {"x": H[0] + 3})
    expected = H[0] + 3
    while expected < 100:
        expected = expected * expected
    same([last["x"]], [expected])
    same(grads(last["x"]), grads(expected))


def test_cond_is_pythons() -> None:
    for sign in (1, -1):
        y = cr.cond(H[0] * sign > 0, lambda h: (h @ W).sum(), lambda h: (h * h).sum(), H)
        expected = (H @ W).sum() if H[0] * sign > 0 else (H * H).sum()
        same([y], [expected])
        same(grads(y), grads(expected))
    assert cr.cond(True, lambda: 1, lambda: 2) == 1
