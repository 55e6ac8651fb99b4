"""Reports of the linter, and the error of failed checks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from chainrule.errors import AutogradError

__all__ = ["CheckReport", "GradcheckError", "Problem"]


def names_of(bound: inspect.BoundArguments) -> list[str]:
    """Return the name of each argument, with an index for ``*args``."""
    names: list[str] = []
    for name, value in bound.arguments.items():
        if bound.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}[{i}]" for i in range(len(value))]
        else:
            names.append(name)
    return names


class Problem(NamedTuple):
    """One mistake: the name of its kind, and a description."""

    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The linter's findings on a custom function.

    Attributes
    ----------
    function : str
        The function's name.
    problems : tuple of Problem
        The mistakes, each with a `name` and a `text`.
    notes : tuple of str
        Findings that are no mistakes, such as a second derivative that raises an error.
    checked : tuple of str
        The checks that were made.
    skipped : tuple of str
        What was not checked, and why.
    """

    function: str
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    checked: tuple[str, ...]
    skipped: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        count = len(self.problems)
        found = "no problems in what was checked" if self.skipped else "no problems"
        verdict = found if not count else f"{count} problem{'s' if count > 1 else ''}"
        lines = [f"{self.function}: {verdict}"]
        for number, problem in enumerate(self.problems, 1):
            lines.append(f"  {number}. {_indented(str(problem))}")
        lines += [f"  note: {_indented(note)}" for note in self.notes]
        lines.append(f"  checked: {', '.join(self.checked) or 'nothing'}")
        lines += [f"  not checked: {each}" for each in self.skipped]
        return "\n".join(lines)

    __repr__ = __str__


def _indented(text: str) -> str:
    return text.replace("\n", "\n     ")


class GradcheckError(AutogradError):
    """A derivative that is wrong, or a custom function with a mistake.

    `report` is the linter's `CheckReport` if the linter raised it, else None.
    """

    find_caller: ClassVar[list[Callable[[], Any]]] = []  # a report stands alone

    def __init__(self, message: str, report: CheckReport | None = None) -> None:
        super().__init__(message)
        self.report = report
