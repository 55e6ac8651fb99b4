"""Modules without PyTorch: gradients of each layer, members, state dicts, hooks, transforms."""

from __future__ import annotations

import contextlib
import copy
import gc
import pickle
import weakref
from collections import OrderedDict
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import pytest

import chainrule as cr
import chainrule.nn.functional as F
from chainrule import nn
from helpers.layers import CASES, LABELED, Case, draw, outputs


class Net(nn.Module):
    """A network with everything that a module can have."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.heads = nn.ModuleDict({"a": nn.Linear(4, 2), "b": nn.Linear(4, 1)})
        self.scale = nn.Parameter(cr.ones(1))
        self.register_buffer("offset", cr.zeros(1))
        self.register_buffer("cache", cr.zeros(2), persistent=False)
        self.register_parameter("absent", None)
        self.note = "plain"

    def forward(self, x: cr.Tensor) -> cr.Tensor:
        h = self.norm(self.hidden(x)).tanh()
        return cr.cat([head(h) for head in self.heads.values()], -1) * self.scale + self.offset


NAMES = [
    *("scale", "hidden.weight", "hidden.bias", "norm.weight", "norm.bias"),
    *("heads.a.weight", "heads.a.bias", "heads.b.weight", "heads.b.bias"),
]
BUFFERS = ["offset", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"]


def inputs(*shape: int) -> cr.Tensor:
    return cr.tensor(np.random.default_rng(0).normal(size=shape), dtype=cr.float32)


# --- layers ---------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.parametrize("each", CASES, ids=str)
def test_gradients_of_layers_are_those_of_differences(each: Case) -> None:
    layer = getattr(nn, each.layer)(*each.args, **each.kwargs).double().train(each.train)
    for module in layer.modules():
        if hasattr(module, "track_running_stats") and module.running_mean is not None:
            module.momentum = 0.0  # the same statistics for each difference
    rng = np.random.default_rng(3)
    arrays = [draw(specification, rng, "float64") for specification in each.inputs]
    free = [
        i for i, a in enumerate(arrays) if a.dtype.kind == "f" and not (each.layer in LABELED and i)
    ]
    names = [name for name, _ in layer.named_parameters()]

    def function(*values: cr.Tensor) -> Any:
        given = [cr.tensor(a) for a in arrays]
        for i, value in zip(free, values, strict=False):
            given[i] = value.clone() if "inplace" in each.kwargs else value
        weights = dict(zip(names, values[len(free) :], strict=True))
        return tuple(outputs(cr.func.functional_call(layer, weights, tuple(given))))

    if {"padding_idx", "scale_grad_by_freq"} & each.kwargs.keys():
        pytest.skip("the gradient is not the derivative")
    points = [cr.tensor(arrays[i], requires_grad=True) for i in free]
    points += [p.detach().clone().requires_grad_() for p in layer.parameters()]
    if points:
        assert cr.gradcheck(function, points, fast_mode=True)


# --- members --------------------------------------------------------------------------------------


def test_walks_give_dotted_names_in_the_order_of_registration() -> None:
    net = Net()
    assert [name for name, _ in net.named_parameters()] == NAMES
    assert [name for name, _ in net.named_buffers()] == ["offset", "cache", *BUFFERS[1:]]
    assert list(net.state_dict()) == ["scale", "offset", *NAMES[1:5], *BUFFERS[1:], *NAMES[5:]]
    assert [name for name, _ in net.named_modules()] == (
        ["", "hidden", "norm", "heads", "heads.a", "heads.b"]
    )
    assert [name for name, _ in net.named_children()] == ["hidden", "norm", "heads"]
    assert net.get_parameter("heads.a.weight") is net.heads["a"].weight
    assert net.get_buffer("norm.running_var") is net.norm.running_var
    assert net.get_submodule("heads.b") is net.heads["b"]
    assert [p.shape for p in net.hidden.parameters()] == [(4, 3), (4,)]
    assert list(net._parameters) == ["scale", "absent"]
    assert "hidden" in net._modules


def test_what_code_takes_from_inside_of_modules() -> None:
    """Flows go through the layers in reverse, meta-learners and DLA ask for members by name."""
    libraries: list[Any] = [cr]
    with contextlib.suppress(ImportError):
        libraries.append(import_module("torch"))
    found = []
    for lib in libraries:
        net = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.Tanh(), lib.nn.Linear(3, 1))
        net.again = net[0]
        members = net._named_members(lambda module: module._parameters.items(), prefix="net")
        shared = net._named_members(lambda m: m._modules.items(), remove_duplicate=False)
        found.append(
            [
                [type(module).__name__ for module in reversed(net._modules.values())],
                [*reversed(net._modules)],
                [name for name, _ in reversed(net._modules.items())],
                [name for name, _ in members],
                [name for name, _ in shared],
                [name for name, _ in net._named_members(lambda m: [("none", None)])],
                net.__getattr__("1") is net[1],
                "bias" in net[0]._parameters.copy(),
            ]
        )
        with pytest.raises(AttributeError, match="absent"):
            net.__getattr__("absent")
        weights = lib.nn.ParameterList([lib.ones(2), lib.ones(3)])
        assert len(lib.optim.SGD(weights, lr=0.1).param_groups[0]["params"]) == 2
        with pytest.raises(TypeError):
            lib.optim.SGD(net[0], lr=0.1)
    assert all(each == found[0] for each in found)


def test_a_shared_parameter_is_listed_once_and_saved_under_both_names() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    net[1].weight = net[0].weight
    assert len(list(net.parameters())) == 3
    assert len(list(net.named_parameters(remove_duplicate=False))) == 4
    assert len(net.state_dict()) == 4
    assert copy.deepcopy(net)[1].weight is not net[0].weight
    copied = copy.deepcopy(net)
    assert copied[0].weight is copied[1].weight


def test_parameters_are_tensors_with_a_mark() -> None:
    p = nn.Parameter(cr.ones(2))
    assert isinstance(p, nn.Parameter)
    assert isinstance(p, cr.Tensor)
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert not isinstance(p * 1, nn.Parameter)
    assert not isinstance(cr.ones(2), nn.Parameter)
    assert isinstance(copy.deepcopy(p), nn.Parameter)
    assert isinstance(pickle.loads(pickle.dumps(p)), nn.Parameter)
    assert not nn.Parameter(cr.arange(3), requires_grad=False).requires_grad
    assert nn.Parameter().shape == (0,)
    data = cr.ones(2)
    nn.Parameter(data).detach().mul_(2)
    assert data.tolist() == [2.0, 2.0]


def test_a_buffer_registers_itself() -> None:
    net = nn.Module()
    net.kept, net.left = nn.Buffer(cr.ones(2)), nn.Buffer(cr.zeros(1), persistent=False)
    assert [name for name, _ in net.named_buffers()] == ["kept", "left"]
    assert list(net.state_dict()) == ["kept"]
    assert not list(net.parameters())
    for each in (net, copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert isinstance(each.kept, nn.Buffer)
        assert not isinstance(each.kept, nn.Parameter)
        assert list(each.state_dict()) == ["kept"]
    assert not isinstance(cr.ones(2), nn.Buffer)
    net.kept = cr.tensor([3.0, 4.0])
    assert net.state_dict()["kept"].tolist() == [3, 4]
    again = nn.Module()
    again.left = copy.deepcopy(net.left)
    assert not again.state_dict()


def test_assignment_registers_replaces_and_removes() -> None:
    net = Net()
    net.scale = nn.Parameter(cr.zeros(1))
    net.offset = cr.ones(1)
    net.hidden = nn.Linear(3, 4, bias=False)
    assert [name for name, _ in net.named_parameters()] == [n for n in NAMES if n != "hidden.bias"]
    assert net.state_dict()["offset"].tolist() == [1.0]
    net.note = nn.Parameter(cr.zeros(1))
    assert "note" in dict(net.named_parameters())
    del net.note
    net.scale = None
    assert not {"note", "scale"} & {name for name, _ in net.named_parameters()}
    net.offset = nn.Parameter(cr.zeros(1))
    assert "offset" in dict(net.named_parameters())
    assert "offset" not in dict(net.named_buffers())
    net._modules["extra"] = nn.Linear(1, 1)
    assert net.extra is net.get_submodule("extra")
    del net._modules["extra"]
    assert not hasattr(net, "extra")


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda net: setattr(net, "scale", cr.ones(1)), TypeError, "as parameter 'scale'"),
        (lambda net: setattr(net, "hidden", 3), TypeError, "as child module 'hidden'"),
        (lambda net: setattr(net, "offset", 3), TypeError, "as buffer 'offset'"),
        (lambda net: net.register_parameter("p", cr.ones(1)), TypeError, "nn.Parameter or None"),
        (lambda net: net.register_buffer("b", 3), TypeError, "Tensor or None required"),
        (lambda net: net.register_buffer("a.b", None), KeyError, "t contain"),
        (lambda net: net.register_buffer("", None), KeyError, "t be empty"),
        (lambda net: net.register_buffer("note", None), KeyError, "'note' already exists"),
        (lambda net: net.add_module("x", 3), TypeError, "int is not a Module subclass"),
        (lambda net: net.get_parameter("hidden.typo"), AttributeError, "no parameter 'typo'"),
        (lambda net: net.get_submodule("typo.a"), AttributeError, "no submodule 'typo'"),
        (lambda net: net.get_submodule("note"), AttributeError, "not an nn.Module"),
        (lambda net: net.train(3), ValueError, "expected to be boolean"),
        (lambda net: net.to(cr.int64), TypeError, "only accepts floating point"),
        (lambda net: net.to(typo=1), TypeError, "unexpected keyword argument 'typo'"),
        (lambda net: nn.Module()(1), NotImplementedError, 'missing the required "forward"'),
        (lambda net: nn.Dropout(1.5), ValueError, "between 0 and 1, but got 1.5"),
        (lambda net: nn.ReLU(typo=1), TypeError, r"ReLU.__init__\(\) got an unexpected"),
        (lambda net: nn.MaxPool2d(), TypeError, "missing a required argument: 'kernel_size'"),
        (lambda net: nn.Conv2d(3, 4, 1, groups=2), ValueError, "divisible by groups"),
        (lambda net: nn.BatchNorm1d(3)(cr.ones(3)), ValueError, "expected 2D or 3D input"),
        (lambda net: nn.LSTM(3, 4)(cr.ones(2, 2)), ValueError, "the last of size 3"),
        (lambda net: nn.MultiheadAttention(3, 2), ValueError, "divisible by num_heads"),
    ],
)
def test_errors(change: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        change(Net())


def test_assignment_before_init_is_an_error() -> None:
    class Late(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"before Module.__init__\(\) call"):
        Late()


def test_modes_and_conversions_reach_all_modules() -> None:
    net = Net()
    parameter = net.hidden.weight
    assert not net.eval().heads["a"].training
    assert net.train().norm.training
    assert net.double().norm.running_mean.dtype == cr.float64
    assert net.norm.num_batches_tracked.dtype == cr.int64
    assert net.hidden.weight is parameter
    net(inputs(5, 3).double()).sum().backward()
    assert net.to(cr.float32).hidden.weight.grad.dtype == cr.float32
    net.zero_grad(set_to_none=False)
    assert parameter.grad.abs().sum() == 0
    net.zero_grad()
    assert parameter.grad is None
    assert not any(p.requires_grad for p in net.requires_grad_(False).parameters())
    seen: list[str] = []
    net.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "BatchNorm1d", "Linear", "Linear", "ModuleDict", "Net"]


def test_modules_are_freed_without_the_collector() -> None:
    net = Net()
    reference = weakref.ref(net)
    gc.disable()
    try:
        net(inputs(5, 3))
        del net
        assert reference() is None
    finally:
        gc.enable()


# --- state ----------------------------------------------------------------------------------------


def test_state_dicts_round_trip() -> None:
    first, second = Net(), Net()
    first(inputs(5, 3))
    report = second.load_state_dict(first.state_dict())
    assert repr(report) == "<All keys matched successfully>"
    first.eval(), second.eval()
    assert first(inputs(5, 3)).tolist() == second(inputs(5, 3)).tolist()
    arrays = {name: value.numpy() for name, value in first.state_dict().items()}
    second.load_state_dict(arrays)
    third = pickle.loads(pickle.dumps(copy.deepcopy(first)))
    assert first(inputs(5, 3)).tolist() == third(inputs(5, 3)).tolist()


def test_loading_reports_everything_and_changes_nothing() -> None:
    net = Net()
    state = net.state_dict()
    before = {name: value.tolist() for name, value in state.items()}
    bad = {name: value + 1 for name, value in state.items()}
    bad["hidden.weight"] = cr.zeros(4, 2)
    bad["heads.a.bias"] = "text"
    bad["typo"] = bad.pop("scale")
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(bad)
    *lines, line = str(caught.value).splitlines()
    assert line.endswith(
        "in test_loading_reports_everything_and_changes_nothing: net.load_state_dict(bad))"
    )
    assert lines == [
        "load_state_dict(): Error(s) in loading state_dict for Net:",
        '\tMissing key(s) in state_dict: "scale". ',
        '\tUnexpected key(s) in state_dict: "typo". ',
        "\tsize mismatch for hidden.weight: copying a param with shape [4, 2] from checkpoint, the "
        "shape in current model is [4, 3].",
        "\tWhile copying the parameter named 'heads.a.bias', expected a Tensor or an array from "
        "checkpoint but received str.",
    ]
    assert {name: value.tolist() for name, value in net.state_dict().items()} == before
    del bad["hidden.weight"], bad["heads.a.bias"]
    report = net.load_state_dict(bad, strict=False)
    assert report.missing_keys == ["scale", "hidden.weight", "heads.a.bias"]
    assert report.unexpected_keys == ["typo"]
    assert net.state_dict()["norm.weight"].tolist() == [2.0] * 4


def test_assigning_takes_the_tensors() -> None:
    net = nn.Linear(2, 1)
    state = {name: value.double() for name, value in net.state_dict().items()}
    net.load_state_dict(state, assign=True)
    assert net.weight.dtype == cr.float64
    assert isinstance(net.weight, nn.Parameter)
    assert net.weight.requires_grad


# --- hooks ----------------------------------------------------------------------------------------


def test_forward_hooks_see_and_replace_arguments_and_outputs() -> None:
    layer, seen = nn.Linear(2, 1), []
    handles = [
        layer.register_forward_pre_hook(lambda m, args: (args[0] * 0,)),
        layer.register_forward_hook(lambda m, args, out: seen.append(args[0].sum().item())),
        layer.register_forward_hook(lambda m, args, out: out + 1),
        layer.register_forward_pre_hook(
            lambda m, args, kwargs: (args or (kwargs["input"],), {}), with_kwargs=True, prepend=True
        ),
    ]
    assert (layer(input=cr.ones(3, 2)) == layer.bias + 1).all()
    assert seen == [0.0]
    for handle in handles:
        handle.remove()
    assert layer(cr.zeros(1, 2)).tolist() == [[layer.bias.item()]]


def test_backward_hooks_see_and_replace_gradients() -> None:
    layer, seen = nn.Linear(2, 1, bias=False), []
    cr.nn.init.ones_(layer.weight)
    layer.register_full_backward_hook(
        lambda m, gi, go: seen.append((gi[0].tolist(), go[0].tolist()))
    )
    layer.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
    layer.register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
    x = cr.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    assert seen == [([[2.0, 2.0]], [[2.0]])]
    assert x.grad.tolist() == [[20.0, 20.0]]
    assert layer.weight.grad.tolist() == [[2.0, 2.0]]


def test_backward_hooks_get_none_for_inputs_without_gradient() -> None:
    layer, seen = nn.Linear(2, 1, bias=False), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go[0].tolist())))
    layer(cr.ones(1, 2)).sum().backward()
    assert seen == [((None,), [[1.0]])]
    assert layer.weight.grad.tolist() == [[1.0, 1.0]]


def test_hooks_of_state_dicts() -> None:
    layer = nn.Linear(1, 1)
    layer.register_state_dict_post_hook(lambda m, state, prefix, _: state.update(extra=1))
    layer.register_load_state_dict_pre_hook(lambda m, state, *rest: state.pop("extra"))
    loaded = []
    layer.register_load_state_dict_post_hook(lambda m, keys: loaded.append(keys))
    layer.load_state_dict(layer.state_dict())
    assert len(loaded) == 1


def test_hooks_of_all_modules_run_first_and_can_be_removed() -> None:
    hooks, seen = nn.modules.module, []
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    net[1].register_forward_hook(lambda m, args, out: seen.append("own"))
    with contextlib.ExitStack() as stack:
        for register, hook in (
            (hooks.register_module_forward_pre_hook, lambda m, args: (args[0] * 2,)),
            (hooks.register_module_forward_hook, lambda m, *rest: seen.append(type(m).__name__)),
            (hooks.register_module_full_backward_hook, lambda m, gi, go: (gi[0] * 10,)),
            (hooks.register_module_full_backward_pre_hook, lambda m, go: (go[0] * 2,)),
        ):
            stack.enter_context(register(hook))
        x = cr.ones(1, 2, requires_grad=True)
        y = net(x)
        y.sum().backward()
    assert seen == ["Linear", "Tanh", "own", "Sequential"]
    assert cr.allclose(y, (2 * net[0](4 * x)).tanh())
    # 2 before each of three modules, 10 after Tanh, 2 for its doubled argument
    assert cr.allclose(net[0].bias.grad, 160 * (1 - y[0] ** 2))


def test_hooks_that_see_new_members_may_replace_them() -> None:
    hooks, seen = nn.modules.module, []

    def note(m: Any, name: str, value: Any) -> Any:
        seen.append(name)
        return nn.Tanh() if name == "replaced" else None

    with (
        hooks.register_module_parameter_registration_hook(note),
        hooks.register_module_buffer_registration_hook(note),
        hooks.register_module_module_registration_hook(note),
    ):
        net = nn.Module()
        net.layer = nn.Linear(1, 1)
        net.register_buffer("mean", cr.ones(1), persistent=False)
        net.replaced = nn.ReLU()
    net.after = nn.ReLU()
    assert seen == ["weight", "bias", "layer", "mean", "replaced"]
    assert isinstance(net.replaced, nn.Tanh)


def test_hooks_that_always_run_do_so_after_an_error() -> None:
    layer, seen = nn.Linear(2, 1), []

    def fail(*args: Any) -> None:
        raise ValueError("of a hook")

    layer.register_forward_hook(lambda m, args, out: seen.append("never"))
    layer.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    layer.register_forward_hook(fail, always_call=True)
    with (
        pytest.raises(ValueError, match=r"\(1x3\)|1x3"),
        pytest.warns(UserWarning, match="silenced as another error was raised in forward: of a"),
    ):
        layer(cr.ones(1, 3))
    assert seen == [None]
    with pytest.raises(ValueError, match="of a hook"):
        layer(cr.ones(1, 2))
    assert seen[1] == "never"
    assert len(seen) == 3  # each once


class Parts(NamedTuple):
    first: Any
    second: Any


def test_backward_hooks_and_outputs_of_other_kinds() -> None:
    class Both(nn.Module):
        def forward(self, x: Any) -> Any:
            return Parts(x * 2, x * 3) if x.numel() > 1 else {"x": x}

    layer, seen = Both(), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append(len(go)))
    x = cr.ones(2, requires_grad=True)
    out = layer(x)
    assert isinstance(out, Parts)
    out.second.sum().backward()
    assert seen == [2]
    assert x.grad.tolist() == [3.0, 3.0]
    with pytest.warns(UserWarning, match="should be a Tensor or a tuple of Tensors but received"):
        layer(x[:1])


def test_backward_hooks_check_what_they_return() -> None:
    layer = nn.Linear(2, 1)
    with (
        layer.register_full_backward_pre_hook(lambda m, go: ()),
        pytest.raises(RuntimeError, match="grad_output, got 0, but expected 1"),
    ):
        layer(cr.ones(1, 2)).sum().backward()
    with (
        layer.register_full_backward_hook(lambda m, gi, go: (cr.ones(1, 2),)),
        pytest.raises(RuntimeError, match="where no input requires gradient"),
    ):
        layer(cr.ones(1, 2)).sum().backward()


def test_backward_hooks_and_a_second_derivative() -> None:
    """The gradient of the gradient reaches the input without passing the output."""
    layer, seen = nn.Linear(2, 1), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append(1))
    x = cr.ones(1, 2, requires_grad=True)
    (g,) = cr.autograd_grad(layer(x).pow(2).sum(), x, create_graph=True)
    g.pow(2).sum().backward()
    with_hook = layer.weight.grad.clone()
    layer._backward_hooks.clear()
    layer.weight.grad = x.grad = None
    (g,) = cr.autograd_grad(layer(x).pow(2).sum(), x, create_graph=True)
    g.pow(2).sum().backward()
    assert with_hook.tolist() == layer.weight.grad.tolist()


# --- containers and transforms --------------------------------------------------------------------


def test_containers_behave_as_sequences_and_dicts() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    assert isinstance(net[-2], nn.ReLU)
    assert len(net[1:]) == 2
    net[1] = nn.Tanh()
    net.insert(0, nn.Identity())
    del net[1]
    assert [type(layer).__name__ for layer in net] == ["Identity", "Tanh", "Linear"]
    assert [name for name, _ in net.named_parameters()] == ["2.weight", "2.bias"]
    assert len(net + nn.Sequential(nn.ReLU())) == 4
    layers = nn.ModuleList([nn.Linear(1, 1)]).append(nn.Linear(1, 2))
    layers += [nn.Linear(2, 2)]
    assert len(layers) == 3
    assert layers.pop().out_features == 2
    with pytest.raises(IndexError, match="there are 2 modules"):
        layers[2]
    weights = nn.ParameterList([cr.ones(1), cr.ones(2)])
    weights.append(cr.ones(3))
    assert [p.shape for p in weights.parameters()] == [(1,), (2,), (3,)]
    assert weights.pop(0).shape == (1,)
    assert list(weights.state_dict()) == ["0", "1"]
    named = nn.ParameterDict({"w": cr.ones(1)})
    named["b"] = cr.zeros(2)
    assert list(named.state_dict()) == ["w", "b"]
    assert named.pop("w").shape == (1,)
    assert "w" not in named
    modules = nn.ModuleDict({"a": nn.ReLU()})
    with pytest.raises(KeyError, match="'keys' already exists"):
        modules["keys"] = nn.ReLU()


def test_a_module_is_an_argument_to_differentiate_by() -> None:
    net = Net().eval()
    x = inputs(5, 3)

    def loss(net: Net, x: cr.Tensor) -> cr.Tensor:
        return (net(x) ** 2).mean()

    _, gradients = cr.value_and_grad(loss)(net, x)
    assert list(gradients) == NAMES
    loss(net, x).backward()
    for name, parameter in net.named_parameters():
        np.testing.assert_allclose(gradients[name].numpy(), parameter.grad.numpy(), rtol=1e-5)
    by_both = cr.grad(loss, (0, 1))(net, x)
    assert by_both[1].shape == x.shape
    second = cr.grad(lambda net: sum((g**2).sum() for g in cr.grad(loss)(net, x).values()))(net)
    assert list(second) == NAMES
    assert net.hidden.weight is net.get_parameter("hidden.weight")
    assert isinstance(net.hidden.weight, nn.Parameter)


def test_functional_calls_restore_the_module_after_errors_too() -> None:
    layer = nn.Linear(2, 1)
    weight = layer.weight
    with pytest.raises(RuntimeError):
        cr.func.functional_call(layer, {"weight": cr.ones(1, 3)}, cr.ones(1, 2))
    assert layer.weight is weight
    with pytest.raises(ValueError, match=r"unknown: \['typo'\]"):
        cr.func.functional_call(layer, {"typo": weight}, cr.ones(1, 2))
    with pytest.raises(ValueError, match=r"missing: \['bias'\]"):
        cr.func.functional_call(layer, {"weight": weight}, cr.ones(1, 2), strict=True)


def test_ensembles_and_gradients_per_sample() -> None:
    cr.manual_seed(0)
    models = [nn.Linear(3, 2) for _ in range(4)]
    params, buffers = cr.func.stack_module_state(models)
    x = inputs(5, 3)
    out = cr.vmap(lambda p, x: cr.func.functional_call(models[0], p, x), in_dims=(0, None))(
        params, x
    )
    np.testing.assert_allclose(
        out.detach().numpy(), [m(x).detach().numpy() for m in models], rtol=1e-5
    )
    assert buffers == {}

    def loss(params: Any, x: cr.Tensor) -> cr.Tensor:
        return (cr.func.functional_call(models[0], params, x) ** 2).sum()

    weights = {name: p.detach() for name, p in models[0].named_parameters()}
    each = cr.vmap(cr.grad(loss), in_dims=(None, 0))(weights, x)
    one = cr.grad(loss)(weights, x[2])
    np.testing.assert_allclose(each["weight"][2].numpy(), one["weight"].numpy(), rtol=1e-5)


# --- compiled steps -------------------------------------------------------------------------------


def test_a_training_step_compiles_and_updates_state_in_place() -> None:
    cr.manual_seed(0)  # the gradient of a bias before the normalisation is rounding alone
    eager, other = Net(), Net()
    other.load_state_dict(eager.state_dict())
    x, y = inputs(6, 3), inputs(6, 3)

    def step_of(net: Net) -> Any:
        optimizer = cr.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

        def step(x: cr.Tensor, y: cr.Tensor) -> cr.Tensor:
            optimizer.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    step, compiled = step_of(eager), cr.compile(step_of(other))
    for _ in range(6):
        np.testing.assert_allclose(compiled(x, y).item(), step(x, y).item(), rtol=1e-4)
    for name, value in eager.state_dict().items():
        np.testing.assert_allclose(other.state_dict()[name].numpy(), value.numpy(), atol=1e-5)
    assert other.norm.num_batches_tracked.item() == 6
    assert len(compiled.signatures) <= 2  # without momentum buffers, and with them
    other.eval()
    compiled(x, y)  # the mode is looked at
    assert other.norm.num_batches_tracked.item() == 6


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_a_step_of_a_recurrent_layer_compiles_to_a_loop_of_any_length(kind: str) -> None:
    layer = getattr(nn, kind)(3, 4, 2, bidirectional=True)
    other = copy.deepcopy(layer)
    x = inputs(40, 2, 3)

    def step_of(layer: nn.Module) -> Any:
        optimizer = cr.optim.SGD(layer.parameters(), lr=0.1)

        def step(x: cr.Tensor) -> cr.Tensor:
            optimizer.zero_grad()
            loss = (layer(x)[0] ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        return step

    step, compiled = step_of(layer), cr.compile(step_of(other))
    for _ in range(2):
        np.testing.assert_allclose(compiled(x).item(), step(x).item(), rtol=1e-4)


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_all_cotangents_of_a_recurrence_at_once(name: str) -> None:
    layer = getattr(nn, name)(2, 3)
    x = cr.randn(4, 1, 2, requires_grad=True)
    leaves = [x, *layer.parameters()]
    y = layer(x)[0][-1, 0]

    def pullback(v: cr.Tensor) -> tuple[cr.Tensor, ...]:
        return cr.autograd_grad(y, leaves, v, retain_graph=True)

    found = cr.vmap(pullback)(cr.eye(3))
    for i, row in enumerate(cr.eye(3)):
        for each, wanted in zip(found, pullback(row), strict=True):
            np.testing.assert_allclose(each[i], wanted, atol=1e-6)


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_fused_recurrences_have_all_derivatives(kind: str) -> None:
    layer = getattr(nn, kind)(2, 3).double()
    x = cr.randn(3, 2, 2, dtype=cr.float64)
    weights = {name: p.detach() for name, p in layer.named_parameters()}

    def run(x: cr.Tensor, *values: cr.Tensor) -> Any:
        named = dict(zip(weights, values, strict=True))
        return tuple(outputs(cr.func.functional_call(layer, named, (x,))))

    points = [p.clone().requires_grad_() for p in (x, *weights.values())]
    assert cr.gradcheck(run, points, check_forward_ad=True, fast_mode=True)
    assert cr.gradgradcheck(run, points, fast_mode=True)
    batch = cr.randn(4, 3, 2, 2, dtype=cr.float64)
    mapped = cr.vmap(lambda x: layer(x)[0])(batch)
    expected = cr.stack([layer(x)[0] for x in batch])
    np.testing.assert_allclose(mapped.detach().numpy(), expected.detach().numpy(), rtol=1e-10)
    layer(cr.ones(3, 0, 2, dtype=cr.float64))[0].sum().backward()
    assert not layer.weight_hh_l0.grad.any()  # of no examples
    layer.requires_grad_(False)
    points[0].grad = None
    layer(points[0])[0].sum().backward()
    assert points[0].grad is not None


def test_the_dictionaries_of_hooks_are_pytorchs() -> None:
    """They list the hooks in order, and what is done to them is done to the module."""
    libraries = [cr]
    with contextlib.suppress(ImportError):
        libraries.append(import_module("torch"))

    def program(m: Any) -> list[Any]:
        seen: list[Any] = []
        layer = m.nn.Linear(1, 1)
        layer.register_forward_pre_hook(lambda *args: seen.append("before"))
        handle = layer.register_forward_hook(lambda *args: seen.append("after"))
        first = layer.register_forward_hook(lambda *args: seen.append("first"), prepend=True)
        layer.register_full_backward_hook(lambda *args: seen.append("backward"))
        layer(m.ones(1, 1)).sum().backward()
        names = ["_forward_pre_hooks", "_forward_hooks", "_backward_hooks", "_backward_pre_hooks"]
        names += ["_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"]
        seen += [len(getattr(layer, name)) for name in names]
        for hook in layer._forward_hooks.values():
            hook(layer, None, None)
        del layer._forward_hooks[next(iter(layer._forward_hooks))]
        layer._forward_pre_hooks.clear()
        layer(m.ones(1, 1))
        first.remove()  # twice is fine
        handle.remove()
        seen.append(dict(layer._forward_hooks))
        layer._forward_hooks[7] = lambda *args: seen.append("mine")
        layer(m.ones(1, 1))
        layer._forward_hooks = OrderedDict()
        layer._backward_hooks = OrderedDict()
        layer(m.ones(1, 1)).sum().backward()
        fresh = m.nn.Linear(1, 1)
        fresh._forward_pre_hooks[3] = lambda *args: seen.append("set")
        fresh(m.ones(1, 1))
        return seen

    results = [program(m) for m in libraries]
    assert results[0][:4] == ["before", "first", "after", "backward"]
    assert all(result == results[0] for result in results)
    layer = cr.nn.Linear(1, 1)
    assert repr(layer._forward_hooks) == "{}"
    assert layer._hooks is None  # looking makes none


def test_script_modules_are_modules() -> None:
    class Double(cr.jit.ScriptModule):
        @cr.jit.script_method
        def forward(self, x: cr.Tensor) -> cr.Tensor:
            return 2 * x

    assert isinstance(Double(), cr.nn.Module)
    assert Double()(cr.ones(2)).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("kind", "settings"),
    [("GRU", {"bias": False}), ("LSTM", {"proj_size": 2, "bidirectional": True})],
)
def test_recurrent_layers_list_their_parameters(kind: str, settings: dict[str, Any]) -> None:
    layer = getattr(nn, kind)(2, 3, num_layers=12, **settings)
    assert layer._flat_weights_names == [name for name, _ in layer.named_parameters()]
    listed = [id(p) for p in layer.parameters()]
    assert [id(p) for p in layer._flat_weights] == listed
    assert [id(p) for each in layer.all_weights for p in each] == listed


def test_a_convolution_by_a_weight_that_a_subclass_computes() -> None:
    """Standardised weights, adapters of low rank: layers of users call `_conv_forward`."""

    class Doubled(nn.Conv2d):
        def forward(self, input: cr.Tensor) -> cr.Tensor:
            return self._conv_forward(input, self.weight * 2, None)

    layer, x = Doubled(1, 2, 3, padding=1, padding_mode="circular"), cr.randn(1, 1, 4, 4)
    plain = nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular", bias=False)
    plain.weight.data = layer.weight.data * 2
    np.testing.assert_allclose(layer(x).detach(), plain(x).detach())
