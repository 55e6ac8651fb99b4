"""Dropout layers: random zeros in training."""

from __future__ import annotations

from typing import Any

from chainrule.errors import ArgumentError
from chainrule.nn import functional as F
from chainrule.nn.modules.layer import FunctionLayer

__all__ = [
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
]


class _Dropout(FunctionLayer):
    """A layer that is the identity outside of training."""

    def _convert(self) -> None:
        p = self.__dict__["p"]
        if not 0 <= p <= 1:
            raise ArgumentError(
                f"dropout probability has to be between 0 and 1, but got {p}: give the fraction of "
                "values to drop"
            )

    def forward(self, *inputs: Any) -> Any:
        """Return the input with random zeros in training."""
        values = self.__dict__
        function, p, inplace = type(self).function, values["p"], values["inplace"]
        return function(*inputs, p, values["training"], inplace)

    def extra_repr(self) -> str:
        """Return the settings."""
        values = self.__dict__
        return f"p={values['p']}, inplace={values['inplace']}"


_DropoutNd = _Dropout  # PyTorch's name, which code of users asks for


class Dropout(_Dropout):
    """Zero each element with probability p, and scale the rest: see `nn.functional.dropout`.

    Examples
    --------
    >>> import chainrule as cr
    >>> layer = cr.nn.Dropout(0.5).eval()  # in evaluation mode, inputs stay as they are
    >>> layer(cr.ones(3))
    tensor([1., 1., 1.])
    """

    function = F.dropout
    p: float = 0.5
    inplace: bool = False


class Dropout1d(_Dropout):
    """Zero each channel of sequences with probability p, and scale the rest.

    See `nn.functional.dropout1d`.
    """

    function = F.dropout1d
    p: float = 0.5
    inplace: bool = False


class Dropout2d(_Dropout):
    """Zero each channel of images with probability p, and scale the rest.

    See `nn.functional.dropout2d`.
    """

    function = F.dropout2d
    p: float = 0.5
    inplace: bool = False


class Dropout3d(_Dropout):
    """Zero each channel of volumes with probability p, and scale the rest.

    See `nn.functional.dropout3d`.
    """

    function = F.dropout3d
    p: float = 0.5
    inplace: bool = False


class AlphaDropout(_Dropout):
    """Dropout that keeps mean and variance of `SELU`'s outputs.

    See `nn.functional.alpha_dropout`.
    """

    function = F.alpha_dropout
    p: float = 0.5
    inplace: bool = False


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels: see `nn.functional.feature_alpha_dropout`."""

    function = F.feature_alpha_dropout
    p: float = 0.5
    inplace: bool = False
