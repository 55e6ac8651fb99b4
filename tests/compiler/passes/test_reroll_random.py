"""Random unrolled loops, rerolled: the same results to the bit."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler import backward, build, passes
from chainrule.compiler.passes import reroll

compiled_to_numpy = partial(cr.compile, backend="numpy")  # to the bit as eagerly
RNG = np.random.default_rng(1)
W = cr.tensor(RNG.standard_normal((4, 4)) / 2, requires_grad=True)
XS = cr.tensor(RNG.standard_normal((30, 4)), requires_grad=True)
H = cr.tensor(RNG.standard_normal(4), requires_grad=True)
LEAVES = [W, XS, H]

STEPS: list[Callable[..., Any]] = [
    lambda x, y, i: cr.sin(x) + y,
    lambda x, y, i: cr.tanh(x @ W),
    lambda x, y, i: x * y * 0.3,
    lambda x, y, i: x + XS[i],
    lambda x, y, i: x * (0.9 - 0.01 * i),
    lambda x, y, i: x - cr.tanh(y) * XS[len(XS) - 1 - i],
    lambda x, y, i: x * 0.9 + XS[i - 5],
    lambda x, y, i: cr.sigmoid(x)[[3, 2, 1, 0]] + y,
    lambda x, y, i: cr.where(x > y, x * 0.5, y),
    lambda x, y, i: cr.cat([x[2:], y[:2]]) * 0.9,
    lambda x, y, i: x.view(2, 2).T.reshape(4) * 0.8 + y.sum() * 0.01,
    lambda x, y, i: x * 0.9 + XS[i : i + 2].mean(0),  # of one row at the end
    lambda x, y, i: cr.tanh(y + XS[28 - i // 2 * 2 : 30 - i // 2 * 2].sum(0)),
]


def random_loop(seed: int) -> Callable[[], list[Any]]:
    """Return a function with a loop over variables; some values of some steps are returned."""
    rng = random.Random(seed)
    count, steps = rng.randint(1, 3), rng.randint(20, 30)
    names = range(count)
    ops = range(rng.randint(3, 6))
    body = [(rng.choice(STEPS), *(rng.choice(names) for _ in range(3))) for _ in ops]
    kept = {(rng.randrange(steps), rng.choice(names)) for _ in range(rng.randint(0, 4))}
    collected = rng.random() < 0.5
    odd = rng.choice([-1, -1, rng.randrange(steps)])

    def loop() -> list[Any]:
        variables = [H * (k + 1) * 0.3 for k in names]
        rows, found = [], []
        for i in range(steps):
            for step, a, b, c in body:
                variables[c] = step(variables[a], variables[b], i)
            if i == odd:  # a step that is not like the others
                variables[0] = cr.cos(variables[0])
            rows.append(variables[0])
            found += [variables[k] for step, k in sorted(kept) if step == i]
        return [*variables, *found, *([cr.stack(rows)] if collected else [])]

    return loop


def results(function: Callable[[], list[Any]]) -> tuple[list[Any], str]:
    """Return the values, gradients and source of a compiled function."""
    compiled = compiled_to_numpy(function)
    outs = compiled()
    tracked = [out for out in outs if out.requires_grad]
    gs = [cr.cos(out.detach()) for out in tracked]
    grads = cr.autograd_grad(tracked, LEAVES, gs, materialize_grads=True)
    return [out.numpy(force=True) for out in (*outs, *grads)], compiled.source


@pytest.mark.sampled(4)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(16))
def test_random_loops(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    optimize = passes.optimize
    for module in (build, backward):
        monkeypatch.setattr(module, "optimize", lambda program: optimize(program, check=True))
    function = random_loop(seed)
    rolled, source = results(function)
    assert "for " in source
    monkeypatch.setattr(reroll, "MIN_OPS_SAVED", 10**9)
    unrolled, source = results(function)
    assert "for " not in source
    for a, b in zip(rolled, unrolled, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, expected in zip(rolled, function(), strict=False):
        np.testing.assert_allclose(a, expected.numpy(force=True), rtol=1e-9, atol=1e-11)
