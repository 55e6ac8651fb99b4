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
    "a.copy(order='F')": "copies are in C order",
    "isinstance(v[0], float)": "elements record, NumPy's scalars can't",
    "type(a[0, 0]).__name__": "elements record, NumPy's scalars can't",
    "view(np.int64)": "the bits of a number have no derivative",
    "c.view(float)": "the bits of a number have no derivative",
    "c.imag[1:] *= -1": "parts of complex arrays are copies, which are read-only",
    "z[:, 0].imag += 3": "parts of complex arrays are copies, which are read-only",
    "v.resize(6": "the memory of an array with a history has one size",
}
"""What is different, and why: it raises an error, or tells the type."""

REFUSED = {
    "repr(v)": "the text tells that the array has a history",
    "np.polynomial.polynomial.polyval": "there is no rule",
    "np.ma.": "masked arrays record nothing",
    "np.frompyfunc": "there is no rule for objects",
    "n = np.zeros(4, dtype=int)": "integers have no gradient",
    "np.nditer": "it hands out NumPy's own arrays",
}
"""What raises an error, or tells the history, if a gradient is recorded."""


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
