"""Normalised, orthogonal, pruned, fused and other parametrised weights, beside PyTorch's."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn
from chainrule.nn.utils import parametrize, prune

# --- the same change of a layer in both libraries -------------------------------------------------

LAYERS: dict[str, tuple[str, tuple[Any, ...], tuple[int, ...]]] = {
    "linear": ("Linear", (4, 3), (5, 4)),
    "tall": ("Linear", (3, 5), (5, 3)),
    "square": ("Linear", (3, 3), (5, 3)),
    "conv": ("Conv2d", (2, 3, 2), (1, 2, 4, 4)),
    "transposed": ("ConvTranspose1d", (2, 3, 2), (1, 2, 4)),
    "norm": ("LayerNorm", (4,), (5, 4)),
    "batch_norm": ("BatchNorm1d", (4,), (5, 4)),
    "recurrent": ("GRU", (3, 4), (2, 5, 3)),
    "embedding": ("MultiheadAttention", (4, 2), (3, 2, 4)),
}

CHANGES: dict[str, tuple[str, Any]] = {
    "weight_norm": ("linear", lambda m, n: n.utils.weight_norm(m)),
    "weight_norm(dim=None)": ("linear", lambda m, n: n.utils.weight_norm(m, dim=None)),
    "weight_norm of a convolution": ("conv", lambda m, n: n.utils.weight_norm(m, dim=1)),
    "weight_norm of a GRU": ("recurrent", lambda m, n: n.utils.weight_norm(m, "weight_hh_l0")),
    "parametrized weight_norm": ("conv", lambda m, n: n.utils.parametrizations.weight_norm(m)),
    "parametrized weight_norm(dim=None)": (
        "transposed",
        lambda m, n: n.utils.parametrizations.weight_norm(m, "weight", None),
    ),
    "parametrized weight_norm of a GRU": (
        "recurrent",
        lambda m, n: n.utils.parametrizations.weight_norm(m, "weight_hh_l0"),
    ),
    "spectral_norm": ("linear", lambda m, n: n.utils.spectral_norm(m)),
    "spectral_norm of a convolution": (
        "transposed",
        lambda m, n: n.utils.spectral_norm(m, n_power_iterations=3),
    ),
    "parametrized spectral_norm": (
        "conv",
        lambda m, n: n.utils.parametrizations.spectral_norm(m, n_power_iterations=2),
    ),
    "parametrized spectral_norm of a vector": (
        "norm",
        lambda m, n: n.utils.parametrizations.spectral_norm(m),
    ),
    "parametrized norm of attention": (
        "embedding",
        lambda m, n: n.utils.parametrizations.weight_norm(m, "in_proj_weight"),
    ),
    "parametrized batch norm": (
        "batch_norm",
        lambda m, n: n.utils.parametrizations.weight_norm(m, "weight"),
    ),
    **{
        f"orthogonal({map_}, {trivial}) of {shape}": (
            shape,
            lambda m, n, map_=map_, trivial=trivial: n.utils.parametrizations.orthogonal(
                m, orthogonal_map=map_, use_trivialization=trivial
            ),
        )
        for map_ in (None, "cayley", "householder")
        for trivial in (True, False)
        for shape in ("linear", "tall", "square")
    },
    "identity": ("linear", lambda m, n: n.utils.prune.identity(m, "bias")),
    "l1_unstructured": ("linear", lambda m, n: n.utils.prune.l1_unstructured(m, "weight", 0.4)),
    "l1_unstructured twice": (
        "conv",
        lambda m, n: n.utils.prune.l1_unstructured(
            n.utils.prune.l1_unstructured(m, "weight", 0.4), "weight", 3
        ),
    ),
    "ln_structured": (
        "conv",
        lambda m, n: n.utils.prune.ln_structured(m, "weight", 1, n=2, dim=0),
    ),
    "ln_structured, then l1_unstructured, then ln_structured": (
        "conv",
        lambda m, n: n.utils.prune.ln_structured(
            n.utils.prune.l1_unstructured(
                n.utils.prune.ln_structured(m, "weight", 0.5, n=float("inf"), dim=1), "weight", 0.3
            ),
            "weight",
            amount=1,
            n=1,
            dim=-1,
        ),
    ),
}


def import_torch() -> Any:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch.nn.utils.prune")  # not imported with torch
    return torch


def changed(name: str, dtype: str = "float64") -> list[tuple[Any, Any, Any]]:
    """Return (library, layer, input) of both, with PyTorch's state."""
    torch = import_torch()
    torch.manual_seed(0)
    key, change = CHANGES[name]
    kind, args, shape = LAYERS[key]
    theirs, ours = (getattr(m.nn, kind)(*args).to(getattr(m, dtype)) for m in (torch, cr))
    with torch.no_grad():
        for p in theirs.parameters():
            p.uniform_(-0.7, 0.7)
    ours.load_state_dict(theirs.state_dict())
    theirs, ours = change(theirs, torch.nn), change(ours, nn)
    if "spectral" in name or "orthogonal" in name:  # singular vectors and bases are drawn
        assert repr(ours.load_state_dict(theirs.state_dict())) == "<All keys matched successfully>"
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    return [(torch, theirs, torch.tensor(x)), (cr, ours, cr.tensor(x))]


def run(layer: Any, x: Any) -> list[np.ndarray]:
    """Return outputs, gradients and state of two calls."""
    found = []
    for _ in range(2):
        args = (x, x, x) if type(layer).__name__.endswith("Attention") else (x,)
        y = layer(*args)
        y = y[0] if isinstance(y, tuple) else y
        layer.zero_grad()
        (y**3).sum().backward()
        found += [y, *(p.grad for p in layer.parameters()), *layer.state_dict().values()]
    return [each.detach().numpy() for each in found]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CHANGES)
def test_changed_layers_follow_pytorch(name: str) -> None:
    (_, theirs, their_x), (_, ours, our_x) = changed(name)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    assert repr(ours) == repr(theirs)
    for own, other in zip(run(ours, our_x), run(theirs, their_x), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12)
    theirs.eval(), ours.eval()
    for own, other in zip(run(ours, our_x), run(theirs, their_x), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", [n for n in CHANGES if "of" not in n and "identity" not in n and "dim" not in n]
)
def test_changes_can_be_removed(name: str) -> None:
    torch = import_torch()
    pair = changed(name)
    for library, layer, x in pair:
        layer(x)
        utils = library.nn.utils
        if "parametrized" in name:
            utils.parametrize.remove_parametrizations(layer, "weight")
            assert not utils.parametrize.is_parametrized(layer)
        elif "norm" in name:
            getattr(utils, f"remove_{name}")(layer)
        else:
            assert utils.prune.is_pruned(layer)
            utils.prune.remove(layer, "weight")
            assert not utils.prune.is_pruned(layer)
    (_, theirs, their_x), (_, ours, our_x) = pair
    assert isinstance(ours.weight, nn.Parameter)
    assert repr(ours) == repr(theirs)
    assert sorted(ours.state_dict()) == sorted(theirs.state_dict())
    ours.load_state_dict(theirs.state_dict())
    np.testing.assert_allclose(
        ours(our_x).detach().numpy(), theirs(their_x).detach().numpy(), rtol=1e-9
    )
    assert isinstance(theirs, torch.nn.Module)


# --- parametrizations -----------------------------------------------------------------------------


class Symmetric(nn.Module):
    def forward(self, x: cr.Tensor) -> cr.Tensor:
        return x.triu() + x.triu(1).mT

    def right_inverse(self, a: cr.Tensor) -> cr.Tensor:
        return a.triu()


class Doubled(nn.Module):
    calls = 0

    def forward(self, x: cr.Tensor) -> cr.Tensor:
        type(self).calls += 1
        return 2 * x


def test_a_parametrised_tensor_can_be_assigned_stacked_and_cached() -> None:
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert cr.equal(layer.weight, layer.weight.mT)
    value = cr.ones(3, 3)
    layer.weight = value
    assert layer.weight.tolist() == value.tolist()
    layer.weight = nn.Parameter(2 * value)
    assert layer.weight.tolist() == (2 * value).tolist()
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.weight.tolist() == (4 * value).tolist()
    Doubled.calls = 0
    with parametrize.cached():
        assert layer.weight is layer.weight
        with parametrize.cached():
            assert layer.weight is layer.weight
    assert Doubled.calls == 1
    assert layer.weight is not layer.weight
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    with pytest.raises(cr.ArgumentError, match="Doubled does not implement right_inverse"):
        layer.weight = value
    parametrize.register_parametrization(layer, "bias", Doubled())
    assert len(list(layer.parameters())) == 2
    parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    assert type(layer).__name__ == "ParametrizedLinear"
    assert layer.weight.tolist() == (2 * value).triu().tolist()
    parametrize.remove_parametrizations(layer, "bias")
    assert type(layer) is nn.Linear


def test_a_copy_is_parametrised_by_itself() -> None:
    layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    copied = copy.deepcopy(layer)
    assert copied.parametrizations is not layer.parametrizations
    parametrize.remove_parametrizations(layer, "weight")
    assert cr.equal(copied.weight, layer.weight)
    assert parametrize.is_parametrized(copied, "weight")
    with pytest.raises(RuntimeError, match=r"only supported through state_dict\(\)"):
        pickle.dumps(copied)


class Narrower(nn.Module):
    def forward(self, x: cr.Tensor) -> cr.Tensor:
        return x[:1]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda m: parametrize.register_parametrization(m, "typo", Doubled()), "does not have a"),
        (lambda m: parametrize.register_parametrization(m, "weight", Narrower()), "change the sha"),
        (lambda m: parametrize.remove_parametrizations(m, "weight"), "not have a parametrization"),
        (lambda m: parametrize.ParametrizationList([], m.weight), "one or more modules"),
        (lambda m: nn.utils.remove_weight_norm(m), "weight_norm of 'weight' not found"),
        (lambda m: nn.utils.remove_spectral_norm(m), "spectral_norm of 'weight' not found"),
        (lambda m: nn.utils.spectral_norm(m, n_power_iterations=0), "to be positive"),
        (lambda m: nn.utils.parametrizations.orthogonal(m, "bias"), "of 1 dimensions"),
        (lambda m: nn.utils.parametrizations.orthogonal(m, "typo"), "no parameter or buffer"),
        (lambda m: nn.utils.parametrizations.orthogonal(m, orthogonal_map="x"), "has to be one"),
        (lambda m: nn.utils.parametrizations.spectral_norm(m, dim=2), "but got 2"),
        (lambda m: prune.l1_unstructured(m, "weight", 1.5), r"range \[0, 1\]"),
        (lambda m: prune.l1_unstructured(m, "weight", 99), "smaller than the number"),
        (lambda m: prune.random_structured(m, "bias", 1, 0), "multidimensional tensors"),
        (lambda m: prune.custom_from_mask(m, "bias", cr.ones(1)), r"of shape \[3\], got \[1\]"),
        (lambda m: prune.remove(m, "weight"), "has to be pruned before"),
        (lambda m: nn.utils.fuse_linear_bn_eval(m, nn.BatchNorm1d(3)), "only for eval"),
        (lambda m: nn.utils.fuse_linear_bn_eval(m, nn.BatchNorm1d(2)), "3 and 2"),
    ],
)
def test_errors_change_nothing(change: Any, text: str) -> None:
    layer = nn.Linear(3, 3)
    names = list(layer.state_dict())
    with pytest.raises((cr.ArgumentError, cr.OutOfBoundsError), match=text):
        change(layer)
    assert list(layer.state_dict()) == names
    assert type(layer) is nn.Linear


def test_old_state_of_weight_norm_loads_into_the_parametrization() -> None:
    old = nn.utils.weight_norm(nn.Linear(3, 2))
    new = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    new.load_state_dict(old.state_dict())
    assert cr.allclose(new.weight, old.weight)


@pytest.mark.parametrize(
    "change",
    [
        nn.utils.weight_norm,
        nn.utils.spectral_norm,
        nn.utils.parametrizations.weight_norm,
        nn.utils.parametrizations.spectral_norm,
        nn.utils.parametrizations.orthogonal,
        lambda m: prune.l1_unstructured(m, "weight", 0.5),
    ],
    ids=[
        "weight_norm",
        "spectral_norm",
        "new_weight_norm",
        "new_spectral_norm",
        "orthogonal",
        "l1",
    ],
)
def test_steps_and_transforms(change: Any) -> None:
    cr.manual_seed(0)
    eager = change(nn.Linear(3, 4))
    cr.manual_seed(0)
    other = change(nn.Linear(3, 4))
    other.load_state_dict(eager.state_dict())
    x = cr.tensor(np.random.default_rng(0).normal(size=(5, 3)), dtype=cr.float32)

    def step_of(net: nn.Module) -> Any:
        optimizer = cr.optim.SGD(net.parameters(), lr=0.05)

        def step(x: cr.Tensor) -> cr.Tensor:
            optimizer.zero_grad()
            loss = (net(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    step, compiled = step_of(eager), cr.compile(step_of(other))
    for _ in range(4):
        np.testing.assert_allclose(compiled(x).item(), step(x).item(), rtol=1e-4)
    for name, value in eager.state_dict().items():
        np.testing.assert_allclose(other.state_dict()[name].numpy(), value.numpy(), atol=1e-5)
    eager.eval()
    weights = {name: p.detach() for name, p in eager.named_parameters()}

    def loss(w: Any) -> cr.Tensor:
        return (cr.func.functional_call(eager, w, (x,)) ** 2).sum()

    found = cr.grad(loss)(weights)
    eager.zero_grad()
    (eager(x) ** 2).sum().backward()
    for name, p in eager.named_parameters():
        np.testing.assert_allclose(found[name].numpy(), p.grad.numpy(), rtol=1e-4, atol=1e-6)


# --- pruning, fusion, and others ------------------------------------------------------------------


def test_global_pruning_follows_pytorch() -> None:
    torch = import_torch()
    torch.manual_seed(0)
    nets = [m.nn.Sequential(m.nn.Linear(4, 3), m.nn.Linear(3, 2)) for m in (torch, cr)]
    nets[1].load_state_dict(nets[0].state_dict())
    for library, net in zip((torch, cr), nets, strict=True):
        tools = library.nn.utils.prune
        pairs = [(net[0], "weight"), (net[1], "weight")]
        scores = {pairs[0]: net[0].weight.detach() ** 2}
        tools.global_unstructured(pairs, tools.L1Unstructured, amount=0.3)
        tools.global_unstructured(pairs, tools.L1Unstructured, scores, amount=4)
        kind = type(tools.custom_from_mask(net[0], "bias", library.tensor([0, 1, 1])))
        assert kind is library.nn.Linear
    theirs = nets[0].state_dict()
    for name, value in nets[1].state_dict().items():
        np.testing.assert_array_equal(value.numpy(), theirs[name].numpy())


def test_random_pruning_prunes_as_much_as_asked_for() -> None:
    layer = nn.Linear(4, 6)
    prune.random_unstructured(layer, "weight", 0.25)
    assert layer.weight_mask.sum().item() == 18
    prune.random_unstructured(layer, "weight", 3)  # of those that are left
    assert layer.weight_mask.sum().item() == 15
    hook = prune.RandomStructured.apply(nn.Linear(4, 6), "weight", 2, dim=0)
    assert hook.prune(cr.ones(6, 4)).sum().item() == 16


class EveryOther(prune.BasePruningMethod):
    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: cr.Tensor, default_mask: cr.Tensor) -> cr.Tensor:
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask


def test_a_method_of_ones_own() -> None:
    layer = nn.Linear(2, 3)
    EveryOther.apply(layer, "bias")
    assert layer.bias_mask.tolist() == [0.0, 1.0, 0.0]
    EveryOther.apply(layer, "bias")
    assert layer.bias_mask.tolist() == [0.0, 0.0, 0.0]
    optimizer = cr.optim.SGD(layer.parameters(), lr=0.1)
    layer(cr.ones(1, 2)).sum().backward()
    optimizer.step()
    layer(cr.ones(1, 2))
    assert (layer.bias == 0).all()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    ("layer", "norm", "shape"),
    [
        ("Conv1d", "BatchNorm1d", (2, 3, 5)),
        ("Conv2d", "BatchNorm2d", (2, 3, 5, 5)),
        ("ConvTranspose2d", "BatchNorm2d", (2, 3, 5, 5)),
        ("Linear", "BatchNorm1d", (2, 3)),
    ],
)
def test_fused_layers_do_the_same(layer: str, norm: str, shape: tuple, bias: bool) -> None:
    args = (3, 4) if layer == "Linear" else (3, 4, 2)
    first, second = getattr(nn, layer)(*args, bias=bias), getattr(nn, norm)(4)
    x = cr.randn(*shape)
    for _ in range(3):
        second(first(cr.randn(*shape)))
    first.eval(), second.eval()
    if layer == "Linear":
        fused = nn.utils.fuse_linear_bn_eval(first, second)
    else:
        fused = nn.utils.fuse_conv_bn_eval(first, second, "Transpose" in layer)
    assert type(fused) is type(first)
    assert cr.allclose(fused(x), second(first(x)), atol=1e-5)
    assert fused.weight.requires_grad


def test_skip_init_leaves_the_generator() -> None:
    cr.manual_seed(0)
    before = cr.rand(2).tolist()
    cr.manual_seed(0)
    layer = nn.utils.skip_init(nn.Linear, 3, 2, dtype=cr.float64)
    assert layer.weight.dtype == cr.float64
    assert cr.rand(2).tolist() == before


def test_functional_call_under_its_former_name() -> None:
    from chainrule.nn.utils.stateless import functional_call

    layer = nn.Linear(2, 1)
    weights = {"weight": cr.zeros(1, 2), "bias": cr.ones(1)}
    assert functional_call(layer, weights, (cr.ones(2),)).tolist() == [1.0]


def test_a_sequence_may_have_parameters_too() -> None:
    class Scaled(nn.Sequential):
        def __init__(self, *layers: nn.Module) -> None:
            super().__init__(*layers)
            self.scale = nn.Parameter(cr.ones(1))

    net = Scaled(nn.Linear(2, 2), nn.ReLU())
    assert len(net) == len(list(net)) == 2
    assert net(cr.ones(2)).shape == (2,)


class Cayley(nn.Module):
    """Orthogonal matrices of skew-symmetric ones, times a matrix that the right inverse sets."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("base", cr.eye(3))

    def forward(self, x: Any) -> Any:
        skew = x.triu(1) - x.triu(1).T
        return self.base @ cr.linalg.solve(cr.eye(3) + skew, cr.eye(3) - skew)

    def right_inverse(self, x: Any) -> Any:
        if not cr.allclose(x.T @ x, cr.eye(3), atol=1e-4):
            raise ValueError("not orthogonal")
        self.base = x
        return cr.zeros_like(x)


def test_a_second_parametrization_need_not_invert_what_it_does_not_return() -> None:
    class Half(nn.Module):
        def forward(self, x: Any) -> Any:
            return x / 2

    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Half())
    parametrize.register_parametrization(layer, "weight", Cayley())  # the weight isn't orthogonal
    assert cr.allclose(layer.weight.T @ layer.weight, cr.eye(3), atol=1e-5)
    with pytest.raises(ValueError, match="not orthogonal"):
        layer.weight = cr.ones(3, 3)


def test_a_right_inverse_returns_tensors() -> None:
    class Wrong(nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            return x

        def right_inverse(self, x: Any) -> Any:
            return None, x

    layer = nn.Linear(3, 3)
    with pytest.raises(ValueError, match="got element 0 of the sequence with type NoneType"):
        parametrize.register_parametrization(layer, "weight", Wrong())
