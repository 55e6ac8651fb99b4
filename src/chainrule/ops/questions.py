"""What a tensor is: its kind of numbers, where it lives; and what PyTorch only notes."""

from __future__ import annotations

from typing import Any, NoReturn

from chainrule.arguments import Operand, tensor_of
from chainrule.autograd.tensor import Tensor
from chainrule.backend import CPU, dtype_title
from chainrule.errors import DTypeError

__all__ = [
    "detach",
    "get_device",
    "is_complex",
    "is_conj",
    "is_floating_point",
    "is_inference",
    "is_neg",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "resolve_conj",
    "resolve_neg",
    "typename",
]


def is_floating_point(input: Operand) -> bool:
    """Say whether the dtype is a real floating one.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_floating_point(cr.ones(2)), cr.is_floating_point(cr.tensor([1]))
    (True, False)
    """
    return tensor_of(input).is_floating_point()


def is_complex(input: Operand) -> bool:
    """Say whether the dtype is complex.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_complex(cr.tensor([1j]))
    True
    """
    return tensor_of(input).is_complex()


def is_signed(input: Operand) -> bool:
    """Say whether the dtype has negative numbers.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_signed(cr.tensor([1])), cr.is_signed(cr.tensor([1], dtype=cr.uint8))
    (True, False)
    """
    return tensor_of(input).dtype.kind in "ifc"


def is_nonzero(input: Operand) -> bool:
    """Say whether the one element is not zero.

    Raises
    ------
    AutogradError
        If there are several elements, or none.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_nonzero(cr.tensor([0.0])), cr.is_nonzero(cr.tensor(2))
    (False, True)
    """
    return bool(tensor_of(input))


def is_same_size(input: Operand, other: Operand) -> bool:
    """Say whether two tensors have the same shape.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_same_size(cr.zeros(2), cr.zeros(2, 1))
    False
    """
    return tensor_of(input).shape == tensor_of(other).shape


def is_conj(input: Operand) -> bool:
    """Say whether the tensor is conjugated only on reading: never, `conj` computes at once.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_conj(cr.tensor([1j]).conj())
    False
    """
    tensor_of(input)
    return False


def is_neg(input: Operand) -> bool:
    """Say whether the tensor is negated only on reading: never.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_neg(-cr.ones(2))
    False
    """
    tensor_of(input)
    return False


def is_inference(input: Operand) -> bool:
    """Say whether the tensor is kept out of graphs for good: never, see `inference_mode`.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.is_inference(cr.ones(2))
    False
    """
    tensor_of(input)
    return False


def resolve_conj(input: Operand) -> Tensor:
    """Return the tensor as it is: here it never waits for being conjugated.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.resolve_conj(cr.tensor([1j]).conj())
    tensor([0.-1.j])
    """
    return tensor_of(input)


def resolve_neg(input: Operand) -> Tensor:
    """Return the tensor as it is: here it never waits for being negated.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.resolve_neg(cr.tensor([1.0]))
    tensor([1.])
    """
    return tensor_of(input)


def detach(input: Operand) -> Tensor:
    """Return a tensor of the same memory, outside the graph.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.detach(cr.ones(2, requires_grad=True)).requires_grad
    False
    """
    return tensor_of(input).detach()


def get_device(input: Operand) -> int:
    """Return the number of the GPU where the tensor lives, -1 for the CPU.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.get_device(cr.ones(2))
    -1
    """
    place = tensor_of(input).device
    return -1 if place == CPU else int(place.index or 0)


def typename(obj: Any, /) -> str:
    """Return the name of the kind of an object, as PyTorch prints those of tensors.

    Examples
    --------
    >>> import chainrule as cr
    >>> cr.typename(cr.ones(2)), cr.typename([])
    ('torch.FloatTensor', 'list')
    """
    if isinstance(obj, Tensor):
        return f"torch.{'' if obj.device == CPU else 'cuda.'}{dtype_title(obj.dtype)}Tensor"
    kind = obj if isinstance(obj, type) else type(obj)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{module}{kind.__qualname__}"


# --- methods and attributes -----------------------------------------------------------------------


def data_ptr(x: Tensor) -> int:
    """Return the address of the first element."""
    place: Any = x._array.ctypes if x.device == CPU else x._array.data
    return int(place.data if x.device == CPU else place.ptr)


def ndimension(x: Tensor) -> int:
    """Return the number of dimensions."""
    return x.ndim


def bfloat16(x: Tensor) -> NoReturn:
    """Refuse: NumPy has no numbers of this format."""
    raise DTypeError(
        "bfloat16: NumPy has no such numbers. Use float() for single precision, or half() for 16 "
        "bits with fewer exponents"
    )


METHODS: dict[str, Any] = {
    "data_ptr": data_ptr,
    "ndimension": ndimension,
    "bfloat16": bfloat16,
    "get_device": get_device,
    "is_conj": is_conj,
    "is_inference": is_inference,
    "is_neg": is_neg,
    "is_nonzero": is_nonzero,
    "is_same_size": is_same_size,
    "is_signed": is_signed,
    "resolve_conj": resolve_conj,
    "resolve_neg": resolve_neg,
    "is_cpu": property(lambda x: x.device == CPU, doc="Whether the CPU's memory holds it."),
    "is_cuda": property(lambda x: x.device != CPU, doc="Whether a GPU's memory holds it."),
    "is_meta": property(lambda x: False, doc="Whether there is a shape only: never."),
    "is_quantized": property(lambda x: False, doc="Whether numbers are quantised: never."),
    "is_sparse": property(lambda x: False, doc="Whether zeros are left out: never."),
    "itemsize": property(lambda x: int(x._array.itemsize), doc="The bytes of one element."),
    "nbytes": property(lambda x: int(x._array.nbytes), doc="The bytes of all elements."),
}
