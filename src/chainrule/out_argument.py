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

from chainrule.arguments import written

_NAMES = {
    "chainrule": """
        acos acosh addbmm addcdiv addcmul addmm addmv addr all amax amin aminmax angle any arccos
        arccosh arcsin arcsinh arctan arctan2 arctanh argmax argmin argsort asin asinh atan atan2
        atanh baddbmm bernoulli bitwise_and bitwise_invert bitwise_left_shift bitwise_not
        bitwise_or bitwise_right_shift bitwise_xor bucketize chain_matmul cholesky
        cholesky_inverse cholesky_solve clamp_max clamp_min column_stack complex conj_physical
        copysign cosh cross cummax cummin cumprod cumsum deg2rad diag diff digamma dstack eq
        equal erfc erfinv exp2 fix float_power floor_divide fmax fmin fmod frac frexp gather gcd
        ge geqrf ger greater greater_equal gt hardshrink heaviside histc histogram hstack hypot
        i0 igamma igammac index_add index_copy index_reduce index_select inner inverse isin
        isneginf isposinf kron kthvalue lcm ldexp le lerp less less_equal lgamma log10 log2
        log_softmax logaddexp logaddexp2 logcumsumexp logical_and logical_not logical_or
        logical_xor logit logsumexp lt lu lu_solve lu_unpack masked_select matrix_power mean
        median mode msort multinomial mvlgamma nan_to_num nanmean nanmedian nanquantile nansum
        narrow_copy ne nextafter nonzero norm normal not_equal orgqr outer polar polygamma prod
        qr quantile rad2deg remainder renorm round row_stack scatter scatter_add scatter_reduce
        searchsorted sgn sign signbit sinc sinh slice_scatter slogdet softmax sort std sum svd
        take take_along_dim tan tensordot topk triangular_solve tril triu true_divide trunc var
        vdot vstack xlogy""",
    "chainrule.linalg": """
        cholesky cholesky_ex cond cross det eig eigh eigvals eigvalsh householder_product inv
        inv_ex lstsq lu lu_factor lu_factor_ex lu_solve matrix_norm matrix_power matrix_rank
        multi_dot norm pinv qr slogdet solve solve_ex solve_triangular svd svdvals tensorinv
        tensorsolve vecdot vector_norm""",
    "chainrule.special": """
        bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u
        chebyshev_polynomial_v chebyshev_polynomial_w digamma entr erfc erfcx erfinv exp2
        gammainc gammaincc gammaln hermite_polynomial_h hermite_polynomial_he i0 i0e i1 i1e
        laguerre_polynomial_l legendre_polynomial_p log_ndtr logit logsumexp modified_bessel_i0
        modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 multigammaln ndtr ndtri
        polygamma psi round scaled_modified_bessel_k0 scaled_modified_bessel_k1
        shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u
        shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w sinc spherical_bessel_j0
        xlog1py xlogy zeta""",
    "chainrule.fft": """
        fft fft2 fftfreq fftn hfft hfft2 hfftn ifft ifft2 ifftn ihfft ihfft2 ihfftn irfft irfft2
        irfftn rfft rfft2 rfftfreq rfftn""",
}

TAKING_OUT = {module: frozenset(names.split()) for module, names in _NAMES.items()}
"""Names of functions, by module, to which the module gives `out` because PyTorch's have it."""


def give_out(names: dict[str, Any], module: str) -> None:
    """Give `out` to the functions of a module, whose names these are, that PyTorch has it for."""
    for name in TAKING_OUT[module]:
        function = names[name]
        is_shared = function.__module__.startswith("chainrule.ops.")
        is_shared &= function.__name__ in TAKING_OUT["chainrule"]
        names[name] = taking_out(function, "chainrule" if is_shared else module, name)


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
    found: Callable[..., Any]
    found = _taking_out(function, module, own if own in TAKING_OUT[module] else name)
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
