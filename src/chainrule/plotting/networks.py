"""Plots of networks: the flow of gradients by layer, histograms of gradients and activations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.plotting.style import RED, Array, axes, ink, magnitudes, numbers, palette, tidy

__all__ = ["gradient_flow", "gradient_histograms", "activation_histograms"]

_INCHES_PER_ROW, _MAX_HEIGHT = 0.26, 12.0
_MAX_LABELS = 45
_HISTOGRAM_BINS = 60
_MAX_RIDGES = 30
"""Up to so many histograms are drawn as such; more are rows of a picture."""


def gradient_flow(parameters: Any, *, ax: Any = None) -> Any:
    """Plot the sizes of the gradients of a network, parameter by parameter, from input to output.

    Parameters
    ----------
    parameters : Module, or dict of Tensors by name
        Whose `.grad` is shown, after a backward pass.
    ax : matplotlib Axes, optional
        Axes to draw into; default: a new figure.

    Returns
    -------
    matplotlib Axes
        For each parameter the mean magnitude, a dot, and the largest one, the end of a line. What
        has no gradient, only zeros, or nan is named in red.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ArgumentError
        If there are no parameters.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule import plotting
    >>> net = cr.nn.Sequential(cr.nn.Linear(3, 4), cr.nn.ReLU(), cr.nn.Linear(4, 1))
    >>> net(cr.ones(2, 3)).sum().backward()
    >>> ax = plotting.gradient_flow(net)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['0.weight', '0.bias', '2.weight', '2.bias']
    """
    named = _named_parameters("gradient_flow", parameters)
    ax = axes(ax, (6.0, _height(len(named))))
    color = palette(ax)[0]
    sizes = [
        None if t.grad is None else np.abs(numbers(t.grad)).astype(float) for t in named.values()
    ]
    drawn = {i: size for i, size in enumerate(sizes) if size is not None and _is_positive(size)}
    rows = [*drawn]
    means = [float(size.mean()) for size in drawn.values()]
    largest = [float(size.max()) for size in drawn.values()]
    ax.hlines(rows, means, largest, color=color, linewidth=1.5, alpha=0.6)
    ax.plot(means, rows, "o", color=color, markersize=5, label="mean")
    ax.plot(largest, rows, "|", color=color, markersize=8, label="largest")
    ax.set_xscale("log")
    if not rows:
        ax.set_xlim(1e-3, 1.0)
    for row, each in enumerate(sizes):
        if row not in drawn:
            text = "no gradient" if each is None else _fault(each)
            where = ax.get_yaxis_transform()
            size = 9 if len(sizes) <= _MAX_LABELS else 5
            ax.text(0.01, row, text, transform=where, color=RED, va="center", size=size)
    _rows(ax, list(named))
    ax.set_xlabel("magnitude of the gradient: mean ●, largest |")
    tidy(ax, "x")
    return ax


def gradient_histograms(parameters: Any, *, ax: Any = None) -> Any:
    """Draw the distribution of the gradient of each parameter, one above the other.

    Parameters
    ----------
    parameters : Module, or dict of Tensors by name
        Whose `.grad` is shown, after a backward pass; those without one are left out.
    ax : matplotlib Axes, optional
        Axes to draw into; default: a new figure.

    Returns
    -------
    matplotlib Axes
        All on one horizontal axis, which holds the middle 99 % of the values of each; each of the
        same height. A share of zeros above 10 % is noted.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ArgumentError
        If no parameter has a gradient.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule import plotting
    >>> net = cr.nn.Linear(3, 4)
    >>> net(cr.ones(2, 3)).pow(2).sum().backward()
    >>> plotting.gradient_histograms(net).get_xlabel()
    'gradient'
    """
    named = _named_parameters("gradient_histograms", parameters)
    found = {name: numbers(t.grad) for name, t in named.items() if t.grad is not None}
    if not found:
        raise ArgumentError(
            f"gradient_histograms: none of the {len(named)} parameters has a gradient: call "
            "backward() first"
        )
    return _histograms(found, "gradient", ax)


def activation_histograms(module: Any, *inputs: Any, ax: Any = None) -> Any:
    """Draw the distribution of what each layer of a network returns, one above the other.

    Parameters
    ----------
    module : Module
        It is called with `inputs`, without recording. Its innermost modules are shown, in the order
        of their calls; or a dict of Tensors by name, drawn as they are.
    *inputs
        The arguments of the call.
    ax : matplotlib Axes, optional
        Axes to draw into; default: a new figure.

    Returns
    -------
    matplotlib Axes
        As of `gradient_histograms`.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    ArgumentError
        If no layer returns a floating tensor.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule import plotting
    >>> net = cr.nn.Sequential(cr.nn.Linear(3, 4), cr.nn.ReLU())
    >>> ax = plotting.activation_histograms(net, cr.randn(8, 3))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['0', '1']
    """
    if isinstance(module, Mapping):
        found = {name: numbers(t) for name, t in module.items()}
    elif hasattr(module, "named_modules"):
        found = _activations(module, inputs)
    else:
        raise ArgumentError(
            "activation_histograms: expected a module and its inputs, or a dict of Tensors by "
            f"name, got {type(module).__name__}"
        )
    if not found:
        raise ArgumentError("activation_histograms: no layer returns a floating tensor")
    return _histograms(found, "activation", ax)


def _activations(module: Any, inputs: tuple[Any, ...]) -> dict[str, Array]:
    """Return what the innermost modules return in a call, by name; a second call has a number."""
    found: dict[str, Array] = {}

    def keeper(name: str) -> Any:
        def keep(_: Any, __: Any, output: Any) -> None:
            first = output[0] if isinstance(output, tuple) and output else output
            if isinstance(first, Tensor) and first.dtype.kind == "f":
                calls = sum(each.split(" ")[0] == name for each in found)
                found[f"{name} ({calls + 1})" if calls else name] = numbers(first).copy()

        return keep

    handles = [
        each.register_forward_hook(keeper(name or type(each).__name__))
        for name, each in module.named_modules()
        if not list(each.children())
    ]
    try:
        with no_grad():
            module(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    return found


def _histograms(named: Mapping[str, Array], label: str, ax: Any) -> Any:
    values = {name: each.reshape(-1).astype(float) for name, each in named.items()}
    ax = axes(ax, (6.0, _height(len(values), 0.42)))
    edges = _edges(list(map(_finite, values.values())), ax)
    rows = []
    for each in values.values():
        kept = _finite(each)
        counts = np.histogram(kept[kept != 0], edges)[0]
        rows.append(counts / max(counts.max(), 1))
    many = len(values) > _MAX_RIDGES
    if many:
        bounds = np.arange(len(values) + 1) - 0.5
        shown = np.ma.masked_equal(np.array(rows), 0)
        ax.pcolormesh(edges, bounds, shown, cmap=magnitudes(ax), vmin=0, vmax=1)
    else:
        color = palette(ax)[0]
        for row, heights in enumerate(rows):
            steps = np.repeat(row - 0.85 * heights, 2)
            ax.fill_between(np.repeat(edges, 2)[1:-1], row, steps, color=color, alpha=0.55, lw=0)
            ax.hlines(row, edges[0], edges[-1], color=color, linewidth=0.6)
    for row, each in enumerate(values.values()):
        notes = _notes(each)
        if notes:
            ax.text(
                1.01,
                row,
                notes,
                transform=ax.get_yaxis_transform(),
                va="center" if many else "bottom",
                size=5 if many else 8,
                color=RED if "nan" in notes else ink(ax),
            )
    _rows(ax, list(values))
    ax.set_xlim(edges[0], edges[-1])
    ax.set_ylim(len(values) - 0.7 + 0.2 * many, -0.5 if many else -1.0)
    ax.set_xlabel(label)
    ax.locator_params(axis="x", nbins=5)  # with the decimals of small gradients, more would overlap
    tidy(ax, "x")
    ax.spines["left"].set_visible(False)
    return ax


def _edges(values: list[Array], ax: Any) -> Array:
    """Return the edges of the bins; the axis becomes logarithmic on both sides of 0 if needed."""
    nonzero = [each[each != 0] for each in values if each.any()]
    if not nonzero:
        return np.linspace(-0.5, 0.5, _HISTOGRAM_BINS + 1)
    ends = [np.percentile(each, (0.5, 99.5)) for each in nonzero]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    if low == high:
        low, high = low - abs(low) / 2, high + abs(high) / 2
    scales = [float(np.percentile(np.abs(each), 90)) for each in nonzero]
    if max(scales) <= 50 * min(scales):
        return np.linspace(low, high, _HISTOGRAM_BINS + 1)
    least = max(min(scales) / 10, max(scales) * 1e-12)
    ax.set_xscale("symlog", linthresh=least)
    scale = ax.xaxis.get_transform()
    first, last = scale.transform(np.array([low, high]))
    edges: Array = scale.inverted().transform(np.linspace(first, last, _HISTOGRAM_BINS + 1))
    edges[0], edges[-1] = np.nextafter(low, -np.inf), np.nextafter(high, np.inf)  # rounded before
    ax.set_xticks(_ticks(low, high, least))
    return edges


def _ticks(low: float, high: float, least: float) -> list[float]:
    """Return 0 and powers of ten on both sides, at most two on each."""
    found = [0.0]
    for sign, end in ((-1, -low), (1, high)):
        if end > 10 * least:
            first, last = math.ceil(math.log10(10 * least)), math.floor(math.log10(end))
            powers = [last] if last - first < 3 else [(first + last) // 2, last]
            found += [sign * 10.0**power for power in powers]
    return sorted(found)


def _finite(values: Array) -> Array:
    return values[np.isfinite(values)]


def _notes(values: Array) -> str:
    if not len(values):
        return "empty"
    wrong = 1 - np.isfinite(values).mean()
    zeros = (values == 0).mean()
    parts = [f"{wrong:.0%} nan or inf"] if wrong else []
    return ", ".join([*parts, f"{zeros:.0%} zero"] if zeros > 0.1 else parts)


def _is_positive(size: Array) -> bool:
    return bool(size.size and np.isfinite(size).all() and size.max() > 0)


def _fault(size: Array) -> str:
    if not size.size:
        return "empty"
    return "nan or infinite" if not np.isfinite(size).all() else "zero"


def _height(count: int, each: float = _INCHES_PER_ROW) -> float:
    return min(max(1.2 + each * count, 2.4), _MAX_HEIGHT)


def _rows(ax: Any, names: list[str]) -> None:
    """Name the rows, from the top; only some of them where there are many."""
    step = -(-len(names) // _MAX_LABELS)
    shown = range(0, len(names), step)
    ax.set_yticks(list(shown), [names[i] for i in shown], size=9)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def _named_parameters(title: str, parameters: Any) -> dict[str, Any]:
    if hasattr(parameters, "named_parameters"):
        parameters = dict(parameters.named_parameters())
    if not isinstance(parameters, Mapping) or not all(
        isinstance(each, Tensor) for each in parameters.values()
    ):
        raise ArgumentError(
            f"{title}: expected a module, or a dict of Tensors by name, got "
            f"{type(parameters).__name__}: write dict(enumerate(tensors)) for a list"
        )
    if not parameters:
        raise ArgumentError(f"{title}: there are no parameters to show")
    return {str(name): each for name, each in parameters.items()}
