"""Everyday autograd scripts, written for PyTorch, run with chainrule under the name torch.

A script is a function of the module that it calls `torch`. It runs with chainrule everywhere,
checks what needs no second opinion, and returns what is held against PyTorch's run where that is
installed.
"""

from __future__ import annotations

import copy
import gc
import io
import pickle
import re
import threading
import warnings
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from helpers.processes import run_script
from helpers.torch_comparison import plain

Script = Callable[[Any], Any]
SCRIPTS: list[Script] = []


def script(function: Script) -> Script:
    SCRIPTS.append(function)
    return function


every_script = pytest.mark.parametrize("run", SCRIPTS, ids=lambda run: run.__name__)


def data(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def message(function: Callable[[], Any], length: int) -> str:
    """Return the beginning of the text of a RuntimeError, after the name of the function."""
    with pytest.raises(RuntimeError) as caught:
        function()
    return re.sub(r"^\w+\(\): ", "", str(caught.value))[:length].lower()


# --- training by hand -----------------------------------------------------------------------------


@script
def straight_line_by_gradient_descent(torch: ModuleType) -> Any:
    x = torch.linspace(0, 1, 20).reshape(-1, 1)
    y = 3 * x - 1
    w = torch.zeros(1, 1, requires_grad=True)
    b = torch.zeros(1, requires_grad=True)
    parameter = w
    for _ in range(300):
        loss = ((x @ w + b - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            w -= 0.5 * w.grad
            b -= 0.5 * b.grad
        w.grad = None
        b.grad.zero_()
    assert w is parameter
    assert w.is_leaf
    assert loss.item() < 1e-3
    return w, b, loss


@script
def two_layers_with_clamp(torch: ModuleType) -> Any:
    x, y = torch.from_numpy(data(16, 5)), torch.from_numpy(data(16, 2, seed=1))
    w1 = torch.tensor(data(5, 8, seed=2), requires_grad=True)
    w2 = torch.tensor(data(8, 2, seed=3), requires_grad=True)
    losses = []
    for _ in range(30):
        loss = (x.mm(w1).clamp(min=0).mm(w2) - y).pow(2).sum()
        losses.append(loss.item())
        loss.backward()
        with torch.no_grad():
            for w in (w1, w2):
                w.sub_(1e-3 * w.grad)
                w.grad.zero_()
    assert losses[-1] < losses[0] / 2
    return w1, w2


@script
def optimiser_on_a_bare_tensor(torch: ModuleType) -> Any:
    found = []
    for make in (
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
        lambda p: torch.optim.Adam(p, lr=0.1, weight_decay=0.01),
    ):
        x = torch.tensor([5.0, -3.0], requires_grad=True)
        optimizer = make([x])
        for _ in range(25):
            optimizer.zero_grad()
            ((x - 1) ** 2).sum().backward()
            optimizer.step()
        found.append(x)
    return found


@script
def microbatches_accumulate(torch: ModuleType) -> Any:
    w = torch.tensor(data(3), requires_grad=True)
    x = torch.from_numpy(data(8, 3, seed=1))
    for part in x.chunk(4):
        ((part @ w).tanh().sum() / 8).backward()
    parts = w.grad.clone()
    w.grad.zero_()
    (x @ w).tanh().mean().backward()
    assert torch.allclose(parts, w.grad)
    return parts


@script
def norms_clipped_by_hand(torch: ModuleType) -> Any:
    weights = [torch.tensor([3.0, 4.0], requires_grad=True), torch.ones(1, 2, requires_grad=True)]
    sum((w**2).sum() for w in weights).backward()
    total = torch.norm(torch.stack([w.grad.norm() for w in weights]))
    for w in weights:
        w.grad.mul_(1.0 / total)
    return total, [w.grad for w in weights]


@script
def frozen_layer(torch: ModuleType) -> Any:
    first = torch.tensor(data(3, 3), requires_grad=True)
    second = torch.tensor(data(3, 1, seed=1), requires_grad=True)
    first.requires_grad_(False)
    (torch.ones(2, 3) @ first @ second).sum().backward()
    assert first.grad is None
    return second.grad


@script
def recurrent_net_unrolled(torch: ModuleType) -> Any:
    hidden = (torch.eye(3) * 0.5).requires_grad_()
    into = torch.tensor(data(3, 2), requires_grad=True)
    state = torch.zeros(3)
    for step in torch.from_numpy(data(6, 2, seed=1)):
        state = torch.tanh(hidden @ state + into @ step)
    state.sum().backward()
    return hidden.grad, into.grad, state


@script
def classifier_by_hand(torch: ModuleType) -> Any:
    logits = torch.tensor(data(4, 3), requires_grad=True)
    target = torch.tensor([2, 0, 1, 1])
    log_p = logits - logits.logsumexp(dim=1, keepdim=True)
    by_gather = -log_p.gather(1, target.view(-1, 1)).mean()
    by_index = -log_p[torch.arange(4), target].mean()
    by_name = torch.nn.functional.cross_entropy(logits, target)
    by_name.backward()
    hits = (logits.argmax(dim=1) == target).float().mean().item()
    return by_gather, by_index, by_name, logits.grad, hits


# --- what to differentiate, and where to stop -----------------------------------------------------


@script
def stopped_gradients(torch: ModuleType) -> Any:
    x = torch.tensor([0.2, 0.7, 1.4], requires_grad=True)
    rounded = x + (x.round() - x).detach()  # the straight-through estimator
    (rounded * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    straight = x.grad.clone()
    x.grad = None
    (x.detach() * x).sum().backward()
    return rounded, straight, x.grad


@script
def reparametrised_normal(torch: ModuleType) -> Any:
    mean = torch.zeros(3, requires_grad=True)
    log_variance = torch.zeros(3, requires_grad=True)
    z = mean + torch.exp(0.5 * log_variance) * torch.from_numpy(data(3))
    divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
    (z.pow(2).sum() + divergence).backward()
    return mean.grad, log_variance.grad


@script
def penalty_on_a_gradient(torch: ModuleType) -> Any:
    x = torch.tensor(data(3, 2), requires_grad=True)
    w = torch.tensor([[1.0], [2.0]], requires_grad=True)
    score = torch.tanh(x @ w)
    (slope,) = torch.autograd.grad(
        outputs=score, inputs=x, grad_outputs=torch.ones_like(score), create_graph=True
    )
    ((slope.norm(2, dim=1) - 1) ** 2).mean().backward()
    return w.grad, x.grad


@script
def step_through_an_inner_step(torch: ModuleType) -> Any:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    x = torch.tensor([3.0, -1.0])
    (g,) = torch.autograd.grad(((w * x).sum() - 1) ** 2, w, create_graph=True)
    fast = w - 0.01 * g
    (((fast * x).sum() - 2) ** 2).backward()
    return w.grad


@script
def hessian_row_by_row(torch: ModuleType) -> Any:
    x = torch.tensor([1.0, 2.0, 0.5], requires_grad=True)
    f = x[0] ** 2 * x[1] + torch.sin(x[2] * x[1])
    (g,) = torch.autograd.grad(f, x, create_graph=True)
    return torch.stack([torch.autograd.grad(gi, x, retain_graph=True)[0] for gi in g])


@script
def jacobian_row_by_row(torch: ModuleType) -> Any:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = torch.stack([x[0] * x[1], x[1] ** 2, x.prod()])
    return [torch.autograd.grad(y, x, row, retain_graph=True)[0] for row in torch.eye(3)]


@script
def heat_equation_residual(torch: ModuleType) -> Any:
    """As physics-informed networks do: second derivatives at every point of a batch."""
    x = torch.linspace(0, 1, 5).reshape(-1, 1).requires_grad_()
    t = torch.full((5, 1), 0.3, requires_grad=True)
    w = torch.tensor(data(2, 4), requires_grad=True)
    u = torch.tanh(torch.cat([x, t], dim=1) @ w).sum(dim=1, keepdim=True)
    one = torch.ones_like(u)
    u_x, u_t = torch.autograd.grad(u, (x, t), one, create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x, x, one, create_graph=True)
    ((u_t - 0.1 * u_xx) ** 2).mean().backward()
    return w.grad


@script
def derivatives_until_nothing_is_left(torch: ModuleType) -> Any:
    """s25: the zeros that materialize_grads makes under create_graph can be differentiated on."""
    x = torch.tensor(2.0, requires_grad=True)
    slope = torch.tensor(3.0, requires_grad=True)
    derivative, found = slope * x, []
    for _ in range(4):
        (derivative,) = torch.autograd.grad(
            derivative, x, create_graph=True, materialize_grads=True
        )
        found.append(derivative.item())
    assert found == [3, 0, 0, 0]
    return found


# --- functions of one's own -----------------------------------------------------------------------


@script
def function_class_with_a_saved_input(torch: ModuleType) -> Any:
    class Cubic(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return 0.5 * (5 * x**3 - 3 * x)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            return grad_output * 1.5 * (5 * x**2 - 1)

    a, b = (torch.tensor(v, requires_grad=True) for v in (-1.0, 0.3))
    x = torch.linspace(-3, 3, 50)
    y = torch.sin(x)
    for _ in range(20):
        loss = (a * Cubic.apply(b * x) - y).pow(2).sum()
        loss.backward()
        with torch.no_grad():
            for p in (a, b):
                p -= 1e-4 * p.grad
                p.grad = None
    return a, b, loss


@script
def function_class_that_edits_its_gradient(torch: ModuleType) -> Any:
    class Rectifier(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(min=0)

        @staticmethod
        def backward(ctx, grad_output):
            (x,) = ctx.saved_tensors
            grad_input = grad_output.clone()
            grad_input[x < 0] = 0
            return grad_input

    x = torch.tensor([-1.0, 2.0, -3.0], requires_grad=True)
    (Rectifier.apply(x) * torch.tensor([5.0, 6.0, 7.0])).sum().backward()
    return x.grad


@script
def function_class_in_two_steps(torch: ModuleType) -> Any:
    needs = []

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(x, factor):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            _, ctx.factor = inputs

        @staticmethod
        def backward(ctx, grad_output):
            needs.append((ctx.needs_input_grad[0], ctx.needs_input_grad[1]))
            return grad_output * ctx.factor, None

    x = torch.ones(2, requires_grad=True)
    y = Scale.apply(x, 3.0)
    y.sum().backward()
    return x.grad, needs, y.grad_fn.name()


@script
def function_class_with_two_outputs_one_used(torch: ModuleType) -> Any:
    class SineAndCosine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            sine, cosine = x.sin(), x.cos()
            ctx.save_for_backward(sine, cosine)
            return sine, cosine

        @staticmethod
        def backward(ctx, of_sine, of_cosine):
            sine, cosine = ctx.saved_tensors
            return of_sine * cosine - of_cosine * sine

    x = torch.tensor([0.3, 1.1], requires_grad=True)
    _, cosine = SineAndCosine.apply(x)
    (g,) = torch.autograd.grad(cosine.sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    return g, gg


@script
def gradient_reversed_for_an_adversary(torch: ModuleType) -> Any:
    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, strength):
            ctx.strength = strength
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output.neg() * ctx.strength, None

    features = torch.tensor(data(3), requires_grad=True)
    (features.sum() + Reverse.apply(features, 0.5).pow(2).sum()).backward()
    return features.grad


@script
def gradcheck_of_a_force(torch: ModuleType) -> Any:
    """A function under check may itself take gradients, also where the differences are taken."""

    def force(x):
        return torch.autograd.grad((x**3).sum() / 3, x, create_graph=True)[0]

    x = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    door = getattr(torch.autograd, "gradcheck", None) or torch.gradcheck
    return bool(door(force, (x,)))


# --- hooks and looking inside ---------------------------------------------------------------------


@script
def hooks_that_watch_and_scale(torch: ModuleType) -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    seen = []
    watching = y.register_hook(lambda g: seen.append(g.clone()))
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    watching.remove()
    y.sum().backward()
    assert len(seen) == 1
    return seen, x.grad, y.grad


@script
def optimiser_inside_backward(torch: ModuleType) -> Any:
    """The recipe that frees each gradient as soon as its parameter has used it."""
    weights = [torch.tensor([v], requires_grad=True) for v in (1.0, 2.0)]

    def update(w):
        with torch.no_grad():
            w.sub_(0.1 * w.grad)
        w.grad = None

    for w in weights:
        w.register_post_accumulate_grad_hook(update)
    (weights[0] * weights[1]).sum().backward()
    assert all(w.grad is None for w in weights)
    return weights


@script
def graph_walked_by_name(torch: ModuleType) -> Any:
    x = torch.tensor([1.0], requires_grad=True)
    node, names = (x * 2 + 1).exp().sum().grad_fn, []
    while node is not None and node.next_functions:
        names.append(node.name())
        node = node.next_functions[0][0]
    assert node.variable is x
    return names


@script
def graph_on_a_diet(torch: ModuleType) -> Any:
    """s45: saved tensors kept in half precision; numbers of Python's are no tensors."""
    hooks = getattr(torch, "saved_tensors_hooks", None) or torch.autograd.graph.saved_tensors_hooks
    packed = []

    def pack(t):
        packed.append(tuple(t.shape))
        return t.detach().to(torch.float16)

    x = torch.ones(3, requires_grad=True)
    with hooks(pack, lambda t: t.to(torch.float32)):
        y = (x * 3).exp().sum()
    y.backward()
    assert packed == [(3,)]
    return x.grad


@script
def anomaly_names_the_operation(torch: ModuleType) -> Any:
    x = torch.tensor([0.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            return message(lambda: (x.sqrt() * 0).sum().backward(), 40)


# --- writing in place -----------------------------------------------------------------------------


@script
def columns_written_and_differentiated(torch: ModuleType) -> Any:
    x = torch.arange(12.0).view(3, 4).requires_grad_()
    y = x.clone()
    y[0] = 0
    y[:, 1] *= 2
    y[y > 6] = 1
    y[[1, 2], [0, 3]] = 5
    y[..., -1] += 1
    y.sum().backward()
    return y, x.grad


@script
def table_filled_row_by_row(torch: ModuleType) -> Any:
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    table = torch.zeros(4, 2)
    assert not table.requires_grad
    for i in range(4):
        table[i] = w**i
    assert table.requires_grad
    table.prod(dim=1).sum().backward()
    return table, w.grad


@script
def retained_gradient_follows_a_written_view(torch: ModuleType) -> Any:
    """s14, s37: retain_grad() on views keeps the gradient of what they hold after the write."""
    base = torch.tensor([1.0, 2.0], requires_grad=True).clone()
    written, sibling = base[:], base[:]
    written.retain_grad()
    sibling.retain_grad()
    written.mul_(2)
    (written * 5 + sibling).sum().backward()
    return written.grad, sibling.grad


@script
def what_autograd_refuses(torch: ModuleType) -> Any:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y += 1
    twice = (x**2).sum()
    twice.backward()
    return (
        message(lambda: x.add_(1), 38),
        message(lambda: x.sum().backward(torch.ones(2)), 17),
        message(lambda: torch.ones(2).sum().backward(), 40),
        message(lambda: (x * 2).backward(), 54),
        message(lambda: x.numpy(), 51),
        message(lambda: y.sum().backward(), 90),
        message(twice.backward, 51),
        message(lambda: torch.ones(2, 3) @ torch.ones(2, 3), 55),
        message(lambda: torch.ones(3) + torch.ones(4), 89),
        message(lambda: torch.tensor([1, 2], requires_grad=True), 70),
        message(lambda: torch.autograd.grad(x.sum(), []), 45),
    )


# --- modes, threads, copies -----------------------------------------------------------------------


@script
def evaluation_between_training_steps(torch: ModuleType) -> Any:
    w = torch.ones(2, requires_grad=True)

    @torch.no_grad()
    def evaluate():
        return (w * 2).requires_grad

    @torch.no_grad()
    def batches():
        for _ in range(2):
            yield torch.is_grad_enabled()

    inside = [(flag, torch.is_grad_enabled()) for flag in batches()]
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    off = (w * 2).requires_grad
    torch.set_grad_enabled(before)
    with torch.set_grad_enabled(mode=True):
        on = (w * 2).requires_grad
    return evaluate(), inside, off, on, torch.is_grad_enabled()


@script
def threads_share_a_leaf(torch: ModuleType) -> Any:
    w = torch.zeros(1, requires_grad=True)

    def work():
        for _ in range(20):
            (w * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return w.grad


@script
def parameters_copied_and_stored(torch: ModuleType) -> Any:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    (w * 3).sum().backward()
    twin = copy.deepcopy(w)
    loaded = pickle.load(io.BytesIO(pickle.dumps(w)))
    with torch.no_grad():
        twin.mul_(10)
    average = {"w": w.detach().clone()}
    average["w"].mul_(0.9).add_(twin.detach(), alpha=0.1)  # an exponential moving average
    return w, twin, loaded.requires_grad, average["w"]


@script
def memory_is_let_go(torch: ModuleType) -> Any:
    """Losses kept as numbers keep no graph; neither does a loop that drops its loss."""
    w = torch.ones(3, requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        history, graphs = [], []
        for _ in range(3):
            loss = (w * 2).exp().sum()
            graphs.append(weakref.ref(loss))
            loss.backward()
            history.append(loss.item())
            del loss
        return [graph() is None for graph in graphs], history
    finally:
        gc.enable()


# --- each script, in one library and in both ------------------------------------------------------


@every_script
def test_script_runs_with_chainrule_as_torch(run: Script) -> None:
    run(cr)


@every_script
def test_script_does_what_it_does_in_pytorch(run: Script) -> None:
    torch = pytest.importorskip("torch")
    compare(plain(run(cr)), plain(run(torch)))


def compare(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            compare(one, other)
    elif isinstance(theirs, np.ndarray):
        assert ours is not None
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-6)
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=2e-5)
    else:
        assert ours == theirs


PRINTED = """
import LIBRARY as torch

torch.manual_seed(1)
x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
w = torch.ones(2, 1) * 0.5
y = (x @ w).relu()
print(y)
print(f"loss {y.mean().item():.3f}")
y.mean().backward()
print(x.grad)
print(x)
print(x.detach(), x.sum(), torch.arange(3), torch.tensor([True]), x.grad_fn)
for name, value in {"a": x, "b": w}.items():
    print(name, list(value.shape), value.requires_grad, value.dtype == torch.float32)
"""


def test_a_script_prints_what_it_prints_with_pytorch() -> None:
    pytest.importorskip("torch")
    assert run_script(PRINTED.replace("LIBRARY", "chainrule")) == run_script(
        PRINTED.replace("LIBRARY", "torch")
    )


def test_an_everyday_script_needs_no_pytorch() -> None:
    blocked = "import sys; sys.modules['torch'] = None\n"
    assert "loss 2.500" in run_script(blocked + PRINTED.replace("LIBRARY", "chainrule"))


# --- what PyTorch's own scripts taught, in numbers ------------------------------------------------


def test_s20_node_hooks_of_a_leaf_run_when_it_is_asked_for_by_name() -> None:
    """s20, s44: backward(inputs=[leaf]) is an ordinary pass for the leaf's AccumulateGrad node."""
    x = cr.tensor(1.0, requires_grad=True)
    y = x * 2
    leaf_node, _ = y.grad_fn.next_functions[0]
    order = []
    leaf_node.register_prehook(lambda grads: order.append("before"))
    leaf_node.register_hook(lambda into, out: order.append("after"))
    x.register_post_accumulate_grad_hook(lambda leaf: order.append("accumulated"))
    y.backward(inputs=[x])
    assert order == ["before", "accumulated", "after"]


def test_s21_an_exhausted_generator_of_parameters_is_no_silent_success() -> None:
    x = cr.tensor(1.0, requires_grad=True)
    parameters = (p for p in [x])
    cr.autograd_grad(x * 2, parameters)
    with pytest.raises(RuntimeError, match="cannot be empty"):
        cr.autograd_grad(x * 2, parameters)


def test_s37_an_alias_made_under_no_grad_by_a_custom_function_refuses_writes() -> None:
    alias = cr.autograd_function(lambda ctx, x: x[:], lambda ctx, g: g)
    x = cr.ones(2, requires_grad=True)
    with cr.no_grad():
        view = alias(x)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        view.zero_()
    assert x.tolist() == [1, 1]


def test_s45_numbers_are_not_packed() -> None:
    packed = []

    def pack(t: cr.Tensor) -> cr.Tensor:
        packed.append(t.tolist())
        return t

    x = cr.tensor([2.0, 4.0], requires_grad=True)
    with cr.saved_tensors_hooks(pack, lambda t: t):
        y = (x * 3 + x / 2 - 1).sum()
    y.backward()
    assert packed == []
    assert x.grad.tolist() == [3.5, 3.5]


def test_s56_a_context_kept_past_its_graph_says_that_its_values_are_gone() -> None:
    kept = []

    def backward(ctx: Any, g: cr.Tensor) -> cr.Tensor:
        kept.append(ctx)
        return g

    def forward(ctx: Any, x: cr.Tensor) -> cr.Tensor:
        ctx.save_for_backward(x)
        return x * 1

    x = cr.tensor([7.0], requires_grad=True)
    y = cr.autograd_function(forward, backward)(x)
    y.backward(retain_graph=True)
    (saved,) = kept[0].saved_tensors
    assert saved.tolist() == [7]
    y.backward()
    del y
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        _ = kept[0].saved_tensors


@pytest.mark.parametrize("name", ["std", "var", "sum", "max", "argmax"])
def test_a_bool_is_no_dimension(name: str) -> None:
    """PyTorch's `x.std(False)` means unbiased=False: never the first dimension."""
    x = cr.tensor([[1.0, 2.0], [4.0, 8.0]])
    try:
        result = getattr(x, name)(False)
    except TypeError:
        return
    assert np.shape(result) == ()


def test_s01_floor_division_is_flat_and_not_cut_off() -> None:
    x = cr.tensor([1.5, -2.5], requires_grad=True)
    (x // 1 + x).sum().backward()
    assert x.grad.tolist() == [1, 1]
    assert (x // 1).requires_grad == x.floor().requires_grad
    assert x.div(2, rounding_mode="floor").requires_grad
