"""Initial values: their distribution, and what PyTorch computes of shapes and names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.nn import init

FANS = {"fan_in": 30 * 9, "fan_out": 20 * 9}


def drawn(fill: Any, *args: Any, **settings: Any) -> np.ndarray[Any, Any]:
    weight = cr.nn.Parameter(cr.empty(20, 30, 3, 3))
    assert fill(weight, *args, generator=np.random.default_rng(0), **settings) is weight
    assert weight.requires_grad
    assert weight.is_leaf
    return weight.detach().numpy()


@pytest.mark.parametrize(
    ("fill", "args", "variance"),
    [
        (init.uniform_, (-3.0, 3.0), 3.0),
        (init.normal_, (0.0, 0.5), 0.25),
        (init.trunc_normal_, (0.0, 0.1), 0.01),
        (init.xavier_uniform_, (2.0,), 4 * 2 / sum(FANS.values())),
        (init.xavier_normal_, (2.0,), 4 * 2 / sum(FANS.values())),
        (init.kaiming_uniform_, (1.0,), 1 / FANS["fan_in"]),
        (init.kaiming_normal_, (0, "fan_out", "relu"), 2 / FANS["fan_out"]),
    ],
)
def test_draws_have_the_variance(fill: Any, args: Any, variance: float) -> None:
    values = drawn(fill, *args)
    assert abs(values.mean()) < 5 * np.sqrt(variance / values.size)
    assert values.var() == pytest.approx(variance, rel=0.05)
    if "uniform" in fill.__name__:
        assert abs(values).max() == pytest.approx(np.sqrt(3 * variance), rel=0.01)


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (3, 2, 2)])
def test_orthogonal_rows_or_columns(shape: tuple[int, ...]) -> None:
    matrix = init.orthogonal_(cr.empty(*shape), gain=2).reshape(shape[0], -1)
    gram = matrix @ matrix.T if shape[0] <= matrix.shape[1] else matrix.T @ matrix
    assert cr.allclose(gram, 4 * cr.eye(len(gram)), atol=1e-5)


def test_identities() -> None:
    x = cr.randn(2, 4, 5)
    weight = init.dirac_(cr.empty(4, 2, 3), groups=2)
    assert cr.allclose(cr.nn.functional.conv1d(x, weight, padding=1, groups=2), x)
    assert init.eye_(cr.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    sparse = init.sparse_(cr.empty(10, 4), sparsity=0.31, std=1)
    assert (sparse == 0).sum(0).tolist() == [4] * 4
    assert init.constant_(cr.empty(2), 3).tolist() == [3, 3]


def test_gains_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    for name in ("linear", "conv2d", "conv_transpose3d", "sigmoid", "tanh", "relu", "selu"):
        assert init.calculate_gain(name) == torch.nn.init.calculate_gain(name)
    for slope in (None, 0, 0.3, 2):
        theirs = torch.nn.init.calculate_gain("leaky_relu", slope)
        assert init.calculate_gain("leaky_relu", slope) == pytest.approx(theirs)


@pytest.mark.parametrize("slope", [True, "1", [1]])
def test_a_slope_is_a_number(slope: Any) -> None:
    with pytest.raises(ValueError, match=r"negative_slope .* not a valid number"):
        init.calculate_gain("leaky_relu", slope)


@pytest.mark.parametrize("fill", [init.kaiming_uniform_, init.kaiming_normal_])
def test_nothing_to_fill(fill: Any) -> None:
    with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
        assert fill(cr.empty(0, 1)).shape == (0, 1)


@pytest.mark.parametrize("name", ["uniform", "normal", "constant", "xavier_normal", "orthogonal"])
def test_names_of_2017_fill_and_warn(name: str) -> None:
    with pytest.warns(FutureWarning, match=f"nn.init.{name} is deprecated: write nn.init.{name}_"):
        former = getattr(init, name)
    assert former is getattr(init, f"{name}_")


LAYERS: list[tuple[Any, tuple[int, ...]]] = [
    (cr.nn.Linear, (2, 3)),
    (cr.nn.Bilinear, (2, 2, 3)),
    (cr.nn.Conv2d, (1, 2, 3)),
    (cr.nn.Embedding, (3, 2)),
    (cr.nn.GRU, (2, 2)),
    (cr.nn.LSTMCell, (2, 2)),
    (cr.nn.LayerNorm, (3,)),
    (cr.nn.BatchNorm1d, (3,)),
    (cr.nn.PReLU, ()),
]


@pytest.mark.parametrize(("layer", "sizes"), LAYERS)
def test_a_subclass_that_draws_its_own_begins_with_them(layer: Any, sizes: tuple[int, ...]) -> None:
    class Sevens(layer):  # type: ignore[misc]  # a class of the table
        def reset_parameters(self) -> None:
            for parameter in self.parameters():
                init.constant_(parameter, 7.0)

    assert all((parameter == 7).all() for parameter in Sevens(*sizes).parameters())


def test_a_transformer_that_draws_its_own_begins_with_them() -> None:
    class Zeros(cr.nn.Transformer):
        def _reset_parameters(self) -> None:
            for parameter in self.parameters():
                init.zeros_(parameter)

    assert not any(parameter.any() for parameter in Zeros(4, 2, 1, 1, 4).parameters())
