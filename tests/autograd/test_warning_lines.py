"""NumPy's floating-point warnings name the user's line, and follow the filters of the user."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd.location import show_warnings_at_the_users_line

PROGRAM = """
import numpy as np
import chainrule as cr
x = cr.tensor([0.0], requires_grad=True)
def f():
    return x.log()
for _ in range(3):
    f()
y = x.log()
z = x / x
np.log(np.zeros(1))
cr.exp(cr.tensor([1000.0]))
(x.detach() - 1).sqrt_()
cr.nn.functional.softmax(cr.tensor([-cr.inf, -cr.inf]), 0)
"""
LINES = [
    (6, "divide by zero encountered in log"),
    (9, "divide by zero encountered in log"),
    (10, "invalid value encountered in divide"),
    (11, "divide by zero encountered in log"),
    (12, "overflow encountered in exp"),
    (13, "invalid value encountered in sqrt"),
    (14, "invalid value encountered in subtract"),
]


def shown(tmp_path: Any, *arguments: str) -> Any:
    script = tmp_path / "script.py"
    script.write_text(PROGRAM)
    command = [sys.executable, *arguments, str(script)]
    return script, subprocess.run(command, capture_output=True, text=True)


def test_a_script_is_told_its_own_lines_once_each(tmp_path: Any) -> None:
    script, ran = shown(tmp_path)
    assert ran.returncode == 0, ran.stderr
    told = [line for line in ran.stderr.splitlines() if "RuntimeWarning" in line]
    assert told == [f"{script}:{line}: RuntimeWarning: {text}" for line, text in LINES]
    assert "record" not in ran.stderr


@pytest.mark.parametrize("action", ["once", "module"])
def test_actions_that_tell_less_often(tmp_path: Any, action: str) -> None:
    _, ran = shown(tmp_path, f"-W{action}::RuntimeWarning")
    told = [line for line in ran.stderr.splitlines() if "RuntimeWarning" in line]
    assert len(told) == len({text for _, text in LINES})


def test_an_error_on_request_is_raised_at_the_users_line(tmp_path: Any) -> None:
    script, ran = shown(tmp_path, "-Werror::RuntimeWarning")
    assert ran.returncode == 1
    assert f'File "{script}", line 6, in f' in ran.stderr
    assert "RuntimeWarning: divide by zero encountered in log" in ran.stderr


def recorded(function: Any, action: str = "always") -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter(action)  # type: ignore[arg-type]
        function()
    return found


def test_recorded_warnings_name_the_line_too() -> None:
    x = cr.zeros(1)

    def calls() -> None:
        x.log()
        np.log(np.zeros(1))

    first = calls.__code__.co_firstlineno
    found = [(each.filename, each.lineno - first) for each in recorded(calls)]
    assert set(found) == {(__file__, 1), (__file__, 2)}


def test_users_filters_by_message_and_by_their_module_are_followed() -> None:
    def ignore_by_module() -> None:
        warnings.filterwarnings("ignore", module=re.escape(__name__))
        cr.zeros(1).log()

    assert recorded(ignore_by_module) == []

    def ignore_by_message() -> None:
        warnings.filterwarnings("ignore", message="divide by zero")
        cr.zeros(1).log()

    assert recorded(ignore_by_message) == []
    with np.errstate(all="ignore"):
        assert recorded(lambda: cr.zeros(1).log()) == []


def test_other_warnings_are_shown_as_they_are() -> None:
    def call() -> None:
        warnings.warn("mine", RuntimeWarning, stacklevel=1)
        warnings.warn("of numbers", UserWarning, stacklevel=1)

    assert [str(each.message) for each in recorded(call)] == ["mine", "of numbers"]


def test_it_is_installed_once() -> None:
    before: Any = vars(warnings)["_showwarnmsg"]
    show_warnings_at_the_users_line()
    assert vars(warnings)["_showwarnmsg"] is before
