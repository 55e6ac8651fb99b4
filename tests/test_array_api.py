"""The array API namespace: functions shared with chainrule, and those of its own.

array-api-strict is the reference for the standard; the conformance suite itself is run by
tools/array_api_tests.py.
"""

import inspect
import runpy
import subprocess
import sys
from pathlib import Path

import array_api_strict as strict
import numpy as np
import pytest

import chainrule as cr
from chainrule import array_api as xp

DIFFERENT = {
    *("arange", "empty", "full", "linspace", "ones", "zeros"),
    *("reshape", "roll", "concat", "meshgrid", "var", "std", "sum", "prod"),
    *("can_cast", "clip", "equal", "max", "min", "nonzero", "sort", "squeeze", "vecdot"),
}


def names():
    return sorted(
        name
        for name, value in vars(xp).items()
        if not name.startswith("_") and name in strict_names() and callable(value)
    )


def strict_names():
    return {name for name in dir(strict) if not name.startswith("_")}


def test_only_what_differs_from_pytorch_is_not_chainrules_own():
    own = {name: getattr(cr, name, None) for name in names()}
    own = {name: getattr(function, "without_out", function) for name, function in own.items()}
    ours = {name for name, function in own.items() if getattr(xp, name) is not function}
    assert ours == DIFFERENT


def test_extensions_are_chainrules_own():
    assert xp.fft is cr.fft
    ours = {name for name, f in vars(xp.linalg).items() if f is not getattr(cr.linalg, name)}
    assert ours == {"solve", "vecdot"}
    assert set(vars(xp.linalg)) >= set(strict.linalg.__all__)


def test_dtypes_and_constants_are_there():
    for name in ("bool", "int8", "uint64", "float32", "complex128", "pi", "e", "inf", "newaxis"):
        assert getattr(xp, name) == getattr(cr, name)
    assert np.isnan(xp.nan)


def both(expression):
    """Evaluate an expression here and in array-api-strict; return lists and dtype names."""
    results = []
    for module in (xp, strict):
        result = eval(expression, {"xp": module})
        if hasattr(result, "dtype"):
            name = str(result.dtype).rpartition(".")[2]
            result = (np.asarray(result).tolist(), result.shape, name)
        results.append(result)
    return results


@pytest.mark.parametrize(
    "expression",
    [
        "xp.arange(5, dtype=xp.float64)",
        "xp.arange(1, stop=6, step=2)",
        "xp.zeros(shape=(2, 1), dtype=xp.int8)",
        "xp.ones(3, dtype=xp.float64)",
        "xp.empty(shape=(0, 2), dtype=xp.float64)",
        "xp.full(shape=(2,), fill_value=7)",
        "xp.linspace(0, 1, num=5, dtype=xp.float64)",
        "xp.linspace(0, 1, num=5, endpoint=False, dtype=xp.float64)",
        "xp.eye(2, 3, k=-1, dtype=xp.float64)",
        "xp.tril(xp.reshape(xp.arange(6), (2, 3)), k=-1)",
        "xp.triu(xp.reshape(xp.arange(6), (2, 3)), k=1)",
        "xp.reshape(xp.arange(6), shape=(2, 3), copy=True)",
        "xp.reshape(xp.arange(6), (3, 2), copy=False)",
        "xp.roll(xp.arange(4), shift=1)",
        "xp.roll(xp.reshape(xp.arange(4), (2, 2)), (1, 0), axis=(0, 1))",
        "xp.concat([xp.asarray([[1, 2]]), xp.asarray([3, 4])], axis=None)",
        "xp.concat((xp.asarray([1]), xp.asarray([2, 3])))",
        "xp.var(xp.asarray([1.0, 2.0, 6.0, 3.0], dtype=xp.float64))",
        "xp.var(xp.asarray([[1.0, 2.0]], dtype=xp.float64), axis=1, correction=1, keepdims=True)",
        "xp.std(xp.asarray([1.0, 3.0], dtype=xp.float64), axis=0)",
        "xp.sum(xp.asarray([200, 100], dtype=xp.uint8))",
        "xp.sum(xp.asarray([[1, 2]], dtype=xp.int16), axis=0, keepdims=True)",
        "xp.sum(xp.asarray([1, 2]), dtype=xp.float64)",
        "xp.prod(xp.asarray([20, 20], dtype=xp.uint8))",
        "xp.prod(xp.asarray([3, 4], dtype=xp.int8), dtype=xp.int8)",
        "xp.cumulative_sum(xp.asarray([200, 100], dtype=xp.uint8))",
        "xp.cumulative_sum(xp.ones((1, 2), dtype=xp.float64), axis=0, include_initial=True)",
        "xp.cumulative_prod(xp.asarray([2, 3], dtype=xp.int8), include_initial=True)",
        "xp.cumulative_sum(xp.zeros((2, 0), dtype=xp.float64), axis=1, include_initial=True)",
        "xp.clip(xp.asarray([1, 5]))",
        "xp.clip(xp.asarray([1, 5]), max=3)",
        "xp.max(xp.asarray([[1, 5], [7, 2]]), axis=1)",
        "xp.max(xp.asarray([[1, 5], [7, 2]]), axis=(0, 1), keepdims=True)",
        "xp.min(xp.asarray([[1, 5], [7, 2]]), axis=-1)",
        "xp.sort(xp.asarray([3, 1, 2]))",
        "xp.sort(xp.asarray([[3, 1], [2, 5]]), axis=0, descending=True)",
        "xp.squeeze(xp.zeros((1, 2, 1), dtype=xp.float64), axis=(0, -1))",
        "xp.expand_dims(xp.zeros((2, 3), dtype=xp.float64), axis=(0, -1))",
        "xp.expand_dims(xp.zeros((2, 3), dtype=xp.float64), 1)",
        "xp.take_along_axis(xp.asarray([[3, 1], [2, 5]]), xp.asarray([[1], [0]]))",
        "xp.can_cast(xp.float64, xp.float32)",
        "xp.can_cast(xp.int8, xp.int64)",
        "xp.can_cast(xp.uint8, xp.int16)",
        "xp.can_cast(xp.uint8, xp.int8)",
        "xp.vecdot(xp.asarray([[100, 2], [3, 4]], dtype=xp.int8), xp.ones(2, dtype=xp.int8))",
        "xp.vecdot(xp.asarray([[1, 2], [3, 4]]), xp.asarray([[5], [6]]), axis=-2)",
        "xp.tensordot(xp.ones((2, 3), dtype=xp.int8), xp.ones((3, 2), dtype=xp.int8), axes=1)",
        "xp.stack(xp.meshgrid(xp.asarray([1, 2, 3]), xp.asarray([4, 5])))",
        "xp.stack(xp.meshgrid(xp.asarray([1, 2, 3]), xp.asarray([4, 5]), indexing='ij'))",
        "xp.repeat(xp.asarray([[1, 2], [3, 4]]), xp.asarray([1, 2]), axis=0)",
        "xp.repeat(xp.asarray([[1, 2]]), 2)",
        "xp.tile(xp.asarray([[1, 2]]), (2, 2))",
        "xp.linalg.trace(xp.ones((2, 3, 3), dtype=xp.uint8), offset=1)",
        "xp.linalg.diagonal(xp.reshape(xp.arange(12), (2, 2, 3)), offset=1)",
        "xp.linalg.vector_norm(xp.asarray([[3.0, 4.0]], dtype=xp.float64), axis=1, keepdims=True)",
        "xp.linalg.matrix_norm(xp.asarray([[3.0, 4.0]], dtype=xp.float64), ord=1)",
        "xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0]))",
        "xp.hypot(xp.asarray([3.0], dtype=xp.float64), 4.0)",
        "xp.bitwise_left_shift(xp.asarray([1, 5], dtype=xp.uint8), 2)",
        "xp.asarray([1, 5], dtype=xp.int8) >> xp.asarray(1, dtype=xp.int8)",
        "xp.stack(xp.nonzero(xp.asarray([[0, 1], [2, 0]])))",
        "xp.searchsorted(xp.asarray([1, 3, 3]), xp.asarray([3, 0]), side='right')",
        "xp.diff(xp.asarray([1, 4, 9]), n=2, append=xp.asarray([0]))",
        "xp.unique_values(xp.asarray([[3, 1], [3, 2]]))",
    ],
)
def test_results_of_the_standard(expression):
    ours, theirs = both(expression)
    assert ours == theirs


@pytest.mark.parametrize(
    ("expression", "error", "words"),
    [
        ("xp.squeeze(xp.zeros((2, 1)), 0)", ValueError, "axis 0 of shape .* has length 2"),
        ("xp.squeeze(xp.zeros((2, 1)), 2)", IndexError, "out of range"),
        (
            "xp.vecdot(xp.zeros((2, 3)), xp.zeros(1))",
            ValueError,
            "vectors of equal length along axis",
        ),
        (
            "xp.vecdot(xp.zeros(3), xp.zeros((3, 2)), axis=-2)",
            ValueError,
            "vectors of equal length",
        ),
        ("xp.nonzero(xp.asarray(1))", ValueError, "without dimensions has no indices"),
        ("xp.expand_dims(xp.zeros(2), 3)", IndexError, "out of range"),
        ("xp.reshape(xp.zeros((2, 3)).T, (6,), copy=False)", ValueError, "view size is not"),
    ],
)
def test_refusals(expression, error, words):
    with pytest.raises(error, match=words):
        eval(expression, {"xp": xp})
    with pytest.raises((ValueError, IndexError, AttributeError)):
        eval(expression, {"xp": strict})


def test_reshape_copies_if_it_must():
    x = xp.arange(4)
    copied, shared = xp.reshape(x, (2, 2), copy=True), xp.reshape(x, (2, 2))
    x[0] = 9
    assert copied[0, 0] == 0
    assert shared[0, 0] == 9


def test_a_complex_linspace():
    assert cr.linspace(0, 2j, 3).tolist() == [0j, 1j, 2j]
    assert cr.linspace(0, 2j, 3).dtype == cr.complex64
    assert xp.linspace(0, 4j, 2, endpoint=False).tolist() == [0j, 2j]


def test_gradients_pass_through_the_functions_of_its_own():
    x = cr.tensor([[3.0, 1.0, 2.0]], dtype=cr.float64, requires_grad=True)
    for function in (
        xp.std,
        lambda x: xp.sort(x, descending=True),
        lambda x: xp.max(x, axis=1),
        lambda x: xp.cumulative_prod(x, axis=1, include_initial=True),
        lambda x: xp.concat([x, x * x], axis=None),
        lambda x: xp.roll(xp.squeeze(x, 0), 1),
        lambda x: xp.clip(xp.expand_dims(x, (0, 2))),
        lambda x: xp.unique_all(x).values,
        lambda x: xp.sum(x, dtype=xp.float64) * xp.prod(x),
    ):
        assert cr.gradcheck(function, (x,))


# --- from tensors to the namespace ----------------------------------------------------------------


def test_a_tensor_knows_its_namespace():
    x = cr.zeros(2)
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2024.12") is xp
    assert xp.__array_api_version__ == "2025.12"
    with pytest.raises(ValueError, match=r"array API of 2021.12.*got '2020.01'"):
        x.__array_namespace__(api_version="2020.01")


def test_code_for_any_namespace_is_differentiated():
    def softmax(x):
        xp = x.__array_namespace__()
        e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
        return e / xp.sum(e, axis=-1, keepdims=True)

    x = cr.tensor([[1.0, 2.0, 4.0]], dtype=cr.float64, requires_grad=True)
    assert cr.gradcheck(softmax, (x,))
    assert np.allclose(softmax(x).detach().numpy(), softmax(np.array([[1.0, 2.0, 4.0]])))


def test_info():
    info = xp.__array_namespace_info__()
    theirs = np.__array_namespace_info__()
    assert info.capabilities() == theirs.capabilities()
    assert info.default_device() == "cpu"
    assert info.devices()[0] == "cpu"
    assert info.default_dtypes()["real floating"] == cr.float32
    assert info.default_dtypes()["complex floating"] == cr.complex64
    assert info.default_dtypes()["integral"] == info.default_dtypes()["indexing"] == cr.int64
    for kind in ("bool", "integral", "numeric", ("bool", "real floating"), None):
        assert info.dtypes(kind=kind) == theirs.dtypes(kind=kind)


def test_the_default_dtypes_are_chainrules():
    cr.set_default_dtype(cr.float64)
    try:
        assert xp.__array_namespace_info__().default_dtypes()["complex floating"] == cr.complex128
        assert xp.linspace(0, 1j, 2).dtype == cr.complex128
    finally:
        cr.set_default_dtype(cr.float32)


def test_chainrule_does_not_import_it():
    code = "import sys, chainrule; print('chainrule.array_api' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_every_function_says_what_it_does():
    assert [name for name in names() if not inspect.getdoc(getattr(xp, name))] == []


# --- the runner of the conformance suite ----------------------------------------------------------

RUNNER = Path(__file__).parent.parent / "tools" / "array_api_tests.py"


@pytest.mark.parametrize("folder", [None, "nowhere"])
def test_the_runner_says_why_it_skips(folder, monkeypatch, tmp_path):
    monkeypatch.delenv("ARRAY_API_TESTS_DIR", raising=False)
    if folder:
        monkeypatch.setenv("ARRAY_API_TESTS_DIR", str(tmp_path / folder))
    done = subprocess.run(
        [sys.executable, str(RUNNER)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout.startswith("skipped, because")


def test_a_failure_may_be_expected_in_one_run_alone():
    expected = runpy.run_path(str(RUNNER))["expected_failures"]
    plain, recorded = [set(expected(mode, "2025.12")) for mode in ("plain", "recorded")]
    assert recorded - plain == {
        "array_api_tests/test_dlpack.py::test_dunder_dlpack",
        "array_api_tests/test_dlpack.py::test_from_dlpack",
    }
    assert plain < recorded
    older = set(expected("plain", "2024.12"))
    assert {name.rpartition("::")[2] for name in older - plain} == {
        "test_meshgrid",
        "test_broadcast_arrays",
        "test_devices",
    }
    assert plain < older


def test_every_expected_failure_has_its_reason():
    lines = (RUNNER.parent / "array_api_xfails.txt").read_text(encoding="utf-8").splitlines()
    for before, line in zip(["", *lines], lines, strict=False):
        if line and not line.startswith("#"):
            assert before, f"no reason above {line}"
