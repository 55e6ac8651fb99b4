"""Verified calls: they find stale and wrong programs, and leave everything as other calls do."""

from __future__ import annotations

import copy
import itertools
import pickle
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import chainrule as cr
from chainrule.compiler.api import Verified
from chainrule.compiler.codegen import numpy_source
from chainrule.compiler.guards.source import Guards
from chainrule.optim import Adam
from helpers.processes import run_script

# --- when calls are verified ----------------------------------------------------------------------


def eager_runs(verify: bool | int | None, calls: int) -> int:
    """Return how often the Python function ran in so many calls, beside its trace."""
    runs = itertools.count()
    counter = types.SimpleNamespace(next=runs.__next__)  # an iterator's method: not seen

    def function(x: Any) -> Any:
        counter.next()
        return x * 2

    compiled = cr.compile(function, verify=verify)
    for _ in range(calls):
        compiled(cr.ones(2))
    return counter.next() - 1


@pytest.mark.parametrize(
    ("verify", "calls", "runs"),
    [(False, 5, 0), (True, 1, 1), (True, 99, 2), (True, 100, 3), (1, 7, 7), (3, 7, 4)],
)
def test_the_first_two_calls_and_every_kth(verify: bool | int, calls: int, runs: int) -> None:
    assert eager_runs(verify, calls) == runs


def test_each_signature_is_verified() -> None:
    counter = types.SimpleNamespace(next=itertools.count().__next__)

    def function(x: Any) -> Any:
        counter.next()
        return x * 2

    compiled = cr.compile(function, verify=1000)
    for size in (1, 2, 1, 2, 1, 2):
        compiled(cr.ones(size))
    assert counter.next() == 2 + 4  # traces and eager runs


@pytest.mark.parametrize(
    ("text", "every"), [("", 0), ("0", 0), ("off", 0), ("on", 100), ("7", 7), ("1", 1)]
)
def test_the_environment_decides_by_default(
    text: str, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAINRULE_VERIFY", text)
    compiled = cr.compile(abs)
    assert compiled.every == every
    assert type(cr.compile(abs, verify=False)) is cr.compiler.Compiled
    assert isinstance(cr.compile(abs, verify=5), Verified)


def test_what_is_no_interval_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(cr.ArgumentError, match=r"compile\(verify=-1\): expected True, False, None"):
        cr.compile(abs, verify=-1)
    with pytest.raises(cr.ArgumentError, match=r"compile\(verify='x'\)"):
        cr.compile(abs, verify="x")  # type: ignore[call-overload]
    monkeypatch.setenv("CHAINRULE_VERIFY", "sometimes")
    with pytest.raises(cr.ArgumentError, match=r"CHAINRULE_VERIFY=sometimes: expected on, off"):
        cr.compile(abs)


def test_a_compiled_function_can_be_verified_later() -> None:
    plain = cr.compile(lambda x: x + 1, backend="numpy", verify=False)
    verified = cr.compile(plain, verify=4)
    assert (verified.backend, verified.every) == ("numpy", 4)
    assert cr.compile(verified) is verified
    assert type(cr.compile(verified, verify=False)) is cr.compiler.Compiled


def double(x: Any) -> Any:
    return x * 2


def test_copies_and_pickles_are_verified() -> None:
    compiled = cr.compile(double, verify=6)
    for twin in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert twin.every == 6
        assert twin(cr.ones(2)).tolist() == [2, 2]


# --- what they find -------------------------------------------------------------------------------


class Stale(NamedTuple):
    """A function, a change to what it uses, and how an error names the change."""

    function: Callable[..., Any]
    change: Callable[[], Any]
    named: str


def a_number() -> Stale:
    rate = 2.0

    def change() -> None:
        nonlocal rate
        rate = 3.0

    return Stale(lambda x: x * rate, change, "rate is 3.0, was 2.0")


def an_attribute() -> Stale:
    options = types.SimpleNamespace(rate=2.0)
    return Stale(
        lambda x: x * options.rate,
        lambda: setattr(options, "rate", 3.0),
        "options.rate is 3.0, was 2.0",
    )


def an_item_behind_a_proxy() -> Stale:
    items = {"rate": 2.0}
    proxy = types.MappingProxyType(items)
    return Stale(
        lambda x: x * proxy["rate"],
        lambda: items.update(rate=3.0),
        r"proxy\['rate'\] is 3.0, was 2.0",
    )


def a_method() -> Stale:
    class Scale:
        def of(self, x: Any) -> Any:
            return x * 2.0

    scale = Scale()
    return Stale(
        lambda x: scale.of(x), lambda: setattr(Scale, "of", lambda self, x: x * 3.0), r"x \* 3\.0"
    )


def a_tensor() -> Stale:
    held = [cr.tensor([2.0, 2.0, 2.0], dtype="float64")]
    return Stale(
        lambda x: x * held[0],
        lambda: held.__setitem__(0, cr.tensor([3.0, 3.0, 3.0], dtype="float64")),
        r"result\[0\] is .*2.0.*, eagerly .*3.0.* \(3 of 3 elements differ\)",
    )


def a_write() -> Stale:
    held = [cr.zeros(3), cr.zeros(3)]

    def function(x: Any) -> Any:
        held[0].add_(1)
        return x * 2

    return Stale(function, held.reverse, r"held\[0\]\[0\] is .*0.*, eagerly .*1")


def a_list() -> Stale:
    kept: list[Any] = []
    keeps: list[bool] = []

    def function(x: Any) -> Any:
        if keeps:
            kept.append(3)
        return x * 2

    return Stale(function, lambda: keeps.append(True), "kept")


def a_set() -> Stale:
    names = {"a", "b"}
    new = ["c"]
    return Stale(
        lambda x: [x * 2, names.update(new)][0],
        lambda: new.__setitem__(0, "d"),
        r"\(names\) is left as it was, eagerly it becomes",
    )


def a_generator() -> Stale:
    counts = [1]
    rng = cr.Generator().manual_seed(1)

    def function(x: Any) -> Any:
        for _ in range(counts[0]):
            cr.randn(2, generator=rng)
        return x * 2

    return Stale(function, lambda: counts.__setitem__(0, 2), r"rng")


STALE = [
    a_number,
    an_attribute,
    an_item_behind_a_proxy,
    a_method,
    a_tensor,
    a_write,
    a_list,
    a_set,
    a_generator,
]


@pytest.mark.parametrize("case", STALE)
def test_a_program_that_the_guards_do_not_notice_is_stale(
    case: Callable[[], Stale], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Guards, "require", lambda self, condition: None)
    function, change, named = case()
    compiled = cr.compile(function, backend="numpy", verify=1)
    x = cr.ones(3, dtype=cr.float64)
    for _ in range(3):
        compiled(x)
    change()
    with pytest.raises(cr.VerificationError, match=named):
        compiled(x)


def _wrong(monkeypatch: pytest.MonkeyPatch, old: str, new: str, backward: bool = False) -> None:
    """Have the compiler emit something else in forward or backward programs."""
    original = numpy_source.Source.__init__

    def init(self: Any, program: Any) -> None:
        original(self, program)
        if program.name.endswith("_backward") is backward:
            self.body = [line.replace(old, new) for line in self.body]

    monkeypatch.setattr(numpy_source.Source, "__init__", init)


def _values(*numbers: float) -> Any:
    return cr.tensor(numbers, dtype="float64", requires_grad=True)


def test_a_wrong_result_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _wrong(monkeypatch, "np.sin", "np.tanh")
    compiled = cr.compile(lambda x: {"a": x * 2, "b": [x.sin()]}, backend="numpy", verify=True)
    with pytest.raises(
        cr.VerificationError,
        match=r"result\['b'\]\[0\]\[1\] is .*0\.76.*, eagerly .*0\.84.*a bug of the compiler",
    ):
        compiled(_values(0.0, 1.0))


def test_a_wrong_gradient_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    _wrong(monkeypatch, "np.cos", "np.sin", backward=True)
    compiled = cr.compile(lambda w: w.sin(), backend="numpy", verify=True)
    with pytest.raises(cr.VerificationError, match="the gradient of argument 0"):
        compiled(_values(0.0, 1.0))


def test_a_wrong_write_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    _wrong(monkeypatch, "+=", "-=")
    w = _values(1.0, 2.0).detach()
    compiled = cr.compile(lambda: w.add_(w * 2 + 1).sum() * 0, backend="numpy", verify=True)
    with pytest.raises(cr.VerificationError, match=r"w\[0\] is"):
        compiled()


def test_an_error_that_only_the_function_raises() -> None:
    compiled = cr.compile(lambda x: cr.bernoulli(x), verify=True)  # values are not checked
    with pytest.raises(cr.VerificationError, match="eagerly it raises"):
        compiled(cr.tensor([2.0]))


def test_a_function_that_differs_from_call_to_call() -> None:
    numbers = itertools.count()
    following = types.SimpleNamespace(next=numbers.__next__)
    compiled = cr.compile(lambda x: x * following.next(), verify=True)
    with pytest.raises(cr.VerificationError, match="in two eager runs it is different"):
        compiled(cr.ones(2))


# --- what they leave ------------------------------------------------------------------------------


def training(verify: bool | int) -> list[Any]:
    """Return what some steps of training with noise leave behind."""
    cr.manual_seed(3)
    w, b = cr.randn(4, 3, requires_grad=True), cr.zeros(3, requires_grad=True)
    optimizer, x, losses = Adam([w, b], lr=0.1), cr.randn(10, 4), [cr.zeros(())]

    @cr.compile(backend="numpy", verify=verify)
    def step() -> Any:
        optimizer.zero_grad()
        loss = ((x @ w + b + 0.1 * cr.randn(10, 3)) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses[0].copy_(loss.detach())
        return loss

    found = [step().item() for _ in range(4)]
    state = [part for held in optimizer.state.values() for part in held.values()]
    return [found, w, b, w.grad, losses[0], w._version, cr.randn(2), *state]


def test_training_goes_on_as_without_verification() -> None:
    verified, plain = training(1), training(False)
    assert len(verified) == len(plain)
    for a, b in zip(verified, plain, strict=True):
        if isinstance(a, cr.Tensor):
            np.testing.assert_array_equal(a.detach(), b.detach())
        else:
            assert a == b


def containers(verify: bool | int) -> list[Any]:
    """Return containers that a function changes, and its results."""
    items, names, numbers = [1], {"a"}, {"n": 0}
    held = types.SimpleNamespace(last=None, array=np.zeros(2))

    def function(x: Any) -> Any:
        items.append(len(items))
        names.add(str(len(items)))
        numbers["n"] += 1
        held.last = x * numbers["n"]
        return held.last + 1

    compiled = cr.compile(function, backend="numpy", verify=verify)
    results = [compiled(cr.ones(2)).tolist() for _ in range(3)]
    return [results, items, sorted(names), numbers, held.last.tolist(), held.array.tolist()]


def test_containers_change_once_in_a_call() -> None:
    assert containers(1) == containers(False)


def test_the_order_of_strings_in_a_set_is_no_difference() -> None:
    """It depends on their hashes, and on what the set has contained before."""
    script = """
import chainrule as cr

names = {"a"}

def function(x):
    names.add(f"{len(names)}")
    return x * len(names)

compiled = cr.compile(function, backend="numpy", verify=1)
print([compiled(cr.ones(())).item() for _ in range(40)] == [n + 2 for n in range(40)])
"""
    for seed in "123":
        assert run_script(script, PYTHONHASHSEED=seed) == "True\n"


def test_results_can_be_differentiated_afterwards() -> None:
    w = _values(0.5, -2.0)
    compiled = cr.compile(lambda: (w * w.sin()).sum(), backend="numpy", verify=1)
    for _ in range(3):
        w.grad = None
        compiled().backward()
        np.testing.assert_allclose(w.grad, np.sin(w.detach()) + w.detach() * np.cos(w.detach()))


def test_hooks_that_the_function_registers_are_registered_once() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        y.register_hook(lambda g: g * 3)
        y.sum().backward()
        return x.grad.clone()

    x = _values(1.0)
    compiled = cr.compile(function, verify=1)
    assert [compiled(x).item() for _ in range(2)] == [6, 12]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounding_that_cancellation_enlarges_is_no_difference(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (cr.tensor(rng.standard_normal(5000), dtype=dtype) for _ in range(2))
    compiled = cr.compile(lambda x, y: (x * y).sum() - x @ y, backend="numpy", verify=True)
    compiled(x, y)  # the difference of two sums in another order


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: x.softmax(-1), (1, 8)),  # in some calls, all elements are 0 for any inputs
        (lambda x: x * x - (x * x).exp().log(), (8, 8)),  # some elements are, in most calls
    ],
)
def test_rounding_of_what_cancels_to_zero_is_no_difference(
    function: Callable[..., Any], shape: Any
) -> None:
    """To exactly 0 in eager runs, in which each operation rounds as in the others."""
    pytest.importorskip("llvmlite")
    compiled = cr.compile(
        lambda x: cr.autograd_grad(function(x).sum(), x), backend="native", verify=1
    )
    for seed in range(36):
        values = np.random.default_rng(seed).standard_normal(shape)
        compiled(cr.tensor(values, dtype=cr.float32, requires_grad=True))


def test_a_wrong_zero_is_found_beside_an_element_that_rounding_changes_a_lot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Guards, "require", lambda self, condition: None)
    offset = [0.0]

    def function(x: Any) -> Any:
        return cr.where(x > 0, cr.where(x > 0.9, (1e5 * x).sin(), x * x), offset[0])

    compiled = cr.compile(function, backend="numpy", verify=1)
    x = cr.tensor(np.linspace(-1, 1, 12), dtype=cr.float32)
    compiled(x)
    offset[0] = 1e-3
    with pytest.raises(cr.VerificationError, match=r"the result\[0\] is .*0\.0.*6 of 12"):
        compiled(x)


def test_state_by_tensors_that_differ_by_noise_is_no_difference() -> None:
    """As of an optimiser, which makes whole steps of gradients that are but noise."""
    rng = np.random.default_rng(0)
    x, y = (cr.tensor(rng.standard_normal(5000), dtype=cr.float32) for _ in range(2))
    w = cr.zeros(1)
    state: dict[Any, Any] = {}

    def step(x: Any, y: Any) -> Any:
        state[w] = {"noise": w + 1e6 * ((x * y).sum() - x @ y)}
        w.copy_(state[w]["noise"])
        return w + 0

    compiled = cr.compile(step, backend="numpy", verify=1)
    compiled(x, y)
    assert "noise" in state[w]


def test_a_call_with_an_iterator_is_not_verified() -> None:
    compiled = cr.compile(lambda xs: sum(x * 2 for x in xs), verify=1)
    assert compiled(iter([cr.ones(()), cr.ones(())])).item() == 4


def test_within_an_eager_run_others_run_eagerly_and_within_a_trace_too() -> None:
    inner = cr.compile(lambda x: x * 2, verify=1)
    outer = cr.compile(lambda x: inner(x) + 1, verify=1)
    assert outer(cr.ones(2)).tolist() == [3, 3]
    assert inner.signatures == []
    assert cr.vmap(outer)(cr.ones(3, 2)).shape == (3, 2)


def test_a_step_may_return_a_loss_whose_graph_backward_freed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where rounding differs, so that the function runs on perturbed inputs."""
    monkeypatch.setattr("chainrule.compiler.verify.compare._ROUNDING_FACTOR", 0)

    cr.manual_seed(0)
    nn = cr.nn
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 3))

    def step(x: cr.Tensor, y: cr.Tensor) -> cr.Tensor:
        net.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()  # the bias before a batch norm gets rounding alone
        return loss

    compiled, x, y = cr.compile(step, verify=1), cr.randn(6, 3), cr.randn(6, 3)
    for _ in range(3):
        assert compiled(x, y).item() > 0
