"""Derivatives of a function at a point: by backward passes, forward mode and central differences.

Gradients are PyTorch's: of a real L with respect to a complex z, ∂L/∂Re z + i ∂L/∂Im z. A
cotangent v of a complex output f stands for L = Re(conj(v) f), so 1 asks for the real part and 1j
for the imaginary one. Arrays of gradients have the axes (cotangent, element of output, of input).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from chainrule.autograd.backward import autograd_grad
from chainrule.autograd.forward import jvp_through
from chainrule.autograd.modes import enable_grad, run_in
from chainrule.autograd.tensor import Tensor, make
from chainrule.autograd.views import current_node
from chainrule.backend import CPU, device_of, move, namespace
from chainrule.checks.report import GradcheckError
from chainrule.errors import DTypeError
from chainrule.interrupts import call_then, errstate

Array = Any
Pair = tuple[int, int]  # positions of an output and an input


class Subject(NamedTuple):
    """A function under test, the point where it is checked, and the titles for error messages."""

    function: Callable[..., Any]
    inputs: tuple[Any, ...]
    input_names: tuple[str, ...]
    output_name: Callable[[int], str] = "output {}".format
    order: str = "first"
    strict: bool = False  # whether outputs that don't require grad are compared, too


class CheckSettings(NamedTuple):
    """Step of the differences, tolerances, and the modes to check."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float = 0.0
    backward: bool = True
    forward: bool = False
    fast: bool = False  # along random directions alone


def checked_inputs(subject: Subject) -> list[int]:
    """Return the positions of the tensors that require grad."""
    return [i for i, x in enumerate(subject.inputs) if isinstance(x, Tensor) and x.requires_grad]


def check_precision(subject: Subject, outputs: dict[int, Tensor]) -> None:
    """Raise if inputs or outputs are not in double precision, which finite differences need."""
    named = [(subject.input_names[i], subject.inputs[i]) for i in checked_inputs(subject)]
    named += [(subject.output_name(i), o) for i, o in outputs.items() if o.dtype.kind in "fc"]
    for name, tensor in named:
        if tensor.dtype not in (np.dtype(np.float64), np.dtype(np.complex128)):
            double = "complex128" if tensor.dtype.kind == "c" else "float64"
            raise DTypeError(
                f"gradcheck: {name} is {tensor.dtype.name}, and differences need float64 or "
                f"complex128: f(x + eps) - f(x - eps) cancels nearly all of the "
                f"{np.finfo(tensor.dtype).precision} digits that {tensor.dtype.name} has, and a "
                f"right derivative would look wrong. Convert it with .to({double!r}) first"
            )


# --- function values ------------------------------------------------------------------------------


def evaluate(
    subject: Subject, position: int = -1, index: tuple[Any, ...] = (), value: Any = None
) -> dict[int, Tensor]:
    """Return the tensors among the outputs, by position; elements of one input may differ.

    The inputs are the caller's own objects, so that a function that closes over them sees the
    change, but on copies of their memory, so that the caller's arrays are never written to.
    """
    tensors = {id(x): x for x in subject.inputs if isinstance(x, Tensor)}.values()
    before = [(x, x._array, x._node) for x in tensors]

    def restore() -> None:
        for x, array, node in before:
            x._array, x._node = array, node

    def call() -> dict[int, Tensor]:
        for x, array, _ in before:
            x._array = namespace(array).array(array)
        if position >= 0:
            subject.inputs[position]._array[index] = value
        outputs = run_in(enable_grad(), subject.function, *subject.inputs)
        several = outputs if isinstance(outputs, tuple | list) else (outputs,)
        # New objects on the same nodes: the inputs, which may be outputs, are restored below.
        return {
            i: make(o._array, current_node(o))
            for i, o in enumerate(several)
            if isinstance(o, Tensor)
        }

    return call_then(restore, call)


def compared_outputs(subject: Subject, outputs: dict[int, Tensor]) -> list[int]:
    """Return the positions of the outputs whose derivatives are compared.

    As in PyTorch, outputs that don't require grad are left out where others do.
    """
    floating = [i for i, o in outputs.items() if o.dtype.kind in "fc"]
    tracked = [i for i in floating if outputs[i].requires_grad]
    return floating if subject.strict or not tracked else tracked


def flat_numpy(tensor: Tensor) -> Array:
    """Return a tensor's elements as a flat NumPy array, copied."""
    return np.array(move(tensor._array, CPU)).reshape(-1)


@errstate(all="ignore")
def all_close(a: Array, b: Array, tolerance: float = 0.0) -> bool:
    """Tell whether two arrays agree up to the order of summation, or a tolerance.

    Threads of a BLAS may add up in another order, which changes some last digits.
    """
    finite = np.abs(a[np.isfinite(a)])
    bound = max(tolerance, 1e-13 * (finite.max() if finite.size else 0.0))
    return a.shape == b.shape and np.allclose(a, b, rtol=0, atol=bound, equal_nan=True)


# --- central differences --------------------------------------------------------------------------


def central_differences(
    subject: Subject, outputs: dict[int, Tensor], positions: Sequence[int], eps: float
) -> dict[Pair, Array]:
    """Return the central differences of each output along each element of each input.

    The axes are (element of input, real and imaginary direction, element of output).
    """
    table: dict[Pair, Array] = {}
    for k in checked_inputs(subject):
        x = subject.inputs[k]
        compared = {o: outputs[o] for o in positions}
        rows = [_difference(subject, compared, k, index, eps) for index in np.ndindex(x.shape)]
        for column, o in enumerate(positions):
            table[o, k] = np.array([[part[column] for part in row] for row in rows])
    return table


def _difference(
    subject: Subject, outputs: dict[int, Tensor], k: int, index: tuple[int, ...], eps: float
) -> list[list[Array]]:
    """Return the differences of all outputs along one element, in one or two directions."""
    center = subject.inputs[k]._array[index].item()
    # Far from zero, eps may be lost in rounding: step over at least 1000 representable numbers.
    width = max(eps, 1000 * float(np.spacing(abs(center))))
    directions = (1.0, 1.0j) if isinstance(center, complex) else (1.0,)
    parts = []
    for direction in directions:
        high, low = center + width * direction, center - width * direction
        above = evaluate(subject, k, index, high)
        below = evaluate(subject, k, index, low)
        for o, output in outputs.items():
            others = above.get(o), below.get(o)
            check_metadata(subject, (o, k), f"on index {list(index)}", output, others)
        step = abs(high - low)  # the exact distance of the rounded numbers
        parts.append([quotient(above[o], below[o], step) for o in outputs])
    return parts


@errstate(all="ignore")
def quotient(above: Tensor, below: Tensor, step: float) -> Array:
    return (flat_numpy(above) - flat_numpy(below)) / step


def check_metadata(subject: Subject, pair: Pair, where: str, output: Tensor, others: Any) -> None:
    """Raise if perturbing an input changes an output's shape or dtype."""
    for other in others:
        if other is None or other.shape != output.shape or other.dtype != output.dtype:
            got = "none" if other is None else f"{other.dtype} {list(other.shape)}"
            raise GradcheckError(
                "Expected `func` to return outputs with the same shape and dtype when inputs are "
                f"perturbed {where} of {subject.input_names[pair[1]]}, but "
                f"{subject.output_name(pair[0])} is {output.dtype} {list(output.shape)}, and "
                f"{got} there"
            )


def gradients_from(rows: Array, is_complex: bool) -> Array:
    """Return the gradients of one pair that follow from its differences."""
    if not rows.size:
        return None
    parts = []
    for cotangent in (1, 1j) if is_complex else (1,):
        real = (np.conj(cotangent) * rows).real
        gradient = real[:, 0] if rows.shape[1] == 1 else real[:, 0] + 1j * real[:, 1]
        parts.append(gradient.T)
    return np.array(parts)


# --- backward passes ------------------------------------------------------------------------------


def vjp(
    subject: Subject, outputs: dict[int, Tensor], cotangents: dict[int, Array]
) -> dict[int, Array]:
    """Return the gradient, flat, of every checked input for these flat cotangents."""
    inputs = [subject.inputs[k] for k in checked_inputs(subject)]
    roots = {o: outputs[o] for o in cotangents if outputs[o].requires_grad}
    grads: Sequence[Any] = [None] * len(inputs)
    if roots:
        grads = autograd_grad(
            list(roots.values()),
            inputs,
            [tensor_like(cotangents[o], root) for o, root in roots.items()],
            retain_graph=True,
            allow_unused=True,
        )
    return {
        k: np.zeros(x.numel(), x.dtype) if grad is None else flat_numpy(grad)
        for k, x, grad in zip(checked_inputs(subject), inputs, grads, strict=True)
    }


def tensor_like(flat: Array, tensor: Tensor) -> Tensor:
    """Return flat numbers as a tensor of the shape, dtype and device of another."""
    array = np.asarray(flat, tensor.dtype).reshape(tensor.shape)
    return make(move(array, device_of(tensor._array)), None)


def vjp_of(
    subject: Subject, outputs: dict[int, Tensor], positions: Sequence[int]
) -> dict[Pair, Array]:
    """Return the gradients of every element of every output, one backward pass for each."""
    table: dict[Pair, Array] = {}
    for o in positions:
        size = outputs[o].numel()
        cotangents = (1, 1j) if outputs[o].dtype.kind == "c" else (1,)
        for k in checked_inputs(subject):
            x = subject.inputs[k]
            table[o, k] = np.zeros((len(cotangents), size, x.numel()), x.dtype)
        for v, cotangent in enumerate(cotangents):
            for i in range(size):
                unit = np.zeros(size, outputs[o].dtype)
                unit[i] = cotangent
                for k, gradient in vjp(subject, outputs, {o: unit}).items():
                    table[o, k][v, i] = gradient
    return table


# --- forward mode ---------------------------------------------------------------------------------


def jvp_of(
    subject: Subject, outputs: dict[int, Tensor], positions: Sequence[int]
) -> dict[Pair, Array]:
    """Return each output's tangent for a unit tangent in each element of each input.

    The axes are those of `central_differences`.
    """
    checked = checked_inputs(subject)
    inputs = [subject.inputs[k] for k in checked]
    jvp = jvp_through(inputs, [outputs[o] for o in positions])
    table: dict[Pair, Array] = {}
    for at, (k, x) in enumerate(zip(checked, inputs, strict=True)):
        rows = []
        for i in range(x.numel()):
            parts = []
            for direction in (1.0, 1.0j) if x.dtype.kind == "c" else (1.0,):
                unit = np.zeros(x.numel(), x.dtype)
                unit[i] = direction
                tangents = [tensor_like(unit, x) if at == j else None for j in range(len(inputs))]
                parts.append([flat_numpy(tangent) for tangent in jvp(tangents, False)])
            rows.append(parts)
        for column, o in enumerate(positions):
            table[o, k] = np.array([[part[column] for part in row] for row in rows])
    return table


def trial_cotangents(outputs: dict[int, Tensor], positions: Sequence[int]) -> dict[int, Array]:
    """Return a dense cotangent for each output, the same in every run."""
    source = np.random.default_rng(20240601)
    return {o: trial(source, outputs[o]) for o in positions}


def trial(source: np.random.Generator, tensor: Tensor) -> Array:
    """Return random numbers from 0.5 to 1.5 for a tensor, flat; complex ones for a complex one."""
    values = source.uniform(0.5, 1.5, (2, tensor.numel()))
    return values[0] + 1j * values[1] if tensor.dtype.kind == "c" else values[0]


@errstate(all="ignore")
def combine_gradients(table: dict[Pair, Array], cotangents: dict[int, Array], k: int) -> Array:
    """Return the gradient of input `k` as the combination of those of single output elements."""
    total: Any = 0
    for o, cotangent in cotangents.items():
        parts = table[o, k]
        total = total + cotangent.real @ parts[0]
        if len(parts) == 2:
            total = total + cotangent.imag @ parts[1]
    return total


# --- mismatches -----------------------------------------------------------------------------------


class Mismatch(NamedTuple):
    """The worst wrong element of one output's derivative for one input."""

    output: int
    input: int
    output_index: tuple[int, ...]
    input_index: tuple[int, ...]
    part: str  # "real" or "imaginary" for a complex output, else empty
    analytical: complex
    numerical: complex
    wrong: int
    total: int
    diagnosis: str


@errstate(all="ignore")
def _excess(analytical: Array, numerical: Array, atol: float, rtol: float) -> tuple[Array, Array]:
    """Return where two arrays differ, and by how much relative to the tolerance."""
    wrong = ~np.isclose(analytical, numerical, rtol=rtol, atol=atol)
    size = np.abs(analytical - numerical) / (atol + rtol * np.abs(numerical))
    excess = np.where(wrong, size, -1)
    excess[np.isnan(excess)] = np.inf
    return wrong, excess


def mismatches(
    subject: Subject,
    outputs: dict[int, Tensor],
    tables: tuple[dict[Pair, Array], dict[Pair, Array]],
    atol: float,
    rtol: float,
) -> Iterator[Mismatch]:
    """Yield the mismatch of every pair of output and input whose derivatives differ."""
    for (o, k), analytical in tables[0].items():
        numerical = gradients_from(tables[1][o, k], outputs[o].dtype.kind == "c")
        if numerical is None:
            continue
        wrong, excess = _excess(analytical, numerical, atol, rtol)
        if not wrong.any():
            continue
        v, i, j = np.unravel_index(int(excess.argmax()), excess.shape)
        yield Mismatch(
            o,
            k,
            tuple(map(int, np.unravel_index(i, outputs[o].shape))),
            tuple(map(int, np.unravel_index(j, subject.inputs[k].shape))),
            ("real", "imaginary")[v] if outputs[o].dtype.kind == "c" else "",
            analytical[v, i, j].item(),
            numerical[v, i, j].item(),
            int(wrong.sum()),
            wrong.size,
            _diagnosis(subject.inputs[k], outputs[o], analytical, numerical, wrong, (v, i, j)),
        )


@errstate(all="ignore")
def _diagnosis(
    x: Tensor, out: Tensor, analytical: Array, numerical: Array, wrong: Array, worst: Any
) -> str:
    """Return the likely cause of the wrong numbers, or their common ratio; may be empty."""
    if not out.requires_grad:
        return (
            "This output doesn't require grad although it depends on the input: the computation "
            "was detached, ran under no_grad(), or went through NumPy."
        )
    if not analytical.any():
        return (
            "No gradient arrives at all: the computation was detached, or the gradient is None or "
            "missing in a custom backward."
        )
    if x.ndim == 2 and x.shape[0] == x.shape[1] > 1:
        transposed = (
            analytical.reshape(*analytical.shape[:2], *x.shape)
            .swapaxes(-1, -2)
            .reshape(analytical.shape)
        )
        if np.allclose(transposed, numerical, rtol=1e-4, atol=1e-6):
            return "The gradient is right except for a transposition."
    ratios = (analytical / numerical)[wrong & (np.abs(numerical) > 1e-3 * np.abs(numerical).max())]
    ratio = complex(analytical[worst] / numerical[worst])
    alike = ratios.size > 0 and bool((np.abs(ratios - ratio) < 1e-6 * abs(ratio) + 1e-9).all())
    if not np.isfinite(ratio) or not ratio:
        return ""
    number = f"{ratio.real:.6g}" if abs(ratio.imag) < 1e-6 * abs(ratio) else f"({ratio:.6g})"
    if number == "-1":
        return "The analytical one has the wrong sign."
    where = ", wherever they differ" if alike and ratios.size > 1 else ""
    return f"The analytical one is {number} times the numerical one{where}."


def heading(subject: Subject, outputs: dict[int, Tensor], pair: Pair, what: str) -> str:
    """Return the beginning of an error on the derivative of an output by an input."""
    output, position = pair
    if not outputs[output].requires_grad and subject.order == "first":
        return "Numerical gradient for function expected to be zero, since no output requires grad"
    return f"{what} for output {output} with respect to input {position}, {subject.order} order"


def describe(subject: Subject, found: Mismatch) -> str:
    """Return the text on one mismatch."""
    to = subject.output_name(found.output)
    by = subject.input_names[found.input]
    if found.output_index:
        to = f"element {list(found.output_index)} of {to}"
    if found.input_index:
        by = f"element {list(found.input_index)} of {by}"
    if found.part:
        to = f"the {found.part} part of {to}"
    count = f" {found.wrong} of {found.total} numbers are wrong." if found.total > 1 else ""
    return (
        f"the {subject.order} derivative of {to} with respect to {by}\n"
        f"analytical: {found.analytical:.10g}\n"
        f"numerical:  {found.numerical:.10g}\n"
        f"{found.diagnosis}{count}".rstrip()
    )
