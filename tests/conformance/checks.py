"""The checks of the conformance table: each takes a case, and asserts one property.

No check knows a derivative: they compare reverse and forward mode with finite differences, with
each other and with other libraries. Gradients are PyTorch's, ∂L/∂z*, so one real pairing, Re Σ
conj(a) b, serves real and complex numbers: a gradient paired with a direction is the slope of the
loss along it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

import chainrule as cr
from chainrule.autograd.function_call import FunctionCall
from chainrule.autograd.node import Node, endpoint
from chainrule.autograd.primitive_node import PrimitiveNode
from chainrule.transforms import jvp
from conformance import Case, Row

Arrays = list[np.ndarray]


def demand(check: Callable[..., None], cases: Sequence[Case], *libraries: Any) -> None:
    """Run a check on every case, and report all cases that fail."""
    failures = []
    for case in cases:
        try:
            check(case, *libraries)
        except Exception as error:
            error.add_note(f"case {case}")
            failures.append(error)
    if failures:
        raise ExceptionGroup(f"{check.__name__} fails", failures)


def uncovered(table: Iterable[str], rows: Iterable[Row]) -> set[str]:
    """Return the primitives that have no row."""
    return set(table) - {row.primitive for row in rows}


# --- a case as a function of its floating inputs --------------------------------------------------


class Subject:
    """A case as a function of its floating inputs; masks and indices are constants."""

    def __init__(self, case: Case) -> None:
        self.arrays = case.arrays()
        self.floating = [i for i, a in enumerate(self.arrays) if a.dtype.kind in "fc"]
        self._function = case.row.function(cr)
        self._settings = case.settings
        self._rng = np.random.default_rng(3)

    @property
    def points(self) -> Arrays:
        return [self.arrays[i] for i in self.floating]

    def __call__(self, *points: cr.Tensor) -> tuple[cr.Tensor, ...]:
        inputs = [cr.from_numpy(array) for array in self.arrays]
        for i, point in zip(self.floating, points, strict=True):
            inputs[i] = point
        result = self._function(*inputs, **self._settings)
        return tuple(result) if isinstance(result, tuple | list) else (result,)

    def only(self, i: int, point: cr.Tensor) -> tuple[cr.Tensor, ...]:
        """Return the outputs as a function of the i-th floating input, the others constant."""
        points = plain(self.points)
        points[i] = point
        return self(*points)

    def like(self, arrays: Sequence[np.ndarray]) -> Arrays:
        """Return random numbers of these shapes and dtypes."""
        numbers = []
        for array in arrays:
            values = self._rng.uniform(-1, 1, array.shape)
            if array.dtype.kind == "c":
                values = values + 1j * self._rng.uniform(-1, 1, array.shape)
            numbers.append(np.asarray(values).astype(array.dtype))
        return numbers


def plain(arrays: Sequence[np.ndarray]) -> list[cr.Tensor]:
    return [cr.from_numpy(array) for array in arrays]


def leaves(arrays: Sequence[np.ndarray]) -> list[cr.Tensor]:
    return [cr.from_numpy(array).requires_grad_() for array in arrays]


def arrays_of(tensors: Iterable[cr.Tensor]) -> Arrays:
    return [np.asarray(t.detach().numpy()) for t in tensors]


def values(subject: Subject, points: Arrays) -> Arrays:
    return arrays_of(subject(*plain(points)))


def weighted_gradients(
    outputs: Sequence[cr.Tensor], xs: Sequence[cr.Tensor], gs: Sequence[cr.Tensor], **options: Any
) -> list[cr.Tensor]:
    """Return the gradients of outputs, weighted by `gs`: zeros where nothing is connected."""
    pairs = [(out, g) for out, g in zip(outputs, gs, strict=True) if out.requires_grad]
    if not pairs:
        return [cr.zeros_like(x) for x in xs]
    connected, weights = zip(*pairs, strict=True)
    return list(cr.autograd_grad(connected, list(xs), weights, materialize_grads=True, **options))


def gradients(subject: Subject, points: Arrays, gs: Arrays) -> Arrays:
    """Return the gradients by one backward pass."""
    xs = leaves(points)
    return arrays_of(weighted_gradients(subject(*xs), xs, plain(gs)))


def output_tangents(subject: Subject, points: Arrays, ts: Arrays) -> Arrays:
    """Return the outputs' tangents, by forward mode."""
    return arrays_of(jvp(subject, plain(points), plain(ts))[1])


def pairing(a: Arrays, b: Arrays) -> float:
    return float(sum(np.sum(np.real(np.conj(x) * y)) for x, y in zip(a, b, strict=True)))


# --- Taylor mode ----------------------------------------------------------------------------------


def check_taylor(case: Case) -> None:
    """Taylor mode gives the third derivative along a line that nested forward mode gives."""
    subject = Subject(case)
    rng = np.random.default_rng(4)
    lines = [(p, rng.normal(size=p.shape).astype(p.dtype)) for p in subject.points]

    def along(t: cr.Tensor) -> list[cr.Tensor]:
        return list(subject(*[cr.from_numpy(p) + t * cr.from_numpy(v) for p, v in lines]))

    def derivative(function: Callable[[cr.Tensor], Any]) -> Callable[[cr.Tensor], Any]:
        return lambda t: jvp(function, t, cr.ones_like(t))[1]

    start = cr.tensor(0.0, dtype=cr.float64)
    call = FunctionCall(along, [start], [start])
    wanted = derivative(derivative(derivative(along)))(start)
    series = call.taylor([cr.ones_like(start)], 3)
    for out, coefficients, third in zip(call.outputs, series, wanted, strict=True):
        if out.dtype.kind not in "fc":
            continue
        found = np.zeros(out.shape) if coefficients[2] is None else 6 * coefficients[2].numpy()
        assert found.shape == third.shape
        size = np.abs(third.numpy()[np.isfinite(third.numpy())]).max(initial=0)
        np.testing.assert_allclose(found, third.numpy(), rtol=1e-7, atol=1e-8 * (1 + size))


# --- differences ----------------------------------------------------------------------------------

_STEP = 1e-3


def directional_differences(
    function: Callable[[Arrays], Arrays], points: Arrays, direction: Arrays
) -> Arrays:
    """Return the derivative of a function along a direction, by central differences of order 4."""

    def at(width: float) -> Arrays:
        return function([np.asarray(p + width * d) for p, d in zip(points, direction, strict=True)])

    near = zip(at(_STEP), at(-_STEP), strict=True)
    far = zip(at(2 * _STEP), at(-2 * _STEP), strict=True)
    return [
        (8 * (a - b) - (c - d)) / (12 * _STEP) for (a, b), (c, d) in zip(near, far, strict=True)
    ]


def gradients_by_differences(
    function: Callable[[Arrays], Arrays], points: Arrays, gs: Arrays
) -> Arrays:
    """Return the gradients of the outputs weighted by `gs`, by differences along every element."""
    result = []
    for i, point in enumerate(points):
        gradient = np.zeros_like(point)
        for index in np.ndindex(point.shape):
            for unit in (1, 1j) if point.dtype.kind == "c" else (1,):
                direction = [np.zeros_like(p) for p in points]
                direction[i][index] = unit
                gradient[index] += unit * pairing(
                    gs, directional_differences(function, points, direction)
                )
        result.append(gradient)
    return result


def is_double(*groups: Arrays) -> bool:
    return all(a.dtype in (np.float64, np.complex128) for arrays in groups for a in arrays)


def assert_close(got: Arrays, wanted: Arrays, rtol: float, atol: float) -> None:
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def assert_agree(got: Arrays, wanted: Arrays) -> None:
    """Assert equality up to the order of operations."""
    if is_double(got, wanted):
        assert_close(got, wanted, 1e-10, 1e-12)
    else:
        assert_close(got, wanted, 2e-4, 1e-5)


# --- the checks -----------------------------------------------------------------------------------


def check_primitive(case: Case) -> None:
    """The function of the row records its primitive."""
    subject = Subject(case)
    names = set()
    stack: list[Any] = [out.grad_fn for out in subject(*leaves(subject.points))]
    while stack:
        node: Node = stack.pop()
        if isinstance(node, PrimitiveNode):
            names.add(node.plan.primitive.name)
        stack += [endpoint(edge)[0] for edge in node.edges if edge is not None]
    assert case.row.primitive in names


def check_value(case: Case) -> None:
    """The result is NumPy's: values, shape and dtype."""
    subject = Subject(case)
    got = arrays_of(subject(*plain(subject.points)))
    with np.errstate(all="ignore"):
        result = case.row.function(np)(*case.arrays(), **case.settings)
    wanted = [np.asarray(x) for x in (result if isinstance(result, tuple | list) else (result,))]
    assert [a.dtype for a in got] == [a.dtype for a in wanted]
    rtol, atol = (1e-13, 1e-15) if is_double(got) else (1e-5, 1e-6)
    # Sums and solutions are as precise as their largest number.
    largest = max(np.abs(a[np.isfinite(a)]).max(initial=1) for a in wanted)
    assert_close(got, wanted, rtol, atol * largest)


def check_vjp(case: Case) -> None:
    """Reverse mode agrees with differences, element by element."""
    subject = Subject(case)
    gs = subject.like(values(subject, subject.points))
    got = gradients(subject, subject.points, gs)
    wanted = gradients_by_differences(lambda points: values(subject, points), subject.points, gs)
    assert_close(got, wanted, 1e-7, 1e-9)


def check_jvp(case: Case) -> None:
    """Forward mode agrees with differences."""
    subject = Subject(case)
    ts = subject.like(subject.points)
    got = output_tangents(subject, subject.points, ts)
    wanted = directional_differences(lambda points: values(subject, points), subject.points, ts)
    assert_close(got, wanted, 1e-7, 1e-9)


def check_pairing(case: Case) -> None:
    """⟨g, J t⟩ = ⟨Jᵀ g, t⟩."""
    subject = Subject(case)
    gs, ts = subject.like(values(subject, subject.points)), subject.like(subject.points)
    forward = pairing(gs, output_tangents(subject, subject.points, ts))
    reverse = pairing(gradients(subject, subject.points, gs), ts)
    tolerance = 1e-10 if is_double(gs, ts) else 1e-5
    np.testing.assert_allclose(forward, reverse, rtol=tolerance, atol=tolerance)


def check_single_precision(case: Case) -> None:
    """In single precision, values and derivatives are those of double precision, rounded."""
    subject = Subject(case)
    double = Subject(Case(case.row, case.situation, _wider(case.dtype)))
    gs, ts = subject.like(values(subject, subject.points)), subject.like(subject.points)
    wide = [[a.astype(_wider(a.dtype.name)) for a in arrays] for arrays in (gs, ts)]
    for function, weights, wide_weights in (
        (gradients, gs, wide[0]),
        (output_tangents, ts, wide[1]),
    ):
        got = function(subject, subject.points, weights)
        assert_close(got, function(double, double.points, wide_weights), 2e-4, 2e-5)


def _wider(dtype: str) -> str:
    return {"float32": "float64", "complex64": "complex128"}.get(dtype, dtype)


def check_dtypes(case: Case) -> None:
    """Gradients, recorded or not, have the dtype of their input, tangents that of their output."""
    subject = Subject(case)
    outputs = values(subject, subject.points)
    gs, ts = subject.like(outputs), subject.like(subject.points)
    wanted = [a.dtype for a in subject.points]
    assert [a.dtype for a in gradients(subject, subject.points, gs)] == wanted
    xs = leaves(subject.points)
    recorded = weighted_gradients(subject(*xs), xs, plain(gs), create_graph=True)
    assert [t.dtype for t in recorded] == wanted
    tangents = output_tangents(subject, subject.points, ts)
    assert [a.dtype for a in tangents] == [a.dtype for a in outputs]


def check_promotion(case: Case) -> None:
    """With mixed dtypes, gradients have the dtype of their input, tangents that of the result."""
    subject, wide = Subject(case), Subject(case)
    narrow = subject.floating[0]
    subject.arrays[narrow] = subject.arrays[narrow].real.astype("float32")
    wide.arrays[narrow] = subject.arrays[narrow].astype(case.dtype)
    outputs = values(subject, subject.points)
    assert {a.dtype.name for a in outputs} == {case.dtype}
    gs, ts = subject.like(outputs), subject.like(subject.points)
    wide_ts = [t.astype(case.dtype) for t in ts]
    got = gradients(subject, subject.points, gs)
    assert [a.dtype for a in got] == [a.dtype for a in subject.points]
    for a, b in zip(got, gradients(wide, wide.points, gs), strict=True):
        b = b if a.dtype.kind == "c" else b.real
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)
    tangents = output_tangents(subject, subject.points, ts)
    assert [a.dtype for a in tangents] == [a.dtype for a in outputs]
    assert_agree(tangents, output_tangents(wide, wide.points, wide_ts))
    for i in range(len(subject.points)):
        zero = [t if i == j else np.zeros_like(t) for j, t in enumerate(ts)]
        alone = jvp(
            lambda p, i=i: subject.only(i, p), *[plain([a[i]]) for a in (subject.points, ts)]
        )
        assert [t.dtype for t in alone[1]] == [a.dtype for a in outputs]
        assert_agree(arrays_of(alone[1]), output_tangents(subject, subject.points, zero))


def check_second_order(case: Case) -> None:
    """The second derivative along a direction: the same in three modes, and by differences."""
    subject = Subject(case)
    gs, us = subject.like(values(subject, subject.points)), subject.like(subject.points)
    weights, direction = plain(gs), plain(us)

    xs = leaves(subject.points)
    first = weighted_gradients(subject(*xs), xs, weights, create_graph=True)
    reverse_over_reverse = arrays_of(weighted_gradients(first, xs, direction))

    def gradient(*points: cr.Tensor) -> tuple[cr.Tensor, ...]:
        return tuple(weighted_gradients(subject(*points), points, weights, create_graph=True))

    forward_over_reverse = arrays_of(jvp(gradient, plain(subject.points), direction)[1])

    xs = leaves(subject.points)
    tangents = jvp(subject, xs, direction)[1]
    reverse_over_forward = arrays_of(weighted_gradients(tangents, xs, weights))

    if case.situation.smooth:
        by_differences = directional_differences(
            lambda points: gradients(subject, points, gs), subject.points, us
        )
        assert_close(reverse_over_reverse, by_differences, 1e-6, 1e-8)
    assert_agree(forward_over_reverse, reverse_over_reverse)
    assert_agree(reverse_over_forward, reverse_over_reverse)


def check_third_order(case: Case) -> None:
    """Reverse mode nests any number of times: here three."""
    subject = Subject(case)
    gs, us = subject.like(values(subject, subject.points)), subject.like(subject.points)

    def second(points: Arrays) -> tuple[list[cr.Tensor], list[cr.Tensor]]:
        xs = leaves(points)
        first = weighted_gradients(subject(*xs), xs, plain(gs), create_graph=True)
        return xs, weighted_gradients(first, xs, plain(us), create_graph=True)

    xs, seconds = second(subject.points)
    got = arrays_of(weighted_gradients(seconds, xs, plain(us)))
    wanted = directional_differences(
        lambda points: arrays_of(second(points)[1]), subject.points, us
    )
    assert_close(got, wanted, 1e-6, 1e-7)


def check_forward_over_forward(case: Case) -> None:
    """Forward mode nests with itself."""
    subject = Subject(case)
    us, vs = subject.like(subject.points), subject.like(subject.points)

    def tangents(*points: cr.Tensor) -> tuple[cr.Tensor, ...]:
        return tuple(jvp(subject, points, plain(us))[1])

    got = arrays_of(jvp(tangents, plain(subject.points), plain(vs))[1])
    wanted = directional_differences(
        lambda points: output_tangents(subject, points, us), subject.points, vs
    )
    assert_close(got, wanted, 1e-6, 1e-8)


def check_cotangent_derivative(case: Case) -> None:
    """Reverse over reverse with respect to the cotangent: the derivative of Jᵀ g is J."""
    subject = Subject(case)
    gs, us = subject.like(values(subject, subject.points)), subject.like(subject.points)
    xs, weights = leaves(subject.points), leaves(gs)
    first = weighted_gradients(subject(*xs), xs, weights, create_graph=True)
    got = arrays_of(weighted_gradients(first, weights, plain(us)))
    assert_agree(got, output_tangents(subject, subject.points, us))


def check_each_input_alone(case: Case) -> None:
    """The derivative of one input is the same whether the others are constants or not."""
    subject = Subject(case)
    gs, ts = subject.like(values(subject, subject.points)), subject.like(subject.points)
    together = gradients(subject, subject.points, gs)
    for i, point in enumerate(subject.points):
        (x,) = leaves([point])
        alone = arrays_of(weighted_gradients(subject.only(i, x), [x], plain(gs)))
        assert_agree(alone, [together[i]])
        zero = [np.zeros_like(t) for t in ts]
        zero[i] = ts[i]
        tangents = jvp(lambda p, i=i: subject.only(i, p), plain([point]), plain([ts[i]]))[1]
        assert_agree(arrays_of(tangents), output_tangents(subject, subject.points, zero))


def check_unused_outputs(case: Case) -> None:
    """Unused outputs count as zero."""
    subject = Subject(case)
    gs = subject.like(values(subject, subject.points))
    for used in range(len(gs)):
        xs = leaves(subject.points)
        got = weighted_gradients([subject(*xs)[used]], xs, plain([gs[used]]))
        masked = [g if i == used else np.zeros_like(g) for i, g in enumerate(gs)]
        assert_agree(arrays_of(got), gradients(subject, subject.points, masked))


def check_untouched(case: Case, bits: int = 0) -> None:
    """Nothing writes to inputs, cotangents or tangents: they stay the same, and may be read-only.

    Results of read-only arrays may differ in their last `bits` bits: other code may compute them.
    """
    subject = Subject(case)
    gs, ts = subject.like(values(subject, subject.points)), subject.like(subject.points)
    held = [*subject.arrays, *gs, *ts]
    before = [a.copy() for a in held]
    results = [_everything(subject, gs, ts)]
    for array, copy in zip(held, before, strict=True):
        np.testing.assert_array_equal(array, copy)
    for array in held:
        array.setflags(write=False)
    results.append(_everything(subject, gs, ts))
    for writable, locked in zip(*results, strict=True):
        if bits == 0 or writable.dtype.kind not in "fc":
            np.testing.assert_array_equal(writable, locked)
        else:
            unit = 2**bits * np.finfo(writable.dtype).eps
            np.testing.assert_allclose(writable, locked, rtol=unit, atol=unit)


def _everything(subject: Subject, gs: Arrays, ts: Arrays) -> Arrays:
    xs = leaves(subject.points)
    outputs = subject(*xs)
    first = weighted_gradients(outputs, xs, plain(gs), create_graph=True)
    second = weighted_gradients(first, xs, plain(ts))
    return [
        *arrays_of([*outputs, *first, *second]),
        *output_tangents(subject, subject.points, ts),
        *gradients(subject, subject.points, gs),
    ]


def check_contiguity(case: Case) -> None:
    """The memory layout of inputs and cotangents makes no difference."""
    subject, packed, swapped = Subject(case), Subject(case), Subject(case)
    packed.arrays = [np.ascontiguousarray(a).reshape(a.shape) for a in packed.arrays]
    swapped.arrays = [_swapped(a) for a in packed.arrays]
    gs = subject.like(values(subject, subject.points))
    wanted = gradients(packed, packed.points, gs)
    scattered = [_scattered(g) for g in gs]
    assert_agree(gradients(subject, subject.points, scattered), wanted)
    assert_agree(gradients(swapped, swapped.points, list(map(_swapped, gs))), wanted)


def _swapped(array: np.ndarray) -> np.ndarray:
    """Return an array with the bytes of each number in the other order."""
    return array.astype(array.dtype.newbyteorder())


def _scattered(array: np.ndarray) -> np.ndarray:
    room = np.zeros(tuple(3 * n for n in array.shape), array.dtype)
    view = room[(slice(None, None, -3), ...)] if array.ndim else room[...]
    view = view[(..., *[slice(None, None, 3)] * (array.ndim - 1))] if array.ndim else view
    view[...] = array
    return view


# --- other libraries ------------------------------------------------------------------------------


def check_torch(case: Case, torch: Any) -> None:
    """Values, gradients and second derivatives are PyTorch's."""
    subject = Subject(case)
    gs, us = subject.like(values(subject, subject.points)), subject.like(subject.points)
    xs = leaves(subject.points)
    outputs = subject(*xs)
    first = weighted_gradients(outputs, xs, plain(gs), create_graph=True)
    second = weighted_gradients(first, xs, plain(us))

    inputs = [torch.from_numpy(a.copy()) for a in subject.arrays]
    theirs = [inputs[i].requires_grad_() for i in subject.floating]
    result = case.row.function(torch)(*inputs, **case.settings)
    their_outputs = list(result) if isinstance(result, tuple | list) else [result]
    their_first = _torch_pulled(torch, their_outputs, theirs, gs)
    their_second = _torch_pulled(torch, their_first, theirs, us)
    compared = [(outputs, their_outputs), (first, their_first)]
    if case.situation.smooth:
        compared.append((second, their_second))
    for ours, their in compared:
        assert_agree(arrays_of(ours), [np.asarray(t.numpy(force=True)) for t in their])


def _torch_pulled(torch: Any, outputs: Any, xs: Any, weights: Arrays) -> list[Any]:
    pairs = [
        (out, torch.from_numpy(w))
        for out, w in zip(outputs, weights, strict=True)
        if out.requires_grad
    ]
    if not pairs:
        return [torch.zeros_like(x) for x in xs]
    connected, gs = zip(*pairs, strict=True)
    return list(torch.autograd.grad(connected, xs, gs, create_graph=True, materialize_grads=True))


def check_jax(case: Case, jax: Any) -> None:
    """Values and gradients are JAX's (whose cotangents of complex numbers are the conjugates)."""
    subject = Subject(case)
    gs = subject.like(values(subject, subject.points))
    with jax.enable_x64(True):
        jnp = jax.numpy

        def function(*points: Any) -> Any:
            inputs = [jnp.asarray(a) for a in subject.arrays]
            for i, point in zip(subject.floating, points, strict=True):
                inputs[i] = point
            result = case.row.function(jnp)(*inputs, **case.settings)
            return tuple(result) if isinstance(result, tuple | list) else (result,)

        outs, pull = jax.vjp(function, *[jnp.asarray(p) for p in subject.points])
        theirs = [np.conj(np.asarray(g)) for g in pull(tuple([jnp.conj(g) for g in gs]))]
        assert_agree(values(subject, subject.points), [np.asarray(out) for out in outs])
    assert_agree(gradients(subject, subject.points, gs), theirs)


# --- primitives without derivative ----------------------------------------------------------------


def check_constant(case: Case) -> None:
    """Nothing flows back through a piecewise constant, and forward mode gives zeros."""
    subject = Subject(case)
    xs = leaves(subject.points)
    outputs = subject(*xs)
    floating = [out for out in outputs if out.dtype.kind in "fc"]
    gs = [cr.ones_like(out) for out in floating]
    for gradient in arrays_of(weighted_gradients(floating, xs, gs)):
        np.testing.assert_array_equal(gradient, 0)
    if subject.points:
        tangents = jvp(subject, plain(subject.points), plain(subject.like(subject.points)))[1]
        for tangent in arrays_of(tangents):
            np.testing.assert_array_equal(tangent, 0)


def check_torch_value(case: Case, torch: Any) -> None:
    """The result is PyTorch's."""
    subject = Subject(case)
    (ours,) = values(subject, subject.points)
    inputs = [torch.from_numpy(a.copy()) for a in subject.arrays]
    np.testing.assert_array_equal(ours, case.row.function(torch)(*inputs, **case.settings).numpy())


# --- compiled -------------------------------------------------------------------------------------

_ROUNDING = {
    "float16": 1e-2,
    "float32": 2e-4,
    "complex64": 2e-4,
    "float64": 1e-9,
    "complex128": 1e-9,
}


def check_compiled(case: Case, backend: str | None = "numpy") -> None:
    """Outputs and gradients are those of the eager engine, at the first call and at later ones."""
    subject = Subject(case)
    outputs = arrays_of(subject(*plain(subject.points)))
    weights = plain(subject.like(outputs))
    differentiable = case.row.differentiable

    def work(*xs: cr.Tensor) -> list[cr.Tensor]:
        found = subject(*xs)
        grads = weighted_gradients(found, xs, weights) if differentiable else []
        return [*(out.detach() for out in found), *grads]

    compiled = cr.compile(work, backend=backend)
    xs = leaves(subject.points)
    expected = arrays_of(work(*xs))
    for _ in range(2):
        for got, wanted in zip(arrays_of(compiled(*xs)), expected, strict=True):
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
            bar = _ROUNDING.get(wanted.dtype.name, 0)
            np.testing.assert_allclose(got, wanted, rtol=bar, atol=bar)
