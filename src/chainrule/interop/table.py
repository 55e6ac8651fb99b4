"""Tables of the NumPy functions that tensors implement, answer from arrays, or refuse.

A rule lists the parameters of NumPy's that our function takes; if it lists none, our function has
NumPy's parameter names.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import numpy as np
from numpy.lib import scimath as numpys_scimath
from numpy.lib.stride_tricks import sliding_window_view
from numpy.polynomial import polynomial as numpys_polynomials

from chainrule import array_api as xp
from chainrule import fft, linalg
from chainrule.interop import (
    calculus,
    histograms,
    indexing,
    inplace,
    manipulation,
    polynomials,
    quantiles,
    reductions,
    scimath,
    statistics,
)
from chainrule.interop import (
    creation as interop_creation,
)
from chainrule.interop import (
    linalg as interop_linalg,
)
from chainrule.interop.binding import Rule, rule
from chainrule.operation import NUMPY_FUNCTIONS

_SHAPES = [
    rule(np.reshape, manipulation.reshape),
    rule(np.ravel, manipulation.ravel),
    rule(np.squeeze, manipulation.squeeze),
    rule(np.broadcast_arrays, manipulation.broadcast_arrays, "subok=-"),
    rule(np.transpose, manipulation.transpose),
    rule(np.rollaxis, manipulation.rollaxis),
    rule(np.flip, manipulation.flip),
    rule(np.fliplr, manipulation.fliplr),
    rule(np.flipud, manipulation.flipud),
    rule(np.rot90, manipulation.rot90),
    rule(np.roll, manipulation.roll),
    rule(np.tile, manipulation.tile),
    rule(np.repeat, manipulation.repeat),
    rule(np.resize, manipulation.resize),
    rule(np.delete, manipulation.delete),
    rule(np.insert, manipulation.insert),
    rule(np.append, manipulation.append),
    rule(np.trim_zeros, manipulation.trim_zeros),
    rule(np.pad, manipulation.pad),
    rule(sliding_window_view, manipulation.sliding_window_view, "subok=-"),
    rule(np.concatenate, manipulation.concatenate, "casting=-"),
    rule(np.stack, manipulation.stack, "casting=-"),
    rule(np.hstack, manipulation.hstack, "casting=-"),
    rule(np.vstack, manipulation.vstack, "casting=-"),
    rule(np.block, manipulation.block),
    rule(np.split, manipulation.split),
    rule(np.array_split, manipulation.array_split),
    rule(np.hsplit, manipulation.hsplit),
    rule(np.vsplit, manipulation.vsplit),
    rule(np.dsplit, manipulation.dsplit),
    rule(np.meshgrid, manipulation.meshgrid),
    rule(np.ix_, manipulation.ix_),
    rule(np.tril, manipulation.tril),
    rule(np.triu, manipulation.triu),
]

_PICKING = [
    rule(np.take, indexing.take),
    rule(np.take_along_axis, indexing.take_along_axis),
    rule(np.compress, indexing.compress),
    rule(np.extract, indexing.extract),
    rule(np.where, indexing.where),
    rule(np.select, indexing.select),
    rule(np.choose, indexing.choose),
    rule(np.piecewise, indexing.piecewise),
    rule(np.clip, indexing.clip),
    rule(np.sort, indexing.sort, "kind=-"),
    rule(np.sort_complex, indexing.sort_complex),
    rule(np.partition, indexing.partition, "kind=-"),
    rule(np.unique, indexing.unique, "sorted=-"),
    rule(np.unique_all, indexing.unique_all),
    rule(np.unique_counts, indexing.unique_counts),
    rule(np.unique_inverse, indexing.unique_inverse),
    rule(np.unique_values, indexing.unique_values),
    rule(np.intersect1d, indexing.intersect1d),
    rule(np.union1d, indexing.union1d),
    rule(np.setdiff1d, indexing.setdiff1d),
    rule(np.setxor1d, indexing.setxor1d),
    rule(np.apply_along_axis, indexing.apply_along_axis),
    rule(np.apply_over_axes, indexing.apply_over_axes),
    rule(np.put, inplace.put),
    rule(np.place, inplace.place),
    rule(np.putmask, inplace.putmask),
    rule(np.put_along_axis, inplace.put_along_axis),
    rule(np.copyto, inplace.copyto),
    rule(np.fill_diagonal, inplace.fill_diagonal),
    rule(np.nan_to_num, inplace.nan_to_num, "x", "copy=", "nan=", "posinf=", "neginf="),
]

_STATISTICS = [
    rule(np.sum, reductions.sum),
    rule(np.prod, reductions.prod),
    rule(np.mean, reductions.mean),
    rule(np.var, reductions.var),
    rule(np.std, reductions.std),
    rule(np.max, reductions.max),
    rule(np.min, reductions.min),
    rule(np.amax, reductions.max),
    rule(np.amin, reductions.min),
    rule(np.ptp, statistics.ptp),
    rule(np.average, statistics.average),
    rule(np.median, quantiles.median, "overwrite_input=-"),
    rule(np.quantile, quantiles.quantile, "overwrite_input=-"),
    rule(np.percentile, quantiles.percentile, "overwrite_input=-"),
    rule(np.cumsum, statistics.cumsum),
    rule(np.cumprod, statistics.cumprod),
    rule(np.cumulative_sum, statistics.cumulative_sum),
    rule(np.cumulative_prod, statistics.cumulative_prod),
    rule(np.nansum, statistics.nansum),
    rule(np.nanprod, statistics.nanprod),
    rule(np.nancumsum, statistics.nancumsum),
    rule(np.nancumprod, statistics.nancumprod),
    rule(np.nanmean, statistics.nanmean),
    rule(np.nanvar, statistics.nanvar),
    rule(np.nanstd, statistics.nanstd),
    rule(np.nanmax, statistics.nanmax),
    rule(np.nanmin, statistics.nanmin),
    rule(np.nanmedian, quantiles.nanmedian, "overwrite_input=-"),
    rule(np.nanquantile, quantiles.nanquantile, "overwrite_input=-"),
    rule(np.nanpercentile, quantiles.nanpercentile, "overwrite_input=-"),
    rule(np.cov, statistics.cov),
    rule(np.corrcoef, statistics.corrcoef),
    rule(np.bincount, histograms.bincount),
    rule(np.histogram, histograms.histogram),
    rule(np.histogram_bin_edges, histograms.histogram_bin_edges),
    rule(np.histogram2d, histograms.histogram2d),
    rule(np.histogramdd, histograms.histogramdd),
]

_CALCULUS = [
    rule(np.diff, calculus.diff),
    rule(np.ediff1d, calculus.ediff1d),
    rule(np.gradient, calculus.gradient),
    rule(np.trapezoid, calculus.trapezoid),
    rule(np.interp, calculus.interp),
    rule(np.convolve, calculus.convolve),
    rule(np.correlate, calculus.correlate),
    rule(np.unwrap, calculus.unwrap),
    rule(np.angle, calculus.angle),
    rule(np.imag, calculus.imag),
    rule(np.real_if_close, calculus.real_if_close),
    rule(np.vander, interop_creation.vander),
    rule(np.poly, polynomials.poly),
    rule(np.roots, polynomials.roots),
    rule(np.polyval, polynomials.polyval),
    rule(np.polyadd, polynomials.polyadd),
    rule(np.polysub, polynomials.polysub),
    rule(np.polymul, polynomials.polymul),
    rule(np.polydiv, polynomials.polydiv),
    rule(np.polyder, polynomials.polyder),
    rule(np.polyint, polynomials.polyint),
    rule(np.polyfit, polynomials.polyfit),
    rule(numpys_polynomials.polyval2d, polynomials.polyval2d),
    rule(numpys_polynomials.polygrid2d, polynomials.polygrid2d),
    rule(numpys_scimath.sqrt, scimath.sqrt),
    rule(numpys_scimath.log, scimath.log),
    rule(numpys_scimath.log2, scimath.log2),
    rule(numpys_scimath.log10, scimath.log10),
    rule(numpys_scimath.logn, scimath.logn),
    rule(numpys_scimath.power, scimath.power),
    rule(numpys_scimath.arccos, scimath.arccos),
    rule(numpys_scimath.arcsin, scimath.arcsin),
    rule(numpys_scimath.arctanh, scimath.arctanh),
]

if hasattr(numpys_polynomials, "polyvalnd"):  # since NumPy 2.5
    _CALCULUS += [rule(numpys_polynomials.polyvalnd, polynomials.polyvalnd)]

_ALGEBRA = [
    rule(np.dot, calculus.dot),
    rule(np.vdot, calculus.vdot),
    rule(np.inner, calculus.inner),
    rule(np.outer, calculus.outer),
    rule(np.cross, calculus.cross),
    rule(np.einsum, calculus.einsum, "casting=-", "order=-"),
    rule(np.trace, calculus.trace),
    rule(np.linalg.cross, linalg.cross, "x1", "x2", "axis="),
    rule(np.linalg.vecdot, xp.vecdot, "x1", "x2", "axis="),
    rule(np.linalg.multi_dot, linalg.multi_dot, "[arrays]"),
    rule(np.linalg.diagonal, linalg.diagonal, "x", "offset="),
    rule(np.linalg.trace, linalg.trace, "x", "offset=", "dtype="),
    rule(np.linalg.matrix_power, calculus.matrix_power),
    rule(np.linalg.det, linalg.det, "a"),
    rule(np.linalg.slogdet, linalg.slogdet, "a"),
    rule(np.linalg.inv, linalg.inv, "a"),
    rule(np.linalg.pinv, interop_linalg.pinv),
    rule(np.linalg.solve, xp.linalg.solve, "a", "b"),
    rule(np.linalg.lstsq, interop_linalg.lstsq),
    rule(np.linalg.tensorinv, linalg.tensorinv, "a", "ind="),
    rule(np.linalg.tensorsolve, interop_linalg.tensorsolve),
    rule(np.linalg.cholesky, linalg.cholesky, "a", "upper="),
    rule(np.linalg.qr, interop_linalg.qr),
    rule(np.linalg.svd, interop_linalg.svd),
    rule(np.linalg.svdvals, linalg.svdvals, "x"),
    rule(np.linalg.eig, interop_linalg.eig),
    rule(np.linalg.eigvals, interop_linalg.eigvals),
    rule(np.linalg.eigh, linalg.eigh, "a", "UPLO="),
    rule(np.linalg.eigvalsh, linalg.eigvalsh, "a", "UPLO="),
    rule(np.linalg.norm, linalg.norm, "x", "ord=", "axis=", "keepdims="),
    rule(np.linalg.vector_norm, linalg.vector_norm, "x", "ord=", "axis=", "keepdims="),
    rule(np.linalg.matrix_norm, linalg.matrix_norm, "x", "ord=", "keepdims="),
    rule(np.linalg.cond, interop_linalg.cond),
]

_TRANSFORMS = [
    *[
        rule(getattr(np.fft, name), getattr(fft, name), "a", "n=", "axis=", "norm=")
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    ],
    *[
        rule(getattr(np.fft, name), interop_linalg.of_planes(name))
        for name in ("fft2", "ifft2", "rfft2", "irfft2")
    ],
    *[
        rule(getattr(np.fft, name), getattr(fft, name), "a", "s=", "axes=", "norm=")
        for name in ("fftn", "ifftn", "rfftn", "irfftn")
    ],
    rule(np.fft.fftshift, fft.fftshift, "x", "axes="),
    rule(np.fft.ifftshift, fft.ifftshift, "x", "axes="),
]

_CREATING = [
    rule(
        np.array, interop_creation.array, "object", "dtype=", "copy=", "order=", "ndmin=", "subok=-"
    ),
    rule(np.asarray, interop_creation.asarray),
    rule(np.asanyarray, interop_creation.asarray),
    rule(np.ascontiguousarray, interop_creation.ascontiguousarray),
    rule(np.asfortranarray, interop_creation.asfortranarray),
    rule(np.require, interop_creation.asarray, "a", "dtype="),
    rule(np.fromiter, interop_creation.fromiter),
    rule(np.fromfunction, interop_creation.fromfunction),
    rule(np.arange, interop_creation.arange),
    rule(np.copy, interop_creation.copy, "subok=-"),
    rule(np.astype, interop_creation.astype),
    rule(np.full, interop_creation.full),
    rule(np.full_like, interop_creation.full_like, "subok=-"),
    rule(np.linspace, interop_creation.linspace),
    rule(np.logspace, interop_creation.logspace),
    rule(np.geomspace, interop_creation.geomspace),
]

_SAME = [
    rule(attrgetter(name)(np), function, *parameters)
    for (name, *parameters), function in ((text.split(), f) for text, f in NUMPY_FUNCTIONS)
]
"""Functions of `ops`, whose rows are registered where they are defined."""

RULES: dict[Any, Rule] = {
    rule.function: rule
    for rules in (
        *(_SHAPES, _PICKING, _STATISTICS, _CALCULUS, _ALGEBRA, _TRANSFORMS, _CREATING),
        _SAME,
    )
    for rule in rules
}
"""Rules of the functions that are recorded."""

# --- functions without derivative -----------------------------------------------------------------


def _functions(module: Any, names: str) -> frozenset[Any]:
    """Return the functions of these names that this NumPy has."""
    return frozenset(getattr(module, name) for name in names.split() if hasattr(module, name))


OF_VALUES = _functions(np, "array2string array_repr array_str save savetxt savez savez_compressed")
"""Functions that write numbers as text or to files: in a trace, there are none."""

WRITERS = _functions(np, "put place putmask put_along_axis copyto fill_diagonal")
"""Functions that write to their first argument."""

ANSWERS = (
    OF_VALUES
    | _functions(
        np,
        """
    shape ndim size result_type can_cast common_type min_scalar_type iscomplexobj isrealobj
    may_share_memory shares_memory
    all any allclose isclose array_equal array_equiv isin in1d iscomplex isreal isneginf isposinf
    argmax argmin nanargmax nanargmin argsort argpartition lexsort argwhere nonzero flatnonzero
    count_nonzero searchsorted digitize einsum_path
    diag_indices_from tril_indices_from triu_indices_from ravel_multi_index unravel_index
    packbits unpackbits
    """,
    )
    | _functions(np.linalg, "matrix_rank")
)
"""Functions that NumPy computes from the arrays: predicates, counts, indices, text, files."""

NEW = _functions(
    np,
    """
    empty empty_like zeros zeros_like ones ones_like eye identity tri
    frombuffer fromfile fromstring loadtxt genfromtxt
    """,
)
"""Functions that use no elements of a tensor; the result is a new tensor."""

# --- functions without a rule ---------------------------------------------------------------------

_NO_RULE = {
    "tensors hold no dates": [
        np.busday_count,
        np.busday_offset,
        np.datetime_as_string,
        np.is_busday,
    ],
}

REASONS: dict[Any, str] = {
    function: reason for reason, functions in _NO_RULE.items() for function in functions
}
"""Reason why a function has no rule; it raises an error where it would lose a gradient."""

REASONS_OF_MODULES = {
    "numpy.lib.recfunctions": "tensors have no fields",
    "numpy.strings": "tensors hold no text",
    "numpy.char": "tensors hold no text",
}
"""The same for all functions of a module."""
