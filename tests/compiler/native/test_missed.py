"""Loops that Python runs and lines beyond the budget: told once, listed, refused if strict."""

from __future__ import annotations

import pickle
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

pytest.importorskip("llvmlite", reason="machine code needs LLVM")

STEPS = cr.tensor(np.random.default_rng(3).uniform(size=(40, 3, 3)))


@pytest.fixture(autouse=True)
def without_disk_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAINRULE_CACHE", "")


def recorded(call: Callable[[], Any]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [each for each in found if each.category is cr.PerformanceWarning]


def eigenvalues() -> Callable[..., Any]:
    """Return a new function, of which nothing was told yet."""

    def spectrum(xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            found = cr.linalg.eigvalsh(h + x + x.T)
            return h * 0.5 + found.sum(), found

        return cr.scan(step, cr.zeros(3, 3, dtype=cr.float64), xs)[1]

    return spectrum


def named_eigenvalues(xs: Any) -> Any:
    return eigenvalues()(xs)


def recurrent(xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = cr.tanh(h @ x) + 0.1
        return h, h.sum()

    return cr.scan(step, cr.ones(3, 3, dtype=cr.float64), xs)[1]


@pytest.mark.parametrize("backend", [None, "native"])
def test_an_operation_in_a_loop_is_told_once_at_the_call(backend: str | None) -> None:
    compiled = cr.compile(eigenvalues(), backend=backend)
    (found,) = recorded(lambda: compiled(STEPS))
    assert not recorded(lambda: compiled(STEPS))
    assert not recorded(lambda: compiled(STEPS[:30]))  # another signature
    text = str(found.message)
    assert text.startswith("compile(eigenvalues.<locals>.spectrum (")
    assert "Python runs a loop of 40 steps (at " in text
    assert " NumPy calls for each step, since np.linalg.eigvalsh of f8[3, 3] (at " in text
    assert "in step: found = cr.linalg.eigvalsh(h + x + x.T)) has no machine code" in text
    assert ". Compute it before or after the loop for all steps at once" in text
    with open(__file__) as file:
        line = file.read().splitlines()[found.lineno - 1].strip()
    assert (found.filename, line) == (__file__, "(found,) = recorded(lambda: compiled(STEPS))")


@pytest.mark.parametrize("backend", [None, "native"])
def test_strict_refuses_what_would_be_told(backend: str | None) -> None:
    compiled = cr.compile(eigenvalues(), backend=backend, strict=True)
    for _ in range(2):
        with pytest.raises(cr.CompileError, match=r"^strict=True: compile\(.*np\.linalg\.eigvalsh"):
            compiled(STEPS)
    assert not recorded(lambda: cr.compile(recurrent, backend=backend, strict=True)(STEPS))
    text = "eigvalsh"  # whichever way it is asked for
    for strict in (
        cr.compile(strict=True, backend=backend)(eigenvalues()),
        cr.compile(cr.compile(eigenvalues(), backend=backend), strict=True),
        pickle.loads(pickle.dumps(cr.compile(named_eigenvalues, backend=backend, strict=True))),
    ):
        with pytest.raises(cr.CompileError, match=text):
            strict(STEPS)


def test_a_pickle_of_another_strictness_is_another_function() -> None:
    strict = cr.compile(named_eigenvalues, strict=True)
    loose = pickle.loads(pickle.dumps(cr.compile(named_eigenvalues)))
    assert strict.strict
    assert not loose.strict
    with pytest.warns(cr.PerformanceWarning, match="eigvalsh"):
        loose(STEPS)
    with pytest.raises(cr.CompileError, match="eigvalsh"):
        strict(STEPS)


def test_backward_passes_are_told() -> None:
    def loss(w: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            return cr.lgamma(h * h + 1) * 0.1 + w, None

        return cr.scan(step, w, cr.arange(40))[0].sum()

    compiled, w = cr.compile(loss), cr.tensor(STEPS[0].numpy())
    assert not recorded(lambda: compiled(w))
    (found,) = recorded(lambda: compiled(w.requires_grad_()))
    assert "kernels.polygamma" in str(found.message)


@pytest.mark.parametrize(
    ("title", "function", "mend"),
    [
        (
            "a while loop",
            lambda xs: cr.while_loop(lambda x: x.sum() < 100, lambda x: x * 2, xs[0]),
            "Use scan",
        ),
        (
            "a draw of random numbers",
            lambda xs: cr.scan(lambda h, x: (h * x + cr.rand(3), None), xs[0], xs)[0],
            "Draw the numbers of all steps before the loop",
        ),
        (
            "complex128",
            lambda xs: cr.scan(lambda h, x: ((h * x + 1j).tan(), None), xs[0] + 0j, xs)[0].real,
            "Compute with real and imaginary parts",
        ),
    ],
)
def test_the_text_says_what_to_write(title: str, function: Any, mend: str) -> None:
    compiled = cr.compile(function, backend="native")
    (found,) = recorded(lambda: compiled(STEPS))
    assert title in str(found.message)
    assert mend in str(found.message)


def test_what_the_texts_say_to_write_is_machine_code() -> None:
    def drawn(xs: Any) -> Any:
        noise = cr.rand(len(xs), 3, dtype=cr.float64)
        return cr.scan(lambda h, x: (h * x[0] + x[1], None), xs[0], (xs, noise))[0]

    cr.compile(drawn, strict=True)(STEPS)


# --- what is not told -----------------------------------------------------------------------------


def steps_of(size: int, count: int) -> Callable[..., Any]:
    def spectrum(x: Any) -> Any:
        def step(h: Any, _: Any) -> Any:
            return cr.linalg.eigvalsh(h + x).sum() * 0.01 + h * 0.5, None

        return cr.scan(step, x, cr.arange(count))[0]

    return spectrum


@pytest.mark.parametrize(
    ("size", "count", "backend", "told"),
    [
        (3, 16, None, False),  # fewer than 100 calls of NumPy
        (3, 17, None, True),
        (3, 2, "native", True),
        (40, 40, "native", False),  # LAPACK takes longer than the calls
        (40, 40, None, False),
        (3, 40, "numpy", False),
    ],
)
def test_only_loops_whose_calls_matter_are_told(
    size: int, count: int, backend: str | None, told: bool
) -> None:
    compiled = cr.compile(steps_of(size, count), backend=backend)
    x = cr.eye(size, dtype=cr.float64)
    assert bool(recorded(lambda: compiled(x))) is told


def test_a_short_loop_in_a_long_program_is_not_told() -> None:
    def several(x: Any, xs: Any) -> Any:
        return steps_of(3, 10)(x) + recurrent(xs).sum()

    x = cr.eye(3, dtype=cr.float64)
    assert not recorded(lambda: cr.compile(several)(x, STEPS))


def test_calls_outside_of_loops_are_not_told() -> None:
    def several(x: Any) -> Any:
        values = cr.linalg.eigvalsh(x @ x.T) + cr.fft.fft(x)[0].abs().sum() + cr.rand(200)
        return cr.sort(values)[0] * 2 + cr.sin(values)

    x = cr.ones(200, 200)
    assert not recorded(lambda: cr.compile(several, backend="native")(x))
    assert not recorded(lambda: cr.compile(several)(x))


def test_a_loop_beside_a_call_is_machine_code() -> None:
    def beside(x: Any, xs: Any) -> Any:
        return cr.linalg.eigvalsh(x) + recurrent(xs).sum()

    compiled, x = cr.compile(beside, strict=True), cr.eye(60, dtype=cr.float64)
    np.testing.assert_allclose(compiled(x, STEPS).numpy(), beside(x, STEPS).numpy(), rtol=1e-12)
    assert "for iteration in range(u8(40))" in compiled.source_native


# --- strict machine code --------------------------------------------------------------------------


def test_strict_machine_code_refuses_elementwise_functions_of_numpy() -> None:
    def halves(x: Any) -> Any:
        return (cr.exp(x) * x).sum()

    x = cr.ones(300, 300, dtype=cr.float16)
    compiled = cr.compile(halves, backend="native")
    assert not recorded(lambda: compiled(x))  # it is no loop of Python, but it is listed
    assert any("float16" in remark.text for remark in compiled.signatures[0].remarks)
    with pytest.raises(cr.CompileError, match=r"NumPy computes np.* of .*float16 is not among"):
        cr.compile(halves, backend="native", strict=True)(x)


def test_strict_machine_code_allows_documented_calls() -> None:
    def several(x: Any) -> Any:
        values, vectors = cr.linalg.eigh(x @ x.T)
        spectrum = cr.fft.irfft(cr.fft.rfft(cr.sort(values)[0]))
        return (vectors * spectrum + cr.rand(100, 100, dtype=cr.float64)).sum()

    x = cr.eye(100, dtype=cr.float64)
    cr.compile(several, backend="native", strict=True)(x)


def test_strict_refuses_loops_over_examples() -> None:
    def search(xs: Any) -> Any:
        return cr.vmap(lambda x: cr.searchsorted(x[0], x[1]))(xs)

    xs = cr.sort(STEPS, -1)[0]
    for backend in ("numpy", "native", None):
        compiled = cr.compile(search, backend=backend, strict=True)
        with pytest.raises(cr.MissingRuleError, match="searchsorted runs for each of 40"):
            compiled(xs)
    compiled = cr.compile(search)
    with pytest.warns(cr.PerformanceWarning, match="searchsorted"):
        compiled(xs)
    assert [remark.operation for remark in compiled.signatures[0].remarks] == ["searchsorted"]
    assert "searchsorted runs for each" in str(cr.profile(compiled, xs))


# --- the budget -----------------------------------------------------------------------------------


def chain(x: Any) -> Any:
    return (cr.tanh(x * 2 + 1) + x * x + cr.exp(-x)).sum()


@pytest.mark.parametrize("backend", [None, "native"])
@pytest.mark.parametrize(("seconds", "told"), [("0.003", True), ("0", False), ("", False)])
def test_lines_beyond_the_budget_are_told(
    seconds: str, told: bool, backend: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAINRULE_COMPILE_SECONDS", seconds)
    x = cr.ones(200, 200)
    compiled = cr.compile(lambda x: chain(x), backend=backend)
    found = recorded(lambda: compiled(x))
    assert len(found) == told
    strict = cr.compile(lambda x: chain(x), backend=backend, strict=True)
    if not seconds:
        strict(x)
        assert not compiled.signatures[0].remarks
        return
    if told:
        text = str(found[0].message)
        assert "remain NumPy calls, since LLVM would take about 0.0" in text
        assert "beyond the budget of 0.003 s for a call. Set CHAINRULE_COMPILE_SECONDS" in text
    with pytest.raises(cr.CompileError, match="beyond the budget of "):
        strict(x)
    for listing in (str(cr.profile(compiled, x)), str(compiled.signatures[0])):
        assert "CHAINRULE_COMPILE_SECONDS" in listing


@pytest.mark.parametrize("backend", [None, "native"])
def test_a_loop_beyond_the_budget_is_told(
    backend: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAINRULE_COMPILE_SECONDS", "0.004")
    compiled = cr.compile(lambda xs: recurrent(xs), backend=backend)
    (found,) = recorded(lambda: compiled(STEPS))
    assert "Python runs a loop of 40 steps" in str(found.message)
    assert "beyond the budget of 0.004 s" in str(found.message)


def test_a_run_of_small_operations_beyond_the_budget_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def irregular(x: Any) -> Any:
        for k in range(150):
            x = (cr.sin, cr.tanh, cr.exp, cr.cos)[k * k * k % 11 % 4](x[::-1] if k % 3 else x * 0.5)
        return x + cr.linalg.eigvalsh(cr.eye(3))

    monkeypatch.setenv("CHAINRULE_COMPILE_SECONDS", "0.05")
    x = cr.tensor([0.1, 0.2, 0.3])
    for backend in (None, "native"):
        compiled = cr.compile(lambda x: irregular(x), backend=backend)
        (found,) = recorded(lambda compiled=compiled: compiled(x))
        assert "remain NumPy calls, since LLVM would take" in str(found.message)
        np.testing.assert_allclose(compiled(x).numpy(), irregular(x).numpy(), rtol=1e-5)


# --- listings, errors, threads --------------------------------------------------------------------


def test_profile_and_signatures_list_what_is_left() -> None:
    compiled = cr.compile(eigenvalues())
    listed = cr.profile(compiled, STEPS)
    assert [remark.operation for remark in listed.remarks] == ["np.linalg.eigvalsh"]
    assert str(listed).endswith(listed.remarks[0].text)
    assert recorded(lambda: compiled(STEPS))  # profile has not told
    (signature,) = compiled.signatures
    assert signature.remarks == listed.remarks
    assert str(signature).endswith(listed.remarks[0].text)
    assert pickle.loads(pickle.dumps(signature)).remarks == signature.remarks
    plain = cr.compile(recurrent)
    plain(STEPS)
    assert plain.signatures[0].remarks == ()
    assert cr.profile(plain, STEPS).remarks == ()


def test_an_error_in_the_place_of_the_warning_leaves_everything_usable() -> None:
    weights = cr.tensor(STEPS[0].numpy())
    function, calls = eigenvalues(), []

    @cr.compile
    def training_step(xs: Any) -> Any:
        calls.append(1)
        weights.sub_(0.1 * function(xs)[0].sum())
        return weights.sum()

    before = weights.numpy().copy()
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error", cr.PerformanceWarning)
            with pytest.raises(cr.PerformanceWarning, match="eigvalsh"):
                training_step(STEPS)
        assert np.array_equal(weights.numpy(), before)
        assert not training_step.signatures
    expected = before - 0.1 * function(STEPS)[0].sum().item()
    assert recorded(lambda: training_step(STEPS))  # it was not told yet
    np.testing.assert_allclose(weights.numpy(), expected)


@pytest.mark.no_verify("a verified call waits for those of other threads")
def test_several_threads_are_told_once() -> None:
    compiled, count = cr.compile(eigenvalues()), 4
    barrier = threading.Barrier(count)

    def call() -> None:
        barrier.wait()
        compiled(STEPS)

    def run() -> None:
        threads = [threading.Thread(target=call) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert len(recorded(run)) == 1


def test_without_llvm_only_strict_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chainrule.compiler.native.jit.is_installed", lambda: False)
    assert not recorded(lambda: cr.compile(lambda xs: recurrent(xs))(STEPS))
    with pytest.raises(cr.CompileError, match=r"machine code needs llvmlite: pip install"):
        cr.compile(lambda xs: recurrent(xs), strict=True)(STEPS)
    cr.compile(lambda xs: recurrent(xs), backend="numpy", strict=True)(STEPS)


def test_the_warning_can_be_pickled() -> None:
    found = pickle.loads(pickle.dumps(cr.PerformanceWarning("text")))
    assert type(found) is cr.PerformanceWarning
    assert isinstance(found, UserWarning)
    assert found.args == ("text",)
