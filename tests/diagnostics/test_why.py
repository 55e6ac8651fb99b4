"""`cr.why`: the commonest questions of four trackers, wrong turns of our own, and what is well."""

from __future__ import annotations

import re
import warnings

import pytest

import chainrule as cr

pytestmark = pytest.mark.filterwarnings("ignore")


def leaf(*values, **settings):
    return cr.tensor(list(values), requires_grad=True, **settings)


# --- the commonest questions ----------------------------------------------------------------------


def grad_after_view():
    x = cr.tensor([0.25, 0.75], requires_grad=True).view(2, 1, 1)
    x.sum().backward()
    return cr.why(x)


def grad_after_product():
    a = cr.tensor(5.0, requires_grad=True) * 0.1
    return cr.why(a)


def grad_of_intermediate():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    return cr.why(y)


def grad_after_conversion():
    x = leaf(1.0, 2.0).double()
    (x * 2).sum().backward()
    return cr.why(x)


def loss_of_argmax():
    q = cr.nn.Linear(3, 2)
    action = cr.argmax(q(cr.ones(1, 3)))
    return cr.why(action)


def requires_grad_on_the_loss():
    w = leaf(1.0, 2.0)
    output = w.detach() * 2
    loss = output.sum()
    loss.requires_grad_()
    loss.backward()
    return cr.why(w)


def backward_in_test_step():
    w = leaf(1.0)

    @cr.no_grad()
    def test_step():
        return (w * 2).sum()

    loss = test_step()
    return cr.why(loss)


def second_backward():
    w = leaf(1.0, 2.0)
    logits = w * w
    loss = logits.exp().sum()
    loss.backward()
    return cr.why(loss)


def computed_outside_of_the_loop():
    w = leaf(1.0, 2.0)
    features = w.exp()
    for _ in range(2):
        loss = features.sum()
        text = cr.why(loss)
        if "all is well" in text:
            loss.backward()
    return text


def written_in_place():
    w = leaf(1.0, 2.0)
    hidden = w.exp()
    loss = hidden.sum()
    hidden += 1
    return cr.why(loss)


def update_by_rebinding():
    w = leaf(1.0, 2.0)
    (w * w).sum().backward()
    w = w - 0.1 * w.grad
    return cr.why(w)


def update_by_rebinding_under_no_grad():
    w = leaf(1.0, 2.0)
    (w * w).sum().backward()
    with cr.no_grad():
        w = w - 0.1 * w.grad
    return cr.why(w)


def nan_gradient():
    x = leaf(0.0)
    (cr.sqrt(x) * 0).sum().backward()
    return cr.why(x)


def recompiled():
    scaled = cr.compile(lambda x, rate: x * rate)
    scaled(cr.ones(2), 0.5)
    scaled(cr.ones(2), 0.25)
    return cr.why(scaled)


def recompiled_for_values():
    part = cr.compile(lambda x, n: x[:n])
    part(cr.ones(5), 2)
    part(cr.ones(5), 3)
    return cr.why(part)


def recompiled_for_shapes():
    total = cr.compile(lambda x: x.sum())
    total(cr.ones(2))
    total(cr.ones(3))
    return cr.why(total)


def value_of_a_box():
    x = leaf(1.0, 2.0)
    y = cr.tensor(float(x.sum().detach()) * 2)
    return cr.why(y)


def integer_range():
    x = cr.arange(4)
    return cr.why(x)


def rounded():
    x = leaf(1.4, 2.6)
    loss = (x.round() ** 2).sum()
    loss.backward()
    return cr.why(x)


def backprop_through_argmax():
    x = leaf(1.0, 2.0)
    index = x.argmax()
    chosen = index.float() * 2
    return cr.why(chosen)


def clamped():
    x = leaf(3.0, -4.0)
    loss = x.clamp(0.0, 1.0).sum()
    loss.backward(retain_graph=True)
    return cr.why(x)


def vector_loss():
    x = leaf(1.0, 2.0)
    loss = x * 2
    return cr.why(loss)


def ended_in_a_mapped_function():
    w = leaf(1.0, 2.0)
    distance = cr.vmap(detached_distance, in_dims=(None, 0))(w, cr.ones(3, 2))
    return cr.why(distance.sum())


def detached_distance(v, row):
    return ((v.detach() - row) ** 2).sum()


def frozen_layer():
    model = cr.nn.Linear(2, 1)
    model.weight.requires_grad_(False)
    model(cr.ones(1, 2)).sum().backward()
    return cr.why(model)


def through_numpy():
    x = leaf(1.0, 2.0)
    doubled = cr.from_numpy(x.detach().numpy() * 2)
    return cr.why(doubled)


def copied_by_tensor():
    x = leaf(1.0, 2.0)
    y = cr.tensor(x * 2) + 1
    return cr.why(y)


def layers_in_a_list():
    class Net(cr.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = cr.nn.Linear(1, 1)
            self.list_of_layers = [cr.nn.Linear(1, 1) for _ in range(4)]

    return cr.why(Net())


def drawn_by_normal():
    mu = leaf(0.0)
    out = cr.normal(mu, cr.ones(1)) ** 2
    return cr.why(out)


def drawn_by_sample():
    mean = leaf(0.0, 0.0)
    m = cr.distributions.Normal(mean, 1.0)
    tunable = m.sample((64,))
    loss = (tunable - 1.0).pow(2).mean()
    return cr.why(mean, loss)


def variable_of_the_loss():
    w = leaf(1.0, 2.0)
    loss = cr.autograd.Variable((w * 2).sum(), requires_grad=True)
    loss.backward()
    return cr.why(w)


def thresholded():
    x = leaf(0.2, 0.7)
    mask = (x > 0.5).float()
    dice = 1 - mask.mean()
    return cr.why(dice)


def accuracy_as_a_loss():
    model = cr.nn.Linear(2, 3)
    predicted = model(cr.ones(4, 2)).argmax(1)
    loss = (predicted != cr.tensor([0, 1, 2, 0])).float().mean()
    return cr.why(model, loss)


def called_with_a_state_dict():
    model = cr.nn.Linear(2, 1)
    out = cr.func.functional_call(model, model.state_dict(), cr.ones(2))
    return cr.why(model.weight, out.sum())


def all_parameters_frozen():
    model = cr.nn.Linear(2, 1)
    for p in model.parameters():
        p.requires_grad = False
    loss = model(cr.ones(2)).sum()
    return cr.why(loss)


def required_too_late():
    x = cr.ones(2)
    y = (x * 2).sum()
    x.requires_grad_()
    return cr.why(x, y)


def parameter_of_a_result():
    w = leaf(1.0)
    p = cr.nn.Parameter(w * 2)
    (p**2).sum().backward()
    return cr.why(w)


def moved_to_a_dtype():
    x = leaf(1.0)
    x = x.to(cr.float64)
    (x * 2).sum().backward()
    return cr.why(x)


def sum_of_probabilities():
    x = leaf(1.0, 2.0)
    loss = x.softmax(0).sum()
    loss.backward(retain_graph=True)
    return cr.why(x)


def underflow():
    x = cr.tensor([1e-4], dtype=cr.float16, requires_grad=True)
    loss = (x * x * 1e-4).sum()
    loss.backward(retain_graph=True)
    return cr.why(x)


def backward_has_returned_none():
    @cr.autograd_function
    def double(ctx, x):
        return 2 * x

    @double.backward
    def _(ctx, g):
        return None

    x = leaf(1.0)
    loss = double(x).sum()
    loss.backward()
    return cr.why(x)


def parameter_of_a_product():
    w = cr.ones(2, requires_grad=True) * 0.01
    (w * w).sum().backward()
    return cr.why(w)


def zeros_of_an_expression():
    x = [leaf(1.0)]
    (x[0] * 0).sum().backward()
    return cr.why(x[0])


def softmax_of_one_element():
    w = cr.ones(3, 1, requires_grad=True)
    loss = -w.softmax(1).log().mean()
    loss.backward(retain_graph=True)
    return cr.why(w)


def weights_of_zeros():
    w1, w2 = cr.zeros(2, 3, requires_grad=True), cr.zeros(3, 1, requires_grad=True)
    loss = ((cr.ones(4, 2) @ w1).tanh() @ w2 - 1.0).pow(2).mean()
    loss.backward(retain_graph=True)
    return cr.why(w1)


def state_carried_over():
    w = leaf(1.0)
    h = cr.zeros(1)
    for step in range(2):
        h = (h + w).tanh()
        loss = h.sum()
        if step == 0:
            loss.backward()
    return cr.why(loss)


def gradient_of_a_line():
    x = leaf(1.0)
    (g,) = cr.autograd_grad((3 * x).sum(), x, create_graph=True)
    return cr.why(g)


def certain_and_right():
    x = cr.tensor([[1000.0, 0.0]], requires_grad=True)
    loss = cr.nn.functional.cross_entropy(x, cr.tensor([0]))
    loss.backward(retain_graph=True)
    return cr.why(x)


GITHUB = "https://github.com/"
ASKED = {
    f"{GITHUB}pytorch/pytorch/issues/666": (
        layers_in_a_list,
        ["`list_of_layers` is a plain list", "nn.ModuleList"],
    ),
    f"{GITHUB}pytorch/pytorch/issues/4620": (drawn_by_normal, ["cr.normal(mu", "* cr.randn("]),
    f"{GITHUB}jeanfeydy/geomloss/issues/31": (drawn_by_sample, ["m.sample((64,))", "rsample()"]),
    f"{GITHUB}speechbrain/speechbrain/issues/735": (
        variable_of_the_loss,
        ["Variable((w * 2).sum(), requires_grad=True)", "a new leaf"],
    ),
    f"{GITHUB}qubvel-org/segmentation_models.pytorch/pull/611": (
        thresholded,
        ["`x > 0.5`", "sigmoid("],
    ),
    f"{GITHUB}tensorflow/tensorflow/issues/15278": (
        accuracy_as_a_loss,
        ["model(cr.ones(4, 2)).argmax(1)", "softmax for argmax"],
    ),
    f"{GITHUB}pytorch/pytorch/issues/92295": (
        called_with_a_state_dict,
        ["model.state_dict()", "dict(module.named_parameters())"],
    ),
    f"{GITHUB}pytorch/pytorch/issues/19778": (grad_after_view, ["only leaves", "retain_grad()"]),
    f"{GITHUB}pytorch/pytorch/issues/91851": (
        grad_after_product,
        ["`a` is the result of MulBackward0", "requires_grad_() after the last operation"],
    ),
    f"{GITHUB}pytorch/pytorch/issues/2677": (grad_of_intermediate, ["SumBackward0", "y.retain"]),
    f"{GITHUB}pytorch/pytorch/issues/12627": (grad_after_conversion, ["only leaves", "x.retain"]),
    f"{GITHUB}pytorch/pytorch/issues/34535": (
        loss_of_argmax,
        ["int64", "cr.argmax(q", "without int"],
    ),
    f"{GITHUB}ronghuaiyang/arcface-pytorch/issues/56": (
        requires_grad_on_the_loss,
        ["The .grad of `w` is None", "w.detach()"],
    ),
    f"{GITHUB}Lightning-AI/pytorch-lightning/issues/19910": (
        backward_in_test_step,
        ["does not require grad", "@cr.no_grad()", "out of the block"],
    ),
    f"{GITHUB}karpathy/nn-zero-to-hero/issues/31": (
        second_backward,
        ["has been walked", "ExpBackward0", "retain_graph=True", "Compute it anew"],
    ),
    f"{GITHUB}lucidrains/denoising-diffusion-pytorch/issues/109": (
        computed_outside_of_the_loop,
        ["has been walked", "features = w.exp()"],
    ),
    f"{GITHUB}Seanny123/da-rnn/issues/14": (
        written_in_place,
        ["backward() would fail", "overwritten in place", "hidden += 1", "clone()"],
    ),
    f"{GITHUB}BaiTheBest/SparseLLM/issues/13": (
        update_by_rebinding,
        ["rebinds w", "update it in place under no_grad()"],
    ),
    f"{GITHUB}dfalbel/torch/issues/7": (
        update_by_rebinding_under_no_grad,
        ["`w` does not require grad", "with cr.no_grad()", "w -= lr * w.grad"],
    ),
    f"{GITHUB}jax-ml/jax/issues/475": (nan_gradient, ["1 nan of 1", "detect_anomaly()"]),
    f"{GITHUB}jax-ml/jax/issues/4274": (
        recompiled,
        ["traced 2 times", "rate is any float, was 0.5", "serves all values of the number"],
    ),
    f"{GITHUB}jax-ml/jax/issues/7155": (
        recompiled_for_shapes,
        ["traced 2 times", "float32 [3], was float32 [2]", "Each new shape"],
    ),
    f"{GITHUB}HIPS/autograd/issues/427": (value_of_a_box, ["number", "history", "float("]),
    f"{GITHUB}HIPS/autograd/issues/229": (
        integer_range,
        ["int64", "only floating-point", ".float()"],
    ),
    f"{GITHUB}HIPS/autograd/issues/566": (
        rounded,
        ["0 in every", "RoundBackward0", "step function"],
    ),
    f"{GITHUB}pytorch/pytorch/issues/1339": (
        backprop_through_argmax,
        ["x.argmax()", "Integers have no derivative", "softmax"],
    ),
    f"{GITHUB}pytorch/pytorch/issues/7002": (clamped, ["ClampBackward", "outside of its limits"]),
    f"{GITHUB}cybertronai/autograd-hacks/issues/8": (
        vector_loss,
        ["2 elements", "loss.sum().back"],
    ),
    f"{GITHUB}amdegroot/ssd.pytorch/issues/109": (frozen_layer, ["frozen", "weight"]),
    "https://stackoverflow.com/questions/63582590": (through_numpy, ["x.detach()", "as far as"]),
    f"{GITHUB}pytorch/pytorch/issues/8474": (copied_by_tensor, ["cr.tensor(x * 2)", "x.clone()"]),
}


@pytest.mark.parametrize("url", ASKED)
def test_a_question_of_a_tracker_is_answered(url):
    function, parts = ASKED[url]
    text = function()
    assert [part for part in parts if part not in text] == [], text
    check_form(text)


def check_form(text):
    """Check that a paragraph is one, and not too long for a beginner."""
    assert isinstance(text, str)
    assert repr(text) == str(text)
    assert "\n" not in text
    assert text[0].isupper() or text[0] == "`"
    assert text[-1] in ".:;)"
    assert len(text) < 900


# --- wrong turns of our own -----------------------------------------------------------------------


def no_pass_yet():
    w = leaf(1.0)
    loss = (w * 2).sum()
    assert loss.requires_grad
    return cr.why(w)


def never_used():
    w, x = leaf(1.0), leaf(2.0)
    loss = (x * 2).sum()
    return cr.why(w, loss)


def nobody_holds_a_loss():
    w = leaf(1.0)
    return cr.why(w)


def returned_by_autograd_grad():
    w = leaf(1.0, 2.0)
    loss = (w * w).sum()
    cr.autograd_grad(loss, w)
    return cr.why(w)


def dead_relu():
    w = leaf(-1.0, -2.0)
    loss = cr.relu(w * 3).sum()
    loss.backward(retain_graph=True)
    return cr.why(w)


def saturated():
    w = leaf(1000.0, 2000.0)
    loss = cr.sigmoid(w).sum()
    loss.backward(retain_graph=True)
    return cr.why(w)


def masked():
    w = leaf(1.0, 2.0)
    loss = cr.where(w > 5, w, 0.0).sum()
    loss.backward(retain_graph=True)
    return cr.why(w)


def zero_factor():
    w, mask = leaf(1.0, 2.0), cr.zeros(2)
    loss = (w * mask).sum()
    loss.backward(retain_graph=True)
    return cr.why(w)


def not_selected():
    w = leaf(1.0, 2.0, 3.0)
    rest = w * 1
    loss = (rest[0:0].sum() + 1.0) ** 2
    loss.backward(retain_graph=True)
    return cr.why(w)


def lost_maximum():
    w, big = leaf(1.0), cr.tensor([5.0])
    loss = cr.maximum(w, big).sum()
    loss.backward(retain_graph=True)
    return cr.why(w)


def cancelling():
    w = leaf(1.0, 2.0)
    loss = (w - w).sum()
    loss.backward(retain_graph=True)
    return cr.why(w)


def released_before_asking():
    w = leaf(-1.0)
    loss = cr.relu(w.exp() - 9).sum()
    loss.backward()
    return cr.why(w)


def complex_loss():
    z = cr.tensor(1j, requires_grad=True)
    loss = z * z
    return cr.why(loss)


def forgotten_backward():
    @cr.autograd_function
    def double(ctx, x):
        return x * 2

    loss = double(leaf(1.0)).sum()
    return cr.why(loss)


def backward_returns_none():
    @cr.autograd_function
    def double(ctx, x):
        return x * 2

    @double.backward
    def _(ctx, g):
        return None

    w = leaf(1.0)
    loss = double(w).sum()
    return cr.why(w, loss)


def frozen_leaf():
    w = leaf(1.0).requires_grad_(False)
    return cr.why(w)


def through_data():
    w = leaf(1.0)
    y = w.data * 2
    return cr.why(y)


def inside_a_helper():
    w = leaf(1.0)

    def normalised(t):
        return t.detach() / 2

    y = normalised(w)
    return cr.why(y)


def kept_but_no_pass():
    y = leaf(1.0) * 2
    y.retain_grad()
    return cr.why(y)


def traced_anew_at_each_call():
    kept = []

    @cr.compile
    def grow(x):
        kept.append(x * 2)
        return x

    grow(cr.ones(2))
    return cr.why(grow)


def numpy_by_choice():
    f = cr.compile(lambda x: x.sum(), backend="numpy")
    f(cr.ones(2))
    return cr.why(f)


def not_called():
    return cr.why(cr.compile(lambda x: x))


def eager_within_anomaly_mode():
    f = cr.compile(lambda x: x.sum())
    with cr.detect_anomaly():
        return cr.why(f)


def plain_function():
    return cr.why(leaf)


def infinite_gradient():
    x = leaf(0.0)
    x.sqrt().sum().backward()
    return cr.why(x)


def recording_is_off():
    with cr.no_grad():
        return cr.why(cr.ones(2))


def hook_sets_it_to_zero():
    w = leaf(1.0)
    w.register_hook(lambda g: g * 0)
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    return cr.why(w)


def gradient_penalty():
    x = leaf(1.0, 2.0)
    (g,) = cr.autograd_grad((x**2).sum(), x)
    penalty = (g**2).sum()
    return cr.why(penalty)


def penalty_of_grad():
    x = leaf(1.0, 2.0)
    (x**2).sum().backward()
    penalty = (x.grad**2).sum()
    return cr.why(penalty)


def gradient_itself():
    x = leaf(1.0, 2.0)
    (x**2).sum().backward()
    return cr.why(x.grad)


def parameter_without_use():
    model = cr.nn.Sequential(cr.nn.Linear(2, 2), cr.nn.Linear(2, 1))
    loss = model[0](cr.ones(1, 2)).sum()
    loss.backward()
    return cr.why(model, loss)


class Cutting(cr.nn.Module):
    """A module that leaves the graph between its layers."""

    def __init__(self):
        super().__init__()
        self.first, self.last = cr.nn.Linear(2, 3), cr.nn.Linear(3, 1)

    def forward(self, x):
        hidden = cr.relu(self.first(x))
        hidden = cr.from_numpy(hidden.detach().numpy())
        return self.last(hidden)


def layer_before_a_conversion():
    model = Cutting()
    loss = model(cr.ones(1, 2)).sum()
    loss.backward()
    weight = model.first.weight
    return cr.why(weight, loss)


def module_with_a_conversion():
    model = Cutting()
    loss = model(cr.ones(1, 2)).sum()
    loss.backward()
    return cr.why(model)


def removed_by_zero_grad():
    w = leaf(1.0)
    optimizer = cr.optim.SGD([w], lr=0.1)
    loss = (w * w).sum()
    loss.backward()
    optimizer.zero_grad()
    return cr.why(w)


def assigned_again_later():
    w = leaf(1.0)
    y = w.detach() * 2
    text = cr.why(y)
    y = cr.tensor([1.0])
    assert y is not None
    return text


OWN = {
    ended_in_a_mapped_function: ["`v.detach()`", "detached_distance", "Leave the call out"],
    all_parameters_frozen: ["`model`", "is frozen", "model.requires_grad_()"],
    required_too_late: ["`x`, of which it was computed, requires grad now", "requires_grad_() bef"],
    parameter_of_a_result: ["cr.nn.Parameter(w * 2)", "a new leaf"],
    moved_to_a_dtype: ["makes a new tensor of x", "x = x.to(cr.float64).detach().requires_grad_()"],
    sum_of_probabilities: ["SoftmaxBackward0", "has the sum 1", "weigh them"],
    underflow: ["float16 rounds it to 0", "amp.GradScaler"],
    backward_has_returned_none: ["If a pass has run, see that the backward of doubleBackward"],
    parameter_of_a_product: ["To make a leaf of it", "has been walked"],
    zeros_of_an_expression: ["ask cr.why(x[0], loss)"],
    softmax_of_one_element: ["SoftmaxBackward0", "dimension of size 1"],
    weights_of_zeros: ["MmBackward0", "other factor is 0"],
    state_carried_over: ["TanhBackward0", "detach() what is carried over"],
    gradient_of_a_line: ["create_graph=True", "linear function", "materialize_grads=True"],
    certain_and_right: ["CrossEntropyLossBackward0", "certain and right"],
    assigned_again_later: ["w.detach()"],
    layer_before_a_conversion: ["hidden.detach()", "in forward", "lost its history"],
    module_with_a_conversion: ["first.weight, first.bias", "hidden.detach()", "in forward"],
    removed_by_zero_grad: ["zero_grad() sets .grad to None"],
    gradient_penalty: ["autograd_grad", "create_graph=True", "in gradient_penalty"],
    penalty_of_grad: ["x.grad", "create_graph=True"],
    gradient_itself: ["it is the .grad of `x`", "create_graph=True"],
    parameter_without_use: ["without a gradient: 1.weight, 1.bias", "`loss` was not computed from"],
    no_pass_yet: ["no backward pass has run", "loss.backward()"],
    never_used: ["`loss` was not computed from it"],
    nobody_holds_a_loss: ["nothing that you hold", "loss.backward()"],
    returned_by_autograd_grad: ["autograd_grad returns", "leaves .grad alone"],
    dead_relu: ["0 in every element", "ReluBackward0", "dead ReLU", "leaky_relu"],
    saturated: ["SigmoidBackward0", "saturated"],
    masked: ["WhereBackward0", "other branch of the mask"],
    zero_factor: ["MulBackward0", "other factor is 0"],
    lost_maximum: ["MaximumBackward0", "selected everywhere"],
    cancelling: ["their sum is 0"],
    released_before_asking: ["graph has been released", "ReluBackward0", "retain_graph=True"],
    complex_loss: ["complex", ".real"],
    forgotten_backward: ["double has no backward", "@double.backward"],
    backward_returns_none: ["doubleBackward", "returned None", "under its name"],
    frozen_leaf: ["requires_grad_(False) was called"],
    through_data: ["w.data", "in the place of its .data"],
    inside_a_helper: ["t.detach()", "in normalised"],
    kept_but_no_pass: ["retain_grad", "no backward pass has come through"],
    traced_anew_at_each_call: ["serves no other call", "Return tensors instead"],
    numpy_by_choice: ['backend="numpy"', "NumPy calls"],
    not_called: ["has not been called yet"],
    eager_within_anomaly_mode: ["runs eagerly here", "detect_anomaly()"],
    recompiled_for_values: ["traced 2 times", "n is 3, was 2", "where the value is read"],
    plain_function: ["function leaf is plain Python", "cr.compile"],
    infinite_gradient: ["1 infinities", "detect_anomaly(infinity=True)"],
    recording_is_off: ["does not require grad", "switched off right here"],
    hook_sets_it_to_zero: ["or a hook", "brings a gradient that is not 0"],
}


@pytest.mark.parametrize("function", OWN, ids=lambda f: f.__name__)
def test_a_wrong_turn_is_explained(function):
    text = function()
    assert [part for part in OWN[function] if part not in text] == [], text
    check_form(text)


def test_what_is_no_evidence_is_not_blamed():
    target, w = cr.tensor([1.0, 0.0]), leaf(1.0, 2.0)
    hidden = w.detach() * cr.tensor([1.0, 2.0])
    loss = cr.where(target > 0.5, hidden, target.detach()).sum()
    text = cr.why(loss)
    assert "w.detach()" in text
    assert "target" not in text.partition("as far as")[0].replace(str(loss), "")


def test_zeros_of_a_slice_of_nothing():
    text = not_selected()
    assert "0 in every element" in text
    check_form(text)


# --- all is well ----------------------------------------------------------------------------------


def test_a_gradient_is_well():
    w = leaf(1.0, 0.0)
    (w * w).sum().backward()
    assert cr.why(w).startswith(
        "All is well: `w` has a gradient, from 0 to 2. 1 of its 2 elements are 0. Passes add up"
    )


def test_a_cut_elsewhere_is_not_mentioned():
    w, x = leaf(1.0, 2.0), leaf(3.0)
    other = x.detach() * 2
    assert not other.requires_grad
    assert "detach" not in cr.why(w)
    assert "x.detach()" in cr.why(x)


def test_a_loss_is_well():
    w = leaf(1.0, 2.0)
    loss = (w * w).sum()
    text = cr.why(loss)
    assert "all is well" in text
    assert "backward() would go to `w`" in text


def test_a_written_value_that_nothing_needs_is_well():
    w = leaf(1.0, 2.0)
    y = w + 1
    loss = y.sum()
    y += 1
    assert "all is well" in cr.why(loss)


def test_modules_and_functions_are_well():
    model = cr.nn.Linear(2, 1)
    model(cr.ones(1, 2)).sum().backward()
    assert cr.why(model).startswith("All is well: each parameter")

    @cr.autograd_function
    def double(ctx, x):
        return x * 2

    @double.backward
    def _(ctx, g):
        return g * 2

    assert cr.why(double).startswith("All is well: double has a backward")
    f = cr.compile(lambda x: x * 2)
    f(cr.ones(2))
    assert "all is well" in cr.why(f)


class Hiding(cr.nn.Module):
    """A module with layers and parameters in plain containers."""

    def __init__(self, layers=None, weights=()):
        super().__init__()
        self.layers, self.weights = layers, weights


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([cr.nn.Linear(2, 1)],), "`0.layers` is a plain list, .* nn.ModuleList"),
        (({"a": cr.nn.Linear(2, 1)},), "`0.layers` is a plain dict, .* nn.ModuleDict"),
        ((None, (cr.nn.Parameter(cr.ones(1)),)), "`0.weights` is a plain tuple, .*ParameterList"),
        (([cr.nn.ReLU(), 3, cr.ones(2)],), ""),
    ],
)
def test_parameters_in_plain_containers_are_found(arguments, words):
    model = cr.nn.Sequential(Hiding(*arguments))
    assert re.search(words or "^Sequential has no parameters, .* train.$", cr.why(model))
    model.append(cr.nn.Linear(2, 1))
    loss = model[1](cr.ones(1, 2)).sum()
    assert re.search(words or r"is None .*loss.backward\(\).$", cr.why(model, loss))
    loss.backward()
    assert re.search(f"^Each .*But {words}" if words else "^All is well", cr.why(model))


def test_asking_changes_nothing():
    w = leaf(-1.0, 2.0)
    fired = []
    w.register_hook(fired.append)
    loss = (cr.relu(w) * 0).sum()
    loss.backward(retain_graph=True)
    before, count = w.grad.clone(), len(fired)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cr.why(w)
        cr.why(w, loss)
        cr.why(loss)
    assert w.grad.tolist() == before.tolist()
    assert len(fired) == count
    loss.backward()


def test_other_things_raise():
    with pytest.raises(TypeError, match="why\\(\\) explains tensors, modules and functions, got"):
        cr.why(3)


# --- under transforms -----------------------------------------------------------------------------


def test_within_transforms():
    texts = []

    def f(x):
        y = x.detach() * 2
        texts.append(cr.why(y))
        z = (x * x).sum()
        texts.append(cr.why(z))
        return z

    cr.grad(f)(cr.ones(2))
    cr.vmap(f)(cr.ones(3, 2))
    cr.vmap(cr.grad(f))(cr.ones(3, 2))
    cr.jvp(f, (cr.ones(2),), (cr.ones(2),))
    assert "x.detach()" in texts[0]
    assert "all is well" in texts[1]
    assert "all is well" in texts[5]
    for text in texts:
        check_form(text)


def test_second_order_views_and_writes():
    w = leaf(1.0, 2.0)
    (g,) = cr.autograd_grad((w**3).sum(), w, create_graph=True)
    assert "backward() on `g` alone would fail" in cr.why(g)
    y = w * 1
    part = y[0]
    y.mul_(2)
    assert "all is well" in cr.why(part)


# --- the mode that remembers ----------------------------------------------------------------------


def test_explain_names_the_exact_line():
    w = leaf(1.0, 2.0)
    with cr.explain():
        with cr.no_grad():
            hidden = w.exp()  # without recording
        loss = (hidden + 1).sum()
        alias = (w * 1).exp()
        other = alias.detach() + 1  # of an alias
        index = w.argmax()
        view = hidden.T[0]
    assert "its history ended at exp, which ran under no_grad()" in cr.why(loss)
    assert "# without recording" in cr.why(loss)
    assert "# without recording" in cr.why(view)
    assert "# of an alias" in cr.why(other)
    assert "int64" in cr.why(index)


def test_explain_sees_operations_of_all_forms_and_compiled_functions():
    w, c = leaf(1.0, 2.0), cr.tensor([1.0, 2.0])
    compiled = cr.compile(lambda x: x * 2)
    with cr.explain():
        with cr.no_grad():
            ended = w * 2  # ended here
        texts = [
            (i, cr.why(t))
            for i, t in enumerate(
                (
                    cr.where(c > 0, ended, c),
                    cr.stack([c, ended]),
                    ended.sum(),
                    ended.T,
                    compiled(ended),
                    ended.unbind()[0],
                )
            )
        ]
        well = cr.why((w * 2).sum())
    assert [pair for pair in texts if "# ended here" not in pair[1]] == []
    assert "all is well" in well


def test_explain_goes_in_and_out_of_vmap():
    w, rows = leaf(1.0, 2.0), cr.ones(3, 2)
    with cr.no_grad():
        unknown = w * 2
    asked = []

    def ends_inside(row):
        with cr.no_grad():
            inner = w * row  # ended inside
        return inner.sum()

    def detached(v, row):
        return (v.detach() * row).sum()  # of a detached

    def product(v, row):
        result = v * row
        asked.append(cr.why(result))
        return result.sum()

    with cr.explain():
        with cr.no_grad():
            ended = w * 2  # ended outside
        found = {
            "# ended inside": cr.vmap(ends_inside)(rows),
            "# of a detached": cr.vmap(detached, (None, 0))(w, rows),
            "# ended outside": cr.vmap(cr.vmap(product), (None, 0), 1)(cr.stack([ended] * 2), rows),
        }
        well = cr.vmap(product, (None, 0))(w, rows)
        not_seen = cr.vmap(product, (None, 0))(unknown, rows)
    texts = {line: cr.why(result) for line, result in found.items()}
    assert [line for line, text in texts.items() if line not in text] == [], texts
    assert "all is well" in cr.why(well.sum())
    assert "its history ended" not in cr.why(not_seen)
    assert "# ended outside" in asked[0]  # within the mapped function, too


def test_explain_remembers_nothing_for_tensors_that_are_gone():
    from chainrule.diagnostics.explain import _CAUSES

    _causes, _tracked = _CAUSES._causes, _CAUSES._tracked
    w = leaf(1.0, 2.0)
    with cr.explain():
        with cr.no_grad():
            y = w * 2
        z = w * 2
    before = len(_causes), len(_tracked)
    del y, z
    assert (len(_causes), len(_tracked)) < before


def test_an_example_of_vmap_and_an_argument_of_grad_are_told_apart_from_leaves():
    texts = []

    def ask(x):
        texts.append(str(cr.why(x)))
        return (x * x).sum()

    x = cr.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    cr.vmap(ask)(x)
    cr.grad(ask)(x.detach())
    assert texts[0].startswith("`x` stands for each of the 2 examples of a running vmap")
    assert texts[1].startswith("`x` belongs to a running transform")
    assert ".grad stays None" in texts[1]


@pytest.mark.parametrize("transform", [cr.vmap, cr.compile])
def test_a_dead_relu_is_found_within_mapped_and_compiled_calls(transform):
    x = cr.tensor([-1.0, -2.0], requires_grad=True)
    loss = transform(lambda row: row.relu())(x).sum()
    loss.backward(retain_graph=True)
    text = cr.why(x, loss)
    assert "It becomes zero at ReluBackward0" in text
    assert "dead ReLU" in text


def test_a_result_says_first_why_its_own_gradient_is_none():
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.sum().backward()
    assert "y.retain_grad()" in cr.why(y)
    assert "has been walked" in cr.why(y)


def test_a_result_of_leaves_that_are_gone_says_so():
    y = cr.tensor(1.0, requires_grad=True).exp()
    assert "no longer exist" in cr.why(y)
