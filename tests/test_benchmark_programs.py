"""The programs of `benchmarks/programs/steps.py`: compiled, they give the eager gradients."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr

PATH = Path(__file__).parents[1] / "benchmarks" / "programs" / "steps.py"


@pytest.fixture(scope="module")
def steps() -> Any:
    spec = importlib.util.spec_from_file_location("steps_of_benchmarks", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.sampled(8)
@pytest.mark.parametrize("number", range(8))
def test_steps(steps: Any, number: int) -> None:
    make, arrays = steps.PROGRAMS[number]()
    loss = cr.value_and_grad(make(steps.Steps("chainrule")), tuple(range(len(arrays))))
    tensors = [cr.tensor(np.asarray(array)) for array in arrays]
    (value, grads), (wanted, others) = cr.compile(loss, verify=False)(*tensors), loss(*tensors)
    for got, want in zip((value, *grads), (wanted, *others), strict=True):
        size = np.abs(want.numpy()).max()
        assert 0 < size < np.inf
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10 * size)
