"""Forwards and rules compute with the namespace that they are given, and with no other.

Here the namespace is `array_api_strict`, which has the array API and nothing more. Its arrays are
read-only and have no truth value: rules must not write in place, nor branch on values.
"""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chainrule import primitives
from chainrule.primitives.primitive import TABLE, elementwise
from conformance import CONSTANTS, ROWS, Case, cases_of
from conformance.array_api_strict import (
    XP,
    check_forward,
    check_jvp,
    check_precision,
    check_vjp,
    strict,
    to_strict,
)
from conformance.checks import demand


def is_standard(case: Case) -> bool:
    """Say whether the array API defines the operation for these inputs at all.

    It has masks of all axes, integer arrays for each axis, and logic for bools only. Parts of
    complex numbers are no views.
    """
    x = case.arrays()[0]
    if case.row.primitive in ("real_part", "imag_part"):
        return False
    if len(case.arrays()) < len(TABLE[case.row.primitive].inputs):
        return False  # the row computes the others
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


def each(cases: list[Case]) -> Any:
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.row.primitive, []).append(case)
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
    """Accept cotangents that depend on the phase of eigenvectors: random ones do."""
    monkeypatch.setattr("chainrule.kernels.matrices._PHASE_TOLERANCE", np.inf)


@pytest.mark.sampled(5)
@each([*CASES, *STEPS])
def test_forwards_need_nothing_but_the_array_api(cases: list[Case]) -> None:
    demand(check_forward, cases)


@pytest.mark.sampled(5)
@each(CASES)
def test_reverse_rules_need_nothing_but_the_array_api(cases: list[Case]) -> None:
    demand(check_vjp, cases)


@pytest.mark.sampled(5)
@each(CASES)
def test_forward_rules_need_nothing_but_the_array_api(cases: list[Case]) -> None:
    demand(check_jvp, cases)


@each(
    [case for case in CASES if case.dtype in ("float32", "complex64") and not case.situation.dtypes]
)
def test_rules_keep_single_precision(cases: list[Case]) -> None:
    demand(check_precision, cases)


# --- the source of the rules ----------------------------------------------------------------------

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
        "array",  # of the standard library
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
        assert type(plan.vjp(XP, x, (x,), {})[0]) is type(x)
