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
