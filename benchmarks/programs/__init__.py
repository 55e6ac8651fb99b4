"""Programs for the benchmarks of compiled functions, each written once for all libraries."""

from __future__ import annotations

from collections.abc import Callable

from programs import elementwise, observations, science, small, training
from programs.peers import Program

PROGRAMS: dict[str, Callable[[], Program]] = {
    **training.NETWORK,
    **elementwise.PROGRAMS,
    **training.LARGER,
    **small.PROGRAMS,
    **observations.PROGRAMS,
    **science.PROGRAMS,
    **small.SCALAR,
}
"""Makers of the programs by name, in the order of the table; a maker draws the arrays."""
