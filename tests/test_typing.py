"""Types and completions: what editors and type checkers see of the public names."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path

import pytest

import chainrule as cr

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "typing_programs"
SOURCES = Path(cr.__file__).parents[1]
NAMESPACES = [
    *("array_api", "autograd", "checks", "cuda", "fft", "func", "linalg", "nn", "nn.functional"),
    *("nn.utils", "optim", "random", "signal", "signal.windows", "special", "transforms", "utils"),
]


def names_of(namespace: str) -> list[str]:
    """Return the public names of a namespace of chainrule."""
    module = attrgetter(namespace)(cr)
    if namespace == "array_api":  # whose `__getattr__` gives type checkers its `bool`
        return sorted({*cr.operation.ARRAY_API, "max", "asarray", "float32", "pi"})
    return list(module.__all__)


# `python3 dev.py lint` compares the stubs with what their tool writes, and runs pyright: what else
# needs a type checker is thorough.

# --- type checkers --------------------------------------------------------------------------------

Checker = Callable[..., str]


@pytest.fixture(scope="module")
def mypy(tmp_path_factory: pytest.TempPathFactory) -> Checker:
    """Return what mypy, at its strictest, says of files; the cache serves all tests."""
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed: it comes with the extra `lint`")
    cache = tmp_path_factory.mktemp("mypy")

    def run(*files: Path) -> str:
        command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", cache, *files]
        done = subprocess.run(
            [str(part) for part in command],
            cwd=cache,  # away from this project's settings
            env={**os.environ, "MYPYPATH": str(SOURCES)},
            capture_output=True,
            text=True,
        )
        assert not done.stderr
        return done.stdout

    return run


@pytest.fixture
def checked(mypy: Checker, tmp_path: Path) -> Callable[[str], list[str]]:
    """Return the lines that mypy says of a script."""

    def run(script: str) -> list[str]:
        path = tmp_path / "script.py"
        path.write_text(script, encoding="utf-8")
        return [line for line in mypy(path).splitlines() if "script.py:" in line]

    return run


@pytest.mark.thorough
def test_a_program_passes_and_its_mistakes_are_found(mypy: Checker) -> None:
    said = mypy(PROGRAMS / "user_program.py", PROGRAMS / "mistakes.py").splitlines()
    assert [line for line in said if PROGRAMS.name in line] == []


def test_the_program_runs() -> None:
    main = runpy.run_path(str(PROGRAMS / "user_program.py"))["main"]
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        main()


@pytest.mark.thorough
def test_every_public_name_has_a_type(checked: Callable[[str], list[str]]) -> None:
    names = [f"cr.{name}" for name in cr.__all__]
    for namespace in NAMESPACES:
        names += [f"cr.{namespace}.{name}" for name in names_of(namespace)]
    names += [f"cr.Tensor.{name}" for name in dir(cr.Tensor) if not name.startswith("_")]
    lines = ["import chainrule as cr", *(f"reveal_type({name})" for name in names)]
    lines += ["cr.no_such_name", 'cr.manual_seed("one")', "x: int = cr.zeros(2)"]
    said = checked("\n".join(lines))
    revealed = [line for line in said if "Revealed" in line]
    assert len(revealed) == len(names)
    unknown = [n for n, line in zip(names, revealed, strict=True) if line.endswith('"Any"')]
    assert unknown == []
    errors = [line for line in said if ": error:" in line]
    assert len(errors) == 3, errors
    assert 'no attribute "no_such_name"' in errors[0]
    assert 'to "manual_seed" has incompatible type "str"' in errors[1]
    assert 'expression has type "Tensor"' in errors[2]


@pytest.mark.thorough
def test_a_function_in_a_mode_keeps_its_type(checked: Callable[[str], list[str]]) -> None:
    script = """
import chainrule as cr

@cr.no_grad()
def clipped(x: cr.Tensor, most: float) -> cr.Tensor:
    return cr.clamp(x, max=most)

with cr.no_grad(), cr.enable_grad():
    clipped(cr.ones(2), "one")
"""
    (error,) = checked(script)
    assert 'Argument 2 to "clipped" has incompatible type "str"' in error


@pytest.mark.thorough
def test_a_custom_function_is_typed(checked: Callable[[str], list[str]]) -> None:
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
    errors = [line for line in checked(script) if ": error:" in line]
    assert len(errors) == 1, errors
    assert '"CustomFunction" has no attribute "forwards"' in errors[0]


# --- editors --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def complete() -> Callable[[str], set[str]]:
    """Return the names that Jedi, the completer of IPython and many editors, offers."""
    jedi = pytest.importorskip("jedi")
    project = jedi.Project(str(ROOT), added_sys_path=[str(SOURCES)])

    def run(expression: str) -> set[str]:
        script = f"import chainrule as cr\nx = cr.zeros(3)\n{expression}."
        return {found.name for found in jedi.Script(script, project=project).complete()}

    return run


@pytest.mark.thorough
def test_editors_complete_public_names(complete: Callable[[str], set[str]]) -> None:
    assert set(cr.__all__) | set(cr._LATER) <= complete("cr")
    for namespace in NAMESPACES:
        missing = set(names_of(namespace)) - complete(f"cr.{namespace}")
        assert missing <= {"bool"}, namespace


def test_editors_complete_methods(complete: Callable[[str], set[str]]) -> None:
    public = {name for name in dir(cr.Tensor) if not name.startswith("_")}
    assert public <= complete("x")
    assert public <= complete("(x.sin() * 2 + cr.ones(3))")
