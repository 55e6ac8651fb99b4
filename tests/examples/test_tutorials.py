"""The tutorials run unchanged, and what they claim is true."""

from __future__ import annotations

import importlib.util
import itertools
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from helpers.parameters import thorough

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = {path.stem for path in EXAMPLES.glob("*.py")}
TENSORS_AND_AUTOGRAD = "tutorial_1_tensors_and_autograd"  # its main runs below


def load(name: str) -> ModuleType:
    """Return a tutorial as a module, without running its main."""
    (path,) = EXAMPLES.glob(f"{name}*.py")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pictures be written to a folder that goes away, without a display."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")


@pytest.mark.parametrize("name", sorted(NAMES - {TENSORS_AND_AUTOGRAD}))
def test_every_example_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    start = time.perf_counter()
    load(name).main()
    assert time.perf_counter() - start < 30
    assert len(capsys.readouterr().out.splitlines()) > 5


# --- 1: tensors and autograd ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, thorough(1), thorough(2)])
def test_the_network_remembers_its_data(seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    tutorial = load(TENSORS_AND_AUTOGRAD)
    cr.manual_seed(seed)
    losses = tutorial.train_by_hand(*tutorial.random_data(), *tutorial.random_weights())
    assert 1e7 < losses[0] < 1e8
    assert losses[-1] < 1e-2
    steps = [line.split(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert steps == [f"Step {step:3}" for step in (1, 100, 200, 300, 400, 500)]


def test_the_optimizer_makes_the_steps_of_the_manual_update() -> None:
    by_hand, with_optimizer = load(TENSORS_AND_AUTOGRAD).main()
    np.testing.assert_allclose(with_optimizer, by_hand, rtol=1e-4)


@pytest.mark.parametrize("way", ["train_by_hand", "train_with_optimizer"])
def test_the_losses_are_those_of_pytorch(way: str) -> None:
    torch = pytest.importorskip("torch")
    tutorial = load(TENSORS_AND_AUTOGRAD)
    rng = np.random.default_rng(0)
    shapes = [(64, 1000), (64, 10), (1000, 100), (100, 10)]
    arrays = [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]
    expected = losses_of_pytorch(torch, *arrays, rate=tutorial.LEARNING_RATE)
    x, y, w1, w2 = map(cr.tensor, arrays)
    losses = getattr(tutorial, way)(x, y, w1.requires_grad_(), w2.requires_grad_())
    early = sum(loss > 1 for loss in expected)
    assert early > 100
    np.testing.assert_allclose(losses[:early], expected[:early], rtol=1e-3)
    assert losses[-1] < 1e-2


def losses_of_pytorch(torch: Any, x: Any, y: Any, w1: Any, w2: Any, rate: float) -> list[float]:
    x, y = torch.tensor(x), torch.tensor(y)
    w1, w2 = (torch.tensor(w, requires_grad=True) for w in (w1, w2))
    optimizer = torch.optim.SGD([w1, w2], lr=rate)
    losses = []
    for _ in range(500):
        loss = (x.mm(w1).clamp(min=0).mm(w2) - y).pow(2).sum()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


# --- 2: extending autograd ------------------------------------------------------------------------


def test_each_form_multiplies_by_its_constant() -> None:
    gradients = load("tutorial_2").main()
    assert len(gradients) == 4
    assert all(gradient.tolist() == [2.0, 2.0, 2.0] for gradient in gradients.values())


def test_each_form_of_linear_is_linear() -> None:
    forms = load("tutorial_2").LINEARS
    rng = np.random.default_rng(0)
    x, w, b = (cr.tensor(rng.standard_normal(s), requires_grad=True) for s in [(4, 3), (2, 3), 2])
    g = cr.tensor(rng.standard_normal((4, 2)))
    for arguments in [(x, w, b), (x, w)]:
        expected_output = cr.nn.functional.linear(*arguments)
        expected = cr.autograd_grad(expected_output, arguments, g)
        for function in forms.values():
            output = function(*arguments)
            np.testing.assert_allclose(output.tolist(), expected_output.tolist())
            for ours, theirs in zip(cr.autograd_grad(output, arguments, g), expected, strict=True):
                np.testing.assert_allclose(ours.tolist(), theirs.tolist())


def test_the_forms_take_arguments_by_name() -> None:
    x, w = cr.ones(4, 3), cr.ones(2, 3, requires_grad=True)
    for function in load("tutorial_2").LINEARS.values():
        assert function(weight=w, input=x, bias=None).tolist() == [[3.0, 3.0]] * 4


# --- 3: the exercises -----------------------------------------------------------------------------


def test_gradients_table_and_picture_of_the_exercises() -> None:
    gradients, table, path, slopes = load("tutorial_3").main()
    assert gradients == {"f": (12.0, 7.0), "g": (33672.0, 69363.0)}
    assert slopes == [0.0, 6.0]
    assert list(table) == ["x", "y_true", "y_approx"]
    x, true, approximate = (np.array(column.tolist()) for column in table.values())
    assert len(x) == 100
    assert (x[0], x[-1]) == (-4.0, 4.0)
    np.testing.assert_allclose(true - approximate, (x - 2) ** 2, atol=1e-4)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_taylor_polynomials_of_the_exercise() -> None:
    tutorial = load("tutorial_3")
    line = cr.taylor(tutorial.f, 2.0, 1)
    table = tutorial.approximation_table()
    found = line.table(table["x"])
    for name, column in table.items():
        np.testing.assert_allclose(found[name], column.numpy(), rtol=1e-4, atol=1e-4)
    errors = list(tutorial.approximations(cr.exp).values())
    assert all(after < before / 3 for before, after in itertools.pairwise(errors))


def test_the_relu_of_the_exercise_is_the_relu() -> None:
    tutorial = load("tutorial_3")
    x = cr.linspace(-2, 2, 9, requires_grad=True)
    ours, theirs = tutorial.relu(x), cr.nn.functional.relu(x)
    assert ours.tolist() == theirs.tolist()
    (a,), (b,) = (cr.autograd_grad(y.sum(), x) for y in (ours, theirs))
    assert a.tolist() == b.tolist()


# --- 4: autograd_backward -------------------------------------------------------------------------


def test_one_pass_from_several_tensors() -> None:
    tutorial = load("tutorial_4")
    assert [gradient.item() for gradient in tutorial.separate_graphs()] == [2.0, 3.0]
    assert tutorial.shared_leaf().item() == 33.0
    assert tutorial.with_grad_tensors().tolist() == [3.0, 41.0, 601.0]
    jointly, by_sum = tutorial.weighted_losses()
    np.testing.assert_allclose(jointly.tolist(), by_sum.tolist())
    assert tutorial.one_after_the_other().item() == 66.0
    messages = list(tutorial.what_goes_wrong().values())
    assert "grad can be implicitly created only for scalar outputs" in messages[0]
    assert "got 2 tensors and 1 gradients" in messages[1]
    assert "Mismatch in shape" in messages[2]
