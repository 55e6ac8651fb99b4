"""Embeddings: rows of a table, and means, sums or maxima of bags of rows."""

from __future__ import annotations

from typing import Any, TypeVar

from chainrule.arguments import DeviceLike, DTypeLike, Operand
from chainrule.autograd.modes import no_grad
from chainrule.autograd.tensor import Tensor
from chainrule.creation import empty
from chainrule.errors import ArgumentError, ShapeError
from chainrule.nn import functional as F
from chainrule.nn import init
from chainrule.nn.modules.module import Module
from chainrule.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]

T = TypeVar("T", bound="_Table")


class _Table(Module):
    """A table of vectors, drawn from the normal distribution, and the settings of its look-ups."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    weight: Parameter

    def _make_table(
        self, padding_idx: int | None, given: Tensor | None, device: DeviceLike, dtype: DTypeLike
    ) -> None:
        rows, columns = self.num_embeddings, self.embedding_dim
        if padding_idx is not None:
            if not -rows <= padding_idx < rows:
                raise ArgumentError(
                    f"{type(self).__name__}: padding_idx must be within num_embeddings, got "
                    f"{padding_idx} and {rows}"
                )
            padding_idx %= rows
        self.padding_idx = padding_idx
        if given is None:
            self.weight = Parameter(empty(rows, columns, device=device, dtype=dtype))
            self.reset_parameters()
            return
        if given.shape != (rows, columns):
            raise ShapeError(
                f"{type(self).__name__}: Shape of weight does not match num_embeddings and "
                f"embedding_dim: got {list(given.shape)}, expected {[rows, columns]}"
            )
        self.weight = Parameter(given)

    def reset_parameters(self) -> None:
        """Draw the table again, with zeros for the padding."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx] = 0

    @classmethod
    def from_pretrained(
        cls: type[T], embeddings: Tensor, freeze: bool = True, **settings: Any
    ) -> T:
        """Return a layer with a given table.

        Parameters
        ----------
        embeddings : Tensor, shape (num_embeddings, embedding_dim)
            The table.
        freeze : bool, default True
            Whether it requires no grad.
        **settings
            The arguments of the layer.
        """
        if embeddings.ndim != 2:
            raise ShapeError(
                f"{cls.__name__}: Embeddings parameter is expected to be 2-dimensional, got "
                f"{list(embeddings.shape)}"
            )
        made: Any = cls
        layer: T = made(*embeddings.shape, _weight=embeddings, **settings)
        layer.weight.requires_grad_(not freeze)
        return layer


class Embedding(_Table):
    """A table of vectors, looked up by index: see `nn.functional.embedding`.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        The sizes of the table.
    padding_idx : int, optional
        A row that is zeros at first and gets no gradient.
    max_norm : number, optional
        Rows that are looked up are scaled to this norm if theirs is larger, in place.
    norm_type : number, default 2
        The order of this norm.
    scale_grad_by_freq : bool, default False
        Divide gradients by how often a row was looked up.
    sparse : bool, default False
        Has no effect: gradients are dense.
    device, dtype
        Of the table.

    Attributes
    ----------
    weight : Parameter, shape (num_embeddings, embedding_dim)

    Examples
    --------
    >>> import chainrule as cr
    >>> layer = cr.nn.Embedding(10, 3)
    >>> layer(cr.tensor([[1, 2], [4, 5]])).shape
    (2, 2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self._make_table(padding_idx, _weight, device, dtype)
        if _freeze:
            self.weight.requires_grad_(False)

    def forward(self, input: Operand) -> Tensor:
        """Return the rows of the indices."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
        )

    def extra_repr(self) -> str:
        """Return the sizes, and the settings that aren't the usual ones."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, usual in (
            ("padding_idx", None),
            ("max_norm", None),
            ("norm_type", 2),
            ("scale_grad_by_freq", False),
        ):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text + ", sparse=True" if self.sparse else text


class EmbeddingBag(_Table):
    """Sums, means or maxima of bags of rows of a table: see `nn.functional.embedding_bag`.

    Parameters
    ----------
    num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, sparse
        As for `Embedding`.
    mode : {'mean', 'sum', 'max'}
        How the rows of a bag are reduced.
    include_last_offset : bool, default False
        Whether the last offset is the end of the last bag.
    padding_idx : int, optional
        An index that belongs to no bag.
    device, dtype
        Of the table.

    Attributes
    ----------
    weight : Parameter, shape (num_embeddings, embedding_dim)

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.EmbeddingBag(10, 3)(cr.tensor([[1, 2], [4, 9]])).shape
    (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.mode, self.sparse = scale_grad_by_freq, mode, sparse
        self.include_last_offset = include_last_offset
        self._make_table(padding_idx, _weight, device, dtype)

    def forward(
        self,
        input: Operand,
        offsets: Operand | None = None,
        per_sample_weights: Operand | None = None,
    ) -> Tensor:
        """Return the reduced rows of each bag."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        """Return the sizes, and the settings that aren't the usual ones."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        for name, usual in (("max_norm", None), ("norm_type", 2), ("scale_grad_by_freq", False)):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        text += f", mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"
