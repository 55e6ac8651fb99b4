"""gradcheck: right rules pass, planted wrong ones fail, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd.backward import autograd_grad
from chainrule.autograd.function import autograd_function, once_differentiable
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.checks import GradcheckError, gradcheck, gradgradcheck
from chainrule.errors import AutogradError, DTypeError
from chainrule.primitives import elementwise

conj = elementwise.conj.apply


def leaf(shape: Any = (2, 3), seed: int = 0, dtype: str = "float64") -> Tensor:
    """Return a random leaf that requires grad, away from kinks at zero."""
    source = np.random.default_rng(seed)
    values = source.uniform(0.3, 1.7, shape) * source.choice([-1, 1], shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * source.uniform(0.3, 1.7, shape)
    return cr.tensor(values.astype(dtype), requires_grad=True)


def squaring(rule: Callable[[Any, Any], Any]) -> Any:
    """Return x * x with the backward ``rule(g, x)``."""

    @autograd_function
    def square(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x=x)
        return x * x

    @square.backward
    def _(ctx: Any, grad_output: Any) -> Any:
        return rule(grad_output, ctx.saved_variables.x)

    return square


# --- verdicts, PyTorch's too ----------------------------------------------------------------------

RULES: dict[str, tuple[Callable[[Any, Any], Any], bool, bool]] = {
    "right": (lambda g, x: 2 * g * x, True, True),
    "factor": (lambda g, x: 2.001 * g * x, False, True),
    "sign": (lambda g, x: -2 * g * x, False, True),
    "transposed": (lambda g, x: 2 * (g * x).T, False, True),
    "detached": (lambda g, x: 2 * g * x.detach(), True, False),
    "missing": (lambda g, x: None, False, True),
    "not multiplied by g": (lambda g, x: 2 * x, False, True),
}


@pytest.mark.parametrize(("rule", "first", "second"), RULES.values(), ids=RULES)
def test_verdicts(rule: Callable[[Any, Any], Any], first: bool, second: bool) -> None:
    x = leaf((3, 3))
    for fast in (False, True):
        options = {"raise_exception": False, "fast_mode": fast}
        assert gradcheck(squaring(rule), x, **options) == first
        if rule is not RULES["missing"][0] and rule is not RULES["not multiplied by g"][0]:
            assert gradgradcheck(squaring(rule), x, **options) == second


@pytest.mark.parametrize("name", [name for name in RULES if name != "missing"])
def test_verdicts_are_those_of_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch")
    rule, first, _ = RULES[name]

    class Square(torch.autograd.Function):  # type: ignore[misc, name-defined, unused-ignore]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return rule(g, *ctx.saved_tensors)

    x = torch.tensor(leaf((3, 3)).detach().numpy(), requires_grad=True)
    theirs = torch.autograd.gradcheck(Square.apply, x, raise_exception=False, atol=1e-7, rtol=1e-5)
    assert theirs == first


def test_a_factor_of_1_0001_is_caught() -> None:
    with pytest.raises(GradcheckError, match=r"1\.0001 times the numerical"):
        gradcheck(squaring(lambda g, x: g * x * 2.0002), leaf())


COMPLEX: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "exp": (lambda x: x.exp(), lambda x: x.exp()),
    "product": (lambda x: x * x, lambda x: x * x),
    "quotient": (lambda x: 1 / x, lambda x: 1 / x),
    "conj": (lambda x: x * conj(x), lambda x: x * x.conj()),
    "modulus": (lambda x: abs(x), lambda x: abs(x)),
    "turned": (lambda x: x * (2 + 3j), lambda x: x * (2 + 3j)),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex(name: str) -> None:
    ours, theirs = COMPLEX[name]
    z = leaf(3, dtype="complex128")
    assert gradcheck(ours, z)
    assert gradcheck(ours, z, fast_mode=True, check_forward_ad=True)
    assert gradgradcheck(ours, z, fast_mode=True)
    torch = pytest.importorskip("torch")
    same = torch.tensor(z.detach().numpy(), requires_grad=True)
    assert torch.autograd.gradcheck(theirs, same)


def test_a_forgotten_conjugate_is_caught() -> None:
    wrong = squaring(lambda g, x: 2 * g * x)
    right = squaring(lambda g, x: 2 * g * conj(x))
    z = leaf(3, dtype="complex128")
    assert gradcheck(right, z)
    assert gradgradcheck(right, z)
    for fast in (False, True):
        assert not gradcheck(wrong, z, raise_exception=False, fast_mode=fast)


# --- random directions ---------------------------------------------------------------------------


def test_fast_mode_notices_one_wrong_element_of_many() -> None:
    shift = np.zeros(10_000)
    shift[7_000] = 0.03
    calls = []

    def function(x: Tensor) -> Tensor:
        calls.append(x)
        return squaring(lambda g, x: g * (2 * x + cr.tensor(shift * scale)))(x)

    scale = 0.0
    assert gradcheck(function, leaf(10_000), fast_mode=True)
    assert len(calls) < 10
    scale = 1.0
    with pytest.raises(GradcheckError, match=r"(?s)mismatch for output 0 .* a random direction"):
        gradcheck(function, leaf(10_000), fast_mode=True)


def test_fast_mode_checks_each_pair_of_output_and_input() -> None:
    wrong = squaring(lambda g, x: g * x)
    inputs = leaf(3), leaf(4, 1)

    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return (x * y.sum(), wrong(y), x > 0, cr.zeros((), dtype=cr.float64))

    with pytest.raises(GradcheckError, match="output 1 with respect to input 1, first order"):
        gradcheck(function, inputs, fast_mode=True)
    with pytest.raises(GradcheckError, match="computed with forward mode mismatch"):
        gradcheck(
            squaring_with(lambda t, x: 3 * t * x), leaf(3), check_forward_ad=True, fast_mode=True
        )
    with pytest.raises(GradcheckError, match="not multiplied by grad_output"):
        gradcheck(squaring(lambda g, x: 2 * g * x + 1e-4 * g * g), leaf(3), atol=1, fast_mode=True)
    with pytest.raises(GradcheckError, match="along a random direction of input 0"):
        gradcheck(
            lambda x: x if bool((x == 1).all()) else cr.cat([x, x]),
            cr.ones(1, dtype=cr.float64, requires_grad=True),
            fast_mode=True,
        )


# --- what is checked ------------------------------------------------------------------------------


def test_several_inputs_and_outputs() -> None:
    def function(x: Tensor, n: int, w: Tensor) -> tuple[Any, ...]:
        return x @ w.T, (x * n).sum(), x > 0

    assert gradcheck(function, (leaf(), 3, leaf((4, 3), 1)))
    assert gradgradcheck(function, [leaf(), 3, leaf((4, 3), 1)])


def test_an_unused_input_has_the_gradient_zero() -> None:
    assert gradcheck(lambda x, y: x * 2, (leaf(), leaf()))


def test_only_tensors_that_require_grad_are_checked() -> None:
    broken = squaring(lambda g, x: g)
    assert gradcheck(lambda x, y: x * broken(y), (leaf(), leaf().detach()))
    assert not gradcheck(lambda x, y: x * broken(y), (leaf(), leaf()), raise_exception=False)


def test_a_function_may_close_over_its_inputs() -> None:
    w, b = leaf((3, 3)), leaf(3)
    assert gradcheck(lambda *parameters: w @ w + b, (w, b))
    broken = squaring(lambda g, x: g)
    assert not gradcheck(lambda *parameters: broken(w), (w, b), raise_exception=False)


def test_inputs_that_are_no_leaves_views_or_written_to() -> None:
    x = leaf() * 2
    assert gradcheck(lambda x: x * x, x)
    assert gradcheck(lambda x: x * x, leaf((3, 1)).expand(3, 4))
    assert gradcheck(lambda x, w: x.mul_(w), (x, leaf(seed=1)))
    assert gradgradcheck(lambda x, w: x.mul_(w), (x, leaf(seed=1)))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1,)])
def test_shapes(shape: Any) -> None:
    assert gradcheck(lambda x: x * x, leaf(shape))
    assert gradgradcheck(lambda x: x * x, leaf(shape))


def test_large_numbers_are_stepped_over() -> None:
    x = cr.tensor(np.array([1e12, -3e15]), requires_grad=True)
    assert gradcheck(lambda x: x * 2, x)


@pytest.mark.filterwarnings("error")
def test_infinities_fail_quietly() -> None:
    x = cr.tensor(np.array([1.0]), requires_grad=True)
    assert not gradcheck(lambda x: x * np.inf, x, raise_exception=False)


def test_nothing_of_the_callers_changes() -> None:
    x, n = leaf(), cr.tensor(np.arange(3.0))
    x.grad = cr.ones_like(x)
    before = (x._array, x._array.copy(), x.grad, n._array.copy(), x._version, n._version)

    def function(x: Tensor, n: Tensor) -> Tensor:
        n.add_(1)
        return x * n

    gradcheck(function, (x, n), raise_exception=False)
    gradgradcheck(function, (x, n), raise_exception=False)
    assert x._array is before[0]
    assert np.array_equal(x._array, before[1])
    assert x.grad is before[2]
    assert np.array_equal(x.grad._array, np.ones((2, 3)))
    assert np.array_equal(n._array, before[3])
    assert (x._version, n._version) == before[4:]
    with pytest.raises(ZeroDivisionError):
        gradcheck(lambda x, n: 1 // 0, (x, n))
    assert x._array is before[0]


def test_under_no_grad() -> None:
    with no_grad():
        assert gradcheck(lambda x: x * x, leaf())
        assert gradgradcheck(lambda x: x * x, leaf())


def test_cotangents_of_ones_own() -> None:
    x, g = leaf(), leaf(seed=1)
    assert gradgradcheck(lambda x: x * x, x, g)
    assert gradgradcheck(lambda x: x * x, (x,), [g.detach()])


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
def test_no_input_requires_grad(check: Any) -> None:
    with pytest.raises(ValueError, match="expects at least one input tensor to require gradient"):
        check(lambda x, n: x * n, (leaf().detach(), 3))


@pytest.mark.parametrize("check", [gradcheck, gradgradcheck])
@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64"])
def test_single_precision(check: Any, dtype: str) -> None:
    double = "complex128" if dtype == "complex64" else "float64"
    with pytest.raises(DTypeError, match=rf"input 0 \('x'\) is {dtype}.*{double}'"):
        check(lambda x: x * x, leaf(dtype=dtype), raise_exception=False)


def test_an_output_in_single_precision() -> None:
    with pytest.raises(DTypeError, match="output 0 is float32"):
        gradcheck(lambda x: x.detach().to("float32"), leaf())


def test_no_tensor_comes_back() -> None:
    with pytest.raises(TypeError, match="must return a tensor"):
        gradcheck(lambda x: 3, leaf())


def test_a_refused_second_derivative_is_not_a_wrong_one() -> None:
    rule = squaring(lambda g, x: 2 * g * x)
    rule.backward(once_differentiable(rule.spec.backward_rule))
    assert gradcheck(rule, leaf())
    with pytest.raises(AutogradError, match="once_differentiable"):
        gradgradcheck(rule, leaf(), raise_exception=False)


# --- what is found, and how it is said ------------------------------------------------------------


def test_the_elements_and_the_ratio() -> None:
    def function(x: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
        return x * 1.0, squaring(lambda g, x: 2 * 2.001 * g * x)(scale)

    with pytest.raises(GradcheckError) as caught:
        gradcheck(function, (leaf(), cr.tensor(np.array([1.0, 3.0]), requires_grad=True)))
    text = str(caught.value)
    assert "Jacobian mismatch for output 1 with respect to input 1, first order" in text
    assert "element [1] of output 1 with respect to element [1] of input 1 ('scale')" in text
    assert "analytical: 12.006" in text
    assert "numerical:  6" in text or "numerical:  5.99999" in text
    assert "2.001 times the numerical one, wherever they differ. 2 of 4 numbers are wrong" in text


TEXTS: dict[str, tuple[Callable[..., Any], str]] = {
    "sign": (squaring(lambda g, x: -2 * g * x), "wrong sign"),
    "transposed": (squaring(lambda g, x: (2 * g * x).T), "right except for a transposition"),
    "missing": (squaring(lambda g, x: None), "No gradient arrives at all"),
    "detached": (lambda x: x.detach() * 2, "no output requires grad.*was detached"),
    "variadic": (lambda *xs: squaring(lambda g, x: g)(xs[0]), r"input 0 \('xs\[0\]'\)"),
    "constant": (squaring(lambda g, x: 2 * x), "backward not multiplied by grad_output"),
    "squared": (squaring(lambda g, x: 2 * g * g * x), "backward not multiplied by grad_output"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str) -> None:
    function, text = TEXTS[name]
    x = leaf((3, 3)) if name == "transposed" else leaf(())
    with pytest.raises(GradcheckError, match=f"(?s){text}"):
        gradcheck(function, x)
    assert issubclass(GradcheckError, AutogradError)


def test_the_parts_of_complex_outputs() -> None:
    with pytest.raises(GradcheckError, match="the real part of output 0"):
        gradcheck(squaring(lambda g, x: g), leaf((), dtype="complex128"))


def test_other_wrong_pairs_are_listed() -> None:
    wrong = squaring(lambda g, x: g)
    with pytest.raises(
        GradcheckError, match=r"Also wrong: output 0 with respect to input 1 \('b'\)"
    ):
        gradcheck(lambda a, b: wrong(a) + wrong(b), (leaf(), leaf()))


def test_functions_that_change_from_run_to_run() -> None:
    source = np.random.default_rng()
    noise: Any = lambda x: x * source.uniform(1, 2)  # noqa: E731
    with pytest.raises(GradcheckError, match="not deterministic: output 0"):
        gradcheck(noise, leaf())
    with pytest.raises(GradcheckError, match="not deterministic"):
        gradgradcheck(noise, leaf())
    assert not gradcheck(noise, leaf(), raise_exception=False)


def test_backwards_that_change_from_run_to_run() -> None:
    calls = []

    def rule(g: Any, x: Any) -> Any:
        calls.append(None)
        return 2 * g * x * (1 + 1e-6 * len(calls))

    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(squaring(rule), leaf(()), rtol=1e-3)


def test_the_second_order_names_its_gradients() -> None:
    with pytest.raises(GradcheckError) as caught:
        gradgradcheck(squaring(lambda g, x: 2 * g * x.detach()), leaf(()))
    text = str(caught.value)
    assert "second order" in text
    assert "the second derivative of the gradient of input 0 ('x')" in text


def test_a_wrong_second_derivative_for_the_cotangent() -> None:
    def function(x: Tensor) -> Any:
        return squaring(lambda g, x: 2 * g.detach() * x)(x)

    with pytest.raises(GradcheckError, match="the gradient that output 0 receives"):
        gradgradcheck(function, leaf(()))


def test_one_of_two_gradients_is_cut_off() -> None:
    @autograd_function
    def product(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return x * y

    @product.backward
    def _(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y, (g * x).detach()

    assert gradcheck(product, (leaf(), leaf()))
    with pytest.raises(
        GradcheckError, match=r"gradient of input 1 \('y'\).*(?s:.*)doesn't require"
    ):
        gradgradcheck(product, (leaf(), leaf()))


def test_third_order_by_hand() -> None:
    def gradient(x: Tensor) -> Any:
        return autograd_grad((x * x * x * x).sum(), [x], create_graph=True)[0]

    assert gradcheck(gradient, leaf())
    assert gradgradcheck(gradient, leaf())


# --- forward mode ---------------------------------------------------------------------------------


def squaring_with(tangent: Callable[[Any, Any], Any], rule: Any = None) -> Any:
    """Return x * x with the rule ``tangent(t, x)`` for forward mode."""
    square = squaring(rule or (lambda g, x: 2 * g * x))

    @square.jvp
    def _(ctx: Any, t: Any) -> Any:
        return tangent(t, ctx.saved_variables.x)

    return square


def test_forward_mode_is_checked_if_asked_for():
    right, wrong = (
        squaring_with(lambda t, x: 2 * t * x),
        squaring_with(lambda t, x: 2.001 * t * x),
    )
    assert gradcheck(right, leaf(), check_forward_ad=True)
    assert gradcheck(wrong, leaf())
    with pytest.raises(GradcheckError, match="computed with forward mode mismatch for output 0"):
        gradcheck(wrong, leaf(), check_forward_ad=True)


def test_backward_mode_is_left_out_if_asked_for():
    square = squaring_with(lambda t, x: 2 * t * x, lambda g, x: -2 * g * x)
    assert gradcheck(square, leaf(), check_forward_ad=True, check_backward_ad=False)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0"):
        gradcheck(square, leaf(), check_forward_ad=True)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_forward_mode_agrees_for_several_inputs_and_outputs(dtype: str):
    def function(x: Any, y: Any) -> Any:
        return (x @ y.T).exp(), (x * y).sum(0), x * 2, abs(y)

    inputs = [leaf((2, 2), 0, dtype), leaf((3, 2), 1, dtype)[:2].detach().requires_grad_()]
    assert gradcheck(function, inputs, check_forward_ad=True)
    assert gradgradcheck(function, inputs, check_fwd_over_rev=True)


def test_forward_mode_of_the_gradients():
    square = squaring_with(lambda t, x: 2 * t * x)

    def function(x: Any) -> Any:
        return square(x) * x

    assert gradgradcheck(function, leaf(), check_fwd_over_rev=True, check_rev_over_rev=False)
    bent = squaring_with(lambda t, x: 3 * t * x)
    with pytest.raises(GradcheckError, match=r"forward mode mismatch .* second order"):
        gradgradcheck(lambda x: bent(x) * x, leaf(), check_fwd_over_rev=True)


def test_passes_may_differ_by_as_much_as_is_allowed():
    noise = iter(range(10_000))
    jittery = squaring(lambda g, x: 2 * g * x + 1e-9 * (next(noise) % 2))
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(jittery, leaf())
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(jittery, leaf(), nondet_tol=1e-10)
    assert gradcheck(jittery, leaf(), nondet_tol=1e-8)


def test_arguments_of_pytorch_scripts_are_accepted():
    promised = {"check_undefined_grad": False, "check_batched_grad": True, "fast_mode": True}
    assert gradcheck(cr.exp, leaf(), check_batched_forward_grad=True, **promised)
    assert gradgradcheck(cr.exp, leaf(), gen_non_contig_grad_outputs=True, **promised)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: cr.cat([x, x]) if bool((x >= 1).all()) else x,
        lambda x: x.to(cr.float32) if bool((x > 1).all()) else x,
        lambda x: (x, x) if bool((x >= 1).all()) else (x,),
        lambda x: x if bool((x != 1).any()) else x.reshape(1, 1),
    ],
)
def test_outputs_have_one_form_around_the_point(function: Any):
    with pytest.raises(GradcheckError, match=r"same shape and dtype .* index \[0\] of input 0"):
        gradcheck(function, cr.ones(1, dtype=cr.float64, requires_grad=True))


def test_one_of_the_modes_is_checked():
    with pytest.raises(cr.ArgumentError, match="Expected at least one of check_forward_ad"):
        gradcheck(cr.exp, leaf(), check_backward_ad=False)
