"""SEMANTICS 66: a number of what a running transform differentiates raises, with the mend."""

from __future__ import annotations

import array
import copy
import math
import pickle
import re
import statistics
import struct
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
import chainrule.numpy

X = np.array([0.75, 1.0])

Program = Callable[[Any], Any]


def stored(v: Any) -> Any:
    dy = np.zeros(2)
    dy[0] = -v[0] * 2
    return cr.sum(cr.tensor(dy) * v)


def stored_in_a_slice(v: Any) -> Any:
    dy = np.zeros(2)
    dy[:] = v * 2
    return (v * dy).sum()


def added_to_an_array(v: Any) -> Any:
    total = np.zeros(2)
    total += v * v
    return np.sum(total) + v.sum()


def added_to_an_element(v: Any) -> Any:
    total = np.zeros(())
    total[()] += v[0] * v[1]
    return v[0] * total


def filled(v: Any) -> Any:
    a = np.zeros(2)
    a.fill(v[0])
    return (v * a).sum()


def put(v: Any) -> Any:
    a = np.zeros(2)
    np.put(a, [0], v[0])
    return (v * a).sum()


def array_of_the_library(v: Any) -> Any:
    return v[0] * array.array("d", [v[0], v[1]])[1]


def quadrature(v: Any) -> Any:
    scipy = pytest.importorskip("scipy.integrate")
    return v[0] * scipy.quad(lambda s: s * v[1], 0.0, 1.0)[0]


def interpolated(v: Any) -> Any:
    scipy = pytest.importorskip("scipy.interpolate")
    return v[0] * scipy.CubicSpline([0.0, 1.0, 2.0], [0.0, v[0], v[1]])(0.5)


def zero_of(v: Any) -> Any:
    scipy = pytest.importorskip("scipy.optimize")
    return v[1] * scipy.brentq(lambda x: x * x - v[0], 0.0, 2.0)


def series(v: Any) -> Any:
    pandas = pytest.importorskip("pandas")
    return v[0] * pandas.Series([1.0, 2.0]).mul(float(v[1])).sum()


# Each program with what its error says to write instead; None if the gradient is right.
PROGRAMS: dict[str, tuple[Program, str | None]] = {
    "float": (lambda v: float(v[0]) * v[1], r"float\(v\[0\]\) makes .* Leave the conv"),
    "int": (lambda v: int(v[0] * 10) * v[1], r"int\(v\[0\] \* 10\) makes .* Leave the conv"),
    "complex": (
        lambda v: (complex(v[0]) * v[1]).real,
        r"complex\(v\[0\]\) makes .* Leave",
    ),
    "math.sin": (
        lambda v: math.sin(v[0]) * v[0],
        r"math.sin\(v\[0\]\) makes .*chainrule\.sin",
    ),
    "math.exp": (lambda v: math.exp(v[0]) * v[0], r"Write chainrule\.exp"),
    "math.sqrt of an expression": (
        lambda v: math.sqrt(v[0] * v[1]) * v[0],
        r"math.sqrt\(v\[0\] \* v\[1\]\) makes .*Write chainrule\.sqrt",
    ),
    "math.pow": (lambda v: math.pow(v[0], 3) * v[0], r"Write chainrule\.pow"),
    "math.hypot": (lambda v: math.hypot(v[0], v[1]) * v[0], r"Write chainrule\.hypot"),
    "math.floor": (lambda v: math.floor(v[0] * 5) * v[0], r"Write chainrule\.floor"),
    "math.fsum": (
        lambda v: math.fsum([v[0], v[1]]) * v[0],
        r"math.fsum\(\[v\[0\], v\[1",
    ),
    "math.dist": (lambda v: math.dist(v, [0.0, 0.0]) * v[0], r"Write chainrule\.dist"),
    "math.isfinite": (
        lambda v: v[0] if math.isfinite(v[0]) else v[1],
        r"chainrule\.isfinite",
    ),
    "statistics.fmean": (lambda v: statistics.fmean([v[0], v[1]]) * v[0], "makes a number"),
    "stored": (
        stored,
        r"dy\[0\] = \.\.\. makes .* chainrule.numpy",
    ),
    "stored in a slice": (stored_in_a_slice, r"dy\[:\] = \.\.\. makes .* numpy\.stack"),
    "added to an array": (added_to_an_array, "chainrule.numpy"),
    "added to an element": (added_to_an_element, r"total\[\(\)\] = \.\.\. makes"),
    "filled": (filled, r"a\.fill\(v\[0\]\) makes"),
    "put": (put, "makes|numpy.put"),
    "fromiter": (lambda v: np.fromiter((x * x for x in v), float) @ v, r"numpy\.stack"),
    "array": (lambda v: np.array([v[0], v[1]]) @ v, r"np\.array\(.* makes .* numpy\.stack"),
    "array of one": (lambda v: np.array(v[0]) * v[1], r"numpy\.stack.* x\.clone\(\) of one"),
    "asarray": (lambda v: np.asarray(v) @ v, r"x\.clone\(\) of one"),
    "asarray of rows": (lambda v: np.asarray([v, v]).sum() * v[0], r"numpy\.stack"),
    "float64": (lambda v: np.float64(v[0]) * v[1], r"np\.float64\(v\[0\]\) makes"),
    "numpy.full": (lambda v: np.full(2, v[0]) @ v, "makes"),
    "numpy.random": (lambda v: np.random.default_rng(0).normal(v[0]) * v[1], "chainrule.randn"),
    "array.array": (array_of_the_library, "makes a number"),
    "struct.pack": (
        lambda v: struct.unpack("d", struct.pack("d", v[0]))[0] * v[1],
        "is not a float",
    ),
    "number from text": (lambda v: float(v[0]) * float(f"{v[1]:.3f}"), "makes a number"),
    "rounded by text": (lambda v: float(f"{v[1]:.3f}") * v[0], r"round\(x, digits\)"),
    "text": (lambda v: int(str(v[1])[:1] and format(v[1])) * v[0], "of the text of a Tensor"),
    "tensor of numbers": (lambda v: cr.tensor([v[0], v[1]]) @ v, r"numpy\.stack"),
    "tensor of nested lists": (lambda v: cr.tensor([[v[0]], [v[1]]]).sum() * v[0], r"numpy\.stack"),
    "tensor": (lambda v: cr.tensor(v) @ v, r"x\.clone\(\) of one"),
    "asarray of a list": (lambda v: cr.asarray([v[0], v[1]]) @ v, r"numpy\.stack"),
    "new_tensor": (lambda v: v.new_tensor([v[0], 2.0]) @ v, r"numpy\.stack"),
    "full": (lambda v: cr.full((2,), v[0]) @ v.float(), r"value \* chainrule\.ones"),
    "full_like": (lambda v: cr.full_like(v, v[0]) @ v, r"value \* chainrule\.ones"),
    "new_full": (lambda v: v.new_full((2,), v[0]) @ v, r"value \* chainrule\.ones"),
    "scalar_tensor": (lambda v: cr.scalar_tensor(v[0]) * v[1], "makes"),
    "linspace": (lambda v: cr.linspace(0, v[0], 3).sum(), r"start \+ \(stop - start\)"),
    "logspace": (lambda v: cr.logspace(0, v[0], 3).sum(), r"start \+ \(stop - start\)"),
    "arange": (lambda v: cr.arange(0.0, v[0], 0.5).sum() * v[0], r"start \+ \(stop - start\)"),
    "normal": (lambda v: cr.normal(v[0], 0.0), r"mean \+ std \* chainrule\.randn"),
    "slope of leaky_relu": (lambda v: cr.nn.functional.leaky_relu(-v, v[0]).sum(), "makes"),
    "quadrature": (quadrature, "makes a number"),
    "interpolated": (interpolated, "makes a number"),
    # SciPy's C code may go on after our error, and then raise another.
    "zero of a function": (zero_of, "makes a number|must have different signs"),
    "pandas": (series, "Leave the conversion out"),
    # ... and what looks alike, but is recorded
    "alpha": (lambda v: cr.add(v, v, alpha=v[1]).sum(), None),
    "value": (lambda v: cr.addcmul(v, v, v, value=v[1]).sum(), None),
    "numpy.linspace": (lambda v: np.linspace(0, v[0], 3).sum(), None),
    "numpy.stack": (lambda v: np.stack([v[0], v[1]]) @ v, None),
    "fill_": (lambda v: cr.zeros(2).double().fill_(v[0]) @ v, None),
    "setitem": (lambda v: (lambda a: a.__setitem__(0, v[0]) or a @ v)(cr.zeros(2).double()), None),
    "power": (lambda v: 2.0 ** v[0] * pow(v[0], v[1]), None),
    "builtin sum": (lambda v: sum(x * x for x in v), None),
    "builtin max": (lambda v: max(v) * abs(min(v)), None),
}


def differences(program: Program) -> np.ndarray[Any, Any]:
    """Return the gradient by central differences of the program on tensors without history."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(2):
            h = np.eye(2)[i] * 1e-6
            up, down = (float(program(cr.tensor(X + step))) for step in (h, -h))
            found.append((up - down) / 2e-6)
    return np.array(found)


@pytest.mark.parametrize(("program", "mend"), PROGRAMS.values(), ids=PROGRAMS)
def test_s66_no_gradient_is_lost_in_silence(program: Program, mend: str | None) -> None:
    if mend is None:
        np.testing.assert_allclose(cr.grad(program)(X), differences(program), rtol=1e-5)
        return
    try:
        found = cr.grad(program)(X)
    except Exception as error:
        chain: list[BaseException] = [error]  # NumPy and SciPy raise their own from ours
    else:
        pytest.fail(f"no error, but the gradient {found}")
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(cause)
    assert any(re.search(f"(?s){mend}", str(error)) for error in chain)


DATA = np.array([[1.0, 2.0], [3.0, 4.0], [0.5, -1.0]])

METHODS: dict[str, tuple[Program, Program]] = {
    r"numpy\.dot\(DATA, v\)": (lambda v: DATA.dot(v).sum(), lambda v: np.dot(DATA, v).sum()),
    r"numpy\.dot\(DATA\.T, DATA @ v\)": (
        lambda v: DATA.T.dot(DATA @ v).sum(),
        lambda v: np.dot(DATA.T, DATA @ v).sum(),
    ),
    r"numpy\.choose\(np": (
        lambda v: np.array([1, 0]).choose([v[0], v[1]]) @ v,
        lambda v: np.choose(np.array([1, 0]), [v[0], v[1]]) @ v,
    ),
    r"x\.astype\(dtype\)": (
        lambda v: (np.float64(v) * v).sum(),
        lambda v: (v.astype(np.float64) * v).sum(),
    ),
}


@pytest.mark.parametrize("mend", METHODS)
def test_s66_the_remedy_for_methods_of_constant_arrays_works(mend: str) -> None:
    """NumPy's methods don't ask their arguments, which its functions do."""
    program, mended = METHODS[mend]
    with pytest.raises(cr.AutogradError, match=mend):
        cr.grad(program)(X)
    np.testing.assert_allclose(cr.grad(mended)(X), differences(mended), rtol=1e-5)


def test_s66_clip_is_a_method_that_asks() -> None:
    def program(v: Any) -> Any:
        return (DATA.clip(v[0], 2 * v[1] + 0.5) * DATA).sum()

    np.testing.assert_allclose(cr.grad(program)(X), differences(program), rtol=1e-5)


class _Lengths(np.ndarray):
    """Arrays of lengths, whose products are areas."""

    def __mul__(self, other: Any) -> Any:
        return np.asarray(self) * np.asarray(other)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_s66_arrays_with_operations_of_their_own_are_refused() -> None:
    masked = np.ma.array(DATA, mask=DATA.mean() < DATA)
    own = {"matrix": np.matrix(DATA), "MaskedArray": masked, "_Lengths": DATA.view(_Lengths)}
    for name, x in own.items():
        programs: list[Callable[[], Any]] = [
            lambda x=x: cr.grad(lambda m: (m * m).sum())(x),
            lambda x=x: cr.jvp(lambda m: (m**2).sum(), (x,), (x,)),
            lambda x=x: cr.vmap(lambda m: (m**2).sum())(x),
            lambda x=x: cr.grad(lambda v: np.sum(v * x))(DATA),
            lambda x=x: cr.grad(lambda v: np.sum(v @ x))(DATA),
            lambda x=x: cr.grad(lambda v: np.add(v, x).sum())(DATA),
            lambda x=x: cr.grad(lambda v: np.mean(v - x))(1.5),
            lambda x=x: cr.grad(lambda v, x: np.dot(x, v).sum())(DATA.T, x),
            lambda x=x: cr.tensor(DATA, requires_grad=True) * x,
            lambda x=x: cr.sin(x),
        ]
        mend = r"x\.filled\(0\.0\)" if x is masked else r"Pass numpy\.asarray\(x\)"
        for program in programs:
            with pytest.raises(TypeError, match=rf"a {name} has operations of its own.*{mend}"):
                program()
    for made in (cr.tensor, cr.from_numpy, cr.asarray):
        with pytest.raises(TypeError, match="a MaskedArray has operations of its own"):
            made(masked)
    np.testing.assert_array_equal(cr.tensor(own["matrix"]), DATA)  # asked for


def test_s66_other_subclasses_of_arrays_are_arrays() -> None:
    class Named(np.ndarray):
        pass

    gradient = cr.grad(lambda v, x: np.sum(v * x * v))(DATA, DATA.view(Named))
    np.testing.assert_allclose(gradient, 2 * DATA**2)
    np.testing.assert_allclose(cr.grad(lambda x: (x**3).sum())(DATA.view(Named)), 3 * DATA**2)


STORES: dict[str, tuple[Program, str]] = {
    "element": (stored, r"dy\[0\] = \.\.\. .*chainrule\.numpy"),
    "slice": (stored_in_a_slice, r"dy\[:\] = \.\.\. .*chainrule\.numpy"),
    "sum": (added_to_an_array, r"chainrule\.numpy"),
    "fromiter": (lambda v: np.fromiter((x * x for x in v), float) @ v, r"numpy\.stack"),
    "array": (lambda v: np.array([v[0], v[1]]) @ v, r"numpy\.stack"),
    "math": (lambda v: math.sin(v[0]) * v[0], r"chainrule\.sin"),
    "out": (lambda v: np.exp(v, out=np.zeros(2)).sum(), r"chainrule\.numpy"),
    "out of a function": (lambda v: np.dot(v, v, out=np.zeros(())), r"chainrule\.numpy|out"),
}


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: cr.grad(f)(X),
        lambda f: cr.jvp(f, X, X),
        lambda f: cr.vmap(f)(np.stack([X, 2 * X])),
        lambda f: cr.compile(f)(X),
        lambda f: cr.compile(cr.grad(f))(X),
    ],
    ids=["grad", "jvp", "vmap", "compile", "compiled grad"],
)
@pytest.mark.parametrize(("program", "mend"), STORES.values(), ids=STORES)
def test_s66_the_error_itself_says_what_to_write(
    transform: Any, program: Program, mend: str
) -> None:
    """Also where NumPy has raised its own from ours, as for an element."""
    with pytest.raises(RuntimeError, match=f"(?s){mend}"):
        transform(program)


def test_s66_other_errors_of_numpys_are_left_as_they_are() -> None:
    with pytest.raises(ValueError, match="setting an array element with a sequence") as caught:
        cr.grad(lambda v: np.zeros(2).__setitem__(0, [1.0, 2.0]))(X)
    assert not isinstance(caught.value, cr.AutogradError)


TRANSFORMS: dict[str, Callable[[Program], Any]] = {
    "grad": lambda f: cr.grad(f)(X),
    "value_and_grad": lambda f: cr.value_and_grad(f)(X),
    "jacobian": lambda f: cr.jacobian(f)(X),
    "hessian": lambda f: cr.hessian(f)(X),
    "vjp": lambda f: cr.vjp(f, X),
    "jvp": lambda f: cr.jvp(f, X, X),
    "linearize": lambda f: cr.linearize(f, X),
    "hvp": lambda f: cr.hvp(f, X, X),
    "vmap": lambda f: cr.vmap(f)(np.ones((3, 2)) * X * np.arange(3)[:, None]),
    "functional": lambda f: cr.autograd.functional.jacobian(f, cr.tensor(X)),
    "compiled grad": lambda f: cr.compile(cr.grad(f))(X),
    "compile": lambda f: cr.compile(f)(cr.tensor(X)),
    "grad of an inner function": lambda f: cr.grad(lambda k: cr.grad(lambda x: x * f(k))(1.0))(X),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize("convert", [float, math.sin, lambda x: np.array([x])[0]])
def test_s66_every_transform_refuses(transform: Any, convert: Any) -> None:
    with pytest.raises(RuntimeError):
        transform(lambda v: v[0] * convert(v[1]))


def test_s66_numbers_on_purpose() -> None:
    def f(v: Any) -> Any:
        assert v[0]
        assert bool(v[0] > 0)
        assert f"{v[0]:.2f}" == "0.75"
        assert "0.75" in str(v)
        with cr.no_grad():
            assert float(v[0]) == v[0].detach().numpy() == 0.75
            assert np.asarray(v).tolist() == X.tolist()
        return v[0] * v[1].detach().item() + float(v[1].detach())

    np.testing.assert_array_equal(cr.grad(f)(X), [1.0, 0.0])
    of_tensor = cr.grad(lambda t: t[0] * t[1].item() + sum(t.tolist()))(cr.tensor(X))
    np.testing.assert_array_equal(of_tensor, [1.0, 0.0])


@pytest.mark.parametrize(
    ("convert", "mend"),
    [
        (lambda v: v[1].item(), "Leave the conversion out"),
        (lambda v: v.item(1), "Leave the conversion out"),
        (lambda v: v.tolist()[1], "Iterate over the array"),
        (lambda v: np.frombuffer(v.tobytes())[1], "Iterate over the array"),
    ],
)
def test_s66_everyday_conversions_of_numpys_arrays(convert: Any, mend: str) -> None:
    """A program for NumPy has no other way to write them, and means no constant."""
    for transform in TRANSFORMS.values():
        with pytest.raises(RuntimeError):
            transform(lambda v: v[0] * convert(chainrule.numpy.asarray(v)))
    with pytest.raises(RuntimeError, match=mend):
        cr.grad(lambda v: v[0] * convert(v))(X)
    known = chainrule.numpy.array([2.0, 3.0])
    np.testing.assert_array_equal(cr.grad(lambda v: v[0] * convert(known))(X), [3.0, 0.0])


def test_s66_copies_that_would_lose_the_gradient() -> None:
    def pickled(t: Any) -> Any:
        return pickle.loads(pickle.dumps(t))

    def of_product(make: Any) -> Program:
        return lambda t: (t * make(t)).sum()

    for make in (copy.copy, copy.deepcopy, pickled, lambda t: copy.deepcopy({"t": [t]})["t"][0]):
        for transform in (cr.grad, cr.jacobian, cr.value_and_grad):
            with pytest.raises(RuntimeError, match=r"gradient would be lost.*x\.clone\(\)"):
                transform(of_product(make))(cr.tensor(X))
    t = cr.tensor(X, requires_grad=True)
    kept = cr.grad(lambda s: (s * copy.deepcopy(t)).sum())(cr.tensor([2.0, 3.0]))
    np.testing.assert_array_equal(kept.detach(), X)  # the transform doesn't know this leaf
    np.testing.assert_array_equal(cr.grad(lambda t: (t * t.clone()).sum())(cr.tensor(X)), 2 * X)
    arrays = cr.grad(lambda v: (copy.copy(v) * copy.deepcopy(v)).sum())(X)
    np.testing.assert_array_equal(arrays, 2 * X)


def test_s66_what_a_transform_does_not_differentiate_is_as_before() -> None:
    w = cr.tensor(2.0, requires_grad=True)

    def f(v: Any, scale: Any) -> Any:
        with pytest.warns(UserWarning, match="Converting a tensor"):
            number = float(w * 3)
        return v.sum() * number * float(scale) * int(cr.tensor(3))

    np.testing.assert_array_equal(cr.grad(f)(X, cr.tensor(0.5)), [9.0, 9.0])
    with pytest.warns(UserWarning, match="Converting a tensor"):
        assert float(w) == 2.0


def test_s66_after_the_transform_the_tensor_is_one_as_any() -> None:
    kept: list[Any] = []
    cr.grad(lambda v: kept.append(v * 2) or v.sum())(X)
    with pytest.warns(UserWarning, match="Converting a tensor"):
        assert float(kept[0][0]) == 1.5


def test_s66_an_error_in_the_function_ends_it() -> None:
    w = cr.tensor(2.0, requires_grad=True)
    with pytest.raises(ZeroDivisionError):
        cr.grad(lambda v: v / (1 // 0))(w)
    with pytest.warns(UserWarning, match="Converting a tensor"):
        assert float(w * 1) == 2.0


def test_s66_formatting_always_works() -> None:
    texts = []

    def function(v: Any) -> Any:
        texts.append([f"{v[0]:.2f}", "%.2f" % v[0], "{:.2f}".format(v[0]), f"{v[0]}"[:8]])  # noqa: UP031, UP032
        return v[0] * v[1]

    np.testing.assert_allclose(cr.grad(function)(X), [X[1], X[0]])
    number = f"{X[0]:.2f}"
    assert texts[0][:3] == [number] * 3
