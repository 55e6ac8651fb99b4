"""Pictures of classifications: digits with their predictions, and confusion matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from chainrule.plotting.style import GREY, RED, axes, numbers

__all__ = ["digit_grid", "confusion_matrix"]


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
    pictures = numbers(images)
    n, height, width = pictures.shape
    rows, aspect = math.ceil(n / columns), height / width
    ax = axes(ax, (0.9 * columns, 1.15 * rows))
    wide, tall = 1.15, aspect + 0.4  # a cell: an image of width 1, a gap, the text
    scale = {"vmin": pictures.min(initial=0), "vmax": pictures.max(initial=1)}
    for i, (picture, label, prediction) in enumerate(
        zip(pictures, numbers(labels), numbers(predictions), strict=True)
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
    true, predicted = numbers(labels), numbers(predictions)
    number = 1 + max(true.max(initial=0), predicted.max(initial=0))
    counts = np.zeros((number, number), int)
    np.add.at(counts, (true, predicted), 1)
    ax = axes(ax, (4.8, 4.8))
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
