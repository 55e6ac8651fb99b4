"""The linter of custom functions: common mistakes, found on the arguments of one call."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from chainrule.autograd.function import AutogradFunction
from chainrule.autograd.tensor import Tensor
from chainrule.checks.gradcheck import (
    agrees,
    check_deterministic,
    check_linear,
    check_second,
)
from chainrule.checks.instrumented_call import (
    LAYOUTS,
    CallRecorder,
    InstrumentedCall,
    missing_gradients,
    node_of,
)
from chainrule.checks.numerical import (
    Array,
    CheckSettings,
    Pair,
    Subject,
    central_differences,
    check_precision,
    checked_inputs,
    compared_outputs,
    describe,
    evaluate,
    flat_numpy,
    mismatches,
    trial_cotangents,
    vjp_of,
)
from chainrule.checks.report import CheckReport, GradcheckError, Problem
from chainrule.errors import ArgumentError, DTypeError, InPlaceError
from chainrule.interrupts import without_collector
from chainrule.primitives import elementwise
from chainrule.transforms import jvp

__all__ = ["check"]

EPS, ATOL, RTOL = 1e-6, 1e-7, 1e-5  # the defaults of gradcheck


def check(spec: AutogradFunction, *args: Any, **kwargs: Any) -> CheckReport:
    """Check a custom function for common mistakes, on these arguments.

    Called as ``function.check(*args, **kwargs)``, where `autograd_function` made `function`, or a
    class derived from `autograd.Function` as ``Class.check(*args, **kwargs)``.

    Parameters
    ----------
    spec : AutogradFunction
        The custom function.
    *args, **kwargs
        Its arguments, as for forward without ctx. They are copied, floating tensors to double
        precision. Tensors that require grad are differentiated; if none does, all floating ones.

    Returns
    -------
    CheckReport
        The checks that were made, what was not checked, and notes.

    Raises
    ------
    GradcheckError
        If there is any problem: it lists all of them, and its `report` has them one by one.
    ArgumentError
        If no argument is a floating or complex tensor.

    Notes
    -----
    The checks find: a wrong first or second derivative (with the worst element and both numbers), a
    gradient that is None or missing although the result depends on its argument, an input changed
    without `mark_dirty`, a changed grad_output, tensors kept on ctx outside `save_for_backward`,
    results that change from run to run, a backward that fails or gives other gradients when not all
    outputs are used, when only one argument requires grad, or when the gradient that it receives is
    broadcast (stride 0) or not contiguous, a wrong jvp, and graphs that outlive their outputs.

    A second derivative that is refused with an error is a note, not a problem.

    Examples
    --------
    >>> import chainrule as cr
    >>> @cr.autograd_function
    ... def square(ctx, x):
    ...     ctx.save_for_backward(x=x)
    ...     return x * x
    >>> @square.backward
    ... def _(ctx, grad_output):
    ...     return grad_output * ctx.saved_variables.x * 2.001
    >>> try:
    ...     check(square.spec, cr.tensor(3.0))
    ... except GradcheckError as error:
    ...     print(error)
    square: 1 problem
      1. wrong first derivative: the first derivative of output 0 with respect to 'x'
         analytical: 6.003
         numerical:  6...
         The analytical one is 1.0005 times the numerical one.
      checked: ...
    """
    instrumented = InstrumentedCall(spec, args, kwargs)
    if not instrumented.checked:
        raise ArgumentError(
            f"{spec.name}.check expects at least one floating or complex tensor among its arguments"
        )
    findings = _Findings(spec.name)
    findings.skip(instrumented)
    if spec.backward_rule is None:
        findings.problem(
            "no backward",
            f"gradients can't flow through it: give a rule with @{spec.name}.backward",
        )
    elif _check_forward(instrumented, findings) and _check_backward(instrumented, findings):
        _check_derivatives(instrumented, findings)
        _check_layouts(instrumented, findings)
        _check_inputs_alone(instrumented, findings)
        _check_memory(instrumented, findings)
    report = findings.report()
    if report.problems:
        raise GradcheckError(str(report), report)
    return report


AutogradFunction.checker = staticmethod(check)


class _Findings:
    """Problems, notes and checks while they are collected."""

    def __init__(self, function: str) -> None:
        self.function = function
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self.checked: list[str] = []
        self.skipped: list[str] = []

    def problem(self, name: str, text: str) -> None:
        self.problems.append(Problem(name, text))

    def skip(self, call: InstrumentedCall) -> None:
        """Report what these arguments leave unchecked."""
        self.skipped += [
            f"the gradient of {name!r}, which doesn't require grad while another argument does: "
            "let both, or none"
            for name in call.left_out
        ]
        if call.spec.jvp_rule is None:
            self.skipped.append("forward mode, since there is no jvp rule")

    def has(self, name: str) -> bool:
        return any(problem.name == name for problem in self.problems)

    @contextmanager
    def guard(self, name: str, when: str) -> Iterator[None]:
        """Report an exception of the user's code as a problem."""
        try:
            yield
        except Exception as error:
            self.problem(name, f"{when}, this was raised: {type(error).__name__}: {error}")

    def report(self) -> CheckReport:
        return CheckReport(
            self.function,
            tuple(self.problems),
            tuple(self.notes),
            tuple(self.checked),
            tuple(self.skipped),
        )


# --- side effects of forward and backward ---------------------------------------------------------


def _check_forward(instrumented: InstrumentedCall, findings: _Findings) -> bool:
    """Report side effects of forward; return whether further checks make sense."""
    findings.checked += ["forward", "determinism"]
    recorder = CallRecorder()
    tensors = tuple(i for i, v in enumerate(instrumented.values) if isinstance(v, Tensor))
    instrumented.dirty = tensors  # copy all until marks are known: a leaf can't be written to
    try:
        outputs = evaluate(instrumented.subject(recorder.function(instrumented.spec)))
    except InPlaceError as error:
        if not recorder.modified_by_forward:
            raise
        findings.problem("input changed", str(error))
        return False
    if not outputs:
        findings.problem("no output", "forward returns no tensor")
        return False
    instrumented.dirty = tuple(recorder.dirty)
    for i in recorder.modified_by_forward:  # unseen, as through NumPy, or without a gradient
        if i not in recorder.dirty:
            findings.problem(
                "input changed",
                f"forward writes to {instrumented.names[i]!r}. Say so with ctx.mark_dirty and "
                "return it, else operations that saved it earlier get wrong gradients unnoticed; "
                "or compute out of place",
            )
    for name in recorder.ctx_tensors:
        findings.problem(
            "tensor on ctx",
            f"ctx.{name} keeps a tensor. Later writes to it go unnoticed, it isn't freed after a "
            "backward pass, and an output kept this way makes a reference cycle: use "
            f"ctx.save_for_backward({name}=...) and read ctx.saved_variables.{name}",
        )
    subject = instrumented.subject()
    try:
        check_deterministic(subject, evaluate(subject))
    except GradcheckError as error:
        findings.problem("not deterministic", str(error))
        return False
    return True


def _check_backward(instrumented: InstrumentedCall, findings: _Findings) -> bool:
    """Report side effects of backward; return whether it runs and leaves its inputs alone."""
    findings.checked.append("backward")
    recorder = CallRecorder()
    subject = instrumented.subject(recorder.function(instrumented.spec))
    outputs = evaluate(subject)
    tracked = [i for i, output in outputs.items() if output.requires_grad]
    if not tracked:
        return True
    before = len(findings.problems)
    with findings.guard("backward raises", "with all outputs used"):
        instrumented.gradients(subject, trial_cotangents(outputs, tracked))
    for i in sorted(set(recorder.modified_by_backward)):
        findings.problem(
            "input changed",
            f"backward writes to {instrumented.names[i]!r}, which belongs to the caller",
        )
    sound = len(findings.problems) == before
    for i in sorted(set(recorder.modified_gradients)):
        findings.problem(
            "grad_output changed",
            f"backward writes to the gradient of output {i} that it receives. Other nodes may "
            "read the same memory: compute a new tensor, grad * 2 and not grad.mul_(2)",
        )
    return sound


# --- derivatives ----------------------------------------------------------------------------------


def _check_derivatives(instrumented: InstrumentedCall, findings: _Findings) -> None:
    """Compare derivatives of first and second order, backward and forward, with differences."""
    subject = instrumented.subject()
    outputs = evaluate(subject)
    try:
        check_precision(subject, outputs)
    except DTypeError as error:
        findings.notes.append(f"derivatives were not compared: {error}")
        return
    positions = compared_outputs(subject, outputs)
    numerical = central_differences(subject, outputs, positions, EPS)
    _check_first_derivative(subject, outputs, numerical, findings)
    if any(output.requires_grad for output in outputs.values()):
        _check_second_derivative(subject, findings)
    if instrumented.spec.jvp_rule is not None:
        with findings.guard("wrong jvp", "in forward mode"):
            _check_jvp(subject, outputs, numerical, findings)


def _check_first_derivative(
    subject: Subject,
    outputs: dict[int, Tensor],
    numerical: dict[Pair, Array],
    findings: _Findings,
) -> None:
    findings.checked += ["first derivative", "each output alone"]
    before = len(findings.problems)
    positions = sorted({o for o, _ in numerical})
    analytical: dict[Pair, Array] = {}
    for o in positions:
        with findings.guard("unused output", f"when only output {o} is used"):
            analytical |= vjp_of(subject, outputs, [o])
    tracked = [o for o in positions if outputs[o].requires_grad]
    absent = missing_gradients(outputs, trial_cotangents(outputs, tracked), subject)
    for found in mismatches(subject, outputs, (analytical, numerical), ATOL, RTOL):
        if subject.input_names[found.input] in map(repr, absent):
            findings.problem(
                "missing gradient",
                f"backward gives None, or nothing, for {subject.input_names[found.input]}, but "
                f"output {found.output} depends on it: {describe(subject, found)}",
            )
        else:
            findings.problem("wrong first derivative", describe(subject, found))
    if len(findings.problems) == before:
        try:
            check_linear(subject, outputs, analytical)
        except GradcheckError as error:
            findings.problem("unused output" if len(positions) > 1 else "not linear", str(error))


def _check_second_derivative(subject: Subject, findings: _Findings) -> None:
    findings.checked.append("second derivative")
    try:
        check_second(subject, None, CheckSettings(EPS, ATOL, RTOL))
    except GradcheckError as error:
        if not (findings.has("not linear") or findings.has("unused output")):
            findings.problem(
                "wrong second derivative",
                f"{error}\nBackward has to compute it with recorded operations, from saved inputs "
                "and outputs; @once_differentiable makes it an error instead",
            )
    except Exception as error:
        findings.notes.append(f"a second derivative is refused: {error}")


def _check_jvp(
    subject: Subject,
    outputs: dict[int, Tensor],
    numerical: dict[Pair, Array],
    findings: _Findings,
) -> None:
    findings.checked.append("jvp")
    checked = checked_inputs(subject)
    primals = [subject.inputs[k].detach() for k in checked]

    def function(*tensors: Tensor) -> tuple[Any, ...]:
        values = list(subject.inputs)
        for k, tensor in zip(checked, tensors, strict=True):
            values[k] = tensor
        result = subject.function(*values)
        several = result if isinstance(result, tuple | list) else (result,)
        return tuple(several[o] for o in outputs)

    for (o, k), rows in numerical.items():
        if not outputs[o].requires_grad:
            continue
        for j, part in np.ndindex(rows.shape[:2]):
            tangents = [elementwise.multiply.apply(primal, 0.0) for primal in primals]
            index = tuple(map(int, np.unravel_index(j, subject.inputs[k].shape)))
            tangents[checked.index(k)]._array[index] = (1, 1j)[part]
            tangent = flat_numpy(jvp(function, primals, tangents)[1][list(outputs).index(o)])
            wrong = ~np.isclose(tangent, rows[j, part], rtol=RTOL, atol=ATOL)
            if wrong.any():
                i = int(wrong.argmax())
                where = list(map(int, np.unravel_index(i, outputs[o].shape)))
                findings.problem(
                    "wrong jvp",
                    f"along element {list(index)} of {subject.input_names[k]}, the tangent of "
                    f"element {where} of output {o}\njvp:       {tangent[i]:.10g}\n"
                    f"numerical: {rows[j, part, i]:.10g}",
                )
                break


# --- layouts, needs_input_grad and memory ---------------------------------------------------------


def _check_layouts(instrumented: InstrumentedCall, findings: _Findings) -> None:
    """Compare gradients for the same grad_output in other memory layouts."""
    if findings.has("grad_output changed"):
        return  # a write to shared memory changes the gradients anyway
    findings.checked.append("layouts of grad_output")
    outputs = evaluate(instrumented.subject())
    cotangents = {
        i: np.full(o.numel(), 0.75, o.dtype) for i, o in outputs.items() if o.requires_grad
    }
    plain = instrumented.gradients(instrumented.subject(), cotangents)
    for title, layout in LAYOUTS.items():
        subject = instrumented.subject(CallRecorder().function(instrumented.spec, layout))
        with findings.guard("layout of grad_output", f"with a gradient that is {title}"):
            for k, gradient in instrumented.gradients(subject, cotangents).items():
                if not agrees(gradient, plain[k]):
                    findings.problem(
                        "layout of grad_output",
                        f"the gradient of {instrumented.names[k]!r} is another one when the same "
                        f"grad_output is {title}",
                    )


def _check_inputs_alone(instrumented: InstrumentedCall, findings: _Findings) -> None:
    """Compare each argument's gradient with the one when no other argument requires grad."""
    if len(instrumented.checked) < 2:
        return
    findings.checked.append("each input alone")
    outputs = evaluate(instrumented.subject())
    tracked = [i for i, output in outputs.items() if output.requires_grad]
    cotangents = trial_cotangents(outputs, tracked)
    together = instrumented.gradients(instrumented.subject(), cotangents)
    for k in instrumented.checked:
        name = instrumented.names[k]
        with findings.guard("needs_input_grad", f"when only {name!r} requires grad"):
            alone = instrumented.gradients(instrumented.subject(alone=k), cotangents)[k]
            if not agrees(alone, together[k]):
                findings.problem(
                    "needs_input_grad",
                    f"{name!r} gets another gradient when only it requires grad than together with "
                    "the others. Does backward read the flag of the right argument?",
                )


def _staying(instrumented: InstrumentedCall, backward: bool) -> tuple[Any, Any, list[str]]:
    """Return references to node and ctx of a call, and the names of those that are not freed."""
    node, ctx = instrumented.references(backward)
    stays = [name for name, ref in (("node", node), ("ctx", ctx)) if ref() is not None]
    return node, ctx, stays


def _check_memory(instrumented: InstrumentedCall, findings: _Findings) -> None:
    """Check that dropping the outputs frees node and ctx."""
    if node_of(evaluate(instrumented.subject())) is None:
        return  # no output has a gradient
    findings.checked.append("memory")
    for backward in (False, True):
        node, ctx, stays = without_collector(_staying, instrumented, backward)
        if stays:
            gc.collect()
            cycle = node() is None and ctx() is None
            why = (
                "a reference cycle keeps it alive: an output on ctx outside save_for_backward?"
                if cycle
                else "an object that outlives the call refers to it: a global, a list, a closure?"
            )
            findings.problem(
                "memory stays",
                f"{' and '.join(stays)} stay in memory when the output is dropped, "
                f"{'after' if backward else 'before'} a backward pass: {why}",
            )
            return
