"""Linear and bilinear layers, and the identity."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from chainrule.arguments import DeviceLike, DTypeLike, Operand
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.creation import empty
from chainrule.nn import functional as F
from chainrule.nn import init
from chainrule.nn.modules.lazy import LazyModuleMixin
from chainrule.nn.modules.module import Module
from chainrule.nn.parameter import Parameter, UninitializedParameter

if TYPE_CHECKING:
    from numpy.random import Generator

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """A layer that returns its input; its own arguments are ignored.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.Identity()(cr.ones(2))
    tensor([1., 1.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """Return the input."""
        return input


class Linear(Module):
    """A fully connected layer: x @ weightᵀ + bias.

    Parameters
    ----------
    in_features, out_features : int
        The sizes of inputs and outputs.
    bias : bool, default True
        Whether there is a bias.
    device : device or str, optional
        Device of the parameters: the CPU by default.
    dtype : dtype, optional
        Dtype of the parameters: the default dtype if left out.
    rng : numpy.random.Generator, optional
        Draws the initial values: the default generator if left out.

    Attributes
    ----------
    weight : Parameter, shape (out_features, in_features)
    bias : Parameter, shape (out_features,), or None

    Notes
    -----
    Initial values are uniform between -1/√in_features and 1/√in_features, as in PyTorch: with this
    scale, outputs vary about as much as inputs [1]_ (section 4.6).

    References
    ----------
    .. [1] Y. LeCun, L. Bottou, G. Orr, K.-R. Müller, Efficient BackProp, in: Neural Networks:
       Tricks of the Trade, Springer 1998.

    Examples
    --------
    >>> import chainrule as cr
    >>> layer = cr.nn.Linear(3, 2)
    >>> layer(cr.ones(5, 3)).shape
    (5, 2)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
        *,
        rng: Generator | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(empty(out_features, in_features, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        if rng is None:
            self.reset_parameters()
        else:
            draw_uniform(self, in_features, rng)

    def reset_parameters(self) -> None:
        """Draw the parameters again. A subclass with another method begins with its values."""
        draw_uniform(self, self.in_features)

    def forward(self, input: Operand) -> Tensor:
        """Return x @ weightᵀ + bias."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` layer that gets `in_features` from its first input.

    Parameters
    ----------
    out_features : int
        The size of outputs.
    bias : bool, default True
        Whether there is a bias.
    device, dtype
        Of the parameters.

    Examples
    --------
    >>> import chainrule as cr
    >>> layer = cr.nn.LazyLinear(2)
    >>> layer(cr.ones(5, 3)).shape, layer.weight.shape
    ((5, 2), (2, 3))
    """

    cls_to_become = Linear
    weight: Any
    bias: Any

    def __init__(
        self,
        out_features: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__(0, 0, False)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw the parameters again, if they have a shape."""
        if not self.has_uninitialized_params() and self.in_features:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Set the shapes of the parameters by an input."""
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        self.in_features = self.weight.shape[1]


class NonDynamicallyQuantizableLinear(Linear):
    """The output projection of attention, under PyTorch's name."""


class Bilinear(Module):
    """A layer of two inputs: x₁ᵀ A x₂ + b, with a matrix A for each output.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
        The sizes of inputs and outputs.
    bias : bool, default True
        Whether there is a bias.
    device, dtype
        Of the parameters.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.Bilinear(3, 4, 2)(cr.rand(8, 3), cr.rand(8, 4)).shape
    (8, 2)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        shape = out_features, in1_features, in2_features
        self.weight = Parameter(empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters again."""
        draw_uniform(self, self.in1_features)

    def forward(self, input1: Operand, input2: Operand) -> Tensor:
        """Return the bilinear form of the inputs."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


def draw_uniform(module: Module, fan_in: int, rng: Generator | None = None) -> None:
    """Draw the parameters of a module uniformly between ±1/√fan_in."""
    bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
    for parameter in module.parameters(recurse=False):
        init.uniform_(parameter, -bound, bound, generator=rng)
