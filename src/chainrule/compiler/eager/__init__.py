"""Machine code for eager operations on large arrays, where a user asks for it.

`table` says which primitives have it. Loops of those that act element by element are made of their
rules (`elementwise`); others are written by hand, as Python that Numba compiles (`kernel`).
"""

from __future__ import annotations

from chainrule.autograd.record_fast import exchange
from chainrule.compiler.native import jit
from chainrule.errors import ArgumentError, MissingExtraError
from chainrule.primitives.primitive import Primitive, Substitute

__all__ = ["get_kernels", "set_kernels"]

_KINDS = ("numpy", "native")
_installed: dict[Primitive, Substitute] = {}


def get_kernels() -> str:
    """Return what computes eager operations: "numpy", or "native" after `set_kernels` said so.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.get_kernels()
    'numpy'
    """
    return "native" if _installed else "numpy"


def set_kernels(kernels: str, /) -> None:
    """Have machine code, or NumPy again, compute the common eager operations on large arrays.

    Machine code makes one pass over memory where NumPy makes several (softmax, layer_norm, gelu,
    sigmoid, cumsum, indexing, max_pool2d, and the gradients of most operations); matrix products,
    and convolutions by these, are as quick as the processor's widest vectors; and its threads
    (`set_num_threads`) wait awake for the next operation for 0.2 ms. It is compiled when it is
    first needed, which takes about half a second for each operation and type, and kept on disk.

    Parameters
    ----------
    kernels : str
        "native" for machine code, "numpy" for NumPy, which computes everything at first. It holds
        for all threads.

    Raises
    ------
    MissingExtraError
        If Numba is not installed.
    ArgumentError
        If it is neither of the two.

    Notes
    -----
    Machine code computes float32 and float64 arrays in C order that can be written to, of 4096
    elements or more (65,536 where NumPy needs one call), and products of matrices in any order, of
    131,072 multiplications or more; all else stays NumPy's. Arithmetic is the same to the bit. Sums
    are added up in another order, and exp, log, tanh and their kin may differ by 2.5 units in the
    last place. Results don't depend on the number of threads. NumPy's reports of overflow and
    invalid values (`numpy.errstate`) are not made.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.set_kernels("numpy")
    >>> cr.get_kernels()
    'numpy'
    """
    if kernels not in _KINDS:
        raise ArgumentError(f"set_kernels expects 'numpy' or 'native', but got {kernels!r}")
    if kernels == get_kernels():
        return
    if kernels == "native":
        if not jit.is_installed():
            raise MissingExtraError(
                "set_kernels('native') needs Numba, which is not installed: "
                "pip install 'chainrule[native]'"
            )
        from chainrule.compiler.eager.table import substitutes

        install(substitutes())
    else:
        install({})


def install(substitutes: dict[Primitive, Substitute]) -> None:
    """Have these compute their primitives from now on, and NumPy all others."""
    for primitive in _installed.keys() - substitutes.keys():
        exchange(primitive, None)
    for primitive, substitute in substitutes.items():
        exchange(primitive, substitute)
    _installed.clear()
    _installed.update(substitutes)
