"""The programs of `benchmarks/programs`: compiled, they give the eager gradients."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr

PATH = Path(__file__).parents[1] / "benchmarks"
COUNTS = {"steps": 8, "models": 6}


@pytest.fixture(scope="module")
def programs() -> Iterator[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PATH))
        yield {name: importlib.import_module(f"programs.{name}") for name in COUNTS}


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("name", "number"), [(name, i) for name, count in COUNTS.items() for i in range(count)]
)
def test_programs_compiled(programs: dict[str, Any], name: str, number: int) -> None:
    make, arrays = programs[name].PROGRAMS[number]()
    loss = cr.value_and_grad(make(programs["steps"].Steps("chainrule")), tuple(range(len(arrays))))
    tensors = [cr.tensor(np.asarray(array)) for array in arrays]
    (value, grads), (wanted, others) = cr.compile(loss, verify=False)(*tensors), loss(*tensors)
    for got, want in zip((value, *grads), (wanted, *others), strict=True):
        size = np.abs(want.numpy()).max()
        assert 0 < size < np.inf
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10 * size)
