"""NumPy's functions, ufuncs and methods of arrays on symbols, as users call them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.array_proxy import ArrayProxy
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import storage_of
from chainrule.compiler.ir.abstract_eval import DYNAMIC_SHAPE
from chainrule.compiler.tracing.namespace import SYMBOL_XP, record
from chainrule.compiler.tracing.symbol import TRACING, Symbol
from chainrule.errors import CompileError
from chainrule.interop.table import OF_VALUES
from chainrule.numpy import array_class, out_arguments
from chainrule.numpy.array_class import ndarray
from chainrule.numpy.array_operators import METHODS
from chainrule.ops.sparse_products import LISTED, is_sparse_matrix, sparse_product
from chainrule.ops.ufuncs import find_scipy
from chainrule.transforms.vmap.batched_array import BatchedArray

_STATIC = frozenset(
    [
        *("shape", "ndim", "size"),
        *("result_type", "common_type", "can_cast", "iscomplexobj", "isrealobj"),
    ]
)
"""Functions that read only shapes and dtypes: their results are known while tracing."""

_BY_RULES = frozenset(
    [
        *("copyto", "put", "place", "putmask", "put_along_axis", "fill_diagonal"),
        *("split", "array_split", "hsplit", "vsplit", "dsplit", "unstack"),
        *("flip", "fliplr", "flipud", "rot90", "rollaxis"),
        *("atleast_1d", "atleast_2d", "atleast_3d", "copy"),
    ]
)
"""Functions that write to an argument, or return views, as our rules for NumPy's functions do."""

_REDUCTIONS = frozenset(["sum", "mean", "prod", "max", "min", "amax", "amin", "any", "all", "ptp"])
"""Functions that programs have with `axis` and `keepdims` alone; others follow our rules."""

_FROM_NAMESPACE = frozenset(
    [
        *("reshape", "transpose", "permute_dims", "matrix_transpose", "moveaxis", "swapaxes"),
        *("expand_dims", "squeeze", "broadcast_to", "astype", "zeros_like", "ones_like", "ravel"),
    ]
)
"""Functions of `SymbolNamespace` with the signatures of NumPy's."""


_JOINING = (np.concatenate, np.stack)
"""Functions whose axis is a keyword in programs."""


def _array_ufunc(self: Symbol, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Record a ufunc."""
    if any(isinstance(x, Tensor | BatchedArray) for x in inputs):
        return NotImplemented  # they record or map their operations themselves
    name = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
    if getattr(np, ufunc.__name__, None) is not ufunc:
        if find_scipy(ufunc) is not None:
            operands = _recorded(inputs)
            first = _as_recorded(self)
            return _symbols(ndarray.__array_ufunc__(first, ufunc, method, *operands, **kwargs))
        raise CompileError(
            f"{name[3:]} is no ufunc of NumPy's, so it can't be compiled: call it outside, or "
            "write it with functions of NumPy or chainrule"
        )
    if method == "at":
        ndarray.__array_ufunc__(_recorded(self), ufunc, method, *map(_recorded, inputs))
        return None
    out, where = kwargs.pop("out", None), kwargs.get("where", True)
    if method != "__call__":
        result = record(name, *inputs, **kwargs)
    elif where is True:
        inputs = _symbols(array_class.ufunc_operands(inputs, kwargs))
        result = record(name, *inputs, **kwargs)
    else:
        # Elsewhere the ufunc may have no value: it isn't computed there.
        del kwargs["where"]
        inside = [np.where(where, value, 1) for value in inputs]
        found = _array_ufunc(self, ufunc, method, *inside, **kwargs)
        result = _symbols(array_class.selected(where, found, out))
    return result if out is None else out_arguments.written(ufunc, out, result)


def _array_function(self: Symbol, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Record any other function."""
    if any(issubclass(kind, Tensor | BatchedArray) for kind in types):
        return NotImplemented
    out = kwargs.get("out")
    if out is not None:
        kwargs = {key: value for key, value in kwargs.items() if key != "out"}
        found = _array_function(self, function, types, args, kwargs)
        return out_arguments.written(function, out, found)
    name = str(function.__name__)
    module = str(function.__module__).replace("numpy", "np", 1)
    if name in _STATIC:
        args = tuple(
            np.broadcast_to(np.ones((), a.dtype), a.shape) if isinstance(a, Symbol) else a
            for a in args
        )
        return function(*args, **kwargs)
    if name in ("real", "imag"):
        return getattr(self, name)
    is_read = name in DYNAMIC_SHAPE or (name == "where" and len(args) == 1)
    if function in OF_VALUES:
        return function(*_values(args), **_values(kwargs))
    if is_read and (known := _known((args, kwargs))) is not None:
        return function(*known[0], **known[1])
    args, kwargs = _with_keywords(function, args, kwargs)
    if name in ("any", "all") and "where" in kwargs:
        where, x = kwargs.pop("where"), args[0]
        x = np.logical_and(x, where) if name == "any" else np.logical_or(x, np.logical_not(where))
        return function(x, *args[1:], **kwargs)
    by_rule = name in _BY_RULES or (name in _REDUCTIONS and kwargs.keys() - {"axis", "keepdims"})
    by_rule = by_rule or (name in ("compress", "extract") and not isinstance(args[0], Symbol))
    if name in ("histogram", "histogram_bin_edges") and kwargs.get("range") is None:
        by_rule = isinstance(kwargs.get("bins", 10), int)  # else the edges decide, or the values
    if by_rule and module == "np":
        return _symbols(array_class.call(function, _recorded(args), _recorded(kwargs)))
    if name in _FROM_NAMESPACE and module == "np":
        return getattr(SYMBOL_XP, name)(*args, **kwargs)
    if function in (np.sum, np.mean):
        return getattr(SYMBOL_XP, name)(*args, **kwargs)
    if function in _JOINING and len(args) == 2:
        args, kwargs = args[:1], {"axis": args[1], **kwargs}
    return record(f"{module}.{name}", *args, **kwargs)


def _with_keywords(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments in the form that programs have: by keyword where there is a default.

    So rewrites and code generators need not know two forms of each call.
    """
    defaults, named = _defaults(function), dict(kwargs)
    kept = []
    for value, (name, _) in zip(args, defaults, strict=False):
        if name:
            named[name] = value
        else:
            kept.append(value)
    known = {name: default for name, default in defaults if name}
    named = {k: v for k, v in named.items() if k not in known or v is not known[k]}
    return (*kept, *args[len(defaults) :]), named


@functools.cache
def _defaults(function: Any) -> list[tuple[str, Any]]:
    """Return name and default of each positional parameter; "" for those without such."""
    found: list[tuple[str, Any]] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            break
        takes_name = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        is_optional = takes_name and parameter.default is not parameter.empty
        found.append((parameter.name if is_optional else "", parameter.default))
    return found


def _recorded(tree: Any) -> Any:
    """Return arguments with arrays that record in the place of symbols, of the same memory."""
    return pytree.map_leaves(tree, lambda x: _as_recorded(x) if isinstance(x, Symbol) else x)


def _as_recorded(x: Symbol) -> Any:
    return array_class.as_ndarray(make(x, None))


def _values(tree: Any) -> Any:
    """Return arguments with arrays in the place of symbols whose elements are known, or raise."""
    return pytree.map_leaves(tree, lambda x: np.asarray(x) if isinstance(x, Symbol) else x)


def _known(tree: Any) -> Any:
    """Return arguments with arrays in the place of symbols, or None if one is not known."""
    symbols = [leaf for _, leaf in pytree.leaves(tree) if isinstance(leaf, Symbol)]
    if any([symbol.known_elements is None for symbol in symbols]):
        return None
    return pytree.map_leaves(tree, lambda x: x.known_elements if isinstance(x, Symbol) else x)


def _symbols(tree: Any) -> Any:
    """Return results with symbols in the place of arrays that record."""
    return pytree.map_leaves(tree, lambda x: x._array if type(x) is ndarray else x)


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)
    return lambda self, *args, **kwargs: function(self, *args, **kwargs)


def install() -> None:
    """Give symbols the protocols, and the methods that arrays have by functions of NumPy."""
    found = {"__array_ufunc__": _array_ufunc, "__array_function__": _array_function}
    own = {**vars(ArrayProxy), **vars(Symbol)}
    found |= {name: _method(name) for name in METHODS.split() if name not in own}
    found |= {name: vars(ndarray)[name] for name in _OF_ARRAYS}
    for name, ufunc in {"matmul": np.matmul, "mul": np.multiply}.items():
        found |= {f"__{side}{name}__": _product(f"__{side}{name}__", ufunc) for side in ("", "r")}
    for name, method in found.items():
        setattr(Symbol, name, method)


def _product(name: str, ufunc: Any) -> Callable[[Symbol, Any], Any]:
    """Return an operator of symbols that multiplies sparse matrices of SciPy's, too."""
    of_arrays, is_reflected = getattr(ArrayProxy, name), name.startswith("__r")

    def operator(self: Symbol, other: Any) -> Any:
        if not is_sparse_matrix(other):
            return of_arrays(self, other)
        _note_arrays(other)
        pair = (other, make(self, None)) if is_reflected else (make(self, None), other)
        return sparse_product(*pair, elementwise=ufunc is np.multiply)._array

    return operator


def _note_arrays(matrix: Any) -> None:
    """Let calls read the arrays of a sparse matrix, and compare that it still has the same ones."""
    if matrix.format not in LISTED:
        raise CompileError(
            f"a sparse matrix of the format {matrix.format} has no products in compiled functions: "
            "convert it outside, A = A.tocsr()"
        )
    trace = TRACING.get()
    for name, array in vars(matrix).items():
        if trace is not None and isinstance(array, np.ndarray):
            trace.external.setdefault(id(storage_of(array)), array)
            trace.search.add(matrix, f".{name}", array)


_OF_ARRAYS = (
    *("clip", "compress", "conj", "conjugate", "fill", "flat", "flatten", "partition", "resize"),
    *("sort", "transpose", "__contains__", "__divmod__", "__rdivmod__", "__round__"),
)
"""Methods of arrays that record, which call functions of NumPy in other ways."""
