"""Assertions for tests: tensors that are close, and gradients that are right."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from chainrule import pytree
from chainrule.autograd.tensor import Tensor, make
from chainrule.checks.gradcheck import check_first, check_second
from chainrule.checks.numerical import CheckSettings, Subject
from chainrule.checks.report import GradcheckError, names_of
from chainrule.errors import ArgumentError
from chainrule.ops.complex import complex as complex_of
from chainrule.random import rand, randint

__all__ = ["assert_allclose", "assert_close", "assert_gradients", "make_tensor"]

_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
"""PyTorch's relative and absolute tolerances; those of other dtypes are 0."""


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise unless tensors, numbers, or sequences and mappings of them are close.

    Parameters
    ----------
    actual, expected
        Of the same structure, shapes and dtypes.
    rtol, atol : float, optional
        Both or none: |actual - expected| ≤ atol + rtol |expected|. By default by the dtype, as in
        PyTorch: 1.3e-6 and 1e-5 for float32, 1e-7 for float64, 0 for integers.
    equal_nan : bool, default False
        Whether nan equals nan.
    check_dtype : bool, default True
        Whether dtypes must be equal.
    msg : str or callable, optional
        The text of the error, or a function of it.
    allow_subclasses, check_device, check_layout, check_stride
        As in PyTorch, without effect.

    Raises
    ------
    AssertionError
        If they are not close.
    ValueError
        If only one tolerance is given.

    Examples
    --------
    >>> import chainrule as cr
    >>> assert_close(cr.tensor(1.0), cr.tensor(1.000001))
    """
    if (rtol is None) != (atol is None):
        raise ArgumentError(
            "assert_close: rtol and atol must both be specified or both unspecified"
        )
    tolerances = None if rtol is None or atol is None else (rtol, atol)
    text = _difference(actual, expected, tolerances, equal_nan, check_dtype, "")
    if text:
        raise AssertionError(msg(text) if callable(msg) else msg or text)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Raise unless tensors or numbers are close: PyTorch's former `assert_close`.

    Dtypes may differ, and nan equals nan. The tolerances are PyTorch's: 1e-4 and 1e-5 for float32,
    1e-5 and 1e-8 for float64, if both are left out.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.testing.assert_allclose(cr.tensor([0.1, 0.2]).sum(), 0.3)
    """
    first, second = np.asarray(_array(actual)), np.asarray(_array(expected))
    if not isinstance(expected, Tensor) and first.dtype.kind in "fc":
        second = second.astype(first.dtype)
    if rtol is None and atol is None:
        found = [_FORMER_TOLERANCES.get(x.dtype.name, (0.0, 0.0)) for x in (first, second)]
        rtol, atol = map(max, zip(*found, strict=True))
    close: dict[str, Any] = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan}
    assert_close(first, second, check_dtype=False, msg=msg or None, **close)


_FORMER_TOLERANCES = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}


def _array(value: Any) -> Any:
    return value.numpy(force=True) if isinstance(value, Tensor) else value


def _difference(
    actual: Any, expected: Any, tolerances: Any, equal_nan: bool, check_dtype: bool, at: str
) -> str:
    """Return the first difference, or an empty text."""
    rest = tolerances, equal_nan, check_dtype
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        if actual.keys() != expected.keys():
            return f"The keys of the mappings do not match{at}: {list(actual)}, {list(expected)}"
        pairs = [(key, actual[key], expected[key]) for key in expected]
    elif isinstance(expected, Sequence) and isinstance(actual, Sequence):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch{at}: {len(actual)} != {len(expected)}"
        pairs = [(i, a, b) for i, (a, b) in enumerate(zip(actual, expected, strict=True))]
    else:
        return _mismatch(actual, expected, *rest, at)
    texts = (_difference(a, b, *rest, f"{at}[{key!r}]") for key, a, b in pairs)
    return next((text for text in texts if text), "")


def _mismatch(
    actual: Any, expected: Any, tolerances: Any, equal_nan: bool, check_dtype: bool, at: str
) -> str:
    a, b = np.asarray(_array(actual)), np.asarray(_array(expected))
    place = f"\n\nThe failure occurred for item {at}" if at else ""
    if a.shape != b.shape:
        return f"The values for attribute 'shape' do not match: {a.shape} != {b.shape}.{place}"
    both = isinstance(actual, Tensor) and isinstance(expected, Tensor)
    if check_dtype and both and a.dtype != b.dtype:
        return f"The values for attribute 'dtype' do not match: {a.dtype} != {b.dtype}.{place}"
    coarser = max(a.dtype, b.dtype, key=lambda dtype: _TOLERANCES.get(dtype.name, (0, 0)))
    rtol, atol = tolerances or _TOLERANCES.get(coarser.name, (0.0, 0.0))
    with np.errstate(all="ignore"):
        close = np.isclose(a, b, rtol, atol, equal_nan)
        if close.all():
            return ""
        wrong, distance = int((~close).sum()), np.abs(a.astype(complex) - b).max()
    return (
        f"{'Tensor-likes' if a.ndim else 'Scalars'} are not close!\n\n"
        f"Mismatched elements: {wrong} / {a.size} ({wrong / a.size:.1%})\n"
        f"Greatest absolute difference: {distance} (up to {atol} allowed, and {rtol} relative)"
        f"{place}"
    )


def assert_gradients(
    function: Callable[..., Any],
    /,
    *args: Any,
    order: int = 1,
    modes: str = "reverse",
    eps: float = 1e-6,
    atol: float = 1e-7,
    rtol: float = 1e-5,
    **kwargs: Any,
) -> None:
    """Raise unless the gradients of a function agree with central differences.

    Parameters
    ----------
    function : callable
        Returns a tensor, or a tuple or list of them. It is called many times.
    *args, **kwargs : Tensors, arrays, numbers, or dicts, lists and tuples of them
        The arguments. A list of floats is an array. Floating and complex ones are copied in double
        precision, and the gradient with respect to every element is compared; integers and
        everything else are handed on.
    order : {1, 2}, default 1
        Compare first derivatives, or also second ones.
    modes : {"reverse", "forward", "both"}, default "reverse"
        How first derivatives are computed.
    eps : float, default 1e-6
        The step of the differences, in the unit of the arguments.
    atol, rtol : float, default 1e-7, 1e-5
        They have to agree to ``atol + rtol * abs(numerical)``.

    Raises
    ------
    AssertionError
        If they differ: it names the argument, the element and both numbers.
    ArgumentError
        If there is nothing to check: no floating argument.
    DTypeError
        If the function returns single precision, in which differences mean nothing.

    See Also
    --------
    chainrule.gradcheck : the same with PyTorch's arguments, for tensors that require grad.

    Notes
    -----
    With chainrule installed, pytest has the fixture ``gradcheck``, which is this function:
    ``def test_f(gradcheck): gradcheck(f, 0.3)``.

    Examples
    --------
    >>> import chainrule as cr
    >>> from chainrule.testing import assert_gradients
    >>> assert_gradients(lambda x, n: x.sin() ** n, [0.3, 2.0], 3, order=2)
    >>> assert_gradients(lambda x: x.detach() * x, 2.0)
    Traceback (most recent call last):
    AssertionError: Jacobian mismatch for output 0 with respect to input 0, first order...
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    if order not in (1, 2) or modes not in ("reverse", "forward", "both"):
        raise ArgumentError(
            'assert_gradients: order is 1 or 2, and modes is "reverse", "forward" or "both", but '
            f"got {order!r} and {modes!r}"
        )
    tree = [list(map(_listed, args)), {name: _listed(value) for name, value in kwargs.items()}]
    given = [(path, leaf, _checked(leaf)) for path, leaf in pytree.leaves(tree)]
    inputs = [(path, new) for path, _, new in given if new is not None]

    def flat(*tensors: Any) -> Any:
        following = iter(tensors)
        filled = [leaf if new is None else next(following) for _, leaf, new in given]
        rest = iter(filled)
        called_args, called_kwargs = pytree.map_leaves(tree, lambda _: next(rest))
        return function(*called_args, **called_kwargs)

    names = _names(function, args, kwargs)
    titles = [
        f"input {i} ({re.sub(r'^.[01]..([^]]*).', lambda found: names[found[1]], path)!r})"
        for i, (path, _) in enumerate(inputs)
    ]
    subject = Subject(flat, tuple([new for _, new in inputs]), tuple(titles))
    settings = CheckSettings(
        eps, atol, rtol, backward=modes != "forward", forward=modes != "reverse"
    )
    try:
        check_first(subject, settings)
        if order == 2:
            check_second(subject, None, settings)
    except GradcheckError as error:
        raise AssertionError(str(error)) from None


def _names(function: Any, args: Any, kwargs: Any) -> dict[str, str]:
    """Return the name of each argument in errors, by its position or keyword in a path."""
    try:
        names = names_of(inspect.signature(function).bind(*args))
    except (TypeError, ValueError):  # no signature, or keywords are needed
        names = [str(i) for i in range(len(args))]
    return {str(i): name for i, name in enumerate(names)} | {repr(name): name for name in kwargs}


def _listed(value: Any) -> Any:
    """Return a list of floats, or of such lists, as an array."""
    parts = [leaf for _, leaf in pytree.leaves(value)] if isinstance(value, list) else []
    is_array = parts and all([isinstance(part, int | float | complex) for part in parts])
    return np.array(value) if is_array and not all([isinstance(p, int) for p in parts]) else value


def _checked(leaf: Any) -> Tensor | None:
    """Return a leaf in double precision that requires grad, if it has a gradient."""
    is_number = isinstance(leaf, float | complex | np.inexact)
    if not is_number and getattr(getattr(leaf, "dtype", None), "kind", "") not in ("f", "c"):
        return None
    values = leaf.detach().numpy(force=True) if isinstance(leaf, Tensor) else np.asarray(leaf)
    wide = np.complex128 if values.dtype.kind == "c" else np.float64
    return make(values.astype(wide), None).requires_grad_()


# --- data -----------------------------------------------------------------------------------------


def make_tensor(
    *shape: int | Sequence[int],
    dtype: Any,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return a tensor of uniformly distributed random numbers, for tests.

    Parameters
    ----------
    *shape : int, or one sequence of ints
        The shape.
    dtype, device
        Of the result.
    low, high : number, optional
        The interval, without `high`. By default -9 to 9 for floating and complex dtypes, -9 to 10
        for signed integers, 0 to 10 for unsigned ones, and 0 to 2 for bools.
    requires_grad : bool, default False
        Whether the result records.
    noncontiguous : bool, default False
        Return every second element of a longer tensor.
    exclude_zero : bool, default False
        Replace zeros by the smallest positive number.
    memory_format
        As in PyTorch, without effect.

    Returns
    -------
    Tensor
        From the generator that `manual_seed` seeds.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.testing.make_tensor(2, 3, dtype=cr.int64, device="cpu", low=0, high=4)
    >>> x.shape, bool(((x >= 0) & (x < 4)).all())
    ((2, 3), True)
    """
    sizes: Any = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    kind = np.dtype(dtype)
    least, most = {"b": (0, 2), "u": (0, 10), "i": (-9, 10)}.get(kind.kind, (-9, 9))
    start, stop = least if low is None else low, most if high is None else high
    if start >= stop:
        raise ArgumentError(f"make_tensor: low must be less than high, but got {start} and {stop}")
    longer = (*sizes[:-1], 2 * sizes[-1]) if noncontiguous and sizes else tuple(sizes)
    if kind.kind in "fc":
        real = np.dtype(kind.type().real)
        parts = [rand(longer, dtype=real) * (stop - start) + start for _ in range(2)]
        found = complex_of(*parts) if kind.kind == "c" else parts[0]
        found = found.to(device=device, dtype=kind)
        smallest = float(np.finfo(kind).tiny)
    else:
        found = randint(math.ceil(start), math.ceil(stop), longer).to(device=device, dtype=kind)
        smallest = 1
    if exclude_zero:
        found[found == 0] = smallest
    return (found[..., ::2] if longer != tuple(sizes) else found).requires_grad_(requires_grad)
