"""Linear layers."""

from __future__ import annotations

import math
from typing import final

import numpy as np

from chainrule.arguments import DeviceLike, DTypeLike, Operand
from chainrule.autograd.tensor import Tensor
from chainrule.ops import linear
from chainrule.random.continuous import rand


@final
class Linear:
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
    weight : Tensor, shape (out_features, in_features)
    bias : Tensor, shape (out_features,), or None

    Notes
    -----
    Initial values are uniform between -1/√in_features and 1/√in_features, as in PyTorch: with this
    scale, outputs vary about as much as inputs [1]_ (section 4.6). Parameters are leaves that
    require grad.

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
        rng: np.random.Generator | None = None,
    ) -> None:
        self.in_features, self.out_features = in_features, out_features
        bound = 1 / math.sqrt(in_features) if in_features else 0.0

        def drawn(*shape: int) -> Tensor:
            values = rand(*shape, dtype=dtype, device=device, rng=rng)
            values.mul_(2 * bound).sub_(bound)
            return values.requires_grad_()

        self.weight = drawn(out_features, in_features)
        self.bias = drawn(out_features) if bias else None

    def __call__(self, x: Operand) -> Tensor:
        """Return x @ weightᵀ + bias."""
        return linear(x, self.weight, self.bias)

    def parameters(self) -> list[Tensor]:
        """Return the weight, and the bias if there is one, for an optimiser.

        Examples
        --------
        >>> import chainrule as cr
        >>> [parameter.shape for parameter in cr.nn.Linear(3, 2).parameters()]
        [(2, 3), (2,)]
        """
        return [self.weight] if self.bias is None else [self.weight, self.bias]

    def __repr__(self) -> str:
        return (
            f"Linear(in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None})"
        )
