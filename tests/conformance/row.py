"""Rows of the conformance table and their cases, as data."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

REAL = ("float32", "float64")
FIELD = (*REAL, "complex128")
COMPLEX = ("complex128",)


class Strided(tuple[int, ...]):
    """The shape of an input that is not contiguous in memory."""


class StridedRows(tuple[int, ...]):
    """The shape of an input whose rows are contiguous in memory, but apart."""


Input = tuple[int, ...] | list[Any] | np.ndarray
"""A shape of random values; or the values; or an array of ints or bools (no derivative)."""


@dataclass(frozen=True)
class Situation:
    """Inputs and settings with which a primitive is called."""

    name: str
    inputs: tuple[Input, ...]
    settings: dict[str, Any]
    smooth: bool = True  # False: finite differences give no derivative here
    dtypes: tuple[str, ...] | None = None  # None: those of the row
    peer: bool = True  # whether PyTorch is a reference here


def situation(
    name: str,
    *inputs: Input,
    smooth: bool = True,
    dtypes: tuple[str, ...] | None = None,
    peer: bool = True,
    **settings: Any,
) -> Situation:
    return Situation(name, inputs, settings, smooth, dtypes, peer)


Spelling = str | Callable[..., Any] | None
"""A function name in a library; or a function of library and arguments; None: not available."""


@dataclass(frozen=True)
class Row:
    """The row of one primitive. The spelling `call` holds for every library that is not named."""

    primitive: str
    situations: tuple[Situation, ...]
    domains: tuple[tuple[float, float], ...] = ((-1.0, 1.0),)
    dtypes: tuple[str, ...] = FIELD
    spellings: Mapping[str, Spelling] = field(default_factory=dict)
    differentiable: bool = True

    def spelling(self, library: str) -> Spelling:
        if library == "jax.numpy":
            library = "numpy"
        return self.spellings.get(library, self.spellings.get("call", self.primitive))

    def function(self, library: ModuleType) -> Callable[..., Any]:
        """Return the primitive's function in chainrule, numpy, torch or jax.numpy."""
        spelling = self.spelling(library.__name__)
        if isinstance(spelling, str):
            return getattr(library, spelling)
        assert spelling is not None
        return functools.partial(spelling, library)


@dataclass(frozen=True)
class Case:
    """A row in one of its situations, in one dtype."""

    row: Row
    situation: Situation
    dtype: str

    @property
    def settings(self) -> dict[str, Any]:
        return self.situation.settings

    def arrays(self) -> list[np.ndarray]:
        """Return the inputs, the same at every call."""
        seed = zlib.crc32(f"{self.row.primitive} {self.situation.name}".encode())
        rng = np.random.default_rng(seed)
        domains = self.row.domains
        return [
            _array(spec, domains[min(i, len(domains) - 1)], self.dtype, rng)
            for i, spec in enumerate(self.situation.inputs)
        ]

    def __str__(self) -> str:
        return f"{self.row.primitive}-{self.situation.name}-{self.dtype}"


def _array(spec: Input, domain: tuple[float, float], dtype: str, rng: Any) -> np.ndarray:
    if isinstance(spec, np.ndarray):
        return spec.copy()
    if isinstance(spec, list):
        return np.array(spec, dtype)
    values = rng.uniform(*domain, spec)
    if "complex" in dtype:
        values = values + 1j * rng.uniform(0.2, 0.6, spec)
    values = np.asarray(values).astype(dtype)
    if isinstance(spec, Strided):
        room = np.zeros(tuple(2 * n for n in reversed(spec)), dtype)
        memory = room[(slice(None, None, 2),) * len(spec)].T
        memory[...] = values
        return memory
    if isinstance(spec, StridedRows):
        memory = np.zeros((*(2 * n for n in spec[:-1]), spec[-1]), dtype)[::2]
        memory[...] = values
        return memory
    return values


def cases_of(row: Row) -> Iterator[Case]:
    for situation_ in row.situations:
        dtypes = situation_.dtypes or row.dtypes
        yield from [Case(row, situation_, dtype) for dtype in dtypes]
        if situation_.dtypes is None and "complex128" in dtypes:
            yield Case(row, situation_, "complex64")


def row(
    primitive: str,
    situations: tuple[Situation, ...],
    *domains: tuple[float, float],
    dtypes: tuple[str, ...] = FIELD,
    **spellings: Spelling,
) -> Row:
    if "cr" in spellings:
        spellings["chainrule"] = spellings.pop("cr")
    if "np" in spellings:
        spellings["numpy"] = spellings.pop("np")
    return Row(primitive, situations, domains or ((-1.0, 1.0),), dtypes, spellings)


def kink(name: str, *inputs: Input, **settings: Any) -> Situation:
    """Return a situation where the derivative is a convention: real numbers, no differences."""
    return situation(name, *inputs, smooth=False, dtypes=REAL, **settings)


def step(*path: tuple[Any, dict[str, Any]]) -> tuple[Any, ...]:
    return path


def constant(
    primitive: str,
    situations: tuple[Situation, ...],
    *domains: tuple[float, float],
    dtypes: tuple[str, ...] = REAL,
    **spellings: Spelling,
) -> Row:
    made = row(primitive, situations, *domains, dtypes=dtypes, **spellings)
    return Row(primitive, made.situations, made.domains, dtypes, made.spellings, False)
