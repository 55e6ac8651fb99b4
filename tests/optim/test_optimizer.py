"""The base class of optimisers: groups, state, closures, clearing gradients, errors."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import chainrule as cr
from chainrule import optim
from chainrule.optim import SGD, Adam, Optimizer
from chainrule.optim.optimizer import required


def leaf(*values: float) -> cr.Tensor:
    return cr.tensor(list(values), requires_grad=True)


def with_grad(*values: float) -> cr.Tensor:
    w = leaf(*values)
    w.grad = cr.ones_like(w.detach())
    return w


# --- groups ---------------------------------------------------------------------------------------


def test_groups_have_options_of_their_own_and_the_defaults() -> None:
    v, w = with_grad(1.0), with_grad(1.0)
    optimizer = SGD([{"params": [v]}, {"params": w, "lr": 0.5}], lr=0.25)
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.5]
    assert all(group["momentum"] == 0 for group in optimizer.param_groups)
    optimizer.step()
    assert (v.item(), w.item()) == (0.75, 0.5)


def test_options_can_change_between_steps() -> None:
    w = with_grad(1.0)
    optimizer = SGD([w], lr=0.25)
    optimizer.param_groups[0]["lr"] = 0.5
    optimizer.step()
    assert w.item() == 0.5


def test_add_param_group() -> None:
    v, w = with_grad(1.0), with_grad(1.0)
    optimizer = Adam([v], lr=0.25)
    optimizer.add_param_group({"params": [w], "lr": 0.5, "name": "head"})
    optimizer.step()
    assert (v.item(), w.item()) == pytest.approx((0.75, 0.5))
    assert optimizer.param_groups[1]["name"] == "head"


def test_parameters_may_come_from_a_generator() -> None:
    ws = [with_grad(1.0), with_grad(2.0)]
    SGD((w for w in ws), lr=1.0).step()
    assert [w.item() for w in ws] == [0.0, 1.0]


def test_printing_shows_the_options() -> None:
    assert repr(SGD([leaf(1.0)], lr=0.5)).splitlines()[:3] == [
        "SGD (",
        "Parameter Group 0",
        "    dampening: 0",
    ]


def test_an_optimizer_of_ones_own() -> None:
    class SignDescent(Optimizer):
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, {"lr": lr})

        def _check(self, options: dict[str, Any]) -> None:
            if options["lr"] < 0:
                raise ValueError("negative")

        def _update(self, params: list[cr.Tensor], options: dict[str, Any]) -> None:
            with cr.no_grad():
                for param in params:
                    param.sub_(options["lr"] * param.grad.sign())

    w = with_grad(1.0)
    SignDescent([w], 0.25).step()
    assert w.item() == 0.75


def test_an_optimizer_that_overrides_step() -> None:
    class SignDescent(Optimizer):
        def step(self, closure: Any = None) -> Any:
            with cr.no_grad():
                for group in self.param_groups:
                    for param in group["params"]:
                        param.sub_(group["lr"] * param.grad.sign())

    w = with_grad(1.0)
    optimizer = SignDescent([w], {"lr": 0.25})
    calls: list[str] = []
    optimizer.register_step_post_hook(lambda *_: calls.append("post"))
    optimizer.step()
    assert (w.item(), calls) == (0.75, ["post"])


def test_a_wrapper_of_an_optimizer_that_does_not_initialise_its_base() -> None:
    """As wrappers such as Lookahead do."""

    class EveryOther(Optimizer):
        def __init__(self, optimizer: Optimizer) -> None:
            self.optimizer, self.param_groups = optimizer, optimizer.param_groups
            self.count = 0

        def step(self, closure: Any = None) -> Any:
            self.count += 1
            return self.optimizer.step(closure) if self.count % 2 else None

    w = with_grad(1.0)
    optimizer = EveryOther(SGD([w], lr=0.25))
    calls: list[str] = []
    optimizer.register_step_post_hook(lambda *_: calls.append("post"))
    for _ in range(2):
        optimizer.step()
    assert (w.item(), calls) == (0.75, ["post"] * 2)
    optimizer.zero_grad()
    assert w.grad is None


# --- hooks ----------------------------------------------------------------------------------------


def test_hooks_of_a_step() -> None:
    w = with_grad(1.0)
    optimizer = SGD([w], lr=0.25)
    seen: list[Any] = []
    before = optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append((o, args)))
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((lambda: "changed",), {}))
    with optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(w.item())):
        assert optimizer.step() == "changed"
    assert seen == [(optimizer, ()), 0.75]
    before.remove()
    optimizer.step()
    assert len(seen) == 2
    optimizer.register_step_pre_hook(lambda *_: 3)
    with pytest.raises(TypeError, match=r"must return None or .args, kwargs.*returned 3"):
        optimizer.step()
    assert not copy.deepcopy(optimizer)._hooks


def test_hooks_of_all_optimizers() -> None:
    calls: list[str] = []
    module = optim.optimizer
    with (
        module.register_optimizer_step_pre_hook(lambda *_: calls.append("pre")),
        module.register_optimizer_step_post_hook(lambda *_: calls.append("post")),
    ):
        SGD([with_grad(1.0)]).step()
        Adam([with_grad(1.0)]).step()
    SGD([with_grad(1.0)]).step()
    assert calls == ["pre", "post"] * 2


def test_hooks_of_states() -> None:
    optimizer = SGD([with_grad(1.0)], lr=0.5)
    calls: list[str] = []
    for number in range(2):  # the second before the first
        optimizer.register_state_dict_pre_hook(
            lambda o, number=number: calls.append(f"pre {number}"), prepend=True
        )
    optimizer.register_state_dict_post_hook(lambda o, saved: {**saved, "more": 1})
    saved = optimizer.state_dict()
    assert (saved["more"], calls) == (1, ["pre 1", "pre 0"])
    optimizer.register_load_state_dict_pre_hook(
        lambda o, saved: {
            **saved,
            "param_groups": [{**group, "lr": 0.125} for group in saved["param_groups"]],
        }
    )
    optimizer.register_load_state_dict_post_hook(lambda o: calls.append("loaded"))
    optimizer.load_state_dict(saved)
    assert optimizer.param_groups[0]["lr"] == 0.125
    assert calls[-1] == "loaded"


# --- closures and gradients -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SGD, Adam])
def test_a_closure_runs_recorded_before_the_update(kind: Any) -> None:
    w = leaf(2.0)
    optimizer = kind([w], lr=0.1)
    calls = []

    def closure() -> cr.Tensor:
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        calls.append(cr.is_grad_enabled())
        return loss

    with cr.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 4.0
    assert calls == [True]
    assert w.item() < 2.0
    assert optimizer.step() is None


def test_an_exception_in_the_closure_changes_nothing() -> None:
    w = with_grad(2.0)
    optimizer = SGD([w], lr=0.1)

    def closure() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        optimizer.step(closure)
    assert w.item() == 2.0
    assert cr.is_grad_enabled()


def test_zero_grad_lets_go() -> None:
    w = with_grad(1.0)
    SGD([w], lr=0.1).zero_grad()
    assert w.grad is None


def test_zero_grad_can_keep_the_objects() -> None:
    w, without = with_grad(1.0), leaf(1.0)
    g = w.grad
    version = g._version
    SGD([w, without], lr=0.1).zero_grad(set_to_none=False)
    assert w.grad is g
    assert g.item() == 0
    assert g._version == version + 1
    assert without.grad is None


# --- state ----------------------------------------------------------------------------------------


def trained(optimizer: Any, w: cr.Tensor, steps: int) -> list[float]:
    for _ in range(steps):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
    return w.tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("kind", "options"),
    [(SGD, {"momentum": 0.9}), (Adam, {"amsgrad": True})],
    ids=["SGD", "Adam"],
)
def test_state_makes_a_round_trip(kind: Any, options: dict[str, Any]) -> None:
    w = leaf(1.0, -2.0)
    optimizer = kind([w], lr=0.1, **options)
    trained(optimizer, w, 3)
    kept = pickle.loads(pickle.dumps(optimizer.state_dict()))
    resumed = w.detach().clone().requires_grad_()
    fresh = kind([resumed])
    fresh.load_state_dict(kept)
    assert fresh.param_groups[0]["lr"] == 0.1
    assert trained(optimizer, w, 3) == trained(fresh, resumed, 3)


def test_state_dict_has_numbers_for_parameters() -> None:
    v, w = leaf(1.0), with_grad(1.0, 2.0)
    optimizer = SGD([{"params": [v]}, {"params": [w], "lr": 0.5}], lr=0.1, momentum=0.9)
    optimizer.step()
    kept = optimizer.state_dict()
    assert [group["params"] for group in kept["param_groups"]] == [[0], [1]]
    assert kept["param_groups"][1]["lr"] == 0.5
    assert list(kept["state"]) == [1]
    assert kept["state"][1]["momentum_buffer"].tolist() == [1.0, 1.0]


def test_loaded_state_is_a_copy_in_the_parameters_dtype() -> None:
    w = with_grad(1.0)
    first = SGD([w], lr=0.1, momentum=0.9)
    first.step()
    wide = cr.tensor([1.0], dtype=cr.float64, requires_grad=True)
    second = SGD([wide], momentum=0.9)
    second.load_state_dict(first.state_dict())
    buffer = second.state[wide]["momentum_buffer"]
    assert buffer.dtype == cr.float64
    first.step()
    assert buffer.item() == 1.0


def test_state_that_does_not_fit_changes_nothing() -> None:
    v, w = with_grad(1.0), with_grad(1.0, 2.0)
    first = SGD([v], lr=0.1, momentum=0.9)
    first.step()
    second = SGD([w], lr=0.3, momentum=0.9)
    second.step()
    two_groups = SGD([{"params": [leaf(1.0)]}, {"params": [leaf(1.0)]}])
    two_params = SGD([leaf(1.0), leaf(2.0)])
    before = copy.deepcopy(second.state_dict())
    with pytest.raises(ValueError, match=r"momentum_buffer of shape \[1\] for .* shape \[2\]"):
        second.load_state_dict(first.state_dict())
    with pytest.raises(ValueError, match="different number of parameter groups: got 2, expected 1"):
        second.load_state_dict(two_groups.state_dict())
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group: got 2"):
        second.load_state_dict(two_params.state_dict())
    broken = second.state_dict()
    broken["param_groups"][0]["lr"] = -1
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        second.load_state_dict(broken)
    after = second.state_dict()
    assert after["param_groups"] == before["param_groups"]
    assert after["state"][0]["momentum_buffer"].tolist() == [1.0, 1.0]


def test_deepcopy_together_with_its_parameters() -> None:
    w = with_grad(1.0)
    optimizer = SGD([w], lr=0.5, momentum=0.9)
    optimizer.step()
    other_w, other = copy.deepcopy((w, optimizer))
    other.step()
    assert w.item() == 0.5
    assert other_w.item() == pytest.approx(0.5 - 0.5 * 1.9)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SGD, Adam])
def test_invalid_parameters(kind: Any) -> None:
    w = leaf(1.0)
    with pytest.raises(ValueError, match="optimizer got an empty parameter list"):
        kind([])
    with pytest.raises(TypeError, match="params argument given to the optimizer should be an iter"):
        kind(w)
    with pytest.raises(TypeError, match="organized in ordered collections"):
        kind({w})
    with pytest.raises(TypeError, match="organized in ordered collections"):
        kind([{"params": {w}}])
    with pytest.raises(TypeError, match="can only optimize Tensors, but one of the params is list"):
        kind([[1.0, 2.0]])
    with pytest.raises(TypeError, match="can only optimize Tensors, but one of the params is str"):
        kind({"w": w})
    with pytest.raises(TypeError, match="param_group must be a dict"):
        kind([w]).add_param_group([w])


def test_an_option_that_groups_have_to_give() -> None:
    class Descent(Optimizer):
        def __init__(self, params: Any, lr: Any = required) -> None:
            super().__init__(params, {"lr": lr})

    w = leaf(1.0)
    assert Descent([{"params": [w], "lr": 0.5}]).param_groups[0]["lr"] == 0.5
    with pytest.raises(ValueError, match="value of required optimization parameter lr"):
        Descent([w])


def test_non_leaves_duplicates_and_read_only_memory() -> None:
    w, v = leaf(1.0), leaf(2.0)
    with pytest.raises(ValueError, match=r"can't optimize a non-leaf Tensor.*MulBackward0"):
        SGD([w * 2])
    with pytest.warns(UserWarning, match="parameter group with duplicate parameters"):
        twice = SGD([w, w], lr=0.5)
    w.grad = cr.ones_like(w)
    before = w.item()
    twice.step()
    assert w.item() == before - 1
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        SGD([{"params": [w]}, {"params": [v, w]}])
    with pytest.raises(ValueError, match=r"read-only memory: this one, of shape \[3\]"):
        SGD([cr.zeros(1).expand(3).requires_grad_()])
    optimizer = SGD([w])
    with pytest.raises(ValueError, match="Invalid learning rate"):
        optimizer.add_param_group({"params": [v], "lr": -1})
    assert len(optimizer.param_groups) == 1


@pytest.mark.parametrize(
    ("kind", "options", "text"),
    [
        (SGD, {"lr": -0.1}, "Invalid learning rate: -0.1"),
        (SGD, {"lr": float("nan")}, "Invalid learning rate: nan"),
        (SGD, {"momentum": -1}, "Invalid momentum value: -1"),
        (SGD, {"weight_decay": -1}, "Invalid weight_decay value: -1"),
        (SGD, {"nesterov": True}, "Nesterov momentum requires a momentum and zero dampening"),
        (
            SGD,
            {"nesterov": True, "momentum": 0.9, "dampening": 0.1},
            "Nesterov momentum requires a momentum and zero dampening",
        ),
        (Adam, {"lr": -0.1}, "Invalid learning rate: -0.1"),
        (Adam, {"eps": -1}, "Invalid epsilon value: -1"),
        (Adam, {"betas": (1.0, 0.9)}, "Invalid beta parameter at index 0: 1.0"),
        (Adam, {"betas": (0.9, -0.1)}, "Invalid beta parameter at index 1: -0.1"),
        (Adam, {"weight_decay": -1}, "Invalid weight_decay value: -1"),
        (Adam, {"differentiable": True}, "never recorded"),
        (Adam, {"lr": cr.ones(2)}, "a Tensor lr must be 1-element"),
        (optim.LBFGS, {"lr": cr.ones(2)}, "a Tensor lr must be 1-element"),
        (optim.NAdam, {"momentum_decay": -1}, "Invalid momentum_decay value: -1"),
        (optim.RMSprop, {"alpha": -1}, "Invalid alpha value: -1"),
        (optim.RMSprop, {"momentum": -1}, "Invalid momentum value: -1"),
        (optim.Adagrad, {"lr_decay": -1}, "Invalid lr_decay value: -1"),
        (optim.Adagrad, {"initial_accumulator_value": -1}, "Invalid initial_accumulator_value"),
        (optim.Adadelta, {"rho": 1.1}, "Invalid rho value: 1.1, expected from 0 to 1"),
        (optim.Rprop, {"etas": (0.5, 0.9)}, "Invalid eta values: 0.5, 0.9"),
        (optim.Adafactor, {"eps": (-1, 0)}, "epsilon1 should be >= 0"),
        (optim.Adafactor, {"eps": (None, -1)}, "epsilon2 should be >= 0"),
        (optim.Adafactor, {"d": 0.5}, "Clipping threshold d should be >= 1"),
        (optim.Adafactor, {"beta2_decay": 0.5}, "beta2_decay should be <= 0"),
        (optim.Muon, {}, r"only supports 2D parameters, but one has shape \[1\]"),
        (optim.Muon, {"ns_steps": 100}, "Invalid ns_steps: 100"),
        (optim.Muon, {"ns_coefficients": (1, 2)}, "must be three numbers"),
        (optim.Muon, {"adjust_lr_fn": "own"}, "Adjust learning rate function own is not supported"),
    ],
)
def test_options_out_of_range(kind: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        kind([leaf(1.0)], **options)
    with pytest.raises(ValueError, match=text):
        kind([{"params": [leaf(1.0)], **options}])


@pytest.mark.parametrize("kind", [optim.Adafactor, optim.Muon])
def test_complex_parameters_are_refused_where_a_matrix_is_seen(kind: Any) -> None:
    with pytest.raises(ValueError, match="does not support complex parameters"):
        kind([cr.ones(2, 2, dtype=cr.complex64, requires_grad=True)])


def test_a_group_has_names_if_the_others_have() -> None:
    v, w = leaf(1.0), leaf(2.0)
    optimizer = SGD([("v", v), ("w", w)], lr=0.1)
    assert optimizer.param_groups[0]["params"] == [v, w]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["v", "w"]
    optimizer.add_param_group({"params": [("x", leaf(3.0))]})
    with pytest.raises(ValueError, match="cannot add param group without names"):
        optimizer.add_param_group({"params": [leaf(3.0)]})
    with pytest.raises(ValueError, match="Some param names are missing: number 1"):
        SGD([("v", v), w], lr=0.1)


def test_state_of_others_and_groups_that_are_listed_twice() -> None:
    w = with_grad(1.0)
    optimizer = SGD([w], lr=0.1)
    optimizer.state["count"] = 1  # type: ignore[index, assignment]  # as a hook may
    optimizer.param_groups.extend(optimizer.param_groups)
    saved = optimizer.state_dict()
    assert saved["state"] == {"count": 1}
    assert [group["params"] for group in saved["param_groups"]] == [[0], [0]]


def test_lbfgs_at_a_gradient_of_zero() -> None:
    w = leaf(1.0)
    optimizer = optim.LBFGS([w], tolerance_grad=-1.0)
    assert optimizer.step(lambda: cr.tensor(10.0)).item() == 10
    assert w.tolist() == leaf(1.0).tolist()


def test_options_are_checked_before_parameters() -> None:
    with pytest.raises(ValueError, match="Invalid learning rate: -1"):
        SGD(None, lr=-1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="should be an iterable of Tensors or dicts, but got None"):
        SGD(None, lr=1)  # type: ignore[arg-type]


def test_the_optimizer_itself_has_no_update() -> None:
    with pytest.raises(NotImplementedError, match=r"implements step\(closure\) or _update"):
        Optimizer([with_grad(1.0)], {}).step()


@pytest.mark.parametrize("settings", [{}, {"momentum": 0.9}])
def test_every_write_of_a_step_is_known_to_the_backward_pass(settings: dict[str, float]) -> None:
    """A graph that saved a parameter, or a state, before a step raises and names the line."""
    params = [cr.ones(2, requires_grad=True), cr.ones(3, requires_grad=True)]
    optimizer = cr.optim.SGD(params, lr=0.1, **settings)
    for param in params:
        param.grad = cr.ones_like(param)
    optimizer.step()
    buffers = [t for state in optimizer.state.values() for t in state.values()]
    assert len(buffers) == 2 * len(settings)
    factor = cr.ones((), requires_grad=True)
    for saved in (*params, *buffers):
        loss = (saved * factor).sum()
        optimizer.step()
        with pytest.raises(cr.InPlaceError, match=r"written by SGD\.step at .*test_optimizer\.py"):
            loss.backward()
