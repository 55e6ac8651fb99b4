"""Native kernels for eager operations on large arrays, selected by `set_kernels`.

`table` lists the primitives that have one. Loops of elementwise primitives are generated from their
rules (`elementwise`); other kernels are written by hand, as Python that LLVM compiles (`kernel`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from chainrule.autograd.recorders import exchange
from chainrule.compiler.native import jit
from chainrule.errors import ArgumentError, MissingExtraError
from chainrule.kernels import recurrence
from chainrule.kernels.elementwise import UPDATES
from chainrule.primitives.primitive import Primitive, Substitute

__all__ = ["get_kernels", "set_kernels"]

_KINDS = ("numpy", "native")
_installed: dict[Primitive, Substitute] = {}
_chosen: list[str] = []  # the kernels that `set_kernels` was called with last


def has_chosen() -> bool:
    """Return whether `set_kernels` was called."""
    return bool(_chosen)


def get_kernels() -> str:
    """Return the kernels of eager operations, as chosen by `set_kernels`: "numpy" or "native".

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.get_kernels()
    'numpy'
    """
    return "native" if _installed else "numpy"


def set_kernels(kernels: str, /) -> None:
    """Compute the common eager operations on large arrays with machine code or with NumPy.

    Machine code makes a single pass over memory where NumPy makes several (softmax, layer_norm,
    gelu, sigmoid, cumsum, indexing, max_pool2d, LSTM, GRU, the gradients of most operations, and
    the steps of most optimisers).
    Matrix products, and the convolutions that use them, use the widest vector instructions of the
    processor. The threads (`set_num_threads`) spin for 0.2 ms while they wait for the next
    operation. Kernels are compiled when first needed, which takes about half a second for each
    operation and type, and cached on disk.

    Parameters
    ----------
    kernels : str
        "native" for machine code, "numpy" for NumPy, the default. It applies to all threads.

    Raises
    ------
    MissingExtraError
        If llvmlite is not installed.
    ArgumentError
        If `kernels` is neither of the two.

    Notes
    -----
    Machine code computes writeable float32 and float64 arrays in C order, of 4096 elements or more
    (65,536 where NumPy needs a single call), and products of matrices in any order, of 131,072
    multiplications or more. NumPy computes the rest. Arithmetic is the same to the bit. Sums are
    added in another order, and exp, log, tanh and similar functions may differ by 2.5 units in the
    last place. Results don't depend on the number of threads. Overflow and invalid values are not
    reported as `numpy.errstate` asks for.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.set_kernels("numpy")
    >>> cr.get_kernels()
    'numpy'
    """
    if kernels not in _KINDS:
        raise ArgumentError(f"set_kernels expects 'numpy' or 'native', but got {kernels!r}")
    _chosen[:] = [kernels]
    if kernels == get_kernels():
        return
    if kernels == "native":
        if not jit.is_installed():
            raise MissingExtraError(
                "set_kernels('native') needs llvmlite, which is not installed: "
                "pip install 'chainrule[native]'"
            )
        from chainrule.compiler.eager.table import STEPS, substitutes, updates

        install(substitutes(), STEPS, updates())
    else:
        install({})


@contextmanager
def using_kernels(kernels: str) -> Iterator[None]:
    """Compute with these kernels in a block, in all threads of the process."""
    before, chosen = get_kernels(), list(_chosen)
    set_kernels(kernels)
    try:
        yield
    finally:
        set_kernels(before)
        _chosen[:] = chosen


def install(
    substitutes: dict[Primitive, Substitute],
    steps: Mapping[str, Callable[..., None]] | None = None,
    updates: Sequence[Callable[..., bool]] = (),
) -> None:
    """Install substitutes of primitives, and steps of recurrences and optimisers.

    NumPy computes all others.
    """
    for primitive in _installed.keys() - substitutes.keys():
        exchange(primitive, None)
    for primitive, substitute in substitutes.items():
        exchange(primitive, substitute)
    _installed.clear()
    _installed.update(substitutes)
    recurrence.STEPS.clear()
    recurrence.STEPS.update(steps or {})
    UPDATES[:] = updates
