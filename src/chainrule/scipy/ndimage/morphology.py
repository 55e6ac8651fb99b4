"""Grey morphology of images, and filters by functions of the user's and of spectra."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import chainrule.numpy as cnp
from chainrule import ops
from chainrule.autograd.tensor import Tensor
from chainrule.interop.operands import array_of, is_tracked, tensor_of
from chainrule.numpy.array_class import as_ndarrays
from chainrule.scipy.dispatch import missing_rule
from chainrule.scipy.ndimage.arguments import TABLE, image
from chainrule.scipy.ndimage.interpolation import map_coordinates
from chainrule.scipy.ndimage.rank_filters import windows_of
from chainrule.scipy.own_code import replace_compiled


@TABLE.function("generic_filter", "composite")
def generic_filter(
    input: Any,
    function: Callable[..., Any],
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: Any = "reflect",
    cval: Any = 0.0,
    origin: Any = 0,
    extra_arguments: Any = (),
    extra_keywords: Any = None,
    *,
    axes: Any = None,
) -> Any:
    """Return what a function finds of the window around each element."""
    x = image("generic_filter", input, output)
    windows = windows_of("generic_filter", x, size, footprint, mode, cval, origin, axes)
    rows = as_ndarrays(ops.reshape(windows, (-1, windows.shape[-1])))
    found = [function(row, *extra_arguments, **(extra_keywords or {})) for row in rows]
    return cnp.stack(found).reshape(x.shape)


@TABLE.function("geometric_transform", "composite")
def geometric_transform(
    input: Any,
    mapping: Callable[..., Any],
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: Any = 0.0,
    prefilter: bool = True,
    extra_arguments: Any = (),
    extra_keywords: Any = None,
) -> Any:
    """Return values at the points that a function finds for each index of the result."""
    shape = np.shape(input) if output_shape is None else tuple(output_shape)
    rest = extra_keywords or {}
    points = [cnp.stack(mapping(index, *extra_arguments, **rest)) for index in np.ndindex(*shape)]
    coordinates = cnp.stack(points, axis=-1).reshape(-1, *shape)
    return map_coordinates(input, coordinates, output, order, mode, cval, prefilter)


def _extreme(
    input: Any, size: Any, footprint: Any, structure: Any, output: Any, mode: Any, cval: Any,
    origin: Any, minimum: int, axes: Any = None,
) -> Any:  # fmt: skip
    """Return the smallest or largest elements of windows, from or to which a shape is added."""
    x = image("grey_erosion" if minimum else "grey_dilation", input, output)
    extreme = ops.amin if minimum else ops.amax
    if structure is None:
        windows = windows_of("grey", x, size, footprint, mode, cval, origin, axes)
        return as_ndarrays(extreme(windows, dim=-1))
    shape = tensor_of(structure)
    part = np.ones(shape.shape, bool) if footprint is None else np.asarray(footprint, bool)
    windows = windows_of("grey", x, None, part, mode, cval, origin, axes)
    heights = shape[part] * (-1.0 if minimum else 1.0)
    return as_ndarrays(extreme(windows + heights, dim=-1))


replace_compiled("scipy.ndimage._filters", _min_or_max_filter=_extreme)


def _of_spectrum(name: str, input: Any, *args: Any, **settings: Any) -> Any:
    """Return a spectrum times SciPy's factors, which are those of ones."""
    scipys = getattr(TABLE.scipys, name)
    bound = inspect.signature(scipys).bind(input, *args, **settings)
    if is_tracked(*[value for key, value in bound.arguments.items() if key != "input"]):
        raise missing_rule(f"scipy.ndimage.{name}: the derivative by its width", "it is a constant")
    x = tensor_of(input)
    bound.arguments["input"] = np.ones(x.shape, complex)
    found = scipys(*[array_of(v) if isinstance(v, Tensor) else v for v in bound.args])
    return x * (found if name == "fourier_shift" or x.is_complex() else found.real)


for _name in ("fourier_gaussian", "fourier_uniform", "fourier_ellipsoid", "fourier_shift"):
    TABLE.function(_name, "linear in the spectrum")(functools.partial(_of_spectrum, _name))
