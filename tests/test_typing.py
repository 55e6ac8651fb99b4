"""What a type checker sees of the public names, in somebody else's script."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path

import pytest

import chainrule as cr


def checked(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what mypy, at its strictest, says of a script."""
    api = pytest.importorskip("mypy.api")
    monkeypatch.setenv("MYPYPATH", str(Path(cr.__file__).parents[1]))
    monkeypatch.chdir(folder)  # away from this project's settings
    Path("script.py").write_text(script, encoding="utf-8")
    out, err, _ = api.run(["--strict", "--cache-dir", "cache", "script.py"])
    assert not err
    return str(out)


def test_every_public_name_has_a_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"cr.{name}" for name in cr.__all__]
    for module in ("fft", "linalg", "nn.functional", "nn.utils", "special", "optim"):
        names += [f"cr.{module}.{name}" for name in attrgetter(module)(cr).__all__]
    names += ["cr.array_api.max", "cr.autograd.grad"]
    lines = ["import chainrule as cr", *(f"reveal_type({name})" for name in names)]
    lines += ["cr.no_such_name", 'cr.manual_seed("one")', "x: int = cr.zeros(2)"]
    said = checked("\n".join(lines), tmp_path, monkeypatch).splitlines()
    revealed = [line for line in said if "Revealed" in line]
    assert len(revealed) == len(names)
    unknown = [n for n, line in zip(names, revealed, strict=True) if line.endswith('"Any"')]
    assert unknown == []
    errors = [line for line in said if ": error:" in line]
    assert len(errors) == 3, errors
    assert 'no attribute "no_such_name"' in errors[0]
    assert 'to "manual_seed" has incompatible type "str"' in errors[1]
    assert 'expression has type "Tensor"' in errors[2]


def test_a_function_in_a_mode_keeps_its_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = """
import chainrule as cr

@cr.no_grad()
def clipped(x: cr.Tensor, most: float) -> cr.Tensor:
    return cr.clamp(x, max=most)

with cr.no_grad(), cr.enable_grad():
    clipped(cr.ones(2), "one")
"""
    said = checked(script, tmp_path, monkeypatch).splitlines()
    (error,) = [line for line in said if line.startswith("script.py")]
    assert 'Argument 2 to "clipped" has incompatible type "str"' in error


def test_a_custom_function_is_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = """
from typing import Any
import chainrule as cr

@cr.autograd_function
def double(ctx: Any, x: cr.Tensor) -> cr.Tensor:
    return x * 2

@double.backward
def _(ctx: Any, g: cr.Tensor) -> cr.Tensor:
    return g * 2

@cr.autograd_function(name="other")
def named(ctx: Any, x: cr.Tensor) -> cr.Tensor:
    return x

named.check(cr.ones(2))
double.forwards
"""
    errors = [
        line for line in checked(script, tmp_path, monkeypatch).splitlines() if ": error:" in line
    ]
    assert len(errors) == 1, errors
    assert '"CustomFunction" has no attribute "forwards"' in errors[0]
