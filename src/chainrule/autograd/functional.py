"""Derivatives of functions, in PyTorch's spelling: `torch.autograd.functional`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from chainrule.autograd.backward import autograd_grad, checked_gradient
from chainrule.autograd.function_call import FunctionCall, check_real, zeros_for_none
from chainrule.autograd.modes import enable_grad, is_grad_enabled, run_in
from chainrule.autograd.namespace import TENSOR_XP
from chainrule.autograd.remarks import Remark, tell, told_about
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import device_of, move
from chainrule.errors import ArgumentError, ArgumentTypeError, AutogradError, ShapeError
from chainrule.primitives import shaping

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
        The point at which to differentiate.
    v : Tensor or tuple of Tensors, optional
        The vector, of the shape of the result of `func`. By default 1, if that has one element.
    create_graph : bool, default False
        Record it, so that both results can be differentiated.
    strict : bool, default False
        Raise if the output does not depend on an input, instead of returning zeros.

    Returns
    -------
    (outputs, product)
        The result of `func`; vᵀJ, in the shapes of the inputs.

    Raises
    ------
    TypeError
        If the inputs, or the results of `func`, are no tensors.
    AutogradError
        If the output does not depend on an input, and `strict` is true.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.tensor([1.0, 2.0])
    >>> cr.autograd.functional.vjp(lambda x: x * x, x, cr.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    call = _CheckedCall("vjp", func, inputs, create_graph, strict)
    vector = call.vector(v, call.outputs, call.outputs_single, "user-provided function returns")
    cotangents = [
        checked_gradient(out, g, i) if out.requires_grad else None
        for i, (out, g) in enumerate(zip(call.outputs, vector, strict=True))
    ]
    return call.result(), call.like_inputs(call.filled(call.grads(cotangents), call.inputs))


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
        The vector, of the shape of the inputs. By default 1, for one input of one element.

    Returns
    -------
    (outputs, product)
        The result of `func`; J v, in the same shapes.

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
    call = _CheckedCall("jvp", func, inputs, create_graph, strict)
    vector = call.vector(v, call.inputs, call.inputs_single, "input to the user-provided function")
    weights = [_zeros_like(out).requires_grad_() for out in call.outputs]
    grads = call.filled(call.grads(weights, create_graph=True), call.inputs)
    products = _grads(grads, weights, vector, create_graph)
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
        The vector, of the shape of the inputs. By default 1, for one input of one element.

    Returns
    -------
    (output, product)
        The result of `func`; vᵀH, in the shapes of the inputs.

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

    A Hessian is symmetric: this is the same as `vhp`.

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
    call = _CheckedCall(title, func, inputs, create_graph, strict)
    vector = call.vector(v, call.inputs, call.inputs_single, "input to the user-provided function")
    gradient = call.gradient()
    products = _grads(gradient, call.inputs, vector, create_graph)
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
        For compatibility with PyTorch; ignored, with a PerformanceWarning: `chainrule.jacobian`
        takes one pass for all rows, and `chainrule.compile` turns the passes into products.
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
        arguments = (func, inputs, True, strict, vectorize, strategy)
        return run_in(enable_grad(), jacobian, *arguments)  # also when the blocks are joined
    if vectorize:
        text = "autograd.functional.jacobian runs a pass for each row in spite of vectorize=True"
        tell(
            Remark("vectorize", f"{text}: cr.jacobian runs one for all, and cr.hessian"),
            told_about(func),
        )
    call = _CheckedCall("jacobian", func, inputs, create_graph, strict)
    blocks = call.columns() if strategy == "forward-mode" else call.rows()
    matrices = tuple(
        tuple(
            _matrix(vectors, out, x, strategy)
            for vectors, x in zip(block, call.inputs, strict=True)
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
        The mode in which the gradient is differentiated.

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
    single, _ = _as_tuple(inputs, "inputs", "hessian")

    def gradient(*xs: Tensor) -> Tensors:
        call = _CheckedCall("hessian", func, xs[0] if single else xs, True, strict)
        return call.like_inputs(call.gradient())

    return jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)


# --- checked calls --------------------------------------------------------------------------------


class _CheckedCall:
    """A recorded call with PyTorch's checks of inputs, outputs, vectors and dependence."""

    def __init__(
        self,
        title: str,
        func: Function,
        inputs: Tensors,
        create_graph: bool,
        strict: bool,
    ) -> None:
        self.title = title
        self.create_graph = create_graph
        self.strict = strict
        self.inputs_single, given = _as_tuple(inputs, "inputs", title)
        self._call = FunctionCall(func, given, given, lambda x: _own(x, create_graph))
        self.inputs = self._call.inputs
        described = "outputs of the user-provided function"
        self.outputs_single, self.outputs = _as_tuple(self._call.result, described, title)
        for index, out in enumerate(self.outputs):
            if strict and not out.requires_grad:
                raise AutogradError(
                    f"Output {index} of the user-provided function does not require gradients. The "
                    "outputs must be computed in a differentiable manner from the input when "
                    "running in strict mode."
                )

    def vector(self, v: Any, fitting: Sequence[Tensor], single: bool, whose: str) -> list[Tensor]:
        """Return the vector of a product, checked against the tensors of the same shapes."""
        if v is None:
            if len(fitting) != 1 or fitting[0].numel() != 1:
                raise AutogradError(
                    f"The vector v can only be None if the {whose} is a single Tensor with a "
                    "single element."
                )
            return [TENSOR_XP.ones_like(fitting[0].detach())]
        _, vectors = _as_tuple(v, "v", self.title)
        if len(vectors) != len(fitting):
            raise ShapeError(
                "The given v should contain a single Tensor."
                if single
                else f"v is a tuple of invalid length: should be {len(fitting)} but got "
                f"{len(vectors)}."
            )
        for index, (each, like) in enumerate(zip(vectors, fitting, strict=True)):
            if each.shape != like.shape:
                entry = "" if single else f"Entry {index} in "
                raise ShapeError(
                    f"{entry}v has invalid size: should be {list(like.shape)} but got "
                    f"{list(each.shape)}."
                )
        return [each if self.create_graph else each.detach() for each in vectors]

    def grads(
        self, cotangents: Sequence[Tensor | None], *, create_graph: bool = False
    ) -> list[Tensor | None]:
        """Return the gradients with respect to the inputs; None for an unused input."""
        return self._call.grads(cotangents, create_graph=self.create_graph or create_graph)

    def gradient(self) -> list[Tensor]:
        """Return the gradient of the one output, recorded."""
        if not self.outputs_single:
            raise AutogradError(
                f"The function given to {self.title} should return a single Tensor, but it "
                f"returned {len(self.outputs)}"
            )
        if self.outputs[0].numel() != 1:
            raise AutogradError(
                f"The Tensor returned by the function given to {self.title} should contain a single"
                f" element, but its shape is {list(self.outputs[0].shape)}"
            )
        ones = [TENSOR_XP.ones_like(self.outputs[0].detach())]
        grads = self.grads(ones, create_graph=True)
        filled = self.filled(grads, self.inputs, check_recorded=False)
        for index, grad in enumerate(filled):
            if self.strict and not grad.requires_grad:
                raise AutogradError(
                    "While computing the hessian, found that the jacobian of the user-provided "
                    f"function with respect to input {index} is independent of the input. This is "
                    "not allowed in strict mode. You should ensure that your function is twice "
                    "differentiable and that the jacobian depends on the inputs (this would be "
                    "violated by a linear function for example)."
                )
        return filled

    def filled(
        self,
        grads: Sequence[Tensor | None],
        like: Sequence[Tensor],
        description: str = "output",
        *,
        check_recorded: bool = True,
    ) -> list[Tensor]:
        """Return the gradients with zeros for None, or raise in strict mode."""
        for index, grad in enumerate(grads if self.strict else ()):
            if grad is None:
                self._raise_independent(description, index, ".")
            elif check_recorded and self.create_graph and not grad.requires_grad:
                derivative = "jacobian" if description == "output" else "hessian"
                self._raise_independent(derivative, index, " when create_graph=True.")
        return zeros_for_none(grads, like)

    def _raise_independent(self, description: str, index: int, end: str) -> None:
        raise AutogradError(
            f"The {description} of the user-provided function is independent of input {index}. "
            f"This is not allowed in strict mode{end}"
        )

    def rows(self) -> Iterator[list[list[Tensor]]]:
        """Yield, for each output, the gradients of each of its elements, by input."""
        check_real(self.title, self.outputs, "outputs")
        for index, out in enumerate(self.outputs):
            rows = []
            for unit in _units(out):
                grads = self.grads(_only(unit, index, len(self.outputs)))
                if self.strict and None in grads:
                    self._raise_independent(f"Output {index}", grads.index(None), ".")
                rows.append(self.filled(grads, self.inputs))
            yield [[row[at] for row in rows] for at in range(len(self.inputs))]

    def columns(self) -> list[list[list[Tensor]]]:
        """Return, for each output and input, the tangents for each element of the input."""
        check_real(self.title, self.inputs, "inputs of forward mode")
        blocks: list[list[list[Tensor]]] = [[[] for _ in self.inputs] for _ in self.outputs]
        for at, x in enumerate(self.inputs):
            for unit in _units(x):
                directions = _only(unit, at, len(self.inputs))
                tangents = self._call.jvp(directions, create_graph=self.create_graph)
                for block, tangent in zip(blocks, tangents, strict=True):
                    block[at].append(tangent)
        return blocks

    def result(self) -> Tensors:
        """Return the outputs, without history unless it was asked for."""
        outputs = self.outputs if self.create_graph else tuple(x.detach() for x in self.outputs)
        return self.like_outputs(outputs)

    def like_inputs(self, tensors: Sequence[Tensor]) -> Tensors:
        return tensors[0] if self.inputs_single else tuple(tensors)

    def like_outputs(self, tensors: Sequence[Tensor]) -> Tensors:
        return tensors[0] if self.outputs_single else tuple(tensors)


def _as_tuple(value: Any, description: str, title: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Return whether `value` is a single tensor, and its tensors as a tuple."""
    single = not isinstance(value, tuple)
    tensors = (value,) if single else value
    for index, each in enumerate(tensors):
        if not isinstance(each, Tensor):
            where = f"given {description}" if single else f"value at index {index}"
            raise ArgumentTypeError(
                f"The {description} given to {title} must be either a Tensor or a tuple of Tensors "
                f"but the {where} has type {type(each)}."
                + (f" Write {title}(function, inputs)." if callable(each) else "")
            )
    return single, tensors


def _own(x: Tensor, create_graph: bool) -> Tensor:
    """Return a tensor of the same values that only this call knows."""
    if create_graph and x.requires_grad:
        alias: Tensor = shaping.reshape.apply(x, shape=x.shape)
        return alias
    return x.detach().requires_grad_()


def _grads(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    create_graph: bool,
) -> list[Tensor | None]:
    """Return the gradients of recorded gradients; None for an unused input."""
    pairs = [pair for pair in zip(outputs, cotangents, strict=True) if pair[0].requires_grad]
    if not pairs:
        return [None] * len(inputs)
    roots, gs = zip(*pairs, strict=True)
    return list(autograd_grad(roots, inputs, gs, True, create_graph, allow_unused=True))


def _zeros_like(x: Tensor) -> Tensor:
    return TENSOR_XP.zeros_like(x.detach())


def _only(tensor: Tensor, index: int, count: int) -> list[Tensor | None]:
    """Return a tensor at one index of a list of None."""
    return [tensor if i == index else None for i in range(count)]


def _units(x: Tensor) -> Iterator[Tensor]:
    """Yield a tensor for each element of `x`: one there, and zero elsewhere."""
    for position in range(x.numel()):
        unit = np.zeros(x.numel(), x.dtype)
        unit[position] = 1
        yield make(move(unit.reshape(x.shape), device_of(x._array)), None)


def _matrix(vectors: list[Tensor], out: Tensor, x: Tensor, strategy: str) -> Tensor:
    """Return one block of a Jacobian from its rows, or in forward mode from its columns."""
    shape = (*out.shape, *x.shape)
    if not vectors:
        return TENSOR_XP.beside(x).zeros(shape, dtype=x.dtype)
    axis = out.ndim if strategy == "forward-mode" else 0
    block: Tensor = TENSOR_XP.stack(vectors, axis=axis)
    matrix: Tensor = shaping.reshape.apply(block, shape=shape)
    return matrix
