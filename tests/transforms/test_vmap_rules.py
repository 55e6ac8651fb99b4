"""The conformance table under vmap: results are those of one example at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from conformance import CONSTANTS, ROWS, Case, cases_of
from conformance.checks import Subject, arrays_of, demand, weighted_gradients

CASES = [case for row in (*ROWS, *CONSTANTS) for case in cases_of(row)]
BATCH = 3


def groups() -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in CASES:
        found.setdefault(f"{case.row.primitive}-{case.dtype}", []).append(case)
    return found


def several(arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return several examples of each input along a new first axis, near the input of the case."""
    rng = np.random.default_rng(11)
    made = []
    for array in arrays:
        scale = 1 + 0.01 * rng.uniform(-1, 1, (BATCH, *array.shape)) * (
            np.arange(BATCH) > 0
        ).reshape(-1, *(1,) * array.ndim)
        with np.errstate(invalid="ignore"):  # inf * complex
            made.append((array * scale).astype(array.dtype))
    return made


def close(found: list[np.ndarray], wanted: list[list[np.ndarray]], what: str) -> None:
    """Compare the result of vmap with those of each example."""
    for k, mapped in enumerate(found):
        each = np.stack([one[k] for one in wanted])
        assert mapped.dtype == each.dtype, what
        loose = {"f2": 1e-2, "f4": 2e-4, "c8": 2e-4}.get(each.dtype.str[1:], 1e-9)
        np.testing.assert_allclose(mapped, each, rtol=loose, atol=loose, err_msg=what)


def check_lanes(case: Case) -> None:
    subject = Subject(case)
    points = several(subject.points)
    with np.errstate(all="ignore"):
        shapes = [out for out in subject(*[cr.from_numpy(np.asarray(p[0])) for p in points])]
        weights = several([np.asarray(w) for w in subject.like(arrays_of(shapes))])
        smooth = case.situation.smooth and case.row.differentiable

        def of(points: Any, weights: Any) -> list[list[cr.Tensor]]:
            xs = [p.detach().requires_grad_() for p in points]
            outs = subject(*xs)
            grads = weighted_gradients(outs, xs, weights, create_graph=smooth)
            second = weighted_gradients(grads, xs, [g.detach() for g in grads]) if smooth else []
            tangents = cr.jvp(lambda *p: list(subject(*p)), list(points), list(points))[1]
            return [list(outs), grads, second, tangents]

        inputs = [[cr.from_numpy(a) for a in arrays] for arrays in (points, weights)]
        one = [
            [
                arrays_of(t.detach() for t in part)
                for part in of(*[[a[i] for a in arrays] for arrays in inputs])
            ]
            for i in range(BATCH)
        ]
        found = cr.vmap(of)(*inputs)
        for k, what in enumerate(("values", "gradients", "second derivatives", "tangents")):
            close(arrays_of(t.detach() for t in found[k]), [example[k] for example in one], what)
        if not points:
            return
        xs = [p.clone().requires_grad_() for p in inputs[0]]
        outs = cr.vmap(lambda *p: list(subject(*p)))(*xs)
        outside = arrays_of(weighted_gradients(outs, xs, inputs[1]))
        close(outside, [example[1] for example in one], "gradients from outside")


class Pulled:
    """The values and gradients of a case, and arguments for several examples."""

    def __init__(self, case: Case) -> None:
        self.subject = Subject(case)
        points = several(self.subject.points)
        first = self.subject(*[cr.from_numpy(np.asarray(p[0])) for p in points])
        weights = several([np.asarray(w) for w in self.subject.like(arrays_of(first))])
        self.inputs = [[cr.from_numpy(a) for a in arrays] for arrays in (points, weights)]

    def __call__(self, points: Any, weights: Any) -> list[list[cr.Tensor]]:
        xs = [p.detach().requires_grad_() for p in points]
        outs = self.subject(*xs)
        return [list(outs), weighted_gradients(outs, xs, weights)]


def agree(found: Any, wanted: Any) -> None:
    for mine, other in zip(found, wanted, strict=True):
        for x, y in zip(arrays_of(mine), arrays_of(other), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


@np.errstate(all="ignore")
def check_nested(case: Case) -> None:
    of = Pulled(case)
    if not of.inputs[0]:
        return
    twice = [[cr.stack([x, x.flip(0)], 1) for x in xs] for xs in of.inputs]
    found = cr.vmap(cr.vmap(of), 1, 1)(*twice)
    agree([[x[:, 0] for x in part] for part in found], cr.vmap(of)(*of.inputs))
    agree([[x[:, 1].flip(0) for x in part] for part in found], cr.vmap(of)(*of.inputs))


@np.errstate(all="ignore")
def check_compiled(case: Case) -> None:
    of = Pulled(case)
    if of.inputs[0]:
        mapped = cr.vmap(of)
        agree(cr.compile(mapped, backend="numpy")(*of.inputs), mapped(*of.inputs))


DOUBLE = [case for case in CASES if case.dtype in ("float64", "complex128")]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("start", range(20))
def test_vmaps_nest(start: int) -> None:
    demand(check_nested, DOUBLE[start::40])


@pytest.mark.sampled(5)
@pytest.mark.parametrize("start", range(20))
def test_vmaps_can_be_compiled(start: int) -> None:
    demand(check_compiled, DOUBLE[start + 20 :: 100])


@pytest.mark.sampled(5)
@pytest.mark.parametrize("cases", groups().values(), ids=groups())
def test_a_vmap_gives_the_results_of_each_example(cases: list[Case]) -> None:
    demand(check_lanes, cases)


@pytest.mark.filterwarnings("error")  # as of functions that run for each example in turn
@pytest.mark.parametrize("name", ["remainder", "fmod", "floor_divide"])
def test_remainders_have_rules(name: str) -> None:
    x = cr.linspace(-9.0, 9.0, 10_000).reshape(2, 5000)
    function = getattr(cr, name)
    assert cr.equal(cr.vmap(lambda row: function(row, 0.75))(x), function(x, 0.75))
    found = cr.vmap(cr.grad(lambda row: function(2.5, row * row).sum()))(x)
    assert cr.equal(found, cr.grad(lambda x: function(2.5, x * x).sum())(x))


def test_the_largest_few_of_long_rows() -> None:
    x = cr.sin(cr.arange(3 * 5000.0)).reshape(3, 5000)
    assert cr.equal(cr.vmap(lambda row: cr.topk(row, 4).indices)(x), cr.topk(x, 4).indices)
