"""Names, results and errors of cr.linalg."""

from __future__ import annotations

import subprocess
import sys

import pytest

import chainrule as cr


def test_linear_algebra_is_imported_when_it_is_first_asked_for() -> None:
    script = """
import sys, chainrule as cr
assert not any(name.startswith("chainrule.linalg") for name in sys.modules)
assert cr.eye(2).det().item() == 1
assert "chainrule.linalg" in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("name", cr.linalg.__all__)
def test_every_name_is_there_and_documented(name: str) -> None:
    assert getattr(cr.linalg, name).__doc__
