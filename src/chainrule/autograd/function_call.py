"""One call of a function whose derivatives are asked for: what `functional` is made of.

The function is called once, on tensors of its own that stand for the inputs. So what it closes over
is not mistaken for what it is given, even if both are the same tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from chainrule.autograd.backward import autograd_grad
from chainrule.autograd.forward import jvp_through
from chainrule.autograd.modes import enable_grad
from chainrule.autograd.namespace import TENSOR_XP
from chainrule.autograd.tensor import Tensor, make
from chainrule.backend import device_of, move
from chainrule.errors import AutogradError, ShapeError
from chainrule.primitives import shaping

Tensors = Any  # a Tensor, or a tuple of them


class Call:
    """A function called on tensors of its own, and what came of it."""

    def __init__(
        self,
        title: str,
        func: Callable[..., Tensors],
        inputs: Tensors,
        create_graph: bool,
        strict: bool,
    ) -> None:
        self.title = title
        self.create_graph = create_graph
        self.strict = strict
        self.inputs_single, given = as_tuple(inputs, "inputs", title)
        with enable_grad():
            self.inputs = tuple(_own(x, create_graph) for x in given)
            outputs = func(*self.inputs)
        described = "outputs of the user-provided function"
        self.outputs_single, self.outputs = as_tuple(outputs, described, title)
        for index, out in enumerate(self.outputs):
            if strict and not out.requires_grad:
                raise AutogradError(
                    f"Output {index} of the user-provided function does not require gradients. The "
                    "outputs must be computed in a differentiable manner from the input when "
                    "running in strict mode."
                )

    def vector(self, v: Any, fitting: Sequence[Tensor], single: bool, whose: str) -> list[Tensor]:
        """Return the vector of a product, checked against the tensors whose shapes it has."""
        if v is None:
            if len(fitting) != 1 or fitting[0].numel() != 1:
                raise AutogradError(
                    f"The vector v can only be None if the {whose} is a single Tensor with a "
                    "single element."
                )
            return [TENSOR_XP.ones_like(fitting[0].detach())]
        _, vectors = as_tuple(v, "v", self.title)
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
        self,
        outputs: Sequence[Tensor],
        inputs: Sequence[Tensor],
        weights: Sequence[Tensor | None],
        *,
        again: bool = False,
    ) -> list[Tensor | None]:
        """Return the gradients by `inputs`, None where nothing leads to them."""
        pairs = [pair for pair in zip(outputs, weights, strict=True) if pair[0].requires_grad]
        if not pairs:
            return [None] * len(inputs)
        roots, cotangents = zip(*pairs, strict=True)
        create = self.create_graph or again
        return list(autograd_grad(roots, inputs, cotangents, True, create, allow_unused=True))

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
        grads = self.grads(self.outputs, self.inputs, ones, again=True)
        filled = self.filled(grads, self.inputs, recorded=False)
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
        what: str = "output",
        *,
        recorded: bool = True,
    ) -> list[Tensor]:
        """Return the gradients with zeros for None, or raise in strict mode."""
        for index, grad in enumerate(grads if self.strict else ()):
            if grad is None:
                self._independent(what, index, ".")
            elif recorded and self.create_graph and not grad.requires_grad:
                derivative = "jacobian" if what == "output" else "hessian"
                self._independent(derivative, index, " when create_graph=True.")
        return [
            zeros_like(x) if grad is None else grad for grad, x in zip(grads, like, strict=True)
        ]

    def _independent(self, what: str, index: int, when: str) -> None:
        raise AutogradError(
            f"The {what} of the user-provided function is independent of input {index}. This is "
            f"not allowed in strict mode{when}"
        )

    def rows(self) -> Iterator[list[list[Tensor]]]:
        """Yield, for each output, what a backward pass from each of its elements gives."""
        check_real(self.title, self.outputs, "outputs")
        for index, out in enumerate(self.outputs):
            rows = []
            for unit in _units(out):
                grads = self.grads([out], self.inputs, [unit])
                if self.strict and None in grads:
                    self._independent(f"Output {index}", grads.index(None), ".")
                rows.append(self.filled(grads, self.inputs))
            yield [[row[at] for row in rows] for at in range(len(self.inputs))]

    def columns(self) -> list[list[list[Tensor]]]:
        """Return, for each output and input, what a tangent in each element of it becomes."""
        check_real(self.title, self.inputs, "inputs of forward mode")
        jvp, _ = jvp_through(self.inputs, self.outputs)
        blocks: list[list[list[Tensor]]] = [[[] for _ in self.inputs] for _ in self.outputs]
        for at, x in enumerate(self.inputs):
            for unit in _units(x):
                tangents = [unit if i == at else None for i in range(len(self.inputs))]
                for block, tangent in zip(blocks, jvp(tangents, self.create_graph), strict=True):
                    block[at].append(tangent)
        return blocks

    def result(self) -> Tensors:
        """Return what the function returned, without history unless it was asked for."""
        outputs = self.outputs if self.create_graph else tuple(x.detach() for x in self.outputs)
        return self.like_outputs(outputs)

    def like_inputs(self, tensors: Sequence[Tensor]) -> Tensors:
        return tensors[0] if self.inputs_single else tuple(tensors)

    def like_outputs(self, tensors: Sequence[Tensor]) -> Tensors:
        return tensors[0] if self.outputs_single else tuple(tensors)


def check_real(title: str, tensors: Sequence[Tensor], what: str) -> None:
    """Raise for what a pass in each real direction alone would tell half of the truth on."""
    for tensor in tensors:
        if tensor.dtype.kind == "c":
            raise AutogradError(
                f"{title}: grad can be implicitly created only for real {what}, but got "
                f"{tensor.dtype.name}: differentiate real and imaginary part on their own, "
                "view_as_real() of it"
            )


def as_tuple(value: Any, what: str, title: str) -> tuple[bool, tuple[Tensor, ...]]:
    """Return whether this is a single tensor, and the tuple of those that it is."""
    single = not isinstance(value, tuple)
    tensors = (value,) if single else value
    for index, each in enumerate(tensors):
        if not isinstance(each, Tensor):
            where = f"given {what}" if single else f"value at index {index}"
            raise TypeError(
                f"The {what} given to {title} must be either a Tensor or a tuple of Tensors but "
                f"the {where} has type {type(each)}."
            )
    return single, tensors


def _own(x: Tensor, create_graph: bool) -> Tensor:
    """Return a tensor of the same values that only this call knows."""
    if create_graph and x.requires_grad:
        alias: Tensor = shaping.reshape.apply(x, shape=x.shape)
        return alias
    return x.detach().requires_grad_()


def zeros_like(x: Tensor) -> Tensor:
    return TENSOR_XP.zeros_like(x.detach())


def _units(x: Tensor) -> Iterator[Tensor]:
    """Yield a tensor for each element of `x`: one there, and zero elsewhere."""
    for position in range(x.numel()):
        unit = np.zeros(x.numel(), x.dtype)
        unit[position] = 1
        yield make(move(unit.reshape(x.shape), device_of(x._array)), None)


def matrix_of(lines: list[Tensor], out: Tensor, x: Tensor, strategy: str) -> Tensor:
    """Return one block of a Jacobian from its rows, or from its columns."""
    shape = (*out.shape, *x.shape)
    if not lines:
        return TENSOR_XP.zeros(shape, dtype=x.dtype)
    along = strategy == "forward-mode"  # then the lines are stacked behind the output's dimensions
    block: Tensor = TENSOR_XP.stack(lines, axis=out.ndim if along else 0)
    matrix: Tensor = shaping.reshape.apply(block, shape=shape)
    return matrix
