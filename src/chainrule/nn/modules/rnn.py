"""Recurrent layers: RNN, LSTM and GRU over sequences, and their cells for single steps."""

from __future__ import annotations

import warnings
from math import inf
from typing import Any, ClassVar

import numpy as np

from chainrule.arguments import DeviceLike, DTypeLike
from chainrule.autograd.tensor import Tensor
from chainrule.backend import is_known
from chainrule.control_flow import scan
from chainrule.creation import empty, tensor, zeros
from chainrule.errors import ArgumentError, ArgumentTypeError, ShapeError
from chainrule.nn import functional as F
from chainrule.nn.modules.linear import draw_uniform
from chainrule.nn.modules.module import Module
from chainrule.nn.modules.recurrence import Recurrence, fits
from chainrule.nn.parameter import Parameter
from chainrule.nn.utils.rnn import PackedSequence, padded, steps_of
from chainrule.ops import cat, stack

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

State = tuple[Tensor, ...]  # h, and c of an LSTM


def _rnn_tanh(x: Tensor, h: Tensor, _: State) -> State:
    return ((x + h).tanh(),)


def _rnn_relu(x: Tensor, h: Tensor, _: State) -> State:
    return ((x + h).relu(),)


def _lstm(x: Tensor, h: Tensor, state: State) -> State:
    i, f, g, o = (x + h).chunk(4, -1)
    c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru(x: Tensor, h: Tensor, state: State) -> State:
    (x_r, x_z, x_n), (h_r, h_z, h_n) = x.chunk(3, -1), h.chunk(3, -1)
    n = (x_n + (x_r + h_r).sigmoid() * h_n).tanh()
    return (n + (x_z + h_z).sigmoid() * (state[0] - n),)


_STEPS = {
    "RNN_TANH": (_rnn_tanh, 1),
    "RNN_RELU": (_rnn_relu, 1),
    "LSTM": (_lstm, 4),
    "GRU": (_gru, 3),
}
"""The update of each mode, from gates of input and of state, and the number of gates."""


def _states(hx: Any) -> State:
    return tuple(hx) if isinstance(hx, tuple | list) else (hx,)


class _Ends:
    """Runs of padded sequences that stop at the end of each.

    Backwards, each sequence is reversed within its own length. Outputs beyond an end are not used;
    the cell state of an LSTM isn't among them, and is kept there by its gates, which
    forget nothing and add nothing.
    """

    def __init__(self, lengths: np.ndarray[Any, Any]) -> None:
        self.lengths = lengths
        self.sequences = np.arange(len(lengths))
        steps = np.arange(lengths[0] if len(lengths) else 0)[:, None]
        self.beyond = steps >= lengths
        self.reversed = np.where(self.beyond, steps, lengths - 1 - steps)

    def begin(self, gates: Tensor, backwards: bool, cell_state: bool) -> Tensor:
        """Return the gates of the inputs in the order of a run."""
        if backwards:
            gates = gates[self.reversed, self.sequences]
        if cell_state:
            i, f, g, o = gates.chunk(4, -1)
            beyond = tensor(self.beyond, device=gates.device).unsqueeze(-1)
            i, f = i.masked_fill(beyond, -inf), f.masked_fill(beyond, inf)
            gates = cat([i, f, g, o], -1)
        return gates

    def finish(self, outputs: Tensor, last: State, backwards: bool) -> tuple[Tensor, State]:
        """Return outputs in the order of the sequences, and the states at their ends."""
        ended = outputs[self.lengths - 1, self.sequences]
        if backwards:
            outputs = outputs[self.reversed, self.sequences]
        return outputs, (ended, *last[1:])


class RNNBase(Module):
    """The base class of recurrent layers: `mode` is RNN_TANH, RNN_RELU, LSTM or GRU.

    Parameters
    ----------
    input_size, hidden_size : int
        The sizes of a step's input and of the state.
    num_layers : int, default 1
        The number of layers, each over the outputs of the one below.
    bias : bool, default True
        Whether there are biases.
    batch_first : bool, default False
        Inputs and outputs are of shape (n, l, size); else (l, n, size).
    dropout : number, default 0
        Probability of dropout between layers.
    bidirectional : bool, default False
        Whether each layer also runs backwards, and joins both outputs.
    proj_size : int, default 0
        Size of a projection of the state, of LSTM only; 0 for none.
    device, dtype
        Of the parameters.

    Attributes
    ----------
    weight_ih_l0 : Parameter, shape (gates · hidden_size, input_size)
    weight_hh_l0 : Parameter, shape (gates · hidden_size, hidden_size)
    bias_ih_l0, bias_hh_l0 : Parameter, shape (gates · hidden_size,)
        Of the first layer; others end in _l1 and so on, those backwards in _reverse.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if not 0 <= dropout <= 1:
            raise ArgumentError(f"{name}: dropout should be in [0, 1], got {dropout}")
        if hidden_size <= 0 or num_layers <= 0:
            raise ArgumentError(
                f"{name}: hidden_size and num_layers must be greater than zero, got {hidden_size} "
                f"and {num_layers}"
            )
        if proj_size and (mode != "LSTM" or not 0 < proj_size < hidden_size):
            raise ArgumentError(
                f"{name}: proj_size is of LSTM only, and between 0 and hidden_size, got {proj_size}"
            )
        if dropout and num_layers == 1:
            warnings.warn(
                f"{name}: dropout is between layers, so that it has no effect with num_layers=1",
                stacklevel=3,
            )
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional, self.proj_size = float(dropout), bidirectional, proj_size
        rows, state = _STEPS[mode][1] * hidden_size, proj_size or hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else state * len(self._directions)
            for suffix in self._directions:
                shapes: dict[str, tuple[int, ...]]
                shapes = {"weight_ih": (rows, width), "weight_hh": (rows, state)}
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for title, shape in shapes.items():
                    made = Parameter(empty(shape, device=device, dtype=dtype))
                    self.register_parameter(f"{title}_l{layer}{suffix}", made)
        self.reset_parameters()

    @property
    def _directions(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    def reset_parameters(self) -> None:
        """Draw the parameters again, uniformly between ±1/√hidden_size."""
        draw_uniform(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Do nothing: there is no other layout of parameters."""

    @property
    def _all_weights(self) -> list[list[str]]:
        """The names of the parameters of each layer and direction."""
        kinds = ["weight_ih", "weight_hh"]
        kinds += ["bias_ih", "bias_hh"] if self.bias else []
        kinds += ["weight_hr"] if self.proj_size else []
        return [
            [f"{kind}_l{layer}{suffix}" for kind in kinds]
            for layer in range(self.num_layers)
            for suffix in self._directions
        ]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Parameter]:
        return [weight for weights in self.all_weights for weight in weights]

    def _first_state(self, x: Tensor, given: Any, batched: bool) -> list[Tensor]:
        """Return h, and c of an LSTM, of shape (layers · directions, n, size)."""
        count = self.num_layers * len(self._directions)
        sizes = [self.proj_size or self.hidden_size]
        if self.mode == "LSTM":
            sizes.append(self.hidden_size)
        shapes = [(count, x.shape[1], size) for size in sizes]
        if given is None:
            return [zeros(shape, dtype=x.dtype, device=x.device) for shape in shapes]
        if (self.mode == "LSTM") == isinstance(given, Tensor):
            raise ArgumentTypeError(
                f"{type(self).__name__}: hx is a pair (h_0, c_0) for LSTM, and h_0 for others, got "
                f"a {type(given).__name__}"
            )
        states = list(given) if self.mode == "LSTM" else [given]
        states = states if batched else [state.unsqueeze(1) for state in states]
        for state, shape in zip(states, shapes, strict=True):
            if state.shape != shape:
                raise ShapeError(
                    f"{type(self).__name__}: Expected hidden size {list(shape)}, got "
                    f"{list(state.shape)}"
                )
        return states

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """Return the outputs of the last layer, and the last state of each layer.

        Parameters
        ----------
        input : Tensor, shape (l, n, input_size), or (n, l, input_size) if `batch_first`
            Or (l, input_size) without a batch; or a `PackedSequence`, and then the outputs are one.
        hx : Tensor, or tuple of two for LSTM, optional
            The first state, of shape (num_layers · directions, n, hidden_size): zeros if left out.
        """
        if isinstance(input, PackedSequence):
            return self._run_packed(input, hx)
        if input.ndim not in (2, 3) or input.shape[-1] != self.input_size:
            raise ShapeError(
                f"{type(self).__name__}: Expected input of 2 or 3 dimensions, the last of size "
                f"{self.input_size}, got {list(input.shape)}"
            )
        batched = input.ndim == 3
        x = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            x = x.transpose(0, 1)
        x, last_states = self._run_layers(x, self._first_state(x, hx, batched))
        if batched and self.batch_first:
            x = x.transpose(0, 1)
        if not batched:
            x, last_states = x.squeeze(1), [each.squeeze(1) for each in last_states]
        return x, tuple(last_states) if self.mode == "LSTM" else last_states[0]

    def _run_packed(self, input: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        """Run all layers on padded sequences, each to its own end."""
        if input.data.ndim != 2 or input.data.shape[-1] != self.input_size:
            raise ShapeError(
                f"{type(self).__name__}: Expected packed data of 2 dimensions, the last of size "
                f"{self.input_size}, got {list(input.data.shape)}"
            )
        lengths, order = input.layout()
        x = padded(input.data, lengths)
        ends = _Ends(lengths)
        if order is not None and hx is not None:
            permuted = [state[:, order] for state in _states(hx)]
            hx = tuple(permuted) if self.mode == "LSTM" else permuted[0]
        x, last_states = self._run_layers(x, self._first_state(x, hx, True), ends)
        if order is not None:
            last_states = [state[:, np.argsort(order)] for state in last_states]
        outputs = input.with_data(x[steps_of(lengths)])
        return outputs, tuple(last_states) if self.mode == "LSTM" else last_states[0]

    def _run_layers(
        self, x: Tensor, before: list[Tensor], ends: _Ends | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the outputs of the last layer, and the last state of all layers."""
        after: list[State] = []
        for layer in range(self.num_layers):
            outputs = []
            for suffix in self._directions:
                state = tuple(each[len(after)] for each in before)
                name = f"_l{layer}{suffix}"
                weight = getattr(self, f"weight_ih{name}")
                gates = F.linear(x, weight, getattr(self, f"bias_ih{name}", None))
                if ends is None:
                    output, last = self._run(gates, state, name, bool(suffix))
                else:
                    gates = ends.begin(gates, bool(suffix), self.mode == "LSTM")
                    output, last = ends.finish(*self._run(gates, state, name, False), bool(suffix))
                outputs.append(output)
                after.append(last)
            x = outputs[0] if len(outputs) == 1 else cat(outputs, -1)
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training)
        return x, [stack(parts) for parts in zip(*after, strict=True)]

    def _run(
        self, inputs: Tensor, state: State, name: str, backwards: bool
    ) -> tuple[Tensor, State]:
        """Run one layer in one direction on the gates of its inputs: return outputs, last state."""
        step, _ = _STEPS[self.mode]
        weight: Tensor = getattr(self, f"weight_hh{name}")
        bias: Any = getattr(self, f"bias_hh{name}", None)
        projection = getattr(self, f"weight_hr{name}", None)

        def advance(state: State, gates: Tensor) -> tuple[State, Tensor]:
            state = step(gates, F.linear(state[0], weight, bias), state)
            if projection is not None:
                state = (F.linear(state[0], projection), *state[1:])
            return state, state[0]

        fused = self.mode in ("LSTM", "GRU") and projection is None and bias is not None
        if fused and len(inputs) and fits(inputs, weight, bias, *state):

            def loop(gates: Tensor, weight: Tensor, bias: Tensor, *state: Tensor) -> State:
                collected = []
                for each in gates.unbind(0):
                    state = step(each, F.linear(state[0], weight, bias), state)
                    collected.append(state[0])
                return stack(collected), *state

            inputs = inputs.flip(0) if backwards else inputs
            outputs, *last = Recurrence.apply(loop, self.mode, inputs, weight, bias, *state)
            return outputs.flip(0) if backwards else outputs, tuple(last)
        if not is_known(inputs._array):  # a loop of the compiled program, whatever the length
            last, outputs = scan(advance, state, inputs, reverse=backwards)
            return outputs, last
        steps = inputs.unbind(0)
        collected = []
        for gates in reversed(steps) if backwards else steps:
            state, output = advance(state, gates)
            collected.append(output)
        return stack(collected[::-1] if backwards else collected), state

    def extra_repr(self) -> str:
        """Return the sizes, and the settings that aren't the usual ones."""
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0),
            ("bidirectional", False),
        ):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text


class RNN(RNNBase):
    """A recurrent layer: h ← tanh(W x + b + V h + c), or with relu.

    Parameters
    ----------
    input_size, hidden_size, num_layers : int
        As for `RNNBase`.
    nonlinearity : {'tanh', 'relu'}
        The function.
    bias, batch_first, dropout, bidirectional, device, dtype
        As for `RNNBase`.

    Examples
    --------
    >>> import chainrule as cr
    >>> outputs, last = cr.nn.RNN(3, 5)(cr.ones(7, 2, 3))
    >>> outputs.shape, last.shape
    ((7, 2, 5), (1, 2, 5))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        mode = _mode_of("RNN", nonlinearity)
        settings = num_layers, bias, batch_first, dropout, bidirectional, 0, device, dtype
        super().__init__(mode, input_size, hidden_size, *settings)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """A recurrent layer with long short-term memory: its state is a pair (h, c).

    The parameters are those of `RNNBase` without `mode`.

    Notes
    -----
    S. Hochreiter, J. Schmidhuber, Long short-term memory, Neural Computation 9(8), 1997, with the
    forget gate of F. Gers et al., 2000. The gates are in the order input, forget, cell, output.

    Examples
    --------
    >>> import chainrule as cr
    >>> outputs, (h, c) = cr.nn.LSTM(3, 5, batch_first=True)(cr.ones(2, 7, 3))
    >>> outputs.shape, h.shape, c.shape
    ((2, 7, 5), (1, 2, 5), (1, 2, 5))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """A gated recurrent layer.

    The parameters are those of `RNNBase` without `mode` and `proj_size`.

    Notes
    -----
    K. Cho et al., Learning phrase representations using RNN encoder-decoder, 2014, with the reset
    gate after the product, as in PyTorch and cuDNN. The gates are in the order reset, update, new.

    Examples
    --------
    >>> import chainrule as cr
    >>> output, last = cr.nn.GRU(3, 4)(cr.rand(10, 8, 3))  # ten steps of eight examples
    >>> output.shape, last.shape
    ((10, 8, 4), (1, 8, 4))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)


def _mode_of(title: str, nonlinearity: str) -> str:
    if nonlinearity not in ("tanh", "relu"):
        raise ArgumentError(
            f"{title}: Unknown nonlinearity {nonlinearity!r}. Select from 'tanh' or 'relu'."
        )
    return f"RNN_{nonlinearity.upper()}"


class RNNCellBase(Module):
    """One step of a recurrent layer.

    Parameters
    ----------
    input_size, hidden_size : int
        The sizes of the input and of the state.
    bias : bool, default True
        Whether there are biases.
    device, dtype
        Of the parameters.

    Attributes
    ----------
    weight_ih : Parameter, shape (gates · hidden_size, input_size)
    weight_hh : Parameter, shape (gates · hidden_size, hidden_size)
    bias_ih, bias_hh : Parameter, shape (gates · hidden_size,), or None
    """

    _mode: ClassVar[str]
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = _STEPS[self._mode][1] * hidden_size
        self.weight_ih = Parameter(empty(rows, input_size, device=device, dtype=dtype))
        self.weight_hh = Parameter(empty(rows, hidden_size, device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            made = Parameter(empty(rows, device=device, dtype=dtype)) if bias else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters again, uniformly between ±1/√hidden_size."""
        draw_uniform(self, self.hidden_size)

    def _step_mode(self) -> str:
        return self._mode

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """Return the next state: h, or (h, c) of an LSTM cell, of shape (n, hidden_size)."""
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise ShapeError(
                f"{type(self).__name__}: Expected input to be 1D or 2D with {self.input_size} "
                f"features, got {list(input.shape)}"
            )
        pair = self._mode == "LSTM"
        if hx is None:
            shape = (*input.shape[:-1], self.hidden_size)
            state = (zeros(shape, dtype=input.dtype, device=input.device),) * (1 + pair)
        else:
            state = tuple(hx) if pair else (hx,)
            for i, each in enumerate(state):
                if each.shape[:-1] != input.shape[:-1]:
                    raise ShapeError(
                        f"{type(self).__name__}: Input batch size {list(input.shape[:-1])} doesn't "
                        f"match hidden{i} batch size {list(each.shape[:-1])}"
                    )
        gates = F.linear(input, self.weight_ih, self.bias_ih)
        recurrent = F.linear(state[0], self.weight_hh, self.bias_hh)
        after = _STEPS[self._step_mode()][0](gates, recurrent, state)
        return after if pair else after[0]

    def extra_repr(self) -> str:
        """Return the sizes, and the settings that aren't the usual ones."""
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(RNNCellBase):
    """One step of `RNN`.

    Parameters
    ----------
    input_size, hidden_size : int
        The sizes of the input and of the state.
    bias : bool, default True
        Whether there are biases.
    nonlinearity : {'tanh', 'relu'}
        The function.
    device, dtype
        Of the parameters.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.RNNCell(3, 4)(cr.rand(8, 3)).shape
    (8, 4)
    """

    _mode = "RNN_TANH"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity = nonlinearity
        self._step_mode()

    def _step_mode(self) -> str:
        return _mode_of("RNNCell", self.nonlinearity)

    def extra_repr(self) -> str:
        """Return the sizes, and the settings that aren't the usual ones."""
        text = super().extra_repr()
        return text if self.nonlinearity == "tanh" else f"{text}, nonlinearity={self.nonlinearity}"


class LSTMCell(RNNCellBase):
    """One step of `LSTM`: ``h, c = cell(x, (h, c))``.

    Examples
    --------
    >>> import chainrule as cr
    >>> hidden, cell = cr.nn.LSTMCell(3, 4)(cr.rand(8, 3))
    >>> hidden.shape, cell.shape
    ((8, 4), (8, 4))
    """

    _mode = "LSTM"


class GRUCell(RNNCellBase):
    """One step of `GRU`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nn.GRUCell(3, 4)(cr.rand(8, 3)).shape
    (8, 4)
    """

    _mode = "GRU"
