"""Programs of several lines with a mistake, from trackers and forums, and the mend as it is said.

Each is a program, words of its error, and what to replace in it by what so that it runs; a ``!``
is before what the replacement has of the words.
"""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import chainrule as cr

FILE = "wrong_turn.py"

RNN = """
rnn, h = cr.nn.RNN(2, 3), cr.zeros(1, 3)
optimizer = cr.optim.SGD(rnn.parameters(), lr=0.1)
for _ in range(2):
    output, h = rnn(cr.ones(4, 2), h)
    optimizer.zero_grad()
    output.sum().backward()
    optimizer.step()
"""

TOTAL = """
total = 0
for _ in range(2):
    loss = (P * P).sum()
    total += loss
    total.backward()
"""

ADVERSARIES = """
inner, outer = cr.nn.Linear(2, 2), cr.nn.Linear(2, 1)
step = cr.optim.SGD(outer.parameters(), lr=0.1).step
fake = inner(cr.ones(3, 2))
first, second = outer(fake).mean(), -outer(fake).mean()
first.backward(retain_graph=True)
step()
second.backward()
"""

RECURRENCE = """
h = cr.zeros(4, 3)
for t in range(1, 4):
    h[t] = cr.tanh(h[t - 1] * P)
h.sum().backward()
"""

WRITING = """
@cr.autograd_function
def f(ctx, x):
    x.clamp_(min=0)
    return x * 1
@f.backward
def _(ctx, g):
    return g
f(P * 2).sum().backward()
"""

NESTED = """
@cr.autograd_function
def f(ctx, x):
    ctx.save_for_backward(x=x)
    return x**2
@f.backward
def _(ctx, g):
    x = ctx.saved_variables.x
    y = x**2
    return cr.autograd_grad(y, x, g)
f(P).sum().backward()
"""

PACKED = """
@cr.autograd_function
def f(ctx, x):
    return x * 2
@f.backward
def _(ctx, g):
    return {"x": (g * 2,)}
f(P).sum().backward()
"""

KEPT = """
kept = []
def f(x):
    kept.append(2 * x)
    return x
cr.vmap(f)(P)
kept[0].backward()
"""

VECTORIZED = """
cr.grad(lambda x: np.vectorize(lambda t: t * t)(x).sum())(np.ones(3))
"""

STATIC = """
class F(cr.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    def backward(self, ctx, g):
        return g * 2
F.apply(P).sum().backward()
"""

TURNS = [
    (
        RNN,
        ["a second time", "!h = h.detach()"],
        "    optimizer.zero_grad()",
        "    h = h.detach()\n    optimizer.zero_grad()",
    ),
    (
        RNN.replace("backward()", "backward(retain_graph=True)"),
        ["modified by an inplace", "SGD.step", "needs !detach()"],
        "cr.ones(4, 2), h)",
        "cr.ones(4, 2), h.detach())",
    ),
    (
        TOTAL,
        ["a second time", "!total += loss.detach()"],
        "total += loss\n    total.backward()",
        "loss.backward()\n    total += loss.detach()",
    ),
    (
        ADVERSARIES,
        ["modified by an inplace", "SGD.step", "compute the loss anew after it"],
        "second.backward()",
        "(-outer(fake).mean()).backward()",
    ),
    (
        ADVERSARIES,
        ["call backward() before the step"],
        "step()\nsecond.backward()",
        "second.backward()\nstep()",
    ),
    (RECURRENCE, ["setitem", "x[i]!.clone()"], "h[t - 1]", "h[t - 1].clone()"),
    (
        RECURRENCE,
        ["a list and join them with !cr.stack("],
        RECURRENCE,
        "h = [P]\nfor t in range(3): h.append(cr.tanh(h[-1] * P))\ncr.stack(h).sum().backward()",
    ),
    (
        WRITING,
        ["argument 'x' in place, by clamp_", "!x = x.clone()"],
        "x.clamp_",
        "x = x.clone()\n    x.clamp_",
    ),
    (
        WRITING,
        ["!ctx.mark_dirty(x)", "and !return x"],
        "return x * 1",
        "ctx.mark_dirty(x)\n    return x",
    ),
    (
        NESTED,
        ["Nothing is recorded here", "under !cr.enable_grad()"],
        "    y = x**2",
        "    with cr.enable_grad():\n        y = x**2",
    ),
    (PACKED, ["returned tuple as the gradient of 'x'", "with ![0]"], "(g * 2,)", "(g * 2,)[0]"),
    (
        KEPT,
        ["was kept", "used after the function had returned", "Return it from the function"],
        "return x\ncr.vmap(f)(P)\nkept[0].backward()",
        "return 2 * x\ncr.vmap(f)(P).sum().backward()",
    ),
    (
        VECTORIZED,
        ["!import chainrule.numpy as np"],
        "\ncr.grad",
        "\nimport chainrule.numpy as np\ncr.grad",
    ),
    (
        STATIC,
        ["!@staticmethod", "!def backward(ctx, g"],
        "    def backward(self, ",
        "    @staticmethod\n    def backward(",
    ),
]


STEP = """
optimizer = cr.optim.SGD([P], lr=0.1)
optimizer.step((P * P).sum())
"""

SHUFFLED = """
class Squares:
    def __getitem__(self, i):
        return cr.ones(2) * i

loader = cr.utils.data.DataLoader(Squares(), shuffle=True)
"""

NORMALIZED = "net = cr.nn.Sequential(cr.nn.BatchNorm1d(3))\nnet(cr.ones(1, 3))\n"

TURNS += [
    (
        STEP,
        ["SGD.step()", "a Tensor", "!loss.backward()"],
        "optimizer.step((P * P).sum())",
        "loss = (P * P).sum(); loss.backward(); optimizer.step()",
    ),
    (
        SHUFFLED,
        ["Squares has no !__len__"],
        "    def __get",
        "    __len__ = lambda self: 3\n    def __get",
    ),
    (NORMALIZED, ["[1, 3]", "!net.eval()", "drop_last"], "net(", "net.eval()\nnet("),
    (
        "cr.save('x', {'w': P})\n",
        ["got dict", "cr.save(obj, path)"],
        "cr.save('x', {'w': P})",
        "import io; cr.save({'w': P}, io.BytesIO())",
    ),
    (
        "cr.ones(2, 3, 4).permute(0, 1)\n",
        ["(0, 1)", "3 dimensions", "!(0, 1, 2)"],
        "(0, 1)",
        "(0, 1, 2)",
    ),
    (
        "cr.ones(3).add_([1.0, 2.0, 3.0])\n",
        ["got list", "!cr.tensor([1.0, 2.0, 3.0])"],
        "[1.0, 2.0, 3.0]",
        "cr.tensor([1.0, 2.0, 3.0])",
    ),
    (
        "import math\nmath.sin(P)\n",
        ["[3] in math.sin(P)", "chainrule.sin"],
        "math.sin(P)",
        "cr.sin(P)",
    ),
]


def run(code: str) -> None:
    linecache.cache[FILE] = (len(code), None, code.splitlines(keepends=True), FILE)
    exec(compile(code, FILE, "exec"), {"cr": cr, "np": np, "P": cr.ones(3, requires_grad=True)})


@pytest.mark.parametrize(("code", "words", "old", "new"), TURNS)
def test_the_error_says_what_to_write_and_that_runs(
    code: str, words: list[str], old: str, new: str
) -> None:
    with pytest.raises(cr.errors.LocatedError) as caught:
        run(code)
    text = " ".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert [word for word in words if word.replace("!", "") not in text] == [], text
    assert FILE in text
    assert old in code
    mended = code.replace(old, new)
    said = [word.partition("!")[2] for word in words if "!" in word]
    assert [word for word in said if word not in mended] == []
    run(mended)


def test_a_kept_tensor_of_vmap_is_no_array_and_its_pass_is_none() -> None:
    kept, x = [], cr.ones(3, requires_grad=True)

    def f(a: cr.Tensor) -> cr.Tensor:
        assert a.detach().numpy().shape == ()  # within the function, it stands for one example
        kept.append(2 * a)
        return a

    cr.vmap(f)(x)
    for use in (lambda: kept[0].detach().numpy(), lambda: kept[0].backward()):
        with pytest.raises(cr.AutogradError, match=r"was kept.*after the function had returned"):
            use()
    assert x.grad is None


def test_rules_of_the_user_take_arrays_of_all_examples_in_a_pass_after_vmap() -> None:
    f = cr.autograd_function(lambda ctx, x: x * 2, lambda ctx, g: cr.from_numpy(g.numpy() * 2))
    x = cr.ones(3, requires_grad=True)
    cr.vmap(f)(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_forward_may_write_to_what_needs_no_gradient() -> None:
    def forward(ctx, x, buffer):
        buffer += 1
        scratch = x.clone()
        scratch.mul_(2)
        return scratch

    f = cr.autograd_function(forward, lambda ctx, g: {"x": 2 * g})
    x, buffer = cr.ones(3, requires_grad=True), cr.zeros(3)
    f(x, buffer).sum().backward()
    assert (x.grad.tolist(), buffer.tolist()) == ([2.0] * 3, [1.0] * 3)
    wrong = cr.autograd_function(lambda ctx, x: x.mul_(2) * 1, lambda ctx, g: 2 * g)
    with cr.no_grad():  # nothing is recorded
        wrong(cr.ones(3, requires_grad=True))
    with pytest.raises(cr.errors.InPlaceError, match=r"'x' in place, by mul_"):
        wrong(cr.ones(3, requires_grad=True)[:2])


def test_names_of_other_libraries_are_explained_where_they_are_imported() -> None:
    for code, mend in [
        ("from chainrule import torch_tensor", "say cr.tensor"),
        ("from chainrule import lax", "say cr.scan"),
        ("from chainrule.random import PRNGKey", "manual_seed"),
        ("from chainrule import keras", "say cr.nn"),
        ("from chainrule.nn import Dense", r"say cr\.nn\.Linear"),
    ]:
        with pytest.raises(ImportError, match=f"cannot import name .*: {mend}|{mend}"):
            run(code)
    run("from chainrule import optim, nn\nfrom chainrule.nn import Linear, functional")
    assert not hasattr(cr, "torch_tensor")
    with pytest.raises(AttributeError, match=r"say cr\.tensor"):
        _ = cr.torch_tensor


def test_warnings_of_losses_are_at_the_users_line() -> None:
    for loss in (cr.nn.functional.mse_loss, cr.nn.MSELoss(), cr.nn.functional.huber_loss):
        with pytest.warns(UserWarning, match=r"write target.reshape\(input.shape\)") as caught:
            loss(cr.ones(3, 1), cr.ones(3))
        assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="say dim=") as caught:
        cr.nn.Softmax()(cr.ones(2, 3))
    assert caught[0].filename == __file__


def test_a_problem_is_given_as_arguments() -> None:
    pytest.importorskip("scipy")
    problem = {"fun": lambda x: (x * x).sum()}
    with pytest.raises(TypeError, match=r"minimize\(\*\*problem, x0=start\)"):
        cr.scipy.optimize.minimize(problem, np.ones(2))
    assert cr.scipy.optimize.minimize(**problem, x0=np.ones(2)).success


def test_a_library_that_reads_numbers_is_named_at_the_users_line() -> None:
    integrate = pytest.importorskip("scipy.integrate")
    a = cr.tensor(2.0, requires_grad=True)
    with pytest.warns(
        UserWarning, match=r"Call chainrule\.scipy\.integrate\.quad, which"
    ) as caught:
        integrate.quad(lambda x: a * x, 0, 1)
    assert caught[0].filename == __file__


def test_an_int_is_the_number_of_draws() -> None:
    d = cr.distributions
    probs = cr.tensor([0.25, 0.75])
    for each in (d.Normal(cr.zeros(2), 1.0), d.Bernoulli(probs=probs), d.Categorical(probs=probs)):
        assert each.sample(3).shape == each.sample((3,)).shape
    assert d.Multinomial(4, probs=probs).sample(3).shape == (3, 2)
    assert d.Normal(0.0, 1.0).rsample(3).shape == (3,)


UNRECORDED = {
    "x.detach().sum().backward()": r"`x.detach\(\)`.*Leave the call out",
    "y = (x * 2).detach()\ny.sum().backward()": r"`\(x \* 2\).detach\(\)`.*Leave the call out",
    "cr.tensor([x[0], x[1]]).sum().backward()": "cr.stack",
    "y = cr.distributions.Normal(x, 1.0).sample()\ny.sum().backward()": "rsample",
    "g, = cr.autograd_grad((x * x).sum(), x)\ng.sum().backward()": "create_graph=True",
    "with cr.no_grad():\n    x = x - 1\nx.sum().backward()": r"rebound.*x.sub_|rebound.*w.sub_",
    "with cr.no_grad():\n    y = x - 1\ny.sum().backward()": "Move what needs a gradient out",
}


@pytest.mark.parametrize("code", UNRECORDED)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_pass_from_a_constant_names_what_ended_its_history(code: str) -> None:
    with pytest.raises(cr.AutogradError, match=f"does not require grad.*{UNRECORDED[code]}") as at:
        run(f"x = P\n{code}")
    assert "wrong_turn.py:2" in str(at.value)
    assert "wrong_turn.py:1" not in str(at.value)
