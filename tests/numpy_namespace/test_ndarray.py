"""Expressions and statements of NumPy on arrays that record: the results of plain NumPy.

`expressions.txt` has one on each line, `statements.txt` has blocks that assign to `result`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest

import chainrule as cr
import chainrule.numpy
from chainrule.numpy.array_class import as_ndarray, as_ndarrays

HERE = Path(__file__).parent
EXPRESSIONS = (HERE / "expressions.txt").read_text().splitlines()
STATEMENTS = [block.strip() for block in (HERE / "statements.txt").read_text().split("\n---\n")]


DIFFERENT = {
    "c.view(float)": "the bits of a number have no derivative",
    "v.resize(6": "the memory of an array with a history has one size",
}
"""What is different, and why: it raises an error, or tells the type."""

REFUSED = {
    "view(np.int64)": "the bits of a number have no derivative",
    "type(a[0, 0]).__name__": "elements record, NumPy's scalars can't",
    "repr(v)": "the text tells that the array has a history",
    "np.ma.": "masked arrays record nothing",
    "n = np.zeros(4, dtype=int)": "integers have no gradient",
    "np.nditer": "it hands out NumPy's own arrays",
}
"""What raises an error, or tells the history, if a gradient is recorded."""

DIFFERENT_COMPILED = {
    "type(a[0, 0]).__name__": "symbols are of no class of NumPy's",
    "total = np.zeros(())": "what has no dimensions is returned as NumPy's scalar",
    "str(": "the text has no values",
    "repr(v)": "the text has no values",
    "np.array2string": "the text is NumPy's",
    "np.array_equal": "the truth value is NumPy's",
    "np.allclose": "the truth value is NumPy's",
    "s_memory": "the truth value is NumPy's",
    "share_memory": "the truth value is NumPy's",
    "np.tensordot(a, a, axes=([0, 1], [0, 1]))": "the number is NumPy's scalar",
    "np.corrcoef(a)[0, 1]": "the number is NumPy's scalar",
}
"""What has another result in a compiled function, and why."""

DIFFERENT_MAPPED = {
    "type(a[0, 0]).__name__": "examples are of no class of NumPy's",
    "flags": "an example is a part of the memory",
    "strides": "an example is a part of the memory",
}
"""What has another result in a mapped function, and why."""


def names(np: Any, convert: Any) -> dict[str, Any]:
    generator = numpy.random.default_rng(0)
    arrays = {
        "a": generator.permutation(12).reshape(3, 4) / 3 + 0.5,
        "v": numpy.array([1.5, 0.5, 3.0, 2.0]),
        "s": numpy.array(1.5),
        "m": generator.normal(size=(3, 3)) + 3 * numpy.eye(3),
        "c": generator.normal(size=4) + 1j * generator.normal(size=4),
    }
    return {"np": np} | {name: convert(array) for name, array in arrays.items()}


def untracked(array: Any) -> Any:
    return as_ndarrays(array)


def tracked(array: Any) -> Any:
    return as_ndarray(cr.tensor(array, requires_grad=True) * 1)


def outcome(code: str, scope: dict[str, Any]) -> Any:
    if "result =" in code:
        exec(code, scope)
        return scope["result"]
    return eval(code, scope)


def assert_same(got: Any, wanted: Any) -> None:
    if isinstance(got, cr.Tensor):
        got = got.detach().numpy()
    if isinstance(wanted, list | tuple):
        assert len(got) == len(wanted)
        for pair in zip(got, wanted, strict=True):
            assert_same(*pair)
    elif isinstance(wanted, dict):
        assert got.keys() == wanted.keys()
        for key in wanted:
            assert_same(got[key], wanted[key])
    elif isinstance(wanted, numpy.ndarray | numpy.generic | float | complex):
        got = numpy.asarray(got)
        assert got.dtype == numpy.asarray(wanted).dtype
        numpy.testing.assert_allclose(got, wanted, rtol=1e-12)
    else:
        assert got == wanted


def reason(code: str, table: dict[str, str]) -> str | None:
    return next((why for text, why in table.items() if text in code), None)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("code", [*EXPRESSIONS, *STATEMENTS])
@pytest.mark.parametrize("convert", [untracked, tracked])
def test_arrays_behave_as_numpys(code: str, convert: Any) -> None:
    wanted = outcome(code, names(numpy, numpy.copy))
    scope = names(cr.numpy, convert)
    different = DIFFERENT if convert is untracked else DIFFERENT | REFUSED
    if reason(code, different) is None:
        assert_same(outcome(code, scope), wanted)
        return
    try:
        got = outcome(code, scope)
    except (TypeError, cr.AutogradError):
        return
    assert isinstance(wanted, str | bool)
    assert got != wanted


def function_of(code: str, np: Any) -> Any:
    """Return a function of arrays that returns what an expression or a block gives."""
    body = code if "result =" in code else f"result = {code}"
    lines = "\n    ".join([*body.splitlines(), "return result, a, v, s, m, c"])
    scope = {"np": np}
    exec(f"def function(a, v, s, m, c):\n    {lines}\n", scope)
    return scope["function"]


def kinds(result: Any) -> Any:
    if isinstance(result, list | tuple):
        return [kinds(part) for part in result]
    return type(result)


def without_history(result: Any) -> Any:
    return cr.tree.map(lambda x: x.numpy() if isinstance(x, cr.Tensor) else x, result)


@pytest.mark.sampled(4)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("np", [numpy, cr.numpy], ids=["numpy", "chainrule.numpy"])
def test_compiled_functions_get_arrays_that_behave_as_numpys(np: Any, part: int) -> None:
    """Results, their kinds and what is written to arguments are as in eager mode, or it raises."""
    agreed = 0
    for code in [*EXPRESSIONS, *STATEMENTS][part::4]:
        if reason(code, DIFFERENT | DIFFERENT_COMPILED) is not None:
            continue
        function = function_of(code, np)
        arrays = [value for name, value in names(np, numpy.copy).items() if name != "np"]
        given = [array.copy() for array in arrays]
        try:
            got = cr.compile(function, backend="numpy")(*given)
        except (cr.CompileError, TypeError, ValueError, numpy.linalg.LinAlgError):
            continue
        wanted = function(*arrays)
        assert_same(got, without_history(wanted))
        assert_same(given, arrays)
        assert kinds(got) == kinds(wanted), code
        agreed += 1
    assert agreed > 80


@pytest.mark.filterwarnings("ignore")
def test_mapped_functions_get_arrays_that_behave_as_numpys() -> None:
    """Each example's result is that of the function of that example, or it raises."""
    agreed = 0
    for code in EXPRESSIONS:
        if reason(code, DIFFERENT | DIFFERENT_MAPPED) is not None:
            continue
        function, numpys = function_of(code, cr.numpy), function_of(code, numpy)
        arrays = [value for name, value in names(numpy, numpy.copy).items() if name != "np"]
        batches = [numpy.stack([array, array + 0.125]) for array in arrays]
        try:
            rows = zip(*batches, strict=True)
            examples = [cr.tree.leaves(numpys(*map(numpy.copy, row))[0]) for row in rows]
            wanted = [numpy.stack(parts) for parts in zip(*examples, strict=True)]
            got = cr.tree.leaves(cr.vmap(lambda *one, f=function: f(*one)[0])(*batches))
        except (cr.AutogradError, TypeError, ValueError, IndexError):
            continue
        for ours, expected in zip(got, wanted, strict=True):
            assert numpy.asarray(ours).dtype == expected.dtype, code
            numpy.testing.assert_allclose(ours, expected, rtol=1e-12, err_msg=code)
        agreed += 1
    assert agreed > 330


def test_numbers_read_from_arrays_do_not_change_in_compiled_functions() -> None:
    def function(v: Any) -> Any:
        total = v.sum()
        before = total
        total += 1
        first = v[0]
        v[0] = 7.0
        return before, total, first

    wanted = function(numpy.array([1.0, 2.0]))
    assert cr.compile(function)(numpy.array([1.0, 2.0])) == wanted == (3.0, 4.0, 1.0)


def test_lists_of_symbols_and_open_numbers_become_arrays() -> None:
    import chainrule.numpy as np

    @cr.compile
    def rotated(angle: float, v: Any) -> Any:
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        return np.array([turn @ v, [angle, v[0]]])

    for angle in (0.1, 0.2, 0.3, 0.4):
        got = rotated(angle, numpy.array([1.0, 0.0]))
        wanted = [[numpy.cos(angle), numpy.sin(angle)], [angle, 1.0]]
        numpy.testing.assert_allclose(got, wanted, rtol=1e-12)
    assert len(rotated.signatures) == 2


def test_what_compiled_functions_refuse_names_the_mend() -> None:
    def reshaped(v: Any) -> Any:
        v.shape = (2, 2)
        return v

    def masked(v: Any) -> Any:
        v[v > 1] = v[v > 1] ** 2
        return v

    mends = {
        reshaped: r"use a = a.reshape\(\(2, 2\)\)",
        masked: r"x = where\(mask, f\(x\), x\)",
        lambda v: f"{v[0]:.2f}": "a value was asked for",
    }
    for function, mend in mends.items():
        with pytest.raises(cr.CompileError, match=mend):
            cr.compile(function)(numpy.ones(4))


@pytest.mark.parametrize("transform", ["jvp", "linearize", "hvp", "ggnvp"])
def test_directions_may_be_arrays_that_record(transform: str) -> None:
    def function(x: Any) -> Any:
        found = numpy.stack([x[0] * x[1], numpy.exp(x[2]) * x[0]])
        return numpy.sum(found**2) if transform == "hvp" else found

    def product(x: Any, v: Any) -> Any:
        if transform == "linearize":
            return cr.linearize(function, x)[1](v)
        found = getattr(cr, transform)(function, x, v)
        return found[1] if transform == "jvp" else found

    arrays = numpy.array([0.7, 1.3, -0.4]), numpy.array([1.0, 0.0, 2.0])
    got = product(*map(cr.numpy.array, arrays))
    numpy.testing.assert_allclose(got, product(*arrays), rtol=1e-12)


def test_numpys_constructor_makes_arrays_that_record() -> None:
    def powers(x):
        found = chainrule.numpy.ndarray((2,))
        found[0], found[1] = x, x**2
        return found.sum()

    assert cr.grad(powers)(3.0) == 7.0
    assert (
        type(chainrule.numpy.ndarray(shape=(2, 1), dtype=chainrule.numpy.float32))
        is chainrule.numpy.ndarray
    )
    assert chainrule.numpy.ndarray((2,), int).dtype == int


def test_an_arrays_own_device_is_numpys() -> None:
    def call(x: Any) -> Any:
        zeros = chainrule.numpy.zeros(2, device=x.device)
        return (zeros + chainrule.numpy.asarray(x, device=x.device)).sum()

    numpy.testing.assert_array_equal(cr.grad(call)(numpy.ones(2)), numpy.ones(2))


def test_windows_that_could_be_written_to_are_not() -> None:
    windows = chainrule.numpy.lib.stride_tricks.sliding_window_view
    assert cr.grad(lambda x: windows(x, 2, writeable=True)[1, 0])(numpy.ones(3)).tolist() == [
        0,
        1,
        0,
    ]

    def overwritten(x):
        windows(x, 2, writeable=True)[0, 0] = 1.0

    with pytest.raises(cr.errors.InPlaceError, match="read-only"):
        cr.grad(overwritten)(numpy.ones(3))


def test_values_are_put_into_arrays_without_dimensions() -> None:
    def written(x, write):
        y = x * 3
        write(y, 5 * x)
        return y

    np = chainrule.numpy
    assert cr.grad(written)(2.0, lambda y, v: np.place(y, y > 0, [v, 7 * v])) == 5
    assert cr.grad(written)(2.0, lambda y, v: np.putmask(y, y < 0, v)) == 3
    assert cr.grad(written)(2.0, lambda y, v: np.put(y, [0, 0], [v, 7 * v])) == 35


def test_differentiated_floats_have_the_methods_of_floats() -> None:
    assert cr.grad(lambda t: t * t.conjugate())(1.5) == 3.0
