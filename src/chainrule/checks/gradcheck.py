"""`gradcheck` and `gradgradcheck`: derivatives against central differences."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from chainrule.autograd.backward import autograd_grad
from chainrule.autograd.modes import enable_grad
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.views import current_node
from chainrule.checks.directions import check_directions
from chainrule.checks.numerical import (
    Array,
    CheckSettings,
    Pair,
    Subject,
    all_close,
    central_differences,
    check_precision,
    checked_inputs,
    combine_gradients,
    compared_outputs,
    describe,
    evaluate,
    flat_numpy,
    gradients_from,
    heading,
    jvp_of,
    mismatches,
    tensor_like,
    trial_cotangents,
    vjp,
    vjp_of,
)
from chainrule.checks.report import GradcheckError, names_of
from chainrule.errors import ArgumentError, ArgumentTypeError
from chainrule.interrupts import errstate

__all__ = ["gradcheck", "gradgradcheck"]


def gradcheck(
    function: Callable[..., Any],
    inputs: Any,
    eps: float = 1e-6,
    atol: float = 1e-7,
    rtol: float = 1e-5,
    raise_exception: bool = True,
    *,
    nondet_tol: float = 0.0,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    fast_mode: bool = False,
) -> bool:
    """Check the gradients of a function against central differences.

    Parameters
    ----------
    function : callable
        Takes `inputs`; returns a tensor, or a tuple or list of them. Integer and bool outputs are
        left out, and those that don't require grad where others do.
    inputs : Tensor or sequence
        The arguments. Those that are float64 or complex128 tensors and require grad are checked, in
        every element; everything else is passed unchanged. No argument is modified.
    eps : float, default 1e-6
        The step of the differences, in the unit of the inputs.
    atol, rtol : float, default 1e-7, 1e-5
        Analytical and numerical gradients have to agree to ``atol + rtol * abs(numerical)``. The
        defaults are tighter than PyTorch's: a backward that is wrong by a factor of 1.0001 fails.
    raise_exception : bool, default True
        Raise when the check fails, instead of returning False.
    nondet_tol : float, default 0
        Tolerance between the gradients of two equal passes, apart from the order of summation.
    check_forward_ad, check_backward_ad : bool
        The modes to check: by default, only backward passes.
    check_undefined_grad, check_grad_dtypes, check_batched_grad, check_batched_forward_grad : bool
        Accepted for compatibility with PyTorch, without effect: each backward pass starts at one
        output in any case, without gradients for the others.
    fast_mode : bool, default False
        Check one random direction of each input, weighted at random, the same in every run, instead
        of every element: some ten calls for each input, whatever its size. Errors don't tell which
        elements are wrong. The tolerance is ``atol`` times the larger norm of both random vectors.

    Returns
    -------
    bool
        True if all gradients agree.

    Raises
    ------
    GradcheckError
        If they don't: it names the input, the elements and both numbers. Also if `function`, or its
        backward, isn't deterministic.
    ArgumentError
        If no input requires grad.
    DTypeError
        If an input that requires grad, or an output, is not in double precision.

    Notes
    -----
    f'(x) ≈ (f(x + h) - f(x - h)) / 2h, whose error is about h² f'''/6 from truncation and
    10⁻¹⁶ f/h from rounding: both stay far below the tolerances for functions of size one [1]_.
    Where a function isn't differentiable (relu at 0) the two differ and the check fails; choose
    another point.

    Complex numbers follow PyTorch: the gradient of a real L is ∂L/∂Re z + i ∂L/∂Im z. Both parts of
    every element are perturbed, and both parts of complex outputs are checked.

    A backward must be linear in the gradient that it receives: this is checked with one linear
    combination of all outputs.

    References
    ----------
    .. [1] N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., SIAM 2002, §1.14.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = cr.tensor(np.array([0.3, 2.0]), requires_grad=True)
    >>> gradcheck(lambda x: x * x, x)
    True
    """
    arguments = _as_tuple(inputs)
    subject = Subject(function, arguments, _names(function, arguments))
    settings = CheckSettings(
        eps, atol, rtol, nondet_tol, check_backward_ad, check_forward_ad, fast_mode
    )
    return _run_check(lambda: check_first(subject, settings), raise_exception)


def gradgradcheck(
    function: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    eps: float = 1e-6,
    atol: float = 1e-7,
    rtol: float = 1e-5,
    raise_exception: bool = True,
    *,
    nondet_tol: float = 0.0,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    gen_non_contig_grad_outputs: bool = False,
    fast_mode: bool = False,
) -> bool:
    """Check the gradients of a function's gradients against central differences.

    Parameters
    ----------
    function, inputs, eps, atol, rtol, raise_exception
        As in `gradcheck`.
    grad_outputs : Tensor or sequence of Tensors, optional
        The cotangent of each output that requires grad. Those that require grad are perturbed like
        inputs. By default, numbers from 0.5 to 1.5, the same in every run.
    check_fwd_over_rev, check_rev_over_rev : bool
        The modes in which to check the second derivative: by default, only backward passes.
    nondet_tol, check_undefined_grad, check_grad_dtypes, check_batched_grad, fast_mode
        As in `gradcheck`.
    gen_non_contig_grad_outputs
        Accepted for compatibility with PyTorch, without effect.

    Returns
    -------
    bool
        True if all second derivatives agree.

    Raises
    ------
    GradcheckError, ArgumentError, DTypeError
        As in `gradcheck`. The error of a backward that can't be differentiated (see
        `once_differentiable`) is raised unchanged.

    Notes
    -----
    This is `gradcheck` of the function from inputs and cotangents to gradients, taken with
    ``create_graph=True``. It doesn't check the first derivative: if that is wrong by a constant
    factor, the second derivative agrees with it.

    Examples
    --------
    >>> import numpy as np
    >>> import chainrule as cr
    >>> x = cr.tensor(np.array([0.3, 2.0]), requires_grad=True)
    >>> gradgradcheck(lambda x: x * x * x, x)
    True
    """
    arguments = _as_tuple(inputs)
    first = Subject(function, arguments, _names(function, arguments))
    cotangents = None if grad_outputs is None else _as_tuple(grad_outputs)
    settings = CheckSettings(
        eps, atol, rtol, nondet_tol, check_rev_over_rev, check_fwd_over_rev, fast_mode
    )
    return _run_check(lambda: check_second(first, cotangents, settings), raise_exception)


def _run_check(check: Callable[[], None], raise_exception: bool) -> bool:
    try:
        check()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _as_tuple(values: Any) -> tuple[Any, ...]:
    return (values,) if isinstance(values, Tensor) else tuple(values)


def _names(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the title of each input in errors: its position, and its name if it has one."""
    try:
        bound = inspect.signature(function).bind(*arguments)
    except (TypeError, ValueError):  # no signature, or wrong arguments: the call raises
        return tuple([f"input {i}" for i in range(len(arguments))])
    return tuple([f"input {i} ({name!r})" for i, name in enumerate(names_of(bound))])


# --- checks of first and second derivatives -------------------------------------------------------


def check_first(subject: Subject, settings: CheckSettings) -> None:
    """Raise if the derivatives of `subject` are wrong, or it isn't deterministic."""
    _check_inputs(subject)
    outputs = evaluate(subject)
    if not outputs:
        raise ArgumentTypeError(
            "gradcheck: the function must return a tensor, or a tuple or list of them"
        )
    check_precision(subject, outputs)
    check_deterministic(subject, outputs)
    _check_numbers(subject, outputs)
    positions = compared_outputs(subject, outputs)
    if not (settings.backward or settings.forward):
        raise ArgumentError(
            "Expected at least one of check_forward_ad or check_backward_ad, not none"
        )
    if settings.fast:
        cotangents, sums = check_directions(subject, outputs, positions, settings)
        if settings.backward:
            _check_passes(subject, outputs, cotangents, sums, settings.nondet_tol)
        return
    numerical = central_differences(subject, outputs, positions, settings.eps)
    if settings.backward:
        analytical = vjp_of(subject, outputs, positions)
        _compare(subject, outputs, (analytical, numerical), settings, "Jacobian mismatch")
        check_linear(subject, outputs, analytical, settings.nondet_tol)
    if settings.forward:
        rows = jvp_of(subject, outputs, positions)
        analytical = {
            (o, k): gradients_from(row, outputs[o].dtype.kind == "c")
            for (o, k), row in rows.items()
        }
        what = "Jacobian computed with forward mode mismatch"
        _compare(subject, outputs, (analytical, numerical), settings, what)


def _compare(
    subject: Subject,
    outputs: dict[int, Tensor],
    tables: tuple[dict[Pair, Array], dict[Pair, Array]],
    settings: CheckSettings,
    what: str,
) -> None:
    """Raise if the analytical derivatives (first table) differ from the numerical ones (second)."""
    found = list(mismatches(subject, outputs, tables, settings.atol, settings.rtol))
    if found:
        rest = [
            f"{subject.output_name(m.output)} with respect to {subject.input_names[m.input]}"
            for m in found[1:]
        ]
        also = f"\nAlso wrong: {'; '.join(rest)}." if rest else ""
        raise GradcheckError(
            f"{heading(subject, outputs, found[0][:2], what)}: {describe(subject, found[0])}{also}"
        )


def _check_inputs(subject: Subject) -> None:
    if not checked_inputs(subject):
        raise ArgumentError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them "
            "have requires_grad=True. Call requires_grad_() on the tensors to check"
        )


def _check_numbers(subject: Subject, outputs: dict[int, Tensor]) -> None:
    """Raise for nan, beside which differences are nan, too."""
    named = [(subject.input_names[k], subject.inputs[k]) for k in checked_inputs(subject)]
    named += [(subject.output_name(i), output) for i, output in outputs.items()]
    for name, tensor in named:
        wrong = np.isnan(flat_numpy(tensor))
        if wrong.any():
            where = np.unravel_index(int(wrong.argmax()), tensor.shape)
            raise GradcheckError(
                f"{name} is nan at element {list(map(int, where))}, and so would be its "
                "differences: choose a point where the function is defined"
            )


def check_deterministic(subject: Subject, outputs: dict[int, Tensor]) -> None:
    """Raise if the function returns other numbers when it is run again."""
    again = evaluate(subject)
    for i, output in outputs.items():
        if i not in again or not all_close(flat_numpy(output), flat_numpy(again[i])):
            raise GradcheckError(
                f"the function is not deterministic: {subject.output_name(i)} has other numbers "
                "when it is run again with the same inputs, so finite differences are meaningless. "
                "Fix the seed inside the function, or draw its random numbers outside"
            )


def check_linear(
    subject: Subject, outputs: dict[int, Tensor], table: dict[Pair, Array], nondet_tol: float = 0.0
) -> None:
    """Raise if the gradient from all outputs is not the sum of those from each element."""
    cotangents = trial_cotangents(outputs, sorted({o for o, _ in table}))
    sums = {k: combine_gradients(table, cotangents, k) for k in checked_inputs(subject)}
    _check_passes(subject, outputs, cotangents, sums, nondet_tol)


def _check_passes(
    subject: Subject,
    outputs: dict[int, Tensor],
    cotangents: dict[int, Array],
    sums: dict[int, Array],
    nondet_tol: float,
) -> None:
    """Raise if two equal passes differ, or are not the sums of the gradients that make them up."""
    gradients = vjp(subject, outputs, cotangents)
    again = vjp(subject, outputs, cotangents)
    for k, gradient in gradients.items():
        if not all_close(gradient, again[k], nondet_tol):
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output "
                f"multiple times gives different values, here for {subject.input_names[k]}"
            )
        if not agrees(gradient, sums[k]):
            raise GradcheckError(
                f"backward not multiplied by grad_output: the gradient of {subject.input_names[k]} "
                "is right for some cotangents, but for a sum of them it is not the sum of their "
                "gradients. A backward must be linear in the gradients that it receives"
            )


@errstate(all="ignore")
def agrees(a: Array, b: Array) -> bool:
    """Tell whether two gradients agree up to rounding."""
    scale = np.abs(b).max() if b.size else 0.0
    return np.allclose(a, b, rtol=0, atol=1e-7 * scale + 1e-12, equal_nan=True)


def check_second(
    first: Subject, grad_outputs: tuple[Any, ...] | None, settings: CheckSettings
) -> None:
    """Raise if the derivatives of the gradients of `first` are wrong."""
    _check_inputs(first)
    outputs = evaluate(first)
    tracked = [i for i, output in outputs.items() if output.requires_grad]
    if not tracked:
        check_first(first, settings)  # raises a specific error, if anything is wrong
        return
    check_precision(first, outputs)
    if grad_outputs is None:
        trials = trial_cotangents(outputs, tracked)
        grad_outputs = tuple([tensor_like(trials[i], outputs[i]).requires_grad_() for i in tracked])
    check_first(_gradient_of(first, tracked, grad_outputs), settings)


def _gradient_of(first: Subject, tracked: Sequence[int], grad_outputs: tuple[Any, ...]) -> Subject:
    """Return the function from inputs and cotangents to gradients."""
    count, checked = len(first.inputs), checked_inputs(first)

    @enable_grad()
    def gradients(*arguments: Any) -> tuple[Any, ...]:
        # Taken before the call: a function that writes in place changes the node of its input.
        targets = [make(arguments[k]._array, current_node(arguments[k])) for k in checked]
        result = first.function(*arguments[:count])
        several = result if isinstance(result, tuple | list) else (result,)
        return autograd_grad(
            [several[i] for i in tracked],
            targets,
            arguments[count:],
            create_graph=True,
            allow_unused=True,
        )

    names = [f"the gradient that {first.output_name(i)} receives" for i in tracked]
    return Subject(
        gradients,
        (*first.inputs, *grad_outputs),
        (*first.input_names, *names),
        lambda i: f"the gradient of {first.input_names[checked[i]]}",
        "second",
        strict=True,
    )
