"""Compilation in forked processes, and in several threads at once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import chainrule as cr

pytest.importorskip("llvmlite", reason="machine code needs LLVM")

FORKED = """
import os
import warnings

import numpy as np

import chainrule as cr

warnings.simplefilter("ignore", DeprecationWarning)  # Python's of forks beside threads
x = np.linspace(-2, 2, 400_000, dtype="f4")


def known(x):
    return np.tanh(x) * 2 + 1


def new(x):
    return np.exp(-x * x) * 3 - np.tanh(x)


def check_new():
    found = cr.compile(new, backend="native")(x)
    np.testing.assert_allclose(found, new(x), rtol=1e-4, atol=1e-5)


compiled = cr.compile(known, backend="native")
before = compiled(x).copy()
child = os.fork()
if child == 0:
    code = 1
    try:
        np.testing.assert_array_equal(compiled(x), before)
        check_new()
        code = 0
    finally:
        os._exit(code)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
np.testing.assert_array_equal(compiled(x), before)
check_new()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("kept", [False, True])
def test_a_forked_child_runs_and_compiles(kept: bool, tmp_path: Path) -> None:
    source = str(Path(cr.__file__).parents[1])
    place = str(tmp_path) if kept else ""
    environment = {**os.environ, "PYTHONPATH": source, "CHAINRULE_CACHE": place}
    command = [sys.executable, "-c", FORKED]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr


FORKED_MEANWHILE = """
import os
import signal
import threading
import time
import warnings

import numpy as np

import chainrule as cr
from chainrule.compiler.native import jit

warnings.simplefilter("ignore", DeprecationWarning)  # Python's of forks beside threads
x = np.linspace(-2, 2, 1000, dtype="f4")
begun = threading.Event()
object_code = jit.object_code


def slow_object_code(*args):
    with jit.lock:  # as while LLVM compiles
        begun.set()
        time.sleep(0.5)
        return object_code(*args)


@cr.compile(backend="native")
def function(x):
    {in_trace}
    return cr.tanh(x) * 3


{setting}
other = threading.Thread(target=function, args=(x,))
other.start()
begun.wait()
child = os.fork()
if child == 0:
    code = 1
    try:
        signal.alarm(60)
        np.testing.assert_allclose(function(x), np.tanh(x) * 3, rtol=1e-5)
        other = cr.compile(lambda x: cr.exp(x) * 3, backend="native")
        np.testing.assert_allclose(other(x), np.exp(x) * 3, rtol=1e-5)
        assert not type(vars(cr.Tensor)["_array"]).__name__.startswith("_InterceptedSlot")
        code = 0
    finally:
        os._exit(code)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
other.join()
np.testing.assert_allclose(function(x), np.tanh(x) * 3, rtol=1e-5)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize(
    "pieces",
    [
        {"setting": "jit.object_code = slow_object_code", "in_trace": "pass"},
        {"setting": "", "in_trace": "begun.set(); time.sleep(0.5)"},
    ],
    ids=["LLVM", "tracing"],
)
def test_a_child_forked_while_another_thread_compiles(pieces: dict[str, str]) -> None:
    source = str(Path(cr.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "CHAINRULE_CACHE": ""}
    command = [sys.executable, "-c", FORKED_MEANWHILE.format(**pieces)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=180
    )
    assert done.returncode == 0, done.stderr


def at_once(calls: list[Any]) -> list[Any]:
    """Call functions in threads that start simultaneously."""
    gate = threading.Barrier(len(calls))
    found: list[Any] = [None] * len(calls)

    def work(number: int) -> None:
        gate.wait()
        found[number] = calls[number]()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("size", [9, 200_000])
def test_first_calls_in_several_threads(
    size: int, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHAINRULE_CACHE", str(tmp_path) if kept else "")
    x = np.linspace(-1, 1, size, dtype="f4")

    def scaled(factor: float) -> Any:
        def function(x: Any) -> Any:
            return cr.tanh(x) * factor + x * x

        return function

    same = cr.compile(scaled(7.0), backend="native")
    others = [cr.compile(scaled(1.0 + i), backend="native") for i in range(3)]
    factors = [7.0, 7.0, 7.0, 1.0, 2.0, 3.0]
    functions = [same, same, same, *others]
    found = at_once([lambda f=function: np.array(f(x)) for function in functions])
    for factor, array in zip(factors, found, strict=True):
        np.testing.assert_allclose(array, np.tanh(x) * factor + x * x, rtol=1e-5, atol=1e-6)
