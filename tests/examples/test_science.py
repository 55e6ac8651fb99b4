"""The examples from the sciences: what they find is right, by other means."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import chainrule as cr

EXAMPLES = Path(__file__).parents[2] / "examples"

pytest.importorskip("scipy")


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore:Best performing initialization")
def test_the_density_of_the_mixture_is_that_of_scikit_learn() -> None:
    mixture = pytest.importorskip("sklearn.mixture")
    from sklearn.datasets import load_iris

    example = load("gaussian_mixture")
    x = load_iris().data
    known = mixture.GaussianMixture(3, random_state=0, max_iter=5, tol=0.0).fit(x)
    scales = np.linalg.cholesky(known.precisions_)
    p = {"weights": np.log(known.weights_), "means": known.means_, "scales": scales}
    density = cr.logsumexp(example.log_densities(p, x), 1).mean()
    assert density.item() == pytest.approx(known.score(x))
    assert cr.gradcheck(lambda v: example.loss(cr.tree.ravel(p)[1](v), x), _leaf(p), fast_mode=True)


def _leaf(p: dict[str, np.ndarray]) -> cr.Tensor:
    return cr.tensor(cr.tree.ravel(p)[0], requires_grad=True)


def test_the_coating_is_a_minimum_and_its_formula_is_fresnels() -> None:
    example = load("thin_film")
    bare, first, result, curvature = example.main()
    assert result.fun < first / 2 < bare / 4
    assert (curvature > 0).all()
    np.testing.assert_allclose(example.reflectance([0.0] * 4), bare)
    step = 1e-4
    moved = [result.x + sign * step * np.eye(4)[2] for sign in (1, -1)]
    slope = (float(example.loss(moved[0])) - float(example.loss(moved[1]))) / (2 * step)
    assert cr.grad(example.loss)(result.x)[2] == pytest.approx(slope, abs=1e-9)


def test_the_wave_is_reflected_as_fresnel_says_and_its_gradient_is_right() -> None:
    example = load("electromagnetic_wave")
    seen = np.asarray(example.simulate(np.ones(6)))
    energies = [np.sum(part**2) for part in (seen[: example.PASSED], seen[example.PASSED :])]
    amplitude = (1 - np.sqrt(example.GLASS)) / (1 + np.sqrt(example.GLASS))
    assert energies[1] / energies[0] == pytest.approx(amplitude**2, rel=0.06)  # coarse
    layer = np.linspace(1.0, 3.0, 6)
    found = cr.grad(example.reflected)(layer)
    step = 1e-5
    moved = [layer + sign * step * np.eye(6)[2] for sign in (1, -1)]
    slope = (float(example.reflected(moved[0])) - float(example.reflected(moved[1]))) / (2 * step)
    assert found[2] == pytest.approx(slope, rel=1e-5)
