"""Interface to the OpenBLAS library that NumPy is linked with.

Symbols are looked up through NumPy's extension module, which finds the library that this module is
linked with, not another copy in the process such as SciPy's.
"""

from __future__ import annotations

import ctypes
import operator
import os
import sys
from collections import deque
from itertools import product
from typing import Any, final

import numpy as np

# Prefix and suffix of symbols in NumPy's wheels, in SciPy's, and in distributions' builds.
SYMBOL_AFFIXES = (("scipy_", "64_"), ("scipy_", ""), ("", "64_"), ("", ""))

EXTENSION = sys.modules["numpy._core._multiarray_umath"]


@final
class OpenBLAS:
    """A loaded OpenBLAS."""

    def __init__(self, handle: ctypes.PyDLL, prefix: str, suffix: str) -> None:
        self._handle = handle
        self._prefix = prefix
        self._suffix = suffix
        self.file = _file_of(self._function("get_config"))

    def _function(self, name: str) -> Any:
        return self._handle[f"{self._prefix}openblas_{name}{self._suffix}"]

    @property
    def integer(self) -> Any:
        """C's type of the integers that Fortran's routines take."""
        is_64_bit = self._suffix == "64_" or "USE64BITINT" in self._text("get_config")
        return ctypes.c_int64 if is_64_bit else ctypes.c_int32

    def routine(self, name: str, arguments: int) -> Any:
        """Return a routine of BLAS or LAPACK, which takes so many addresses and returns nothing.

        It runs without the interpreter lock. Raises AttributeError if there is none of that name.
        """
        handle = ctypes.CDLL(EXTENSION.__file__)
        function = handle[f"{self._prefix}{name}_{self._suffix}"]
        function.argtypes = [ctypes.c_void_p] * arguments
        function.restype = None
        return function

    def _text(self, name: str) -> str:
        function = self._function(name)
        function.restype = ctypes.c_char_p
        return (function() or b"").decode("ascii", "replace")

    @property
    def version(self) -> str | None:
        name, _, rest = self._text("get_config").partition(" ")
        return rest.split()[0] if name == "OpenBLAS" and rest else None

    @property
    def kernels(self) -> str:
        """OpenBLAS' name for the kernel set in use."""
        return self._text("get_corename")

    @property
    def threads(self) -> int:
        return int(self._function("get_num_threads")())

    @property
    def is_numpys_own(self) -> bool:
        """Whether the library is part of NumPy's wheel."""
        folder = os.path.basename(os.path.dirname(self.file or ""))
        return self._prefix == "scipy_" and folder == "numpy.libs"

    @property
    def can_switch(self) -> bool:
        names = ("gotoblas_dynamic_quit", "gotoblas_dynamic_init")
        return all(hasattr(self._handle, name) for name in names)

    def has(self, kernels: str) -> bool:
        """Return whether the library was built with these kernels."""
        return hasattr(self._handle, f"gotoblas_{kernels.upper()}")

    def switch(self, kernels: str | None) -> None:
        """Switch to these kernels, or with None to OpenBLAS' own choice.

        Between the two calls the library has no kernels, and a product would crash. So no other
        thread or signal handler may run in between. Python runs them only between bytecode
        instructions, of which there are none while `deque` consumes `map`, and the functions of a
        `PyDLL` keep the interpreter lock.
        """
        handle = self._handle
        calls = (handle.gotoblas_dynamic_quit, handle.gotoblas_dynamic_init)
        before = os.environ.pop("OPENBLAS_CORETYPE", None)
        try:
            if kernels is not None:
                os.environ["OPENBLAS_CORETYPE"] = kernels
            deque(map(operator.call, calls), maxlen=0)
        finally:
            os.environ.pop("OPENBLAS_CORETYPE", None)
            if before is not None:
                os.environ["OPENBLAS_CORETYPE"] = before

    def is_correct(self) -> bool:
        """Return whether products in all dtypes of BLAS agree with exact references."""
        return not wrong_products()


def loaded() -> OpenBLAS | None:
    """Return the OpenBLAS that NumPy is linked with, None for another library."""
    handle = _handle()
    for prefix, suffix in SYMBOL_AFFIXES:
        if handle is not None and hasattr(handle, f"{prefix}openblas_get_config{suffix}"):
            return OpenBLAS(handle, prefix, suffix)
    return None


def _handle() -> ctypes.PyDLL | None:
    """Return a handle of NumPy's extension module, for looking up symbols of linked libraries."""
    try:
        return ctypes.PyDLL(EXTENSION.__file__)
    except (OSError, TypeError):
        return None


class _DlInfo(ctypes.Structure):
    """C's ``Dl_info``."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
    )


def _file_of(function: Any) -> str | None:
    """Return the file that a function was loaded from."""
    try:
        find = ctypes.CDLL(None).dladdr
    except (AttributeError, OSError, TypeError):  # Windows
        return None
    info = _DlInfo()
    found = find(ctypes.cast(function, ctypes.c_void_p), ctypes.byref(info))
    return os.path.realpath(os.fsdecode(info.file)) if found and info.file else None


def features() -> frozenset[str]:
    """Return the processor features that NumPy has detected, by their names in Linux."""
    found: dict[str, bool] = getattr(EXTENSION, "__cpu_features__", {})
    names = {name.lower().replace("fma3", "fma") for name, present in found.items() if present}
    if "x86_v3" in names:  # NumPy 2.4 groups these features
        names |= {"avx", "avx2", "fma"}
    return frozenset(names)


# (rows, columns, inner): single elements, partial tiles, odd edges, and enough for several threads.
SHAPES = (
    (1, 1, 1),
    (3, 7, 5),
    (17, 9, 33),
    (1, 1, 300),
    (300, 1, 300),
    (99, 98, 1),
    (65, 10, 1000),
    (259, 195, 130),
)


def _integers(rows: int, columns: int) -> Any:
    """Return a pseudo-random matrix of integers from -8 to 8, without importing numpy.random."""
    indices = np.arange(rows * columns)
    return (indices * indices // 7 % 17 - 8).reshape(rows, columns)


def wrong_products() -> list[str]:
    """Return the names of the matrix products and linear solves that are wrong.

    The elements are small integers, whose sums are exact in any order, so a product must equal
    NumPy's integer product, which does not use BLAS.
    """
    wrong = []
    for rows, columns, inner in SHAPES:
        x, y = _integers(rows, inner), _integers(inner, columns)
        expected, own = x @ y, x[:50] @ x[:50].T
        for dtype, *layouts in product("fdFD", "CF", "CF"):
            a, b = (m.astype(dtype, order=o) for m, o in zip((x, y), layouts, strict=True))
            some = a[:50]  # x @ x.T has kernels of its own (syrk)
            if not (np.array_equal(a @ b, expected) and np.array_equal(some @ some.T, own)):
                wrong.append(f"({rows} × {inner}) @ ({inner} × {columns}) of {a.dtype}")
    triangle = np.tril(_integers(120, 120) // 8, -1) + np.diag(np.full(120, 16))
    for dtype in "dD":
        lower = triangle.astype(dtype)
        if not np.allclose(np.linalg.cholesky(lower @ lower.T), lower, rtol=0, atol=1e-9):
            wrong.append(f"cholesky of {lower.dtype}")
        if not np.allclose(np.linalg.solve(lower, lower), np.eye(120), rtol=0, atol=1e-9):
            wrong.append(f"solve of {lower.dtype}")
    return wrong
