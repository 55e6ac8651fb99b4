"""Nested tensors: several tensors of different lengths under one name, as `torch.nested` has them.

>>> import chainrule as cr
>>> nt = cr.nested.nested_tensor([[1.0, 2.0], [3.0]])
>>> cr.nested.to_padded_tensor(nt, 0.0)
tensor([[1., 2.],
        [3., 0.]])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from chainrule.arguments import DeviceLike, DTypeLike, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.creation import full, tensor
from chainrule.errors import ArgumentError, ShapeError
from chainrule.ops import cat

__all__ = [
    "NestedTensor",
    "as_nested_tensor",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]


class NestedTensor:
    """Tensors with as many dimensions each, as the parts along a first dimension.

    `nested_tensor` and `as_nested_tensor` make it. A method of tensors is called of each part, and
    operators take numbers, tensors and nested tensors with parts of the same shapes. Functions of
    `chainrule` and layers take one part at a time, or what `to_padded_tensor` returns.

    Examples
    --------
    >>> import chainrule as cr
    >>> nt = cr.nested.nested_tensor([[1.0, -2.0], [3.0]])
    >>> (2 * nt.relu()).unbind()
    (tensor([2., 0.]), tensor([6.]))
    """

    is_nested = True

    def __init__(self, parts: Sequence[Tensor]) -> None:
        self._parts = tuple(parts)
        if len({part.ndim for part in self._parts}) > 1:
            raise ShapeError(
                "nested_tensor: the parts must have as many dimensions each, but got the shapes "
                f"{[list(part.shape) for part in self._parts]}"
            )

    @property
    def dtype(self) -> Any:
        """The dtype of the parts."""
        return self._parts[0].dtype

    @property
    def device(self) -> Any:
        """The device of the parts."""
        return self._parts[0].device

    @property
    def requires_grad(self) -> bool:
        """Whether one of the parts requires grad."""
        return any(part.requires_grad for part in self._parts)

    @property
    def ndim(self) -> int:
        """The number of dimensions, with that of the parts."""
        return 1 + self._parts[0].ndim if self._parts else 1

    def dim(self) -> int:
        """Return the number of dimensions, with that of the parts."""
        return self.ndim

    def size(self, dim: int) -> int:
        """Return the size of a dimension; raise where the parts have several."""
        if dim in (0, -self.ndim):
            return len(self._parts)
        sizes = {part.shape[dim - 1 if dim > 0 else dim] for part in self._parts}
        if len(sizes) > 1:
            raise ShapeError(
                f"Given dimension {dim} is irregular and does not have a size: {sorted(sizes)}"
            )
        return sizes.pop()

    def numel(self) -> int:
        """Return the number of elements of all parts."""
        return sum(part.numel() for part in self._parts)

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """Return the parts."""
        if dim != 0:
            raise ArgumentError(f"unbind: a nested tensor has parts along dimension 0, not {dim}")
        return self._parts

    def values(self) -> Tensor:
        """Return the parts, joined along their first dimension."""
        return cat(self._parts)

    def offsets(self) -> Tensor:
        """Return where each part begins in `values`, and where the last one ends."""
        lengths = [0, *(part.shape[0] for part in self._parts)]
        return tensor(lengths).cumsum(0)

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """Return all parts as one tensor: see `chainrule.nested.to_padded_tensor`."""
        return to_padded_tensor(self, padding, output_size)

    def __len__(self) -> int:
        return len(self._parts)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self._parts)

    def __getitem__(self, index: int) -> Tensor:
        return self._parts[index]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__") or not callable(getattr(Tensor, name, None)):
            raise AttributeError(f"a NestedTensor has no attribute {name!r}")
        return partial(self._each, name)

    def _each(self, name: str, *args: Any, **kwargs: Any) -> Any:
        found = []
        for i, part in enumerate(self._parts):
            own = [a[i] if isinstance(a, NestedTensor) else a for a in args]
            found.append(getattr(part, name)(*own, **kwargs))
        return NestedTensor(found) if all(isinstance(x, Tensor) for x in found) else tuple(found)

    def __repr__(self) -> str:
        lines = ",\n".join(f"  {part!r}".replace("\n", "\n  ") for part in self._parts)
        return f"nested_tensor([\n{lines}\n])"


def _operator(name: str) -> Any:
    return lambda self, *args: self._each(name, *args)


_OPERATORS = """
    add radd sub rsub mul rmul truediv rtruediv matmul pow neg lt le gt ge
    """
for _name in _OPERATORS.split():
    setattr(NestedTensor, f"__{_name}__", _operator(f"__{_name}__"))


def nested_tensor(
    tensor_list: Sequence[Any],
    *,
    dtype: DTypeLike = None,
    layout: Any = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> NestedTensor:
    """Return copies of tensors, arrays or lists as one nested tensor, without history.

    Parameters
    ----------
    tensor_list : sequence of Tensors, arrays or lists
        The parts, with as many dimensions each.
    dtype, device
        Of the parts.
    requires_grad : bool, default False
        Whether the parts record.
    layout, pin_memory
        As in PyTorch, without effect.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nested.nested_tensor([cr.zeros(2, 3), cr.ones(1, 3)]).size(2)
    3
    """
    parts = [
        part.detach().clone() if isinstance(part, Tensor) else tensor(part) for part in tensor_list
    ]
    moved = [part.to(device=device, dtype=dtype) for part in parts]
    return NestedTensor([part.requires_grad_(requires_grad) for part in moved])


def as_nested_tensor(
    ts: Sequence[Any], dtype: DTypeLike = None, device: DeviceLike = None, layout: Any = None
) -> NestedTensor:
    """Return tensors as one nested tensor: gradients flow to them.

    Examples
    --------
    >>> import chainrule as cr
    >>> x = cr.ones(2, requires_grad=True)
    >>> cr.nested.as_nested_tensor([x, cr.ones(1)]).values().sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """
    return NestedTensor([tensor_of(part).to(device=device, dtype=dtype) for part in ts])


def nested_tensor_from_jagged(
    values: Tensor, offsets: Tensor | None = None, lengths: Tensor | None = None, **settings: Any
) -> NestedTensor:
    """Return the parts of a tensor between offsets as one nested tensor.

    Parameters
    ----------
    values : Tensor, shape (n, ...)
        The parts, one after the other.
    offsets : Tensor of ints, optional
        Where each part begins, and where the last one ends.
    lengths : Tensor of ints, optional
        The length of each part: by default as far as the next one.
    **settings
        PyTorch's, without effect.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.nested.nested_tensor_from_jagged(cr.arange(3.0), cr.tensor([0, 2, 3])).unbind()
    (tensor([0., 1.]), tensor([2.]))
    """
    if offsets is None and lengths is None:
        raise ArgumentError("nested_tensor_from_jagged: give offsets, lengths, or both")
    sizes = None if lengths is None else lengths.tolist()
    if offsets is None:
        return NestedTensor(values.split(sizes))
    starts = offsets.tolist()
    if sizes is None:
        sizes = [stop - start for start, stop in pairwise(starts)]
    pairs = zip(starts, sizes, strict=False)
    return NestedTensor([values[start : start + size] for start, size in pairs])


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = None) -> NestedTensor:
    """Return a part of each row of a tensor, of its own start and length, as one nested tensor.

    Examples
    --------
    >>> import chainrule as cr
    >>> rows = cr.arange(4.0).reshape(2, 2)
    >>> cr.nested.narrow(rows, 1, 0, cr.tensor([1, 2])).unbind()
    (tensor([0.]), tensor([2., 3.]))
    """
    if dim != 1:
        raise ArgumentError(f"nested.narrow: dim must be 1, but got {dim}")
    count = tensor.shape[0]
    starts = start.tolist() if isinstance(start, Tensor) else [start] * count
    lengths = length.tolist() if isinstance(length, Tensor) else [length] * count
    rows = zip(tensor.unbind(0), starts, lengths, strict=True)
    return NestedTensor([row[first : first + size] for row, first, size in rows])


def to_padded_tensor(input: NestedTensor, padding: float, output_size: Any = None) -> Tensor:
    """Return all parts as one tensor: shorter ones are filled up.

    Parameters
    ----------
    input : NestedTensor
        The parts.
    padding : number
        What is put after the elements of each part.
    output_size : tuple of ints, optional
        The shape of the result; by default the largest size of each dimension.

    Returns
    -------
    Tensor
        Gradients flow to the parts.

    Raises
    ------
    ShapeError
        If `output_size` is less than the size of a part.
    """
    parts = input.unbind()
    largest = tuple(map(max, zip(*[part.shape for part in parts], strict=True)))
    shape = (len(parts), *largest) if output_size is None else tuple(output_size)
    found = full(shape, padding, dtype=input.dtype, device=input.device)
    if len(shape) != 1 + len(largest) or any(
        a < b for a, b in zip(shape[1:], largest, strict=True)
    ):
        raise ShapeError(
            f"to_padded_tensor: output_size {list(shape)} must be at least {[len(parts), *largest]}"
        )
    for i, part in enumerate(parts):
        found[(i, *(slice(length) for length in part.shape))] = part
    return found
