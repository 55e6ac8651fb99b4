"""Learning curves: of a finished training, live in a notebook, and as a line of text."""

from __future__ import annotations

import io
import math
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from chainrule.errors import ArgumentError
from chainrule.plotting.style import axes, palette, real_numbers, tidy

__all__ = ["learning_curve", "LiveCurve", "sparkline"]

_BARS = "▁▂▃▄▅▆▇█"


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
    ArgumentError
        If the curves are no dict of sequences of real numbers.

    Examples
    --------
    >>> from chainrule import plotting
    >>> ax = plotting.learning_curve({"training": [2.0, 1.0, 0.5], "held out": [2.1, 1.2, 0.9]})
    >>> ax.get_ylabel()
    'loss'
    """
    if not isinstance(curves, Mapping):
        raise ArgumentError(
            f"learning_curve: curves must be a dict of sequences by name, got "
            f"{type(curves).__name__}: write {{'training': losses}}"
        )
    ax = axes(ax, (6.0, 3.6))
    colors = palette(ax)
    for i, (name, values) in enumerate(curves.items()):
        heights = real_numbers("learning_curve", f"curves[{name!r}]", values)
        if heights.ndim != 1:
            raise ArgumentError(
                f"learning_curve: curves[{name!r}] must have one dimension, got the shape "
                f"{list(heights.shape)}"
            )
        style = {"marker": "o"} if len(heights) == 1 else {}
        line = ("-", "--", ":")[i // len(colors) % 3]
        ax.plot(
            np.arange(1, len(heights) + 1),
            heights,
            line,
            color=colors[i % len(colors)],
            linewidth=2,
            label=name,
            **style,
        )
    ax.set_xlabel("epoch")
    ax.set_ylabel(label)
    if log:
        ax.set_yscale("log")
        ax.yaxis.get_major_locator().set_params(subs=(1, 2, 5))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("")
    ax.xaxis.get_major_locator().set_params(integer=True)
    tidy(ax)
    _name_curves(ax)
    return ax


def _name_curves(ax: Any) -> None:
    """Label each curve at its end, in place of a legend; labels keep a distance of 12 points."""
    ax.set_ylim(ax.get_ylim())  # the scale, before heights are measured
    lines, ends = [], []
    for line in ax.get_lines():
        known = np.flatnonzero(np.isfinite(line.get_ydata()))
        if len(known):
            lines.append(line)
            ends.append((line.get_xdata()[known[-1]], line.get_ydata()[known[-1]]))
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


def sparkline(values: Iterable[Any], *, width: int = 40) -> str:
    """Return a curve as one line of text, from its lowest value ▁ to its highest █.

    Parameters
    ----------
    values : Tensor, array or sequence of real numbers, shape (n,)
        More than `width` values are averaged in groups. What is not finite is shown as ``!``.
    width : int, default 40
        The largest number of characters.

    Returns
    -------
    str

    Raises
    ------
    ArgumentError
        If the values are no real numbers in one dimension.

    Examples
    --------
    >>> from chainrule import plotting
    >>> plotting.sparkline([8.0, 5.0, 3.0, 2.0, 1.5, 1.2, 1.1, 1.0])
    '█▅▃▂▁▁▁▁'
    """
    given = real_numbers("sparkline", "values", values if hasattr(values, "shape") else [*values])
    if given.ndim != 1 or width < 1:
        raise ArgumentError(
            "sparkline: values must have one dimension and width must be positive, got the shape "
            f"{list(given.shape)} and the width {width}"
        )
    groups = np.array_split(given, width) if len(given) > width else given.reshape(-1, 1)
    heights = np.array([float(group.mean()) for group in groups])
    finite = heights[np.isfinite(heights)]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join([_BARS[round((h - low) * scale)] if math.isfinite(h) else "!" for h in heights])


class LiveCurve:
    """Learning curves that grow while a network trains: in a notebook, or in a terminal.

    In a notebook the picture below the cell is replaced as values are added. In a terminal the last
    line is, by sparklines with the last values. In a file or pipe, one line is written at the end.

    Parameters
    ----------
    label : str, default "loss"
        Label of the vertical axis.
    log : bool, default False
        Whether the vertical axis is logarithmic.
    every : float, default 0.5
        The least time between two drawings, in seconds.
    file : text stream, optional
        Where lines of text go; default: ``sys.stderr``.

    Attributes
    ----------
    curves : dict of lists of floats
        What was added, by name.

    Examples
    --------
    >>> import io
    >>> from chainrule import plotting
    >>> file = io.StringIO()
    >>> with plotting.LiveCurve(file=file) as live:
    ...     for epoch in range(4):
    ...         live.add(training=1 / (epoch + 1), held_out=2 / (epoch + 1))
    >>> print(file.getvalue(), end="")
    training █▃▂▁ 0.25   held_out █▃▂▁ 0.5
    """

    def __init__(
        self, *, label: str = "loss", log: bool = False, every: float = 0.5, file: Any = None
    ) -> None:
        self.label, self.log, self.every = label, log, every
        self.curves: dict[str, list[float]] = {}
        self._file, self._drawn, self._handle = file, -math.inf, None

    def add(self, **values: Any) -> None:
        """Add a value to each curve, by name: numbers, or tensors of one element."""
        for name, value in values.items():
            found = real_numbers("LiveCurve.add", name, value)
            if found.size != 1:
                raise ArgumentError(
                    f"LiveCurve.add: {name} must be one number, got the shape {list(found.shape)}: "
                    "reduce it, with mean() or sum()"
                )
            self.curves.setdefault(name, []).append(float(found.reshape(())))
        if time.monotonic() - self._drawn >= self.every:
            self._draw()

    def __enter__(self) -> LiveCurve:
        return self

    def __exit__(self, *details: object) -> None:
        self._draw(last=True)

    def __str__(self) -> str:
        return "   ".join(
            [
                f"{name} {sparkline(each, width=24)} {each[-1]:.4g}"
                for name, each in self.curves.items()
            ]
        )

    __repr__ = __str__

    def plot(self, ax: Any = None) -> Any:
        """Draw the curves with `learning_curve`; return the axes."""
        return learning_curve(self.curves, label=self.label, log=self.log, ax=ax)

    def _repr_png_(self) -> bytes:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.0, 3.6), layout="constrained")
        FigureCanvasAgg(figure)
        self.plot(figure.subplots())
        written = io.BytesIO()
        figure.savefig(written, format="png", dpi=110)
        return written.getvalue()

    def _draw(self, *, last: bool = False) -> None:
        self._drawn = time.monotonic()
        if not self.curves:
            return
        shell = _notebook()
        if shell is not None:
            if self._handle is None:
                self._handle = shell.display(self, display_id=True)
            else:
                self._handle.update(self)
            return
        file = sys.stderr if self._file is None else self._file
        if file.isatty():
            file.write(f"\r\x1b[2K{self}" + ("\n" if last else ""))
            file.flush()
        elif last:
            file.write(f"{self}\n")


def _notebook() -> Any:
    """Return the module that displays in the running notebook, None outside of one."""
    shell: Any = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    return None if running is None or not hasattr(running, "kernel") else shell.display
