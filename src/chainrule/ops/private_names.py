"""PyTorch's private functions that scripts call: those of lists of tensors, and assertions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from chainrule.autograd.tensor import Tensor

__all__ = ["private_function"]


def private_function(name: str) -> Callable[..., Any] | None:
    """Return the function of a private name of PyTorch's, None if it isn't known.

    `_foreach_` and the name of a method: calls it of each tensor of a list. Other lists among the
    arguments have as many elements, one for each tensor.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr._foreach_add([cr.ones(1), cr.zeros(1)], [2.0, 3.0])
    (tensor([3.]), tensor([3.]))
    """
    if name in _ASSERTIONS:
        return partial(_check, _ASSERTIONS[name])
    operation = name.removeprefix("_foreach_")
    method = getattr(Tensor, _METHODS.get(operation, operation), None)
    if operation == name or method is None:
        return None
    return partial(_each, operation, method)


_ASSERTIONS = {
    "_assert": AssertionError,
    "_assert_async": RuntimeError,
    "_check": RuntimeError,
    "_check_index": IndexError,
    "_check_type": TypeError,
    "_check_value": ValueError,
}
_METHODS = {"maximum_": "clamp_min_", "minimum_": "clamp_max_"}


def _check(error: type[Exception], condition: Any, message: Any = None) -> None:
    if not condition:
        text = message() if callable(message) else message
        raise error("Expected cond to be True, but got False." if text is None else text)


def _each(name: str, method: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(tensors, list | tuple):  # a number, to the power of each tensor
        tensors = [args[0][0].new_tensor(tensors)] * len(args[0])
    if "ord" in kwargs:
        kwargs["p"] = kwargs.pop("ord")
    factors = [kwargs.pop(key) for key in ("scalars", "scalar") if key in kwargs]
    if name.startswith(("addcmul", "addcdiv")) and (factors or len(args) > 2):
        factor = factors[0] if factors else args[2]
        kwargs["value"] = factor.tolist() if isinstance(factor, Tensor) else factor
        args, factors = args[:2], []
    args = (*args, *factors)
    for values in (*args, *kwargs.values()):
        if isinstance(values, list | tuple) and len(values) != len(tensors):
            raise RuntimeError(
                f"_foreach_{name}: Tensor lists must have the same number of tensors, got "
                f"{len(tensors)} and {len(values)}"
            )
    found = []
    for i, x in enumerate(tensors):
        own = [a[i] if isinstance(a, list | tuple) else a for a in args]
        named = {k: a[i] if isinstance(a, list | tuple) else a for k, a in kwargs.items()}
        found.append(method(x, *own, **named))
    return tensors if name.endswith("_") else tuple(found)
