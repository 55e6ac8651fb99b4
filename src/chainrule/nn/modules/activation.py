"""Activations: nonlinear functions of each element, and softmax and its relatives."""

from __future__ import annotations

from chainrule.arguments import DeviceLike, DTypeLike, Operand
from chainrule.autograd.tensor import Tensor
from chainrule.creation import empty
from chainrule.errors import ShapeError
from chainrule.nn import functional as F
from chainrule.nn.modules.layer import FunctionLayer
from chainrule.nn.modules.module import Module
from chainrule.nn.modules.transformer import MultiheadAttention as MultiheadAttention
from chainrule.nn.parameter import Parameter

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class CELU(FunctionLayer):
    """max(0, x) + min(0, α (exp(x/α) - 1)): see `nn.functional.celu`."""

    function = F.celu
    alpha: float = 1.0
    inplace: bool = False


class ELU(FunctionLayer):
    """x where it is positive, else α (exp(x) - 1): see `nn.functional.elu`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.ELU()(cr.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """

    function = F.elu
    alpha: float = 1.0
    inplace: bool = False


class GELU(FunctionLayer):
    """x Φ(x), exactly or by its approximation with tanh: see `nn.functional.gelu`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.GELU()(cr.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """

    function = F.gelu
    approximate: str = "none"


class GLU(FunctionLayer):
    """a · sigmoid(b), where a and b are the halves of the input: see `nn.functional.glu`."""

    function = F.glu
    dim: int = -1


class Hardshrink(FunctionLayer):
    """x where |x| > λ, else 0: see `nn.functional.hardshrink`."""

    function = F.hardshrink
    lambd: float = 0.5

    def extra_repr(self) -> str:
        """Return λ."""
        return str(self.lambd)


class Hardsigmoid(FunctionLayer):
    """x / 6 + 1/2, limited to [0, 1]: see `nn.functional.hardsigmoid`."""

    function = F.hardsigmoid
    _shown = ()
    inplace: bool = False


class Hardswish(FunctionLayer):
    """x · hardsigmoid(x): see `nn.functional.hardswish`."""

    function = F.hardswish
    _shown = ()
    inplace: bool = False


class Hardtanh(FunctionLayer):
    """x, limited to [min_val, max_val]: see `nn.functional.hardtanh`."""

    function = F.hardtanh
    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False


class LeakyReLU(FunctionLayer):
    """x where it is positive, else negative_slope · x: see `nn.functional.leaky_relu`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.LeakyReLU(0.1)(cr.tensor([-1.0, 2.0]))
    tensor([-0.1000,  2.0000])
    """

    function = F.leaky_relu
    negative_slope: float = 0.01
    inplace: bool = False


class LogSigmoid(FunctionLayer):
    """log sigmoid(x): see `nn.functional.logsigmoid`."""

    function = F.logsigmoid


class LogSoftmax(FunctionLayer):
    """log softmax along one dimension: see `nn.functional.log_softmax`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.LogSoftmax(dim=-1)(cr.tensor([[0.0, 0.0, 2.0]]))
    tensor([[-2.2395, -2.2395, -0.2395]])
    """

    function = F.log_softmax
    dim: int | None = None


class Mish(FunctionLayer):
    """x tanh(softplus(x)): see `nn.functional.mish`."""

    function = F.mish
    inplace: bool = False


class ReLU(FunctionLayer):
    """max(0, x): see `nn.functional.relu`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.ReLU()(cr.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    function = F.relu
    inplace: bool = False


class ReLU6(FunctionLayer):
    """x, limited to [0, 6]: see `nn.functional.relu6`."""

    function = F.relu6
    inplace: bool = False


class SELU(FunctionLayer):
    """The self-normalising λ · elu(x, α): see `nn.functional.selu`."""

    function = F.selu
    inplace: bool = False


class SiLU(FunctionLayer):
    """x sigmoid(x), also called swish: see `nn.functional.silu`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.SiLU()(cr.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """

    function = F.silu
    inplace: bool = False


class Sigmoid(FunctionLayer):
    """1 / (1 + exp(-x)): see `nn.functional.sigmoid`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.Sigmoid()(cr.tensor([0.0, 2.0]))
    tensor([0.5000, 0.8808])
    """

    function = F.sigmoid


class Softmax(FunctionLayer):
    """exp(x) / Σ exp(x) along one dimension: see `nn.functional.softmax`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.Softmax(dim=-1)(cr.tensor([[0.0, 0.0, 2.0]]))
    tensor([[0.1065, 0.1065, 0.7870]])
    """

    function = F.softmax
    dim: int | None = None


class Softmin(FunctionLayer):
    """Softmax(-x): see `nn.functional.softmin`."""

    function = F.softmin
    dim: int | None = None


class Softplus(FunctionLayer):
    """log(1 + exp(βx)) / β: see `nn.functional.softplus`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.Softplus()(cr.tensor([0.0, 2.0]))
    tensor([0.6931, 2.1269])
    """

    function = F.softplus
    beta: float = 1.0
    threshold: float = 20.0


class Softshrink(FunctionLayer):
    """x shrunk towards 0 by λ: see `nn.functional.softshrink`."""

    function = F.softshrink
    lambd: float = 0.5

    def extra_repr(self) -> str:
        """Return λ."""
        return str(self.lambd)


class Softsign(FunctionLayer):
    """x / (1 + |x|): see `nn.functional.softsign`."""

    function = F.softsign


class Tanh(FunctionLayer):
    """The hyperbolic tangent: see `nn.functional.tanh`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.Tanh()(cr.tensor([0.0, 2.0]))
    tensor([0.0000, 0.9640])
    """

    function = F.tanh


class Tanhshrink(FunctionLayer):
    """x - tanh(x): see `nn.functional.tanhshrink`."""

    function = F.tanhshrink


class Threshold(FunctionLayer):
    """x where it is above a threshold, else a value: see `nn.functional.threshold`."""

    function = F.threshold
    threshold: float
    value: float
    inplace: bool = False


class Softmax2d(Module):
    """softmax over the channels of images: inputs of shape (n, c, h, w) or (c, h, w)."""

    def forward(self, input: Operand) -> Tensor:
        """Return the softmax along the third dimension from the end."""
        if getattr(input, "ndim", 0) not in (3, 4):
            raise ShapeError(
                "Softmax2d: expected input to be 3D or 4D, but got "
                f"{getattr(input, 'ndim', 0)}D instead"
            )
        return F.softmax(input, -3)


class RReLU(FunctionLayer):
    """x where it is positive, else x times a slope that training draws: `nn.functional.rrelu`."""

    function = F.rrelu
    lower: float = 1 / 8
    upper: float = 1 / 3
    inplace: bool = False

    def forward(self, input: Operand) -> Tensor:
        """Return the function's value, with random slopes in training."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class PReLU(Module):
    """x where it is positive, else x times a slope that is a parameter: `nn.functional.prelu`.

    Parameters
    ----------
    num_parameters : int, default 1
        One slope for all channels, or as many as channels.
    init : number, default 0.25
        Initial value.
    device, dtype
        Of the parameter.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.PReLU()(cr.tensor([-1.0, 2.0])).tolist()
    [-0.25, 2.0]
    """

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(empty((num_parameters,), device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the slopes to their initial value."""
        self.weight.detach().fill_(self.init)

    def forward(self, input: Operand) -> Tensor:
        """Return the function's value."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """Return the number of parameters."""
        return f"num_parameters={self.num_parameters}"
