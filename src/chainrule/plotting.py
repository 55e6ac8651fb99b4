"""Plots with matplotlib: learning curves, digits, confusion matrices, linear approximations.

Every function draws into `ax`, or into a new figure, and returns the axes. matplotlib is imported
at the first plot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from chainrule.autograd.tensor import Tensor
from chainrule.errors import MissingExtraError

__all__ = ["learning_curve", "digit_grid", "confusion_matrix", "linear_approximation"]

# Blue, vermilion and green of the colour-blind safe palette of Okabe and Ito.
BLUE, RED, GREEN = "#0072b2", "#d55e00", "#009e73"
GREY = "#666666"


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    """Return `ax`, or the axes of a new figure of `size` in inches."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingExtraError(
            "plotting needs matplotlib, which is not installed: pip install 'chainrule[plot]'"
        ) from error
    return plt.subplots(figsize=size, layout="constrained")[1]


def _numbers(values: Any) -> np.ndarray[Any, Any]:
    return np.asarray(values.numpy(force=True) if isinstance(values, Tensor) else values)


def _tidy(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, axis="y", color="#e5e5e5", linewidth=0.8)
    ax.set_axisbelow(True)


def learning_curve(
    curves: Mapping[str, Sequence[float]], *, label: str = "loss", log: bool = False, ax: Any = None
) -> Any:
    """Plot one or more quantities against the epoch.

    Parameters
    ----------
    curves : dict of sequences of numbers
        The values of each curve by its name, from epoch 1 on. Names are written at the ends.
    label : str, default "loss"
        Label of the vertical axis.
    log : bool, default False
        Whether the vertical axis is logarithmic.
    ax : matplotlib Axes, optional
        Axes to draw into; default: a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> from chainrule import plotting
    >>> ax = plotting.learning_curve({"training": [2.0, 1.0, 0.5], "held out": [2.1, 1.2, 0.9]})
    >>> ax.get_ylabel()
    'loss'
    """
    ax = _axes(ax, (6.0, 3.6))
    for (name, values), color in zip(curves.items(), (BLUE, RED, GREEN, GREY), strict=False):
        numbers = _numbers(values)
        epochs = np.arange(1, len(numbers) + 1)
        ax.plot(epochs, numbers, color=color, linewidth=2, label=name)
    ax.set_xlabel("epoch")
    ax.set_ylabel(label)
    if log:
        ax.set_yscale("log")
        ax.yaxis.get_major_locator().set_params(subs=(1, 2, 5))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("")
    ax.xaxis.get_major_locator().set_params(integer=True)
    _tidy(ax)
    _name_curves(ax)
    return ax


def _name_curves(ax: Any) -> None:
    """Label each curve at its end, in place of a legend; labels keep a distance of 12 points."""
    ax.set_ylim(ax.get_ylim())  # the scale, before heights are measured
    lines = [line for line in ax.get_lines() if len(line.get_xdata())]
    ends = [(line.get_xdata()[-1], line.get_ydata()[-1]) for line in lines]
    heights = [72 / ax.figure.dpi * ax.transData.transform(end)[1] for end in ends]
    lowest = -math.inf
    for height, end, line in sorted(zip(heights, ends, lines, strict=True), key=lambda row: row[0]):
        lowest = max(height, lowest + 12)
        ax.annotate(
            line.get_label(),
            end,
            xytext=(6, lowest - height),
            textcoords="offset points",
            color=line.get_color(),
            va="center",
        )


def digit_grid(
    images: Any, labels: Any, predictions: Any, *, columns: int = 8, ax: Any = None
) -> Any:
    """Draw a grid of images with their predictions; wrong ones also show the label.

    Parameters
    ----------
    images : Tensor or array, shape (n, height, width)
        Grey values; larger ones are darker.
    labels, predictions : Tensor or array of ints, shape (n,)
        True and predicted classes.
    columns : int, default 8
        Number of images in a row.
    ax : matplotlib Axes, optional
        Axes to draw into; default: a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> from chainrule import plotting
    >>> ax = plotting.digit_grid(np.eye(8)[None], [3], [5])
    >>> [text.get_text() for text in ax.texts]
    ['5, not 3']
    """
    pictures = _numbers(images)
    n, height, width = pictures.shape
    rows, aspect = math.ceil(n / columns), height / width
    ax = _axes(ax, (0.9 * columns, 1.15 * rows))
    wide, tall = 1.15, aspect + 0.4  # a cell: an image of width 1, a gap, the text
    scale = {"vmin": pictures.min(initial=0), "vmax": pictures.max(initial=1)}
    for i, (picture, label, prediction) in enumerate(
        zip(pictures, _numbers(labels), _numbers(predictions), strict=True)
    ):
        left, top = wide * (i % columns), tall * (i // columns)
        ax.imshow(picture, cmap="gray_r", extent=(left, left + 1, top + aspect, top), **scale)
        right = label == prediction
        ax.text(
            left + 0.5,
            top + aspect + 0.07,
            f"{prediction}" if right else f"{prediction}, not {label}",
            color=GREY if right else RED,
            weight="normal" if right else "bold",
            ha="center",
            va="top",
        )
    ax.set_xlim(-0.05, wide * columns - 0.1)
    ax.set_ylim(tall * rows, -0.05)
    ax.set_axis_off()
    return ax


def confusion_matrix(labels: Any, predictions: Any, *, ax: Any = None) -> Any:
    """Draw how often each class is taken for each; mistakes are red.

    Parameters
    ----------
    labels, predictions : Tensor or array of ints, shape (n,)
        True and predicted classes, from 0 on.
    ax : matplotlib Axes, optional
        Axes to draw into; default: a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> from chainrule import plotting
    >>> ax = plotting.confusion_matrix([0, 1, 1], [0, 1, 0])
    >>> [text.get_text() for text in ax.texts]
    ['1', '1', '1']
    """
    true, predicted = _numbers(labels), _numbers(predictions)
    number = 1 + max(true.max(initial=0), predicted.max(initial=0))
    counts = np.zeros((number, number), int)
    np.add.at(counts, (true, predicted), 1)
    ax = _axes(ax, (4.8, 4.8))
    off_diagonal = ~np.eye(number, dtype=bool)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    ax.imshow(np.where(off_diagonal, 0, shares), cmap="Blues", vmin=0, vmax=2)
    for i, j in np.argwhere(counts):
        wrong = i != j
        color, weight = (RED, "bold") if wrong else ("black", "normal")
        ax.text(j, i, str(counts[i, j]), color=color, weight=weight, ha="center", va="center")
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    ax.set_xticks(range(number))
    ax.set_yticks(range(number))
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return ax


def linear_approximation(
    x: Any,
    y_true: Any,
    y_approx: Any,
    *,
    at: float,
    label: str = "f",
    order: int = 1,
    ax: Any = None,
) -> Any:
    """Plot a function and its linear approximation, or another one at a point.

    Parameters
    ----------
    x, y_true, y_approx : Tensor or array, shape (n,)
        Points, and the values of the function and of the line at these points.
    at : float
        The point of tangency.
    label : str, default "f"
        Label of the function.
    order : int, default 1
        Order of the approximation, for its label. The vertical axis fits the function; an
        approximation may leave it.
    ax : matplotlib Axes, optional
        Axes to draw into; default: a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule import plotting
    >>> x = cr.linspace(0, 2, 50)
    >>> ax = plotting.linear_approximation(x, x**2, 2 * x - 1, at=1.0, label="x²")
    >>> [line.get_label() for line in ax.get_lines()][:2]
    ['x²', 'its linear approximation at 1']
    """
    ax = _axes(ax, (6.0, 3.6))
    points, true, approximate = _numbers(x), _numbers(y_true), _numbers(y_approx)
    ax.plot(points, true, color=BLUE, linewidth=2, label=label)
    kind = "linear approximation" if order == 1 else f"approximation of order {order}"
    ax.plot(points, approximate, color=RED, linewidth=2, label=f"its {kind} at {at:g}")
    ax.plot(at, np.interp(at, points, true), "o", color=RED, markersize=7)
    ax.set_xlabel("x")
    ax.set_xlim(points.min(), points.max())
    low, high = np.nanmin(true), np.nanmax(true)
    if order > 1 and np.isfinite(low) and low < high:
        ax.set_ylim(low - 0.4 * (high - low), high + 0.4 * (high - low))
    ax.legend(frameon=False)
    _tidy(ax)
    return ax
