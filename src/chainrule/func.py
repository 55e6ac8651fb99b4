"""Function transforms under the names of `torch.func`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError
from chainrule.ops import stack
from chainrule.transforms import grad, jacobian, jvp, linearize, vmap
from chainrule.transforms import value_and_grad as _value_and_grad
from chainrule.transforms import vjp as _vjp
from chainrule.transforms.argnums import Argnums

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]


def grad_and_value(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return the function that gives the gradient of `func` and its value, in this order.

    Parameters
    ----------
    func, argnums, has_aux
        As for `chainrule.value_and_grad`.

    Returns
    -------
    callable
        Takes the arguments of `func`, returns ``(gradient, value)``, or ``(gradient, (value,
        aux))``.

    Examples
    --------
    >>> grad_and_value(lambda x: x**2)(3.0)
    (6.0, 9.0)
    """
    value_then_grad = _value_and_grad(func, argnums, has_aux)

    @functools.wraps(func)
    def swapped(*args: Any, **kwargs: Any) -> Any:
        value, gradient = value_then_grad(*args, **kwargs)
        return gradient, value

    return swapped


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return the function that gives the Jacobian of `func`, by reverse mode.

    `chainrule.jacobian` chooses the mode itself; see there for the arguments and the result.
    PyTorch's `chunk_size`, which limits memory, changes nothing here.

    Examples
    --------
    >>> import chainrule as cr
    >>> jacrev(lambda x: x**2)(cr.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    return jacobian(func, argnums, has_aux, mode="reverse")


def jacfwd(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """Return the function that gives the Jacobian of `func`, by forward mode.

    `chainrule.jacobian` chooses the mode itself; see there for the arguments and the result.
    `func` runs once, so that PyTorch's `randomness` changes nothing here.

    Examples
    --------
    >>> import chainrule as cr
    >>> jacfwd(lambda x: cr.stack([x, x**2]))(3.0)
    array([1., 6.])
    """
    return jacobian(func, argnums, has_aux, mode="forward")


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return the function that gives the Hessian of `func`: ``jacfwd(jacrev(func))``.

    Parameters
    ----------
    func : callable
        Returns a tensor of any shape; `chainrule.hessian` is for those of one element.
    argnums : int, str, or sequence of them, default 0
        As for `chainrule.jacobian`.

    Returns
    -------
    callable
        Takes the arguments of `func`, returns second derivatives of the shape
        ``(*output.shape, *argument.shape, *argument.shape)``.

    Examples
    --------
    >>> import chainrule as cr
    >>> hessian(lambda x: x**3)(cr.tensor([1.0, 2.0]))
    tensor([[[ 6.,  0.],
             [ 0.,  0.]],
    <BLANKLINE>
            [[ 0.,  0.],
             [ 0., 12.]]])
    """
    return jacobian(jacrev(func, argnums), argnums)


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return the value of a function and its vector-Jacobian product function.

    As `chainrule.vjp`, but the function returns a tuple for a single primal, too.

    Parameters
    ----------
    func, *primals, has_aux
        As for `chainrule.vjp`.

    Returns
    -------
    (outputs, vjp_fn) or (outputs, vjp_fn, aux)
        `vjp_fn` takes cotangents and returns a tuple of gradients, one for each primal.

    Examples
    --------
    >>> value, vjp_fn = vjp(lambda x: x**2, 3.0)
    >>> vjp_fn(1.0)
    (6.0,)
    """
    value, products, *aux = _vjp(func, *primals, has_aux=has_aux)
    if len(primals) == 1:
        products = functools.partial(_in_tuple, products)
    return (value, products, *aux)


def _in_tuple(products: Callable[[Any], Any], cotangents: Any) -> tuple[Any]:
    return (products(cotangents),)


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in the place of its parameters and buffers.

    Parameters
    ----------
    module : nn.Module
        It has its own tensors again when the call has ended.
    parameter_and_buffer_dicts : dict, or sequence of dicts
        Tensors by dotted names.
    args : tuple, or a single argument
        The positional arguments.
    kwargs : dict, optional
        The other arguments.
    tie_weights : bool, default True
        A tensor that the module has under several names is replaced under all of them.
    strict : bool, default False
        Raise if a parameter or buffer isn't given.

    Returns
    -------
    What the module returns.

    Raises
    ------
    ArgumentError
        If names are unknown, given twice, or, with `strict`, missing.

    Examples
    --------
    >>> import chainrule as cr
    >>> layer = cr.nn.Linear(2, 1)
    >>> weights = {"weight": cr.ones(1, 2), "bias": cr.zeros(1)}
    >>> cr.func.functional_call(layer, weights, cr.tensor([[3.0, 4.0]]))
    tensor([[7.]])
    """
    several = parameter_and_buffer_dicts
    dicts = [several] if isinstance(several, Mapping) else list(several)
    tensors = {name: value for each in dicts for name, value in each.items()}
    if len(tensors) < sum(map(len, dicts)):
        raise ArgumentError("functional_call: a name is in more than one of the dicts")
    known = dict(module.named_parameters(remove_duplicate=False))
    known |= dict(module.named_buffers(remove_duplicate=False))
    unknown, lacking = tensors.keys() - known.keys(), known.keys() - tensors.keys()
    if unknown or (strict and lacking):
        listed = f"unknown: {sorted(unknown)}" if unknown else f"missing: {sorted(lacking)}"
        raise ArgumentError(
            f"functional_call: names are those of named_parameters() and named_buffers(), but some "
            f"are {listed}"
        )
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    keywords = {} if kwargs is None else dict(kwargs)
    return module._replaced(tensors, module, *positional, tie_weights=tie_weights, **keywords)


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameters and the buffers of several modules, each stacked along a new dimension.

    Parameters
    ----------
    models : sequence of nn.Module
        Of the same class and shapes: an ensemble.

    Returns
    -------
    params, buffers : dict
        By dotted names. The parameters are leaves, copies of those of the modules.

    Raises
    ------
    ArgumentError
        If there are no modules, of several classes, or some are in training mode and others not.

    Examples
    --------
    >>> import chainrule as cr
    >>> models = [cr.nn.Linear(2, 1) for _ in range(3)]
    >>> params, buffers = cr.func.stack_module_state(models)
    >>> def call(params, x):
    ...     return cr.func.functional_call(models[0], params, x)
    >>> cr.vmap(call, in_dims=(0, None))(params, cr.ones(5, 2)).shape
    (3, 5, 1)
    """
    if not models:
        raise ArgumentError("stack_module_state: Expected at least one model, got 0")
    if len({model.training for model in models}) > 1:
        raise ArgumentError(
            "stack_module_state: Expected all models to have the same training mode"
        )
    if len({type(model) for model in models}) > 1:
        raise ArgumentError("stack_module_state: Expected all models to be of the same class")

    def stacked(each: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        with no_grad():
            found = {name: stack([state[name] for state in each]) for name in each[0]}
        for name, tensor in found.items():
            tensor.requires_grad_(all(state[name].requires_grad for state in each))
        return found

    parameters = stacked([dict(model.named_parameters()) for model in models])
    return parameters, stacked([dict(model.named_buffers()) for model in models])


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let batch normalisations forget their running statistics, which `vmap` can't write.

    Returns the module, in which each normalises by the statistics of its batch from now on.

    Examples
    --------
    >>> import chainrule as cr
    >>> net = cr.func.replace_all_batch_norm_modules_(cr.nn.BatchNorm1d(2))
    >>> cr.vmap(net)(cr.ones(3, 4, 2)).shape
    (3, 4, 2)
    """
    for module in root.modules():
        if hasattr(module, "_forget_running_stats"):
            module._forget_running_stats()
    return root
