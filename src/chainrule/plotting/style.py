"""Colours, axes and checks that all plots share; matplotlib is imported at the first plot."""

from __future__ import annotations

from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, MissingExtraError

Array = np.ndarray[Any, Any]

# Colours of the colour-blind safe palette of Okabe and Ito.
BLUE, RED, GREEN = "#0072b2", "#d55e00", "#009e73"
GREY = "#666666"

_ON_LIGHT = (BLUE, RED, GREEN, "#cc79a7", "#e69f00", "#56b4e9", GREY)
_ON_DARK = ("#56b4e9", "#e69f00", "#2fc79b", "#cc79a7", "#f0e442", "#ff8a3d", "#aaaaaa")


def pyplot() -> Any:
    """Return matplotlib's pyplot; raise with the install command if it is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingExtraError(
            "plotting needs matplotlib, which is not installed: pip install 'chainrule[plot]'"
        ) from error
    return plt


def axes(ax: Any, size: tuple[float, float]) -> Any:
    """Return `ax`, or the axes of a new figure of `size` in inches."""
    if ax is None:
        return pyplot().subplots(figsize=size, layout="constrained")[1]
    if not hasattr(ax, "plot") or not hasattr(ax, "figure"):
        hint = ": write ax=ax[0], ax[0, 0] for one of several" if np.size(ax) > 1 else ""
        raise ArgumentError(f"ax must be matplotlib Axes, but got {type(ax).__name__}{hint}")
    return ax


def is_dark(ax: Any) -> bool:
    """Return whether the background of axes is dark."""
    red, green, blue, alpha = ax.get_facecolor()
    if alpha < 0.5:
        red, green, blue, _ = ax.figure.get_facecolor()
    return bool(0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.5)


def palette(ax: Any) -> tuple[str, ...]:
    """Return the colours of curves on the background of axes."""
    return _ON_DARK if is_dark(ax) else _ON_LIGHT


def ink(ax: Any) -> str:
    """Return the colour of notes on the background of axes."""
    return "#bbbbbb" if is_dark(ax) else GREY


def magnitudes(ax: Any) -> Any:
    """Return colours from faint to strong on the background of axes."""
    from matplotlib.colors import LinearSegmentedColormap

    ends = ("#27435a", "#9fd8ff") if is_dark(ax) else ("#bcd9ec", "#08306b")
    return LinearSegmentedColormap.from_list("magnitudes", ends)


def tidy(ax: Any, grid: str = "y") -> None:
    """Leave out two spines, and draw thin lines of a grid behind everything."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, axis=grid, color="#444444" if is_dark(ax) else "#e5e5e5", linewidth=0.8)
    ax.set_axisbelow(True)


def numbers(values: Any) -> Array:
    """Return values as an array, without their history."""
    if isinstance(values, Tensor):
        return np.asarray(values.numpy(force=True))
    if isinstance(values, list | tuple):
        values = [numbers(each) if isinstance(each, Tensor) else each for each in values]
    return np.asarray(values)


def real_numbers(title: str, name: str, values: Any) -> Array:
    """Return values as an array of real numbers; raise for anything else."""
    found = numbers(values)
    if found.dtype.kind not in "biuf":
        raise ArgumentError(
            f"{title}: {name} must be real numbers, but got {type(values).__name__} of dtype "
            f"{found.dtype}"
        )
    return found.astype(float)
