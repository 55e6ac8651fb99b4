"""The argument `out` of PyTorch's functions, for those that don't write to memory themselves.

>>> import chainrule as cr
>>> y = cr.empty(2)
>>> cr.cosh(cr.zeros(2), out=y) is y
True
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import CO_VARARGS
from types import CodeType
from typing import Any

from chainrule import ops, random
from chainrule.arguments import written
from chainrule.operation import UFUNCS

_NAMES = {
    "chainrule": """
        addbmm addcdiv addcmul addmm addmv addr all amax amin aminmax angle any argmax
        argmin argsort baddbmm bernoulli bucketize chain_matmul cholesky cholesky_inverse
        cholesky_solve clamp_max clamp_min column_stack complex conj conj_physical cross
        cummax cummin cumprod cumsum diag diff digamma dstack erfc erfinv frac gather geqrf
        ger hardshrink histc histogram hstack i0 igamma igammac index_add index_copy
        index_reduce index_select inner inverse isin isneginf isposinf kron kthvalue lerp
        lgamma log_softmax logcumsumexp logit logsumexp lu lu_solve lu_unpack masked_select
        matrix_power mean median mode msort multinomial mvlgamma nan_to_num nanmean
        nanmedian nanquantile nansum narrow_copy nonzero norm orgqr ormqr outer polar
        polygamma prod qr quantile renorm row_stack scatter scatter_add scatter_reduce
        searchsorted sgn sinc slice_scatter slogdet softmax sort std sum svd take
        take_along_dim tensordot topk triangular_solve tril triu var vdot vstack xlogy""",
    "chainrule.linalg": """
        cholesky cholesky_ex cond cross det eig eigh eigvals eigvalsh householder_product
        inv inv_ex lstsq lu lu_factor lu_factor_ex lu_solve matrix_norm matrix_power
        matrix_rank multi_dot norm pinv qr slogdet solve solve_ex solve_triangular svd
        svdvals tensorinv tensorsolve vector_norm""",
    "chainrule.special": """
        bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t
        chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w entr erfcx
        hermite_polynomial_h hermite_polynomial_he i0e i1 i1e laguerre_polynomial_l
        legendre_polynomial_p log_ndtr modified_bessel_i0 modified_bessel_i1
        modified_bessel_k0 modified_bessel_k1 ndtr ndtri scaled_modified_bessel_k0
        scaled_modified_bessel_k1 shifted_chebyshev_polynomial_t
        shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
        shifted_chebyshev_polynomial_w spherical_bessel_j0 xlog1py zeta""",
    "chainrule.fft": """
        fft fft2 fftfreq fftn hfft hfft2 hfftn ifft ifft2 ifftn ihfft ihfft2 ihfftn irfft irfft2
        irfftn rfft rfft2 rfftfreq rfftn""",
}
"""Names of functions, by module, that have `out` in PyTorch, beside those of NumPy's ufuncs."""

_LISTED = {module: frozenset(names.split()) for module, names in _NAMES.items()}
_OF_UFUNCS = frozenset(map(id, UFUNCS.values()))


def takes_out(name: str, function: Any) -> bool:
    """Whether a function of the top level gets `out`: it has none, and PyTorch's or NumPy's has."""
    is_listed = name in _LISTED["chainrule"] or id(function) in _OF_UFUNCS
    return is_listed and "out" not in (function.__kwdefaults__ or ())


TAKING_OUT = {
    name: module.__name__
    for module in (ops, random)
    for name in module.__all__
    if takes_out(name, getattr(module, name))
}
"""Names of functions to which the top level gives `out`, and the modules where they are."""

_SHARED = frozenset([id(getattr(ops, name)) for name in TAKING_OUT if hasattr(ops, name)])


def give_out(names: dict[str, Any], module: str) -> None:
    """Give `out` to the functions of a module, whose names these are, that PyTorch has it for."""
    listed = {id(names[name]) for name in _LISTED[module]}  # of which there are aliases
    for name in names["__all__"]:
        if id(names[name]) in _SHARED:
            names[name] = taking_out(names[name], "chainrule", name)
        elif id(names[name]) in listed:
            names[name] = taking_out(names[name], module, name)


def taking_out(function: Callable[..., Any], module: str, name: str) -> Callable[..., Any]:
    """Return a function of the same parameters and `out`, to which its results are written.

    `function` stays as it is: methods and operators call it, and have no `out`. A function that
    only calls another is replaced by one that calls this other itself, so that a call without
    `out` takes no longer.

    Parameters
    ----------
    function : callable
        A function of a module's level.
    module, name : str
        Where the new function is found, by pickle for example. Other names of a function give
        the same one.

    Returns
    -------
    callable
        `function` itself if it has `out`; else it is the attribute `without_out` of the result.
    """
    own = function.__name__
    named = TAKING_OUT if module == "chainrule" else _LISTED[module]
    found: Callable[..., Any]
    found = _taking_out(function, module, own if own in named else name)
    return found


@cache
def _taking_out(function: Any, module: str, name: str) -> Any:
    code = getattr(function, "__code__", None)
    if code is None or "out" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        return function
    positional = code.co_varnames[: code.co_argcount]
    keywords = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
    rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount :]
    many = [f"*{rest[0]}"] if code.co_flags & CO_VARARGS else []
    names = ", ".join([*positional, *(many or ["*"]), *keywords, "out"])
    given = ", ".join([*positional, *many, *(f"{each}={each}" for each in keywords)])
    call = f"{_called(code) or '_function'}({given})"
    source = f"""def _make(_function, _written):
    def {name}({names}):
        return {call} if out is None else _written({call}, out)
    return {name}"""
    made: dict[str, Any] = {}
    exec(compile(source, f"<call of {name}>", "exec"), function.__globals__, made)
    result = made["_make"](function, written)
    result.__code__ = result.__code__.replace(co_qualname=name)  # which errors read
    result.__doc__, result.__defaults__ = function.__doc__, function.__defaults__
    result.__kwdefaults__ = {**(function.__kwdefaults__ or {}), "out": None}
    result.__annotations__ = {**function.__annotations__, "out": "Tensor | None"}
    result.__module__, result.__qualname__ = module, name
    result.without_out = function
    return result


def _called(code: CodeType) -> str:
    """Return the global function that code calls with its own arguments and does nothing else."""
    if code.co_kwonlyargcount or code.co_flags & CO_VARARGS:
        return ""
    only_calls = code.co_code == _code_of_a_call(code.co_argcount)
    return code.co_names[0] if only_calls else ""


@cache
def _code_of_a_call(count: int) -> bytes:
    names = ", ".join([f"x{i}" for i in range(count)])
    code: bytes = eval(f"lambda {names}: function({names})").__code__.co_code
    return code
