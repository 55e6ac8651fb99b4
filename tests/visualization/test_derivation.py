"""Derivations: formulas, their numbers, LaTeX, and the source of the gradient."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd.graph import GradientEdge
from chainrule.visualization.formulas_text import Formula, latex


def leaf(*shape, dtype=cr.float64):
    values = np.linspace(-1.2, 1.7, int(np.prod(shape))).reshape(shape)
    return cr.tensor(values, dtype=dtype, requires_grad=True)


@cr.autograd_function
def cube(ctx, a, power=3):
    ctx.save_for_backward(a=a)
    return a**3


@cube.backward
def _(ctx, g):
    a = ctx.saved_variables.a
    return {"a": g * 3 * a * a}


def _in_place(x):
    y = x * 2
    y[0] = 5.0
    y[1] *= x[2]
    return (y**2).sum()


def _network(x):
    hidden = cr.nn.functional.relu(cr.ones(5, 3, dtype=cr.float64) @ x + x[0])
    return cr.nn.functional.cross_entropy(hidden, cr.tensor([0, 1, 2, 2, 0]))


def _checkpointed(x):
    return cr.checkpoint(lambda t: t.sin().exp() * t)(x).sum()


def _second_order(x):
    return (cr.autograd_grad((x**3).sum(), x, create_graph=True)[0] ** 2).sum()


PROGRAMS = {
    "sum": (lambda x: ((x * x).sin() * x.exp() + x.tanh() / 2).mean(), leaf(3, 3)),
    "vector": (lambda x: x.sin() * 2, leaf(3)),
    "broadcast": (lambda x: (x * leaf(3, 4).detach() + x[0]).sum(), leaf(3, 1)),
    "in place": (_in_place, leaf(4, 2)),
    "svd": (lambda x: (cr.linalg.svd(x)[1] ** 2).sum(), leaf(3, 2)),
    "split": (lambda x: (x.chunk(2, 1)[0] * x.chunk(2, 1)[1].sin()).sum(), leaf(3, 4)),
    "custom": (lambda x: cube(x.sin()).sum(), leaf(4)),
    "network": (_network, leaf(3, 3)),
    "checkpoint": (_checkpointed, leaf(3)),
    "second order": (_second_order, leaf(3)),
    "complex": (lambda x: ((x * x).exp().abs() ** 2).sum(), leaf(3, dtype=cr.complex128)),
    "dtypes": (lambda x: (x.double() * leaf(3)).sum(), leaf(3, dtype=cr.float32)),
    "gather": (lambda x: x[[0, 0, 1]].cumsum(0).max() + x.logsumexp(1).sum(), leaf(2, 3)),
    "solve": (lambda x: cr.linalg.solve(x @ x.T, x).sum(), leaf(2, 2)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_formulas_and_source_give_the_gradient(name):
    function, x = PROGRAMS[name]
    t = function(x)
    wanted = cr.autograd_grad(t, x, cr.ones_like(t), retain_graph=True)[0].numpy()
    d = cr.derivation(t, x)
    np.testing.assert_allclose(d.value.numpy(), wanted, rtol=1e-6)
    scope = {}
    exec(d.source, scope)
    np.testing.assert_allclose(scope["gradient"](**d.arguments), wanted, rtol=1e-6)
    assert d._repr_latex_().startswith("$$")
    assert str(d).count("{") == 0


@pytest.mark.parametrize("name", ["sum", "network", "svd", "split"])
def test_the_numbers_of_each_step_are_those_of_autograd(name):
    function, x = PROGRAMS[name]
    t = function(x)
    d = cr.derivation(t, x)
    traced = d._traced
    assert len(traced.gradients) > 3
    for (node, index), value in traced.gradients.items():
        edge = GradientEdge(node, index)
        wanted = cr.autograd_grad(t, edge, retain_graph=True)[0].numpy()
        np.testing.assert_allclose(d._arrays[value], wanted, rtol=1e-6, atol=1e-12)
    for step, raw in zip(d.steps, traced.steps, strict=True):
        for part, value in zip(raw.parts, step.values, strict=True):
            if not part.label:
                np.testing.assert_array_equal(value, d._arrays[traced.gradients[part.end]])


def test_the_text_shows_operations_rules_and_formulas():
    x = cr.tensor(2.0, requires_grad=True)
    y = (x * x).sin()
    z = y.exp() + y
    text = str(cr.derivation(z, x, names={"x": x, "y": y, "z": z}))
    for line in (
        "The derivative of z by x",
        "y = sin(t1)",
        "∂/∂x sin(x) = cos(x)",
        "∂/∂x exp(x) = exp(x)",
        "∂z/∂t1 = ∂z/∂y * cos(t1)",
        "∂z/∂y  [via z] = ∂z/∂z",
        "∂z/∂y = [via z] + [via t2]",
        "∂z/∂x = [via t1 (1)] + [via t1 (2)]",
    ):
        assert line in text
    assert "tensor(" not in text
    assert "= tensor(4.)" in str(cr.derivation(z, x, values=True, names={"x": x}))


def test_operations_are_written_as_a_person_would():
    x, v = cr.tensor(2.0, requires_grad=True), leaf(3)
    text = str(cr.derivation(x**3 + (x * x) ** 2, x))
    assert "t1 = x ** 3 " in text
    assert "∂/∂x (x ** 2) = 2 * x" in text
    assert "t1 = v[1] " in str(cr.derivation(v[1].log(), v))
    matrix = cr.ones(2, 2, requires_grad=True)
    assert "t1 = matrix.T " in str(cr.derivation((matrix @ matrix.T).sum(), matrix))
    z = cr.tensor(1 + 2j, requires_grad=True)
    assert "conj(conj(conj(" not in str(cr.derivation((z * z.conj()).real, z))


def test_long_formulas_name_their_repeated_parts():
    x, v = cr.tensor(2.0, requires_grad=True), leaf(3)
    y = cr.atan2(x, x + 1)
    d = cr.derivation(y, x)
    lines = str(d).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("    ∂y/∂x  [via y]"))
    assert lines[at + 1] == "      with s1 = hypot(x, t1)"
    assert lines[at + 2].startswith("           s2 = where(s1 == 0")
    assert r",\quad s_{1} = \operatorname{hypot}" in d._repr_latex_()
    assert " with " not in str(cr.derivation((v.exp() + v.exp()).sum(), v))
    product = cr.derivation(v.cumprod(0).sum(), v).steps[-1].formulas[0][1]
    main, _, parts = product.partition(" with ")
    assert "s4" in main
    assert all(len(part) < 110 for part in parts.split(", s"))
    scope = {"v": v, **{"flip": cr.flip, "concat": cr.concat, "where": cr.where}}  # it is right
    scope |= {"ones": lambda shape, dtype: cr.ones(shape), "float64": cr.float64}
    scope |= {"cumulative_sum": cr.cumulative_sum, "logical_and": cr.logical_and}
    scope |= {"logical_not": cr.logical_not, "isfinite": cr.isfinite}
    scope |= {"ðt1": cr.ones(3, dtype=cr.float64), "t1": v.cumprod(0)}
    for part in re.split(r", (?=s\d+ = )", parts):
        name, _, expression = part.partition(" = ")
        scope[name] = eval(expression, scope)
    (wanted,) = cr.autograd_grad(v.cumprod(0).sum(), v)
    np.testing.assert_allclose(eval(main, scope).detach(), wanted)


def test_operands_that_broadcast_are_summed():
    b = leaf(3)
    loss = (cr.ones(4, 3, dtype=cr.float64) + b).sum()
    assert "∂loss/∂b = (∂loss/∂t1).sum(axis=0" in str(cr.derivation(loss, b))


def test_the_derivative_by_an_intermediate_result():
    x = leaf(3)
    y = x.exp()
    d = cr.derivation((y * y).sum(), y)
    np.testing.assert_allclose(d.value, 2 * y.detach().numpy())


def test_every_elementwise_primitive_has_a_formula():
    """Each rule that multiplies by a partial derivative runs on symbols, and has a text."""
    names = "exp sin cos tan sinh cosh tanh sqrt log log1p expm1 abs square reciprocal sigmoid erf"
    x = cr.tensor([0.3, 0.6], requires_grad=True, dtype=cr.float64)
    for name in names.split():
        function = getattr(cr, name)
        d = cr.derivation(function(x).sum(), x)
        wanted = cr.autograd_grad(function(x).sum(), x)[0].numpy()
        np.testing.assert_allclose(d.value.numpy(), wanted)
        assert d.steps[-1].formulas[0][0] == "x"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a * (b + c)", r"a \cdot \left(b + c\right)"),
        ("ðt2 / (x * x)", r"\frac{1}{x \cdot x} \cdot \frac{\partial z}{\partial t_{2}}"),
        ("-sin(t1) ** 2", r"-\sin\left(t_{1}\right)^{2}"),
        ("(a + b) / 2", r"\frac{a + b}{2}"),
        ("ðy @ w.T", r"\frac{\partial z}{\partial y} \, w^{\top}"),
        ("sqrt(x) - (a - b)", r"\sqrt{x} - \left(a - b\right)"),
        ("t1.sum(axis=0)", r"\operatorname{sum}\left(t_{1}, \mathrm{axis=0}\right)"),
        ("x[0:2]", r"\texttt{x[0:2]}"),
        ("x <= 0", r"x \le 0"),
        ("my_loss", r"\mathrm{my\_loss}"),
    ],
)
def test_latex_of_formulas(text, wanted):
    assert latex(text, "z") == wanted


def test_a_leaf_that_was_written_to_raises():
    x = leaf(3)
    y = (x + 2).sin().sum()
    with cr.no_grad():
        x += 1
    with pytest.raises(cr.InPlaceError, match="which is a leaf"):
        cr.derivation(y, x)


def test_values_are_those_that_were_recorded():
    x = leaf(3)
    y = (x * x).sum()
    wanted = 2 * x.detach().numpy()
    x.data = cr.zeros(3, dtype=cr.float64)  # recorded operations keep the old memory
    np.testing.assert_allclose(cr.autograd_grad(y, x, retain_graph=True)[0], wanted)
    np.testing.assert_allclose(cr.derivation(y, x).value, wanted)


def _cell(carry, row):
    new = (carry * row).tanh()
    return new, new.sum()


def _by_scan(x):
    carry, sums = cr.scan(_cell, x[0], x)
    return carry.sum() + sums.sum()


def _by_branch(x):
    return cr.cond(x.sum() > 0, lambda x: x * x, lambda x: x.sin(), x).sum()


def _two_results(x):
    return x @ x.T, (x * x).sum()


def _of_two_results(x):
    product, total = cr.compile(_two_results)(x * 2)
    return product.sum() * total


def _with_a_custom_function(x):
    return cube(x).sum()


IN_CALLS = {
    "scan": _by_scan,
    "cond": _by_branch,
    "compiled": cr.compile(lambda x: (x * x).sin().sum()),
    "compiled scan": cr.compile(_by_scan),
    "compiled cond": cr.compile(_by_branch),
    "compiled custom function": cr.compile(_with_a_custom_function),
    "several results": _of_two_results,
    "compiled twice": lambda x: cr.compile(_cell)(x[0], cr.compile(lambda x: x.exp())(x))[1],
    "vmap": lambda x: (cr.vmap(lambda row: (row * row).sin().sum())(x) * 2).sum(),
    "vmap with shared": lambda x: cr.vmap(lambda row: (row * x).sum())(x.detach()).sum(),
    "vmap along columns": lambda x: cr.vmap(cr.exp, in_dims=1, out_dims=1)(x)[0].sum(),
    "vmap of vmap": lambda x: cr.vmap(cr.vmap(lambda a: a.sin() * a))(x).sum(),
    "vmap of grad": lambda x: cr.vmap(cr.grad(lambda row: (row**3).sum()))(x).sum(),
    "vmap of a custom function": lambda x: cr.vmap(cube)(x).sum(),
    "compiled vmap": cr.compile(lambda x: cr.vmap(lambda row: (row * row).sum())(x).sum()),
}


@pytest.mark.parametrize("function", [pytest.param(f, id=name) for name, f in IN_CALLS.items()])
def test_the_inside_of_a_call_is_shown_and_its_gradient_is_that_of_the_pass(function):
    x = leaf(3, 4)
    y = function(x)
    found = cr.derivation(y, x)
    wanted = cr.autograd_grad(y, x)[0]
    np.testing.assert_allclose(found.value, wanted, rtol=1e-12)
    space = {}
    exec(found.source, space)
    np.testing.assert_allclose(space["gradient"](**found.arguments), wanted, rtol=1e-12)


def test_steps_of_compiled_and_mapped_calls_have_the_names_and_rules_of_what_they_contain():
    x = leaf(3)
    y = cr.compile(lambda x: (x * x).sin())(x)
    z = y.sum()
    found = cr.derivation(z, x)
    assert [step.operation for step in found.steps] == ["z = sum(y)", "y = sin(t1)", "t1 = x * x"]
    mapped = cr.vmap(lambda row: row.cos())(x)
    total = mapped.sum()
    operations = [step.operation for step in cr.derivation(total, x).steps]
    assert operations[1:] == ["mapped = t2, all examples", "t2 = cos(t1)", "t1 = x, one example"]


def test_a_write_between_a_compiled_call_and_its_derivation_is_noticed():
    x = leaf(3)
    doubled = x * 2
    y = cr.compile(lambda a: a.exp())(x) * doubled
    doubled.mul_(3)
    with pytest.raises(cr.InPlaceError, match="modified by an inplace operation"):
        cr.derivation(y.sum(), x)


def test_errors_name_the_mend():
    x = leaf(3)
    y = (x * x).sum()
    with pytest.raises(cr.ArgumentError, match="t must be a Tensor, got float"):
        cr.derivation(1.0, x)
    with pytest.raises(cr.AutogradError, match=r"x has no history.*cr\.why\(x\)"):
        cr.derivation(y, cr.ones(3))
    with pytest.raises(cr.AutogradError, match="does not depend on the second"):
        cr.derivation(y, leaf(3))
    solved = cr.scipy.optimize.root(lambda z, a: z**3 - a, np.ones(3), args=(x,)).x
    with pytest.raises(cr.AutogradError, match=r"has no formula.*compile the function"):
        cr.derivation(solved.sum(), x)
    y.backward()
    with pytest.raises(cr.FreedGraphError, match="second time"):
        cr.derivation(y, x)


def test_each_op_of_a_long_formula_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[Any, Any]] = []
    expression = Formula.expression

    def noted(self: Formula, op: Any) -> Any:
        written.append((self, op))
        return expression(self, op)

    monkeypatch.setattr(Formula, "expression", noted)
    x = cr.tensor(0.5, requires_grad=True)
    assert str(cr.derivation(cr.special.erfcx(x), x))  # polynomials of high degree
    assert len(written) == len({(id(formula), id(op)) for formula, op in written}) > 20
