"""Write docs/numpy.md: what becomes of each function and ufunc of NumPy's on tensors.

    python3 tools/numpy_coverage.py            write the page
    python3 tools/numpy_coverage.py --check    only say whether it is current

The lists are NumPy's own, `numpy.testing.overrides`; what becomes of each says chainrule's table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.char
import numpy.fft
import numpy.lib.recfunctions
import numpy.polynomial
import numpy.strings
from numpy.testing import overrides

from chainrule.interop.binding import name_of
from chainrule.interop.table import ANSWERS, NEW, REASONS, REASONS_OF_MODULES, RULES
from chainrule.ops.ufuncs import RECORDED, STEPS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "numpy.md"
NUMPY = ".".join(np.__version__.split(".")[:2])

HEAD = """\
# NumPy's functions on tensors

    np.sum(t)        # a tensor, recorded: t may require grad
    np.shape(t)      # NumPy's own answer: it has no derivative
    np.sum(t, out=a)    # TypeError that says what to write instead

NumPy hands a call over to the arguments that ask for it: functions through `__array_function__`,
ufuncs through `__array_ufunc__`. This page has all that NumPy {numpy} lists, {functions}
functions and {ufuncs} ufuncs. It is written by `python3 tools/numpy_coverage.py`, from the table
that the calls themselves go by, and a test holds that it is current and that each function is in
one class, and calls each rule beside NumPy.

* **Recorded** ({rules} functions): a tensor comes out, or several, with derivatives of every
  order in both modes. The meaning is NumPy's: `np.std` divides by n, `np.max` returns values
  alone, `np.cumsum` without an axis goes through all elements. Arrays, numbers and lists of them
  may stand beside tensors. Arguments that tensors can't have, such as `out=`, raise a TypeError
  with the mend.
* **Answered** ({answers}): truths, places, numbers of things, text and files have no derivative,
  so NumPy computes them from the arrays, and they are NumPy's own. What is new and empty,
  `np.zeros_like(t)` or `np.ones(3, like=t)`, is a tensor.
* **Without a rule** ({refused}): computed on the arrays if nothing requires grad; else a
  TypeError says how to go on: compute it from what has a rule, write the rule with
  `chainrule.autograd_function`, or `detach()`.

Where derivatives have to be chosen: quantiles, medians, sorts and partitions pass the gradient to
the elements that stand at the place, `unique` and the sets to the first of equal elements, `max`
and `min` share it between equal ones, `interp` at a point takes the line to its right, counts of
a histogram have none, its edges have. A function that writes, such as `np.put(t, …)` and
`np.fill_diagonal(t, …)`, is an in-place write: a leaf that requires grad refuses it, as it
refuses `t[…] = …`.

Dtypes are those of chainrule's functions: Python's and NumPy's scalars take the dtype of the
tensors, float32 stays float32 where NumPy goes over to float64, and integers become the default
dtype where the result is of floats.
"""


def page() -> str:
    """Return the text of the page."""
    functions = {name_of(f) for f in overrides.get_overridable_numpy_array_functions()}
    rules = {name_of(f): rule for f, rule in RULES.items()}
    answers, new = {name_of(f) for f in ANSWERS}, {name_of(f) for f in NEW}
    refused = functions - rules.keys() - answers - new
    ufuncs = overrides.get_overridable_numpy_ufuncs()
    head = HEAD.format(
        numpy=NUMPY,
        functions=len(functions),
        ufuncs=len(ufuncs),
        rules=len(rules),
        answers=len(answers | new),
        refused=len(refused),
    )
    parts = [
        head,
        "## Recorded\n",
        "\n".join(_table_of_rules(rules)),
        "\n## Answered\n",
        f"By NumPy, from the arrays: {_listed(answers)}.\n",
        f"As tensors without gradient: {_listed(new)}.",
        "\n## Without a rule\n",
        "\n".join(_reasons(refused)),
        "\n## Ufuncs\n",
        "\n".join(_ufuncs(ufuncs)),
    ]
    return "\n".join(parts) + "\n"


def _table_of_rules(rules: dict[str, Any]) -> Iterator[str]:
    yield "| function | takes | doesn't take |"
    yield "| --- | --- | --- |"
    for name in sorted(rules, key=_by_module):
        taken, refused = ", ".join(rules[name].taken()), ", ".join(rules[name].refused())
        yield f"| `{name}` | {_code(taken)} | {_code(refused)} |"


def _by_module(name: str) -> tuple[str, str]:
    module, _, function = name.rpartition(".")
    return module, function


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name.removeprefix('numpy.')}`" for name in sorted(names, key=_by_module))


def _reasons(names: set[str]) -> Iterator[str]:
    why = {name_of(function): reason for function, reason in REASONS.items()}
    for name in names - why.keys():
        why[name] = REASONS_OF_MODULES.get(_by_module(name)[0], "nobody has written it yet")
    for reason in sorted({why[name] for name in names}):
        yield f"* {reason}: {_listed(name for name in names if why[name] == reason)}"


def _ufuncs(ufuncs: Iterable[Any]) -> Iterator[str]:
    ufuncs = set(ufuncs)
    recorded, steps = ufuncs & RECORDED.keys(), ufuncs & STEPS
    rest = ufuncs - recorded - steps
    of_text = {ufunc for ufunc in rest if _is_of_text(ufunc)}
    yield f"* recorded: {_names(recorded)}"
    yield f"* without derivative: {_names(steps)}"
    yield f"* of text and dates, which tensors don't hold: {_names(of_text)}"
    yield f"* refused, since they are NumPy's own helpers: {_names(rest - of_text)}"


def _is_of_text(ufunc: Any) -> bool:
    """Say whether a ufunc is one of text, which has no loops in its list, or of dates."""
    return not ufunc.types or all(set(loop) & set("SUTmM") for loop in ufunc.types)


def _names(ufuncs: Iterable[Any]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(ufunc.__name__ for ufunc in ufuncs))


def main(options: list[str]) -> int:
    """Write the page, or say whether it is current."""
    text = page()
    if "--check" in options:
        is_current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
        print(f"{PAGE.name} is current" if is_current else f"{PAGE.name} is out of date")
        return 0 if is_current else 1
    PAGE.write_text(text, encoding="utf-8")
    print(f"wrote {PAGE.name}, for NumPy {NUMPY}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
