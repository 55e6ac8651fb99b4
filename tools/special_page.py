"""Write docs/special.md: which argument of which ufunc of `scipy.special` differentiates.

python3 tools/special_page.py            write the page
python3 tools/special_page.py --check    only report whether the page is current
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special

from chainrule.operation import SCIPY_UFUNCS
from chainrule.scipy.special.ufunc import UFUNCS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "special.md"

INTRODUCTION = """# Special functions: which argument differentiates

`cr.scipy.special` has SciPy's names. Given arrays and numbers, a function is SciPy's own; given a
tensor it is recorded, as it is if SciPy's own ufunc is called on the tensor: `scipy.special.jv(0.5,
t)`. Derivatives are exact, of any order, in both modes; values and derivatives are computed by
SciPy's ufuncs, in compiled programs and under `vmap`, too. Where SciPy has only few digits
(`itairy`, the noncentral distributions), the derivative is the better of the two.

Complex numbers are accepted where SciPy accepts them and the function is holomorphic, which
`airye`, `ive`, `jve` and `yve` aren't. SciPy has no polygamma function of complex numbers, so
`psi` of them has no derivative, and gamma functions have one.

An argument in the last column has no derivative: a backward pass that needs one raises an error
with the reason. A tensor that is to count as constant is passed as `t.detach()`. SciPy is needed:
`pip install 'chainrule[scipy]'`.

This page is written by `tools/special_page.py`, and a test holds it.

"""


def ufuncs() -> dict[str, Any]:
    """Return SciPy's ufuncs by their first name, and other functions that are declared."""
    found = {name: getattr(scipy.special, name) for name in sorted(dir(scipy.special))}
    return {name: u for name, u in found.items() if isinstance(u, np.ufunc) or name in UFUNCS}


def row(name: str, ufunc: Any) -> tuple[str, str, str]:
    """Return the call, the arguments that differentiate, and those that don't."""
    declared = UFUNCS.get(ufunc.__name__)
    if declared is not None:
        call = f"`{name}({', '.join(declared.inputs)})`"
        if declared.constant:
            return call, "derivative 0", ""
        known = ", ".join(f"`{x}`" for x in declared.inputs if x in declared.partials)
        refused = "; ".join(f"`{x}`: {why}" for x, why in declared.reasons.items())
        return call, known, refused
    if ufunc.__name__ not in SCIPY_UFUNCS:
        raise LookupError(f"scipy.special.{name} is not declared in chainrule.scipy.special")
    names = _names(ufunc)
    return f"`{name}({', '.join(names)})`", ", ".join(f"`{x}`" for x in names), ""


def _names(ufunc: Any) -> list[str]:
    first = (inspect.getdoc(ufunc) or "").split("\n", 1)[0]
    inside = first.partition("(")[2].partition(")")[0].split(",")
    return [x.strip() for x in inside if x.strip() and "=" not in x and "/" not in x][: ufunc.nin]


def page() -> str:
    rows = [row(name, ufunc) for name, ufunc in ufuncs().items()]
    lines = ["| function | differentiates by | no derivative |", "| --- | --- | --- |"]
    lines += [f"| {' | '.join(parts)} |" for parts in rows]
    return INTRODUCTION + "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = page()
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
