"""Derivatives of functions, in PyTorch's spelling: `torch.autograd.functional`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from chainrule.autograd.function_call import Call, as_tuple, matrix_of, zeros_like
from chainrule.autograd.modes import enable_grad, is_grad_enabled
from chainrule.autograd.tensor import Tensor
from chainrule.errors import ArgumentError, AutogradError

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = Any  # a Tensor, or a tuple of them
Function = Callable[..., Tensors]

_STRATEGIES = ("reverse-mode", "forward-mode")


def vjp(
    func: Function,
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensors, Tensors]:
    """Return the value of a function, and a vector times its Jacobian.

    Parameters
    ----------
    func : callable
        Takes the inputs as arguments; returns a tensor or a tuple of tensors.
    inputs : Tensor or tuple of Tensors
        Where to differentiate.
    v : Tensor or tuple of Tensors, optional
        The vector: of the shape of what `func` returns. One, if that has one element.
    create_graph : bool, default False
        Record it, so that both results can be differentiated.
    strict : bool, default False
        Raise if the output does not depend on an input, instead of returning zeros.

    Returns
    -------
    (outputs, product)
        What `func` returned; vᵀJ, in the shapes of the inputs.

    Raises
    ------
    TypeError
        If the inputs, or what `func` returns, are no tensors.
    AutogradError
        If something does not depend on an input, and `strict` is true.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([1.0, 2.0])
    >>> cr.autograd.functional.vjp(lambda x: x * x, x, cr.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    call = Call("vjp", func, inputs, create_graph, strict)
    vector = call.vector(v, call.outputs, call.outputs_single, "user-provided function returns")
    grads = call.grads(call.outputs, call.inputs, vector)
    return call.result(), call.like_inputs(call.filled(grads, call.inputs))


def jvp(
    func: Function,
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensors, Tensors]:
    """Return the value of a function, and its Jacobian times a vector.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As for `vjp`.
    v : Tensor or tuple of Tensors, optional
        The vector: of the shape of the inputs. One, if that is one tensor of one element.

    Returns
    -------
    (outputs, product)
        What `func` returned; J v, in the same shapes.

    Notes
    -----
    Two backward passes, the second through the first: that needs no rules of forward mode, which
    custom functions may lack. `chainrule.jvp` is forward mode.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([1.0, 2.0])
    >>> cr.autograd.functional.jvp(lambda x: x.sum() * x, x, cr.ones(2))
    (tensor([3., 6.]), tensor([5., 7.]))
    """
    call = Call("jvp", func, inputs, create_graph, strict)
    vector = call.vector(v, call.inputs, call.inputs_single, "input to the user-provided function")
    weights = [zeros_like(out).requires_grad_() for out in call.outputs]
    grads = call.filled(call.grads(call.outputs, call.inputs, weights, again=True), call.inputs)
    products = call.grads(grads, weights, vector)
    if strict and None in products:
        raise AutogradError(
            f"output {products.index(None)} of the user-provided function is independent of the "
            "inputs. This is not allowed in strict mode."
        )
    return call.result(), call.like_outputs(call.filled(products, weights))


def vhp(
    func: Function,
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensors, Tensors]:
    """Return the value of a scalar function, and a vector times its Hessian.

    Parameters
    ----------
    func : callable
        Takes the inputs as arguments; returns a tensor of one element.
    inputs, create_graph, strict
        As for `vjp`.
    v : Tensor or tuple of Tensors, optional
        The vector: of the shape of the inputs. One, if that is one tensor of one element.

    Returns
    -------
    (output, product)
        What `func` returned; vᵀH, in the shapes of the inputs.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([1.0, 2.0])
    >>> cr.autograd.functional.vhp(lambda x: (x**3).sum(), x, cr.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(
    func: Function,
    inputs: Tensors,
    v: Tensors | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Tensors, Tensors]:
    """Return the value of a scalar function, and its Hessian times a vector.

    A Hessian is symmetric: this is `vhp`, under the name that one looks for.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([1.0, 2.0])
    >>> cr.autograd.functional.hvp(lambda x: x[0] * x[1], x, cr.tensor([1.0, 0.0]))
    (tensor(2.), tensor([0., 1.]))
    """
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def _hessian_product(
    title: str, func: Function, inputs: Tensors, v: Tensors | None, create_graph: bool, strict: bool
) -> tuple[Tensors, Tensors]:
    call = Call(title, func, inputs, create_graph, strict)
    vector = call.vector(v, call.inputs, call.inputs_single, "input to the user-provided function")
    gradient = call.gradient()
    products = call.grads(gradient, call.inputs, vector)
    return call.result(), call.like_inputs(call.filled(products, call.inputs, "jacobian"))


def jacobian(
    func: Function,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Tensors:
    """Return the Jacobian of a function.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As for `vjp`.
    vectorize : bool, default False
        What PyTorch scripts pass: it changes nothing. `chainrule.compile` makes products of
        matrices of the passes for the rows.
    strategy : "reverse-mode" or "forward-mode"
        A pass for each element of the outputs, or for each element of the inputs.

    Returns
    -------
    Tensor, or tuple of them
        ``J[i, j]`` is the derivative of element i of the output by element j of the input, where i
        and j may be several indices. With several inputs a tuple, one for each; with several
        outputs a tuple of that.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.autograd.functional.jacobian(lambda x: x[0] * x, cr.tensor([2.0, 3.0]))
    tensor([[4., 0.],
            [3., 2.]])
    """
    if strategy not in _STRATEGIES:
        raise ArgumentError(
            'Expected strategy to be either "forward-mode" or "reverse-mode", but got: '
            f"{strategy!r}. Hint: take forward mode if the function has more outputs than inputs"
        )
    if create_graph and not is_grad_enabled():
        with enable_grad():  # for putting the blocks together, too
            return jacobian(func, inputs, True, strict, vectorize, strategy)
    call = Call("jacobian", func, inputs, create_graph, strict)
    blocks = call.columns() if strategy == "forward-mode" else call.rows()
    matrices = tuple(
        tuple(
            matrix_of(lines, out, x, strategy) for lines, x in zip(block, call.inputs, strict=True)
        )
        for block, out in zip(blocks, call.outputs, strict=True)
    )
    per_output = tuple(call.like_inputs(block) for block in matrices)
    return per_output[0] if call.outputs_single else per_output


def hessian(
    func: Function,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Tensors:
    """Return the Hessian of a scalar function: the Jacobian of its gradient.

    Parameters
    ----------
    func : callable
        Takes the inputs as arguments; returns a tensor of one element.
    inputs, create_graph, strict, vectorize
        As for `jacobian`.
    outer_jacobian_strategy : "reverse-mode" or "forward-mode"
        How the gradient is differentiated.

    Returns
    -------
    Tensor, or tuple of tuples of them
        ``H[i, j]`` is the second derivative by elements i and j of the input. With several inputs
        one such block for each pair.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.autograd.functional.hessian(lambda x: x[0] * x[0] * x[1], cr.tensor([2.0, 3.0]))
    tensor([[6., 4.],
            [4., 0.]])
    """
    single, _ = as_tuple(inputs, "inputs", "hessian")

    def gradient(*xs: Tensor) -> Tensors:
        call = Call("hessian", func, xs[0] if single else xs, True, strict)
        return call.like_inputs(call.gradient())

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
