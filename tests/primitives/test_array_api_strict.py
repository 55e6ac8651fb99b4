"""Every forward and every rule computes with the namespace that it is handed, and with no other.

Here they are handed `array_api_strict`, which has the array API and nothing more. Its arrays are
locked, and won't say whether they are true: rules write nothing in place and branch on no values.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainrule import primitives
from chainrule.backend import KERNELS, Namespace, numpy_xp
from chainrule.primitives.primitive import TABLE, Primitive, elementwise, forward_of
from conformance import CONSTANTS, ROWS, Case, cases_of
from conformance.checks import demand

strict = pytest.importorskip("array_api_strict")


def is_standard(case: Case) -> bool:
    """Say whether the array API defines the operation for these inputs at all.

    It indexes with masks of all axes or integers for each of them, and has logic for bools alone.
    """
    x = case.arrays()[0]
    if case.row.primitive.startswith("logical"):
        return x.dtype.kind == "b"
    path = case.settings.get("path") or [(None, case.settings)]
    key, shape = path[-1][1].get("key", ()), case.settings.get("shape", x.shape)
    parts = key if isinstance(key, tuple) else (key,)
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if not arrays:
        return True
    return sum(max(1, a.ndim * (a.dtype.kind == "b")) for a in arrays) == len(shape)


CASES = [case for row in ROWS for case in cases_of(row) if is_standard(case)]
STEPS = [case for row in CONSTANTS for case in cases_of(row) if is_standard(case)]


# --- array_api_strict, with generic versions of the extensions -------------------------------


def to_strict(value: Any) -> Any:
    """Return arrays locked and of array_api_strict, dtypes as its dtypes, the rest as it is."""
    if isinstance(value, np.ndarray | np.generic):
        memory = np.array(value)
        memory.setflags(write=False)
        return strict.asarray(memory, copy=False)
    if isinstance(value, np.dtype):
        return getattr(strict, value.name)
    if isinstance(value, dict):
        return {key: to_strict(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return type(value)([to_strict(part) for part in value])
    return value


def to_numpy(value: Any) -> Any:
    return None if value is None else np.asarray(getattr(value, "_array", value))


def _borrowed(name: str) -> Any:
    """Return an extension of NumPy's namespace, applied to the memory of strict arrays."""
    function = getattr(numpy_xp, name)

    def extension(*arrays: Any, **settings: Any) -> Any:
        plain = [_plain(a) for a in arrays]
        return strict.asarray(function(*plain, **{k: _plain(v) for k, v in settings.items()}))

    return extension


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)([_plain(part) for part in value])
    return getattr(value, "_array", value)


NUMPYS = (
    *("exp2", "cbrt", "logaddexp2", "fmod", "fmax", "fmin", "heaviside", "nan_to_num"),
    *("gcd", "lcm"),
)
"""What NumPy and CuPy have in common, and the array API has not."""

XP = Namespace(
    strict,
    masked=lambda x, mask: strict.where(mask, x, strict.zeros((), dtype=x.dtype)),
    index=lambda x, *, key: x[key],
    index_add=_borrowed("index_add"),
    add_at=_borrowed("add_at"),
    maximum_at=_borrowed("maximum_at"),
    minimum_at=_borrowed("minimum_at"),
    diagonal=lambda x, *, offset, key: strict.linalg.diagonal(x, offset=offset),
    windows=_borrowed("windows"),
    logcumsumexp=_borrowed("logcumsumexp"),
    assign_at=_borrowed("assign_at"),
    **{name: _borrowed(name) for names in (*KERNELS.values(), NUMPYS) for name in names},
    add_along_axis=_borrowed("add_along_axis"),
    to_device=lambda x, *, source, target: x,
)


# --- a primitive applied, and both its rules ------------------------------------------------------


class FunctionCall:
    """A primitive applied to the inputs of a case, in NumPy and in array_api_strict."""

    def __init__(self, case: Case) -> None:
        self.primitive: Primitive = TABLE[case.row.primitive]
        self.arrays = case.arrays()
        self.settings = case.settings
        self.out = forward_of(self.primitive, numpy_xp)(*self.arrays, **self.settings)
        self.strict_arrays = [to_strict(array) for array in self.arrays]
        self.strict_settings = to_strict(self.settings)
        self.rng = np.random.default_rng(7)

    def forward(self) -> Any:
        return forward_of(self.primitive, XP)(*self.strict_arrays, **self.strict_settings)

    def needs(self) -> tuple[bool, ...]:
        return tuple(array.dtype.kind in "fc" for array in self.arrays)

    def saved(self, arrays: list[Any], out: Any) -> tuple[Any, ...]:
        """Return what the engine would save for the rules."""
        plan = self.primitive.plan(self.needs())
        values = []
        for name, origin in zip(plan.saves, plan.origins, strict=True):
            stem, _, aspect = name.rpartition("_")
            if origin is not None:
                several = origin < 0 and self.primitive.multiple
                values.append(out[~origin] if several else out if origin < 0 else arrays[origin])
            elif name == "shapes":
                values.append(tuple(array.shape for array in arrays))
            else:
                values.append(getattr(arrays[self.primitive.inputs.index(stem)], aspect))
        return tuple(values)

    def random(self, array: Any) -> np.ndarray:
        values = self.rng.uniform(-1, 1, array.shape)
        if array.dtype.kind == "c":
            values = values + 1j * self.rng.uniform(-1, 1, array.shape)
        return np.asarray(values).astype(array.dtype)

    def cotangent(self) -> Any:
        if self.primitive.multiple:
            return {i: self.random(part) for i, part in enumerate(self.out)}
        return self.random(np.asarray(self.out))


def check_forward(case: Case) -> None:
    application = FunctionCall(case)
    _assert_same(application.forward(), application.out)


def check_vjp(case: Case) -> None:
    application = FunctionCall(case)
    g = application.cotangent()
    _assert_same(*_pulled(application, g))
    if application.primitive.multiple:
        _assert_same(*_pulled(application, {0: g[0]}))


def _pulled(application: FunctionCall, g: Any) -> tuple[Any, Any]:
    a = application
    plan = a.primitive.plan(a.needs())
    saved = a.saved(a.strict_arrays, to_strict(a.out))
    got = plan.pull(XP, to_strict(g), saved, a.strict_settings)
    return got, plan.pull(numpy_xp, g, a.saved(a.arrays, a.out), a.settings)


def check_jvp(case: Case) -> None:
    application = FunctionCall(case)
    a = application
    ts = tuple(a.random(x) if need else None for x, need in zip(a.arrays, a.needs(), strict=True))
    plan = a.primitive.plan(a.needs())
    saved = a.saved(a.strict_arrays, to_strict(a.out))
    got = plan.push(XP, tuple(to_strict(t) for t in ts), saved, a.strict_settings)
    _assert_same(got, plan.push(numpy_xp, ts, a.saved(a.arrays, a.out), a.settings))


def check_precision(case: Case) -> None:
    """In single precision a rule computes in single precision: no doubles on the way."""
    application = FunctionCall(case)
    plan = application.primitive.plan(application.needs())
    saved = application.saved(application.arrays, application.out)
    for part in plan.pull(numpy_xp, application.cotangent(), saved, application.settings):
        assert part is None or part.dtype in (np.float32, np.complex64)


def _assert_same(got: Any, wanted: Any) -> None:
    if not isinstance(wanted, tuple | list):
        got, wanted = [got], [wanted]
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        if b is None:
            assert a is None
            continue
        a, b = to_numpy(a), np.asarray(b)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        single = b.dtype in (np.float32, np.complex64)
        np.testing.assert_allclose(a, b, rtol=1e-5 if single else 1e-13, atol=1e-6 if single else 0)


def each(cases: list[Case]) -> Any:
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(f"{case.row.primitive}-{case.dtype}", []).append(case)
    return pytest.mark.parametrize("cases", groups.values(), ids=groups)


@pytest.fixture(autouse=True)
def no_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of array_api_strict refuse to become Python's bools and numbers."""

    def refuse(self: Any) -> Any:
        raise TypeError("a rule has branched on an array's value")

    for method in ("__bool__", "__float__", "__int__", "__complex__", "__index__"):
        monkeypatch.setattr(type(strict.zeros(())), method, refuse)


@pytest.fixture(autouse=True)
def any_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random cotangents turn the vectors of complex matrices: that is refused elsewhere."""
    monkeypatch.setattr("chainrule.kernels.matrices._PHASE", np.inf)


@each([*CASES, *STEPS])
def test_forwards_need_nothing_but_the_array_api(cases: list[Case]) -> None:
    demand(check_forward, cases)


@each(CASES)
def test_reverse_rules_need_nothing_but_the_array_api(cases: list[Case]) -> None:
    demand(check_vjp, cases)


@each(CASES)
def test_forward_rules_need_nothing_but_the_array_api(cases: list[Case]) -> None:
    demand(check_jvp, cases)


@each(
    [case for case in CASES if case.dtype in ("float32", "complex64") and not case.situation.dtypes]
)
def test_rules_keep_single_precision(cases: list[Case]) -> None:
    demand(check_precision, cases)


# --- what the source says -------------------------------------------------------------------------

SOURCES = sorted(Path(inspect.getfile(primitives)).parent.glob("*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_rules_import_no_array_library(path: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    assert imported <= {
        "__future__",
        "chainrule",
        "collections",
        "functools",
        "linecache",
        "math",
        "operator",
        "typing",
    }


def in_place_writes(source: str) -> list[int]:
    """Return the lines where a function of `xp` writes to an index or to one of its parameters."""
    lines = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        parameters = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
        if "xp" not in parameters[:1]:
            continue
        for node in ast.walk(function):
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.AugAssign):
                targets = [node.target]
            written = any(isinstance(target, ast.Subscript) for target in targets)
            augmented = isinstance(node, ast.AugAssign) and (
                isinstance(node.target, ast.Name) and node.target.id in parameters
            )
            out = isinstance(node, ast.Call) and any(k.arg == "out" for k in node.keywords)
            if written or augmented or out:
                lines.append(node.lineno)
    return lines


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_rules_write_nothing_in_place(path: Path) -> None:
    assert in_place_writes(path.read_text()) == []


# --- the checks themselves ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "def rule(xp, g):\n    g += 1\n    return g",
        "def rule(xp, g):\n    g[0] = 1\n    return g",
        "def rule(xp, g):\n    return xp.add(g, 1, out=g)",
    ],
)
def test_a_planted_write_is_noticed(source: str) -> None:
    assert len(in_place_writes(source)) == 1


def _branching(xp: Any, x: Any) -> Any:
    return x * x if xp.any(x > 0) else x


def _more_than_the_array_api(xp: Any, x: Any) -> Any:
    return xp.fabs(x)


def _of_numpy(xp: Any, x: Any) -> Any:
    return np.square(np.asarray(x))


def _writing(xp: Any, x: Any) -> Any:
    x *= x
    return x


def _kinds_mixed(xp: Any, x: Any) -> Any:
    return x * (x > 0)


@pytest.mark.parametrize(
    "rule", [_branching, _more_than_the_array_api, _of_numpy, _writing, _kinds_mixed]
)
def test_a_planted_rule_that_needs_more_is_noticed(rule: Any) -> None:
    primitive = elementwise("planted_strict", rule, forward=lambda xp, x: xp.sin(x))
    TABLE.pop("planted_strict")
    plan = primitive.plan((True,))
    x = to_strict(np.array([0.5, 1.0]))
    with pytest.raises((TypeError, AttributeError, ValueError, RuntimeError)):
        assert type(plan.pull(XP, x, (x,), {})[0]) is type(x)
