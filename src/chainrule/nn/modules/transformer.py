"""Multi-head attention, transformer layers, and stacks of them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any, ClassVar

from chainrule.arguments import DeviceLike, DTypeLike
from chainrule.autograd.tensor import Tensor
from chainrule.creation import empty, full
from chainrule.errors import ArgumentError, ShapeError
from chainrule.nn import functional as F
from chainrule.nn import init
from chainrule.nn.functional.attention import attend_by_heads, projected
from chainrule.nn.modules.container import ModuleList
from chainrule.nn.modules.dropout import Dropout
from chainrule.nn.modules.linear import Linear, NonDynamicallyQuantizableLinear
from chainrule.nn.modules.module import Module
from chainrule.nn.modules.normalization import LayerNorm
from chainrule.nn.parameter import Parameter
from chainrule.ops import triu

__all__ = [
    "MultiheadAttention",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


class MultiheadAttention(Module):
    """Attention in several subspaces: softmax(q kᵀ / √d) v of projections of the inputs.

    Parameters
    ----------
    embed_dim, num_heads : int
        The size of queries and outputs, and the number of heads, which divides it.
    dropout : number, default 0
        Probability of dropout of attention weights.
    bias : bool, default True
        Whether projections have biases.
    add_bias_kv : bool, default False
        Whether a key and a value that are parameters are added to each sequence.
    add_zero_attn : bool, default False
        Whether a key and a value of zeros are added to each sequence.
    kdim, vdim : int, optional
        The sizes of keys and values: `embed_dim` if left out.
    batch_first : bool, default False
        Inputs and outputs are of shape (n, l, embed_dim); else (l, n, embed_dim).
    device, dtype
        Of the parameters.

    Attributes
    ----------
    in_proj_weight : Parameter, shape (3 embed_dim, embed_dim), or None
        The projections of query, key and value, one above the other.
    q_proj_weight, k_proj_weight, v_proj_weight : Parameter, or None
        They are apart if `kdim` or `vdim` differs.
    in_proj_bias : Parameter, shape (3 embed_dim,), or None
    out_proj : Linear

    Notes
    -----
    A. Vaswani et al., Attention is all you need, NIPS 2017.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.ones(5, 2, 8)
    >>> output, weights = cr.nn.MultiheadAttention(8, 2)(x, x, x)
    >>> output.shape, weights.shape
    ((5, 2, 8), (2, 5, 5))
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0 or embed_dim % num_heads:
            raise ArgumentError(
                "MultiheadAttention: embed_dim must be divisible by num_heads, both positive, got "
                f"{embed_dim} and {num_heads}"
            )
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.head_dim, self.batch_first = embed_dim // num_heads, batch_first
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.add_zero_attn = add_zero_attn
        self._qkv_same_embed_dim = self.kdim == embed_dim == self.vdim
        together, apart = (3 * embed_dim, embed_dim), (self.embed_dim, self.kdim, self.vdim)
        shapes: dict[str, tuple[int, ...] | None] = {
            f"{letter}_proj_weight": None if self._qkv_same_embed_dim else (embed_dim, size)
            for letter, size in zip("qkv", apart, strict=True)
        }
        shapes["in_proj_weight"] = together if self._qkv_same_embed_dim else None
        shapes["in_proj_bias"] = (3 * embed_dim,) if bias else None
        for title in ("bias_k", "bias_v"):
            shapes[title] = (1, 1, embed_dim) if add_bias_kv else None
        for title, shape in shapes.items():
            made = None if shape is None else Parameter(empty(shape, device=device, dtype=dtype))
            self.register_parameter(title, made)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias, device, dtype)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name, parameter in self.named_parameters(recurse=False):
            if name.endswith("_proj_weight"):
                init.xavier_uniform_(parameter)
            elif name in ("bias_k", "bias_v"):
                init.xavier_normal_(parameter)
            else:
                init.zeros_(parameter)
        if self.out_proj.bias is not None:
            init.zeros_(self.out_proj.bias)

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> list[Tensor]:
        """Return the projections of query, key and value."""
        apart = self.q_proj_weight, self.k_proj_weight, self.v_proj_weight
        return projected((query, key, value), self.in_proj_weight, apart, self.in_proj_bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the outputs, and the attention weights if they are needed.

        Parameters
        ----------
        query : Tensor, shape (l, n, embed_dim), or (n, l, embed_dim) if `batch_first`
            Or (l, embed_dim) without a batch, like the others.
        key, value : Tensor, shape (s, n, kdim) and (s, n, vdim)
            The sequence to attend to.
        key_padding_mask : Tensor, shape (n, s), optional
            True for keys to ignore, or numbers to add to scores.
        need_weights : bool, default True
            Return the weights, of shape (n, l, s), which costs time.
        attn_mask : Tensor, shape (l, s) or (n · num_heads, l, s), optional
            True for pairs to ignore, or numbers to add to scores.
        average_attn_weights : bool, default True
            Average weights over heads; else they are of shape (n, num_heads, l, s).
        is_causal : bool, default False
            A remark that `attn_mask` is causal, which is needed all the same.
        """
        if is_causal and attn_mask is None:
            raise ArgumentError(
                "MultiheadAttention: need attn_mask if specifying the is_causal hint"
            )
        batched = query.ndim == 3
        if query.ndim not in (2, 3) or not query.ndim == key.ndim == value.ndim:
            raise ShapeError(
                "MultiheadAttention: query, key and value are all of 2 or all of 3 dimensions, got "
                f"{list(query.shape)}, {list(key.shape)} and {list(value.shape)}"
            )
        for title, x, size in (
            ("query", query, self.embed_dim),
            ("key", key, self.kdim),
            ("value", value, self.vdim),
        ):
            if x.shape[-1] != size:
                raise ShapeError(
                    f"MultiheadAttention: was expecting embedding dimension of {size}, but got "
                    f"{x.shape[-1]} as the last size of {title}, {list(x.shape)}"
                )
        q, k, v = self._projected(query, key, value)
        if not batched:
            q, k, v = q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0)
        elif not self.batch_first:
            q, k, v = q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1)
        result, weights = attend_by_heads(
            (q, k, v),
            self.num_heads,
            (self.bias_k, self.bias_v),
            self.add_zero_attn,
            (attn_mask, key_padding_mask),
            self.dropout if self.training else 0.0,
            need_weights,
        )
        output = self.out_proj(result)
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            return output.squeeze(0), None if weights is None else weights.squeeze(0)
        return output if self.batch_first else output.transpose(0, 1), weights


def _activation(given: str | Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise ArgumentError(f"activation should be relu/gelu, not {given}")
    return F.relu if given == "relu" else F.gelu


class _Layer(Module):
    """What encoder and decoder layers have in common: the feed-forward part, and where norms are.

    Parameters
    ----------
    d_model, nhead : int
        The size of inputs, and the number of heads.
    dim_feedforward : int, default 2048
        The size within the feed-forward part.
    dropout : number, default 0.1
        Probability of dropout.
    activation : 'relu', 'gelu' or callable
        Of the feed-forward part.
    layer_norm_eps : number, default 1e-5
        Added to variances.
    batch_first : bool, default False
        Inputs and outputs are of shape (n, l, d_model); else (l, n, d_model).
    norm_first : bool, default False
        Whether parts are normalised before, not after them.
    bias : bool, default True
        Whether linear layers and norms have biases.
    device, dtype
        Of the parameters.
    """

    attentions: ClassVar[tuple[str, ...]] = ("self_attn",)
    self_attn: MultiheadAttention

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        for name in self.attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout, bias=bias, batch_first=batch_first, **place
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **place)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **place)
        self.norm_first = norm_first
        numbers = range(1, len(self.attentions) + 2)
        for i in numbers:
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **place)
            setattr(self, f"norm{i}", norm)
        for i in numbers:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def _part(self, x: Tensor, number: int, part: Callable[[Tensor], Tensor]) -> Tensor:
        """Add what a part makes of its input, normalised before or after."""
        values = self.__dict__
        norm, dropout = values[f"norm{number}"], values[f"dropout{number}"]
        if self.norm_first:
            result: Tensor = x + dropout(part(norm(x)))
        else:
            result = norm(x + dropout(part(x)))
        return result

    def _feed_forward(self, x: Tensor) -> Tensor:
        hidden = self.dropout(self.activation(self.linear1(x)))
        found: Tensor = self.linear2(hidden)
        return found


class TransformerEncoderLayer(_Layer):
    """Self-attention and a feed-forward network, each with a residual connection and a norm.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.TransformerEncoderLayer(8, 2, dim_feedforward=16)(cr.ones(5, 2, 8)).shape
    (5, 2, 8)
    """

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Return the encoded sequence; the masks are those of `MultiheadAttention`."""

        def attend(x: Tensor) -> Tensor:
            masks = src_key_padding_mask, False, src_mask
            found: Tensor = self.self_attn(x, x, x, *masks, is_causal=is_causal)[0]
            return found

        return self._part(self._part(src, 1, attend), 2, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to a memory, and a feed-forward network."""

    attentions = ("self_attn", "multihead_attn")
    multihead_attn: MultiheadAttention

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoded sequence; the masks are those of `MultiheadAttention`."""

        def attend(x: Tensor) -> Tensor:
            masks = tgt_key_padding_mask, False, tgt_mask
            found: Tensor = self.self_attn(x, x, x, *masks, is_causal=tgt_is_causal)[0]
            return found

        def remember(x: Tensor) -> Tensor:
            masks = memory_key_padding_mask, False, memory_mask
            attention = self.multihead_attn
            found: Tensor = attention(x, memory, memory, *masks, is_causal=memory_is_causal)[0]
            return found

        x = self._part(self._part(tgt, 1, attend), 2, remember)
        return self._part(x, 3, self._feed_forward)


class _Stack(Module):
    """Copies of a layer one after another, and a norm at the end.

    Parameters
    ----------
    layer : Module
        Is copied, with its initial values.
    num_layers : int
        The number of copies.
    norm : Module, optional
        Applied to the output.
    """

    def __init__(self, layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList(copy.deepcopy(layer) for _ in range(num_layers))
        self.num_layers = num_layers
        self.norm = norm

    def _through(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        for layer in self.layers:
            x = layer(x, *args, **kwargs)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """A stack of encoder layers.

    Parameters
    ----------
    encoder_layer : Module
        Is copied, with its initial values.
    num_layers : int
        The number of copies.
    norm : Module, optional
        Applied to the output.
    enable_nested_tensor, mask_check : bool
        Have no effect.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Return the encoded sequence; the masks are those of `MultiheadAttention`."""
        return self._through(src, mask, src_key_padding_mask)


class TransformerDecoder(_Stack):
    """A stack of decoder layers.

    Parameters
    ----------
    decoder_layer : Module
        Is copied, with its initial values.
    num_layers : int
        The number of copies.
    norm : Module, optional
        Applied to the output.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoded sequence; the masks are those of `MultiheadAttention`."""
        masks = tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        return self._through(tgt, memory, *masks)


class Transformer(Module):
    """An encoder, and a decoder that attends to its output.

    Parameters
    ----------
    d_model : int, default 512
        The size of inputs.
    nhead : int, default 8
        The number of heads.
    num_encoder_layers, num_decoder_layers : int, default 6
        The numbers of layers.
    dim_feedforward, dropout, activation
        As for `TransformerEncoderLayer`.
    custom_encoder, custom_decoder : Module, optional
        Are used instead.
    layer_norm_eps, batch_first, norm_first, bias, device, dtype
        As for `TransformerEncoderLayer`.

    Examples
    --------
    >>> import chainrule as cr
    >>> net = cr.nn.Transformer(16, nhead=2, num_encoder_layers=1, num_decoder_layers=1)
    >>> net(cr.rand(10, 8, 16), cr.rand(6, 8, 16)).shape
    (6, 8, 16)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        sizes = d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps
        settings = batch_first, norm_first, bias, device, dtype

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        if custom_encoder is None:
            encoding = TransformerEncoderLayer(*sizes, *settings)
            custom_encoder = TransformerEncoder(encoding, num_encoder_layers, norm())
        if custom_decoder is None:
            decoding = TransformerDecoderLayer(*sizes, *settings)
            custom_decoder = TransformerDecoder(decoding, num_decoder_layers, norm())
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoded target sequence; the masks are those of `MultiheadAttention`."""
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        masks = tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        found: Tensor = self.decoder(tgt, memory, *masks)
        return found

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: DeviceLike = None, dtype: DTypeLike = None
    ) -> Tensor:
        """Return the mask of what comes later: -inf above the diagonal, else 0."""
        return triu(full((sz, sz), -math.inf, device=device, dtype=dtype), diagonal=1)
