"""The programs that compiled functions are measured with, each in one text for all libraries."""

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
"""By name, in the order of the table. Their arrays are drawn when a program is called for."""
