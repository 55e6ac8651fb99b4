"""What a check says: problems with names, notes, and the error that carries them."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import NamedTuple

from chainrule.errors import AutogradError

__all__ = ["CheckReport", "GradcheckError", "Problem"]


def names_of(bound: inspect.BoundArguments) -> list[str]:
    """Return what problems call each argument: its name, with its number among ``*args``."""
    names: list[str] = []
    for name, value in bound.arguments.items():
        if bound.signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}[{i}]" for i in range(len(value))]
        else:
            names.append(name)
    return names


class Problem(NamedTuple):
    """One mistake: the kind it is of, and the whole story."""

    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What the linter found about a custom function.

    Attributes
    ----------
    function : str
        The function's name.
    problems : tuple of Problem
        The mistakes, each with a `name` and a `text`.
    notes : tuple of str
        What is no mistake but good to know: a second derivative that is honestly refused, for one.
    checked : tuple of str
        What was looked at.
    """

    function: str
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    checked: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        count = len(self.problems)
        verdict = "no problems" if not count else f"{count} problem{'s' if count > 1 else ''}"
        lines = [f"{self.function}: {verdict}"]
        for number, problem in enumerate(self.problems, 1):
            lines.append(f"  {number}. {_indented(str(problem))}")
        lines += [f"  note: {_indented(note)}" for note in self.notes]
        lines.append(f"  checked: {', '.join(self.checked) or 'nothing'}")
        return "\n".join(lines)

    __repr__ = __str__


def _indented(text: str) -> str:
    return text.replace("\n", "\n     ")


class GradcheckError(AutogradError):
    """A derivative that is wrong, or a custom function with a mistake.

    `report` is the linter's whole `CheckReport` where the linter raised it, else None.
    """

    def __init__(self, message: str, report: CheckReport | None = None) -> None:
        super().__init__(message)
        self.report = report
