"""Write docs/scipy-linalg.md: how each function of `scipy.linalg` and `scipy.fft` differentiates.

python3 tools/scipy_page.py            write the page
python3 tools/scipy_page.py --check    only report whether the page is current
"""

from __future__ import annotations

import sys
from pathlib import Path

import chainrule.scipy
from chainrule.scipy.dispatch import Table
from chainrule.scipy.fft.arguments import TABLE as FFT
from chainrule.scipy.linalg.arguments import TABLE as LINALG

assert chainrule.scipy.linalg  # which declares the functions

PAGE = Path(__file__).resolve().parent.parent / "docs" / "scipy-linalg.md"

INTRODUCTION = """# Linear algebra and Fourier transforms under SciPy's names

`cr.scipy.linalg` and `cr.scipy.fft` have SciPy's names, arguments, defaults and results. Given
arrays and numbers, a function is SciPy's own. Given tensors it is recorded where one of them
requires grad, in compiled functions and under `vmap`; else SciPy computes it, too. Results for the
arrays that a transform hands to its function are such arrays. Single precision is kept, where
SciPy may return double precision. Nothing is overwritten: `overwrite_a` and the like have no
effect. SciPy is needed: `pip install 'chainrule[scipy]'`; for stacks of matrices, version 1.16.

Derivatives are of any order, in both modes. There are four kinds:

* *linear*: the result is linear in the array, and its adjoint is given;
* *equation*: the result solves an equation, whose differential gives the derivative;
* *rule*: a rule of `chainrule.linalg`, or of the literature;
* *composite*: composed of other functions here, with their derivatives.

What to know:

* Gradients by Hermitian matrices of which SciPy reads one triangle (`cholesky`, `eigh`) are
  Hermitian, as those of `chainrule.linalg` are. By a structure that `solve(assume_a=)` assumes,
  elements that aren't read have the gradient 0, but for `"pos"`, whose gradient is Hermitian.
* Where eigenvalues or singular values coincide, a derivative that depends on the choice of their
  vectors is inf or nan; `polar` and functions of matrices don't depend on it, but for `funm`.
* `sqrtm`, `logm`, `signm` and `fractional_matrix_power` of a real matrix are complex if they must
  be. A compiled function can't know that, and raises an error then: pass a complex matrix.
* `orth`, `null_space`, `pinv` and `lstsq` differentiate for a constant rank. In compiled functions
  and under `vmap`, `lstsq`, `orth`, `null_space` and `subspace_angles`, whose results have a shape
  that depends on the rank, raise an error.
* Band matrices are solved as such; eigenvalues and Cholesky factors of band matrices are
  differentiated through the whole matrix.
* LAPACK perturbs a singular Sylvester or Lyapunov equation: what it solves, and derivatives that it
  gives (of `sqrtm` of a singular matrix), are huge there and not inf.
* SciPy's warnings of ill-conditioned matrices are not given where a gradient is recorded.

`scipy.linalg.solve(t, b)` itself can't be reached: SciPy makes an array of the tensor, which under
a running transform raises an error that names ours. `scipy.fft` has a door: with
`scipy.fft.set_backend(cr.scipy.fft)`, or `register_backend`, its functions record. So they do,
all but cosine, sine and Hankel transforms, if `SCIPY_ARRAY_API=1` is set.

This page is written by `tools/scipy_page.py`, and a test holds it.

"""


def section(table: Table) -> list[str]:
    """Return the rows of one module, whatever SciPy's version is."""
    lines = [f"## `{table.path}`", "", "| function | derivative |", "| --- | --- |"]
    for name in sorted(table.declared.keys() | table.refused.keys()):
        if name in table.declared:
            lines.append(f"| `{name}` | {table.declared[name].kind} |")
        else:
            lines.append(f"| `{name}` | none: {table.refused[name]} |")
    return [*lines, "", "All other names are SciPy's own.", ""]


def page() -> str:
    return INTRODUCTION + "\n".join([*section(LINALG), *section(FFT)]).rstrip() + "\n"


if __name__ == "__main__":
    text = page()
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
